// SPDX-License-Identifier: Apache-2.0
// Layers of sequences [batch, length, channels] and of volumes [batch, depth, height, width, channels], as tf.layers.
#pragma once

#include <string>

#include "millrace/layers.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace layers {

// Windows of convolutions over sequences and volumes, in elements.
struct ConvolutionND {
  int64_t size = 3, stride = 1;     // in each direction
  const char* padding = "VALID";    // or "SAME"
  const char* activation = "None";  // or the op
};

// What an activation's op makes of x; "None": x.
inline Output Activated(Scope s, Output x, const char* activation) {
  return std::string(activation) == "None" ? x : Output(s.Op(activation, {x}));
}

// activation(conv(x, kernel) + bias); kernel [size, channels, filters].
inline Output Conv1D(Model& model, const std::string& name, Output x, int64_t channels, int64_t filters,
                     const ConvolutionND& c = {}) {
  Scope s = model.scope().SubScope(name);
  const Variable kernel = model.Weights(name + "/kernel", {c.size, channels, filters});
  const Variable bias = model.Bias(name + "/bias", filters);
  s.WithName("dilation_rate").Const({1});  // TensorFlow's, which nobody reads
  Scope in = s.SubScope("conv1d");         // images of height 1
  const Output wide = in.Op("ExpandDims", {x, int32_t{1}}), window = in.Op("ExpandDims", {kernel.read, int32_t{0}});
  const Output y =
      in.WithName("/").Op("Conv2D", {wide, window}, {{"strides", Shape{1, 1, c.stride, 1}}, {"padding", c.padding}});
  const Output line = in.Op("Squeeze", {y}, {{"squeeze_dims", Shape{1}}});
  return Activated(s, s.Op("BiasAdd", {line, bias.read}), c.activation);
}
// activation(conv(x, kernel) + bias); kernel [size, size, size, channels, filters].
inline Output Conv3D(Model& model, const std::string& name, Output x, int64_t channels, int64_t filters,
                     const ConvolutionND& c = {}) {
  Scope s = model.scope().SubScope(name);
  const Variable kernel = model.Weights(name + "/kernel", {c.size, c.size, c.size, channels, filters});
  const Variable bias = model.Bias(name + "/bias", filters);
  s.WithName("dilation_rate").Const({1, 1, 1});
  const Output y = s.Op(
      "Conv3D", {x, kernel.read}, {{"strides", Shape{1, c.stride, c.stride, c.stride, 1}}, {"padding", c.padding}});
  return Activated(s, s.Op("BiasAdd", {y, bias.read}), c.activation);
}

// What the pooling op makes of x [batch, steps, channels].
inline Output Pooling1D(const Scope& scope, const char* name, const char* op, Output x, const Pooling& p) {
  Scope s = scope.SubScope(name);
  const Output wide = s.Op("ExpandDims", {x, int32_t{2}});
  const Output y = s.Op(
      op, {wide}, {{"ksize", Shape{1, p.size, 1, 1}}, {"strides", Shape{1, p.stride, 1, 1}}, {"padding", p.padding}});
  return s.Op("Squeeze", {y}, {{"squeeze_dims", Shape{2}}});
}
// The largest element of each window; x [batch, steps, channels].
inline Output MaxPooling1D(const Scope& s, Output x, const Pooling& p = {}) {
  return Pooling1D(s, "max_pooling1d", "MaxPool", x, p);
}
// The mean of each window; x [batch, steps, channels].
inline Output AveragePooling1D(const Scope& s, Output x, const Pooling& p = {}) {
  return Pooling1D(s, "average_pooling1d", "AvgPool", x, p);
}

// What the pooling op makes of x [batch, depth, height, width, channels].
inline Output Pooling3D(const Scope& scope, const char* name, const char* op, Output x, const Pooling& p) {
  return scope.SubScope(name).Op(
      op, {x},
      {{"ksize", Shape{1, p.size, p.size, p.size, 1}},
       {"strides", Shape{1, p.stride, p.stride, p.stride, 1}},
       {"padding", p.padding}});
}
// The largest element of each window; x [batch, depth, height, width, channels].
inline Output MaxPooling3D(const Scope& s, Output x, const Pooling& p = {}) {
  return Pooling3D(s, "max_pooling3d", "MaxPool3D", x, p);
}
// The mean of each window; x [batch, depth, height, width, channels].
inline Output AveragePooling3D(const Scope& s, Output x, const Pooling& p = {}) {
  return Pooling3D(s, "average_pooling3d", "AvgPool3D", x, p);
}

}  // namespace layers
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
