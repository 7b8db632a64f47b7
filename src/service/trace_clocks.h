// SPDX-License-Identifier: Apache-2.0
// Traces of steps over several machines, whose clocks began when each was started.
#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/env.h"
#include "runtime/step_record.h"
#include "service/worker_interface.h"

namespace millrace {

// Brings the times of records from other processes onto the clock of this one. How far a worker's clock is ahead is
// estimated as NTP does: by its status, which says its time, as if that was read half way between question and answer;
// of three questions the one that was answered soonest counts. The error is at most half of what that took. Where the
// clocks may be the same one, as on one host, and where a worker does not answer within a second, times stay.
void AlignClocks(absl::Span<const std::pair<WorkerInterface*, SessionRef>> workers, Env& env,
                 std::vector<StepRecord>* records);

}  // namespace millrace
