// SPDX-License-Identifier: Apache-2.0
// What both ways of execution do at a node.
#pragma once

#include "kernel/tensor_access.h"
#include "runtime/executor.h"

namespace millrace {

// `s` with node, op, device and the user's line.
Status AtNode(const Status& s, const PlanNode& n);

// FailedPrecondition when a variable that the node reads has no value.
Status LoadDereferences(const NodeInfo& node, const std::vector<Dereference>& list, Frame& frame);
void ClearDereferences(const std::vector<Dereference>& list, Frame& frame);

Status NoValue(int output);
// A kernel that leaves an output without a value has a bug; the step must not go on with it.
inline Status CheckOutputs(const PlanNode& n, const Frame& frame) {
  const Slot* out = frame.slots.data() + n.output_begin;
  for (int o = 0; o < n.num_outputs; ++o) {
    if (!out[o].tensor.IsInitialized() && !out[o].ref) return NoValue(o);
  }
  return absl::OkStatus();
}

void RecordNode(StepTrace& trace, const PlanNode& n, const Frame& frame, int64_t start_nanos);

inline void ClearSlot(Slot& s) {
  TensorAccess::Reset(s.tensor);
  if (s.ref) s.ref.reset();
}

// Runs a synchronous kernel, with everything above.
__attribute__((always_inline)) inline Status ComputeNode(const Plan& plan, size_t k, Frame& frame, StepContext& step, uint64_t dies, StepTrace* trace) {
  const PlanNode& n = plan.nodes()[k];
  if (n.dereferences) MR_RETURN_IF_ERROR(LoadDereferences(*n.info, plan.links(k).dereferences, frame));
  KernelContext ctx(*n.info, frame.inputs.data() + n.input_begin, frame.slots.data() + n.output_begin, dies, step);
  const int64_t start = trace ? TraceClockNanos() : 0;
  MR_RETURN_IF_ERROR(n.kernel->Compute(ctx));
  MR_RETURN_IF_ERROR(CheckOutputs(n, frame));
  if (trace) RecordNode(*trace, n, frame, start);
  if (n.dereferences) ClearDereferences(plan.links(k).dereferences, frame);
  return absl::OkStatus();
}

}  // namespace millrace
