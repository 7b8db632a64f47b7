// SPDX-License-Identifier: Apache-2.0
// Drops pure work that nobody reads. Clients tie values together by control edges (a tuple of gradients waits until all
// of them are there), and so ask for values that no one uses: the gradient by the input images, for instance, which may
// cost as much as the rest of a layer. A stateless node that is wanted through control edges alone gives its place to
// its inputs: who waited for it waits for them.
//
// Kept: nodes that can fail on purpose, control flow and its neighbours (deadness travels through them), and what a
// target without consumers of its own waits for: there the work itself was asked for.
#include <algorithm>

#include "passes/pipeline.h"

namespace millrace {
namespace {

bool IsControlFlow(const Node& n) { return n.control_op() != ControlOp::kNone; }

bool HasRef(const std::vector<DType>& types) { return std::any_of(types.begin(), types.end(), IsRef); }

// Running it has no effect but its outputs.
bool IsPure(const Node& n) {
  if (!n.op() || n.op()->stateful || n.num_outputs() == 0 || IsControlFlow(n)) return false;
  if (n.Is(OpTrait::kInternal) || n.Is(OpTrait::kPlaceholder)) return false;
  if (n.Is(OpTrait::kKeepsState) || n.Is(OpTrait::kChecks)) return false;
  return !HasRef(n.signature().input_types) && !HasRef(n.signature().output_types);
}

// There before the step begins.
bool IsGiven(const Node& n) {
  return n.Is(OpTrait::kArgument) || (n.Is(OpTrait::kConstant) && n.control_inputs().empty());
}

bool MayDrop(const Node& n) {
  if (!IsPure(n) || !n.consumers().empty() || n.control_outputs().empty()) return false;
  for (Output in : n.inputs()) {
    if (!in || IsControlFlow(*in.node)) return false;
  }
  return std::none_of(
             n.control_inputs().begin(), n.control_inputs().end(), [](Node* c) { return IsControlFlow(*c); }) &&
         std::none_of(n.control_outputs().begin(), n.control_outputs().end(), [](Node* to) {
           return to->consumers().empty() && to->control_outputs().empty();
         });
}

}  // namespace

Status DropOrderOnlyWork(Graph& graph) {
  MR_ASSIGN_OR_RETURN(std::vector<Node*> order, TopologicalOrder(graph));
  // Consumers first, so that what only a dropped node read is seen after it.
  std::reverse(order.begin(), order.end());
  for (Node* n : order) {
    if (!MayDrop(*n)) continue;
    const std::vector<Node*> waiting = n->control_outputs();
    std::vector<Node*> before = n->control_inputs();
    for (Output in : n->inputs()) {
      if (!IsGiven(*in.node)) before.push_back(in.node);
    }
    for (Node* to : waiting) {
      graph.RemoveControlEdge(n, to);
      for (Node* from : before) graph.AddControlEdge(from, to);
    }
    graph.RemoveNode(n);
  }
  return absl::OkStatus();
}

}  // namespace millrace
