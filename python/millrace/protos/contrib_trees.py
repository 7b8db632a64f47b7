# SPDX-License-Identifier: Apache-2.0
"""The messages of tf.contrib.boosted_trees: learner_pb2, quantiles_pb2, split_info_pb2 and tree_config_pb2."""

from millrace.protos import enums
from millrace.protos.definitions import boosted_trees as _all

QuantileConfig = _all.QuantileConfig
QuantileEntry = _all.QuantileEntry
QuantileSummaryState = _all.QuantileSummaryState
QuantileStreamState = _all.QuantileStreamState

Leaf = _all.trees.Leaf
Vector = _all.trees.Vector
SparseVector = _all.trees.SparseVector
TreeNodeMetadata = _all.trees.TreeNodeMetadata
DenseFloatBinarySplit = _all.trees.DenseFloatBinarySplit
SparseFloatBinarySplitDefaultLeft = _all.trees.SparseFloatBinarySplitDefaultLeft
SparseFloatBinarySplitDefaultRight = _all.trees.SparseFloatBinarySplitDefaultRight
CategoricalIdBinarySplit = _all.trees.CategoricalIdBinarySplit
CategoricalIdSetMembershipBinarySplit = _all.trees.CategoricalIdSetMembershipBinarySplit
TreeNode = _all.trees.TreeNode
DecisionTreeConfig = _all.trees.DecisionTreeConfig
DecisionTreeMetadata = _all.trees.DecisionTreeMetadata
GrowingMetadata = _all.trees.GrowingMetadata
DecisionTreeEnsembleConfig = _all.trees.DecisionTreeEnsembleConfig

SplitInfo = _all.learner.SplitInfo
TreeRegularizationConfig = _all.learner.TreeRegularizationConfig
TreeConstraintsConfig = _all.learner.TreeConstraintsConfig
LearningRateConfig = _all.learner.LearningRateConfig
LearningRateFixedConfig = _all.learner.LearningRateFixedConfig
LearningRateLineSearchConfig = _all.learner.LearningRateLineSearchConfig
LearningRateDropoutDrivenConfig = _all.learner.LearningRateDropoutDrivenConfig
AveragingConfig = _all.learner.AveragingConfig
LearnerConfig = _all.learner.LearnerConfig

for _enum in (enums.PruningMode, enums.GrowingMode, enums.MultiClassStrategy, enums.WeakLearnerType):
    setattr(LearnerConfig, _enum.__name__.rpartition(".")[2], _enum)
    for _name, _number in _enum.items():
        setattr(LearnerConfig, _name, _number)
