// SPDX-License-Identifier: Apache-2.0
#include "cluster/liveness.h"

#include <algorithm>

#include "base/settings.h"

namespace millrace {
namespace {

Status Read(const char* variable, absl::Duration* value) {
  MR_ASSIGN_OR_RETURN(const double seconds, SecondsSetting(variable));
  *value = seconds == 0 ? absl::InfiniteDuration() : absl::Seconds(seconds);
  return absl::OkStatus();
}

}  // namespace

StatusOr<Liveness> LivenessFromEnvironment() {
  Liveness liveness;
  MR_RETURN_IF_ERROR(Read("MILLRACE_DEAD_AFTER_SECONDS", &liveness.dead));
  MR_RETURN_IF_ERROR(Read("MILLRACE_STALLED_AFTER_SECONDS", &liveness.stalled));
  liveness.period = std::min(liveness.period, liveness.dead / 10);
  liveness.suspect = std::min(liveness.suspect, liveness.dead / 2);
  return liveness;
}

}  // namespace millrace
