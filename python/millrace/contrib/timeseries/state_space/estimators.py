# SPDX-License-Identifier: Apache-2.0
"""Estimators of state space models."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.timeseries.estimators import TimeSeriesRegressor
from millrace.contrib.timeseries.head import TimeSeriesRegressionHead
from millrace.contrib.timeseries.state_management import ChainingStateManager
from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.filtering_postprocessor import StateInterpolatingAnomalyDetector
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.contrib.timeseries.state_space.structural_ensemble import MultiResolutionStructuralEnsemble
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line


class StateSpaceRegressor(TimeSeriesRegressor):
    """An estimator of any StateSpaceModel."""

    def __init__(
        self,
        model: StateSpaceModel,
        state_manager: Any = None,
        optimizer: Any = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        head_type: Any = TimeSeriesRegressionHead,
    ) -> None:
        """Without a state_manager windows begin where ChainingStateManager says. ValueError where the model is no StateSpaceModel."""
        if not isinstance(model, StateSpaceModel):
            raise at_user_line(
                ValueError("StateSpaceRegressor only supports state space models (children of StateSpaceModel) in its `model` argument, got %s." % (model,))
            )
        super().__init__(model, state_manager or ChainingStateManager(), optimizer, model_dir, config, head_type)


class StructuralEnsembleRegressor(StateSpaceRegressor):
    """An estimator of a MultiResolutionStructuralEnsemble: level and trend, moving averages and autoregression, and smooth cycles."""

    def __init__(
        self,
        periodicities: Any,
        num_features: int,
        cycle_num_latent_values: Any = 11,
        moving_average_order: int = 4,
        autoregressive_order: int = 0,
        exogenous_feature_columns: Any = None,
        exogenous_update_condition: Any = None,
        dtype: Any = dtypes.float64,
        anomaly_prior_probability: Optional[float] = None,
        optimizer: Any = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        head_type: Any = TimeSeriesRegressionHead,
    ) -> None:
        """As of the model and of StateSpaceModelConfiguration. With an anomaly_prior_probability anomalies are detected, and evaluations have their
        "anomaly_score". States have num_features * (moving_average_order + cycle_num_latent_values + 2) numbers for one periodicity."""
        detector = None if anomaly_prior_probability is None else StateInterpolatingAnomalyDetector(anomaly_prior_probability=anomaly_prior_probability)
        configuration = StateSpaceModelConfiguration(
            num_features=num_features,
            dtype=dtype,
            filtering_postprocessor=detector,
            exogenous_feature_columns=exogenous_feature_columns,
            exogenous_update_condition=exogenous_update_condition,
        )
        model = MultiResolutionStructuralEnsemble(
            cycle_num_latent_values, moving_average_order, autoregressive_order, periodicities, configuration=configuration
        )
        super().__init__(model, None, optimizer, model_dir, config, head_type)
