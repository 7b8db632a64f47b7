# SPDX-License-Identifier: Apache-2.0
"""The messages of random forests and of decision trees, of the packages tensorflow.tensorforest and tensorflow.decision_trees."""

from millrace.protos import enums
from millrace.protos.definitions import decision_trees as _trees
from millrace.protos.definitions import tensorforest as _forests
from millrace.protos.enums import LeafModelType, SplitCollectionType, SplitFinishStrategyType, SplitPruningStrategyType, StatsModelType

Value = _trees.Value
Vector = _trees.Vector
SparseVector = _trees.SparseVector
Leaf = _trees.Leaf
FeatureId = _trees.FeatureId
ObliqueFeatures = _trees.ObliqueFeatures
InequalityTest = _trees.InequalityTest
MatchingValuesTest = _trees.MatchingValuesTest
BinaryNode = _trees.BinaryNode
TreeNode = _trees.TreeNode
DecisionTree = _trees.DecisionTree
Model = _trees.Model
Ensemble = _trees.Ensemble
Summation = _trees.Summation
Averaging = _trees.Averaging
ModelAndFeatures = _trees.ModelAndFeatures

GiniStats = _forests.GiniStats
LeafStat = _forests.LeafStat
SplitCandidate = _forests.SplitCandidate
FertileSlot = _forests.FertileSlot
FertileStats = _forests.FertileStats
TreePath = _forests.TreePath
LinearParam = _forests.LinearParam
ExponentialParam = _forests.ExponentialParam
ThresholdParam = _forests.ThresholdParam
DepthDependentParam = _forests.DepthDependentParam
SplitPruningConfig = _forests.SplitPruningConfig
SplitFinishConfig = _forests.SplitFinishConfig
TensorForestParams = _forests.TensorForestParams

for _enum in (LeafModelType, StatsModelType, SplitCollectionType, SplitPruningStrategyType, SplitFinishStrategyType):
    globals().update(_enum.items())
for _name, _number in enums.InequalityType.items():
    setattr(InequalityTest, _name, _number)
for _name, _number in enums.Direction.items():
    setattr(BinaryNode, _name, _number)
