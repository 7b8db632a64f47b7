// SPDX-License-Identifier: Apache-2.0
// What credentials say, read as TLS reads them.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

// InvalidArgument: a text is no certificate or no key, or the key is another one's than the certificate's.
Status CheckThatTheyFit(const RpcCredentials& credentials);

// "client": what is behind `scheme` in the names that are URIs.
std::vector<std::string> RolesIn(const std::string& certificate, const std::string& scheme);

// Why no connection to "host:port" comes about that passes for TLS, found by beginning one. Waits for `patience` at
// each turn. OK: there is nothing wrong, or nobody can be reached. Unauthenticated, for people: what is wrong with
// whose certificate, or that one side alone wants TLS. Unavailable: the server went away in the middle of it.
Status WhyRefused(const std::string& address, const RpcCredentials* credentials, const std::string& server_name,
                  absl::Duration patience);

}  // namespace millrace::grpc_transport
