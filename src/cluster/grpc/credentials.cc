// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/credentials.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace millrace::grpc_transport {
namespace {

constexpr size_t kLeastSecret = 16, kMostSecret = 4096;

}  // namespace

Status CheckCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return absl::OkStatus();
  const RpcCredentials& c = *options.credentials;
  const auto want = [](absl::string_view what, const std::string& text, absl::string_view mark) -> Status {
    if (absl::StrContains(text, "-----BEGIN ") && absl::StrContains(text, mark)) return absl::OkStatus();
    return InvalidArgument("credentials: the ", what, " is no PEM text (", text.size(), " bytes without '", mark, "')");
  };
  MR_RETURN_IF_ERROR(want("authority's certificate", c.authority, "CERTIFICATE-----"));
  if (!c.secret.empty()) {
    const bool is_plain = std::all_of(c.secret.begin(), c.secret.end(), absl::ascii_isgraph);
    if (!is_plain || c.secret.size() < kLeastSecret || c.secret.size() > kMostSecret) {
      return InvalidArgument("credentials: the secret has ", c.secret.size(), " bytes, want ", kLeastSecret, " to ",
                             kMostSecret, ", all of them letters, digits or marks of ASCII");
    }
    if (c.certificate.empty() && c.key.empty()) return absl::OkStatus();  // of a caller
  }
  MR_RETURN_IF_ERROR(want("certificate", c.certificate, "CERTIFICATE-----"));
  return want("key", c.key, "PRIVATE KEY-----");
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return grpc::InsecureChannelCredentials();
  const RpcCredentials& c = *options.credentials;
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = c.authority;
  if (c.secret.empty()) {
    ssl.pem_cert_chain = c.certificate;
    ssl.pem_private_key = c.key;
  }
  return grpc::SslCredentials(ssl);
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const RpcTransportOptions& options) {
  if (!options.credentials.has_value()) return grpc::InsecureServerCredentials();
  const RpcCredentials& c = *options.credentials;
  grpc::SslServerCredentialsOptions ssl(c.secret.empty() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  ssl.pem_root_certs = c.authority;
  ssl.pem_key_cert_pairs.push_back({c.key, c.certificate});
  return grpc::SslServerCredentials(ssl);
}

bool IsSecret(absl::string_view shown, absl::string_view secret) {
  // As long as `shown` whatever it holds, so that time tells nothing of the secret.
  unsigned difference = shown.size() != secret.size();
  for (size_t i = 0; i < shown.size(); ++i) {
    difference |= static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

}  // namespace millrace::grpc_transport
