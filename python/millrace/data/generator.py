# SPDX-License-Identifier: Apache-2.0
"""Data sets of what Python's generators yield: a step asks for the next value by py_func."""

from __future__ import annotations

import itertools
import threading
from typing import Any, Callable, Dict

import numpy as np

from millrace.data import components, structure
from millrace.data.functions import Function
from millrace.framework import dtypes, numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import gen_ops
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
            self.stop(number)
            raise

    def stop(self, number: Any) -> np.int64:
        """Lets go of one; it may have ended."""
        with self._lock:
            self._iterators.pop(int(number), None)
        return np.int64(0)


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

    def start() -> Any:
        number = py_func(running.start, [convert_to_tensor(a) for a in args], dtypes.int64)
        number.set_shape([])
        return number

    def element(number: Any) -> Any:
        made = py_func(next_value, [number], leaves)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        for tensor, shape in zip(made, structure.flatten(shapes)):
            tensor.set_shape(shape)
        return structure.pack(types, made)

    def stop(number: Any) -> Any:
        return py_func(running.stop, [number], dtypes.int64)

    return kind.from_tensors(0).flat_map(lambda _: generated_by(kind, start, element, stop))


def generated_by(kind: Any, init_func: Callable[..., Any], next_func: Callable[..., Any], finalize_func: Callable[..., Any]) -> Any:
    """The data set, of the class `kind`, of next_func(state) over and over, until that is an OutOfRangeError; state = init_func(). At that end, or where
    an iterator goes before, finalize_func(state) is called."""
    begin = Function(init_func, "Dataset_init", (), components.returned)
    state = components.specs_of(begin.returned)
    following, end = Function(next_func, "Dataset_next", state, components.returned), Function(finalize_func, "Dataset_finalize", state, components.returned)
    specs = components.specs_of(following.returned)
    names = (begin.name, following.name, end.name)
    return kind(gen_ops.generator_dataset(begin.captured, following.captured, end.captured, *names, *components.flat(specs)), specs)
