// SPDX-License-Identifier: Apache-2.0
// Execution in plan order; execution by readiness is in ready_run.cc.
#include "runtime/executor.h"

#include "runtime/node_run.h"

namespace millrace {

Status RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options) {
  const std::vector<PlanNode>& nodes = plan.nodes();
  const int32_t* releases = plan.releases();
  for (size_t k = 0; k < nodes.size(); ++k) {
    const PlanNode& n = nodes[k];
    if (__builtin_expect(step.cancellation && step.cancellation->IsCancelled(), 0)) {
      return Cancelled("the step was cancelled");
    }
    Status s = ComputeNode(plan, k, frame, step, n.dies_in_order, options.trace);
    if (__builtin_expect(!s.ok(), 0)) return AtNode(s, n);
    for (int32_t r = n.release_begin; r < n.release_end; ++r) ClearSlot(frame.slots[static_cast<size_t>(releases[r])]);
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
