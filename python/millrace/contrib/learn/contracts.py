# SPDX-License-Identifier: Apache-2.0
"""What can be trained and evaluated, as tf.contrib.learn says it."""

from __future__ import annotations

import abc
from typing import Any


class Trainable(metaclass=abc.ABCMeta):
    """Has fit."""

    @abc.abstractmethod
    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: Any = None, batch_size: Any = None, monitors: Any = None, max_steps: Any = None
    ) -> Any:
        """Trains on arrays, or on what an input function gives."""


class Evaluable(metaclass=abc.ABCMeta):
    """Has evaluate and model_dir."""

    @property
    @abc.abstractmethod
    def model_dir(self) -> Any:
        """The folder of checkpoints."""

    @abc.abstractmethod
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: Any = None,
        steps: Any = None,
        metrics: Any = None,
        name: Any = None,
        checkpoint_path: Any = None,
        hooks: Any = None,
    ) -> Any:
        """The metrics."""
