// SPDX-License-Identifier: Apache-2.0
// Writes what a step recorded as an encoded RunMetadata with a StepStats (see step_stats.h for what the fields mean).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/thread_switches.h"
#include "runtime/step_record.h"

namespace millrace {

// What is told of a step beside its nodes. Times as RealNanos says.
struct WholeStep {
  int64_t start_nanos = 0, end_nanos = 0;
  absl::Time end;                          // what the wall said at end_nanos
  std::vector<absl::string_view> fetched;  // names of nodes
  absl::string_view allocator;
  int64_t peak_bytes = 0, kept_bytes = 0, bytes_in_use = 0;  // beyond what was in use; kept; altogether
  absl::Span<const OffCpu> off_cpu;
};

// REQUIRES: records that Check() finds well, some of which have runs.
std::string WriteStepStats(const std::vector<StepRecord>& records, const WholeStep& step);

}  // namespace millrace
