# SPDX-License-Identifier: Apache-2.0
"""Values of tensors that follow from constants and shapes while the graph is built."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np

from millrace.framework import numpy_cast, tensor_shape
from millrace.framework.graph import Tensor

_MOST_ELEMENTS = 1 << 24  # of a Fill that is computed here


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor where it follows from constants and shapes; else None.

    partial: of a stack along the first axis, a list in which what is not known is None.
    """
    if not isinstance(tensor, Tensor):
        return np.asarray(tensor) if not hasattr(tensor, "_as_graph_element") else None
    return _known(tensor, partial)


_TOLD = frozenset(
    "Const Shape Size Rank Range Cast Concat ConcatV2 ConcatOffset Pack Fill ZerosLike OnesLike Equal NotEqual".split()
)  # of these TensorFlow knows values too


def told_value(tensor: Any) -> Any:
    """constant_value where TensorFlow knows it as well: what a check of it says comes while the graph is built, elsewhere in the step."""
    return constant_value(tensor) if not isinstance(tensor, Tensor) or tensor.op.type in _TOLD else None


_OPEN = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Switch", "Merge", "Enter", "Exit", "NextIteration")  # what is fed or comes and goes
_MOST_OPERATIONS = 100  # that are run to know a value


def folded_value(tensor: Tensor) -> Any:
    """constant_value; of what is computed from a few constants alone, the value too, by running it."""
    found = constant_value(tensor)
    if found is not None or tensor.graph._captures:
        return found
    needed, stack = {tensor.op}, [tensor.op]
    while stack:
        operation = stack.pop()
        if operation.type in _OPEN or len(needed) > _MOST_OPERATIONS or operation.op_def.is_stateful:
            return None
        before = {x.op for x in operation.inputs}.union(operation.control_inputs) - needed
        needed |= before
        stack += before
    from millrace.framework.session import Session

    with Session(graph=tensor.graph) as session:
        return np.asarray(session.run(tensor))


def _known(tensor: Tensor, partial: bool = False) -> Any:
    found = tensor._constant_value()
    if found is not None:
        return found if isinstance(found, np.ndarray) else np.asarray(found, object if isinstance(found, bytes) else None)
    rule = _RULES.get(tensor.op.type)
    return None if rule is None else rule(tensor, partial) if tensor.op.type == "Pack" else rule(tensor)


def _inputs(tensor: Tensor) -> Optional[List[np.ndarray]]:
    values = [_known(x) for x in tensor.op.inputs]
    return None if any(v is None for v in values) else values


def _fill(tensor: Tensor) -> Optional[np.ndarray]:
    shape, value = tensor.get_shape(), _known(tensor.op.inputs[1])
    if value is None or not shape.is_fully_defined() or (shape.num_elements() or 0) > _MOST_ELEMENTS:
        return None
    return np.full(shape.as_list(), value, value.dtype)  # type: ignore[arg-type]


def _cast(tensor: Tensor) -> Optional[np.ndarray]:
    value = _known(tensor.op.inputs[0])
    return None if value is None else numpy_cast.cast(value, tensor.dtype.base_dtype)


def _concat(tensor: Tensor) -> Optional[np.ndarray]:
    values = _inputs(tensor)
    if values is None:
        return None
    axis, parts = (values[0], values[1:]) if tensor.op.type == "Concat" else (values[-1], values[:-1])
    return np.concatenate(parts, axis=int(axis))


def _pack(tensor: Tensor, partial: bool) -> Any:
    values = [_known(x, partial) for x in tensor.op.inputs]
    if not values or tensor.op.get_attr("axis") != 0 or all(v is None for v in values):
        return None
    if any(v is None or isinstance(v, list) for v in values):
        return values if partial else None
    return np.array(values)


def _compared(function: Any) -> Any:
    def rule(tensor: Tensor) -> Optional[np.ndarray]:
        values = _inputs(tensor)
        return None if values is None else np.asarray(function(*(numpy_cast.widened(v) for v in values)))

    return rule


_RULES = {
    "Fill": _fill,
    "Cast": _cast,
    "Concat": _concat,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Equal": _compared(np.equal),
    "NotEqual": _compared(np.not_equal),
}


def constant_value_as_shape(tensor: Any) -> tensor_shape.TensorShape:
    """The shape that a vector of sizes means, as far as it is known; -1 is a size that is not."""
    if not isinstance(tensor, Tensor):
        return _as_shape(np.atleast_1d(np.asarray(tensor)))
    dims = tensor.get_shape().with_rank(1)
    if dims[0].value == 0:
        return tensor_shape.scalar()
    value = _known(tensor)
    if value is not None:
        return _as_shape(value)
    parts = {"Shape": _shape_of, "Pack": _shape_of_pack, "ConcatV2": _shape_of_concat, "StridedSlice": _shape_of_slice}.get(tensor.op.type)
    found = None if parts is None else parts(tensor)
    return (found if found is not None else tensor_shape.unknown_shape()).merge_with(tensor_shape.unknown_shape(dims[0].value))


def _as_shape(sizes: np.ndarray) -> tensor_shape.TensorShape:
    return tensor_shape.TensorShape([None if d == -1 else int(d) for d in sizes])


def _shape_of(tensor: Tensor) -> tensor_shape.TensorShape:
    return tensor.op.inputs[0].get_shape()


def _shape_of_pack(tensor: Tensor) -> tensor_shape.TensorShape:
    values = [_known(x) for x in tensor.op.inputs]
    return tensor_shape.TensorShape([None if v is None or int(v) < 0 else int(v) for v in values])


def _shape_of_concat(tensor: Tensor) -> tensor_shape.TensorShape:
    made = tensor_shape.scalar()
    for part in list(tensor.op.inputs)[:-1]:
        made = made.concatenate(constant_value_as_shape(part))
    return made


def _shape_of_slice(tensor: Tensor) -> Optional[tensor_shape.TensorShape]:
    op = tensor.op
    masks = {name: op.get_attr(name + "_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    ends = [_known(x) for x in list(op.inputs)[1:4]]
    if (
        any(v is None for v in ends)
        or masks["ellipsis"]
        or masks["new_axis"]
        or masks["shrink_axis"]
        or masks["begin"] not in (0, 1)
        or (masks["end"] not in (0, 1))
    ):
        return None
    begin, end, step = (int(v[0]) for v in ends)
    whole = constant_value_as_shape(op.inputs[0])
    return whole[slice(None if masks["begin"] else begin, None if masks["end"] else end, step)] if whole.ndims is not None else None
