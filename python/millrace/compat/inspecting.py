# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.tf_inspect and function_utils: the standard module inspect, which looks behind decorators of make_decorator."""

from __future__ import annotations

import collections
import functools
import inspect
from inspect import getdoc, getframeinfo, getmembers, getmodule, getmro, signature  # noqa: F401
from typing import Any, Dict, List, Tuple

from millrace.compat.decorators import unwrap

ArgSpec = collections.namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])
FullArgSpec = inspect.FullArgSpec


def currentframe() -> Any:
    """The frame of the caller."""
    return inspect.stack()[1][0]


def stack(context: int = 1) -> List[Any]:
    """The frames from the caller's on."""
    return inspect.stack(context)[1:]


def _shown(decorators: Any) -> Any:
    return next((d.decorator_argspec for d in decorators if d.decorator_argspec is not None), None)


def _written(target: Any) -> Any:
    """How a function is written; one of this package as TensorFlow writes it: without annotations."""
    if str(getattr(target, "__module__", "")).partition(".")[0] != "millrace":
        return inspect.getfullargspec(target)
    return inspect.getfullargspec(inspect.unwrap(target))._replace(annotations={})


def _plain(target: Any) -> ArgSpec:
    spec = _written(target)
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def getargspec(obj: Any) -> Any:
    """(args, varargs, keywords, defaults) of a function, a partial one, a class or an object that is called."""
    if isinstance(obj, functools.partial):
        return _of_partial(obj)
    decorators, target = unwrap(obj)
    spec = _shown(decorators)
    if spec is not None:
        return spec
    if isinstance(target, type):
        return _plain(target.__init__ if target.__init__ is not object.__init__ else target.__new__)  # type: ignore[misc]
    return _plain(target if inspect.isroutine(target) else type(target).__call__)


def _of_partial(obj: Any) -> ArgSpec:
    args, varargs, keywords, given = getargspec(obj.func)
    missing: Any = object()
    defaults = ([missing] * (len(args) - len(given or ())) + list(given or ()))[len(obj.args) :]
    args = args[len(obj.args) :]
    for name, value in (obj.keywords or {}).items():
        if name in args:
            defaults[args.index(name)] = value
        elif not keywords:
            raise ValueError("Function does not have **kwargs parameter, but contains an unknown partial keyword.")
    first = next((i for i, d in enumerate(defaults) if d is not missing), len(args))
    late = [args[i] for i in range(first, len(args)) if defaults[i] is missing]
    if late:
        raise ValueError(
            "Some arguments %s do not have default value, but they are positioned after those with default values. This can not be expressed with ArgSpec."
            % late
        )
    return ArgSpec(args, varargs, keywords, tuple(defaults[first:]) or None)


def getfullargspec(obj: Any) -> Any:
    """inspect.getfullargspec, or what a decorator says instead."""
    decorators, target = unwrap(obj)
    spec = _shown(decorators)
    if spec is None:
        return _written(target)
    return spec if isinstance(spec, FullArgSpec) else FullArgSpec(spec.args, spec.varargs, spec.keywords, spec.defaults, [], None, {})  # type: ignore[misc]


def getcallargs(*func_and_positional: Any, **named: Any) -> Dict[str, Any]:
    """The arguments of a call by their names, those with defaults too."""
    func, positional = func_and_positional[0], func_and_positional[1:]
    spec, made = getfullargspec(func), dict(named)
    if ismethod(func) and getattr(func, "__self__", None) is not None:
        positional = (func.__self__, *positional)
    made.update(zip([a for a in spec.args if a not in made], positional))
    for name, value in zip(reversed(spec.args), reversed(spec.defaults or ())):
        made.setdefault(name, value)
    for name, value in (spec.kwonlydefaults or {}).items():
        made.setdefault(name, value)
    return made


def _behind(check: Any) -> Any:
    @functools.wraps(check)
    def of(object: Any) -> Any:
        return check(unwrap(object)[1])

    return of


getsource, getsourcefile, getsourcelines = (_behind(f) for f in (inspect.getsource, inspect.getsourcefile, inspect.getsourcelines))
isbuiltin, isclass, isframe, isfunction = (_behind(f) for f in (inspect.isbuiltin, inspect.isclass, inspect.isframe, inspect.isfunction))
isgenerator, isgeneratorfunction, ismethod = (_behind(f) for f in (inspect.isgenerator, inspect.isgeneratorfunction, inspect.ismethod))
ismodule, isroutine = _behind(inspect.ismodule), _behind(inspect.isroutine)


def getfile(object: Any) -> str:
    """The file that defines it."""
    target = unwrap(object)[1]
    if hasattr(target, "f_globals") and "__file__" in target.f_globals:
        return target.f_globals["__file__"]
    return inspect.getfile(target)


# ---- function_utils ----


def _is_callable_object(fn: Any) -> bool:
    return callable(fn) and ismethod(fn.__call__)


def fn_args(fn: Any) -> Tuple[str, ...]:
    """The names of the arguments that a call of fn gives: without self, and what a partial one has."""
    if isinstance(fn, functools.partial):
        return tuple(a for a in fn_args(fn.func)[len(fn.args) :] if a not in (fn.keywords or ()))
    fn = fn.__call__ if _is_callable_object(fn) else fn
    args = list(getfullargspec(fn).args)
    bound = ismethod(fn) and unwrap(fn)[1].__self__ is not None
    return tuple(args[1:] if bound else args)


def has_kwargs(fn: Any) -> bool:
    """Whether fn takes any named arguments."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    elif _is_callable_object(fn):
        fn = fn.__call__
    elif not callable(fn):
        raise TypeError("fn should be a function-like object, but is of type %s." % type(fn))
    return getfullargspec(fn).varkw is not None


def get_func_name(func: Any) -> str:
    """The name of a function, Class.name of a method, the type of another thing that is called."""
    func = unwrap(func)[1]
    if not callable(func):
        raise ValueError("Argument must be callable")
    if isfunction(func):
        return func.__name__
    return "%s.%s" % (type(func.__self__).__name__, func.__func__.__name__) if ismethod(func) else str(type(func))


def get_func_code(func: Any) -> Any:
    """The code of a function, or of what is called; None where there is none."""
    func = unwrap(func)[1]
    if not callable(func):
        raise ValueError("Argument must be callable")
    return getattr(func if isfunction(func) or ismethod(func) else func.__call__, "__code__", None)
