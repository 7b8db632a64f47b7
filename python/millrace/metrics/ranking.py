# SPDX-License-Identifier: Apache-2.0
"""Metrics of the k best predictions. Labels are class numbers: [..., labels of an example], [...] for one each, or sparse."""

from __future__ import annotations

from typing import Any, Optional

from millrace import sets
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.metrics.parts import done, local
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, sparse_math_ops, sparse_ops
from millrace.ops.weights_broadcast import assert_broadcastable, broadcast_weights


def _name(what: str, k: Optional[int], class_id: Optional[int] = None) -> str:
    return what + ("_at_k" if k is None else "_at_%d" % k) + ("" if class_id is None else "_class%d" % class_id)


def _expanded(labels: Any, predictions: Tensor) -> Any:
    """Labels with the rank of predictions: one label for each example gets a dimension of 1."""
    with name_scope(None, "expand_labels", [labels, predictions]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            rank, wanted = labels.dense_shape.get_shape().as_list()[0] if labels.dense_shape.get_shape().ndims else None, predictions.get_shape().ndims
            wider = lambda: sparse_math_ops.sparse_reshape(labels, array_ops.concat([labels.dense_shape, [1]], 0))
            if rank is not None and wanted is not None:
                return wider() if wanted == rank + 1 else labels  # type: ignore[no-untyped-call]
            return control_flow_ops.cond(
                gen_ops.equal(array_ops.rank(predictions), array_ops.size(labels.dense_shape) + 1),
                wider,
                lambda: SparseTensor(array_ops.identity(labels.indices), array_ops.identity(labels.values), array_ops.identity(labels.dense_shape)),
            )
        given, wanted = labels.get_shape().ndims, predictions.get_shape().ndims
        if given is not None and wanted is not None:
            if wanted == given:
                return labels
            if wanted == given + 1:
                return array_ops.expand_dims(labels, -1, name=scope)
            raise at_user_line(ValueError("Unexpected labels shape %s for predictions shape %s." % (labels.get_shape(), predictions.get_shape())))
        return control_flow_ops.cond(
            gen_ops.equal(array_ops.rank(predictions), array_ops.rank(labels) + 1),
            lambda: array_ops.expand_dims(labels, -1),
            lambda: array_ops.identity(labels),
        )


def _only(ids: Any, class_id: int) -> SparseTensor:
    """Of each example, the class alone where it is among its ids."""
    ids = convert_to_tensor_or_sparse_tensor(ids)
    if isinstance(ids, SparseTensor):
        return sparse_ops.sparse_retain(ids, gen_ops.equal(ids.values, math_ops.cast(class_id, ids.dtype.base_dtype)))
    shape = array_ops.shape(ids, out_type=dtypes.int64)
    one = array_ops.fill(array_ops.concat([shape[:-1], [1]], 0), math_ops.cast(class_id, dtypes.int64))
    both = sets.set_intersection(one, ids)
    return SparseTensor(both.indices, both.values, shape)


def _hits(labels: Any, predicted: Any, class_id: Optional[int], weights: Any, kind: str) -> Tensor:
    """For each example how many predictions are labels ("tp") or are not ("fp"), or how many labels are missed ("fn"), by weights."""
    with name_scope(None, {"tp": "true_positives", "fp": "false_positives", "fn": "false_negatives"}[kind], [predicted, labels, weights]):
        if class_id is not None:
            labels, predicted = _only(labels, class_id), _only(predicted, class_id)
        found = sets.set_intersection(predicted, labels) if kind == "tp" else sets.set_difference(predicted, labels, aminusb=kind == "fp")
        count = math_ops.cast(sets.set_size(found), dtypes.float64)
        if weights is None:
            return count
        with control_dependencies([assert_broadcastable(weights, count)]):
            return gen_ops.mul(count, math_ops.cast(weights, dtypes.float64))


def _streaming(kind: str, labels: Any, predicted: Any, k: Optional[int], class_id: Optional[int], weights: Any) -> Any:
    what = {"tp": "true_positive", "fp": "false_positive", "fn": "false_negative"}[kind]
    with name_scope(None, _name(what, k, class_id), [predicted, labels, weights]) as scope:
        batch = math_ops.reduce_sum(_hits(labels, predicted, class_id, weights, kind))
        count = local(scope, [], dtypes.float64)
        return count.value(), count.assign_add(batch)


def _share(
    what: str,
    other: str,
    labels: Any,
    predictions_idx: Any,
    k: Optional[int],
    class_id: Optional[int],
    weights: Any,
    metrics_collections: Any,
    updates_collections: Any,
    name: Optional[str],
) -> Any:
    """Hits by hits and others."""
    with name_scope(name, _name(what, k, class_id), [predictions_idx, labels, weights]) as scope:
        best = math_ops.cast(predictions_idx, dtypes.int64)
        labels = _expanded(labels, best)
        hits, add_hits = _streaming("tp", labels, best, k, class_id, weights)
        others, add_others = _streaming(other, labels, best, k, class_id, weights)
        return done(
            gen_ops.real_div(hits, hits + others, name=scope),
            gen_ops.real_div(add_hits, add_hits + add_others, name="update"),
            metrics_collections,
            updates_collections,
        )


def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: Optional[int] = None,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of labels that are among the best predictions, given as class numbers."""
    return _share("recall", "fn", labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections, name)


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: Optional[int] = None,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of the best predictions, given as class numbers, that are labels."""
    return _share("precision", "fp", labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections, name)


def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of labels (of one class, if given) that are among the k best predictions."""
    with name_scope(name, _name("recall", k, class_id), [predictions, labels, weights]) as scope:
        return recall_at_top_k(labels, nn_ops.top_k(predictions, k)[1], k, class_id, weights, metrics_collections, updates_collections, scope)


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: Optional[int] = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: Optional[str] = None,
) -> Any:
    """The fraction of the k best predictions (of those of one class, if given) that are labels."""
    with name_scope(name, _name("precision", k, class_id), [predictions, labels, weights]) as scope:
        return precision_at_top_k(labels, nn_ops.top_k(predictions, k)[1], k, class_id, weights, metrics_collections, updates_collections, scope)


sparse_precision_at_k = precision_at_k


def _repeated(labels: Any, k: int) -> Any:
    """[..., labels] as [..., k, labels]."""
    if not isinstance(labels, SparseTensor):
        wide = array_ops.expand_dims(labels, -2)
        ones = array_ops.ones_like(array_ops.shape(labels))
        return array_ops.tile(wide, array_ops.concat([ones[:-1], [k], ones[-1:]], 0))
    shape = labels.dense_shape
    wide = sparse_math_ops.sparse_reshape(labels, array_ops.concat([shape[:-1], [1], shape[-1:]], 0))  # type: ignore[assignment]
    rank = labels.dense_shape.get_shape().as_list()[0]
    return wide if k == 1 else sparse_math_ops.sparse_concat(-2 if rank is None else rank - 1, [wide] * k)


def _num_relevant(labels: Any, k: int) -> Tensor:
    """How many labels each example has, at most k. Dense labels below 0 fill up what is missing."""
    if k < 1:
        raise at_user_line(ValueError("Invalid k=%s." % k))
    with name_scope(None, "num_relevant", [labels]) as scope:
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            return gen_ops.minimum(sets.set_size(labels), k, name=scope)
        count = math_ops.reduce_sum(math_ops.cast(gen_ops.greater_equal(labels, 0), labels.dtype), -1)
        return gen_ops.minimum(count, k, name=scope)


def _within(labels: Any, classes: Tensor) -> Any:
    """Labels of classes that are not among the predictions as -1, which counts for none."""
    values = labels.values if isinstance(labels, SparseTensor) else labels
    values = array_ops.where(gen_ops.greater_equal(values, math_ops.cast(classes, values.dtype)), -array_ops.ones_like(values), values)
    return SparseTensor(labels.indices, values, labels.dense_shape) if isinstance(labels, SparseTensor) else values


def _average_precision(labels: Any, predictions_idx: Any) -> Tensor:
    """For each example, the mean over its labels of the precision of the predictions up to where the label is among them."""
    with name_scope(None, "average_precision", [predictions_idx, labels]) as scope:
        best = math_ops.cast(predictions_idx, dtypes.int64, name="predictions_idx")
        if best.get_shape().ndims == 0:
            raise at_user_line(ValueError("The rank of predictions_idx must be at least 1."))
        k = best.get_shape().as_list()[-1] if best.get_shape().ndims else None
        if k is None:
            raise at_user_line(ValueError("The last dimension of predictions_idx must be set."))
        labels = _expanded(labels, best)
        relevant = _hits(_repeated(labels, k), array_ops.expand_dims(best, -1), None, None, "tp")
        hits, seen = math_ops.cumsum(relevant, axis=-1), math_ops.cumsum(array_ops.ones_like(relevant), axis=-1)
        total = math_ops.reduce_sum(gen_ops.mul(gen_ops.real_div(hits, seen), relevant), [-1])
        return gen_ops.real_div(total, math_ops.cast(_num_relevant(labels, k), dtypes.float64), name=scope)


def _mean_average_precision(labels: Any, predictions_idx: Any, weights: Any, metrics_collections: Any, updates_collections: Any, name: Optional[str]) -> Any:
    with name_scope(name, "average_precision_at_top_k", [predictions_idx, labels, weights]) as scope:
        precision = _average_precision(labels, predictions_idx)
        if weights is not None:
            weights = broadcast_weights(math_ops.cast(weights, dtypes.float64), precision)
            precision = gen_ops.mul(precision, weights)
        with name_scope(None, "max", [precision]) as inner:
            most = local(inner, [], dtypes.float64)
            amount = math_ops.cast(array_ops.size(precision), dtypes.float64) if weights is None else math_ops.reduce_sum(weights)
            add_most = most.assign_add(amount)
        with name_scope(None, "total", [precision]) as inner:
            total = local(inner, [], dtypes.float64)
            add_total = total.assign_add(math_ops.reduce_sum(precision))
        return done(
            gen_ops.div_no_nan(total.value(), most.value(), name="mean"),
            gen_ops.div_no_nan(add_total, add_most, name=scope),
            metrics_collections,
            updates_collections,
        )


def average_precision_at_k(
    labels: Any, predictions: Any, k: int, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None, name: Optional[str] = None
) -> Any:
    """The mean over the examples of the average precision of the k best predictions."""
    if k < 1:
        raise at_user_line(ValueError("Invalid k=%s." % k))
    with name_scope(name, _name("average_precision", k), [predictions, labels, weights]) as scope:
        best = nn_ops.top_k(predictions, k)[1]
        labels = _within(convert_to_tensor_or_sparse_tensor(labels), array_ops.shape(predictions, out_type=dtypes.int64)[-1])
        return _mean_average_precision(labels, best, weights, metrics_collections, updates_collections, scope)


sparse_average_precision_at_k = average_precision_at_k
