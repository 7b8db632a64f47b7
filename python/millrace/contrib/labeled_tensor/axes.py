# SPDX-License-Identifier: Apache-2.0
"""Named axes of tensors, with a size or with labels of their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import Dimension


class Error(TypeError):
    """An argument of another type than the function takes."""


class Axis:
    """A name with a size, None where it is not known, or with labels that differ from each other."""

    def __init__(self, name: str, value: Any) -> None:
        plain = isinstance(value, (int, Dimension)) or value is None
        self._name = name
        self._dimension = (value if isinstance(value, Dimension) else Dimension(value)) if plain else Dimension(len(value))
        self._labels: Optional[Tuple[Any, ...]] = None if plain else tuple(value)
        if self._dimension.value == 0:
            self._labels = ()
        self._index: Optional[Dict[Any, int]] = None if self._labels is None else {label: i for i, label in enumerate(self._labels)}
        if self._labels is not None and len(self._index or ()) != len(self._labels):
            raise at_user_line(ValueError("Tick labels must be unique, but got %s" % (self._labels,)))

    name = property(lambda self: self._name, doc="The name.")
    dimension = property(lambda self: self._dimension, doc="The size as a Dimension.")
    size = property(lambda self: self._dimension.value, doc="The size, or None.")
    labels = property(lambda self: self._labels, doc="The labels as a tuple, or None.")
    value = property(lambda self: self._dimension if self._labels is None else self._labels, doc="The labels, or else the size as a Dimension.")

    def index(self, value: Any) -> int:
        """The place of a label."""
        if self._index is None:
            raise at_user_line(ValueError("Axis does not have tick labels"))
        return self._index[value]

    def __len__(self) -> int:
        if self.size is None:
            raise at_user_line(ValueError("axis %r has unknown length" % self.name))
        return self.size

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Axis) and (self.name, self.size, self.labels) == (other.name, other.size, other.labels)

    def __hash__(self) -> int:
        return hash((self.name, self.size, self.labels))

    def __repr__(self) -> str:
        return "%s('%s', %r)" % (type(self).__name__, self.name, self.value)


def as_axis(axis_data: Any) -> Axis:
    """An axis, which may be given as (name, size or labels)."""
    return axis_data if isinstance(axis_data, Axis) else Axis(*axis_data)


class Axes(Mapping):  # type: ignore[type-arg]
    """{name: axis} in the order of a tensor's dimensions."""

    def __init__(self, axes: Sequence[Any]) -> None:
        if axes is None or isinstance(axes, str):
            raise at_user_line(Error("axes are a list of Axis or (name, size or labels), not %r" % (axes,)))
        self._axes: Dict[str, Axis] = {}
        for axis in map(as_axis, axes):
            if axis.name in self._axes:
                raise at_user_line(ValueError("Duplicate axis name: %s" % axis.name))
            self._axes[axis.name] = axis

    def __getitem__(self, name: str) -> Axis:
        return self._axes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return "%s([%s])" % (type(self).__name__, listed(self, len(type(self).__name__) + 2))

    def remove(self, axis_name: str) -> "Axes":
        """The others."""
        if axis_name not in self:
            raise KeyError(axis_name)
        return Axes([axis for axis in self.values() if axis.name != axis_name])


def listed(axes: Axes, indent: int) -> str:
    """Axes as text, each in a line behind some spaces."""
    return (",\n" + " " * indent).join("('%s', %r)" % (axis.name, axis.value) for axis in axes.values())


def concat_axes(axes: Sequence[Axis]) -> Axis:
    """An axis of several of one name, behind each other: with labels if all of them have some."""
    given: List[Axis] = list(axes)
    if not given:
        raise at_user_line(ValueError("axes must not be empty"))
    for axis in given:
        if not isinstance(axis, Axis):
            raise at_user_line(Error("Expected an Axis, but got %r of type %r" % (axis, type(axis))))
    if len({axis.name for axis in given}) > 1:
        raise at_user_line(ValueError("axes do not all have the same name: %r" % {axis.name for axis in given}))
    if all(axis.labels is not None for axis in given):
        return Axis(given[0].name, tuple(label for axis in given for label in axis.labels))
    return Axis(given[0].name, None if any(axis.size is None for axis in given) else sum(map(len, given)))
