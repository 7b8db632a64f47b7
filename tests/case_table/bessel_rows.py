# SPDX-License-Identifier: Apache-2.0
"""Bessel functions by their integrals, and inverses by halving intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import special
from elementwise_rows import one
from special_rows import bessel_0, bessel_1
from table import Table

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def _integral(function: Callable[[np.ndarray], np.ndarray], end: float) -> float:
    """From 0 to `end`, by Gauss and Legendre."""
    return float((_WEIGHTS * function((_POINTS + 1) * end / 2)).sum() * end / 2)


def _first(order: int) -> Callable[[float], float]:
    return lambda x: _integral(lambda t: np.cos(order * t - x * np.sin(t)), math.pi) / math.pi


def _second(order: int) -> Callable[[float], float]:
    def value(x: float) -> float:
        waves = _integral(lambda t: np.sin(x * np.sin(t) - order * t), math.pi)
        rest = _integral(lambda t: (np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t)), 7)
        return (waves - rest) / math.pi

    return value


def _modified_second(order: int) -> Callable[[float], float]:
    """exp(x) K(x)."""
    return lambda x: _integral(lambda t: np.exp(x - x * np.cosh(t)) * np.cosh(order * t), 7)


def _inverse(function: Callable[[float], float], low: float, high: float) -> Callable[[float], float]:
    def value(y: float) -> float:
        below, above = low, high
        for _ in range(100):
            middle = (below + above) / 2
            below, above = (middle, above) if function(middle) < y else (below, middle)
        return below

    return value


def _scaled(function: Callable[[np.ndarray], np.ndarray], sign: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: function(x) * np.exp(sign * np.abs(x))


def add_to(table: Table) -> None:
    table.add("BesselI0", one(-9, 9), _scaled(bessel_0, 1), gradient=(0,), tolerance=16)
    table.add("BesselI1", one(-9, 9, True), _scaled(bessel_1, 1), gradient=(0,), tolerance=16)
    table.add("BesselJ0", one(-2, 2), special._each(_first(0)), gradient=(0,), tolerance=32)
    table.add("BesselJ1", one(0.3, 3), special._each(_first(1)), gradient=(0,), tolerance=32)
    table.add("BesselY0", one(1.2, 3), special._each(_second(0)), gradient=(0,), tolerance=64)
    table.add("BesselY1", one(0.3, 1.8), special._each(_second(1)), gradient=(0,), tolerance=64)
    for order in (0, 1):
        scaled = special._each(_modified_second(order))
        table.add(f"BesselK{order}e", one(0.2, 40), scaled, gradient=(0,), tolerance=64)
        table.add(f"BesselK{order}", one(0.2, 9), _scaled(scaled, -1), gradient=(0,), tolerance=64)
    table.add("Erfinv", one(-0.97, 0.97), special._each(_inverse(math.erf, -6, 6)), gradient=(0,), tolerance=64)
    below = _inverse(lambda x: math.erfc(-x / math.sqrt(2)) / 2, -9, 9)
    table.add("Ndtri", one(0.02, 0.98), special._each(below), gradient=(0,), tolerance=64)
