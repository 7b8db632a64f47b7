// SPDX-License-Identifier: Apache-2.0
// Gradients and optimizers for clients that have scopes, variables and gradient functions of their own.
#include <map>

#include "autodiff/gradients.h"
#include "capi/flow.h"
#include "capi/gradient_values.h"
#include "capi/internal.h"
#include "capi/plugin/registration.h"
#include "client/optimizer.h"
#include "millrace/c_api_training.h"

using millrace::GradContext;
using millrace::Gradient;
using millrace::GraphBuilder;
using millrace::InvalidArgument;
using millrace::Node;
using millrace::Output;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::AsOperation;
using millrace::capi::AsOutput;
using millrace::capi::AsTfOutput;
using millrace::capi::CheckArray;
using millrace::capi::CheckOutput;
using millrace::capi::GradientFromC;
using millrace::capi::GradientToC;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;
using millrace::capi::IsOutput;
using millrace::capi::kNoGradient;
using millrace::capi::kNoOutput;

struct MR_Optimizer {
  millrace::RefPtr<millrace::SharedGraph> shared;
  const millrace::OptimizerDef* rule = nullptr;
  std::string name;
  std::map<std::string, double> slot_values;
  millrace::OptimizerState state;
};

namespace millrace::capi {

MR_Gradient GradientToC(const Gradient& g) {
  MR_Gradient out = kNoGradient;
  if (g.dense) {
    out.dense = AsTfOutput(g.dense);
  } else if (g.sparse) {
    out.values = AsTfOutput(g.sparse->values);
    out.indices = AsTfOutput(g.sparse->indices);
    if (g.sparse->dense_shape) out.dense_shape = AsTfOutput(g.sparse->dense_shape);
  }
  return out;
}

StatusOr<Gradient> GradientFromC(const MR_Gradient& g, int position) {
  Gradient out;
  if (g.dense.oper != nullptr) {
    MR_RETURN_IF_ERROR(CheckOutput(g.dense, "gradient", position));
    out.dense = AsOutput(g.dense);
  } else if (g.values.oper != nullptr) {
    MR_RETURN_IF_ERROR(CheckOutput(g.values, "values of gradient", position));
    MR_RETURN_IF_ERROR(CheckOutput(g.indices, "indices of gradient", position));
    out.sparse = IndexedSlices{
        AsOutput(g.values), AsOutput(g.indices), IsOutput(g.dense_shape) ? AsOutput(g.dense_shape) : Output()};
  }
  return out;
}

}  // namespace millrace::capi

namespace {

StatusOr<GraphBuilder> BuilderIn(millrace::Graph* graph, const MR_Scope* scope) {
  GraphBuilder b(graph);
  if (scope == nullptr) return b;
  if (scope->name && *scope->name) b = b.ScopeExact(scope->name);
  if (scope->device && *scope->device) b = b.WithDevice(scope->device);
  MR_RETURN_IF_ERROR(CheckArray(scope->control_inputs, scope->num_control_inputs, "control_inputs"));
  std::vector<Node*> control;
  for (int i = 0; i < scope->num_control_inputs; ++i) {
    MR_CAPI_REQUIRE(scope->control_inputs[i]);
    control.push_back(AsNode(scope->control_inputs[i]));
  }
  return control.empty() ? b : b.WithControl(std::move(control));
}

struct ClientGradients {
  absl::Mutex mu;
  std::map<std::string, std::pair<MR_GradientFn, void*>> functions ABSL_GUARDED_BY(mu);
};
ClientGradients& Clients() {
  static ClientGradients* const clients = new ClientGradients;
  return *clients;
}

struct FreeStatus {
  void operator()(TF_Status* s) const { TF_DeleteStatus(s); }
};

// The client adds to the graph through the C API, so its lock is let go of meanwhile; the claim keeps others from
// changing the graph.
Status CallClient(MR_GradientFn function, void* context, millrace::GraphMutex& mu, GradContext& c) {
  std::vector<MR_Gradient> dys, dxs(static_cast<size_t>(c.num_inputs()), kNoGradient);
  for (int i = 0; i < c.num_outputs(); ++i)
    dys.push_back(GradientToC(c.has_dy(i) ? c.raw_dy(i) : Gradient{c.dy(i), {}}));
  MR_RETURN_IF_ERROR(c.status());
  const std::unique_ptr<TF_Status, FreeStatus> status(TF_NewStatus());
  {
    const millrace::capi::Unlocked unlocked(&mu);
    function(context, AsOperation(c.node()), c.b().scope().c_str(), dys.data(), c.num_outputs(), dxs.data(),
             c.num_inputs(), status.get());
  }
  if (status->code != TF_OK) return Status(static_cast<absl::StatusCode>(status->code), status->message);
  for (int i = 0; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const Gradient g, GradientFromC(dxs[static_cast<size_t>(i)], i));
    if (g.dense) c.set_dx(i, g.dense);
    if (g.sparse) c.set_dx(i, *g.sparse);
  }
  return c.status();
}

StatusOr<std::vector<Output>> Optional(const TF_Output* outputs, int count, const char* what) {
  std::vector<Output> list;
  for (int i = 0; outputs != nullptr && i < count; ++i) {
    if (outputs[i].oper == nullptr) {
      list.emplace_back();
      continue;
    }
    MR_RETURN_IF_ERROR(CheckOutput(outputs[i], what, i));
    list.push_back(AsOutput(outputs[i]));
  }
  return list;
}

}  // namespace

void MR_AddGradients(TF_Graph* graph, const MR_Scope* scope, const TF_Output* ys, int num_ys, const TF_Output* xs,
                     int num_xs, const TF_Output* dys, const TF_Output* stops, int num_stops, unsigned char colocate,
                     unsigned char accumulate, MR_Gradient* dxs, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(graph);
    if (num_xs > 0) MR_CAPI_REQUIRE(dxs);
    MR_ASSIGN_OR_RETURN(const std::vector<Output> y, millrace::capi::MakeOutputs(ys, num_ys, "y"));
    MR_ASSIGN_OR_RETURN(const std::vector<Output> x, millrace::capi::MakeOutputs(xs, num_xs, "x"));
    MR_ASSIGN_OR_RETURN(const std::vector<Output> dy, Optional(dys, num_ys, "dy"));
    millrace::GradientOptions options;
    MR_ASSIGN_OR_RETURN(options.stop_gradients, millrace::capi::MakeOutputs(stops, num_stops, "stop"));
    options.colocate = colocate != 0;
    options.aggregate_with_accumulate = accumulate != 0;
    millrace::GraphMutex& mu = graph->shared->mu;
    {
      absl::MutexLock lock(&Clients().mu);
      for (const auto& [name, entry] : Clients().functions) {
        options.custom[name] = [&mu, entry = entry](GradContext& c) {
          return CallClient(entry.first, entry.second, mu, c);
        };
      }
    }
    const millrace::GraphLock lock(&mu);
    const millrace::capi::ScopedClaim claim(&mu);
    MR_ASSIGN_OR_RETURN(const GraphBuilder b, BuilderIn(&graph->shared->graph, scope));
    MR_ASSIGN_OR_RETURN(const std::vector<Gradient> result, millrace::AddGradients(b, y, x, dy, options));
    for (size_t i = 0; i < result.size(); ++i) dxs[i] = GradientToC(result[i]);
    return absl::OkStatus();
  });
}

void MR_RegisterGradient(const char* name, MR_GradientFn function, void* context, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(name);
    absl::MutexLock lock(&Clients().mu);
    if (function == nullptr) {
      Clients().functions.erase(name);
    } else if (!Clients().functions.emplace(name, std::make_pair(function, context)).second) {
      return millrace::AlreadyExists("a gradient is registered under the name '", name, "' already");
    } else {
      millrace::capi::UndoIfLoadingFails([key = std::string(name)] {
        MR_RegisterGradient(key.c_str(), nullptr, nullptr, nullptr);
      });
    }
    return absl::OkStatus();
  });
}

MR_Optimizer* MR_OptimizerNew(TF_Graph* graph, const char* rule, const char* name, TF_Status* status) {
  return GuardedOr<MR_Optimizer*>(status, nullptr, [&]() -> StatusOr<MR_Optimizer*> {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(rule);
    const millrace::OptimizerDef* def = millrace::FindOptimizer(rule);
    if (def == nullptr) return millrace::NotFound("there is no optimizer '", rule, "'");
    auto optimizer = std::make_unique<MR_Optimizer>();
    optimizer->shared = graph->shared;
    optimizer->rule = def;
    optimizer->name = name ? name : def->name;
    return optimizer.release();
  });
}

void MR_OptimizerDelete(MR_Optimizer* optimizer) { delete optimizer; }

void MR_OptimizerSetSlotValue(MR_Optimizer* optimizer, int slot, double value, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(optimizer);
    const auto& slots = optimizer->rule->slots;
    if (slot < 0 || static_cast<size_t>(slot) >= slots.size()) {
      return InvalidArgument("optimizer ", optimizer->rule->name, " has no slot ", slot);
    }
    optimizer->slot_values[slots[static_cast<size_t>(slot)].first] = value;
    return absl::OkStatus();
  });
}

TF_Operation* MR_OptimizerApply(
    MR_Optimizer* optimizer, const MR_Scope* scope, const char* name, const char* const* hyper_names,
    const TF_Output* hyper_values, int num_hyper, unsigned char use_nesterov, unsigned char use_locking,
    const TF_Output* vars, const MR_Gradient* gradients, int num_vars, TF_Output global_step, TF_Status* status) {
  return GuardedOr<TF_Operation*>(status, nullptr, [&]() -> StatusOr<TF_Operation*> {
    MR_CAPI_REQUIRE(optimizer);
    MR_CAPI_REQUIRE(name);
    millrace::UpdateRequest request;
    request.optimizer = optimizer->rule;
    request.state = &optimizer->state;
    request.slot_values = optimizer->slot_values;
    request.slot_name = optimizer->name;
    if (scope && scope->slot_scope) request.slot_scope = scope->slot_scope;
    request.name = name;
    request.use_nesterov = use_nesterov != 0;
    request.use_locking = use_locking != 0;
    MR_RETURN_IF_ERROR(CheckArray(hyper_names, num_hyper, "hyper_names"));
    MR_RETURN_IF_ERROR(CheckArray(hyper_values, num_hyper, "hyper_values"));
    for (int i = 0; i < num_hyper; ++i) {
      MR_CAPI_REQUIRE(hyper_names[i]);
      MR_RETURN_IF_ERROR(CheckOutput(hyper_values[i], "hyper_values", i));
      request.hyper[hyper_names[i]] = AsOutput(hyper_values[i]);
    }
    MR_RETURN_IF_ERROR(CheckArray(vars, num_vars, "vars"));
    MR_RETURN_IF_ERROR(CheckArray(gradients, num_vars, "gradients"));
    std::vector<std::pair<Output, Gradient>> list;
    for (int i = 0; i < num_vars; ++i) {
      MR_RETURN_IF_ERROR(CheckOutput(vars[i], "vars", i));
      MR_ASSIGN_OR_RETURN(Gradient g, GradientFromC(gradients[i], i));
      list.emplace_back(AsOutput(vars[i]), std::move(g));
    }
    if (global_step.oper != nullptr) {
      MR_RETURN_IF_ERROR(CheckOutput(global_step, "global_step", -1));
      request.global_step = AsOutput(global_step);
    }
    millrace::GraphLock lock(&optimizer->shared->mu);
    MR_ASSIGN_OR_RETURN(const GraphBuilder b, BuilderIn(&optimizer->shared->graph, scope));
    MR_ASSIGN_OR_RETURN(Node * all, millrace::ApplyGradients(b, request, list));
    return AsOperation(all);
  });
}

TF_Output MR_OptimizerSlot(const MR_Optimizer* optimizer, TF_Output var, int slot) {
  if (optimizer == nullptr || !IsOutput(var)) return kNoOutput;
  const auto& slots = optimizer->rule->slots;
  if (slot < 0 || static_cast<size_t>(slot) >= slots.size()) return kNoOutput;
  const auto found =
      optimizer->state.find(absl::StrCat(AsNode(var.oper)->name(), "/", slots[static_cast<size_t>(slot)].first));
  return found == optimizer->state.end() ? kNoOutput : AsTfOutput(found->second);
}
