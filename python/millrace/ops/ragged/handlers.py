# SPDX-License-Identifier: Apache-2.0
"""What functions of tensors do with ragged ones (framework/dispatch.py calls these), and what the operators of RaggedTensor do."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.framework import dispatch
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.ragged import arrays, gathers, maths
from millrace.ops.ragged.flat_values import map_flat_values
from millrace.ops.ragged.segments import positive_axis
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
    axes = [positive_axis(a, tensor.shape.ndims) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    key = [slice(None, None, -1) if i in axes else slice(None) for i in range(max(axes, default=0) + 1)]
    return convert_to_tensor_or_ragged(tensor)[tuple(key)] if axes else tensor


def squeeze(input: Any, axis: Any = None, name: Optional[str] = None, squeeze_dims: Any = None) -> Any:
    """Without dimensions of one, which must be named; that ragged ones are of one in each row is checked in the step."""
    axis = squeeze_dims if axis is None else axis
    with name_scope(name, "RaggedSqueeze", []):
        ragged = convert_to_tensor_or_ragged(input)
        if not isinstance(ragged, RaggedTensor):
            return array_ops.squeeze(ragged, axis)
        if axis is None:
            raise at_user_line(ValueError("Ragged.squeeze must have an axis argument."))
        axes = [axis] if isinstance(axis, int) else axis
        if not isinstance(axes, (list, tuple)) or not all(isinstance(a, int) for a in axes):
            raise at_user_line(TypeError("Axis must be a list or tuple of integers."))
        for a in sorted({positive_axis(a, ragged.shape.ndims) for a in axes}, reverse=True):
            ragged = _squeezed(ragged, a, a)
        return ragged


def _squeezed(ragged: Any, axis: int, asked: int) -> Any:
    if not isinstance(ragged, RaggedTensor):
        return array_ops.squeeze(ragged, [axis])
    if axis > 1:
        return ragged.with_values(_squeezed(ragged.values, axis - 1, asked))
    sizes = ragged.nrows() if axis == 0 else ragged.row_lengths()
    fits = math_ops.reduce_all(gen_ops.equal(sizes, convert_to_tensor(1, sizes.dtype)))
    check = control_flow_ops.Assert(fits, ["the given axis (axis = %d) is not squeezable!" % asked])
    with control_dependencies([check]):
        inner = ragged.values
        return inner.with_flat_values(array_ops.identity(inner.flat_values)) if isinstance(inner, RaggedTensor) else array_ops.identity(inner)


SEGMENTS: Dict[str, Callable[..., Any]] = {
    "unsorted_segment_max": maths.segment(gen_ops.unsorted_segment_max),
    "unsorted_segment_mean": maths.segment(maths.segment_mean),
    "unsorted_segment_min": maths.segment(gen_ops.unsorted_segment_min),
    "unsorted_segment_prod": maths.segment(gen_ops.unsorted_segment_prod),
    "unsorted_segment_sqrt_n": maths.segment(maths.segment_sqrt_n),
    "unsorted_segment_sum": maths.segment(gen_ops.unsorted_segment_sum),
}
_ARRAYS: Dict[str, Callable[..., Any]] = {
    "batch_gather": gathers.batch_gather,
    "boolean_mask": arrays.boolean_mask,
    "concat": arrays.concat,
    "dynamic_partition": arrays.dynamic_partition,
    "expand_dims": arrays.expand_dims,
    "gather": gathers.gather,
    "gather_nd": gathers.gather_nd,
    "map_fn": maths.map_fn,
    "one_hot": arrays.one_hot,
    "rank": arrays.rank,
    "reduce_join": maths.reduce_join,
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
    if name in SEGMENTS:
        return SEGMENTS[name]
    if name in dispatch.BINARY:
        return maths.elementwise(dense, 2)
    if name in dispatch.NARY:
        return maths.nary(dense)
    return lambda *args, **kwargs: map_flat_values(dense, *args, **kwargs)


def _binary(op: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    called = maths.elementwise(op, 2)
    return (lambda self, other: called(other, self)) if swapped else (lambda self, other: called(self, other))


def _operators() -> Dict[str, Callable[..., Any]]:
    made: Dict[str, Callable[..., Any]] = {}
    pairs = {
        "add": gen_ops.add,
        "sub": gen_ops.sub,
        "mul": gen_ops.mul,
        "div": math_ops.div,
        "truediv": math_ops.truediv,
        "floordiv": math_ops.floordiv,
        "mod": math_ops.floormod,
        "pow": math_ops.pow,
        "and": gen_ops.logical_and,
        "or": gen_ops.logical_or,
        "xor": math_ops.logical_xor,
    }
    for name, op in pairs.items():
        made["__%s__" % name], made["__r%s__" % name] = _binary(op), _binary(op, True)
    for name, op in {"lt": gen_ops.less, "le": gen_ops.less_equal, "gt": gen_ops.greater, "ge": gen_ops.greater_equal}.items():
        made["__%s__" % name] = _binary(op)
    for name, unary in {"neg": gen_ops.neg, "abs": math_ops.abs, "invert": gen_ops.logical_not}.items():
        made["__%s__" % name] = lambda self, _op=unary: map_flat_values(_op, self)
    return made


OPERATORS = _operators()  # of RaggedTensor, by their names in Python
