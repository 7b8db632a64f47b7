# SPDX-License-Identifier: Apache-2.0
"""Which predictions and labels a metric of tf.contrib.learn compares."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional

from millrace import metrics
from millrace.contrib.learn.keys import PredictionKey
from millrace.framework.errors import at_user_line


_ROLES = {"predictions": ("predictions", "prediction", "pred", "values"), "labels": ("labels", "label", "targets", "target"), "weights": ("weights", "weight")}


def _place(function: Callable[..., Any], role: str) -> Optional[str]:
    """The name of the argument that takes something, or None."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    names = inspect.signature(function).parameters
    return next((name for name in _ROLES[role] if name in names), None)


def _one(what: str, values: Any, key: Any, argument: str) -> Any:
    if not isinstance(values, dict):
        if key is not None:
            raise at_user_line(ValueError("MetricSpec with %s=%s needs %s as a dict, got %s" % (argument, key, what, values)))
        return values
    if key is None:
        if len(values) != 1:
            raise at_user_line(
                ValueError("MetricSpec without specified %s requires %s tensor or single element dictionary, got %s" % (argument, what, sorted(values)))
            )
        return next(iter(values.values()))
    if key not in values:
        raise at_user_line(KeyError("%s key '%s' not in %s" % (argument, key, sorted(values))))
    return values[key]


class MetricSpec:
    """A metric, and the names of what it compares."""

    def __init__(
        self, metric_fn: Callable[..., Any], prediction_key: Optional[str] = None, label_key: Optional[str] = None, weight_key: Optional[str] = None
    ) -> None:
        self._metric_fn, self._prediction_key, self._label_key, self._weight_key = metric_fn, prediction_key, label_key, weight_key

    metric_fn = property(lambda self: self._metric_fn, doc="The function of predictions and labels.")
    prediction_key = property(lambda self: self._prediction_key, doc="The name of the predictions.")
    label_key = property(lambda self: self._label_key, doc="The name of the labels.")
    weight_key = property(lambda self: self._weight_key, doc="The name of the feature that weighs examples.")

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """(the value, what updates it)."""
        given = {"predictions": _one("predictions", predictions, self._prediction_key, "prediction_key")}
        if labels is not None:
            given["labels"] = _one("labels", labels, self._label_key, "label_key")
        if self._weight_key is not None:
            given["weights"] = _one("inputs", inputs, self._weight_key, "weight_key")
        named: Dict[str, Any] = {}
        for role, value in given.items():
            place = _place(self._metric_fn, role)
            if place is None and role == "weights":
                raise at_user_line(ValueError("MetricSpec with weight_key=%s, but %s takes no weights" % (self._weight_key, self._metric_fn)))
            if place is not None:
                named[place] = value
        if _place(self._metric_fn, "predictions") is None:  # by places, predictions first
            named = {key: value for key, value in named.items() if key == "weights"}
            made = self._metric_fn(*[given[role] for role in ("predictions", "labels") if role in given], **named)
        else:
            made = self._metric_fn(**named)
        return made if isinstance(made, tuple) else metrics.mean(made)

    def __str__(self) -> str:
        return "MetricSpec(metric_fn=%s, prediction_key=%s, label_key=%s, weight_key=%s)" % (
            getattr(self._metric_fn, "__name__", self._metric_fn),
            self._prediction_key,
            self._label_key,
            self._weight_key,
        )


def as_metric_ops(given: Dict[Any, Any], features: Any, labels: Any, predictions: Any) -> Dict[str, Any]:
    """The metrics of evaluate(metrics=...): MetricSpecs, or functions under a name or under (a name, a key of predictions)."""
    made = {}
    for key, metric in given.items():
        if not isinstance(metric, MetricSpec):
            name, prediction = key if isinstance(key, tuple) else (key, None)
            if prediction is None and isinstance(predictions, dict):
                prediction = next((k for k in (PredictionKey.CLASSES, PredictionKey.SCORES) if k in predictions), None)
            key, metric = name, MetricSpec(metric, prediction)
        made[key] = metric.create_metric_ops(features, labels, predictions)
    return made
