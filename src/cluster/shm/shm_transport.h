// SPDX-License-Identifier: Apache-2.0
// Calls between processes of one user on one host, at addresses "unix:PATH". Long payloads lie in shared memory: the
// sender writes them there, the receiver's Cord refers to it, so that a tensor is copied once. A segment has no name:
// nothing is left when its processes die, and a Cord keeps its memory beyond the sender's life. Thread-safe.
//
// A peer can write to memory that it has sent while we read it; it is a process of our own user (others are refused),
// which could do worse. It cannot take the memory away: segments are sealed.
//
// How this is to be chosen without being asked for: a server that listens at a loopback "host:port" without credentials
// also listens at "unix:$XDG_RUNTIME_DIR/millrace-PORT" (or in a folder of mode 0700 in /tmp that is named after the
// user); who connects to a loopback address goes there when a socket of its own user answers, and by gRPC otherwise.
// With credentials it is always gRPC, since roles are read from certificates.
#pragma once

#include <memory>

#include "base/env.h"
#include "base/status.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace {

// Of the options it obeys the keepalive's. Threads start with the first channel or server. `env` outlives it.
std::unique_ptr<RpcTransport> NewShmTransport(Env& env, const RpcTransportOptions& options = {});

namespace shm {

class Loop;

// `loop` outlives it. The channel may be destroyed in a reply of its own.
StatusOr<std::unique_ptr<RpcChannel>> NewShmChannel(Loop& loop, const std::string& address,
                                                    const RpcTransportOptions& options);
// Not to be destroyed by its own handler.
StatusOr<std::unique_ptr<RpcServer>> NewShmServer(Env& env, const RpcServerOptions& server_options,
                                                  const RpcTransportOptions& options, RpcHandler* handler);

}  // namespace shm
}  // namespace millrace
