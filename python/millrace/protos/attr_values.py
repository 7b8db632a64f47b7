# SPDX-License-Identifier: Apache-2.0
"""AttrValue messages as Python values."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.protos import definitions


def _one(kind: str, value: Any) -> Any:
    return dtypes.from_number(value) if kind == "type" else value


def to_python(encoded: bytes) -> Any:
    """The value of an encoded AttrValue: types become DTypes, strings bytes, shapes and tensors messages."""
    attr = definitions.AttrValue.FromString(encoded)
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind != "list":
        return _one(kind, getattr(attr, kind))
    for name in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
        values = getattr(attr.list, name)
        if values:
            return [_one(name, v) for v in values]
    return []
