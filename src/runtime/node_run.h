// SPDX-License-Identifier: Apache-2.0
// What both ways of execution do at a node.
#pragma once

#include "runtime/executor.h"

namespace millrace {

// `s` with node, op, device and the user's line.
Status AtNode(const Status& s, const PlanNode& n);

// FailedPrecondition when a variable that the node reads has no value.
Status LoadDereferences(const PlanNode& n, Frame& frame);
void ClearDereferences(const PlanNode& n, Frame& frame);

// A kernel that leaves an output without a value has a bug; the step must not go on with it.
Status CheckOutputs(const PlanNode& n, const Frame& frame);

void RecordNode(StepTrace& trace, const PlanNode& n, const Frame& frame, int64_t start_nanos);

inline void ClearSlot(Slot& s) {
  s.tensor = Tensor();
  if (s.ref) s.ref.reset();
}

// Runs a synchronous kernel, with everything above.
inline Status ComputeNode(const PlanNode& n, Frame& frame, StepContext& step, uint64_t dies, StepTrace* trace) {
  if (!n.dereferences.empty()) MR_RETURN_IF_ERROR(LoadDereferences(n, frame));
  KernelContext ctx(n.info, frame.inputs.data() + n.input_begin, frame.slots.data() + n.output_begin, dies, step);
  const int64_t start = trace ? TraceClockNanos() : 0;
  MR_RETURN_IF_ERROR(n.kernel->Compute(ctx));
  MR_RETURN_IF_ERROR(CheckOutputs(n, frame));
  if (trace) RecordNode(*trace, n, frame, start);
  if (!n.dereferences.empty()) ClearDereferences(n, frame);
  return absl::OkStatus();
}

}  // namespace millrace
