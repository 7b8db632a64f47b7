// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops whose parts are stated by Python functions. The GIL is held throughout: the library calls back
// on the same thread.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <optional>

#include "core.h"
#include "millrace/c_api_control_flow.h"

namespace millrace::python {
namespace {

constexpr TF_Output kNone = {nullptr, -1};

// One Python function that builds a part, and what went wrong in any of them.
struct Part {
  nb::handle graph;
  nb::handle function;  // (list of Tensors) -> list of Tensors and Operations
  std::exception_ptr* failure;
};

// The state of the Python graph while a part is built: names below `scope`, and no control inputs from outside, which
// the library takes care of.
class Inside {
 public:
  Inside(Graph& graph, const char* scope) : graph_(graph), name_stack_(graph.name_stack) {
    graph_.name_stack = scope;
    if (!graph_.name_stack.empty() && graph_.name_stack.back() == '/') graph_.name_stack.pop_back();
    ControlScope clear;
    clear.clears = true;
    graph_.control.push_back(std::move(clear));
  }
  ~Inside() {
    graph_.control.pop_back();
    graph_.name_stack = name_stack_;
  }

 private:
  Graph& graph_;
  const std::string name_stack_;
};

void Build(void* data, TF_Graph*, const char* scope, const TF_Output* inputs, int num_inputs, MR_Outputs* results,
           TF_Status* status) {
  const auto& part = *static_cast<Part*>(data);
  try {
    Graph& graph = GraphOf(part.graph);
    graph.Sync(part.graph);
    const Inside inside(graph, scope);
    nb::list values;
    for (int i = 0; i < num_inputs; ++i) values.append(graph.WrapOutput(part.graph, inputs[i]));
    nb::object made = part.function(values);
    for (nb::handle value : made) {
      Api().OutputsAppend(
          results, IsOperation(value) ? TF_Output{nb::inst_ptr<Operation>(value)->oper, -1} : OutputOf(value));
    }
  } catch (const std::exception& error) {
    if (!*part.failure) *part.failure = std::current_exception();
    Api().SetStatus(status, TF_INVALID_ARGUMENT, error.what());
  }
}

// Options and results of one construct.
class Flow {
 public:
  Flow(nb::handle graph, const std::string& name, int parallel_iterations = 0, bool no_back_prop = false,
       bool swap_memory = false)
      : graph_(graph), name_(name), control_(GraphOf(graph).ControlInputs({})), device_(GraphOf(graph).device) {
    options_.struct_size = sizeof(options_);
    options_.name = name_.c_str();
    options_.device = device_.empty() ? nullptr : device_.c_str();
    options_.control_inputs = control_.data();
    options_.num_control_inputs = static_cast<int>(control_.size());
    options_.parallel_iterations = parallel_iterations;
    options_.no_back_prop = no_back_prop;
    options_.swap_memory = swap_memory;
    options_.maximum_iterations = kNone;
  }
  ~Flow() { Api().DeleteOutputs(results_); }
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  Part PartOf(nb::handle function) { return {graph_, function, &failure_}; }
  MR_FlowOptions& options() { return options_; }
  MR_Outputs* results() { return results_; }
  TF_Status* status() { return status_; }
  TF_Graph* graph() const { return GraphOf(graph_).get(); }

  nb::list Results() {
    Graph& graph = GraphOf(graph_);
    if (!status_.ok()) graph.Forget();
    graph.Sync(graph_);
    if (failure_) std::rethrow_exception(failure_);
    status_.RaiseBuildError();
    nb::list list;
    for (int i = 0; i < Api().OutputsSize(results_); ++i) {
      list.append(graph.WrapOutput(graph_, Api().OutputsGet(results_, i)));
    }
    return list;
  }

 private:
  nb::handle graph_;
  std::string name_;
  std::vector<TF_Operation*> control_;
  std::string device_;
  MR_FlowOptions options_{};
  MR_Outputs* results_ = Api().NewOutputs();
  CallStatus status_;
  std::exception_ptr failure_;
};

std::vector<TF_Output> OutputsOf(nb::handle list) {
  std::vector<TF_Output> outputs;
  for (nb::handle t : list) outputs.push_back(OutputOf(t));
  return outputs;
}

nb::list Cond(nb::handle graph, const std::string& name, nb::handle predicate, nb::handle if_true,
              nb::handle if_false) {
  Flow flow(graph, name);
  Part first = flow.PartOf(if_true), second = flow.PartOf(if_false);
  Api().Cond(flow.graph(), &flow.options(), OutputOf(predicate), &Build, &first, &Build, &second, flow.results(),
             flow.status());
  return flow.Results();
}

// invariants: None, or for each variable None (its shape), a list of sizes, or -1 (unknown rank).
nb::list WhileLoop(nb::handle graph, const std::string& name, nb::list variables, nb::handle condition, nb::handle body,
                   int parallel_iterations, bool no_back_prop, bool swap_memory, nb::handle maximum,
                   nb::handle invariants) {
  Flow flow(graph, name, parallel_iterations, no_back_prop, swap_memory);
  if (!maximum.is_none()) flow.options().maximum_iterations = OutputOf(maximum);
  const std::vector<TF_Output> inputs = OutputsOf(variables);
  std::vector<int> ranks;
  std::vector<std::vector<int64_t>> dims;
  std::vector<const int64_t*> pointers;
  if (!invariants.is_none()) {
    for (nb::handle shape : invariants) {
      std::vector<int64_t>& sizes = dims.emplace_back();
      if (shape.is_none()) {
        ranks.push_back(-2);
      } else if (nb::isinstance<nb::int_>(shape)) {
        ranks.push_back(-1);
      } else {
        sizes = nb::cast<std::vector<int64_t>>(shape);
        ranks.push_back(static_cast<int>(sizes.size()));
      }
    }
    if (ranks.size() != inputs.size()) {
      const std::string text = "while_loop has " + std::to_string(inputs.size()) + " loop variables, but " +
                               std::to_string(ranks.size()) + " shape invariants";
      throw nb::value_error(text.c_str());
    }
    for (const std::vector<int64_t>& sizes : dims) pointers.push_back(sizes.data());
    flow.options().invariant_ranks = ranks.data();
    flow.options().invariant_dims = pointers.data();
  }
  Part first = flow.PartOf(condition), second = flow.PartOf(body);
  Api().WhileLoop(flow.graph(), &flow.options(), inputs.data(), static_cast<int>(inputs.size()), &Build, &first, &Build,
                  &second, flow.results(), flow.status());
  return flow.Results();
}

nb::list MapFn(nb::handle graph, const std::string& name, nb::list elements, const std::vector<int>& dtypes,
               nb::handle function, int parallel_iterations, bool no_back_prop, bool swap_memory) {
  Flow flow(graph, name, parallel_iterations, no_back_prop, swap_memory);
  const std::vector<TF_Output> inputs = OutputsOf(elements);
  std::vector<TF_DataType> types;
  for (int t : dtypes) types.push_back(static_cast<TF_DataType>(t));
  Part part = flow.PartOf(function);
  Api().MapFn(flow.graph(), &flow.options(), inputs.data(), static_cast<int>(inputs.size()), types.data(),
              static_cast<int>(types.size()), &Build, &part, flow.results(), flow.status());
  return flow.Results();
}

// kind: "foldl", "foldr" or "scan".
nb::list Fold(nb::handle graph, const std::string& kind, const std::string& name, nb::list elements, nb::list initial,
              nb::handle function, int parallel_iterations, bool no_back_prop, bool swap_memory, bool reverse) {
  Flow flow(graph, name, parallel_iterations, no_back_prop, swap_memory);
  flow.options().reverse = reverse;
  const std::vector<TF_Output> inputs = OutputsOf(elements), first = OutputsOf(initial);
  Part part = flow.PartOf(function);
  const auto build = kind == "foldl" ? Api().FoldL : kind == "foldr" ? Api().FoldR : Api().Scan;
  build(flow.graph(), &flow.options(), inputs.data(), static_cast<int>(inputs.size()), first.data(),
        static_cast<int>(first.size()), &Build, &part, flow.results(), flow.status());
  return flow.Results();
}

// ---- functions ----

// A FunctionDef, released with the object.
class OwnFunction {
 public:
  explicit OwnFunction(TF_Function* function) : function_(function) {}
  ~OwnFunction() { Api().DeleteFunction(function_); }
  OwnFunction(const OwnFunction&) = delete;
  OwnFunction& operator=(const OwnFunction&) = delete;
  TF_Function* get() const { return function_; }

 private:
  TF_Function* const function_;
};

TF_Function* ImportFunction(nb::bytes def) {
  CallStatus status;
  TF_Function* f = Api().FunctionImportFunctionDef(def.data(), def.size(), status);
  status.RaiseBuildError();
  return f;
}

// `gradient` is a FunctionDef or None.
void AddFunction(nb::handle graph, nb::bytes def, nb::object gradient) {
  const OwnFunction f(ImportFunction(def));
  const OwnFunction df(gradient.is_none() ? nullptr : ImportFunction(nb::cast<nb::bytes>(gradient)));
  CallStatus status;
  Api().GraphCopyFunction(GraphOf(graph).get(), f.get(), df.get(), status);
  status.RaiseBuildError();
}

// The whole graph, or the operations of `body`, as a FunctionDef.
nb::bytes ToFunction(nb::handle graph, const std::string& name, nb::list inputs, nb::list outputs,
                     const std::vector<std::string>& output_names, std::optional<nb::list> body) {
  std::vector<TF_Output> in, out;
  std::vector<TF_Operation*> operations;
  if (body) {
    for (nb::handle o : *body) operations.push_back(nb::inst_ptr<Operation>(o)->oper);
  }
  for (nb::handle t : inputs) in.push_back(OutputOf(t));
  for (nb::handle t : outputs) out.push_back(OutputOf(t));
  std::vector<const char*> names;
  for (const std::string& n : output_names) names.push_back(n.c_str());
  CallStatus status;
  const OwnFunction f(Api().GraphToFunction(
      GraphOf(graph).get(), name.c_str(), 0, body ? static_cast<int>(operations.size()) : -1,
      operations.empty() ? nullptr : operations.data(), static_cast<int>(in.size()), in.data(),
      static_cast<int>(out.size()), out.data(), names.empty() ? nullptr : names.data(), nullptr, nullptr, status));
  status.RaiseBuildError();
  CallBuffer buffer;
  Api().FunctionToFunctionDef(f.get(), buffer, status);
  status.RaiseBuildError();
  return buffer.bytes();
}

}  // namespace

void DefineControlFlow(nb::module_& m) {
  m.def("cond", &Cond);
  m.def("while_loop", &WhileLoop, nb::arg("graph"), nb::arg("name"), nb::arg("variables"), nb::arg("condition"),
        nb::arg("body"), nb::arg("parallel_iterations"), nb::arg("no_back_prop"), nb::arg("swap_memory"),
        nb::arg("maximum").none(), nb::arg("invariants").none());
  m.def("map_fn", &MapFn);
  m.def("fold", &Fold);
  m.def("add_function", &AddFunction, nb::arg("graph"), nb::arg("function"), nb::arg("gradient").none() = nb::none());
  m.def("to_function", &ToFunction, nb::arg("graph"), nb::arg("name"), nb::arg("inputs"), nb::arg("outputs"),
        nb::arg("output_names"), nb::arg("body").none() = nb::none());
}

}  // namespace millrace::python
