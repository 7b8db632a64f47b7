// SPDX-License-Identifier: Apache-2.0
// What a traced step did, in the messages that TensorFlow's tools read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/thread_switches.h"
#include "graph/graph.h"
#include "runtime/step_record.h"
#include "service/device_info.h"
#include "tensor/allocator.h"

namespace millrace {

// What a trace tells of a fetch. A value, which may be kept.
struct FetchedValue {
  std::string name, op, device;  // of its node; the device that it asks for
  bool is_fed = false;
  StepRecord::Output value;
  int64_t nanos = 0;  // when it was there
};
// `values` may be missing, when a step has failed.
std::vector<FetchedValue> FetchedValues(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<const Tensor> values);

// Measures one step, from its making to Stop. A value: Write may be called later, on another thread.
class StepMeasure {
 public:
  StepMeasure();
  void Stop(absl::Time now);

  // After Stop. Entries of nodes:
  //   all_start      when the kernel began; the other times count from here
  //   scheduled      when the last of what it waits for had ended, in the clock of all_start; when it waits for nothing
  //                  that ran: when the first op of the step began
  //   op_end_rel     when its thread was free again; all_end_rel: when its outputs were there
  //   timeline_label "node = Op(inputs)": the nodes of the compiled step that it waited for, "^node" for an order
  //   alone;
  //                  a Recv waits for its Send. Then " [helpers N us]" when other threads took parts of its work
  //   memory         the bytes of outputs that nothing else had yet
  // Of the first device `_SOURCE` is the step as a whole (memory: of the host, by how much it grew; other steps of the
  // process count too), and `_SINK` waits for what was fetched.
  // Where threads took parts of the work of others' nodes, "DEVICE pool threads" has an entry for each part, "NODE
  // (part)"; scheduled: when the node had split its work. Where the system tells, the device "/host:CPU thread
  // switches" has an entry for each time in which the threads that ran nodes in this process were off their CPUs:
  // "preempted" when others took it, "asleep" when they waited.
  // An encoded RunMetadata with a StepStats; nothing when nothing ran.
  std::string Write(const std::vector<StepRecord>& records, const std::vector<FetchedValue>& fetched) const;

 private:
  std::unique_ptr<ThreadSwitches::Recording> recording_ = std::make_unique<ThreadSwitches::Recording>();
  std::vector<OffCpu> off_cpu_;
  AllocatorStats before_, after_;
  int64_t start_nanos_ = 0, end_nanos_ = 0;
  absl::Time end_;
};

// Entries for what was fetched without running: constants, and what was folded into some. Their device is the first of
// `devices` that the node asks for, or the first of all. REQUIRES: there is one.
void AddUnrun(const std::vector<FetchedValue>& fetched, absl::Span<const DeviceInfo> devices,
              std::vector<StepRecord>* records);

}  // namespace millrace
