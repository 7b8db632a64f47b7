// SPDX-License-Identifier: Apache-2.0
// Ops: a few classes drawn out of many, for losses that cannot look at all of them.
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kSamples[] = "classes are drawn, and counts follow from the distribution alone";

Status SamplerShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape classes, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
  MR_ASSIGN_OR_RETURN(const int64_t num_sampled, c.Attr<int64_t>("num_sampled"));
  MR_RETURN_IF_ERROR(c.MergeDim(classes.dim(1), num_true, "true_classes must have num_true columns").status());
  c.set_output(0, PartialShape::Of({num_sampled}));
  c.set_output(1, PartialShape::Of({classes.dim(0), num_true}));
  c.set_output(2, PartialShape::Of({num_sampled}));
  return absl::OkStatus();
}

Status HitsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape classes, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const int64_t num_true, c.Attr<int64_t>("num_true"));
  if (num_true >= 0) {
    MR_RETURN_IF_ERROR(c.MergeDim(classes.dim(1), num_true, "true_classes must have num_true columns").status());
  }
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  for (int i = 0; i < 3; ++i) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status SkipGramShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  for (int i = 0; i < 2; ++i) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

constexpr char kSignature[] =
    "(true_classes:i64) -> (sampled_candidates:i64, true_expected_count:f32, sampled_expected_count:f32) | "
    "num_true:int>=1; num_sampled:int>=1; unique:bool; ";
constexpr char kCounts[] =
    " With `unique` no class is drawn twice. The other outputs are how often each of the true classes [batch, "
    "num_true], and each of those drawn, is expected among num_sampled draws.";

}  // namespace

void RegisterCandidateOps(OpRegistry& r) {
  struct Sampler {
    const char* name;
    const char* doc;
  };
  for (const Sampler& op :
       {Sampler{"UniformCandidateSampler", "Draws classes of [0, range_max), all equally likely."},
        Sampler{
            "LogUniformCandidateSampler",
            "Draws classes k of [0, range_max) with probability log((k+2)/(k+1)) / log(range_max+1): Zipf's law, when "
            "classes are numbered by falling frequency."},
        Sampler{"LearnedUnigramCandidateSampler",
                "Draws classes of [0, range_max) as often as they were true ones in earlier runs, plus one."},
        Sampler{
            "ThreadUnsafeUnigramCandidateSampler", "Draws classes of [0, range_max) by weights that are all one."}}) {
    r.Add(absl::StrCat(op.name, kSignature, "range_max:int>=1; seed:int=0; seed2:int=0 | S"))
        .Doc(absl::StrCat(op.doc, kCounts))
        .Shape(SamplerShape)
        .NotDifferentiable(kSamples)
        .Example("i64[2,1]{1 3} | num_true=1; num_sampled=4; unique=true; range_max=9; seed=3");
  }
  r.Add(absl::StrCat("AllCandidateSampler", kSignature, "seed:int=0; seed2:int=0 | S"))
      .Doc(absl::StrCat("All the classes 0 to num_sampled - 1, for tests.", kCounts))
      .Shape(SamplerShape)
      .NotDifferentiable(kSamples)
      .Example("i64[2,1]{1 3} | num_true=1; num_sampled=4; unique=true");
  r
      .Add(absl::StrCat(
          "FixedUnigramCandidateSampler", kSignature,
          "range_max:int>=1; vocab_file:string=\"\"; distortion:float=1; num_reserved_ids:int=0; num_shards:int>=1=1; "
          "shard:int>=0=0; unigrams:list(float)=[]; seed:int=0; seed2:int=0 | S"))
      .Doc(absl::StrCat(
          "Draws classes with probabilities proportional to count^distortion. The counts are `unigrams`, or the "
          "last comma-separated field of each line of vocab_file; num_reserved_ids classes of weight 0 come "
          "before them, and only every num_shards-th class, from `shard` on, takes part.",
          kCounts))
      .Shape(SamplerShape)
      .NotDifferentiable(kSamples)
      .Example("i64[2,1]{1 3} | num_true=1; num_sampled=3; unique=true; range_max=4; unigrams=[4,3,2,1]; seed=3");
  r.Add(
       "ComputeAccidentalHits(true_classes:i64, sampled_candidates:i64) -> (indices:i32, ids:i64, weights:f32) | "
       "num_true:int; seed:int=0; seed2:int=0")
      .Doc(
          "Where drawn classes are true ones: for each hit the row of true_classes, the place in sampled_candidates, "
          "and the lowest float, which added to the logit takes the class out.")
      .Shape(HitsShape)
      .NotDifferentiable("its outputs are places")
      .Example("i64[2,2]{1 2 7 1}, i64[2]{7 1} | num_true=2");
  r.Add(
       "SkipGramGenerateCandidates(input_tensor:T, min_skips:i32, max_skips:i32, start:i32, limit:i32, "
       "emit_self_as_target:bool) -> (tokens:T, labels:T) | T:type; seed:int=0; seed2:int=0 | S")
      .Doc(
          "Pairs of a token and one near it: each of `limit` tokens from `start` on (all that follow where limit is "
          "negative), with each of them at most so many places away as is drawn for it from min_skips to max_skips; "
          "with itself too where emit_self_as_target says so.")
      .Shape(SkipGramShape)
      .NotDifferentiable(kSamples)
      .Example("i64[4]{7 8 9 5}, i32[]{1}, i32[]{2}, i32[]{0}, i32[]{-1}, bool[]{false} | seed=3");
}

}  // namespace millrace
