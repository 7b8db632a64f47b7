// SPDX-License-Identifier: Apache-2.0
#include "service/step_stats.h"

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "op/device_name.h"
#include "service/step_stats_writer.h"

namespace millrace {

StepMeasure::StepMeasure() {
  ThreadSwitches::Get().WatchThisThread();  // of the others from their first op on
  HostAllocator().ResetPeak();
  before_ = HostAllocator().Stats();
  start_nanos_ = RealNanos();
}

void StepMeasure::Stop(absl::Time now) {
  end_nanos_ = RealNanos();
  end_ = now;
  after_ = HostAllocator().Stats();
  off_cpu_ = ThreadSwitches::Get().Between(start_nanos_, end_nanos_);
  recording_.reset();
}

std::string StepMeasure::Write(const std::vector<StepRecord>& records, const std::vector<FetchedValue>& fetched) const {
  if (std::all_of(records.begin(), records.end(), [](const StepRecord& r) { return r.runs.empty(); })) return {};
  WholeStep step;
  step.start_nanos = start_nanos_;
  step.end_nanos = end_nanos_;
  step.end = end_;
  for (const FetchedValue& fetch : fetched) {
    if (std::find(step.fetched.begin(), step.fetched.end(), fetch.name) == step.fetched.end()) {
      step.fetched.push_back(fetch.name);
    }
  }
  const std::string allocator(HostAllocator().name());
  step.allocator = allocator;
  step.peak_bytes = std::max<int64_t>(0, after_.peak_bytes_in_use - before_.bytes_in_use);
  step.kept_bytes = after_.bytes_in_use - before_.bytes_in_use;
  step.bytes_in_use = after_.bytes_in_use;
  step.off_cpu = off_cpu_;
  return WriteStepStats(records, step);
}

namespace {

const std::string& DeviceOf(absl::string_view asked_for, absl::Span<const DeviceInfo> devices) {
  const StatusOr<DeviceName> wanted = DeviceName::Parse(asked_for);
  for (const DeviceInfo& d : devices) {
    const StatusOr<DeviceName> name = DeviceName::Parse(d.name);
    if (wanted.ok() && name.ok() && wanted->Matches(*name)) return d.name;
  }
  return devices.front().name;
}

}  // namespace

std::vector<FetchedValue> FetchedValues(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<const Tensor> values) {
  std::vector<FetchedValue> all;
  all.reserve(fetches.size());
  const int64_t now = RealNanos();
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Node& node = *fetches[i].node;
    FetchedValue& f = all.emplace_back(FetchedValue{
        .name = std::string(node.name()), .op = std::string(node.op_name()), .device = std::string(node.device())});
    f.is_fed = std::find(feeds.begin(), feeds.end(), fetches[i]) != feeds.end();
    f.nanos = now;
    if (i >= values.size()) continue;
    f.value = {.dtype = values[i].dtype(),
               .shape = values[i].shape(),
               .bytes = static_cast<int64_t>(values[i].TotalBytes()),
               .is_shared = true};
  }
  return all;
}

void AddUnrun(const std::vector<FetchedValue>& fetched, absl::Span<const DeviceInfo> devices,
              std::vector<StepRecord>* records) {
  std::vector<absl::string_view> names;
  for (const FetchedValue& fetch : fetched) {
    if (!fetch.is_fed) names.push_back(fetch.name);
  }
  std::sort(names.begin(), names.end());
  std::vector<char> is_told(names.size());
  const auto tell = [&](absl::string_view name) {  // whether it is news
    const auto at = std::lower_bound(names.begin(), names.end(), name);
    if (at == names.end() || *at != name) return false;
    return std::exchange(is_told[static_cast<size_t>(at - names.begin())], 1) == 0;
  };
  for (const StepRecord& record : *records) {
    for (const StepRecord::Run& run : record.runs) tell(record.NodeOf(run).name);
  }
  StepRecord unrun;
  for (const FetchedValue& fetch : fetched) {
    if (fetch.is_fed || !tell(fetch.name)) continue;
    TracedPlan plan;  // each is on a device of its own
    plan.device = DeviceOf(fetch.device, devices);
    plan.nodes.push_back({.name = fetch.name, .op = fetch.op});
    plan.MakeLabels().IgnoreError();  // it waits for nothing
    unrun.plans.push_back(std::make_shared<const TracedPlan>(std::move(plan)));
    unrun.outputs.push_back(fetch.value);
    unrun.runs.push_back(
        {.plan = static_cast<int32_t>(unrun.plans.size()) - 1,
         .start_nanos = fetch.nanos,
         .end_nanos = fetch.nanos,
         .outputs_end = static_cast<uint32_t>(unrun.outputs.size())});
  }
  if (!unrun.runs.empty()) records->push_back(std::move(unrun));
}

}  // namespace millrace
