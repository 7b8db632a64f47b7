# SPDX-License-Identifier: Apache-2.0
"""model_ops, prediction_ops and training_ops of tf.contrib.boosted_trees: ensembles of trees, which checkpoints keep, and their growth."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import gen_ops
from millrace.protos import contrib_trees as messages
from millrace.train.made_resource import MadeResource
from millrace.train.saveable import SaveableObject, SaveSpec

_USUAL_DEPTH = 6  # of a learner that says nothing


class TreeEnsembleVariableSavable(SaveableObject):
    """An ensemble in checkpoints: its stamp and its trees."""

    def __init__(self, tree_ensemble_handle: Tensor, create_op: Operation, name: str) -> None:
        self._tree_ensemble_handle, self._create_op = tree_ensemble_handle, create_op
        stamp, config = gen_ops.tree_ensemble_serialize(tree_ensemble_handle)
        super().__init__(tree_ensemble_handle, [SaveSpec(stamp, "", name + "_stamp"), SaveSpec(config, "", name + "_config")], name)

    def restore(self, restored_tensors: List[Tensor], unused_restored_shapes: Any) -> Operation:
        """Replaces the ensemble by that of a checkpoint."""
        with control_dependencies([self._create_op]):
            stamp, config = restored_tensors
            return gen_ops.tree_ensemble_deserialize(self._tree_ensemble_handle, stamp, config)  # type: ignore[return-value]


class TreeEnsembleVariable(MadeResource):
    """An ensemble of trees, made of a serialized DecisionTreeEnsembleConfig."""

    def __init__(self, stamp_token: Any, tree_ensemble_config: Any, name: str, container: Optional[str] = None) -> None:
        with name_scope(name, "TreeEnsembleVariable") as scope:
            handle = gen_ops.decision_tree_ensemble_resource_handle_op(container=container or "", shared_name=scope, name=scope)
            create = gen_ops.create_tree_ensemble_variable(handle, stamp_token, tree_ensemble_config)
            super().__init__(handle, create, gen_ops.tree_ensemble_is_initialized_op)
            self._keep(TreeEnsembleVariableSavable(handle, create, handle.name), "tree_ensemble_variable")


def tree_ensemble_variable(stamp_token: Any, tree_ensemble_config: Any, name: str, container: Optional[str] = None) -> Tensor:
    """The handle of a new ensemble."""
    return TreeEnsembleVariable(stamp_token, tree_ensemble_config, name, container).resource_handle  # type: ignore[no-any-return]


def grow_tree_ensemble(
    tree_ensemble_handle: Any,
    stamp_token: Any,
    next_stamp_token: Any,
    learning_rate: Any,
    dropout_seed: Any,
    max_tree_depth: Any = None,
    weak_learner_type: Any = 0,
    partition_ids: Any = (),
    gains: Any = (),
    splits: Any = (),
    learner_config: Any = b"",
    center_bias: bool = False,
    name: Optional[str] = None,
) -> Operation:
    """Adds a layer. Where no depth is given, learner_config says it."""
    if max_tree_depth is None:
        max_tree_depth = messages.LearnerConfig.FromString(learner_config).constraints.max_tree_depth or _USUAL_DEPTH
    return gen_ops.grow_tree_ensemble(  # type: ignore[return-value]
        tree_ensemble_handle,
        stamp_token,
        next_stamp_token,
        learning_rate,
        dropout_seed,
        max_tree_depth,
        weak_learner_type,
        list(partition_ids),
        list(gains),
        list(splits),
        learner_config=learner_config,
        center_bias=center_bias,
        name=name,
    )
