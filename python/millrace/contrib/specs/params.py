# SPDX-License-Identifier: Apache-2.0
"""Random numbers for the parameters of networks, by Python's own generator."""

from __future__ import annotations

import math
import random


def Uf(lo: float = 0.0, hi: float = 1.0) -> float:
    """A number between two."""
    return random.uniform(lo, hi)


def Ui(lo: int, hi: int) -> int:
    """A whole number between two, either of them too."""
    return random.randint(lo, hi)


def Lf(lo: float, hi: float) -> float:
    """A number whose logarithm is evenly distributed."""
    return math.exp(random.uniform(math.log(lo), math.log(hi)))


def Li(lo: int, hi: int) -> int:
    """A whole number whose logarithm is evenly distributed."""
    return int(math.exp(random.uniform(math.log(lo), math.log(hi + 1 - 1e-5))))


def Nt(mu: float, sigma: float, limit: float = 3.0) -> float:
    """A normally distributed number, at most so many deviations away."""
    return min(max(random.gauss(mu, sigma), mu - limit * sigma), mu + limit * sigma)
