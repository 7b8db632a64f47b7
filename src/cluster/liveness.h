// SPDX-License-Identifier: Apache-2.0
// How soon a silent process counts as dead, here and at its peers.
#pragma once

#include "absl/time/time.h"
#include "base/status.h"

namespace millrace {

// A master asks the tasks of its open sessions each `period` whether they are there, and a worker keeps a session whose
// master is another process for as long as it is asked. Both give up after `dead`, so that who comes back finds that it
// was given up.
struct Liveness {
  absl::Duration period = absl::Seconds(1);
  absl::Duration suspect = absl::Seconds(5);  // then the log says so
  absl::Duration dead = absl::Seconds(10);    // infinite: never
  // When no step on a worker has made progress for so long, the log says what each waits for; infinite: never.
  absl::Duration stalled = absl::Seconds(60);
};

// With what the environment says: MILLRACE_DEAD_AFTER_SECONDS (of which the period is a tenth, at most a second, and
// suspicion a half) and MILLRACE_STALLED_AFTER_SECONDS; 0: never. InvalidArgument for what is no number of seconds.
StatusOr<Liveness> LivenessFromEnvironment();

}  // namespace millrace
