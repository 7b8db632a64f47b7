# SPDX-License-Identifier: Apache-2.0
"""Which session is the default one of a thread."""

from __future__ import annotations

import threading
from typing import Any, List

import millrace._core as _core


class _Sessions(threading.local):
    def __init__(self) -> None:
        self.stack: List[Any] = []


sessions = _Sessions()


def get_default_session() -> Any:
    """The innermost session that is default in this thread, or None."""
    return sessions.stack[-1] if sessions.stack else None


def leave_interactive() -> bool:
    """Takes the graphs of interactive sessions off the stack. False when other contexts are there."""
    interactive = [s for s in sessions.stack if getattr(s, "_pushed", False)]
    if len(interactive) != _core.stack_depth():
        return False
    for session in interactive:
        _core.pop_graph()
        session._pushed = False
    return True
