# SPDX-License-Identifier: Apache-2.0
"""Rows and elements of ragged tensors by their numbers."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.ragged import conversions
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged, match_row_splits_dtypes


def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = 0, batch_dims: int = 0, name: Optional[str] = None) -> Any:
    """Rows of params by their numbers; either may be ragged."""
    del validate_indices  # they always are
    if axis != 0 or batch_dims:
        raise at_user_line(ValueError("%s != 0 is not supported for ragged gather yet." % ("batch_dims" if batch_dims else "axis")))
    with name_scope(name, "RaggedGather", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices, preferred_dtype=dtypes.int64)
        return _rows(*match_row_splits_dtypes(params, indices))


def _rows(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_rows(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return array_ops.gather(params, indices)
    ndims = indices.get_shape().ndims
    if ndims is None:
        raise at_user_line(ValueError("indices.shape.ndims must be known statically"))
    made: Any
    splits, made = gen_ops.ragged_gather(params.nested_row_splits, params.flat_values, indices, OUTPUT_RAGGED_RANK=params.ragged_rank + ndims - 1)
    for level in reversed(splits):
        made = RaggedTensor._of(made, level)
    return made


def gather_nd(params: Any, indices: Any, name: Optional[str] = None, batch_dims: int = 0) -> Any:
    """Parts of params by coordinates."""
    if batch_dims:
        raise at_user_line(ValueError("batch_dims != 0 is not supported for ragged gather yet."))
    with name_scope(name, "RaggedGatherNd", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices, preferred_dtype=dtypes.int64)
        if not is_ragged(params) and not is_ragged(indices):
            return gen_ops.gather_nd(params, indices)
        params, indices = match_row_splits_dtypes(params, indices)
        ndims = indices.shape.ndims
        if ndims is None:
            raise at_user_line(ValueError("indices.rank be statically known."))
        if ndims == 0:
            raise at_user_line(ValueError("indices.rank must be at least 1."))
        if isinstance(indices, RaggedTensor) and ndims == indices.ragged_rank + 1:
            raise at_user_line(ValueError("The innermost dimension of indices may not be ragged"))
        if indices.shape[-1].value is None:
            raise at_user_line(ValueError("indices.shape[-1] must be statically known."))
        return _at(params, indices)


def _at(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_at(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return gen_ops.gather_nd(params, indices)
    depth, kind = indices.get_shape()[-1].value, params.row_splits.dtype.base_dtype
    if depth == 0:
        whole = RaggedTensor._of(params, array_ops.stack([array_ops.zeros_like(params.nrows()), params.nrows()]))
        return _rows(whole, array_ops.zeros(array_ops.shape(indices)[:-1], kind))
    if depth == 1:
        return _rows(params, array_ops.squeeze(indices, [-1]))
    rest = math_ops.cast(indices[..., 1:], kind)
    moved = array_ops.gather(params.row_splits, indices[..., 0]) + rest[..., 0]
    return _at(params.values, array_ops.concat([array_ops.expand_dims(moved, -1), rest[..., 1:]], -1))


def batch_gather(params: Any, indices: Any, name: Optional[str] = None) -> Any:
    """Of each row of params the elements that a row of indices names."""
    with name_scope(name, "RaggedBatchGather", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices)
        if not is_ragged(params) and not is_ragged(indices):
            return array_ops.batch_gather(params, indices)
        return _of_batch(*match_row_splits_dtypes(params, indices))


def _of_batch(params: Any, indices: Any) -> Any:
    ndims = indices.shape.ndims
    if ndims is None:
        raise at_user_line(ValueError("batch_gather does not allow indices with unknown shape."))
    if ndims == 0:
        raise at_user_line(ValueError("indices.rank must be at least 1."))
    mismatch = ValueError("batch shape from indices does not match params shape")
    if isinstance(indices, RaggedTensor):
        if ndims > 2:
            if not isinstance(params, RaggedTensor):
                raise at_user_line(mismatch)
            check = check_ops.assert_equal(params.row_splits, indices.row_splits)
            with control_dependencies([check] if check is not None else []):
                inner = array_ops.identity(indices.values) if isinstance(indices.values, Tensor) else indices.values
                return indices.with_values(_of_batch(params.values, inner))
        if not isinstance(params, RaggedTensor):
            if params.get_shape().ndims is not None and params.get_shape().ndims < 2:
                raise at_user_line(mismatch)
            params = conversions.from_tensor(params, None, None, 1, None, indices.row_splits.dtype.base_dtype)
        params.shape[0].assert_is_compatible_with(indices.shape[0])
        with control_dependencies([check_ops.assert_equal(params.nrows(), indices.nrows(), message=str(mismatch))]):
            starts = array_ops.gather(params.row_starts(), indices.value_rowids())
        return indices.with_values(_rows(params.values, math_ops.cast(indices.values, starts.dtype) + starts))
    if ndims == 1:
        return _rows(params, indices)
    if not isinstance(params, RaggedTensor):  # within ragged ones
        return array_ops.batch_gather(params, indices)
    if ndims == 2:
        starts = array_ops.expand_dims(params.row_starts(), 1)
        return _rows(params.values, math_ops.cast(indices, starts.dtype) + starts)
    raise at_user_line(mismatch)


def batch_gather_with_default(params: Any, indices: Any, default_value: Any = "", name: Optional[str] = None) -> Any:
    """batch_gather, with default_value where an index is negative or beyond the row."""
    with name_scope(name, "RaggedBatchGatherWithDefault", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices)
        params, indices = match_row_splits_dtypes(params, indices)
        default = convert_to_tensor(default_value, params.dtype.base_dtype)
        if default.get_shape().ndims not in (0, 1):
            raise at_user_line(ValueError('"default_value" must be a scalar or vector'))
        for what, value in (("Indices", indices), ("Params", params)):
            if value.shape.ndims is None:
                raise at_user_line(ValueError("%s must have a known rank." % what))
        return _with_default(params, indices, default)


def _with_default(params: Any, indices: Any, default: Tensor) -> Any:
    if indices.shape.ndims == 1 and not is_ragged(indices):
        rows = params.nrows(indices.dtype) if isinstance(params, RaggedTensor) else array_ops.shape(params, out_type=indices.dtype.base_dtype)[0]
        return _rows(_padded(params, default), _shifted(indices, rows))
    asked, there = indices.shape.ndims, params.shape.ndims
    whole_rows = isinstance(params, RaggedTensor) and params.flat_values.get_shape().ndims not in (1, None) and asked != there
    if default.get_shape().ndims == 0 and whole_rows:
        raise at_user_line(ValueError("default_value must have the shape %s of the values" % params.flat_values.get_shape()[1:]))
    if asked is not None and there is not None and asked > there:
        raise at_user_line(ValueError("params must have as many dimensions as indices, or more"))
    kind = next((v.row_splits.dtype.base_dtype for v in (params, indices) if isinstance(v, RaggedTensor)), dtypes.int64)
    rows_of = indices if isinstance(indices, RaggedTensor) else conversions.from_tensor(indices, None, None, 1, None, kind)
    params = params if isinstance(params, RaggedTensor) else conversions.from_tensor(params, None, None, 1, None, kind)
    if (rows_of.shape.ndims or 0) > 2:
        made = rows_of.with_values(_with_default(params.values, rows_of.values, default))
    else:
        number = math_ops.cast(rows_of.values, kind)
        row = rows_of.value_rowids()
        inside = gen_ops.logical_and(number >= 0, number < array_ops.gather(params.row_lengths(), row))
        places = array_ops.where(inside, number + array_ops.gather(params.row_starts(), row) + 1, array_ops.zeros_like(number))
        made = rows_of.with_values(_rows(_padded(params.values, default), places))
    return made.to_tensor() if not is_ragged(indices) and made.ragged_rank == 1 else made


def _shifted(indices: Tensor, count: Tensor) -> Tensor:
    """One more, as a row of defaults stands in front; 0 for what is outside."""
    return array_ops.where(gen_ops.logical_and(indices >= 0, indices < count), indices + 1, array_ops.zeros_like(indices))


def _padded(values: Any, default: Tensor) -> Any:
    """Rows with one in front of them that holds defaults: a value, in one row, in one row ..."""
    if not isinstance(values, RaggedTensor):
        return array_ops.concat([_first(values, default), values], 0)
    splits = values.row_splits
    return RaggedTensor._of(_padded(values.values, default), array_ops.concat([array_ops.zeros_like(splits[:1]), splits + 1], 0))


def _first(values: Tensor, default: Tensor) -> Tensor:
    return array_ops.expand_dims(gen_ops.broadcast_to(default, array_ops.shape(values)[1:]), 0)
