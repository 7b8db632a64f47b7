// SPDX-License-Identifier: Apache-2.0
#include "wire/gbdt.h"

#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& GbdtLeaf::Info() {
  static const MessageInfo& info =
      Table<GbdtLeaf>("Leaf")
          .Member(GbdtLeaf::Kind::kVector, 1, "vector", &GbdtLeaf::vector)
          .Member(GbdtLeaf::Kind::kSparseVector, 2, "sparse_vector", &GbdtLeaf::sparse_vector)
          .Build();
  return info;
}

const MessageInfo& GbdtFloatSplit::Info() {
  static const MessageInfo& info =
      Table<GbdtFloatSplit>("DenseFloatBinarySplit")
          .Field(1, "feature_column", &GbdtFloatSplit::feature_column)
          .Field(2, "threshold", &GbdtFloatSplit::threshold)
          .Field(3, "left_id", &GbdtFloatSplit::left_id)
          .Field(4, "right_id", &GbdtFloatSplit::right_id)
          .Field(5, "dimension_id", &GbdtFloatSplit::dimension_id)
          .Build();
  return info;
}

const MessageInfo& GbdtSparseSplit::Info() {
  static const MessageInfo& info =
      Table<GbdtSparseSplit>("SparseFloatBinarySplit").Field(1, "split", &GbdtSparseSplit::split).Build();
  return info;
}

const MessageInfo& GbdtIdSplit::Info() {
  static const MessageInfo& info =
      Table<GbdtIdSplit>("CategoricalIdBinarySplit")
          .Field(1, "feature_column", &GbdtIdSplit::feature_column)
          .Field(2, "feature_id", &GbdtIdSplit::feature_id)
          .Field(3, "left_id", &GbdtIdSplit::left_id)
          .Field(4, "right_id", &GbdtIdSplit::right_id)
          .Build();
  return info;
}

const MessageInfo& GbdtIdSetSplit::Info() {
  static const MessageInfo& info =
      Table<GbdtIdSetSplit>("CategoricalIdSetMembershipBinarySplit")
          .Field(1, "feature_column", &GbdtIdSetSplit::feature_column)
          .Field(2, "feature_ids", &GbdtIdSetSplit::feature_ids)
          .Field(3, "left_id", &GbdtIdSetSplit::left_id)
          .Field(4, "right_id", &GbdtIdSetSplit::right_id)
          .Build();
  return info;
}

const MessageInfo& GbdtNodeMetadata::Info() {
  static const MessageInfo& info =
      Table<GbdtNodeMetadata>("TreeNodeMetadata")
          .Field(1, "gain", &GbdtNodeMetadata::gain)
          .Field(2, "original_leaf", &GbdtNodeMetadata::original_leaf)
          .Build();
  return info;
}

const MessageInfo& GbdtNode::Info() {
  static const MessageInfo& info =
      Table<GbdtNode>("TreeNode")
          .Member(GbdtNode::Kind::kLeaf, 1, "leaf", &GbdtNode::leaf)
          .Member(GbdtNode::Kind::kDenseFloat, 2, "dense_float_binary_split", &GbdtNode::dense_float_binary_split)
          .Member(GbdtNode::Kind::kSparseLeft, 3, "sparse_float_binary_split_default_left",
                  &GbdtNode::sparse_float_binary_split_default_left)
          .Member(GbdtNode::Kind::kSparseRight, 4, "sparse_float_binary_split_default_right",
                  &GbdtNode::sparse_float_binary_split_default_right)
          .Member(GbdtNode::Kind::kId, 5, "categorical_id_binary_split", &GbdtNode::categorical_id_binary_split)
          .Member(GbdtNode::Kind::kIdSet, 6, "categorical_id_set_membership_binary_split",
                  &GbdtNode::categorical_id_set_membership_binary_split)
          .Field(777, "node_metadata", &GbdtNode::node_metadata)
          .Build();
  return info;
}

const MessageInfo& GbdtTree::Info() {
  static const MessageInfo& info = Table<GbdtTree>("DecisionTreeConfig").Field(1, "nodes", &GbdtTree::nodes).Build();
  return info;
}

const MessageInfo& GbdtTreeMetadata::Info() {
  static const MessageInfo& info =
      Table<GbdtTreeMetadata>("DecisionTreeMetadata")
          .Field(1, "num_tree_weight_updates", &GbdtTreeMetadata::num_tree_weight_updates)
          .Field(2, "num_layers_grown", &GbdtTreeMetadata::num_layers_grown)
          .Field(3, "is_finalized", &GbdtTreeMetadata::is_finalized)
          .Build();
  return info;
}

const MessageInfo& GbdtGrowingMetadata::Info() {
  static const MessageInfo& info =
      Table<GbdtGrowingMetadata>("GrowingMetadata")
          .Field(1, "num_trees_attempted", &GbdtGrowingMetadata::num_trees_attempted)
          .Field(2, "num_layers_attempted", &GbdtGrowingMetadata::num_layers_attempted)
          .Field(3, "used_handler_ids", &GbdtGrowingMetadata::used_handler_ids)
          .Build();
  return info;
}

const MessageInfo& GbdtEnsemble::Info() {
  static const MessageInfo& info =
      Table<GbdtEnsemble>("DecisionTreeEnsembleConfig")
          .Field(1, "trees", &GbdtEnsemble::trees)
          .Field(2, "tree_weights", &GbdtEnsemble::tree_weights)
          .Field(3, "tree_metadata", &GbdtEnsemble::tree_metadata)
          .Field(4, "growing_metadata", &GbdtEnsemble::growing_metadata)
          .Build();
  return info;
}

const MessageInfo& GbdtSplitInfo::Info() {
  static const MessageInfo& info =
      Table<GbdtSplitInfo>("SplitInfo")
          .Field(1, "split_node", &GbdtSplitInfo::split_node)
          .Field(2, "left_child", &GbdtSplitInfo::left_child)
          .Field(3, "right_child", &GbdtSplitInfo::right_child)
          .Build();
  return info;
}

const MessageInfo& GbdtQuantileConfig::Info() {
  static const MessageInfo& info =
      Table<GbdtQuantileConfig>("QuantileConfig")
          .Field(1, "eps", &GbdtQuantileConfig::eps)
          .Field(2, "num_quantiles", &GbdtQuantileConfig::num_quantiles)
          .Build();
  return info;
}

const MessageInfo& GbdtQuantileEntry::Info() {
  static const MessageInfo& info =
      Table<GbdtQuantileEntry>("QuantileEntry")
          .Field(1, "value", &GbdtQuantileEntry::value)
          .Field(2, "weight", &GbdtQuantileEntry::weight)
          .Field(3, "min_rank", &GbdtQuantileEntry::min_rank)
          .Field(4, "max_rank", &GbdtQuantileEntry::max_rank)
          .Build();
  return info;
}

const MessageInfo& GbdtQuantileSummary::Info() {
  static const MessageInfo& info =
      Table<GbdtQuantileSummary>("QuantileSummaryState").Field(1, "entries", &GbdtQuantileSummary::entries).Build();
  return info;
}

const MessageInfo& GbdtQuantileStream::Info() {
  static const MessageInfo& info =
      Table<GbdtQuantileStream>("QuantileStreamState").Field(1, "summaries", &GbdtQuantileStream::summaries).Build();
  return info;
}

const MessageInfo& GbdtRegularization::Info() {
  static const MessageInfo& info =
      Table<GbdtRegularization>("TreeRegularizationConfig")
          .Field(1, "l1", &GbdtRegularization::l1)
          .Field(2, "l2", &GbdtRegularization::l2)
          .Field(3, "tree_complexity", &GbdtRegularization::tree_complexity)
          .Build();
  return info;
}

const MessageInfo& GbdtConstraints::Info() {
  static const MessageInfo& info =
      Table<GbdtConstraints>("TreeConstraintsConfig")
          .Field(1, "max_tree_depth", &GbdtConstraints::max_tree_depth)
          .Field(2, "min_node_weight", &GbdtConstraints::min_node_weight)
          .Field(3, "max_number_of_unique_feature_columns", &GbdtConstraints::max_number_of_unique_feature_columns)
          .Build();
  return info;
}

const MessageInfo& GbdtFixedRate::Info() {
  static const MessageInfo& info =
      Table<GbdtFixedRate>("LearningRateFixedConfig").Field(1, "learning_rate", &GbdtFixedRate::learning_rate).Build();
  return info;
}

const MessageInfo& GbdtDropoutRate::Info() {
  static const MessageInfo& info =
      Table<GbdtDropoutRate>("LearningRateDropoutDrivenConfig")
          .Field(1, "dropout_probability", &GbdtDropoutRate::dropout_probability)
          .Field(2, "probability_of_skipping_dropout", &GbdtDropoutRate::probability_of_skipping_dropout)
          .Field(3, "learning_rate", &GbdtDropoutRate::learning_rate)
          .Build();
  return info;
}

const MessageInfo& GbdtLearningRate::Info() {
  static const MessageInfo& info =
      Table<GbdtLearningRate>("LearningRateConfig")
          .Member(GbdtLearningRate::Kind::kFixed, 1, "fixed", &GbdtLearningRate::fixed)
          .Member(GbdtLearningRate::Kind::kDropout, 2, "dropout", &GbdtLearningRate::dropout)
          .Build();
  return info;
}

const MessageInfo& GbdtAveraging::Info() {
  static const MessageInfo& info =
      Table<GbdtAveraging>("AveragingConfig")
          .Member(GbdtAveraging::Kind::kLastTrees, 1, "average_last_n_trees", &GbdtAveraging::average_last_n_trees)
          .Member(GbdtAveraging::Kind::kLastPart, 2, "average_last_percent_trees",
                  &GbdtAveraging::average_last_percent_trees)
          .Build();
  return info;
}

const MessageInfo& GbdtLearner::Info() {
  static const MessageInfo& info =
      Table<GbdtLearner>("LearnerConfig")
          .Field(1, "num_classes", &GbdtLearner::num_classes)
          .Field(4, "regularization", &GbdtLearner::regularization)
          .Field(5, "constraints", &GbdtLearner::constraints)
          .Field(6, "learning_rate_tuner", &GbdtLearner::learning_rate_tuner)
          .Field(8, "pruning_mode", &GbdtLearner::pruning_mode)
          .Field(9, "growing_mode", &GbdtLearner::growing_mode)
          .Field(10, "multi_class_strategy", &GbdtLearner::multi_class_strategy)
          .Field(11, "averaging_config", &GbdtLearner::averaging_config)
          .Build();
  return info;
}

}  // namespace millrace::wire
