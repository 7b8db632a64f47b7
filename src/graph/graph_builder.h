// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: how C++ code states ops. Copies share one status: after the first error every call returns a null
// Output and changes nothing, so a function builds without a test per line and returns b.status() at the end.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace millrace {

// One argument of an op: a value, or a list of values.
struct Arg {
  Arg(Output o) : values{o} {}                                               // NOLINT: call sites read like mathematics
  Arg(std::vector<Output> list) : values(std::move(list)), is_list(true) {}  // NOLINT
  std::vector<Output> values;
  bool is_list = false;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph* graph);

  // Changed copies.
  GraphBuilder Scope(absl::string_view name) const;       // names below "<current>/<name>", made unique
  GraphBuilder ScopeExact(absl::string_view name) const;  // joins the scope as it is
  GraphBuilder WithName(absl::string_view name) const;    // the next op's name (else the op type)
  GraphBuilder WithDevice(absl::string_view device) const;
  GraphBuilder WithControl(std::vector<Node*> nodes) const;  // in addition to those in force
  GraphBuilder WithoutControl() const;
  GraphBuilder ColocateWith(Node* node) const;
  GraphBuilder ColocateWithNodeToCome(absl::string_view name) const;  // its full name
  GraphBuilder InGroups(std::vector<std::string> groups) const;       // of colocation: "loc:@name"
  GraphBuilder At(absl::string_view file_line) const;

  // Builds one node. Op returns its output 0, OpNode the node (for several outputs).
  Output Op(absl::string_view op, std::initializer_list<Arg> inputs,
            std::initializer_list<std::pair<const char*, AttrValue>> attrs = {}) const;
  Node* OpNode(absl::string_view op, std::initializer_list<Arg> inputs,
               std::initializer_list<std::pair<const char*, AttrValue>> attrs = {}) const;
  Node* OpNode(absl::string_view op, std::vector<Arg> inputs, AttrMap attrs) const;

  Output Const(Tensor value) const;
  template <typename T>
  Output Scalar(T v) const {
    return Const(Tensor::Scalar<T>(v));
  }
  template <typename T>
  Output Vector(std::initializer_list<T> v) const {
    return Const(Tensor::Vector<T>(v));
  }
  // `v` converted to dtype (numeric and bool types; InvalidArgument otherwise). Complex gets v + 0i.
  Output ScalarOf(DType dtype, double v) const;

  // The ops that gradients and composites use all the time. Arithmetic broadcasts.
  Output Add(Output a, Output b) const { return Op("AddV2", {a, b}); }
  Output Sub(Output a, Output b) const { return Op("Sub", {a, b}); }
  Output Mul(Output a, Output b) const { return Op("Mul", {a, b}); }
  Output Div(Output a, Output b) const { return Op("RealDiv", {a, b}); }
  Output Neg(Output a) const { return Op("Neg", {a}); }
  Output Conj(Output a) const;  // the input itself for real types
  Output Shape(Output a, DType out = DType::kInt32) const { return Op("Shape", {a}, {{"out_type", out}}); }
  Output Reshape(Output a, Output shape) const { return Op("Reshape", {a, shape}); }
  Output Cast(Output a, DType to) const;  // the input itself when it has that type already
  Output Sum(Output a, Output axes, bool keep_dims = false) const {
    return Op("Sum", {a, axes}, {{"keep_dims", keep_dims}});
  }
  Output ZerosLike(Output a) const { return Op("ZerosLike", {a}); }
  Output OnesLike(Output a) const { return Op("OnesLike", {a}); }
  Output Identity(Output a) const { return Op("Identity", {a}); }
  Output MatMul(Output a, Output b, bool ta = false, bool tb = false) const {
    return Op("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
  }

  Graph& graph() const { return *graph_; }
  const Status& status() const;
  void Fail(Status s) const;  // keeps the first error
  const std::string& scope() const { return scope_; }

 private:
  struct Shared;
  Graph* graph_;
  std::shared_ptr<Shared> shared_;
  std::string scope_, name_, device_, location_;
  std::vector<Node*> control_;
  std::vector<std::string> colocate_;
};

}  // namespace millrace
