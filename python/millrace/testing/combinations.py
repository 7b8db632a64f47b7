# SPDX-License-Identifier: Apache-2.0
"""Tests that are run for every combination of arguments, as tensorflow.python.distribute.combinations has it: strategies among them are named, and
say which devices they need. Tests whose devices are not there, and those of eager execution, are skipped."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import types
import unittest
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional

from millrace.framework.eager_context import num_gpus
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph

_OURS = ("mode", "required_gpus", "required_tpu")  # which a test need not take


class NamedObject:
    """An object under a name, which stands in the names of tests."""

    def __init__(self, name: str, obj: Any) -> None:
        self._name, self._obj = name, obj

    def __getattr__(self, name: str) -> Any:
        return getattr(self._obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __iter__(self) -> Any:
        return iter(self._obj)

    def __repr__(self) -> str:
        return self._name


class NamedDistribution:
    """A strategy under a name, made when a test wants it, and how many GPUs or whether TPUs it needs."""

    def __init__(self, name: str, distribution_fn: Callable[[], Any], required_gpus: Optional[int] = None, required_tpu: bool = False) -> None:
        self._name, self._make, self.required_gpus, self.required_tpu = name, distribution_fn, required_gpus, required_tpu

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._make()

    def __repr__(self) -> str:
        return self._name


def combine(**kwargs: Any) -> List[Dict[str, Any]]:
    """All combinations of the values of lists by their names, in the order of the names; what is no list is one value."""
    names = sorted(kwargs)
    values = [kwargs[name] if isinstance(kwargs[name], list) else [kwargs[name]] for name in names]
    return [OrderedDict(zip(names, chosen)) for chosen in itertools.product(*values)]


def times(*combined: Any) -> List[Dict[str, Any]]:
    """Each of the first list with each of the others. ValueError where two of them have a name."""
    if not combined:
        raise at_user_line(ValueError("times wants lists of combinations, got none"))
    made = []
    for chosen in itertools.product(*combined):
        joined: Dict[str, Any] = OrderedDict()
        for one in chosen:
            if set(joined) & set(one):
                raise at_user_line(ValueError("Keys need to not overlap: %s vs %s" % (list(joined), list(one))))
            joined.update(one)
        made.append(joined)
    return made


def _letters(value: Any) -> str:
    return "".join(c for c in str(value) if c.isalnum())


def _suffix(combination: Dict[str, Any]) -> str:
    shown = ("_%s_%s" % (_letters(name), _letters(re.sub("0[xX][0-9a-fA-F]+", str(i), str(v)))) for i, (name, v) in enumerate(combination.items()))
    return "_test" + "".join(shown)


def _lacking(combination: Dict[str, Any]) -> Optional[str]:
    """Why a combination cannot be run, or None."""
    strategies = [v for v in combination.values() if isinstance(v, NamedDistribution)]
    if combination.get("mode", "graph") != "graph":
        return "Eager execution is not provided: mode=%r." % (combination["mode"],)
    if combination.get("required_tpu") or any(s.required_tpu for s in strategies):
        return "Test requires a TPU, but it's not available."
    wanted, there = max([combination.get("required_gpus") or 0, *(s.required_gpus or 0 for s in strategies)]), num_gpus()
    return "Only %d of %d required GPUs are available." % (there, wanted) if wanted > there else None


def _of_one(method: Callable[..., Any], combination: Dict[str, Any]) -> Callable[[Any], Any]:
    """The test with the arguments of a combination, in a graph of its own."""

    @functools.wraps(method)
    def run(self: Any) -> Any:
        why = _lacking(combination)
        if why is not None:
            raise unittest.SkipTest(why)
        taken = inspect.signature(method).parameters
        other = [name for name in combination if name not in taken and name not in _OURS]
        if other and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            raise at_user_line(ValueError("The test does not take %s." % ", ".join(other)))
        given = {name: v.strategy if isinstance(v, NamedDistribution) else v for name, v in combination.items() if name in taken or name not in _OURS}
        with Graph().as_default():
            return method(self, **given)

    del run.__wrapped__  # type: ignore[attr-defined]  # whose arguments runners of tests would ask for
    return run


class _Tests:
    """What takes the place of a test in its class: one test for each combination."""

    def __init__(self, method: Callable[..., Any], combinations: List[Dict[str, Any]]) -> None:
        self._method, self._combinations = method, combinations

    def __set_name__(self, owner: Any, name: str) -> None:
        if name in vars(owner):
            delattr(owner, name)
        for combination in self._combinations:
            made = _of_one(self._method, combination)
            made.__name__ = name + _suffix(combination)
            setattr(owner, made.__name__, made)


def generate(combinations: List[Dict[str, Any]], test_combinations: Any = ()) -> Callable[[Any], Any]:
    """Decorates a test, or a class for all its tests: each becomes one test for each combination, named by it, which is given its values by name."""
    del test_combinations  # those of strategies are known

    def decorate(test: Any) -> Any:
        if not isinstance(test, type):
            return _Tests(test, combinations)
        for name, method in list(vars(test).items()):
            if name.startswith(unittest.TestLoader.testMethodPrefix) and isinstance(method, types.FunctionType):
                _Tests(method, combinations).__set_name__(test, name)
        return test

    return decorate
