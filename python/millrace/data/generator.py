# SPDX-License-Identifier: Apache-2.0
"""Data sets of what Python's generators yield: a step asks for the next value by py_func."""

from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Dict

import numpy as np

from millrace.data import structure
from millrace.framework import dtypes, numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops.script_ops import py_func


class _Running:
    """Iterators of generators by number: an iteration has one."""

    def __init__(self, begin: Callable[..., Any]) -> None:
        self._begin, self._lock, self._numbers = begin, threading.Lock(), itertools.count()
        self._iterators: Dict[int, Any] = {}

    def start(self, *args: Any) -> np.int64:
        """Begins one, and gives its number."""
        iterator = iter(self._begin(*args))
        with self._lock:
            number = next(self._numbers)
            self._iterators[number] = iterator
        return np.int64(number)

    def next(self, number: Any) -> Any:
        """Its next value; StopIteration is the end."""
        number = int(number)
        try:
            return next(self._iterators[number])
        except StopIteration:
            with self._lock:
                self._iterators.pop(number, None)
            raise


def from_generator(kind: Any, generator: Callable[..., Any], output_types: Any, output_shapes: Any, args: Any) -> Any:
    """Dataset.from_generator; `kind` is Dataset."""
    if not callable(generator):
        raise at_user_line(TypeError("`generator` must be callable."))
    types = structure.dtypes_from(output_types)
    shapes = structure.shapes_from(types, output_shapes)
    leaves = structure.flatten(types)
    running = _Running(generator)

    def next_value(number: Any) -> Any:
        values = running.next(number)
        try:
            flat = structure.up_to(types, values)
        except (TypeError, ValueError, KeyError) as error:
            raise TypeError(
                "`generator` yielded an element that did not match the expected structure. The expected structure was %s, but the yielded element "
                "was %s." % (types, values)
            ) from error
        arrays = []
        for value, dtype, shape in zip(flat, leaves, structure.flatten(shapes)):
            try:
                # Copied: the generator may go on to change its own.
                array = np.array(value if dtype == dtypes.string else numpy_cast.cast(value, dtype), object if dtype == dtypes.string else None)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    "`generator` yielded an element that could not be converted to the expected type. The expected type was %s, but the yielded "
                    "element was %s." % (dtype.name, value)
                ) from error
            if not shape.is_compatible_with(array.shape):
                raise ValueError("`generator` yielded an element of shape %s where an element of shape %s was expected." % (array.shape, shape))
            arrays.append(array)
        return arrays

    def numbered(*unused: Any) -> Any:
        del unused
        number = py_func(running.start, [convert_to_tensor(a) for a in args], dtypes.int64)
        number.set_shape([])

        def element(which: Any) -> Any:
            made = py_func(next_value, [which], leaves)
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            for tensor, shape in zip(made, structure.flatten(shapes)):
                tensor.set_shape(shape)
            return structure.pack(types, made)

        # The end of the generator is OutOfRange in the function: the end of the map.
        return kind.from_tensors(number).repeat().map(element)

    return kind.from_tensors(0).flat_map(numbered)
