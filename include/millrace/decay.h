// SPDX-License-Identifier: Apache-2.0
// Learning rates by the number of steps: the core's composites, whose nodes join a scope of TensorFlow's name.
#pragma once

#include "millrace/variable.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace decay {

// What a composite makes of the step; null after an error.
inline Output ByComposite(Scope s, const char* type, const std::vector<Input>& inputs, const Attrs& attrs = {}) {
  const std::vector<Output> rate = s.Composite(type, inputs, attrs);
  return rate.empty() ? Output() : rate[0];
}

// rate * decay_rate ^ (step / decay_steps); with `staircase` the exponent is a whole number.
inline Output Exponential(const Scope& s, float rate, const Variable& step, float decay_steps, float decay_rate,
                          bool staircase = false) {
  return ByComposite(s, "ExponentialDecay", {rate, step.read, decay_steps, decay_rate}, {{"staircase", staircase}});
}
// rate * exp(-decay_rate * step / decay_steps).
inline Output NaturalExp(const Scope& s, float rate, const Variable& step, float decay_steps, float decay_rate,
                         bool staircase = false) {
  return ByComposite(s, "NaturalExpDecay", {rate, step.read, decay_steps, decay_rate}, {{"staircase", staircase}});
}
// rate / (1 + decay_rate * step / decay_steps).
inline Output InverseTime(const Scope& s, float rate, const Variable& step, float decay_steps, float decay_rate,
                          bool staircase = false) {
  return ByComposite(s, "InverseTimeDecay", {rate, step.read, decay_steps, decay_rate}, {{"staircase", staircase}});
}
// From `rate` down to `end` within decay_steps; with `cycle` again and again, each time from less high and slower.
inline Output Polynomial(const Scope& s, float rate, const Variable& step, float decay_steps, float end = 0.0001f,
                         float power = 1, bool cycle = false) {
  return ByComposite(s, "PolynomialDecay", {rate, step.read, decay_steps, end, power}, {{"cycle", cycle}});
}
// Half a cosine from `rate` to alpha * rate within decay_steps.
inline Output Cosine(const Scope& s, float rate, const Variable& step, float decay_steps, float alpha = 0) {
  return ByComposite(s, "CosineDecay", {rate, step.read, decay_steps, alpha});
}
// Half cosines that begin again, each t_mul times as long and m_mul times as high as the one before.
inline Output CosineRestarts(const Scope& s, float rate, const Variable& step, float first_decay_steps, float t_mul = 2,
                             float m_mul = 1, float alpha = 0) {
  return ByComposite(s.WithName("SGDRDecay"), "CosineDecayRestarts",
                     {rate, step.read, first_decay_steps, t_mul, m_mul, alpha}, {{"equal_periods", t_mul == 1}});
}
// rate * ((alpha + line) * wave + beta): a line down to 0 within decay_steps times a cosine of so many periods.
inline Output LinearCosine(const Scope& s, float rate, const Variable& step, float decay_steps,
                           float num_periods = 0.5f, float alpha = 0, float beta = 0.001f) {
  return ByComposite(s, "LinearCosineDecay", {rate, step.read, decay_steps, num_periods, alpha, beta});
}
// values[i] up to and with step boundaries[i], the last one behind that.
inline Output PiecewiseConstant(const Scope& scope, const Variable& step, const std::vector<int64_t>& boundaries,
                                const std::vector<float>& values) {
  Scope s = scope.SubScope("PiecewiseConstant");
  const auto listed = [&s](const char* name, const auto& numbers) {
    std::vector<Output> made;
    for (const auto number : numbers) {
      made.push_back(s.WithName(name + std::to_string(made.size())).Const(Tensor(number)));
    }
    return made;
  };
  const std::vector<Output> limits = listed("boundaries_", boundaries), rates = listed("values_", values);
  return ByComposite(s.WithName("/"), "PiecewiseConstant", {step.read, limits, rates});
}

}  // namespace decay
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
