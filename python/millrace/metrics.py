# SPDX-License-Identifier: Apache-2.0
"""tf.metrics: measures over many steps, as (value, operation that updates it)."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import GraphKeys, Tensor, add_to_collections
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.variable_scope import variable_scope
from millrace.ops.variables import Variable


def _local(name: str, shape: Any, dtype: Any = dtypes.float32) -> Variable:
    return Variable(array_ops.zeros(shape, dtype), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], name=name)


def _ratio(a: Any, b: Any, name: Optional[str] = None) -> Tensor:
    positive = gen_ops.greater(b, array_ops.zeros_like(b))
    return gen_ops.select(positive, gen_ops.real_div(a, gen_ops.select(positive, b, array_ops.ones_like(b))), array_ops.zeros_like(a), name=name)


def _done(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> Tuple[Tensor, Tensor]:
    if metrics_collections:
        add_to_collections(metrics_collections, value)
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def mean(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """The mean of values."""
    with variable_scope(name, "mean", [values]):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _local("total", []), _local("count", [])
        if weights is None:
            amount = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            weights = math_ops.cast(weights, dtypes.float32)
            values = values * weights
            amount = math_ops.reduce_sum(array_ops.ones_like(values) * weights)
        added = total.assign_add(math_ops.reduce_sum(values))
        counted = count.assign_add(amount)
        return _done(_ratio(total.value(), count.value(), "value"), _ratio(added, counted, "update_op"), metrics_collections, updates_collections)


def accuracy(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
             name: Optional[str] = None) -> Any:
    """How often predictions are the labels."""
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    if labels.dtype.base_dtype != predictions.dtype.base_dtype:
        predictions = math_ops.cast(predictions, labels.dtype.base_dtype)
    if labels.get_shape().ndims != predictions.get_shape().ndims and labels.get_shape().ndims is not None:
        labels = array_ops.reshape(labels, array_ops.shape(predictions))
    return mean(gen_ops.equal(predictions, labels), weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
                       name: Optional[str] = None) -> Any:
    """The mean of squared differences."""
    return mean(gen_ops.squared_difference(math_ops.cast(predictions, dtypes.float32), math_ops.cast(labels, dtypes.float32)), weights,
                metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
                            name: Optional[str] = None) -> Any:
    """The root of mean_squared_error."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return _done(gen_ops.sqrt(value), gen_ops.sqrt(update), metrics_collections, updates_collections)


def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
                        name: Optional[str] = None) -> Any:
    """The mean of absolute differences."""
    return mean(math_ops.abs(math_ops.cast(predictions, dtypes.float32) - math_ops.cast(labels, dtypes.float32)), weights, metrics_collections,
                updates_collections, name or "mean_absolute_error")


def _counted(flags: Any, weights: Any, name: str) -> Any:
    values = math_ops.cast(flags, dtypes.float32)
    if weights is not None:
        values = values * math_ops.cast(weights, dtypes.float32)
    count = _local(name, [])
    return count.value(), count.assign_add(math_ops.reduce_sum(values))


def _truth(labels: Any, predictions: Any) -> Any:
    return math_ops.cast(labels, dtypes.bool_), math_ops.cast(predictions, dtypes.bool_)


def precision(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
              name: Optional[str] = None) -> Any:
    """The fraction of positive predictions that are right."""
    with variable_scope(name, "precision", [labels, predictions]):
        y, p = _truth(labels, predictions)
        right, add_right = _counted(gen_ops.logical_and(y, p), weights, "true_positives")
        wrong, add_wrong = _counted(gen_ops.logical_and(gen_ops.logical_not(y), p), weights, "false_positives")
        return _done(_ratio(right, right + wrong), _ratio(add_right, add_right + add_wrong), metrics_collections, updates_collections)


def recall(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
           name: Optional[str] = None) -> Any:
    """The fraction of positive labels that are predicted."""
    with variable_scope(name, "recall", [labels, predictions]):
        y, p = _truth(labels, predictions)
        right, add_right = _counted(gen_ops.logical_and(y, p), weights, "true_positives")
        missed, add_missed = _counted(gen_ops.logical_and(y, gen_ops.logical_not(p)), weights, "false_negatives")
        return _done(_ratio(right, right + missed), _ratio(add_right, add_right + add_missed), metrics_collections, updates_collections)


def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
             name: Optional[str] = None) -> Any:
    """The mean over the classes of intersection by union."""
    with variable_scope(name, "mean_iou", [labels, predictions]):
        labels, predictions = array_ops.reshape(math_ops.cast(labels, dtypes.int64), [-1]), array_ops.reshape(math_ops.cast(predictions, dtypes.int64), [-1])
        table = _local("total_confusion_matrix", [num_classes, num_classes], dtypes.float64)
        if weights is not None:
            weights = array_ops.reshape(math_ops.cast(weights, dtypes.float64), [-1])
        update = table.assign_add(math_ops.confusion_matrix(labels, predictions, num_classes, dtypes.float64, weights=weights))

        def of(matrix: Any) -> Tensor:
            rows = math_ops.cast(math_ops.reduce_sum(matrix, 0), dtypes.float32)
            columns = math_ops.cast(math_ops.reduce_sum(matrix, 1), dtypes.float32)
            both = math_ops.cast(gen_ops.matrix_diag_part(matrix), dtypes.float32)
            union = rows + columns - both
            present = math_ops.reduce_sum(math_ops.cast(gen_ops.not_equal(union, 0.0), dtypes.float32))
            safe = gen_ops.select(gen_ops.greater(union, 0.0), union, array_ops.ones_like(union))
            return _ratio(math_ops.reduce_sum(both / safe), present)

        return _done(of(table.value()), update, metrics_collections, updates_collections)
