# SPDX-License-Identifier: Apache-2.0
"""How many elements a data set has, as far as its operations tell without reading it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops

INFINITE, UNKNOWN = -1, -2
_HUGE = 2**63 - 1


def _int64(value: Any) -> Tensor:
    return math_ops.cast(convert_to_tensor(value), dtypes.int64)


def _finite_or(count: Tensor, counted: Tensor) -> Tensor:
    """`counted` of a count that is known and finite; INFINITE and UNKNOWN stay."""
    return array_ops.where(count >= _int64(0), counted, count)


def _smallest(counts: List[Tensor]) -> Tensor:
    """The least of the finite ones: UNKNOWN where one of them is, INFINITE where all are."""
    all_of = array_ops.stack(counts)
    least = math_ops.reduce_min(array_ops.where(gen_ops.equal(all_of, INFINITE), array_ops.fill(array_ops.shape(all_of), _int64(_HUGE)), all_of))
    return array_ops.where(gen_ops.equal(least, _HUGE), _int64(INFINITE), least)


def _sum(a: Tensor, b: Tensor) -> Tensor:
    unknown = gen_ops.logical_or(gen_ops.equal(a, UNKNOWN), gen_ops.equal(b, UNKNOWN))
    endless = gen_ops.logical_or(gen_ops.equal(a, INFINITE), gen_ops.equal(b, INFINITE))
    return array_ops.where(endless, _int64(INFINITE), array_ops.where(unknown, _int64(UNKNOWN), a + b))


def _range(op: Any) -> Tensor:
    start, stop, step = op.inputs
    return gen_ops.maximum(_int64(0), -gen_ops.floor_div(start - stop, step))


def _repeat(op: Any) -> Tensor:
    inner, times = count_of(op.inputs[0].op), _int64(op.inputs[1])
    repeated = array_ops.where(times >= _int64(0), inner * times, array_ops.where(gen_ops.equal(inner, 0), _int64(0), _int64(INFINITE)))
    endless = array_ops.where(gen_ops.equal(times, 0), _int64(0), inner)
    return array_ops.where(inner >= _int64(0), repeated, endless)


def _take(op: Any) -> Tensor:
    inner, most = count_of(op.inputs[0].op), _int64(op.inputs[1])
    of_some = array_ops.where(gen_ops.equal(inner, INFINITE), most, _finite_or(inner, gen_ops.minimum(inner, most)))
    return array_ops.where(most < _int64(0), inner, of_some)


def _skip(op: Any) -> Tensor:
    inner, first = count_of(op.inputs[0].op), _int64(op.inputs[1])
    return _finite_or(inner, array_ops.where(first < _int64(0), _int64(0), gen_ops.maximum(_int64(0), inner - first)))


def _batch(size_at: int, remainder_at: int) -> Callable[[Any], Tensor]:
    def of(op: Any) -> Tensor:
        inner, size = count_of(op.inputs[0].op), _int64(op.inputs[size_at])
        whole = gen_ops.floor_div(inner, size)
        return _finite_or(inner, array_ops.where(op.inputs[remainder_at], whole, -gen_ops.floor_div(-inner, size)))

    return of


def _shard(op: Any) -> Tensor:
    inner, shards, index = count_of(op.inputs[0].op), _int64(op.inputs[1]), _int64(op.inputs[2])
    rest = math_ops.cast(gen_ops.less(index, gen_ops.floor_mod(inner, shards)), dtypes.int64)
    return _finite_or(inner, gen_ops.floor_div(inner, shards) + rest)


def _same(op: Any) -> Tensor:
    return count_of(op.inputs[0].op)


_RULES: Dict[str, Callable[[Any], Tensor]] = {
    "TensorDataset": lambda op: _int64(1),
    "TensorSliceDataset": lambda op: _int64(array_ops.shape(op.inputs[0])[0]),
    "RandomDataset": lambda op: _int64(INFINITE),
    "RangeDataset": _range,
    "RepeatDataset": _repeat,
    "TakeDataset": _take,
    "SkipDataset": _skip,
    "ShardDataset": _shard,
    "BatchDatasetV2": _batch(1, 2),
    "WindowDataset": _batch(2, 4),
    "PaddedBatchDatasetV2": lambda op: _batch(1, len(op.inputs) - 1)(op),
    "MapAndBatchDataset": lambda op: _batch(len(op.inputs) - 3, len(op.inputs) - 1)(op),
    "ConcatenateDataset": lambda op: _sum(*(count_of(x.op) for x in op.inputs)),
    "ZipDataset": lambda op: _smallest([count_of(x.op) for x in op.inputs]),
    **dict.fromkeys(
        ("MapDataset", "ParallelMapDataset", "ShuffleDataset", "PrefetchDataset", "CacheDataset", "ScanDataset", "OptimizeDataset", "ModelDataset"), _same
    ),
}


def count_of(op: Any) -> Tensor:
    """How many elements the data set of an operation has: INFINITE, or UNKNOWN where only reading it would tell."""
    rule = _RULES.get(op.type)
    return _int64(UNKNOWN) if rule is None else rule(op)
