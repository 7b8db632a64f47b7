# SPDX-License-Identifier: Apache-2.0
"""Indices and slices of ragged tensors."""

from __future__ import annotations

from typing import Any, List

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged import gathers, segments
from millrace.ops.ragged.tensor import RaggedTensor

_ALL = slice(None)


def ragged_getitem(ragged: RaggedTensor, key: Any) -> Any:
    """ragged[key]: numbers and slices of rows, slices within them, newaxis and the ellipsis. A number within rows of different lengths
    is a ValueError."""
    with name_scope(None, "RaggedGetItem", [ragged.flat_values]):
        keys = list(key) if isinstance(key, (list, tuple)) else [key]
        return _rows(ragged, _without_ellipsis(ragged, keys))


def _without_ellipsis(ragged: RaggedTensor, keys: List[Any]) -> List[Any]:
    count = sum(1 for k in keys if k is Ellipsis)
    if count == 0:
        return keys
    if count > 1:
        raise at_user_line(ValueError("Only one ellipsis is allowed in an index, got %r" % (keys,)))
    rank = ragged.shape.ndims
    if rank is None:
        raise at_user_line(ValueError("Ellipsis not supported for unknown shape RaggedTensors"))
    used = sum(1 for k in keys if k is not Ellipsis and k is not None)
    if used > rank:
        raise at_user_line(IndexError("Too many indices for RaggedTensor: %d for rank %d" % (used, rank)))
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    return keys[:at] + [_ALL] * (rank - used) + keys[at + 1 :]


def _rows(ragged: Any, keys: List[Any]) -> Any:
    """The keys, the first of which chooses rows."""
    if not keys:
        return ragged
    if isinstance(ragged, Tensor):
        return ragged[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _rows(ragged, rest)
        rows = inner.nrows() if isinstance(inner, RaggedTensor) else None
        if rows is None:
            return array_ops.expand_dims(inner, 0)
        return RaggedTensor._of(inner, array_ops.stack([array_ops.zeros_like(rows), rows]))
    if isinstance(first, slice):
        return _columns(_sliced(ragged, first), rest)
    if not isinstance(first, (int, Tensor)) and not hasattr(first, "__index__"):
        raise at_user_line(TypeError("%s, got %r" % (array_ops._SLICE_TYPE_ERROR, first)))
    begin, end = ragged.row_splits[:-1][first], ragged.row_splits[1:][first]
    return _rows(ragged.values[begin:end], rest)


def _sliced(ragged: RaggedTensor, rows: slice) -> RaggedTensor:
    if rows == _ALL:
        return ragged
    starts, limits = ragged.row_splits[:-1][rows], ragged.row_splits[1:][rows]
    for ends in (starts, limits):
        ends.set_shape([None])  # not known where the step is a tensor
    return _pieces(ragged, starts, limits)


def _pieces(ragged: RaggedTensor, starts: Tensor, limits: Tensor) -> RaggedTensor:
    """The values from each start up to each limit as rows."""
    lengths = limits - starts
    splits = segments.lengths_to_splits(lengths)
    return RaggedTensor._of(gathers.gather(ragged.values, segments.ranges(starts, lengths)), splits)


def _columns(ragged: RaggedTensor, keys: List[Any]) -> Any:
    """The keys, the first of which is of the second dimension."""
    if not keys:
        return ragged
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _columns(ragged, rest)
        rows = inner.nrows() if isinstance(inner, RaggedTensor) else array_ops.shape(inner, out_type=ragged.row_splits.dtype.base_dtype)[0]
        return RaggedTensor._of(inner, math_ops.range(rows + 1))
    if not isinstance(first, slice):
        raise at_user_line(ValueError("Cannot index into an inner ragged dimension."))
    cut = ragged if first == _ALL else _cut(ragged, first)
    if not rest:
        return cut
    if isinstance(cut.values, RaggedTensor):
        return cut.with_values(_columns(cut.values, rest))
    return cut.with_values(cut.values[(_ALL, *rest)])


def _cut(ragged: RaggedTensor, columns: slice) -> RaggedTensor:
    """A slice of each row."""
    kind = ragged.row_splits.dtype.base_dtype
    lengths = ragged.row_lengths()
    zero = array_ops.zeros_like(lengths)
    if isinstance(columns.step, Tensor):
        return _cut_by_tensor(ragged, columns)
    step = 1 if columns.step is None else columns.step
    if not _is_integer(step):
        raise at_user_line(TypeError("slice strides must be integers or None, got %r" % (step,)))
    if step == 0:
        raise at_user_line(ValueError("the step of a slice of ragged rows must be a number other than 0"))

    def bound(value: Any, otherwise: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return otherwise if value is None else _within(value, lengths, low, high)

    if step > 0:
        begin, end = bound(columns.start, zero, zero, lengths), bound(columns.stop, lengths, zero, lengths)
    else:
        begin, end = bound(columns.start, lengths - 1, zero - 1, lengths - 1), bound(columns.stop, zero - 1, zero - 1, lengths - 1)
    if step == 1:
        return _pieces(ragged, ragged.row_starts() + begin, ragged.row_starts() + gen_ops.maximum(begin, end))
    return _strided(ragged, begin, end, convert_to_tensor(step, kind))


def _is_integer(value: Any) -> bool:
    return value.dtype.is_integer if isinstance(value, Tensor) else hasattr(value, "__index__")


def _within(value: Any, lengths: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """An offset of each row, counted from its front and kept within bounds."""
    if not _is_integer(value):
        raise at_user_line(TypeError("slice offsets must be integers or None, got %r" % (value,)))
    at = math_ops.cast(value, lengths.dtype.base_dtype) + array_ops.zeros_like(lengths)
    at = array_ops.where(at < array_ops.zeros_like(at), at + lengths, at)
    return gen_ops.minimum(gen_ops.maximum(at, low), high)


def _cut_by_tensor(ragged: RaggedTensor, columns: slice) -> RaggedTensor:
    """A slice of each row by a step that is known in the step only, of either sign."""
    if not _is_integer(columns.step):
        raise at_user_line(TypeError("slice strides must be integers or None, got %r" % (columns.step,)))
    lengths = ragged.row_lengths()
    zero = array_ops.zeros_like(lengths)
    step = math_ops.cast(columns.step, lengths.dtype.base_dtype)
    back = gen_ops.less(step + zero, zero)
    low, high = array_ops.where(back, zero - 1, zero), array_ops.where(back, lengths - 1, lengths)
    begin = array_ops.where(back, high, low) if columns.start is None else _within(columns.start, lengths, low, high)
    end = array_ops.where(back, low, high) if columns.stop is None else _within(columns.stop, lengths, low, high)
    return _strided(ragged, begin, end, step)


def _strided(ragged: RaggedTensor, begin: Tensor, end: Tensor, step: Tensor) -> RaggedTensor:
    """The values of each row from begin up to end by a step."""
    count = gen_ops.maximum(-gen_ops.floor_div(begin - end, step), array_ops.zeros_like(begin))
    splits = segments.lengths_to_splits(count)
    rows = segments.row_splits_to_segment_ids(splits)
    at = array_ops.gather(ragged.row_starts() + begin, rows) + segments.positions(splits, rows) * step
    return RaggedTensor._of(gathers.gather(ragged.values, at), splits)
