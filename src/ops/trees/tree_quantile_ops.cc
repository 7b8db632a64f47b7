// SPDX-License-Identifier: Apache-2.0
// Ops: quantiles of features, and the buckets between them.
#include "op/shape_context.h"
#include "ops/trees/tree_ops.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "quantile streams are state";
constexpr char kNoExample[] = "it needs quantile streams";

void SetAll(ShapeContext& c, const PartialShape& shape) {
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, shape);
}

Status ScalarInputs(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status MakeSummariesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(c.num_inputs() - 1));
  for (int i = 0; i + 2 < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  SetAll(c, PartialShape::Of({-1, 4}));
  return absl::OkStatus();
}

Status FlushSummariesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  SetAll(c, PartialShape::Of({-1, 4}));
  return absl::OkStatus();
}

Status AddSummariesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  for (int i = 1; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape summary, c.WithRank(i, 2));
    MR_RETURN_IF_ERROR(c.MergeDim(summary.dim(1), 4, "numbers of an entry").status());
  }
  return absl::OkStatus();
}

Status BoundariesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  SetAll(c, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status BucketizeShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, *c.WithRank(o, 1));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const char* schema, const char* doc, ShapeFn shape) {
  r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIsState).NoExample(kNoExample);
}

}  // namespace

void RegisterTreeQuantileOps(OpRegistry& r) {
  Declare(r,
          "BoostedTreesQuantileStreamResourceHandleOp() -> (resource:res) | container:string=\"\"; "
          "shared_name:string=\"\" | S",
          "The handle of quantile streams, which BoostedTreesCreateQuantileStreamResource makes.", ScalarShape);
  Declare(r,
          "IsBoostedTreesQuantileStreamResourceInitialized(quantile_stream_resource_handle:res) -> "
          "(is_initialized:bool) | S",
          "Whether the streams have been made.", ScalarInputs);
  Declare(
      r,
      "BoostedTreesCreateQuantileStreamResource(quantile_stream_resource_handle:res, epsilon:f32, num_streams:i64) "
      "-> () | max_elements:int=1099511627776 | S",
      "Makes a stream for each feature, unless there are some already. A quantile's rank is off by at most epsilon, "
      "as a part of the whole weight, in streams of max_elements numbers.",
      ScalarInputs);
  Declare(r,
          "BoostedTreesQuantileStreamResourceAddSummaries(quantile_stream_resource_handle:res, "
          "summaries:num_features*f32) -> () | num_features:int>=0 | S",
          "Adds what BoostedTreesMakeQuantileSummaries has told of a batch to the streams.", AddSummariesShape);
  Declare(r,
          "BoostedTreesFlushQuantileSummaries(quantile_stream_resource_handle:res) -> (summaries:num_features*f32) | "
          "num_features:int>=0 | S",
          "Takes what the streams have, as summaries.", FlushSummariesShape);
  Declare(r,
          "BoostedTreesQuantileStreamResourceFlush(quantile_stream_resource_handle:res, num_buckets:i64) -> () | "
          "generate_quantiles:bool=false | S",
          "Takes what the streams have, and sets the boundaries of about num_buckets buckets by it: values that were "
          "there, or with generate_quantiles as many quantiles as buckets.",
          ScalarInputs);
  Declare(r,
          "BoostedTreesQuantileStreamResourceGetBucketBoundaries(quantile_stream_resource_handle:res) -> "
          "(bucket_boundaries:num_features*f32) | num_features:int>=0 | S",
          "The boundaries between the buckets of each feature, ascending.", BoundariesShape);
  Declare(r,
          "BoostedTreesQuantileStreamResourceDeserialize(quantile_stream_resource_handle:res, "
          "bucket_boundaries:num_streams*f32) -> () | num_streams:int>=1 | S",
          "Sets the boundaries between the buckets of each feature.", BoundariesShape);
  r.Add(
       "BoostedTreesMakeQuantileSummaries(float_values:num_features*f32, example_weights:f32, epsilon:f32) -> "
       "(summaries:num_features*f32) | num_features:int>=0")
      .Doc(
          "A summary of each feature's values, ascending: value, weight of what equals it, and the least and the most "
          "that the weight up to it may be, where ranks are off by at most epsilon. There is one weight, or one for "
          "each example.")
      .Shape(MakeSummariesShape)
      .NotDifferentiable("ranks change by steps")
      .Example("f32[3]~, f32[3]~, f32[3]+, f32[]{0.1} | num_features=2");
  r.Add(
       "BoostedTreesBucketize(float_values:num_features*f32, bucket_boundaries:num_features*f32) -> "
       "(buckets:num_features*i32) | num_features:int>=0")
      .Doc("The number of boundaries that are less than each value; the last bucket's for values above all of them.")
      .Shape(BucketizeShape)
      .NotDifferentiable("buckets change by steps")
      .Example("f32[3]~, f32[2]{0 1} | num_features=1");
}

}  // namespace millrace
