// SPDX-License-Identifier: Apache-2.0
// Building and training models: variables, layers, optimizers. The arithmetic stands in composites and update ops of
// the core; this header only names what they make.
#pragma once

#include <cmath>

#include "millrace/control_flow.h"
#include "millrace/variable.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// How Model::Minimize changes variables.
struct Optimizer {
  std::string name = "GradientDescent";      // see MR_Minimize
  std::map<std::string, double> hyper = {};  // e.g. {{"learning_rate", 0.1}}; absent ones have TensorFlow's defaults
  Output learning_rate = {};                 // a computed rate (a decay) instead of a number
  float clip_global_norm = 0;                // > 0: clips
};

// The gradient of a variable: dense, of the variable's shape; or the rows `values` [n, ...] at `indices` [n] of it, as
// look-ups have; or none.
struct Gradient {
  // All null where the variable has no gradient.
  Output dense = {}, values = {}, indices = {}, dense_shape = {};
  // Whose gradient it is.
  Variable variable = {};
  // Whether there is one.
  explicit operator bool() const { return dense || values; }
};

// The gradient as one tensor of the variable's shape.
inline Output DenseGradient(Scope s, const Gradient& g) {
  if (g.dense || !g.values) return g.dense;
  const Output rows =
      s.Op("StridedSlice", {g.dense_shape, Tensor({0}), Tensor({1}), Tensor({1})}, {{"shrink_axis_mask", 1}});
  return s.Op("UnsortedSegmentSum", {g.values, g.indices, rows});
}
// Each element cut to [low, high].
inline std::vector<Gradient> ClipByValue(const Scope& scope, std::vector<Gradient> gradients, float low, float high) {
  Scope s = scope.SubScope("clip_by_value");
  for (Gradient& g : gradients) {
    Output& values = g.dense ? g.dense : g.values;
    if (g) values = s.Op("Maximum", {s.Op("Minimum", {values, high}), low});
  }
  return gradients;
}
// Each gradient scaled down to this norm (that of its rows where it is sparse).
inline std::vector<Gradient> ClipByNorm(const Scope& scope, std::vector<Gradient> gradients, float norm) {
  Scope s = scope;
  for (Gradient& g : gradients) {
    Output& values = g.dense ? g.dense : g.values;
    if (!g) continue;
    const std::vector<Output> clipped = s.Composite("ClipByNorm", {values, norm});
    values = clipped.empty() ? Output() : clipped[0];
  }
  return gradients;
}
// The dense ones scaled down to this norm of all of them together.
inline std::vector<Gradient> ClipByGlobalNorm(const Scope& scope, std::vector<Gradient> gradients, float norm) {
  Scope s = scope;
  Outputs dense;
  for (const Gradient& g : gradients) {
    if (g.dense) dense.push_back(g.dense);
  }
  if (dense.empty()) return gradients;
  const Outputs clipped = s.Composite("ClipByGlobalNorm", {dense, norm});
  size_t next = 0;
  for (Gradient& g : gradients) {
    if (g.dense && next < clipped.size()) g.dense = clipped[next++];
  }
  return gradients;
}

// Collects the variables of a model as its layers are stated. Layers add their variables below "<scope>/<name>/". Names
// and order of what is added are those of the Python client, so that one model gives one graph in both.
class Model {
 public:
  // A model in this scope. Weights are drawn from `seed`, each from a stream of its own.
  explicit Model(Scope scope, int64_t seed = 1) : scope_(std::move(scope)), seed_(seed) {}
  // Where its operations go.
  Scope& scope() { return scope_; }
  // What Minimize changes, in the order of its making.
  const std::vector<Variable>& trainable() const { return trainable_; }

  // A variable that starts at `initial`, whose shape must be known, on the scope's device.
  Variable AddVariable(const std::string& name, Output initial, bool trainable = true) {
    const Variable v = internal::AddVariable(scope_, name, initial);
    if (trainable) trainable_.push_back(v);
    return v;
  }
  // Variables made elsewhere, to be trained with this model.
  void Adopt(const std::vector<Variable>& variables) {
    trainable_.insert(trainable_.end(), variables.begin(), variables.end());
  }
  // The seed of its weights.
  int64_t seed() const { return seed_; }
  // Keeps the first error of what was built (or throws it).
  void Note(const Status& s) { scope_.Note(s); }
  // The counter that an optimizer increments.
  Variable GlobalStep() {
    return AddVariable("global_step", Initial("global_step", "zeros", Tensor(int64_t{0})), false);
  }
  // What a variable to come starts at: <variable>/Initializer/<what>, which lies with it.
  Output Initial(const std::string& variable, const std::string& what, const Tensor& value) {
    return Output(scope_.WithName(variable + "/Initializer/" + what)
                      .Op("Const", {}, {{"value", value}, {"dtype", value.dtype()}, {"_class", GroupOf(variable)}}));
  }

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
                              {"seed2", ++weights_},
                              {"_class", GroupOf(name)}})));
  }
  // n zeros, float.
  Variable Bias(const std::string& name, int64_t n) { return AddVariable(name, Filled(name, n, 0)); }
  // activation(x @ kernel + bias); x [batch, inputs].
  Output Dense(const std::string& name, Output x, int64_t inputs, int64_t units, const char* activation = "None") {
    const Variable kernel = Weights(name + "/kernel", {inputs, units});
    const Variable bias = Bias(name + "/bias", units);
    return First(scope_.WithName(name).Composite("Dense", {x, kernel.read, bias.read}, {{"activation", activation}}));
  }
  // activation(conv(x, filter) + bias), stride 1, padding SAME; x [batch, height, width, channels].
  Output Conv2D(const std::string& name, Output x, int64_t channels, int64_t filters, int64_t size,
                const char* activation = "Relu") {
    const Variable filter = Weights(name + "/kernel", {size, size, channels, filters});
    const Variable bias = Bias(name + "/bias", filters);
    return First(
        scope_.WithName(name).Composite("Conv2DLayer", {x, filter.read, bias.read}, {{"activation", activation}}));
  }

  // scale (x - mean) / sqrt(variance + epsilon) + offset of each channel; x [batch, height, width, channels]. The
  // statistics are those of the batch, and running updates() keeps moving averages of them. Where `training`, a scalar
  // bool of the graph, is false, they are these averages, and updates() leaves those as they are.
  Output BatchNorm(const std::string& name, Output x, int64_t channels, double momentum = 0.99, float epsilon = 0.001f,
                   Output training = {}) {
    const Variable gamma = AddVariable(name + "/gamma", Filled(name + "/gamma", channels, 1));
    const Variable beta = AddVariable(name + "/beta", Filled(name + "/beta", channels, 0));
    const Variable mean = AddVariable(name + "/moving_mean", Filled(name + "/moving_mean", channels, 0), false);
    const Variable variance =
        AddVariable(name + "/moving_variance", Filled(name + "/moving_variance", channels, 1), false);
    Scope inside = scope_.SubScope(name);
    const auto by_batch = [&](Scope s) {
      const Output none = s.Const(Tensor::Of<float>({0}, {})), no_variance = s.Const(Tensor::Of<float>({0}, {}));
      return s.Op("FusedBatchNorm", {x, gamma.read, beta.read, none, no_variance}, {{"epsilon", epsilon}});
    };
    Outputs normal(3);
    if (training) {
      normal = Cond(
          inside, training,
          [&](const Scope& s) {
            const Operation op = by_batch(s);
            return Outputs{op[0], op[1], op[2]};
          },
          [&](const Scope& s) {
            return Outputs{Normalized(s, x, {gamma, beta, mean, variance}, epsilon), mean.read, variance.read};
          });
      if (normal.size() != 3) return Output();
    } else {
      const Operation op = by_batch(inside);
      normal = {op[0], op[1], op[2]};
    }
    const Output kept = Kept(inside, training, static_cast<float>(momentum));
    Average(inside, mean, normal[1], kept);
    Average(inside, variance, normal[2], kept);
    return normal[0];
  }
  // The same by the moving averages, with the variables of the BatchNorm of this name: for a second use of the layers,
  // that does not train.
  Output BatchNormInference(const std::string& name, Output x, float epsilon = 0.001f) {
    std::vector<Variable> v;
    for (const char* const part : {"/gamma", "/beta", "/moving_mean", "/moving_variance"}) {
      v.push_back(FindVariable(scope_.graph(), scope_.prefix() + name + part));
      if (!v.back().ref) Note(Status(TF_NOT_FOUND, "there is no variable " + scope_.prefix() + name + part));
    }
    return Normalized(scope_.SubScope(name), x, v, epsilon);
  }
  // What training has to run besides Minimize's operation: the moving averages of BatchNorm.
  const std::vector<Operation>& updates() const { return updates_; }

  // One training step on `loss`; counts in `global_step` when it is given.
  Operation Minimize(const Optimizer& optimizer, Output loss, const Variable& global_step = {}) {
    std::vector<Gradient> gradients = ComputeGradients(loss);
    if (optimizer.clip_global_norm > 0) gradients = ClipByGlobalNorm(scope_, gradients, optimizer.clip_global_norm);
    return ApplyGradients(optimizer, gradients, global_step);
  }
  // The two halves of Minimize. The gradients of the trainable variables, null where none flows ...
  std::vector<Gradient> ComputeGradients(Output loss) { return ComputeGradients(loss, trainable_); }
  // ... or of these variables. TF_INVALID_ARGUMENT or TF_UNIMPLEMENTED where an op on the way has none.
  std::vector<Gradient> ComputeGradients(Output loss, const std::vector<Variable>& variables) {
    std::vector<TF_Output> refs;
    for (const Variable& v : variables) refs.push_back(v.ref.get());
    std::vector<MR_Gradient> raw(refs.size());
    const std::string where = WithoutSlash(scope_.SubScope("gradients").prefix());
    const MR_Scope scope = {where.c_str(), nullptr, nullptr, nullptr, 0};
    const TF_Output y = loss.get();
    internal::CallStatus status;
    MR_AddGradients(scope_.graph().get(), &scope, &y, 1, refs.data(), static_cast<int>(refs.size()), nullptr, nullptr,
                    0, false, false, raw.data(), status);
    Note(status.Get());
    std::vector<Gradient> gradients;
    for (size_t i = 0; i < raw.size(); ++i) {
      gradients.push_back({Output(raw[i].dense), Output(raw[i].values), Output(raw[i].indices),
                           Output(raw[i].dense_shape), variables[i]});
    }
    return gradients;
  }
  // ... and what an optimizer does with them; variables without one stay as they are.
  Operation ApplyGradients(const Optimizer& optimizer, const std::vector<Gradient>& gradients,
                           const Variable& global_step = {}) {
    return Apply(optimizer, gradients, global_step);
  }
  // A rule of your own: it gets each gradient with `slots` variables of its variable's shape, which start at zero, and
  // returns the operation that changes the variable. They are called "<variable>/<name>", with "_1" and so on behind it
  // from the second on.
  using Rule = std::function<Operation(Scope, const Gradient&, const std::vector<Variable>& slots)>;
  // One training step by such a rule; counts in `global_step` when it is given.
  Operation ApplyGradients(const std::string& name, const Rule& rule, const std::vector<Gradient>& gradients,
                           int slots = 0, const Variable& global_step = {}) {
    const Scope inside = scope_.SubScope(name);
    std::vector<Operation> updates;
    for (const Gradient& g : gradients) {
      if (!g) continue;
      std::vector<Variable> state;
      for (int i = 0; i < slots; ++i) state.push_back(Slot(g.variable, name + (i == 0 ? "" : "_" + std::to_string(i))));
      updates.push_back(rule(inside.SubScope("update_" + g.variable.name()), g, state));
    }
    if (updates.empty()) Note(Status(TF_INVALID_ARGUMENT, name + ": no variable has a gradient"));
    Scope last = scope_.WithControl(updates);
    if (!global_step.ref) return last.WithName(name).Op("NoOp", {});
    const Output one = inside.SubScope("count").Op("Cast", {1}, {{"DstT", TypeOf(global_step)}});
    return last.WithName(name).Op("AssignAdd", {global_step.ref, one});
  }

  // Gives every variable of the graph its first value, those of optimizers too: state it last.
  Operation Initializer() {
    internal::CallStatus status;
    TF_Operation* init = MR_AddInitializer(scope_.graph().get(), "init", status);
    Note(status.Get());
    return Operation(init);
  }

 private:
  // Of what lies with a variable to come.
  std::vector<std::string> GroupOf(const std::string& variable) const { return {"loc:@" + scope_.prefix() + variable}; }

  Operation Apply(const Optimizer& optimizer, const std::vector<Gradient>& given, const Variable& global_step) {
    std::vector<MR_Gradient> gradients;
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
    for (const Gradient& g : given) {
      gradients.push_back({g.dense.get(), g.values.get(), g.indices.get(), g.dense_shape.get()});
      refs.push_back(g.variable.ref.get());
    }
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

  static DType TypeOf(const Variable& v) { return static_cast<DType>(static_cast<int>(v.ref.dtype()) % 100); }
  Variable Slot(const Variable& v, const std::string& name) {
    Shape shape;
    scope_.graph().ShapeOf(v.ref, &shape);
    Scope s = Scope(scope_.graph(), v.name()).ColocateWith(Operation(v.ref.get().oper));
    const Output zero = s.Op("Cast", {0.0f}, {{"DstT", TypeOf(v)}});
    const Output zeros = s.WithName(name + "/Initializer/zeros")
                             .Op("Fill", {Tensor::Of({static_cast<int64_t>(shape.size())}, shape), zero});
    return internal::AddVariable(s, name, zeros);
  }
  // By given statistics: gamma, beta, mean, variance.
  static Output Normalized(Scope s, Output x, const std::vector<Variable>& v, float epsilon) {
    return s.Op("FusedBatchNorm", {x, v[0].read, v[1].read, v[2].read, v[3].read},
                {{"epsilon", epsilon}, {"is_training", false}});
  }
  static std::string WithoutSlash(const std::string& prefix) {
    return prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
  }
  static Output First(const std::vector<Output>& all) { return all.empty() ? Output() : all[0]; }
  // How much of an average stays: the momentum; all of it where the layer does not train.
  static Output Kept(Scope& layer, Output training, float momentum) {
    if (!training) return layer.Const(Tensor(momentum));
    const Outputs kept = Cond(
        layer, training, [&](Scope s) { return Outputs{s.Const(Tensor(momentum))}; },
        [&](Scope s) { return Outputs{s.Const(Tensor(1.0f))}; });
    return First(kept);
  }
  void Average(Scope& layer, const Variable& average, Output value, Output kept) {
    Scope s = layer.SubScope("AssignMovingAvg");
    const Output step = s.WithName("sub").Op("Sub", {s.WithName("sub/x").Const(Tensor(1.0f)), kept});
    const Output change = s.WithName("mul").Op("Mul", {s.WithName("sub").Op("Sub", {average.read, value}), step});
    updates_.push_back(s.WithName("/").Op("AssignSub", {average.ref, change}));
  }
  // n zeros or ones.
  Output Filled(const std::string& variable, int64_t n, float value) {
    return Initial(
        variable, value == 0 ? "zeros" : "ones", Tensor::Of({n}, std::vector<float>(static_cast<size_t>(n), value)));
  }

  Scope scope_;
  int64_t seed_;
  int64_t weights_ = 0;
  std::vector<Variable> trainable_;
  std::vector<Operation> updates_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
