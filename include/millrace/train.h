// SPDX-License-Identifier: Apache-2.0
// Building and training models: variables, layers, optimizers. The arithmetic stands in composites and update ops of
// the core; this header only names what they make.
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

// Collects the variables of a model as its layers are stated. Layers add their variables below "<scope>/<name>/". Names
// and order of what is added are those of the Python client, so that one model gives one graph in both.
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
    return AddVariable(
        "global_step", scope_.WithName("global_step/Initializer/zeros").Const(Tensor(int64_t{0})), false);
  }

  // activation(x @ kernel + bias); x [batch, inputs].
  Output Dense(const std::string& name, Output x, int64_t inputs, int64_t units, const char* activation = "None") {
    const Variable kernel = Weights(name + "/kernel", {inputs, units});
    const Variable bias = AddVariable(name + "/bias", Filled(name + "/bias/Initializer/zeros", units, 0));
    return First(scope_.WithName(name).Composite("Dense", {x, kernel.read, bias.read}, {{"activation", activation}}));
  }
  // activation(conv(x, filter) + bias), stride 1, padding SAME; x [batch, height, width, channels].
  Output Conv2D(const std::string& name, Output x, int64_t channels, int64_t filters, int64_t size,
                const char* activation = "Relu") {
    const Variable filter = Weights(name + "/kernel", {size, size, channels, filters});
    const Variable bias = AddVariable(name + "/bias", Filled(name + "/bias/Initializer/zeros", filters, 0));
    return First(
        scope_.WithName(name).Composite("Conv2DLayer", {x, filter.read, bias.read}, {{"activation", activation}}));
  }

  // scale (x - mean) / sqrt(variance + epsilon) + offset by the statistics of each channel in the batch; x [batch,
  // height, width, channels]. Running updates() keeps moving averages of them, for inference.
  Output BatchNorm(const std::string& name, Output x, int64_t channels, double momentum = 0.99,
                   float epsilon = 0.001f) {
    const Variable gamma = AddVariable(name + "/gamma", Filled(name + "/gamma/Initializer/ones", channels, 1));
    const Variable beta = AddVariable(name + "/beta", Filled(name + "/beta/Initializer/zeros", channels, 0));
    const Variable mean =
        AddVariable(name + "/moving_mean", Filled(name + "/moving_mean/Initializer/zeros", channels, 0), false);
    const Variable variance =
        AddVariable(name + "/moving_variance", Filled(name + "/moving_variance/Initializer/ones", channels, 1), false);
    Scope inside = scope_.SubScope(name);
    const Output none = inside.Const(Tensor::Of<float>({0}, {})),
                 no_variance = inside.Const(Tensor::Of<float>({0}, {}));
    const Operation normal =
        inside.Op("FusedBatchNorm", {x, gamma.read, beta.read, none, no_variance}, {{"epsilon", epsilon}});
    Average(inside, mean, normal[1], static_cast<float>(1 - momentum));
    Average(inside, variance, normal[2], static_cast<float>(1 - momentum));
    return normal[0];
  }
  // What training has to run besides Minimize's operation: the moving averages of BatchNorm.
  const std::vector<Operation>& updates() const { return updates_; }

  // One training step on `loss`; counts in `global_step` when it is given.
  Operation Minimize(const Optimizer& optimizer, Output loss, const Variable& global_step = {}) {
    return ApplyGradients(optimizer, Gradients(loss, optimizer.clip_global_norm), global_step);
  }

  // Gives every variable of the graph its first value, those of optimizers too: state it last.
  Operation Initializer() {
    internal::CallStatus status;
    TF_Operation* init = MR_AddInitializer(scope_.graph().get(), "init", status);
    Note(status.Get());
    return Operation(init);
  }

 private:
  // Of the trainable variables. clip > 0: dense ones are scaled down to that common norm.
  std::vector<MR_Gradient> Gradients(Output loss, float clip) {
    std::vector<TF_Output> refs;
    for (const Variable& v : trainable_) refs.push_back(v.ref.get());
    std::vector<MR_Gradient> gradients(refs.size());
    const std::string where = WithoutSlash(scope_.SubScope("gradients").prefix());
    const MR_Scope scope = {where.c_str(), nullptr, nullptr, nullptr, 0};
    const TF_Output y = loss.get();
    internal::CallStatus status;
    MR_AddGradients(scope_.graph().get(), &scope, &y, 1, refs.data(), static_cast<int>(refs.size()), nullptr, nullptr,
                    0, false, false, gradients.data(), status);
    Note(status.Get());
    if (!(clip > 0) || !status.Get().ok()) return gradients;
    std::vector<Output> dense;
    for (const MR_Gradient& g : gradients) {
      if (g.dense.oper) dense.push_back(Output(g.dense));
    }
    if (dense.empty()) return gradients;
    const std::vector<Output> clipped = scope_.Composite("ClipByGlobalNorm", {dense, clip});
    size_t next = 0;
    for (MR_Gradient& g : gradients) {
      if (g.dense.oper && next < clipped.size()) g.dense = clipped[next++].get();
    }
    return gradients;
  }

  Operation ApplyGradients(const Optimizer& optimizer, const std::vector<MR_Gradient>& gradients,
                           const Variable& global_step) {
    Scope inside = scope_.SubScope(optimizer.name);
    std::vector<const char*> names;
    std::vector<TF_Output> values, refs;
    const auto give = [&](const char* name, Output value) {
      names.push_back(name);
      values.push_back(value.get());
    };
    const auto constant = [&](const std::string& name, double value) {
      give(name.c_str(), inside.WithName(name).Const(Tensor(static_cast<float>(value))));
    };
    const auto rate = optimizer.hyper.find("learning_rate");
    if (optimizer.learning_rate) {
      give("learning_rate", optimizer.learning_rate);
    } else if (rate != optimizer.hyper.end()) {
      constant(rate->first, rate->second);
    }
    for (const auto& [name, value] : optimizer.hyper) {
      if (name != "learning_rate") constant(name, value);
    }
    for (const Variable& v : trainable_) refs.push_back(v.ref.get());
    const std::string outer = WithoutSlash(scope_.prefix());
    const std::string name = WithoutSlash(inside.prefix().substr(scope_.prefix().size()));
    const MR_Scope scope = {outer.c_str(), nullptr, nullptr, nullptr, 0};
    internal::CallStatus status;
    const std::unique_ptr<MR_Optimizer, void (*)(MR_Optimizer*)> rule(
        MR_OptimizerNew(scope_.graph().get(), optimizer.name.c_str(), optimizer.name.c_str(), status),
        MR_OptimizerDelete);
    TF_Operation* train = nullptr;
    if (rule) {
      train = MR_OptimizerApply(
          rule.get(), &scope, name.c_str(), names.data(), values.data(), static_cast<int>(names.size()), false, false,
          refs.data(), gradients.data(), static_cast<int>(refs.size()), global_step.ref.get(), status);
    }
    Note(status.Get());
    return Operation(train);
  }

  static std::string WithoutSlash(const std::string& prefix) {
    return prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
  }
  static Output First(const std::vector<Output>& all) { return all.empty() ? Output() : all[0]; }
  // Glorot-uniform weights, from a seed of their own.
  Variable Weights(const std::string& name, Shape shape) {
    return AddVariable(
        name,
        First(scope_.WithName(name + "/Initializer/")
                  .Composite("VarianceScaling", {},
                             {{"shape", Attr::OfShape(shape)},
                              {"dtype", DType::kFloat},
                              {"mode", "fan_avg"},
                              {"distribution", "uniform"},
                              {"seed", seed_},
                              {"seed2", ++weights_}})));
  }
  void Average(Scope& layer, const Variable& average, Output value, float rate) {
    Scope s = layer.SubScope("AssignMovingAvg");
    const Output step = s.Const(Tensor(rate));
    const Output change = s.WithName("mul").Op("Mul", {s.WithName("sub").Op("Sub", {average.read, value}), step});
    updates_.push_back(s.Op("AssignSub", {average.ref, change}));
  }
  Output Filled(const std::string& name, int64_t n, float value) {
    return scope_.WithName(name).Const(Tensor::Of({n}, std::vector<float>(static_cast<size_t>(n), value)));
  }

  Scope scope_;
  int64_t seed_;
  int64_t weights_ = 0;
  std::vector<Variable> trainable_;
  std::vector<Operation> updates_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
