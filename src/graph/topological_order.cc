// SPDX-License-Identifier: Apache-2.0
// Kahn's algorithm with the ready node of least id first.
#include <queue>

#include "graph/graph.h"

namespace millrace {
namespace {

bool IsBackEdge(const Node& from, const Node& to) { return IsBackEdge(from.control_op(), to.control_op()); }

}  // namespace

StatusOr<std::vector<Node*>> TopologicalOrder(const Graph& graph) {
  const std::vector<Node*>& nodes = graph.nodes();
  std::vector<int> pending(static_cast<size_t>(graph.num_node_ids()), 0);
  const auto by_id = [](const Node* a, const Node* b) { return a->id() > b->id(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(by_id)> ready(by_id);
  for (Node* n : nodes) {
    int count = static_cast<int>(n->control_inputs().size());
    for (const Output& o : n->inputs()) count += o && !IsBackEdge(*o.node, *n);
    pending[static_cast<size_t>(n->id())] = count;
    if (count == 0) ready.push(n);
  }
  std::vector<Node*> order;
  order.reserve(nodes.size());
  const auto release = [&](Node* to) {
    if (--pending[static_cast<size_t>(to->id())] == 0) ready.push(to);
  };
  while (!ready.empty()) {
    Node* n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const Consumer& c : n->consumers()) {
      if (!IsBackEdge(*n, *c.node)) release(c.node);
    }
    for (Node* to : n->control_outputs()) release(to);
  }
  if (order.size() == nodes.size()) return order;
  // A node that waits may only follow a cycle. Walking back along waiting nodes ends in one.
  const auto waits = [&](const Node* n) { return pending[static_cast<size_t>(n->id())] > 0; };
  const auto waiting_input = [&](const Node* n) -> Node* {
    for (const Output& o : n->inputs()) {
      if (o && !IsBackEdge(*o.node, *n) && waits(o.node)) return o.node;
    }
    for (Node* c : n->control_inputs()) {
      if (waits(c)) return c;
    }
    return nullptr;
  };
  Node* at = nullptr;
  for (Node* n : nodes) {
    if (waits(n)) at = n;
  }
  std::vector<bool> seen(pending.size(), false);
  while (at != nullptr && !seen[static_cast<size_t>(at->id())]) {
    seen[static_cast<size_t>(at->id())] = true;
    Node* next = waiting_input(at);
    if (next == nullptr) break;
    at = next;
  }
  return InvalidArgument("the graph has a cycle through ", at == nullptr ? "?" : at->Describe());
}

}  // namespace millrace
