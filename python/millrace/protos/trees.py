# SPDX-License-Identifier: Apache-2.0
"""The messages of boosted trees, of the package tensorflow.boosted_trees."""

from millrace.protos.definitions import boosted_trees as _trees
from millrace.protos.enums import DefaultDirection, SplitTypeWithDefault

Node = _trees.Node
NodeMetadata = _trees.NodeMetadata
Leaf = _trees.Leaf
Vector = _trees.Vector
SparseVector = _trees.SparseVector
BucketizedSplit = _trees.BucketizedSplit
CategoricalSplit = _trees.CategoricalSplit
DenseSplit = _trees.DenseSplit
Tree = _trees.Tree
TreeMetadata = _trees.TreeMetadata
GrowingMetadata = _trees.GrowingMetadata
TreeEnsemble = _trees.TreeEnsemble
DebugOutput = _trees.DebugOutput
INEQUALITY_DEFAULT_LEFT, INEQUALITY_DEFAULT_RIGHT, EQUALITY_DEFAULT_RIGHT = SplitTypeWithDefault.values()
DEFAULT_LEFT, DEFAULT_RIGHT = DefaultDirection.values()
