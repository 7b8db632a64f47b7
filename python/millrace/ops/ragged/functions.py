# SPDX-License-Identifier: Apache-2.0
"""tf.ragged: what makes ragged tensors."""

from __future__ import annotations

import builtins
from typing import Any, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged import segments
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.ragged.value import RaggedTensorValue


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: Optional[int] = None, inner_shape: Any = None, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64
) -> Any:
    """A ragged tensor of nested lists; a tensor where they have no rows of different lengths by ragged_rank=0."""
    with name_scope(name, "RaggedConstant"):
        of_numpy = None if dtype is None else np.float32 if dtypes.as_dtype(dtype) == dtypes.bfloat16 else dtypes.as_dtype(dtype).as_numpy_dtype
        made = constant_value(pylist, of_numpy, ragged_rank, inner_shape, row_splits_dtype)

        def tensor(value: Any) -> Any:
            if isinstance(value, RaggedTensorValue):
                return RaggedTensor.from_row_splits(tensor(value.values), convert_to_tensor(value.row_splits), validate=False)
            kind = dtype
            if kind is None and isinstance(value, np.ndarray) and value.dtype == np.float64:
                kind = dtypes.float32
            if kind is None and isinstance(value, np.ndarray) and value.dtype == np.int64:
                kind = dtypes.int32
            return convert_to_tensor(value, kind)

        return tensor(made)


def constant_value(pylist: Any, dtype: Any = None, ragged_rank: Optional[int] = None, inner_shape: Any = None, row_splits_dtype: Any = "int64") -> Any:
    """A RaggedTensorValue of nested lists (an array where ragged_rank is 0)."""
    splits_type = np.dtype(dtypes.as_dtype(row_splits_dtype).as_numpy_dtype)
    if isinstance(pylist, RaggedTensor):
        raise at_user_line(TypeError("pylist may not be a RaggedTensor or RaggedTensorValue."))
    if isinstance(inner_shape, (int, np.integer)):
        inner_shape = (inner_shape,)
    scalar_depth, max_depth = _scalar_depth(pylist), _max_depth(pylist)
    if not isinstance(pylist, (list, tuple, np.ndarray)):
        if ragged_rank:
            raise at_user_line(ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d" % (pylist, ragged_rank)))
        if inner_shape:
            raise at_user_line(ValueError("Invalid pylist=%r: incompatible with dim(inner_shape)=%d" % (pylist, len(inner_shape))))
        return np.array(pylist, dtype)
    if scalar_depth is not None and max_depth > scalar_depth:
        raise at_user_line(ValueError("Invalid pylist=%r: empty list nesting is greater than scalar value nesting" % (pylist,)))
    depth = max_depth if scalar_depth is None else scalar_depth
    if inner_shape is not None and ragged_rank is not None:
        expected = ragged_rank + 1 + len(inner_shape)
        if (scalar_depth is not None and expected != scalar_depth) or (scalar_depth is None and expected < max_depth):
            raise at_user_line(
                ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d and dim(inner_shape)=%d" % (pylist, ragged_rank, len(inner_shape)))
            )
    if ragged_rank is None:
        ragged_rank = max(1, depth - 1) if inner_shape is None else max(1, depth - 1 - len(inner_shape))
        if inner_shape is None:
            inner_shape = ()
        if depth == 1:
            ragged_rank = 0
    elif inner_shape is None:
        if ragged_rank >= max(depth, 1):
            raise at_user_line(ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d" % (pylist, ragged_rank)))
        inner_shape = _inner_shape(pylist, ragged_rank)
    if ragged_rank == 0:
        return np.array(pylist if max_depth or scalar_depth else [], dtype or _guess(pylist)).reshape(
            (-1, *inner_shape) if not depth or len(pylist) == 0 else np.shape(pylist)
        )
    splits: List[List[int]] = []
    values: Any = list(pylist)
    for _ in builtins.range(ragged_rank):
        ends = [0]
        below: List[Any] = []
        for row in values:
            if not isinstance(row, (list, tuple, np.ndarray)):
                raise at_user_line(ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d" % (pylist, ragged_rank)))
            below += list(row)
            ends.append(len(below))
        splits.append(ends)
        values = below
    kind = dtype
    if kind is None:
        kind = _guess(values)
    try:
        flat = np.array(values, kind)
    except ValueError as error:
        raise at_user_line(ValueError("Invalid pylist=%r: inner dimensions do not agree (%s)" % (pylist, error))) from None
    if inner_shape or flat.ndim != 1 or len(values) == 0:
        if len(values) and flat.shape[1:] != tuple(inner_shape):
            raise at_user_line(ValueError("inner_shape %s is not consistent with pylist=%r" % (tuple(inner_shape), pylist)))
        flat = flat.reshape((len(values), *inner_shape))
    made: Any = flat
    for ends in reversed(splits):
        made = RaggedTensorValue(made, np.array(ends, splits_type))
    return made


def _guess(values: Any) -> Any:
    flat = values
    while isinstance(flat, (list, tuple)) and flat:
        flat = next((v for v in flat if not (isinstance(v, (list, tuple)) and not v)), flat[0])
        if not isinstance(flat, (list, tuple)):
            break
    if isinstance(flat, (str, bytes)):
        return object if isinstance(flat, bytes) else None
    return None if not isinstance(flat, (list, tuple)) else np.float32


def _scalar_depth(pylist: Any) -> Optional[int]:
    if isinstance(pylist, np.ndarray):
        return pylist.ndim if pylist.size else None
    if isinstance(pylist, (list, tuple)):
        depths = {d for d in map(_scalar_depth, pylist) if d is not None}
        if len(depths) > 1:
            raise at_user_line(ValueError("all scalar values must have the same nesting depth"))
        return depths.pop() + 1 if depths else None
    return 0


def _max_depth(pylist: Any) -> int:
    if isinstance(pylist, np.ndarray):
        return pylist.ndim
    return 1 + max([_max_depth(p) for p in pylist] + [0]) if isinstance(pylist, (list, tuple)) else 0


def _inner_shape(pylist: Any, ragged_rank: int) -> Any:
    """The shape that all values below ragged_rank levels have."""
    values: Any = [pylist]
    for _ in builtins.range(ragged_rank + 1):
        values = [v for row in values if isinstance(row, (list, tuple, np.ndarray)) for v in row]
    shape: List[int] = []
    while values and isinstance(values[0], (list, tuple, np.ndarray)):
        lengths = {len(v) for v in values}
        if len(lengths) != 1:
            raise at_user_line(ValueError("inner values have inconsistent shape"))
        shape.append(lengths.pop())
        values = [v for row in values for v in row]
    return tuple(shape)


def placeholder(dtype: Any, ragged_rank: int, value_shape: Any = None, name: Optional[str] = None) -> Any:
    """A ragged tensor that is fed with a RaggedTensorValue."""
    if ragged_rank == 0:
        return gen_ops.placeholder(dtypes.as_dtype(dtype), shape=TensorShape(value_shape), name=name)
    with name_scope(name, "RaggedPlaceholder"):
        made: Any = gen_ops.placeholder(dtypes.as_dtype(dtype), shape=TensorShape([None]).concatenate(TensorShape(value_shape)), name="flat_values")
        for level in reversed(builtins.range(ragged_rank)):
            made = RaggedTensor._of(made, gen_ops.placeholder(dtypes.int64, shape=TensorShape([None]), name="row_splits_%d" % level))
        return made


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64
) -> RaggedTensor:
    """Rows of numbers from start up to limit by delta; scalars go for all rows."""
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]):
        kind = dtypes.as_dtype(dtype) if dtype is not None else None
        parts = [convert_to_tensor(v, kind) for v in (starts, limits, deltas)]
        if kind is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            kind = max((p.dtype.base_dtype for p in parts), key=order.index)
            parts = [math_ops.cast(p, kind) for p in parts]
        splits_type = dtypes.as_dtype(row_splits_dtype)
        rows = [p for p in parts if p.get_shape().ndims != 0]
        if rows:
            like = sum(array_ops.zeros_like(p) for p in rows)
            first, last, step = [p + like for p in parts]
        else:
            first, last, step = [array_ops.reshape(p, [1]) for p in parts]
        wide = dtypes.float64 if kind.is_floating else dtypes.int64
        span, by = math_ops.cast(last - first, wide), math_ops.cast(step, wide)
        if kind.is_floating:
            counts = math_ops.cast(gen_ops.ceil(span / by), splits_type)
        else:
            counts = math_ops.cast(-gen_ops.floor_div(-span, by), splits_type)
        counts = gen_ops.maximum(counts, convert_to_tensor(0, splits_type))
        splits = segments.lengths_to_splits(counts)
        row = segments.row_splits_to_segment_ids(splits)
        at = math_ops.cast(segments.positions(splits, row), kind)
        return RaggedTensor._of(array_ops.gather(first, row) + at * array_ops.gather(step, row), splits)
