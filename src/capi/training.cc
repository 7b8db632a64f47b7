// SPDX-License-Identifier: Apache-2.0
// Composites, variables and optimizers for clients.
#include "millrace/c_api_training.h"

#include "autodiff/gradients.h"
#include "capi/internal.h"
#include "client/optimizer.h"
#include "client/variables.h"
#include "ops/composite.h"
#include "system/system.h"

namespace {

using millrace::Gradient;
using millrace::GraphBuilder;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::NotFound;
using millrace::Output;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::CheckOutput;
using millrace::capi::GuardedOr;

StatusOr<int> Expand(TF_OperationDescription& desc, TF_Output* outputs, int max_outputs) {
  MR_RETURN_IF_ERROR(desc.error);
  if (desc.has_list) desc.spec.input_arg_sizes = desc.arg_sizes;
  millrace::GraphLock lock(&desc.shared->mu);
  const GraphBuilder b =
      GraphBuilder(&desc.shared->graph)
          .WithControl(desc.spec.control_inputs)
          .WithDevice(desc.spec.device)
          .InGroups({desc.colocation.begin(), desc.colocation.end()});
  const std::string composite = desc.spec.op;
  MR_ASSIGN_OR_RETURN(const std::vector<Output> made,
                      millrace::ExpandComposite(millrace::System::Default().composites(), b, std::move(desc.spec)));
  if (static_cast<int>(made.size()) > max_outputs) {
    return InvalidArgument("composite ", composite, " has ", made.size(), " outputs, there is room for ", max_outputs);
  }
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = AsTfOutput(made[i]);
  return static_cast<int>(made.size());
}

// Scales the dense gradients to a common norm of at most `limit`.
Status ClipDense(const GraphBuilder& b, float limit, std::vector<std::pair<Output, Gradient>>& list) {
  std::vector<Output> dense;
  for (const auto& [variable, gradient] : list) {
    if (gradient.dense) dense.push_back(gradient.dense);
  }
  if (dense.empty()) return absl::OkStatus();
  millrace::NodeSpec spec;
  spec.op = "ClipByGlobalNorm";
  spec.inputs = dense;
  spec.inputs.push_back(b.ScalarOf(millrace::BaseType(dense[0].dtype()), static_cast<double>(limit)));
  MR_RETURN_IF_ERROR(b.status());
  MR_ASSIGN_OR_RETURN(const std::vector<Output> clipped,
                      millrace::ExpandComposite(millrace::System::Default().composites(), b, std::move(spec)));
  size_t k = 0;
  for (auto& [variable, gradient] : list) {
    if (gradient.dense) gradient.dense = clipped[k++];
  }
  return absl::OkStatus();
}

}  // namespace

int MR_FinishComposite(TF_OperationDescription* desc, TF_Output* outputs, int max_outputs, TF_Status* status) {
  const std::unique_ptr<TF_OperationDescription> owned(desc);
  return GuardedOr<int>(status, 0, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(desc);
    MR_CAPI_REQUIRE(outputs);
    return Expand(*desc, outputs, max_outputs);
  });
}

void MR_AddVariable(TF_Graph* graph, const char* name, TF_Output initial, TF_Output* ref, TF_Output* read,
                    TF_Status* status) {
  millrace::capi::Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(name);
    MR_RETURN_IF_ERROR(CheckOutput(initial, "initial", -1));
    millrace::GraphLock lock(&graph->shared->mu);
    MR_ASSIGN_OR_RETURN(const millrace::ClientVariable v,
                        millrace::AddVariable(GraphBuilder(&graph->shared->graph), name, AsOutput(initial)));
    if (ref) *ref = AsTfOutput(v.ref);
    if (read) *read = AsTfOutput(v.read);
    return absl::OkStatus();
  });
}

TF_Operation* MR_AddInitializer(TF_Graph* graph, const char* name, TF_Status* status) {
  return GuardedOr<TF_Operation*>(status, nullptr, [&]() -> StatusOr<TF_Operation*> {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(name);
    millrace::GraphLock lock(&graph->shared->mu);
    MR_ASSIGN_OR_RETURN(Node * init, millrace::AddInitializer(GraphBuilder(&graph->shared->graph), name));
    return AsOperation(init);
  });
}

TF_Operation* MR_Minimize(TF_Graph* graph, const char* optimizer, const char* name, const char* const* hyper_names,
                          const TF_Output* hyper_values, int num_hyper, TF_Output loss, const TF_Output* vars,
                          int num_vars, TF_Output global_step, float clip_global_norm, TF_Status* status) {
  return GuardedOr<TF_Operation*>(status, nullptr, [&]() -> StatusOr<TF_Operation*> {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(optimizer);
    millrace::UpdateRequest request;
    request.optimizer = millrace::FindOptimizer(optimizer);
    if (!request.optimizer) return NotFound("there is no optimizer '", optimizer, "'");
    if (num_hyper < 0 || num_vars < 0) return InvalidArgument("a negative number of arguments");
    for (int i = 0; i < num_hyper; ++i) {
      MR_CAPI_REQUIRE(hyper_names[i]);
      MR_RETURN_IF_ERROR(CheckOutput(hyper_values[i], "hyper_values", i));
      request.hyper[hyper_names[i]] = AsOutput(hyper_values[i]);
    }
    MR_RETURN_IF_ERROR(CheckOutput(loss, "loss", -1));
    std::vector<Output> variables;
    for (int i = 0; i < num_vars; ++i) {
      MR_RETURN_IF_ERROR(CheckOutput(vars[i], "vars", i));
      variables.push_back(AsOutput(vars[i]));
    }
    if (global_step.oper) {
      MR_RETURN_IF_ERROR(CheckOutput(global_step, "global_step", -1));
      request.global_step = AsOutput(global_step);
    }
    millrace::GraphLock lock(&graph->shared->mu);
    const GraphBuilder root(&graph->shared->graph);
    const bool named = name != nullptr && *name != '\0';
    request.name = graph->shared->graph.UniqueName(named ? name : request.optimizer->name);
    MR_ASSIGN_OR_RETURN(const std::vector<Gradient> gradients,
                        millrace::AddGradients(root.Scope("gradients"), {AsOutput(loss)}, variables));
    std::vector<std::pair<Output, Gradient>> list;
    for (size_t i = 0; i < variables.size(); ++i) list.emplace_back(variables[i], gradients[i]);
    if (clip_global_norm > 0) MR_RETURN_IF_ERROR(ClipDense(root, clip_global_norm, list));
    MR_ASSIGN_OR_RETURN(Node * train, millrace::ApplyGradients(root, request, list));
    return AsOperation(train);
  });
}
