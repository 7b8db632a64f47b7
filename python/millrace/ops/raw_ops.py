# SPDX-License-Identifier: Apache-2.0
"""tf.raw_ops: a function for each op, under the name of the op. It takes its arguments by name."""

from __future__ import annotations

import functools
from typing import Any, Callable, List

from millrace.framework.errors import at_user_line
from millrace.framework.not_provided import NotProvidedError
from millrace.ops import gen_ops


def _snake(name: str) -> str:
    """BatchMatMulV2 -> batch_mat_mul_v2."""
    return gen_ops_name().get(name, "")


@functools.cache
def gen_ops_name() -> Any:
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


def _by_name(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(**kwargs: Any) -> Any:
        return function(**kwargs)

    call.__name__ = name
    return call


def __getattr__(name: str) -> Any:
    found = _snake(name)
    if name.startswith("__"):
        raise AttributeError(name)
    if not found:
        raise at_user_line(
            NotProvidedError("tf.raw_ops.%s is not provided: dir(tf.raw_ops) lists the ops that are, and tf.load_op_library adds others." % name)
        )
    made = globals()[name] = _by_name(getattr(gen_ops, found), name)
    return made


def __dir__() -> List[str]:
    return sorted(gen_ops_name())
