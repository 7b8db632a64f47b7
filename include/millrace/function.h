// SPDX-License-Identifier: Apache-2.0
// Functions of a graph: stated once, called anywhere, with gradients.
//
//   auto square = millrace::Function::Define("Square", {{DType::kFloat}},
//       [](Scope s, const Outputs& x) { return s.Op("Mul", {x[0], x[0]}); });
//   square.AddTo(graph);
//   Output y = square.Call(scope, {x})[0];
#pragma once

#include "millrace/control_flow.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// What is known of a tensor: its type, and its shape where that is.
struct TensorSpec {
  // The type of its elements.
  DType dtype = DType::kFloat;
  // Nothing: not even the rank is known; -1: an unknown dimension.
  std::optional<Shape> shape = {};
};

namespace internal {

inline TensorSpec SpecOf(const Graph& graph, Output o) {
  TensorSpec spec;
  spec.dtype = static_cast<DType>(static_cast<int>(o.dtype()) % 100);  // that of a reference is 100 more
  Shape shape;
  if (graph.ShapeOf(o, &shape)) spec.shape = std::move(shape);
  return spec;
}
inline std::vector<DType> TypesOf(const std::vector<TensorSpec>& specs) {
  std::vector<DType> types;
  for (const TensorSpec& s : specs) types.push_back(s.dtype);
  return types;
}
inline Attr ShapesOf(const std::vector<TensorSpec>& specs) {
  std::vector<std::optional<Shape>> shapes;
  for (const TensorSpec& s : specs) shapes.push_back(s.shape);
  return Attr::OfPartialShapes(shapes);
}

}  // namespace internal

// Null after an error. Copies are the same function.
class Function {
 public:
  Function() = default;  // none
  // `body` states the results in a graph of its own, in which it gets arguments of these types. It may read nothing but
  // them: TF_INVALID_ARGUMENT. `name` must be unused in the graphs that get the function.
  static Returned<Function> Define(const std::string& name, const std::vector<TensorSpec>& arguments,
                                   const Part& body) {
    Function f;
    Graph graph;
    Scope scope(graph);
    Outputs inputs, outputs;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const TensorSpec& a = arguments[i];
      const Attr shape = a.shape ? Attr::OfShape(*a.shape) : Attr::UnknownShape();
      inputs.push_back(
          scope.WithName("arg" + std::to_string(i)).Op("Placeholder", {}, {{"dtype", a.dtype}, {"shape", shape}}));
    }
    if (graph.status().ok()) outputs = body(scope, inputs);
    if (!graph.status().ok()) return internal::Give(graph.status(), f);
    std::vector<TF_Output> in, out;
    for (const Output& o : inputs) in.push_back(o.get());
    for (const Output& o : outputs) {
      if (!o) return internal::Give(Status(TF_INVALID_ARGUMENT, "a result of function " + name + " is none"), f);
      out.push_back(o.get());
      f.results_.push_back(internal::SpecOf(graph, o));
    }
    internal::CallStatus status;
    TF_Function* made = Api().GraphToFunction(
        graph.get(), name.c_str(), 0, -1, nullptr, static_cast<int>(in.size()), in.data(), static_cast<int>(out.size()),
        out.data(), nullptr, nullptr, nullptr, status);
    if (made) f.function_ = {made, [](TF_Function* p) { Api().DeleteFunction(p); }};
    return internal::Give(status.Get(), std::move(f));
  }

  // The name by which graphs call it; empty for none.
  std::string name() const { return function_ ? Api().FunctionName(function_.get()) : ""; }
  // What is known of the results.
  const std::vector<TensorSpec>& results() const { return results_; }
  // A graph has to have a function before something calls it. `gradient`, where given, is called for the gradients:
  // with the arguments and what flows into each result, to one result for each argument; otherwise that of the body is
  // used.
  Done AddTo(Graph& graph, const Function& gradient = {}) const {
    internal::CallStatus status;
    Api().GraphCopyFunction(graph.get(), function_.get(), gradient.function_.get(), status);
    return internal::Finish(status.Get());
  }
  // The results for these arguments.
  Outputs Call(Scope scope, const Outputs& arguments, const SourceLocation& where = SourceLocation::current()) const {
    std::vector<Input> inputs(arguments.begin(), arguments.end());
    const Operation op = scope.Op(name().c_str(), inputs, {}, where);
    Outputs results;
    for (int i = 0; op && i < op.num_outputs(); ++i) results.push_back(op[i]);
    return results;
  }
  // Whether there is one.
  explicit operator bool() const { return function_ != nullptr; }

 private:
  std::shared_ptr<TF_Function> function_;
  std::vector<TensorSpec> results_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
