# SPDX-License-Identifier: Apache-2.0
"""The series of these examples: drawn by a seed, or read from a file of comma-separated values; and what an estimator says of them."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.contrib.timeseries.input_functions import WholeDatasetInputFn, predict_continuation_input_fn
from millrace.contrib.timeseries.readers import CSVReader, NumpyReader

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES


class Fitted(NamedTuple):
    """Times [n] and values [n] that were observed; times [n + m] with means and limits, one deviation around them, of the fit and of what follows."""

    times: Any
    observed: Any
    all_times: Any
    mean: Any
    upper_limit: Any
    lower_limit: Any


def reader_of(csv_file_name: Optional[str], drawn: Dict[str, Any], column_names: Any = (TIMES, VALUES)) -> Any:
    """A reader of a file, or else of arrays."""
    return NumpyReader(drawn) if csv_file_name is None else CSVReader(csv_file_name, column_names=column_names)


def continued(estimator: Any, reader: Any, steps: int, exogenous_features: Any = None) -> Fitted:
    """What a trained estimator of one number says of a whole series and of the steps behind it."""
    evaluation = estimator.evaluate(input_fn=WholeDatasetInputFn(reader), steps=1)
    following = predict_continuation_input_fn(evaluation, steps=steps, exogenous_features=exogenous_features)
    (predicted,) = estimator.predict(input_fn=following)
    times, seen = evaluation["times"][0], evaluation["mean"].shape[1]
    mean = np.concatenate([evaluation["mean"][0], predicted["mean"]])[:, 0]
    variance = np.concatenate([_variance(evaluation["covariance"][0]), _variance(predicted["covariance"])])
    deviation = np.sqrt(variance)
    all_times = np.concatenate([times[-seen:], times[-1] + 1 + np.arange(steps)])
    return Fitted(times, evaluation["observed"][0, :, 0], all_times, mean, mean + deviation, mean - deviation)


def _variance(covariance: Any) -> Any:
    """[steps] of covariances [steps, 1, 1], or of variances [steps, 1]."""
    return np.reshape(covariance, [len(covariance)])


def waves(steps: int, periods: List[float], amplitudes: List[float], seed: int = 0) -> Dict[str, Any]:
    """Times and values [steps, components]: a wave each, around 0, 1, 2 and so on, with some noise."""
    times = np.arange(steps)
    clean = [level + a * np.cos(2 * np.pi * times / period) for level, (period, a) in enumerate(zip(periods, amplitudes))]
    return {TIMES: times, VALUES: np.stack(clean, axis=1) + np.random.RandomState(seed).normal(0, 0.02, [steps, len(periods)])}
