# SPDX-License-Identifier: Apache-2.0
"""Arrays made ready."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np


def to_categorical(y: Any, num_classes: Optional[int] = None, dtype: Any = "float32") -> Any:
    """Numbers of classes as rows with a single one."""
    y = np.array(y, dtype="int")
    shape = y.shape[:-1] if y.shape and y.shape[-1] == 1 and y.ndim > 1 else y.shape
    flat = y.ravel()
    made = np.zeros([len(flat), num_classes or (int(flat.max()) + 1 if len(flat) else 0)], dtype)
    made[np.arange(len(flat)), flat] = 1
    return made.reshape(*shape, made.shape[1])


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """Scaled to norm one along an axis."""
    size = np.atleast_1d(np.linalg.norm(x, order, axis))
    return x / np.expand_dims(np.where(size == 0, 1, size), axis)
