# SPDX-License-Identifier: Apache-2.0
"""Noise while training."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from millrace.keras import backend as K
from millrace.layers.settings import SettingsLayer
from millrace.ops import array_ops, gen_ops, math_ops


class GaussianNoise(SettingsLayer):
    """Noise added."""

    settings: Tuple[str, ...] = ("stddev",)
    supports_masking = True

    def __init__(self, stddev: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        return K.in_train_phase(lambda: inputs + K.random_normal(array_ops.shape(inputs), 0.0, self.stddev), lambda: array_ops.identity(inputs), training)


class GaussianDropout(SettingsLayer):
    """Multiplied by normal numbers around 1."""

    settings: Tuple[str, ...] = ("rate",)
    supports_masking = True

    def __init__(self, rate: float = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        if not 0 < self.rate < 1:
            return inputs
        stddev = float(np.sqrt(self.rate / (1.0 - self.rate)))
        return K.in_train_phase(lambda: inputs * K.random_normal(array_ops.shape(inputs), 1.0, stddev), lambda: array_ops.identity(inputs), training)


class AlphaDropout(SettingsLayer):
    """Elements set to what selu gives far below zero, so that means and variances stay."""

    settings: Tuple[str, ...] = ("rate",)
    supports_masking = True

    def __init__(self, rate: float = 0.5, noise_shape: Any = None, seed: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        if not 0.0 < self.rate < 1.0:
            return inputs
        low = -1.6732632423543772 * 1.0507009873554805  # -alpha scale of selu
        a = ((1 - self.rate) * (1 + self.rate * low**2)) ** -0.5
        b = -a * low * self.rate

        def dropped() -> Any:
            shape = array_ops.shape(inputs) if self.noise_shape is None else self.noise_shape
            kept = math_ops.cast(gen_ops.greater_equal(K.random_uniform(shape, seed=self.seed), self.rate), inputs.dtype.base_dtype)
            return a * (inputs * kept + low * (1 - kept)) + b

        return K.in_train_phase(dropped, lambda: array_ops.identity(inputs), training)
