# SPDX-License-Identifier: Apache-2.0
"""model_ops and stats_ops of tf.contrib.tensor_forest: a tree, and the statistics of its leaves, in a graph. Checkpoints keep both."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.contrib.tensor_forest.params import serialized
from millrace.framework import missing
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import gen_ops
from millrace.train.made_resource import MadeResource
from millrace.train.saveable import SaveableObject, SaveSpec

missing.fill(globals(), "contrib.tensor_forest.", {"finalize_tree": "a tree as it is: TensorFlow 1.15 has no kernel for it either"})


class TreeVariableSavable(SaveableObject):
    """A tree in checkpoints."""

    def __init__(self, params: Any, tree_handle: Tensor, stats_handle: Optional[Tensor], create_op: Operation, name: str) -> None:
        self._params, self._tree_handle, self._create_op = serialized(params), tree_handle, create_op
        self.stats_handle = stats_handle
        super().__init__(tree_handle, [SaveSpec(gen_ops.tree_serialize(tree_handle), "", name)], name)

    def restore(self, restored_tensors: List[Tensor], unused_restored_shapes: Any) -> Operation:
        """Replaces the tree."""
        with control_dependencies([self._create_op]):
            return gen_ops.tree_deserialize(self._tree_handle, restored_tensors[0], params=self._params)  # type: ignore[return-value]


class FertileStatsVariableSavable(SaveableObject):
    """The statistics of a tree's leaves in checkpoints."""

    def __init__(self, params: Any, stats_handle: Tensor, create_op: Operation, name: str) -> None:
        self._params, self._stats_handle, self._create_op = serialized(params), stats_handle, create_op
        super().__init__(stats_handle, [SaveSpec(gen_ops.fertile_stats_serialize(stats_handle, params=self._params), "", name)], name)

    def restore(self, restored_tensors: List[Tensor], unused_restored_shapes: Any) -> Operation:
        """Replaces the statistics."""
        with control_dependencies([self._create_op]):
            return gen_ops.fertile_stats_deserialize(self._stats_handle, restored_tensors[0], params=self._params)  # type: ignore[return-value]


class TreeVariable(MadeResource):
    """A tree."""

    def __init__(self, params: Any, tree_config: Any, stats_handle: Optional[Tensor], name: str, container: Optional[str] = None) -> None:
        with name_scope(name, "TreeVariable") as scope:
            handle = gen_ops.decision_tree_resource_handle_op(container=container or "", shared_name=scope, name=scope)
            create = gen_ops.create_tree_variable(handle, tree_config, params=serialized(params))
            super().__init__(handle, create, gen_ops.tree_is_initialized_op)
            self._keep(TreeVariableSavable(params, handle, stats_handle, create, handle.name), "tree_variable")


class FertileStatsVariable(MadeResource):
    """The statistics of a tree's leaves."""

    def __init__(self, params: Any, stats_config: Any, name: str, container: Optional[str] = None) -> None:
        with name_scope(name, "FertileStatsVariable") as scope:
            handle = gen_ops.fertile_stats_resource_handle_op(container=container or "", shared_name=scope, name=scope)
            create = gen_ops.create_fertile_stats_variable(handle, stats_config, params=serialized(params))
            super().__init__(handle, create, gen_ops.fertile_stats_is_initialized_op)
            self._keep(FertileStatsVariableSavable(params, handle, create, handle.name), "fertile_stats_variable")


def tree_variable(params: Any, tree_config: Any, stats_handle: Optional[Tensor], name: str, container: Optional[str] = None) -> Tensor:
    """The handle of a new tree. params: a serialized TensorForestParams, or what can be made one."""
    return TreeVariable(params, tree_config, stats_handle, name, container).resource_handle  # type: ignore[no-any-return]


def fertile_stats_variable(params: Any, stats_config: Any, name: str, container: Optional[str] = None) -> Tensor:
    """The handle of new statistics."""
    return FertileStatsVariable(params, stats_config, name, container).resource_handle  # type: ignore[no-any-return]
