# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util: what libraries written on TensorFlow take from it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
from typing import Any, Callable, Dict, List, Optional

from millrace.compat.decorators import make_decorator


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """contextlib.contextmanager of a function that is still known as what it was."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")


def keyword_args_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function takes no arguments by place."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError("Must use keyword args to call %s." % function.__name__)
        return function(**kwargs)

    return call


_taken_out: Dict[Any, Any] = {}


def make_all(module_name: str, doc_string_modules: Any = None) -> List[str]:
    """The names of a module that its documentation mentions as @@name, or that of others."""
    texts = [m.__doc__ or "" for m in (doc_string_modules or [sys.modules[module_name]])]
    mentioned = {m.group(1) for text in texts for m in re.finditer(r"^\s*@@([a-zA-Z0-9_]+)\s*$", text, re.MULTILINE)}
    return [name for name, _ in inspect.getmembers(sys.modules[module_name]) if name in mentioned]


def remove_undocumented(module_name: str, allowed_exception_list: Optional[List[str]] = None, doc_string_modules: Any = None) -> None:
    """Takes the names out of a module that are neither documented nor in the list; reveal_undocumented gives them back."""
    kept = {
        "__file__",
        "__builtins__",
        "__path__",
        "__doc__",
        "__name__",
        "__package__",
        "__spec__",
        "__loader__",
        "__cached__",
        "__all__",
        *(allowed_exception_list or []),
        *make_all(module_name, doc_string_modules),
    }
    module = sys.modules[module_name]
    for name in [n for n in vars(module) if n not in kept and not n.startswith("__")]:
        _taken_out["%s.%s" % (module_name, name)] = (module, getattr(module, name))
        delattr(module, name)


def reveal_undocumented(symbol_name: str, target_module: Any = None) -> None:
    """Puts a name back that remove_undocumented took out."""
    if symbol_name not in _taken_out:
        raise LookupError("Symbol %s is not a hidden symbol" % symbol_name)
    module, value = _taken_out[symbol_name]
    setattr(target_module or module, symbol_name.rsplit(".", 1)[-1], value)
