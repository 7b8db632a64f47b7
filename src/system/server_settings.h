// SPDX-License-Identifier: Apache-2.0
// What the environment says of the servers of this process, and of its clients of servers: who it is, whom it trusts,
// where servers listen, what graphs may do there. docs/cluster.md lists the variables.
#pragma once

#include "base/limited_env.h"
#include "cluster/rpc_options.h"
#include "cluster/server.h"

namespace millrace {

// Of MILLRACE_TLS_CA, _CERT, _KEY, _SECRET, _SERVER_NAME (files, but for the last) MILLRACE_ALLOW_INSECURE_REMOTE and
// MILLRACE_ALLOW_OTHER_USERS.
// The first three files are read again when they may have changed. Errors name the variable. `env` outlives them.
StatusOr<RpcTransportOptions> TransportOptionsFromEnvironment(Env& env);

// Fills in what MILLRACE_BIND, _MAX_SESSIONS, _MAX_STEPS, _MAX_CALLS, _MAX_MESSAGE_BYTES, _ALLOW_ANY_CLUSTER (1 or 0;
// left unset, 1 for a server that only this host can reach) and _TLS_* say. `address`: the server's in its cluster.
// InvalidArgument names the variable.
Status ServerPartsFromEnvironment(const std::string& address, ServerParts* parts);

// What graphs may do on a server: nothing is kept from those of a server that only this host can reach, unless
// MILLRACE_ALLOW_FILES (folders, with ':' between; "all": every file) or MILLRACE_ALLOW_PY_FUNC (1 or 0) say so; on
// others they may do what these allow. `address`: where the server listens, "host:port" or "host".
struct GraphRights {
  bool is_limited = false;
  EnvLimits limits;
};
StatusOr<GraphRights> GraphRightsFromEnvironment(const std::string& address);

}  // namespace millrace
