# SPDX-License-Identifier: Apache-2.0
"""Names of what a model does: training, evaluation, prediction, as Keras and as estimators call it."""

from __future__ import annotations

import collections.abc
from typing import Any, Dict, Iterator


class KerasModeKeys:
    """Names of Keras."""

    TRAIN, TEST, PREDICT = "train", "test", "predict"


class EstimatorModeKeys:
    """Names of estimators."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


def is_predict(mode: Any) -> bool:
    """Whether it is prediction."""
    return mode in (KerasModeKeys.PREDICT, EstimatorModeKeys.PREDICT)


def is_eval(mode: Any) -> bool:
    """Whether it is evaluation."""
    return mode in (KerasModeKeys.TEST, EstimatorModeKeys.EVAL)


def is_train(mode: Any) -> bool:
    """Whether it is training."""
    return mode in (KerasModeKeys.TRAIN, EstimatorModeKeys.TRAIN)


def _canonical(mode: Any) -> str:
    for known, name in ((is_train, KerasModeKeys.TRAIN), (is_eval, KerasModeKeys.TEST), (is_predict, KerasModeKeys.PREDICT)):
        if known(mode):
            return name
    raise ValueError("Invalid mode key: %s." % (mode,))


class ModeKeyMap(collections.abc.Mapping):  # type: ignore[type-arg]
    """Values by mode, under either name."""

    def __init__(self, **kwargs: Any) -> None:
        self._keys, self._values = list(kwargs), {}  # type: ignore[var-annotated]
        values: Dict[str, Any] = self._values
        for key, value in kwargs.items():
            if _canonical(key) in values:
                raise ValueError("Error creating ModeKeyMap. Multiple keys/values found for %s mode." % _canonical(key))
            values[_canonical(key)] = value

    def __getitem__(self, key: Any) -> Any:
        return self._values[_canonical(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
