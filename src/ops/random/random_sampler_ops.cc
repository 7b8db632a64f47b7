// SPDX-License-Identifier: Apache-2.0
// Ops: samples of distributions with parameters that are functions of a seed, or of a key and a counter, and the
// inputs.
#include "ops/random/random_sampler_ops.h"

#include "graph/gradient.h"
#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kCounts[] = "samples are counts";

// The shape of all samples is input 0.
Status SampledShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(0));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status SeededShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape seed, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(seed.dim(0), 2, "the seed must have two elements").status());
  return SampledShape(c);
}

Status RequireKey(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape key, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(key.dim(0), 1, "the key must have one element").status());
  MR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  return c.RequireScalar(3);
}

Status KeyedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireKey(c));
  return SampledShape(c);
}

Status ShuffleShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireKey(c));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// As the numbers of RandomGamma, by their places in the distribution.
template <int kAlpha>
Status GammaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const Output alpha = c.x(kAlpha);
  const DType dtype = alpha.dtype(), wide = dtype == DType::kDouble ? dtype : DType::kFloat;
  const Output slope = b.Op("RandomGammaGrad", {b.Cast(alpha, wide), b.Cast(c.y(), wide)});
  c.set_dx(kAlpha, SumToShapeOf(b, b.Mul(c.dy(), b.Cast(slope, dtype)), alpha));
  return c.status();
}

}  // namespace

void RegisterStatelessSamplerOps(OpRegistry& r) {
  constexpr char kShape[] = " `shape` is that of all samples, and ends with that of the parameters.";
  const std::string gamma = absl::StrCat("RandomGamma, a function of its inputs alone.", kShape);
  r.Add(
       "StatelessRandomGammaV2(shape:T, seed:Tseed, alpha:dtype) -> (output:dtype) | dtype in HFD; T in IDX; "
       "Tseed in IDX=i64")
      .Doc(gamma)
      .Shape(SeededShape)
      .Gradient(GammaGrad<2>)
      .Example("i32[2]{3 2}, i64[2]{5 7}, !f32[2]{0.5 2}");
  r.Add(
       "StatelessRandomGammaV3(shape:shape_dtype, key:u64, counter:u64, alg:i32, alpha:dtype) -> (output:dtype) | "
       "dtype in HFD; shape_dtype in IDX=i32")
      .Doc(gamma)
      .Shape(KeyedShape)
      .Gradient(GammaGrad<4>)
      .Example("i32[2]{3 2}, u64[1]{5}, u64[2]{0 7}, i32[]{1}, !f32[2]{0.5 2}");
  r.Add(
       "StatelessRandomPoisson(shape:T, seed:Tseed, lam:Rtype) -> (output:dtype) | Rtype in HFD|IDX; dtype in HFD|IDX; "
       "T in IDX; Tseed in IDX=i64")
      .Doc(absl::StrCat("RandomPoissonV2, a function of its inputs alone.", kShape))
      .Shape(SeededShape)
      .NotDifferentiable(kCounts)
      .Example("i32[2]{3 2}, i64[2]{5 7}, f32[2]{0.5 20} | dtype=i64");
  r.Add(
       "StatelessRandomBinomial(shape:S, seed:Tseed, counts:T, probs:T) -> (output:dtype) | S in IDX; Tseed in "
       "IDX=i64; "
       "T in HFD|IDX=f64; dtype in HFD|IDX=i64")
      .Doc(absl::StrCat("Binomial numbers, a function of the inputs alone: of `counts` trials, which succeed with a "
                        "chance of `probs`; "
                        "both broadcast.",
                        kShape))
      .Shape(SeededShape)
      .NotDifferentiable(kCounts)
      .Example("i32[2]{3 2}, i64[2]{5 7}, f32[2]{10 200}, f32[]{0.3}");
  r.Add("StatelessShuffle(value:T, key:u64, counter:u64, alg:i32) -> (output:T) | T:type")
      .Doc("The rows of `value` in an order that key and counter determine.")
      .Shape(ShuffleShape)
      .NoGradient("the permutation is not returned, so a gradient cannot be routed back")
      .Example("f32[4,2]#, u64[1]{5}, u64[2]{0 7}, i32[]{1}");
}

}  // namespace millrace
