# SPDX-License-Identifier: Apache-2.0
"""The normal distribution's function, its logarithm and its inverse, exact and with finite gradients far out."""

from __future__ import annotations

import math
from typing import Any, List

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops

# Below the first the series for the tail is used, above the second log(1 - p) is -p.
LOGNDTR_FLOAT64_LOWER, LOGNDTR_FLOAT64_UPPER = np.array(-20, np.float64), np.array(8, np.float64)
LOGNDTR_FLOAT32_LOWER, LOGNDTR_FLOAT32_UPPER = np.array(-10, np.float32), np.array(5, np.float32)


def _floating(x: Any) -> Tensor:
    x = convert_to_tensor(x, name="x")
    if x.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
        raise at_user_line(TypeError("x.dtype=%s is not handled, see docstring for supported types." % x.dtype.name))
    return x


def ndtr(x: Any, name: str = "ndtr") -> Tensor:
    """The share of a standard normal distribution below x."""
    with name_scope(name, values=[x]):
        return _ndtr(_floating(x))


def _ndtr(x: Tensor) -> Tensor:
    w = x * math.sqrt(0.5)
    size = gen_ops.abs(w)
    near = 1.0 + gen_ops.erf(w)
    tail = gen_ops.erfc(size)
    far = array_ops.where(gen_ops.greater(w, 0.0), 2.0 - tail, tail)
    return 0.5 * array_ops.where(gen_ops.less(size, math.sqrt(0.5)), near, far)


def erfinv(x: Any, name: str = "erfinv") -> Tensor:
    """What the error function gives x for. TypeError for integers."""
    with name_scope(name, values=[x]):
        return gen_ops.erfinv(_floating(x))


def log_ndtr(x: Any, series_order: int = 3, name: str = "log_ndtr") -> Tensor:
    """log(ndtr(x)); far below 0 by the asymptotic series of this many terms."""
    if not isinstance(series_order, int):
        raise at_user_line(TypeError("series_order must be a Python integer."))
    if series_order < 0:
        raise at_user_line(ValueError("series_order must be non-negative."))
    if series_order > 30:
        raise at_user_line(ValueError("series_order must be <= 30."))
    x = _floating(x)
    with name_scope(name, values=[x]):
        double = x.dtype.base_dtype == dtypes.float64
        lower = float(LOGNDTR_FLOAT64_LOWER if double else LOGNDTR_FLOAT32_LOWER)
        upper = float(LOGNDTR_FLOAT64_UPPER if double else LOGNDTR_FLOAT32_UPPER)
        # Each form is given numbers of its own range only, so that no gradient is infinite times 0.
        middle = gen_ops.log(_ndtr(gen_ops.maximum(x, lower)))
        tail = _log_tail(gen_ops.minimum(x, lower), series_order)
        return array_ops.where(gen_ops.greater(x, upper), -_ndtr(-x), array_ops.where(gen_ops.greater(x, lower), middle, tail))


def _log_tail(x: Tensor, order: int) -> Tensor:
    square = gen_ops.square(x)
    series: Any = 1.0
    for n in range(1, order + 1):  # sum of (-1)^n (2n - 1)!! / x^2n
        factor = float(np.prod(np.arange(2 * n - 1, 1, -2.0)))
        series = series + (-factor if n % 2 else factor) / gen_ops.pow(square, float(n))
    return -0.5 * square - gen_ops.log(-x) - 0.5 * math.log(2.0 * math.pi) + gen_ops.log(series)


# Rational approximations of the Cephes library (S. L. Moshier): numerators and denominators, highest power first.
_NEAR = (
    [-59.9633501014107895267, 98.0010754185999661536, -56.6762857469070293439, 13.9312609387279679503, -1.23916583867381258016],
    [
        1.0,
        1.95448858338141759834,
        4.67627912898881538453,
        86.3602421390890590575,
        -225.462687854119370527,
        200.260212380060660359,
        -82.0372256168333339912,
        15.9056225126211695515,
        -1.18331621121330003142,
    ],
)
_FAR = (
    [
        4.05544892305962419923,
        31.5251094599893866154,
        57.1628192246421288162,
        44.0805073893200834700,
        14.6849561928858024014,
        2.18663306850790267539,
        -0.140256079171354495875,
        -0.0350424626827848203418,
        -0.000857456785154685413611,
    ],
    [
        1.0,
        15.7799883256466749731,
        45.3907635128879210584,
        41.3172038254672030440,
        15.0425385692907503408,
        2.50464946208309415979,
        -0.142182922854787788574,
        -0.0380806407691578277194,
        -0.000933259480895457427372,
    ],
)
_FARTHEST = (
    [
        3.23774891776946035970,
        6.91522889068984211695,
        3.93881025292474443415,
        1.33303460815807542389,
        0.201485389549179081538,
        0.0123716634817820021358,
        0.000301581553508235416007,
        2.65806974686737550832e-6,
        6.23974539184983293730e-9,
    ],
    [
        1.0,
        6.02427039364742014255,
        3.67983563856160859403,
        1.37702099489081330271,
        0.216236993594496635890,
        0.0134204006088543189037,
        0.000328014464682127739104,
        2.89247864745380683936e-6,
        6.79019408009981274425e-9,
    ],
)


def _polynomial(x: Tensor, coefficients: List[float]) -> Any:
    total: Any = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _ratio(x: Tensor, pair: Any) -> Any:
    return _polynomial(x, pair[0]) / _polynomial(x, pair[1])


def ndtri(p: Any, name: str = "ndtri") -> Tensor:
    """The x of which ndtr(x) is p."""
    p = _floating(p)
    with name_scope(name, values=[p]):
        mirrored = gen_ops.greater(p, -math.expm1(-2.0))
        q = array_ops.where(mirrored, 1.0 - p, p)
        q = array_ops.where(gen_ops.less_equal(q, 0.0), 0.5 * array_ops.ones_like(q), q)
        w = q - 0.5
        near = -math.sqrt(2.0 * math.pi) * (w + w * gen_ops.square(w) * _ratio(gen_ops.square(w), _NEAR))
        z = gen_ops.sqrt(-2.0 * gen_ops.log(gen_ops.minimum(q, math.exp(-2.0))))
        first = z - gen_ops.log(z) / z
        out = array_ops.where(gen_ops.greater_equal(z, 8.0), first - _ratio(1.0 / z, _FARTHEST) / z, first - _ratio(1.0 / z, _FAR) / z)
        x = array_ops.where(gen_ops.greater(q, math.exp(-2.0)), near, out)
        x = array_ops.where(mirrored, x, -x)
        infinite = array_ops.fill(array_ops.shape(p), convert_to_tensor(np.inf, p.dtype.base_dtype))
        return array_ops.where(gen_ops.less_equal(p, 0.0), -infinite, array_ops.where(gen_ops.greater_equal(p, 1.0), infinite, x))


def log_cdf_laplace(x: Any, name: str = "log_cdf_laplace") -> Tensor:
    """The logarithm of the share of a standard Laplace distribution below x."""
    with name_scope(name, values=[x]):
        x = convert_to_tensor(x, name="x")
        positive = gen_ops.log1p(-0.5 * gen_ops.exp(-gen_ops.maximum(x, 0.0)))
        return array_ops.where(gen_ops.less(x, 0.0), -math.log(2.0) + x, positive)
