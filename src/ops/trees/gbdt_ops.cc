// SPDX-License-Identifier: Apache-2.0
// Ops of tf.contrib.boosted_trees: sums of gradients, quantiles of features, and the splits of nodes by them.
#include "op/shape_context.h"
#include "ops/op_list.h"
#include "ops/trees/tree_ops.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "trees, sums and quantiles are state";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\" | S";

Status NoShape(ShapeContext&) { return absl::OkStatus(); }

Status Scalars(ShapeContext& c) {
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, PartialShape::Of({}));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const std::string& schema, const std::string& doc, ShapeFn shape) {
  r.Add(schema).Doc(doc.c_str()).Shape(shape).NotDifferentiable(kIsState).NoExample("it needs what other ops make");
}

void DeclareStats(OpRegistry& r, const std::string& kind, const char* create, const char* what) {
  const std::string handle = "stats_accumulator_handle:res";
  const std::string sums =
      "output_partition_ids:i32, output_feature_ids:i64, output_gradients:f32, output_hessians:f32";
  const std::string rows = "partition_ids:i32, feature_ids:i64, gradients:f32, hessians:f32";
  Declare(r, absl::StrCat("StatsAccumulator", kind, "ResourceHandleOp() -> (resource:res) | ", kNames),
          absl::StrCat("The handle of sums of gradients and hessians, ", what, ", by node, feature and dimension."),
          Scalars);
  Declare(r, absl::StrCat("StatsAccumulator", kind, "IsInitialized(", handle, ") -> (is_initialized:bool) | S"),
          "Whether the sums have been made.", Scalars);
  Declare(r, absl::StrCat("CreateStatsAccumulator", kind, "(", handle, ", stamp_token:i64", create, ") -> () | S"),
          "Makes empty sums, unless there are some already.", NoShape);
  Declare(r,
          absl::StrCat("StatsAccumulator", kind,
                       "Add(stats_accumulator_handles:num_resource_handles*res, stamp_token:i64, "
                       "partition_ids:num_resource_handles*i32, feature_ids:num_resource_handles*i64, "
                       "gradients:num_resource_handles*f32, hessians:num_resource_handles*f32) -> () | "
                       "num_resource_handles:int>=1 | S"),
          "Adds a batch to each of the sums. What comes with an old stamp is passed over.", NoShape);
  Declare(r,
          absl::StrCat("StatsAccumulator", kind, "Flush(", handle,
                       ", stamp_token:i64, next_stamp_token:i64) -> (num_updates:i64, ", sums, ") | S"),
          "Gives the sums and empties them.", NoShape);
  Declare(r,
          absl::StrCat("StatsAccumulator", kind, "Deserialize(", handle, ", stamp_token:i64, num_updates:i64, ", rows,
                       ") -> () | S"),
          "Replaces the sums by those that were serialized.", NoShape);
  Declare(r,
          absl::StrCat("StatsAccumulator", kind, "Serialize(", handle, ") -> (stamp_token:i64, num_updates:i64, ", sums,
                       ") | S"),
          "Gives the sums and keeps them.", NoShape);
  r.Add(absl::StrCat("StatsAccumulator", kind, "MakeSummary(", rows, ") -> (", sums, ")"))
      .Doc("Adds up the rows of a batch that are of one node, feature and dimension.")
      .Shape(NoShape)
      .NotDifferentiable(kIsState)
      .Example("i32[2]{1 1}, i64[2,2]{0 0 0 0}, f32[2]{1 2}, f32[2]{3 4}");
}

void DeclareQuantileState(OpRegistry& r) {
  const std::string handle = "(quantile_accumulator_handle:res";
  Declare(r, absl::StrCat("QuantileStreamResourceHandleOp() -> (resource:res) | ", kNames),
          "The handle of a stream of a feature's values, whose quantiles are wanted.", Scalars);
  Declare(r, absl::StrCat("QuantileAccumulatorIsInitialized", handle, ") -> (is_initialized:bool) | S"),
          "Whether the stream has been made.", Scalars);
  Declare(r,
          absl::StrCat(
              "CreateQuantileAccumulator", handle,
              ", stamp_token:i64) -> () | container:string=\"\"; shared_name:string=\"\"; "
              "max_elements:int=1099511627776; epsilon:float; num_quantiles:int; generate_quantiles:bool=false | S"),
          "Makes an empty stream, unless there is one already.", NoShape);
  Declare(r,
          "QuantileAccumulatorAddSummaries(quantile_accumulator_handles:num_resource_handles*res, stamp_token:i64, "
          "summaries:num_resource_handles*str) -> () | num_resource_handles:int>=1 | S",
          "Adds a serialized QuantileSummaryState to each of the streams. What comes with an old stamp is passed over.",
          NoShape);
  Declare(r,
          "QuantileAccumulatorGetBuckets(quantile_accumulator_handles:num_resource_handles*res, stamp_token:i64) -> "
          "(are_buckets_ready:num_resource_handles*bool, buckets:num_resource_handles*f32) | "
          "num_resource_handles:int>=1 | S",
          "The boundaries between buckets that a flush has made, where the stamp is theirs.", NoShape);
  Declare(r, absl::StrCat("QuantileAccumulatorFlush", handle, ", stamp_token:i64, next_stamp_token:i64) -> () | S"),
          "Makes boundaries of what came, and empties the stream.", NoShape);
  Declare(r,
          absl::StrCat("QuantileAccumulatorFlushSummary", handle,
                       ", stamp_token:i64, next_stamp_token:i64) -> (output:str) | S"),
          "Gives a serialized QuantileSummaryState of what came, and empties the stream.", Scalars);
  Declare(r,
          absl::StrCat("QuantileAccumulatorSerialize", handle,
                       ") -> (stamp_token:i64, stream_state:str, are_buckets_ready:bool, buckets:f32) | S"),
          "The state of a stream, a serialized QuantileStreamState, and its boundaries.", NoShape);
  Declare(r,
          absl::StrCat("QuantileAccumulatorDeserialize", handle,
                       ", stamp_token:i64, stream_state:str, are_buckets_ready:bool, buckets:f32) -> () | S"),
          "Replaces the state of a stream.", NoShape);
}

void DeclareQuantiles(OpRegistry& r) {
  const std::string features =
      "(dense_float_features:num_dense_features*f32, sparse_float_feature_indices:num_sparse_features*i64, "
      "sparse_float_feature_values:num_sparse_features*f32, sparse_float_feature_shapes:num_sparse_features*i64, "
      "example_weights:f32) -> ";
  const std::string counts = "num_dense_features:int>=0; num_sparse_features:int>=0; ";
  r.Add(absl::StrCat("MakeQuantileSummaries", features,
                     "(dense_summaries:num_dense_features*str, sparse_summaries:num_sparse_features*str) | ", counts,
                     "epsilon:float"))
      .Doc("A serialized QuantileSummaryState of each feature of a batch, whose ranks are off by at most epsilon.")
      .Shape(Scalars)
      .NotDifferentiable(kIsState)
      .NoExample("summaries are messages");
  r.Add(absl::StrCat("QuantileBuckets", features,
                     "(dense_buckets:num_dense_features*f32, sparse_buckets:num_sparse_features*f32) | ", counts,
                     "dense_config:list(string); sparse_config:list(string)"))
      .Doc("The boundaries between buckets of each feature of a batch, as serialized QuantileConfigs say.")
      .Shape(NoShape)
      .NotDifferentiable(kIsState)
      .NoExample("its configs are messages");
  r.Add(
       "Quantiles(dense_values:num_dense_features*f32, sparse_values:num_sparse_features*f32, "
       "dense_buckets:num_dense_features*f32, sparse_buckets:num_sparse_features*f32, "
       "sparse_indices:num_sparse_features*i64) -> (dense_quantiles:num_dense_features*i32, "
       "sparse_quantiles:num_sparse_features*i32) | num_dense_features:int>=0; num_sparse_features:int>=0")
      .Doc("For each value the bucket that it is in, and its dimension.")
      .Shape(NoShape)
      .NotDifferentiable(kIsState)
      .Example(
          "f32[3]{1 2 9}, f32[2]{1 3}, f32[2]{1 5}, f32[2]{2 4}, i64[2,2]{0 0 1 0} | num_dense_features=1; "
          "num_sparse_features=1");
  r.Add("BucketizeWithInputBoundaries(input:T, boundaries:f32) -> (output:i32) | T in i32|i64|f32|f64")
      .Doc("How many of the boundaries, which ascend, are at most each value.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kIsState)
      .Example("i32[3]{1 3 9}, f32[2]{3 5}");
}

void DeclareSplits(OpRegistry& r) {
  const std::string begin = "(num_minibatches:i64, partition_ids:i32, ";
  const std::string middle = "gradients:f32, hessians:f32, ";
  const std::string column = "class_id:i32, feature_column_group_id:i32, ";
  const std::string end =
      "l1_regularization:f32, l2_regularization:f32, tree_complexity_regularization:f32, min_node_weight:f32, "
      "multiclass_strategy:i32";
  const std::string out = ") -> (output_partition_ids:i32, gains:f32, split_infos:str)";
  const auto add = [&](const std::string& schema, const char* doc) {
    r.Add(schema).Doc(doc).Shape(NoShape).NotDifferentiable(kIsState).NoExample("splits are messages");
  };
  add(absl::StrCat("BuildDenseInequalitySplits", begin, "bucket_ids:i64, ", middle, "bucket_boundaries:f32, ", column,
                   end, ", weak_learner_type:i32", out),
      "For each node the best split between buckets of a feature, a serialized SplitInfo, and what it gains.");
  add(absl::StrCat("BuildSparseInequalitySplits", begin, "bucket_ids:i64, ", middle, "bucket_boundaries:f32, ", column,
                   "bias_feature_id:i64, ", end, out),
      "For each node the best split between buckets of a feature that examples may lack. The sums of all examples of a "
      "node stand "
      "under the id of the bias.");
  add(absl::StrCat("BuildCategoricalEqualitySplits", begin, "feature_ids:i64, ", middle, column,
                   "bias_feature_id:i64, ", end, ", weak_learner_type:i32", out),
      "For each node the best split between one value of a feature and all others.");
}

void DeclareEnsembles(OpRegistry& r) {
  const std::string handle = "(tree_ensemble_handle:res";
  Declare(r, absl::StrCat("DecisionTreeEnsembleResourceHandleOp() -> (resource:res) | ", kNames),
          "The handle of an ensemble of trees, which CreateTreeEnsembleVariable makes.", Scalars);
  Declare(r, absl::StrCat("TreeEnsembleIsInitializedOp", handle, ") -> (is_initialized:bool) | S"),
          "Whether the ensemble has been made.", Scalars);
  const std::string set = ", stamp_token:i64, tree_ensemble_config:str) -> () | S";
  Declare(r, absl::StrCat("CreateTreeEnsembleVariable", handle, set),
          "Makes an ensemble from a serialized DecisionTreeEnsembleConfig, unless there is one already.", NoShape);
  Declare(r, absl::StrCat("TreeEnsembleDeserialize", handle, set), "Replaces the state of an ensemble.", NoShape);
  Declare(r, absl::StrCat("TreeEnsembleStampToken", handle, ") -> (stamp_token:i64) | S"),
          "The stamp of an ensemble, which changes with each update.", Scalars);
  Declare(r, absl::StrCat("TreeEnsembleSerialize", handle, ") -> (stamp_token:i64, tree_ensemble_config:str) | S"),
          "The state of an ensemble as a serialized DecisionTreeEnsembleConfig.", Scalars);
  Declare(r,
          absl::StrCat(
              "TreeEnsembleUsedHandlers", handle,
              ", stamp_token:i64) -> (num_used_handlers:i64, used_handlers_mask:bool) | num_all_handlers:int>=0 | S"),
          "Which features have split a node, where their number is limited.", NoShape);
}

void DeclarePredictions(OpRegistry& r) {
  const std::string features =
      "dense_float_features:num_dense_float_features*f32, sparse_float_feature_indices:num_sparse_float_features*i64, "
      "sparse_float_feature_values:num_sparse_float_features*f32, "
      "sparse_float_feature_shapes:num_sparse_float_features*i64, "
      "sparse_int_feature_indices:num_sparse_int_features*i64, sparse_int_feature_values:num_sparse_int_features*i64, "
      "sparse_int_feature_shapes:num_sparse_int_features*i64";
  const std::string counts =
      "num_dense_float_features:int>=0; num_sparse_float_features:int>=0; num_sparse_int_features:int>=0; "
      "use_locking:bool=false";
  const std::string begin = absl::StrCat(
      "(tree_ensemble_handle:res, seed:i64, ", features, ") -> (predictions:f32, drop_out_tree_indices_weights:f32");
  const std::string end = absl::StrCat(
      ") | learner_config:string; ", counts,
      "; apply_dropout:bool; apply_averaging:bool; center_bias:bool; reduce_dim:bool | S");
  Declare(
      r, absl::StrCat("GradientTreesPrediction", begin, end),
      "The weighted sum of the leaves that each example comes to, for each class, and the numbers and weights of the "
      "trees that were left out, by a seed.",
      NoShape);
  Declare(r, absl::StrCat("GradientTreesPredictionVerbose", begin, ", leaf_index:i32", end),
          "As GradientTreesPrediction, and the leaf of each tree.", NoShape);
  Declare(r,
          absl::StrCat("GradientTreesPartitionExamples(tree_ensemble_handle:res, ", features,
                       ") -> (partition_ids:i32) | ", counts, " | S"),
          "The leaf of the tree that grows that each example comes to; 0 where the next tree is to begin.", NoShape);
}

void DeclareGrowth(OpRegistry& r) {
  const std::string stamps = "(tree_ensemble_handle:res, stamp_token:i64, next_stamp_token:i64, ";
  Declare(
      r,
      absl::StrCat(
          "CenterTreeEnsembleBias", stamps,
          "delta_updates:f32) -> (continue_centering:bool) | learner_config:string; centering_epsilon:float=0.01 | S"),
      "Adds to the first tree, a bias. False when that hardly changed it: then the tree is done.", Scalars);
  Declare(r,
          absl::StrCat("GrowTreeEnsemble", stamps,
                       "learning_rate:f32, dropout_seed:i64, max_tree_depth:i32, weak_learner_type:i32, "
                       "partition_ids:num_handlers*i32, gains:num_handlers*f32, splits:num_handlers*str) -> () | "
                       "learner_config:string; num_handlers:int>=0; center_bias:bool | S"),
          "Adds a layer to the tree that grows, or begins the next: each node is split by the feature that gains most "
          "there.",
          NoShape);
  Declare(r,
          "TreeEnsembleStats(tree_ensemble_handle:res, stamp_token:i64) -> (num_trees:i64, num_layers:i64, "
          "active_tree:i64, "
          "active_layer:i64, attempted_trees:i64, attempted_layers:i64) | S",
          "How far an ensemble has grown.", Scalars);
}

}  // namespace

void RegisterGbdtOps(OpRegistry& r) {
  DeclareStats(r, "Scalar", "", "a number each");
  DeclareStats(r, "Tensor", ", per_slot_gradient_shape:i64, per_slot_hessian_shape:i64", "tensors");
  DeclareQuantileState(r);
  DeclareQuantiles(r);
  DeclareSplits(r);
  DeclareEnsembles(r);
  DeclarePredictions(r);
  DeclareGrowth(r);
}

}  // namespace millrace
