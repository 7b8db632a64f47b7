// SPDX-License-Identifier: Apache-2.0
#include "cluster/caller_limits.h"

#include <utility>

namespace millrace {

CallerLimits::Hold& CallerLimits::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Over();
  limits_ = std::exchange(other.limits_, nullptr);
  at_ = other.at_;
  return *this;
}

void CallerLimits::Hold::Over() {
  CallerLimits* const limits = std::exchange(limits_, nullptr);
  if (limits == nullptr) return;
  absl::MutexLock lock(&limits->mu_);
  if (--at_->second == 0) limits->under_way_.erase(at_);
}

StatusOr<CallerLimits::Hold> CallerLimits::Begin(absl::string_view caller, bool ends_something) {
  Hold hold;
  absl::MutexLock lock(&mu_);
  auto at = under_way_.find(caller);
  if (at == under_way_.end()) at = under_way_.emplace(caller, 0).first;
  if (at->second >= value_ + others_ + (ends_something ? kReserve : 0)) {
    const std::string others = others_ > 0 ? absl::StrCat(", and ", others_, " other calls") : "";
    return ResourceExhausted(
        caller, " has ", at->second, " calls under way here, which is its limit (", setting_, "=", value_, others,
        "): wait until some have ended, or start this server with a larger ", setting_);
  }
  ++at->second;
  hold.limits_ = this;
  hold.at_ = at;
  return hold;
}

}  // namespace millrace
