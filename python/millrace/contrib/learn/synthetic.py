# SPDX-License-Identifier: Apache-2.0
"""Points in a plane that no line tells apart."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from millrace.contrib.learn.base import Dataset
from millrace.framework.errors import at_user_line


def _drawn(x: np.ndarray, y: np.ndarray, kinds: np.ndarray, noise: Optional[float], seed: Optional[int]) -> Dataset:
    """The points in a random order, with noise."""
    random = np.random.RandomState(seed)
    order = random.permutation(len(kinds))
    points = np.stack([x, y], 1)
    if noise is not None:
        points = points + random.normal(0.0, noise, points.shape)
    return Dataset(points[order], kinds[order])


def circles(
    n_samples: int = 100, noise: Optional[float] = None, seed: Optional[int] = None, factor: float = 0.8, n_classes: int = 2, *args: Any, **kwargs: Any
) -> Dataset:
    """Circles in each other, one for each kind, each `factor` as wide as the one around it."""
    del args, kwargs  # other kinds of points take more
    turns = np.linspace(0, 2 * np.pi, n_samples // n_classes)
    kinds = np.repeat(np.arange(n_classes, dtype=np.int32), len(turns))
    wide = factor ** kinds.astype(float)
    return _drawn(wide * np.tile(np.cos(turns), n_classes), wide * np.tile(np.sin(turns), n_classes), kinds, noise, seed)


_RADII: Dict[str, Any] = {"archimedes": lambda turns: turns, "bernoulli": lambda turns: np.exp(0.1 * turns), "fermat": np.sqrt}


def spirals(
    n_samples: int = 100, noise: Optional[float] = None, seed: Optional[int] = None, mode: str = "archimedes", n_loops: int = 2, *args: Any, **kwargs: Any
) -> Dataset:
    """Two spirals that wind around each other: archimedes, bernoulli or fermat."""
    del args, kwargs  # other kinds of points take more
    if mode not in _RADII:
        raise at_user_line(ValueError("Incorrect spiral mode %r: one of %s" % (mode, ", ".join(sorted(_RADII)))))
    turns = np.linspace(0, 2 * n_loops * np.pi, n_samples // 2)
    radius = _RADII[mode](turns)
    arms = [(radius * np.cos(turns + turned), radius * np.sin(turns + turned)) for turned in (0.0, np.pi)]
    x, y = (np.concatenate(part) for part in zip(*arms))
    kinds = np.repeat(np.arange(2, dtype=np.int32), len(turns))
    return _drawn(x / max(np.abs(x).max(), 1e-12), y / max(np.abs(y).max(), 1e-12), kinds, noise, seed)
