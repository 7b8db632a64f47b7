// SPDX-License-Identifier: Apache-2.0
// Transports that lie in libraries of their own, which are loaded when the first one is wanted. Thread-safe.
#pragma once

#include <memory>

#include "base/env.h"
#include "base/status.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace {

// gRPC, from libmillrace_grpc.so: beside the library that holds this function, or else where the dynamic linker looks.
// It starts threads with its first channel or server. Unimplemented where it cannot be loaded. `env` outlives it.
StatusOr<std::unique_ptr<RpcTransport>> NewGrpcTransport(Env& env, const RpcTransportOptions& options = {});

}  // namespace millrace
