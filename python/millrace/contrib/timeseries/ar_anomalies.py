# SPDX-License-Identifier: Apache-2.0
"""An autoregressive model of series in which some values are out of line."""

from __future__ import annotations

import math
from typing import Any, Dict

from millrace.contrib.timeseries.ar_model import ARModel
from millrace.contrib.timeseries.covariances import cauchy_log_prob, normal_log_prob
from millrace.contrib.timeseries.prediction_networks import FlatPredictionModel
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops, math_ops
from millrace.ops.init_ops import zeros_initializer
from millrace.ops.variable_scope import get_variable


class AnomalyMixtureARModel(ARModel):
    """Each value is, with anomaly_prior_probability, an anomaly: drawn around the prediction from a distribution whose width is trained."""

    GAUSSIAN_ANOMALY = "gaussian"
    CAUCHY_ANOMALY = "cauchy"

    def __init__(
        self,
        periodicities: Any,
        anomaly_prior_probability: float,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        prediction_model_factory: Any = FlatPredictionModel,
        anomaly_distribution: str = GAUSSIAN_ANOMALY,
        num_time_buckets: int = 10,
        exogenous_feature_columns: Any = None,
    ) -> None:
        if not 0.0 < anomaly_prior_probability < 1.0:
            raise at_user_line(ValueError("anomaly_prior_probability must be between 0 and 1, got %s." % anomaly_prior_probability))
        if anomaly_distribution not in (self.GAUSSIAN_ANOMALY, self.CAUCHY_ANOMALY):
            raise at_user_line(ValueError("anomaly_distribution must be 'gaussian' or 'cauchy', got %r." % (anomaly_distribution,)))
        self._prior, self._anomaly_distribution = anomaly_prior_probability, anomaly_distribution
        super().__init__(
            periodicities,
            input_window_size,
            output_window_size,
            num_features,
            prediction_model_factory,
            num_time_buckets,
            ARModel.NORMAL_LIKELIHOOD_LOSS,
            exogenous_feature_columns,
        )

    def prediction_ops(self, times: Any, values: Any, exogenous_regressors: Any) -> Dict[str, Tensor]:
        """Those of an ARModel, and "anomaly_params": the variance of anomalies, or their scale if they are of Cauchy's distribution, a scalar."""
        predictions = super().prediction_ops(times, values, exogenous_regressors)
        predictions["anomaly_params"] = gen_ops.exp(get_variable("anomaly_log_param", [], self.dtype, zeros_initializer()))
        return predictions

    def _anomaly_log_prob(self, targets: Any, prediction_ops: Dict[str, Any]) -> Tensor:
        width = prediction_ops["anomaly_params"]
        if self._anomaly_distribution == self.GAUSSIAN_ANOMALY:
            return normal_log_prob(targets, self._sigma(width), prediction_ops["mean"])
        return cauchy_log_prob(targets, width, prediction_ops["mean"])

    def loss_op(self, targets: Any, prediction_ops: Dict[str, Any]) -> Tensor:
        """The mean negative log likelihood of the targets, with or without an anomaly."""
        normal = normal_log_prob(targets, self._sigma(prediction_ops["covariance"]), prediction_ops["mean"]) + math.log(1.0 - self._prior)
        anomalous = self._anomaly_log_prob(targets, prediction_ops) + math.log(self._prior)
        smaller, larger = math_ops.minimum(normal, anomalous), math_ops.maximum(normal, anomalous)
        return self._mean_loss(-(larger + gen_ops.log(1.0 + gen_ops.exp(smaller - larger))), targets)
