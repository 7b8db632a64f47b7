# SPDX-License-Identifier: Apache-2.0
"""What a function says of AutoGraph (tensorflow.python.autograph.core.ag_ctx).

The status decides what a tensor says that is used as a Python bool or iterated over: millrace.autograph converts what it can.
"""

from __future__ import annotations

import enum
import functools
import threading
from typing import Any, Callable, List, Optional

from millrace.framework.errors import OperatorNotAllowedInGraphError, at_user_line

_threads = threading.local()


class Status(enum.Enum):
    """Whether AutoGraph is asked for."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A status for a block of code, in this thread."""

    def __init__(self, status: Status, options: Any = None) -> None:
        self.status, self.options = status, options

    def __enter__(self) -> "ControlStatusCtx":
        _stack().append(self)
        return self

    def __exit__(self, *unused: Any) -> None:
        _stack().remove(self)

    def __repr__(self) -> str:
        return "ControlStatusCtx[status=%s, options=%s]" % (self.status, self.options)


def _stack() -> List[ControlStatusCtx]:
    if not hasattr(_threads, "stack"):
        _threads.stack = [ControlStatusCtx(Status.UNSPECIFIED)]
    stack: List[ControlStatusCtx] = _threads.stack
    return stack


def control_status_ctx() -> ControlStatusCtx:
    """The innermost status of this thread."""
    return _stack()[-1]


def do_not_convert(func: Optional[Callable[..., Any]] = None) -> Any:
    """A decorator: the function runs as it is written, with the status DISABLED."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with ControlStatusCtx(Status.DISABLED):
            return func(*args, **kwargs)

    return call


def refusal(task: str, instead: str) -> TypeError:
    """The error of a tensor that is asked for what only its value has."""
    reasons = {
        Status.DISABLED: "is not allowed: AutoGraph is disabled in this function",
        Status.ENABLED: "is not allowed: AutoGraph did not convert this function",
        Status.UNSPECIFIED: "is not allowed in Graph execution",
    }
    return OperatorNotAllowedInGraphError("%s %s. %s" % (task, reasons[control_status_ctx().status], instead))


class Base:
    """tensorflow.python.autograph.pyct.transformer.Base, so that classes of this kind can be stated; NotImplementedError: one is made."""

    def __init__(self, *unused: Any, **kwargs: Any) -> None:
        del kwargs  # whatever they are
        raise at_user_line(NotImplementedError("%s: transformers of programs are not provided; tf.autograph.to_graph converts functions" % type(self).__name__))
