# SPDX-License-Identifier: Apache-2.0
"""Series as arrays, and the times that come after them."""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy as np

from millrace.contrib.timeseries.feature_keys import FilteringResults, TrainEvalFeatures
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line


def canonicalize_times_or_steps_from_output(times: Any, steps: Any, previous_model_output: Dict[str, Any]) -> np.ndarray:
    """The times [batch, n] that predictions are wanted for: `times` [n] or [batch, n], which must lie behind those of what a model gave before, or as many
    `steps` behind them. Just one of both may be given."""
    if (steps is None) == (times is None):
        raise at_user_line(ValueError("%s of `steps` and `times` %s be specified." % (("One", "must") if times is None else ("Only one", "may"))))
    before = previous_model_output[FilteringResults.TIMES]
    if times is None:
        return before[:, -1:] + 1 + np.arange(steps)
    times = np.array(times)
    times = times if times.ndim == 2 else times[None]
    if before.shape[0] != times.shape[0]:
        raise at_user_line(
            ValueError(
                "`times` must have a batch dimension matching the previous model output (got a batch dimension of %d for `times` and %d for the "
                "previous model output)." % (times.shape[0], before.shape[0])
            )
        )
    if not (before[:, -1] < times[:, 0]).all():
        raise at_user_line(ValueError("Prediction times must be after the corresponding previous model output."))
    return times


def canonicalize_numpy_data(data: Dict[str, Any], require_single_batch: bool) -> Dict[str, np.ndarray]:
    """Arrays by features' names, each [batch, length, ...] and values [batch, length, features].

    Times may be a number, [length] or [batch, length] (of one row, where require_single_batch says so). The shapes of the others begin with theirs; values
    have at most one dimension more. ValueError where that is not so, or times or values are missing.
    """
    features = {name: np.array(value) for name, value in data.items()}
    names = (TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES)
    if not all(name in features for name in names):
        raise at_user_line(ValueError("%s and %s are required features." % names))
    times, values = (features[name] for name in names)
    for name, value in features.items():
        if value.shape[: times.ndim] != times.shape:
            raise at_user_line(
                ValueError(
                    "All features must have their shapes prefixed by the shape of the times feature. Got shape %s for feature '%s', but shape %s for '%s'"
                    % (value.shape, name, times.shape, names[0])
                )
            )
    if times.ndim > 2:
        raise at_user_line(
            ValueError(
                "Got an unexpected number of dimensions for times. Was expecting at most two ([batch size, series length]), but got shape %s." % (times.shape,)
            )
        )
    if values.ndim == times.ndim and times.ndim < 2:
        features[names[1]] = values[..., None]
    elif values.ndim > times.ndim + 1 and times.ndim < 2:
        shape, lacks = (("[number of features]", "batch or time dimension"), ("[series length, number of features]", "batch dimension"))[times.ndim]
        raise at_user_line(
            ValueError(
                "Got an unexpected number of dimensions for the '%s' feature. Was expecting at most %d dimension%s (%s) since '%s' does not have a %s, "
                "but got shape %s" % (names[1], times.ndim + 1, "s" if times.ndim else "", shape, names[0], lacks, values.shape)
            )
        )
    features = {name: value[(None,) * (2 - times.ndim)] for name, value in features.items()}
    if require_single_batch and features[names[0]].shape[0] != 1:
        raise at_user_line(ValueError("Got batch input, was expecting unbatched input."))
    return features


def parameter_switch(parameter_overrides: Dict[Any, Any]) -> Callable[[Any], Any]:
    """A function that gives what a tensor or variable is in the default session, or the number that it is overridden with."""
    return lambda parameter: convert_to_tensor(parameter_overrides.get(parameter, parameter)).eval()
