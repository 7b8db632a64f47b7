// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cluster/grpc/listener.h"
#include "cluster/grpc/tcp.h"

namespace millrace::grpc_transport {
namespace {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* what) const {
    kFree(what);
  }
};
void FreeNames(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<FreeNames>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, Freed<SSL_free>>;

int NoPassword(char*, int, int, void*) { return 0; }

// All of a text, the process's own first.
std::vector<Certificate> CertificatesIn(const std::string& text) {
  std::vector<Certificate> all;
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) all.emplace_back(next);
  ERR_clear_error();
  return all;
}

Key KeyIn(const std::string& text) {
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::string Written(const Bio& bio) {
  char* at = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &at);
  return std::string(at, static_cast<size_t>(std::max<decltype(size)>(size, 0)));
}

// "CN = ours"
std::string Text(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ);
  return Written(bio);
}
std::string Text(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  return Written(bio);
}

std::string NamesText(X509* certificate) {
  std::vector<std::string> all;
  const Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const Bio bio(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(names.get(), i));
    all.push_back(Written(bio));
  }
  if (all.empty()) all.push_back(Text(X509_get_subject_name(certificate)));
  return absl::StrJoin(all, ", ");
}

// "has expired, on ..., ..."; "" when it is in its time.
std::string OutOfDate(X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return absl::StrCat("expired on ", Text(X509_get0_notAfter(certificate)));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return absl::StrCat(
        "is not valid before ", Text(X509_get0_notBefore(certificate)), " (is this host's clock right?)");
  }
  return "";
}

// A handshake over a connection, byte by byte.
class Handshake {
 public:
  Handshake(TcpConnection& tcp, SSL_CTX* context, const std::string& name) : tcp_(tcp), tls_(SSL_new(context)) {
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(tls_.get(), in_, out_);  // which owns them
    SSL_set_connect_state(tls_.get());
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(tls_.get());
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) != 1) {
      X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), name.size());
      SSL_set_tlsext_host_name(tls_.get(), name.c_str());
    }
    ERR_clear_error();
  }

  enum class End : uint8_t { kDone, kClosed, kSilent, kNoTls, kFailed };
  // Until both have agreed.
  End Run() {
    return Go([this] { return SSL_do_handshake(tls_.get()); });
  }
  // Until the other side says something.
  End Hear() {
    char byte = 0;
    return Go([this, &byte] { return SSL_read(tls_.get(), &byte, 1); });
  }
  bool speaks_tls() const { return speaks_tls_; }
  bool is_full() const { return is_full_; }
  const std::string& failure() const { return failure_; }
  SSL* tls() const { return tls_.get(); }

 private:
  template <typename Step>
  End Go(Step step) {
    for (;;) {
      const int done = step();
      const int error = SSL_get_error(tls_.get(), done);
      const bool is_sent = tcp_.Send(Taken());
      if (done > 0) return End::kDone;
      if (error == SSL_ERROR_SSL) {
        const char* const reason = ERR_reason_error_string(ERR_get_error());
        failure_ = reason != nullptr ? reason : "unknown";
      }
      ERR_clear_error();
      if (error == SSL_ERROR_ZERO_RETURN) return End::kClosed;
      if (error != SSL_ERROR_WANT_READ) return End::kFailed;
      if (!is_sent) return End::kClosed;
      std::string bytes;
      const TcpConnection::Got got = tcp_.Receive(&bytes);
      if (got != TcpConnection::Got::kBytes) return got == TcpConnection::Got::kEnd ? End::kClosed : End::kSilent;
      constexpr char kAlert = 21, kHandshake = 22;  // the first byte of a record
      speaks_tls_ |= bytes[0] == kAlert || bytes[0] == kHandshake;
      is_full_ = !speaks_tls_ && IsFarewellOfFull(bytes);
      if (!speaks_tls_) return End::kNoTls;
      BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    }
  }
  std::string Taken() {
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

  TcpConnection& tcp_;
  const Tls tls_;
  BIO *in_ = nullptr, *out_ = nullptr;
  bool speaks_tls_ = false;
  bool is_full_ = false;  // the server takes no more connections
  std::string failure_;
};

Context ContextFor(const RpcCredentials* credentials) {
  Context context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);  // the handshake goes on, and the result tells
  if (credentials == nullptr) return context;
  for (const Certificate& c : CertificatesIn(credentials->authority)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), c.get());
  }
  if (!credentials->secret.empty()) return context;
  const std::vector<Certificate> chain = CertificatesIn(credentials->certificate);
  const Key key = KeyIn(credentials->key);
  if (chain.empty() || !key) return context;
  SSL_CTX_use_certificate(context.get(), chain.front().get());
  for (size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context.get(), chain[i].get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  return context;
}

// What is wrong with the server's certificate.
std::string FaultOfServer(SSL* tls, const std::string& name, const RpcCredentials& ours) {
  const long result = SSL_get_verify_result(tls);  // NOLINT(google-runtime-int): OpenSSL's
  const Certificate shown(SSL_get1_peer_certificate(tls));
  if (result == X509_V_OK || !shown) return "";
  switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: {
      const std::string when = OutOfDate(shown.get());
      return when.empty() ? "the certificate of its authority is not valid now"
                          : absl::StrCat("its certificate (", NamesText(shown.get()), ") ", when);
    }
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return absl::StrCat("its certificate is for ", NamesText(shown.get()), ", and not for '", name,
                          "' (MILLRACE_TLS_SERVER_NAME names it otherwise than its host)");
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: {
      const std::vector<Certificate> trusted = CertificatesIn(ours.authority);
      return absl::StrCat(
          "its certificate (", NamesText(shown.get()), ") is signed by another authority, ",
          Text(X509_get_issuer_name(shown.get())), ", than this process trusts, ",
          trusted.empty() ? "" : Text(X509_get_subject_name(trusted.front().get())), " (MILLRACE_TLS_CA)");
    }
    default: return absl::StrCat("its certificate: ", X509_verify_cert_error_string(result));
  }
}

// What is wrong with our certificate, as far as the server's wishes tell.
std::string FaultOfOurs(SSL* tls, const RpcCredentials& ours) {
  const STACK_OF(X509_NAME)* const taken = SSL_get0_peer_CA_list(tls);
  const int num_taken = taken == nullptr ? 0 : sk_X509_NAME_num(taken);
  std::vector<std::string> names;
  for (int i = 0; i < num_taken; ++i) names.push_back(Text(sk_X509_NAME_value(taken, i)));
  const std::vector<Certificate> chain =
      ours.secret.empty() ? CertificatesIn(ours.certificate) : std::vector<Certificate>();
  if (chain.empty()) {
    return names.empty() ? "" : "it wants a certificate, and this process shows none (MILLRACE_TLS_CERT, _KEY)";
  }
  const std::string when = OutOfDate(chain.front().get());
  if (!when.empty()) {
    return absl::StrCat("the certificate of this process (", NamesText(chain.front().get()), ") ", when);
  }
  const X509_NAME* const issuer = X509_get_issuer_name(chain.back().get());
  for (int i = 0; i < num_taken; ++i) {
    if (X509_NAME_cmp(sk_X509_NAME_value(taken, i), issuer) == 0) return "";
    if (X509_NAME_cmp(sk_X509_NAME_value(taken, i), X509_get_subject_name(chain.back().get())) == 0) return "";
  }
  if (names.empty()) return "";
  return absl::StrCat("the certificate of this process (", NamesText(chain.front().get()), ") is signed by ",
                      Text(issuer), ", and it takes those of ", absl::StrJoin(names, " or "));
}

}  // namespace

Status CheckThatTheyFit(const RpcCredentials& credentials) {
  if (CertificatesIn(credentials.authority).empty()) {
    return InvalidArgument("the authority's certificate cannot be read");
  }
  if (credentials.certificate.empty() && credentials.key.empty()) return absl::OkStatus();
  const std::vector<Certificate> chain = CertificatesIn(credentials.certificate);
  if (chain.empty()) return InvalidArgument("the certificate cannot be read");
  const Key key = KeyIn(credentials.key);
  if (!key) return InvalidArgument("the key cannot be read (one with a password cannot be used)");
  const bool fits = X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "the key is not that of the certificate (", NamesText(chain.front().get()), "): they are not of one pair");
}

std::vector<std::string> RolesIn(const std::string& certificate, const std::string& scheme) {
  std::vector<std::string> roles;
  const std::vector<Certificate> chain = CertificatesIn(certificate);
  if (chain.empty()) return roles;
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(chain.front().get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    absl::string_view text(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), static_cast<size_t>(ASN1_STRING_length(uri)));
    if (absl::ConsumePrefix(&text, scheme)) roles.emplace_back(text);
  }
  return roles;
}

Status WhyRefused(const std::string& address, const RpcCredentials* credentials, const std::string& server_name,
                  absl::Duration patience) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) return absl::OkStatus();
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  const std::unique_ptr<TcpConnection> tcp = TcpConnection::Open(host, port, patience);
  if (!tcp) return absl::OkStatus();
  const std::string name = server_name.empty() ? host : server_name;
  const Context context = ContextFor(credentials);
  Handshake handshake(*tcp, context.get(), name);
  using End = Handshake::End;
  End end = handshake.Run();
  if (handshake.is_full()) {
    return ResourceExhausted("the server has as many connections as it may (its MILLRACE_MAX_CONNECTIONS)");
  }
  if (credentials == nullptr) {
    if (!handshake.speaks_tls()) return absl::OkStatus();
    return absl::UnauthenticatedError(
        "the server speaks TLS alone: this process has no certificates (MILLRACE_TLS_CA with _CERT and _KEY, or with "
        "_SECRET, name them)");
  }
  if (end == End::kNoTls) {
    return absl::UnauthenticatedError(
        "the server speaks no TLS: it was started without certificates, and this process has some (MILLRACE_TLS_CA)");
  }
  if (!handshake.speaks_tls()) return absl::OkStatus();
  std::string fault = FaultOfServer(handshake.tls(), name, *credentials);
  if (fault.empty()) fault = FaultOfOurs(handshake.tls(), *credentials);
  if (fault.empty() && end == End::kDone) end = handshake.Hear();
  if (fault.empty() && end == End::kFailed) fault = absl::StrCat("TLS: ", handshake.failure());
  if (!fault.empty()) return absl::UnauthenticatedError(absl::StrCat("no connection: ", fault));
  if (end != End::kClosed) return absl::OkStatus();
  return Unavailable("the server closes connections behind the TLS handshake: it stops, or takes no certificate of ",
                     "this process's authority");
}

}  // namespace millrace::grpc_transport
