// SPDX-License-Identifier: Apache-2.0
// The one function that a library with a transport has. Both sides are made from the same sources and link the same
// shared Abseil; beyond that they share interfaces (virtual functions), no symbols.
#pragma once

#include "base/env.h"
#include "base/status.h"
#include "cluster/rpc.h"
#include "cluster/rpc_options.h"

namespace millrace {

// Changes with the layout of anything that crosses.
inline constexpr char kTransportLibraryVersion[] = MILLRACE_VERSION " interface 3";
inline constexpr char kGrpcTransportSymbol[] = "MR_NewGrpcTransport";

// Returns the library's kTransportLibraryVersion, and does nothing else when `version` is another. Sets `transport`,
// which the caller then owns, or `status`.
using NewTransportFn = const char*(const char* version, Env* env, const RpcTransportOptions* options,
                                   RpcTransport** transport, Status* status);

}  // namespace millrace
