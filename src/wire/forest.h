// SPDX-License-Identifier: Apache-2.0
//
// Decision trees that random forests grow (TensorFlow's generic_tree_model.proto), what is known of their leaves'
// examples (fertile_stats.proto), and how they grow (tensor_forest_params.proto), as checkpoints and attributes hold
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/message.h"

namespace millrace::wire {

struct ForestInt {
  int32_t value = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestString {
  std::string value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestAny {
  std::string type_url;
  std::string value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestValue {
  enum class Kind : uint8_t { kNone, kFloat, kDouble, kInt32, kInt64 };
  Kind kind = Kind::kNone;
  float float_value = 0;
  double double_value = 0;
  int32_t int32_value = 0;
  int64_t int64_value = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestVector {
  std::vector<ForestValue> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestSparseVector {
  Map<int64_t, ForestValue> sparse_value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestLeaf {
  enum class Kind : uint8_t { kNone, kVector, kSparseVector };
  Kind kind = Kind::kNone;
  Box<ForestVector> vector;
  Box<ForestSparseVector> sparse_vector;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestFeatureId {
  Box<ForestString> id;  // a number
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

enum class ForestInequality : int32_t { kAtMost = 0, kLess = 1, kAtLeast = 2, kMore = 3 };

struct ForestInequalityTest {
  Box<ForestFeatureId> feature_id;
  int32_t type = 0;
  Box<ForestValue> threshold;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Whether a feature has one of these values.
struct ForestMatchingTest {
  static constexpr char kTypeUrl[] = "type.googleapis.com/tensorflow.decision_trees.MatchingValuesTest";
  Box<ForestFeatureId> feature_id;
  std::vector<ForestValue> value;
  bool inverse = false;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestSplitNode {
  enum class Kind : uint8_t { kNone, kInequality, kCustom };
  Kind kind = Kind::kNone;
  Box<ForestInt> left_child_id;
  Box<ForestInt> right_child_id;
  int32_t default_direction = 0;
  Box<ForestInequalityTest> inequality_left_child_test;
  Box<ForestAny> custom_left_child_test;  // a ForestMatchingTest
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestNode {
  enum class Kind : uint8_t { kNone, kBinaryNode, kLeaf };
  Kind kind = Kind::kNone;
  Box<ForestInt> node_id;
  Box<ForestSplitNode> binary_node;
  Box<ForestLeaf> leaf;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// Children are places in `nodes`; node 0 is the root.
struct ForestNodes {
  std::vector<ForestNode> nodes;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestModel {
  enum class Kind : uint8_t { kNone, kDecisionTree };
  Kind kind = Kind::kNone;
  Box<ForestNodes> decision_tree;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// ForestNodes, ForestModel, ForestStatsState, the candidates of a ForestSlotState and the nodes that an example passes
// (TreePath), of which each is encoded already: they may be many, and much larger than their bytes.
struct ForestParts {
  std::vector<std::string> parts;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestClassStats {
  enum class Kind : uint8_t { kNone, kDense, kSparse };
  Kind kind = Kind::kNone;
  Box<ForestVector> dense_counts;
  Box<ForestSparseVector> sparse_counts;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestMeanStats {
  Box<ForestVector> mean_output;          // sums
  Box<ForestVector> mean_output_squares;  // sums of squares
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestLeafStats {
  enum class Kind : uint8_t { kNone, kClassification, kRegression };
  Kind kind = Kind::kNone;
  Box<ForestClassStats> classification;
  Box<ForestMeanStats> regression;
  float weight_sum = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestCandidateState {
  Box<ForestSplitNode> split;
  Box<ForestLeafStats> left_stats;
  Box<ForestLeafStats> right_stats;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestSlotState {
  std::vector<ForestCandidateState> candidates;
  int32_t node_id = 0;
  Box<ForestLeafStats> post_init_leaf_stats;
  int32_t depth = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestStatsState {
  std::vector<ForestSlotState> node_to_slot;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// ---- How a forest grows ----

struct ForestLinear {
  float slope = 0;
  float y_intercept = 0;
  float min_val = 0;
  float max_val = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestExponential {
  float bias = 0;
  float base = 0;
  float multiplier = 0;
  float depth_multiplier = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestThreshold {
  float on_value = 0;
  float off_value = 0;
  float threshold = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// A number that depends on the depth of a node.
struct ForestByDepth {
  enum class Kind : uint8_t { kNone, kConstant, kLinear, kExponential, kThreshold };
  Kind kind = Kind::kNone;
  float constant_value = 0;
  Box<ForestLinear> linear;
  Box<ForestExponential> exponential;
  Box<ForestThreshold> threshold;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestPruning {
  Box<ForestByDepth> prune_every_samples;
  int32_t type = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestFinish {
  Box<ForestByDepth> check_every_steps;
  int32_t type = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct ForestSettings {
  int32_t leaf_type = 0;
  int32_t stats_type = 0;
  int32_t collection_type = 0;
  Box<ForestPruning> pruning_type;
  Box<ForestFinish> finish_type;
  int32_t num_trees = 0;
  int32_t max_nodes = 0;
  bool is_regression = false;
  bool drop_final_class = false;
  bool collate_examples = false;
  bool checkpoint_stats = false;
  int32_t num_outputs = 0;
  Box<ForestByDepth> num_splits_to_consider;
  Box<ForestByDepth> split_after_samples;
  Box<ForestByDepth> dominate_fraction;
  Box<ForestByDepth> min_split_samples;
  int32_t inequality_test_type = 0;
  bool use_running_stats_method = false;
  int32_t num_features = 0;
  bool initialize_average_splits = false;
  bool inference_tree_paths = false;
  int32_t num_classes_to_track = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
