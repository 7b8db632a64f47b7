# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor that are composed by |, + and *, repeated by **, and given more arguments by calls."""

from __future__ import annotations

import importlib
import operator
import re
from typing import Any, Dict, List, Sequence, Tuple

from millrace.framework.errors import at_user_line

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'")
_KEYWORDS = re.compile(r"\b(import|while|def|exec)\b")
_shown = False


def check_keywords(spec: str) -> None:
    """ValueError where a line has, outside of quotes, what a network needs not. This catches mistakes and keeps nothing safe."""
    found = _KEYWORDS.search(_QUOTED.sub("", spec))
    if found:
        raise at_user_line(ValueError("keyword '%s' found in spec" % found.group(1)))


def get_positional(args: Sequence[Any], kw: Dict[str, Any], kw_overrides: bool = False) -> Tuple[List[Any], Dict[str, Any]]:
    """Arguments, in which those with names as _0 are put in their places; they give way to what is there unless kw_overrides."""
    placed, rest = list(args), {key: value for key, value in kw.items() if not key.startswith("_")}
    for key in kw.keys() - rest.keys():
        index = int(key[1:])
        placed += [None] * (index + 1 - len(placed))
        if kw_overrides or placed[index] is None:
            placed[index] = kw[key]
    return placed, rest


class Composable:
    """What can be composed; funcall(x) applies it."""

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        raise NotImplementedError

    def __or__(self, f: Any) -> "Composition":
        return Composition(self, f)

    def __add__(self, g: Any) -> "Operator":
        return Operator(operator.add, self, g)

    def __mul__(self, g: Any) -> "Operator":
        return Operator(operator.mul, self, g)

    def __pow__(self, n: int) -> "Composable":
        if n < 0:
            raise at_user_line(ValueError("a function is applied 0 or more times, not %d" % n))
        result: Composable = self if n else Function(lambda x, *args, **kw: x)
        for _ in range(n - 1):
            result = Composition(result, self)
        return result


class Callable(Composable):
    """A function of the input."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        return self.f(x)


class Operator(Composable):
    """An operator between what several make of the input."""

    def __init__(self, op: Any, *args: Any) -> None:
        self.op, self.funs = op, args

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        return self.op(*[f.funcall(x) for f in self.funs])


class Function(Composable):
    """A function of the input and arguments. A call gives it more: before those there are, and named ones in place of them."""

    def __init__(self, f: Any, *args: Any, **kw: Any) -> None:
        if not callable(f):
            raise at_user_line(ValueError("%s: is not callable" % (f,)))
        self.f, self.args, self.kw = f, list(args), kw

    def __call__(self, *args: Any, **kw: Any) -> "Function":
        return Function(self.f, *args, *self.args, **{**self.kw, **kw})

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        args, kw = get_positional(self.args, self.kw)
        if _shown:
            print("DEBUG:", self.f, x, args, kw)
        return self.f(x, *args, **kw)


class Composition(Composable):
    """One after the other."""

    def __init__(self, f: Any, g: Any) -> None:
        self.f, self.g = f, g

    def funcall(self, x: Any) -> Any:
        """What it makes of an input."""
        return self.g.funcall(self.f.funcall(x))


def External(module_name: str, function_name: str) -> Function:
    """A function of a module."""
    return Function(vars(importlib.import_module(module_name))[function_name])


def Import(statements: str) -> Function:
    """The function that statements call `f`."""
    names: Dict[str, Any] = {}
    exec(statements, names)
    if "f" not in names:
        raise at_user_line(ValueError('failed to define "f": %s' % statements))
    return Function(names["f"])


def debug(mode: bool = True) -> None:
    """Prints the calls of functions from now on."""
    global _shown
    _shown = mode
