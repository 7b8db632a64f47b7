# SPDX-License-Identifier: Apache-2.0
"""Rows described in several ways: by where they end, by how long they are, by the row of each value."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops


def partition(value: Any, name: str, dtype: Any = None) -> Tensor:
    """A description of rows as a vector of integers: int64 unless it is something else already."""
    given = convert_to_tensor(value, dtype, name=name, preferred_dtype=dtypes.int64)
    if given.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        raise at_user_line(ValueError("%s must be int32 or int64, got %s" % (name, given.dtype.name)))
    given.get_shape().assert_has_rank(1)
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
        at = partition(splits, "splits")
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
