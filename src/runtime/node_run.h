// SPDX-License-Identifier: Apache-2.0
// What both ways of execution do at a node.
#pragma once

#include "base/exceptions.h"
#include "base/stop_scope.h"
#include "kernel/cancellation.h"
#include "kernel/tensor_access.h"
#include "runtime/executor.h"

namespace millrace {

// `s` with node, op, device, the user's line, and what the node was given; bare when there is no memory for these.
Status AtNode(const Status& s, const PlanNode& n, absl::Span<Slot* const> inputs = {}) noexcept;
// The same of a node of `plan`. Where a variable that it changes has no value, the message names the variable.
Status AtNode(const Plan& plan, const Status& s, const PlanNode& n, absl::Span<Slot* const> inputs) noexcept;

// `constants` are those of the node's loop. FailedPrecondition when a variable that the node reads has no value.
Status LoadDereferences(const NodeInfo& node, const std::vector<Dereference>& list, Slot* slots, const Slot* constants);
void ClearDereferences(const std::vector<Dereference>& list, Slot* slots);

inline bool IsEmpty(const Slot& s) { return !s.tensor.IsInitialized() && !s.ref; }

// Whether a kernel may be left in the middle: what it changes besides its outputs, it reaches by references and
// handles.
bool ChangesOnlyItsOutputs(const NodeSignature& signature);
// For a StopScope over a StepContext: whether the step is cancelled, or what interrupts the client says stop.
bool StepMustStop(void* step);

inline Status Interrupted() { return Cancelled("the step was interrupted"); }

Status NoValue(int output);
// A kernel that leaves an output without a value has a bug; the step must not go on with it.
inline Status CheckOutputs(const PlanNode& n, const Slot* out) {
  if (n.may_leave_dead) return absl::OkStatus();
  for (int o = 0; o < n.num_outputs; ++o) {
    if (IsEmpty(out[o])) return NoValue(o);
  }
  return absl::OkStatus();
}

// A tensor that was moved from still looks alive; here it does not.
inline void MoveTensor(Tensor& from, Tensor* to) {
  *to = std::move(from);
  TensorAccess::Reset(from);
}
inline void ClearSlot(Slot& s) {
  TensorAccess::Reset(s.tensor);
  if (s.ref) s.ref.reset();
}

// Runs a synchronous kernel, with everything above. What it throws comes back as a status.
__attribute__((always_inline)) inline Status ComputeNode(
    const PlanNode& n, Slot* const* inputs, Slot* outputs, uint64_t dies, StepContext& step) {
  KernelContext ctx(*n.info, inputs, outputs, dies, step);
  try {
    MR_RETURN_IF_ERROR(n.kernel->Compute(ctx));
  } catch (...) {
    return StatusFromException();
  }
  return CheckOutputs(n, outputs);
}
Status ComputeTraced(const PlanNode& n, Slot* const* inputs, Slot* outputs, uint64_t dies, StepContext& step,
                     StepTrace& trace);
__attribute__((always_inline)) inline Status ComputeNode(
    const PlanNode& n, Slot* const* inputs, Slot* outputs, uint64_t dies, StepContext& step, StepTrace* trace) {
  if (__builtin_expect(trace != nullptr, 0)) return ComputeTraced(n, inputs, outputs, dies, step, *trace);
  return ComputeNode(n, inputs, outputs, dies, step);
}

}  // namespace millrace
