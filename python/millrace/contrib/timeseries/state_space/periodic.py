# SPDX-License-Identifier: Apache-2.0
"""Cycles: values that come back after a period and sum to zero over it.

The state holds the present value and those before it, all of a cycle of p values but one, which the sum tells. A step turns the cycle: value number i of the
state becomes value number i - 1 of the cycle. Noise changes the present value; because of the sum, one step later the value that the state leaves out.
"""

from __future__ import annotations

import math
from typing import Any

from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.matrix_ops import eye, matmul


class CycleStateSpaceModel(StateSpaceModel):
    """A cycle with a value of its own for each of `periodicity` steps; states have one number less."""

    def __init__(self, periodicity: int, configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration()) -> None:
        self._periodicity = periodicity
        super().__init__(configuration)

    def get_state_transition(self) -> Tensor:
        """A turn by one step."""
        return self.transition_to_powers(array_ops.ones([], dtypes.int32))

    def get_noise_transform(self) -> Tensor:
        """To the present value."""
        return self.get_observation_model(None)[:, None]

    def get_observation_model(self, times: Any) -> Tensor:
        """The present value."""
        del times  # it is observed alike at all times
        return array_ops.one_hot(0, self._periodicity - 1, dtype=self.dtype)

    def transition_to_powers(self, powers: Any) -> Tensor:
        """A turn by so many steps [...]: [..., periodicity - 1, periodicity - 1]."""
        rows = math_ops.range(self._periodicity - 1, dtype=powers.dtype)
        taken = array_ops.one_hot((rows - powers[..., None]) % self._periodicity, self._periodicity, dtype=self.dtype)
        return taken[..., :-1] - taken[..., -1:]  # the value that is left out is less the sum of the others

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """The covariance of the noise of so many steps [...]."""
        return self._cycle_noise(num_steps) * self._noise_variance()

    def _noise_variance(self) -> Tensor:
        return array_ops.reshape(self.state_transition_noise_covariance, [])

    def _cycle_noise(self, num_steps: Any) -> Tensor:
        """The same for a variance of 1. Noise i steps ago is now in value i of the cycle, and less it in value i - 1: with the number of times c that steps
        come by each place of the cycle, that is E^T diag(c) E, row m of E being 1 at m and -1 at m - 1."""
        period = self._periodicity
        places = math_ops.range(period, dtype=num_steps.dtype)
        times = math_ops.cast((num_steps[..., None] - places + period - 1) // period, self.dtype)
        whole = eye(period, dtype=self.dtype)
        moved = whole[:, :-1] - whole[:, 1:]
        return matmul(moved, times[..., None] * moved, transpose_a=True)


class ResolutionCycleModel(CycleStateSpaceModel):
    """A cycle of any real `periodicity`, smooth: num_latent_values values, an odd number, describe it, between which the trigonometric polynomial through
    them gives what is observed. A step turns the cycle by num_latent_values / periodicity of a value."""

    def __init__(
        self,
        num_latent_values: int,
        periodicity: float,
        near_integer_threshold: float = 1e-8,
        configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration(),
    ) -> None:
        """Numbers nearer to whole ones than near_integer_threshold are taken for these."""
        if num_latent_values % 2 != 1:
            raise at_user_line(ValueError("Only odd numbers of latent values are supported."))
        self._true_periodicity, self._threshold = periodicity, near_integer_threshold
        super().__init__(num_latent_values, configuration)

    def _turned(self, steps: Any) -> Tensor:
        """By how many values so many steps turn the cycle."""
        return math_ops.cast(steps, self.dtype) * (self._periodicity / self._true_periodicity)

    def _share(self, distance: Tensor) -> Tensor:
        """How much of a value a place has that is `distance` values from it: sin(pi t) / (p sin(pi t / p)), Dirichlet's kernel. It has period p; reckoned near
        zero, and from the nearest whole number, it is exact where the distance is whole."""
        period = self._periodicity
        t = distance - period * math_ops.round(distance / period)
        whole = math_ops.round(t)
        beside = t - whole
        beside = array_ops.where(math_ops.abs(beside) < self._threshold, array_ops.zeros_like(beside), beside)
        t = whole + beside
        sine = (1.0 - 2.0 * (math_ops.abs(whole) % 2.0)) * gen_ops.sin(math.pi * beside)
        here = gen_ops.equal(t, 0.0)
        apart = array_ops.where(here, array_ops.ones_like(t), t)
        return array_ops.where(here, array_ops.ones_like(t), sine / (period * gen_ops.sin(math.pi / period * apart)))

    def transition_to_powers(self, powers: Any) -> Tensor:
        """A turn by so many steps [...]: [..., num_latent_values - 1, num_latent_values - 1]."""
        places = math_ops.range(self._periodicity, dtype=self.dtype)
        shares = self._share(places[:-1, None] - places - self._turned(powers)[..., None, None])
        return shares[..., :-1] - shares[..., -1:]

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """The covariance of the noise of so many steps [...]. A whole period of at least num_latent_values steps adds what a turn of the cycle by all its
        values does, times the steps that it has for each value; what is left is summed up."""
        period = round(self._true_periodicity)
        if abs(self._true_periodicity - period) < self._threshold and period >= self._periodicity:
            turn = self._cycle_noise(constant(self._periodicity)) * (period / self._periodicity)
            turns = math_ops.cast(num_steps // period, self.dtype)[..., None, None] * turn
            return (turns + self._sums(num_steps % period)) * self._noise_variance()
        return self._sums(num_steps) * self._noise_variance()

    def _sums(self, num_steps: Any) -> Tensor:
        """The covariance of noise of variance 1 of so many steps, step by step."""
        past = math_ops.range(math_ops.reduce_max(num_steps))
        places = math_ops.range(self._periodicity, dtype=self.dtype)
        shares = self._share(places - self._turned(past)[:, None])
        now = shares[:, :-1] - shares[:, 1:]  # where the noise of each step is: the first column of the turn since then
        sums = math_ops.cumsum(now[:, :, None] * now[:, None, :])
        return array_ops.gather(array_ops.pad(sums, [(1, 0), (0, 0), (0, 0)]), num_steps)
