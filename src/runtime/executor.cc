// SPDX-License-Identifier: Apache-2.0
// Execution in plan order; execution by readiness is in ready_run.cc.
#include "runtime/executor.h"

#include <algorithm>
#include <optional>

#include "runtime/interrupt.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

// In plan order whatever feeds a node has run, so an empty slot is a dead value. A Merge is dead when all its inputs
// are; every other node when anything that it waits for is.
bool IsDead(const PlanNode& n, const PlanNodeLinks& links, const Frame& frame) {
  const auto is_dead = [&](const PlanInput& in) { return IsEmpty(frame.slots[static_cast<size_t>(in.slot)]); };
  if (n.control == ControlOp::kMerge) return std::all_of(links.reads.begin(), links.reads.end(), is_dead);
  if (links.is_transfer) return false;
  return std::any_of(links.reads.begin(), links.reads.end(), is_dead) ||
         std::any_of(links.dead_controls.begin(), links.dead_controls.end(), [&](int from) {
           return frame.dead[static_cast<size_t>(from)] != 0;
         });
}

}  // namespace

Status RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options) {
  const std::vector<PlanNode>& nodes = plan.nodes();
  const int32_t* releases = plan.releases();
  Slot* const slots = frame.slots.data();
  Interrupt* const interrupt = CurrentInterrupt();
  std::optional<StopScope> own;
  StopScope& stop = options.stop ? *options.stop : own.emplace(&StepMustStop, &step);
  for (size_t k = 0; k < nodes.size(); ++k) {
    const PlanNode& n = nodes[k];
    stop.may_stop = n.may_stop;
    if (__builtin_expect(step.cancellation && step.cancellation->IsCancelled(), 0)) {
      return Cancelled("the step was cancelled");
    }
    if (__builtin_expect(interrupt && interrupt->IsDue(), 0) && interrupt->Look()) return Interrupted();
    const bool dead = n.may_be_dead && IsDead(n, plan.links(k), frame);
    if (n.may_be_dead) frame.dead[k] = dead;
    if (!dead) {
      if (n.dereferences) {
        Status s = LoadDereferences(*n.info, plan.links(k).dereferences, slots, nullptr);
        if (!s.ok()) return AtNode(s, n);
      }
      Status s = ComputeNode(
          n, frame.inputs.data() + n.input_begin, slots + n.output_begin, n.dies_in_order, step, options.trace);
      if (__builtin_expect(!s.ok(), 0)) {
        return AtNode(s, n, {frame.inputs.data() + n.input_begin, n.info->signature.input_types.size()});
      }
      if (n.dereferences) ClearDereferences(plan.links(k).dereferences, slots);
    }
    for (int32_t r = n.release_begin; r < n.release_end; ++r) ClearSlot(slots[releases[r]]);
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
  if (!slot.tensor.IsInitialized()) {
    return InvalidArgument("Retval[", i, "] does not have value: ", plan.retval_source(i),
                           " is dead, it lies on a branch that was not taken");
  }
  return slot.tensor;
}

}  // namespace millrace
