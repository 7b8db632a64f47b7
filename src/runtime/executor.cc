// SPDX-License-Identifier: Apache-2.0
// Execution in plan order; execution by readiness is in ready_run.cc.
#include "runtime/executor.h"

#include "runtime/node_run.h"

namespace millrace {

Status RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options) {
  for (const PlanNode& n : plan.nodes()) {
    if (__builtin_expect(step.cancellation && step.cancellation->IsCancelled(), 0)) {
      return Cancelled("the step was cancelled");
    }
    if (Status s = ComputeNode(n, frame, step, n.dies_in_order, options.trace); __builtin_expect(!s.ok(), 0)) {
      return AtNode(s, n);
    }
    for (int slot : n.releases) ClearSlot(frame.slots[static_cast<size_t>(slot)]);
  }
  return absl::OkStatus();
}

StatusOr<Tensor> RetvalOf(const Plan& plan, const Frame& frame, int i) {
  const Slot& slot = frame.slots[static_cast<size_t>(plan.retval_slot(i))];
  if (slot.ref) {
    Tensor value = slot.ref->ReadOrEmpty();
    if (!value.IsInitialized()) {
      return FailedPrecondition("Attempting to use uninitialized value ", plan.retval_source(i));
    }
    return value;
  }
  if (!slot.tensor.IsInitialized()) return Internal("fetch ", plan.retval_source(i), " has no value");
  return slot.tensor;
}

}  // namespace millrace
