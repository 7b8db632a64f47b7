# SPDX-License-Identifier: Apache-2.0
"""Arguments that have had two names or two places in the history of the interface."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, TypeVar

from millrace.framework.errors import at_user_line


_F = TypeVar("_F", bound=Callable[..., Any])


def either(new_name: str, new: Any, old_name: str, old: Any, default: Any = None) -> Any:
    """The one of two spellings of an argument that was given. ValueError when both were."""
    if old is not None and new is not None and old is not new:
        raise at_user_line(ValueError("Cannot specify both '%s' and '%s'" % (old_name, new_name)))
    value = new if new is not None else old
    return default if value is None else value


def given(function: str, **spellings: Any) -> Any:
    """The one of several spellings of an argument that was given. TypeError when none was, ValueError when two were."""
    found = [name for name, value in spellings.items() if value is not None]
    if not found:
        raise at_user_line(TypeError("%s() missing the argument '%s'" % (function, next(iter(spellings)))))
    if len(found) > 1:
        raise at_user_line(ValueError("%s(): cannot specify both '%s' and '%s'" % (function, found[0], found[1])))
    return spellings[found[0]]


def is_axis(value: Any) -> bool:
    """Whether a first argument is an axis (0.x) and not a tensor or a list (1.x)."""
    return isinstance(value, int) and not isinstance(value, bool)


def bind(function: str, names: Sequence[str], args: Sequence[Any], keywords: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of a call by name, where the dialect decides what the places are called."""
    if len(args) > len(names):
        raise at_user_line(TypeError("%s() takes at most %d arguments, got %d" % (function, len(names), len(args))))
    found = dict(zip(names, args))
    for key in keywords:
        if key in found:
            raise at_user_line(TypeError("%s() got multiple values for argument '%s'" % (function, key)))
    found.update(keywords)
    return found


def shown_as(signature: Callable[..., Any]) -> Callable[[_F], _F]:
    """A decorator that gives a function of several dialects the signature that help and inspect show: that of today's."""

    def decorate(function: _F) -> _F:
        function.__wrapped__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def refuse(keywords: Dict[str, Any], function: str) -> None:
    """TypeError for keywords that a function does not have."""
    if keywords:
        raise at_user_line(TypeError("%s() got an unexpected keyword argument '%s'" % (function, next(iter(keywords)))))
