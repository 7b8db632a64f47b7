# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.periodic_resample: the numbers of one dimension laid out along others, as in convolutions finer than pixels (Shi and others 2016)."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import errors
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import Dimension
from millrace.ops import array_ops, math_ops


def _product(sizes: Any) -> Any:
    made: Any = 1
    for size in sizes:
        made = made * size
    return made


def _wanted(shape: Any, known: List[Optional[int]]) -> Any:
    """(the sizes, which of them is the free one)."""
    given = [size.value if isinstance(size, Dimension) else size for size in shape]
    wanted = [None if size is None or size < 1 else int(size) for size in given]
    if len(wanted) != len(known):
        message = "periodic_resample expects the rank of the input tensor, %d, to be the same as the length of the desired shape, %d."
        raise at_user_line(errors.InvalidArgumentError(None, None, message % (len(known), len(wanted))))
    if wanted.count(None) != 1:
        message = "periodic_resample expects exactly one index to be marked as adjustable, not %d."
        raise at_user_line(errors.InvalidArgumentError(None, None, message % wanted.count(None)))
    for i, (size, had) in enumerate(zip(wanted, known)):
        if size is not None and had is not None and size < had:
            message = (
                "periodic_resample expects the size of non-adjustable dimensions be at least as large as size of input tensor."
                " Dimension %d input tensor has size %d, desired shape has size %d."
            )
            raise at_user_line(errors.InvalidArgumentError(None, None, message % (i, had, size)))
    return wanted, wanted.index(None)


def periodic_resample(values: Any, shape: Any, name: Optional[str] = None) -> Tensor:
    """A tensor of a shape, one of whose sizes is None: the numbers of values in that dimension fill what the others grow by. The rank must be known."""
    with name_scope(name, "PeriodicResample", [values]):
        values = convert_to_tensor(values, name="values")
        known = values.get_shape().as_list()
        wanted, free = _wanted(shape, known)
        measured = array_ops.shape(values)
        sizes = [measured[i] if size is None else size for i, size in enumerate(known)]
        wanted[free] = _product(sizes) // _product(size for i, size in enumerate(wanted) if i != free)
        at = []
        for i, size in enumerate(wanted):
            at.append(array_ops.reshape(math_ops.range(size), [-1 if i == j else 1 for j in range(len(known))]))
        places, part, within = [None] * len(known), 1, 0
        for i, size in enumerate(wanted):
            if i != free:
                times = -(-size // sizes[i])
                places[i] = at[i] // times
                within = within + part * (at[i] % times)
                part = part * times
        places[free] = within * wanted[free] + at[free]
        flat: Any = 0
        for i, place in enumerate(places):
            flat = flat + place * _product(sizes[i + 1 :])
        made = array_ops.gather(array_ops.reshape(values, [-1]), flat)
        made.set_shape([size if isinstance(size, int) else None for size in wanted])
        return made
