# SPDX-License-Identifier: Apache-2.0
"""The few functions of scikit-learn that programs of tf.contrib.learn use where it is not installed."""

from __future__ import annotations

from typing import Any, List

import numpy as np


class NotFittedError(ValueError, AttributeError):
    """A model was asked before it was trained."""


def accuracy_score(y_true: Any, y_pred: Any) -> Any:
    """How often both are the same."""
    return np.mean(np.asarray(y_true) == np.asarray(y_pred))


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean square of the difference."""
    a, b = np.asarray(y_true), np.asarray(y_pred)
    if a.ndim != b.ndim:
        a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    return np.mean((a - b) ** 2)


def train_test_split(*arrays: Any, test_size: float = 0.25, train_size: Any = None, random_state: int = 42) -> List[Any]:
    """Each array as a part to train on and one to test by, of the same rows, in a random order."""
    if train_size is not None:
        test_size = 1 - train_size
    count = len(arrays[0])
    order = np.random.RandomState(random_state).permutation(count)
    tested = int(np.ceil(test_size * count))
    return [part for array in arrays for part in (np.asarray(array)[order[tested:]], np.asarray(array)[order[:tested]])]
