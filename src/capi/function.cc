// SPDX-License-Identifier: Apache-2.0
// Functions: made of a graph, imported, looked at, copied into graphs.
#include <algorithm>

#include "capi/internal.h"
#include "graph/function_def.h"

using millrace::InvalidArgument;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::AsOutput;
using millrace::capi::CheckArray;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

namespace {

Status CheckNodes(const TF_Operation* const* opers, int count, const char* what, std::vector<millrace::Node*>* nodes) {
  MR_RETURN_IF_ERROR(CheckArray(opers, count, what));
  for (int i = 0; i < count; ++i) {
    if (opers[i] == nullptr) return millrace::capi::NullArgument(what);
    nodes->push_back(AsNode(opers[i]));
  }
  return absl::OkStatus();
}

// `what` says what an element is of the function: "input %d into".
Status CheckOutputs(const TF_Output* outputs, int count, const char* array, const char* what, const char* preposition,
                    const char* function, std::vector<millrace::Output>* list) {
  MR_RETURN_IF_ERROR(CheckArray(outputs, count, array));
  for (int i = 0; i < count; ++i) {
    const std::string where =
        absl::StrCat("\n\tEncountered while processing ", what, " ", i, " ", preposition, " function '", function, "'");
    if (outputs[i].oper == nullptr) return InvalidArgument("Node is null", where);
    const millrace::Node* node = AsNode(outputs[i].oper);
    if (!millrace::capi::IsOutput(outputs[i])) {
      return millrace::OutOfRange(
          "Node '", node->name(), "' (type: '", node->op_name(), "', num of outputs: ", node->num_outputs(),
          ") does not have output ", outputs[i].index, where);
    }
    list->push_back(AsOutput(outputs[i]));
  }
  return absl::OkStatus();
}

Status CheckNames(const char* const* names, int count, const char* what, std::vector<std::string>* list) {
  if (names == nullptr) return absl::OkStatus();
  for (int i = 0; i < count; ++i) {
    if (names[i] == nullptr) return millrace::capi::NullArgument(what);
    list->emplace_back(names[i]);
  }
  return absl::OkStatus();
}

Status CheckSignature(const millrace::wire::FunctionDef& def) {
  if (!def.signature || def.signature->name.empty()) return InvalidArgument("a function must have a name");
  return absl::OkStatus();
}

}  // namespace

extern "C" {

TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs, int noutputs, const TF_Output* outputs,
    const char* const* output_names, const TF_FunctionOptions* opts, const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(
      fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs, outputs, output_names, 0,
      nullptr, nullptr, opts, description, status);
}

TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs, int noutputs, const TF_Output* outputs,
    const char* const* output_names, int ncontrol_outputs, const TF_Operation* const* control_outputs,
    const char* const* control_output_names, const TF_FunctionOptions* opts, const char* description,
    TF_Status* status) {
  return GuardedOr<TF_Function*>(status, nullptr, [&]() -> StatusOr<TF_Function*> {
    MR_CAPI_REQUIRE(fn_body);
    MR_CAPI_REQUIRE(fn_name);
    if (opts != nullptr) return InvalidArgument("opts must be NULL");
    millrace::FunctionSpec spec;
    spec.name = fn_name;
    spec.append_hash = append_hash_to_fn_name != 0;
    spec.description = description ? description : "";
    if (num_opers != -1) MR_RETURN_IF_ERROR(CheckNodes(opers, num_opers, "opers", &spec.body.emplace()));
    MR_RETURN_IF_ERROR(CheckOutputs(inputs, ninputs, "inputs", "input", "into", fn_name, &spec.inputs));
    MR_RETURN_IF_ERROR(CheckOutputs(outputs, noutputs, "outputs", "output", "from", fn_name, &spec.outputs));
    MR_RETURN_IF_ERROR(CheckNames(output_names, noutputs, "output_names", &spec.output_names));
    MR_RETURN_IF_ERROR(CheckNodes(control_outputs, ncontrol_outputs, "control_outputs", &spec.control_outputs));
    MR_RETURN_IF_ERROR(
        CheckNames(control_output_names, ncontrol_outputs, "control_output_names", &spec.control_output_names));
    millrace::GraphReaderLock lock(&fn_body->shared->mu);
    MR_ASSIGN_OR_RETURN(millrace::wire::FunctionDef def, millrace::GraphToFunctionDef(fn_body->shared->graph, spec));
    return new TF_Function{std::move(def)};
  });
}

const char* TF_FunctionName(TF_Function* func) {
  return func && func->def.signature ? func->def.signature->name.c_str() : "";
}

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(func);
    return millrace::capi::FillWithMessage(output_func_def, func->def, "output_func_def");
  });
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  return GuardedOr<TF_Function*>(status, nullptr, [&]() -> StatusOr<TF_Function*> {
    auto function = std::make_unique<TF_Function>();
    if (!millrace::capi::DecodeBytes(proto, proto_len, "FunctionDef", &function->def).ok()) {
      return InvalidArgument("Invalid FunctionDef given to TF_FunctionImportFunctionDef");
    }
    MR_RETURN_IF_ERROR(CheckSignature(function->def));
    return function.release();
  });
}

void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto, size_t proto_len,
                                  TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(func);
    MR_CAPI_REQUIRE(attr_name);
    millrace::wire::AttrValue value;
    MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(proto, proto_len, "AttrValue", &value));
    func->def.attr.insert_or_assign(attr_name, std::move(value));
    return absl::OkStatus();
  });
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name, TF_Buffer* output_attr_value,
                                  TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(func);
    MR_CAPI_REQUIRE(attr_name);
    auto it = func->def.attr.find(absl::string_view(attr_name));
    if (it == func->def.attr.end()) {
      return InvalidArgument("Function '", TF_FunctionName(func), "' has no attr named '", attr_name, "'.");
    }
    return millrace::capi::FillWithMessage(output_attr_value, it->second, "output_attr_value");
  });
}

void TF_DeleteFunction(TF_Function* func) { delete func; }

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(g);
    if (func == nullptr) return InvalidArgument("'func' argument to TF_GraphCopyFunction cannot be null");
    millrace::GraphLock lock(&g->shared->mu);
    millrace::Graph& graph = g->shared->graph;
    MR_RETURN_IF_ERROR(graph.AddFunction(func->def));
    if (grad == nullptr) return absl::OkStatus();
    MR_RETURN_IF_ERROR(graph.AddFunction(grad->def));
    millrace::wire::GradientDef gradient;
    gradient.function_name = func->def.signature->name;
    gradient.gradient_func = grad->def.signature->name;
    return graph.AddGradientDef(std::move(gradient));
  });
}

int TF_GraphNumFunctions(TF_Graph* g) {
  if (g == nullptr) return 0;
  return millrace::capi::Try(0, [&] {
    millrace::GraphReaderLock lock(&g->shared->mu);
    return static_cast<int>(g->shared->graph.Functions().size());
  });
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  return GuardedOr<int>(status, 0, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(g);
    MR_RETURN_IF_ERROR(CheckArray(funcs, max_func, "funcs"));
    std::vector<std::unique_ptr<TF_Function>> copies;
    {
      millrace::GraphReaderLock lock(&g->shared->mu);
      for (const millrace::wire::FunctionDef* def : g->shared->graph.Functions()) {
        if (copies.size() >= static_cast<size_t>(max_func)) break;
        copies.push_back(std::make_unique<TF_Function>(TF_Function{*def}));
      }
    }
    for (size_t i = 0; i < copies.size(); ++i) funcs[i] = copies[i].release();
    return static_cast<int>(copies.size());
  });
}

}  // extern "C"
