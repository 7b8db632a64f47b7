// SPDX-License-Identifier: Apache-2.0
#include "service/placement_periods.h"

#include "absl/strings/match.h"
#include "op/device_name.h"

namespace millrace {
namespace {

constexpr int64_t kMeasuredSteps = 3;

}  // namespace

PlacementPeriods::Turn PlacementPeriods::Next() {
  int64_t end = end_.load(std::memory_order_relaxed);
  if (end <= 0) return Turn::kNone;
  const int64_t step = steps_.fetch_add(1, std::memory_order_relaxed);
  if (step >= end) {
    return end_.compare_exchange_strong(end, 2 * step) ? Turn::kPlace : Turn::kNone;
  }
  return step + kMeasuredSteps >= end ? Turn::kMeasure : Turn::kNone;
}

void KeepCosts(const std::vector<StepRecord>& records, PlacementState& state) {
  for (const StepRecord& record : records) {
    for (size_t i = 0; i < record.runs.size(); ++i) {
      const StepRecord::Run& run = record.runs[i];
      const std::string& name = record.NodeOf(run).name;
      if (absl::StartsWith(name, "_")) continue;  // what compilation has added
      const StatusOr<DeviceName> device = DeviceName::Parse(record.plans[static_cast<size_t>(run.plan)]->device);
      if (!device.ok()) continue;
      // An asynchronous kernel's time is what it waited for, and no work of its device.
      const int64_t nanos = run.is_asynchronous ? 0 : run.end_nanos - run.start_nanos;
      PlacementState::Cost cost{.nanos = static_cast<double>(nanos), .output_bytes = {}};
      for (const StepRecord::Output& o : record.OutputsOf(i)) cost.output_bytes.push_back(o.bytes);
      state.AddCost(name, device->type, cost);
    }
  }
}

}  // namespace millrace
