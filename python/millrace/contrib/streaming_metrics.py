# SPDX-License-Identifier: Apache-2.0
"""Measures that tf.contrib.metrics alone has."""

from __future__ import annotations

import collections
import math
from typing import Any, Callable, List, Optional, Tuple

from millrace import metrics
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, name_scope
from millrace.metrics.parts import done, fitted, local, ratio
from millrace.metrics.ranking import _mean_average_precision, precision_at_top_k, recall_at_top_k
from millrace.metrics.thresholds import _TINY, _counts, _metric, _spread
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.confusion_matrix import confusion_matrix as _confusion_matrix
from millrace.ops.variable_scope import variable_scope
from millrace.ops.variables import Variable
from millrace.ops.weights_broadcast import broadcast_weights


# ---- rates of errors ----


def _error_rate(default: str, wrong: Callable[..., Any], right: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def metric(
        predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
    ) -> Any:
        with variable_scope(name, default, [predictions, labels, weights]):
            errors, add_errors = wrong(labels, predictions, weights)
            rest, add_rest = right(labels, predictions, weights)
            value, update = ratio(errors, errors + rest, "value"), ratio(add_errors, add_errors + add_rest, "update_op")
            return done(value, update, metrics_collections, updates_collections)

    metric.__name__, metric.__doc__ = "streaming_" + default, doc
    return metric


streaming_false_positive_rate = _error_rate(
    "false_positive_rate", metrics.false_positives, metrics.true_negatives, "The fraction of negative labels that are predicted positive."
)
streaming_false_negative_rate = _error_rate(
    "false_negative_rate", metrics.false_negatives, metrics.true_positives, "The fraction of positive labels that are missed."
)


def _error_rate_at_thresholds(default: str, wrong: str, right: str, doc: str) -> Callable[..., Any]:
    def metric(
        predictions: Any,
        labels: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: Optional[str] = None,
    ) -> Any:
        def of(errors: Any, rest: Any, name: str) -> Any:
            return gen_ops.real_div(errors, _TINY + errors + rest, name=name)

        kinds = (wrong, right)
        return _metric(default, labels, predictions, thresholds, weights, kinds, of, metrics_collections, updates_collections, name)

    metric.__name__, metric.__doc__ = "streaming_" + default, doc
    return metric


streaming_false_positive_rate_at_thresholds = _error_rate_at_thresholds(
    "false_positive_rate_at_thresholds", "fp", "tn", "The fraction of negative labels that are predicted positive, by thresholds."
)
streaming_false_negative_rate_at_thresholds = _error_rate_at_thresholds(
    "false_negative_rate_at_thresholds", "fn", "tp", "The fraction of positive labels that are missed, by thresholds."
)


# ---- the best of thresholds ----


def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The largest harmonic mean of precision and recall over thresholds."""

    def best(tp: Any, fp: Any, fn: Any, name: str) -> Any:
        precision, recall = tp / (_TINY + tp + fp), tp / (_TINY + tp + fn)
        return math_ops.reduce_max(2.0 * precision * recall / (precision + recall + _TINY), name=name)

    levels, kinds = _spread(num_thresholds), ("tp", "fp", "fn")
    return _metric("f1", labels, predictions, levels, weights, kinds, best, metrics_collections, updates_collections, name)


def precision_at_recall(
    labels: Any,
    predictions: Any,
    target_recall: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The precision at the highest threshold whose recall is at least target_recall."""
    if not 0 <= target_recall <= 1:
        raise at_user_line(ValueError("`target_recall` must be in the range [0, 1]."))

    def of(tp: Any, fn: Any, tn: Any, fp: Any, name: str) -> Any:
        del tn  # counted for programs that look at the variable
        enough = gen_ops.greater_equal(tp / (tp + fn + _TINY), target_recall)
        at = math_ops.reduce_sum(math_ops.cast(enough, dtypes.int32)) - 1
        return gen_ops.real_div(tp[at] + _TINY, tp[at] + fp[at] + _TINY, name=name)

    levels, kinds = _spread(num_thresholds), ("tp", "fn", "tn", "fp")
    return _metric("precision_at_recall", labels, predictions, levels, weights, kinds, of, metrics_collections, updates_collections, name)


def recall_at_precision(
    labels: Any,
    predictions: Any,
    precision: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
    strict_mode: bool = False,
) -> Any:
    """The recall at the threshold whose precision is nearest to the one given; with strict_mode to the nearest that is no less (0 when there is none)."""
    if not 0 <= precision <= 1:
        raise at_user_line(ValueError("`precision` must be in the range [0, 1]."))

    def of(tp: Any, fn: Any, tn: Any, fp: Any, name: str) -> Any:
        del tn  # counted for programs that look at the variable
        precisions = tp / (tp + fp + _TINY)
        if not strict_mode:
            at = math_ops.cast(math_ops.argmin(math_ops.abs(precisions - precision), 0), dtypes.int32)
            return gen_ops.real_div(tp[at], tp[at] + fn[at] + _TINY, name=name)
        enough = gen_ops.greater_equal(precisions, precision)
        at = math_ops.cast(math_ops.argmin(array_ops.where(enough, precisions, 2.0 * array_ops.ones_like(precisions)), 0), dtypes.int32)
        return gen_ops.mul(math_ops.cast(enough[at], tp.dtype), tp[at] / (tp[at] + fn[at] + _TINY), name=name)

    levels, kinds = _spread(num_thresholds), ("tp", "fn", "tn", "fp")
    return _metric("recall_at_precision", labels, predictions, levels, weights, kinds, of, metrics_collections, updates_collections, name)


# ---- curves ----


def streaming_curve_points(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: Optional[str] = None,
) -> Any:
    """The points [thresholds, 2] of the curve whose area `auc` is, and an operation that counts."""
    _check_curve(curve)
    with variable_scope(name, "curve_points", [labels, predictions, weights]):
        counts, updates = _counts(labels, predictions, _spread(num_thresholds), weights, ("tp", "fn", "tn", "fp"))
        tp, fn, tn, fp = (counts[k] for k in ("tp", "fn", "tn", "fp"))
        recall = (tp + 1e-6) / (tp + fn + 1e-6)
        points = [fp / (fp + tn + 1e-6), recall] if curve == "ROC" else [recall, (tp + 1e-6) / (tp + fp + 1e-6)]
        return done(array_ops.stack(points, 1), control_flow_ops.group(*updates.values()), metrics_collections, updates_collections)


def _check_curve(curve: str) -> None:
    if curve not in ("ROC", "PR"):
        raise at_user_line(ValueError("curve must be either ROC or PR, %s unknown" % curve))


def streaming_dynamic_auc(
    labels: Any,
    predictions: Any,
    curve: str = "ROC",
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: Optional[str] = None,
    weights: Any = None,
) -> Any:
    """The exact area under the curve, of all predictions, which it keeps; 0 while there are no labels of one kind."""
    _check_curve(curve)
    with variable_scope(name, "dynamic_auc"):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        labels.get_shape().assert_is_compatible_with(predictions.get_shape())
        labels = array_ops.reshape(math_ops.cast(labels, dtypes.int64), [-1])
        low, high = array_ops.zeros_like(labels), array_ops.ones_like(labels)
        checks = [
            check_ops.assert_greater_equal(labels, low, message="labels must be 0 or 1, at least one is <0"),
            check_ops.assert_less_equal(labels, high, message="labels must be 0 or 1, at least one is >1"),
        ]
        with control_dependencies(checks):
            labels = array_ops.identity(labels)
        parts = [("labels", labels), ("preds", predictions), *([] if weights is None else [("weights", weights)])]
        flat = [array_ops.reshape(math_ops.cast(part, labels.dtype if what == "labels" else dtypes.float64), [-1]) for what, part in parts]
        kept = [streaming_concat(part, name="concat_" + what) for part, (what, _) in zip(flat, parts)]
        area = _area([value for value, _ in kept], curve)
        return done(area, control_flow_ops.group(*[update for _, update in kept]), metrics_collections, updates_collections)


def _area(parts: List[Any], curve: str) -> Any:
    """Of labels and predictions, and weights if there are some."""
    labels, predictions = parts[:2]
    weights = parts[2] if len(parts) > 2 else array_ops.ones_like(predictions)
    zeros = array_ops.zeros_like(weights)
    positive = array_ops.where(gen_ops.greater(labels, math_ops.cast(0, labels.dtype)), weights, zeros)
    total, of_positive = math_ops.reduce_sum(weights), math_ops.reduce_sum(positive)

    def of_both_kinds() -> Any:
        _, order = nn_ops.top_k(predictions, array_ops.size(predictions))
        _, _, counts = gen_ops.unique_with_counts(array_ops.gather(predictions, order))
        ends = array_ops.concat([[0], math_ops.cumsum(counts)], 0)  # equal predictions are one point

        def up_to(values: Any) -> Any:
            sums = math_ops.cumsum(array_ops.gather(values, order))
            return array_ops.gather(array_ops.concat([math_ops.cast([0], sums.dtype), sums], 0), ends)

        hits = up_to(positive)
        if curve == "ROC":
            x, y = up_to(weights - positive) / (total - of_positive), hits / of_positive
        else:
            x, y = hits / of_positive, array_ops.where(gen_ops.greater(ends, 0), hits / up_to(weights), array_ops.ones_like(hits))
        return math_ops.reduce_sum((y[1:] + y[:-1]) / 2.0 * math_ops.abs(x[1:] - x[:-1]))

    one_kind = gen_ops.logical_or(gen_ops.equal(of_positive, 0.0), gen_ops.equal(of_positive, total))
    return control_flow_ops.cond(one_kind, lambda: math_ops.cast(0.0, dtypes.float64), of_both_kinds)


PrecisionRecallData = collections.namedtuple("PrecisionRecallData", ["tp", "fp", "tn", "fn", "precision", "recall", "thresholds"])


def precision_recall_at_equal_thresholds(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: Optional[int] = None, use_locking: Optional[bool] = None, name: Optional[str] = None
) -> Tuple[Any, Any]:
    """Counts, precision and recall at thresholds evenly over [0, 1] (201 unless given), by one pass over the predictions, and an operation that
    counts. Labels are booleans."""
    bins = 201 if num_thresholds is None else num_thresholds
    check_ops.assert_type(labels, dtypes.bool_)
    with variable_scope(name, "precision_recall_at_equal_thresholds", [labels, predictions, weights]):
        predictions = convert_to_tensor(predictions)
        checks = [
            check(predictions, math_ops.cast(limit, predictions.dtype), message="predictions must be in [0, 1]")
            for check, limit in ((check_ops.assert_greater_equal, 0.0), (check_ops.assert_less_equal, 1.0))
        ]
        with control_dependencies(checks):
            predictions, labels, weights = fitted(array_ops.identity(predictions), labels, 1.0 if weights is None else weights)
        positive, weights = math_ops.cast(labels, dtypes.float64), math_ops.cast(weights, dtypes.float64)
        places = math_ops.cast(gen_ops.floor(array_ops.reshape(predictions, [-1]) * (bins - 1)), dtypes.int32)
        with name_scope("variables"):
            buckets = [local(what + "_buckets", [bins], dtypes.float64) for what in ("tp", "fp")]
        sums, updates = [], []
        for bucket, amount in zip(buckets, (positive * weights, (1.0 - positive) * weights)):
            updates.append(bucket.scatter_add(IndexedSlices(array_ops.reshape(amount, [-1]), places), use_locking=use_locking is not False))
            sums.append(math_ops.cumsum(bucket.value(), reverse=True))
        tp, fp = sums
        tn, fn = fp[0] - fp, tp[0] - tp
        precision, recall = tp / gen_ops.maximum(tp + fp, 1e-7), tp / gen_ops.maximum(tp + fn, 1e-7)
        made = [tp, fp, tn, fn, precision, recall, gen_ops.lin_space(0.0, 1.0, bins)]
        return PrecisionRecallData(*[math_ops.cast(t, predictions.dtype) for t in made]), control_flow_ops.group(*updates)


# ---- counts and moments ----


def count(values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None) -> Any:
    """How many values there were, by weights."""
    with variable_scope(name, "count", [values, weights]):
        values, total = convert_to_tensor(values), local("count", [])
        amount = math_ops.cast(array_ops.size(values), dtypes.float32)
        if weights is not None:
            values, _, weights = fitted(math_ops.cast(values, dtypes.float32), None, weights)
            amount = math_ops.reduce_sum(broadcast_weights(math_ops.cast(weights, dtypes.float32), values))
        with control_dependencies([values]):
            return done(total.value(), total.assign_add(amount), metrics_collections, updates_collections)


def streaming_covariance(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The covariance of all elements, divided by one less than how many there were; NaN of one. Batches are joined by their means and
    co-moments (Chan et al. 1979)."""
    with variable_scope(name, "covariance", [predictions, labels, weights]):
        predictions, labels, weights = fitted(predictions, labels, weights)
        names = ("count", "mean_prediction", "mean_label", "comoment")
        counted, of_predictions, of_labels, comoment = (local(n, []) for n in names)
        weights = array_ops.ones_like(labels, dtypes.float32) if weights is None else broadcast_weights(math_ops.cast(weights, dtypes.float32), labels)
        amount = math_ops.reduce_sum(weights)
        after = counted.assign_add(amount)
        before = after - amount
        means, steps = [], []
        for values, kept in ((predictions, of_predictions), (labels, of_labels)):
            mean = gen_ops.div_no_nan(math_ops.reduce_sum(values * weights), amount)
            step = gen_ops.div_no_nan((mean - kept.value()) * amount, after)
            means.append(mean)
            steps.append(kept.assign_add(step) - step - mean)
        within = math_ops.reduce_sum((predictions - means[0]) * (labels - means[1]) * weights)
        added = comoment.assign_add(within + steps[0] * steps[1] * gen_ops.div_no_nan(before * amount, after))

        def value(moment: Any, number: Any, name: str) -> Any:
            return array_ops.where(gen_ops.less_equal(number, 1.0), float("nan") * array_ops.ones_like(moment), moment / (number - 1.0), name=name)

        now = value(comoment.value(), counted.value(), "covariance")
        return done(now, value(added, after, "update_op"), metrics_collections, updates_collections)


def streaming_pearson_correlation(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The covariance by the deviations of both: from -1 to 1."""
    with variable_scope(name, "pearson_r", [predictions, labels, weights]):
        predictions, labels, weights = fitted(predictions, labels, weights)
        pairs = [
            streaming_covariance(a, b, weights, name=n)
            for a, b, n in ((predictions, labels, "covariance"), (predictions, predictions, "variance_predictions"), (labels, labels, "variance_labels"))
        ]
        value, update = (both / (gen_ops.sqrt(of_p) * gen_ops.sqrt(of_y)) for both, of_p, of_y in zip(*pairs))
        return done(value, update, metrics_collections, updates_collections)


def cohen_kappa(
    labels: Any,
    predictions_idx: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """How far labels and predictions agree beyond chance: 1 where always, 0 where as often as independent ones of their frequencies."""
    if num_classes < 2:
        raise at_user_line(ValueError("`num_classes` must be >= 2. Found: %s" % num_classes))
    with variable_scope(name, "cohen_kappa", [labels, predictions_idx, weights]):
        labels = convert_to_tensor(labels)
        labels.get_shape().with_rank_at_most(2)
        if labels.get_shape().ndims == 2:
            labels = array_ops.squeeze(labels, [-1])
        predictions, labels, weights = fitted(predictions_idx, labels, weights)
        dtype = dtypes.int64 if weights is None or weights.dtype.is_integer else dtypes.float32
        table = _confusion_matrix(labels, predictions, num_classes, dtype=dtype, weights=weights)
        sums = (gen_ops.diag_part(table), math_ops.reduce_sum(table, 0), math_ops.reduce_sum(table, 1))
        kept = [local(n, [num_classes], dtype) for n in ("po", "pe_row", "pe_col")]
        updates = [v.assign_add(s) for v, s in zip(kept, sums)]

        def kappa(counts: List[Any], name: str) -> Any:
            agreed, rows, columns = counts
            agreed, total = (math_ops.cast(math_ops.reduce_sum(x), dtypes.float64) for x in (agreed, rows))
            chance = math_ops.reduce_sum(gen_ops.div_no_nan(math_ops.cast(rows * columns, dtypes.float64), total))
            return ratio(agreed - chance, total - chance, name)

        return done(kappa([v.value() for v in kept], "value"), kappa(updates, "update_op"), metrics_collections, updates_collections)


# ---- all values ----

_LOCAL = (GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES)


def streaming_concat(
    values: Any, axis: int = 0, max_size: Optional[int] = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """All values one behind the other along an axis, at most max_size of them, and an operation that adds these."""
    with variable_scope(name, "streaming_concat", [values]):
        values = convert_to_tensor(values)
        rank = values.get_shape().ndims
        if rank is None:
            raise at_user_line(ValueError("`values` must have known statically known rank"))
        if not -rank <= axis < rank:
            raise at_user_line(ValueError("axis = %r not in [0, %r)" % (axis, rank)))
        axis %= rank
        fixed = [n for i, n in enumerate(values.get_shape().as_list()) if i != axis]
        if None in fixed:
            raise at_user_line(ValueError("all dimensions of `values` other than the dimension to concatenate along must have statically known size"))
        order = [axis, *(i for i in range(rank) if i != axis)]
        back = [order.index(i) for i in range(rank)]
        dtype = values.dtype.base_dtype
        room = array_ops.zeros([max_size or 0, *fixed], dtype)
        kept: Any = Variable(room, trainable=False, collections=[*_LOCAL], validate_shape=False, name="array", use_resource=False)
        count: Any = Variable(array_ops.zeros([], dtypes.int32), trainable=False, collections=[*_LOCAL], name="size", use_resource=False)
        now = kept[:count]
        now.set_shape([None, *fixed])
        new = array_ops.transpose(values, order)
        if max_size is not None:
            new = new[: max_size - count]
        total = count + array_ops.shape(new)[0]

        def grow() -> Any:
            more = array_ops.zeros(array_ops.stack([_next_array_size(total) - count, *fixed]), dtype)
            return gen_ops.assign(kept._ref(), array_ops.concat([kept[:count], more], 0), validate_shape=False).op

        with control_dependencies([control_flow_ops.cond(total > array_ops.shape(kept._ref())[0], grow, control_flow_ops.no_op)]):
            put = kept[count:total].assign(new)
        with control_dependencies([put]):
            update = count.assign(total)
        return done(array_ops.transpose(now, back, name="concat"), update, metrics_collections, updates_collections)


def _next_array_size(required_size: Any, growth_factor: float = 1.5) -> Tensor:
    """The least power of growth_factor, rounded up, that is not below: arrays that grow to it are copied seldom."""
    exponent = gen_ops.ceil(gen_ops.log(math_ops.cast(required_size, dtypes.float32)) / math.log(growth_factor))
    return gen_ops.maximum(math_ops.cast(gen_ops.ceil(growth_factor**exponent), dtypes.int32), required_size)


# ---- the best k ----


def streaming_recall_at_k(
    predictions: Any, labels: Any, k: int, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """How often the label [batch] is among the k best predictions."""
    among = math_ops.cast(gen_ops.in_top_k(predictions, labels, k), dtypes.float32)
    return metrics.mean(among, weights, metrics_collections, updates_collections, name or "recall_at_%d" % k)


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of the best predictions, given as class numbers, that are labels."""
    return precision_at_top_k(labels, top_k_predictions, None, class_id, weights, metrics_collections, updates_collections, name)


def sparse_recall_at_top_k(
    labels: Any,
    top_k_predictions: Any,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of labels that are among the best predictions, given as class numbers."""
    return recall_at_top_k(labels, top_k_predictions, None, class_id, weights, metrics_collections, updates_collections, name)


def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The mean over the examples of the average precision of the best predictions, given as class numbers."""
    return _mean_average_precision(labels, top_k_predictions, weights, metrics_collections, updates_collections, name)
