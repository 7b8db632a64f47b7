// SPDX-License-Identifier: Apache-2.0
#include "client/variables.h"

namespace millrace {

StatusOr<ClientVariable> AddVariable(const GraphBuilder& b, absl::string_view name, Output initial) {
  MR_RETURN_IF_ERROR(b.status());
  if (!initial) return InvalidArgument("variable '", name, "' has no initial value");
  if (!initial.shape().IsFullyDefined()) {
    return InvalidArgument("variable '", name, "': the shape of its initial value is ", initial.shape().ToString(),
                           ", it must be fully known");
  }
  const DType dtype = BaseType(initial.dtype());
  ClientVariable v;
  v.ref = b.WithName(name).Op("VariableV2", {}, {{"dtype", dtype}, {"shape", initial.shape()}});
  MR_RETURN_IF_ERROR(b.status());
  // The variable's unique name, seen from the scope of `b`.
  absl::string_view own = v.ref.node->name();
  if (!b.scope().empty()) own.remove_prefix(b.scope().size() + 1);
  const GraphBuilder inside = b.ScopeExact(own).ColocateWith(v.ref.node);
  v.assign = inside.WithName("Assign").OpNode("Assign", {v.ref, initial});
  v.read = inside.WithName("read").Op("Identity", {v.ref});
  MR_RETURN_IF_ERROR(b.status());
  return v;
}

std::vector<Node*> VariablesOf(const Graph& graph) {
  std::vector<Node*> list;
  for (Node* n : graph.nodes()) {
    if (n->op_name() == "VariableV2" || n->op_name() == "Variable" || n->op_name() == "VarHandleOp") list.push_back(n);
  }
  return list;
}

StatusOr<Node*> AddInitializer(const GraphBuilder& b, absl::string_view name) {
  std::vector<Node*> assigns;
  for (Node* v : VariablesOf(b.graph())) {
    if (Node* assign = b.graph().Find(absl::StrCat(v->name(), "/Assign"))) assigns.push_back(assign);
  }
  Node* init = b.WithControl(std::move(assigns)).WithName(name).OpNode("NoOp", {});
  MR_RETURN_IF_ERROR(b.status());
  return init;
}

}  // namespace millrace
