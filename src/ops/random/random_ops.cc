// SPDX-License-Identifier: Apache-2.0
// Ops: random numbers. All come from Philox streams: fixed seeds give the same numbers everywhere, however many threads
// make them.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"
#include "ops/random/random_sampler_ops.h"

namespace millrace {
namespace {

constexpr char kRandom[] = "random numbers do not depend on the inputs";

Status ShapeFromFirstInput(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.InputAsShape(0));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status UniformIntShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  return ShapeFromFirstInput(c);
}

Status StatelessShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape seed, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(seed.dim(0), 2, "the seed must have two elements").status());
  return ShapeFromFirstInput(c);
}

// shape ++ shape of the parameter.
Status PerParameterShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape prefix, c.InputAsShape(0));
  const PartialShape& parameter = c.input(1);
  if (!prefix.has_rank() || !parameter.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = prefix.dims();
  dims.insert(dims.end(), parameter.dims().begin(), parameter.dims().end());
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

// Samples have alpha's dimensions last, so that alpha broadcasts to them.
Status GammaGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const DType dtype = c.x(1).dtype(), wide = dtype == DType::kDouble ? dtype : DType::kFloat;
  const Output slope = b.Op("RandomGammaGrad", {b.Cast(c.x(1), wide), b.Cast(c.y(), wide)});
  c.set_dx(1, SumToShapeOf(b, b.Mul(c.dy(), b.Cast(slope, dtype)), c.x(1)));
  return c.status();
}

// Parameters are scalars, or vectors of one element or as many as there are rows.
Status ParameterizedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(ShapeFromFirstInput(c));
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  return absl::OkStatus();
}

Status MultinomialShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape logits, c.WithRank(0, 2));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> samples, c.ConstantInt(1));
  if (samples && *samples < 0) return InvalidArgument("num_samples is ", *samples, ", want 0 or more");
  c.set_output(0, PartialShape::Of({logits.dim(0), samples.value_or(-1)}));
  return absl::OkStatus();
}

Status CheckSeed(ShapeContext& c, int i) {
  MR_ASSIGN_OR_RETURN(const PartialShape seed, c.WithRank(i, 1));
  return c.MergeDim(seed.dim(0), 2, "the seed must have two elements").status();
}

Status StatelessMultinomialShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckSeed(c, 2));
  return MultinomialShape(c);
}

Status StatelessUniformIntShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckSeed(c, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  return ShapeFromFirstInput(c);
}

// shape, key, counter, alg.
Status KeyedShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape key, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(key.dim(0), 1, "the key must have one element").status());
  MR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  return ShapeFromFirstInput(c);
}

Status KeyedUniformIntShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(4));
  MR_RETURN_IF_ERROR(c.RequireScalar(5));
  return KeyedShape(c);
}

Status KeyCounterShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckSeed(c, 0));
  c.set_output(0, PartialShape::Of({1}));
  c.set_output(1, PartialShape::Of({2}));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::Of({}));
  return absl::OkStatus();
}

}  // namespace

void RegisterRandomOps(OpRegistry& r) {
  RegisterStatelessSamplerOps(r);
  struct Filled {
    const char* name;
    const char* doc;
  };
  for (const Filled& op :
       {Filled{"RandomUniform", "Numbers uniform in [0, 1)."},
        Filled{"RandomStandardNormal", "Standard normal numbers."},
        Filled{"TruncatedNormal", "Standard normal numbers of magnitude below 2; others are drawn again."}}) {
    r.Add(absl::StrCat(op.name, "(shape:T) -> (output:dtype) | seed:int=0; seed2:int=0; dtype in FLT; T in IDX | S"))
        .Doc(absl::StrCat(op.doc,
                          " The stream is fixed by the two seeds; when both are 0 it is chosen at random. Every run "
                          "goes on where the last one stopped."))
        .Shape(ShapeFromFirstInput)
        .NotDifferentiable(kRandom)
        .Example("i32[2]{2 3} | dtype=f32; seed=3");
  }
  for (const Filled& op :
       {Filled{"StatelessRandomUniform", "Numbers uniform in [0, 1)"},
        Filled{"StatelessRandomNormal", "Standard normal numbers"},
        Filled{"StatelessTruncatedNormal", "Standard normal numbers of magnitude below 2"}}) {
    r.Add(absl::StrCat(
              op.name, "(shape:T, seed:Tseed) -> (output:dtype) | dtype in FLT=f32; T in IDX=i32; Tseed in IDX=i64"))
        .Doc(absl::StrCat(op.doc, ", a function of the two-element seed and the shape alone."))
        .Shape(StatelessShape)
        .NotDifferentiable(kRandom)
        .Example("i32[2]{2 3}, i64[2]{5 7}");
  }
  for (const Filled& op :
       {Filled{"StatelessRandomUniformV2", "Numbers uniform in [0, 1)"},
        Filled{"StatelessRandomNormalV2", "Standard normal numbers"},
        Filled{"StatelessTruncatedNormalV2", "Standard normal numbers of magnitude below 2"}}) {
    r.Add(absl::StrCat(op.name,
                       "(shape:Tshape, key:u64, counter:u64, alg:i32) -> (output:dtype) | dtype in FLT=f32; Tshape in "
                       "IDX=i32"))
        .Doc(absl::StrCat(op.doc,
                          ", a function of key, counter and shape alone. alg is 1 (Philox) or 3, which is Philox as "
                          "well; StatelessRandomGetKeyCounter makes key and counter of a seed."))
        .Shape(KeyedShape)
        .NotDifferentiable(kRandom)
        .Example("i32[2]{2 3}, u64[1]{5}, u64[2]{0 7}, i32[]{1}");
  }
  r.Add(
       "StatelessRandomUniformIntV2(shape:Tshape, key:u64, counter:u64, alg:i32, minval:dtype, maxval:dtype) -> "
       "(output:dtype) | dtype in IDX|u32|u64; Tshape in IDX=i32")
      .Doc("Whole numbers uniform in [minval, maxval), a function of key, counter and shape alone.")
      .Shape(KeyedUniformIntShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, u64[1]{5}, u64[2]{0 7}, i32[]{3}, i32[]{-3}, i32[]{10}");
  r.Add(
       "StatelessRandomUniformFullInt(shape:T, seed:Tseed) -> (output:dtype) | dtype in IDX|u32|u64=u64; T in IDX=i32; "
       "Tseed in IDX|u32|u64=i64")
      .Doc("Whole numbers of which every bit is random, a function of the two-element seed and the shape alone.")
      .Shape(StatelessShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, i64[2]{5 7} | dtype=i32");
  r.Add(
       "StatelessRandomUniformFullIntV2(shape:Tshape, key:u64, counter:u64, alg:i32) -> (output:dtype) | "
       "dtype in IDX|u32|u64=u64; Tshape in IDX=i32")
      .Doc("Whole numbers of which every bit is random, a function of key, counter and shape alone.")
      .Shape(KeyedShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, u64[1]{5}, u64[2]{0 7}, i32[]{1}");
  r.Add("StatelessRandomGetKeyCounter(seed:Tseed) -> (key:u64, counter:u64) | Tseed in IDX=i64")
      .Doc(
          "The key and the counter that a two-element seed stands for in stateless ops: near seeds give unrelated "
          "ones.")
      .Shape(KeyCounterShape)
      .NotDifferentiable(kRandom)
      .Example("i64[2]{5 7}");
  r.Add("StatelessRandomGetAlg() -> (alg:i32) | S")
      .Doc("The algorithm that stateless ops use here: 1, which is Philox.")
      .Shape(ScalarShape)
      .NotDifferentiable(kRandom)
      .Example("");
  r.Add("StatelessRandomGetKeyCounterAlg(seed:Tseed) -> (key:u64, counter:u64, alg:i32) | Tseed in IDX=i64")
      .Doc("StatelessRandomGetKeyCounter and StatelessRandomGetAlg.")
      .Shape(KeyCounterShape)
      .NotDifferentiable(kRandom)
      .Example("i64[2]{5 7}");
  r.Add(
       "RandomUniformInt(shape:T, minval:Tout, maxval:Tout) -> (output:Tout) | seed:int=0; seed2:int=0; Tout in IDX; "
       "T in IDX | S")
      .Doc(
          "Integers uniform in [minval, maxval). The bias towards small values is below the width of the range / 2^32 "
          "(or 2^64).")
      .Shape(UniformIntShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, i32[]{-2}, i32[]{9} | seed=3");
  r.Add("RandomShuffle(value:T) -> (output:T) | seed:int=0; seed2:int=0; T:type | S")
      .Doc("The rows of `value` (along dimension 0) in random order.")
      .Shape(UnchangedShape)
      .NoGradient("the permutation is not returned, so a gradient cannot be routed back")
      .Example("f32[4,2]# | seed=3");
  r.Add(
       "Multinomial(logits:T, num_samples:i32) -> (output:output_dtype) | seed:int=0; seed2:int=0; T in REAL; "
       "output_dtype in IDX=i64 | S")
      .Doc("Draws num_samples class numbers for each row of unnormalised log-probabilities [batch, classes].")
      .Shape(MultinomialShape)
      .NotDifferentiable("samples are class numbers")
      .Example("f32[2,3]~, i32[]{4} | seed=3");
  r.Add(
       "StatelessMultinomial(logits:T, num_samples:i32, seed:Tseed) -> (output:output_dtype) | T in REAL; Tseed in "
       "IDX=i64; "
       "output_dtype in IDX=i64")
      .Doc("Multinomial, a function of the two-element seed and the other inputs alone.")
      .Shape(StatelessMultinomialShape)
      .NotDifferentiable("samples are class numbers")
      .Example("f32[2,3]~, i32[]{4}, i64[2]{5 7}");
  r.Add(
       "StatelessRandomUniformInt(shape:T, seed:Tseed, minval:dtype, maxval:dtype) -> (output:dtype) | dtype in IDX; T "
       "in "
       "IDX; Tseed in IDX=i64")
      .Doc("Whole numbers uniform in [minval, maxval), a function of the two-element seed and the shape alone.")
      .Shape(StatelessUniformIntShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, i64[2]{5 7}, i32[]{-3}, i32[]{10}");
  r.Add(
       "RandomPoisson(shape:S, rate:dtype) -> (output:dtype) | seed:int=0; seed2:int=0; S in IDX; dtype in HFD | S D25")
      .Deprecated("use RandomPoissonV2 instead")
      .Doc("RandomPoissonV2 with results of the type of rate.")
      .Shape(PerParameterShape)
      .NotDifferentiable("samples are counts")
      .Example("i32[1]{3}, f64[2]{0.5 20} | seed=3");
  r.Add("RandomGamma(shape:S, alpha:T) -> (output:T) | seed:int=0; seed2:int=0; S in IDX; T in HFD | S")
      .Doc("Gamma(alpha, 1) numbers: `shape` of them for each element of alpha, by Marsaglia and Tsang (2000).")
      .Shape(PerParameterShape)
      .Gradient(GammaGrad)
      .Example("i32[1]{3}, !f32[2]{0.5 2} | seed=3");  // rejection makes samples jump, their distribution does not
  r.Add(
       "ParameterizedTruncatedNormal(shape:T, means:dtype, stdevs:dtype, minvals:dtype, maxvals:dtype) -> "
       "(output:dtype) | seed:int=0; seed2:int=0; dtype in FLT; T in IDX | S")
      .Doc(
          "Normal numbers between two bounds, of which one may be infinite: by rejection of normal, uniform or "
          "exponential ones (Robert, 1995). Parameters are scalars, or vectors with one element for each row of the "
          "result.")
      .Shape(ParameterizedShape)
      .NotDifferentiable(kRandom)
      .Example("i32[2]{2 3}, f32[]{0}, f32[]{1}, f32[]{-1}, f32[]{2} | seed=3");
  r.Add(
       "RandomPoissonV2(shape:S, rate:R) -> (output:dtype) | seed:int=0; seed2:int=0; S in IDX; R in HFD|IDX=f64; "
       "dtype "
       "in HFD|IDX=i64 | S")
      .Doc(
          "Poisson numbers: `shape` of them for each element of rate; by multiplication (Knuth) below rate 10, else by "
          "transformed rejection (Hoermann 1993).")
      .Shape(PerParameterShape)
      .NotDifferentiable("samples are counts")
      .Example("i32[1]{3}, f64[2]{0.5 20} | seed=3");
}

}  // namespace millrace
