# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.reduce_slice_ops: sums, products and extremes of slices of a tensor, which may overlap."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged.segments import row_splits_to_segment_ids


def _of_slices(reduce: Callable[..., Tensor], data: Any, indices: Any, axis: Any, name: str) -> Tensor:
    with name_scope(name, values=[data, indices]):
        data, indices = convert_to_tensor(data, name="data"), math_ops.cast(indices, dtypes.int64)
        rank = indices.get_shape().ndims
        if rank not in (1, 2) or data.get_shape().ndims is None:
            raise at_user_line(ValueError("%s needs data of a known rank and a vector or matrix of indices, got %s and %s" % (name, data, indices)))
        starts, ends = (indices[:-1], indices[1:]) if rank == 1 else (indices[:, 0], indices[:, 1])
        axis = int(axis) % data.get_shape().ndims
        turned = [axis, *(d for d in range(data.get_shape().ndims) if d != axis)]
        rows = array_ops.transpose(data, turned)
        counts = gen_ops.maximum(gen_ops.minimum(ends, array_ops.shape(rows, out_type=dtypes.int64)[0]) - starts, 0)
        splits = array_ops.concat([convert_to_tensor([0], dtypes.int64), gen_ops.cumsum(counts, 0)], 0)
        slices = row_splits_to_segment_ids(splits)
        places = math_ops.range(splits[-1]) + array_ops.gather(starts - splits[:-1], slices)
        made = reduce(array_ops.gather(rows, places), slices, array_ops.shape(counts)[0])
        return array_ops.transpose(made, gen_ops.invert_permutation(convert_to_tensor(turned)))


def reduce_slice_sum(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The sums along an axis from indices[i, 0] to indices[i, 1], or from indices[i] to indices[i + 1]; 0 of an empty slice."""
    return _of_slices(gen_ops.unsorted_segment_sum, data, indices, axis, name or "ReduceSliceSum")


def reduce_slice_prod(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The products along an axis of such slices; 1 of an empty one."""
    return _of_slices(gen_ops.unsorted_segment_prod, data, indices, axis, name or "ReduceSliceProd")


def reduce_slice_max(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The largest along an axis of such slices; the least number of an empty one."""
    return _of_slices(gen_ops.unsorted_segment_max, data, indices, axis, name or "ReduceSliceMax")


def reduce_slice_min(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The least along an axis of such slices; the largest number of an empty one."""
    return _of_slices(gen_ops.unsorted_segment_min, data, indices, axis, name or "ReduceSliceMin")
