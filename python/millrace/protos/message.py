# SPDX-License-Identifier: Apache-2.0
"""Messages with the interface of protobuf's Python classes, from tables of fields."""

from __future__ import annotations

import struct
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIRE = {"double": _FIXED64, "fixed64": _FIXED64, "sfixed64": _FIXED64, "float": _FIXED32, "fixed32": _FIXED32, "string": _BYTES, "bytes": _BYTES}
_FORMAT = {"double": "<d", "float": "<f", "fixed64": "<Q", "fixed32": "<I", "sfixed64": "<q"}
_RANGES = {"int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1), "uint32": (0, (1 << 32) - 1), "uint64": (0, (1 << 64) - 1)}
_RANGES["sint64"] = _RANGES["int64"]
_RANGES["enum"] = _RANGES["int32"]
_DEPTH = 100  # of messages within messages, as in protobuf
_LATER = 1 << 16  # bytes from which on some parts are decoded when somebody looks at them
_DEFAULT: Dict[str, Any] = {"double": 0.0, "float": 0.0, "string": "", "bytes": b"", "bool": False}


_looking = threading.RLock()  # one thread at a time decodes what was kept


class DecodeError(ValueError):
    """Bytes that are no message of this type."""


def _put_varint(out: bytearray, value: int) -> None:
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _get_varint(data: memoryview, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DecodeError("Error parsing message: truncated")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & ((1 << 64) - 1), at
        shift += 7


class Field:
    """One row of a message's table."""

    __slots__ = ("number", "name", "kind", "repeated", "oneof", "message", "key_kind", "wire", "owner", "later")

    def __init__(self, number: int, name: str, kind: str, repeated: bool, oneof: str, key_kind: str, later: bool = False) -> None:
        self.number, self.name, self.kind, self.repeated, self.oneof, self.key_kind = number, name, kind, repeated, oneof, key_kind
        self.later = later  # a message that, if it is large, is decoded when somebody looks at it
        self.message: Optional[Type["Message"]] = None
        self.wire = _WIRE.get(kind, _VARINT)
        self.owner: Any = None  # the class that it is a field of

    def __getattr__(self, name: str) -> Any:
        """What protobuf's field descriptors have beyond this."""
        if name.startswith("__") or name == "owner":
            raise AttributeError(name)
        return getattr(Descriptor.of(self.owner).fields_by_name[self.name], name)

    def default(self) -> Any:
        """The value of a scalar that is not set."""
        return _DEFAULT.get(self.kind, 0)

    def check(self, value: Any) -> Any:
        """The value as the field holds it. TypeError when it is of another kind."""
        kind = self.kind
        if kind == "string":
            if isinstance(value, bytes):
                value = value.decode("utf-8")
            if not isinstance(value, str):
                raise TypeError("%r has type %s, but expected one of: bytes, str" % (value, type(value).__name__))
            return value
        if kind == "bytes":
            if isinstance(value, str):
                value = value.encode("utf-8")
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise TypeError("%r has type %s, but expected one of: bytes" % (value, type(value).__name__))
            return bytes(value)
        if kind in ("float", "double"):
            if isinstance(value, (str, bytes)):
                raise TypeError("%r has type %s, but expected a number" % (value, type(value).__name__))
            value = float(value)
            if kind == "float":
                try:
                    value = struct.unpack("<f", struct.pack("<f", value))[0]
                except OverflowError:
                    value = float("inf") if value > 0 else float("-inf")
            return value
        if kind == "bool":
            return bool(value)
        if isinstance(value, (str, bytes)) or isinstance(value, float) and value != int(value):
            raise TypeError("%r has type %s, but expected one of: int" % (value, type(value).__name__))
        value = int(getattr(value, "as_datatype_enum", value))
        low, high = _RANGES.get(self.kind, (value, value))
        if not low <= value <= high:
            raise ValueError("Value out of range: %d is no %s" % (value, self.kind))
        return value

    def encode(self, out: bytearray, value: Any) -> None:
        """Appends a value, without its tag."""
        if self.wire == _VARINT:
            _put_varint(out, int(value) << 1 ^ int(value) >> 63 if self.kind == "sint64" else int(value))
        elif self.wire == _BYTES:
            raw = value.encode("utf-8", "surrogateescape") if self.kind == "string" else value
            _put_varint(out, len(raw))
            out += raw
        else:
            out += struct.pack(_FORMAT[self.kind], value)

    def holds(self, wire: int) -> bool:
        """Whether such a value belongs to the field: others are kept as unknown ones, as protobuf does."""
        if self.message is not None or self.key_kind:
            return wire == _BYTES
        return wire == self.wire or wire == _BYTES and self.repeated

    def decode(self, data: memoryview, at: int) -> Tuple[Any, int]:
        """Reads a scalar value; the place after it."""
        wire = self.wire
        if wire == _VARINT:
            value, at = _get_varint(data, at)
            if self.kind == "bool":
                return bool(value), at
            if self.kind == "sint64":
                return value >> 1 ^ -(value & 1), at
            low, high = _RANGES[self.kind]
            value &= high - low
            return value - (high - low + 1) if value > high else value, at
        if wire == _BYTES:
            part, at = _part(data, at)
            return (str(part, "utf-8", "surrogateescape") if self.kind == "string" else bytes(part)), at
        size = 8 if wire == _FIXED64 else 4
        if at + size > len(data):
            raise DecodeError("Error parsing message: truncated")
        return struct.unpack_from(_FORMAT[self.kind], data, at)[0], at + size


class Repeated(List[Any]):
    """A repeated field."""

    def __init__(self, owner: "Message", field: Field) -> None:
        super().__init__()
        self._owner, self._field = owner, field

    def add(self, **fields: Any) -> Any:
        """Appends a new message."""
        made = self._field.message(**fields)  # type: ignore[misc]
        super().append(made)
        self._owner._touch(self._field)
        return made

    def append(self, value: Any) -> None:
        """Appends a value; of a message, a copy."""
        if self._field.message is not None:
            copy = self._field.message()
            copy.CopyFrom(value)
            value = copy
        else:
            value = self._field.check(value)
        super().append(value)
        self._owner._touch(self._field)

    def extend(self, values: Iterable[Any]) -> None:
        """Appends several."""
        for value in values:
            self.append(value)

    def _scalars(self) -> None:
        if self._field.message is not None:
            raise TypeError("'Repeated' object of messages does not support item assignment")
        self._owner._touch(self._field)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._scalars()
        check = self._field.check
        super().__setitem__(key, [check(one) for one in value] if isinstance(key, slice) else check(value))

    def insert(self, index: Any, value: Any) -> None:
        """Puts a value, which is no message, before another."""
        self._scalars()
        super().insert(index, self._field.check(value))

    def MergeFrom(self, other: Iterable[Any]) -> None:
        """Appends all of another field."""
        self.extend(other)

    def __iadd__(self, values: Iterable[Any]) -> "Repeated":  # type: ignore[misc]
        self.extend(values)
        return self

    def __deepcopy__(self, memo: Any) -> List[Any]:
        return list(self)

    def __reduce__(self) -> Any:
        return list, (list(self),)


class Map(Dict[Any, Any]):
    """A map field. Reading a message that is not there makes it."""

    def __init__(self, owner: "Message", field: Field) -> None:
        super().__init__()
        self._owner, self._field = owner, field

    def __missing__(self, key: Any) -> Any:
        if self._field.message is None:
            value = self._field.default()
        else:
            value = self._field.message()
        super().__setitem__(key, value)
        self._owner._touch(self._field)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._field.message is not None:
            raise ValueError("Direct assignment of submessage not allowed: use map[key].CopyFrom(value)")
        super().__setitem__(key, self._field.check(value))
        self._owner._touch(self._field)

    def GetEntryClass(self) -> Any:
        """The message class of one entry."""
        return Descriptor.entry_class(self._field)

    def get_or_create(self, key: Any) -> Any:
        """The message at a key, made if need be."""
        return self[key]

    def update(self, other: Any = (), **more: Any) -> None:  # type: ignore[override]
        """Takes over all entries of another map."""
        for key, value in dict(other, **more).items():
            if self._field.message is not None:
                self[key].CopyFrom(value)
            else:
                self[key] = value

    MergeFrom = update


class Descriptor:
    """The descriptor of a class, for programs that use the protobuf package."""

    of: Callable[[Any], Any]  # descriptors.py, which needs messages itself, sets both
    entry_class: Callable[[Any], Any]

    def __get__(self, instance: Any, owner: Any) -> Any:
        return type(self).of(owner)


class Message:
    """Base of all messages."""

    DESCRIPTOR = Descriptor()

    _fields: Dict[str, Field] = {}
    _numbers: Dict[int, Field] = {}
    __slots__ = ("_values", "_parent", "_parent_field", "_present", "_unknown", "_encoded")

    def __init__(self, **fields: Any) -> None:
        set_slot = object.__setattr__
        set_slot(self, "_values", {})
        set_slot(self, "_parent", None)
        set_slot(self, "_parent_field", None)
        set_slot(self, "_present", False)
        set_slot(self, "_unknown", b"")
        for name, value in fields.items():
            if value is None:
                continue
            field = self._fields.get(name)
            if field is None:
                raise ValueError('Protocol message %s has no "%s" field.' % (type(self).__name__, name))
            if field.key_kind:
                getattr(self, name).update(value)
            elif field.repeated:
                for item in value:
                    getattr(self, name).add(**item) if isinstance(item, dict) else getattr(self, name).append(item)
            elif field.message is not None:
                target = getattr(self, name)
                target.CopyFrom(field.message(**value) if isinstance(value, dict) else value)
            else:
                setattr(self, name, value)

    def _touch(self, field: Optional[Field] = None) -> None:
        """Notes that something was set: so that it is set in the parent, and others of its oneof are not."""
        if field is not None and field.oneof:
            for other in self._fields.values():
                if other.oneof == field.oneof and other is not field:
                    self._values.pop(other.name, None)
        if not self._present:
            object.__setattr__(self, "_present", True)
        parent = self._parent
        if parent is not None:
            parent._values.setdefault(self._parent_field.name, self)
            parent._touch(self._parent_field)

    def __getattr__(self, name: str) -> Any:
        if name in ("_values", "_unknown"):  # they are not there until what was read is looked at
            return self._decode(name)
        field = type(self)._fields.get(name)
        if field is None:
            raise AttributeError("%s has no field %r" % (type(self).__name__, name))
        value = self._values.get(name)
        if value is not None:
            return value
        if field.key_kind:
            value = self._values[name] = Map(self, field)
        elif field.repeated:
            value = self._values[name] = Repeated(self, field)
        elif field.message is not None:
            value = field.message()
            object.__setattr__(value, "_parent", self)
            object.__setattr__(value, "_parent_field", field)
            if not field.oneof:
                self._values[name] = value
        else:
            return field.default()
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._fields.get(name)
        if field is None:
            raise AttributeError('Assignment not allowed (no field "%s" in protocol message object %s).' % (name, type(self).__name__))
        if field.repeated or field.message is not None:
            raise AttributeError('Assignment not allowed to repeated or message field "%s" in protocol message object.' % name)
        self._values[name] = field.check(value)
        self._touch(field)

    def __delattr__(self, name: str) -> None:
        self.ClearField(name)

    def _is_set(self, field: Field) -> bool:
        value = self._values.get(field.name)
        if value is None:
            return False
        if field.repeated:
            return len(value) > 0
        if field.message is not None:
            return bool(value._present)
        return bool(field.oneof) or value != field.default() or self._keeps_defaults

    _keeps_defaults = False  # proto2: a scalar that was set to its default is written

    def ListFields(self) -> List[Tuple[Field, Any]]:
        """(field, value) of those set, by number."""
        return [(f, self._values[f.name]) for _, f in sorted(self._numbers.items()) if self._is_set(f)]

    def HasField(self, name: str) -> bool:
        """Whether a field, or any of a oneof, is set."""
        field = self._fields.get(name)
        if field is None:
            return self.WhichOneof(name) is not None
        return self._is_set(field)

    def WhichOneof(self, group: str) -> Optional[str]:
        """The name of the field of a oneof that is set."""
        for field in self._fields.values():
            if field.oneof == group and self._is_set(field):
                return field.name
        return None

    def ClearField(self, name: str) -> None:
        """Unsets a field."""
        self._values.pop(name, None)

    def Clear(self) -> None:
        """Unsets all fields."""
        if self._raw() is None:
            self._values.clear()
        else:
            object.__setattr__(self, "_values", {})
            object.__delattr__(self, "_encoded")
        object.__setattr__(self, "_unknown", b"")

    def SetInParent(self) -> None:
        """Notes that this message is set, even if it is empty."""
        self._touch()

    def IsInitialized(self) -> bool:
        """Always: no field is required."""
        return True

    def MergeFrom(self, other: "Message") -> None:
        """Takes over what is set in another message of the type."""
        self.MergeFromString(other.SerializeToString())

    def CopyFrom(self, other: "Message") -> None:
        """Becomes a copy of another message of the type."""
        if not hasattr(other, "SerializeToString"):
            raise TypeError("Parameter to CopyFrom() must be a message, got %s" % type(other).__name__)
        if other is self:
            return
        data = other.SerializeToString()
        self.Clear()
        if len(data) >= _LATER:
            self._parse_later(data)
        else:
            self.MergeFromString(data)
        self._touch()

    def SerializeToString(self, deterministic: bool = False) -> bytes:
        """The message in protobuf's binary form. Entries of maps are in the order of their keys, asked for or not, but in parts that were read and
        that nobody has looked at: these are written as they were read."""
        del deterministic  # it is in any case
        raw = self._raw()
        if raw is not None:
            return raw
        out = bytearray()
        for field, value in self.ListFields():
            tag = field.number << 3
            if field.key_kind:
                for key in sorted(value):
                    entry = bytearray()
                    key_field = Field(1, "key", field.key_kind, False, "", "")
                    _put_varint(entry, 1 << 3 | key_field.wire)
                    key_field.encode(entry, key)
                    item = value[key]
                    if field.message is not None:
                        raw = item.SerializeToString()
                        entry += b"\x12"
                        _put_varint(entry, len(raw))
                        entry += raw
                    else:
                        _put_varint(entry, 2 << 3 | field.wire)
                        field.encode(entry, item)
                    _put_varint(out, tag | _BYTES)
                    _put_varint(out, len(entry))
                    out += entry
            elif field.message is not None:
                for item in value if field.repeated else (value,):
                    raw = item.SerializeToString()
                    _put_varint(out, tag | _BYTES)
                    _put_varint(out, len(raw))
                    out += raw
            elif field.repeated and field.wire != _BYTES:
                packed = bytearray()
                if field.kind in _FORMAT:
                    packed += struct.pack("<%d%s" % (len(value), _FORMAT[field.kind][1]), *value)
                else:
                    for item in value:
                        _put_varint(packed, int(item))
                _put_varint(out, tag | _BYTES)
                _put_varint(out, len(packed))
                out += packed
            else:
                for item in value if field.repeated else (value,):
                    _put_varint(out, tag | field.wire)
                    field.encode(out, item)
        return bytes(out) + self._unknown

    SerializePartialToString = SerializeToString

    def ByteSize(self) -> int:
        """The length of the binary form."""
        return len(self.SerializeToString())

    def ParseFromString(self, data: bytes) -> int:
        """Becomes the message that the bytes encode."""
        self.Clear()
        return self.MergeFromString(data)

    def _parse_later(self, data: bytes) -> None:
        """Becomes the message that the bytes encode, when somebody looks at it. DecodeError comes then."""
        for slot in ("_values", "_unknown"):
            try:
                object.__delattr__(self, slot)
            except AttributeError:  # nobody has looked at what was read before
                pass
        object.__setattr__(self, "_encoded", data)
        self._touch()

    def _raw(self) -> Optional[bytes]:
        """What was read, if nobody has looked at it."""
        try:
            return object.__getattribute__(self, "_encoded")  # type: ignore[no-any-return]
        except AttributeError:
            return None

    def _with_parts(self, **parts: Any) -> "Message":
        """A message to be written and thrown away: it shares its parts with this one, but for some."""
        made = type(self)()
        object.__setattr__(made, "_values", {**self._values, **parts})
        object.__setattr__(made, "_unknown", self._unknown)
        object.__setattr__(made, "_present", True)
        return made

    def _decode_all(self) -> None:
        """Looks at every part."""
        for field, value in self.ListFields():
            if field.message is not None:
                for item in value.values() if field.key_kind else value if field.repeated else (value,):
                    item._decode_all()

    def _decode(self, slot: str) -> Any:
        with _looking:
            try:
                return object.__getattribute__(self, slot)
            except AttributeError:
                pass
            made = type(self)()
            made.MergeFromString(self._encoded)  # who looks again after a DecodeError finds it again
            for value in made._values.values():
                if isinstance(value, (Repeated, Map)):
                    value._owner = self
                elif isinstance(value, Message):
                    object.__setattr__(value, "_parent", self)
            object.__setattr__(self, "_unknown", made._unknown)
            object.__setattr__(self, "_values", made._values)  # last: other threads look for it without the lock
            object.__delattr__(self, "_encoded")
            return object.__getattribute__(self, slot)

    @classmethod
    def FromString(cls, data: bytes) -> Any:
        """A new message of bytes."""
        made = cls()
        made.MergeFromString(data)
        return made

    @classmethod
    def parsed_later(cls, data: bytes) -> Any:
        """A new message of bytes that are known to be one: looked at when somebody asks, if they are many."""
        made = cls()
        if len(data) >= _LATER:
            made._parse_later(data)
        else:
            made.MergeFromString(data)
        return made

    def MergeFromString(self, data: Any) -> int:
        """Takes over what the bytes encode. DecodeError when they encode no message."""
        if isinstance(data, str):
            data = data.encode("latin-1")
        view = memoryview(data)
        self._merge(view, _DEPTH)
        return len(view)

    def _merge(self, data: memoryview, depth: int) -> None:
        if depth < 0:
            raise DecodeError("Error parsing message: more than %d messages within each other" % _DEPTH)
        at, end = 0, len(data)
        object.__setattr__(self, "_present", True)
        values = self._values
        while at < end:
            start = at
            tag, at = _get_varint(data, at)
            wire = tag & 7
            field = self._numbers.get(tag >> 3)
            if field is None or not field.holds(wire):
                at = _skip(data, at, wire)
                object.__setattr__(self, "_unknown", self._unknown + bytes(data[start:at]))
                continue
            if field.message is None and not field.key_kind and wire == field.wire:
                value, at = field.decode(data, at)
                if field.repeated:
                    list.append(getattr(self, field.name), value)
                else:
                    if field.oneof:
                        self._touch(field)
                    values[field.name] = value
                continue
            part, at = _part(data, at)
            if field.key_kind:
                self._merge_entry(field, part, depth)
            elif field.message is None:
                self._merge_packed(field, part)
            elif field.repeated:
                item = field.message()
                item._merge(part, depth - 1)
                list.append(getattr(self, field.name), item)
            else:
                item = getattr(self, field.name)
                if field.later and len(part) >= _LATER and not item._present:
                    item._parse_later(bytes(part))
                    continue
                if field.oneof:
                    self._touch(field)
                    values[field.name] = item
                item._merge(part, depth - 1)

    def _merge_packed(self, field: Field, part: memoryview) -> None:
        target = getattr(self, field.name)
        if field.kind in _FORMAT:
            size = struct.calcsize(_FORMAT[field.kind])
            if len(part) % size:
                raise DecodeError("Error parsing message: %s has %d bytes, which are no whole number of %s" % (field.name, len(part), field.kind))
            list.extend(target, struct.unpack("<%d%s" % (len(part) // size, _FORMAT[field.kind][1]), part))
            return
        at = 0
        while at < len(part):
            value, at = field.decode(part, at)
            list.append(target, value)

    def _merge_entry(self, field: Field, part: memoryview, depth: int) -> None:
        key_field = Field(1, "key", field.key_kind, False, "", "")
        key, at, item, scalar = key_field.default(), 0, field.message() if field.message is not None else None, field.default()
        while at < len(part):
            tag, at = _get_varint(part, at)
            number, wire = tag >> 3, tag & 7
            if number == 1 and wire == key_field.wire:
                key, at = key_field.decode(part, at)
            elif number == 2 and item is not None and wire == _BYTES:
                raw, at = _part(part, at)
                item._merge(raw, depth - 2)
            elif number == 2 and item is None and wire == field.wire:
                scalar, at = field.decode(part, at)
            else:
                at = _skip(part, at, wire)
        dict.__setitem__(getattr(self, field.name), key, scalar if item is None else item)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        if self.SerializeToString() == other.SerializeToString():
            return True
        self._decode_all()  # what was read may be written in another order
        other._decode_all()
        return self.SerializeToString() == other.SerializeToString()

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        from millrace.protos.text_writer import lines_of

        return "".join(lines_of(self))

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self).FromString(self.SerializeToString())

    __copy__ = lambda self: self.__deepcopy__(None)

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)


def _part(data: memoryview, at: int) -> Tuple[memoryview, int]:
    """Bytes that follow their length; the place after them."""
    size, at = _get_varint(data, at)
    if at + size > len(data):
        raise DecodeError("Error parsing message: truncated")
    return data[at : at + size], at + size


def fields_of(data: memoryview) -> Iterator[Tuple[int, memoryview, Optional[memoryview]]]:
    """(number, the whole field, what is in it if that has a length) of each field of a message."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _get_varint(data, at)
        part = None
        if tag & 7 == _BYTES:
            part, at = _part(data, at)
        else:
            at = _skip(data, at, tag & 7)
        yield tag >> 3, data[start:at], part


def put_bytes(out: bytearray, number: int, part: Any) -> None:
    """Adds a field of bytes to a message."""
    _put_varint(out, number << 3 | _BYTES)
    _put_varint(out, len(part))
    out += part


def _skip(data: memoryview, at: int, wire: int) -> int:
    if wire == _VARINT:
        return _get_varint(data, at)[1]
    if wire == _BYTES:
        return _part(data, at)[1]
    if wire in (_FIXED64, _FIXED32):
        at += 8 if wire == _FIXED64 else 4
    else:
        raise DecodeError("Error parsing message: wrong wire type %d" % wire)
    if at > len(data):
        raise DecodeError("Error parsing message: truncated")
    return at


def define(name: str, table: str, registry: Dict[str, Type[Message]], proto2: bool = False) -> Type[Message]:
    """A message class of rows "number name type[@oneof]"; a type may start with * (repeated) or ~ (decoded when looked at, if it is large: it is
    often only handed on), or be map<key,value>."""
    fields: Dict[str, Field] = {}
    for row in table.split(";"):
        if not row.strip():
            continue
        number, field_name, kind = row.split()
        kind, _, oneof = kind.partition("@")
        key_kind = ""
        repeated = kind.startswith("*")
        later = kind.startswith("~")
        kind = kind.lstrip("*~")
        if kind.startswith("map<"):
            key_kind, kind = kind[4:-1].split(",")
            repeated = True
        fields[field_name] = Field(int(number), field_name, kind, repeated, oneof, key_kind, later)
    made: Type[Message] = type(
        name.rsplit(".", 1)[-1],
        (Message,),
        {
            "__slots__": (),
            "_fields": fields,
            "_numbers": {f.number: f for f in fields.values()},
            "_keeps_defaults": proto2,
            "__doc__": "The message %s." % name,
            "__qualname__": name,
            "__module__": "millrace.protos.definitions",
        },
    )
    for field in fields.values():
        field.owner = made
    registry[name] = made
    if "." in name:
        setattr(registry[name.rsplit(".", 1)[0]], name.rsplit(".", 1)[1], made)
    return made
