# SPDX-License-Identifier: Apache-2.0
"""Functions of the elements of ragged tensors, and reductions of their rows."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.type_spec import RaggedTensorSpec
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.ragged import segments
from millrace.ops.ragged.arrays import axis_of, expand_dims
from millrace.ops.ragged.flat_values import map_flat_values, same_rows
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged


def elementwise(op: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function whose first `count` arguments are tensors, for ragged ones: dense ones beside them are broadcast."""

    def call(*args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        tensors, rest = list(args[:count]), list(args[count:])
        keys = [k for k in kwargs if is_ragged(kwargs[k])]
        with name_scope(name, op.__name__, []):
            every = [convert_to_tensor_or_ragged(v) if is_ragged(v) else v for v in tensors] + [convert_to_tensor_or_ragged(kwargs[k]) for k in keys]
            widest = max((v for v in every if isinstance(v, RaggedTensor)), key=lambda v: v.ragged_rank)
            made = [_broadcast(v, widest) for v in tensors]
            return map_flat_values(op, *made, *rest, **{k: _broadcast(v, widest) if k in keys or isinstance(v, Tensor) else v for k, v in kwargs.items()})

    return call


def _broadcast(value: Any, to: RaggedTensor) -> Any:
    """A dense tensor as what map_flat_values takes beside `to`: broadcast to its rows where it is of as many dimensions."""
    if value is to or is_ragged(value) and value.ragged_rank == to.ragged_rank:
        return value
    if is_ragged(value):  # fewer levels: the ones that it lacks are of one length, or of 1
        value = convert_to_tensor_or_ragged(value)
        inner = _broadcast(value.values, to.values) if isinstance(to.values, RaggedTensor) else value.values
        return to.with_values(inner) if isinstance(inner, RaggedTensor) else inner
    tensor = convert_to_tensor(value, to.dtype.base_dtype) if not isinstance(value, Tensor) else value
    ndims, inner = tensor.get_shape().ndims, to.flat_values.get_shape().ndims
    if ndims is None or to.shape.ndims is None or inner is None:
        raise at_user_line(ValueError("Unable to broadcast: unknown rank"))
    if ndims == 0 or ndims < inner:
        return tensor
    if ndims > to.shape.ndims:
        raise at_user_line(ValueError("Unable to broadcast: rank %d beside a ragged tensor of rank %d" % (ndims, to.shape.ndims)))
    for _ in range(to.shape.ndims - ndims):
        tensor = array_ops.expand_dims(tensor, 0)
    return to.with_flat_values(_spread(tensor, to))


def _spread(tensor: Tensor, to: RaggedTensor) -> Tensor:
    """Of a dense tensor of `to`'s rank what stands beside each of to's flat values. Sizes that are neither 1 nor to's are an error."""
    outer, inner = tensor.get_shape()[0].value, tensor.get_shape()[1].value
    rows = to.value_rowids()
    kind = rows.dtype.base_dtype
    at = segments.positions(to.row_splits, rows)
    checks = []
    if inner is None or inner != 1:
        width = array_ops.shape(tensor, out_type=kind)[1]
        fits = gen_ops.logical_or(gen_ops.equal(width, convert_to_tensor(1, kind)), math_ops.reduce_all(gen_ops.equal(to.row_lengths(), width)))
        checks.append(check_ops.assert_equal(fits, True, message="Unable to broadcast: dimension size mismatch in dimension 1"))
        at = gen_ops.minimum(at, width - 1)
    else:
        at = array_ops.zeros_like(at)
    if outer is None or outer != 1:
        height = array_ops.shape(tensor, out_type=kind)[0]
        fits = gen_ops.logical_or(gen_ops.equal(height, convert_to_tensor(1, kind)), gen_ops.equal(height, to.nrows(kind)))
        checks.append(check_ops.assert_equal(fits, True, message="Unable to broadcast: dimension size mismatch in dimension 0"))
        rows = gen_ops.minimum(rows, height - 1)
    else:
        rows = array_ops.zeros_like(rows)
    with control_dependencies([c for c in checks if c is not None]):
        beside = gen_ops.gather_nd(tensor, array_ops.stack([rows, at], 1))
    return _spread(beside, to.values) if isinstance(to.values, RaggedTensor) else beside


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
                    raise at_user_line(ValueError("when segment_ids is ragged, data must be as well"))
                with control_dependencies(
                    same_rows([RaggedTensor._of(array_ops.zeros_like(ids.flat_values), ids.row_splits), data]) if ids.ragged_rank == 1 else []
                ):
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
                made = dense(ragged.flat_values, None)
                for _ in range(ndims if keep else 0):
                    made = array_ops.expand_dims(made, 0)
                return made
            if isinstance(axis, Tensor):
                from millrace.framework.static_values import constant_value

                known = constant_value(axis)
                if known is None:
                    raise at_user_line(ValueError("axis must be known at graph construction time."))
                axis = known.tolist()
            axes = sorted({axis_of(a, ndims) for a in (axis if isinstance(axis, (list, tuple)) else [axis])}, reverse=True)
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
        return a.with_flat_values(gen_ops.real_div(a.flat_values, b.flat_values))
    return gen_ops.real_div(a, b)


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
    """fn of each row: tensors of one shape, or (dtype a RaggedTensorSpec of a vector's rows) of any length."""
    from millrace.ops import functional_ops

    ragged = convert_to_tensor_or_ragged(elems)
    numbers = math_ops.range(ragged.nrows())
    options = dict(parallel_iterations=parallel_iterations, back_prop=back_prop, swap_memory=swap_memory, infer_shape=infer_shape)
    if isinstance(dtype, RaggedTensorSpec):
        raise at_user_line(NotImplementedError("tf.map_fn gives dense rows: map tf.ragged.map_flat_values, or let fn give tensors of one shape"))
    return functional_ops.map_fn(lambda i: fn(ragged[i]), numbers, dtype=ragged.dtype if dtype is None else dtype, name=name, **options)
