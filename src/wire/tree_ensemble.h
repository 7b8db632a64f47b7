// SPDX-License-Identifier: Apache-2.0
//
// Ensembles of decision trees (TensorFlow's boosted_trees.proto), as checkpoints hold them.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/message.h"

namespace millrace::wire {

struct TreeVector {
  std::vector<float> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeSparseVector {
  std::vector<int32_t> index;
  std::vector<float> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// One logit, or a vector of them.
struct TreeLeaf {
  enum class Kind : uint8_t { kNone, kVector, kSparseVector };
  Kind kind = Kind::kNone;
  float scalar = 0;
  Box<TreeVector> vector;
  Box<TreeSparseVector> sparse_vector;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

enum class TreeDefaultDirection : int32_t { kLeft = 0, kRight = 1 };

// Left where the bucket is at most `threshold`.
struct TreeBucketizedSplit {
  int32_t feature_id = 0;
  int32_t threshold = 0;
  int32_t dimension_id = 0;
  int32_t default_direction = 0;
  int32_t left_id = 0;
  int32_t right_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Left where the bucket is `value`.
struct TreeCategoricalSplit {
  int32_t feature_id = 0;
  int32_t value = 0;
  int32_t dimension_id = 0;
  int32_t left_id = 0;
  int32_t right_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeDenseSplit {
  int32_t feature_id = 0;
  float threshold = 0;
  int32_t left_id = 0;
  int32_t right_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeNodeMetadata {
  float gain = 0;
  Box<TreeLeaf> original_leaf;  // what the node was before it was split
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeNode {
  enum class Kind : uint8_t { kNone, kLeaf, kBucketizedSplit, kCategoricalSplit, kDenseSplit };
  Kind kind = Kind::kNone;
  Box<TreeLeaf> leaf;
  Box<TreeBucketizedSplit> bucketized_split;
  Box<TreeCategoricalSplit> categorical_split;
  Box<TreeDenseSplit> dense_split;
  Box<TreeNodeMetadata> metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Children are places in `nodes`; node 0 is the root.
struct Tree {
  std::vector<TreeNode> nodes;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Where a node of a tree went when it was pruned, and what that changed for the examples in it.
struct TreePrunedNode {
  int32_t new_node_id = 0;
  std::vector<float> logit_change;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeMetadata {
  int32_t num_layers_grown = 0;
  bool is_finalized = false;
  std::vector<TreePrunedNode> post_pruned_nodes_meta;  // by the number of the node before; empty: nothing was pruned
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeGrowingMetadata {
  int64_t num_trees_attempted = 0;
  int64_t num_layers_attempted = 0;
  int32_t last_layer_node_start = 0;
  int32_t last_layer_node_end = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TreeEnsemble {
  std::vector<Tree> trees;
  std::vector<float> tree_weights;
  std::vector<TreeMetadata> tree_metadata;
  Box<TreeGrowingMetadata> growing_metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// An example's way through an ensemble: the features that it was split by, and its logit after each.
struct TreeDebugOutput {
  std::vector<int32_t> feature_ids;
  std::vector<float> logits_path;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
