// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/shm_transport.h"

#include "cluster/shm/loop.h"

namespace millrace {
namespace {

class ShmTransport final : public RpcTransport {
 public:
  ShmTransport(Env& env, const RpcTransportOptions& options) : env_(env), options_(options) {}

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    return shm::NewShmServer(env_, options, options_, handler);
  }

  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    absl::MutexLock lock(&mu_);
    if (loop_ == nullptr) {
      MR_ASSIGN_OR_RETURN(loop_, shm::Loop::New(env_));
    }
    return shm::NewShmChannel(*loop_, address, options_);
  }

 private:
  Env& env_;
  const RpcTransportOptions options_;
  absl::Mutex mu_;
  std::unique_ptr<shm::Loop> loop_ ABSL_GUARDED_BY(mu_);  // of all channels
};

}  // namespace

std::unique_ptr<RpcTransport> NewShmTransport(Env& env, const RpcTransportOptions& options) {
  return std::make_unique<ShmTransport>(env, options);
}

}  // namespace millrace
