# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.target_column: what a model's logits are for, with losses and measures, from before tf.contrib.learn had heads."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.contrib import metrics as _metrics
from millrace.contrib.losses import hinge_loss
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


class ProblemType:
    """The kinds of problems."""

    UNSPECIFIED, CLASSIFICATION, LINEAR_REGRESSION, LOGISTIC_REGRESSION = range(4)


def _as_column(target: Any) -> Any:
    target = convert_to_tensor(target)
    return array_ops.expand_dims(target, 1) if target.get_shape().ndims == 1 else target


def _squared_error(logits: Any, target: Any) -> Any:
    target = _as_column(target)
    logits.get_shape().assert_is_compatible_with(target.get_shape())
    return gen_ops.square(logits - math_ops.to_float(target))


def _binary_entropy(logits: Any, target: Any) -> Any:
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=math_ops.to_float(_as_column(target)), logits=logits)


def _entropy(logits: Any, target: Any) -> Any:
    if not target.dtype.is_integer:
        raise at_user_line(ValueError("Target's dtype should be integer Instead got %s." % target.dtype))
    if target.get_shape().ndims == 2:
        target = array_ops.squeeze(target, [1])
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)


def _hinge(logits: Any, target: Any) -> Any:
    target = convert_to_tensor(target)
    if (target.get_shape().ndims or 0) > 2:
        raise at_user_line(ValueError("target's shape should be either [batch_size, 1] or [batch_size], got %s" % target.get_shape()))
    return hinge_loss(logits, array_ops.reshape(target, [-1, 1]))


class _TargetColumn:
    """One head: a loss of (logits, target) for each example, and the columns that labels have."""

    def __init__(
        self, loss_fn: Callable[..., Any], num_label_columns: int, label_name: Optional[str], weight_column_name: Optional[str], problem_type: int
    ) -> None:
        self._loss_fn, self._num_label_columns, self._label_name = loss_fn, num_label_columns, label_name
        self._weight_column_name, self._problem_type = weight_column_name, problem_type

    label_name = property(lambda self: self._label_name, doc="Of a dictionary of targets, which one.")
    weight_column_name = property(lambda self: self._weight_column_name, doc="The feature that weights the examples.")
    num_label_columns = property(lambda self: self._num_label_columns, doc="How many columns the logits have.")
    problem_type = property(lambda self: self._problem_type, doc="The kind of problem.")

    def get_weight_tensor(self, features: Any) -> Any:
        """The weights of the examples; None: all count alike."""
        return array_ops.reshape(math_ops.to_float(features[self._weight_column_name]), [-1]) if self._weight_column_name else None

    def _losses(self, logits: Any, target: Any, features: Any) -> Any:
        """(the losses, weighted; the weights)."""
        losses = self._loss_fn(logits, target[self._label_name] if isinstance(target, dict) else target)
        weights = self.get_weight_tensor(features)
        return (losses if weights is None else array_ops.reshape(losses, [-1]) * weights), weights

    def training_loss(self, logits: Any, target: Any, features: Any, name: str = "training_loss") -> Any:
        """The mean of the weighted losses."""
        return math_ops.reduce_mean(self._losses(logits, target, features)[0], name=name)

    def loss(self, logits: Any, target: Any, features: Any) -> Any:
        """The mean of the losses by their weights."""
        losses, weights = self._losses(logits, target, features)
        if weights is None:
            return math_ops.reduce_mean(losses, name="loss")
        return gen_ops.real_div(math_ops.reduce_sum(losses), math_ops.reduce_sum(weights), name="loss")

    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        """What the logits say."""
        raise NotImplementedError("a target column needs logits_to_predictions")

    def _measured(self, predictions: Any, labels: Any, measures: Any, features: Any) -> Dict[str, Any]:
        weights, labels = self.get_weight_tensor(features), math_ops.cast(labels, predictions.dtype)
        given = {} if weights is None else {"weights": weights}
        return {name: measure(predictions, labels, **given) for name, measure in (measures or {}).items()}


class _RegressionTargetColumn(_TargetColumn):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        """The logits."""
        if proba:
            raise at_user_line(ValueError("a regression has no probabilities: leave proba out"))
        return array_ops.squeeze(logits, [1]) if self.num_label_columns == 1 else logits

    def get_eval_ops(self, features: Any, logits: Any, labels: Any, metrics: Any = None) -> Dict[str, Any]:
        """Measures by their names, each a value and an update."""
        found = {"loss": _metrics.streaming_mean(self.loss(logits, labels, features))}
        return dict(found, **self._measured(self.logits_to_predictions(logits), labels, metrics, features))


class _MultiClassTargetColumn(_TargetColumn):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        """The likeliest class, or the probabilities of all."""
        if self.num_label_columns == 1:
            logits = array_ops.concat([array_ops.zeros_like(logits), logits], 1)
        return nn_ops.softmax(logits) if proba else math_ops.argmax(logits, 1)

    def get_eval_ops(self, features: Any, logits: Any, labels: Any, metrics: Any = None) -> Dict[str, Any]:
        """Measures by their names, each a value and an update; those given are keyed by a name or (name, "classes" or "probabilities")."""
        found = {"loss": _metrics.streaming_mean(self.loss(logits, labels, features))}
        if self.num_label_columns == 1:
            measures = get_default_binary_metrics_for_eval([0.5])
            found.update((name, measure(math_ops.sigmoid(logits), math_ops.to_float(labels))) for name, measure in measures.items())
        chosen: Dict[str, Dict[str, Any]] = {"classes": {}, "probabilities": {}}
        usual = {"accuracy": _metrics.streaming_accuracy}  # type: ignore[attr-defined]
        for key, measure in (usual if metrics is None else metrics).items():
            name, of = (key, "classes") if isinstance(key, str) else key if isinstance(key, tuple) and len(key) == 2 else (None, None)
            if name is None or of not in chosen:
                raise at_user_line(ValueError("Ignoring metric %s: its key is neither a name nor (name, 'classes' or 'probabilities')." % (key,)))
            chosen[of][name] = measure
        for of, measures in chosen.items():
            if measures:
                found.update(self._measured(self.logits_to_predictions(logits, of == "probabilities"), labels, measures, features))
        return found


class _BinarySvmTargetColumn(_MultiClassTargetColumn):
    def logits_to_predictions(self, logits: Any, proba: bool = False) -> Any:
        """The class on whose side of the plane it lies."""
        if proba:
            raise at_user_line(ValueError("logits to probabilities is not supported for _BinarySvmTargetColumn"))
        return super().logits_to_predictions(logits)


def regression_target(label_name: Optional[str] = None, weight_column_name: Optional[str] = None, label_dimension: int = 1) -> _TargetColumn:
    """Numbers, by their squared errors."""
    return _RegressionTargetColumn(_squared_error, label_dimension, label_name, weight_column_name, ProblemType.LINEAR_REGRESSION)


def multi_class_target(n_classes: int, label_name: Optional[str] = None, weight_column_name: Optional[str] = None) -> _TargetColumn:
    """One of n classes, by cross entropy; of two classes there is one logit."""
    if n_classes < 2:
        raise at_user_line(ValueError("n_classes must be > 1 for classification."))
    return _MultiClassTargetColumn(
        _binary_entropy if n_classes == 2 else _entropy, 1 if n_classes == 2 else n_classes, label_name, weight_column_name, ProblemType.CLASSIFICATION
    )


def binary_svm_target(label_name: Optional[str] = None, weight_column_name: Optional[str] = None) -> _TargetColumn:
    """One of two classes, by hinge loss."""
    return _BinarySvmTargetColumn(_hinge, 1, label_name, weight_column_name, ProblemType.CLASSIFICATION)


def get_default_binary_metrics_for_eval(thresholds: Any) -> Dict[str, Callable[..., Any]]:
    """The measures of two classes: functions of (predictions, labels, weights=None)."""

    def numbers(weights: Any) -> Any:
        return None if weights is None else math_ops.to_float(weights)

    def of_labels(predictions: Any, labels: Any, weights: Any = None) -> Any:
        del predictions  # only what the labels are counts
        return _metrics.streaming_mean(labels, weights=weights)

    def of_predictions(predictions: Any, labels: Any, weights: Any = None) -> Any:
        del labels  # only what is predicted counts
        return _metrics.streaming_mean(predictions, weights=weights)

    def accuracy(threshold: float) -> Callable[..., Any]:
        def call(predictions: Any, labels: Any, weights: Any = None) -> Any:
            above = math_ops.to_float(gen_ops.greater_equal(predictions, threshold))
            return _metrics.streaming_accuracy(above, labels, weights=weights)  # type: ignore[attr-defined]

        return call

    def at(measure: Any, threshold: float) -> Callable[..., Any]:
        def call(predictions: Any, labels: Any, weights: Any = None) -> Any:
            value, update = measure(predictions, labels, thresholds=[threshold], weights=numbers(weights))
            return array_ops.squeeze(value), update

        return call

    found: Dict[str, Callable[..., Any]] = {
        "labels/prediction_mean": of_predictions,
        "labels/actual_target_mean": of_labels,
        "accuracy/baseline_target_mean": of_labels,
        "auc": lambda predictions, labels, weights=None: _metrics.streaming_auc(predictions, labels, weights=numbers(weights)),  # type: ignore[attr-defined]
    }
    for threshold in thresholds:
        found["accuracy/threshold_%f_mean" % threshold] = accuracy(threshold)
        found["precision/positive_threshold_%f_mean" % threshold] = at(_metrics.streaming_precision_at_thresholds, threshold)  # type: ignore[attr-defined]
        found["recall/positive_threshold_%f_mean" % threshold] = at(_metrics.streaming_recall_at_thresholds, threshold)  # type: ignore[attr-defined]
    return found
