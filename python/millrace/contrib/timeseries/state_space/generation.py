# SPDX-License-Identifier: Apache-2.0
"""Series drawn from univariate state space models, as arrays of NumPy."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from millrace.contrib.timeseries.continuing import parameter_switch
from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import math_ops


def _check_univariate(model: Any) -> None:
    if model.num_features != 1:
        raise at_user_line(NotImplementedError("Generation for multivariate state space models is not implemented: generate each feature by its own model."))


def draw_parameters(model: Any, seed: Optional[int]) -> Dict[Any, Any]:
    """Values for the tensors that a model's noise and start state are: small variances, a start that is certain. `seed` sets NumPy's own generator."""
    _check_univariate(model)
    if seed:
        np.random.seed(seed)
    state_size, noise_size = (int(size) for size in convert_to_tensor(model.get_noise_transform()).get_shape())
    variances = 1.0 / np.random.gamma(shape=10.0, scale=10.0, size=[noise_size])
    drawn: Dict[Any, Any] = {
        model.prior_state_mean: np.random.normal(size=[state_size]),
        model.state_transition_noise_covariance: np.diag(variances),
        model.prior_state_var: np.zeros([state_size, state_size]),
    }
    if model.use_observation_noise:
        drawn[model.observation_noise_covariance] = [[1.0 / np.random.gamma(shape=4, scale=4)]]
    return {tensor: value for tensor, value in drawn.items() if tensor is not None}


def draw_series(model: Any, count: int, length: int, parameters: Optional[Dict[Any, Any]], seed: Optional[int], add_observation_noise: bool) -> Dict[str, Any]:
    """Times [count, length] and values [count, length, 1] drawn from a model in the default session, some tensors replaced by parameters."""
    if seed is not None:
        np.random.seed(seed)
    _check_univariate(model)
    parameters = parameters or {}
    value_of = parameter_switch(parameters)

    def evaluated(tensor: Any, dtype: Any = None) -> Any:
        return convert_to_tensor(tensor, dtype).eval(feed_dict=parameters)

    transition, transform = evaluated(model.get_state_transition(), model.dtype), evaluated(model.get_noise_transform())
    deviations = np.sqrt(np.diag(value_of(model.state_transition_noise_covariance)))
    deviation = np.sqrt(value_of(model.observation_noise_covariance)[0][0]) if add_observation_noise else None
    states = np.tile(value_of(model.prior_state_mean), [count, 1])
    values = np.zeros([count, length])
    for i, seen in enumerate(evaluated(model.get_broadcasted_observation_model(times=math_ops.range(length)))):
        noise = np.random.normal(np.zeros([count, len(deviations)]), np.tile(deviations, [count, 1]))
        states = states @ transition.T + noise @ transform.T
        mean = states @ seen[0]
        values[:, i] = mean if deviation is None else np.random.normal(loc=mean, scale=deviation)
    return {TrainEvalFeatures.TIMES: np.tile(np.arange(length), [count, 1]), TrainEvalFeatures.VALUES: values[..., None]}
