// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops by callbacks.
#include "capi/flow.h"
#include "graph/functional.h"

using millrace::BuildFn;
using millrace::GraphBuilder;
using millrace::GraphLock;
using millrace::InvalidArgument;
using millrace::LoopOptions;
using millrace::Node;
using millrace::Output;
using millrace::SharedGraph;
using millrace::Status;
using millrace::StatusOr;
using millrace::SweepOptions;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::CheckOutput;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::MakeBuildFn;
using millrace::capi::MakeNodes;
using millrace::capi::MakeOutputs;
using millrace::capi::ScopedClaim;
using millrace::capi::Try;

namespace {

using Outputs = std::vector<Output>;

// Runs build(builder, options, name) -> StatusOr<T> with the graph locked and claimed.
template <typename Build>
auto Construct(TF_Graph* graph, const MR_FlowOptions* given, const char* name, Build&& build)
    -> decltype(build(std::declval<const GraphBuilder&>(), std::declval<const MR_FlowOptions&>(), name)) {
  MR_CAPI_REQUIRE(graph);
  MR_ASSIGN_OR_RETURN(const MR_FlowOptions options, millrace::capi::ReadFlowOptions(given));
  const millrace::RefPtr<SharedGraph> shared = graph->shared;  // also when a callback deletes the graph
  const GraphLock lock(&shared->mu);
  const ScopedClaim claim(&shared->mu);
  MR_ASSIGN_OR_RETURN(const GraphBuilder b, millrace::capi::FlowBuilder(&shared->graph, options));
  return build(b, options, options.name && options.name[0] ? options.name : name);
}

template <typename Build>
void ConstructList(TF_Graph* graph, const MR_FlowOptions* given, const char* name, MR_Outputs* results,
                   TF_Status* status, Build&& build) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(results);
    MR_ASSIGN_OR_RETURN(const Outputs made, Construct(graph, given, name, build));
    millrace::capi::Append(made, results);
    return absl::OkStatus();
  });
}

StatusOr<SweepOptions> ReadSweepOptions(const MR_FlowOptions& options, bool reverse) {
  MR_ASSIGN_OR_RETURN(const LoopOptions loop, millrace::capi::ReadLoopOptions(options, 0));
  return SweepOptions{loop.parallel_iterations, loop.back_prop, loop.swap_memory, reverse};
}

using SweepFn = decltype(&millrace::Fold);

void BuildSweep(SweepFn sweep, bool reverse, const char* name, TF_Graph* graph, const MR_FlowOptions* given,
                const TF_Output* elements, int num_elements, const TF_Output* initial, int num_initial, MR_BuildFn fn,
                void* data, MR_Outputs* results, TF_Status* status) {
  ConstructList(graph, given, name, results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions& options, const char* scope) -> StatusOr<Outputs> {
                  MR_ASSIGN_OR_RETURN(const Outputs list, MakeOutputs(elements, num_elements, "elements"));
                  MR_ASSIGN_OR_RETURN(const Outputs first, MakeOutputs(initial, num_initial, "initial"));
                  MR_ASSIGN_OR_RETURN(const BuildFn build, MakeBuildFn(graph, fn, data, "fn"));
                  MR_ASSIGN_OR_RETURN(const SweepOptions how, ReadSweepOptions(options, reverse));
                  return sweep(b, list, first, build, how, scope);
                });
}

}  // namespace

extern "C" {

MR_Outputs* MR_NewOutputs(void) {
  return Try<MR_Outputs*>(nullptr, [] { return new MR_Outputs; });
}
void MR_DeleteOutputs(MR_Outputs* list) { delete list; }
void MR_OutputsAppend(MR_Outputs* list, TF_Output output) {
  if (list != nullptr) Try(0, [&] { return list->list.push_back(output), 0; });
}
int MR_OutputsSize(const MR_Outputs* list) { return list ? static_cast<int>(list->list.size()) : 0; }
TF_Output MR_OutputsGet(const MR_Outputs* list, int index) {
  if (index < 0 || index >= MR_OutputsSize(list)) return {nullptr, -1};
  return list->list[static_cast<size_t>(index)];
}

void MR_Cond(TF_Graph* graph, const MR_FlowOptions* options, TF_Output predicate, MR_BuildFn if_true, void* true_data,
             MR_BuildFn if_false, void* false_data, MR_Outputs* results, TF_Status* status) {
  ConstructList(graph, options, "cond", results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions&, const char* name) -> StatusOr<Outputs> {
                  MR_RETURN_IF_ERROR(CheckOutput(predicate, "predicate"));
                  MR_ASSIGN_OR_RETURN(const BuildFn when_true, MakeBuildFn(graph, if_true, true_data, "if_true"));
                  MR_ASSIGN_OR_RETURN(const BuildFn when_false, MakeBuildFn(graph, if_false, false_data, "if_false"));
                  return millrace::Cond(b, AsOutput(predicate), when_true, when_false, name);
                });
}

void MR_Case(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* predicates, const MR_BuildFn* branches,
             void* const* branch_data, int num_branches, MR_BuildFn otherwise, void* otherwise_data,
             unsigned char exclusive, MR_Outputs* results, TF_Status* status) {
  ConstructList(graph, options, "case", results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions&, const char* name) -> StatusOr<Outputs> {
                  MR_ASSIGN_OR_RETURN(const Outputs list, MakeOutputs(predicates, num_branches, "predicates"));
                  MR_RETURN_IF_ERROR(millrace::capi::CheckArray(branches, num_branches, "branches"));
                  std::vector<millrace::CaseBranch> all;
                  for (size_t i = 0; i < list.size(); ++i) {
                    void* data = branch_data ? branch_data[i] : nullptr;
                    MR_ASSIGN_OR_RETURN(BuildFn build, MakeBuildFn(graph, branches[i], data, "a branch"));
                    all.push_back({list[i], std::move(build)});
                  }
                  BuildFn last;
                  if (otherwise != nullptr) {
                    MR_ASSIGN_OR_RETURN(last, MakeBuildFn(graph, otherwise, otherwise_data, "otherwise"));
                  }
                  return millrace::Case(b, all, last, exclusive != 0, name);
                });
}

void MR_WhileLoop(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* variables, int num_variables,
                  MR_BuildFn condition, void* condition_data, MR_BuildFn body, void* body_data, MR_Outputs* results,
                  TF_Status* status) {
  ConstructList(graph, options, "while", results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions& given, const char* name) -> StatusOr<Outputs> {
                  MR_ASSIGN_OR_RETURN(const Outputs list, MakeOutputs(variables, num_variables, "variables"));
                  MR_ASSIGN_OR_RETURN(const LoopOptions loop, millrace::capi::ReadLoopOptions(given, num_variables));
                  MR_ASSIGN_OR_RETURN(const BuildFn test, MakeBuildFn(graph, condition, condition_data, "condition"));
                  MR_ASSIGN_OR_RETURN(const BuildFn step, MakeBuildFn(graph, body, body_data, "body"));
                  return millrace::WhileLoop(b, list, test, step, loop, name);
                });
}

void MR_MapFn(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements, int num_elements,
              const TF_DataType* dtypes, int num_dtypes, MR_BuildFn fn, void* data, MR_Outputs* results,
              TF_Status* status) {
  ConstructList(graph, options, "map", results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions& given, const char* name) -> StatusOr<Outputs> {
                  MR_ASSIGN_OR_RETURN(const Outputs list, MakeOutputs(elements, num_elements, "elements"));
                  MR_RETURN_IF_ERROR(millrace::capi::CheckArray(dtypes, num_dtypes, "dtypes"));
                  std::vector<millrace::DType> types;
                  for (int i = 0; i < num_dtypes; ++i) {
                    MR_ASSIGN_OR_RETURN(const millrace::DType type, millrace::capi::MakeDType(dtypes[i]));
                    types.push_back(type);
                  }
                  MR_ASSIGN_OR_RETURN(const BuildFn build, MakeBuildFn(graph, fn, data, "fn"));
                  MR_ASSIGN_OR_RETURN(const SweepOptions how, ReadSweepOptions(given, false));
                  return millrace::MapFn(b, list, types, build, how, name);
                });
}

void MR_FoldL(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements, int num_elements,
              const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data, MR_Outputs* results,
              TF_Status* status) {
  BuildSweep(&millrace::Fold, false, "foldl", graph, options, elements, num_elements, initial, num_initial, fn, data,
             results, status);
}

void MR_FoldR(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements, int num_elements,
              const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data, MR_Outputs* results,
              TF_Status* status) {
  BuildSweep(&millrace::Fold, true, "foldr", graph, options, elements, num_elements, initial, num_initial, fn, data,
             results, status);
}

void MR_Scan(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements, int num_elements,
             const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data, MR_Outputs* results,
             TF_Status* status) {
  const bool reverse = options != nullptr && options->struct_size >= sizeof(MR_FlowOptions) && options->reverse != 0;
  BuildSweep(&millrace::Scan, reverse, "scan", graph, options, elements, num_elements, initial, num_initial, fn, data,
             results, status);
}

TF_Output MR_WithDependencies(TF_Graph* graph, const MR_FlowOptions* options, TF_Operation* const* operations,
                              int num_operations, TF_Output value, TF_Status* status) {
  return GuardedOr<TF_Output>(status, {nullptr, -1}, [&]() -> StatusOr<TF_Output> {
    return Construct(graph, options, "control_dependency",
                     [&](const GraphBuilder& b, const MR_FlowOptions&, const char* name) -> StatusOr<TF_Output> {
                       MR_ASSIGN_OR_RETURN(auto nodes, MakeNodes(operations, num_operations, "operations"));
                       MR_RETURN_IF_ERROR(CheckOutput(value, "value"));
                       const Output o = b.WithName(name).WithControl(std::move(nodes)).Identity(AsOutput(value));
                       MR_RETURN_IF_ERROR(b.status());
                       return AsTfOutput(o);
                     });
  });
}

TF_Operation* MR_Group(TF_Graph* graph, const MR_FlowOptions* options, TF_Operation* const* operations,
                       int num_operations, TF_Status* status) {
  return GuardedOr<TF_Operation*>(status, nullptr, [&]() -> StatusOr<TF_Operation*> {
    return Construct(graph, options, "group_deps",
                     [&](const GraphBuilder& b, const MR_FlowOptions&, const char* name) -> StatusOr<TF_Operation*> {
                       MR_ASSIGN_OR_RETURN(auto nodes, MakeNodes(operations, num_operations, "operations"));
                       Node* group = millrace::Group(b, std::move(nodes), name);
                       MR_RETURN_IF_ERROR(b.status());
                       return AsOperation(group);
                     });
  });
}

void MR_Tuple(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* values, int num_values,
              TF_Operation* const* operations, int num_operations, MR_Outputs* results, TF_Status* status) {
  ConstructList(graph, options, "tuple", results, status,
                [&](const GraphBuilder& b, const MR_FlowOptions&, const char* name) -> StatusOr<Outputs> {
                  MR_RETURN_IF_ERROR(millrace::capi::CheckArray(values, num_values, "values"));
                  Outputs list;
                  for (int i = 0; i < num_values; ++i) {
                    if (values[i].oper != nullptr) MR_RETURN_IF_ERROR(CheckOutput(values[i], "value", i));
                    list.push_back(values[i].oper ? AsOutput(values[i]) : Output());
                  }
                  MR_ASSIGN_OR_RETURN(auto nodes, MakeNodes(operations, num_operations, "operations"));
                  return millrace::Tuple(b, list, std::move(nodes), name);
                });
}

void* MR_FlowSuspend(TF_Graph* graph) {
  if (graph == nullptr) return nullptr;
  const GraphLock lock(&graph->shared->mu);
  return graph->shared->graph.SetContext(nullptr);
}

void MR_FlowResume(TF_Graph* graph, void* suspended) {
  if (graph == nullptr) return;
  const GraphLock lock(&graph->shared->mu);
  graph->shared->graph.SetContext(static_cast<millrace::GraphContext*>(suspended));
}

}  // extern "C"
