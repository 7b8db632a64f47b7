# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.c_api_util: TensorFlow's own wrappers of its C API, which Millrace does not have. Each name but that of statuses says so."""

from __future__ import annotations

from typing import Any

from millrace.framework.errors import ScopedTFStatus  # noqa: F401
from millrace.framework.missing import Missing


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Missing("python.framework.c_api_util." + name, "the classes of tf, which are made of the C API's objects")
