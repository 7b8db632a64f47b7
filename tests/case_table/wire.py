# SPDX-License-Identifier: Apache-2.0
"""Reads as much of OpList and KernelList as the case table needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from dtypes import BY_NUMBER, DType

Value = Any  # int or bytes


@dataclasses.dataclass
class Arg:
    name: str = ""
    type: int = 0
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)


@dataclasses.dataclass
class Attr:
    name: str = ""
    kind: str = ""
    default: DType | None = None  # of a type attribute
    has_default: bool = False
    allowed: list[DType] | None = None


@dataclasses.dataclass
class Op:
    name: str = ""
    inputs: list[Arg] = dataclasses.field(default_factory=list)
    outputs: list[Arg] = dataclasses.field(default_factory=list)
    attrs: dict[str, Attr] = dataclasses.field(default_factory=dict)
    deprecated_at: int = 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: Value
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def _types(attr_value: bytes) -> list[DType]:
    found: list[DType] = []
    for number, value in fields(attr_value):
        if number == 6 and isinstance(value, int):
            found += [BY_NUMBER[value]] if value in BY_NUMBER else []
        elif number == 1 and isinstance(value, bytes):
            for inner, element in fields(value):
                if inner != 6:
                    continue
                numbers = [element] if isinstance(element, int) else _packed(element)
                found += [BY_NUMBER[n] for n in numbers if n in BY_NUMBER]
    return found


def _packed(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        numbers.append(value)
    return numbers


def _arg(data: bytes) -> Arg:
    arg = Arg()
    for number, value in fields(data):
        if number == 3:
            arg.type = int(value)
        elif number == 16:
            arg.is_ref = bool(value)
        elif number in (1, 4, 5, 6):
            setattr(arg, {1: "name", 4: "type_attr", 5: "number_attr", 6: "type_list_attr"}[number], bytes(value).decode())
    return arg


def _attr(data: bytes) -> Attr:
    attr = Attr()
    for number, value in fields(data):
        if number == 1:
            attr.name = bytes(value).decode()
        elif number == 2:
            attr.kind = bytes(value).decode()
        elif number == 3:
            attr.has_default = True
            types = _types(bytes(value)) if attr.kind == "type" else []
            attr.default = types[0] if types else None
        elif number == 7 and attr.kind in ("type", "list(type)"):
            attr.allowed = _types(bytes(value))
    return attr


def parse_ops(data: bytes) -> dict[str, Op]:
    ops = {}
    for _, encoded in fields(data):
        op = Op()
        for number, value in fields(bytes(encoded)):
            if number == 1:
                op.name = bytes(value).decode()
            elif number == 2:
                op.inputs.append(_arg(bytes(value)))
            elif number == 3:
                op.outputs.append(_arg(bytes(value)))
            elif number == 4:
                attr = _attr(bytes(value))
                op.attrs[attr.name] = attr
            elif number == 8:
                op.deprecated_at = next((int(v) for n, v in fields(bytes(value)) if n == 1), 0)
        ops[op.name] = op
    return ops


@dataclasses.dataclass
class Kernel:
    op: str = ""
    device: str = ""
    types: dict[str, list[DType]] = dataclasses.field(default_factory=dict)


def parse_kernels(data: bytes) -> list[Kernel]:
    kernels = []
    for _, encoded in fields(data):
        kernel = Kernel()
        for number, value in fields(bytes(encoded)):
            if number == 1:
                kernel.op = bytes(value).decode()
            elif number == 2:
                kernel.device = bytes(value).decode()
            elif number == 3:
                parts = dict(fields(bytes(value)))
                kernel.types[bytes(parts[1]).decode()] = _types(bytes(parts[2]))
        kernels.append(kernel)
    return kernels
