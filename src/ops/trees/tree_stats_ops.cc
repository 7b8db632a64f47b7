// SPDX-License-Identifier: Apache-2.0
// Ops: sums of gradients and hessians by node and bucket, and the splits that gain most.
#include "op/shape_context.h"
#include "ops/trees/tree_ops.h"

namespace millrace {
namespace {

constexpr char kNotDifferentiable[] = "a choice among splits is not differentiated";

// Inputs 0 to 2, node_ids, gradients and hessians, have a row for each example.
StatusOr<int64_t> Examples(const ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape nodes, c.WithRank(0, 1));
  int64_t n = nodes.dim(0);
  for (int i : {1, 2}) {
    MR_ASSIGN_OR_RETURN(const PartialShape rows, c.WithRank(i, 2));
    MR_ASSIGN_OR_RETURN(n, c.MergeDim(n, rows.dim(0), "examples"));
  }
  return n;
}

int64_t AddDims(int64_t a, int64_t b) {
  int64_t sum = -1;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

// Gradients and hessians of an example.
StatusOr<int64_t> NumStats(const ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape gradients, c.WithRank(1, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape hessians, c.WithRank(2, 2));
  return AddDims(gradients.dim(1), hessians.dim(1));
}

Status MakeStatsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t n, Examples(c));
  for (int i : {1, 2}) {
    MR_ASSIGN_OR_RETURN(const PartialShape rows, c.WithRank(i, 2));
    MR_RETURN_IF_ERROR(c.MergeDim(rows.dim(1), 1, "logits").status());
  }
  for (int i = 3; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape buckets, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(n, c.MergeDim(n, buckets.dim(0), "examples"));
  }
  MR_ASSIGN_OR_RETURN(const int64_t splits, c.Attr<int64_t>("max_splits"));
  MR_ASSIGN_OR_RETURN(const int64_t buckets, c.Attr<int64_t>("num_buckets"));
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make({c.num_inputs() - 3, splits, buckets, 2}));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status AggregateShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t n, Examples(c));
  MR_ASSIGN_OR_RETURN(const PartialShape feature, c.WithRank(3, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(n, feature.dim(0), "examples").status());
  MR_ASSIGN_OR_RETURN(const int64_t splits, c.Attr<int64_t>("max_splits"));
  MR_ASSIGN_OR_RETURN(const int64_t buckets, c.Attr<int64_t>("num_buckets"));
  MR_ASSIGN_OR_RETURN(const int64_t stats, NumStats(c));
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make({splits, feature.dim(1), AddDims(buckets, 1), stats}));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status SparseAggregateShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(Examples(c).status());
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(3, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(4, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(0), values.dim(0), "entries").status());
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(1), 2, "parts of an index").status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(5, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(shape.dim(0), 2, "dimensions").status());
  c.set_output(0, PartialShape::Of({-1, 4}));
  c.set_output(1, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({4}));
  return absl::OkStatus();
}

// Input 0 is a range of nodes; the last four are scalars.
Status CheckOptions(const ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape range, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(range.dim(0), 2, "ends of a range").status());
  for (int i = c.num_inputs() - 4; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

Status BestGainsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckOptions(c));
  MR_ASSIGN_OR_RETURN(const int64_t splits, c.Attr<int64_t>("max_splits"));
  PartialShape stats = PartialShape::Of({splits, -1, 2});
  const ArgRange list = c.input_arg("stats_summary_list");
  for (int i = list.begin; i < list.end; ++i) {
    MR_ASSIGN_OR_RETURN(stats, c.Merge(stats, c.input(i), "sums"));
  }
  const int features = list.end - list.begin;
  for (int o = 0; o < c.num_outputs(); ++o) {
    c.set_output(o, o < 3 * features ? PartialShape::Of({-1}) : PartialShape::Of({-1, 1}));
  }
  return absl::OkStatus();
}

void SetSplitOutputs(ShapeContext& c, int64_t logits) {
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, PartialShape::Of({-1}));
  for (int o : {4, 5}) c.set_output(o, PartialShape::Of({-1, logits}));
}

Status BestSplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckOptions(c));
  MR_RETURN_IF_ERROR(c.WithRank(1, 4).status());
  MR_ASSIGN_OR_RETURN(const int64_t logits, c.Attr<int64_t>("logits_dimension"));
  SetSplitOutputs(c, logits);
  return absl::OkStatus();
}

Status SparseBestSplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckOptions(c));
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(1), 4, "parts of an index").status());
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(0), values.dim(0), "entries").status());
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(3, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(shape.dim(0), 4, "dimensions").status());
  SetSplitOutputs(c, 1);
  return absl::OkStatus();
}

void DeclareSums(OpRegistry& r) {
  r.Add(
       "BoostedTreesMakeStatsSummary(node_ids:i32, gradients:f32, hessians:f32, "
       "bucketized_features_list:num_features*i32) -> (stats_summary:f32) | max_splits:int>=1; num_buckets:int>=1; "
       "num_features:int>=1")
      .Doc("Sums of the gradients and hessians of the examples, by feature, node and bucket.")
      .Shape(MakeStatsShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example(
          "i32[3]{0 1 1}, f32[3,1]~, f32[3,1]+, i32[3]{0 1 2}, i32[3]{2 2 2} | max_splits=2; num_buckets=3; "
          "num_features=2");
  r.Add(
       "BoostedTreesAggregateStats(node_ids:i32, gradients:f32, hessians:f32, feature:i32) -> (stats_summary:f32) | "
       "max_splits:int>=1; num_buckets:int>=1")
      .Doc(
          "Sums of the gradients and hessians of the examples, by node, dimension of the feature and bucket. A bucket "
          "of -1 says that the example lacks the feature; the sums of such examples are behind the last bucket.")
      .Shape(AggregateShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example("i32[2]{0 1}, f32[2,1]~, f32[2,1]+, i32[2,2]{0 -1 1 0} | max_splits=2; num_buckets=2");
  r.Add(
       "BoostedTreesSparseAggregateStats(node_ids:i32, gradients:f32, hessians:f32, feature_indices:i32, "
       "feature_values:i32, feature_shape:i32) -> (stats_summary_indices:i32, stats_summary_values:f32, "
       "stats_summary_shape:i32) | max_splits:int>=1; num_buckets:int>=1")
      .Doc(
          "As BoostedTreesAggregateStats, of a feature that few examples have, as entries in ascending order; the sums "
          "are entries too.")
      .Shape(SparseAggregateShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example(
          "i32[2]{0 1}, f32[2,1]~, f32[2,1]+, i32[2,2]{0 1 1 0}, i32[2]{0 1}, i32[2]{2 2} | max_splits=2; "
          "num_buckets=2");
}

void DeclareSplits(OpRegistry& r) {
  r.Add(
       "BoostedTreesCalculateBestGainsPerFeature(node_id_range:i32, stats_summary_list:num_features*f32, l1:f32, "
       "l2:f32, tree_complexity:f32, min_node_weight:f32) -> (node_ids_list:num_features*i32, "
       "gains_list:num_features*f32, thresholds_list:num_features*i32, left_node_contribs_list:num_features*f32, "
       "right_node_contribs_list:num_features*f32) | max_splits:int>=1; num_features:int>=1")
      .Doc(
          "The bucket of each feature up to which each node is best split, and what its children's logits add to the "
          "node's. Nodes whose hessians are less than min_node_weight are passed over.")
      .Shape(BestGainsShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example(
          "i32[2]{0 2}, f32[2,3,2]+, f32[2,3,2]+, f32[]{0}, f32[]{0.1}, f32[]{0}, f32[]{0} | max_splits=2; "
          "num_features=2");
  r.Add(
       "BoostedTreesCalculateBestFeatureSplit(node_id_range:i32, stats_summary:f32, l1:f32, l2:f32, "
       "tree_complexity:f32, min_node_weight:f32) -> (node_ids:i32, gains:f32, feature_dimensions:i32, "
       "thresholds:i32, left_node_contribs:f32, right_node_contribs:f32, split_with_default_directions:str) | "
       "logits_dimension:int>=1; split_type in {inequality,equality}=\"inequality\"")
      .Doc(
          "The dimension and bucket by which each node is best split, and where examples without the feature go. The "
          "sums of an example are those of logits_dimension gradients and of as many hessians, or of the square of "
          "that, a matrix.")
      .Shape(BestSplitShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example("i32[2]{0 2}, f32[2,1,3,2]+, f32[]{0}, f32[]{0.1}, f32[]{0}, f32[]{0} | logits_dimension=1");
  r.Add(
       "BoostedTreesSparseCalculateBestFeatureSplit(node_id_range:i32, stats_summary_indices:i32, "
       "stats_summary_values:f32, stats_summary_shape:i32, l1:f32, l2:f32, tree_complexity:f32, min_node_weight:f32) "
       "-> (node_ids:i32, gains:f32, feature_dimensions:i32, thresholds:i32, left_node_contribs:f32, "
       "right_node_contribs:f32, split_with_default_directions:str) | logits_dimension:int>=1; split_type in "
       "{inequality}=\"inequality\"")
      .Doc(
          "As BoostedTreesCalculateBestFeatureSplit, of sums that are entries in the order of their nodes, for one "
          "logit.")
      .Shape(SparseBestSplitShape)
      .NotDifferentiable(kNotDifferentiable)
      .Example(
          "i32[2]{0 1}, i32[4,4]{0 0 0 0 0 0 0 1 0 0 1 0 0 0 1 1}, f32[4]+, i32[4]{1 1 3 2}, f32[]{0}, f32[]{0.1}, "
          "f32[]{0}, f32[]{0} | logits_dimension=1");
}

}  // namespace

void RegisterTreeStatsOps(OpRegistry& r) {
  DeclareSums(r);
  DeclareSplits(r);
}

}  // namespace millrace
