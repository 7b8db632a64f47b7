# SPDX-License-Identifier: Apache-2.0
"""A series whose level changes at steps that are known, those to come included: there the model learns anew, and is less sure of itself."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.contrib.timeseries.examples.series import TIMES, VALUES, continued, reader_of
from millrace.contrib.timeseries.input_functions import RandomWindowInputFn
from millrace.contrib.timeseries.state_space.estimators import StructuralEnsembleRegressor
from millrace.feature_column import categorical_column_with_vocabulary_list, indicator_column
from millrace.ops import array_ops, gen_ops

_STEPS, _EVERY, _TO_COME = 200, 25, 249


def _drawn() -> Any:
    draw, times = np.random.RandomState(2), np.arange(_STEPS)
    levels = draw.normal(0, 5, _STEPS // _EVERY)
    changes = (times % _EVERY == 0) & (times > 0)
    values = levels[times // _EVERY] + np.sin(2 * np.pi * times / 12) + draw.normal(0, 0.1, _STEPS)
    return {TIMES: times, VALUES: values, "is_changepoint": np.where(changes, "yes", "no").astype(object)}


def state_space_estimator(exogenous_feature_columns: Any) -> Any:
    """An estimator whose exogenous numbers change the state at changes alone."""

    def is_change(times: Any, features: Any) -> Any:
        del times  # any
        return gen_ops.equal(array_ops.reshape(features["is_changepoint"], [-1]), "yes")

    return StructuralEnsembleRegressor(
        periodicities=12, cycle_num_latent_values=3, num_features=1, exogenous_feature_columns=exogenous_feature_columns, exogenous_update_condition=is_change
    )


def train_and_evaluate_exogenous(csv_file_name: Optional[str] = None, train_steps: int = 300) -> Tuple[Any, ...]:
    """(times, observed, all times, mean, upper limit, lower limit, steps of changes): 100 steps behind the series, with one more change."""
    column = indicator_column(categorical_column_with_vocabulary_list("is_changepoint", ["no", "yes"]))
    estimator = state_space_estimator([column])
    drawn = _drawn()
    reader = reader_of(csv_file_name, drawn)
    estimator.train(input_fn=RandomWindowInputFn(reader, batch_size=4, window_size=100), steps=train_steps)
    ahead = np.full([1, 100, 1], "no", dtype=object)
    ahead[0, _TO_COME - _STEPS, 0] = "yes"
    fitted = continued(estimator, reader, 100, {"is_changepoint": ahead})
    changes = [*np.flatnonzero(drawn["is_changepoint"] == "yes"), _TO_COME]
    return (*fitted, changes)
