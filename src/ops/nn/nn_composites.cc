// SPDX-License-Identifier: Apache-2.0
// Composites: dropout, normalisation, dense and convolution layers over given parameters.
#include "ops/composite.h"
#include "ops/formula.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;

Outputs Dropout(const GraphBuilder& b, const CompositeCall& c) {
  const Output x = c.x("x");
  MR_ASSIGN_OR_RETURN(const float rate, c.Attr<float>("rate"));
  MR_ASSIGN_OR_RETURN(const int64_t seed, c.Attr<int64_t>("seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, c.Attr<int64_t>("seed2"));
  if (!(rate >= 0 && rate < 1)) return InvalidArgument("Dropout: rate is ", rate, ", want one in [0, 1)");
  if (rate == 0) return std::vector<Output>{b.Identity(x)};
  const DType t = BaseType(x.dtype());
  const Formula f(b);
  const Output drop = b.WithName("rate").ScalarOf(t, static_cast<double>(rate)), dims = ShapeOf(b, x);
  const GraphBuilder uniform = b.Scope("random_uniform");
  const Output low = uniform.WithName("min").ScalarOf(t, 0), high = uniform.WithName("max").ScalarOf(t, 1);
  const Output noise = uniform.Op("RandomUniform", {dims}, {{"dtype", t}, {"seed", seed}, {"seed2", seed2}});
  const Output range = uniform.WithName("sub").Sub(high, low), wide = uniform.WithName("mul").Mul(noise, range);
  const Output drawn = uniform.WithName("/").Op("Add", {wide, low});
  const Output scale = f.Div(1.0, f.Sub(1.0, drop)), keep = b.Op("GreaterEqual", {drawn, drop});
  const Output scaled = f.Mul(x, scale);
  return std::vector<Output>{f.Mul(scaled, f.Cast(keep, t))};
}

Outputs BatchNormalization(const GraphBuilder& b, const CompositeCall& c) {
  const Output x = c.x("x");
  const DType t = BaseType(x.dtype());
  MR_ASSIGN_OR_RETURN(const float epsilon, c.Attr<float>("variance_epsilon"));
  const Output inv =
      b.Mul(b.Op("Rsqrt", {b.Add(c.x("variance"), b.ScalarOf(t, static_cast<double>(epsilon)))}), c.x("scale"));
  return std::vector<Output>{b.Add(b.Mul(x, inv), b.Sub(c.x("offset"), b.Mul(c.x("mean"), inv)))};
}

StatusOr<Output> Activate(const GraphBuilder& b, const CompositeCall& c, Output y) {
  MR_ASSIGN_OR_RETURN(const std::string activation, c.Attr<std::string>("activation"));
  return activation == "None" ? y : b.Op(activation, {y});
}

Outputs Dense(const GraphBuilder& b, const CompositeCall& c) {
  const Output y = b.Op("BiasAdd", {b.MatMul(c.x("x"), c.x("kernel")), c.x("bias")});
  MR_ASSIGN_OR_RETURN(const Output out, Activate(b, c, y));
  return std::vector<Output>{out};
}

Outputs Conv2DLayer(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, c.Attr<std::vector<int64_t>>("strides"));
  MR_ASSIGN_OR_RETURN(const std::string padding, c.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  b.WithName("dilation_rate").Vector<int32_t>({1, 1});  // that of TensorFlow's layer, which nobody reads
  const Output conv =
      b.Op("Conv2D", {c.x("x"), c.x("filter")}, {{"strides", strides}, {"padding", padding}, {"data_format", format}});
  MR_ASSIGN_OR_RETURN(
      const Output out, Activate(b, c, b.Op("BiasAdd", {conv, c.x("bias")}, {{"data_format", format}})));
  return std::vector<Output>{out};
}

constexpr char kActivations[] = "activation in {None,Relu,Relu6,Tanh,Sigmoid,Elu,Selu,Softplus,Softsign}=\"None\"";

}  // namespace

void RegisterNnComposites(CompositeRegistry& r) {
  r.Add("Dropout(x:T) -> (y:T) | T in FLT; rate:float; seed:int=0; seed2:int=0")
      .Doc(
          "Sets elements to zero with probability `rate` and scales the others by 1 / (1 - rate) (Srivastava et al. "
          "2014).")
      .Expand(Dropout)
      .Example("f32[2,3]~ | rate=0.5; seed=3");
  r.Add(
       "BatchNormalization(x:T, mean:T, variance:T, offset:T, scale:T) -> (y:T) | T in FLT; "
       "variance_epsilon:float=0.001")
      .Doc("(x - mean) / sqrt(variance + epsilon) * scale + offset, all broadcast against x (Ioffe and Szegedy 2015).")
      .Expand(BatchNormalization)
      .Example("f32[4,3]~, f32[3]~, f32[3]+, f32[3]~, f32[3]~");
  r.Add(absl::StrCat("Dense(x:T, kernel:T, bias:T) -> (y:T) | T in FLT; ", kActivations))
      .Doc("A fully connected layer: activation(x @ kernel + bias); x [batch, in], kernel [in, out], bias [out].")
      .Expand(Dense)
      .Example("f32[2,3]~, f32[3,4]~, f32[4]~ | activation=\"Tanh\"");
  r.Add(absl::StrCat("Conv2DLayer(x:T, filter:T, bias:T) -> (y:T) | T in FLT; strides:list(int)=[1,1,1,1]; "
                     "padding in {SAME,VALID}=\"SAME\"; data_format in {NHWC,NCHW}=\"NHWC\"; ",
                     kActivations))
      .Doc("A convolution layer: activation(conv(x, filter) + bias); filter [height, width, in, out], bias [out].")
      .Expand(Conv2DLayer)
      .Example("f32[1,4,4,2]~, f32[3,3,2,3]~, f32[3]~ | activation=\"Relu\"");
}

}  // namespace millrace
