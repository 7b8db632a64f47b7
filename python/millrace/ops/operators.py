# SPDX-License-Identifier: Apache-2.0
"""Python's operators on tensors and on what converts to them."""

from __future__ import annotations

import functools
from typing import Any, Callable

from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops


def _binary(op: Callable[..., Any], name: str) -> Any:
    def forward(x: Any, y: Any) -> Any:
        if isinstance(y, SparseTensor):
            return NotImplemented
        if type(y) is Tensor:
            return op(x, y, name=name)
        with name_scope(None, name, [x, y]) as scope:
            x = convert_to_tensor(x)
            try:
                y = convert_to_tensor(y, x.dtype.base_dtype, "y")
            except TypeError as error:
                if isinstance(y, (int, float, complex, list, tuple)):
                    raise at_user_line(TypeError("'%s' of %s: %s" % (name, x, error))) from None
                if hasattr(type(y), "__r%s__" % name):
                    return NotImplemented
                raise
            return op(x, y, name=scope)

    def backward(y: Any, x: Any) -> Any:
        with name_scope(None, name, [y]) as scope:
            y = convert_to_tensor(y)
            return op(convert_to_tensor(x, y.dtype.base_dtype, "x"), y, name=scope)

    forward.__name__, backward.__name__ = "__%s__" % name, "__r%s__" % name
    return forward, backward


def _divide(x: Any, y: Any, name: Any) -> Any:
    return math_ops.truediv(x, y, name)


def _logic(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, name=None: op(x, y, name=name)


_BINARY = {
    "add": gen_ops.add,
    "sub": gen_ops.sub,
    "mul": gen_ops.mul,
    "truediv": _divide,
    "div": math_ops.div,
    "floordiv": math_ops.floordiv,
    "mod": gen_ops.floor_mod,
    "pow": gen_ops.pow,
    "matmul": matrix_ops.matmul,
    "and": gen_ops.logical_and,
    "or": gen_ops.logical_or,
    "xor": math_ops.logical_xor,
}
_COMPARISONS = {"lt": gen_ops.less, "le": gen_ops.less_equal, "gt": gen_ops.greater, "ge": gen_ops.greater_equal}

OVERLOADABLE_OPERATORS = (
    {"__%s%s__" % (r, n) for n in _BINARY for r in ("", "r")} | {"__%s__" % n for n in _COMPARISONS} | {"__getitem__", "__invert__", "__neg__", "__abs__"}
)


def _neg(x: Any) -> Any:
    return gen_ops.neg(x, name="Neg")


def _install() -> None:
    op: Any
    for name, op in _BINARY.items():
        forward, backward = _binary(op, name)
        setattr(Tensor, "__%s__" % name, forward)
        setattr(Tensor, "__r%s__" % name, backward)
    for name, op in _COMPARISONS.items():
        setattr(Tensor, "__%s__" % name, lambda x, y, _op=op: _op(x, y))
    setattr(Tensor, "__getitem__", array_ops.slice_helper)
    setattr(Tensor, "__invert__", lambda x: gen_ops.logical_not(x))
    setattr(Tensor, "__neg__", _neg)
    setattr(Tensor, "__abs__", lambda x: math_ops.abs(x))
    setattr(Tensor, "OVERLOADABLE_OPERATORS", OVERLOADABLE_OPERATORS)


def forward_to_tensor(cls: type) -> None:
    """Gives a class that converts to a tensor (a variable) the operators of tensors."""

    def make(name: str) -> Any:
        @functools.wraps(getattr(Tensor, name))
        def operator(self: Any, *args: Any) -> Any:
            return getattr(Tensor, name)(convert_to_tensor(self), *args)

        return operator

    for name in OVERLOADABLE_OPERATORS:
        setattr(cls, name, make(name))


_install()
