// SPDX-License-Identifier: Apache-2.0
// Variables of a graph.
#pragma once

#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// State that outlives steps, by the two outputs that stand for it.
struct Variable {
  Output ref = {};   // for assignments and optimizers
  Output read = {};  // for computation

  // The name of its operation, under which savers write it.
  std::string name() const { return ref ? Operation(ref.get().oper).name() : std::string(); }
};

// The variable of this name, a null one when there is none.
inline Variable FindVariable(const Graph& graph, const std::string& name) {
  const Operation op = graph.Find(name);
  const std::string type = op.type();
  if (type != "VariableV2" && type != "Variable" && type != "VarHandleOp") return {};
  for (const char* const read : {"/read", "/Read/ReadVariableOp"}) {
    if (const Operation found = graph.Find(name + read)) return {op, found};
  }
  return {op, type == "VarHandleOp" ? Output() : Output(op)};
}

// A variable that savers and initializers of all variables leave out, such as the count of a metric: `Assign` of its
// initial value, whose shape must be known, is the caller's to run. Its name is "<scope>/<name>".
struct LocalVariable : Variable {
  // Assigns the initial value.
  Operation initializer;
};
// Adds one that starts at `initial`. TF_INVALID_ARGUMENT where that shape is not known.
inline LocalVariable AddLocalVariable(Scope scope, const std::string& name, Output initial) {
  LocalVariable v;
  Shape shape;
  if (initial && !scope.graph().ShapeOf(initial, &shape)) {
    scope.Note(Status(TF_INVALID_ARGUMENT, "the shape of the first value of variable " + name + " is not known"));
  }
  if (!initial) return v;
  const Operation op = scope.WithName(name).Op(
      "VariableV2", {}, {{"dtype", initial.dtype()}, {"shape", Attr::OfShape(shape)}, {"_local", true}});
  Scope inside(scope.graph(), op.name());
  v.ref = op;
  v.initializer = inside.WithName("Assign").Op("Assign", {op, initial});
  v.read = inside.WithName("read").Op("Identity", {op});
  return v;
}

namespace internal {
// A variable that starts at `initial`, whose shape must be known: "<scope>/<name>" on the scope's device, with what
// belongs to it.
inline Variable AddVariable(Scope& scope, const std::string& name, Output initial) {
  TF_Output ref{nullptr, 0}, read{nullptr, 0};
  CallStatus status;
  MR_AddVariable(scope.graph().get(), (scope.prefix() + name).c_str(), initial.get(), &ref, &read, status);
  scope.Note(status.Get());
  const Variable v{Output(ref), Output(read)};
  if (!v.ref || scope.device().empty()) return v;
  for (const Operation& op : {Operation(ref.oper), scope.graph().Find(v.name() + "/Assign"), Operation(read.oper)}) {
    Api().SetRequestedDevice(scope.graph().get(), op.get(), scope.device().c_str());
  }
  return v;
}
}  // namespace internal

// All variables of the graph but local ones, in the order of their making.
inline std::vector<Variable> GlobalVariables(const Graph& graph) {
  std::vector<Variable> all;
  for (const Operation& op : graph.Operations()) {
    internal::CallStatus status;
    unsigned char is_local = 0;
    Api().OperationGetAttrBool(op.get(), "_local", &is_local, status);
    if (is_local) continue;
    if (const Variable v = FindVariable(graph, op.name()); v.ref) all.push_back(v);
  }
  return all;
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
