# SPDX-License-Identifier: Apache-2.0
"""What may come behind each filtered step of a model: detection of anomalies, which should not change what the model knows."""

from __future__ import annotations

import abc
from typing import Any, Dict, List, Tuple

from millrace.contrib.timeseries.covariances import cauchy_log_prob, entropy_matched_cauchy_scale
from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.check_ops import assert_equal


class FilteringStepPostprocessor(abc.ABC):
    """The base of postprocessors."""

    @abc.abstractmethod
    def process_filtering_step(
        self, current_times: Any, current_values: Any, predicted_state: Any, filtered_state: Any, outputs: Dict[str, Any]
    ) -> Tuple[Any, Dict[str, Any]]:
        """A state and outputs instead of those that a step gave: of times [batch], values [batch, features], and the nested states before and behind these
        values were looked at."""

    @property
    @abc.abstractmethod
    def output_names(self) -> List[str]:
        """What it adds to outputs."""


def cauchy_alternative_to_gaussian(current_times: Any, current_values: Any, outputs: Dict[str, Any]) -> Tensor:
    """The log density [batch] of values [batch, features] under Cauchy distributions around outputs["mean"], each as uncertain as the normal one with the
    variance of outputs["covariance"]."""
    del current_times  # anomalies are alike at all times
    scale = entropy_matched_cauchy_scale(outputs["covariance"])
    return math_ops.reduce_sum(cauchy_log_prob(outputs["mean"], scale, current_values), axis=1)


def _between(first: Any, second: Any, share: Any) -> Any:
    """Between two states: `share` [batch] of the first and the rest of the second. Whole numbers, which are times, have to be the same in both."""

    def mixed(a: Tensor, b: Tensor) -> Tensor:
        if not a.dtype.is_floating:
            with control_dependencies([assert_equal(a, b)]):
                return array_ops.identity(a)
        beside = array_ops.concat([array_ops.shape(share), array_ops.ones([array_ops.rank(a) - 1], dtypes.int32)], 0)
        weight = array_ops.reshape(share, beside)
        made = weight * a + (1.0 - weight) * b
        made.set_shape(a.get_shape())
        return made

    return nest.map_structure(mixed, first, second)


class StateInterpolatingAnomalyDetector(FilteringStepPostprocessor):
    """Takes values for anomalies where another distribution, with longer tails, explains them better, and then leaves the state as it was predicted.

    With o the log odds of an anomaly, by Bayes' rule, r = sigmoid(-responsibility_scaling o) is how much the model answers for a value: the state is r of the
    filtered and 1 - r of the predicted one, and the loss is mixed alike of both log probabilities. Outputs have o as "anomaly_score" [batch].
    """

    output_names = ["anomaly_score"]

    def __init__(
        self, anomaly_log_likelihood: Any = cauchy_alternative_to_gaussian, anomaly_prior_probability: float = 0.01, responsibility_scaling: float = 1.0
    ) -> None:
        """anomaly_log_likelihood(current_times, current_values, outputs) is a log density [batch] of anomalies; smaller scalings mix more."""
        self._log_likelihood, self._prior, self._scaling = anomaly_log_likelihood, anomaly_prior_probability, responsibility_scaling

    def process_filtering_step(
        self, current_times: Any, current_values: Any, predicted_state: Any, filtered_state: Any, outputs: Dict[str, Any]
    ) -> Tuple[Any, Dict[str, Any]]:
        """The mixed state, and outputs with "loss" and "anomaly_score"; outputs["log_likelihood"] [batch] is the model's own."""
        prior = convert_to_tensor(self._prior, current_values.dtype)
        found = self._log_likelihood(current_times=current_times, current_values=current_values, outputs=outputs)
        anomalous, normal = found + gen_ops.log(prior), outputs["log_likelihood"] + gen_ops.log(1.0 - prior)
        log_odds = anomalous - normal
        share = math_ops.sigmoid(-self._scaling * log_odds)
        loss = -(share * normal + (1.0 - share) * anomalous)
        return _between(filtered_state, predicted_state, share), {**outputs, "loss": loss, "anomaly_score": log_odds}
