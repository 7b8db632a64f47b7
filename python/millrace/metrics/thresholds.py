# SPDX-License-Identifier: Apache-2.0
"""Metrics of probabilities against thresholds."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.metrics.parts import done, fitted, local
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.variable_scope import variable_scope
from millrace.ops.weights_broadcast import broadcast_weights

_KINDS = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
_TINY = 1e-7


def _counts(labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: Sequence[str]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """By kind, a variable with a count for each threshold, and what it is after this step."""
    predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
    inside = [
        check(predictions, math_ops.cast(limit, predictions.dtype.base_dtype), message="predictions must be in [0, 1]")
        for check, limit in ((check_ops.assert_greater_equal, 0.0), (check_ops.assert_less_equal, 1.0))
    ]
    with control_dependencies(inside):
        predictions, labels, weights = fitted(math_ops.cast(array_ops.identity(predictions), dtypes.float32), math_ops.cast(labels, dtypes.bool_), weights)
    levels = array_ops.expand_dims(convert_to_tensor(list(thresholds), dtypes.float32), 1)
    above = gen_ops.greater(array_ops.reshape(predictions, [1, -1]), levels)  # [thresholds, predictions]
    positive = array_ops.reshape(labels, [1, -1])
    amount: Any = None
    if weights is not None:
        amount = array_ops.reshape(broadcast_weights(math_ops.cast(weights, dtypes.float32), predictions), [1, -1])
    values, updates = {}, {}
    for kind in kinds:
        flags = gen_ops.logical_and(
            positive if kind in ("tp", "fn") else gen_ops.logical_not(positive), above if kind in ("tp", "fp") else gen_ops.logical_not(above)
        )
        ones = math_ops.cast(flags, dtypes.float32)
        count = local(_KINDS[kind], [len(thresholds)])
        values[kind] = count.value()
        updates[kind] = count.assign_add(math_ops.reduce_sum(ones if amount is None else ones * amount, 1))
    return values, updates


def _spread(num_thresholds: int, last: float = 1.0 + _TINY) -> Any:
    """Thresholds evenly over [0, 1], the outer ones just outside."""
    return [0.0 - _TINY] + [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)] + [last]


def _metric(
    default: str,
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any,
    kinds: Sequence[str],
    of: Callable[..., Any],
    metrics_collections: Any,
    updates_collections: Any,
    name: Optional[str],
) -> Any:
    """`of` makes the value of the counts of the kinds and a name."""
    with variable_scope(name, default, [predictions, labels, weights]):
        values, updates = _counts(labels, predictions, thresholds, weights, kinds)
        return done(of(*[values[k] for k in kinds], "value"), of(*[updates[k] for k in kinds], "update_op"), metrics_collections, updates_collections)


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: Optional[str] = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> Any:
    """The area under the curve of true against false positives (ROC), or of precision against recall (PR), by thresholds."""
    if curve not in ("ROC", "PR"):
        raise at_user_line(ValueError("curve must be either ROC or PR, %s unknown" % curve))
    if summation_method not in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
        raise at_user_line(ValueError("Invalid summation_method: %s" % summation_method))
    if summation_method == "careful_interpolation" and curve != "PR":
        summation_method = "trapezoidal"
    levels = _spread(num_thresholds) if thresholds is None else [0.0 - _TINY] + sorted(thresholds) + [1.0 + _TINY]
    epsilon = 1e-6

    def interpolated(tp: Any, fp: Any, fn: Any, name: str) -> Tensor:
        """Davis and Goadrich, The Relationship Between Precision-Recall and ROC Curves: between two thresholds tp is linear in tp + fp."""
        up, p = tp[:-1] - tp[1:], tp + fp
        steps = gen_ops.maximum(p[:-1] - p[1:], 0.0)
        slope = gen_ops.div_no_nan(up, steps)
        start = tp[1:] - gen_ops.mul(slope, p[1:])
        both = gen_ops.logical_and(gen_ops.greater(p[:-1], 0.0), gen_ops.greater(p[1:], 0.0))
        share = array_ops.where(both, gen_ops.div_no_nan(p[:-1], gen_ops.maximum(p[1:], 0.0)), array_ops.ones_like(p[1:]))
        return math_ops.reduce_sum(gen_ops.div_no_nan(slope * (up + start * gen_ops.log(share)), gen_ops.maximum(tp[1:] + fn[1:], 0.0)), name=name)

    def area(tp: Any, fn: Any, tn: Any, fp: Any, name: str) -> Tensor:
        if summation_method == "careful_interpolation":
            return interpolated(tp, fp, fn, name)
        recalled = (tp + epsilon) / (tp + fn + epsilon)
        x, height = (fp / (fp + tn + epsilon), recalled) if curve == "ROC" else (recalled, (tp + epsilon) / (tp + fp + epsilon))
        left, right = height[:-1], height[1:]
        between = (
            (left + right) / 2.0
            if summation_method == "trapezoidal"
            else gen_ops.minimum(left, right)
            if summation_method == "minoring"
            else gen_ops.maximum(left, right)
        )
        return math_ops.reduce_sum((x[:-1] - x[1:]) * between, name=name)

    return _metric("auc", labels, predictions, levels, weights, ("tp", "fn", "tn", "fp"), area, metrics_collections, updates_collections, name)


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of predictions above each threshold that are right."""
    return _metric(
        "precision_at_thresholds",
        labels,
        predictions,
        thresholds,
        weights,
        ("tp", "fp"),
        lambda tp, fp, name: gen_ops.real_div(tp, _TINY + tp + fp, name="precision_" + name),
        metrics_collections,
        updates_collections,
        name,
    )


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of positive labels that are predicted above each threshold."""
    return _metric(
        "recall_at_thresholds",
        labels,
        predictions,
        thresholds,
        weights,
        ("tp", "fn"),
        lambda tp, fn, name: gen_ops.real_div(tp, _TINY + tp + fn, name="recall_" + name),
        metrics_collections,
        updates_collections,
        name,
    )


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The true positive rate at the threshold whose specificity is nearest to the one given."""
    if specificity < 0 or specificity > 1:
        raise at_user_line(ValueError("`specificity` must be in the range [0, 1]."))

    def of(tp: Any, fn: Any, tn: Any, fp: Any, name: str) -> Tensor:
        at = math_ops.cast(math_ops.argmin(math_ops.abs(tn / (tn + fp + _TINY) - specificity), 0), dtypes.int32)
        return gen_ops.real_div(tp[at], tp[at] + fn[at] + _TINY, name=name)

    return _metric(
        "sensitivity_at_specificity",
        labels,
        predictions,
        _spread(num_thresholds),
        weights,
        ("tp", "fn", "tn", "fp"),
        of,
        metrics_collections,
        updates_collections,
        name,
    )


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The true negative rate at the last threshold whose sensitivity is nearest to the one given."""
    if sensitivity < 0 or sensitivity > 1:
        raise at_user_line(ValueError("`sensitivity` must be in the range [0, 1]."))

    def of(tp: Any, fn: Any, tn: Any, fp: Any, name: str) -> Tensor:
        off = math_ops.abs(tp / (tp + fn + _TINY) - sensitivity)
        nearest = math_ops.cast(gen_ops.equal(off, math_ops.reduce_min(off)), dtypes.int64)
        at = math_ops.cast(math_ops.argmax(math_ops.cumsum(nearest), 0), dtypes.int32)
        return gen_ops.real_div(tn[at], tn[at] + fp[at] + _TINY, name=name)

    return _metric(
        "specificity_at_sensitivity",
        labels,
        predictions,
        _spread(num_thresholds, 1.0 - _TINY),
        weights,
        ("tp", "fn", "tn", "fp"),
        of,
        metrics_collections,
        updates_collections,
        name,
    )


def _at_thresholds(kind: str, doc: str) -> Any:
    def metric(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: Optional[str] = None,
    ) -> Any:
        with variable_scope(name, _KINDS[kind], [predictions, labels, weights]):
            values, updates = _counts(labels, predictions, thresholds, weights, (kind,))
            return done(values[kind], updates[kind], metrics_collections, updates_collections)

    metric.__name__ = metric.__qualname__ = _KINDS[kind] + "_at_thresholds"
    metric.__doc__ = doc
    return metric


true_positives_at_thresholds = _at_thresholds("tp", "How many positive labels are predicted above each threshold.")
false_positives_at_thresholds = _at_thresholds("fp", "How many negative labels are predicted above each threshold.")
true_negatives_at_thresholds = _at_thresholds("tn", "How many negative labels are not predicted above each threshold.")
false_negatives_at_thresholds = _at_thresholds("fn", "How many positive labels are not predicted above each threshold.")
