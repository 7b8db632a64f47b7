// SPDX-License-Identifier: Apache-2.0
// Ops: ensembles of boosted trees as resources: their state, their growth, and what they predict.
#include "ops/trees/tree_ops.h"

#include <algorithm>

#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "trees are state";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\" | S";

Status StateShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_RETURN_IF_ERROR(ScalarShape(c));
  c.set_output(4, PartialShape::Of({2}));
  return absl::OkStatus();
}

// Handle, scalars.
Status ScalarInputs(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status RequireRanks(const ShapeContext& c, std::initializer_list<const char*> names, int rank) {
  for (const char* name : names) {
    const ArgRange arg = c.input_arg(name);
    for (int i = arg.begin; i < arg.end; ++i) MR_RETURN_IF_ERROR(c.WithRank(i, rank).status());
  }
  return absl::OkStatus();
}

Status UpdateShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireRanks(c, {"tree_ensemble_handle", "max_depth", "learning_rate", "pruning_mode"}, 0));
  MR_RETURN_IF_ERROR(
      RequireRanks(c, {"feature_ids", "dimension_ids", "node_ids", "gains", "thresholds", "split_types"}, 1));
  MR_RETURN_IF_ERROR(RequireRanks(c, {"left_node_contribs", "right_node_contribs"}, 2));
  const ArgRange nodes = c.input_arg("node_ids");
  return c.MergeDim(c.WithRank(1, 1)->dim(0), nodes.end - nodes.begin, "features").status();
}

Status CenterBiasShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireRanks(c, {"tree_ensemble_handle", "l1", "l2"}, 0));
  MR_RETURN_IF_ERROR(RequireRanks(c, {"mean_gradients", "mean_hessians"}, 2));
  return ScalarShape(c);
}

// The number of examples, from the vectors of buckets and what else has one of each.
StatusOr<int64_t> BatchSize(const ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  int64_t size = -1;
  for (int i = 1; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(size, c.MergeDim(size, vector.dim(0), "examples"));
  }
  return size;
}

Status PredictionShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t n, BatchSize(c));
  MR_ASSIGN_OR_RETURN(const int64_t width, c.Attr<int64_t>("logits_dimension"));
  for (int o = 1; o < c.num_outputs(); ++o) c.set_output(o, PartialShape::Of({n}));
  MR_ASSIGN_OR_RETURN(PartialShape logits, PartialShape::Make({n, std::max<int64_t>(width, -1)}));
  c.set_output(0, std::move(logits));
  return absl::OkStatus();
}

Status DebugShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t n, BatchSize(c));
  c.set_output(0, PartialShape::Of({n}));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const std::string& schema, const char* doc, ShapeFn shape) {
  r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIsState).NoExample("it needs an ensemble");
}

void DeclareStateOps(OpRegistry& r) {
  Declare(r, absl::StrCat("BoostedTreesEnsembleResourceHandleOp() -> (resource:res) | ", kNames),
          "The handle of an ensemble of trees, which BoostedTreesCreateEnsemble makes.", ScalarShape);
  Declare(r, "IsBoostedTreesEnsembleInitialized(tree_ensemble_handle:res) -> (is_initialized:bool) | S",
          "Whether the ensemble has been made.", ScalarInputs);
  const char* const set = "(tree_ensemble_handle:res, stamp_token:i64, tree_ensemble_serialized:str) -> () | S";
  Declare(r, absl::StrCat("BoostedTreesCreateEnsemble", set),
          "Makes an ensemble from the serialized TreeEnsemble, an empty string for none, unless there is one already.",
          ScalarInputs);
  Declare(r, absl::StrCat("BoostedTreesDeserializeEnsemble", set), "Replaces the state of an ensemble.", ScalarInputs);
  Declare(r,
          "BoostedTreesSerializeEnsemble(tree_ensemble_handle:res) -> (stamp_token:i64, tree_ensemble_serialized:str) "
          "| S",
          "The state of an ensemble. The stamp changes with each update.", ScalarInputs);
  Declare(r,
          "BoostedTreesGetEnsembleStates(tree_ensemble_handle:res) -> (stamp_token:i64, num_trees:i32, "
          "num_finalized_trees:i32, num_attempted_layers:i32, last_layer_nodes_range:i32) | S",
          "How far an ensemble has grown. The nodes of the last layer, from the first up to before the second number, "
          "are those to split next.",
          StateShape);
}

void DeclareGrowthOps(OpRegistry& r) {
  Declare(r,
          "BoostedTreesUpdateEnsemble(tree_ensemble_handle:res, feature_ids:i32, node_ids:num_features*i32, "
          "gains:num_features*f32, thresholds:num_features*i32, left_node_contribs:num_features*f32, "
          "right_node_contribs:num_features*f32, max_depth:i32, learning_rate:f32) -> () | pruning_mode:int>=0; "
          "num_features:int>=0 | S",
          "Adds a layer to the last tree: each node is split by the feature that gains most there. pruning_mode 1 "
          "leaves nodes where the gain is negative, 2 takes such splits back when the tree has max_depth layers. Then "
          "the next tree begins.",
          UpdateShape);
  Declare(r,
          "BoostedTreesUpdateEnsembleV2(tree_ensemble_handle:res, feature_ids:i32, dimension_ids:num_features*i32, "
          "node_ids:num_features*i32, gains:num_features*f32, thresholds:num_features*i32, "
          "left_node_contribs:num_features*f32, right_node_contribs:num_features*f32, split_types:num_features*str, "
          "max_depth:i32, learning_rate:f32, pruning_mode:i32) -> () | num_features:int>=0 | S",
          "As BoostedTreesUpdateEnsemble, with splits that say of which dimension of the feature they are and whether "
          "they ask for a bucket or a range of them.",
          UpdateShape);
  Declare(r,
          "BoostedTreesCenterBias(tree_ensemble_handle:res, mean_gradients:f32, mean_hessians:f32, l1:f32, l2:f32) -> "
          "(continue_centering:bool) | S",
          "Moves the logit of the first tree's root to where the loss is least. False when that hardly changed it.",
          CenterBiasShape);
}

void DeclarePredictionOps(OpRegistry& r) {
  const char* const features = "bucketized_features:num_bucketized_features*i32) -> (";
  const char* const attrs = ") | num_bucketized_features:int>=1; logits_dimension:int | S";
  Declare(r, absl::StrCat("BoostedTreesPredict(tree_ensemble_handle:res, ", features, "logits:f32", attrs),
          "The weighted sum of the leaves that each example reaches.", PredictionShape);
  Declare(
      r,
      absl::StrCat("BoostedTreesTrainingPredict(tree_ensemble_handle:res, cached_tree_ids:i32, cached_node_ids:i32, ",
                   features, "partial_logits:f32, tree_ids:i32, node_ids:i32", attrs),
      "What is to be added to each example's logits since it was in the cached node of the cached tree, and where it "
      "is now. A cached node of -1 stands for none.",
      PredictionShape);
  Declare(r,
          absl::StrCat("BoostedTreesExampleDebugOutputs(tree_ensemble_handle:res, ", features,
                       "examples_debug_outputs_serialized:str", attrs),
          "A serialized DebugOutput of each example: the features that it was split by and its logit after each split.",
          DebugShape);
}

}  // namespace

void RegisterTreeOps(OpRegistry& r) {
  DeclareStateOps(r);
  DeclareGrowthOps(r);
  DeclarePredictionOps(r);
  RegisterTreeStatsOps(r);
  RegisterTreeQuantileOps(r);
  RegisterForestOps(r);
  RegisterGbdtOps(r);
}

}  // namespace millrace
