# SPDX-License-Identifier: Apache-2.0
"""What Python took away since programs were written for TensorFlow 1.x: `python -m millrace.compat` puts it back."""

from __future__ import annotations

import base64
import collections
import collections.abc
import fractions
import importlib
import inspect
import math
import os
import threading
import time
import urllib
from typing import Any

_ArgSpec = collections.namedtuple("_ArgSpec", ["args", "varargs", "keywords", "defaults"])
_ArgSpec.__name__ = "ArgSpec"


def _getargspec(function: Any) -> Any:
    return _ArgSpec(*inspect.getfullargspec(function)[:4])


def _of_urllib(name: str) -> Any:
    if name not in ("error", "parse", "request", "response"):
        raise AttributeError("module 'urllib' has no attribute '%s'" % name)
    return importlib.import_module("urllib." + name)  # which TensorFlow's import brought along


def install() -> None:
    """Adds what this Python lacks."""
    import errno

    removed = [
        (collections, {name: getattr(collections.abc, name) for name in collections.abc.__all__}),
        (time, {"clock": time.process_time}),
        (inspect, {"getargspec": _getargspec}),
        (fractions, {"gcd": math.gcd}),
        (base64, {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes}),
        (threading.Thread, {"isAlive": threading.Thread.is_alive}),
        (os, {"errno": errno}),
        (urllib, {"__getattr__": _of_urllib}),
    ]
    for owner, names in removed:
        for name, value in names.items():
            if not hasattr(owner, name):
                setattr(owner, name, value)
