# SPDX-License-Identifier: Apache-2.0
"""tf.metrics: measures over many steps, as (value, operation that updates it)."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import GraphKeys, Tensor, add_to_collections, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
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
        with control_dependencies([values]):  # nothing is counted in a step whose input has ended
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
    count = _local(name + "/count" if name != "count" else name, [])
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


def _confusion_count(name: str, of_labels: bool, of_predictions: bool, doc: str) -> Any:
    def metric(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
               name: Optional[str] = None) -> Any:
        with variable_scope(name, metric.__name__, [labels, predictions]):
            y, p = _truth(labels, predictions)
            y = y if of_labels else gen_ops.logical_not(y)
            p = p if of_predictions else gen_ops.logical_not(p)
            value, update = _counted(gen_ops.logical_and(y, p), weights, "count")
            return _done(value, update, metrics_collections, updates_collections)

    metric.__name__, metric.__doc__ = name, doc
    return metric


true_positives = _confusion_count("true_positives", True, True, "How many positive labels are predicted.")
false_positives = _confusion_count("false_positives", False, True, "How many negative labels are predicted positive.")
true_negatives = _confusion_count("true_negatives", False, False, "How many negative labels are predicted so.")
false_negatives = _confusion_count("false_negatives", True, False, "How many positive labels are missed.")


def mean_tensor(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """The mean of each element."""
    with variable_scope(name, "mean", [values]):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _local("total_tensor", values.get_shape()), _local("count_tensor", values.get_shape())
        amount = array_ops.ones_like(values) if weights is None else array_ops.ones_like(values) * math_ops.cast(weights, dtypes.float32)
        added = total.assign_add(values * amount)
        with control_dependencies([values]):
            counted = count.assign_add(amount)
        return _done(_ratio(total.value(), count.value(), "value"), _ratio(added, counted, "update_op"), metrics_collections, updates_collections)


def percentage_below(values: Any, threshold: float, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
                     name: Optional[str] = None) -> Any:
    """The fraction of values below the threshold."""
    return mean(gen_ops.less(values, threshold), weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


def auc(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200, metrics_collections: Any = None,
        updates_collections: Any = None, curve: str = "ROC", name: Optional[str] = None, summation_method: str = "trapezoidal",
        thresholds: Any = None) -> Any:
    """The area under the curve of true against false positives (ROC), or of precision against recall (PR), by thresholds."""
    if curve not in ("ROC", "PR"):
        raise ValueError("curve must be either ROC or PR, %s unknown" % curve)
    if summation_method != "trapezoidal":
        raise ValueError("Invalid summation_method: %s; trapezoidal is provided" % summation_method)
    inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)] if thresholds is None else sorted(thresholds)
    levels = [-1e-7] + list(inner) + [1.0 + 1e-7]
    with variable_scope(name, "auc", [labels, predictions]):
        y = array_ops.reshape(math_ops.cast(labels, dtypes.bool_), [1, -1])
        p = array_ops.reshape(math_ops.cast(predictions, dtypes.float32), [1, -1])
        above = gen_ops.greater(p, array_ops.reshape(convert_to_tensor(levels, dtypes.float32), [-1, 1]))
        amount = 1.0 if weights is None else array_ops.reshape(array_ops.ones_like(p) * array_ops.reshape(math_ops.cast(weights, dtypes.float32), [1, -1]), [1, -1])
        counts = []
        for key, of_y, of_p in (("true_positives", y, above), ("false_positives", gen_ops.logical_not(y), above),
                                ("false_negatives", y, gen_ops.logical_not(above)),
                                ("true_negatives", gen_ops.logical_not(y), gen_ops.logical_not(above))):
            count = _local(key, [len(levels)])
            batch = math_ops.reduce_sum(math_ops.cast(gen_ops.logical_and(of_y, of_p), dtypes.float32) * amount, 1)
            counts.append((count.value(), count.assign_add(batch)))

        def area(tp: Any, fp: Any, fn: Any, tn: Any, *, name: str) -> Tensor:
            recalled = (tp + 1e-6) / (tp + fn + 1e-6)
            if curve == "ROC":
                x, height = fp / (fp + tn + 1e-6), recalled
            else:
                x, height = recalled, (tp + 1e-6) / (tp + fp + 1e-6)
            return math_ops.reduce_sum((x[:-1] - x[1:]) * (height[:-1] + height[1:]) / 2.0, name=name)

        return _done(area(*[c[0] for c in counts], name="value"), area(*[c[1] for c in counts], name="update_op"),  # type: ignore[misc, arg-type]
                     metrics_collections, updates_collections)


def recall_at_k(labels: Any, predictions: Any, k: int, class_id: Optional[int] = None, weights: Any = None, metrics_collections: Any = None,
                updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """How often the label is among the k best predictions; one label for each example."""
    if class_id is not None:
        raise NotImplementedError("recall_at_k of one class is not provided: leave class_id out.")
    flat = array_ops.reshape(math_ops.cast(labels, dtypes.int64), [-1])
    return mean(nn_ops.in_top_k(predictions, flat, k), weights, metrics_collections, updates_collections, name or "recall_at_%d" % k)


def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None,
                            updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """The mean over the classes of how often their examples are predicted."""
    with variable_scope(name, "mean_accuracy", [labels, predictions]):
        labels = array_ops.reshape(math_ops.cast(labels, dtypes.int64), [-1])
        predictions = array_ops.reshape(math_ops.cast(predictions, dtypes.int64), [-1])
        total, count = _local("count", [num_classes]), _local("total", [num_classes])
        amount = array_ops.ones_like(labels, dtypes.float32)
        if weights is not None:
            amount = amount * array_ops.reshape(math_ops.cast(weights, dtypes.float32), [-1])
        right = math_ops.cast(gen_ops.equal(labels, predictions), dtypes.float32) * amount
        added = total.assign_add(gen_ops.unsorted_segment_sum(right, labels, num_classes))
        counted = count.assign_add(gen_ops.unsorted_segment_sum(amount, labels, num_classes))
        value = math_ops.reduce_mean(_ratio(total.value(), count.value()), name="mean_accuracy")
        return _done(value, _ratio(added, counted, "update_op"), metrics_collections, updates_collections)


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
