# SPDX-License-Identifier: Apache-2.0
"""tf.ragged: what makes ragged tensors."""

from __future__ import annotations

import builtins
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant as constant_op
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import gen_ops, math_ops
from millrace.ops.ragged.tensor import RaggedTensor, is_ragged
from millrace.ops.ragged.value import RaggedTensorValue


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: Optional[int] = None, inner_shape: Any = None, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64
) -> Any:
    """A ragged tensor of nested lists; a tensor where they have no rows of different lengths by ragged_rank=0."""

    def rows(values: Any, splits: List[int]) -> RaggedTensor:
        return RaggedTensor.from_row_splits(values, convert_to_tensor(splits, dtypes.as_dtype(row_splits_dtype)), validate=False)

    with name_scope(name, "RaggedConstant"):
        return _nested(rows, lambda values, shape: constant_op(values, dtype, shape, verify_shape=shape is not None), pylist, ragged_rank, inner_shape)


def constant_value(pylist: Any, dtype: Any = None, ragged_rank: Optional[int] = None, inner_shape: Any = None, row_splits_dtype: Any = "int64") -> Any:
    """A RaggedTensorValue of nested lists (an array where ragged_rank is 0)."""
    splits_type = np.dtype(dtypes.as_dtype(row_splits_dtype).as_numpy_dtype)
    kind = dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype

    def flat(values: Any, shape: Any) -> Any:
        made = np.array(values, kind)
        return made if shape is None else np.reshape(made, shape)

    return _nested(lambda values, splits: RaggedTensorValue(values, np.array(splits, splits_type)), flat, pylist, ragged_rank, inner_shape)


def _is_nested(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or np.ndim(value) != 0


def _nested(rows: Callable[[Any, List[int]], Any], flat: Callable[[Any, Any], Any], pylist: Any, ragged_rank: Optional[int], inner_shape: Any) -> Any:
    """What rows(values, splits) makes, level by level, of what flat(list of values, shape) makes of the innermost ones."""
    if is_ragged(pylist):
        raise at_user_line(TypeError("pylist may not be a RaggedTensor or RaggedTensorValue."))
    if inner_shape is not None:
        inner_shape = (inner_shape,) if isinstance(inner_shape, (int, np.integer)) else tuple(inner_shape)
    if not _is_nested(pylist):
        if ragged_rank:
            raise at_user_line(ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d" % (pylist, ragged_rank)))
        if inner_shape:
            raise at_user_line(ValueError("Invalid pylist=%r: incompatible with dim(inner_shape)=%d" % (pylist, len(inner_shape))))
        return flat(pylist, ())
    if ragged_rank is not None and ragged_rank < 0:
        raise at_user_line(ValueError("Invalid ragged_rank=%r: must be nonnegative" % ragged_rank))
    scalar_depth, max_depth = _find_scalar_and_max_depth(pylist)
    if scalar_depth is not None and max_depth > scalar_depth:
        raise at_user_line(ValueError("Invalid pylist=%r: empty list nesting is greater than scalar value nesting" % (pylist,)))
    if inner_shape is not None and ragged_rank is not None:
        expected = ragged_rank + 1 + len(inner_shape)
        if (scalar_depth is not None and expected != scalar_depth) or (scalar_depth is None and expected < max_depth):
            raise at_user_line(
                ValueError("Invalid pylist=%r: incompatible with ragged_rank=%d and dim(inner_shape)=%d" % (pylist, ragged_rank, len(inner_shape)))
            )
    if ragged_rank == 0 or (ragged_rank is None and max_depth - len(inner_shape or ()) < 2):
        return flat(pylist, inner_shape)
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else _default_inner_shape_for_pylist(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, max_depth - 1 if scalar_depth is None else scalar_depth - 1 - len(inner_shape))
    splits: List[List[int]] = []
    values: Any = list(pylist)
    for _ in builtins.range(ragged_rank):
        splits.append([0])
        below: List[Any] = []
        for row in values:
            below.extend(row)
            splits[-1].append(len(below))
        values = below
    made = flat(values, (len(values), *inner_shape))
    for ends in reversed(splits):
        made = rows(made, ends)
    return made


def _find_scalar_and_max_depth(pylist: Any) -> Tuple[Optional[int], int]:
    """How deep numbers stand in nested lists (None where there are none), and how deep lists do."""
    if not _is_nested(pylist):
        return 0, 0
    scalar_depth, max_depth = None, 1  # type: Optional[int], int
    for child in pylist:
        scalars, lists = _find_scalar_and_max_depth(child)
        if scalars is not None:
            if scalar_depth is not None and scalar_depth != scalars + 1:
                raise at_user_line(ValueError("all scalar values must have the same nesting depth"))
            scalar_depth = scalars + 1
        max_depth = max(max_depth, lists + 1)
    return scalar_depth, max_depth


def _default_inner_shape_for_pylist(pylist: Any, ragged_rank: int) -> Tuple[int, ...]:
    """The shape that all values below ragged_rank levels have."""
    values: Any = list(pylist)
    for depth in builtins.range(ragged_rank):
        if not all(map(_is_nested, values)):
            raise at_user_line(
                ValueError(
                    "pylist has scalar values depth %d, but ragged_rank=%d requires scalar value depth greater than %d" % (depth + 1, ragged_rank, ragged_rank)
                )
            )
        values = [v for row in values for v in row]
    shape: List[int] = []
    while values and any(map(_is_nested, values)):
        lengths = {len(v) if _is_nested(v) else None for v in values}
        if len(lengths) != 1:
            raise at_user_line(ValueError("inner values have inconsistent shape"))
        shape.append(lengths.pop() or 0)
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
        starts, limits, deltas = parts
        splits, values = gen_ops.ragged_range(starts, limits, deltas, Tsplits=dtypes.as_dtype(row_splits_dtype))
        return RaggedTensor._of(values, splits)
