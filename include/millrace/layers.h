// SPDX-License-Identifier: Apache-2.0
// Layers beside those of Model, and regularizers.
#pragma once

#include "millrace/decay.h"
#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace layers {

// Windows of pooling, in each direction.
struct Pooling {
  // Elements.
  int64_t size = 2, stride = 2;
  const char* padding = "VALID";  // or "SAME"
};
// x [batch, height, width, channels].
inline Output MaxPooling2D(Scope s, Output x, const Pooling& p = {}) {
  return s.Op(
      "MaxPool", {x},
      {{"ksize", Shape{1, p.size, p.size, 1}}, {"strides", Shape{1, p.stride, p.stride, 1}}, {"padding", p.padding}});
}
// The same, with the mean of each window.
inline Output AveragePooling2D(Scope s, Output x, const Pooling& p = {}) {
  return s.Op(
      "AvgPool", {x},
      {{"ksize", Shape{1, p.size, p.size, 1}}, {"strides", Shape{1, p.stride, p.stride, 1}}, {"padding", p.padding}});
}
// [batch, a, b, ...] -> [batch, a b ...]; the sizes behind the first must be known.
inline Output Flatten(Scope s, Output x) {
  Shape shape;
  int64_t size = 1;
  bool known = x && s.graph().ShapeOf(x, &shape) && !shape.empty();
  for (size_t i = 1; known && i < shape.size(); ++i) {
    known = shape[i] >= 0;
    size *= shape[i];
  }
  if (!known) {
    s.Note(Status(TF_INVALID_ARGUMENT, "Flatten wants to know all dimensions of " + x.name() + " but the first"));
    return {};
  }
  return s.WithName("Flatten").Op("Reshape", {x, Tensor({int64_t{-1}, size})});
}
// While `training`, a scalar bool of the graph (null: always), a part `rate` of the elements is 0 and the others are
// divided by 1 - rate; otherwise x as it is. seed 0: others in each process.
inline Output Dropout(Scope s, Output x, float rate, Output training = {}, int64_t seed = 0) {
  const auto drop = [&](Scope in) -> Output {
    const Outputs dropped = in.Composite("Dropout", {x}, {{"rate", rate}, {"seed", seed}});
    return dropped.empty() ? Output() : dropped[0];
  };
  if (!training) return drop(s);
  const Outputs chosen = Cond(
      s.SubScope("dropout"), training, [&](const Scope& in) { return drop(in); },
      [&](Scope in) { return in.Op("Identity", {x}); });
  return chosen.empty() ? Output() : chosen[0];
}

// Windows of convolutions in two dimensions, in elements, and what comes behind them.
struct Convolution {
  int64_t height = 3, width = 3, stride = 1;
  const char* padding = "SAME";  // or "VALID"
  // Or an op: "Relu", "Tanh".
  const char* activation = "None";
};
// activation(conv(x, kernel) + bias); x [batch, height, width, channels], kernel [height, width, channels, filters].
inline Output Conv2D(Model& model, const std::string& name, Output x, int64_t channels, int64_t filters,
                     const Convolution& c = {}) {
  const Variable kernel = model.Weights(name + "/kernel", {c.height, c.width, channels, filters});
  const Variable bias = model.Bias(name + "/bias", filters);
  const Outputs y = model.scope().WithName(name).Composite(
      "Conv2DLayer", {x, kernel.read, bias.read},
      {{"strides", Shape{1, c.stride, c.stride, 1}}, {"padding", c.padding}, {"activation", c.activation}});
  return y.empty() ? Output() : y[0];
}
// A convolution of each channel by itself, into `multiplier` channels, then one of 1 x 1 over all of them.
inline Output SeparableConv2D(Model& model, const std::string& name, Output x, int64_t channels, int64_t filters,
                              const Convolution& c = {}, int64_t multiplier = 1) {
  const Variable depth = model.Weights(name + "/depthwise_kernel", {c.height, c.width, channels, multiplier});
  const Variable point = model.Weights(name + "/pointwise_kernel", {1, 1, channels * multiplier, filters});
  const Variable bias = model.Bias(name + "/bias", filters);
  Scope s = model.scope().SubScope(name);
  const Output each = s.Op(
      "DepthwiseConv2dNative", {x, depth.read}, {{"strides", Shape{1, c.stride, c.stride, 1}}, {"padding", c.padding}});
  const Outputs y =
      s.Composite("Conv2DLayer", {each, point.read, bias.read}, {{"padding", "VALID"}, {"activation", c.activation}});
  return y.empty() ? Output() : y[0];
}
// Transposed convolution, stride s: [batch, height, width, channels] -> [batch, s height, s width, filters]. Sizes must
// be known, but for the batch's.
inline Output Conv2DTranspose(Model& model, const std::string& name, Output x, int64_t filters,
                              const Convolution& c = {}) {
  Scope s = model.scope().SubScope(name);
  Shape shape;
  if (!x || !s.graph().ShapeOf(x, &shape) || shape.size() != 4 || shape[1] < 0 || shape[2] < 0 || shape[3] < 0) {
    s.Note(Status(TF_INVALID_ARGUMENT, name + " wants [batch, height, width, channels] of known sizes"));
    return {};
  }
  const Variable kernel = model.Weights(name + "/kernel", {c.height, c.width, filters, shape[3]});
  const Variable bias = model.Bias(name + "/bias", filters);
  const Output batch = s.Op("StridedSlice", {s.Op("Shape", {x}), Tensor({0}), Tensor({1}), Tensor({1})});
  const auto grown = [&](int64_t size, int64_t window) {
    const bool same = std::string(c.padding) == "SAME";
    return static_cast<int32_t>(same ? size * c.stride : (size - 1) * c.stride + window);
  };
  const Output sizes = s.Op(
      "ConcatV2",
      {Outputs{batch, s.Const({grown(shape[1], c.height), grown(shape[2], c.width), static_cast<int32_t>(filters)})},
       0});
  const Output y = s.Op("Conv2DBackpropInput", {sizes, kernel.read, x},
                        {{"strides", Shape{1, c.stride, c.stride, 1}}, {"padding", c.padding}});
  return s.Op("BiasAdd", {y, bias.read});
}

}  // namespace layers

// scale * sum(v^2) / 2, and scale * sum |v|, of these variables: added to a loss they keep weights small.
inline Output L2Regularizer(const Scope& scope, float scale, const std::vector<Variable>& variables) {
  Scope s = scope.SubScope("l2_regularizer");
  Outputs parts;
  for (const Variable& v : variables) parts.push_back(s.Op("L2Loss", {v.read}));
  return s.Op("Mul", {s.Op("AddN", {parts}), scale});
}
// The one of absolute values.
inline Output L1Regularizer(const Scope& scope, float scale, const std::vector<Variable>& variables) {
  Scope s = scope.SubScope("l1_regularizer");
  Outputs parts;
  for (const Variable& v : variables) {
    parts.push_back(s.Op("Sum", {s.Op("Reshape", {s.Op("Abs", {v.read}), Tensor({-1})}), Tensor({0})}));
  }
  return s.Op("Mul", {s.Op("AddN", {parts}), scale});
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
