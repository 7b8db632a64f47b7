# SPDX-License-Identifier: Apache-2.0
"""Functions of ragged tensors that move elements: concat, stack, gather, tile, where and their like."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.ragged import conversions, segments
from millrace.ops.ragged.flat_values import map_flat_values
from millrace.ops.ragged.gathers import gather
from millrace.ops.ragged.segments import positive_axis
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged, match_row_splits_dtypes
from millrace.ops.sort_ops import argsort


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
    if not values:
        raise at_user_line(ValueError("rt_inputs may not be empty."))
    with name_scope(name, "RaggedConcat", []):
        if len(values) == 1:
            return convert_to_tensor_or_ragged(values[0])
        parts = _of_one_shape(values)
        return _concat(parts, positive_axis(axis, parts[0].shape.ndims), fit=True)


def _of_one_shape(values: Any) -> List[Any]:
    """Tensors whose rank must be the same, which all of them have when it is known of one."""
    parts = match_row_splits_dtypes(*[convert_to_tensor_or_ragged(v) for v in values])
    ndims = next((p.shape.ndims for p in parts if p.shape.ndims is not None), None)
    for p in parts:
        if p.shape.ndims not in (None, ndims):
            p.shape.assert_has_rank(ndims)
        if isinstance(p, Tensor) and p.get_shape().ndims is None and ndims is not None:
            p.set_shape([None] * ndims)
    return list(parts)


def _concat(parts: List[Any], axis: int, fit: bool = False) -> Any:
    """fit: dense ones whose other dimensions are not known to be as long (which a step may refuse) are rows of different lengths."""
    if not any(is_ragged(p) for p in parts) and not (fit and axis < 2 and _differ(parts, axis)):
        return array_ops.concat(parts, axis)
    parts = _of_one_rank(parts)
    if axis == 0:
        splits, offset = [parts[0].row_splits], parts[0].row_splits[-1]
        for p in parts[1:]:
            splits.append(p.row_splits[1:] + offset)
            offset = offset + p.row_splits[-1]
        return RaggedTensor._of(_concat([p.values for p in parts], 0), array_ops.concat(splits, 0))
    if axis == 1:
        rows, count = parts[0].nrows(), len(parts)
        checks = [check_ops.assert_equal(p.nrows(), rows, message="Input tensors have incompatible shapes.") for p in parts[1:]]
        with control_dependencies(checks):
            rows = array_ops.identity(rows)
        below = _concat(parts, 0)
        order = array_ops.reshape(
            array_ops.transpose(array_ops.reshape(math_ops.range(rows * count), array_ops.stack([convert_to_tensor(count, rows.dtype), rows]))), [-1]
        )
        side = gather(below, order)
        return RaggedTensor._of(side.values, array_ops.strided_slice(side.row_splits, [0], [0], [count], end_mask=1))
    first = parts[0].row_splits
    same = [check_ops.assert_equal(p.row_splits, first, message="Inputs must have identical ragged splits") for p in parts[1:] if p.row_splits is not first]
    with control_dependencies(same):
        first = array_ops.identity(first)
    return RaggedTensor._of(_concat([p.values for p in parts], axis - 1), first)


def _differ(parts: List[Any], axis: int) -> bool:
    """Whether dense matrices (or more) are known not to fit beside each other because their rows are of other lengths."""
    if any(p.get_shape().ndims in (None, 0, 1) for p in parts):
        return False
    lengths = {p.get_shape()[1].value for p in parts} - {None}
    return axis == 0 and len(lengths) > 1


def stack(values: Any, axis: Any = 0, name: Optional[str] = "stack") -> Any:
    """Ragged tensors (or dense ones) as parts of one with another dimension: dense where all are, and it is the last one or the one before it."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    if not values:
        raise at_user_line(ValueError("rt_inputs may not be empty."))
    with name_scope(name, "RaggedStack", []):
        parts = _of_one_shape(values)
        ndims = parts[0].shape.ndims
        at = positive_axis(axis, None if ndims is None else ndims + 1)
        if not any(is_ragged(p) for p in parts):
            if len(parts) == 1 and ndims != 1:
                return array_ops.expand_dims(parts[0], at)
            if at == 0 and ndims:
                lengths = array_ops.stack([array_ops.shape(p, out_type=dtypes.int64)[0] for p in parts])
                rows = parts if ndims == 1 else [conversions.as_ragged(p, 1) for p in parts]
                return RaggedTensor._of(_concat(rows, 0), segments.lengths_to_splits(lengths))
            if ndims is not None and at >= ndims - 1:
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
        at = positive_axis(axis, None if ndims is None else ndims + 1)
        if at == 0:
            rows = ragged.nrows()
            return RaggedTensor._of(ragged, array_ops.stack([array_ops.zeros_like(rows), rows]))
        if at == 1:
            return RaggedTensor._of(ragged, math_ops.range(ragged.nrows() + 1))
        return ragged.with_values(expand_dims(ragged.values, at - 1))


def tile(input: Any, multiples: Any, name: Optional[str] = None) -> Any:
    """Repeated along each axis as often as multiples say."""
    with name_scope(name, "RaggedTile", []):
        ragged = convert_to_tensor_or_ragged(input)
        if not isinstance(ragged, RaggedTensor):
            return array_ops.tile(ragged, multiples)
        counts = convert_to_tensor(multiples, name="multiples", preferred_dtype=ragged.row_splits.dtype.base_dtype)
        counts.get_shape().assert_has_rank(1)
        size, ndims = counts.get_shape()[0].value, ragged.shape.ndims
        if size is not None and ndims is not None and size != ndims:
            raise at_user_line(ValueError("multiples has %d elements, the tensor rank %d" % (size, ndims)))
        return _tiled(ragged, math_ops.cast(counts, ragged.row_splits.dtype.base_dtype), constant_value(counts))


def _tiled(ragged: RaggedTensor, counts: Tensor, known: Any) -> RaggedTensor:
    """The innermost dimensions first: the values that a level gathers are tiled already."""
    below = array_ops.concat([array_ops.ones([1], counts.dtype), counts[2:]], 0)
    if known is None or any(k != 1 for k in known[2:]):
        inner = ragged.values
        if isinstance(inner, RaggedTensor):
            ragged = ragged.with_values(_tiled(inner, below, None if known is None else [1, *known[2:]]))
        else:
            ragged = ragged.with_values(array_ops.tile(inner, below))
    if known is None or known[1] != 1:
        lengths = segments.repeat(ragged.row_lengths(), counts[1], 0)
        places = segments.ranges(segments.repeat(ragged.row_starts(), counts[1], 0), lengths)
        ragged = RaggedTensor._of(gather(ragged.values, places), segments.lengths_to_splits(ragged.row_lengths() * counts[1]))
    if known is None or known[0] != 1:
        ragged = gather(ragged, array_ops.tile(math_ops.range(ragged.nrows()), counts[:1]))
    return ragged


def where(condition: Any, x: Any = None, y: Any = None, name: Optional[str] = None) -> Any:
    """Of x where the condition holds, else of y; without them the coordinates where it holds."""
    if (x is None) != (y is None):
        raise at_user_line(ValueError("x and y must be either both None or both non-None"))
    with name_scope(name, "RaggedWhere", []):
        condition = convert_to_tensor_or_ragged(condition, None if x is None else dtypes.bool_)
        if x is None:  # numbers hold where they are not 0
            if not isinstance(condition, RaggedTensor):
                return array_ops.where(condition)
            places = conversions.to_sparse(condition, None)
            return array_ops.boolean_mask(places.indices, math_ops.cast(places.values, dtypes.bool_))
        condition, x, y = match_row_splits_dtypes(condition, convert_to_tensor_or_ragged(x), convert_to_tensor_or_ragged(y))
        ragged = [is_ragged(v) for v in (condition, x, y)]
        if not any(ragged):
            return array_ops.where(condition, x, y)
        if all(ragged):
            return map_flat_values(array_ops.where, condition, x, y)
        if ragged[0]:
            raise at_user_line(ValueError("Input shapes do not match: a ragged condition needs x and y that are ragged, too"))
        condition.get_shape().assert_has_rank(1)
        both = concat([x, y], 0)
        kind = both.row_splits.dtype.base_dtype
        numbers = [math_ops.range(v.nrows(kind) if isinstance(v, RaggedTensor) else array_ops.shape(v, out_type=kind)[0]) for v in (x, y)]
        return gather(both, array_ops.where(condition, numbers[0], array_ops.size(numbers[0], out_type=kind) + numbers[1]))


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
                data.shape[:1].assert_is_compatible_with(mask.get_shape())
                fits = check_ops.assert_equal(
                    array_ops.shape(mask, out_type=data.row_splits.dtype.base_dtype)[0], data.nrows(), message="mask and data differ."
                )
                with control_dependencies([fits]):
                    return gather(data, array_ops.squeeze(array_ops.where(mask), [1]))
            return array_ops.boolean_mask(data, mask)
        if not isinstance(mask, RaggedTensor):
            mask = conversions.from_tensor(mask, None, None, ndims - 1, None, data.row_splits.dtype if isinstance(data, RaggedTensor) else dtypes.int64)
        data = conversions.as_ragged(data, mask.ragged_rank)
        cuts = [math_ops.cast(r.row_splits, dtypes.int64) for r in (data, mask)]
        with control_dependencies([check_ops.assert_equal(*cuts, message="Inputs must have identical ragged splits")]):
            inner = boolean_mask(data.values, mask.values)
        kept = mask.values
        if isinstance(kept, RaggedTensor) or kept.shape.ndims != 1:  # rows stay, elements within them go
            return mask.with_values(inner)
        lengths = gen_ops.unsorted_segment_sum(math_ops.cast(kept, mask.row_splits.dtype.base_dtype), mask.value_rowids(), mask.nrows())
        return RaggedTensor._of(inner, segments.lengths_to_splits(lengths))


def size(input: Any, name: Optional[str] = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements."""
    value = convert_to_tensor_or_ragged(input)
    return array_ops.size(value.flat_values if isinstance(value, RaggedTensor) else value, name=name, out_type=out_type)


def rank(input: Any, name: Optional[str] = None) -> Tensor:
    """The number of dimensions."""
    value = convert_to_tensor_or_ragged(input)
    if not isinstance(value, RaggedTensor):
        return array_ops.rank(value, name=name)
    return math_ops.add(value.ragged_rank, array_ops.rank(value.flat_values), name=name)


def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Optional[int] = None, dtype: Any = None, name: Optional[str] = None
) -> Any:
    """Vectors that are on_value at the index, and off_value elsewhere, in a dimension behind the ragged ones.

    axis is the dimension of `indices` behind which it lies, from ragged_rank on: one less than where it is in what is made, as in TensorFlow 1.x.
    """
    with name_scope(name, "RaggedOneHot", []):
        ragged = convert_to_tensor_or_ragged(indices)
        if not isinstance(ragged, RaggedTensor):
            return array_ops.one_hot(ragged, depth, on_value, off_value, axis, dtype)
        if axis is not None:
            axis = positive_axis(axis, ragged.shape.ndims)
            if axis < ragged.ragged_rank:
                raise at_user_line(ValueError("axis may not be less than indices.ragged_rank."))
            axis -= ragged.ragged_rank - 1
        return ragged.with_flat_values(array_ops.one_hot(ragged.flat_values, depth, on_value, off_value, axis, dtype))


def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: Optional[str] = None) -> List[Any]:
    """The rows of each partition."""
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise at_user_line(TypeError("num_partitions must be a non-negative integer"))
    made = stack_dynamic_partitions(data, partitions, num_partitions, name)
    return [made[i] for i in range(num_partitions)]


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: Optional[str] = None) -> RaggedTensor:
    """The rows of data by the number of the partition that each belongs to, in order."""
    with name_scope(name, "SegmentStack", []):
        data = convert_to_tensor_or_ragged(data)
        kind = data.row_splits.dtype.base_dtype if isinstance(data, RaggedTensor) else None
        parts = convert_to_tensor_or_ragged(partitions, preferred_dtype=kind)
        if kind is not None:
            parts = parts.with_flat_values(math_ops.cast(parts.flat_values, kind)) if isinstance(parts, RaggedTensor) else math_ops.cast(parts, kind)
        count = math_ops.cast(convert_to_tensor(num_partitions, preferred_dtype=parts.dtype), parts.dtype.base_dtype)
        count.get_shape().assert_has_rank(0)
        return _stacked_partitions(data, parts, count)


def _stacked_partitions(data: Any, parts: Any, count: Tensor) -> RaggedTensor:
    ndims = parts.shape.ndims
    if ndims is None:
        raise at_user_line(ValueError("partitions must have known rank."))
    parts.shape.assert_is_compatible_with(data.shape[:ndims])
    if ndims > 1:
        if not isinstance(data, RaggedTensor):
            data = conversions.from_tensor(data, None, None, 1, None, parts.dtype.base_dtype if not is_ragged(parts) else parts.row_splits.dtype.base_dtype)
        if not isinstance(parts, RaggedTensor):
            parts = conversions.from_tensor(parts, None, None, max(data.ragged_rank, ndims - 1), None, data.row_splits.dtype.base_dtype)
        data, parts = match_row_splits_dtypes(data, parts)
        check = check_ops.assert_equal(data.row_splits, parts.row_splits, message="data and partitions have incompatible ragged shapes")
        with control_dependencies([check] if check is not None else []):
            inner = array_ops.identity(parts.values) if isinstance(parts.values, Tensor) else parts.values
            return _stacked_partitions(data.values, inner, count)
    if ndims == 0:
        data = expand_dims(data, 0) if isinstance(data, RaggedTensor) else array_ops.expand_dims(data, 0)
        parts = array_ops.expand_dims(parts, 0)
    order = argsort(parts, stable=True)
    rows = array_ops.gather(parts, order)
    checks = [
        check_ops.assert_non_negative(rows[:1], message="partitions must be non-negative"),
        check_ops.assert_less(rows[-1:], count, message="partitions must be less than num_partitions"),
    ]
    with control_dependencies([c for c in checks if c is not None]):
        rows = array_ops.identity(rows)
    return RaggedTensor.from_value_rowids(gather(data, order), math_ops.cast(rows, _splits_type(rows)), count, validate=False)


def _splits_type(numbers: Tensor) -> Any:
    return numbers.dtype.base_dtype if numbers.dtype.base_dtype in (dtypes.int32, dtypes.int64) else dtypes.int64
