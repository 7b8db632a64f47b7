// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/shm_transport.h"

#include "cluster/shm/loop.h"

namespace millrace {

ShmTransport::ShmTransport(Env& env, const RpcTransportOptions& options) : env_(env), options_(options) {}
ShmTransport::~ShmTransport() = default;

StatusOr<std::unique_ptr<RpcServer>> ShmTransport::Listen(const RpcServerOptions& options, RpcHandler* handler) {
  return shm::NewShmServer(env_, options, options_, handler);
}

StatusOr<std::unique_ptr<RpcChannel>> ShmTransport::Connect(const std::string& address) { return ConnectShm(address); }

StatusOr<std::unique_ptr<ShmChannel>> ShmTransport::ConnectShm(const std::string& address) {
  absl::MutexLock lock(&mu_);
  if (loop_ == nullptr) {
    MR_ASSIGN_OR_RETURN(loop_, shm::Loop::New(env_));
  }
  return shm::NewShmChannel(*loop_, address, options_);
}

std::unique_ptr<RpcTransport> NewShmTransport(Env& env, const RpcTransportOptions& options) {
  return std::make_unique<ShmTransport>(env, options);
}

}  // namespace millrace
