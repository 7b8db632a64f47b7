// SPDX-License-Identifier: Apache-2.0
#include "graph/control_depth.h"

#include <algorithm>

namespace millrace {

int ControlDepthChange(const Node& n) {
  const auto is = [&n](int i, ControlOp op) {
    return i < n.num_inputs() && n.input(i) && n.input(i).node->control_op() == op;
  };
  switch (n.control_op()) {
    case ControlOp::kEnter: return 1;
    case ControlOp::kExit: return -1;
    case ControlOp::kSwitch: return is(1, ControlOp::kLoopCond) ? 0 : 1;
    case ControlOp::kMerge: return is(0, ControlOp::kEnter) || is(0, ControlOp::kNextIteration) ? 0 : -1;
    default: return 0;
  }
}

std::vector<bool> InsideControlFlow(const Graph& graph) {
  std::vector<bool> inside(static_cast<size_t>(graph.num_node_ids()), false);
  const auto has_control = [](const Node* n) { return n->control_op() != ControlOp::kNone; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), has_control)) return inside;
  const auto order = TopologicalOrder(graph);
  if (!order.ok()) return std::vector<bool>(inside.size(), true);
  std::vector<int> depth(inside.size(), 0);
  for (const Node* n : *order) {
    int before = 0;
    const auto reads = [&](const Node* from) { before = std::max(before, depth[static_cast<size_t>(from->id())]); };
    for (const Node* from : n->control_inputs()) reads(from);
    for (const Output& o : n->inputs()) {
      if (o && !IsBackEdge(o.node->control_op(), n->control_op())) reads(o.node);
    }
    inside[static_cast<size_t>(n->id())] = before > 0;
    depth[static_cast<size_t>(n->id())] = std::max(before + ControlDepthChange(*n), 0);
  }
  return inside;
}

}  // namespace millrace
