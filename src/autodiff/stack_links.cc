// SPDX-License-Identifier: Apache-2.0
#include "autodiff/stack_links.h"

#include "base/hash_map.h"

namespace millrace {
namespace {

Output StackOf(const Node* n) {
  Output o = n->input(0);
  while (o && (o.node->Is(OpTrait::kPassesOn) || o.node->control_op() == ControlOp::kEnter ||
               o.node->control_op() == ControlOp::kSwitch)) {
    o = o.node->input(0);
  }
  return o && o.node->op_name() == "StackV2" ? o : Output();
}

}  // namespace

std::vector<StackLink> StackLinks(const Graph& graph) {
  struct Uses {
    std::vector<Node*> pushes, pops;
  };
  HashMap<Output, Uses> uses;
  for (Node* n : graph.nodes()) {
    const bool is_push = n->op_name() == "StackPushV2", is_pop = n->op_name() == "StackPopV2";
    if ((!is_push && !is_pop) || n->inputs().empty()) continue;
    const Output stack = StackOf(n);
    if (!stack) continue;
    (is_push ? uses[stack].pushes : uses[stack].pops).push_back(n);
  }
  std::vector<StackLink> links;
  for (const auto& [stack, u] : uses) {
    if (u.pushes.size() == 1 && u.pops.size() == 1) links.push_back({u.pushes[0], u.pops[0]});
  }
  return links;
}

}  // namespace millrace
