// SPDX-License-Identifier: Apache-2.0
// Ops: trees of random forests (contrib.tensor_forest) as resources: their state, their growth, and what they predict.
#include <algorithm>

#include "op/shape_context.h"
#include "ops/op_list.h"
#include "ops/trees/tree_ops.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "trees are state";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\" | S";

Status Scalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return c.num_outputs() == 0 ? absl::OkStatus() : ScalarShape(c);
}

Status VectorShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({-1}));
  return absl::OkStatus();
}

// The rows of the dense features, which come behind the handles; -1 where there may be sparse ones alone.
int64_t Rows(const ShapeContext& c) {
  const PartialShape& dense = c.input(c.input_arg("input_data").begin);
  return dense.has_rank() && dense.rank() == 2 ? dense.dim(0) : -1;
}

Status PredictionShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({Rows(c), -1}));
  c.set_output(1, PartialShape::Of({Rows(c)}));
  return absl::OkStatus();
}

Status LeavesShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({Rows(c)}));
  return absl::OkStatus();
}

Status NoShape(ShapeContext&) { return absl::OkStatus(); }

void Declare(OpRegistry& r, const std::string& schema, const char* doc, ShapeFn shape) {
  r.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kIsState).NoExample("it needs a tree");
}

void DeclareState(OpRegistry& r) {
  Declare(r, absl::StrCat("DecisionTreeResourceHandleOp() -> (resource:res) | ", kNames),
          "The handle of a tree of a forest, which CreateTreeVariable makes.", ScalarShape);
  Declare(r, "TreeIsInitializedOp(tree_handle:res) -> (is_initialized:bool) | S", "Whether the tree has been made.",
          Scalars);
  const char* const set = "(tree_handle:res, tree_config:str) -> () | params:string | S";
  Declare(r, absl::StrCat("CreateTreeVariable", set),
          "Makes a tree from the serialized decision_trees.Model, one of a single leaf from an empty string, unless "
          "there is one already. "
          "params is a serialized TensorForestParams.",
          Scalars);
  Declare(r, absl::StrCat("TreeDeserialize", set), "Replaces a tree by a serialized one.", Scalars);
  Declare(r, "TreeSerialize(tree_handle:res) -> (tree_config:str) | S", "A tree as a serialized decision_trees.Model.",
          Scalars);
  Declare(r, "TreeSize(tree_handle:res) -> (tree_size:i32) | S", "The number of a tree's nodes.", Scalars);
  Declare(r, "FeatureUsageCounts(tree_handle:res) -> (feature_counts:i32) | params:string | S",
          "How many nodes of a tree are split by each of the num_features features.", VectorShape);
  Declare(
      r, absl::StrCat("FertileStatsResourceHandleOp() -> (resource:res) | ", kNames),
      "The handle of what is known of a growing tree's leaves, which CreateFertileStatsVariable makes.", ScalarShape);
  Declare(r, "FertileStatsIsInitializedOp(stats_handle:res) -> (is_initialized:bool) | S",
          "Whether the statistics have been made.", Scalars);
  const char* const set_stats = "(stats_handle:res, stats_config:str) -> () | params:string | S";
  Declare(r, absl::StrCat("CreateFertileStatsVariable", set_stats),
          "Makes the statistics of a tree's leaves from serialized FertileStats, those of a root from an empty string, "
          "unless there are some.",
          Scalars);
  Declare(
      r, absl::StrCat("FertileStatsDeserialize", set_stats), "Replaces the statistics by serialized ones.", Scalars);
  Declare(r, "FertileStatsSerialize(stats_handle:res) -> (stats_config:str) | params:string | S",
          "The statistics as serialized FertileStats; which leaves there are alone, unless params says that "
          "checkpoints hold more.",
          Scalars);
}

void DeclareUse(OpRegistry& r) {
  const std::string features =
      "input_data:f32, sparse_input_indices:i64, sparse_input_values:f32, sparse_input_shape:i64";
  Declare(r,
          absl::StrCat("TreePredictionsV4(tree_handle:res, ", features,
                       ") -> (predictions:f32, tree_paths:str) | input_spec:string; params:string | S"),
          "What the leaf that each example comes to says: the probability of each class, or the mean of each target. "
          "The paths are "
          "serialized TreePaths where params asks for them. input_spec names the columns of the features.",
          PredictionShape);
  Declare(r,
          absl::StrCat("TraverseTreeV4(tree_handle:res, ", features,
                       ") -> (leaf_ids:i32) | input_spec:string; params:string | S"),
          "The leaf that each example comes to.", LeavesShape);
  Declare(
      r, "UpdateModelV4(tree_handle:res, leaf_ids:i32, input_labels:f32, input_weights:f32) -> () | params:string | S",
      "Counts the classes of examples in their leaves. Without weights each example counts once.", NoShape);
  Declare(
      r,
      absl::StrCat("ProcessInputV4(tree_handle:res, stats_handle:res, ", features,
                   ", input_labels:f32, input_weights:f32, leaf_ids:i32) -> (finished_nodes:i32) | random_seed:int; "
                   "input_spec:string; params:string | S"),
      "Shows examples to the leaves that they came to: the first ones become candidates of splits, later ones tell how "
      "good these are. "
      "Gives the leaves that have seen enough.",
      VectorShape);
  Declare(r, "GrowTreeV4(tree_handle:res, stats_handle:res, finished_nodes:i32) -> () | params:string | S",
          "Splits leaves by their best candidates while the tree has less than max_nodes nodes.", NoShape);
}

}  // namespace

void RegisterForestOps(OpRegistry& r) {
  DeclareState(r);
  DeclareUse(r);
  r.Add("ReinterpretStringToFloat(input_data:str) -> (output_data:f32)")
      .Doc("A number for each string, which a tree can split by: its hash, rounded.")
      .Shape(UnchangedShape)
      .NotDifferentiable("strings have no derivative")
      .Example("str[2]{\"hello\" \"\"}");
}

}  // namespace millrace
