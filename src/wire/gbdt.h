// SPDX-License-Identifier: Apache-2.0
//
// The messages of tf.contrib.boosted_trees: ensembles of decision trees, splits that their nodes may get, quantiles,
// and how trees grow.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/message.h"
#include "wire/tree_ensemble.h"

namespace millrace::wire {

// A number for each class, or for some of them.
struct GbdtLeaf {
  enum class Kind : uint8_t { kNone, kVector, kSparseVector };
  Kind kind = Kind::kNone;
  Box<TreeVector> vector;
  Box<TreeSparseVector> sparse_vector;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Left where the feature is at most `threshold`.
struct GbdtFloatSplit {
  int32_t feature_column = 0;
  float threshold = 0;
  int32_t left_id = 0;
  int32_t right_id = 0;
  int32_t dimension_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// The same of a feature that examples may lack.
struct GbdtSparseSplit {
  Box<GbdtFloatSplit> split;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Left where one of the values is `feature_id`.
struct GbdtIdSplit {
  int32_t feature_column = 0;
  int64_t feature_id = 0;
  int32_t left_id = 0;
  int32_t right_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Left where one of the values is one of `feature_ids`.
struct GbdtIdSetSplit {
  int32_t feature_column = 0;
  std::vector<int64_t> feature_ids;
  int32_t left_id = 0;
  int32_t right_id = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtNodeMetadata {
  float gain = 0;
  Box<GbdtLeaf> original_leaf;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtNode {
  enum class Kind : uint8_t { kNone, kLeaf, kDenseFloat, kSparseLeft, kSparseRight, kId, kIdSet };
  Kind kind = Kind::kNone;
  Box<GbdtLeaf> leaf;
  Box<GbdtFloatSplit> dense_float_binary_split;
  Box<GbdtSparseSplit> sparse_float_binary_split_default_left;
  Box<GbdtSparseSplit> sparse_float_binary_split_default_right;
  Box<GbdtIdSplit> categorical_id_binary_split;
  Box<GbdtIdSetSplit> categorical_id_set_membership_binary_split;
  Box<GbdtNodeMetadata> node_metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Children are places in `nodes`; node 0 is the root.
struct GbdtTree {
  std::vector<GbdtNode> nodes;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtTreeMetadata {
  int32_t num_tree_weight_updates = 0;
  int32_t num_layers_grown = 0;
  bool is_finalized = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtGrowingMetadata {
  int64_t num_trees_attempted = 0;
  int64_t num_layers_attempted = 0;
  std::vector<int64_t> used_handler_ids;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtEnsemble {
  std::vector<GbdtTree> trees;
  std::vector<float> tree_weights;
  std::vector<GbdtTreeMetadata> tree_metadata;
  Box<GbdtGrowingMetadata> growing_metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// A split that a node may get, and its leaves.
struct GbdtSplitInfo {
  Box<GbdtNode> split_node;
  Box<GbdtLeaf> left_child;
  Box<GbdtLeaf> right_child;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtQuantileConfig {
  double eps = 0;
  int64_t num_quantiles = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtQuantileEntry {
  float value = 0;
  float weight = 0;
  float min_rank = 0;
  float max_rank = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtQuantileSummary {
  std::vector<GbdtQuantileEntry> entries;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtQuantileStream {
  std::vector<GbdtQuantileSummary> summaries;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtRegularization {
  float l1 = 0;
  float l2 = 0;
  float tree_complexity = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtConstraints {
  uint32_t max_tree_depth = 0;
  float min_node_weight = 0;
  int64_t max_number_of_unique_feature_columns = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtFixedRate {
  float learning_rate = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtDropoutRate {
  float dropout_probability = 0;
  float probability_of_skipping_dropout = 0;
  float learning_rate = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtLearningRate {
  enum class Kind : uint8_t { kNone, kFixed, kDropout };
  Kind kind = Kind::kNone;
  Box<GbdtFixedRate> fixed;
  Box<GbdtDropoutRate> dropout;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct GbdtAveraging {
  enum class Kind : uint8_t { kNone, kLastTrees, kLastPart };
  Kind kind = Kind::kNone;
  float average_last_n_trees = 0;
  float average_last_percent_trees = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// How trees grow.
struct GbdtLearner {
  uint32_t num_classes = 0;
  Box<GbdtRegularization> regularization;
  Box<GbdtConstraints> constraints;
  Box<GbdtLearningRate> learning_rate_tuner;
  int32_t pruning_mode = 0;
  int32_t growing_mode = 0;
  int32_t multi_class_strategy = 0;
  Box<GbdtAveraging> averaging_config;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
