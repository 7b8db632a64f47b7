# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors from dense and sparse ones, and back."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.ragged import segments
from millrace.ops.ragged.tensor import RaggedTensor, is_ragged


def from_tensor(
    tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64
) -> RaggedTensor:
    """RaggedTensor.from_tensor; a ragged tensor stays what it is."""
    if isinstance(tensor, RaggedTensor):
        return tensor
    kind = dtypes.as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise at_user_line(ValueError("Specify lengths or padding, but not both"))
    if not isinstance(ragged_rank, int):
        raise at_user_line(TypeError("ragged_rank expected int, got %r" % (ragged_rank,)))
    if ragged_rank <= 0:
        raise at_user_line(ValueError("ragged_rank must be greater than 0; got %s" % ragged_rank))
    with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
        tensor = convert_to_tensor(tensor, name="tensor")
        tensor.get_shape().with_rank_at_least(ragged_rank + 1)
        if isinstance(lengths, (list, tuple)) and lengths and not isinstance(lengths[0], (int, float)):
            if ragged_rank not in (1, len(lengths)):
                raise at_user_line(ValueError("If lengths is a tuple of row_lengths, then ragged_rank must be len(lengths)"))
            tensor.get_shape().with_rank_at_least(len(lengths) + 1)
            levels = [segments.partition(n, "lengths", kind) for n in lengths]
            return RaggedTensor.from_nested_row_lengths(_kept(tensor, levels), levels, validate=False)
        shape = array_ops.shape(tensor, out_type=kind)
        if ragged_rank > 1 and padding is None and lengths is None:
            inner = from_tensor(array_ops.reshape(tensor, array_ops.concat([shape[:1] * shape[1:2], shape[2:]], 0)), None, None, ragged_rank - 1, None, kind)
            return RaggedTensor._of(inner, math_ops.range(shape[0] + 1) * shape[1])
        if ragged_rank > 1:  # lengths or padding are of the innermost rows
            outer = from_tensor(tensor, None, None, ragged_rank - 1, None, kind)
            return outer.with_flat_values(from_tensor(outer.flat_values, lengths, padding, 1, None, kind))
        if padding is not None:
            lengths = _without(tensor, padding, shape, kind)
        if lengths is not None:
            lengths = math_ops.cast(segments.partition(lengths, "lengths"), kind)
            lengths = gen_ops.minimum(gen_ops.maximum(lengths, convert_to_tensor(0, kind)), shape[1])
            return RaggedTensor._of(_kept(tensor, [lengths]), segments.lengths_to_splits(lengths))
        values = array_ops.reshape(tensor, array_ops.concat([shape[:1] * shape[1:2], shape[2:]], 0))
        values.set_shape(
            [None] + (tensor.get_shape().as_list()[2:] if tensor.get_shape().ndims is not None else []) if tensor.get_shape().ndims is not None else None
        )
        splits = math_ops.range(shape[0] + 1) * shape[1]
        rows = tensor.get_shape()[0].value if tensor.get_shape().ndims is not None else None
        if rows is not None:
            splits.set_shape([rows + 1])
        return RaggedTensor._of(values, splits)


def _kept(tensor: Tensor, levels: List[Tensor]) -> Tensor:
    """The elements that rows of these lengths keep, of each level in turn."""
    kept = tensor
    for lengths in levels:
        kept = array_ops.boolean_mask(kept, array_ops.sequence_mask(lengths, array_ops.shape(kept)[1]))
    return kept


def _without(tensor: Tensor, padding: Any, shape: Tensor, kind: Any) -> Tensor:
    """How long each row is without the padding behind it."""
    padding = convert_to_tensor(padding, tensor.dtype.base_dtype)
    padding.get_shape().assert_is_compatible_with(tensor.get_shape()[2:])
    same = gen_ops.equal(tensor, padding)
    ndims = tensor.get_shape().ndims
    if ndims is None:
        raise at_user_line(ValueError("padding needs a tensor of known rank"))
    if ndims > 2:
        same = math_ops.reduce_all(same, list(range(2, ndims)))
    counted = math_ops.range(shape[1]) + 1
    return math_ops.reduce_max(math_ops.cast(gen_ops.logical_not(same), kind) * counted, 1)


def from_sparse(st_input: Any, name: Optional[str], row_splits_dtype: Any) -> RaggedTensor:
    """RaggedTensor.from_sparse."""
    kind = dtypes.as_dtype(row_splits_dtype)
    if not isinstance(st_input, SparseTensor):
        raise at_user_line(TypeError("Expected SparseTensor, got %s" % type(st_input).__name__))
    with name_scope(name, "RaggedFromSparse", [st_input.indices]):
        st_input.dense_shape.get_shape().with_rank(1)
        ranks = {s.get_shape()[at].value for s, at in ((st_input.indices, 1), (st_input.dense_shape, 0)) if s.get_shape().ndims is not None}
        if ranks - {None} != {2}:
            raise at_user_line(ValueError("rank(st_input) must be 2"))
        rows, columns = st_input.indices[:, 0], st_input.indices[:, 1]
        first = array_ops.concat([array_ops.ones([1], dtypes.int64), math_ops.cast(gen_ops.not_equal(rows[1:], rows[:-1]), dtypes.int64)], 0)[
            : array_ops.shape(rows)[0]
        ]
        expected = gen_ops.not_equal(first, convert_to_tensor(1, dtypes.int64))
        following = array_ops.concat([columns[:1], columns[1:] - columns[:-1]], 0)
        wanted = math_ops.cast(expected, dtypes.int64)
        check = check_ops.assert_equal(array_ops.where(expected, following, columns), wanted, message="SparseTensor is not right-ragged")
        with control_dependencies([check] if check is not None else []):
            rowids = math_ops.cast(array_ops.identity(rows), kind)
        return RaggedTensor.from_value_rowids(st_input.values, rowids, math_ops.cast(st_input.dense_shape[0], kind), validate=False)


def to_sparse(ragged: RaggedTensor, name: Optional[str]) -> SparseTensor:
    """RaggedTensor.to_sparse."""
    with name_scope(name, "RaggedToSparse", [ragged.flat_values]):
        return SparseTensor(*gen_ops.ragged_tensor_to_sparse(ragged.nested_row_splits, ragged.flat_values))


def to_tensor(rt_input: Any, default_value: Any = None, name: Optional[str] = None) -> Tensor:
    """A ragged tensor as a dense one; a dense one as it is."""
    return rt_input.to_tensor(default_value, name) if is_ragged(rt_input) else rt_input


def ragged_to_dense(rt_input: Any, default_value: Any = None, shape: Any = None) -> Tensor:
    """A ragged tensor as a dense one of a shape."""
    return rt_input.to_tensor(default_value, shape=shape)


def as_ragged(value: Any, ragged_rank: int) -> RaggedTensor:
    """A tensor with that many levels: dense ones have rows of one length."""
    if is_ragged(value):
        levels = value.ragged_rank
        if levels >= ragged_rank:
            return value
        return value.with_flat_values(from_tensor(value.flat_values, None, None, ragged_rank - levels, None, value.row_splits.dtype.base_dtype))
    return from_tensor(convert_to_tensor(value), None, None, ragged_rank, None, dtypes.int64)
