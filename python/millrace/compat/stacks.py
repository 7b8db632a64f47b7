# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.tf_stack, framework.traceable_stack and framework.registry: where in a program something was made."""

from __future__ import annotations

import linecache
from typing import Any, Dict, Iterator, List, Optional, Tuple

from millrace.framework.places import StackFrame, TraceableObject, extract_stack

TB_FILENAME, TB_LINENO, TB_FUNCNAME, TB_CODEDICT = range(4)


def convert_stack(stack: Any, include_func_start_lineno: bool = False) -> Tuple[Any, ...]:
    """(file, line's number, function, line) of each frame, and where the function begins."""
    made = []
    for frame in stack:
        linecache.checkcache(frame.filename)
        line = linecache.getline(frame.filename, frame.lineno, frame.globals).strip() or None
        made.append((frame.filename, frame.lineno, frame.name, line) + ((frame.func_start_lineno,) if include_func_start_lineno else ()))
    return tuple(made)


class TraceableStack:
    """A stack of objects with the places where they were pushed."""

    def __init__(self, existing_stack: Any = None) -> None:
        self._stack: List[TraceableObject] = list(existing_stack or ())

    def push_obj(self, obj: Any, offset: int = 0) -> int:
        """Puts an object on top."""
        made = TraceableObject(obj)
        self._stack.append(made)
        return made.set_filename_and_line_from_caller(offset + 1)

    def pop_obj(self) -> Any:
        """Takes the object on top away."""
        return self._stack.pop().obj

    def peek_top_obj(self) -> Any:
        """The object on top."""
        return self._stack[-1].obj

    def peek_objs(self) -> Iterator[Any]:
        """The objects from the top."""
        return (made.obj for made in reversed(self._stack))

    def peek_traceable_objs(self) -> Iterator[TraceableObject]:
        """The objects with their places from the top."""
        return reversed(self._stack)

    def __len__(self) -> int:
        return len(self._stack)

    def copy(self) -> "TraceableStack":
        """Another stack with the same objects."""
        return TraceableStack(self._stack)


class Registry:
    """Objects by their names, each of which is given once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Dict[str, Tuple[Any, StackFrame]] = {}

    def register(self, candidate: Any, name: Optional[str] = None) -> None:
        """Adds an object under a name, or its own. KeyError where there is one already."""
        name = name or candidate.__name__
        if name in self._found:
            place = self._found[name][1]
            raise KeyError(
                "Registering two %s with name '%s'! (Previous registration was in %s %s:%d)" % (self._name, name, place.name, place.filename, place.lineno)
            )
        self._found[name] = candidate, extract_stack(2)[0]

    def list(self) -> Any:
        """The names."""
        return self._found.keys()

    def lookup(self, name: Any) -> Any:
        """The object of a name. LookupError where there is none."""
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self._found:
            raise LookupError("%s registry has no entry for: %s" % (self._name, name))
        return self._found[name][0]
