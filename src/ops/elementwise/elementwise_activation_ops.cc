// SPDX-License-Identifier: Apache-2.0
// Activation functions and their gradients as ops. Those that can, take the result of the forward op, so that its input
// need not be kept.
#include "ops/elementwise/elementwise_ops.h"

namespace millrace {
namespace {

Output Number(const GraphBuilder& b, Output like, double v) { return b.ScalarOf(BaseType(like.dtype()), v); }

// grad_op(dy, output).
template <const char* kGradOp>
Status FromResult(GradContext& c) {
  c.set_dx(0, c.b().Op(kGradOp, {c.dy(), c.y()}));
  return c.status();
}
constexpr char kReluGrad[] = "ReluGrad";
constexpr char kRelu6Grad[] = "Relu6Grad";
constexpr char kEluGrad[] = "EluGrad";
constexpr char kSeluGrad[] = "SeluGrad";

// The gradient op again for the incoming gradient; the features only choose, so they get zero.
template <const char* kGradOp>
Status ChoosingGradGrad(GradContext& c) {
  c.set_dx(0, c.b().Op(kGradOp, {c.dy(), c.x(1)}));
  c.set_dx(1, c.b().ZerosLike(c.x(1)));
  return c.status();
}
// Elu and Selu: below zero the derivative is linear in the result.
template <const char* kGradOp>
Status ExponentialGradGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output result = c.x(1);
  const Output zeros = b.ZerosLike(result);
  c.set_dx(0, b.Op(kGradOp, {c.dy(), result}));
  c.set_dx(1, b.Op("Select", {b.Op("Less", {result, zeros}), b.Mul(c.dy(), c.x(0)), zeros}));
  return c.status();
}
Status LeakyReluGradient(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const float alpha, c.Attr<float>("alpha"));
  c.set_dx(0, c.b().Op("LeakyReluGrad", {c.dy(), c.x(0)}, {{"alpha", alpha}}));
  return c.status();
}
Status LeakyReluGradGradient(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const float alpha, c.Attr<float>("alpha"));
  c.set_dx(0, c.b().Op("LeakyReluGrad", {c.dy(), c.x(1)}, {{"alpha", alpha}}));
  c.set_dx(1, c.b().ZerosLike(c.x(1)));
  return c.status();
}
Status SoftplusGradient(GradContext& c) {
  c.set_dx(0, c.b().Mul(c.dy(), c.b().Op("Sigmoid", {c.x(0)})));
  return c.status();
}
Status SoftplusGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(1);
  const Output spread = b.Add(b.Add(b.Op("Exp", {b.Neg(x)}), Number(b, x, 2)), b.Op("Exp", {x}));
  c.set_dx(0, b.Op("SoftplusGrad", {c.dy(), x}));
  c.set_dx(1, b.Div(b.Mul(c.dy(), c.x(0)), spread));
  return c.status();
}
Status SoftsignGradient(GradContext& c) {
  c.set_dx(0, c.b().Op("SoftsignGrad", {c.dy(), c.x(0)}));
  return c.status();
}
// -2 sign(x) / (1 + |x|)^3 for the features.
Status SoftsignGradGradient(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output x = c.x(1);
  const Output d = b.Add(Number(b, x, 1), b.Op("Abs", {x}));
  const Output slope = b.Div(b.Mul(Number(b, x, -2), b.Op("Sign", {x})), b.Mul(d, b.Op("Square", {d})));
  c.set_dx(0, b.Op("SoftsignGrad", {c.dy(), x}));
  c.set_dx(1, b.Mul(b.Mul(c.dy(), c.x(0)), slope));
  return c.status();
}

}  // namespace

void RegisterActivationOps(OpRegistry& r) {
  r.Add("Relu(features:T) -> (activations:T) | T in REAL|qi8")
      .Doc("The larger of x and zero.")
      .Shape(UnchangedShape)
      .Gradient(FromResult<kReluGrad>)
      .Example("f32[2,3]~");
  r.Add("ReluGrad(gradients:T, features:T) -> (backprops:T) | T in REAL")
      .Doc("The gradient where the features (or the result of Relu) are above zero, else 0.")
      .Shape(MergedShape)
      .Gradient(ChoosingGradGrad<kReluGrad>)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("Relu6(features:T) -> (activations:T) | T in REAL")
      .Doc("Each element moved into [0, 6].")
      .Shape(UnchangedShape)
      .Gradient(FromResult<kRelu6Grad>)
      .Example("f32[4]{-1 0.5 5 7}");
  r.Add("Relu6Grad(gradients:T, features:T) -> (backprops:T) | T in REAL")
      .Doc("The gradient where the features (or the result of Relu6) are between 0 and 6, else 0.")
      .Shape(MergedShape)
      .Gradient(ChoosingGradGrad<kRelu6Grad>)
      .Example("f32[4]~, f32[4]{-1 0.5 5 7}");
  r.Add("Elu(features:T) -> (activations:T) | T in FLT")
      .Doc("exp(x) - 1 below zero, else x.")
      .Shape(UnchangedShape)
      .Gradient(FromResult<kEluGrad>)
      .Example("f32[2,3]~");
  r.Add("EluGrad(gradients:T, outputs:T) -> (backprops:T) | T in FLT")
      .Doc("The gradient of Elu from its result.")
      .Shape(MergedShape)
      .Gradient(ExponentialGradGrad<kEluGrad>)
      .Example("f32[4]~, f32[4]{-0.9 -0.5 2 0.25}");
  r.Add("Selu(features:T) -> (activations:T) | T in FLT")
      .Doc("The scaled exponential linear unit: 1.0507 x above zero, 1.7581 (exp(x) - 1) below.")
      .Shape(UnchangedShape)
      .Gradient(FromResult<kSeluGrad>)
      .Example("f32[2,3]~");
  r.Add("SeluGrad(gradients:T, outputs:T) -> (backprops:T) | T in FLT")
      .Doc("The gradient of Selu from its result.")
      .Shape(MergedShape)
      .Gradient(ExponentialGradGrad<kSeluGrad>)
      .Example("f32[4]~, f32[4]{-0.9 -0.5 2 0.25}");
  r.Add("LeakyRelu(features:T) -> (activations:T) | alpha:float=0.2; T in FLT=f32")
      .Doc("x above zero, else alpha x.")
      .Shape(UnchangedShape)
      .Gradient(LeakyReluGradient)
      .Example("f32[2,3]~");
  r.Add("LeakyReluGrad(gradients:T, features:T) -> (backprops:T) | alpha:float=0.2; T in FLT=f32")
      .Doc("The gradient where the features are above zero, else alpha times it.")
      .Shape(MergedShape)
      .Gradient(LeakyReluGradGradient)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("Softplus(features:T) -> (activations:T) | T in FLT")
      .Doc("log(exp(x) + 1), a smooth form of Relu.")
      .Shape(UnchangedShape)
      .Gradient(SoftplusGradient)
      .Example("f32[2,3]~");
  r.Add("SoftplusGrad(gradients:T, features:T) -> (backprops:T) | T in FLT")
      .Doc("The gradient of Softplus: gradients / (exp(-features) + 1).")
      .Shape(MergedShape)
      .Gradient(SoftplusGradGradient)
      .Example("f32[2,3]~, f32[2,3]~");
  r.Add("Softsign(features:T) -> (activations:T) | T in FLT")
      .Doc("x / (1 + |x|), which lies in (-1, 1).")
      .Shape(UnchangedShape)
      .Gradient(SoftsignGradient)
      .Example("f32[2,3]~");
  r.Add("SoftsignGrad(gradients:T, features:T) -> (backprops:T) | T in FLT")
      .Doc("The gradient of Softsign: gradients / (1 + |features|)^2.")
      .Shape(MergedShape)
      .Gradient(SoftsignGradGradient)
      .Example("f32[4]~, f32[4]{-0.9 -0.5 2 0.25}");
}

}  // namespace millrace
