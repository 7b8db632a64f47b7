# SPDX-License-Identifier: Apache-2.0
"""Where in a program something was said: objects with a file and a line, and what held while which operations were made."""

from __future__ import annotations

import bisect
import collections
import sys
from typing import Any, List, Optional, Tuple

import millrace._core as _core

StackFrame = collections.namedtuple("StackFrame", ["filename", "lineno", "name", "globals", "func_start_lineno"])


def extract_stack(limit: Optional[int] = -1) -> List[StackFrame]:
    """The frames of the program, the outermost first, the caller's last; at most `limit` of them."""
    frames: List[StackFrame] = []
    frame: Any = sys._getframe(1)
    while frame is not None and (limit is None or limit < 0 or len(frames) < limit):
        code = frame.f_code
        frames.append(StackFrame(code.co_filename, frame.f_lineno, code.co_name, frame.f_globals, code.co_firstlineno))
        frame = frame.f_back
    return frames[::-1]


class TraceableObject:
    """An object with the place where it came from."""

    SUCCESS, HEURISTIC_USED, FAILURE = range(3)

    def __init__(self, obj: Any, filename: Optional[str] = None, lineno: Optional[int] = None) -> None:
        self.obj, self.filename, self.lineno = obj, filename, lineno

    def set_filename_and_line_from_caller(self, offset: int = 0) -> int:
        """Takes the place of the caller's line, or of one `offset` calls further out; the outermost where there are fewer."""
        frames = extract_stack()[:-1]
        if not frames:
            return self.FAILURE
        frame = frames[max(len(frames) - 1 - offset, 0)]
        self.filename, self.lineno = frame.filename, frame.lineno
        return self.SUCCESS if offset < len(frames) else self.HEURISTIC_USED

    def copy_metadata(self) -> "TraceableObject":
        """The place without the object."""
        return type(self)(None, self.filename, self.lineno)


Entries = Tuple[TraceableObject, ...]


class Places:
    """Scopes of one kind that a graph is in, the innermost first, and those that it was in before: by the number of operations then."""

    def __init__(self) -> None:
        self.now: Entries = ()
        self._marks: List[Tuple[int, Entries]] = []

    def put(self, count: int, entries: Entries) -> Entries:
        """Makes these the scopes of the operations after a number of them. Those that held before."""
        before, self.now = self.now, entries
        while self._marks and self._marks[-1][0] >= count:
            self._marks.pop()
        if entries is not (self._marks[-1][1] if self._marks else ()):
            self._marks.append((count, entries))
        return before

    def enter(self, count: int, obj: Any) -> Entries:
        """Goes into a scope on the program's line. Those that held before."""
        return self.put(count, (TraceableObject(obj, *_core.user_location()), *self.now))

    leave = put

    def of(self, number: int) -> Entries:
        """The scopes of the operation of a number, from 1."""
        place = bisect.bisect_left([count for count, _ in self._marks], number)
        return self._marks[place - 1][1] if place else ()
