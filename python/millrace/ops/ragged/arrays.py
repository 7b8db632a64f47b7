# SPDX-License-Identifier: Apache-2.0
"""Functions of ragged tensors that move elements: concat, stack, gather, tile, where and their like."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged import conversions, segments
from millrace.ops.ragged.flat_values import map_flat_values
from millrace.ops.sort_ops import argsort
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged


def axis_of(axis: Any, ndims: Optional[int]) -> int:
    """An axis counted from the front."""
    axis = int(axis)
    if ndims is None:
        if axis < 0:
            raise at_user_line(ValueError("axis=%d may only be negative if ndims is statically known." % axis))
        return axis
    if not -ndims <= axis < ndims:
        raise at_user_line(ValueError("axis=%d out of bounds: expected %d<=axis<%d" % (axis, -ndims, ndims)))
    return axis % ndims


def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = 0, batch_dims: int = 0, name: Optional[str] = None) -> Any:
    """Rows of params by their numbers; either may be ragged."""
    del validate_indices  # they always are
    if int(axis) != 0 or batch_dims:
        raise at_user_line(NotImplementedError("tf.gather of ragged tensors takes rows: axis and batch_dims must be 0"))
    with name_scope(name, "RaggedGather", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices, preferred_dtype=dtypes.int64)
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather(params, indices.values))
        if not isinstance(params, RaggedTensor):
            return array_ops.gather(params, indices)
        ndims = indices.get_shape().ndims
        if ndims is None:
            raise at_user_line(ValueError("rank(indices) must be known statically"))
        if ndims == 0:
            return params[indices]
        if ndims > 1:
            flat = gather(params, array_ops.reshape(indices, [-1]))
            for d in range(ndims - 1, 0, -1):  # the innermost rows of indices first
                size = array_ops.shape(indices, out_type=params.row_splits.dtype.base_dtype)
                outer = math_ops.reduce_prod(size[:d])
                flat = RaggedTensor._of(flat, math_ops.range(outer + 1) * size[d])
            return flat
        starts, limits = array_ops.gather(params.row_splits[:-1], indices), array_ops.gather(params.row_splits[1:], indices)
        lengths = limits - starts
        return RaggedTensor._of(gather(params.values, segments.ranges(starts, lengths)), segments.lengths_to_splits(lengths))


def gather_nd(params: Any, indices: Any, name: Optional[str] = None, batch_dims: int = 0) -> Any:
    """Parts of params by coordinates."""
    if batch_dims:
        raise at_user_line(NotImplementedError("tf.gather_nd of ragged tensors: batch_dims must be 0"))
    with name_scope(name, "RaggedGatherNd", []):
        params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices, preferred_dtype=dtypes.int64)
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather_nd(params, indices.values))
        depth = indices.get_shape()[-1].value if indices.get_shape().ndims else None
        if depth is None or indices.get_shape().ndims is None:
            raise at_user_line(ValueError("indices.shape[-1] must be known statically"))
        if not isinstance(params, RaggedTensor):
            return gen_ops.gather_nd(params, indices)
        if depth == 0:
            return gather(expand_dims(params, 0), array_ops.zeros(array_ops.shape(indices)[:-1], dtypes.int64))
        if depth == 1:
            return gather(params, array_ops.squeeze(indices, [-1]))
        first, rest = math_ops.cast(indices[..., 0], params.row_splits.dtype.base_dtype), indices[..., 1:]
        moved = array_ops.gather(params.row_splits, first) + math_ops.cast(rest[..., 0], params.row_splits.dtype.base_dtype)
        at = array_ops.concat([array_ops.expand_dims(moved, -1), math_ops.cast(rest[..., 1:], moved.dtype)], -1)
        return gather_nd(params.values, at)


def _of_one_rank(values: Any) -> List[Any]:
    made = [convert_to_tensor_or_ragged(v) for v in values]
    levels = max([v.ragged_rank for v in made if isinstance(v, RaggedTensor)] + [1])
    made = [conversions.as_ragged(v, levels) for v in made]
    if len({v.row_splits.dtype.base_dtype for v in made}) > 1:
        made = [v.with_row_splits_dtype(dtypes.int64) for v in made]
    return made


def concat(values: Any, axis: Any, name: Optional[str] = "concat") -> Any:
    """Ragged tensors (or dense ones) one behind the other along an axis."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    with name_scope(name, "RaggedConcat", []):
        if len(values) == 1:
            return convert_to_tensor_or_ragged(values[0])
        parts = [convert_to_tensor_or_ragged(v) for v in values]
        if not any(is_ragged(p) for p in parts):
            return array_ops.concat(parts, axis)
        ndims = next((p.shape.ndims for p in parts if p.shape.ndims is not None), None)
        at = axis_of(axis, ndims)
        return _concat(parts, at)


def _concat(parts: List[Any], axis: int) -> Any:
    if not any(is_ragged(p) for p in parts):
        return array_ops.concat(parts, axis)
    parts = _of_one_rank(parts)
    if axis == 0:
        splits, offset = [parts[0].row_splits], parts[0].row_splits[-1]
        for p in parts[1:]:
            splits.append(p.row_splits[1:] + offset)
            offset = offset + p.row_splits[-1]
        return RaggedTensor._of(_concat([p.values for p in parts], 0), array_ops.concat(splits, 0))
    if axis == 1:
        below = _concat(parts, 0)
        rows, count = parts[0].nrows(), len(parts)
        order = array_ops.reshape(
            array_ops.transpose(array_ops.reshape(math_ops.range(rows * count), array_ops.stack([convert_to_tensor(count, rows.dtype), rows]))), [-1]
        )
        side = gather(below, order)
        return RaggedTensor._of(side.values, array_ops.strided_slice(side.row_splits, [0], [0], [count], end_mask=1))
    return parts[0].with_values(_concat([p.values for p in parts], axis - 1))


def stack(values: Any, axis: Any = 0, name: Optional[str] = "stack") -> Any:
    """Ragged tensors (or dense ones) as parts of one with another dimension."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    with name_scope(name, "RaggedStack", []):
        parts = [convert_to_tensor_or_ragged(v) for v in values]
        ndims = next((p.shape.ndims for p in parts if p.shape.ndims is not None), None)
        at = axis_of(axis, None if ndims is None else ndims + 1)
        if ndims == 1 and at == 0 and not any(is_ragged(p) for p in parts):
            lengths = array_ops.stack([array_ops.shape(p, out_type=dtypes.int64)[0] for p in parts])
            return RaggedTensor._of(array_ops.concat(parts, 0), segments.lengths_to_splits(lengths))
        if ndims == 0:
            return array_ops.stack(parts, at)
        return _concat([expand_dims(p, at) if is_ragged(p) else conversions.as_ragged(array_ops.expand_dims(p, at), max(at, 1)) for p in parts], at)


def expand_dims(input: Any, axis: Any = None, name: Optional[str] = None, dim: Any = None) -> Any:
    """With a dimension of one more at an axis."""
    axis = dim if axis is None else axis
    with name_scope(name, "RaggedExpandDims", []):
        ragged = convert_to_tensor_or_ragged(input)
        if not isinstance(ragged, RaggedTensor):
            return array_ops.expand_dims(ragged, axis)
        ndims = ragged.shape.ndims
        at = axis_of(axis, None if ndims is None else ndims + 1)
        if at == 0:
            rows = ragged.nrows()
            return RaggedTensor._of(ragged, array_ops.stack([array_ops.zeros_like(rows), rows]))
        if at == 1:
            return RaggedTensor._of(ragged, math_ops.range(ragged.nrows() + 1))
        return ragged.with_values(expand_dims(ragged.values, at - 1))


def tile(input: Any, multiples: Any, name: Optional[str] = None) -> Any:
    """Repeated along each axis as often as multiples say, which must be numbers."""
    from millrace.framework.static_values import constant_value

    with name_scope(name, "RaggedTile", []):
        counts = constant_value(convert_to_tensor(multiples))
        if counts is None:
            raise at_user_line(NotImplementedError("tf.tile of a ragged tensor needs multiples that are known"))
        if input.shape.ndims is not None and len(counts) != input.shape.ndims:
            raise at_user_line(ValueError("multiples has %d elements, the tensor rank %d" % (len(counts), input.shape.ndims)))
        made = input
        for axis, count in enumerate(int(c) for c in counts):
            if count == 0:
                made = _none_of(made, axis)
            elif count > 1:
                made = _concat([made] * count, axis)
        return made


def _none_of(ragged: Any, axis: int) -> Any:
    return ragged[tuple([slice(None)] * axis + [slice(0, 0)])]


def where(condition: Any, x: Any = None, y: Any = None, name: Optional[str] = None) -> Any:
    """Of x where the condition holds, else of y; without them the coordinates where it holds."""
    if (x is None) != (y is None):
        raise at_user_line(ValueError("x and y must be either both None or both non-None"))
    with name_scope(name, "RaggedWhere", []):
        condition = convert_to_tensor_or_ragged(condition, dtypes.as_dtype("bool"))
        if x is None:
            if not isinstance(condition, RaggedTensor):
                return array_ops.where(condition)
            places = conversions.to_sparse(condition, None)
            return array_ops.boolean_mask(places.indices, places.values)
        x, y = convert_to_tensor_or_ragged(x), convert_to_tensor_or_ragged(y)
        if isinstance(condition, RaggedTensor):
            if not isinstance(x, RaggedTensor) or not isinstance(y, RaggedTensor):
                raise at_user_line(ValueError("x and y must be ragged as the condition is"))
            return map_flat_values(array_ops.where, condition, x, y)
        both = concat([x, y], 0)
        rows = x.nrows() if isinstance(x, RaggedTensor) else array_ops.shape(x, out_type=dtypes.int64)[0]
        numbers = math_ops.range(rows)
        return gather(both, array_ops.where(condition, numbers, numbers + rows))


def boolean_mask(data: Any, mask: Any, name: Optional[str] = None) -> Any:
    """The elements (or rows) of data where mask, whose shape begins that of data, is True."""
    with name_scope(name, "RaggedMask", []):
        data, mask = convert_to_tensor_or_ragged(data), convert_to_tensor_or_ragged(mask, dtypes.as_dtype("bool"))
        ndims = mask.shape.ndims
        if ndims is None:
            raise at_user_line(ValueError("mask.shape.ndims must be known statically."))
        if ndims == 0:
            raise at_user_line(ValueError("mask cannot be scalar."))
        if not isinstance(mask, RaggedTensor) and ndims == 1:
            if isinstance(data, RaggedTensor):
                return gather(data, array_ops.squeeze(array_ops.where(mask), [1]))
            return array_ops.boolean_mask(data, mask)
        if not isinstance(mask, RaggedTensor):
            mask = conversions.from_tensor(mask, None, None, ndims - 1, None, data.row_splits.dtype if isinstance(data, RaggedTensor) else dtypes.int64)
        data = conversions.as_ragged(data, mask.ragged_rank)
        inner = boolean_mask(data.values, mask.values)
        kept = mask.values if isinstance(mask.values, Tensor) else None
        if kept is None:  # rows stay, elements within them go
            return mask.with_values(inner)
        lengths = gen_ops.unsorted_segment_sum(math_ops.cast(kept, mask.row_splits.dtype.base_dtype), mask.value_rowids(), mask.nrows())
        return RaggedTensor._of(inner, segments.lengths_to_splits(lengths))


def size(input: Any, name: Optional[str] = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements."""
    return array_ops.size(convert_to_tensor_or_ragged(input).flat_values, name=name, out_type=out_type)


def rank(input: Any, name: Optional[str] = None) -> Tensor:
    """The number of dimensions."""
    return convert_to_tensor(input.ragged_rank, name=name) + array_ops.rank(input.flat_values)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: Optional[str] = None) -> RaggedTensor:
    """The rows of data by the number of the partition that each belongs to, in order."""
    with name_scope(name, "SegmentStack", []):
        data = convert_to_tensor_or_ragged(data)
        parts = convert_to_tensor_or_ragged(partitions, preferred_dtype=dtypes.int32)
        if isinstance(parts, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                raise at_user_line(ValueError("data must be ragged as partitions are"))
            return stack_dynamic_partitions(data.values, parts.values, num_partitions)
        ndims = parts.get_shape().ndims
        if ndims is None:
            raise at_user_line(ValueError("partitions must have known rank"))
        if ndims == 0:
            raise at_user_line(ValueError("partitions must have rank at least 1"))
        if ndims > 1:
            shape = array_ops.shape(data) if isinstance(data, Tensor) else None
            if shape is None:
                raise at_user_line(ValueError("partitions of a ragged tensor must be a vector or ragged"))
            data = array_ops.reshape(data, array_ops.concat([[-1], shape[ndims:]], 0))
            parts = array_ops.reshape(parts, [-1])
        count = math_ops.cast(num_partitions, dtypes.int32)
        order = argsort(parts, stable=True)
        sums = gen_ops.unsorted_segment_sum(array_ops.ones_like(parts, dtypes.int64), parts, count)
        return RaggedTensor._of(gather(data, order), segments.lengths_to_splits(sums))
