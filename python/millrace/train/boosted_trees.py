# SPDX-License-Identifier: Apache-2.0
"""Boosted trees in a graph: an ensemble that grows, and quantiles of features, both of which checkpoints keep."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, gen_ops
from millrace.ops.gen_ops import (  # noqa: F401
    boosted_trees_aggregate_stats,
    boosted_trees_bucketize,
    boosted_trees_sparse_aggregate_stats,
    is_boosted_trees_quantile_stream_resource_initialized,
)
from millrace.train.made_resource import MadeResource
from millrace.train.saveable import SaveableObject, SaveSpec

calculate_best_feature_split = gen_ops.boosted_trees_calculate_best_feature_split
calculate_best_gains_per_feature = gen_ops.boosted_trees_calculate_best_gains_per_feature
center_bias = gen_ops.boosted_trees_center_bias
create_quantile_stream_resource = gen_ops.boosted_trees_create_quantile_stream_resource
example_debug_outputs = gen_ops.boosted_trees_example_debug_outputs
get_bucket_boundaries = gen_ops.boosted_trees_quantile_stream_resource_get_bucket_boundaries
is_quantile_resource_initialized = is_boosted_trees_quantile_stream_resource_initialized
make_quantile_summaries = gen_ops.boosted_trees_make_quantile_summaries
make_stats_summary = gen_ops.boosted_trees_make_stats_summary
predict = gen_ops.boosted_trees_predict
quantile_add_summaries = gen_ops.boosted_trees_quantile_stream_resource_add_summaries
quantile_flush = gen_ops.boosted_trees_quantile_stream_resource_flush
quantile_resource_deserialize = gen_ops.boosted_trees_quantile_stream_resource_deserialize
quantile_resource_handle_op = gen_ops.boosted_trees_quantile_stream_resource_handle_op
sparse_calculate_best_feature_split = gen_ops.boosted_trees_sparse_calculate_best_feature_split
training_predict = gen_ops.boosted_trees_training_predict
update_ensemble = gen_ops.boosted_trees_update_ensemble
update_ensemble_v2 = gen_ops.boosted_trees_update_ensemble_v2


class PruningMode:
    """When splits that lose are left out: never, before they are made, or when the tree is done."""

    NO_PRUNING, PRE_PRUNING, POST_PRUNING = range(3)
    _map = {"none": NO_PRUNING, "pre": PRE_PRUNING, "post": POST_PRUNING}

    @classmethod
    def from_str(cls, mode: str) -> int:
        """The number of a mode; ValueError for another name."""
        if mode not in cls._map:
            raise at_user_line(ValueError("pruning_mode mode must be one of: %s. Given: %r" % (", ".join(sorted(cls._map)), mode)))
        return cls._map[mode]


class _QuantileAccumulatorSaveable(SaveableObject):
    """The boundaries between buckets."""

    def __init__(self, handle: Tensor, create_op: Operation, num_streams: int, name: str) -> None:
        self._handle, self._create = handle, create_op
        boundaries = get_bucket_boundaries(handle, num_streams)
        specs = [SaveSpec(b, "", "%s_bucket_boundaries_%d" % (name, i)) for i, b in enumerate(boundaries)]
        super().__init__(handle, specs, name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        del restored_shapes  # there are as many boundaries as there are
        with control_dependencies([self._create]):
            return quantile_resource_deserialize(self._handle, restored_tensors)  # type: ignore[return-value]


class QuantileAccumulator(MadeResource):
    """Quantiles of `num_streams` features, whose ranks are off by at most `epsilon`; a checkpoint keeps the boundaries of about `num_quantiles` buckets."""

    def __init__(self, epsilon: float, num_streams: int, num_quantiles: int, name: Optional[str] = None, max_elements: Optional[int] = None) -> None:
        self._eps, self._num_streams, self._num_quantiles = epsilon, num_streams, num_quantiles
        options: Dict[str, Any] = {} if max_elements is None else {"max_elements": max_elements}
        with name_scope(name, "QuantileAccumulator") as scope:
            handle = quantile_resource_handle_op(container="", shared_name=scope, name=scope)
            super().__init__(handle, create_quantile_stream_resource(handle, epsilon, num_streams, **options), is_quantile_resource_initialized)
        self._saveable = _QuantileAccumulatorSaveable(handle, self.initializer, num_streams, handle.name)
        self._keep(self._saveable, "quantile_accumulator")

    saveable = property(lambda self: self._saveable, doc="What checkpoints keep.")

    def add_summaries(self, float_columns: List[Tensor], example_weights: Any) -> Operation:
        """Adds a batch."""
        return quantile_add_summaries(self.resource_handle, make_quantile_summaries(float_columns, example_weights, self._eps))  # type: ignore[return-value]

    def flush(self) -> Operation:
        """Sets the boundaries by what has been added."""
        return quantile_flush(self.resource_handle, self._num_quantiles)  # type: ignore[return-value]

    def get_bucket_boundaries(self) -> List[Tensor]:
        """The boundaries of each feature."""
        return get_bucket_boundaries(self.resource_handle, self._num_streams)  # type: ignore[return-value]


class _TreeEnsembleSaveable(SaveableObject):
    """The trees, and their stamp."""

    def __init__(self, handle: Tensor, create_op: Operation, name: str) -> None:
        self._handle, self._create = handle, create_op
        stamp, serialized = gen_ops.boosted_trees_serialize_ensemble(handle)
        super().__init__(handle, [SaveSpec(stamp, "", name + "_stamp"), SaveSpec(serialized, "", name + "_serialized")], name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        del restored_shapes  # both are scalars
        with control_dependencies([self._create]):
            stamp, serialized = restored_tensors
            return gen_ops.boosted_trees_deserialize_ensemble(self._handle, stamp, serialized)  # type: ignore[return-value]


class TreeEnsemble(MadeResource):
    """An ensemble of trees. One that is local is this process' copy of another, and in no checkpoint."""

    def __init__(self, name: Optional[str], stamp_token: int = 0, is_local: bool = False, serialized_proto: Any = "") -> None:
        self._is_local = is_local
        with name_scope(name, "TreeEnsemble") as scope:
            handle = gen_ops.boosted_trees_ensemble_resource_handle_op(container="", shared_name=scope, name=scope)
            create = gen_ops.boosted_trees_create_ensemble(handle, stamp_token, serialized_proto)
            super().__init__(handle, create, gen_ops.is_boosted_trees_ensemble_initialized, is_shared=not is_local)
            if not is_local:
                self._keep(_TreeEnsembleSaveable(handle, create, handle.name), "tree_ensemble")

    def get_stamp_token(self) -> Tensor:
        """A number that changes with each update."""
        return gen_ops.boosted_trees_get_ensemble_states(self.resource_handle)[0]

    def get_states(self) -> Tuple[Tensor, ...]:
        """The stamp, the numbers of trees, of finished ones and of attempted layers, and the range of the last layer's nodes."""
        names = ("stamp_token", "num_trees", "num_finalized_trees", "num_attempted_layers", "last_layer_nodes_range")
        states = gen_ops.boosted_trees_get_ensemble_states(self.resource_handle)
        return tuple(array_ops.identity(state, name=name) for state, name in zip(states, names))

    def serialize(self) -> Tuple[Tensor, Tensor]:
        """The stamp and a serialized TreeEnsemble."""
        return gen_ops.boosted_trees_serialize_ensemble(self.resource_handle)  # type: ignore[return-value]

    def deserialize(self, stamp_token: Any, serialized_proto: Any) -> Operation:
        """Replaces the trees."""
        return gen_ops.boosted_trees_deserialize_ensemble(self.resource_handle, stamp_token, serialized_proto)  # type: ignore[return-value]
