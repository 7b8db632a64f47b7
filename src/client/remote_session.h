// SPDX-License-Identifier: Apache-2.0
// The session of a client whose master is a server's: in this process by call, else by messages.
#pragma once

#include "client/session.h"
#include "cluster/channels.h"

namespace millrace {

// `target` is "grpc://host:port". The session is made on the server when it is first needed, with the graph as it is
// then, and the graph there is extended when this one has grown. InvalidArgument when `target` is none. `channels`
// outlives the session.
StatusOr<std::unique_ptr<Session>> NewRemoteSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config,
                                                    const std::string& target, Channels* channels);

// Closes all sessions of the server, then drops what is in these containers on the tasks of its cluster (in all when
// empty). The configuration's filters and timeout hold.
Status ResetRemote(const std::string& target, const wire::ConfigProto& config,
                   const std::vector<std::string>& containers, Channels* channels);

}  // namespace millrace
