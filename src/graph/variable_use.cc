// SPDX-License-Identifier: Apache-2.0
#include "graph/variable_use.h"

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"

namespace millrace {

bool CarriesValue(const Node& n) { return n.control_op() == ControlOp::kSwitch || n.IsConstantEnter(); }

bool ReadsVariable(const Node& n) {
  return n.Is(OpTrait::kPassesOn) && IsRef(n.input(0).dtype()) && n.control_inputs().empty();
}

Output ReferenceBehind(Output value) {
  while (!IsRef(value.dtype())) {
    if (!CarriesValue(*value.node) && !value.node->Is(OpTrait::kPassesOn)) return {};
    value = value.node->input(0);
  }
  return value;
}

Node* MakerOf(Output ref) {
  for (;;) {
    Node& n = *ref.node;
    if (n.num_inputs() == 0 || !IsRef(n.input_type(0)) || n.control_op() == ControlOp::kMerge) return &n;
    ref = n.input(0);
  }
}

std::string VariableKey(const Node& maker) {
  if (maker.num_inputs() > 0) return absl::StrCat("node ", maker.name());
  std::string name = maker.Attr<std::string>("shared_name").value_or("");
  if (name.empty()) name = maker.name();
  return absl::StrCat(maker.assigned_device(), " ", maker.Attr<std::string>("container").value_or(""), " ", name);
}

std::vector<Node*> UpdatesOf(Node* maker) {
  std::vector<Node*> updates;
  HashSet<const Node*> seen;
  std::vector<Node*> stack = {maker};
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Consumer& c : n->consumers()) {
      if (!IsRef(c.node->input_type(c.input)) || !IsRef(c.node->input(c.input).dtype())) continue;
      if (!seen.insert(c.node).second) continue;
      if (c.node->control_op() == ControlOp::kNone) updates.push_back(c.node);
      stack.push_back(c.node);
    }
  }
  return updates;
}

}  // namespace millrace
