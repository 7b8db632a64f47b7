# SPDX-License-Identifier: Apache-2.0
"""Special functions that NumPy lacks, element by element in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def _each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    def apply(*arrays: np.ndarray) -> np.ndarray:
        return np.asarray(np.vectorize(function, otypes=[np.float64])(*arrays))

    return apply


# B(2k) / (2k)!, for Euler's and Maclaurin's sum.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _digamma(x: float) -> float:
    if x <= 0:
        if x == int(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 15:
        total -= 1 / x
        x += 1
    total += math.log(x) - 1 / (2 * x)
    for k, b in enumerate(_BERNOULLI, 1):
        total -= b / (2 * k * x ** (2 * k))
    return total


def _zeta(s: float, q: float) -> float:
    total = sum((q + k) ** -s for k in range(20))
    a = q + 20
    total += a ** (1 - s) / (s - 1) + a**-s / 2
    factor = s * a ** (-s - 1) / 2
    for k, b in enumerate(_BERNOULLI, 1):
        total += b * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (a * a * (2 * k + 1) * (2 * k + 2))
    return total


def _polygamma(n: float, x: float) -> float:
    if n == 0:
        return _digamma(x)
    return (-1) ** (int(n) + 1) * math.factorial(int(n)) * _zeta(n + 1, x)


erf = _each(math.erf)
erfc = _each(math.erfc)
lgamma = _each(lambda x: math.inf if x <= 0 and x == int(x) else math.lgamma(x))
digamma = _each(_digamma)
zeta = _each(_zeta)
polygamma = _each(_polygamma)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, x)
