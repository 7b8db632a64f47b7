// SPDX-License-Identifier: Apache-2.0
// Moments, and layers that normalize each example by its own (Model::BatchNorm does so by the batch's).
#pragma once

#include <string>
#include <vector>

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Two tensors of one shape.
struct MeanAndVariance {
  Output mean, variance;
};
// Of x over these axes, which stay as dimensions of 1 with `keep_dims`. As tf.nn.moments.
inline MeanAndVariance Moments(const Scope& scope, Output x, const std::vector<int64_t>& axes, bool keep_dims = false) {
  const Outputs made = scope.SubScope("moments").WithName("/").Composite(
      "Moments", {x}, {{"axes", Shape(axes)}, {"keep_dims", keep_dims}});
  return made.size() == 2 ? MeanAndVariance{made[0], made[1]} : MeanAndVariance{};
}

// scale (x - mean) / sqrt(variance + epsilon) + offset, of shapes that can be broadcast. As tf.nn.batch_normalization.
inline Output BatchNormalization(const Scope& scope, Output x, const MeanAndVariance& of, Output offset, Output scale,
                                 float epsilon, const std::string& name = "batchnorm") {
  Scope s = scope.SubScope(name);
  const Output root = s.Op("Rsqrt", {s.WithName("add").Op("Add", {of.variance, epsilon})});
  const Output factor = s.WithName("mul").Op("Mul", {root, scale});
  const Output scaled = s.WithName("mul").Op("Mul", {x, factor});
  const Output shift = s.WithName("sub").Op("Sub", {offset, s.WithName("mul").Op("Mul", {of.mean, factor})});
  return s.WithName("add").Op("Add", {scaled, shift});
}

namespace layers {

// What NormalizeExamples normalizes over.
struct Normalization {
  const char* what;
  bool over_channels;  // too
  float epsilon;
};
// Variables beta and gamma have an element for each channel, the last dimension of x.
inline Output NormalizeExamples(Model& model, const std::string& name, Output x, const Normalization& n) {
  Scope s = model.scope().SubScope(name);
  Shape shape;
  if (!x || !s.graph().ShapeOf(x, &shape) || shape.size() < (n.over_channels ? 2 : 3) || shape.back() < 0) {
    s.Note(Status(TF_INVALID_ARGUMENT,
                  name + " wants [batch, ..., channels]" + (n.over_channels ? "" : " of rank 3 or more") +
                      ", with a known rank and number of channels"));
    return {};
  }
  const Variable beta = model.Bias(name + "/beta", shape.back());
  const Output ones = model.Initial(
      name + "/gamma", "ones", Tensor::Of({shape.back()}, std::vector<float>(static_cast<size_t>(shape.back()), 1)));
  const Variable gamma = model.AddVariable(name + "/gamma", ones);
  std::vector<int64_t> axes;
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 1; i < rank - !n.over_channels; ++i) axes.push_back(i);
  return BatchNormalization(s, x, Moments(s, x, axes, true), beta.read, gamma.read, n.epsilon, n.what);
}

// Each example by the mean and variance of all that it has (Ba and others 2016), as tf.contrib.layers.layer_norm.
inline Output LayerNorm(Model& model, const std::string& name, Output x) {
  return NormalizeExamples(model, name, x, {"batchnorm", true, 1e-12f});
}
// Each channel of each example over its places (Ulyanov and others 2016), as tf.contrib.layers.instance_norm.
inline Output InstanceNorm(Model& model, const std::string& name, Output x) {
  return NormalizeExamples(model, name, x, {"instancenorm", false, 1e-6f});
}

}  // namespace layers
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
