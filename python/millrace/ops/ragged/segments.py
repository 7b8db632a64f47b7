# SPDX-License-Identifier: Apache-2.0
"""Rows described in several ways: by where they end, by how long they are, by the row of each value."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops


def positive_axis(axis: Any, ndims: Optional[int]) -> int:
    """An axis counted from the front."""
    if not isinstance(axis, int):
        raise at_user_line(TypeError("axis must be an int; got %s" % type(axis).__name__))
    if ndims is None:
        if axis < 0:
            raise at_user_line(ValueError("axis may only be negative if ndims is statically known."))
        return axis
    if not -ndims <= axis < ndims:
        raise at_user_line(ValueError("axis=%d out of bounds: expected %d<=axis<%d" % (axis, -ndims, ndims)))
    return axis % ndims


def partition(value: Any, name: str, dtype: Any = None) -> Tensor:
    """A description of rows as a vector of integers: int64 unless it is something else already."""
    if dtype is None and getattr(value, "dtype", None) == np.int32:
        dtype = dtypes.int32
    given = convert_to_tensor(value, name=name, preferred_dtype=dtypes.int64)
    if given.dtype.is_floating:
        raise at_user_line(TypeError("%s must be an integer tensor, got dtype %s" % (name, given.dtype.name)))
    if dtype is not None:
        given = math_ops.cast(given, dtype)
    if given.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        raise at_user_line(ValueError("%s must have dtype int32 or int64, got %s" % (name, given.dtype.name)))
    given.get_shape().assert_has_rank(1)
    if given.get_shape().ndims is None:
        with control_dependencies([check_ops.assert_rank(given, 1, message="%s must be a vector" % name)]):
            given = array_ops.identity(given)
        given.set_shape([None])
    return given


def lengths_to_splits(lengths: Tensor) -> Tensor:
    """Where rows of these lengths end, with a 0 in front."""
    return array_ops.concat([array_ops.zeros([1], lengths.dtype), math_ops.cumsum(lengths)], 0)


def splits_to_lengths(splits: Tensor) -> Tensor:
    """How long each row is."""
    return splits[1:] - splits[:-1]


def count_of(splits: Tensor) -> Tensor:
    """How many rows there are, in the type of the splits."""
    return array_ops.shape(splits, out_type=splits.dtype.base_dtype)[0] - 1


def row_splits_to_segment_ids(splits: Any, name: Optional[str] = None, out_type: Any = None) -> Tensor:
    """The row of each value, for splits [rows + 1]."""
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        at = convert_to_tensor(splits, name="splits", preferred_dtype=dtypes.int64)
        if at.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("splits must have dtype int32 or int64, got %s" % at.dtype.name))
        at = partition(at, "splits")
        if at.get_shape()[0].value == 0:
            raise at_user_line(ValueError("Invalid row_splits: []"))
        values = math_ops.range(at[-1], dtype=at.dtype.base_dtype)
        rows = gen_ops.upper_bound(array_ops.expand_dims(at[1:], 0), array_ops.expand_dims(values, 0), out_type=at.dtype.base_dtype)[0]
        return rows if out_type is None else math_ops.cast(rows, out_type)


def segment_ids_to_row_splits(segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: Optional[str] = None) -> Tensor:
    """Where each row ends, for the row of each value in ascending order."""
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        rows = partition(segment_ids, "segment_ids")
        kind = dtypes.as_dtype(out_type or rows.dtype.base_dtype)
        rows = math_ops.cast(rows, kind)
        if num_segments is None:
            last = math_ops.reduce_max(array_ops.concat([rows, convert_to_tensor([-1], kind)], 0))
            num_segments = last + 1
        count = math_ops.cast(num_segments, kind)
        return lengths_to_splits(gen_ops.unsorted_segment_sum(array_ops.ones_like(rows), rows, count))


def ranges(starts: Tensor, lengths: Tensor) -> Tensor:
    """start, start + 1 ... for each start and length, one after the other: a vector."""
    splits = lengths_to_splits(lengths)
    rows = row_splits_to_segment_ids(splits)
    return math_ops.range(splits[-1], dtype=splits.dtype.base_dtype) + array_ops.gather(starts - splits[:-1], rows)


def positions(splits: Tensor, rows: Tensor) -> Tensor:
    """Where in its row each value is."""
    return math_ops.range(splits[-1], dtype=splits.dtype.base_dtype) - array_ops.gather(splits, rows)


def repeat(data: Any, repeats: Any, axis: int, name: Optional[str] = None) -> Tensor:
    """Each slice along an axis as often as repeats (a number, or one for each) say. A scalar is a vector of one element."""
    with name_scope(name, "Repeat", [data, repeats]):
        data = convert_to_tensor(data, name="data")
        counts = convert_to_tensor(repeats, name="repeats", preferred_dtype=dtypes.int64)
        if counts.dtype.is_floating:
            raise at_user_line(TypeError("repeats must be an integer tensor; got dtype=%s" % counts.dtype.name))
        if counts.get_shape().ndims is not None:
            counts.get_shape().with_rank_at_most(1)
        if data.get_shape().ndims == 0:
            data = array_ops.expand_dims(data, 0)
        ndims = data.get_shape().ndims
        at = positive_axis(axis, ndims)
        if ndims is None:  # a scalar would be a vector
            shape = array_ops.shape(data)
            data = array_ops.reshape(data, array_ops.concat([array_ops.ones([1], dtypes.int32)[array_ops.size(shape[:1]) :], shape], 0))
        size = array_ops.shape(data, out_type=counts.dtype.base_dtype)[at]
        if counts.get_shape().ndims == 1 and ndims is not None and counts.get_shape()[0].value != 1:
            data.get_shape()[at].assert_is_compatible_with(counts.get_shape()[0])
        counts = gen_ops.broadcast_to(counts, array_ops.reshape(size, [1]))
        which = row_splits_to_segment_ids(lengths_to_splits(math_ops.cast(counts, dtypes.int64)))
        return array_ops.gather(data, which, axis=at)


def repeat_ranges(params: Any, splits: Tensor, repeats: Tensor) -> Tensor:
    """Each range of slices between two splits as often as repeats say."""
    starts, lengths = repeat(splits[:-1], repeats, 0), repeat(splits_to_lengths(splits), repeats, 0)
    return array_ops.gather(params, ranges(starts, lengths))
