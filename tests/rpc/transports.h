// SPDX-License-Identifier: Apache-2.0
// The transports that the same tests run over.
#pragma once

#include <memory>
#include <string>

#include "cluster/transport_loader.h"

namespace millrace {

inline StatusOr<std::unique_ptr<RpcTransport>> NewTransport(
    const std::string& name, Env& env, const RpcTransportOptions& options = {}) {
  if (name == "grpc") return NewGrpcTransport(env, options);
  return InvalidArgument("no transport '", name, "'");
}

// That a server of the transport can listen at.
inline std::string FreeAddress(const std::string& name) {
  static_cast<void>(name);
  return "127.0.0.1:0";
}

}  // namespace millrace
