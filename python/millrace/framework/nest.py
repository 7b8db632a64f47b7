# SPDX-License-Identifier: Apache-2.0
"""Nested lists, tuples, named tuples and dicts as flat lists, and back."""

from __future__ import annotations

import collections
import collections.abc
import importlib
from typing import Any, Callable, Dict, Iterator, List, Tuple


def is_sequence(seq: Any) -> bool:
    """Whether a value has parts."""
    if isinstance(seq, (str, bytes, bytearray)):
        return False
    return isinstance(seq, (list, tuple, dict, collections.abc.Sequence, collections.abc.Mapping, collections.abc.MappingView)) or _is_attrs(seq)


is_nested = is_sequence


def is_sequence_or_composite(seq: Any) -> bool:
    """Whether a value has parts or components."""
    return is_sequence(seq) or _opened(seq) is not seq


def _is_attrs(value: Any) -> bool:
    return hasattr(type(value), "__attrs_attrs__")


def _is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether it is a named tuple; with strict, of a class right below tuple. Programs take it from tensorflow.python.util.nest."""
    fields = getattr(instance, "_fields", None)
    named = isinstance(instance, tuple) and isinstance(fields, collections.abc.Sequence) and all(isinstance(name, str) for name in fields)
    return named and (not strict or type(instance).__base__ is tuple)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, collections.abc.Mapping)


def _keys(structure: Any) -> List[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _items(structure: Any, expand_composites: bool = False) -> List[Tuple[Any, Any]]:
    """The parts with the keys, fields or numbers that lead to them; the components of a composite under the name of its class."""
    if isinstance(structure, collections.abc.Mapping):
        return [(key, structure[key]) for key in _keys(structure)]
    if _is_attrs(structure):
        return [(a.name, getattr(structure, a.name)) for a in type(structure).__attrs_attrs__]
    if hasattr(structure, "_fields") and isinstance(structure, tuple):
        return [(name, getattr(structure, name)) for name in structure._fields]  # type: ignore[attr-defined]
    if expand_composites and not is_sequence(structure):
        return [((structure.value_type if _is_spec(structure) else type(structure)).__name__, _opened(structure))]
    return list(enumerate(structure))


def _parts(structure: Any) -> Iterator[Any]:
    return (part for _, part in _items(structure))


def _is_spec(value: Any) -> bool:
    return hasattr(value, "_component_specs") and hasattr(value, "value_type")


def _opened(value: Any) -> Any:
    """A SparseTensor, RaggedTensor, IndexedSlices or the TypeSpec of one as its components; others as they are."""
    if getattr(value, "is_leaf_spec", False):
        return value
    if not isinstance(value, type) and _is_spec(value):
        return value._component_specs
    opened = getattr(value, "_components", None)
    return opened() if callable(opened) and not isinstance(value, type) else value


def _closed(value: Any, parts: Any) -> Any:
    return value._from_components(parts) if _is_spec(value) else value._of_components(parts)


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
        if isinstance(structure, collections.defaultdict):
            return collections.defaultdict(structure.default_factory, ((key, made[key]) for key in structure))
        return type(structure)((key, made[key]) for key in structure)  # type: ignore[call-arg]
    if hasattr(structure, "_fields") or _is_attrs(structure):
        return type(structure)(*parts)
    return type(structure)(parts) if isinstance(structure, (list, tuple)) else parts


_sequence_like = _like  # as tensorflow.python.util.nest calls it


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Leaves in the structure of another value. With expand_composites the components of sparse and ragged tensors are leaves."""
    if not isinstance(flat_sequence, (list, tuple)):
        if isinstance(flat_sequence, (str, bytes)) or not isinstance(flat_sequence, collections.abc.Iterable):
            raise TypeError("flat_sequence must be a sequence")
        flat_sequence = list(flat_sequence)
    if not (is_sequence_or_composite if expand_composites else is_sequence)(structure):
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
            return _closed(part, build(_opened(part)))
        return _like(part, [build(p) for p in _parts(part)]) if is_sequence(part) else next(leaves)

    return build(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """A function of the leaves at the same place of several structures, in that structure."""
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % (func,))
    if not structure:
        raise ValueError("Must provide at least one structure")
    if check_types_dict.keys() - {"check_types", "expand_composites"}:
        raise ValueError("Only valid keyword arguments are check_types and expand_composites, not: %s" % ", ".join(sorted(check_types_dict)))
    expand = bool(check_types_dict.get("expand_composites", False))
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types_dict.get("check_types", True), expand)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*(flatten(s, expand) for s in structure))], expand)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """ValueError unless both have the same parts; with check_types, TypeError unless these are of the same types.

    With expand_composites sparse and ragged tensors have parts too, of types and shapes that must be compatible.
    """
    try:
        _assert_same(nest1, nest2, check_types, expand_composites)
    except (TypeError, ValueError) as error:
        dotted = [str(_dotted(n)).replace("'.'", ".") for n in (nest1, nest2)]
        both = "First structure: %s\n\nSecond structure: %s" % (_shown(nest1), _shown(nest2))
        text = "The two structures don't have the same nested structure.\n\n%s\n\nMore specifically: %s" % (both, error)
        raise type(error)("%s\nEntire first structure:\n%s\nEntire second structure:\n%s" % (text, *dotted)) from None


def _dotted(structure: Any) -> Any:
    return map_structure(lambda _: ".", structure)


def _shown(value: Any) -> str:
    return "type=%s str=%s" % (type(value).__name__, value)


def _is_composite(value: Any) -> bool:
    return not is_sequence(value) and is_sequence_or_composite(value)


def _assert_same_composites(first: Any, second: Any) -> None:
    if not _is_composite(first) or not _is_composite(second):
        raise TypeError(_STRUCTURES_HAVE_MISMATCHING_TYPES.format(input_type=type(second), shallow_type=type(first)))
    type_spec = importlib.import_module("millrace.framework.type_spec")  # which stands above
    specs = [s if _is_spec(s) else type_spec.type_spec_from_value(s) for s in (first, second)]
    if type(specs[0]) is not type(specs[1]):
        raise TypeError(_STRUCTURES_HAVE_MISMATCHING_TYPES.format(input_type=type(second), shallow_type=type(first)))
    try:
        specs[0].most_specific_compatible_type(specs[1])
    except (TypeError, ValueError) as error:
        raise ValueError("Incompatible CompositeTensor TypeSpecs: %s vs. %s -- %s" % (*specs, error)) from None


def kind_of(structure: Any) -> Any:
    """The type of a structure; list for the lists that attributes of models become."""
    return getattr(type(structure), "_kind", type(structure))


def _same_kind(nest1: Any, nest2: Any) -> bool:
    if kind_of(nest1) is kind_of(nest2) or isinstance(nest1, collections.abc.Mapping) and isinstance(nest2, collections.abc.Mapping):
        return True
    fields = getattr(nest1, "_fields", None)
    return fields is not None and getattr(nest2, "_fields", None) == fields and type(nest1).__name__ == type(nest2).__name__


def _assert_same(nest1: Any, nest2: Any, check_types: bool, expand: bool) -> None:
    if expand and (_is_composite(nest1) or _is_composite(nest2)):
        _assert_same_composites(nest1, nest2)
        _assert_same(_opened(nest1), _opened(nest2), False, expand)
        return
    if is_sequence(nest1) != is_sequence(nest2):
        inner, leaf = (nest1, nest2) if is_sequence(nest1) else (nest2, nest1)
        raise ValueError('Substructure "%s" is a sequence, while substructure "%s" is not' % (_shown(inner), _shown(leaf)))
    if not is_sequence(nest1):
        return
    if check_types and not _same_kind(nest1, nest2):
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
    for a, b in zip(first, second):
        _assert_same(a, b, check_types, expand)
    if len(first) != len(second):
        both = (_shown(nest1), _shown(nest2))
        raise ValueError("The two structures don't have the same number of elements. First structure: %s. Second structure: %s" % both)


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


_SHALLOW_TREE_HAS_INVALID_KEYS = "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has keys that the input_tree lacks: {}."
_STRUCTURES_HAVE_MISMATCHING_TYPES = (
    "The two structures don't have the same sequence type. Input structure has type {input_type}, while shallow structure has type {shallow_type}."
)
_STRUCTURES_HAVE_MISMATCHING_LENGTHS = (
    "The two structures don't have the same sequence length. Input structure has length {input_length}, while shallow structure has length {shallow_length}."
)
_INPUT_TREE_SMALLER_THAN_SHALLOW_TREE = (
    "The input_tree has fewer elements than the shallow_tree. Input structure has length {input_size}, while shallow structure has length {shallow_size}."
)
_IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ = "If shallow structure is a sequence, input must also be a sequence. Input has type: {}."


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False, check_subtrees_length: bool = True
) -> None:
    """TypeError or ValueError unless a structure begins like a shallower one."""
    has_parts = is_sequence_or_composite if expand_composites else is_sequence
    if not has_parts(shallow_tree):
        return
    if not has_parts(input_tree):
        raise TypeError(_IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ.format(type(input_tree)))
    if expand_composites and (_is_composite(shallow_tree) or _is_composite(input_tree)):
        _assert_same_composites(shallow_tree, input_tree)
    else:
        if check_types and not isinstance(input_tree, type(shallow_tree)) and not _same_kind(shallow_tree, input_tree):
            raise TypeError(_STRUCTURES_HAVE_MISMATCHING_TYPES.format(input_type=type(input_tree), shallow_type=type(shallow_tree)))
        sizes = len(list(_parts(input_tree))), len(list(_parts(shallow_tree)))
        if check_subtrees_length and sizes[0] != sizes[1]:
            raise ValueError(_STRUCTURES_HAVE_MISMATCHING_LENGTHS.format(input_length=sizes[0], shallow_length=sizes[1]))
        if sizes[0] < sizes[1]:
            raise ValueError(_INPUT_TREE_SMALLER_THAN_SHALLOW_TREE.format(input_size=sizes[0], shallow_size=sizes[1]))
        if isinstance(shallow_tree, collections.abc.Mapping) and set(shallow_tree) - set(input_tree):
            raise ValueError(_SHALLOW_TREE_HAS_INVALID_KEYS.format(sorted(set(shallow_tree) - set(input_tree))))
    inner = dict(_items(input_tree, expand_composites))
    for place, (key, shallow) in enumerate(_items(shallow_tree, expand_composites)):
        part = inner[key] if key in inner else list(inner.values())[place]
        assert_shallow_structure(shallow, part, check_types, expand_composites, check_subtrees_length)


def _up_to(shallow_tree: Any, input_tree: Any, expand: bool, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Any]]:
    """(path, part) of a structure at each leaf of a shallower one."""
    if not (is_sequence_or_composite if expand else is_sequence)(shallow_tree):
        yield path, input_tree
        return
    inner = dict(_items(input_tree, expand))
    for place, (key, shallow) in enumerate(_items(shallow_tree, expand)):
        yield from _up_to(shallow, inner[key] if key in inner else list(inner.values())[place], expand, (*path, key))


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False, check_subtrees_length: bool = True
) -> List[Tuple[Tuple[Any, ...], Any]]:
    """(path, part) of a structure at the leaves of a shallower one."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length)
    return list(_up_to(shallow_tree, input_tree, expand_composites))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False, check_subtrees_length: bool = True
) -> List[Any]:
    """The parts of a structure at the leaves of a shallower one."""
    return [part for _, part in flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length)]


def map_structure_with_tuple_paths_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """func(path, parts...) of the parts of structures at the leaves of a shallower one."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types, check_length = kwargs.pop("check_types", True), kwargs.pop("check_subtrees_length", True)
    expand = kwargs.pop("expand_composites", False)
    found = [flatten_with_tuple_paths_up_to(shallow_tree, i, check_types, expand, check_length) for i in inputs]
    made = [func(rows[0][0], *[part for _, part in rows], **kwargs) for rows in zip(*found)]
    return pack_sequence_as(shallow_tree, made, expand)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """map_structure down to the leaves of a shallower structure."""
    return map_structure_with_tuple_paths_up_to(shallow_tree, lambda _, *parts, **given: func(*parts, **given), *inputs, **kwargs)


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """func(path, leaves...) of the leaves at the same place of several structures."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """func("a/0", leaves...) of the leaves at the same place of several structures."""
    return map_structure_with_tuple_paths(lambda path, *leaves, **given: func("/".join(map(str, path)), *leaves, **given), *structure, **kwargs)


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[Tuple[Any, ...]]:
    """The path to each leaf."""
    return (path for path, _ in _up_to(nest, nest, expand_composites))


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> List[Tuple[Tuple[Any, ...], Any]]:
    """(path, leaf) of each leaf."""
    return list(_up_to(structure, structure, expand_composites))


def flatten_with_joined_string_paths(structure: Any, separator: str = "/", expand_composites: bool = False) -> List[Tuple[str, Any]]:
    """("a/0", leaf) of each leaf."""
    return [(separator.join(map(str, path)), leaf) for path, leaf in _up_to(structure, structure, expand_composites)]


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False) -> Any:
    """The structure with True where it goes on, cut off where a function of its parts says False: a bool, or one for each part."""
    has_parts = is_sequence_or_composite if expand_composites else is_sequence
    given = traverse_fn(structure)
    if not has_parts(structure):
        if not isinstance(given, bool):
            raise TypeError("traverse_fn returned structure: %s for non-structure: %s" % (given, structure))
        return given
    parts = [part for _, part in _items(structure, expand_composites)]
    if isinstance(given, bool):
        if not given:
            return False
        made = [get_traverse_shallow_structure(traverse_fn, part, expand_composites) for part in parts]
        return _like(structure, made) if is_sequence(structure) else _closed(structure, made[0])
    if not has_parts(given):
        raise TypeError("traverse_fn returned a non-bool scalar: %s for input: %s" % (given, structure))
    assert_shallow_structure(given, structure, expand_composites=expand_composites)
    made = []
    for goes_on, part in zip((g for _, g in _items(given, expand_composites)), parts):
        if not isinstance(goes_on, bool):
            raise TypeError("traverse_fn didn't return a depth=1 structure of bools.  saw: %s  for structure: %s" % (given, structure))
        made.append(get_traverse_shallow_structure(traverse_fn, part, expand_composites) if goes_on else False)
    return _like(structure, made)
