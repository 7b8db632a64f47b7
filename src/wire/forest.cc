// SPDX-License-Identifier: Apache-2.0
#include "wire/forest.h"

#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& ForestInt::Info() {
  static const MessageInfo& info = Table<ForestInt>("Int32Value").Field(1, "value", &ForestInt::value).Build();
  return info;
}

const MessageInfo& ForestString::Info() {
  static const MessageInfo& info = Table<ForestString>("StringValue").Field(1, "value", &ForestString::value).Build();
  return info;
}

const MessageInfo& ForestAny::Info() {
  static const MessageInfo& info =
      Table<ForestAny>("Any").Field(1, "type_url", &ForestAny::type_url).Field(2, "value", &ForestAny::value).Build();
  return info;
}

const MessageInfo& ForestValue::Info() {
  static const MessageInfo& info =
      Table<ForestValue>("Value")
          .Member(ForestValue::Kind::kFloat, 1, "float_value", &ForestValue::float_value)
          .Member(ForestValue::Kind::kDouble, 2, "double_value", &ForestValue::double_value)
          .Member(ForestValue::Kind::kInt32, 3, "int32_value", &ForestValue::int32_value)
          .Member(ForestValue::Kind::kInt64, 4, "int64_value", &ForestValue::int64_value)
          .Build();
  return info;
}

const MessageInfo& ForestVector::Info() {
  static const MessageInfo& info = Table<ForestVector>("Vector").Field(1, "value", &ForestVector::value).Build();
  return info;
}

const MessageInfo& ForestSparseVector::Info() {
  static const MessageInfo& info =
      Table<ForestSparseVector>("SparseVector").Field(1, "sparse_value", &ForestSparseVector::sparse_value).Build();
  return info;
}

const MessageInfo& ForestLeaf::Info() {
  static const MessageInfo& info =
      Table<ForestLeaf>("Leaf")
          .Member(ForestLeaf::Kind::kVector, 1, "vector", &ForestLeaf::vector)
          .Member(ForestLeaf::Kind::kSparseVector, 2, "sparse_vector", &ForestLeaf::sparse_vector)
          .Build();
  return info;
}

const MessageInfo& ForestFeatureId::Info() {
  static const MessageInfo& info = Table<ForestFeatureId>("FeatureId").Field(1, "id", &ForestFeatureId::id).Build();
  return info;
}

const MessageInfo& ForestInequalityTest::Info() {
  static const MessageInfo& info =
      Table<ForestInequalityTest>("InequalityTest")
          .Field(1, "feature_id", &ForestInequalityTest::feature_id)
          .Field(2, "type", &ForestInequalityTest::type)
          .Field(3, "threshold", &ForestInequalityTest::threshold)
          .Build();
  return info;
}

const MessageInfo& ForestMatchingTest::Info() {
  static const MessageInfo& info =
      Table<ForestMatchingTest>("MatchingValuesTest")
          .Field(1, "feature_id", &ForestMatchingTest::feature_id)
          .Field(2, "value", &ForestMatchingTest::value)
          .Field(3, "inverse", &ForestMatchingTest::inverse)
          .Build();
  return info;
}

const MessageInfo& ForestSplitNode::Info() {
  static const MessageInfo& info =
      Table<ForestSplitNode>("BinaryNode")
          .Field(1, "left_child_id", &ForestSplitNode::left_child_id)
          .Field(2, "right_child_id", &ForestSplitNode::right_child_id)
          .Field(3, "default_direction", &ForestSplitNode::default_direction)
          .Member(ForestSplitNode::Kind::kInequality, 4, "inequality_left_child_test",
                  &ForestSplitNode::inequality_left_child_test)
          .Member(ForestSplitNode::Kind::kCustom, 5, "custom_left_child_test", &ForestSplitNode::custom_left_child_test)
          .Build();
  return info;
}

const MessageInfo& ForestNode::Info() {
  static const MessageInfo& info =
      Table<ForestNode>("TreeNode")
          .Field(1, "node_id", &ForestNode::node_id)
          .Member(ForestNode::Kind::kBinaryNode, 4, "binary_node", &ForestNode::binary_node)
          .Member(ForestNode::Kind::kLeaf, 5, "leaf", &ForestNode::leaf)
          .Build();
  return info;
}

const MessageInfo& ForestNodes::Info() {
  static const MessageInfo& info = Table<ForestNodes>("DecisionTree").Field(1, "nodes", &ForestNodes::nodes).Build();
  return info;
}

const MessageInfo& ForestModel::Info() {
  static const MessageInfo& info =
      Table<ForestModel>("Model")
          .Member(ForestModel::Kind::kDecisionTree, 1, "decision_tree", &ForestModel::decision_tree)
          .Build();
  return info;
}

const MessageInfo& ForestParts::Info() {
  static const MessageInfo& info = Table<ForestParts>("TreeParts").Field(1, "parts", &ForestParts::parts).Build();
  return info;
}

const MessageInfo& ForestClassStats::Info() {
  static const MessageInfo& info =
      Table<ForestClassStats>("GiniImpurityClassificationStats")
          .Member(ForestClassStats::Kind::kDense, 1, "dense_counts", &ForestClassStats::dense_counts)
          .Member(ForestClassStats::Kind::kSparse, 2, "sparse_counts", &ForestClassStats::sparse_counts)
          .Build();
  return info;
}

const MessageInfo& ForestMeanStats::Info() {
  static const MessageInfo& info =
      Table<ForestMeanStats>("LeastSquaresRegressionStats")
          .Field(1, "mean_output", &ForestMeanStats::mean_output)
          .Field(2, "mean_output_squares", &ForestMeanStats::mean_output_squares)
          .Build();
  return info;
}

const MessageInfo& ForestLeafStats::Info() {
  static const MessageInfo& info =
      Table<ForestLeafStats>("LeafStat")
          .Member(ForestLeafStats::Kind::kClassification, 1, "classification", &ForestLeafStats::classification)
          .Member(ForestLeafStats::Kind::kRegression, 2, "regression", &ForestLeafStats::regression)
          .Field(3, "weight_sum", &ForestLeafStats::weight_sum)
          .Build();
  return info;
}

const MessageInfo& ForestCandidateState::Info() {
  static const MessageInfo& info =
      Table<ForestCandidateState>("SplitCandidate")
          .Field(1, "split", &ForestCandidateState::split)
          .Field(4, "left_stats", &ForestCandidateState::left_stats)
          .Field(5, "right_stats", &ForestCandidateState::right_stats)
          .Build();
  return info;
}

const MessageInfo& ForestSlotState::Info() {
  static const MessageInfo& info =
      Table<ForestSlotState>("FertileSlot")
          .Field(1, "candidates", &ForestSlotState::candidates)
          .Field(5, "node_id", &ForestSlotState::node_id)
          .Field(6, "post_init_leaf_stats", &ForestSlotState::post_init_leaf_stats)
          .Field(7, "depth", &ForestSlotState::depth)
          .Build();
  return info;
}

const MessageInfo& ForestStatsState::Info() {
  static const MessageInfo& info =
      Table<ForestStatsState>("FertileStats").Field(1, "node_to_slot", &ForestStatsState::node_to_slot).Build();
  return info;
}

const MessageInfo& ForestLinear::Info() {
  static const MessageInfo& info =
      Table<ForestLinear>("LinearParam")
          .Field(1, "slope", &ForestLinear::slope)
          .Field(2, "y_intercept", &ForestLinear::y_intercept)
          .Field(3, "min_val", &ForestLinear::min_val)
          .Field(4, "max_val", &ForestLinear::max_val)
          .Build();
  return info;
}

const MessageInfo& ForestExponential::Info() {
  static const MessageInfo& info =
      Table<ForestExponential>("ExponentialParam")
          .Field(1, "bias", &ForestExponential::bias)
          .Field(2, "base", &ForestExponential::base)
          .Field(3, "multiplier", &ForestExponential::multiplier)
          .Field(4, "depth_multiplier", &ForestExponential::depth_multiplier)
          .Build();
  return info;
}

const MessageInfo& ForestThreshold::Info() {
  static const MessageInfo& info =
      Table<ForestThreshold>("ThresholdParam")
          .Field(1, "on_value", &ForestThreshold::on_value)
          .Field(2, "off_value", &ForestThreshold::off_value)
          .Field(3, "threshold", &ForestThreshold::threshold)
          .Build();
  return info;
}

const MessageInfo& ForestByDepth::Info() {
  static const MessageInfo& info =
      Table<ForestByDepth>("DepthDependentParam")
          .Member(ForestByDepth::Kind::kConstant, 1, "constant_value", &ForestByDepth::constant_value)
          .Member(ForestByDepth::Kind::kLinear, 2, "linear", &ForestByDepth::linear)
          .Member(ForestByDepth::Kind::kExponential, 3, "exponential", &ForestByDepth::exponential)
          .Member(ForestByDepth::Kind::kThreshold, 4, "threshold", &ForestByDepth::threshold)
          .Build();
  return info;
}

const MessageInfo& ForestPruning::Info() {
  static const MessageInfo& info =
      Table<ForestPruning>("SplitPruningConfig")
          .Field(1, "prune_every_samples", &ForestPruning::prune_every_samples)
          .Field(2, "type", &ForestPruning::type)
          .Build();
  return info;
}

const MessageInfo& ForestFinish::Info() {
  static const MessageInfo& info =
      Table<ForestFinish>("SplitFinishConfig")
          .Field(1, "check_every_steps", &ForestFinish::check_every_steps)
          .Field(2, "type", &ForestFinish::type)
          .Build();
  return info;
}

const MessageInfo& ForestSettings::Info() {
  static const MessageInfo& info =
      Table<ForestSettings>("TensorForestParams")
          .Field(1, "leaf_type", &ForestSettings::leaf_type)
          .Field(2, "stats_type", &ForestSettings::stats_type)
          .Field(3, "collection_type", &ForestSettings::collection_type)
          .Field(4, "pruning_type", &ForestSettings::pruning_type)
          .Field(5, "finish_type", &ForestSettings::finish_type)
          .Field(6, "num_trees", &ForestSettings::num_trees)
          .Field(7, "max_nodes", &ForestSettings::max_nodes)
          .Field(8, "is_regression", &ForestSettings::is_regression)
          .Field(9, "drop_final_class", &ForestSettings::drop_final_class)
          .Field(10, "collate_examples", &ForestSettings::collate_examples)
          .Field(11, "checkpoint_stats", &ForestSettings::checkpoint_stats)
          .Field(12, "num_outputs", &ForestSettings::num_outputs)
          .Field(13, "num_splits_to_consider", &ForestSettings::num_splits_to_consider)
          .Field(14, "split_after_samples", &ForestSettings::split_after_samples)
          .Field(15, "dominate_fraction", &ForestSettings::dominate_fraction)
          .Field(18, "min_split_samples", &ForestSettings::min_split_samples)
          .Field(19, "inequality_test_type", &ForestSettings::inequality_test_type)
          .Field(20, "use_running_stats_method", &ForestSettings::use_running_stats_method)
          .Field(21, "num_features", &ForestSettings::num_features)
          .Field(22, "initialize_average_splits", &ForestSettings::initialize_average_splits)
          .Field(23, "inference_tree_paths", &ForestSettings::inference_tree_paths)
          .Field(24, "num_classes_to_track", &ForestSettings::num_classes_to_track)
          .Build();
  return info;
}

}  // namespace millrace::wire
