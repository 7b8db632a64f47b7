// SPDX-License-Identifier: Apache-2.0
#include "cluster/liveness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace millrace {
namespace {

constexpr double kLongest = 86400.0 * 365;

Status Read(const char* variable, absl::Duration* value) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return absl::OkStatus();
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) || !std::isfinite(seconds) || seconds < 0 || seconds > kLongest) {
    return InvalidArgument(variable, " is '", text, "', want seconds: 0 (never) to ", kLongest);
  }
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
