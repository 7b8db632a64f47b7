# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training.HParams: named values that a text can change."""

from __future__ import annotations

import json
import numbers
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from millrace.compat import as_bytes, as_str
from millrace.framework.proto_functions import register_proto_function
from millrace.protos import definitions

# name, perhaps [index], = and a value or [values], up to the next comma.
_ITEM = re.compile(r"(?P<name>[a-zA-Z][\w.]*)\s*(?:\[\s*(?P<at>\d+)\s*\])?\s*=\s*(?:\[(?P<values>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,\s*|$)")


class _Item(NamedTuple):
    name: str
    at: Optional[str]
    values: Optional[str]
    value: Optional[str]


def _items(text: str) -> Iterator[_Item]:
    at = 0
    while at < len(text):
        found = _ITEM.match(text, at)
        if found is None:
            raise ValueError("Malformed hyperparameter value: %s" % text[at:])
        at = found.end()
        yield _Item(*(found.group(part) for part in _Item._fields))


def _read_bool(text: str) -> bool:
    return {"true": True, "True": True, "false": False, "False": False}[text] if text.isalpha() else bool(int(text))


def _read(name: str, kind: Any, text: str, whole: str) -> Any:
    read: Callable[[str], Any] = _read_bool if kind is bool else str if kind is type(None) else kind
    try:
        return read(text)
    except (ValueError, KeyError):
        raise ValueError("Could not parse hparam '%s' of type '%s' with value '%s' in %s" % (name, kind.__name__, text, whole)) from None


def parse_values(values: str, type_map: Dict[str, Any], ignore_unknown: bool = False) -> Dict[str, Any]:
    """What a text such as "rate=0.1,units=[1,2],sizes[3]=4" gives each name of a type: a value, a list, or a dictionary by indices."""
    made: Dict[str, Any] = {}
    for item in _items(values):
        if item.name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError("Unknown hyperparameter type for %s" % item.name)
        kind = type_map[item.name]
        if item.at is None:
            if item.name in made:
                raise ValueError("Multiple assignments to variable '%s' in %s" % (item.name, values))
            if item.values is None:
                made[item.name] = _read(item.name, kind, item.value or "", values)
            else:
                made[item.name] = [_read(item.name, kind, part, values) for part in re.split("[ ,]", item.values) if part]
            continue
        if item.values is not None:
            raise ValueError("Assignment of a list to a list index.")
        places = made.setdefault(item.name, {})
        if not isinstance(places, dict) or int(item.at) in places:
            again = "%s[%s]" % (item.name, item.at) if isinstance(places, dict) else item.name
            raise ValueError("Multiple assignments to variable '%s' in %s" % (again, values))
        places[int(item.at)] = _read(item.name, kind, item.value or "", values)
    return made


def _cast(name: str, kind: Any, value: Any) -> Any:
    """A value in the type of the first one; ValueError where it is of another sort."""
    if type(value) is kind or kind is type(None):
        return value
    text, truth, whole, number = (issubclass(kind, sort) != isinstance(value, sort) for sort in ((str, bytes), bool, numbers.Integral, numbers.Number))
    if (issubclass(kind, (str, bytes)) and text) or truth or (issubclass(kind, numbers.Integral) and whole) or (issubclass(kind, numbers.Number) and number):
        raise ValueError("Could not cast hparam '%s' of type '%s' from value %r" % (name, kind, value))
    return kind(value)


class HParams:
    """Named values, as attributes. The first value, or the first of a list, says which type later ones have."""

    _hparam_types: Dict[str, Tuple[Any, bool]]  # the type, and whether there are several

    if TYPE_CHECKING:  # the values

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._hparam_types, self._model_structure = {}, model_structure
        if hparam_def:
            if kwargs:
                raise ValueError("hparam_def and initialization values are mutually exclusive")
            kwargs = _values_of(hparam_def)
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a value."""
        if getattr(self, name, None) is not None:
            raise ValueError("Hyperparameter name is reserved: %s" % name)
        several = isinstance(value, (list, tuple))
        if several and not value:
            raise ValueError("Multi-valued hyperparameters cannot be empty: %s" % name)
        self._hparam_types[name] = (type(value[0] if several else value), several)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a value; KeyError for a new name."""
        kind, several = self._hparam_types[name]
        if isinstance(value, list) and not several:
            raise ValueError("Must not pass a list for single-valued parameter: %s" % name)
        if several and not isinstance(value, list):
            raise ValueError("Must pass a list for multi-valued parameter: %s." % name)
        setattr(self, name, [_cast(name, kind, v) for v in value] if several else _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Takes a value away."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def values(self) -> Dict[str, Any]:
        """The values by name."""
        return {n: getattr(self, n) for n in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A value, or a default, which must be of its type."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, several = self._hparam_types[key]
            told = "Hparam '%s' of type '%s' is incompatible with default=%s" % (key, "list<%s>" % kind if several else kind, default)
            if several != isinstance(default, list):
                raise ValueError(told)
            for value in default if several else [default]:
                try:
                    _cast(key, kind, value)
                except ValueError as error:
                    raise ValueError("%s. %s" % (told, error)) from None
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def parse(self, values: str) -> "HParams":
        """Changes values by a text such as "rate=0.1,units=[1,2]"."""
        return self.override_from_dict(parse_values(values, {name: kind for name, (kind, _) in self._hparam_types.items()}))

    def override_from_dict(self, values_dict: Dict[str, Any]) -> "HParams":
        """Changes values."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Dict[str, Any]) -> "HParams":
        """`override_from_dict`, under its older name."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps an object of the program's."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The object of the program's."""
        return self._model_structure

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> "HParams":
        """Changes values by JSON."""
        return self.override_from_dict(json.loads(values_json))

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """An HParamDef of the values: truths, whole numbers, texts and numbers."""
        del export_scope  # names of values are in no scope
        made = definitions.HParamDef()
        for name, (kind, several) in self._hparam_types.items():
            sort = next((s for s, kinds in _SORTS if issubclass(kind, kinds)), None)
            if sort is None:
                raise ValueError("Unsupported parameter type: %s" % kind)
            given = getattr(self, name) if several else [getattr(self, name)]
            values = [as_bytes(v) for v in given] if sort == "bytes" else list(given)
            if several:
                getattr(made.hparam[name], sort + "_list").value.extend(values)
            else:
                setattr(made.hparam[name], sort + "_value", values[0])
        return made

    @staticmethod
    def from_proto(hparam_def: Any, import_scope: Optional[str] = None) -> "HParams":
        """The values of an HParamDef."""
        del import_scope  # as above
        return HParams(hparam_def=hparam_def)

    def __str__(self) -> str:
        return ",".join("%s=%s" % item for item in self.values().items())

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, sorted(self.values().items()))


_SORTS = (("bool", bool), ("int64", int), ("bytes", (str, bytes)), ("float", float))  # of an HParamDef, by types


def _values_of(hparam_def: Any) -> Dict[str, Any]:
    assert isinstance(hparam_def, definitions.HParamDef)
    made = {}
    for name, message in hparam_def.hparam.items():
        field = message.WhichOneof("kind")
        found = getattr(message, field)
        values = list(found.value) if field.endswith("_list") else [found]
        values = [as_str(v) for v in values] if field.startswith("bytes") else values
        made[name] = values if field.endswith("_list") else values[0]
    return made


register_proto_function("hparams", definitions.HParamDef, HParams.to_proto, HParams.from_proto)
