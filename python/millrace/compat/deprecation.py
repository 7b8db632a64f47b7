# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.deprecation: decorators that say in documentation, and once in the log, that something is deprecated."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from typing import Any, Callable, Dict, Iterator, Optional

from millrace import tf_logging as logging
from millrace.compat import decorators, inspecting

_PRINT_DEPRECATION_WARNINGS = True
_PRINTED_WARNING: Dict[Any, bool] = {}


class DeprecatedNamesAlreadySet(Exception):
    """A function has deprecated names already."""


def _when(date: Optional[str]) -> str:
    return "in a future version" if date is None else "after %s" % date


def _validate_deprecation_args(date: Optional[str], instructions: str) -> None:
    if date is not None and not re.match(r"20\d\d-[01]\d-[0123]\d", date):
        raise ValueError("Date must be YYYY-MM-DD.")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions!")


def _call_location(outer: bool = False) -> str:
    """file:line from where the function that asks was called, or `outer`, the one that called it."""
    frame = sys._getframe(1)
    for _ in range(2 if outer else 1):
        frame = frame.f_back or frame
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)


def _warn(key: Any, once: bool, text: str, *args: Any) -> None:
    """Says it in the log with the place of the call, which is three frames up."""
    if not _PRINT_DEPRECATION_WARNINGS or key in _PRINTED_WARNING:
        return
    if once:
        _PRINTED_WARNING[key] = True
    logging.warning("From %s: " + text, _call_location(outer=True), *args)


_IS_DEPRECATED = "%s (from %s) is deprecated and will be removed %s.\nInstructions for updating:\n%s"
_WITH_IS_DEPRECATED = "calling %s (from %s) with %s is deprecated and will be removed %s.\nInstructions for updating:\n%s"
_HAS_NAME = "The name %s is deprecated. Please use %s instead.\n"


def _function_notice(doc: Any, date: Optional[str], instructions: str) -> str:
    notice = ["THIS FUNCTION IS DEPRECATED. It will be removed %s." % _when(date), "Instructions for updating:"]
    return decorators.add_notice_to_docstring(doc, instructions, "DEPRECATED FUNCTION", "(deprecated)", notice)


def _argument_notice(doc: Any, date: Optional[str], instructions: str, what: str, names: str) -> str:
    notice = ["SOME %sS ARE DEPRECATED: `(%s)`. They will be removed %s." % (what.upper(), names, _when(date)), "Instructions for updating:"]
    return decorators.add_notice_to_docstring(doc, instructions, "DEPRECATED FUNCTION %sS" % what.upper(), "(deprecated %ss)" % what, notice)


def deprecated(date: Optional[str], instructions: str, warn_once: bool = True) -> Callable[..., Any]:
    """A decorator of functions that are deprecated."""
    _validate_deprecation_args(date, instructions)

    def decorate(func: Any) -> Any:
        decorators.validate_callable(func, "deprecated")

        def call(*args: Any, **kwargs: Any) -> Any:
            _warn(func, warn_once, _IS_DEPRECATED, decorators.get_qualified_name(func), func.__module__, _when(date), instructions)
            return func(*args, **kwargs)

        return decorators.make_decorator(func, call, "deprecated", _function_notice(func.__doc__, date, instructions))

    return decorate


def experimental(func: Any) -> Any:
    """A decorator of functions that may change: it says so in documentation, and in the log at each call."""
    decorators.validate_callable(func, "experimental")

    def call(*args: Any, **kwargs: Any) -> Any:
        told = "%s (from %s) is experimental and may change or be removed at any time, and without warning."
        logging.warning(told, decorators.get_qualified_name(func), func.__module__)
        return func(*args, **kwargs)

    notice = ["THIS FUNCTION IS EXPERIMENTAL. It may change or be removed at any time, and without warning."]
    doc = decorators.add_notice_to_docstring(func.__doc__, "", "EXPERIMENTAL FUNCTION", "(experimental)", notice)
    return decorators.make_decorator(func, call, "experimental", doc)


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """A function or class under a deprecated name."""
    if not inspecting.isclass(func_or_class):
        decorators.validate_callable(func_or_class, "deprecated")

        def call(*args: Any, **kwargs: Any) -> Any:
            _warn(call, warn_once, _HAS_NAME, deprecated_name, name)
            return func_or_class(*args, **kwargs)

        doc = _function_notice(func_or_class.__doc__, None, "Please use %s instead." % name)
        return decorators.make_decorator(func_or_class, call, "deprecated", doc)

    class _NewClass(func_or_class):  # type: ignore[misc]
        __doc__ = decorators.add_notice_to_docstring(
            func_or_class.__doc__,
            "Please use %s instead." % name,
            "DEPRECATED CLASS",
            "(deprecated)",
            ["THIS CLASS IS DEPRECATED. It will be removed in a future version. "],
        )

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            _warn(_NewClass, warn_once, _HAS_NAME, deprecated_name, name)
            super().__init__(*args, **kwargs)

    _NewClass.__name__, _NewClass.__module__ = func_or_class.__name__, func_or_class.__module__
    _NewClass.__init__.__doc__ = func_or_class.__init__.__doc__
    return _NewClass


def deprecated_endpoints(*args: str) -> Callable[..., Any]:
    """A decorator that says which names of a function are deprecated."""

    def decorate(func: Any) -> Any:
        if "_tf_deprecated_api_names" in vars(func):
            raise DeprecatedNamesAlreadySet("Deprecated names of %s are already set to %s." % (func.__name__, func._tf_deprecated_api_names))
        func._tf_deprecated_api_names = args
        return func

    return decorate


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    try:
        equal = a == b
    except TypeError:
        return False
    return equal if isinstance(equal, bool) else False


def deprecated_args(date: Optional[str], instructions: str, *names: Any, **kwargs: Any) -> Callable[..., Any]:
    """A decorator of functions of which some arguments are deprecated: names, or (name, a value that may still be given)."""
    _validate_deprecation_args(date, instructions)
    if not names:
        raise ValueError("Specify which argument is deprecated.")
    if kwargs.keys() - {"warn_once"}:
        raise ValueError("Illegal argument to deprecated_args: %s" % {k: v for k, v in kwargs.items() if k != "warn_once"})
    once = kwargs.get("warn_once", True)
    fine = {n[0]: (n[1],) if isinstance(n, tuple) else () for n in names if isinstance(n, tuple)}
    every = [n[0] if isinstance(n, tuple) else n for n in names]

    def decorate(func: Any) -> Any:
        decorators.validate_callable(func, "deprecated_args")
        spec = inspecting.getfullargspec(func)
        known = [*spec.args, spec.varargs, spec.varkw]
        missing = [n for n in every if n not in known]
        if missing:
            raise ValueError("The following deprecated arguments are not present in the function signature: %s. Found next arguments: %s." % (missing, known))

        def call(*args: Any, **given: Any) -> Any:
            named = inspecting.getcallargs(func, *args, **given) if _PRINT_DEPRECATION_WARNINGS else {}
            for name in every if _PRINT_DEPRECATION_WARNINGS else ():
                if name == spec.varargs:
                    used = len(args) > len(spec.args)
                elif name == spec.varkw:
                    used = bool(given)
                else:
                    used = name in given or name in spec.args[: len(args)]
                    used = used and not any(_same(named[name], value) for value in fine.get(name, ()))
                if used:
                    where = decorators.get_qualified_name(func), func.__module__, name
                    _warn((func, name), once, _WITH_IS_DEPRECATED, *where, _when(date), instructions)
            return func(*args, **given)

        doc = _argument_notice(func.__doc__, date, instructions, "argument", ", ".join(sorted(every)))
        return decorators.make_decorator(func, call, "deprecated", doc)

    return decorate


def deprecated_arg_values(date: Optional[str], instructions: str, warn_once: bool = True, **deprecated_kwargs: Any) -> Callable[..., Any]:
    """A decorator of functions of which some values of arguments are deprecated."""
    _validate_deprecation_args(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(func: Any) -> Any:
        decorators.validate_callable(func, "deprecated_arg_values")

        def call(*args: Any, **given: Any) -> Any:
            named = inspecting.getcallargs(func, *args, **given) if _PRINT_DEPRECATION_WARNINGS else {}
            for name, value in deprecated_kwargs.items():
                if name in named and _same(named[name], value):
                    what = "%s=%s" % (name, value)
                    where = decorators.get_qualified_name(func), func.__module__, what
                    _warn((func, name), warn_once, _WITH_IS_DEPRECATED, *where, _when(date), instructions)
            return func(*args, **given)

        values = ", ".join("%s=%r" % pair for pair in sorted(deprecated_kwargs.items()))
        return decorators.make_decorator(func, call, "deprecated", _argument_notice(func.__doc__, date, instructions, "argument value", values))

    return decorate


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The one of two arguments that was given."""
    if old_value is not None and new_value is not None:
        raise ValueError("Cannot specify both '%s' and '%s'" % (old_name, new_name))
    return new_value if old_value is None else old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """Documentation with another name of an argument."""
    return old_doc.replace("`%s`" % old_argument, "`%s`" % new_argument).replace("%s:" % old_argument, "%s:" % new_argument)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A scope without warnings of deprecation."""
    global _PRINT_DEPRECATION_WARNINGS
    before, _PRINT_DEPRECATION_WARNINGS = _PRINT_DEPRECATION_WARNINGS, False
    try:
        yield
    finally:
        _PRINT_DEPRECATION_WARNINGS = before


class HiddenTfApiAttribute(property):
    """An attribute that says that it is deprecated when it is read."""

    def __init__(self, deprecation_message: str) -> None:
        super().__init__(functools.partial(self._refuse, deprecation_message))

    @staticmethod
    def _refuse(message: str, instance: Any) -> Any:
        raise AttributeError(message)


hide_attribute_from_api = HiddenTfApiAttribute
HIDDEN_ATTRIBUTE = HiddenTfApiAttribute("This attribute has been deprecated.")
