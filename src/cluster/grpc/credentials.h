// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "base/status.h"
#include "cluster/rpc_options.h"

namespace millrace::grpc_transport {

Status CheckCredentials(const RpcTransportOptions& options);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const RpcTransportOptions& options);
std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const RpcTransportOptions& options);
// REQUIRES: `secret` is not empty.
bool IsSecret(absl::string_view shown, absl::string_view secret);

}  // namespace millrace::grpc_transport
