# SPDX-License-Identifier: Apache-2.0
"""tf.compat: strings of both Pythons. `python -m millrace.compat program.py` runs a program that imports tensorflow."""

from __future__ import annotations

import collections.abc as collections_abc  # tensorflow.python.util.compat has it
import contextlib as _contextlib
import datetime as _datetime
import numbers as _numbers
import os as _os
from typing import Any, Iterator

import numpy as _np


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError("Expected binary or unicode string, got %r" % (bytes_or_text,))


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is."""
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    raise TypeError("Expected binary or unicode string, got %r" % (bytes_or_text,))


as_str = as_text


def as_str_any(value: Any) -> str:
    """Anything as text."""
    return as_str(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> str:
    """A path object as text."""
    return as_str_any(_os.fspath(path))


bytes_or_text_types = (bytes, str)
integral_types = (_numbers.Integral, _np.integer)
real_types = (_numbers.Real, _np.integer, _np.floating)
complex_types = (_numbers.Complex, _np.number)


_FORWARD_COMPATIBILITY_HORIZON = _datetime.date(2019, 8, 21)  # that of 1.15
_horizon = [_FORWARD_COMPATIBILITY_HORIZON]


def _update_forward_compatibility_date_number() -> None:
    """Reads again how many days later than that a day may be: TF_FORWARD_COMPATIBILITY_DELTA_DAYS."""
    _horizon[0] = _FORWARD_COMPATIBILITY_HORIZON + _datetime.timedelta(days=int(_os.environ.get("TF_FORWARD_COMPATIBILITY_DELTA_DAYS") or 0))


_update_forward_compatibility_date_number()


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether graphs may use what TensorFlow had on a day: it is before that of 1.15, or of forward_compatibility_horizon."""
    return _horizon[-1] > _datetime.date(year, month, day)


@_contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """A context in which forward_compatible compares with another day."""
    _horizon.append(_datetime.date(year, month, day))
    try:
        yield
    finally:
        _horizon.pop()


def __getattr__(name: str) -> Any:
    if name == "v1":
        import millrace

        return millrace
    if name == "v2":
        from millrace import names

        return names.find("compat.v2")
    if name in ("dimension_at_index", "dimension_value"):
        import millrace

        return getattr(millrace, name)
    raise AttributeError("module 'millrace.compat' has no attribute %r" % name)
