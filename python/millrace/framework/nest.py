# SPDX-License-Identifier: Apache-2.0
"""Nested lists, tuples, named tuples and dicts as flat lists, and back."""

from __future__ import annotations

import collections.abc
import importlib
from typing import Any, Callable, Dict, Iterator, List

from millrace.framework.composite_tensors import SparseTensorValue


def is_sequence(seq: Any) -> bool:
    """Whether a value has parts."""
    return (
        isinstance(seq, (list, tuple, dict))
        and not isinstance(seq, SparseTensorValue)
        or (isinstance(seq, (collections.abc.Sequence, collections.abc.Mapping)) and not isinstance(seq, (str, bytes, bytearray, SparseTensorValue)))
    )


is_nested = is_sequence


def _keys(structure: Any) -> List[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _parts(structure: Any) -> Iterator[Any]:
    if isinstance(structure, collections.abc.Mapping):
        return iter([structure[k] for k in _keys(structure)])
    return iter(structure)


def _opened(value: Any) -> Any:
    """A SparseTensor, RaggedTensor or IndexedSlices as the tuple of its components; others as they are."""
    opened = getattr(value, "_components", None)
    return opened() if callable(opened) else value


def flatten(structure: Any, expand_composites: bool = False) -> List[Any]:
    """The leaves; of dicts in the order of the keys. With expand_composites sparse and ragged tensors are structures of their components."""
    structure = _opened(structure) if expand_composites else structure
    if not is_sequence(structure):
        return [structure]
    return [leaf for part in _parts(structure) for leaf in flatten(part, expand_composites)]


def listed(value: Any) -> List[Any]:
    """The parts of a list, tuple, dict, set, view of a dict or iterator, one level deep; else a list of the value alone."""
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    whole = not isinstance(value, (list, tuple, set, frozenset, collections.abc.MappingView, collections.abc.Iterator))
    return [value] if whole else list(value)


def _like(structure: Any, parts: List[Any]) -> Any:
    if isinstance(structure, collections.abc.Mapping):
        made = dict(zip(_keys(structure), parts))
        return type(structure)((key, made[key]) for key in structure)  # type: ignore[call-arg]
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts) if isinstance(structure, (list, tuple)) else parts


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Leaves in the structure of another value. With expand_composites the components of sparse and ragged tensors are leaves."""
    if not isinstance(flat_sequence, (list, tuple)):
        if isinstance(flat_sequence, (str, bytes)) or not isinstance(flat_sequence, collections.abc.Iterable):
            raise TypeError("flat_sequence must be a sequence")
        flat_sequence = list(flat_sequence)
    if not is_sequence(_opened(structure) if expand_composites else structure):
        if len(flat_sequence) != 1:
            raise ValueError("Structure is a scalar but len(flat_sequence) == %d > 1" % len(flat_sequence))
        return flat_sequence[0]
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(
            "Could not pack sequence. Structure had %d elements, but flat_sequence had %d elements.  Structure: %s, flat_sequence: %s."
            % (count, len(flat_sequence), structure, flat_sequence)
        )
    leaves = iter(flat_sequence)

    def build(part: Any) -> Any:
        if expand_composites and _opened(part) is not part:
            return part._of_components(build(_opened(part)))
        return _like(part, [build(p) for p in _parts(part)]) if is_sequence(part) else next(leaves)

    return build(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """A function of the leaves at the same place of several structures, in that structure."""
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    if check_types_dict.keys() - {"check_types", "expand_composites"}:
        raise ValueError("Only valid keyword argument is check_types and expand_composites")
    expand = bool(check_types_dict.get("expand_composites", False))
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types_dict.get("check_types", True), expand)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*(flatten(s, expand) for s in structure))], expand)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """ValueError unless both have the same parts; with check_types, TypeError unless these are of the same types.

    With expand_composites sparse and ragged tensors have parts too, of types and shapes that must be compatible.
    """
    if expand_composites:
        _assert_same_composites(nest1, nest2)
        nest1, nest2 = (pack_sequence_as(n, [0] * len(flatten(n))) for n in (nest1, nest2))  # what is left to compare
    both = "\n\nFirst structure: %s\n\nSecond structure: %s" % (nest1, nest2)
    if len(flatten(nest1)) != len(flatten(nest2)):
        raise ValueError("The two structures don't have the same number of elements." + both)
    _assert_same(nest1, nest2, check_types, both)


def _assert_same_composites(nest1: Any, nest2: Any) -> None:
    type_spec = importlib.import_module("millrace.framework.type_spec")  # which stands above
    for first, second in zip(flatten(nest1), flatten(nest2)):
        if not callable(getattr(first, "_components", None)) and not callable(getattr(second, "_components", None)):
            continue
        specs = [type_spec.type_spec_from_value(s) for s in (first, second)]
        if not specs[0].is_compatible_with(specs[1]) and not specs[1].is_compatible_with(specs[0]):
            raise ValueError("Incompatible CompositeTensor TypeSpecs: %s vs. %s" % (specs[0], specs[1]))


def _assert_same(nest1: Any, nest2: Any, check_types: bool, both: str) -> None:
    if is_sequence(nest1) != is_sequence(nest2):
        raise ValueError("The two structures don't have the same nested structure." + both)
    if not is_sequence(nest1):
        return
    if check_types:
        same = (
            type(nest1) is type(nest2)
            or hasattr(nest1, "_fields")
            and getattr(nest2, "_fields", None) == nest1._fields
            and (type(nest1).__name__ == type(nest2).__name__)
            or isinstance(nest1, collections.abc.Mapping)
            and isinstance(nest2, collections.abc.Mapping)
        )
        if not same:
            raise TypeError(
                "The two structures don't have the same sequence type. First structure has type %s, while second structure has type %s."
                % (type(nest1), type(nest2))
            )
    if isinstance(nest1, collections.abc.Mapping) and isinstance(nest2, collections.abc.Mapping) and set(nest1) != set(nest2):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has keys %s, while second structure has keys %s."
            % (list(nest1), list(nest2))
        )
    first, second = list(_parts(nest1)), list(_parts(nest2))
    if len(first) != len(second):
        raise ValueError("The two structures don't have the same nested structure." + both)
    for a, b in zip(first, second):
        _assert_same(a, b, check_types, both)


def flatten_dict_items(dictionary: Dict[Any, Any]) -> Dict[Any, Any]:
    """The dict with nested keys and values as pairs of leaves."""
    if not isinstance(dictionary, collections.abc.Mapping):
        raise TypeError("input must be a dictionary")
    made: Dict[Any, Any] = {}
    for key, value in dictionary.items():
        if is_sequence(key) and not (is_sequence(value) and len(flatten(key)) == len(flatten(value))):
            raise ValueError(
                "Could not flatten dictionary. Key had %d elements, but value had %d elements. Key: %s, value: %s."
                % (len(flatten(key)), len(flatten(value)), flatten(key), flatten(value))
            )
        for inner, leaf in zip(flatten(key), flatten(value)) if is_sequence(key) else [(key, value)]:
            if inner in made:
                raise ValueError("Could not flatten dictionary: key %s is not unique." % (inner,))
            made[inner] = leaf
    return made


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """TypeError or ValueError unless a structure begins like a shallower one."""
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError("If shallow structure is a sequence, input must also be a sequence. Input has type: %s." % type(input_tree))
    if check_types and not isinstance(input_tree, type(shallow_tree)):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type %s, while shallow structure has type %s."
            % (type(input_tree), type(shallow_tree))
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length %s, while shallow structure has length %s."
            % (len(input_tree), len(shallow_tree))
        )
    if check_types and isinstance(shallow_tree, collections.abc.Mapping) and set(input_tree) != set(shallow_tree):
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys %s, while shallow structure has keys %s."
            % (list(input_tree), list(shallow_tree))
        )
    for shallow, inner in zip(_parts(shallow_tree), _parts(input_tree)):
        assert_shallow_structure(shallow, inner, check_types)


def _up_to(shallow_tree: Any, input_tree: Any) -> List[Any]:
    if not is_sequence(shallow_tree):
        return [input_tree]
    return [leaf for s, p in zip(_parts(shallow_tree), _parts(input_tree)) for leaf in _up_to(s, p)]


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> List[Any]:
    """The parts of a structure at the leaves of a shallower one."""
    assert_shallow_structure(shallow_tree, input_tree, False)
    return _up_to(shallow_tree, input_tree)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """map_structure down to the leaves of a shallower structure."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    return pack_sequence_as(shallow_tree, [func(*v) for v in zip(*(flatten_up_to(shallow_tree, i) for i in inputs))])


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any) -> Any:
    """The structure with True where it goes on, cut off where a function of its parts says False: a bool, or one for each part."""
    given = traverse_fn(structure)
    if not is_sequence(structure):
        if not isinstance(given, bool):
            raise TypeError("traverse_fn returned structure: %s for non-structure: %s" % (given, structure))
        return given
    if isinstance(given, bool):
        return _like(structure, [get_traverse_shallow_structure(traverse_fn, part) for part in _parts(structure)]) if given else False
    if not is_sequence(given):
        raise TypeError("traverse_fn returned a non-bool scalar: %s for input: %s" % (given, structure))
    assert_shallow_structure(given, structure)
    made = []
    for goes_on, part in zip(_parts(given), _parts(structure)):
        if not isinstance(goes_on, bool):
            raise TypeError("traverse_fn didn't return a depth=1 structure of bools.  saw: %s  for structure: %s" % (given, structure))
        made.append(get_traverse_shallow_structure(traverse_fn, part) if goes_on else False)
    return _like(structure, made)
