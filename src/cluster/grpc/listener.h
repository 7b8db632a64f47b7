// SPDX-License-Identifier: Apache-2.0
// Takes connections in gRPC's stead, which has no limit for their number, and hands them over to it.
#pragma once

#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "base/env.h"
#include "base/status.h"
#include "cluster/connection_limit.h"

namespace millrace::grpc_transport {

class Listener {
 public:
  struct Options {
    int64_t most = 0;         // connections at once; 0: no limit
    absl::Duration patience;  // with a peer that does not acknowledge what was sent to it
  };
  // Listens at all addresses of `host` ("[::1]" for one of IPv6), at one port of all; 0: any that is free. "0.0.0.0"
  // and "[::]" are all addresses of this machine, of both kinds where there are both. Unavailable, saying why, when the
  // port is taken at one of the addresses, or none is of this machine. `env` outlives it.
  static StatusOr<std::unique_ptr<Listener>> Open(Env& env, const std::string& host, int port, const Options& options);
  // Takes nobody any more; those who were taken are gRPC's.
  ~Listener();
  int port() const { return port_; }
  // From now on `taker` has them.
  Status Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> taker);

 private:
  using Connection = std::pair<int, ino_t>;  // the descriptor, and which socket it was

  Listener(Env& env, std::string name, const Options& options)
      : env_(env), name_(std::move(name)), limit_(env, options.most), options_(options) {}
  Status ListenAtAll(const std::string& host, int port);
  void Run();
  void TakeAllFrom(int listening);
  int64_t CountOpen();

  Env& env_;
  std::string name_;  // "host:port", for the log
  ConnectionLimit limit_;
  const Options options_;
  int port_ = 0;
  std::vector<Descriptor> listening_;
  Descriptor wake_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> taker_;
  std::vector<Connection> open_;  // some of which may have ended
  absl::Mutex mu_;
  bool is_running_ ABSL_GUARDED_BY(mu_) = false;
};

// What a server says to somebody whom its limit keeps out: HTTP/2's GOAWAY, which ends any handshake.
std::string FarewellOfFull();
bool IsFarewellOfFull(const std::string& bytes);

}  // namespace millrace::grpc_transport
