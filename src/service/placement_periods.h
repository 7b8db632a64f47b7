// SPDX-License-Identifier: Apache-2.0
// When a session that places by cost measures what its nodes cost, and places them again (white paper 3.2.1): at the
// end of its period, then at the end of one twice as long, and so on. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "passes/placement_state.h"
#include "runtime/step_record.h"

namespace millrace {

class PlacementPeriods {
 public:
  // 0: never.
  explicit PlacementPeriods(int64_t period) : end_(period) {}

  enum class Turn : uint8_t { kNone, kMeasure, kPlace };
  // Of the step that begins now: the last ones of a period are measured, the first one behind it is placed again.
  Turn Next();

 private:
  std::atomic<int64_t> steps_{0};
  std::atomic<int64_t> end_;
};

// What the nodes of a traced step have cost.
void KeepCosts(const std::vector<StepRecord>& records, PlacementState& state);

}  // namespace millrace
