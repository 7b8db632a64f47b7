# SPDX-License-Identifier: Apache-2.0
"""A level and a slope, which move slowly."""

from __future__ import annotations

from typing import Any

from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, math_ops
from millrace.ops.init_ops import zeros_initializer
from millrace.ops.matrix_ops import matmul
from millrace.ops.variable_scope import get_variable, variable_scope


class AdderStateSpaceModel(StateSpaceModel):
    """At each step the slope is added to the level, which is observed. Both have noise, or only the slope."""

    def __init__(self, use_level_noise: bool = True, configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration()) -> None:
        self.use_level_noise = use_level_noise
        super().__init__(configuration)

    def get_prior_mean(self) -> Any:
        """The level begins where the series does, as far as that is known."""
        if self._input_statistics is None:
            return super().get_prior_mean()
        level = math_ops.reduce_mean(self._scale_data(self._input_statistics.series_start_moments.mean))
        with variable_scope(self._variable_scope):
            own = get_variable("prior_state_mean", [2], self.dtype, zeros_initializer(), trainable=self._configuration.trainable_start_state)
        return array_ops.stack([level, array_ops.zeros_like(level)]) + own

    def get_state_transition(self) -> Any:
        """Level and slope: the slope is added to the level."""
        return [[1.0, 1.0], [0.0, 1.0]]

    def get_noise_transform(self) -> Any:
        """To level and slope, or to the slope alone."""
        return [[1.0, 0.0], [0.0, 1.0]] if self.use_level_noise else [[0.0], [1.0]]

    def get_observation_model(self, times: Any) -> Tensor:
        """The level."""
        del times  # it is observed alike at all times
        return constant([1.0, 0.0], self.dtype)

    def transition_to_powers(self, powers: Any) -> Tensor:
        """[[1, power], [0, 1]] for powers [...]."""
        power = math_ops.cast(powers, self.dtype)
        one, zero = array_ops.ones_like(power), array_ops.zeros_like(power)
        return _matrices(one, power, zero, one)

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """Of noise [[a, b], [c, d]] the sum over i < n of [[a + i (b + c) + i^2 d, b + i d], [c + i d, d]]."""
        transform = convert_to_tensor(self.get_noise_transform(), self.dtype)
        noise = matmul(matmul(transform, self.state_transition_noise_covariance), transform, adjoint_b=True)
        a, b, c, d = array_ops.unstack(array_ops.reshape(noise, [4]))
        n = math_ops.cast(num_steps, self.dtype)
        of_i = n * (n - 1) / 2
        of_squares = of_i * (2 * n - 1) / 3
        return _matrices(n * a + of_i * (b + c) + of_squares * d, n * b + of_i * d, n * c + of_i * d, n * d)


def _matrices(*entries: Tensor) -> Tensor:
    """Matrices [..., 2, 2] of four entries [...], row by row."""
    return array_ops.reshape(array_ops.stack(entries, axis=-1), array_ops.concat([array_ops.shape(entries[0]), [2, 2]], 0))
