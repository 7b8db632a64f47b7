// SPDX-License-Identifier: Apache-2.0
#include "runtime/update_order.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace millrace {
namespace {

bool TakesVariable(const Node& n, int i) {
  return n.op() && (IsRef(n.input_type(i)) || n.input_type(i) == DType::kResource);
}

bool IsUpdate(const Node& n) {
  if (!n.op() || n.num_inputs() == 0) return false;
  if (IsRef(n.input_type(0))) return true;
  return n.input_type(0) == DType::kResource && n.num_outputs() == 0;
}

// Nothing but a value out of a variable, which costs nothing to hold.
bool IsRead(const Node& n) {
  if (!n.op() || n.num_inputs() != 1 || n.num_outputs() != 1 || !n.input(0)) return false;
  if (IsRef(n.input(0).dtype())) return !n.op()->stateful;
  return n.op_name() == "ReadVariableOp";
}

// There before the step begins.
bool IsGiven(const Node& n) {
  if (!n.op() || n.num_inputs() != 0 || n.num_outputs() != 1 || !n.control_inputs().empty()) return false;
  return n.op_name() == "Const" || n.op_name() == "VarHandleOp" || IsRef(n.output_type(0));
}

}  // namespace

void MoveUpdatesUp(std::vector<Node*>& order) {
  // The node that made the variable, for everything that refers to it: its references, and the values read from it.
  absl::flat_hash_map<Output, const Node*> variable_of;
  // The place in the new order: 0 is the front, k + 1 is behind what stood at k.
  absl::flat_hash_map<const Node*, size_t> place;
  absl::flat_hash_map<const Node*, size_t> last_touch;  // by variable
  std::vector<std::vector<Node*>> behind(order.size() + 1);
  for (size_t k = 0; k < order.size(); ++k) {
    Node* n = order[k];
    std::vector<const Node*> touched;
    for (Output in : n->inputs()) {
      if (auto it = variable_of.find(in); it != variable_of.end()) touched.push_back(it->second);
    }
    size_t after = 0;
    for (Output in : n->inputs()) {
      if (in && place.contains(in.node)) after = std::max(after, place[in.node]);
    }
    for (const Node* c : n->control_inputs()) {
      if (place.contains(c)) after = std::max(after, place[c]);
    }
    for (const Node* v : touched) after = std::max(after, last_touch[v]);
    place[n] = IsUpdate(*n) || IsRead(*n) || IsGiven(*n) ? after : k + 1;
    behind[place[n]].push_back(n);
    for (const Node* v : touched) last_touch[v] = std::max(last_touch[v], place[n]);
    for (int o = 0; o < n->num_outputs(); ++o) {
      const Output out = n->output(o);
      const bool refers = IsRef(n->output_type(o)) || n->output_type(o) == DType::kResource;
      if (refers && touched.empty()) {
        variable_of[out] = n;
      } else if (!touched.empty() && (refers || TakesVariable(*n, 0) || n->num_inputs() == 1)) {
        variable_of[out] = touched.front();  // a reference passed on, or a value that may share the buffer
      }
    }
  }
  size_t at = 0;
  for (const std::vector<Node*>& group : behind) {
    for (Node* n : group) order[at++] = n;
  }
}

}  // namespace millrace
