# SPDX-License-Identifier: Apache-2.0
"""Element-wise math: unary, their gradients, binary with broadcasting, comparisons, bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import special
from dtypes import C64, C128, F32, F64, BY_NAME
from table import PAIRS, SHAPES, Case, Draw, Table, real_gradient

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def one(low: float = -2.0, high: float = 2.0, apart: bool = False) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            yield Case([(d.apart if apart else d.uniform)(shape, low, high)])

    return cases


def two(low: float = -2.0, high: float = 2.0, apart: bool = False) -> Callable[[Draw], Iterator[Case]]:
    """Operands that broadcast."""

    def cases(d: Draw) -> Iterator[Case]:
        for left, right in PAIRS:
            if apart:
                yield Case([d.apart(left, low, high), d.apart(right, low + 0.013, high + 0.013)])
            else:
                yield Case([d.uniform(left, low, high), d.uniform(right, low, high)])

    return cases


def alike(left: tuple[float, float], right: tuple[float, float]) -> Callable[[Draw], Iterator[Case]]:
    """Operands of one shape: gradients."""

    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            yield Case([d.apart(shape, *left), d.apart(shape, *right)])

    return cases


def special_values(d: Draw) -> Iterator[Case]:
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    yield Case([np.array(values)], label="special values", gradient=False)
    yield Case([np.resize(np.array(values), 67)], label="special values", gradient=False)


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _round_half_even(x: np.ndarray) -> np.ndarray:
    return np.rint(x) if x.dtype.kind == "f" else x


def _rsqrt_gradient(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return np.conj(y) ** 3 * dy * -0.5


UNARY: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("Abs", np.abs, dict(low=-100, high=100, apart=True)),
    ("Acos", np.arccos, dict(low=-0.9, high=0.9)),
    ("Acosh", np.arccosh, dict(low=1.1, high=9)),
    ("Asin", np.arcsin, dict(low=-0.9, high=0.9)),
    ("Asinh", np.arcsinh, dict(low=-5, high=5)),
    ("Atan", np.arctan, dict(low=-0.8, high=0.8)),
    ("Atanh", np.arctanh, dict(low=-0.8, high=0.8)),
    ("Cos", np.cos, dict(low=-3, high=3)),
    ("Cosh", np.cosh, dict(low=-3, high=3)),
    ("Digamma", special.digamma, dict(low=0.2, high=9, tolerance=4)),
    ("Elu", lambda x: np.where(x > 0, x, np.expm1(x)), dict(apart=True)),
    ("Erf", special.erf, dict(low=-3, high=3)),
    ("Erfc", special.erfc, dict(low=-3, high=3, tolerance=4)),
    ("Exp", np.exp, dict(low=-5, high=5)),
    ("Expm1", np.expm1, dict(low=-1, high=4)),
    ("Inv", lambda x: 1 / x, dict(low=0.3, high=3)),
    ("Lgamma", special.lgamma, dict(low=0.2, high=9, tolerance=4)),
    ("Log", np.log, dict(low=0.1, high=9)),
    ("Log1p", np.log1p, dict(low=-0.5, high=9)),
    ("Neg", np.negative, dict(low=-100, high=100)),
    ("Reciprocal", lambda x: 1 / x, dict(low=0.3, high=3)),
    ("Relu", lambda x: np.maximum(x, 0), dict(low=-100, high=100, apart=True)),
    ("Relu6", lambda x: np.clip(x, 0, 6), dict(low=-9.1, high=9, apart=True)),
    ("Rsqrt", lambda x: 1 / np.sqrt(x), dict(low=0.3, high=9)),
    ("Selu", lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x)), dict(apart=True)),
    ("Sigmoid", special.sigmoid, dict(low=-5, high=5)),
    ("Sin", np.sin, dict(low=-3, high=3)),
    ("Sinh", np.sinh, dict(low=-3, high=3)),
    ("Softplus", special.softplus, dict(low=-9, high=9)),
    ("Softsign", lambda x: x / (1 + np.abs(x)), dict(low=-9, high=9, apart=True)),
    ("Sqrt", np.sqrt, dict(low=0.1, high=9)),
    ("Square", np.square, dict(low=-9, high=9)),
    ("Tan", np.tan, dict(low=-1.2, high=1.2)),
    ("Tanh", np.tanh, dict(low=-3, high=3)),
]
# Constant between jumps: the gradient is zero or none.
STEPS: list[tuple[str, Callable[..., Any]]] = [("Ceil", np.ceil), ("Floor", np.floor), ("Rint", np.rint), ("Round", _round_half_even)]
GRADIENTS: list[tuple[str, Callable[..., Any], tuple[float, float], tuple[float, float]]] = [
    ("EluGrad", lambda g, y: np.where(y > 0, g, g * (y + 1)), (-2, 2), (-0.9, 2)),
    ("InvGrad", lambda y, dy: -(np.conj(y) ** 2) * dy, (-2, 2), (-2, 2)),
    ("ReciprocalGrad", lambda y, dy: -(np.conj(y) ** 2) * dy, (-2, 2), (-2, 2)),
    ("Relu6Grad", lambda g, x: np.where((x > 0) & (x < 6), g, 0), (-2, 2), (-9.1, 9)),
    ("ReluGrad", lambda g, x: np.where(x > 0, g, 0), (-2, 2), (-9, 9)),
    ("RsqrtGrad", _rsqrt_gradient, (0.3, 2), (-2, 2)),
    ("SeluGrad", lambda g, y: g * np.where(y < 0, y + _SELU_SCALE * _SELU_ALPHA, _SELU_SCALE), (-2, 2), (-1.5, 2)),
    ("SigmoidGrad", lambda y, dy: dy * y * (1 - y), (0.1, 0.9), (-2, 2)),
    ("SoftplusGrad", lambda g, x: g * special.sigmoid(x), (-2, 2), (-5, 5)),
    ("SoftsignGrad", lambda g, x: g / (1 + np.abs(x)) ** 2, (-2, 2), (-5, 5)),
    ("SqrtGrad", lambda y, dy: dy * 0.5 / np.conj(y), (0.3, 2), (-2, 2)),
    ("TanhGrad", lambda y, dy: dy * (1 - y * y), (-0.9, 0.9), (-2, 2)),
]


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "fc":
        return np.trunc(x / y)
    return x // y if x.dtype.kind == "u" else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x / y if x.dtype.kind in "fc" else _truncated(x, y)


def _no_nan(quotient: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda x, y: np.where(y == 0, 0, quotient(x, np.where(y == 0, 1, y)))


def _multiply_no_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, 0, x * y)


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x**y


def divisors(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left, -100 if d.kind in "iu" else -2, 100 if d.kind in "iu" else 2), d.away(right)])


def remainders(d: Draw) -> Iterator[Case]:
    """Away from the jumps of the quotient, so that the gradient is defined."""
    for left, right in PAIRS:
        if d.kind in "iu":
            yield Case([d.uniform(left, -100, 100), d.away(right, high=9)])
        else:
            whole = d.rng.integers(-3, 4, left)
            yield Case([whole + d.rng.choice([0.25, 0.375, 0.625], left), d.rng.choice([-1.0, 1.0], right)])


def powers(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left, 0.5 if d.kind in "fc" else -3, 2.5), d.uniform(right, 0 if d.kind in "iu" else -1.5, 3)])


def numbers(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left, -9, 9), d.uniform(right, -9, 9)])


def with_zeros(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        y = d.away(right)
        yield Case([d.uniform(left), np.where(d.rng.random(right) < 0.3, 0, y)], gradient=False)
        yield Case([d.away(left), y])


def positive_second(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left, 0.2, 2), d.uniform(right, 0.3, 3)])
        zeroed = np.where(d.rng.random(left) < 0.5, 0, 1) * d.uniform(left, 0.2, 2)
        yield Case([zeroed, d.uniform(right, 0.3, 3)], gradient=False)


BINARY: list[tuple[str, Callable[..., Any], Any, dict[str, Any]]] = [
    ("AddV2", np.add, two(-50, 50), {}),
    ("Sub", np.subtract, two(-50, 50), {}),
    ("Mul", np.multiply, numbers, {}),
    ("Atan2", np.arctan2, two(0.3, 2), {}),
    ("Div", _divide, divisors, {}),
    ("RealDiv", _divide, divisors, {}),
    ("FloorDiv", lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else x // y, remainders, dict(gradient=None)),
    ("TruncateDiv", _truncated, remainders, dict(gradient=None)),
    ("FloorMod", np.mod, remainders, {}),
    ("Mod", np.fmod, remainders, dict(gradient=None)),
    ("TruncateMod", np.fmod, remainders, dict(gradient=None)),
    ("DivNoNan", _no_nan(np.divide), with_zeros, {}),
    ("MulNoNan", _multiply_no_nan, with_zeros, {}),
    ("Maximum", np.maximum, two(apart=True, low=-90, high=90), {}),
    ("Minimum", np.minimum, two(apart=True, low=-90, high=90), {}),
    ("Pow", _power, powers, dict(tolerance=4)),
    ("Xdivy", lambda x, y: np.where(x == 0, 0, x / y), positive_second, {}),
    ("Xlogy", lambda x, y: np.where(x == 0, 0, x * np.log(y)), positive_second, {}),
    ("Xlog1py", lambda x, y: np.where(x == 0, 0, x * np.log1p(y)), positive_second, {}),
]
COMPARISONS: list[tuple[str, Callable[..., Any]]] = [
    ("Greater", np.greater),
    ("GreaterEqual", np.greater_equal),
    ("Less", np.less),
    ("LessEqual", np.less_equal),
]
BITS: list[tuple[str, Callable[..., Any]]] = [("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)]
BOOLEAN: list[tuple[str, Callable[..., Any]]] = [("LogicalAnd", np.logical_and), ("LogicalOr", np.logical_or)]


def few(d: Draw) -> Iterator[Case]:
    """Small whole numbers, so that many are equal."""
    for left, right in PAIRS:
        low = -2 if d.kind in "ifc" else 0
        yield Case([d.rng.integers(low, 3, left), d.rng.integers(low, 3, right)], gradient=False)


def shifts(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left, -100, 100), d.integers(right, 0, 7)])


def add_strings(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


def halves(d: Draw) -> Iterator[Case]:
    """Fractions of a quarter, halves among them; a gradient only away from the jumps."""
    for shape in SHAPES:
        yield Case([d.rng.integers(-9, 9, shape) / 4.0 if d.kind == "f" else d.uniform(shape, -99, 99)], gradient=False)
        if d.kind == "f":
            yield Case([d.rng.integers(-9, 9, shape) + 0.3])


def logical(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.integers(left, 0, 2) > 0, d.integers(right, 0, 2) > 0])


def truths(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.integers(shape, 0, 2) > 0])


def _leaky(features: np.ndarray, alpha: float = 0.2) -> np.ndarray:
    return np.where(features > 0, features, features * np.float64(np.float32(alpha)))


def leaky(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        for attrs in ({}, {"alpha": 0.01}, {"alpha": 1.5}):
            yield Case([d.apart(shape)], attrs)


def leaky_gradient(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.apart(shape), d.apart(shape)], {"alpha": 0.1})


def clip(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        low, high = (-3, 4) if d.kind != "u" else (2, 7)
        yield Case([d.apart(shape, -9, 9), np.array(low), np.array(high)])
        yield Case([d.apart(shape, -9, 9), np.full(shape, low), np.full(shape, high)])


def select(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.integers(shape, 0, 2) > 0, d.any(shape), d.any(shape)])


def select_rows(d: Draw) -> Iterator[Case]:
    yield from select(d)
    yield Case([np.array(True), d.any((3, 2)), d.any((3, 2))], label="one condition")
    yield Case([d.integers((3,), 0, 2) > 0, d.any((3, 4, 2)), d.any((3, 4, 2))], label="a condition per row")


def select_broadcast(d: Draw) -> Iterator[Case]:
    yield from select(d)
    yield Case([d.integers((3, 1), 0, 2) > 0, d.any((1, 4)), d.any(())], label="broadcast")
    yield Case([d.integers((17,), 0, 2) > 0, d.any((2, 17)), d.any((2, 1))], label="broadcast")


def _select_rows(condition: np.ndarray, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    return np.where(condition.reshape(condition.shape + (1,) * (t.ndim - condition.ndim)), t, e)


def one_complex(apart: bool = False) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        tout = {C64: F32, C128: F64}[d.dtype]
        for shape in SHAPES:
            yield Case([d.away(shape) if apart else d.uniform(shape)], types={"Tout": tout})

    return cases


def parts(d: Draw) -> Iterator[Case]:
    for left, right in PAIRS:
        yield Case([d.uniform(left), d.uniform(right)], types={"Tout": {F32: C64, F64: C128}[d.dtype]})


def sums(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        for count in (1, 2, 3, 9):
            yield Case([[d.uniform(shape, 1, 9) for _ in range(count)]], label=f"{count} terms")


def sums_with_shape(d: Draw) -> Iterator[Case]:
    for case in sums(d):
        case.attrs["shape"] = case.inputs[0][0].shape
        yield case


def crosses(d: Draw) -> Iterator[Case]:
    for lead in ((), (0,), (1,), (17,), (2, 5)):
        yield Case([d.uniform((*lead, 3), -9, 9), d.uniform((*lead, 3), -9, 9)])


def near(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        x = d.uniform(shape)
        yield Case([x, x + d.rng.choice([0, 1e-3, 0.5], shape)], {"tolerance": 0.01}, gradient=False)


def polygammas(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.integers(shape, 0, 4), d.uniform(shape, 0.3, 9)])


def zetas(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.uniform(shape, 1.5, 5), d.uniform(shape, 0.3, 9)])


_CAST_FROM = {"float32", "float64", "float16", "bfloat16"}


def casts(d: Draw) -> Iterator[Case]:
    targets = [t for t in BY_NAME.values() if t.stored and t.kind != "s"]
    for target in targets:
        for shape in ((), (0,), (1,), (17,), (1025,), (2, 3)):
            low, high = (-2, 2) if d.kind == "c" else (0, 100) if target.kind in "u" else (-100, 100)
            yield Case([d.uniform(shape, low, high)], types={"DstT": target}, label=f"to {target}", gradient=target.is_inexact)


def _cast(x: np.ndarray) -> np.ndarray:
    return x


def _clip(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.clip(x, low, high)
    return np.clip(x.real, low.real, high.real) + 1j * np.clip(x.imag, low.imag, high.imag)


def add_to(table: Table) -> None:
    for op, oracle, more in UNARY:
        more = dict(more)
        drawn = {k: more.pop(k) for k in ("low", "high", "apart") if k in more}
        table.add(op, one(**drawn), oracle, gradient=(0,), **more)
    for op, oracle in STEPS:
        table.add(op, halves, oracle)
    for op, oracle, left, right in GRADIENTS:
        table.add(op, alike(left, right), oracle, gradient=(0, 1), tolerance=2)
    for op, oracle, cases, more in BINARY:
        table.add(op, cases, oracle, **{"gradient": (0, 1), **more})
    table.add("Add", two(-50, 50), np.add, gradient=(0, 1), note="numbers", dtypes=tuple(t for t in BY_NAME if t != "string"))
    table.add("Add", few, add_strings, dtypes=("string",), note="strings")
    for op, oracle in COMPARISONS + [("Equal", np.equal), ("NotEqual", np.not_equal)]:
        table.add(op, few, oracle)
    for op, oracle in BITS:
        table.add(op, two(-100, 100), oracle)
    for op, oracle in BOOLEAN:
        table.add(op, logical, oracle)
    table.add("LogicalNot", truths, np.logical_not)
    table.add("Invert", one(-100, 100), np.invert)
    table.add("LeftShift", shifts, np.left_shift, dtypes=("int32", "int64", "int16", "int8", "uint8", "uint16", "uint32"))
    table.add("RightShift", shifts, np.right_shift, dtypes=("int32", "int64", "int16", "int8", "uint8", "uint16", "uint32"))
    for op, oracle in (("IsFinite", np.isfinite), ("IsInf", np.isinf), ("IsNan", np.isnan)):
        table.add(op, special_values, oracle)
        table.add(op, one(), oracle, note="shapes")
    table.add("LeakyRelu", leaky, _leaky, gradient=(0,))
    table.add("LeakyReluGrad", leaky_gradient, lambda g, x, alpha: np.where(x > 0, g, g * np.float64(np.float32(alpha))), gradient=(0,))
    table.add("ClipByValue", real_gradient(clip), _clip, gradient=(0,))
    table.add("Select", select_rows, _select_rows, gradient=(1, 2))
    table.add("SelectV2", select_broadcast, np.where, gradient=(1, 2))
    table.add("Sign", real_gradient(one(-100, 100, apart=True)), _sign, gradient=(0,))
    table.add("SquaredDifference", real_gradient(numbers), lambda x, y: np.conj(x - y) * (x - y), gradient=(0, 1))
    table.add("Angle", one_complex(apart=True), np.angle, gradient=(0,))
    table.add("ComplexAbs", one_complex(apart=True), np.abs, gradient=(0,))
    table.add("Conj", one(), np.conj, gradient=(0,))
    table.add("Real", one_complex(), np.real, gradient=(0,))
    table.add("Imag", one_complex(), np.imag, gradient=(0,))
    table.add("Complex", parts, lambda re, im: re + 1j * im, gradient=(0, 1))
    table.add("AddN", sums, lambda v: np.sum(v, axis=0), gradient=(0, 1), tolerance=4)
    table.add("AccumulateNV2", sums_with_shape, lambda v, shape: np.sum(v, axis=0), gradient=(0, 1), tolerance=4)
    table.add("Cross", crosses, np.cross, gradient=(0, 1), tolerance=8)
    table.add("ApproximateEqual", near, lambda x, y, tolerance: np.abs(x - y) < tolerance)
    table.add("Polygamma", polygammas, special.polygamma, tolerance=8, gradient=(1,))
    table.add("Zeta", zetas, special.zeta, tolerance=8)
    table.add("Cast", casts, _cast, gradient=(0,), main="SrcT", dtypes=tuple(t.name for t in BY_NAME.values() if t.stored and t.kind != "s"))
