# SPDX-License-Identifier: Apache-2.0
"""Messages in protobuf's text form."""
from __future__ import annotations

import re
from typing import Any, List

from millrace.protos import definitions
from millrace.protos.message import DecodeError, _ENUM_NAMES

_TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[A-Za-z0-9_.+\-/]+)|(?P<mark>[{}\[\]:<>,;])""")
ParseError = DecodeError


def MessageToString(message: Any, **unused: Any) -> str:
    """The text of a message."""
    return str(message)


def _tokens(text: str) -> List[Any]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError("cannot read text at %r" % text[at:at + 20])
        if match.lastgroup:
            tokens.append((match.lastgroup, match.group()))
        at = match.end()
    return tokens


def _string(token: str) -> bytes:
    return token[1:-1].encode("utf-8").decode("unicode_escape").encode("latin-1")


def Parse(text: Any, message: Any, **unused: Any) -> Any:
    """Takes over what a text says; the message."""
    tokens = _tokens(text.decode() if isinstance(text, bytes) else text)
    end = _fill(message, tokens, 0)
    if end != len(tokens):
        raise ParseError("unexpected %r" % tokens[end][1])
    message.SetInParent()
    return message


Merge = Parse


def _scalar(field: Any, tokens: List[Any], at: int) -> Any:
    kind, text = tokens[at]
    at += 1
    if kind == "string":
        value: Any = _string(text)
        while at < len(tokens) and tokens[at][0] == "string":
            value += _string(tokens[at][1])
            at += 1
        return value, at
    if field.kind == "bool":
        return text in ("true", "True", "t", "1"), at
    if field.kind in ("float", "double"):
        return float(text.rstrip("f") if text not in ("inf", "-inf") else text), at
    if field.kind == "enum" and not re.match(r"^[+-]?\d+$", text):
        names = {v: k for k, v in _ENUM_NAMES.get(field.name, {}).items()}
        if text in names:
            return names[text], at
        for cls in definitions._registry.values():
            if isinstance(getattr(cls, text, None), int):
                return getattr(cls, text), at
        raise ParseError("unknown enum value %r" % text)
    return int(text, 0), at


def _fill(message: Any, tokens: List[Any], at: int) -> int:
    while at < len(tokens) and tokens[at][1] not in "}>":
        name = tokens[at][1]
        field = message._fields.get(name)
        if field is None:
            raise ParseError("message %s has no field %r" % (type(message).__name__, name))
        at += 1
        if tokens[at][1] == ":":
            at += 1
        if tokens[at][1] == "[":
            at += 1
            while tokens[at][1] != "]":
                value, at = _scalar(field, tokens, at)
                getattr(message, name).append(value)
                if tokens[at][1] == ",":
                    at += 1
            at += 1
        elif tokens[at][1] in "{<":
            if field.key_kind:
                at = _fill_entry(field, getattr(message, name), tokens, at + 1)
            else:
                target = getattr(message, name).add() if field.repeated else getattr(message, name)
                target.SetInParent()
                at = _fill(target, tokens, at + 1) + 1
        else:
            value, at = _scalar(field, tokens, at)
            if field.repeated:
                getattr(message, name).append(value)
            else:
                setattr(message, name, value)
        if at < len(tokens) and tokens[at][1] in ",;":
            at += 1
    return at


def _fill_entry(field: Any, target: Any, tokens: List[Any], at: int) -> int:
    key: Any = ""
    while tokens[at][1] not in "}>":
        name = tokens[at][1]
        at += 1
        if tokens[at][1] == ":":
            at += 1
        if name == "key":
            key = _string(tokens[at][1]).decode() if tokens[at][0] == "string" else int(tokens[at][1])
            at += 1
        elif field.message is not None:
            at = _fill(target[key], tokens, at + 1) + 1
        else:
            value, at = _scalar(field, tokens, at)
            target[key] = value
    return at + 1
