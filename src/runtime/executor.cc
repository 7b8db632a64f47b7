// SPDX-License-Identifier: Apache-2.0
// What runs in order; execution by readiness is in ready_run.cc.
#include "runtime/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/base/attributes.h"
#include "base/help_point.h"
#include "base/stopwatch.h"
#include "kernel/device_env.h"
#include "runtime/interrupt.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

// Whatever feeds a node of a segment has run, so an empty slot is a dead value. A Merge is dead when all its inputs
// are; every other node when anything that it waits for is.
bool IsDead(const Plan& plan, const PlanNode& n, const PlanNodeLinks& links, const Frame& frame) {
  const auto is_dead = [&](const PlanInput& in) {
    return IsEmpty((in.is_constant ? frame.constants : frame.slots.data())[in.slot]);
  };
  if (n.control == ControlOp::kMerge) return std::all_of(links.reads.begin(), links.reads.end(), is_dead);
  return std::any_of(links.reads.begin(), links.reads.end(), is_dead) ||
         std::any_of(links.dead_controls.begin(), links.dead_controls.end(), [&](int from) {
           return frame.dead[static_cast<size_t>(plan.nodes()[static_cast<size_t>(from)].dead_at)] != 0;
         });
}

// A transfer tells the other side that nothing comes.
Status RunDeadTransfer(const PlanNode& n, Slot* outputs, StepContext& step, StepTrace* trace) {
  Slot nothing;
  const absl::InlinedVector<Slot*, 4> inputs(n.info->signature.input_types.size(), &nothing);
  return ComputeNode(n, inputs.data(), outputs, 0, step, trace);
}

inline void Release(const Plan& plan, const PlanNode& n, Frame& frame) {
  const int32_t* const releases = plan.releases();
  for (int32_t r = n.release_begin; r < n.release_end; ++r) {
    const int32_t slot = releases[r];
    if (__builtin_expect(slot >= 0, 1)) {
      ClearSlot(frame.slots[static_cast<size_t>(slot)]);
    } else if (frame.readers[static_cast<size_t>(~slot)].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ClearSlot(frame.slots[static_cast<size_t>(frame.layout->counted_slots[static_cast<size_t>(~slot)].slot)]);
    }
  }
}

// What the nodes of a segment that have run tell of those behind them.
struct LastThatMayBeDead {
  bool is_known = false, was_dead = false;
  // Of PlanNode::care, what must be looked at: who dies with a node that lives needs no look.
  uint8_t looks_for() const { return is_known && !was_dead ? static_cast<uint8_t>(~PlanNode::kMayBeDead) : 0xff; }
};

// A node at which there is more to do than to run its kernel. A dead one does not run, but for transfers; who looks
// whether it was learns it.
ABSL_ATTRIBUTE_NOINLINE Status RunWithCare(const Plan& plan, const PlanNode& n, LastThatMayBeDead* last, Frame& frame,
                                           StepContext& step, StepTrace* trace) {
  const PlanNodeLinks& links = plan.links(static_cast<size_t>(&n - plan.nodes().data()));
  Slot* const slots = frame.slots.data();
  Slot* const outputs = slots + n.output_begin;
  bool dead = false;
  if (n.Has(PlanNode::kMayBeDead)) {
    dead = last->is_known && !n.Has(PlanNode::kDiesByItself) ? last->was_dead : IsDead(plan, n, links, frame);
    *last = {.is_known = true, .was_dead = dead};
  }
  if (!dead) {
    if (n.Has(PlanNode::kDereferences)) {
      const Status s = LoadDereferences(*n.info, links.dereferences, slots, frame.constants);
      if (!s.ok()) return AtNode(s, n);
    }
    MR_RETURN_IF_ERROR(ComputeNode(n, frame.inputs.data() + n.input_begin, outputs, n.dies, step, trace));
    if (n.Has(PlanNode::kDereferences)) ClearDereferences(links.dereferences, slots);
  } else if (links.is_transfer) {
    const Status s = RunDeadTransfer(n, outputs, step, trace);
    if (!s.ok()) return AtNode(s, n);
  }
  if (n.Has(PlanNode::kTellsDeath)) {
    frame.dead[static_cast<size_t>(n.dead_at)] = links.is_transfer ? n.num_outputs == 1 && IsEmpty(*outputs) : dead;
  }
  return absl::OkStatus();
}

}  // namespace

Status RunSegment(const Plan& plan, int begin, int end, Frame& frame, StepContext& step, const ExecutorOptions& options,
                  bool to_its_end) {
  const PlanNode* const nodes = plan.nodes().data();
  const CancellationManager* const cancellation = to_its_end ? nullptr : step.cancellation;
  Interrupt* const interrupt = CurrentInterrupt();
  std::optional<StopScope> own;
  StopScope& stop = options.stop ? *options.stop : own.emplace(&StepMustStop, &step);
  LastThatMayBeDead last;
  uint8_t looks_for = last.looks_for();
  for (const PlanNode* n = nodes + begin; n != nodes + end; ++n) {
    stop.may_stop = n->may_stop;
    if (__builtin_expect(cancellation && cancellation->IsCancelled(), 0)) return cancellation->reason();
    if (__builtin_expect(interrupt && interrupt->IsDue(), 0) && interrupt->Look()) return Interrupted();
    Slot* const* const inputs = frame.inputs.data() + n->input_begin;
    Status s;
    if (__builtin_expect((n->care & looks_for) == 0, 1)) {
      s = ComputeNode(*n, inputs, frame.slots.data() + n->output_begin, n->dies, step, options.trace);
    } else {
      s = RunWithCare(plan, *n, &last, frame, step, options.trace);
      looks_for = last.looks_for();
    }
    if (__builtin_expect(!s.ok(), 0)) return AtNode(plan, s, *n, {inputs, n->info->signature.input_types.size()});
    Release(plan, *n, frame);
  }
  return absl::OkStatus();
}

Status RunMeasured(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options,
                   NodeCosts* costs) {
  costs->wall.resize(plan.nodes().size());
  costs->work.resize(plan.nodes().size());
  HelpMeter help;
  int64_t last = RealNanos();
  for (size_t k = 0; k < plan.nodes().size(); ++k) {
    MR_RETURN_IF_ERROR(RunSegment(plan, static_cast<int>(k), static_cast<int>(k) + 1, frame, step, options));
    const int64_t now = RealNanos();
    costs->wall[k] = static_cast<double>(now - std::exchange(last, now));
    costs->work[k] = costs->wall[k] + static_cast<double>(help.TakeNanos());
  }
  return absl::OkStatus();
}

Status RunByReadinessHere(const Plan& plan, Frame& frame, StepContext& step, ExecutorOptions options,
                          bool may_be_interrupted) {
  Status result;
  StepThread caller(EnvOf(*plan.nodes().front().info->device));
  options.caller = &caller;
  RunByReadiness(plan, frame, step, options, [&](Status s) {
    result = std::move(s);
    caller.Finish();
  });
  if (caller.Drive(may_be_interrupted)) return result;
  step.cancellation->Cancel(Interrupted());
  caller.Drive(false);
  return result;
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
