// SPDX-License-Identifier: Apache-2.0
// Building and training models: variables, layers, optimizers. The arithmetic stands in composites and update ops of the
// core; this header only names what they make.
#pragma once

#include <cmath>

#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

struct Variable {
  Output ref;   // for assignments and optimizers
  Output read;  // for computation
};

struct Optimizer {
  std::string name = "GradientDescent";      // see MR_Minimize
  std::map<std::string, double> hyper = {};  // e.g. {{"learning_rate", 0.1}}; absent ones have TensorFlow's defaults
  Output learning_rate = {};                 // a computed rate (a decay) instead of a number
  float clip_global_norm = 0;                // > 0: clips
};

// Collects the variables of a model as its layers are stated. Layers add their variables below "<scope>/<name>/".
class Model {
 public:
  explicit Model(Scope scope, int64_t seed = 1) : scope_(std::move(scope)), seed_(seed) {}
  Scope& scope() { return scope_; }
  const std::vector<Variable>& trainable() const { return trainable_; }

  // A variable that starts at `initial`, whose shape must be known.
  Variable AddVariable(const std::string& name, Output initial, bool trainable = true) {
    TF_Output ref{nullptr, 0}, read{nullptr, 0};
    internal::CallStatus status;
    MR_AddVariable(scope_.graph().get(), (scope_.prefix() + name).c_str(), initial.get(), &ref, &read, status);
    Note(status.Get());
    Variable v{Output(ref), Output(read)};
    if (trainable) trainable_.push_back(v);
    return v;
  }
  // Variables made elsewhere, to be trained with this model.
  void Adopt(const std::vector<Variable>& variables) {
    trainable_.insert(trainable_.end(), variables.begin(), variables.end());
  }
  int64_t seed() const { return seed_; }
  // Keeps the first error of what was built (or throws it).
  void Note(const Status& s) {
    if (s.ok()) return;
#if MILLRACE_EXCEPTIONS
    throw Error(s);
#else
    if (scope_.graph().state_->status.ok()) scope_.graph().state_->status = s;
#endif
  }
  // The counter that an optimizer increments.
  Variable GlobalStep() {
    return AddVariable("global_step", scope_.WithName("global_step/initial").Const(Tensor(int64_t{0})), false);
  }

  // activation(x @ kernel + bias); x [batch, inputs].
  Output Dense(const std::string& name, Output x, int64_t inputs, int64_t units, const char* activation = "None") {
    const Variable kernel = Weights(name + "/kernel", {inputs, units});
    const Variable bias = AddVariable(name + "/bias", Zeros(name, units));
    return First(scope_.WithName(name).Composite("Dense", {x, kernel.read, bias.read}, {{"activation", activation}}));
  }
  // activation(conv(x, filter) + bias), stride 1, padding SAME; x [batch, height, width, channels].
  Output Conv2D(const std::string& name, Output x, int64_t channels, int64_t filters, int64_t size,
                const char* activation = "Relu") {
    const Variable filter = Weights(name + "/filter", {size, size, channels, filters});
    const Variable bias = AddVariable(name + "/bias", Zeros(name, filters));
    return First(
        scope_.WithName(name).Composite("Conv2DLayer", {x, filter.read, bias.read}, {{"activation", activation}}));
  }

  // One training step on `loss`; counts in `global_step` when it is given.
  Operation Minimize(const Optimizer& optimizer, Output loss, const Variable& global_step = {}) {
    std::vector<const char*> names;
    std::vector<TF_Output> values, vars;
    for (const auto& [name, value] : optimizer.hyper) {
      names.push_back(name.c_str());
      values.push_back(scope_.WithName(name).Const(Tensor(static_cast<float>(value))).get());
    }
    if (optimizer.learning_rate) {
      names.push_back("learning_rate");
      values.push_back(optimizer.learning_rate.get());
    }
    for (const Variable& v : trainable_) vars.push_back(v.ref.get());
    internal::CallStatus status;
    TF_Operation* train = MR_Minimize(scope_.graph().get(), optimizer.name.c_str(), "train", names.data(), values.data(),
                                      static_cast<int>(names.size()), loss.get(), vars.data(),
                                      static_cast<int>(vars.size()), global_step.ref.get(), optimizer.clip_global_norm,
                                      status);
    Note(status.Get());
    return Operation(train);
  }

  // Gives every variable of the graph its first value, those of optimizers too: state it last.
  Operation Initializer() {
    internal::CallStatus status;
    TF_Operation* init = MR_AddInitializer(scope_.graph().get(), "init", status);
    Note(status.Get());
    return Operation(init);
  }

 private:
  static Output First(const std::vector<Output>& all) { return all.empty() ? Output() : all[0]; }
  // Glorot-uniform weights, from a seed of their own.
  Variable Weights(const std::string& name, Shape shape) {
    return AddVariable(name, First(scope_.WithName(name + "/initial").Composite("VarianceScaling", {},
                                   {{"shape", Attr::OfShape(shape)}, {"dtype", DType::kFloat}, {"mode", "fan_avg"},
                                    {"distribution", "uniform"}, {"seed", seed_}, {"seed2", ++weights_}})));
  }
  Output Zeros(const std::string& name, int64_t n) {
    return scope_.WithName(name + "/zeros").Const(Tensor::Of({n}, std::vector<float>(static_cast<size_t>(n), 0.0f)));
  }

  Scope scope_;
  int64_t seed_;
  int64_t weights_ = 0;
  std::vector<Variable> trainable_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
