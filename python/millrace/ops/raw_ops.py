# SPDX-License-Identifier: Apache-2.0
"""tf.raw_ops: a function for each op, under the name of the op. It takes its arguments by name."""

from __future__ import annotations

import functools
import inspect
from typing import Any as _Anything, Callable as _Callable, List as _List  # ops are called Any and List too

from millrace.framework.errors import at_user_line
from millrace.framework.not_provided import NotProvidedError
from millrace.ops import gen_ops


def _snake(name: str) -> str:
    """BatchMatMulV2 -> batch_mat_mul_v2."""
    return gen_ops_name().get(name, "")


@functools.cache
def gen_ops_name() -> _Anything:
    """{name of an op: name of its function}."""
    held = {id(value): name[1:] for name, value in vars(gen_ops).items() if name.startswith("_") and name[1:2].isupper()}
    made = {}
    for name, function in vars(gen_ops).items():
        code = getattr(function, "__code__", None)
        if code is not None and not name[:2].lstrip("_").isupper():  # _if and its like have names that Python has
            for used in code.co_names:
                if used.startswith("_") and id(vars(gen_ops).get(used)) in held:
                    made[used[1:]] = name
    return made


# TensorFlow's functions call these inputs otherwise than its op definitions do; both names are taken.
_AXIS = ("reduction_indices", "dim", "squeeze_dims", "split_dim")
_RENAMED = {name: dict.fromkeys(_AXIS, "axis") for name in "All Any EuclideanNorm ExpandDims Max Mean Min Prod Split SplitV Squeeze Sum".split()}
_RENAMED.update(Select={"t": "x", "e": "y"}, Where={"input": "condition"})


def _by_name(function: _Callable[..., _Anything], name: str) -> _Callable[..., _Anything]:
    renamed = _RENAMED.get(name, {})
    places = inspect.signature(function).parameters
    shown = [place.replace(name=renamed.get(key, key)) for key, place in places.items()]
    old = {new.name: key for new, key in zip(shown, places)}

    @functools.wraps(function)
    def call(*args: _Anything, **kwargs: _Anything) -> _Anything:
        if args:
            raise at_user_line(TypeError("%s only takes keyword args (possible keys: %s). Please pass these args as kwargs instead." % (name, list(old))))
        return function(**{old.get(key, key): value for key, value in kwargs.items()})

    call.__name__ = name
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return call


def __getattr__(name: str) -> _Anything:
    found = _snake(name)
    if name.startswith("__"):
        raise AttributeError(name)
    if not found:
        raise at_user_line(
            NotProvidedError("tf.raw_ops.%s is not provided: dir(tf.raw_ops) lists the ops that are, and tf.load_op_library adds others." % name)
        )
    made = globals()[name] = _by_name(getattr(gen_ops, found), name)
    return made


def __dir__() -> _List[str]:
    return sorted(gen_ops_name())
