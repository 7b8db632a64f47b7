# SPDX-License-Identifier: Apache-2.0
"""Slices of tensors by their numbers."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import gen_ops

__all__ = ["batch_gather", "gather", "gather_nd"]


def gather(
    params: Any, indices: Any, validate_indices: Optional[bool] = None, name: Optional[str] = None, axis: Any = None, batch_dims: Optional[int] = 0
) -> Tensor:
    """The slices of `params` at `indices` along an axis: `batch_dims` unless given, the number of first axes that both have in common.

    Shapes: params [c..., a..., n, b...], indices [c..., i...] with batch_dims axes c -> [c..., a..., i..., b...].
    Raises: InvalidArgumentError in the step when an index is not in [0, n); ValueError when the ranks do not allow batch_dims.
    """
    del validate_indices  # an index out of range is an error in any case
    batch_dims = batch_dims or 0
    axis = batch_dims if axis is None else axis
    known = constant_value(axis) if isinstance(axis, Tensor) else axis
    if batch_dims == 0:
        if known is not None and known == 0 and hasattr(params, "sparse_read") and getattr(params, "_is_resource", True):
            return params.sparse_read(indices, name)
        return gen_ops.gather_v2(params, indices, axis, name=name)
    indices = convert_to_tensor(indices, name="indices")
    batch_dims = _batch_dims(batch_dims, indices, "tf.gather")
    if known is not None and 0 <= known < batch_dims:
        raise at_user_line(ValueError("batch_dims = %d must be less than or equal to axis = %d" % (batch_dims, known)))
    return gen_ops.gather_v2(params, indices, axis, batch_dims=batch_dims, name=name)


def _batch_dims(batch_dims: int, indices: Tensor, function: str) -> int:
    """batch_dims as a number of axes of the indices, which count from their end when it is negative."""
    rank = indices.get_shape().ndims
    if rank is None and batch_dims >= 0:
        return batch_dims
    if rank is None:
        raise at_user_line(ValueError("%s does not allow indices with unknown shape when batch_dims=%d is given." % (function, batch_dims)))
    if not -rank <= batch_dims <= rank:
        raise at_user_line(ValueError("batch_dims = %d must be in [%d, %d], by the rank of the indices" % (batch_dims, -rank, rank)))
    return batch_dims + rank if batch_dims < 0 else batch_dims


def batch_gather(params: Any, indices: Any, name: Optional[str] = None) -> Tensor:
    """The elements along the last axis of `indices`, in each of the batches that its other axes number."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices, params = convert_to_tensor(indices, name="indices"), convert_to_tensor(params, name="params")
        rank = indices.get_shape().ndims
        if rank is None:
            raise at_user_line(ValueError("batch_gather does not allow indices with unknown shape."))
        if rank == 0:
            raise at_user_line(ValueError("batch_gather needs indices with at least one dimension."))
        return gen_ops.gather_v2(params, indices, rank - 1, batch_dims=rank - 1)


def gather_nd(params: Any, indices: Any, name: Optional[str] = None, batch_dims: int = 0) -> Tensor:
    """The slices of `params` at rows of indices, in each of the batches that the first batch_dims axes of both number.

    Shapes: params [c..., n0, ..., nk, b...], indices [c..., i..., k + 1] -> [c..., i..., b...].
    Raises: InvalidArgumentError in the step when an index is out of range; ValueError when the ranks do not allow batch_dims.
    """
    known = constant_value(batch_dims) if isinstance(batch_dims, Tensor) else batch_dims
    if np.size(known) != 1 or not np.issubdtype(np.asarray(known).dtype, np.integer):
        raise at_user_line(TypeError("batch_dims must be an integer, got %r" % (batch_dims,)))
    return batch_gather_nd(params, indices, int(np.ravel(known)[0]), name)


def batch_gather_nd(params: Any, indices: Any, batch_dims: int, name: Optional[str] = None) -> Tensor:
    """gather_nd, by the name that it has in 1.14 when there are batches."""
    if not isinstance(batch_dims, (int, np.integer)):
        raise at_user_line(TypeError("batch_dims must be an integer, got %r" % (batch_dims,)))
    if batch_dims == 0:
        return gen_ops.gather_nd(params, indices, name=name)
    with name_scope(name, "BatchGatherND", [params, indices]) as scope:
        params, indices = convert_to_tensor(params, name="params"), convert_to_tensor(indices, name="indices")
        for what, rank in (("params", params.get_shape().ndims), ("indices", indices.get_shape().ndims)):
            if batch_dims < 0 or rank is not None and batch_dims >= rank:
                raise at_user_line(ValueError("batch_dims = %d must be in [0, %s): less than rank(%s)" % (batch_dims, rank, what)))
        sizes, last = gen_ops.shape(indices), gen_ops.sub(gen_ops.rank(indices), 1)
        columns: List[Tensor] = []
        for i in range(batch_dims):  # the number of each batch before its own indices
            counted = gen_ops.cast(gen_ops.range(0, sizes[i], 1), indices.dtype.base_dtype)
            wide = gen_ops.reshape(counted, gen_ops.concat_v2([[-1], gen_ops.fill(gen_ops.expand_dims(last - i, 0), 1)], 0))
            columns.append(gen_ops.broadcast_to(wide, gen_ops.concat_v2([sizes[:-1], [1]], 0)))
        return gen_ops.gather_nd(params, gen_ops.concat_v2([*columns, indices], -1), name=scope)
