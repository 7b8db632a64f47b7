# SPDX-License-Identifier: Apache-2.0
"""Nested lists, tuples, named tuples and dicts as flat lists, and back."""
from __future__ import annotations

import collections.abc
from typing import Any, Callable, Iterator, List

from millrace.framework.composite_tensors import SparseTensorValue


def is_sequence(seq: Any) -> bool:
    """Whether a value has parts."""
    return isinstance(seq, (list, tuple, dict)) and not isinstance(seq, SparseTensorValue)


def _parts(structure: Any) -> Iterator[Any]:
    if isinstance(structure, dict):
        return iter(structure[k] for k in sorted(structure))
    return iter(structure)


def flatten(nest: Any) -> List[Any]:
    """The leaves; of dicts in the order of the keys."""
    if not is_sequence(nest):
        return [nest]
    return [leaf for part in _parts(nest) for leaf in flatten(part)]


def listed(value: Any) -> List[Any]:
    """The parts of a list, tuple, dict, set, view of a dict or iterator, one level deep; else a list of the value alone."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    whole = not isinstance(value, (list, tuple, set, frozenset, collections.abc.MappingView, collections.abc.Iterator))
    return [value] if whole else list(value)


def _like(structure: Any, parts: List[Any]) -> Any:
    if isinstance(structure, dict):
        return type(structure)(zip(sorted(structure), parts))
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts) if isinstance(structure, (list, tuple)) else parts


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """Leaves in the structure of another value."""
    leaves = list(flat_sequence)

    def build(s: Any) -> Any:
        if not is_sequence(s):
            if not leaves:
                raise ValueError("The structure has more leaves than were given.")
            return leaves.pop(0)
        return _like(s, [build(p) for p in _parts(s)])

    made = build(structure)
    if leaves:
        raise ValueError("The structure has fewer leaves than were given.")
    return made


def map_structure(func: Callable[..., Any], *structures: Any, **unused: Any) -> Any:
    """A function of the leaves at the same place of several structures, in that structure."""
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    return pack_sequence_as(structures[0], [func(*leaves) for leaves in zip(*(flatten(s) for s in structures))])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """ValueError unless both have the same parts."""
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError("The two structures don't have the same nested structure: %r and %r" % (nest1, nest2))
    if is_sequence(nest1):
        first, second = list(_parts(nest1)), list(_parts(nest2))
        if len(first) != len(second):
            raise ValueError("The two structures don't have the same number of elements: %r and %r" % (nest1, nest2))
        for a, b in zip(first, second):
            assert_same_structure(a, b, check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> List[Any]:
    """The parts of a structure at the leaves of a shallower one."""
    if not is_sequence(shallow_tree):
        return [input_tree]
    return [leaf for s, p in zip(_parts(shallow_tree), _parts(input_tree)) for leaf in flatten_up_to(s, p)]


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """map_structure down to the leaves of a shallower structure."""
    return pack_sequence_as(shallow_tree, [func(*v) for v in zip(*(flatten_up_to(shallow_tree, i) for i in inputs))])
