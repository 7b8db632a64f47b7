// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/status.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

// What connections show, and ask of the other side. Certificates may change (RpcTransportOptions::renew).
class Credentials {
 public:
  static StatusOr<std::unique_ptr<Credentials>> Make(Env& env, const RpcTransportOptions& options);

  // For a connection to a server that begins now: another object when the texts are others.
  std::shared_ptr<grpc::ChannelCredentials> OfChannel();
  // Whoever connects meets what the texts are by then. It outlives the server, this outlives both.
  std::shared_ptr<grpc::ServerCredentials> OfServer();

  // Null when there are none.
  std::shared_ptr<const RpcCredentials> Now();

 private:
  Credentials(Env& env, const RpcTransportOptions& options);

  Env& env_;
  const std::function<StatusOr<RpcCredentials>()> renew_;
  const int64_t renewal_nanos_;
  absl::Mutex mu_;
  std::shared_ptr<const RpcCredentials> now_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<grpc::ChannelCredentials> of_channel_ ABSL_GUARDED_BY(mu_);  // of now_; null: not made yet
  int64_t looked_at_ ABSL_GUARDED_BY(mu_);                                     // in monotonic nanoseconds
  std::string told_ ABSL_GUARDED_BY(mu_);                                      // why the last look changed nothing
};

// REQUIRES: `secret` is not empty.
bool IsSecret(absl::string_view shown, absl::string_view secret);

}  // namespace millrace::grpc_transport
