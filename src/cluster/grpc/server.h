// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/env.h"
#include "cluster/grpc/credentials.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

// `credentials` outlive it. Not to be destroyed by its own handler.
StatusOr<std::unique_ptr<RpcServer>> NewServer(
    Env& env, const RpcServerOptions& server_options, const RpcTransportOptions& options, Credentials& credentials,
    RpcHandler* handler);

}  // namespace millrace::grpc_transport
