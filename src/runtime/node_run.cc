// SPDX-License-Identifier: Apache-2.0
#include "runtime/node_run.h"

#include <algorithm>
#include <new>

#include "absl/strings/match.h"
#include "base/help_point.h"
#include "kernel/late_work.h"
#include "runtime/interrupt.h"

namespace millrace {

namespace {

// "float [2,3], int32 []"; inputs that the kernel has used up have no shape any more.
std::string Described(absl::Span<Slot* const> inputs) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < inputs.size() && i < kMost; ++i) {
    const Slot& slot = *inputs[i];
    absl::StrAppend(&text, i > 0 ? ", " : "");
    if (slot.tensor.IsInitialized()) {
      absl::StrAppend(&text, DTypeName(slot.tensor.dtype()), " ", slot.tensor.shape().ToString());
    } else {
      absl::StrAppend(&text, slot.ref ? "a variable" : "?");
    }
  }
  if (inputs.size() > kMost) absl::StrAppend(&text, " and ", inputs.size() - kMost, " more");
  return text;
}

// The name of the node that gives the first reference to a variable without a value; empty where there is none.
std::string EmptyVariable(const Plan& plan, const PlanNode& n, absl::Span<Slot* const> inputs) {
  const auto is_empty = [](const Slot* slot) { return slot->ref && !slot->ref->IsInitialized(); };
  const auto found = std::find_if(inputs.begin(), inputs.end(), is_empty);
  if (found == inputs.end()) return "";
  const std::vector<PlannedNode>& nodes = plan.graph()->nodes;
  const auto self = std::find_if(nodes.begin(), nodes.end(), [&n](const PlannedNode& p) { return &p.info == n.info; });
  const auto input = static_cast<size_t>(found - inputs.begin());
  if (self == nodes.end() || input >= self->inputs.size()) return "";
  return nodes[static_cast<size_t>(self->inputs[input].node)].info.name;
}

}  // namespace

bool ChangesOnlyItsOutputs(const NodeSignature& signature) {
  const auto is_plain = [](DType t) { return !IsRef(t) && t != DType::kResource; };
  return std::all_of(signature.input_types.begin(), signature.input_types.end(), is_plain) &&
         std::all_of(signature.output_types.begin(), signature.output_types.end(), is_plain);
}

bool StepMustStop(void* data) {
  const auto* step = static_cast<const StepContext*>(data);
  if (step->cancellation && step->cancellation->IsCancelled()) return true;
  Interrupt* const interrupt = CurrentInterrupt();
  return interrupt && interrupt->IsDue() && interrupt->Look();
}

Status AtNode(const Status& s, const PlanNode& n, absl::Span<Slot* const> inputs) noexcept {
  if (absl::StrContains(s.message(), "\n\t [[node ")) return s;  // from a plan within this one
  const Status named = NamedAfter(*n.info, s);
  if (inputs.empty()) return named;
  try {
    return Status(named.code(), absl::StrCat(named.message(), "\n\t given ", Described(inputs)));
  } catch (const std::bad_alloc&) {
    return s;
  }
}

Status AtNode(const Plan& plan, const Status& s, const PlanNode& n, absl::Span<Slot* const> inputs) noexcept {
  if (absl::IsFailedPrecondition(s)) {
    try {
      if (const std::string variable = EmptyVariable(plan, n, inputs); !variable.empty()) {
        return AtNode(FailedPrecondition("Attempting to use uninitialized value ", variable,
                                         ": it is a variable without a value, which node '", n.info->name, "' changes"),
                      n, inputs);
      }
    } catch (const std::bad_alloc&) {
      return s;
    }
  }
  return AtNode(s, n, inputs);
}

Status LoadDereferences(const NodeInfo& node, const std::vector<Dereference>& list, Slot* slots,
                        const Slot* constants) {
  for (const Dereference& d : list) {
    const Slot& source = d.from_constant ? constants[d.source] : slots[d.source];
    Tensor& value = slots[d.temp].tensor;
    if (source.ref) source.ref->ReadTo(&value);
    if (!value.IsInitialized()) {
      return FailedPrecondition("Attempting to use uninitialized value ", d.variable, ": input ", d.input, " of node '",
                                node.name, "' is a variable without a value");
    }
  }
  return absl::OkStatus();
}

void ClearDereferences(const std::vector<Dereference>& list, Slot* slots) {
  for (const Dereference& d : list) TensorAccess::Reset(slots[d.temp].tensor);
}

Status NoValue(int output) { return Internal("kernel gave output ", output, " no value"); }

Status ComputeTraced(const PlanNode& n, Slot* const* inputs, Slot* outputs, uint64_t dies, StepContext& step,
                     StepTrace& trace) {
  HelpMeter help;
  const int64_t start = TicksNow();
  MR_RETURN_IF_ERROR(ComputeNode(n, inputs, outputs, dies, step));
  trace.Record({.node = n.info, .start_ticks = start}, {outputs, static_cast<size_t>(n.num_outputs)}, help.Take());
  return absl::OkStatus();
}

}  // namespace millrace
