# SPDX-License-Identifier: Apache-2.0
"""Shapes that broadcast."""

from __future__ import annotations

import itertools
from typing import Any, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import Dimension, TensorShape, as_shape, unknown_shape


def _dims(shape_x: TensorShape, shape_y: TensorShape) -> Optional[List[Dimension]]:
    """The dimensions of both broadcast; None when they do not fit."""
    made = []
    for x, y in itertools.zip_longest(reversed(shape_x.dims), reversed(shape_y.dims), fillvalue=Dimension(1)):  # type: ignore[arg-type]
        if x.value is None or y.value is None:
            # what is greater than one wins; one or unknown beside unknown stays unknown
            known = x.value if y.value is None else y.value
            made.append(Dimension(known if known is not None and known > 1 else None))
        elif x.value == 1 or y.value == 1 or x.value == y.value:
            made.append(y if x.value == 1 else x)
        else:
            return None
    return made[::-1]


def is_broadcast_compatible(shape_x: Any, shape_y: Any) -> bool:
    """Whether two shapes may broadcast; False when one has no known rank."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    return x.ndims is not None and y.ndims is not None and _dims(x, y) is not None


def broadcast_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of an elementwise result. ValueError when the two do not fit."""
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.ndims is None or y.ndims is None:
        return unknown_shape()
    made = _dims(x, y)
    if made is None:
        raise at_user_line(ValueError("Incompatible shapes for broadcasting: %s and %s" % (x, y)))
    return TensorShape(made)


def assert_broadcasts(shape_x: TensorShape, shape_y: TensorShape) -> None:
    """ValueError when two shapes, as far as they are known, do not broadcast."""
    if shape_x.ndims is not None and shape_y.ndims is not None and _dims(shape_x, shape_y) is None:
        pairs = zip(reversed(shape_x.as_list()), reversed(shape_y.as_list()))
        wrong = next(((x, y) for x, y in pairs if None not in (x, y) and x != y and 1 not in (x, y)), (shape_x, shape_y))
        raise at_user_line(ValueError("Dimensions must be equal, but are %s and %s, or 1 to broadcast: the shapes are %s and %s" % (*wrong, shape_x, shape_y)))


# ---- functions of an operation that TensorFlow registered for ops: the shapes of its outputs ----


def scalar_shape(unused_op: Any) -> List[TensorShape]:
    """One scalar."""
    return [TensorShape([])]


def no_outputs(unused_op: Any) -> List[TensorShape]:
    """None."""
    return []


def unchanged_shape(op: Any) -> List[TensorShape]:
    """That of the first input."""
    return [op.inputs[0].get_shape()]


def call_cpp_shape_fn(op: Any, require_shape_fn: bool = True) -> Any:
    """The shapes that the library has inferred."""
    del require_shape_fn  # every op has one
    return {"shapes": [t.get_shape().as_proto() for t in op.outputs]}
