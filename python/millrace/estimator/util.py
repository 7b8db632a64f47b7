# SPDX-License-Identifier: Apache-2.0
"""What functions want to be given."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Tuple

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def fn_args(fn: Any) -> Tuple[str, ...]:
    """The names of a function's, a method's or a callable object's arguments that are still to be given."""
    if isinstance(fn, functools.partial):
        return tuple(name for name in fn_args(fn.func)[len(fn.args) :] if name not in fn.keywords)
    return tuple(p.name for p in inspect.signature(fn).parameters.values() if p.kind in _NAMED)
