# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.test_ops: ops that TensorFlow registers in its own tests alone. Millrace does not have them: each name says so."""

from __future__ import annotations

from typing import Any

from millrace.framework.missing import Missing


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Missing("test_ops." + name, "an op of the library")
