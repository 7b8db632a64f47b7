# SPDX-License-Identifier: Apache-2.0
"""Waves that an LSTM learns to continue."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.contrib.timeseries.estimators import TimeSeriesRegressor
from millrace.contrib.timeseries.examples.series import TIMES, VALUES, reader_of, waves
from millrace.contrib.timeseries.input_functions import RandomWindowInputFn, WholeDatasetInputFn, predict_continuation_input_fn
from millrace.contrib.timeseries.lstm_model import LSTMModel
from millrace.contrib.timeseries.state_management import ChainingStateManager
from millrace.train import AdamOptimizer


def train_and_predict(
    csv_file_name: Optional[str] = None, training_steps: int = 200, estimator_config: Any = None, export_directory: Optional[str] = None
) -> Tuple[Any, Any, Any, Any]:
    """(observed times [n], observed values [n, 5], times [n + 100], fitted and predicted values [n + 100, 5]); saved where a folder is given."""
    drawn = waves(100, [10, 13, 17, 20, 25], [1.0, 0.8, 0.6, 0.8, 1.0])
    reader = reader_of(csv_file_name, drawn, (TIMES, *[VALUES] * 5))
    model = LSTMModel(num_units=128, num_features=5)
    estimator = TimeSeriesRegressor(model, ChainingStateManager(), AdamOptimizer(0.001), config=estimator_config)
    estimator.train(input_fn=RandomWindowInputFn(reader, batch_size=4, window_size=32), steps=training_steps)
    evaluation = estimator.evaluate(input_fn=WholeDatasetInputFn(reader), steps=1)
    (predicted,) = estimator.predict(input_fn=predict_continuation_input_fn(evaluation, steps=100))
    if export_directory is not None:
        estimator.export_savedmodel(export_directory, estimator.build_raw_serving_input_receiver_fn())
    times, observed = evaluation["times"][0], evaluation["observed"][0]
    all_times = np.concatenate([times, times[-1] + 1 + np.arange(100)])
    return times, observed, all_times, np.concatenate([evaluation["mean"][0], predicted["mean"]])
