# SPDX-License-Identifier: Apache-2.0
"""Means and counts over many steps."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, control_dependencies
from millrace.metrics.parts import done, fitted, local, ratio
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.confusion_matrix import confusion_matrix, remove_squeezable_dimensions
from millrace.ops.variable_scope import variable_scope
from millrace.ops.weights_broadcast import broadcast_weights


def mean(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """The mean of values."""
    with variable_scope(name, "mean", [values, weights]):
        values = math_ops.cast(values, dtypes.float32)
        total, count = local("total", []), local("count", [])
        if weights is None:
            amount = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            values, _, weights = fitted(values, None, weights)
            weights = broadcast_weights(math_ops.cast(weights, dtypes.float32), values)
            values = gen_ops.mul(values, weights)
            amount = math_ops.reduce_sum(weights)
        added = total.assign_add(math_ops.reduce_sum(values))
        with control_dependencies([values]):  # nothing is counted in a step whose input has ended
            counted = count.assign_add(amount)
        return done(ratio(total.value(), count.value(), "value"), ratio(added, counted, "update_op"), metrics_collections, updates_collections)


def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """How often predictions are the labels."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    if labels.dtype.base_dtype != predictions.dtype.base_dtype:
        predictions = math_ops.cast(predictions, labels.dtype.base_dtype)
    right = math_ops.cast(gen_ops.equal(predictions, labels), dtypes.float32)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The mean of squared differences."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    return mean(gen_ops.square(labels - predictions), weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The root of mean_squared_error."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return done(gen_ops.sqrt(value), gen_ops.sqrt(update), metrics_collections, updates_collections)


def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The mean of absolute differences."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    return mean(math_ops.abs(predictions - labels), weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The mean of absolute differences by a normalizer; 0 where that is 0."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    predictions, normalizer = remove_squeezable_dimensions(predictions, normalizer)
    predictions.get_shape().assert_is_compatible_with(normalizer.get_shape())
    nothing = gen_ops.equal(normalizer, math_ops.cast(0, normalizer.dtype.base_dtype))
    relative = array_ops.where(nothing, array_ops.zeros_like(labels), math_ops.div(math_ops.abs(labels - predictions), normalizer))
    return mean(relative, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """1 less the mean of labels . predictions, of unit vectors along a dimension."""
    predictions, labels, weights = fitted(predictions, labels, weights)
    along = math_ops.reduce_sum(gen_ops.mul(predictions, labels), [dim], True)
    value, update = mean(along, weights, None, None, name or "mean_cosine_distance")
    return done(gen_ops.sub(1.0, value), gen_ops.sub(1.0, update), metrics_collections, updates_collections)


def mean_tensor(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """The mean of each element."""
    with variable_scope(name, "mean", [values, weights]):
        values = math_ops.cast(values, dtypes.float32)
        total, count = local("total_tensor", values.get_shape()), local("count_tensor", values.get_shape())
        amount = array_ops.ones_like(values)
        if weights is not None:
            values, _, weights = fitted(values, None, weights)
            weights = broadcast_weights(math_ops.cast(weights, dtypes.float32), values)
            values, amount = gen_ops.mul(values, weights), gen_ops.mul(amount, weights)
        added = total.assign_add(values)
        with control_dependencies([values]):
            counted = count.assign_add(amount)
        return done(ratio(total.value(), count.value(), "value"), ratio(added, counted, "update_op"), metrics_collections, updates_collections)


def percentage_below(
    values: Any, threshold: float, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The fraction of values below the threshold."""
    below = math_ops.cast(gen_ops.less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


# ---- counts of right and wrong answers ----


def _truth(labels: Any, predictions: Any, weights: Any) -> Any:
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    predictions, labels, weights = fitted(math_ops.cast(predictions, dtypes.bool_), math_ops.cast(labels, dtypes.bool_), weights)
    return predictions, labels, weights


def _counted(flags: Any, weights: Any) -> Any:
    count = local("count", [])
    values = math_ops.cast(flags, dtypes.float32)
    if weights is not None:
        weights = broadcast_weights(math_ops.cast(weights, dtypes.float32), values)
        values = gen_ops.mul(values, weights)
    return count.value(), count.assign_add(math_ops.reduce_sum(values))


def _confusion_count(name: str, of_labels: bool, of_predictions: bool, doc: str) -> Any:
    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
    ) -> Any:
        with variable_scope(name, metric.__name__, [predictions, labels, weights]):
            p, y, weights = _truth(labels, predictions, weights)
            flags = gen_ops.logical_and(y if of_labels else gen_ops.logical_not(y), p if of_predictions else gen_ops.logical_not(p))
            return done(*_counted(flags, weights), metrics_collections, updates_collections)  # type: ignore[call-arg]

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = doc
    return metric


true_positives = _confusion_count("true_positives", True, True, "How many positive labels are predicted.")
false_positives = _confusion_count("false_positives", False, True, "How many negative labels are predicted positive.")
true_negatives = _confusion_count("true_negatives", False, False, "How many negative labels are predicted so.")
false_negatives = _confusion_count("false_negatives", True, False, "How many positive labels are missed.")


def precision(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The fraction of positive predictions that are right."""
    with variable_scope(name, "precision", [predictions, labels, weights]):
        p, y, weights = _truth(labels, predictions, weights)
        right, add_right = true_positives(y, p, weights)
        wrong, add_wrong = false_positives(y, p, weights)
        return done(ratio(right, right + wrong, "value"), ratio(add_right, add_right + add_wrong, "update_op"), metrics_collections, updates_collections)


def recall(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The fraction of positive labels that are predicted."""
    with variable_scope(name, "recall", [predictions, labels, weights]):
        p, y, weights = _truth(labels, predictions, weights)
        right, add_right = true_positives(y, p, weights)
        missed, add_missed = false_negatives(y, p, weights)
        return done(ratio(right, right + missed, "value"), ratio(add_right, add_right + add_missed, "update_op"), metrics_collections, updates_collections)


# ---- means over classes ----


def _flat(x: Any) -> Tensor:
    x = math_ops.cast(x, dtypes.int64)
    return x if x.get_shape().ndims == 1 else array_ops.reshape(x, [-1])


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The mean over the classes of how often their examples are predicted."""
    with variable_scope(name, "mean_accuracy", [predictions, labels, weights]):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        predictions.get_shape().assert_is_compatible_with(labels.get_shape())
        labels, predictions = _flat(labels), _flat(predictions)
        total, count = local("count", [num_classes]), local("total", [num_classes])
        amount = array_ops.ones_like(labels, dtypes.float32)
        if weights is not None:
            amount = amount * array_ops.reshape(math_ops.cast(weights, dtypes.float32), [-1])
        right = math_ops.cast(gen_ops.equal(labels, predictions), dtypes.float32) * amount
        added = total.assign_add(gen_ops.unsorted_segment_sum(right, labels, num_classes))
        counted = count.assign_add(gen_ops.unsorted_segment_sum(amount, labels, num_classes))
        value = math_ops.reduce_mean(ratio(total.value(), count.value()), name="mean_accuracy")
        return done(value, ratio(added, counted, "update_op"), metrics_collections, updates_collections)


def _mean_iou(matrix: Any) -> Tensor:
    rows, columns = (math_ops.cast(math_ops.reduce_sum(matrix, axis), dtypes.float32) for axis in (0, 1))
    both = math_ops.cast(gen_ops.diag_part(matrix), dtypes.float32)
    union = rows + columns - both
    present = math_ops.reduce_sum(math_ops.cast(gen_ops.not_equal(union, 0.0), dtypes.float32))
    safe = array_ops.where(gen_ops.greater(union, 0.0), union, array_ops.ones_like(union))
    return ratio(math_ops.reduce_sum(both / safe, name="mean_iou"), present)


def streaming_confusion_matrix(labels: Any, predictions: Any, num_classes: int, weights: Any = None) -> Tuple[Any, Tensor]:
    """Counts by class and predicted class over many steps, and the operation that adds to them."""
    table = local("total_confusion_matrix", [num_classes, num_classes], dtypes.float64)
    if weights is not None:
        weights = convert_to_tensor(weights)
        weights = weights if weights.get_shape().ndims == 1 else array_ops.reshape(weights, [-1])
    labels, predictions = (_flat(convert_to_tensor(x)) for x in (labels, predictions))
    return table, table.assign_add(confusion_matrix(labels, predictions, num_classes, dtypes.float64, weights=weights))


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The mean over the classes of intersection by union."""
    with variable_scope(name, "mean_iou", [predictions, labels, weights]):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        predictions.get_shape().assert_is_compatible_with(labels.get_shape())
        table, update = streaming_confusion_matrix(labels, predictions, num_classes, weights)
        return done(_mean_iou(table.value()), update, metrics_collections, updates_collections)
