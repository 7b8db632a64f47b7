// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cluster/grpc/credentials.h"
#include "cluster/grpc/poller.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

// `poller` and `credentials` outlive it. The channel may be destroyed in a reply of its own.
std::unique_ptr<RpcChannel> NewChannel(Env& env, Poller& poller, const std::string& address,
                                       const RpcTransportOptions& options, Credentials& credentials);

}  // namespace millrace::grpc_transport
