# SPDX-License-Identifier: Apache-2.0
"""The Kalman filter: what is known of a hidden state, as a mean and a covariance, before and after it is observed.

state(t) = transition state(t - 1) + noise, observation(t) = observation_model state(t) + observation noise, all noise normal (R. E. Kalman, A New Approach to
Linear Filtering and Prediction Problems, 1960). Below b is the batch, d the size of states, n that of observations.
"""

from __future__ import annotations

from typing import Any, Tuple

from millrace.contrib.timeseries.covariances import mvn_tril_log_prob
from millrace.framework import dtypes
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, band_ops, gen_ops, math_ops
from millrace.ops.control_flow_ops import Assert, verify_tensor_all_finite
from millrace.ops.matrix_ops import eye, matmul

_ADVICE = (
    "Filtering may be unstable where variances of states are very different, or almost nothing is uncertain: change filtering_maximum_posterior_variance_ratio "
    "or filtering_minimum_posterior_variance of the StateSpaceModelConfiguration, or the transition matrix."
)


class KalmanFilter:
    """Steps of the filter for a batch of states."""

    def __init__(self, dtype: Any = dtypes.float32, simplified_posterior_covariance_computation: bool = False) -> None:
        """The simplified covariance behind an observation is (I - K H) P, somewhat faster than Joseph's form and less stable."""
        self.dtype, self._simplified = dtype, simplified_posterior_covariance_computation

    def do_filter(
        self,
        estimated_state: Any,
        estimated_state_covariance: Any,
        predicted_observation: Any,
        predicted_observation_covariance: Any,
        observation: Any,
        observation_model: Any,
        observation_noise: Any,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """State [b, d] and covariance [b, d, d] behind an observation [b, n], and the log probability [b] of it, for which a mean [b, n] and a covariance
        [b, n, n] were predicted; with an observation_model [b, n, d] and the covariance of observation noise [b, n, n] or [n, n]. A step fails with
        InvalidArgumentError where what was predicted is not finite, or a variance below 0."""
        given = predicted_observation_covariance
        covariance = verify_tensor_all_finite(0.5 * (given + array_ops.matrix_transpose(given)), "Predicted observation covariance was not finite. " + _ADVICE)
        least = math_ops.reduce_min(band_ops.matrix_diag_part(covariance))
        positive = Assert(least >= 0.0, ["The predicted observation covariance has a negative diagonal entry. " + _ADVICE, least])
        with control_dependencies([positive]):
            factor = gen_ops.cholesky(covariance)
        log_probability = mvn_tril_log_prob(predicted_observation, factor, observation)
        state, state_covariance = self.posterior_from_prior_state(
            estimated_state, estimated_state_covariance, observation, observation_model, (predicted_observation, given), observation_noise
        )
        return state, state_covariance, log_probability

    def predict_state_mean(self, prior_state: Any, transition_matrices: Any) -> Tensor:
        """A state [b, d] some steps later, transition_matrices [b, d, d] being powers of the transition."""
        return array_ops.squeeze(matmul(transition_matrices, prior_state[..., None]), [-1])

    def predict_state_var(self, prior_state_var: Any, transition_matrices: Any, transition_noise_sums: Any) -> Tensor:
        """A covariance [b, d, d] some steps later, transition_noise_sums [b, d, d] being the noise that these steps add (power_sums_tensor)."""
        return matmul(matmul(transition_matrices, prior_state_var), transition_matrices, adjoint_b=True) + transition_noise_sums

    def posterior_from_prior_state(
        self, prior_state: Any, prior_state_var: Any, observation: Any, observation_model: Any, predicted_observations: Any, observation_noise: Any
    ) -> Tuple[Tensor, Tensor]:
        """State [b, d] and covariance [b, d, d] behind an observation [b, n], for which (mean, covariance) were predicted."""
        mean, covariance = predicted_observations
        # Solved with the adjoint: symbolically the same, but without it filtering of several features is unstable.
        gain = gen_ops.matrix_solve(covariance, matmul(observation_model, prior_state_var, adjoint_b=True), adjoint=True)  # transposed: [b, n, d]
        state = prior_state + array_ops.squeeze(matmul(gain, array_ops.expand_dims(observation - mean, -1), adjoint_a=True), [-1])
        seen = matmul(gain, observation_model, adjoint_a=True)
        unseen = eye(array_ops.shape(seen)[1], dtype=seen.dtype)[None] - seen
        if self._simplified:
            return state, matmul(unseen, prior_state_var)
        # Joseph's form holds for any gain, so also for one with rounding errors: (I - K H) P (I - K H)^T + K R K^T.
        kept = matmul(unseen, matmul(unseen, prior_state_var), adjoint_b=True)
        return state, kept + matmul(matmul(gain, observation_noise, adjoint_a=True), gain)

    def observed_from_state(self, state_mean: Any, state_var: Any, observation_model: Any, observation_noise: Any) -> Tuple[Tensor, Tensor]:
        """What is predicted to be observed of a state [b, d] with a covariance [b, d, d]: a mean [b, n] and a covariance [b, n, n]."""
        mean = array_ops.squeeze(matmul(array_ops.expand_dims(state_mean, 1), observation_model, adjoint_b=True), [1])
        covariance = matmul(matmul(observation_model, state_var), observation_model, adjoint_b=True)
        return mean, covariance + observation_noise
