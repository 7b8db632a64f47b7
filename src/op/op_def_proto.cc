// SPDX-License-Identifier: Apache-2.0
// OpDef <-> wire::OpDef.
#include "absl/strings/strip.h"
#include "op/op_def.h"

namespace millrace {
namespace {

void ArgToProto(const ArgDef& a, wire::OpArgDef* p) {
  p->name = a.name;
  p->type = static_cast<int32_t>(a.type);
  p->type_attr = a.type_attr;
  p->number_attr = a.number_attr;
  p->type_list_attr = a.type_list_attr;
  p->is_ref = a.is_ref;
}

Status AttrDefToProto(const AttrDef& a, wire::OpAttrDef* p) {
  p->name = a.name;
  p->type = a.is_list ? absl::StrCat("list(", AttrKindName(a.kind), ")") : AttrKindName(a.kind);
  if (a.has_default) {
    MR_ASSIGN_OR_RETURN(p->default_value.Ensure(), AttrToProto(a.default_value));
  }
  p->has_minimum = a.has_minimum;
  p->minimum = a.minimum;
  if (!a.allowed_types.empty()) {
    MR_ASSIGN_OR_RETURN(p->allowed_values.Ensure(), AttrToProto(AttrValue(a.allowed_types)));
  } else if (!a.allowed_strings.empty()) {
    MR_ASSIGN_OR_RETURN(p->allowed_values.Ensure(), AttrToProto(AttrValue(a.allowed_strings)));
  }
  return absl::OkStatus();
}

Status ArgFromProto(const wire::OpArgDef& p, const OpDef& op, ArgDef* a) {
  a->name = p.name;
  a->type_attr = p.type_attr;
  a->number_attr = p.number_attr;
  a->type_list_attr = p.type_list_attr;
  a->is_ref = p.is_ref;
  const int given = (p.type != 0) + !p.type_attr.empty() + !p.type_list_attr.empty();
  if (given != 1) return InvalidArgument("argument '", p.name, "' must have exactly one kind of type, has ", given);
  if (!p.number_attr.empty() && !p.type_list_attr.empty()) {
    return InvalidArgument("argument '", p.name, "' has two kinds of list");
  }
  if (p.type != 0) {
    const auto t = DTypeFromNumber(p.type > kRefOffset ? p.type - kRefOffset : p.type);
    if (!t) return InvalidArgument("argument '", p.name, "' has invalid type ", p.type);
    a->type = *t;
    a->is_ref |= p.type > kRefOffset;
  }
  const auto check = [&op](const std::string& name, AttrKind kind, bool list) {
    const AttrDef* attr = op.FindAttr(name);
    return name.empty() || (attr != nullptr && attr->kind == kind && attr->is_list == list);
  };
  if (!check(p.type_attr, AttrKind::kType, false) || !check(p.number_attr, AttrKind::kInt, false) ||
      !check(p.type_list_attr, AttrKind::kType, true)) {
    return InvalidArgument("argument '", p.name, "' refers to an attribute that is absent or of the wrong kind");
  }
  return absl::OkStatus();
}

Status AttrDefFromProto(const wire::OpAttrDef& p, AttrDef* a) {
  a->name = p.name;
  absl::string_view kind = p.type;
  if (absl::ConsumePrefix(&kind, "list(")) {
    a->is_list = absl::ConsumeSuffix(&kind, ")");
  }
  bool found = false;
  for (int k = 0; k <= static_cast<int>(AttrKind::kFunc) && !found; ++k) {
    a->kind = static_cast<AttrKind>(k);
    found = kind == AttrKindName(a->kind);
  }
  if (!found) return InvalidArgument("attribute '", p.name, "' has invalid kind '", p.type, "'");
  a->has_minimum = p.has_minimum;
  a->minimum = p.minimum;
  if (p.default_value) {
    MR_ASSIGN_OR_RETURN(a->default_value, AttrFromProto(*p.default_value));
    if (!a->default_value.Is(a->kind, a->is_list)) return AttrWrongKind(p.name, a->default_value, p.type.c_str());
    a->has_default = true;
  }
  if (p.allowed_values) {
    MR_ASSIGN_OR_RETURN(AttrValue allowed, AttrFromProto(*p.allowed_values));
    if (const auto* types = allowed.get<std::vector<DType>>()) a->allowed_types = *types;
    if (const auto* strings = allowed.get<std::vector<std::string>>()) a->allowed_strings = *strings;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<wire::OpDef> OpDefToProto(const OpDef& op) {
  wire::OpDef p;
  p.name = op.name;
  for (const ArgDef& a : op.inputs) ArgToProto(a, &p.input_arg.emplace_back());
  for (const ArgDef& a : op.outputs) ArgToProto(a, &p.output_arg.emplace_back());
  for (const AttrDef& a : op.attrs) MR_RETURN_IF_ERROR(AttrDefToProto(a, &p.attr.emplace_back()));
  p.is_stateful = op.stateful;
  p.is_commutative = op.commutative;
  p.is_aggregate = op.aggregate;
  p.allows_uninitialized_input = op.allows_uninitialized_input;
  if (op.deprecation_version > 0) {
    p.deprecation.Ensure().version = op.deprecation_version;
    p.deprecation->explanation = op.deprecation_reason;
  }
  p.summary = op.doc;
  return p;
}

StatusOr<OpDef> OpDefFromProto(const wire::OpDef& p) {
  OpDef op;
  op.name = p.name;
  if (op.name.empty()) return InvalidArgument("op definition without a name");
  for (const wire::OpAttrDef& a : p.attr) {
    if (op.FindAttr(a.name) != nullptr) return InvalidArgument("op ", p.name, ": attribute '", a.name, "' twice");
    AttrDef attr;
    MR_RETURN_IF_ERROR(Annotate(AttrDefFromProto(a, &attr), absl::StrCat("op ", p.name, ": ")));
    op.attrs.push_back(std::move(attr));
  }
  for (const wire::OpArgDef& a : p.input_arg) {
    MR_RETURN_IF_ERROR(Annotate(ArgFromProto(a, op, &op.inputs.emplace_back()), absl::StrCat("op ", p.name, ": ")));
  }
  for (const wire::OpArgDef& a : p.output_arg) {
    MR_RETURN_IF_ERROR(Annotate(ArgFromProto(a, op, &op.outputs.emplace_back()), absl::StrCat("op ", p.name, ": ")));
  }
  op.stateful = p.is_stateful;
  op.commutative = p.is_commutative;
  op.aggregate = p.is_aggregate;
  op.allows_uninitialized_input = p.allows_uninitialized_input;
  if (p.deprecation) {
    op.deprecation_version = p.deprecation->version;
    op.deprecation_reason = p.deprecation->explanation;
  }
  op.doc = p.summary;
  return op;
}

}  // namespace millrace
