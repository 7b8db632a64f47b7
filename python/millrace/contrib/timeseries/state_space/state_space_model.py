# SPDX-License-Identifier: Apache-2.0
"""Linear state space models: a hidden state moves by a transition and noise, and what is observed of it is linear in it, with noise.

state(t) = transition state(t - 1) + noise_transform noise(t), observation(t) = observation_model(t) state(t) + observation_noise(t). The noises are normal, and
their covariances are what is learned; transition, transform and observation model say what kind of model it is. Below d is the size of states, r that of their
noise, n the number of features.
"""

from __future__ import annotations

import abc
from typing import Any, Dict, Optional, Tuple

from millrace.contrib.layers import fully_connected
from millrace.contrib.timeseries.covariances import clip_covariance, transform_to_covariance_matrices, variable_covariance_matrix
from millrace.contrib.timeseries.matrices import matrix_to_powers, power_sums_tensor
from millrace.contrib.timeseries.sequential_model import SequentialTimeSeriesModel
from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.generation import draw_parameters, draw_series
from millrace.contrib.timeseries.state_space.kalman_filter import KalmanFilter
from millrace.estimator.spec import ModeKeys
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.control_flow_ops import Assert
from millrace.ops.matrix_ops import eye, matmul
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope

_State = Tuple[Any, Any, Any]  # mean [b, d], covariance [b, d, d], and the times that they are of [b]


class StateSpaceModel(SequentialTimeSeriesModel):
    """The base of state space models. get_state_transition, get_noise_transform and get_observation_model make it one; models that know shorter ways override
    transition_to_powers and transition_power_noise_accumulator.

    Its variables lie in the variable scope in which it was constructed. prior_state_mean [d], prior_state_var [d, d] and state_transition_noise_covariance
    [r, r] are there when initialize_graph has been called.
    """

    def __init__(self, configuration: StateSpaceModelConfiguration) -> None:
        self._configuration = configuration
        after = configuration.filtering_postprocessor
        super().__init__(
            train_output_names=["mean", "covariance", "log_likelihood", *(after.output_names if after is not None else [])],
            predict_output_names=["mean", "covariance"],
            num_features=configuration.num_features,
            normalize_features=True,
            dtype=configuration.dtype,
            exogenous_feature_columns=configuration.exogenous_feature_columns,
            exogenous_update_condition=configuration.exogenous_update_condition,
            static_unrolling_window_size_threshold=configuration.static_unrolling_window_size_threshold,
        )
        self._kalman_filter: Any = None
        self.prior_state_mean: Any = None
        self.prior_state_var: Any = None
        self.state_transition_noise_covariance: Any = None
        self._observation_noise_covariance: Any = None
        self._tradeoff_log_scale: Any = None
        self._variable_scope = get_variable_scope()

    use_observation_noise = property(lambda self: self._configuration.use_observation_noise, doc="Whether observations have noise of their own.")
    observation_noise_covariance = property(lambda self: self._observation_noise_covariance, doc="Its covariance [n, n].")

    # ---- what kind of model it is ----

    @abc.abstractmethod
    def get_state_transition(self) -> Any:
        """The transition [d, d]."""

    @abc.abstractmethod
    def get_noise_transform(self) -> Any:
        """How noise reaches the state: [d, r]."""

    @abc.abstractmethod
    def get_observation_model(self, times: Any) -> Any:
        """What is observed of a state at times [b]: [d], [n, d] or [b, n, d]."""

    def get_broadcasted_observation_model(self, times: Any) -> Tensor:
        """The same as [b, n, d]."""
        model = convert_to_tensor(self.get_observation_model(times), self.dtype)
        rank = model.get_shape().with_rank_at_least(1).with_rank_at_most(3).ndims
        if rank is None:
            with control_dependencies([Assert(gen_ops.equal(array_ops.rank(model), 3), [array_ops.shape(model)])]):
                return array_ops.identity(model)
        if rank == 3:
            return model
        batch = array_ops.shape(times)[0]
        return array_ops.tile(model[None, None], [batch, self.num_features, 1]) if rank == 1 else array_ops.tile(model[None], [batch, 1, 1])

    def transition_to_powers(self, powers: Any) -> Tensor:
        """The transition to powers [...]: [..., d, d]."""
        return matrix_to_powers(convert_to_tensor(self.get_state_transition(), self.dtype), powers)

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """The covariance of the noise that so many steps [...] add to a state: [..., d, d]."""
        transform = convert_to_tensor(self.get_noise_transform(), self.dtype)
        noise = matmul(matmul(transform, self.state_transition_noise_covariance), transform, transpose_b=True)
        sums = power_sums_tensor(math_ops.reduce_max(num_steps) + 1, convert_to_tensor(self.get_state_transition(), self.dtype), noise)
        return array_ops.gather(sums, num_steps)

    # ---- parameters ----

    def initialize_graph(self, input_statistics: Any = None) -> None:
        """Makes its variables in the default graph; InputStatistics say where they begin."""
        self._set_input_statistics(input_statistics)
        self._define_parameters()
        with variable_scope(self._variable_scope):
            self._observation_noise_covariance = convert_to_tensor(self.get_observation_noise_covariance(), self.dtype)
        self._kalman_filter = KalmanFilter(self.dtype)
        self.prior_state_var, self.prior_state_mean = self.get_prior_covariance(), self.get_prior_mean()

    def _set_input_statistics(self, input_statistics: Any = None) -> None:
        super().initialize_graph(input_statistics)

    def _define_parameters(self, observation_transition_tradeoff_log: Any = None) -> None:
        """Makes the variables of transitions. The tradeoff says how much more noise observations have, as a logarithm; ensembles share one."""
        with variable_scope(self._variable_scope):
            given = observation_transition_tradeoff_log
            self._tradeoff_log_scale = self._tradeoff_variable() if given is None else given
            self.state_transition_noise_covariance = self.get_state_transition_noise_covariance()

    def _tradeoff_variable(self) -> Any:
        bias = self._configuration.transition_covariance_initial_log_scale_bias
        return get_variable("observation_transition_tradeoff_log_scale", dtype=self.dtype, initializer=constant(-bias, self.dtype))

    def _start_variance(self) -> Any:
        """The variance [n] of how the series begins, on the scale of the model."""
        return self._scale_variance(self._input_statistics.series_start_moments.variance)

    def get_state_transition_noise_covariance(self, minimum_initial_variance: float = 1e-5) -> Tensor:
        """A variable covariance [r, r] of the noise of states, which begins small: its log is reduced by the tradeoff."""
        size = convert_to_tensor(self.get_noise_transform(), self.dtype).get_shape()[1].value
        scale: Any = 0.0
        if self._input_statistics is not None:
            share = math_ops.reduce_mean(self._start_variance()) / math_ops.cast(self._input_statistics.total_observation_count, self.dtype)
            scale = gen_ops.log(math_ops.maximum(share, minimum_initial_variance))
        return variable_covariance_matrix(size, "state_transition_noise", self.dtype, initial_overall_scale_log=scale - self._tradeoff_log_scale)

    def get_observation_noise_covariance(self, minimum_initial_variance: float = 1e-5) -> Tensor:
        """A variable covariance [n, n] of the noise of observations, which begins as the tradeoff says; or zeros, where there is to be none."""
        name = "observation_noise_covariance"
        if not self.use_observation_noise:
            return array_ops.zeros([self.num_features, self.num_features], self.dtype, name=name)
        variances = None if self._input_statistics is None else math_ops.maximum(self._start_variance(), minimum_initial_variance)
        return variable_covariance_matrix(self.num_features, name, self.dtype, variances, self._tradeoff_log_scale)

    def _state_size(self) -> int:
        size: int = convert_to_tensor(self.get_state_transition()).get_shape()[0].value
        return size

    def get_prior_covariance(self) -> Tensor:
        """The covariance [d, d] of the start state."""
        with variable_scope(self._variable_scope):
            if not self._configuration.trainable_start_state:
                return eye(self._state_size(), dtype=self.dtype)
            covariance = variable_covariance_matrix(self._state_size(), "prior_state_var", self.dtype)
            if self._input_statistics is None:
                return covariance
            return covariance * math_ops.maximum(math_ops.reduce_max(self._start_variance()), 1.0)

    def get_prior_mean(self) -> Any:
        """The mean [d] of the start state."""
        with variable_scope(self._variable_scope):
            return get_variable("prior_state_mean", [self._state_size()], self.dtype, trainable=self._configuration.trainable_start_state)

    def get_start_state(self) -> _State:
        """Mean and covariance before the first time, and the time before it."""
        first = array_ops.zeros([], dtypes.int64) if self._input_statistics is None else self._input_statistics.start_time
        return self.prior_state_mean, self.prior_state_var, first - 1

    def _loss_additions(self, times: Any, values: Any, mode: str) -> Any:
        """In training less the log priors of covariances, divided by how many observations there are."""
        del values  # priors do not look at data
        if mode != ModeKeys.TRAIN:
            return array_ops.zeros([], self.dtype)
        whole = self._input_statistics is not None and self._configuration.bayesian_prior_weighting
        count = self._input_statistics.total_observation_count if whole else array_ops.shape(times)[1]
        prior, noise = self._configuration.covariance_prior_fn, self._observation_noise_covariance
        total = convert_to_tensor(prior(self.state_transition_noise_covariance), self.dtype)
        if self.use_observation_noise and noise is not None:
            total += convert_to_tensor(prior(noise), self.dtype)
        return -total / math_ops.cast(count, self.dtype)

    # ---- steps ----

    def _window_initializer(self, times: Any, state: _State) -> None:
        """Reckons powers of the transition once for all lengths of gaps in a window."""
        times = convert_to_tensor(times)
        within = array_ops.reshape(times[:, 1:] - times[:, :-1], [-1])
        before = times[:, 0] - convert_to_tensor(state[2])
        self._gaps, _ = array_ops.unique(math_ops.maximum(array_ops.concat([within, before], 0), 0))
        self._sums_of_gaps, self._powers_of_gaps = self.transition_power_noise_accumulator(self._gaps), self.transition_to_powers(self._gaps)

    def _over_gaps(self, lengths: Any) -> Tuple[Tensor, Tensor]:
        """Powers of the transition, and the noise that is added, over gaps of lengths [b]: [b, d, d]."""
        which = math_ops.argmax(math_ops.cast(gen_ops.equal(lengths[:, None], self._gaps), dtypes.int32), axis=1)
        found = []
        for cached in (self._powers_of_gaps, self._sums_of_gaps):
            found.append(array_ops.gather(cached, which))
            found[-1].set_shape(lengths.get_shape().concatenate(cached.get_shape()[-2:]))
        return found[0], found[1]

    def _imputation_step(self, current_times: Any, state: _State) -> _State:
        mean, covariance, before = state
        gap = math_ops.maximum(current_times - before, 0)
        transitions, noise = self._over_gaps(gap)
        kalman = self._kalman_filter
        return kalman.predict_state_mean(mean, transitions), kalman.predict_state_var(covariance, transitions, noise), before + gap

    def _prediction_step(self, current_times: Any, state: _State) -> Tuple[_State, Dict[str, Any]]:
        mean, covariance, before = state
        there = Assert(math_ops.reduce_all(gen_ops.less_equal(current_times, before)), ["Attempted to predict without imputation"])
        with control_dependencies([there]):
            seen = self.get_broadcasted_observation_model(current_times)
            predicted, uncertainty = self._kalman_filter.observed_from_state(mean, covariance, seen, self._observation_noise_covariance)
        batch, size = current_times.get_shape(), self.num_features
        predicted.set_shape(batch.concatenate([size]))
        uncertainty.set_shape(batch.concatenate([size, size]))
        return (mean, covariance, current_times), {"mean": predicted, "covariance": uncertainty}

    def _filtering_step(self, current_times: Any, current_values: Any, state: _State, predictions: Dict[str, Any]) -> Tuple[_State, Dict[str, Any]]:
        mean, covariance, before = state
        seen, options = self.get_broadcasted_observation_model(current_times), self._configuration
        there = Assert(math_ops.reduce_all(gen_ops.equal(current_times, before)), ["Attempted to perform filtering without imputation/prediction"])
        with control_dependencies([there]):
            ratio, least = options.filtering_maximum_posterior_variance_ratio, options.filtering_minimum_posterior_variance
            covariance = clip_covariance(covariance, ratio, least)
            mean, covariance, log_likelihood = self._kalman_filter.do_filter(
                mean, covariance, predictions["mean"], predictions["covariance"], current_values, seen, self._observation_noise_covariance
            )
        log_likelihood.set_shape(current_times.get_shape())
        filtered = (mean, covariance, current_times)
        outputs = {**predictions, "loss": -log_likelihood, "log_likelihood": log_likelihood}
        if options.filtering_postprocessor is None:
            return filtered, outputs
        return options.filtering_postprocessor.process_filtering_step(
            current_times=current_times, current_values=current_values, predicted_state=state, filtered_state=filtered, outputs=outputs
        )

    def _scale_back_predictions(self, predictions: Dict[str, Any]) -> Dict[str, Any]:
        mean, covariance = predictions["mean"], predictions["covariance"]
        return {**predictions, "mean": self._scale_back_data(mean), "covariance": self._scale_back_variance(covariance)}

    def _exogenous_input_step(self, current_times: Any, current_exogenous_regressors: Any, state: _State) -> _State:
        if self._configuration.exogenous_noise_decreases:
            state = self._exogenous_noise_decreasing(current_times, current_exogenous_regressors, state)
        if self._configuration.exogenous_noise_increases:
            state = self._exogenous_noise_increasing(current_times, current_exogenous_regressors, state)
        return state

    def _exogenous_noise_decreasing(self, current_times: Any, exogenous_values: Any, state: _State) -> _State:
        """Takes linear functions of exogenous numbers [b, m] for an observation of the whole state and the covariance of its noise."""
        del current_times  # they act alike at all times
        mean, covariance, times = state
        size = self._state_size()
        everything = eye(size, batch_shape=array_ops.shape(exogenous_values)[:-1], dtype=self.dtype)
        with variable_scope("exogenous_noise_decreasing_covariance"):
            noise = transform_to_covariance_matrices(exogenous_values, size)
        with variable_scope("exogenous_noise_decreasing_observation"):
            observation = fully_connected(exogenous_values, size, activation_fn=None)
        return (*self._kalman_filter.posterior_from_prior_state(mean, covariance, observation, everything, (mean, noise + covariance), noise), times)

    def _exogenous_noise_increasing(self, current_times: Any, exogenous_values: Any, state: _State) -> _State:
        """Adds linear functions of exogenous numbers [b, m] to the state and its covariance."""
        del current_times  # they act alike at all times
        mean, covariance, times = state
        with variable_scope("exogenous_noise_increasing_mean"):
            added = fully_connected(exogenous_values, mean.get_shape()[1].value, activation_fn=None)
        with variable_scope("exogenous_noise_increasing_covariance"):
            return mean + added, covariance + transform_to_covariance_matrices(exogenous_values, covariance.get_shape()[1].value), times

    # ---- series that it draws ----

    def random_model_parameters(self, seed: Optional[int] = None) -> Dict[Any, Any]:
        """Values for tensors of the model from which it can `generate`, drawn at random. NotImplementedError for several features."""
        return draw_parameters(self, seed)

    def generate(
        self, number_of_series: int, series_length: int, model_parameters: Any = None, seed: Optional[int] = None, add_observation_noise: Optional[bool] = None
    ) -> Dict[str, Any]:
        """Series drawn from the model in the default session: times [series, length] and values [series, length, 1]. model_parameters replace tensors or
        variables by arrays; a seed sets NumPy's own generator. NotImplementedError for several features."""
        noisy = self.use_observation_noise if add_observation_noise is None else add_observation_noise
        return draw_series(self, number_of_series, series_length, model_parameters, seed, noisy)
