// SPDX-License-Identifier: Apache-2.0
// The transports of a process. Thread-safe.
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

// By gRPC, and through shared memory (shm_transport.h) where that goes, without being asked for: a server at a loopback
// "host:port" is to be found at "unix:@millrace-USER-PORT" too, and a call to such an address goes there when somebody
// answers; that costs a system call where nobody does. With credentials it is always gRPC, since roles are read from
// certificates. "unix:PATH" is shared memory alone. Where gRPC cannot be loaded, and there are no credentials, it is a
// NewHostTransport. `env` outlives it.
StatusOr<std::unique_ptr<RpcTransport>> NewRpcTransport(Env& env, const RpcTransportOptions& options = {});

// Shared memory alone, at loopback addresses and "unix:PATH": among processes of one user on one host. Of other
// addresses it says `why_no_other`. `env` outlives it.
std::unique_ptr<RpcTransport> NewHostTransport(Env& env, const RpcTransportOptions& options,
                                               const Status& why_no_other);

}  // namespace millrace
