# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util: what libraries written on TensorFlow take from it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from inspect import (  # noqa: F401
    currentframe,
    getcallargs,
    getdoc,
    getfile,
    getmembers,
    getmodule,
    getmro,
    getsource,
    isclass,
    isfunction,
    isgenerator,
    ismethod,
    ismodule,
    isroutine,
    signature,
    stack,
)
import collections
import re
import sys
from typing import Any, Callable, Dict, List, Optional

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
    """A function with another's name and documentation, and the signature `decorator_argspec`, if any."""
    made: Any = functools.wraps(target)(decorator_func)
    name = decorator_name or inspect.stack()[1].function
    made._tf_decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    if decorator_argspec is not None:
        made.__signature__ = _signature_of(decorator_argspec)
    return made


TFDecorator = collections.namedtuple("TFDecorator", ["decorator_name", "decorated_target", "decorator_doc", "decorator_argspec"])


def _signature_of(spec: Any) -> inspect.Signature:
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


def unwrap(maybe_tf_decorator: Any) -> Any:
    """(what make_decorator was told, outermost first, the function behind decorators)."""
    found, at = [], maybe_tf_decorator
    while True:
        if hasattr(at, "_tf_decorator"):
            found.append(at._tf_decorator)
        if not hasattr(at, "__wrapped__"):
            return found, at
        at = at.__wrapped__


ArgSpec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])
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
