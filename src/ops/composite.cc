// SPDX-License-Identifier: Apache-2.0
#include "ops/composite.h"

#include "graph/infer_attrs.h"

namespace millrace {

std::vector<Output> CompositeCall::list(absl::string_view arg) const {
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    if (def_.inputs[i].name != arg) continue;
    const ArgRange range = signature_.input_args[i];
    return {spec_.inputs.begin() + range.begin, spec_.inputs.begin() + range.end};
  }
  return {};
}

Output CompositeCall::x(absl::string_view arg) const {
  const std::vector<Output> all = list(arg);
  return all.empty() ? Output() : all.front();
}

CompositeDeclaration CompositeRegistry::Add(absl::string_view schema) {
  CompositeDef& entry = composites_.emplace_back();
  StatusOr<OpDef> def = ParseSchema(schema);
  if (def.ok()) {
    if (Find(def->name) && status_.ok()) status_ = AlreadyExists("composite ", def->name, " is declared twice");
    entry.def = *std::move(def);
  } else if (status_.ok()) {
    status_ = def.status();
  }
  return CompositeDeclaration(&entry);
}

const CompositeDef* CompositeRegistry::Find(absl::string_view name) const {
  for (const CompositeDef& c : composites_) {
    if (c.def.name == name) return &c;
  }
  return nullptr;
}

std::vector<const CompositeDef*> CompositeRegistry::All() const {
  std::vector<const CompositeDef*> all;
  for (const CompositeDef& c : composites_) all.push_back(&c);
  return all;
}

namespace {

GraphBuilder ScopeOf(const GraphBuilder& b, const NodeSpec& spec) {
  if (spec.name.empty()) return b.Scope(spec.op);
  if (spec.name.back() != '/') return b.Scope(spec.name);
  if (spec.name == "/") return b;
  return b.ScopeExact(absl::string_view(spec.name).substr(0, spec.name.size() - 1));
}

}  // namespace

StatusOr<std::vector<Output>> ExpandComposite(const CompositeRegistry& registry, const GraphBuilder& b, NodeSpec spec) {
  const CompositeDef* composite = registry.Find(spec.op);
  if (!composite || !composite->expand) return NotFound("there is no composite '", spec.op, "'");
  for (const Output& o : spec.inputs) {
    if (!o) return InvalidArgument("composite ", spec.op, ": an input is missing");
  }
  MR_RETURN_IF_ERROR(InferAttrs(composite->def, spec));
  std::vector<std::string> unknown;
  MR_RETURN_IF_ERROR(CompleteAttrs(composite->def, &spec.attrs, &unknown));
  if (!unknown.empty()) return InvalidArgument("composite ", spec.op, " has no attribute '", unknown.front(), "'");
  MR_ASSIGN_OR_RETURN(const NodeSignature signature, ResolveSignature(composite->def, spec.attrs));
  if (signature.input_types.size() != spec.inputs.size()) {
    return InvalidArgument(
        "composite ", spec.op, " has ", spec.inputs.size(), " inputs, wants ", signature.input_types.size());
  }
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const DType got = spec.inputs[i].dtype(), want = signature.input_types[i];
    if (BaseType(got) != BaseType(want) || (IsRef(want) && !IsRef(got))) {
      return InvalidArgument("composite ", spec.op, ": input ", i, " is ", DTypeName(got), ", wants ", DTypeName(want));
    }
  }
  const GraphBuilder scoped = ScopeOf(b, spec);
  MR_ASSIGN_OR_RETURN(
      std::vector<Output> outputs, composite->expand(scoped, CompositeCall(composite->def, spec, signature)));
  MR_RETURN_IF_ERROR(b.status());
  if (outputs.size() != signature.output_types.size()) {
    return Internal(
        "composite ", spec.op, " gave ", outputs.size(), " outputs, declares ", signature.output_types.size());
  }
  return outputs;
}

void RegisterAllComposites(CompositeRegistry& registry) {
  RegisterNnComposites(registry);
  RegisterMomentComposites(registry);
  RegisterLossComposites(registry);
  RegisterRnnComposites(registry);
  RegisterTrainingComposites(registry);
  RegisterDecayComposites(registry);
}

}  // namespace millrace
