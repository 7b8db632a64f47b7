// SPDX-License-Identifier: Apache-2.0
// What variables begin with: values for Model::AddVariable, of type float.
//
//   auto kernel = model.AddVariable("kernel", millrace::initializers::HeNormal(scope, {784, 100}));
//
// `seed` 0: other values each time. As TensorFlow's tf.initializers.
#pragma once

#include <algorithm>
#include <vector>

#include "millrace/graph.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace initializers {
namespace detail {

inline Tensor Dims(const Shape& shape) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(shape.size())}, std::vector<int64_t>(shape.begin(), shape.end()));
}
inline Output Random(Scope s, const char* op, const Shape& shape, int64_t seed) {
  return s.Op(op, {Dims(shape)}, {{"dtype", DType::kFloat}, {"seed", seed}});
}

}  // namespace detail

// `value` everywhere.
inline Output Constant(Scope s, const Shape& shape, float value) {
  return s.Op("Fill", {detail::Dims(shape), value}, {{"index_type", DType::kInt64}});
}
// 0 everywhere.
inline Output Zeros(const Scope& s, const Shape& shape) { return Constant(s, shape, 0); }
// 1 everywhere.
inline Output Ones(const Scope& s, const Shape& shape) { return Constant(s, shape, 1); }

// Normally distributed.
inline Output RandomNormal(Scope s, const Shape& shape, float mean = 0, float stddev = 1, int64_t seed = 0) {
  const Output x = detail::Random(s, "RandomStandardNormal", shape, seed);
  return s.Op("Add", {s.Op("Mul", {x, stddev}), mean});
}
// Without what lies more than two standard deviations off.
inline Output TruncatedNormal(Scope s, const Shape& shape, float mean = 0, float stddev = 1, int64_t seed = 0) {
  const Output x = detail::Random(s, "TruncatedNormal", shape, seed);
  return s.Op("Add", {s.Op("Mul", {x, stddev}), mean});
}
// Equally likely in [low, high).
inline Output RandomUniform(Scope s, const Shape& shape, float low = -0.05f, float high = 0.05f, int64_t seed = 0) {
  const Output x = detail::Random(s, "RandomUniform", shape, seed);
  return s.Op("Add", {s.Op("Mul", {x, high - low}), low});
}

// Of variance scale / n. mode "fan_in", "fan_out" or "fan_avg": n is how many inputs a value of the result has, how
// many results an input has, or their mean; distribution "uniform", "normal" or "truncated_normal".
inline Output VarianceScaling(Scope s, const Shape& shape, float scale, const char* mode, const char* distribution,
                              int64_t seed = 0) {
  const std::vector<Output> made = s.Composite(
      "VarianceScaling", {},
      {{"shape", Attr::OfShape(shape)},
       {"dtype", DType::kFloat},
       {"scale", scale},
       {"mode", mode},
       {"distribution", distribution},
       {"seed", seed}});
  return made.empty() ? Output() : made[0];
}
// Uniform, of variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010); what Model's layers use.
inline Output GlorotUniform(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 1, "fan_avg", "uniform", seed);
}
// The same variance, truncated normal.
inline Output GlorotNormal(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 1, "fan_avg", "truncated_normal", seed);
}
// Uniform, of variance 2 / fan_in (He et al. 2015).
inline Output HeUniform(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 2, "fan_in", "uniform", seed);
}
// The same variance, truncated normal.
inline Output HeNormal(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 2, "fan_in", "truncated_normal", seed);
}
// Uniform, of variance 1 / fan_in (LeCun et al. 1998).
inline Output LecunUniform(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 1, "fan_in", "uniform", seed);
}
// The same variance, truncated normal.
inline Output LecunNormal(const Scope& s, const Shape& shape, int64_t seed = 0) {
  return VarianceScaling(s, shape, 1, "fan_in", "truncated_normal", seed);
}
// Rows or columns that are orthogonal, whichever are fewer; the shape's last dimension is that of the columns.
inline Output Orthogonal(Scope s, const Shape& shape, float gain = 1, int64_t seed = 0) {
  if (shape.size() < 2) {
    s.Note(Status(TF_INVALID_ARGUMENT, "orthogonal values want a shape of two dimensions or more"));
    return Output();
  }
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const int64_t columns = shape.back();
  const Output x = detail::Random(s, "RandomStandardNormal", {std::max(rows, columns), std::min(rows, columns)}, seed);
  const Operation qr = s.Op("Qr", {x});
  if (!qr) return Output();
  Output q = s.Op("Mul", {qr[0], s.Op("Sign", {s.Op("MatrixDiagPart", {qr[1]})})});  // or the signs were not random
  if (rows < columns) q = s.Op("Transpose", {q, Tensor({1, 0})});
  return s.Op("Mul", {s.Op("Reshape", {q, detail::Dims(shape)}), gain});
}

}  // namespace initializers
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
