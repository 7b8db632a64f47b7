# SPDX-License-Identifier: Apache-2.0
"""tf.sort and tf.argsort."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = ["sort", "argsort"]


def _sorted(values: Any, axis: Any, direction: str, take: int) -> Tensor:
    """The values (0) or their indices (1) along an axis, in order; equal values stay in the order in which they are."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise at_user_line(ValueError("Unknown direction %s: it must be ASCENDING or DESCENDING" % (direction,)))
    number = constant_value(axis) if isinstance(axis, Tensor) else axis
    if number is None:
        raise at_user_line(ValueError("The axis must be known while the graph is built, not a tensor: %s" % (axis,)))
    values = convert_to_tensor(values)
    rank = values.get_shape().ndims
    if rank is not None and not -rank <= int(number) < rank:
        raise at_user_line(ValueError("axis %d is not within values of rank %d" % (number, rank)))
    in_place = number == -1 or rank is not None and int(number) % rank == rank - 1
    order, back = (None, None) if in_place else _to_the_end(rank, int(number)) if rank is not None else _to_an_end_told_later(values, int(number))
    last = values if in_place else array_ops.transpose(values, order)
    if direction == "DESCENDING":
        made = gen_ops.top_kv2(last, array_ops.shape(last)[-1])[take]
    elif last.dtype.is_unsigned:  # from the other side, as no negative of it fits
        made = gen_ops.top_kv2(last.dtype.max - last, array_ops.shape(last)[-1])[take]
        made = made if take else last.dtype.max - made
    elif last.dtype.is_integer:  # -1 - x: of the smallest value too
        made = gen_ops.top_kv2(-1 - last, array_ops.shape(last)[-1])[take]
        made = made if take else -1 - made
    else:
        made = gen_ops.top_kv2(gen_ops.neg(last), array_ops.shape(last)[-1])[take]
        made = made if take else gen_ops.neg(made)
    return made if in_place else array_ops.transpose(made, back)


def _to_the_end(rank: int, axis: int) -> Tuple[Any, Any]:
    """The axis and the last one change places, and back the same way."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    swapped = convert_to_tensor(order, name="transposition")
    return swapped, swapped


def _to_an_end_told_later(values: Tensor, axis: int) -> Tuple[Any, Any]:
    """The same for values whose rank the step tells."""
    rank = array_ops.rank(values)
    place = rank + axis if axis < 0 else convert_to_tensor(axis)
    order = array_ops.concat([math_ops.range(place), math_ops.range(place + 1, rank), array_ops.expand_dims(place, 0)], 0)
    return order, gen_ops.invert_permutation(order)


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: Optional[str] = None) -> Tensor:
    """The values in order along an axis."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, 0)


def argsort(values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: Optional[str] = None) -> Tensor:
    """The indices that put values in order along an axis. They are those of a stable sort whether that is asked for or not."""
    del stable  # it is
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, 1)
