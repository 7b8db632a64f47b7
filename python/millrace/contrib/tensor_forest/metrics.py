# SPDX-License-Identifier: Apache-2.0
"""Metrics of forests by name: functions of predictions, targets and weights that give (value, update)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from millrace import losses, metrics, nn
from millrace.contrib.learn.keys import PredictionKey
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops

_THRESHOLDS = [0.1 * n for n in range(11)]


def _flat(targets: Any) -> Tensor:
    """Numbers of classes [batch] or [batch, 1], as [batch], i32."""
    return array_ops.reshape(math_ops.cast(convert_to_tensor(targets), dtypes.int32), [-1])


def _top_k_generator(k: int) -> Callable[..., Any]:
    def _top_k(probabilities: Any, targets: Any, weights: Any = None) -> Any:
        return metrics.mean(math_ops.cast(nn.in_top_k(probabilities, _flat(targets), k), dtypes.float32), weights=weights)

    return _top_k


def _accuracy(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return metrics.accuracy(targets, predictions, weights=weights)


def _r2(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    wanted = math_ops.cast(convert_to_tensor(targets), dtypes.float32)
    scores = array_ops.reshape(convert_to_tensor(probabilities), array_ops.shape(wanted))
    total = math_ops.reduce_sum(gen_ops.square(wanted - math_ops.reduce_mean(wanted, [0])), [0])
    missed = math_ops.reduce_sum(gen_ops.square(wanted - scores), [0])
    return metrics.mean(1.0 - math_ops.reduce_sum(missed / total), weights=weights)


def _one_hot(targets: Any, probabilities: Tensor) -> Tensor:
    return array_ops.one_hot(_flat(targets), probabilities.get_shape().as_list()[1])


def _sigmoid_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    chances = convert_to_tensor(probabilities)
    loss = math_ops.reduce_sum(losses.sigmoid_cross_entropy(_one_hot(targets, chances), chances, reduction=losses.Reduction.NONE), [1])
    return metrics.mean(loss, weights=weights)


def _softmax_entropy(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    return metrics.mean(losses.sparse_softmax_cross_entropy(_flat(targets), probabilities), weights=weights)


def _predictions(predictions: Any, unused_targets: Any, **unused_kwargs: Any) -> Any:
    return predictions


def _class_log_loss(probabilities: Any, targets: Any, weights: Any = None) -> Any:
    chances = convert_to_tensor(probabilities)
    return metrics.mean(losses.log_loss(_one_hot(targets, chances), chances), weights=weights)


def _precision(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return metrics.precision(targets, predictions, weights=weights)


def _recall(predictions: Any, targets: Any, weights: Any = None) -> Any:
    return metrics.recall(targets, predictions, weights=weights)


def _of_second_class(metric: Callable[..., Any]) -> Callable[..., Any]:
    """A metric of the probability of class 1."""

    def of(probabilities: Any, targets: Any, weights: Any = None) -> Any:
        chances = convert_to_tensor(probabilities)
        return metric(array_ops.slice(chances, [0, 1], [-1, 1]), array_ops.reshape(convert_to_tensor(targets), [-1, 1]), weights)

    return of


def _at_thresholds(metric: Callable[..., Any]) -> Callable[..., Any]:
    return _of_second_class(lambda chances, targets, weights: metric(math_ops.cast(targets, dtypes.int32), chances, _THRESHOLDS, weights=weights))


_auc = _of_second_class(lambda chances, targets, weights: metrics.auc(math_ops.cast(targets, dtypes.bool), chances, weights=weights))
_precision_at_thresholds = _at_thresholds(metrics.precision_at_thresholds)
_recall_at_thresholds = _at_thresholds(metrics.recall_at_thresholds)

_METRICS: Dict[str, Tuple[Callable[..., Any], str]] = {
    "auc": (_auc, PredictionKey.PROBABILITIES),
    "sigmoid_entropy": (_sigmoid_entropy, PredictionKey.PROBABILITIES),
    "softmax_entropy": (_softmax_entropy, PredictionKey.PROBABILITIES),
    "accuracy": (_accuracy, PredictionKey.CLASSES),
    "r2": (_r2, PredictionKey.SCORES),
    "predictions": (_predictions, PredictionKey.CLASSES),
    "classification_log_loss": (_class_log_loss, PredictionKey.PROBABILITIES),
    "precision": (_precision, PredictionKey.CLASSES),
    "precision_at_thresholds": (_precision_at_thresholds, PredictionKey.PROBABILITIES),
    "recall": (_recall, PredictionKey.CLASSES),
    "recall_at_thresholds": (_recall_at_thresholds, PredictionKey.PROBABILITIES),
    "top_5": (_top_k_generator(5), PredictionKey.PROBABILITIES),
}


def _named(metric_name: str) -> Any:
    if metric_name not in _METRICS:
        raise at_user_line(KeyError("no metric %r: there are %s" % (metric_name, ", ".join(sorted(_METRICS)))))
    return _METRICS[metric_name]


def get_metric(metric_name: str) -> Any:
    """The function of a metric. KeyError when there is none of this name."""
    return _named(metric_name)[0]


def get_prediction_key(metric_name: str) -> Any:
    """Which of a model's predictions the metric is of. KeyError when there is none of this name."""
    return _named(metric_name)[1]
