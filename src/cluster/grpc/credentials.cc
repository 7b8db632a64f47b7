// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <algorithm>
#include <functional>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/exceptions.h"
#include "base/logging.h"
#include "cluster/grpc/certificates.h"

namespace millrace::grpc_transport {
namespace {

constexpr size_t kLeastSecret = 16, kMostSecret = 4096;

// Of callers with a secret there is no certificate of their own.
Status Check(const RpcCredentials& c) {
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
    if (c.certificate.empty() && c.key.empty()) return absl::OkStatus();
  }
  MR_RETURN_IF_ERROR(want("certificate", c.certificate, "CERTIFICATE-----"));
  return want("key", c.key, "PRIVATE KEY-----");
}

// gRPC's C++ classes make a server's certificates once and for all; its C functions ask for them whenever somebody
// connects.
class AskingCredentials final : public grpc::ServerCredentials {
 public:
  AskingCredentials(Credentials& from, bool has_secret)
      : from_(from),
        made_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                has_secret ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                           : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                &AskingCredentials::Fetch, this))) {}
  ~AskingCredentials() override { grpc_server_credentials_release(made_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), made_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** config) {
    auto answer = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    WithoutExceptions([&] {  // gRPC's C functions know none
      answer = static_cast<AskingCredentials*>(self)->Give(config);
      return absl::OkStatus();
    })
        .IgnoreError();
    return answer;
  }
  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const RpcCredentials> now = from_.Now();
    absl::MutexLock lock(&mu_);
    if (now == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {now->key.c_str(), now->certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(now->authority.c_str(), &pair, 1);
    given_ = now;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  Credentials& from_;
  grpc_server_credentials* const made_;
  absl::Mutex mu_;
  std::shared_ptr<const RpcCredentials> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<Credentials>> Credentials::Make(Env& env, const RpcTransportOptions& options) {
  if (options.credentials.has_value()) {
    MR_RETURN_IF_ERROR(Check(*options.credentials));
    MR_RETURN_IF_ERROR(Annotate(
        CheckThatTheyFit(*options.credentials), absl::StrCat("credentials", options.origin.empty() ? "" : " (",
                                                             options.origin, options.origin.empty() ? "" : ")", ": ")));
  }
  return absl::WrapUnique(new Credentials(env, options));
}

Credentials::Credentials(Env& env, const RpcTransportOptions& options)
    : env_(env),
      renew_(options.credentials.has_value() ? options.renew : nullptr),
      renewal_nanos_(absl::ToInt64Nanoseconds(options.renewal_interval)),
      now_(options.credentials.has_value() ? std::make_shared<RpcCredentials>(*options.credentials) : nullptr),
      looked_at_(env.MonotonicNanos()) {}

std::shared_ptr<const RpcCredentials> Credentials::Now() {
  {
    absl::MutexLock lock(&mu_);
    if (renew_ == nullptr || env_.MonotonicNanos() - looked_at_ < renewal_nanos_) return now_;
    looked_at_ = env_.MonotonicNanos();  // others go on with what there is
  }
  StatusOr<RpcCredentials> got = renew_();
  absl::MutexLock lock(&mu_);
  if (got.ok()) {
    got->secret = now_->secret;
    Status s = Check(*got);
    s.Update(CheckThatTheyFit(*got));
    if (s.ok() && got->certificate.empty() && !now_->certificate.empty()) s = InvalidArgument("there is none any more");
    if (!s.ok()) got = std::move(s);
  }
  if (!got.ok()) {
    if (told_ != got.status().message()) LogWarning("certificates stay as they were: ", got.status().message());
    told_ = std::string(got.status().message());
    return now_;
  }
  told_.clear();
  if (*got != *now_) {
    now_ = std::make_shared<RpcCredentials>(*std::move(got));
    of_channel_ = nullptr;
  }
  return now_;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials::OfChannel() {
  Now();
  absl::MutexLock lock(&mu_);
  if (of_channel_ != nullptr) return of_channel_;
  if (now_ == nullptr) return of_channel_ = grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = now_->authority;
  if (now_->secret.empty()) {
    ssl.pem_cert_chain = now_->certificate;
    ssl.pem_private_key = now_->key;
  }
  return of_channel_ = grpc::SslCredentials(ssl);
}

std::shared_ptr<grpc::ServerCredentials> Credentials::OfServer() {
  const std::shared_ptr<const RpcCredentials> now = Now();
  if (now == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<AskingCredentials>(*this, !now->secret.empty());
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
