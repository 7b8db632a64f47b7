# SPDX-License-Identifier: Apache-2.0
"""How the values of a collection are written into a MetaGraphDef, and read back."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

_functions: Dict[str, Tuple[Any, Optional[Callable[..., Any]], Optional[Callable[..., Any]]]] = {}


def register_proto_function(collection_name: str, proto_type: Any = None, to_proto: Any = None, from_proto: Any = None) -> None:
    """Names the message of a collection's values, and the functions to_proto(value, export_scope=) and from_proto(message, import_scope=)."""
    if to_proto is not None and not callable(to_proto):
        raise TypeError("to_proto must be callable.")
    if from_proto is not None and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    if collection_name in _functions:
        raise KeyError("Registering two proto functions with name %r" % collection_name)
    _functions[collection_name] = (proto_type, to_proto, from_proto)


def _of(collection_name: str, which: int) -> Any:
    return _functions[collection_name][which] if collection_name in _functions else None


def get_collection_proto_type(collection_name: str) -> Any:
    """The message of a collection's values, or None."""
    return _of(collection_name, 0)


def get_to_proto_function(collection_name: str) -> Any:
    """What makes a message of a value, or None."""
    return _of(collection_name, 1)


def get_from_proto_function(collection_name: str) -> Any:
    """What makes a value of a message, or None."""
    return _of(collection_name, 2)
