# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.metrics: the measures of tf.metrics under their first names, with predictions before labels, and more."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from millrace import metrics as _metrics
from millrace.contrib.metrics_histograms import auc_using_histogram  # noqa: F401
from millrace.contrib.metrics_placements import auc_with_confidence_intervals  # noqa: F401
from millrace.contrib.streaming_metrics import (  # noqa: F401
    cohen_kappa,
    count,
    f1_score,
    precision_at_recall,
    precision_recall_at_equal_thresholds,
    recall_at_precision,
    sparse_recall_at_top_k,
    streaming_concat,
    streaming_covariance,
    streaming_curve_points,
    streaming_dynamic_auc,
    streaming_false_negative_rate,
    streaming_false_negative_rate_at_thresholds,
    streaming_false_positive_rate,
    streaming_false_positive_rate_at_thresholds,
    streaming_pearson_correlation,
    streaming_recall_at_k,
    streaming_sparse_average_precision_at_top_k,
    streaming_sparse_precision_at_top_k,
)
from millrace.framework.convert import convert_to_tensor as _convert
from millrace.framework.errors import at_user_line as _at_user_line
from millrace.ops import math_ops as _math_ops
from millrace.metrics.thresholds import _counts
from millrace.sets import set_difference, set_intersection, set_size, set_union  # noqa: F401
from millrace.ops.confusion_matrix import confusion_matrix as _confusion_matrix


def _streaming(name: str) -> Callable[..., Any]:
    of = getattr(_metrics, name)

    def measure(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        return of(labels, predictions, *args, **kwargs)

    measure.__name__, measure.__doc__ = "streaming_" + name, of.__doc__
    return measure


for _name in (
    "accuracy",
    "auc",
    "false_negatives",
    "false_positives",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_relative_error",
    "mean_squared_error",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_positives",
):
    globals()["streaming_" + _name] = _streaming(_name)


def _counting(kind: str, of: Callable[..., Any]) -> Callable[..., Any]:
    def measure(predictions: Any, labels: Any, thresholds: Any, weights: Any = None) -> Any:
        values, updates = _counts(labels, predictions, thresholds, weights, (kind,))
        return values[kind], updates[kind]

    measure.__name__, measure.__doc__ = "streaming_" + of.__name__, of.__doc__
    return measure


streaming_true_positives_at_thresholds = _counting("tp", _metrics.true_positives_at_thresholds)
streaming_false_positives_at_thresholds = _counting("fp", _metrics.false_positives_at_thresholds)
streaming_true_negatives_at_thresholds = _counting("tn", _metrics.true_negatives_at_thresholds)
streaming_false_negatives_at_thresholds = _counting("fn", _metrics.false_negatives_at_thresholds)
streaming_sparse_recall_at_k = _streaming("recall_at_k")
streaming_sparse_precision_at_k = _streaming("precision_at_k")
streaming_sparse_average_precision_at_k = _streaming("average_precision_at_k")
streaming_mean = _metrics.mean
streaming_mean_tensor = _metrics.mean_tensor
streaming_percentage_less = _metrics.percentage_below


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: Optional[str] = None) -> Any:
    """Which share of the predictions are the labels, of one type, of integers, booleans or strings."""
    predictions, labels = _convert(predictions), _convert(labels)
    if labels.dtype != predictions.dtype:
        raise _at_user_line(ValueError("Labels and predictions should have the same dtype, but got %r and %r." % (labels.dtype, predictions.dtype)))
    if not (labels.dtype.is_integer or labels.dtype.name in ("bool", "string")):
        raise _at_user_line(ValueError("Labels should have bool, integer, or string dtype but got %r." % labels.dtype))
    right = _math_ops.cast(_math_ops.equal(predictions, labels), "float32")
    if weights is not None:
        right = right * weights
        return _math_ops.truediv(_math_ops.reduce_mean(right), _math_ops.reduce_mean(_math_ops.cast(weights, "float32")), name=name)
    return _math_ops.reduce_mean(right, name=name)


def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, dtype: Any = "int32", name: Optional[str] = None, weights: Any = None) -> Any:
    """How often each class was taken for each."""
    return _confusion_matrix(labels, predictions, num_classes, dtype=dtype, name=name, weights=weights)


def aggregate_metrics(*value_update_tuples: Any) -> Tuple[Any, Any]:
    """Lists of the values and of the updates of some measures."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Dictionaries of the values and of the updates of some measures."""
    return {key: pair[0] for key, pair in names_to_tuples.items()}, {key: pair[1] for key, pair in names_to_tuples.items()}
