# SPDX-License-Identifier: Apache-2.0
"""The metrics of the heads of tf.contrib.learn, and the mean of their losses."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from millrace import metrics
from millrace.contrib.learn.keys import MetricKey as M
from millrace.contrib.learn.keys import PredictionKey as P
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.weights_broadcast import broadcast_weights


def tagged(head_name: Optional[str], key: str) -> str:
    """The name of a metric or summary of a head."""
    return "%s/%s" % (key, head_name) if head_name else key


def weighted_loss(losses: Any, weights: Any) -> Tuple[Any, Any]:
    """(the mean of losses times weights: what is trained; the weighted mean: what is told)."""
    with name_scope("loss", values=[losses, weights]) as scope:
        if weights is None:
            mean = math_ops.reduce_mean(losses, name=scope)
            return mean, mean
        rank, given = losses.get_shape().ndims, weights.get_shape().ndims
        if rank is not None and given == rank - 1 and given:
            weights = array_ops.expand_dims(weights, -1)
        elif rank is not None and given == rank + 1:
            losses = array_ops.expand_dims(losses, -1)
        weights = broadcast_weights(weights, losses)
        each = math_ops.multiply(losses, weights, name="weighted_loss")
        mean = math_ops.reduce_mean(each, name=scope)
        return mean, math_ops.div(math_ops.reduce_sum(each), math_ops.reduce_sum(weights), name="weighted_average_loss")


def _flat(value: Any) -> Any:
    """Values of one each, [batch] or [batch, 1], as a vector."""
    return None if value is None else value if value.get_shape().ndims == 0 else array_ops.reshape(value, [-1])


def _mean(values: Any, weights: Any) -> Any:
    values = math_ops.to_float(values)
    if weights is not None and weights.get_shape().ndims == 0:
        weights = weights + array_ops.zeros_like(values)
    return metrics.mean(values, weights)


def _auc(labels: Any, predictions: Any, weights: Any, curve: str) -> Any:
    labels = math_ops.cast(labels, "bool")
    if weights is not None:
        weights = broadcast_weights(weights, predictions)
    return metrics.auc(labels, predictions, weights, curve=curve)


def of_two_classes(predictions: Dict[str, Any], labels: Any, weights: Any, thresholds: Any) -> Dict[str, Any]:
    """Metrics of a probability, and of what lies above thresholds."""
    labels, weights, logistic = _flat(math_ops.to_float(labels)), _flat(weights), _flat(predictions[P.LOGISTIC])
    truth = math_ops.cast(labels, "bool")
    made = {
        M.ACCURACY: metrics.accuracy(labels, math_ops.to_float(_flat(predictions[P.CLASSES])), weights),
        M.PREDICTION_MEAN: _mean(logistic, weights),
        M.LABEL_MEAN: _mean(labels, weights),
        M.ACCURACY_BASELINE: _mean(labels, weights),
        M.AUC: _auc(labels, logistic, weights, "ROC"),
        M.AUC_PR: _auc(labels, logistic, weights, "PR"),
    }
    for threshold in thresholds or ():
        above = gen_ops.greater_equal(logistic, threshold)
        made[M.ACCURACY_MEAN % threshold] = metrics.accuracy(truth, above, weights)
        for key, metric in ((M.PRECISION_MEAN, metrics.precision_at_thresholds), (M.RECALL_MEAN, metrics.recall_at_thresholds)):
            value, update = metric(truth, logistic, [threshold], weights)
            made[key % threshold] = array_ops.squeeze(value), array_ops.squeeze(update)
    return made


def of_classes(predictions: Dict[str, Any], labels: Any, weights: Any, class_ids: Any) -> Dict[str, Any]:
    """Metrics of one class of several; labels are their numbers."""
    labels, weights, classes = _flat(labels), _flat(weights), _flat(predictions[P.CLASSES])
    made = {M.ACCURACY: metrics.accuracy(labels, classes, weights)}
    for i in class_ids or ():
        made[M.CLASS_PREDICTION_MEAN % i] = _mean(gen_ops.equal(classes, math_ops.cast(i, classes.dtype)), weights)
        made[M.CLASS_LABEL_MEAN % i] = _mean(gen_ops.equal(labels, math_ops.cast(i, labels.dtype)), weights)
        made[M.CLASS_PROBABILITY_MEAN % i] = _mean(predictions[P.PROBABILITIES][:, i], weights)
        made[M.CLASS_LOGITS_MEAN % i] = _mean(predictions[P.LOGITS][:, i], weights)
    return made


def of_many_labels(predictions: Dict[str, Any], labels: Any, weights: Any, class_ids: Any) -> Dict[str, Any]:
    """Metrics where each class is there or not; labels are [batch, classes]."""
    classes, probabilities = math_ops.to_int64(predictions[P.CLASSES]), predictions[P.PROBABILITIES]
    labels = math_ops.to_int64(convert_to_tensor(labels))
    made = {
        M.ACCURACY: metrics.accuracy(labels, classes, weights if weights is None else broadcast_weights(weights, probabilities)),
        M.AUC: _auc(labels, probabilities, weights, "ROC"),
        M.AUC_PR: _auc(labels, probabilities, weights, "PR"),
    }
    per_class = weights is not None and weights.get_shape().ndims == 2 and weights.get_shape()[1].value not in (None, 1)
    for i in class_ids or ():
        of_one = weights[:, i] if per_class else _flat(weights)
        made[M.CLASS_PREDICTION_MEAN % i] = _mean(classes[:, i], of_one)
        made[M.CLASS_LABEL_MEAN % i] = _mean(labels[:, i], of_one)
        made[M.CLASS_PROBABILITY_MEAN % i] = _mean(probabilities[:, i], of_one)
        made[M.CLASS_LOGITS_MEAN % i] = _mean(predictions[P.LOGITS][:, i], of_one)
        made[M.CLASS_AUC % i] = _auc(labels[:, i], probabilities[:, i], of_one, "ROC")
        made[M.CLASS_AUC_PR % i] = _auc(labels[:, i], probabilities[:, i], of_one, "PR")
    return made
