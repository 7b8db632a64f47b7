# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.eager.execution_callbacks: what is told of operations that run without a graph. There are none."""

from __future__ import annotations

import contextlib
import enum
from typing import Any, Iterator


class ExecutionCallback(enum.Enum):
    """What to do where such an operation gives infinities or no numbers."""

    IGNORE, PRINT, RAISE, WARN = "ignore", "print", "raise", "warn"


@contextlib.contextmanager
def errstate(inf_or_nan: Any = None) -> Iterator[None]:
    """A context that changes nothing in graphs; tf.add_check_numerics_ops sees to these."""
    if inf_or_nan is not None:
        ExecutionCallback(inf_or_nan)
    yield
