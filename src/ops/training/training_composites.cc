// SPDX-License-Identifier: Apache-2.0
// Composites: clipping, learning-rate decays, moving averages, weight initialisers.
#include <cmath>

#include "ops/composite.h"

namespace millrace {
namespace {

using Outputs = StatusOr<std::vector<Output>>;
Outputs One(Output o) { return std::vector<Output>{o}; }

Output SquaredNorm(const GraphBuilder& b, Output x) {
  return b.Mul(b.Op("L2Loss", {x}), b.ScalarOf(BaseType(x.dtype()), 2));
}

// clip / max(norm, clip), which is 1 for small norms; NaN and infinite norms give NaN, so that they are seen.
Output Shrink(const GraphBuilder& b, Output norm, Output clip) { return b.Div(clip, b.Op("Maximum", {norm, clip})); }

Outputs ClipByNorm(const GraphBuilder& b, const CompositeCall& c) {
  const Output x = c.x("t");
  return One(b.Mul(x, Shrink(b, b.Op("Sqrt", {SquaredNorm(b, x)}), c.x("clip_norm"))));
}

Output Norm(const GraphBuilder& b, const std::vector<Output>& list) {
  std::vector<Output> squares;
  for (Output x : list) squares.push_back(SquaredNorm(b, x));
  return b.Op("Sqrt", {squares.size() == 1 ? squares[0] : b.Op("AddN", {squares})});
}

Outputs GlobalNorm(const GraphBuilder& b, const CompositeCall& c) { return One(Norm(b, c.list("t_list"))); }

Outputs ClipByGlobalNorm(const GraphBuilder& b, const CompositeCall& c) {
  const std::vector<Output> list = c.list("t_list");
  const Output norm = Norm(b, list), factor = Shrink(b, norm, c.x("clip_norm"));
  std::vector<Output> out;
  for (Output x : list) out.push_back(b.Mul(x, factor));
  out.push_back(norm);
  return out;
}

// step / decay_steps in the rate's type, floored when the rate is to fall in stairs.
StatusOr<Output> Periods(const GraphBuilder& b, const CompositeCall& c) {
  const DType t = BaseType(c.x("learning_rate").dtype());
  MR_ASSIGN_OR_RETURN(const float steps, c.Attr<float>("decay_steps"));
  MR_ASSIGN_OR_RETURN(const bool staircase, c.Attr<bool>("staircase"));
  if (!(steps > 0)) return InvalidArgument("decay_steps is ", steps, ", want a positive number");
  const Output p = b.Div(b.Cast(c.x("global_step"), t), b.ScalarOf(t, static_cast<double>(steps)));
  return staircase ? b.Op("Floor", {p}) : p;
}

Outputs ExponentialDecay(const GraphBuilder& b, const CompositeCall& c) {
  const DType t = BaseType(c.x("learning_rate").dtype());
  MR_ASSIGN_OR_RETURN(const Output p, Periods(b, c));
  MR_ASSIGN_OR_RETURN(const float rate, c.Attr<float>("decay_rate"));
  return One(b.Mul(c.x("learning_rate"), b.Op("Pow", {b.ScalarOf(t, static_cast<double>(rate)), p})));
}

Outputs NaturalExpDecay(const GraphBuilder& b, const CompositeCall& c) {
  const DType t = BaseType(c.x("learning_rate").dtype());
  MR_ASSIGN_OR_RETURN(const Output p, Periods(b, c));
  MR_ASSIGN_OR_RETURN(const float rate, c.Attr<float>("decay_rate"));
  return One(b.Mul(c.x("learning_rate"), b.Op("Exp", {b.Mul(b.ScalarOf(t, -static_cast<double>(rate)), p)})));
}

Outputs InverseTimeDecay(const GraphBuilder& b, const CompositeCall& c) {
  const DType t = BaseType(c.x("learning_rate").dtype());
  MR_ASSIGN_OR_RETURN(const Output p, Periods(b, c));
  MR_ASSIGN_OR_RETURN(const float rate, c.Attr<float>("decay_rate"));
  const Output divisor = b.Add(b.ScalarOf(t, 1), b.Mul(b.ScalarOf(t, static_cast<double>(rate)), p));
  return One(b.Div(c.x("learning_rate"), divisor));
}

Outputs PolynomialDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Output rate = c.x("learning_rate");
  const DType t = BaseType(rate.dtype());
  MR_ASSIGN_OR_RETURN(const float steps, c.Attr<float>("decay_steps"));
  MR_ASSIGN_OR_RETURN(const float end, c.Attr<float>("end_learning_rate"));
  MR_ASSIGN_OR_RETURN(const float power, c.Attr<float>("power"));
  if (!(steps > 0)) return InvalidArgument("decay_steps is ", steps, ", want a positive number");
  const Output limit = b.ScalarOf(t, static_cast<double>(steps)), last = b.ScalarOf(t, static_cast<double>(end));
  const Output p = b.Div(b.Op("Minimum", {b.Cast(c.x("global_step"), t), limit}), limit);
  const Output left = b.Op("Pow", {b.Sub(b.ScalarOf(t, 1), p), b.ScalarOf(t, static_cast<double>(power))});
  return One(b.Add(b.Mul(b.Sub(rate, last), left), last));
}

Outputs CosineDecay(const GraphBuilder& b, const CompositeCall& c) {
  const Output rate = c.x("learning_rate");
  const DType t = BaseType(rate.dtype());
  MR_ASSIGN_OR_RETURN(const float steps, c.Attr<float>("decay_steps"));
  MR_ASSIGN_OR_RETURN(const float alpha, c.Attr<float>("alpha"));
  if (!(steps > 0)) return InvalidArgument("decay_steps is ", steps, ", want a positive number");
  const Output limit = b.ScalarOf(t, static_cast<double>(steps));
  const Output p = b.Div(b.Op("Minimum", {b.Cast(c.x("global_step"), t), limit}), limit);
  const Output wave = b.Add(b.ScalarOf(t, 1), b.Op("Cos", {b.Mul(b.ScalarOf(t, 3.14159265358979323846), p)}));
  const double a = static_cast<double>(alpha);
  return One(b.Mul(rate, b.Add(b.Mul(b.ScalarOf(t, (1 - a) / 2), wave), b.ScalarOf(t, a))));
}

// The value of the first boundary that the step has not passed: values[i] up to and with boundaries[i].
Outputs PiecewiseConstant(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const std::vector<float> boundaries, c.Attr<std::vector<float>>("boundaries"));
  MR_ASSIGN_OR_RETURN(const std::vector<float> values, c.Attr<std::vector<float>>("values"));
  if (values.size() != boundaries.size() + 1) {
    return InvalidArgument("PiecewiseConstant has ", boundaries.size(), " boundaries and ", values.size(),
                           " values, wants one value more than boundaries");
  }
  const Output step = b.Cast(c.x("global_step"), DType::kFloat);
  Output rate = b.Scalar(values.back());
  for (size_t i = boundaries.size(); i-- > 0;) {
    rate = b.Op("SelectV2", {b.Op("LessEqual", {step, b.Scalar(boundaries[i])}), b.Scalar(values[i]), rate});
  }
  return One(rate);
}

// average -= (1 - decay) * (average - value)
Outputs AssignMovingAverage(const GraphBuilder& b, const CompositeCall& c) {
  const Output average = c.x("average");
  const Output rate = b.Sub(b.ScalarOf(BaseType(average.dtype()), 1), c.x("decay"));
  return One(b.Op("AssignSub", {average, b.Mul(b.Sub(average, c.x("value")), rate)}));
}

// Standard deviation (or half width) that keeps the variance of activations: scale / fan.
StatusOr<double> VarianceOf(const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  MR_ASSIGN_OR_RETURN(const float scale, c.Attr<float>("scale"));
  MR_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  MR_ASSIGN_OR_RETURN(const Shape full, shape.ToShape());
  double receptive = 1;
  for (int i = 0; i + 2 < full.rank(); ++i) receptive *= static_cast<double>(full.dim(i));
  const int r = full.rank();
  const double in = r == 0 ? 1 : static_cast<double>(full.dim(r >= 2 ? r - 2 : 0)) * receptive;
  const double out = r == 0 ? 1 : static_cast<double>(full.dim(r - 1)) * receptive;
  const double fan = mode == "fan_in" ? in : mode == "fan_out" ? out : (in + out) / 2;
  return static_cast<double>(scale) / std::fmax(1.0, fan);
}

Outputs VarianceScaling(const GraphBuilder& b, const CompositeCall& c) {
  MR_ASSIGN_OR_RETURN(const double variance, VarianceOf(c));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  MR_ASSIGN_OR_RETURN(const DType t, c.Attr<DType>("dtype"));
  MR_ASSIGN_OR_RETURN(const std::string distribution, c.Attr<std::string>("distribution"));
  MR_ASSIGN_OR_RETURN(const int64_t seed, c.Attr<int64_t>("seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, c.Attr<int64_t>("seed2"));
  const bool uniform = distribution == "uniform", truncated = distribution == "truncated_normal";
  // A normal cut at two deviations has 0.8796 of the deviation of a whole one.
  const double limit = std::sqrt(3 * variance), stddev = std::sqrt(variance) / (truncated ? 0.87962566103423978 : 1);
  // The nodes of TensorFlow's random_uniform, truncated_normal and random_normal.
  const GraphBuilder sum = b.Scope(uniform ? "random_uniform" : truncated ? "truncated_normal" : "random_normal");
  const GraphBuilder& inside = sum;
  const Output dims = inside.WithName("shape").Const(Tensor::Vector<int64_t>(shape.dims()));
  const Output low = inside.WithName(uniform ? "min" : "mean").ScalarOf(t, uniform ? -limit : 0);
  const Output high = inside.WithName(uniform ? "max" : "stddev").ScalarOf(t, uniform ? limit : stddev);
  const Output noise = inside.Op(
      uniform     ? "RandomUniform"
      : truncated ? "TruncatedNormal"
                  : "RandomStandardNormal",
      {dims}, {{"dtype", t}, {"seed", seed}, {"seed2", seed2}});
  const Output range = uniform ? inside.WithName("sub").Sub(high, low) : high;
  return One(sum.WithName("/").Op("Add", {inside.WithName("mul").Mul(noise, range), low}));
}

}  // namespace

void RegisterTrainingComposites(CompositeRegistry& r) {
  r.Add("ClipByNorm(t:T, clip_norm:T) -> (output:T) | T in FLT")
      .Doc("t scaled down so that its L2 norm is at most clip_norm (a scalar).")
      .Expand(ClipByNorm)
      .Example("f32[2,3]~, !f32[]{1}");
  r.Add("GlobalNorm(t_list:N*T) -> (norm:T) | T in FLT; N:int>=1")
      .Doc("The L2 norm of all tensors together.")
      .Expand(GlobalNorm)
      .Example("f32[2]~, f32[3]~");
  r.Add("ClipByGlobalNorm(t_list:N*T, clip_norm:T) -> (list_clipped:N*T, global_norm:T) | T in FLT; N:int>=1")
      .Doc(
          "All tensors scaled by one factor so that their common L2 norm is at most clip_norm (Pascanu et al. 2012); "
          "the "
          "norm before clipping is returned too.")
      .Expand(ClipByGlobalNorm)
      .Example("f32[2]~, f32[3]~, !f32[]{1}");
  const char* decay =
      "(learning_rate:T, global_step:Tstep) -> (rate:T) | T in FD; Tstep in IDX; decay_steps:float; "
      "decay_rate:float; staircase:bool=false";
  r.Add(absl::StrCat("ExponentialDecay", decay))
      .Doc("learning_rate * decay_rate ^ (global_step / decay_steps).")
      .Expand(ExponentialDecay)
      .Example("!f32[]{0.1}, i64[]{30} | decay_steps=10; decay_rate=0.5");
  r.Add(absl::StrCat("NaturalExpDecay", decay))
      .Doc("learning_rate * exp(-decay_rate * global_step / decay_steps).")
      .Expand(NaturalExpDecay)
      .Example("!f32[]{0.1}, i64[]{30} | decay_steps=10; decay_rate=0.5");
  r.Add(absl::StrCat("InverseTimeDecay", decay))
      .Doc("learning_rate / (1 + decay_rate * global_step / decay_steps).")
      .Expand(InverseTimeDecay)
      .Example("!f32[]{0.1}, i64[]{30} | decay_steps=10; decay_rate=0.5");
  r.Add(
       "PolynomialDecay(learning_rate:T, global_step:Tstep) -> (rate:T) | T in FD; Tstep in IDX; decay_steps:float; "
       "end_learning_rate:float=0.0001; power:float=1.0")
      .Doc("From learning_rate down to end_learning_rate over decay_steps, along (1 - step / decay_steps) ^ power.")
      .Expand(PolynomialDecay)
      .Example("!f32[]{0.1}, i64[]{5} | decay_steps=10");
  r.Add(
       "CosineDecay(learning_rate:T, global_step:Tstep) -> (rate:T) | T in FD; Tstep in IDX; decay_steps:float; "
       "alpha:float=0.0")
      .Doc(
          "From learning_rate down to alpha * learning_rate over decay_steps along half a cosine (Loshchilov and "
          "Hutter 2016).")
      .Expand(CosineDecay)
      .Example("!f32[]{0.1}, i64[]{5} | decay_steps=10");
  r.Add("PiecewiseConstant(global_step:Tstep) -> (rate:f32) | Tstep in IDX; boundaries:list(float); values:list(float)")
      .Doc("values[i] while global_step <= boundaries[i]; the last value after the last boundary.")
      .Expand(PiecewiseConstant)
      .Example("i64[]{5} | boundaries=[3,8]; values=[0.1,0.01,0.001]");
  r.Add("AssignMovingAverage(average:&T, value:T, decay:T) -> (average_ref:&T) | T in FLT")
      .Doc("Moves the variable `average` towards value: average -= (1 - decay) * (average - value).")
      .Expand(AssignMovingAverage);
  r.Add(
       "VarianceScaling() -> (values:dtype) | shape:shape; dtype in FLT=f32; scale:float=1.0; mode in "
       "{fan_in,fan_out,fan_avg}=\"fan_in\"; distribution in {normal,truncated_normal,uniform}=\"truncated_normal\"; "
       "seed:int=0; seed2:int=0")
      .Doc(
          "Initial weights whose variance is scale / fan, the fans being those of a dense or convolution kernel of "
          "this "
          "shape. Glorot: scale 1, fan_avg. He: scale 2, fan_in. LeCun: scale 1, fan_in.")
      .Expand(VarianceScaling)
      .Example("| shape=[3,4]; seed=3");
}

}  // namespace millrace
