// SPDX-License-Identifier: Apache-2.0
// Importing GraphDefs.
#include "capi/internal.h"

using millrace::InvalidArgument;
using millrace::Node;
using millrace::Output;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct TF_ImportGraphDefOptions {
  millrace::ImportOptions options;
  Status error;  // the first thing that was wrong; reported by the import
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation*> operations;
  std::vector<std::string> unused_names;
  std::vector<const char*> unused_name_pointers;
  std::vector<int> unused_indexes;
};

namespace {

template <typename Body>
void Configure(TF_ImportGraphDefOptions* opts, Body&& body) {
  if (opts == nullptr) return;
  Status s;
  try {
    s = body(opts->options);
  } catch (...) {
    s = millrace::StatusFromException();
  }
  if (opts->error.ok()) opts->error = std::move(s);
}

StatusOr<millrace::ImportResult> Import(TF_Graph* graph, const TF_Buffer* graph_def,
                                        const TF_ImportGraphDefOptions* opts) {
  MR_CAPI_REQUIRE(graph);
  MR_CAPI_REQUIRE(graph_def);
  static const millrace::ImportOptions& defaults = *new millrace::ImportOptions();
  if (opts != nullptr) MR_RETURN_IF_ERROR(opts->error);
  millrace::wire::GraphDef def;
  MR_RETURN_IF_ERROR(millrace::capi::DecodeBytes(graph_def->data, graph_def->length, "GraphDef", &def));
  millrace::GraphLock lock(&graph->shared->mu);
  return millrace::ImportGraphDef(def, opts ? opts->options : defaults, &graph->shared->graph);
}

StatusOr<TF_ImportGraphDefResults*> MakeResults(const millrace::ImportResult& imported) {
  auto results = std::make_unique<TF_ImportGraphDefResults>();
  for (const Output& o : imported.return_outputs) results->outputs.push_back(AsTfOutput(o));
  for (Node* node : imported.return_nodes) results->operations.push_back(AsOperation(node));
  for (const std::string& text : imported.unused_input_map) {
    MR_ASSIGN_OR_RETURN(const millrace::TensorName name, millrace::ParseTensorName(text));
    results->unused_names.emplace_back(name.node);
    results->unused_indexes.push_back(name.port);
  }
  for (const std::string& name : results->unused_names) results->unused_name_pointers.push_back(name.c_str());
  return results.release();
}

}  // namespace

extern "C" {

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void) { return new (std::nothrow) TF_ImportGraphDefOptions(); }
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) { delete opts; }

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix) {
  Configure(opts, [&](millrace::ImportOptions& o) { return o.prefix = prefix ? prefix : "", absl::OkStatus(); });
}
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device) {
  Configure(
      opts, [&](millrace::ImportOptions& o) { return o.default_device = device ? device : "", absl::OkStatus(); });
}
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts, unsigned char uniquify_names) {
  if (opts) opts->options.uniquify_names = uniquify_names != 0;
}
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts, unsigned char uniquify_prefix) {
  if (opts) opts->options.uniquify_prefix = uniquify_prefix != 0;
}
void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions* opts, unsigned char enable) {
  if (opts) opts->options.validate_colocation = enable != 0;
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts, const char* src_name, int src_index,
                                             TF_Output dst) {
  Configure(opts, [&](millrace::ImportOptions& o) -> Status {
    MR_CAPI_REQUIRE(src_name);
    if (src_index < 0) return InvalidArgument("input mapping of '", src_name, "': the index is ", src_index);
    MR_RETURN_IF_ERROR(millrace::capi::CheckOutput(dst, "dst"));
    o.input_map.insert_or_assign(absl::StrCat(src_name, ":", src_index), AsOutput(dst));
    return absl::OkStatus();
  });
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts, const char* src_name,
                                                    TF_Operation* dst) {
  Configure(opts, [&](millrace::ImportOptions& o) -> Status {
    MR_CAPI_REQUIRE(src_name);
    MR_CAPI_REQUIRE(dst);
    o.control_map.insert_or_assign(absl::StrCat("^", src_name), AsNode(dst));
    return absl::OkStatus();
  });
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts, TF_Operation* oper) {
  Configure(opts, [&](millrace::ImportOptions& o) -> Status {
    MR_CAPI_REQUIRE(oper);
    o.control_dependencies.push_back(AsNode(oper));
    return absl::OkStatus();
  });
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts, const char* oper_name, int index) {
  Configure(opts, [&](millrace::ImportOptions& o) -> Status {
    MR_CAPI_REQUIRE(oper_name);
    if (index < 0) return InvalidArgument("return output of '", oper_name, "': the index is ", index);
    o.return_outputs.push_back(absl::StrCat(oper_name, ":", index));
    return absl::OkStatus();
  });
}
int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts) {
  return opts ? static_cast<int>(opts->options.return_outputs.size()) : 0;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts, const char* oper_name) {
  Configure(opts, [&](millrace::ImportOptions& o) -> Status {
    MR_CAPI_REQUIRE(oper_name);
    o.return_nodes.emplace_back(oper_name);
    return absl::OkStatus();
  });
}
int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts) {
  return opts ? static_cast<int>(opts->options.return_nodes.size()) : 0;
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options, TF_Status* status) {
  return GuardedOr<TF_ImportGraphDefResults*>(status, nullptr, [&]() -> StatusOr<TF_ImportGraphDefResults*> {
    MR_ASSIGN_OR_RETURN(const millrace::ImportResult imported, Import(graph, graph_def, options));
    return MakeResults(imported);
  });
}

void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options, TF_Output* return_outputs,
    int num_return_outputs, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(return_outputs, num_return_outputs, "return_outputs"));
    if (num_return_outputs != TF_ImportGraphDefOptionsNumReturnOutputs(options)) {
      return InvalidArgument("room for ", num_return_outputs, " return outputs, but the options ask for ",
                             TF_ImportGraphDefOptionsNumReturnOutputs(options));
    }
    MR_ASSIGN_OR_RETURN(const millrace::ImportResult imported, Import(graph, graph_def, options));
    for (size_t i = 0; i < imported.return_outputs.size(); ++i)
      return_outputs[i] = AsTfOutput(imported.return_outputs[i]);
    return absl::OkStatus();
  });
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
                            TF_Status* status) {
  Guarded(status, [&] { return Import(graph, graph_def, options).status(); });
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results, int* num_outputs, TF_Output** outputs) {
  if (num_outputs) *num_outputs = results ? static_cast<int>(results->outputs.size()) : 0;
  if (outputs) *outputs = results ? results->outputs.data() : nullptr;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results, int* num_opers,
                                              TF_Operation*** opers) {
  if (num_opers) *num_opers = results ? static_cast<int>(results->operations.size()) : 0;
  if (opers) *opers = results ? results->operations.data() : nullptr;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings, const char*** src_names,
    int** src_indexes) {
  if (num_missing_unused_input_mappings) {
    *num_missing_unused_input_mappings = results ? static_cast<int>(results->unused_names.size()) : 0;
  }
  if (src_names) *src_names = results ? results->unused_name_pointers.data() : nullptr;
  if (src_indexes) *src_indexes = results ? results->unused_indexes.data() : nullptr;
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) { delete results; }

}  // extern "C"
