# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.tf_decorator and decorator_utils: decorated functions that know what they decorate."""

from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, List, Tuple

_TAKEN_OVER = ("__name__", "__qualname__", "__module__")


class TFDecorator:
    """What is known of one decoration: its name, what it decorates, its documentation, and the signature that it shows, if another. Callable
    as the decorated function is."""

    def __init__(self, decorator_name: str, target: Any, decorator_doc: str = "", decorator_argspec: Any = None) -> None:
        self._decorated_target = target
        self._name, self._doc, self._argspec = decorator_name, decorator_doc, decorator_argspec
        for name in ("__name__", "__qualname__"):
            if hasattr(target, name):
                setattr(self, name, getattr(target, name))
        self.__doc__ = decorator_doc or getattr(target, "__doc__", None) or ""

    @property
    def decorated_target(self) -> Any:
        """What it decorates."""
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target: Any) -> None:
        self._decorated_target = target

    decorator_name = property(lambda self: self._name, doc="The name of the decorator.")
    decorator_doc = property(lambda self: self._doc, doc="What it says instead of the function's documentation.")
    decorator_argspec = property(lambda self: self._argspec, doc="The arguments that it says to take, or None.")

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.decorated_target.__get__(instance, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.decorated_target(*args, **kwargs)


def make_decorator(target: Any, decorator_func: Any, decorator_name: Any = None, decorator_doc: str = "", decorator_argspec: Any = None) -> Any:
    """A function that stands for another: with its name, its attributes and its documentation, or the one given here."""
    if decorator_name is None:
        decorator_name = sys._getframe(1).f_code.co_name
    made = TFDecorator(decorator_name, target, decorator_doc, decorator_argspec)
    decorator_func._tf_decorator = made
    for name in _TAKEN_OVER:
        if hasattr(target, name):
            setattr(decorator_func, name, getattr(target, name))
    for name, value in getattr(target, "__dict__", {}).items():
        decorator_func.__dict__.setdefault(name, value)
    if hasattr(target, "__doc__"):
        decorator_func.__doc__ = made.__doc__
    decorator_func.__wrapped__ = target
    if decorator_argspec is not None:
        decorator_func.__signature__ = signature_of(decorator_argspec)
    return decorator_func


def signature_of(spec: Any) -> inspect.Signature:
    """Of an ArgSpec or a FullArgSpec."""
    kinds, defaults = inspect.Parameter, list(spec.defaults or ())
    plain = len(spec.args) - len(defaults)
    made = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=defaults[i - plain] if i >= plain else kinds.empty) for i, name in enumerate(spec.args)]
    if spec.varargs:
        made.append(kinds(spec.varargs, kinds.VAR_POSITIONAL))
    only = getattr(spec, "kwonlydefaults", None) or {}
    made += [kinds(name, kinds.KEYWORD_ONLY, default=only.get(name, kinds.empty)) for name in getattr(spec, "kwonlyargs", ())]
    rest = spec.varkw if hasattr(spec, "varkw") else spec.keywords
    return inspect.Signature(made + ([kinds(rest, kinds.VAR_KEYWORD)] if rest else []))


def _decoration(value: Any) -> Any:
    if isinstance(value, TFDecorator):
        return value
    made = getattr(value, "_tf_decorator", None)
    return made if isinstance(made, TFDecorator) else None


def unwrap(maybe_tf_decorator: Any) -> Tuple[List[TFDecorator], Any]:
    """(the decorations, outermost first, the function behind them)."""
    found, at = [], maybe_tf_decorator
    made = _decoration(at)
    while made is not None:
        found.append(made)
        at = made.decorated_target
        made = _decoration(at)
    return found, at


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """The decorated function with another one behind the decorations than `previous_target`."""
    at, made = decorator_func, _decoration(decorator_func)
    if made is None:
        if decorator_func is not previous_target:
            raise ValueError("%s is no decorator of %s" % (decorator_func, previous_target))
        return new_target
    while made.decorated_target is not previous_target and _decoration(made.decorated_target) is not None:
        at = made.decorated_target
        made = _decoration(at)
    made.decorated_target = new_target
    function: Any = at.__func__ if inspect.ismethod(at) else at
    function.__wrapped__ = new_target
    return decorator_func


# ---- decorator_utils ----


def get_qualified_name(function: Any) -> str:
    """The name, with that of its class."""
    return getattr(function, "__qualname__", function.__name__)


def _normalize_docstring(docstring: Any) -> str:
    """Without the indentation that all lines but the first share, and empty lines around."""
    return "\n".join(line.rstrip() for line in inspect.cleandoc(docstring).splitlines()).strip() if docstring else ""


def add_notice_to_docstring(doc: Any, instructions: str, no_doc_str: str, suffix_str: str, notice: List[str]) -> str:
    """Documentation with a suffix behind its first line, and a warning below it."""
    if not notice:
        raise ValueError("The `notice` arg must not be empty.")
    lines = _normalize_docstring(doc).splitlines() if doc else [no_doc_str]
    if doc:
        lines[0] += " " + suffix_str
    added = ["", "Warning: " + notice[0], *notice[1:]] + ([instructions] if instructions else [])
    if len(lines) > 1 and lines[1].strip():
        added.append("")
    return "\n".join(lines[:1] + added + lines[1:])


def validate_callable(func: Any, decorator_name: str) -> None:
    """ValueError for what is no function."""
    if not callable(func):
        raise ValueError("%s is not a function. If this is a property, make sure @property appears before @%s in your source code." % (func, decorator_name))


class classproperty:
    """A property of a class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self._func(owner)
