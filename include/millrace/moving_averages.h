// SPDX-License-Identifier: Apache-2.0
// Averages of variables over the steps.
//
//   millrace::ExponentialMovingAverage averages(0.999f);
//   auto update = averages.Apply(model, model.trainable(), {train});   // runs `train` first
//   millrace::Saver serving(graph, averages.VariablesToRestore(graph));
#pragma once

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// average = decay average + (1 - decay) value, from the value that a variable starts with. With `num_updates`, a
// number, the decay is at most (1 + n) / (10 + n).
class ExponentialMovingAverage {
 public:
  // decay is below 1, 0.999 for instance; `name` ends the averages' names.
  explicit ExponentialMovingAverage(float decay, Output num_updates = {}, std::string name = "ExponentialMovingAverage")
      : decay_(decay), num_updates_(num_updates), name_(std::move(name)) {}

  // An operation that updates the averages of these variables, of float types, when those operations have run. The
  // averages are variables of their own, "<variable>/<name>".
  Operation Apply(Model& model, const std::vector<Variable>& variables, const std::vector<Operation>& after = {}) {
    Graph& graph = model.scope().graph();
    std::vector<Operation> updates;
    Scope s = model.scope().SubScope(name_);
    Output decay = s.WithName("decay").Const(Tensor(decay_));
    if (num_updates_) {
      const Output n = s.Op("Cast", {num_updates_}, {{"DstT", DType::kFloat}});
      decay = s.Op("Minimum", {decay, s.Op("Div", {s.Op("Add", {n, 1.0f}), s.Op("Add", {n, 10.0f})})});
    }
    const Output rate = s.Op("Sub", {1.0f, decay});
    for (const Variable& v : variables) {
      if (!averages_.count(v.name())) averages_[v.name()] = Make(graph, v);
      const Variable& average = averages_[v.name()];
      // Both are read behind what comes first.
      const Output now = s.WithControl(after).Op("Identity", {v.ref});
      const Output step = s.Op("Mul", {s.Op("Sub", {average.read, now}), rate});
      updates.push_back(s.Op("AssignSub", {average.ref, step}));
    }
    return Group(s, updates);
  }
  // The average of a variable; null when there is none.
  Variable Average(const Variable& v) const {
    const auto found = averages_.find(v.name());
    return found == averages_.end() ? Variable() : found->second;
  }
  // The name under which savers write the average of a variable.
  std::string AverageName(const Variable& v) const { return v.name() + "/" + name_; }
  // For a Saver: the variables, each under the name of its average where it has one. Restoring by it from a checkpoint
  // of training gives the averages to a graph for evaluation, which has none.
  std::map<std::string, Variable> VariablesToRestore(const Graph& graph) const {
    std::map<std::string, Variable> named;
    const std::string suffix = "/" + name_;
    for (const Variable& v : GlobalVariables(graph)) {
      const std::string name = v.name();
      const bool is_average = name.size() > suffix.size() && name.ends_with(suffix);
      if (!is_average) named[averages_.count(name) ? AverageName(v) : name] = v;
    }
    return named;
  }

 private:
  Variable Make(Graph& graph, const Variable& v) {
    // From the value that the variable itself is given, not from what it has by then.
    const Operation assign = graph.Find(v.name() + "/Assign");
    Scope s(graph);
    if (!assign) {
      s.Note(Status(TF_INVALID_ARGUMENT, "variable " + v.name() + " has no first value of its own to average from"));
      return {};
    }
    TF_Output ref{nullptr, 0}, read{nullptr, 0};
    internal::CallStatus status;
    MR_AddVariable(graph.get(), AverageName(v).c_str(), Api().OperationInput({assign.get(), 1}), &ref, &read, status);
    s.Note(status.Get());
    return {Output(ref), Output(read)};
  }

  float decay_;
  Output num_updates_;
  std::string name_;
  std::map<std::string, Variable> averages_;  // by the variable's name
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
