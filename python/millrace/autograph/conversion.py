# SPDX-License-Identifier: Apache-2.0
"""Python functions restated so that their statements on tensors become operations of the graph.

The new function has the globals, the closure's cells, the defaults and the lines of the old one. Functions of this package, of NumPy and of
Python's own library stay as they are, and so do those whose source cannot be found."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import os
import sysconfig
import types
from typing import Any, Callable, Dict, List, Set, Tuple

from millrace import tf_logging
from millrace.autograph import operators
from millrace.autograph.blocks import restate
from millrace.autograph.jumps import CannotConvert
from millrace.framework.errors import OperatorNotAllowedInGraphError

_LEFT = {"millrace", "tensorflow", "tensorflow_core", "tensorflow_estimator", "numpy", "six", "absl", "google", "ml_dtypes", "scipy", "pandas"}
_OWN = tuple(os.path.realpath(sysconfig.get_paths()[key]) + os.sep for key in ("stdlib", "platstdlib"))
_CONVERTED = "_millrace_converted"

_trees: Dict[str, Tuple[int, Any]] = {}  # of files: (hash of the lines, tree)
_codes: Dict[types.CodeType, Any] = {}  # what a function's code became; None: it stays
_made: Set[types.CodeType] = set()  # code that conversion made


def _tree(filename: str) -> Any:
    text = "".join(linecache.getlines(filename))
    known = _trees.get(filename)
    if known is None or known[0] != hash(text):
        known = _trees[filename] = hash(text), ast.parse(text) if text else None
    return known[1]


def _parameters(node: Any) -> List[str]:
    a = node.args
    return [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *(v for v in (a.vararg, a.kwarg) if v))]


def _statement(code: types.CodeType) -> Any:
    """The function's source as a FunctionDef."""
    try:
        tree = _tree(code.co_filename)
    except SyntaxError:
        tree = None
    if tree is None:
        raise CannotConvert("its source cannot be found")
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    arguments, found = list(code.co_varnames[:count]), []  # type: Any, List[Any]
    for x in ast.walk(tree):
        if code.co_name == "<lambda>":
            if isinstance(x, ast.Lambda) and x.lineno == code.co_firstlineno and sorted(_parameters(x)) == sorted(arguments):
                found.append(x)
        elif isinstance(x, ast.FunctionDef) and x.name == code.co_name:
            if min([x.lineno, *(d.lineno for d in x.decorator_list)]) == code.co_firstlineno:
                found.append(x)
    if len(found) != 1:
        raise CannotConvert("its source cannot be found" if not found else "there are %d functions like it in its line" % len(found))
    node: Any = copy.deepcopy(found[0])
    if isinstance(node, ast.Lambda):
        body = [ast.copy_location(ast.Return(node.body), node.body)]
        shape = ast.parse("def ag_lambda(): pass").body[0]
        shape.args, shape.body = node.args, body  # type: ignore[attr-defined]
        node = ast.copy_location(shape, node)
    node.decorator_list, node.returns = [], None
    a = node.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, *(v for v in (a.vararg, a.kwarg) if v)):
        argument.annotation = None
    a.defaults = [ast.copy_location(ast.Constant(None), node) for _ in a.defaults]  # the old function's are put in their place
    a.kw_defaults = [None if d is None else ast.copy_location(ast.Constant(None), node) for d in a.kw_defaults]
    return node


def restated(code: types.CodeType, qualified_name: str) -> Tuple[types.CodeType, ast.FunctionDef]:
    """(the new code, its tree). CannotConvert where there is none."""
    node = _statement(code)
    around = qualified_name.split(".")
    restate(node, around[-2] if len(around) > 1 and around[-2] != "<locals>" else "")
    factory: Any = ast.parse("def ag_factory(): pass").body[0]
    factory.args.args = [ast.arg(n) for n in ("ag__", "ag_call", *code.co_freevars)]
    factory.body = [node]
    module = ast.Module([factory], [])
    ast.fix_missing_locations(module)
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & 0x1000000)  # `annotations` of __future__
    inner = next(c for c in _constants(compiled) if c.co_name == node.name)
    return inner, node


def _constants(code: types.CodeType) -> List[types.CodeType]:
    """The code of the functions within a module's function."""
    outer = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    return [c for c in outer.co_consts if isinstance(c, types.CodeType)]


def _remember(code: types.CodeType) -> None:
    _made.add(code)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            _remember(c)


def _is_left(function: types.FunctionType) -> bool:
    """Whether it is of a library that has nothing to convert."""
    if str(function.__globals__.get("__name__")).split(".")[0] in _LEFT or function.__code__ in _made:
        return True
    file = os.path.realpath(function.__code__.co_filename)
    return file.startswith(_OWN) and "site-packages" not in file and "dist-packages" not in file


def _converted_function(function: types.FunctionType) -> types.FunctionType:
    code = function.__code__
    if code not in _codes:
        try:
            _codes[code] = restated(code, function.__qualname__)[0]
            _remember(_codes[code])
        except CannotConvert as error:
            _codes[code] = None
            tf_logging.debug("AutoGraph leaves %s as it is: %s", function, error)
    new = _codes[code]
    if new is None:
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells.update(ag__=types.CellType(operators), ag_call=types.CellType(converted_call))
    made = types.FunctionType(new, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in new.co_freevars))
    made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, dict(function.__dict__)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def converted(function: Any) -> Any:
    """The function, method or functools.partial, converted; itself where it stays as it is."""
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if not isinstance(function, types.FunctionType) or _is_left(function):
        return function
    made = function.__dict__.get(_CONVERTED)
    if made is None or made[0] is not function:  # functools.wraps copies what a function has
        made = function.__dict__[_CONVERTED] = function, _converted_function(function)
    return made[1]


def converted_call(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """A call within a converted function: of what is converted, where it can be."""
    return converted(operators.builtin_of_tensors(function, args))(*args, **kwargs)


def tried(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function returns. It is converted where it asks a tensor for its value, and then begins anew."""
    try:
        return function(*args, **kwargs)
    except OperatorNotAllowedInGraphError:
        other = converted(function)
        if other is function:
            raise
    return other(*args, **kwargs)
