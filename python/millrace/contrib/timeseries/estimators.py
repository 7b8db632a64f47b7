# SPDX-License-Identifier: Apache-2.0
"""Estimators of models of series: any model, and autoregressive ones."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

from millrace.contrib.timeseries import serving
from millrace.contrib.timeseries.ar_anomalies import AnomalyMixtureARModel
from millrace.contrib.timeseries.ar_model import ARModel
from millrace.contrib.timeseries.head import OneShotPredictionHead, TimeSeriesRegressionHead
from millrace.contrib.timeseries.input_statistics import InputStatisticsFromMiniBatch
from millrace.contrib.timeseries.prediction_networks import FlatPredictionModel, LSTMPredictionModel
from millrace.contrib.timeseries.state_management import FilteringOnlyStateManager, PassthroughStateManager
from millrace.estimator.estimator import Estimator
from millrace.estimator.export import ServingInputReceiver
from millrace.estimator.optimizers import get_optimizer_instance
from millrace.framework.errors import at_user_line
from millrace.train.rules import AdagradOptimizer, AdamOptimizer

_Receiver = Callable[[], ServingInputReceiver]


class TimeSeriesRegressor(Estimator):
    """An estimator of a TimeSeriesModel. Evaluations give, beside losses, predictions, their times and the state behind them, from which
    predict_continuation_input_fn goes on."""

    def __init__(
        self,
        model: Any,
        state_manager: Any = None,
        optimizer: Any = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        head_type: Any = TimeSeriesRegressionHead,
    ) -> None:
        """Trained by Adam with a rate of 0.02 where no optimizer is given. The state_manager says where windows begin: for an ARModel in themselves,
        otherwise in the model's start state."""
        self._model = model
        head = head_type(
            model=model,
            state_manager=state_manager or (FilteringOnlyStateManager() if isinstance(model, ARModel) else PassthroughStateManager()),
            optimizer=optimizer or AdamOptimizer(0.02),
            input_statistics_generator=InputStatisticsFromMiniBatch(num_features=model.num_features, dtype=model.dtype),
        )
        super().__init__(model_fn=head.create_estimator_spec, model_dir=model_dir, config=config)

    def build_raw_serving_input_receiver_fn(self, default_batch_size: Optional[int] = None, default_series_length: Optional[int] = None) -> _Receiver:
        """What export_savedmodel takes for a model that is fed arrays: times and exogenous features [batch, length, ...], values, and the state as
        model_state_00 and so on. Sizes that are given are fixed in the exported model."""
        return lambda: serving.raw_receiver(self._model, default_batch_size, default_series_length)

    def build_one_shot_parsing_serving_input_receiver_fn(
        self,
        filtering_length: int,
        prediction_length: int,
        default_batch_size: Optional[int] = None,
        values_input_dtype: Any = None,
        truncate_values: bool = False,
    ) -> _Receiver:
        """What export_savedmodel takes for a model with OneShotPredictionHead that is fed serialized Examples [batch].

        Each holds times and exogenous features of filtering_length + prediction_length steps, and values of the first filtering_length (with
        truncate_values of all, but only those are used), as values_input_dtype: float32 or int64.
        """
        return lambda: serving.one_shot_receiver(self._model, filtering_length, prediction_length, default_batch_size, values_input_dtype, truncate_values)


class ARRegressor(TimeSeriesRegressor):
    """An estimator of an ARModel. Its windows for training have input_window_size + output_window_size steps."""

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        exogenous_feature_columns: Any = None,
        num_time_buckets: int = 10,
        loss: str = ARModel.NORMAL_LIKELIHOOD_LOSS,
        hidden_layer_sizes: Optional[Sequence[int]] = None,
        anomaly_prior_probability: Optional[float] = None,
        anomaly_distribution: Optional[str] = None,
        optimizer: Any = None,
        model_dir: Optional[str] = None,
        config: Any = None,
    ) -> None:
        """As of ARModel. With an anomaly_prior_probability it reckons with anomalies of AnomalyMixtureARModel.GAUSSIAN_ANOMALY or CAUCHY_ANOMALY. Trained
        by Adagrad with a rate of 0.1 where no optimizer is given."""
        common = dict(
            periodicities=periodicities,
            input_window_size=input_window_size,
            output_window_size=output_window_size,
            num_features=num_features,
            prediction_model_factory=functools.partial(FlatPredictionModel, hidden_layer_sizes=hidden_layer_sizes),
            num_time_buckets=num_time_buckets,
            exogenous_feature_columns=exogenous_feature_columns,
        )
        if anomaly_prior_probability is None:
            if anomaly_distribution is not None:
                raise at_user_line(ValueError("anomaly_prior_probability is required if anomaly_distribution is specified."))
            model = ARModel(loss=loss, **common)
        else:
            if loss != ARModel.NORMAL_LIKELIHOOD_LOSS:
                raise at_user_line(ValueError("AnomalyMixtureARModel only supports ARModel.NORMAL_LIKELIHOOD_LOSS for its loss argument."))
            model = AnomalyMixtureARModel(
                anomaly_prior_probability=anomaly_prior_probability,
                anomaly_distribution=anomaly_distribution or AnomalyMixtureARModel.GAUSSIAN_ANOMALY,
                **common,
            )
        super().__init__(model, FilteringOnlyStateManager(), optimizer or AdagradOptimizer(0.1), model_dir, config)


class LSTMAutoRegressor(TimeSeriesRegressor):
    """An estimator of an ARModel with LSTMs over its windows, which is exported with one signature that takes a past and predicts what follows."""

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        model_dir: Optional[str] = None,
        num_features: int = 1,
        extra_feature_columns: Any = None,
        num_timesteps: int = 10,
        loss: str = ARModel.NORMAL_LIKELIHOOD_LOSS,
        num_units: int = 128,
        optimizer: Any = "Adam",
        config: Any = None,
    ) -> None:
        """As of ARModel: num_timesteps are its num_time_buckets, extra_feature_columns its exogenous ones. An optimizer's name stands for a rate of 0.01."""
        model = ARModel(
            periodicities,
            input_window_size,
            output_window_size,
            num_features,
            functools.partial(LSTMPredictionModel, num_units=num_units),
            num_timesteps,
            loss,
            extra_feature_columns,
        )
        optimizer = get_optimizer_instance(optimizer, learning_rate=0.01)
        super().__init__(model, FilteringOnlyStateManager(), optimizer, model_dir, config, OneShotPredictionHead)
