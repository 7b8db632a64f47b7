// SPDX-License-Identifier: Apache-2.0
#include "client/variables.h"

namespace millrace {

namespace {

Status CheckInitial(const GraphBuilder& b, absl::string_view name, Output initial, bool validate_shape) {
  MR_RETURN_IF_ERROR(b.status());
  if (!initial) return InvalidArgument("variable '", name, "' has no initial value");
  if (!validate_shape || initial.shape().IsFullyDefined()) return absl::OkStatus();
  return InvalidArgument("variable '", name, "': the shape of its initial value is ", initial.shape().ToString(),
                         ", it must be fully known");
}

// Scope and place of what belongs to a variable; its unique name is seen from the scope of `b`.
GraphBuilder Inside(const GraphBuilder& b, Node* variable) {
  absl::string_view own = variable->name();
  if (!b.scope().empty()) own.remove_prefix(b.scope().size() + 1);
  return b.ScopeExact(own).ColocateWith(variable);
}

}  // namespace

StatusOr<ClientVariable> AddVariable(const GraphBuilder& b, absl::string_view name, Output initial,
                                     bool validate_shape) {
  MR_RETURN_IF_ERROR(CheckInitial(b, name, initial, validate_shape));
  ClientVariable v;
  v.ref = b.WithName(name).Op("VariableV2", {}, {{"dtype", BaseType(initial.dtype())}, {"shape", initial.shape()}});
  MR_RETURN_IF_ERROR(b.status());
  const GraphBuilder inside = Inside(b, v.ref.node);
  v.assign = inside.WithName("Assign").OpNode("Assign", {v.ref, initial}, {{"validate_shape", validate_shape}});
  v.read = inside.WithName("read").Op("Identity", {v.ref});
  MR_RETURN_IF_ERROR(b.status());
  return v;
}

StatusOr<ClientVariable> AddResourceVariable(const GraphBuilder& b, absl::string_view name, Output initial,
                                             bool validate_shape) {
  MR_RETURN_IF_ERROR(CheckInitial(b, name, initial, validate_shape));
  const DType dtype = BaseType(initial.dtype());
  ClientVariable v;
  v.ref = b.WithName(name).Op("VarHandleOp", {}, {{"dtype", dtype}, {"shape", initial.shape()}});
  MR_RETURN_IF_ERROR(b.status());
  v.ref.node->SetAttr("shared_name", v.ref.node->name());
  const GraphBuilder inside = Inside(b, v.ref.node);
  v.assign = inside.WithName("Assign").OpNode("AssignVariableOp", {v.ref, initial});
  v.read = inside.WithName("Read/ReadVariableOp").Op("ReadVariableOp", {v.ref}, {{"dtype", dtype}});
  MR_RETURN_IF_ERROR(b.status());
  return v;
}

std::vector<Node*> VariablesOf(const Graph& graph) {
  std::vector<Node*> list;
  for (Node* n : graph.nodes()) {
    if (!n->Is(OpTrait::kMakesVariable)) continue;
    const StatusOr<bool> is_local = n->Attr<bool>(kLocalVariableAttr);
    if (!is_local.ok() || !*is_local) list.push_back(n);
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
