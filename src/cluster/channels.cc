// SPDX-License-Identifier: Apache-2.0
#include "cluster/channels.h"

namespace millrace {

StatusOr<RpcTransport*> Channels::transport() {
  absl::MutexLock lock(&mu_);
  if (!transport_) {
    MR_ASSIGN_OR_RETURN(transport_, make_());
  }
  return transport_.get();
}

StatusOr<RpcChannel*> Channels::Get(const std::string& address) {
  MR_ASSIGN_OR_RETURN(RpcTransport * transport, this->transport());
  absl::MutexLock lock(&mu_);
  std::unique_ptr<RpcChannel>& channel = channels_[address];
  if (!channel) {
    StatusOr<std::unique_ptr<RpcChannel>> made = transport->Connect(address);
    if (!made.ok()) {
      channels_.erase(address);
      return made.status();
    }
    channel = *std::move(made);
  }
  return channel.get();
}

}  // namespace millrace
