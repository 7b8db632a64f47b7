// SPDX-License-Identifier: Apache-2.0
#include "system/server_settings.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_system.h"
#include "base/granted_memory.h"
#include "base/settings.h"

namespace millrace {
namespace {

constexpr uint64_t kMostCredentialBytes = 1 << 20;

StatusOr<std::string> TextOf(Env& env, const char* variable, const std::string& path) {
  if (path.empty()) return std::string();
  StatusOr<std::string> text = env.ReadFile(path, kMostCredentialBytes);
  if (!text.ok()) return Annotate(text.status(), absl::StrCat(variable, ": "));
  if (text->empty()) return InvalidArgument(variable, ": the file ", path, " is empty");
  return text;
}

// As the environment names them; the files may change, the environment's strings are not looked at again.
struct CredentialFiles {
  std::string authority = TextSetting("MILLRACE_TLS_CA");
  std::string certificate = TextSetting("MILLRACE_TLS_CERT");
  std::string key = TextSetting("MILLRACE_TLS_KEY");

  std::string Named() const {
    std::vector<std::string> all;
    if (!authority.empty()) all.push_back("MILLRACE_TLS_CA=" + authority);
    if (!certificate.empty()) all.push_back("MILLRACE_TLS_CERT=" + certificate);
    if (!key.empty()) all.push_back("MILLRACE_TLS_KEY=" + key);
    return absl::StrJoin(all, ", ");
  }
  StatusOr<RpcCredentials> Read(Env& env) const {
    RpcCredentials c;
    MR_ASSIGN_OR_RETURN(c.authority, TextOf(env, "MILLRACE_TLS_CA", authority));
    MR_ASSIGN_OR_RETURN(c.certificate, TextOf(env, "MILLRACE_TLS_CERT", certificate));
    MR_ASSIGN_OR_RETURN(c.key, TextOf(env, "MILLRACE_TLS_KEY", key));
    return c;
  }
};

// Half of the files that the process may have open: files, segments and its own connections need some too.
int64_t ConnectionsByDefault() {
  constexpr int64_t kMost = 10'000;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kMost;
  return std::clamp<int64_t>(static_cast<int64_t>(std::min<rlim_t>(files.rlim_cur, 2 * kMost)) / 2, 1, kMost);
}

// Also of "host:port".
bool IsLoopback(absl::string_view address) {
  const size_t colon = address.rfind(':');
  const bool has_port = colon != absl::string_view::npos && address.back() != ']';
  const absl::string_view host = has_port ? address.substr(0, colon) : address;
  if (host == "localhost" || host == "[::1]") return true;
  return absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

}  // namespace

StatusOr<RpcTransportOptions> TransportOptionsFromEnvironment(Env& env) {
  RpcTransportOptions options;
  MR_ASSIGN_OR_RETURN(options.allow_insecure_remote, SwitchSetting("MILLRACE_ALLOW_INSECURE_REMOTE", false));
  MR_ASSIGN_OR_RETURN(options.allow_other_users, SwitchSetting("MILLRACE_ALLOW_OTHER_USERS", false));
  const CredentialFiles files;
  MR_ASSIGN_OR_RETURN(RpcCredentials c, files.Read(env));
  MR_ASSIGN_OR_RETURN(c.secret, TextOf(env, "MILLRACE_TLS_SECRET", TextSetting("MILLRACE_TLS_SECRET")));
  absl::StripAsciiWhitespace(&c.secret);
  if (c.authority.empty() && c.certificate.empty() && c.key.empty() && c.secret.empty()) return options;
  const bool has_own = !c.certificate.empty() && !c.key.empty();
  const bool has_half = c.certificate.empty() != c.key.empty();
  if (c.authority.empty() || has_half || (!has_own && c.secret.empty())) {
    const auto given = [](const std::string& text) { return text.empty() ? "not given" : "given"; };
    return InvalidArgument(
        "TLS wants MILLRACE_TLS_CA (", given(c.authority), ") with MILLRACE_TLS_CERT (", given(c.certificate),
        ") and MILLRACE_TLS_KEY (", given(c.key), "), or with MILLRACE_TLS_SECRET (", given(c.secret),
        "), which clients need alone");
  }
  options.credentials = std::move(c);
  options.origin = files.Named();
  options.renew = [&env, files] { return files.Read(env); };
  options.server_name = TextSetting("MILLRACE_TLS_SERVER_NAME");
  return options;
}

Status ServerPartsFromEnvironment(const std::string& address, ServerParts* parts) {
  parts->bind = TextSetting("MILLRACE_BIND");
  const bool own_host = IsLoopback(parts->bind.empty() ? address : parts->bind);
  MR_ASSIGN_OR_RETURN(parts->allows_any_cluster, SwitchSetting("MILLRACE_ALLOW_ANY_CLUSTER", own_host));
  MR_ASSIGN_OR_RETURN(const int64_t sessions, NumberSetting("MILLRACE_MAX_SESSIONS"));
  parts->master.max_sessions = static_cast<size_t>(sessions);
  MR_ASSIGN_OR_RETURN(const double lease, SecondsSetting("MILLRACE_SESSION_LEASE_SECONDS"));
  parts->master.session_lease = lease == 0 ? absl::InfiniteDuration() : absl::Seconds(lease);
  MR_ASSIGN_OR_RETURN(parts->max_steps, NumberSetting("MILLRACE_MAX_STEPS"));
  MR_ASSIGN_OR_RETURN(parts->max_calls, NumberSetting("MILLRACE_MAX_CALLS"));
  MR_ASSIGN_OR_RETURN(parts->max_message_bytes, NumberSetting("MILLRACE_MAX_MESSAGE_BYTES"));
  MR_ASSIGN_OR_RETURN(parts->max_control_bytes, NumberSetting("MILLRACE_MAX_CONTROL_BYTES"));
  MR_ASSIGN_OR_RETURN(parts->max_connections, NumberSetting("MILLRACE_MAX_CONNECTIONS", ConnectionsByDefault()));
  MR_ASSIGN_OR_RETURN(
      parts->max_connection_bytes, NumberSetting("MILLRACE_MAX_CONNECTION_BYTES", GrantedMemory().main / 4 * 3));
  const bool has_authority = !TextSetting("MILLRACE_TLS_CA").empty(),
             has_secret = !TextSetting("MILLRACE_TLS_SECRET").empty();
  // Without credentials nothing else lets it listen there.
  parts->is_insecure_remote = !own_host && !has_authority && !has_secret;
  parts->roles_by_certificate = has_authority && !has_secret;
  return absl::OkStatus();
}

namespace {

// At each ':' but the one behind a scheme ("store://bucket").
std::vector<std::string> Folders(const std::string& text) {
  std::vector<std::string> folders;
  for (const absl::string_view part : absl::StrSplit(text, ':', absl::SkipEmpty())) {
    const bool goes_on = absl::StartsWith(part, "//") && !folders.empty() &&
                         (folders.back() == "file" || !FileScheme(folders.back() + "://").empty());
    if (goes_on) {
      absl::StrAppend(&folders.back(), ":", part);
    } else {
      folders.emplace_back(part);
    }
  }
  return folders;
}

}  // namespace

StatusOr<GraphRights> GraphRightsFromEnvironment(const std::string& address) {
  GraphRights rights;
  const std::string folders = TextSetting("MILLRACE_ALLOW_FILES");
  rights.is_limited = !IsLoopback(address) || !folders.empty() || !TextSetting("MILLRACE_ALLOW_PY_FUNC").empty();
  const bool own_host = IsLoopback(address);
  MR_ASSIGN_OR_RETURN(rights.limits.allows_client_functions, SwitchSetting("MILLRACE_ALLOW_PY_FUNC", own_host));
  if (folders == "all" || (folders.empty() && own_host)) {
    rights.limits.folders = {"/"};
    rights.limits.allows_all_schemes = true;
  } else {
    rights.limits.folders = Folders(folders);
  }
  return rights;
}

}  // namespace millrace
