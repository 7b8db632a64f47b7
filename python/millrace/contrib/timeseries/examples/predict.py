# SPDX-License-Identifier: Apache-2.0
"""A series with a trend and a period, fitted and continued by structural ensembles and by autoregression."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.contrib.timeseries.estimators import ARRegressor
from millrace.contrib.timeseries.examples.series import TIMES, VALUES, Fitted, continued, reader_of
from millrace.contrib.timeseries.input_functions import RandomWindowInputFn
from millrace.contrib.timeseries.state_space.estimators import StructuralEnsembleRegressor
from millrace.train import AdamOptimizer

_PERIOD = 100


def _drawn() -> Any:
    times = np.arange(1, 501)
    noise = np.random.RandomState(0).normal(0, 0.5, 500)
    return {TIMES: times, VALUES: 0.1 * times + 3 * np.sin(2 * np.pi * times / _PERIOD) + noise}


def structural_ensemble_train_and_predict(csv_file_name: Optional[str] = None) -> Fitted:
    """Level, trend and a smooth cycle; the 200 steps behind the series."""
    estimator = StructuralEnsembleRegressor(periodicities=_PERIOD, num_features=1, cycle_num_latent_values=15)
    reader = reader_of(csv_file_name, _drawn())
    estimator.train(input_fn=RandomWindowInputFn(reader, batch_size=4, window_size=48), steps=80)
    return continued(estimator, reader, 200)


def ar_train_and_predict(csv_file_name: Optional[str] = None) -> Fitted:
    """Each 10 steps by the 30 before them and the place in the period, through a layer; the 200 steps behind the series."""
    estimator = ARRegressor(
        periodicities=_PERIOD, input_window_size=30, output_window_size=10, num_features=1, hidden_layer_sizes=[32], optimizer=AdamOptimizer(0.01)
    )
    reader = reader_of(csv_file_name, _drawn())
    estimator.train(input_fn=RandomWindowInputFn(reader, batch_size=16, window_size=40), steps=800)
    return continued(estimator, reader, 200)
