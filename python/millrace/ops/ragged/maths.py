# SPDX-License-Identifier: Apache-2.0
"""Functions of the elements of ragged tensors, and reductions of their rows."""

from __future__ import annotations

import inspect
from typing import Any, Callable, List, Optional

from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.type_spec import RaggedTensorSpec
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.ragged import segments, shapes
from millrace.ops.ragged.arrays import expand_dims
from millrace.ops.ragged.flat_values import map_flat_values
from millrace.ops.ragged.segments import positive_axis
from millrace.ops.ragged.tensor import RaggedTensor, RaggedTensorType, convert_to_tensor_or_ragged, is_ragged, match_row_splits_dtypes
from millrace.ops.tensor_array_ops import TensorArray


def elementwise(op: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function whose first `count` arguments are tensors, for ragged ones: all are broadcast to one shape."""
    names = list(inspect.signature(op).parameters)[:count]

    def call(*args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        tensors = [args[i] if i < len(args) else kwargs.pop(names[i]) for i in range(count) if i < len(args) or names[i] in kwargs]
        with name_scope(name, op.__name__, []):
            kind = next(v.dtype for v in tensors if is_ragged(v))
            made = match_row_splits_dtypes(*[convert_to_tensor_or_ragged(v, preferred_dtype=dtypes.as_dtype(kind)) for v in tensors])
            return map_flat_values(op, *_broadcast(list(made)), *args[count:], **kwargs)

    return call


def _broadcast(tensors: List[Any]) -> List[Any]:
    """Tensors of one shape, but for inner dimensions, which the function broadcasts itself, and dense ones that fit into these."""
    ragged = [t for t in tensors if isinstance(t, RaggedTensor)]
    if len(ragged) == len(tensors) and len({t.nested_row_splits for t in ragged}) == 1:
        return tensors
    ranks = [t.flat_values.get_shape().ndims for t in ragged]
    known = [rank for rank in ranks if rank is not None]
    if len(known) == len(ranks) and len(ragged) < len(tensors):
        inner = min(known)
        if all(t.get_shape().ndims is not None and t.get_shape().ndims < inner for t in tensors if not isinstance(t, RaggedTensor)):
            return tensors
    shape = shapes.RaggedTensorDynamicShape.from_tensor(tensors[0])
    for t in tensors[1:]:
        shape = shapes.broadcast_dynamic_shape(_same_sizes(shape, t), _same_sizes(shapes.RaggedTensorDynamicShape.from_tensor(t), shape))
    return [shapes.broadcast_to(t, shape, broadcast_inner_dimensions=False) for t in tensors]


def _same_sizes(shape: Any, other: Any) -> Any:
    """Sizes of the type of the row splits of what is ragged."""
    if isinstance(other, RaggedTensor):
        return shape.with_dim_size_dtype(other.row_splits.dtype.base_dtype)
    if isinstance(other, shapes.RaggedTensorDynamicShape) and not shape.num_partitioned_dimensions:
        return shape.with_dim_size_dtype(other.dim_size_dtype)
    return shape


def nary(op: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument is a list of tensors."""

    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return map_flat_values(op, list(inputs), *args, **kwargs)

    return call


# ---- reductions ----


def _aggregate(segment_op: Callable[..., Any], data: Any, ids: Tensor, count: Any) -> Any:
    """segment_op of rows that may be ragged: those of one number are put over one another."""
    if not isinstance(data, RaggedTensor):
        return segment_op(data, ids, count)
    lengths = data.row_lengths()
    kind = lengths.dtype.base_dtype
    ids, count = math_ops.cast(ids, kind), math_ops.cast(count, kind)
    longest = gen_ops.maximum(gen_ops.unsorted_segment_max(lengths, ids, count), convert_to_tensor(0, kind))
    splits = segments.lengths_to_splits(longest)
    places = segments.ranges(array_ops.gather(splits, ids), lengths)
    return RaggedTensor._of(_aggregate(segment_op, data.values, places, splits[-1]), splits)


def segment(segment_op: Callable[..., Any]) -> Callable[..., Any]:
    """tf.unsorted_segment_sum and its like, of ragged data or with ragged ids."""

    def call(data: Any, segment_ids: Any, num_segments: Any, name: Optional[str] = None) -> Any:
        with name_scope(name, "RaggedSegment", []):
            data, ids = convert_to_tensor_or_ragged(data), convert_to_tensor_or_ragged(segment_ids, preferred_dtype=dtypes.int64)
            if isinstance(ids, RaggedTensor):
                if not isinstance(data, RaggedTensor):
                    raise at_user_line(ValueError("segment_ids.shape must be a prefix of data.shape, but segment_ids is ragged and data is not."))
                ids, data = match_row_splits_dtypes(ids, data)
                check = check_ops.assert_equal(
                    ids.row_splits, data.row_splits, message="segment_ids.shape must be a prefix of data.shape: their rows are of other lengths"
                )
                with control_dependencies([check] if check is not None else []):
                    return call(data.values, array_ops.identity(ids.values) if isinstance(ids.values, Tensor) else ids.values, num_segments)
            return _aggregate(segment_op, data, ids, num_segments)

    return call


def reduction(dense: Callable[..., Any], segment_op: Callable[..., Any]) -> Callable[..., Any]:
    """tf.reduce_sum and its like of a ragged tensor."""

    def call(
        input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Optional[str] = None, reduction_indices: Any = None, keep_dims: Any = None
    ) -> Any:
        axis = reduction_indices if axis is None else axis
        keep = bool(keep_dims if keepdims is None else keepdims)
        with name_scope(name, "RaggedReduce", []):
            ragged = convert_to_tensor_or_ragged(input_tensor)
            ndims = ragged.shape.ndims
            if axis is None:
                made = _mean_of_all(ragged.flat_values) if dense is math_ops.reduce_mean else dense(ragged.flat_values, None)
                for _ in range(ndims if keep else 0):
                    made = array_ops.expand_dims(made, 0)
                return made
            if isinstance(axis, Tensor):
                from millrace.framework.static_values import constant_value

                known = constant_value(axis)
                if known is None:
                    raise at_user_line(ValueError("axis must be known at graph construction time."))
                axis = known.tolist()
            axes = sorted({positive_axis(a, ndims) for a in (axis if isinstance(axis, (list, tuple)) else [axis])}, reverse=True)
            if not axes:
                return ragged
            made = ragged
            if len(axes) > 1 and dense is math_ops.reduce_mean:  # rows count by their elements
                return _divided(
                    reduction(math_ops.reduce_sum, gen_ops.unsorted_segment_sum)(ragged, axes, keep),
                    reduction(math_ops.reduce_sum, gen_ops.unsorted_segment_sum)(ragged.with_flat_values(array_ops.ones_like(ragged.flat_values)), axes, keep),
                )
            for a in axes:
                made = _reduced(dense, segment_op, made, a)
                if keep:
                    made = expand_dims(made, a) if isinstance(made, RaggedTensor) else array_ops.expand_dims(made, a)
            return made

    return call


def _reduced(dense: Callable[..., Any], segment_op: Callable[..., Any], ragged: Any, axis: int) -> Any:
    if not isinstance(ragged, RaggedTensor):
        return dense(ragged, axis)
    if axis == 0:
        rows = ragged.value_rowids()
        lengths = ragged.row_lengths()
        longest = gen_ops.maximum(math_ops.reduce_max(array_ops.concat([lengths, array_ops.zeros([1], lengths.dtype)], 0)), convert_to_tensor(0, lengths.dtype))
        return _aggregate(segment_op, ragged.values, segments.positions(ragged.row_splits, rows), longest)
    if axis == 1:
        return _aggregate(segment_op, ragged.values, ragged.value_rowids(), ragged.nrows())
    return ragged.with_values(_reduced(dense, segment_op, ragged.values, axis - 1))


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, RaggedTensor):
        return a.with_flat_values(a.flat_values / b.flat_values)
    return a / b


def _mean_of_all(values: Tensor) -> Tensor:
    """The mean of all values; of integers it is no integer."""
    return math_ops.reduce_sum(values) / array_ops.size(values) if values.dtype.is_integer else math_ops.reduce_mean(values)


def segment_mean(data: Any, ids: Any, count: Any) -> Tensor:
    """The means of rows of one number; NaN where there are none."""
    sums, numbers = gen_ops.unsorted_segment_sum(data, ids, count), gen_ops.unsorted_segment_sum(array_ops.ones_like(data), ids, count)
    return sums / numbers


def segment_all(data: Any, ids: Any, count: Any) -> Tensor:
    """Whether all rows of one number are True."""
    return math_ops.cast(gen_ops.unsorted_segment_prod(math_ops.cast(data, dtypes.int32), ids, count), dtypes.bool_)


def segment_any(data: Any, ids: Any, count: Any) -> Tensor:
    """Whether one of the rows of one number is True."""
    return gen_ops.not_equal(gen_ops.unsorted_segment_sum(math_ops.cast(data, dtypes.int32), ids, count), 0)


def segment_sqrt_n(data: Any, ids: Any, count: Any) -> Tensor:
    """The sums of rows of one number over the root of how many they are; NaN where there are none."""
    sums, numbers = gen_ops.unsorted_segment_sum(data, ids, count), gen_ops.unsorted_segment_sum(array_ops.ones_like(data), ids, count)
    return sums / gen_ops.sqrt(math_ops.cast(numbers, sums.dtype if sums.dtype.is_floating else dtypes.float64))


def reduce_join(inputs: Any, axis: Any = None, keepdims: Any = None, separator: str = "", name: Optional[str] = None, **old: Any) -> Any:
    """Strings along an axis of a ragged tensor as one."""
    axis = old.get("reduction_indices") if axis is None else axis
    keep = bool(old.get("keep_dims") if keepdims is None else keepdims)

    def segment_join(data: Any, ids: Any, count: Any) -> Tensor:
        return gen_ops.unsorted_segment_join(data, ids, count, separator=separator)

    def dense(value: Any, axis: Any) -> Tensor:
        return gen_ops.reduce_join(value, axis if axis is not None else math_ops.range(array_ops.rank(value) - 1, -1, -1), separator=separator)

    return reduction(dense, segment_join)(inputs, axis, keep, name)


_RAGGED_KINDS = (RaggedTensorSpec, RaggedTensorType)


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Optional[str] = None,
) -> Any:
    """fn of each row of elems, which may hold ragged tensors. Where dtype holds a RaggedTensorSpec, fn gives rows of any length there: a
    tensor, or a ragged one with a dimension less than the whole."""
    if not callable(fn):
        raise at_user_line(TypeError("fn must be callable."))
    flat = list(match_row_splits_dtypes(*[convert_to_tensor_or_ragged(e) for e in _flat(elems)]))
    first = flat[0]
    if not isinstance(first, RaggedTensor) and first.get_shape().ndims == 0:
        raise at_user_line(ValueError("elems must be a 1+ dimensional Tensor, not a scalar" if len(flat) == 1 else "elements in elems must be 1+ dimensional"))
    if dtype is None:
        dtype = nest.pack_sequence_as(elems, [e.dtype for e in flat]) if nest.is_sequence(elems) else first.dtype
    kinds = nest.flatten(dtype)
    with name_scope(name, "map", []):
        count = math_ops.cast(first.nrows() if isinstance(first, RaggedTensor) else array_ops.shape(first)[0], dtypes.int32)
        parts = [p for k in kinds for p in _part_types(k)]
        arrays = [TensorArray(p, size=count, infer_shape=infer_shape and not any(isinstance(k, _RAGGED_KINDS) for k in kinds)) for p in parts]

        def row(i: Any, arrays: Any) -> Any:
            given = [e[i] for e in flat]
            made = _flat(fn(nest.pack_sequence_as(elems, given) if nest.is_sequence(elems) else given[0]))
            if len(made) != len(kinds):
                raise at_user_line(ValueError("fn gives %d values, dtype names %d" % (len(made), len(kinds))))
            values = [p for value, kind in zip(made, kinds) for p in _parts(value, kind)]
            return i + 1, [a.write(i, v) for a, v in zip(arrays, values)]

        _, arrays = control_flow_ops.while_loop(
            lambda i, _: gen_ops.less(i, count),
            row,
            (convert_to_tensor(0, dtypes.int32), arrays),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )
        found = iter(arrays)
        return nest.pack_sequence_as(dtype, [_whole(kind, found) for kind in kinds])


def _flat(values: Any) -> List[Any]:
    """The tensors in a structure; ragged ones are not opened."""
    if isinstance(values, dict):
        return [v for key in sorted(values) for v in _flat(values[key])]
    return [v for value in values for v in _flat(value)] if nest.is_sequence(values) else [values]


def _part_types(kind: Any) -> List[Any]:
    if not isinstance(kind, _RAGGED_KINDS):
        return [dtypes.as_dtype(kind)]
    return [kind.dtype] + [kind.row_splits_dtype] * kind.ragged_rank


def _parts(value: Any, kind: Any) -> List[Any]:
    """What an iteration writes of a row: the tensor, or the flat values, the lengths of rows within rows, and how many rows there are."""
    if not isinstance(kind, _RAGGED_KINDS):
        return [value]
    value = convert_to_tensor_or_ragged(value)
    levels = value.ragged_rank if isinstance(value, RaggedTensor) else 0
    if kind.ragged_rank != levels + 1:
        raise at_user_line(ValueError("The declared ragged rank (%d) mismatches the result (%d)" % (kind.ragged_rank, levels + 1)))
    if kind.dtype != value.dtype:
        raise at_user_line(ValueError("The declared dtype (%s) mismatches the result (%s)" % (kind.dtype, value.dtype)))
    if not levels:
        return [value, array_ops.shape(value, out_type=kind.row_splits_dtype)[:1]]
    value = value.with_row_splits_dtype(kind.row_splits_dtype)
    return [value.flat_values, *value.nested_row_lengths(), array_ops.reshape(value.nrows(), [1])]


def _whole(kind: Any, arrays: Any) -> Any:
    if not isinstance(kind, _RAGGED_KINDS):
        return next(arrays).stack()
    values = next(arrays).concat()
    lengths = [next(arrays).concat() for _ in range(kind.ragged_rank)]
    return RaggedTensor.from_nested_row_lengths(values, [lengths[-1], *lengths[:-1]], validate=False)
