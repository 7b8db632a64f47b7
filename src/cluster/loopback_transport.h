// SPDX-License-Identifier: Apache-2.0
// A transport within one process, for tests: messages are bytes, and arrive by call. Copies are the same network.
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

class LoopbackTransport final : public RpcTransport {
 public:
  // `env`, of timeouts, outlives it; null: calls have none.
  explicit LoopbackTransport(Env* env);

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override;
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override;

  int64_t num_calls() const;
  int64_t num_bytes() const;  // of requests and replies

 private:
  struct Shared;
  class Server;
  class Channel;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace millrace
