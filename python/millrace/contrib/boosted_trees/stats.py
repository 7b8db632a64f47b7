# SPDX-License-Identifier: Apache-2.0
"""stats_accumulator_ops of tf.contrib.boosted_trees: sums of gradients and hessians by node, feature and dimension, which checkpoints keep."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import gen_ops
from millrace.train.made_resource import MadeResource
from millrace.train.saveable import SaveableObject, SaveSpec

_PARTS = ("stamp_token", "num_updates", "partition_ids", "feature_ids", "gradients", "hessians")


def op_of(is_scalar: bool, name: str) -> Any:
    """The operation of a kind of sums."""
    return getattr(gen_ops, "stats_accumulator_%s_%s" % ("scalar" if is_scalar else "tensor", name))


class StatsAccumulatorSaveable(SaveableObject):
    """Sums in checkpoints."""

    def __init__(self, resource_handle: Tensor, create_op: Operation, is_scalar: bool, name: str) -> None:
        self._resource_handle, self._create_op, self._is_scalar = resource_handle, create_op, is_scalar
        parts = self.serialize()
        super().__init__(resource_handle, [SaveSpec(part, "", "%s_%s" % (name, key)) for key, part in zip(_PARTS, parts)], name)

    def serialize(self) -> Any:
        """(stamp, number of updates, nodes, features, gradients, hessians)."""
        return op_of(self._is_scalar, "serialize")(self._resource_handle)

    def deserialize(self, stamp_token: Any, num_updates: Any, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any) -> Operation:
        """Replaces the sums."""
        return op_of(self._is_scalar, "deserialize")(  # type: ignore[no-any-return]
            self._resource_handle, stamp_token, num_updates, partition_ids, feature_ids, gradients, hessians
        )

    def restore(self, restored_tensors: List[Tensor], unused_restored_shapes: Any) -> Operation:
        """Replaces the sums by those of a checkpoint."""
        with control_dependencies([self._create_op]):
            return self.deserialize(*restored_tensors)


class StatsAccumulator(MadeResource):
    """Sums of gradients and hessians, of one number each or of tensors, which begin with a stamp: what is added under another one is passed over."""

    def __init__(self, stamp_token: Any, gradient_shape: Any, hessian_shape: Any, name: Optional[str] = None, container: Optional[str] = None) -> None:
        shapes = TensorShape(gradient_shape), TensorShape(hessian_shape)
        self._is_scalar = shapes[0].ndims == 0 and shapes[1].ndims == 0
        kind = "scalar" if self._is_scalar else "tensor"
        with name_scope(name, "StatsAccumulator") as scope:
            handle = getattr(gen_ops, "stats_accumulator_%s_resource_handle_op" % kind)(container=container or "", shared_name=scope, name=scope)
            given = [] if self._is_scalar else [shape.as_list() for shape in shapes]
            create = getattr(gen_ops, "create_stats_accumulator_" + kind)(handle, stamp_token, *given)
            super().__init__(handle, create, op_of(self._is_scalar, "is_initialized"))
            self._saveable = StatsAccumulatorSaveable(handle, create, self._is_scalar, handle.name)
            self._keep(self._saveable, "stats_accumulator")

    saveable = property(lambda self: self._saveable, doc="What checkpoints keep.")

    def _make_summary(self, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any) -> Any:
        return op_of(self._is_scalar, "make_summary")(partition_ids, feature_ids, gradients, hessians)

    def add(self, stamp_token: Any, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any) -> Operation:
        """Adds a batch: nodes [n], features and their dimensions [n, 2], gradients and hessians [n, ...]."""
        summary = self._make_summary(partition_ids, feature_ids, gradients, hessians)
        return op_of(self._is_scalar, "add")([self._resource_handle], stamp_token, *[[part] for part in summary])  # type: ignore[no-any-return]

    def schedule_add(self, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any) -> Tuple[Any, Any]:
        """(the operation, its arguments): for a later one that adds to several sums at once."""
        summary = self._make_summary(partition_ids, feature_ids, gradients, hessians)
        return op_of(self._is_scalar, "add"), [self._resource_handle, *summary]

    def serialize(self) -> Any:
        """(stamp, number of updates, nodes, features, gradients, hessians)."""
        return self._saveable.serialize()

    def deserialize(self, stamp_token: Any, num_updates: Any, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any) -> Operation:
        """Replaces the sums."""
        return self._saveable.deserialize(stamp_token, num_updates, partition_ids, feature_ids, gradients, hessians)

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """(number of updates, nodes, features, gradients, hessians); the sums are empty then."""
        return op_of(self._is_scalar, "flush")(self._resource_handle, stamp_token, next_stamp_token)
