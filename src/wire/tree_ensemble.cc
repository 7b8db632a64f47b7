// SPDX-License-Identifier: Apache-2.0
#include "wire/tree_ensemble.h"

#include "wire/table.h"

namespace millrace::wire {
namespace {

constexpr EnumValue kDirections[] = {{0, "DEFAULT_LEFT"}, {1, "DEFAULT_RIGHT"}};
constexpr EnumInfo kDirectionEnum = {"DefaultDirection", kDirections};

}  // namespace

const MessageInfo& TreeVector::Info() {
  static const MessageInfo& info = Table<TreeVector>("Vector").Field(1, "value", &TreeVector::value).Build();
  return info;
}

const MessageInfo& TreeSparseVector::Info() {
  static const MessageInfo& info =
      Table<TreeSparseVector>("SparseVector")
          .Field(1, "index", &TreeSparseVector::index)
          .Field(2, "value", &TreeSparseVector::value)
          .Build();
  return info;
}

const MessageInfo& TreeLeaf::Info() {
  static const MessageInfo& info =
      Table<TreeLeaf>("Leaf")
          .Member(TreeLeaf::Kind::kVector, 1, "vector", &TreeLeaf::vector)
          .Member(TreeLeaf::Kind::kSparseVector, 2, "sparse_vector", &TreeLeaf::sparse_vector)
          .Field(3, "scalar", &TreeLeaf::scalar)
          .Build();
  return info;
}

const MessageInfo& TreeBucketizedSplit::Info() {
  static const MessageInfo& info =
      Table<TreeBucketizedSplit>("BucketizedSplit")
          .Field(1, "feature_id", &TreeBucketizedSplit::feature_id)
          .Field(2, "threshold", &TreeBucketizedSplit::threshold)
          .Field(3, "left_id", &TreeBucketizedSplit::left_id)
          .Field(4, "right_id", &TreeBucketizedSplit::right_id)
          .Field(5, "dimension_id", &TreeBucketizedSplit::dimension_id)
          .Enum(6, "default_direction", &TreeBucketizedSplit::default_direction, kDirectionEnum)
          .Build();
  return info;
}

const MessageInfo& TreeCategoricalSplit::Info() {
  static const MessageInfo& info =
      Table<TreeCategoricalSplit>("CategoricalSplit")
          .Field(1, "feature_id", &TreeCategoricalSplit::feature_id)
          .Field(2, "value", &TreeCategoricalSplit::value)
          .Field(3, "left_id", &TreeCategoricalSplit::left_id)
          .Field(4, "right_id", &TreeCategoricalSplit::right_id)
          .Field(5, "dimension_id", &TreeCategoricalSplit::dimension_id)
          .Build();
  return info;
}

const MessageInfo& TreeDenseSplit::Info() {
  static const MessageInfo& info =
      Table<TreeDenseSplit>("DenseSplit")
          .Field(1, "feature_id", &TreeDenseSplit::feature_id)
          .Field(2, "threshold", &TreeDenseSplit::threshold)
          .Field(3, "left_id", &TreeDenseSplit::left_id)
          .Field(4, "right_id", &TreeDenseSplit::right_id)
          .Build();
  return info;
}

const MessageInfo& TreeNodeMetadata::Info() {
  static const MessageInfo& info =
      Table<TreeNodeMetadata>("NodeMetadata")
          .Field(1, "gain", &TreeNodeMetadata::gain)
          .Field(2, "original_leaf", &TreeNodeMetadata::original_leaf)
          .Build();
  return info;
}

const MessageInfo& TreeNode::Info() {
  static const MessageInfo& info =
      Table<TreeNode>("Node")
          .Member(TreeNode::Kind::kLeaf, 1, "leaf", &TreeNode::leaf)
          .Member(TreeNode::Kind::kBucketizedSplit, 2, "bucketized_split", &TreeNode::bucketized_split)
          .Member(TreeNode::Kind::kCategoricalSplit, 3, "categorical_split", &TreeNode::categorical_split)
          .Member(TreeNode::Kind::kDenseSplit, 4, "dense_split", &TreeNode::dense_split)
          .Field(777, "metadata", &TreeNode::metadata)
          .Build();
  return info;
}

const MessageInfo& Tree::Info() {
  static const MessageInfo& info = Table<Tree>("Tree").Field(1, "nodes", &Tree::nodes).Build();
  return info;
}

const MessageInfo& TreePrunedNode::Info() {
  static const MessageInfo& info =
      Table<TreePrunedNode>("TreeMetadata.PostPruneNodeUpdate")
          .Field(1, "new_node_id", &TreePrunedNode::new_node_id)
          .Field(2, "logit_change", &TreePrunedNode::logit_change)
          .Build();
  return info;
}

const MessageInfo& TreeMetadata::Info() {
  static const MessageInfo& info =
      Table<TreeMetadata>("TreeMetadata")
          .Field(2, "num_layers_grown", &TreeMetadata::num_layers_grown)
          .Field(3, "is_finalized", &TreeMetadata::is_finalized)
          .Field(4, "post_pruned_nodes_meta", &TreeMetadata::post_pruned_nodes_meta)
          .Build();
  return info;
}

const MessageInfo& TreeGrowingMetadata::Info() {
  static const MessageInfo& info =
      Table<TreeGrowingMetadata>("GrowingMetadata")
          .Field(1, "num_trees_attempted", &TreeGrowingMetadata::num_trees_attempted)
          .Field(2, "num_layers_attempted", &TreeGrowingMetadata::num_layers_attempted)
          .Field(3, "last_layer_node_start", &TreeGrowingMetadata::last_layer_node_start)
          .Field(4, "last_layer_node_end", &TreeGrowingMetadata::last_layer_node_end)
          .Build();
  return info;
}

const MessageInfo& TreeEnsemble::Info() {
  static const MessageInfo& info =
      Table<TreeEnsemble>("TreeEnsemble")
          .Field(1, "trees", &TreeEnsemble::trees)
          .Field(2, "tree_weights", &TreeEnsemble::tree_weights)
          .Field(3, "tree_metadata", &TreeEnsemble::tree_metadata)
          .Field(4, "growing_metadata", &TreeEnsemble::growing_metadata)
          .Build();
  return info;
}

const MessageInfo& TreeDebugOutput::Info() {
  static const MessageInfo& info =
      Table<TreeDebugOutput>("DebugOutput")
          .Field(1, "feature_ids", &TreeDebugOutput::feature_ids)
          .Field(2, "logits_path", &TreeDebugOutput::logits_path)
          .Build();
  return info;
}

}  // namespace millrace::wire
