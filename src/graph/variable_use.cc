// SPDX-License-Identifier: Apache-2.0
#include "graph/variable_use.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "graph/inline_calls.h"
#include "graph/recursion.h"

namespace millrace {

namespace {

bool IsHandle(DType t) { return IsRef(t) || t == DType::kResource; }

// What makes a queue, a reader or an iterator leads to no variable.
bool MayLeadToVariable(Output handle) {
  const Node* n = handle.node;
  while (n->num_inputs() > 0 && IsHandle(n->input_type(0)) && n->control_op() != ControlOp::kMerge)
    n = n->input(0).node;
  const bool is_other = n->op() != nullptr && n->op()->stateful && !n->Is(OpTrait::kMakesVariable);
  return !is_other || n->attrs().contains("key_dtype") || !FunctionsOf(*n).empty();
}

bool ChangesVariables(const Node& n) {
  if (n.control_op() != ControlOp::kNone || n.Is(OpTrait::kPassesOn) || n.Is(OpTrait::kReadsVariable)) return false;
  for (int i = 0; i < n.num_inputs(); ++i) {
    if (IsHandle(n.input_type(i)) && n.input(i) && MayLeadToVariable(n.input(i))) return true;
  }
  return false;
}

bool BodyMayChangeVariables(const Graph& graph, const wire::FunctionDef& body) {
  return std::any_of(body.node_def.begin(), body.node_def.end(), [&](const wire::NodeDef& n) {
    const OpDef* const op = graph.registry().Find(n.op);
    if (op == nullptr) return false;  // a call, whose own body is looked at
    const OpTraits traits = graph.registry().TraitsOf(*op);
    if (traits.Has(OpTrait::kPassesOn) || traits.Has(OpTrait::kReadsVariable)) return false;
    return std::any_of(op->inputs.begin(), op->inputs.end(), [](const ArgDef& in) {
      return in.is_ref || in.type == DType::kResource;
    });
  });
}

}  // namespace

bool ChangesVariables(const Graph& graph) {
  std::vector<absl::string_view> called;
  for (const Node* n : graph.nodes()) {
    if (ChangesVariables(*n)) return true;
    for (const FuncAttr* f : FunctionsOf(*n)) called.push_back(f->name);
  }
  HashSet<std::string> seen;
  while (!called.empty()) {
    const wire::FunctionDef* const body = graph.FindFunction(called.back());
    called.pop_back();
    if (body == nullptr || !seen.insert(body->signature->name).second) continue;
    if (BodyMayChangeVariables(graph, *body)) return true;
    for (const absl::string_view name : CallsOf(graph, *body)) called.push_back(name);
  }
  return false;
}

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
