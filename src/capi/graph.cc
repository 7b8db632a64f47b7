// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole: look-up, shapes, constants, changes, gradients.
#include "autodiff/gradients.h"
#include "capi/internal.h"
#include "system/system.h"

namespace millrace::capi {

StatusOr<std::vector<Output>> MakeOutputs(const TF_Output* outputs, int count, const char* what) {
  MR_RETURN_IF_ERROR(CheckArray(outputs, count, what));
  std::vector<Output> list;
  list.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    MR_RETURN_IF_ERROR(CheckOutput(outputs[i], what, i));
    list.push_back(AsOutput(outputs[i]));
  }
  return list;
}

}  // namespace millrace::capi

using millrace::Graph;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::Output;
using millrace::PartialShape;
using millrace::SharedGraph;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::CheckOutput;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::MakeOutputs;
using millrace::capi::Try;

namespace {

Status CheckPrefixIsFree(const Graph& graph, absl::string_view prefix) {
  for (const Node* node : graph.nodes()) {
    const absl::string_view name = node->name();
    if (name.substr(0, prefix.size()) == prefix && (name.size() == prefix.size() || name[prefix.size()] == '/')) {
      return InvalidArgument("prefix '", prefix, "' conflicts with the operation '", name, "'");
    }
  }
  return absl::OkStatus();
}

// `prefix` null: "gradients", made unique.
StatusOr<std::vector<Output>> DenseGradients(Graph& graph, const char* prefix, const std::vector<Output>& y,
                                             const std::vector<Output>& x, const std::vector<Output>& dx) {
  if (prefix != nullptr) MR_RETURN_IF_ERROR(CheckPrefixIsFree(graph, prefix));
  const millrace::GraphBuilder root(&graph);
  const millrace::GraphBuilder builder = prefix ? root.ScopeExact(prefix) : root.Scope("gradients");
  millrace::GradientOptions options;
  options.as_in_c = true;
  MR_ASSIGN_OR_RETURN(
      const std::vector<millrace::Gradient> gradients, millrace::AddGradients(builder, y, x, dx, options));
  std::vector<Output> dense;
  dense.reserve(gradients.size());
  for (const millrace::Gradient& g : gradients) {
    dense.push_back(g.sparse ? millrace::Densify(builder, *g.sparse) : g.dense);
  }
  MR_RETURN_IF_ERROR(builder.status());
  return dense;
}

StatusOr<millrace::wire::OpDef> FindOpDef(const Graph& graph, const char* name) {
  if (const millrace::OpDef* op = graph.registry().Find(name)) return millrace::OpDefToProto(*op);
  const millrace::wire::FunctionDef* function = graph.FindFunction(name);
  if (function != nullptr && function->signature) return *function->signature;
  return millrace::NotFound(
      "Op type not registered '", name, "' in binary running in this process. Make sure the Op and ",
      "Kernel are registered in the binary running in this process.");
}

}  // namespace

extern "C" {

TF_Graph* TF_NewGraph(void) {
  return Try<TF_Graph*>(
      nullptr, [] { return new TF_Graph{millrace::MakeRef<SharedGraph>(&millrace::System::Default().ops())}; });
}

void TF_DeleteGraph(TF_Graph* graph) {
  if (graph != nullptr && !graph->shared->is_view()) delete graph;  // a gradient function's is not the client's
}

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  if (graph == nullptr || oper_name == nullptr) return nullptr;
  millrace::GraphReaderLock lock(&graph->shared->mu);
  return AsOperation(graph->shared->graph.Find(oper_name));
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  if (graph == nullptr || pos == nullptr) return nullptr;
  millrace::GraphReaderLock lock(&graph->shared->mu);
  const std::vector<Node*>& nodes = graph->shared->graph.nodes();
  return *pos < nodes.size() ? AsOperation(nodes[(*pos)++]) : nullptr;
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    millrace::wire::GraphDef def;
    {
      millrace::GraphReaderLock lock(&graph->shared->mu);
      MR_ASSIGN_OR_RETURN(def, millrace::GraphToProto(graph->shared->graph));
    }
    return millrace::capi::FillWithMessage(output_graph_def, def, "output_graph_def");
  });
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(op_name);
    millrace::GraphReaderLock lock(&graph->shared->mu);
    MR_ASSIGN_OR_RETURN(const millrace::wire::OpDef def, FindOpDef(graph->shared->graph, op_name));
    return millrace::capi::FillWithMessage(output_op_def, def, "output_op_def");
  });
}

const char* MR_OpInputName(const char* op_type, int index) {
  return Try<const char*>(nullptr, [&]() -> const char* {
    if (op_type == nullptr) return nullptr;
    const millrace::OpDef* def = millrace::System::Default().ops().Find(op_type);
    if (def == nullptr) {
      const millrace::CompositeDef* composite = millrace::System::Default().composites().Find(op_type);
      if (composite != nullptr) def = &composite->def;
    }
    if (def == nullptr || index < 0 || static_cast<size_t>(index) >= def->inputs.size()) return nullptr;
    return def->inputs[static_cast<size_t>(index)].name.c_str();
  });
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    millrace::GraphReaderLock lock(&graph->shared->mu);
    return millrace::capi::FillWithMessage(output_version_def, graph->shared->graph.versions(), "output_version_def");
  });
}

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims, const int num_dims,
                            TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(CheckOutput(output));
    MR_ASSIGN_OR_RETURN(const PartialShape shape, millrace::capi::MakePartialShape(dims, num_dims));
    millrace::GraphLock lock(&graph->shared->mu);
    return graph->shared->graph.RefineShape(AsOutput(output), shape);
  });
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  return GuardedOr<int>(status, -1, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(CheckOutput(output));
    millrace::GraphReaderLock lock(&graph->shared->mu);
    return AsOutput(output).shape().rank();
  });
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(CheckOutput(output));
    millrace::GraphReaderLock lock(&graph->shared->mu);
    const PartialShape& shape = AsOutput(output).shape();
    if (!shape.has_rank()) return absl::OkStatus();
    if (num_dims != shape.rank()) {
      return InvalidArgument("expected room for ", shape.rank(), " dimensions, got ", num_dims);
    }
    if (num_dims > 0) MR_CAPI_REQUIRE(dims);
    for (int i = 0; i < num_dims; ++i) dims[i] = shape.dim(i);
    return absl::OkStatus();
  });
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result, TF_Status* status) {
  if (result != nullptr) *result = nullptr;
  return GuardedOr<unsigned char>(status, 0, [&]() -> StatusOr<unsigned char> {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(result);
    MR_RETURN_IF_ERROR(CheckOutput(output));
    millrace::GraphLock lock(&graph->shared->mu);
    const millrace::Tensor* value = graph->shared->graph.ConstantValue(AsOutput(output));
    if (value == nullptr) return static_cast<unsigned char>(0);
    *result = new TF_Tensor{*value};
    return static_cast<unsigned char>(1);
  });
}

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(CheckOutput(new_src, "new_src"));
    if (dst.oper == nullptr) return InvalidArgument("dst: operation is NULL");
    millrace::GraphLock lock(&graph->shared->mu);
    Node* node = AsNode(dst.oper);
    if (dst.index < 0 || dst.index >= node->num_inputs()) {
      return millrace::OutOfRange("Node '", node->name(), "' (type: '", node->op_name(),
                                  "', num of inputs: ", node->num_inputs(), ") does not have input ", dst.index);
    }
    graph->shared->graph.ForgetExpansion(node);
    return graph->shared->graph.SetInput(node, dst.index, AsOutput(new_src));
  });
}

void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input) {
  if (graph == nullptr || op == nullptr || input == nullptr) return;
  Try(0, [&] {
    millrace::GraphLock lock(&graph->shared->mu);
    graph->shared->graph.ForgetExpansion(AsNode(op));
    return graph->shared->graph.AddControlEdge(AsNode(input), AsNode(op)), 0;
  });
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  if (graph == nullptr || op == nullptr) return;
  Try(0, [&] {
    millrace::GraphLock lock(&graph->shared->mu);
    Node* node = AsNode(op);
    graph->shared->graph.ForgetExpansion(node);
    const std::vector<Node*> inputs = node->control_inputs();
    for (Node* input : inputs) graph->shared->graph.RemoveControlEdge(input, node);
    return 0;
  });
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device) {
  if (graph == nullptr || op == nullptr || device == nullptr) return;
  Try(0, [&] {
    millrace::GraphLock lock(&graph->shared->mu);
    return AsNode(op)->set_device(device), 0;
  });
}

void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Buffer* attr_value_proto,
                TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(op);
    MR_CAPI_REQUIRE(attr_name);
    MR_CAPI_REQUIRE(attr_value_proto);
    millrace::wire::AttrValue message;
    MR_RETURN_IF_ERROR(
        millrace::capi::DecodeBytes(attr_value_proto->data, attr_value_proto->length, "AttrValue", &message));
    MR_ASSIGN_OR_RETURN(millrace::AttrValue value, millrace::AttrFromProto(message));
    millrace::GraphLock lock(&graph->shared->mu);
    graph->shared->graph.ForgetExpansion(AsNode(op));
    AsNode(op)->SetAttr(attr_name, std::move(value));
    return absl::OkStatus();
  });
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(op);
    MR_CAPI_REQUIRE(attr_name);
    millrace::GraphLock lock(&graph->shared->mu);
    graph->shared->graph.ForgetExpansion(AsNode(op));
    AsNode(op)->ClearAttr(attr_name);
    return absl::OkStatus();
  });
}

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx, TF_Status* status,
                     TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x, int nx,
                               TF_Output* dx, TF_Status* status, TF_Output* dy) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(g);
    MR_ASSIGN_OR_RETURN(const std::vector<Output> ys, MakeOutputs(y, ny, "y"));
    MR_ASSIGN_OR_RETURN(const std::vector<Output> xs, MakeOutputs(x, nx, "x"));
    if (nx > 0) MR_CAPI_REQUIRE(dy);
    std::vector<Output> incoming;
    if (dx != nullptr) {
      MR_ASSIGN_OR_RETURN(incoming, MakeOutputs(dx, ny, "dx"));
    }
    millrace::GraphLock lock(&g->shared->mu);
    MR_ASSIGN_OR_RETURN(const std::vector<Output> result, DenseGradients(g->shared->graph, prefix, ys, xs, incoming));
    for (size_t i = 0; i < result.size(); ++i) dy[i] = AsTfOutput(result[i]);
    return absl::OkStatus();
  });
}

}  // extern "C"
