# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util: what libraries written on TensorFlow take from it."""
from __future__ import annotations

import contextlib
import functools
import inspect
from inspect import (currentframe, getcallargs, getdoc, getfile, getmembers, getmodule, getmro, getsource, isclass, isfunction,  # noqa: F401
                     isgenerator, ismethod, ismodule, isroutine, signature, stack)
from typing import Any, Callable

contextmanager = contextlib.contextmanager
getfullargspec = getargspec = inspect.getfullargspec


def _same(*args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A decorator that leaves a function as it is."""
    return lambda function: function


deprecated = deprecated_args = deprecated_arg_values = deprecated_alias = deprecated_endpoints = tf_export = keras_export = _same


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The one of two arguments that was given."""
    if old_value is not None and new_value is not None:
        raise ValueError("Cannot specify both '%s' and '%s'" % (old_name, new_name))
    return new_value if old_value is None else old_value


def keyword_args_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function takes no arguments by place."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError("Must use keyword args to call %s." % function.__name__)
        return function(**kwargs)
    return call


def make_decorator(target: Any, decorator_func: Any, decorator_name: Any = None, decorator_doc: str = "", decorator_argspec: Any = None) -> Any:
    """A function with another's name and documentation."""
    return functools.wraps(target)(decorator_func)


def unwrap(maybe_tf_decorator: Any) -> Any:
    """([], the function behind decorators)."""
    return [], inspect.unwrap(maybe_tf_decorator)
