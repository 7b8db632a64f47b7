// SPDX-License-Identifier: Apache-2.0
// TF_OpDefinitionBuilder.
#include "capi/internal.h"
#include "capi/plugin/op_spec.h"
#include "capi/plugin/registration.h"

using millrace::GradientKind;
using millrace::InvalidArgument;
using millrace::Status;
using millrace::capi::Guarded;
using millrace::capi::PluginOp;
using millrace::capi::Try;

struct TF_OpDefinitionBuilder {
  millrace::wire::OpDef def;  // name, flags, deprecation, doc
  std::vector<std::string> attrs, inputs, outputs;
  PluginOp functions;
  bool not_differentiable = false;
  std::string reason;
  bool null_argument = false;
};

namespace {

// edit(builder) unless something is missing, which TF_RegisterOpDefinition reports.
template <typename Edit>
void With(TF_OpDefinitionBuilder* builder, bool complete, Edit&& edit) {
  if (builder == nullptr) return;
  builder->null_argument |= !complete;
  if (complete) Try(0, [&] { return edit(*builder), 0; });
}

void Add(TF_OpDefinitionBuilder* builder, const char* spec, std::vector<std::string> TF_OpDefinitionBuilder::* list) {
  With(builder, spec != nullptr, [&](TF_OpDefinitionBuilder& b) { (b.*list).emplace_back(spec); });
}

Status CheckUnique(const millrace::OpDef& op) {
  const auto check = [&op](const std::vector<millrace::ArgDef>& args, const char* what) -> Status {
    for (size_t i = 0; i < args.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (args[k].name == args[i].name)
          return InvalidArgument("Duplicate name: ", args[i].name, " in ", what, "s of Op ", op.name);
      }
    }
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(check(op.inputs, "input"));
  return check(op.outputs, "output");
}

Status Register(TF_OpDefinitionBuilder& b) {
  if (b.null_argument) return InvalidArgument("a text of the definition of op '", b.def.name, "' is NULL");
  if (!millrace::capi::IsOpName(b.def.name)) {
    return InvalidArgument("Invalid name: ", b.def.name, " (Did you use CamelCase?); in OpDef");
  }
  for (const std::string& spec : b.attrs) MR_RETURN_IF_ERROR(millrace::capi::AddAttrSpec(spec, &b.def));
  for (const std::string& spec : b.inputs) MR_RETURN_IF_ERROR(millrace::capi::AddArgSpec(spec, false, &b.def));
  for (const std::string& spec : b.outputs) MR_RETURN_IF_ERROR(millrace::capi::AddArgSpec(spec, true, &b.def));
  MR_ASSIGN_OR_RETURN(b.functions.def, millrace::OpDefFromProto(b.def));
  millrace::OpDef& op = b.functions.def;
  MR_RETURN_IF_ERROR(CheckUnique(op));
  for (millrace::AttrDef& attr : op.attrs) {  // a default is a value like others
    if (!attr.has_default) continue;
    millrace::OpDef only;
    only.name = op.name;
    only.attrs = {attr};
    millrace::AttrMap value{{attr.name, attr.default_value}};
    MR_RETURN_IF_ERROR(millrace::CompleteAttrs(only, &value, nullptr));
    attr.default_value = value.at(attr.name);
  }
  op.gradient_kind = b.not_differentiable ? GradientKind::kNotDifferentiable : GradientKind::kMissing;
  op.gradient_reason = b.reason;
  return millrace::capi::RegisterOp(std::move(b.functions));
}

}  // namespace

extern "C" {

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  return Try<TF_OpDefinitionBuilder*>(nullptr, [&] {
    auto builder = std::make_unique<TF_OpDefinitionBuilder>();
    builder->def.name = op_name ? op_name : "";
    return builder.release();
  });
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) { delete builder; }

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  const std::unique_ptr<TF_OpDefinitionBuilder> owned(builder);
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(builder);
    return Register(*builder);
  });
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  Add(builder, attr_spec, &TF_OpDefinitionBuilder::attrs);
}
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  Add(builder, input_spec, &TF_OpDefinitionBuilder::inputs);
}
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  Add(builder, output_spec, &TF_OpDefinitionBuilder::outputs);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative) {
  if (builder != nullptr) builder->def.is_commutative = is_commutative;
}
void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate) {
  if (builder != nullptr) builder->def.is_aggregate = is_aggregate;
}
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful) {
  if (builder != nullptr) builder->def.is_stateful = is_stateful;
}
void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input) {
  if (builder != nullptr) builder->def.allows_uninitialized_input = allows_uninitialized_input;
}
void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version, const char* explanation) {
  With(builder, true, [&](TF_OpDefinitionBuilder& b) {
    b.def.deprecation.Ensure().version = version;
    b.def.deprecation->explanation = explanation ? explanation : "";
  });
}
void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder, void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status)) {
  if (builder != nullptr) builder->functions.shape = shape_inference_func;
}

void MR_OpDefinitionBuilderSetGradient(TF_OpDefinitionBuilder* builder, MR_OpGradientFn gradient, void* data) {
  if (builder == nullptr) return;
  builder->functions.gradient = gradient;
  builder->functions.gradient_data = data;
}
void MR_OpDefinitionBuilderSetNotDifferentiable(TF_OpDefinitionBuilder* builder, const char* reason) {
  With(builder, true, [&](TF_OpDefinitionBuilder& b) {
    b.not_differentiable = true;
    b.reason = reason ? reason : "";
  });
}
void MR_OpDefinitionBuilderSetDoc(TF_OpDefinitionBuilder* builder, const char* doc) {
  With(builder, doc != nullptr, [&](TF_OpDefinitionBuilder& b) { b.def.summary = doc; });
}

}  // extern "C"
