# SPDX-License-Identifier: Apache-2.0
"""Columns as what JSON takes, and back."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from millrace.feature_column.base import FeatureColumn
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line

_KINDS: Dict[str, type] = {}


def by_name(kind: type) -> type:
    """A decorator: columns of this class are found by its name."""
    _KINDS[kind.__name__] = kind
    return kind


def serialize_feature_column(fc: Any) -> Any:
    """A column as its class and settings; the name of a feature as it is."""
    if isinstance(fc, str):
        return fc
    if not isinstance(fc, FeatureColumn):
        raise at_user_line(ValueError("Instance: %s is not a FeatureColumn" % (fc,)))
    return {"class_name": type(fc).__name__, "config": fc._get_config()}


def deserialize_feature_column(config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
    """The column of what serialize_feature_column gave: that of columns_by_name where it is there already."""
    if isinstance(config, str):
        return config
    if not isinstance(config, dict) or "class_name" not in config or "config" not in config:
        raise at_user_line(ValueError("Improper config format: %s" % (config,)))
    kind = {**_KINDS, **(custom_objects or {})}.get(config["class_name"])
    if kind is None:
        raise at_user_line(ValueError("Unknown feature_column_v2: %s" % config["class_name"]))
    if not issubclass(kind, FeatureColumn):
        raise at_user_line(ValueError("Expected FeatureColumn class, instead found: %s" % kind))
    known = {} if columns_by_name is None else columns_by_name
    made = kind._from_config(config["config"], custom_objects=custom_objects, columns_by_name=known)
    return known.setdefault(_column_name_with_class_name(made), made)


def serialize_feature_columns(feature_columns: Any) -> List[Any]:
    """Columns as their classes and settings."""
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_columns(configs: Any, custom_objects: Any = None) -> List[Any]:
    """The columns of what serialize_feature_columns gave; what several of them are made of is one object."""
    known: Dict[str, Any] = {}
    return [deserialize_feature_column(config, custom_objects, known) for config in configs]


def _column_name_with_class_name(fc: Any) -> str:
    return "%s:%s" % (type(fc).__name__, fc.name)


# ---- fields ----


def _initializer_config(initializer: Any) -> Any:
    from millrace.keras import initializers

    return initializers.serialize(initializer)


def _initializer(config: Any, custom_objects: Any, columns_by_name: Any) -> Any:
    from millrace.keras import initializers

    return initializers.deserialize(config, custom_objects=custom_objects)


def _function_config(function: Any) -> Any:
    from millrace.keras.utils import generic_utils

    return generic_utils.serialize_keras_object(function)


def _function(config: Any, custom_objects: Any, columns_by_name: Any) -> Any:
    from millrace.keras.utils import generic_utils

    return None if config is None else generic_utils.deserialize_keras_object(config, custom_objects=custom_objects)


_Both = Tuple[Callable[[Any], Any], Callable[[Any, Any, Any], Any]]
_COLUMN: _Both = (serialize_feature_column, deserialize_feature_column)
_FIELDS: Dict[str, _Both] = {
    "categorical_column": _COLUMN,
    "source_column": _COLUMN,
    "keys": (
        lambda keys: tuple(serialize_feature_column(key) for key in keys),
        lambda keys, objects, known: tuple(deserialize_feature_column(key, objects, known) for key in keys),
    ),
    "dtype": (lambda dtype: dtype.name, lambda name, objects, known: dtypes.as_dtype(name)),
    "normalizer_fn": (_function_config, _function),
    "initializer": (_initializer_config, _initializer),
}


def config_of(fields: Dict[str, Any]) -> Dict[str, Any]:
    """The fields of a column as JSON takes them."""
    return {name: _FIELDS[name][0](value) if name in _FIELDS else value for name, value in fields.items()}


def fields_of(config: Dict[str, Any], expected: Any, custom_objects: Any, columns_by_name: Any) -> Dict[str, Any]:
    """The fields of what config_of gave. ValueError where they are not those expected."""
    if set(config) != set(expected):
        raise at_user_line(ValueError("Invalid config: %s, expected keys: %s" % (config, expected)))
    return {
        name: _FIELDS[name][1](value, custom_objects, columns_by_name) if name in _FIELDS else tuple(value) if isinstance(value, list) else value
        for name, value in config.items()
    }
