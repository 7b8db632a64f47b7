// SPDX-License-Identifier: Apache-2.0
// Replicas that train one model over a cluster: where its operations lie, and gradients that become one before they are
// applied (O4.4 of TensorFlow's paper: with backups, the first replicas_to_aggregate of total_replicas count).
//
//   millrace::SyncReplicas sync(model, {"GradientDescent"}, model.ComputeGradients(loss), step,
//                               {.replicas_to_aggregate = 3, .total_replicas = 4, .worker = "/job:worker/task:1"});
//   const millrace::Operation init = model.Initializer();
//   millrace::PlaceReplica(graph, {.parameter_servers = 2, .worker = "/job:worker/task:1"});
//   if (is_chief) session.RunTargets({init}), sync.Begin(session), sync.StartChief(own_session, coordinator);
//   else sync.Join(session);
//   for (;;) session.RunTargets({sync.train()}, batch);
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "millrace/coordinator.h"
#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Where a replica's state and the rest of it lie.
// Of a variable or table, the number of the parameter servers' task where it goes.
using TaskOfState = std::function<int(const Operation&)>;

struct ReplicaDevices {
  int parameter_servers = 1;  // tasks of the job below
  // Of the variables.
  std::string job = "/job:ps";
  std::string worker = "/job:worker";  // of all that holds no state
  TaskOfState task_of = nullptr;       // none: in turn, in the order of their making; or LeastBytes(tasks)
};
namespace internal {
// The name of the operation that this one lies with; "": none.
inline std::string ColocatedWith(const Operation& op) {
  CallStatus status;
  const TF_AttrMetadata m = Api().OperationGetAttrMetadata(op.get(), "_class", status);
  if (!status.ok() || m.list_size < 1) return "";
  const auto count = static_cast<size_t>(m.list_size);
  std::vector<void*> values(count);
  std::vector<size_t> lengths(count);
  std::string storage(static_cast<size_t>(m.total_size), '\0');
  Api().OperationGetAttrStringList(op.get(), "_class", values.data(), lengths.data(), static_cast<int>(m.list_size),
                                   storage.data(), storage.size(), status);
  if (!status.ok()) return "";
  const std::string first(static_cast<const char*>(values[0]), lengths[0]);
  return first.rfind("loc:@", 0) == 0 ? first.substr(5) : "";
}
// Of a variable; 1 where its shape is not known.
inline int64_t BytesOfState(const Operation& op) {
  CallStatus status;
  const TF_AttrMetadata m = Api().OperationGetAttrMetadata(op.get(), "shape", status);
  if (!status.ok() || m.total_size < 0) return 1;
  std::vector<int64_t> dims(static_cast<size_t>(m.total_size));
  Api().OperationGetAttrShape(op.get(), "shape", dims.data(), static_cast<int>(m.total_size), status);
  TF_DataType dtype = TF_FLOAT;
  if (status.ok()) Api().OperationGetAttrType(op.get(), "dtype", &dtype, status);
  if (!status.ok()) return 1;
  auto bytes = static_cast<int64_t>(std::max<size_t>(Api().DataTypeSize(dtype), 1));
  for (const int64_t dim : dims) {
    if (dim < 0) return 1;
    bytes *= dim;
  }
  return std::max<int64_t>(bytes, 1);
}
}  // namespace internal

// The task that has the fewest bytes of variables yet, the first of several; those of unknown shape count as one byte.
// For one call of PlaceReplica: replicas that state the same graph place it alike.
inline TaskOfState LeastBytes(int parameter_servers) {
  std::vector<int64_t> loads(static_cast<size_t>(std::max(parameter_servers, 1)), 0);
  return [loads](const Operation& op) mutable {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += internal::BytesOfState(op);
    return static_cast<int>(least - loads.begin());
  };
}

// As tf.train.replica_device_setter, for a whole graph: variables and tables without a device go to the parameter
// servers' tasks as `task_of` says; what is colocated with something goes where that is; what works
// on a variable stays with it; all else without a device goes to the worker. State it last.
inline void PlaceReplica(const Graph& graph, const ReplicaDevices& devices) {
  static const char* const kState[] = {
      "Variable",
      "VariableV2",
      "VarHandleOp",
      "MutableHashTable",
      "MutableHashTableV2",
      "MutableHashTableOfTensors",
      "MutableHashTableOfTensorsV2",
      "MutableDenseHashTable",
      "MutableDenseHashTableV2"};
  int next = 0;
  std::vector<std::pair<Operation, std::string>> colocated;
  for (const Operation& op : graph.Operations()) {
    if (*Api().OperationDevice(op.get()) != '\0') continue;
    if (std::string with = internal::ColocatedWith(op); !with.empty()) {
      colocated.emplace_back(op, std::move(with));
      continue;
    }
    const std::string type = op.type();
    bool holds_state = false, uses_state = false;
    for (const char* const kind : kState) holds_state |= type == kind;
    for (int i = 0; i < Api().OperationNumInputs(op.get()); ++i) {
      const auto dtype = static_cast<int>(Api().OperationInputType({op.get(), i}));
      uses_state |= dtype > 100 || dtype == static_cast<int>(DType::kResource);
    }
    if (uses_state && !holds_state) continue;
    std::string device = devices.worker;
    if (holds_state && devices.parameter_servers > 0) {
      device = devices.job +
               "/task:" + std::to_string(devices.task_of ? devices.task_of(op) : next++ % devices.parameter_servers);
    }
    Api().SetRequestedDevice(graph.get(), op.get(), device.c_str());
  }
  for (const auto& [op, with] : colocated) {  // also in steps in which what they are colocated with has no part
    const Operation found = graph.Find(with);
    if (found) Api().SetRequestedDevice(graph.get(), op.get(), Api().OperationDevice(found.get()));
  }
}

// How many gradients make a step.
struct SyncReplicasOptions {
  int replicas_to_aggregate = 1;  // gradients of a step
  int total_replicas = 0;         // that train; 0: as many
  std::string worker = "";        // the device of this replica, which keeps the step that it is in; never another's
};

// Each replica adds its gradients to accumulators beside the variables. The chief's thread applies their mean once
// there are enough, and gives each replica a token with which it goes on; gradients of steps that are over are dropped.
class SyncReplicas {
 public:
  // Adds what it needs to the model's graph, before its Initializer. Names of what replicas share are those of
  // tf.train.SyncReplicasOptimizer. An error in what was built is the graph's.
  SyncReplicas(Model& model, const Optimizer& optimizer, const std::vector<Gradient>& gradients,
               const Variable& global_step, const SyncReplicasOptions& options) {
    const int count = options.replicas_to_aggregate;
    const int total = options.total_replicas == 0 ? count : options.total_replicas;
    if (count < 1 || total < 1 || !global_step.ref) {
      model.Note(Status(TF_INVALID_ARGUMENT, "SyncReplicas wants a global step, and at least one replica, got " +
                                                 std::to_string(count) + " of " + std::to_string(total)));
      return;
    }
    Scope s(model.scope().graph(), model.scope().prefix() + "sync_replicas");
    const DType dtype = global_step.read.dtype();
    const Output zero = s.Op("Cast", {0}, {{"DstT", dtype}});
    const LocalVariable step = AddLocalVariable(s.WithDevice(options.worker), "sync_rep_local_step", zero);
    if (!step.ref) return;
    Api().SetRequestedDevice(s.graph().get(), step.ref.get().oper, options.worker.c_str());
    const auto to_int64 = [](Scope at, Output x) {
      return x.dtype() == DType::kInt64 ? x : Output(at.Op("Cast", {x}, {{"DstT", DType::kInt64}}));
    };
    std::vector<Operation> adds, starts;
    std::vector<Gradient> means;
    for (const Gradient& g : gradients) {
      if (!g) continue;
      Scope here = s.ColocateWith(Operation(g.variable.ref.get().oper));
      const DType of = g.variable.read.dtype();
      Shape shape;
      if (!here.graph().ShapeOf(g.variable.ref, &shape)) {
        here.Note(Status(TF_INVALID_ARGUMENT, "SyncReplicas: the shape of '" + g.variable.name() + "' is not known"));
      }
      const Attrs made = {
          {"dtype", of}, {"shape", Attr::OfShape(shape)}, {"shared_name", g.variable.name() + "/grad_accum"}};
      Gradient mean;
      mean.variable = g.variable;
      Output sum;
      if (g.dense) {
        sum = here.Op("ConditionalAccumulator", {}, made);
        adds.push_back(here.Op("AccumulatorApplyGradient", {sum, to_int64(here, step.read), g.dense}));
        mean.dense = here.Op("AccumulatorTakeGradient", {sum, count}, {{"dtype", of}});
      } else {
        sum = here.Op("SparseConditionalAccumulator", {}, made);
        adds.push_back(here.Op(
            "SparseAccumulatorApplyGradient",
            {sum, to_int64(here, step.read), to_int64(here, g.indices), g.values, to_int64(here, g.dense_shape)},
            {{"has_known_shape", true}}));
        const Operation taken = here.Op("SparseAccumulatorTakeGradient", {sum, count}, {{"dtype", of}});
        if (!taken) return;
        mean.indices = taken[0];
        mean.values = taken[1];
        mean.dense_shape = taken[2];
      }
      starts.push_back(here.Op("AccumulatorSetGlobalStep", {sum, to_int64(here, global_step.read)}));
      means.push_back(mean);
    }
    if (means.empty()) model.Note(Status(TF_INVALID_ARGUMENT, "SyncReplicas: no variable has a gradient"));
    if (!s.status().ok()) return;
    const Operation update = model.ApplyGradients(optimizer, means, global_step);
    if (!update) return;
    const Scope beside = s.ColocateWith(Operation(global_step.ref.get().oper));
    const Operation tokens =
        Scope(beside)
            .WithName("sync_token_q")
            .Op("FIFOQueueV2", {},
                {{"component_types", std::vector<DType>{dtype}},
                 {"shapes", Attr::OfShapes({{}})},
                 {"shared_name", "sync_token_q"}});
    if (!tokens) return;
    const auto give = [&](Scope at, int n) {
      const Output now = at.Op("Identity", {global_step.ref});
      return at.Op("QueueEnqueueManyV2", {Output(tokens), Outputs{at.Op("Fill", {Tensor({n}), now})}});
    };
    const Operation token = beside.WithControl(adds).Op(
        "QueueDequeueV2", {Output(tokens)}, {{"component_types", std::vector<DType>{dtype}}});
    train_ = s.WithDevice(options.worker).WithName("train").Op("Assign", {step.ref, token});
    sync_ = give(beside.WithControl({update}), std::max(count, total));
    if (count > total) first_tokens_ = give(beside, count - total);
    join_ = s.WithDevice(options.worker).WithName("local_step_init").Op("Assign", {step.ref, global_step.read});
    starts.push_back(join_);
    begin_ = s.WithControl(starts).WithName("chief_init").Op("NoOp", {});
  }

  // What a replica runs in each step: it returns when the step's gradients were applied.
  const Operation& train() const { return train_; }
  // Of the chief, once its variables have values: accumulators know the step, and there are the first tokens.
  Done Begin(const Session& session) const {
    Status s = Run(session, begin_);
    if (s.ok() && first_tokens_) s = Run(session, first_tokens_);
    return internal::Finish(s);
  }
  // Of the others: waits for the chief's variables, at most `patience`, then TF_DEADLINE_EXCEEDED.
  Done Join(const Session& session, std::chrono::milliseconds patience = std::chrono::minutes(10)) const {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const Status s = Run(session, join_);
      if (s.code() != TF_FAILED_PRECONDITION) return internal::Finish(s);
      if (std::chrono::steady_clock::now() >= end) {
        return internal::Finish(Status(TF_DEADLINE_EXCEEDED, "SyncReplicas: the chief has not begun: " + s.message()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // The chief's thread that applies gradients, until the coordinator stops; then it closes the session, since it waits
  // for gradients that may never come: give it one of its own, with the same target.
  void StartChief(const Session& session, Coordinator& coordinator) const {
    coordinator.OnStop([session] {
      internal::CallStatus unused;  // it may be closed already
      Api().CloseSession(session.get(), unused);
    });
    coordinator.Start([session, sync = sync_, &coordinator]() -> Status {
      Status s;
      while (s.ok() && !coordinator.ShouldStop()) s = Run(session, sync);
      return coordinator.ShouldStop() ? Status() : s;
    });
  }

 private:
  static Status Run(const Session& session, const Operation& op) {
    std::vector<Tensor> none;
    return session.TryRun({}, {}, {op}, &none);
  }

  Operation train_, sync_, first_tokens_, begin_, join_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
