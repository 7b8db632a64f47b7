// SPDX-License-Identifier: Apache-2.0
// Calls between processes of one user on one host, at addresses "unix:PATH". Long payloads lie in shared memory: the
// sender writes them there, the receiver's Cord refers to it, so that a tensor is copied once. A segment has no name:
// nothing is left when its processes die, and a Cord keeps its memory beyond the sender's life. Thread-safe.
//
// A peer can write to memory that it has sent while we read it; it is a process of our own user (others are refused),
// which could do worse. It cannot take the memory away: segments are sealed.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/status.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace {

namespace shm {
class Loop;
}

// A channel that knows whether anybody is there.
class ShmChannel : public RpcChannel {
 public:
  // Connects when it must. What it found may be otherwise a moment later.
  virtual bool IsReachable() = 0;
};

// Of the options it obeys the keepalive's. Threads start with the first channel or server. `env` outlives it.
class ShmTransport final : public RpcTransport {
 public:
  ShmTransport(Env& env, const RpcTransportOptions& options);
  ~ShmTransport() override;
  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override;
  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override;
  StatusOr<std::unique_ptr<ShmChannel>> ConnectShm(const std::string& address);

 private:
  Env& env_;
  const RpcTransportOptions options_;
  absl::Mutex mu_;
  std::unique_ptr<shm::Loop> loop_ ABSL_GUARDED_BY(mu_);  // of all channels
};

std::unique_ptr<RpcTransport> NewShmTransport(Env& env, const RpcTransportOptions& options = {});

namespace shm {

// `loop` outlives it. The channel may be destroyed in a reply of its own.
StatusOr<std::unique_ptr<ShmChannel>> NewShmChannel(Loop& loop, const std::string& address,
                                                    const RpcTransportOptions& options);
// Not to be destroyed by its own handler.
StatusOr<std::unique_ptr<RpcServer>> NewShmServer(Env& env, const RpcServerOptions& server_options,
                                                  const RpcTransportOptions& options, RpcHandler* handler);

}  // namespace shm
}  // namespace millrace
