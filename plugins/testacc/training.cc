// SPDX-License-Identifier: Apache-2.0
// Updates of variables, by reference and by handle. The result of the former is the variable.
#include <cmath>

#include "kernel.h"

namespace testacc {
namespace {

enum class By { kReference, kHandle };

void RequireShape(const Value& variable, const Value& update) {
  if (variable.dims != update.dims || variable.type != update.type) {
    Invalid("a variable of shape " + Text(variable.dims) + " is changed by " + Text(update.dims));
  }
}

template <By kBy>
void Result(Context& c) {
  if constexpr (kBy == By::kReference) c.ForwardRef(0, 0);
}

template <typename T, bool kAdd, By kBy>
void AssignAdd(Context& c) {
  const Value v = c.Variables({0})[0], by = c.Input(1);
  RequireShape(v, by);
  c.Queue([=] {
    for (int64_t i = 0; i < v.size; ++i) {
      v.as<T>()[i] = static_cast<T>(kAdd ? v.as<T>()[i] + by.as<T>()[i] : v.as<T>()[i] - by.as<T>()[i]);
    }
  });
  Result<kBy>(c);
}

template <By kBy>
void GradientDescent(Context& c) {
  const Value v = c.Variables({0})[0], alpha = c.Input(1), delta = c.Input(2);
  Require(alpha.rank() == 0, "alpha is not a scalar");
  RequireShape(v, delta);
  c.Queue([=] {
    for (int64_t i = 0; i < v.size; ++i) v.as<float>()[i] -= *alpha.as<float>() * delta.as<float>()[i];
  });
  Result<kBy>(c);
}

template <By kBy>
class Momentum {
 public:
  explicit Momentum(const Attrs& attrs) : nesterov_(attrs.Bool("use_nesterov")) {}
  void Run(Context& c) const {
    const std::vector<Value> state = c.Variables({0, 1});
    const Value v = state[0], accum = state[1], lr = c.Input(2), grad = c.Input(3), momentum = c.Input(4);
    Require(lr.rank() == 0 && momentum.rank() == 0, "lr and momentum must be scalars");
    RequireShape(v, grad);
    RequireShape(accum, grad);
    c.Queue([=, nesterov = nesterov_] {
      const float rate = *lr.as<float>(), m = *momentum.as<float>();
      for (int64_t i = 0; i < v.size; ++i) {
        const float g = grad.as<float>()[i];
        float& a = accum.as<float>()[i];
        a = a * m + g;
        v.as<float>()[i] -= nesterov ? g * rate + a * m * rate : a * rate;
      }
    });
    Result<kBy>(c);
  }

 private:
  const bool nesterov_;
};

template <By kBy>
class Adam {
 public:
  explicit Adam(const Attrs& attrs) : nesterov_(attrs.Bool("use_nesterov")) {}
  void Run(Context& c) const {
    const std::vector<Value> state = c.Variables({0, 1, 2});
    const Value v = state[0], first = state[1], second = state[2];
    std::vector<Value> numbers;  // beta1_power, beta2_power, lr, beta1, beta2, epsilon
    for (int i = 3; i < 9; ++i) {
      numbers.push_back(c.Input(i));
      Require(numbers.back().rank() == 0, "the hyperparameters must be scalars");
    }
    const Value grad = c.Input(9);
    for (const Value& s : state) RequireShape(s, grad);
    c.Queue([=, nesterov = nesterov_] {
      const auto number = [&](size_t i) { return *numbers[i].as<float>(); };
      const float beta1 = number(3), beta2 = number(4), epsilon = number(5);
      const float rate = number(2) * std::sqrt(1 - number(1)) / (1 - number(0));
      for (int64_t i = 0; i < v.size; ++i) {
        const float g = grad.as<float>()[i];
        float& m = first.as<float>()[i];
        float& s = second.as<float>()[i];
        m += (g - m) * (1 - beta1);
        s += (g * g - s) * (1 - beta2);
        const float step = nesterov ? m * beta1 + (1 - beta1) * g : m;
        v.as<float>()[i] -= step * rate / (std::sqrt(s) + epsilon);
      }
    });
    Result<kBy>(c);
  }

 private:
  const bool nesterov_;
};

template <typename T>
void AddUpdates(TF_Status* s) {
  constexpr TF_DataType t = TypeOf<T>::value;
  AddFn<AssignAdd<T, true, By::kReference>>({"AssignAdd", {{"T", t}}}, s);
  AddFn<AssignAdd<T, false, By::kReference>>({"AssignSub", {{"T", t}}}, s);
  AddFn<AssignAdd<T, true, By::kHandle>>({"AssignAddVariableOp", {{"dtype", t}}}, s);
  AddFn<AssignAdd<T, false, By::kHandle>>({"AssignSubVariableOp", {{"dtype", t}}}, s);
}

}  // namespace

void RegisterTraining(TF_Status* s) {
  AddUpdates<float>(s);
  AddUpdates<double>(s);
  AddUpdates<int32_t>(s);
  AddUpdates<int64_t>(s);
  AddFn<GradientDescent<By::kReference>>({"ApplyGradientDescent", {{"T", TF_FLOAT}}}, s);
  AddFn<GradientDescent<By::kHandle>>({"ResourceApplyGradientDescent", {{"T", TF_FLOAT}}}, s);
  AddClass<Momentum<By::kReference>>({"ApplyMomentum", {{"T", TF_FLOAT}}}, s);
  AddClass<Momentum<By::kHandle>>({"ResourceApplyMomentum", {{"T", TF_FLOAT}}}, s);
  AddClass<Adam<By::kReference>>({"ApplyAdam", {{"T", TF_FLOAT}}}, s);
  AddClass<Adam<By::kHandle>>({"ResourceApplyAdam", {{"T", TF_FLOAT}}}, s);
}

}  // namespace testacc
