// SPDX-License-Identifier: Apache-2.0
// Composites: clipping, weight initialisers.
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
