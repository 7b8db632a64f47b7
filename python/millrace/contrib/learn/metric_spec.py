# SPDX-License-Identifier: Apache-2.0
"""Which predictions and labels a metric of tf.contrib.learn compares."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional, Tuple

from millrace import metrics
from millrace.contrib.learn.keys import PredictionKey
from millrace.framework.errors import at_user_line

_ROLES = {  # what arguments of metrics are called
    "labels": ("labels", "label", "targets", "target"),
    "predictions": ("predictions", "prediction", "logits", "logit"),
    "weights": ("weights", "weight"),
}


def _arguments(function: Any) -> Tuple[str, ...]:
    if hasattr(function, "func") and hasattr(function, "keywords"):  # functools.partial
        return tuple(name for name in _arguments(function.func) if name not in function.keywords)
    listed = inspect.signature(function).parameters.values()
    return tuple(p.name for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", function))


def _place(function: Any, role: str, needed: bool = False) -> Optional[str]:
    """The name of the argument that takes something, or None."""
    names, known = _arguments(function), _ROLES[role]
    found = [name for name in known if name in names]
    if len(found) > 1:
        raise at_user_line(ValueError("Ambiguous arguments %s, must provide only one of %s." % (found, list(known))))
    if needed and not found:
        raise at_user_line(ValueError("%s missing from %s%s." % (list(known), _name(function), names)))
    return found[0] if found else None


def _by_name(function: Callable[..., Any], labels_needed: bool, weights_needed: bool) -> Callable[..., Any]:
    """A metric as a function of labels, predictions and weights by these names. Predictions that no argument is named after are its first one
    beside the labels; labels that none is named after are left out."""
    of_labels, of_predictions = _place(function, "labels", labels_needed), _place(function, "predictions")
    of_weights = _place(function, "weights", weights_needed)
    labels_first = of_labels is not None and _arguments(function)[0] == of_labels

    def call(labels: Any = None, predictions: Any = None, weights: Any = None) -> Any:
        named: Dict[str, Any] = {} if weights is None else {str(of_weights): weights}
        if of_labels is not None and of_predictions is None and labels_first:
            return function(labels, predictions, **named)
        if of_labels is not None:
            named[of_labels] = labels
        if of_predictions is None:
            return function(predictions, **named)
        return function(**named, **{of_predictions: predictions})

    return call


def _one(name: str, values: Any, key: Any) -> Any:
    """A tensor, or that of a dict which a key names, or which is its only one."""
    if key:
        if not isinstance(values, dict):
            message = "MetricSpec with %s_key specified requires %ss dict, got %s.\nYou must not provide a %s_key if you only have a single Tensor as %ss."
            raise at_user_line(ValueError(message % (name, name, values, name, name)))
        if key not in values:
            raise at_user_line(KeyError("Key '%s' missing from %s." % (key, sorted(values))))
        return values[key]
    if isinstance(values, dict):
        if len(values) != 1:
            message = "MetricSpec without specified %s_key requires %ss tensor or single element dict, got %s"
            raise at_user_line(ValueError(message % (name, name, values)))
        return next(iter(values.values()))
    return values


class MetricSpec:
    """A metric, and the names of what it compares."""

    def __init__(
        self, metric_fn: Callable[..., Any], prediction_key: Optional[str] = None, label_key: Optional[str] = None, weight_key: Optional[str] = None
    ) -> None:
        self._metric_fn = _by_name(metric_fn, label_key is not None, weight_key is not None)
        self._name, self._prediction_key, self._label_key, self._weight_key = _name(metric_fn), prediction_key, label_key, weight_key

    metric_fn = property(lambda self: self._metric_fn, doc="The function of labels, predictions and weights, by these names.")
    prediction_key = property(lambda self: self._prediction_key, doc="The name of the predictions.")
    label_key = property(lambda self: self._label_key, doc="The name of the labels.")
    weight_key = property(lambda self: self._weight_key, doc="The name of the feature that weighs examples.")

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """What the metric answers."""
        given = {"predictions": _one("prediction", predictions, self._prediction_key), "labels": _one("label", labels, self._label_key)}
        if self._weight_key:
            given["weights"] = inputs[self._weight_key]
        return self._metric_fn(**given)

    def __str__(self) -> str:
        return "MetricSpec(metric_fn=%s, prediction_key=%s, label_key=%s, weight_key=%s)" % (
            self._name,
            self._prediction_key,
            self._label_key,
            self._weight_key,
        )


def as_metric_ops(given: Dict[Any, Any], features: Any, labels: Any, predictions: Any) -> Dict[str, Any]:
    """The metrics of evaluate(metrics=...): MetricSpecs, or functions under a name or under (a name, a key of predictions)."""
    made = {}
    for key, metric in given.items():
        if isinstance(metric, MetricSpec):
            value = metric.create_metric_ops(features, labels, predictions)
        else:
            key, prediction = key if isinstance(key, tuple) else (key, None)
            if prediction is None and isinstance(predictions, dict):
                prediction = next((k for k in (PredictionKey.CLASSES, PredictionKey.SCORES) if k in predictions), None)
            if _place(metric, "labels") or _place(metric, "predictions"):
                value = MetricSpec(metric, prediction).create_metric_ops(features, labels, predictions)
            else:
                value = metric(_one("prediction", predictions, prediction), _one("label", labels, None))
        made[key] = value if isinstance(value, tuple) else metrics.mean(value)
    return made
