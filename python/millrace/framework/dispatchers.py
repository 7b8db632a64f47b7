# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.dispatch: functions of tensors that a program's own classes take part in.

A function decorated with add_dispatch_support is called as it is; where it raises TypeError or ValueError, the dispatchers that it has are asked in
turn, and the first result of one that knows the arguments is what the call gives.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Tuple, Type, Union

from millrace.framework.errors import at_user_line

_Types = Union[Type[Any], Tuple[Type[Any], ...]]


class OpDispatcher:
    """What may take over calls of a function: `handle` gives the result, or NOT_SUPPORTED where the arguments are none of its own."""

    NOT_SUPPORTED = object()

    def handle(self, args: Any, kwargs: Dict[str, Any]) -> Any:
        """The result of the function for these arguments."""
        del args, kwargs  # none are its own
        return self.NOT_SUPPORTED

    def register(self, op: Callable[..., Any]) -> None:
        """Lets it take over calls of a function. AssertionError: the function is not decorated with add_dispatch_support."""
        if not hasattr(op, "_tf_dispatchers"):
            raise at_user_line(AssertionError("Dispatching not enabled for %r: decorate it with add_dispatch_support" % (op,)))
        op._tf_dispatchers.append(self)


class _ByTypes(OpDispatcher):
    def __init__(self, override: Callable[..., Any], types: _Types) -> None:
        self._override, self._types = override, types

    def _concerns(self, value: Any) -> bool:
        parts = value if isinstance(value, (list, tuple)) else ()
        return isinstance(value, self._types) or any(isinstance(part, self._types) for part in parts)

    def handle(self, args: Any, kwargs: Dict[str, Any]) -> Any:
        """What the override gives where an argument, or an element of a list, is of the types."""
        if any(map(self._concerns, args)) or any(map(self._concerns, kwargs.values())):
            return self._override(*args, **kwargs)
        return self.NOT_SUPPORTED


def dispatch(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the first dispatcher of a function that knows the arguments gives, else OpDispatcher.NOT_SUPPORTED."""
    for dispatcher in op._tf_dispatchers:  # type: ignore[attr-defined]
        made = dispatcher.handle(args, kwargs)
        if made is not OpDispatcher.NOT_SUPPORTED:
            return made
    return OpDispatcher.NOT_SUPPORTED


def add_dispatch_list(target: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which can have dispatchers from now on; it has to call dispatch itself."""
    target._tf_dispatchers = []  # type: ignore[attr-defined]
    return target


def add_dispatch_support(target: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls that end in TypeError or ValueError its dispatchers may take over."""

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return target(*args, **kwargs)
        except (TypeError, ValueError):
            made = dispatch(call, *args, **kwargs)
            if made is OpDispatcher.NOT_SUPPORTED:
                raise
            return made

    return add_dispatch_list(call)


def dispatch_for_types(op: Callable[..., Any], *types: Type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of the function that does for these types what `op` does for tensors. AssertionError: its parameters are others than those of op."""

    def decorator(override: Callable[..., Any]) -> Callable[..., Any]:
        wanted, found = inspect.getfullargspec(inspect.unwrap(op)), inspect.getfullargspec(inspect.unwrap(override))
        if (wanted.args, wanted.varargs, wanted.varkw) != (found.args, found.varargs, found.varkw):
            raise at_user_line(
                AssertionError("The decorated function's signature must exactly match the signature of the function: %s, got %s" % (wanted.args, found.args))
            )
        _ByTypes(override, types).register(op)
        return override

    return decorator
