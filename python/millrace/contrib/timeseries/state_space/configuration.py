# SPDX-License-Identifier: Apache-2.0
"""What a state space model is told."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from millrace.contrib.timeseries.covariances import log_noninformative_covariance_prior
from millrace.framework import dtypes


class _Options(NamedTuple):
    num_features: int = 1
    use_observation_noise: bool = True
    dtype: Any = dtypes.float32
    covariance_prior_fn: Any = log_noninformative_covariance_prior
    bayesian_prior_weighting: bool = True
    filtering_postprocessor: Any = None
    trainable_start_state: bool = False
    exogenous_noise_increases: bool = True
    exogenous_noise_decreases: bool = False
    exogenous_feature_columns: Any = None
    exogenous_update_condition: Any = None
    filtering_maximum_posterior_variance_ratio: float = 1e6
    filtering_minimum_posterior_variance: float = 0.0
    transition_covariance_initial_log_scale_bias: float = -5.0
    static_unrolling_window_size_threshold: Optional[int] = None


class StateSpaceModelConfiguration(_Options):
    """Options of a state space model.

    num_features: how many numbers are observed at a time; use_observation_noise: whether they have noise of their own beside that of the state (asked of the
    outermost model of an ensemble); dtype: that of all numbers.
    covariance_prior_fn: a log prior of a noise's covariance, which the loss loses; by default one that favours little noise (`lambda _: 0.0` for none);
    bayesian_prior_weighting: whether the prior counts by an estimate of the whole series' length, otherwise by that of the window.
    filtering_postprocessor: a FilteringStepPostprocessor, as for anomalies; trainable_start_state: whether series begin in a state that is trained.
    exogenous_feature_columns: columns of features that are not predicted. They add to the state and its uncertainty (exogenous_noise_increases), or are
    observations of it (exogenous_noise_decreases), where exogenous_update_condition(times, features) is true, or always.
    filtering_maximum_posterior_variance_ratio, filtering_minimum_posterior_variance: bounds of the variances of states before they are filtered.
    transition_covariance_initial_log_scale_bias: by how much the noise of transitions is below that of observations at first, as a logarithm.
    static_unrolling_window_size_threshold: up to how many steps windows are laid out in the graph, without a loop (of the outermost model).
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> "StateSpaceModelConfiguration":
        made = super().__new__(cls, *args, **kwargs)
        return made if made.exogenous_feature_columns is not None else made._replace(exogenous_feature_columns=[])
