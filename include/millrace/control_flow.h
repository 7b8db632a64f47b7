// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops. What is inside is stated by functions, mostly lambdas, which build on the scope that they
// get:
//
//   std::vector<Output> r = WhileLoop(scope, {scope.Const(0), x},
//       [&](Scope s, const std::vector<Output>& v) { return s.Op("Less", {v[0], 10}); },
//       [&](Scope s, const std::vector<Output>& v) {
//         return std::vector<Output>{s.Op("AddV2", {v[0], 1}), s.Op("Mul", {v[1], w})};   // w is from outside
//       });
//
// They may read any tensor of the graph, and contain gradients, layers, further conditionals and loops. An error leaves
// the graph as it was before; what was made inside is gone then, also handles to it. Without exceptions all results are
// null after an error, which the graph's status tells.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <optional>
#include <type_traits>

#include "millrace/graph.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Tensors of a graph, in order.
using Outputs = std::vector<Output>;

// A function that builds a part of a graph: of a Scope, or a Scope and the part's inputs, to an Output, an Outputs or
// an Operation. An operation without outputs, as a branch's result, stands for "it has run".
class Part {
 public:
  template <typename Fn, typename = std::enable_if_t<!std::is_same_v<std::decay_t<Fn>, Part>>>
  Part(Fn fn)  // NOLINT: call sites read like the function
      : fn_([fn = std::move(fn)](const Scope& scope, const Outputs& inputs) {
          if constexpr (std::is_invocable_v<Fn, Scope, const Outputs&>) {
            return List(fn(scope, inputs));
          } else {
            return List(fn(scope));
          }
        }) {}
  // Builds it.
  Outputs operator()(const Scope& scope, const Outputs& inputs) const { return fn_(scope, inputs); }

 private:
  static Outputs List(Outputs list) { return list; }
  static Outputs List(Output o) { return {o}; }
  static Outputs List(Operation op) { return {op && op.num_outputs() > 0 ? op[0] : Output(op.get(), -1)}; }

  std::function<Outputs(const Scope&, const Outputs&)> fn_;
};

// How a loop runs.
struct LoopOptions {
  int parallel_iterations = 10;  // how many iterations may be under way at once
  bool back_prop = true;         // whether gradients flow through
  bool swap_memory = false;      // what the gradient needs of each iteration may go to the host's memory
  bool reverse = false;          // Scan: from the last element to the first
  // An int32 scalar: no more iterations than so many; null: no limit.
  Output maximum_iterations = {};
  // WhileLoop: what is to be known of the shape of each variable in every iteration (-1: a dimension that may vary);
  // empty, or nothing for one variable: the shape that it starts with.
  std::vector<std::optional<Shape>> shape_invariants = {};
};

namespace internal {

// One call of a function of c_api_control_flow.h, and the parts that it calls back.
class Flow {
 public:
  explicit Flow(const Scope& scope, const LoopOptions& loop = {}) : scope_(scope), results_(Api().NewOutputs()) {
    options_.struct_size = sizeof(options_);
    for (const Operation& op : scope.control_) control_.push_back(op.get());
    name_ = scope.name_;
    options_.device = scope.device_.c_str();
    options_.control_inputs = control_.data();
    options_.num_control_inputs = static_cast<int>(control_.size());
    options_.parallel_iterations = loop.parallel_iterations;
    options_.no_back_prop = loop.back_prop ? 0 : 1;
    options_.swap_memory = loop.swap_memory ? 1 : 0;
    options_.reverse = loop.reverse ? 1 : 0;
    options_.maximum_iterations = loop.maximum_iterations.get();
    if (loop.shape_invariants.empty()) return;
    for (const std::optional<Shape>& shape : loop.shape_invariants) {
      ranks_.push_back(shape ? static_cast<int>(shape->size()) : -2);
      dims_.push_back(shape ? shape->data() : nullptr);
    }
    options_.invariant_ranks = ranks_.data();
    options_.invariant_dims = dims_.data();
  }
  ~Flow() { Api().DeleteOutputs(results_); }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Runs call(graph, options, results, status) and returns the results.
  template <typename Call>
  Outputs Run(const char* name, Call&& call) {
    if (!scope_.status().ok()) return scope_.Fail(scope_.status()), Outputs();
    const std::string scoped = scope_.prefix_ + (name_.empty() ? name : name_);
    options_.name = scoped.c_str();
    CallStatus status;
    call(scope_.graph().get(), &options_, results_, static_cast<TF_Status*>(status));
    if (thrown_) std::rethrow_exception(thrown_);
    if (!status.ok()) return scope_.Fail(status.Get()), Outputs();
    Outputs list;
    for (int i = 0; i < Api().OutputsSize(results_); ++i) list.emplace_back(Api().OutputsGet(results_, i));
    return list;
  }

  // What a callback gets as its data.
  struct Callback {
    Flow* flow;
    const Part* part;
  };
  Callback* Data(const Part& part) { return &callbacks_.emplace_back(Callback{this, &part}); }

  static void Call(void* data, TF_Graph*, const char* scope, const TF_Output* inputs, int num_inputs,
                   MR_Outputs* results, TF_Status* status) {
    const Callback& callback = *static_cast<const Callback*>(data);
    Flow& flow = *callback.flow;
    try {
      Scope inside = flow.scope_;
      inside.prefix_ = scope;
      inside.name_.clear();
      inside.control_.clear();
      Outputs list;
      for (int i = 0; i < num_inputs; ++i) list.emplace_back(inputs[i]);
      for (const Output& o : (*callback.part)(inside, list)) Api().OutputsAppend(results, o.get());
    } catch (...) {
      flow.thrown_ = std::current_exception();
      Api().SetStatus(status, TF_ABORTED, "the function that builds a part threw an exception");
      return;
    }
    const Status& built = flow.scope_.status();
    if (!built.ok()) Api().SetStatus(status, built.code(), built.message().c_str());
  }

  static std::vector<TF_Output> Raw(const Outputs& list) { return Graph::Raw(list); }
  static std::vector<TF_Operation*> Raw(const std::vector<Operation>& list) {
    std::vector<TF_Operation*> raw;
    for (const Operation& op : list) raw.push_back(op.get());
    return raw;
  }

 private:
  Scope scope_;
  MR_Outputs* results_;
  MR_FlowOptions options_ = {};
  std::string name_;
  std::vector<TF_Operation*> control_;
  std::vector<int> ranks_;
  std::vector<const int64_t*> dims_;
  std::list<Callback> callbacks_;
  std::exception_ptr thrown_;
};

inline int Count(size_t n) { return static_cast<int>(n); }

}  // namespace internal

// The results of `if_true` where `predicate` is true, else those of `if_false`: as many, of the same types. Only the
// branch that is taken runs.
inline Outputs Cond(const Scope& scope, Output predicate, const Part& if_true, const Part& if_false) {
  internal::Flow flow(scope);
  return flow.Run("cond", [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    Api().Cond(g, o, predicate.get(), &internal::Flow::Call, flow.Data(if_true), &internal::Flow::Call,
               flow.Data(if_false), results, status);
  });
}

// A branch of Case.
struct CaseBranch {
  // A bool scalar.
  Output predicate;
  // What gives the results; of the same number and types in each branch.
  Part build;
};
// The results of the first branch whose predicate is true, else those of `otherwise`; without that one, a step in which
// no predicate is true fails. With `exclusive`, a step in which more than one is true fails.
inline Outputs Case(const Scope& scope, const std::vector<CaseBranch>& branches,
                    const std::optional<Part>& otherwise = {}, bool exclusive = false) {
  internal::Flow flow(scope);
  return flow.Run("case", [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    std::vector<TF_Output> predicates;
    std::vector<MR_BuildFn> calls(branches.size(), &internal::Flow::Call);
    std::vector<void*> data;
    for (const CaseBranch& branch : branches) {
      predicates.push_back(branch.predicate.get());
      data.push_back(flow.Data(branch.build));
    }
    Api().Case(g, o, predicates.data(), calls.data(), data.data(), internal::Count(branches.size()),
               otherwise ? &internal::Flow::Call : nullptr, otherwise ? flow.Data(*otherwise) : nullptr,
               exclusive ? 1 : 0, results, status);
  });
}

// Repeats `body`, which returns the variables' next values, while `condition`, one bool scalar, is true. Returns the
// last values.
inline Outputs WhileLoop(const Scope& scope, const Outputs& variables, const Part& condition, const Part& body,
                         const LoopOptions& options = {}) {
  internal::Flow flow(scope, options);
  return flow.Run("while", [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    const std::vector<TF_Output> raw = internal::Flow::Raw(variables);
    if (o->invariant_ranks != nullptr && options.shape_invariants.size() != raw.size()) {
      return Api().SetStatus(status, TF_INVALID_ARGUMENT, "there must be one shape invariant per loop variable");
    }
    Api().WhileLoop(g, o, raw.data(), internal::Count(raw.size()), &internal::Flow::Call, flow.Data(condition),
                    &internal::Flow::Call, flow.Data(body), results, status);
  });
}

// `fn` of each element along the first dimension of the tensors, its results (of these types; none given: those of the
// elements) stacked.
inline Outputs MapFn(const Scope& scope, const Outputs& elements, const Part& fn, const std::vector<DType>& dtypes = {},
                     const LoopOptions& options = {}) {
  internal::Flow flow(scope, options);
  return flow.Run("map", [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    const std::vector<TF_Output> raw = internal::Flow::Raw(elements);
    std::vector<TF_DataType> types;
    for (DType type : dtypes) types.push_back(static_cast<TF_DataType>(type));
    Api().MapFn(g, o, raw.data(), internal::Count(raw.size()), types.data(), internal::Count(types.size()),
                &internal::Flow::Call, flow.Data(fn), results, status);
  });
}

namespace internal {
using SweepFn = __typeof__(&MR_Scan);
inline Outputs Sweep(SweepFn sweep, const char* name, const Scope& scope, const Outputs& elements,
                     const Outputs& initial, const Part& fn, const LoopOptions& options) {
  Flow flow(scope, options);
  return flow.Run(name, [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    const std::vector<TF_Output> raw = Flow::Raw(elements), first = Flow::Raw(initial);
    sweep(g, o, raw.data(), Count(raw.size()), first.data(), Count(first.size()), &Flow::Call, flow.Data(fn), results,
          status);
  });
}
}  // namespace internal

// The last of the accumulators that `fn` makes of the accumulators and an element, from the first element to the last
// (FoldL) or the other way (FoldR). Without initial values it begins with the first element that it meets.
inline Outputs FoldL(const Scope& scope, const Outputs& elements, const Outputs& initial, const Part& fn,
                     const LoopOptions& options = {}) {
  return internal::Sweep(Api().FoldL, "foldl", scope, elements, initial, fn, options);
}
// From the last element to the first.
inline Outputs FoldR(const Scope& scope, const Outputs& elements, const Outputs& initial, const Part& fn,
                     const LoopOptions& options = {}) {
  return internal::Sweep(Api().FoldR, "foldr", scope, elements, initial, fn, options);
}
// All the accumulators, stacked.
inline Outputs Scan(const Scope& scope, const Outputs& elements, const Outputs& initial, const Part& fn,
                    const LoopOptions& options = {}) {
  return internal::Sweep(Api().Scan, "scan", scope, elements, initial, fn, options);
}

// The tensor, once these operations have run.
inline Output WithDependencies(const Scope& scope, const std::vector<Operation>& before, Output value) {
  return Output(scope.WithControl(before).Op("Identity", {value}));
}
// An operation that has run once all these have.
inline Operation Group(const Scope& scope, const std::vector<Operation>& operations) {
  return scope.WithControl(operations).Op("NoOp", {});
}
// The tensors, none of which is there before all of them are and the operations have run.
inline Outputs Tuple(const Scope& scope, const Outputs& values, const std::vector<Operation>& operations = {}) {
  internal::Flow flow(scope);
  return flow.Run("tuple", [&](TF_Graph* g, const MR_FlowOptions* o, MR_Outputs* results, TF_Status* status) {
    const std::vector<TF_Output> raw = internal::Flow::Raw(values);
    const std::vector<TF_Operation*> nodes = internal::Flow::Raw(operations);
    Api().Tuple(
        g, o, raw.data(), internal::Count(raw.size()), nodes.data(), internal::Count(nodes.size()), results, status);
  });
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
