// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/credentials.h"

#include "absl/strings/match.h"

namespace millrace::grpc_transport {

Status CheckCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return absl::OkStatus();
  const RpcCredentials& c = *options.credentials;
  const auto want = [](absl::string_view what, const std::string& text, absl::string_view mark) -> Status {
    if (absl::StrContains(text, "-----BEGIN ") && absl::StrContains(text, mark)) return absl::OkStatus();
    return InvalidArgument("credentials: the ", what, " is no PEM text (", text.size(), " bytes without '", mark, "')");
  };
  MR_RETURN_IF_ERROR(want("authority's certificate", c.authority, "CERTIFICATE-----"));
  MR_RETURN_IF_ERROR(want("certificate", c.certificate, "CERTIFICATE-----"));
  return want("key", c.key, "PRIVATE KEY-----");
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return grpc::InsecureChannelCredentials();
  const RpcCredentials& c = *options.credentials;
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = c.authority;
  ssl.pem_cert_chain = c.certificate;
  ssl.pem_private_key = c.key;
  return grpc::SslCredentials(ssl);
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return grpc::InsecureServerCredentials();
  const RpcCredentials& c = *options.credentials;
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = c.authority;
  ssl.pem_key_cert_pairs.push_back({c.key, c.certificate});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace millrace::grpc_transport
