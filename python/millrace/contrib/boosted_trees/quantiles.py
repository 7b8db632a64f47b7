# SPDX-License-Identifier: Apache-2.0
"""quantile_ops of tf.contrib.boosted_trees: quantiles of a stream of numbers, which checkpoints keep."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import gen_ops, math_ops
from millrace.train.made_resource import MadeResource
from millrace.train.saveable import SaveableObject, SaveSpec

_PARTS = ("stamp", "state", "are_buckets_ready", "buckets")


class QuantileAccumulatorSaveable(SaveableObject):
    """A stream in checkpoints."""

    def __init__(self, resource_handle: Tensor, create_op: Operation, name: str) -> None:
        self._resource_handle, self._create_op = resource_handle, create_op
        parts = gen_ops.quantile_accumulator_serialize(resource_handle)
        super().__init__(resource_handle, [SaveSpec(part, "", "%s_%s" % (name, key)) for key, part in zip(_PARTS, parts)], name)

    def restore(self, restored_tensors: List[Tensor], unused_restored_shapes: Any) -> Operation:
        """Replaces the stream by that of a checkpoint."""
        with control_dependencies([self._create_op]):
            stamp, state, are_ready, buckets = restored_tensors
            return gen_ops.quantile_accumulator_deserialize(self._resource_handle, stamp, state, are_ready, buckets)  # type: ignore[return-value]


class QuantileAccumulator(MadeResource):
    """Quantiles of one feature, whose ranks are off by at most `epsilon`. What is added under another stamp than its own is passed over."""

    def __init__(
        self,
        init_stamp_token: Any,
        epsilon: float,
        num_quantiles: int,
        max_elements: Optional[int] = None,
        name: Optional[str] = None,
        container: Optional[str] = None,
        generate_quantiles: bool = False,
    ) -> None:
        self._epsilon = epsilon
        options: Dict[str, Any] = {} if max_elements is None else {"max_elements": max_elements}
        with name_scope(name, "QuantileAccumulator") as scope:
            handle = gen_ops.quantile_stream_resource_handle_op(container=container or "", shared_name=scope, name=scope)
            create = gen_ops.create_quantile_accumulator(
                handle, init_stamp_token, epsilon=epsilon, num_quantiles=num_quantiles, generate_quantiles=generate_quantiles, **options
            )
            super().__init__(handle, create, gen_ops.quantile_accumulator_is_initialized)
            self._keep(QuantileAccumulatorSaveable(handle, create, handle.name), "quantile_accumulator")

    def get_buckets(self, stamp_token: Any) -> Tuple[Tensor, Tensor]:
        """(whether they are there, the boundaries between buckets)."""
        ready, buckets = gen_ops.quantile_accumulator_get_buckets([self._resource_handle], stamp_token)
        return ready[0], buckets[0]

    def schedule_get_buckets(self) -> Tuple[Any, Any]:
        """(the operation, its arguments): for a later one that asks several streams at once."""
        return gen_ops.quantile_accumulator_get_buckets, [self._resource_handle]

    def _make_summary(self, column: Any, example_weights: Any) -> Tensor:
        if isinstance(column, SparseTensor):
            sparse = [column.indices], [math_ops.cast(column.values, dtypes.float32)], [column.dense_shape]
            return gen_ops.make_quantile_summaries([], *sparse, example_weights, epsilon=self._epsilon / 2).sparse_summaries[0]
        dense = [math_ops.cast(convert_to_tensor(column), dtypes.float32)]
        return gen_ops.make_quantile_summaries(dense, [], [], [], example_weights, epsilon=self._epsilon / 2).dense_summaries[0]

    def add_summary(self, stamp_token: Any, column: Any, example_weights: Any) -> Operation:
        """Adds a batch, of a tensor or a sparse one."""
        return self.add_prebuilt_summary(stamp_token, self._make_summary(column, example_weights))

    def schedule_add_summary(self, stamp_token: Any, column: Any, example_weights: Any) -> Tuple[Any, Any]:
        """(the operation, its arguments): for a later one that adds to several streams at once."""
        del stamp_token  # the later one has it
        return gen_ops.quantile_accumulator_add_summaries, [self._resource_handle, self._make_summary(column, example_weights)]

    def add_prebuilt_summary(self, stamp_token: Any, summary: Any) -> Operation:
        """Adds what flush_summary gave."""
        return gen_ops.quantile_accumulator_add_summaries([self._resource_handle], stamp_token, [summary])  # type: ignore[return-value]

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Operation:
        """Sets the boundaries by what has been added. The stream is empty then."""
        return gen_ops.quantile_accumulator_flush(self._resource_handle, stamp_token, next_stamp_token)  # type: ignore[return-value]

    def flush_summary(self, stamp_token: Any, next_stamp_token: Any) -> Tensor:
        """What has been added, as a serialized QuantileSummaryState. The stream is empty then."""
        return gen_ops.quantile_accumulator_flush_summary(self._resource_handle, stamp_token, next_stamp_token)
