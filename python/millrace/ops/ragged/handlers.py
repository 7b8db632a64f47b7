# SPDX-License-Identifier: Apache-2.0
"""What functions of tensors do with ragged ones (framework/dispatch.py calls these), and the operators of RaggedTensor."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.framework import dispatch
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged.flat_values import map_flat_values
from millrace.ops.ragged import arrays, maths
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged

_REDUCTIONS: Dict[str, Any] = {
    "reduce_sum": (math_ops.reduce_sum, gen_ops.unsorted_segment_sum),
    "reduce_prod": (math_ops.reduce_prod, gen_ops.unsorted_segment_prod),
    "reduce_min": (math_ops.reduce_min, gen_ops.unsorted_segment_min),
    "reduce_max": (math_ops.reduce_max, gen_ops.unsorted_segment_max),
    "reduce_mean": (math_ops.reduce_mean, maths.segment_mean),
    "reduce_any": (math_ops.reduce_any, maths.segment_any),
    "reduce_all": (math_ops.reduce_all, maths.segment_all),
}


def reverse(tensor: Any, axis: Any, name: Optional[str] = None) -> Any:
    """In the other order along axes."""
    del name  # of no single operation
    axes = [arrays.axis_of(a, tensor.shape.ndims) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    key = [slice(None, None, -1) if i in axes else slice(None) for i in range(max(axes, default=0) + 1)]
    return convert_to_tensor_or_ragged(tensor)[tuple(key)] if axes else tensor


def squeeze(input: Any, axis: Any = None, name: Optional[str] = None, squeeze_dims: Any = None) -> Any:
    """Without dimensions of one, which must be named and not ragged."""
    del name  # of no single operation
    axis = squeeze_dims if axis is None else axis
    ragged = convert_to_tensor_or_ragged(input)
    if axis is None:
        raise at_user_line(ValueError("Ragged.squeeze must have an axis argument."))
    for a in sorted({arrays.axis_of(a, ragged.shape.ndims) for a in (axis if isinstance(axis, (list, tuple)) else [axis])}, reverse=True):
        ragged = _squeezed(ragged, a)
    return ragged


def _squeezed(ragged: Any, axis: int) -> Any:
    if not isinstance(ragged, RaggedTensor):
        return array_ops.squeeze(ragged, [axis])
    if axis == 0:
        if ragged.shape[0].value not in (1, None):
            raise at_user_line(ValueError("Can not squeeze dim[0], expected a dimension of 1, got %s" % ragged.shape[0]))
        return ragged.values
    if axis == 1:
        if isinstance(ragged.values, RaggedTensor):
            return ragged.values
        raise at_user_line(ValueError("Can not squeeze dim[1]: it is ragged"))
    return ragged.with_values(_squeezed(ragged.values, axis - 1))


def batch_gather(params: Any, indices: Any, name: Optional[str] = None) -> Any:
    """Of each row of params the elements that a row of indices names."""
    del name  # of no single operation
    params, indices = convert_to_tensor_or_ragged(params), convert_to_tensor_or_ragged(indices)
    if not isinstance(params, RaggedTensor) or not isinstance(indices, RaggedTensor):
        from millrace.ops.ragged import conversions

        params, indices = conversions.as_ragged(params, 1), conversions.as_ragged(indices, 1)
    if isinstance(indices.values, RaggedTensor):
        return params.with_values(batch_gather(params.values, indices.values))
    starts = array_ops.gather(params.row_starts(), indices.value_rowids())
    return indices.with_values(arrays.gather(params.values, math_ops.cast(indices.values, starts.dtype) + starts))


_ARRAYS: Dict[str, Callable[..., Any]] = {
    "batch_gather": batch_gather,
    "boolean_mask": arrays.boolean_mask,
    "concat": arrays.concat,
    "expand_dims": arrays.expand_dims,
    "gather": arrays.gather,
    "gather_nd": arrays.gather_nd,
    "map_fn": maths.map_fn,
    "rank": arrays.rank,
    "reverse": reverse,
    "size": arrays.size,
    "squeeze": squeeze,
    "stack": arrays.stack,
    "tile": arrays.tile,
    "where": arrays.where,
}


def find(name: str, dense: Callable[..., Any]) -> Callable[..., Any]:
    """The function that does for ragged tensors what `dense` does for tensors."""
    if name in _ARRAYS:
        return _ARRAYS[name]
    if name in _REDUCTIONS:
        return maths.reduction(*_REDUCTIONS[name])
    if name in dispatch.SEGMENTS:
        return maths.segment(dense)
    if name in dispatch.BINARY:
        return maths.elementwise(dense, 2)
    if name in dispatch.NARY:
        return maths.nary(dense)
    return lambda *args, **kwargs: map_flat_values(dense, *args, **kwargs)


def _binary(op: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    called = maths.elementwise(op, 2)
    return (lambda self, other: called(other, self)) if swapped else (lambda self, other: called(self, other))


def _install_operators() -> None:
    operators = {
        "add": gen_ops.add,
        "sub": gen_ops.sub,
        "mul": gen_ops.mul,
        "truediv": math_ops.truediv,
        "floordiv": math_ops.floordiv,
        "mod": math_ops.floormod,
        "pow": math_ops.pow,
        "and": gen_ops.logical_and,
        "or": gen_ops.logical_or,
        "xor": math_ops.logical_xor,
    }
    for name, op in operators.items():
        setattr(RaggedTensor, "__%s__" % name, _binary(op))
        setattr(RaggedTensor, "__r%s__" % name, _binary(op, True))
    for name, op in {"lt": gen_ops.less, "le": gen_ops.less_equal, "gt": gen_ops.greater, "ge": gen_ops.greater_equal}.items():
        setattr(RaggedTensor, "__%s__" % name, _binary(op))
    for name, unary in {"neg": gen_ops.neg, "abs": math_ops.abs, "invert": gen_ops.logical_not}.items():
        setattr(RaggedTensor, "__%s__" % name, lambda self, _op=unary: map_flat_values(_op, self))


_install_operators()
