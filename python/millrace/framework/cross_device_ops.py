# SPDX-License-Identifier: Apache-2.0
"""How strategies put the values of replicas together, and what a part of their input is told. A strategy has one replica here (strategy.py), so a value is
its own sum and mean; what programs choose among is taken, checked as TensorFlow checks it, and changes no result."""

from __future__ import annotations

import enum
from typing import Any, Callable, List, Optional, Sequence, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.graph import device, get_default_graph


class ReduceOp(enum.Enum):
    """How values of replicas become one."""

    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def of(given: Any) -> "ReduceOp":
        """One of these by its name, in any case. ValueError for another."""
        if isinstance(given, ReduceOp):
            return given
        try:
            return ReduceOp(str(given).upper())
        except ValueError:
            raise at_user_line(ValueError("reduce_op must be ReduceOp.SUM or ReduceOp.MEAN, got: %r" % (given,))) from None


class InputReplicationMode(enum.Enum):
    """How many input pipelines there are: one for each worker."""

    PER_WORKER = "PER_WORKER"


class InputContext:
    """What an input function is told of its part: the number of pipelines, which of them this one is, and how many replicas all of them feed."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._pipelines, self._id, self._replicas = num_input_pipelines, input_pipeline_id, num_replicas_in_sync

    num_input_pipelines = property(lambda self: self._pipelines, doc="How many input pipelines there are.")
    input_pipeline_id = property(lambda self: self._id, doc="Which of them this is, from 0.")
    num_replicas_in_sync = property(lambda self: self._replicas, doc="How many replicas train in step.")

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """A replica's share of a batch. ValueError unless it divides."""
        if global_batch_size % self._replicas:
            raise at_user_line(ValueError("The `global_batch_size` %r is not divisible by `num_replicas_in_sync` %r " % (global_batch_size, self._replicas)))
        return global_batch_size // self._replicas


def _on_one(destinations: Any) -> str:
    """The device of destinations: its name, a variable's or tensor's own, or the only one of a list."""
    if isinstance(destinations, (list, tuple)):
        if len(destinations) != 1:
            raise at_user_line(NotImplementedError("values go to one device, got %d: a strategy has one replica." % len(destinations)))
        return _on_one(destinations[0])
    name = destinations if isinstance(destinations, str) else getattr(destinations, "device", None)
    if not isinstance(name, str):
        raise at_user_line(ValueError("destinations must be a device, or a variable or tensor that has one; got %r" % (destinations,)))
    return name


class CrossDeviceOps:
    """Takes the values of replicas, of which there is one, to a device."""

    def reduce(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
        """The value, which is the sum and the mean of what one replica has. ValueError for other reductions and for no destination."""
        ReduceOp.of(reduce_op)
        _on_one(destinations)
        return per_replica_value

    def batch_reduce(self, reduce_op: Any, value_destination_pairs: Sequence[Tuple[Any, Any]]) -> List[Any]:
        """The values of pairs of a value and where it goes."""
        return [self.reduce(reduce_op, value, destinations) for value, destinations in value_destination_pairs]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """The tensor, on that device."""
        from millrace.ops import array_ops

        with device(_on_one(destinations)):
            return array_ops.identity(tensor)


class ReductionToOneDevice(CrossDeviceOps):
    """Would add on `reduce_to_device` by `accumulation_fn` (a sum, where nothing is said)."""

    def __init__(self, reduce_to_device: Optional[str] = None, accumulation_fn: Optional[Callable[..., Any]] = None) -> None:
        del reduce_to_device, accumulation_fn  # there is nothing to add


class _InPacks(CrossDeviceOps):
    _what = "all-reduce"

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise at_user_line(ValueError("%s requires num_packs >= 0, but %d is specified" % (self._what, num_packs)))


class NcclAllReduce(_InPacks):
    """Would add by NCCL, `num_packs` messages for all gradients."""

    _what = "NCCL all-reduce"


class HierarchicalCopyAllReduce(_InPacks):
    """Would add in two steps among eight devices, `num_packs` messages for all gradients."""

    _what = "HierarchicalCopy"


class AllReduceCrossDeviceOps(_InPacks):
    """Those two by the name `all_reduce_alg`; gradients of at most `agg_small_grads_max_bytes` would go together, `agg_small_grads_max_group` at once."""

    def __init__(self, all_reduce_alg: str = "nccl", num_packs: int = 1, agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10) -> None:
        del all_reduce_alg, agg_small_grads_max_bytes, agg_small_grads_max_group  # there is nothing to add
        super().__init__(num_packs)


# ---- values that may be slices ----


def aggregate_tensors_or_indexed_slices(values: Sequence[Any], accumulation_fn: Optional[Callable[[Sequence[Any]], Any]] = None) -> Any:
    """The sum of tensors, or what accumulation_fn makes of them; of IndexedSlices, all slices as IndexedSlices."""
    from millrace.ops import array_ops, math_ops

    if not any(isinstance(v, IndexedSlices) for v in values):
        return (accumulation_fn or math_ops.add_n)(values)
    slices = [math_ops._as_indexed_slices(v) for v in values]
    return IndexedSlices(array_ops.concat([v.values for v in slices], 0), array_ops.concat([v.indices for v in slices], 0), slices[0].dense_shape)


def divide_by_n_tensors_or_indexed_slices(value: Any, n: Any) -> Any:
    """A tensor by n, or IndexedSlices whose values are."""
    return IndexedSlices(value.values / n, value.indices, value.dense_shape) if isinstance(value, IndexedSlices) else value / n


def copy_tensor_or_indexed_slices_to_device(value: Any, device: Any) -> Any:
    """A tensor, or IndexedSlices, on a device."""
    from millrace.ops import array_ops

    with get_default_graph().device(device):
        if not isinstance(value, IndexedSlices):
            return array_ops.identity(value)
        parts = [None if part is None else array_ops.identity(part) for part in (value.values, value.indices, value.dense_shape)]
        return IndexedSlices(*parts)


def contains_indexed_slices(value: Any) -> bool:
    """Whether it, or one of a list of it, or of the values that replicas have, are IndexedSlices."""
    if isinstance(value, IndexedSlices):
        return True
    parts = value.values if hasattr(value, "device_map") else value
    return isinstance(parts, (list, tuple)) and any(contains_indexed_slices(v) for v in parts)
