// SPDX-License-Identifier: Apache-2.0
#include "runtime/node_run.h"

#include <ctime>
#include <functional>
#include <thread>

namespace millrace {

int64_t TraceClockNanos() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Status AtNode(const Status& s, const PlanNode& n) {
  std::string text = absl::StrCat(s.message(), "\n\t [[node ", n.info.name, " (", n.info.op->name, ")");
  if (!n.info.location.empty()) absl::StrAppend(&text, " defined at ", n.info.location);
  absl::StrAppend(&text, " on ", n.info.device->name(), "]]");
  return Status(s.code(), text);
}

Status LoadDereferences(const PlanNode& n, Frame& frame) {
  for (const Dereference& d : n.dereferences) {
    const Slot& source = frame.slots[static_cast<size_t>(d.source)];
    Tensor value = source.ref ? source.ref->ReadOrEmpty() : Tensor();
    if (!value.IsInitialized()) {
      return FailedPrecondition("Attempting to use uninitialized value: input ", d.input, " of node '", n.info.name,
                                "' is a variable without a value");
    }
    frame.slots[static_cast<size_t>(d.temp)].tensor = std::move(value);
  }
  return absl::OkStatus();
}

void ClearDereferences(const PlanNode& n, Frame& frame) {
  for (const Dereference& d : n.dereferences) frame.slots[static_cast<size_t>(d.temp)].tensor = Tensor();
}

Status CheckOutputs(const PlanNode& n, const Frame& frame) {
  for (int o = 0; o < n.num_outputs; ++o) {
    const Slot& s = frame.slots[static_cast<size_t>(n.output_begin + o)];
    if (!s.tensor.IsInitialized() && !s.ref) return Internal("kernel gave output ", o, " no value");
  }
  return absl::OkStatus();
}

void RecordNode(StepTrace& trace, const PlanNode& n, const Frame& frame, int64_t start_nanos) {
  NodeTrace t;
  t.node = n.info.name;
  t.op = n.info.op->name;
  t.device = n.info.device->name();
  t.start_nanos = start_nanos;
  t.end_nanos = TraceClockNanos();
  t.thread = static_cast<uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id()));
  for (int o = 0; o < n.num_outputs; ++o) {
    const Tensor& v = frame.slots[static_cast<size_t>(n.output_begin + o)].tensor;
    if (v.IsInitialized()) {
      t.outputs.push_back({v.dtype(), v.shape(), static_cast<int64_t>(v.TotalBytes())});
    }
  }
  trace.Add(std::move(t));
}

}  // namespace millrace
