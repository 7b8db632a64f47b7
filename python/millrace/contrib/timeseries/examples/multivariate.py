# SPDX-License-Identifier: Apache-2.0
"""Several numbers that wander together: a structural ensemble learns how they hang together, is saved, and draws how they might go on."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.contrib.timeseries import saved_model_utils
from millrace.contrib.timeseries.examples.series import TIMES, VALUES, reader_of
from millrace.contrib.timeseries.input_functions import RandomWindowInputFn, WholeDatasetInputFn
from millrace.contrib.timeseries.state_space.estimators import StructuralEnsembleRegressor
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.saved_model import loader, tag_constants

_COLUMNS = (TIMES, *[VALUES] * 5)


def _drawn() -> Any:
    draw = np.random.RandomState(4)
    shared = np.cumsum(draw.normal(0, 0.2, [1000, 1]), axis=0)
    return {TIMES: np.arange(1000), VALUES: shared + draw.normal(0, 0.3, [1000, 5])}


def multivariate_train_and_sample(csv_file_name: Optional[str] = None, export_directory: Optional[str] = None, training_steps: int = 500) -> Tuple[Any, Any]:
    """(times [n + 100], values [n + 100, 5]): the series, and 100 steps that were drawn one after the other, each from what the model says by those before."""
    estimator = StructuralEnsembleRegressor(periodicities=[], num_features=5, moving_average_order=1)
    reader = reader_of(csv_file_name, _drawn(), _COLUMNS)
    estimator.train(input_fn=RandomWindowInputFn(reader, batch_size=4, window_size=64), steps=training_steps)
    state = estimator.evaluate(input_fn=WholeDatasetInputFn(reader), steps=1)
    times, values = [state["times"][0]], [state["observed"][0]]
    folder = estimator.export_savedmodel(export_directory or estimator.model_dir, estimator.build_raw_serving_input_receiver_fn())
    draw = np.random.RandomState(0)
    with Graph().as_default(), Session() as session:
        signatures = loader.load(session, [tag_constants.SERVING], folder)
        for _ in range(100):
            said = saved_model_utils.predict_continuation(continue_from=state, signatures=signatures, session=session, steps=1)
            step = draw.multivariate_normal(said["mean"][0, 0], said["covariance"][0, 0], check_valid="ignore")
            features = {TIMES: said[TIMES], VALUES: step[None, None, :]}
            state = saved_model_utils.filter_continuation(continue_from=state, session=session, signatures=signatures, features=features)
            times.append(said[TIMES][0])
            values.append(step[None, :])
    return np.concatenate(times), np.concatenate(values)
