# SPDX-License-Identifier: Apache-2.0
"""Messages in protobuf's text form."""

from __future__ import annotations

import re
from typing import Any, List, NamedTuple

from millrace.protos import definitions, enums
from millrace.protos.message import _DEPTH, DecodeError, Field

_TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[A-Za-z0-9_.+\-/]+)|(?P<mark>[{}\[\]:<>,;])""")
ParseError = DecodeError


def MessageToString(message: Any, **unused: Any) -> str:
    """The text of a message."""
    return str(message)


class _Token(NamedTuple):
    kind: str  # string, word, mark, end
    text: str
    line: int


def _tokens(text: str) -> List[_Token]:
    tokens, at, line = [], 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParseError("line %d: cannot read %r" % (line, text[at : at + 20]))
        if match.lastgroup:
            tokens.append(_Token(match.lastgroup, match.group(), line))
        line += text.count("\n", at, match.end())
        at = match.end()
    tokens.append(_Token("end", "the end", line))
    return tokens


_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_CHARS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?"}


def _string(token: _Token) -> bytes:
    def one(match: Any) -> bytes:
        octal, hexadecimal, short, long, char = match.groups()
        try:
            if octal or hexadecimal:
                return bytes([int(octal, 8) if octal else int(hexadecimal, 16)])
            return chr(int(short or long, 16)).encode("utf-8") if short or long else _CHARS[char]
        except (KeyError, ValueError):
            raise ParseError("line %d: no escape of a string: %s" % (token.line, match.group().decode("utf-8", "replace"))) from None

    return _ESCAPE.sub(one, token.text[1:-1].encode("utf-8"))


def Parse(text: Any, message: Any, **unused: Any) -> Any:
    """Takes over what a text says; the message. ParseError, with the line, when the text is none of this message."""
    try:
        parser = _Parser(_tokens(text.decode() if isinstance(text, bytes) else text))
    except UnicodeDecodeError as error:
        raise ParseError("the text is not UTF-8: %s" % error) from None
    parser.fill(message, _DEPTH)
    if parser.token.kind != "end":
        raise ParseError("line %d: unexpected %r" % (parser.token.line, parser.token.text))
    message.SetInParent()
    return message


Merge = Parse


class _Parser:
    """Reads tokens from first to last; the last is the end, which nothing takes."""

    def __init__(self, tokens: List[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self.token
        if token.kind == "end":
            raise ParseError("line %d: the text ends within a message" % token.line)
        self._at += 1
        return token

    def _take_mark(self, marks: str) -> bool:
        found = self.token.kind == "mark" and self.token.text in marks
        self._at += found
        return found

    def fill(self, message: Any, depth: int) -> None:
        """Fields until a closing bracket or the end."""
        if depth < 0:
            raise ParseError("line %d: more than %d messages within each other" % (self.token.line, _DEPTH))
        while self.token.kind != "end" and not (self.token.kind == "mark" and self.token.text in "}>"):
            if isinstance(message, definitions.Any) and self._take_mark("["):  # type: ignore[attr-defined]
                self._packed(message, depth)
                continue
            name = self._take()
            field = message._fields.get(name.text)
            if field is None:
                raise ParseError("line %d: message %s has no field %r" % (name.line, type(message).__name__, name.text))
            self._take_mark(":")
            if field.repeated and not field.key_kind and self._take_mark("["):
                while not self._take_mark("]"):
                    self._value(message, field, name, depth)
                    self._take_mark(",")
            else:
                self._value(message, field, name, depth)
            self._take_mark(",;")

    def _packed(self, message: Any, depth: int) -> None:
        """The message in an Any, behind its type in brackets."""
        url = self._take()
        self._close("]")
        kind = definitions._registry.get(url.text.rpartition("/tensorflow.")[2])
        if kind is None:
            raise ParseError("line %d: no message has the type %r" % (url.line, url.text))
        self._take_mark(":")
        packed = kind()
        self._message(packed, depth)
        message.type_url, message.value = url.text, packed.SerializeToString()
        self._take_mark(",;")

    def _value(self, message: Any, field: Any, name: _Token, depth: int) -> None:
        try:
            if field.key_kind:
                self._entry(field, getattr(message, field.name), depth)
            elif field.message is not None:
                target = getattr(message, field.name).add() if field.repeated else getattr(message, field.name)
                target.SetInParent()
                self._message(target, depth)
            elif field.repeated:
                getattr(message, field.name).append(self._scalar(field))
            else:
                setattr(message, field.name, self._scalar(field))
        except ParseError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise ParseError("line %d: %s: %s" % (name.line, field.name, error)) from None

    def _open(self) -> str:
        opened = self._take()
        if opened.kind != "mark" or opened.text not in "{<":
            raise ParseError("line %d: wanted { and got %r" % (opened.line, opened.text))
        return "}" if opened.text == "{" else ">"

    def _close(self, mark: str) -> None:
        closed = self._take()
        if closed.text != mark or closed.kind != "mark":
            raise ParseError("line %d: wanted %s and got %r" % (closed.line, mark, closed.text))

    def _message(self, target: Any, depth: int) -> None:
        mark = self._open()
        self.fill(target, depth - 1)
        self._close(mark)

    def _entry(self, field: Any, target: Any, depth: int) -> None:
        mark = self._open()
        key_field = Field(1, "key", field.key_kind, False, "", "")
        key, value = key_field.default(), field.message() if field.message is not None else field.default()
        while not (self.token.kind == "mark" and self.token.text in "}>"):
            name = self._take()
            self._take_mark(":")
            if name.text == "key":
                key = key_field.check(self._scalar(key_field))
            elif name.text != "value":
                raise ParseError("line %d: an entry of %s has a key and a value, no %r" % (name.line, field.name, name.text))
            elif field.message is not None:
                self._message(value, depth - 1)
            else:
                value = self._scalar(field)
            self._take_mark(",;")
        self._close(mark)
        if field.message is not None:
            target[key].CopyFrom(value)
        else:
            target[key] = value

    def _scalar(self, field: Any) -> Any:
        token = self._take()
        text = token.text
        if token.kind == "mark":
            raise ParseError("line %d: wanted a value of %s and got %r" % (token.line, field.name, text))
        if token.kind == "string":
            value = _string(token)
            while self.token.kind == "string":
                value += _string(self._take())
            return value
        if field.kind in ("string", "bytes"):
            raise ParseError("line %d: wanted a string for %s and got %r" % (token.line, field.name, text))
        if field.kind == "bool":
            if text not in _BOOLS:
                raise ParseError("line %d: wanted true or false for %s and got %r" % (token.line, field.name, text))
            return _BOOLS[text]
        if field.kind in ("float", "double"):
            return float(text if text.lstrip("+-").lower().startswith("inf") else text.rstrip("fF"))
        if field.kind == "enum" and not re.match(r"^[+-]?\d+$", text):
            return _enum(field, token)
        return int(text, 0)


_BOOLS = {"true": True, "True": True, "t": True, "1": True, "false": False, "False": False, "f": False, "0": False}


def _enum(field: Any, token: _Token) -> int:
    enum = enums.of_field(field.owner.__qualname__, field.name)
    if enum is not None and token.text in enum.keys():
        return enum.Value(token.text)
    for cls in definitions._registry.values():
        value = getattr(cls, token.text, None)
        if isinstance(value, int):
            return value
    raise ParseError("line %d: %s has no value %r" % (token.line, field.name, token.text))
