# SPDX-License-Identifier: Apache-2.0
"""Messages compared: tensorflow.python.util.protobuf.compare."""

from __future__ import annotations

import copy
from typing import Any

_DECIMALS = {"float": 6, "double": 7}


def equal(a: Any, b: Any) -> bool:
    """Whether two messages have the same fields with the same values."""
    return type(a) is type(b) and bool(a == b)


def normalize(message: Any) -> Any:
    """Rounds floating point fields to six or seven decimals, so that text and computed numbers compare; the message."""
    for field, value in message.ListFields():
        if field.message is not None:
            for part in value.values() if field.key_kind else value if field.repeated else (value,):
                normalize(part)
        elif field.kind in _DECIMALS and not field.key_kind:
            decimals = _DECIMALS[field.kind]
            if field.repeated:
                value[:] = [round(v, decimals) for v in value]
            else:
                setattr(message, field.name, round(value, decimals))
    return message


def assert_equal(test: Any, a: Any, b: Any, check_initialized: bool = True, normalize_numbers: bool = False, msg: Any = None) -> None:
    """Fails a test unless messages are equal; the failure shows where they differ. Either may be given as text."""
    from millrace.protos import text_format

    if isinstance(a, str):
        a = text_format.Merge(a, type(b)())
    if isinstance(b, str):
        b = text_format.Merge(b, type(a)())
    if check_initialized and not (a.IsInitialized() and b.IsInitialized()):
        raise AssertionError("a message lacks required fields")
    if normalize_numbers:
        a, b = normalize(copy.deepcopy(a)), normalize(copy.deepcopy(b))
    test.assertMultiLineEqual(str(a), str(b), msg)


ProtoEq, assertProtoEqual, NormalizeNumberFields = equal, assert_equal, normalize
