// SPDX-License-Identifier: Apache-2.0
// Loops. The caller builds the condition and the body in graphs of their own, whose placeholders stand for the loop
// variables; finishing copies both into the parent graph, inside a loop that is built there.
#include "capi/internal.h"
#include "graph/control_flow.h"
#include "system/system.h"

using millrace::DType;
using millrace::Graph;
using millrace::GraphBuilder;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::Output;
using millrace::SharedGraph;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;

namespace {

using GraphHandle = std::unique_ptr<TF_Graph>;
using OutputArray = std::unique_ptr<TF_Output[]>;

constexpr TF_WhileParams kNoLoop = {0, nullptr, nullptr, {nullptr, -1}, nullptr, nullptr, nullptr, nullptr};

OutputArray NewOutputs(int count) {
  OutputArray list(new TF_Output[static_cast<size_t>(std::max(count, 1))]);
  for (int i = 0; i < count; ++i) list[static_cast<size_t>(i)] = {nullptr, -1};
  return list;
}

// A graph with a placeholder per loop variable.
Status AddPlaceholders(const std::vector<Output>& variables, const char* prefix, Graph* graph, TF_Output* list) {
  for (size_t i = 0; i < variables.size(); ++i) {
    millrace::NodeSpec spec;
    spec.name = absl::StrCat(prefix, i);
    spec.op = "Placeholder";
    spec.attrs.emplace("dtype", BaseType(variables[i].dtype()));
    MR_ASSIGN_OR_RETURN(Node * node, graph->AddNode(std::move(spec)));
    MR_RETURN_IF_ERROR(graph->RefineShape(node->output(0), variables[i].shape()));
    list[i] = AsTfOutput(node->output(0));
  }
  return absl::OkStatus();
}

GraphHandle NewSubgraph() {
  return GraphHandle(new TF_Graph{millrace::MakeRef<SharedGraph>(&millrace::System::Default().ops())});
}

StatusOr<TF_WhileParams> Start(TF_Graph& parent, const std::vector<Output>& inputs) {
  const int count = static_cast<int>(inputs.size());
  GraphHandle cond = NewSubgraph(), body = NewSubgraph();
  OutputArray cond_inputs = NewOutputs(count), body_inputs = NewOutputs(count), body_outputs = NewOutputs(count);
  {
    millrace::GraphReaderLock parent_lock(&parent.shared->mu);
    millrace::GraphLock cond_lock(&cond->shared->mu);
    millrace::GraphLock body_lock(&body->shared->mu);
    MR_RETURN_IF_ERROR(AddPlaceholders(inputs, "cond_input", &cond->shared->graph, cond_inputs.get()));
    MR_RETURN_IF_ERROR(AddPlaceholders(inputs, "body_input", &body->shared->graph, body_inputs.get()));
  }
  cond->loop_parent = parent.shared;
  cond->loop_inputs = inputs;
  return TF_WhileParams{count,          cond.release(),        cond_inputs.release(),  {nullptr, -1},
                        body.release(), body_inputs.release(), body_outputs.release(), nullptr};
}

void Free(const TF_WhileParams& params) {
  delete params.cond_graph;
  delete params.body_graph;
  delete[] params.cond_inputs;
  delete[] params.body_inputs;
  delete[] params.body_outputs;
}

// The GraphDef of a subgraph without its loop placeholders.
StatusOr<millrace::wire::GraphDef> SubgraphDef(TF_Graph& graph, const TF_Output* inputs, int count) {
  millrace::wire::GraphDef def;
  {
    millrace::GraphReaderLock lock(&graph.shared->mu);
    MR_ASSIGN_OR_RETURN(def, millrace::GraphToProto(graph.shared->graph));
  }
  std::set<absl::string_view> placeholders;
  for (int i = 0; i < count; ++i) placeholders.insert(AsOutput(inputs[i]).node->name());
  std::erase_if(def.node, [&](const auto& node) { return placeholders.count(node.name) > 0; });
  return def;
}

// Copies a subgraph below `scope`; `values` take the place of its placeholders.
StatusOr<std::vector<Output>> CopySubgraph(
    const millrace::wire::GraphDef& def, const std::string& scope, const TF_Output* inputs,
    const std::vector<Output>& values, const TF_Output* outputs, int num_outputs, Graph* graph) {
  millrace::ImportOptions options;
  options.prefix = scope;
  for (size_t i = 0; i < values.size(); ++i) options.input_map[AsOutput(inputs[i]).ToString()] = values[i];
  for (int i = 0; i < num_outputs; ++i) options.return_outputs.push_back(AsOutput(outputs[i]).ToString());
  MR_ASSIGN_OR_RETURN(millrace::ImportResult result, millrace::ImportGraphDef(def, options, graph));
  return std::move(result.return_outputs);
}

// Whether `o` is an output of this graph, by the messages of the import that copies it.
Status CheckIsIn(TF_Graph& graph, TF_Output o) {
  const Node* node = millrace::capi::AsNode(o.oper);
  const millrace::GraphReaderLock lock(&graph.shared->mu);
  if (graph.shared->graph.Find(node->name()) != node) {
    return InvalidArgument("Requested return tensor '", node->name(), ":", o.index, "' not found in graph def");
  }
  if (millrace::capi::IsOutput(o)) return absl::OkStatus();
  return InvalidArgument("Invalid return output ", o.index, " of node '", node->name(), "', which has ",
                         node->num_outputs(), " output(s)");
}

Status CheckParams(const TF_WhileParams& params) {
  if (params.cond_graph == nullptr || params.body_graph == nullptr || !params.cond_graph->loop_parent) {
    return InvalidArgument("TF_WhileParams must be created by successful TF_NewWhile() call");
  }
  if (params.cond_output.oper == nullptr) return InvalidArgument("TF_WhileParams `cond_output` field isn't set");
  for (int i = 0; i < params.ninputs; ++i) {
    if (params.body_outputs[i].oper == nullptr) {
      return InvalidArgument("TF_WhileParams `body_outputs[", i, "]` field isn't set");
    }
  }
  if (params.name == nullptr) return InvalidArgument("TF_WhileParams `name` field is null");
  if (params.name[0] == '\0') return InvalidArgument("the loop has no name");
  MR_RETURN_IF_ERROR(CheckIsIn(*params.cond_graph, params.cond_output));
  if (AsOutput(params.cond_output).dtype() != DType::kBool) {
    return InvalidArgument("BuildWhileLoop: 'cond' argument must return a boolean output, got ",
                           millrace::DTypeName(AsOutput(params.cond_output).dtype()));
  }
  const std::vector<Output>& inputs = params.cond_graph->loop_inputs;
  for (int i = 0; i < params.ninputs; ++i) {
    MR_RETURN_IF_ERROR(CheckIsIn(*params.body_graph, params.body_outputs[i]));
    const DType got = BaseType(AsOutput(params.body_outputs[i]).dtype());
    const DType want = BaseType(inputs[static_cast<size_t>(i)].dtype());
    if (got != want) {
      return InvalidArgument("body_output ", i, " has type ", millrace::DTypeName(got), ", but the loop's variable ",
                             millrace::DTypeName(want));
    }
  }
  return absl::OkStatus();
}

// What stays known of a variable's shape: all that it starts with, or nothing where the body changes it.
std::vector<std::optional<millrace::PartialShape>> ShapeInvariants(const TF_WhileParams& params) {
  std::vector<std::optional<millrace::PartialShape>> invariants;
  const millrace::GraphReaderLock lock(&params.body_graph->shared->mu);
  for (int i = 0; i < params.ninputs; ++i) {
    const millrace::PartialShape& start = AsOutput(params.body_inputs[i]).shape();
    const millrace::PartialShape& next = AsOutput(params.body_outputs[i]).shape();
    const auto both = start.Merge(next);
    const bool keeps = both.ok() && *both == next;
    invariants.push_back(keeps ? std::nullopt : std::optional(millrace::PartialShape::Unknown()));
  }
  return invariants;
}

Status Finish(const TF_WhileParams& params, TF_Output* outputs) {
  MR_RETURN_IF_ERROR(CheckParams(params));
  MR_CAPI_REQUIRE(outputs);
  MR_ASSIGN_OR_RETURN(const auto cond, SubgraphDef(*params.cond_graph, params.cond_inputs, params.ninputs));
  MR_ASSIGN_OR_RETURN(const auto body, SubgraphDef(*params.body_graph, params.body_inputs, params.ninputs));
  SharedGraph& parent = *params.cond_graph->loop_parent;
  millrace::GraphLock lock(&parent.mu);
  Graph* graph = &parent.graph;
  const auto copy_cond = [&](const GraphBuilder& b, const std::vector<Output>& values) {
    return CopySubgraph(cond, b.scope() + "/cond", params.cond_inputs, values, &params.cond_output, 1, graph);
  };
  const auto copy_body = [&](const GraphBuilder& b, const std::vector<Output>& values) {
    return CopySubgraph(
        body, b.scope() + "/body", params.body_inputs, values, params.body_outputs, params.ninputs, graph);
  };
  millrace::LoopOptions options;
  options.shape_invariants = ShapeInvariants(params);
  MR_ASSIGN_OR_RETURN(
      const std::vector<Output> exits,
      millrace::WhileLoop(
          GraphBuilder(graph), params.cond_graph->loop_inputs, copy_cond, copy_body, options, params.name));
  for (size_t i = 0; i < exits.size(); ++i) outputs[i] = AsTfOutput(exits[i]);
  return absl::OkStatus();
}

}  // namespace

extern "C" {

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  TF_WhileParams* made = nullptr;
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(g);
    MR_ASSIGN_OR_RETURN(const std::vector<Output> list, millrace::capi::MakeOutputs(inputs, ninputs, "inputs"));
    if (list.empty()) return InvalidArgument("a loop needs at least one variable");
    MR_ASSIGN_OR_RETURN(const TF_WhileParams params, Start(*g, list));
    made = new TF_WhileParams(params);
    return absl::OkStatus();
  });
  if (made == nullptr) return kNoLoop;
  const std::unique_ptr<TF_WhileParams> owned(made);
  return *owned;
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(params);
    return Finish(*params, outputs);
  });
  if (params != nullptr) Free(*params);
}

void TF_AbortWhile(const TF_WhileParams* params) {
  if (params != nullptr) Free(*params);
}

}  // extern "C"
