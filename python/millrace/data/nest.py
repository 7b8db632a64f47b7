# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.util.nest: structures of elements, in which a list is one component, not several as in tf.nest."""

from __future__ import annotations

from typing import Any, Callable, List

from millrace.data import structure as _structure
from millrace.framework import nest as _nest
from millrace.framework.composite_tensors import SparseTensorValue


class _Leaf:
    """Hides a sequence that is one component."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def _hidden(nested: Any) -> Any:
    return _structure.mapped(lambda leaf: _Leaf(leaf) if isinstance(leaf, (list, SparseTensorValue)) else leaf, nested)


def _shown(nested: Any) -> Any:
    return _structure.mapped(lambda leaf: leaf.value if isinstance(leaf, _Leaf) else leaf, nested)


def is_sequence(seq: Any) -> bool:
    """Whether a value has components inside."""
    return _structure.is_nested(seq)


def flatten(structure: Any) -> List[Any]:
    """The components."""
    return _structure.flatten(structure)


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """Components in the place of another structure's."""
    if isinstance(flat_sequence, tuple):
        flat_sequence = list(flat_sequence)
    if not isinstance(flat_sequence, list):
        raise TypeError("flat_sequence must be a sequence")
    return _shown(_nest.pack_sequence_as(_hidden(structure), [_hidden(part) for part in flat_sequence]))


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """A function of the components at the same place of several structures."""
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    return _shown(_nest.map_structure(lambda *parts: func(*map(_shown, parts)), *map(_hidden, structure), **check_types_dict))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """ValueError unless both have the same structure; with check_types, TypeError unless it is of the same types."""
    _nest.assert_same_structure(_hidden(nest1), _hidden(nest2), check_types)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """An error unless a structure has that of `shallow_tree`, and perhaps more inside."""
    _nest.assert_shallow_structure(_hidden(shallow_tree), _hidden(input_tree), check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> List[Any]:
    """The parts of a structure at the components of another."""
    return [_shown(part) for part in _nest.flatten_up_to(_hidden(shallow_tree), _hidden(input_tree))]


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """A function of the parts of structures at the components of another."""
    return _shown(_nest.map_structure_up_to(_hidden(shallow_tree), lambda *parts: func(*map(_shown, parts)), *map(_hidden, inputs)))
