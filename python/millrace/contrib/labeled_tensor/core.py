# SPDX-License-Identifier: Apache-2.0
"""Tensors with named axes, their order, and what is computed of their elements."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from millrace.contrib.labeled_tensor.axes import Axes, Axis, Error, as_axis, concat_axes, listed
from millrace.framework.convert import convert_to_tensor, register_tensor_conversion_function
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_collection, get_collection_ref, name_scope
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = ["Axes", "Axis", "Error", "as_axis", "concat_axes"]


class LabeledTensor:
    """A tensor whose dimensions have names, and may have labels. Axes are Axis, (name, size or labels), or names alone."""

    def __init__(self, tensor: Any, axes: Any) -> None:
        tensor = convert_to_tensor(tensor)
        shape = tensor.get_shape()
        if shape.ndims != len(axes):
            raise at_user_line(ValueError("Tensor rank was not equal to the number of axes: %r, %r" % (shape, axes)))
        if not isinstance(axes, Axes):
            axes = Axes([(axis, shape[i]) if isinstance(axis, str) else axis for i, axis in enumerate(axes)])
        for size, axis in zip(shape.as_list(), axes.values()):
            if size != axis.size:
                raise at_user_line(ValueError("Provided axis size %s does not match tensor dimension size %s in tensor %r" % (axis.size, size, tensor)))
        self._tensor, self._axes = tensor, axes

    tensor = property(lambda self: self._tensor, doc="The tensor.")
    axes = property(lambda self: self._axes, doc="The axes.")
    dtype = property(lambda self: self._tensor.dtype, doc="The type of its elements.")
    shape = property(lambda self: self._tensor.shape, doc="The shape.")
    name = property(lambda self: self._tensor.name, doc="The tensor's name.")

    def get_shape(self) -> Any:
        """The shape."""
        return self._tensor.get_shape()

    def _as_graph_element(self) -> Tensor:
        return self._tensor

    def __repr__(self) -> str:
        about = (type(self).__name__, self.tensor.name, self.tensor.get_shape(), self.tensor.dtype.name)
        return "<%s '%s' shape=%s dtype=%s\n axes=[%s]>" % (*about, listed(self.axes, len(" axes=[")))

    def __getitem__(self, key: Any) -> "LabeledTensor":
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.axes):
            raise at_user_line(ValueError("indexer %r must have the same length as the Tensor rank (%r)" % (keys, len(self.axes))))
        return slice_function(self, dict(zip(self.axes, keys)))

    def __pos__(self) -> "LabeledTensor":
        return self

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, LabeledTensor) and self.tensor is other.tensor and self.axes == other.axes

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.tensor, self.axes))


register_tensor_conversion_function(LabeledTensor, lambda value, dtype=None, name=None, as_ref=False: convert_to_tensor(value.tensor, dtype, name))


def convert_to_labeled_tensor(value: Any, dtype: Any = None, name: Optional[str] = None) -> LabeledTensor:
    """A labeled tensor, of numbers and tensors without dimensions too."""
    axes = list(value.axes.values()) if isinstance(value, LabeledTensor) else []
    tensor = convert_to_tensor(value.tensor if isinstance(value, LabeledTensor) else value, dtype=dtype, name=name)
    if len(tensor.get_shape()) != len(axes):
        raise at_user_line(ValueError("cannot automatically convert unlabeled arrays or tensors with rank>0 into LabeledTensors: %r" % (value,)))
    return LabeledTensor(tensor, axes)


# ---- axes of one tensor ----


def identity(labeled_tensor: Any, name: Optional[str] = None) -> LabeledTensor:
    """The same."""
    with name_scope(name, "lt_identity", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        return LabeledTensor(array_ops.identity(given.tensor, name=scope), given.axes)


def slice_function(labeled_tensor: Any, selection: Dict[str, Any], name: Optional[str] = None) -> LabeledTensor:
    """A part of a tensor: {axis: place or slice}."""
    with name_scope(name, "lt_slice", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        parts = [selection.get(axis, slice(None)) for axis in given.axes]
        kept = [(axis, part) for axis, part in zip(given.axes.values(), parts) if isinstance(part, slice)]
        axes = [axis.name if axis.labels is None else (axis.name, axis.labels[part]) for axis, part in kept]
        return LabeledTensor(array_ops.identity(given.tensor[tuple(parts)], name=scope), axes)


def transpose(labeled_tensor: Any, axis_order: Optional[Sequence[str]] = None, name: Optional[str] = None) -> LabeledTensor:
    """The axes in another order, in the reverse one unless it is given."""
    with name_scope(name, "lt_transpose", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        before = list(given.axes)
        order = before[::-1] if axis_order is None else list(axis_order)
        if sorted(order) != sorted(before):
            raise at_user_line(
                ValueError(
                    "The new axis order must have the same names as the original axes, but the new order is %r while the original order is %r" % (order, before)
                )
            )
        return LabeledTensor(array_ops.transpose(given.tensor, [before.index(axis) for axis in order], name=scope), [given.axes[axis] for axis in order])


def expand_dims(labeled_tensor: Any, axes: Sequence[Any], name: Optional[str] = None) -> LabeledTensor:
    """With axes of size 1 between those that it has; axes are names of all, or (name, label) of new ones."""
    with name_scope(name, "lt_expand_dims", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        check_axis_order(given, [axis if isinstance(axis, str) else axis[0] for axis in axes])
        there = [given.axes.get(axis) for axis in axes]
        new = [(axis, 1) if isinstance(axis, str) else (axis[0], (axis[1],)) for axis in axes]
        shape = [1 if axis is None else -1 if axis.size is None else axis.size for axis in there]
        return LabeledTensor(array_ops.reshape(given.tensor, shape, name=scope), [fresh if axis is None else axis for axis, fresh in zip(there, new)])


# ---- orders of axes ----

_AXIS_ORDER_KEY = ("__axis_order",)


class AxisOrderError(ValueError):
    """Axes in an order that does not fit."""


def get_axis_order() -> Optional[List[str]]:
    """The order of axes of the context, or None."""
    found = get_collection(_AXIS_ORDER_KEY)
    return found[0] if found else None


@contextlib.contextmanager
def axis_order_scope(axis_order: Optional[List[str]] = None) -> Iterator[Optional[List[str]]]:
    """A context in which axes are in an order."""
    before = get_axis_order()
    get_collection_ref(_AXIS_ORDER_KEY)[:] = [axis_order]
    try:
        yield axis_order
    finally:
        get_collection_ref(_AXIS_ORDER_KEY)[:] = [before]


def _order(axis_order: Optional[Sequence[str]]) -> Sequence[str]:
    order = get_axis_order() if axis_order is None else axis_order
    if order is None:
        raise at_user_line(AxisOrderError("an explicit axis order must be provided with the axis_order argument or by using an axis_order_scope"))
    return order


def check_axis_order(labeled_tensor: Any, axis_order: Optional[Sequence[str]] = None) -> None:
    """AxisOrderError unless the axes are in an order, which may have others between them."""
    given = convert_to_labeled_tensor(labeled_tensor)
    order = _order(axis_order)
    relevant = [axis for axis in order if axis in given.axes]
    if len(relevant) < len(given.axes):
        raise at_user_line(AxisOrderError("not all axis names appear in the required axis order %r: %r" % (order, given)))
    if relevant != list(given.axes):
        raise at_user_line(AxisOrderError("axes on a labeled tensor do not appear in the same order as the required axis order %r: %r" % (order, given)))


def impose_axis_order(labeled_tensor: Any, axis_order: Optional[Sequence[str]] = None, name: Optional[str] = None) -> LabeledTensor:
    """The axes in an order."""
    with name_scope(name, "lt_impose_axis_order", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        return transpose(given, [axis for axis in _order(axis_order) if axis in given.axes], name=scope)


def _find_consistent_ordering(a: List[str], b: List[str]) -> Optional[List[str]]:
    """An order in which both are, or None."""
    merged: List[str] = []
    first, second = list(a), list(b)
    while first and second:
        if first[0] not in b:
            merged.append(first.pop(0))
        elif second[0] not in a:
            merged.append(second.pop(0))
        elif first[0] == second[0]:
            merged.append(first.pop(0))
            second.pop(0)
        else:
            return None
    return merged + first + second


def _type_for(value: Any, other: Any) -> Any:
    """The type that a number of Python has beside a labeled tensor."""
    return other.dtype if isinstance(other, LabeledTensor) and isinstance(value, (bool, int, float)) else None


def align(labeled_tensor_0: Any, labeled_tensor_1: Any, name: Optional[str] = None) -> Tuple[LabeledTensor, LabeledTensor, Axes]:
    """Two tensors with the axes of both, and what these are when one is stretched to the other."""
    with name_scope(name, "lt_align", [labeled_tensor_0, labeled_tensor_1]) as scope:
        first = convert_to_labeled_tensor(labeled_tensor_0, _type_for(labeled_tensor_0, labeled_tensor_1))
        second = convert_to_labeled_tensor(labeled_tensor_1, _type_for(labeled_tensor_1, labeled_tensor_0))
        for axis in first.axes:
            if axis in second.axes and first.axes[axis] != second.axes[axis]:
                raise at_user_line(ValueError("Mismatched %r axis on input tensors: %r and %r" % (axis, first.axes[axis], second.axes[axis])))
        order = get_axis_order()
        if order is not None:
            check_axis_order(first, order)
            check_axis_order(second, order)
            names: Optional[List[str]] = [axis for axis in order if axis in first.axes or axis in second.axes]
        else:
            names = _find_consistent_ordering(list(first.axes), list(second.axes))
        if names is None:
            raise at_user_line(
                AxisOrderError(
                    "No consistent axis order allows for aligning tensors with axis orders %r and %r without copying data. Use transpose or "
                    "impose_axis_order to reorder axes on one of more of the inputs." % (list(first.axes), list(second.axes))
                )
            )
        both = Axes([first.axes.get(axis) or second.axes[axis] for axis in names])
        return expand_dims(first, names, name=scope + "0"), expand_dims(second, names, name=scope + "1"), both


# ---- elements ----


def define_unary_op(op_name: str, elementwise_function: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A function of labeled tensors, of one of the elements."""

    def op(labeled_tensor: Any, name: Optional[str] = None) -> LabeledTensor:
        with name_scope(name, "lt_" + op_name, [labeled_tensor]) as scope:
            given = convert_to_labeled_tensor(labeled_tensor)
            return LabeledTensor(elementwise_function(given.tensor, name=scope), given.axes)

    op.__name__, op.__doc__ = op_name, "tf.%s of each element." % op_name
    return op


def define_binary_op(op_name: str, elementwise_function: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A function of two labeled tensors, of one of pairs of elements."""

    def op(labeled_tensor_0: Any, labeled_tensor_1: Any, name: Optional[str] = None) -> LabeledTensor:
        with name_scope(name, "lt_" + op_name, [labeled_tensor_0, labeled_tensor_1]) as scope:
            first, second, axes = align(labeled_tensor_0, labeled_tensor_1)
            return LabeledTensor(elementwise_function(first.tensor, second.tensor, name=scope), axes)

    op.__name__, op.__doc__ = op_name, "tf.%s of elements, by the names of axes." % op_name
    return op


def _function(name: str) -> Callable[..., Any]:
    return getattr(math_ops, name, None) or getattr(gen_ops, name)


_UNARY = "sign reciprocal square sqrt rsqrt exp log ceil floor cos sin tan acos asin atan lgamma digamma erf erfc logical_not tanh sigmoid"
_BINARY = (
    "add div equal greater greater_equal not_equal less less_equal logical_and logical_or maximum minimum squared_difference igamma igammac zeta polygamma"
)
for _name in _UNARY.split():
    globals()[_name] = define_unary_op(_name, _function(_name))
for _name in _BINARY.split():
    globals()[_name] = define_binary_op(_name, _function(_name))
abs_function = define_unary_op("abs", math_ops.abs)
neg = define_unary_op("neg", gen_ops.neg)
round_function = define_unary_op("round", math_ops.round)
sub = define_binary_op("sub", math_ops.subtract)
mul = define_binary_op("mul", math_ops.multiply)
mod = define_binary_op("mod", gen_ops.floor_mod)
pow_function = define_binary_op("pow", gen_ops.pow)
logical_xor = define_binary_op("logical_xor", lambda x, y, name=None: gen_ops.not_equal(x, y, name=name))


def _operators() -> Iterator[Tuple[str, Callable[..., Any]]]:
    known = globals()
    for name, function in (("abs", abs_function), ("neg", neg), ("invert", known["logical_not"])):
        yield name, function
    both = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "mod", "pow": "pow_function"}
    for name, target in both.items():
        yield name, known[target]
        yield "r" + name, lambda self, other, function=known[target]: function(other, self)
    compared = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for name, target in compared.items():
        yield name, known[target]


for _name, _operator in _operators():
    setattr(LabeledTensor, "__%s__" % _name, _operator)
