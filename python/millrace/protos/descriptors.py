# SPDX-License-Identifier: Apache-2.0
"""Descriptors of the messages for programs that hand them to the protobuf package, such as its text_format and json_format.

The package is asked for when a descriptor is; nothing else here needs it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict

from millrace.protos import enums, message

_PACKAGE, _FILE = "tensorflow", "millrace/messages.proto"
_cache: Dict[str, Any] = {}
registry: Dict[str, Any] = {}  # the message classes by name: definitions.py fills it


def _plain(enum: enums.Enum) -> str:
    return enum.__name__.rpartition(".")[2]


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _set_type(made: Any, kind: str, name: str, registry: Any, message: str = "") -> None:
    enum = enums.of_field(message, name) if kind == "enum" else None
    if kind in registry:
        made.type, made.type_name = made.TYPE_MESSAGE, ".%s.%s" % (_PACKAGE, kind)
    elif enum is not None:
        made.type, made.type_name = made.TYPE_ENUM, ".%s.%s" % (_PACKAGE, _plain(enum))
    else:
        made.type = getattr(made, "TYPE_" + ("INT32" if kind == "enum" else kind.upper()))


def _add_fields(made: Any, full_name: str, cls: Any, registry: Any) -> None:
    oneofs: Dict[str, int] = {}
    for field in cls._fields.values():
        out = made.field.add(name=field.name, number=field.number, label=3 if field.repeated else 1)
        if field.oneof:
            if field.oneof not in oneofs:
                oneofs[field.oneof] = len(made.oneof_decl)
                made.oneof_decl.add(name=field.oneof)
            out.oneof_index = oneofs[field.oneof]
        if not field.key_kind:
            _set_type(out, field.kind, field.name, registry, full_name)
            continue
        entry = made.nested_type.add(name=_camel(field.name) + "Entry")
        entry.options.map_entry = True
        _set_type(entry.field.add(name="key", number=1, label=1), field.key_kind, "", registry)
        _set_type(entry.field.add(name="value", number=2, label=1), field.kind, field.name, registry, full_name)
        out.type, out.type_name = out.TYPE_MESSAGE, ".%s.%s.%s" % (_PACKAGE, full_name, entry.name)


def _pool() -> Any:
    if "pool" not in _cache:
        from google.protobuf import descriptor_pb2, descriptor_pool  # type: ignore[import-untyped]

        file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
        for enum in dict.fromkeys(enums.OF_FIELDS.values()):
            numbers = file.enum_type.add(name=_plain(enum))
            for name, number in sorted(enum.items(), key=lambda item: item[1]):
                numbers.value.add(name=name, number=number)
        placed: Dict[str, Any] = {}
        for full_name in sorted(registry, key=lambda n: n.count(".")):
            outer, _, name = full_name.rpartition(".")
            placed[full_name] = (placed[outer].nested_type if outer else file.message_type).add(name=name)
        for full_name, cls in registry.items():
            _add_fields(placed[full_name], full_name, cls, registry)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        _cache["pool"] = pool
        _cache["names"] = {cls: full_name for full_name, cls in registry.items()}
    return _cache["pool"]


def of(cls: Any) -> Any:
    """The Descriptor of a message class. AttributeError without the protobuf package."""
    try:
        pool = _pool()
    except ImportError:
        raise AttributeError("DESCRIPTOR needs the protobuf package") from None
    own = cls.__dict__.get("_descriptor")
    return own if own is not None else pool.FindMessageTypeByName("%s.%s" % (_PACKAGE, _cache["names"][cls]))


def entry_class(field: Any) -> Any:
    """The message class of the entries of a map field."""
    key = "entry:%s.%s" % (field.owner.__name__, field.name)
    if key not in _cache:
        made = message.define("Entry", "1 key %s; 2 value %s" % (field.key_kind, field.kind), {})
        made._fields["value"].message = field.message
        if field.message is not None:
            made._fields["value"].wire = 2
        with contextlib.suppress(AttributeError):  # without the protobuf package; then its DESCRIPTOR says so
            made._descriptor = of(field.owner).fields_by_name[field.name].message_type  # type: ignore[attr-defined]
        _cache[key] = made
    return _cache[key]


message.Descriptor.of, message.Descriptor.entry_class = staticmethod(of), staticmethod(entry_class)
