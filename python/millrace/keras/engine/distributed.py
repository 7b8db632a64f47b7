# SPDX-License-Identifier: Apache-2.0
"""How samples are shared out to the steps of models under a strategy, and which callbacks such models take."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras.callbacks import LearningRateScheduler, ReduceLROnPlateau
from millrace.keras.optimizer_base import Optimizer
from millrace.keras.optimizers import TFOptimizer

_MOST_SAMPLES = 32  # of a step whose size nobody says


def global_batch_size_supported(distribution_strategy: Any) -> bool:
    """Whether batch sizes are those of all replicas together: they are, as there is one."""
    return distribution_strategy.num_replicas_in_sync == 1


def get_input_params(
    distribution_strategy: Any, num_samples: int, steps: Optional[int], batch_size: Optional[int], mode: Optional[str] = None
) -> Tuple[int, int]:
    """(the steps, the samples of each) for num_samples, of which one or both may be given. Only in training (`mode` "train") may the last step have fewer;
    ValueError where samples would be left over or be too few."""
    del distribution_strategy  # of one replica, whose batches are the whole ones
    may_be_short = mode == "train"
    if batch_size is None and steps is None:
        batch_size = min(num_samples, _MOST_SAMPLES)
    if batch_size is None:
        if num_samples % steps:  # type: ignore[operator]
            message = "The number of samples %s is not divisible by steps %s. Please change the number of steps to a value that can consume all the samples"
            raise at_user_line(ValueError(message % (num_samples, steps)))
        return steps, num_samples // steps  # type: ignore[operator, return-value]
    if steps is None:
        if num_samples % batch_size and not may_be_short:
            raise at_user_line(ValueError("The number of samples %s is not divisible by batch size %s." % (num_samples, batch_size)))
        return math.ceil(num_samples / batch_size), batch_size
    if num_samples < (batch_size * (steps - 1) + 1 if may_be_short else batch_size * steps):
        message = "Number of samples %s is less than samples required for specified batch_size %s and steps %s"
        raise at_user_line(ValueError(message % (num_samples, batch_size, steps)))
    return steps, batch_size


def validate_callbacks(input_callbacks: Any, optimizer: Any) -> None:
    """Refuses, by ValueError, callbacks that change the rate of an optimizer that is none of tf.keras.optimizers."""
    of_keras = isinstance(optimizer, Optimizer) and not isinstance(optimizer, TFOptimizer)
    for callback in input_callbacks or []:
        if isinstance(callback, (LearningRateScheduler, ReduceLROnPlateau)) and not of_keras:
            raise at_user_line(ValueError("You must specify a Keras Optimizer V2 when using %s callback with DistributionStrategy." % callback))
