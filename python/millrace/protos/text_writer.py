# SPDX-License-Identifier: Apache-2.0
"""Messages in protobuf's text form."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from millrace.protos import enums

_ESCAPED = np.array([chr(i) if 32 <= i < 127 else "\\%03o" % i for i in range(256)], "S4")  # shorter ones end in zeros
_ESCAPED[[10, 13, 9, 34, 39, 92]] = [b"\\n", b"\\r", b"\\t", b'\\"', b"\\'", b"\\\\"]


def _escape(raw: bytes) -> str:
    made = _ESCAPED[np.frombuffer(raw, np.uint8)]  # constants are large: no loop of ours over their bytes
    return '"%s"' % made.tobytes().translate(None, b"\0").decode("ascii")


def _scalar_text(field: Any, value: Any) -> str:
    if field.kind == "string":
        return _escape(value.encode("utf-8", "surrogateescape"))
    if field.kind == "bytes":
        return _escape(value)
    if field.kind == "bool":
        return "true" if value else "false"
    if field.kind == "float":
        return "%.9g" % value if float("%.7g" % value) != value else "%.7g" % value
    enum = enums.of_field(field.owner.__qualname__, field.name) if field.kind == "enum" else None
    return str(value) if enum is None else enum.text(value)


def lines_of(message: Any, indent: str = "") -> Iterator[str]:
    """The lines of a message in protobuf's text form."""
    packed = message._packed() if hasattr(message, "_packed") else None
    if packed is not None:
        yield "%s[%s] {\n" % (indent, message.type_url)
        yield from lines_of(packed, indent + "  ")
        yield "%s}\n" % indent
        return
    for field, value in message.ListFields():
        if field.key_kind:
            key_field = type(field)(1, "key", field.key_kind, False, "", "")
            for key in sorted(value):
                yield "%s%s {\n%s  key: %s\n" % (indent, field.name, indent, _scalar_text(key_field, key))
                if field.message is not None:
                    yield "%s  value {\n" % indent
                    yield from lines_of(value[key], indent + "    ")
                    yield "%s  }\n" % indent
                else:
                    yield "%s  value: %s\n" % (indent, _scalar_text(field, value[key]))
                yield "%s}\n" % indent
            continue
        for item in value if field.repeated else (value,):
            if field.message is not None:
                yield "%s%s {\n" % (indent, field.name)
                yield from lines_of(item, indent + "  ")
                yield "%s}\n" % indent
            else:
                yield "%s%s: %s\n" % (indent, field.name, _scalar_text(field, item))
