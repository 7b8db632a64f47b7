// SPDX-License-Identifier: Apache-2.0
#include "cluster/access.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/logging.h"

namespace millrace {
namespace {

constexpr absl::Duration kQuiet = absl::Minutes(1);
constexpr size_t kMostTold = 1000;  // callers that are remembered

struct Rule {
  const char* method_prefix;
  std::vector<absl::string_view> roles;
};

const std::vector<Rule>& Rules() {
  static const auto* rules = new std::vector<Rule>{
      {"Worker.", {"task"}}, {"Master.", {"task", "client"}}, {"Server.", {"task", "client", "monitor"}}};
  return *rules;
}

std::vector<std::string> RolesOf(const RpcContext& caller) {
  std::vector<std::string> roles;
  for (absl::string_view name : caller.peer_names) {
    if (absl::ConsumePrefix(&name, kRoleScheme)) roles.emplace_back(name);
  }
  return roles;
}

}  // namespace

Status AccessGuard::Check(absl::string_view method, const RpcContext& caller) {
  const std::vector<std::string> roles = RolesOf(caller);
  std::vector<absl::string_view> wanted = {"task"};
  for (const Rule& rule : Rules()) {
    if (absl::StartsWith(method, rule.method_prefix)) wanted = rule.roles;
  }
  for (const absl::string_view role : wanted) {
    if (std::find(roles.begin(), roles.end(), role) != roles.end()) return absl::OkStatus();
  }
  const Status refusal = PermissionDenied(
      task_, " refuses ", method.substr(0, 100), " to ", caller.peer, ": its certificate has ",
      roles.empty() ? "no role" : "the role " + absl::StrJoin(roles, ", "), ", want ", absl::StrJoin(wanted, " or "));
  const std::string who =
      caller.peer_names.empty() ? caller.peer.substr(0, caller.peer.rfind(':')) : absl::StrJoin(caller.peer_names, ",");
  const int64_t now = env_->MonotonicNanos();
  {
    absl::MutexLock lock(&mu_);
    ++refused_;
    if (told_.size() >= kMostTold) told_.clear();
    const auto [at, is_new] = told_.emplace(who, now);
    if (!is_new && absl::Nanoseconds(now - at->second) < kQuiet) return refusal;
    at->second = now;
  }
  LogWarning(refusal.message());
  return refusal;
}

int64_t AccessGuard::refused() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

}  // namespace millrace
