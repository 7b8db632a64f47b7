// SPDX-License-Identifier: Apache-2.0
// The transports that the same tests run over.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "cluster/shm/shm_transport.h"
#include "cluster/transport_loader.h"

namespace millrace {

inline constexpr const char* kTransports[] = {
#ifdef MR_TEST_GRPC  // from the build
    "grpc", "local",
#endif
    "shm", "host"};

inline StatusOr<std::unique_ptr<RpcTransport>> NewTransport(
    const std::string& name, Env& env, const RpcTransportOptions& options = {}) {
  if (name == "grpc") return NewGrpcTransport(env, options);
  if (name == "local") return NewRpcTransport(env, options);
  if (name == "shm") return NewShmTransport(env, options);
  if (name == "host") return NewHostTransport(env, options, Unimplemented("no gRPC here"));
  return InvalidArgument("no transport '", name, "'");
}

// That a server of the transport can listen at.
inline std::string FreeAddress(const std::string& name) {
  static std::atomic<int> last{0};
  if (name == "shm") return absl::StrCat("unix:/tmp/millrace_test_", getpid(), "_", ++last, ".socket");
  return "127.0.0.1:0";
}

}  // namespace millrace
