# SPDX-License-Identifier: Apache-2.0
"""tf.losses: losses with weights, collected in the graph."""
from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, get_collection, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


class Reduction:
    """How a loss becomes one number."""

    NONE, SUM, MEAN = "none", "weighted_sum", "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> Any:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
                          reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """Losses times weights, as one number."""
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        given = losses.dtype.base_dtype
        wide = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(weights, dtypes.float32)
        products = gen_ops.mul(wide, weights)
        if reduction == Reduction.NONE:
            result = products
        else:
            result = math_ops.reduce_sum(products)
            if reduction == Reduction.SUM_OVER_BATCH_SIZE:
                result = result / math_ops.cast(array_ops.size(losses), dtypes.float32)
            elif reduction == Reduction.MEAN:
                result = _safe_div(result, math_ops.reduce_sum(array_ops.ones_like(wide) * weights))
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                if weights.get_shape().ndims == 0 and not isinstance(weights, Tensor):
                    result = result / math_ops.cast(array_ops.size(losses), dtypes.float32)
                else:
                    present = math_ops.cast(gen_ops.not_equal(array_ops.ones_like(wide) * weights, 0.0), dtypes.float32)
                    result = _safe_div(result, math_ops.reduce_sum(present))
            elif reduction != Reduction.SUM:
                raise at_user_line(ValueError("Invalid reduction %s." % reduction))
        result = math_ops.cast(result, given)
        if loss_collection:
            add_to_collection(loss_collection, result)
        return result  # type: ignore[no-any-return]


def _safe_div(a: Any, b: Any) -> Tensor:
    return gen_ops.select(gen_ops.greater(b, 0.0), gen_ops.real_div(a, gen_ops.select(gen_ops.equal(b, 0.0), array_ops.ones_like(b), b)), array_ops.zeros_like(a))


def _pair(predictions: Any, labels: Any, what: str) -> Any:
    if labels is None or predictions is None:
        raise at_user_line(ValueError("labels and %s must not be None." % what))
    predictions, labels = math_ops.cast(predictions, dtypes.float32), math_ops.cast(labels, dtypes.float32)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return predictions, labels


def absolute_difference(labels: Any, predictions: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
                        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """|predictions - labels|."""
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        return compute_weighted_loss(math_ops.abs(p - y), weights, None, loss_collection, reduction)


def mean_squared_error(labels: Any = None, predictions: Any = None, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
                       reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """(predictions - labels)^2."""
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        return compute_weighted_loss(gen_ops.squared_difference(p, y), weights, None, loss_collection, reduction)


def mean_pairwise_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: Optional[str] = None,
                                loss_collection: Any = GraphKeys.LOSSES) -> Tensor:
    """The sum over the examples of the mean of ((p_i - p_j) - (y_i - y_j))^2 over pairs of elements."""
    return _mean_pairwise(labels, predictions, weights, scope, loss_collection, 1.0)


def _mean_pairwise(labels: Any, predictions: Any, weights: Any, scope: Optional[str], loss_collection: Any, less: float) -> Tensor:
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        difference = p - y
        if difference.get_shape().ndims == 0:
            raise at_user_line(ValueError("mean_pairwise_squared_error needs a batch of examples, got scalars"))
        rows = array_ops.reshape(difference, array_ops.stack([array_ops.shape(difference)[0], -1]))
        count = gen_ops.cast(array_ops.shape(rows)[1], rows.dtype.base_dtype) * array_ops.ones_like(rows[:, 0])
        squares, sums = math_ops.reduce_sum(gen_ops.square(rows), [1]), math_ops.reduce_sum(rows, [1])
        pairs = _safe_div(2.0 * squares, count - less) - _safe_div(2.0 * gen_ops.square(sums), count * (count - less))
        weights = math_ops.cast(weights, rows.dtype.base_dtype)
        if weights.get_shape().ndims not in (None, 0, 1):
            weights = array_ops.reshape(weights, [-1])
        loss = math_ops.reduce_sum(pairs * weights)
        if loss_collection:
            add_to_collection(loss_collection, loss)
        return loss  # type: ignore[no-any-return]


def huber_loss(labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
               reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """Squared near zero, linear farther away."""
    with name_scope(scope, "huber_loss", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        size = math_ops.abs(p - y)
        near = gen_ops.minimum(size, delta)
        return compute_weighted_loss(0.5 * near * near + delta * (size - near), weights, None, loss_collection, reduction)


def hinge_loss(labels: Any, logits: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
               reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """max(0, 1 - y logits) with labels 0 and 1."""
    with name_scope(scope, "hinge_loss", [logits, labels, weights]):
        p, y = _pair(logits, labels, "logits")
        return compute_weighted_loss(gen_ops.relu(1.0 - (2.0 * y - 1.0) * p), weights, None, loss_collection, reduction)


def log_loss(labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
             reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """The cross entropy of probabilities."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        value = -(y * gen_ops.log(p + epsilon)) - (1 - y) * gen_ops.log(1 - p + epsilon)
        return compute_weighted_loss(value, weights, None, loss_collection, reduction)


def cosine_distance(labels: Any, predictions: Any, axis: Any = None, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
                    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS, dim: Any = None) -> Tensor:
    """1 - labels . predictions, of unit vectors."""
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]):
        p, y = _pair(predictions, labels, "predictions")
        return compute_weighted_loss(1 - math_ops.reduce_sum(p * y, axis if axis is not None else dim, True), weights, None, loss_collection, reduction)


def softmax_cross_entropy(onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: Any = 0, scope: Optional[str] = None,
                          loss_collection: Any = GraphKeys.LOSSES, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """The cross entropy of class probabilities."""
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]):
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype.base_dtype)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        if isinstance(label_smoothing, Tensor) or label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[1], logits.dtype.base_dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        value = nn_ops.softmax_cross_entropy_with_logits_v2(labels=gen_ops.stop_gradient(labels), logits=logits)
        return compute_weighted_loss(value, weights, None, loss_collection, reduction)


def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: Any = 0, scope: Optional[str] = None,
                          loss_collection: Any = GraphKeys.LOSSES, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """The cross entropy of independent probabilities."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]):
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype.base_dtype)
        if isinstance(label_smoothing, Tensor) or label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        return compute_weighted_loss(nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), weights, None, loss_collection, reduction)


def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES,
                                 reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Tensor:
    """The cross entropy of class numbers."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        if labels.get_shape().ndims is not None and labels.get_shape().ndims == logits.get_shape().ndims:
            labels = array_ops.squeeze(labels, [-1])
        value = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        if isinstance(weights, Tensor) and (weights.get_shape().ndims or 0) > (value.get_shape().ndims or 0):
            weights = array_ops.squeeze(weights, [-1])
        return compute_weighted_loss(value, weights, None, loss_collection, reduction)


def add_loss(loss: Tensor, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection."""
    if loss_collection:
        add_to_collection(loss_collection, loss)


def get_losses(scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES) -> List[Any]:
    """The losses of the graph."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: Optional[str] = None) -> List[Any]:
    """The regularization losses of the graph."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: Optional[str] = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the regularization losses."""
    found = get_regularization_losses(scope)
    return gen_ops.add_n(found, name=name) if found else convert_to_tensor(0.0)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Tensor:
    """The sum of all losses."""
    found = get_losses()
    if add_regularization_losses:
        found += get_regularization_losses()
    return gen_ops.add_n(found, name=name)
