# SPDX-License-Identifier: Apache-2.0
"""tf.losses: losses with weights, collected in the graph."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, control_dependencies, get_collection, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions
from millrace.ops.weights_broadcast import assert_broadcastable, broadcast_weights


class Reduction:
    """How a loss becomes one number."""

    NONE, SUM, MEAN = "none", "weighted_sum", "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> Any:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError unless it is one of them."""
        if key not in cls.all():
            raise at_user_line(ValueError("Invalid ReductionKey %s." % key))


def _safe_div(a: Any, b: Any, name: str = "value") -> Tensor:
    """a / b, and 0 where b is 0; b is not negative. The gradient is 0 there too."""
    divisor = array_ops.where(gen_ops.equal(b, 0.0), array_ops.ones_like(b), b)
    return array_ops.where(gen_ops.greater(b, 0.0), math_ops.div(a, divisor), array_ops.zeros_like(a), name=name)


def _num_present(losses: Any, weights: Any, per_batch: bool = False) -> Tensor:
    """How many elements have a weight other than 0: in all, or with rank kept for each example."""
    with name_scope(None, "num_present", [losses, weights]) as scope:
        weights = math_ops.cast(weights, dtypes.float32)
        present = array_ops.where(gen_ops.equal(weights, 0.0), array_ops.zeros_like(weights), array_ops.ones_like(weights))
        present = broadcast_weights(present, losses)
        axis = math_ops.range(1, array_ops.rank(present)) if per_batch else None
        return math_ops.reduce_sum(present, axis, per_batch, name=scope)


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS
) -> Tensor:
    """Losses times weights, as one number. Weights are a scalar, or of the rank of losses with each dimension 1 or theirs (ValueError)."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]), control_dependencies([assert_broadcastable(weights, losses)]):
        losses = convert_to_tensor(losses)
        given = losses.dtype.base_dtype
        wide = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(weights, dtypes.float32)
        result = gen_ops.mul(wide, weights)
        if reduction != Reduction.NONE:
            result = math_ops.reduce_sum(result)
            if reduction == Reduction.MEAN:
                result = _safe_div(result, math_ops.reduce_sum(array_ops.ones_like(wide) * weights))
            elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                result = _safe_div(result, _num_present(wide, weights))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                result = _safe_div(result, math_ops.cast(array_ops.size(wide, name="num_elements"), dtypes.float32))
        result = math_ops.cast(result, given)
        add_loss(result, loss_collection)
        return result


def _given(**named: Any) -> None:
    for name, value in named.items():
        if value is None:
            raise at_user_line(ValueError("%s must not be None." % name))


def _pair(predictions: Any, labels: Any) -> Any:
    predictions, labels = math_ops.cast(predictions, dtypes.float32), math_ops.cast(labels, dtypes.float32)
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return predictions, labels


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """|predictions - labels|."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        p, y = _pair(predictions, labels)
        return compute_weighted_loss(math_ops.abs(gen_ops.sub(p, y)), weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """(predictions - labels)^2."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        p, y = _pair(predictions, labels)
        return compute_weighted_loss(gen_ops.squared_difference(p, y), weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES
) -> Tensor:
    """The sum over the examples of the mean of ((p_i - p_j) - (y_i - y_j))^2 over pairs of elements."""
    return _mean_pairwise(labels, predictions, weights, scope, loss_collection, 1.0)


def _mean_pairwise(labels: Any, predictions: Any, weights: Any, scope: Optional[str], loss_collection: Any, less: float) -> Tensor:
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        weights, labels = math_ops.cast(weights, dtypes.float32), math_ops.cast(labels, dtypes.float32)
        with control_dependencies([assert_broadcastable(weights, labels)]):
            p, y = _pair(predictions, labels)
            difference = gen_ops.sub(p, y)
            axes = math_ops.range(1, array_ops.rank(difference))
            count = _num_present(difference, weights, per_batch=True)
            fewer = gen_ops.maximum(count - less, 0.0)
            squares, sums = math_ops.reduce_sum(gen_ops.square(difference), axes, True), math_ops.reduce_sum(difference, axes, True)
            pairs = 2.0 * _safe_div(squares, fewer) - 2.0 * _safe_div(gen_ops.square(sums), count * fewer)
            loss = math_ops.reduce_sum(gen_ops.mul(pairs, weights))
            result = array_ops.where(gen_ops.greater(math_ops.reduce_sum(count), 0.0), loss, array_ops.zeros_like(loss), name="value")
            add_loss(result, loss_collection)
            return result


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Squared near zero, linear farther away."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope:
        p, y = _pair(predictions, labels)
        size = math_ops.abs(gen_ops.sub(p, y))
        near = gen_ops.minimum(size, delta)  # size - near has no gradient at delta, where near's counts already
        return compute_weighted_loss(0.5 * near * near + delta * (size - near), weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """max(0, 1 - y logits) with labels 0 and 1."""
    _given(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope:
        p, y = _pair(logits, labels)
        return compute_weighted_loss(gen_ops.relu(1.0 - (2.0 * y - 1.0) * p), weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross entropy of probabilities."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        p, y = _pair(predictions, labels)
        value = -(y * gen_ops.log(p + epsilon)) - (1 - y) * gen_ops.log(1 - p + epsilon)
        return compute_weighted_loss(value, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: Any = None,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: Any = None,
) -> Tensor:
    """1 - labels . predictions, of unit vectors."""
    if dim is not None:
        if axis is not None:
            raise at_user_line(ValueError("Cannot specify both 'axis' and 'dim'"))
        axis = dim
    if axis is None:
        raise at_user_line(ValueError("You must specify 'axis'."))
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        p, y = _pair(predictions, labels)
        value = 1 - math_ops.reduce_sum(gen_ops.mul(p, y), [axis], True)
        return compute_weighted_loss(value, weights, scope, loss_collection, reduction)


def _cross_entropy_pair(logits: Any, labels: Any) -> Any:
    logits = convert_to_tensor(logits)
    labels = math_ops.cast(labels, logits.dtype.base_dtype)
    logits.get_shape().assert_is_compatible_with(labels.get_shape())
    return logits, labels


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: Any = 0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross entropy of class probabilities."""
    _given(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits, labels = _cross_entropy_pair(logits, onehot_labels)
        if isinstance(label_smoothing, Tensor) or label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[-1], logits.dtype.base_dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = gen_ops.stop_gradient(labels, name="labels_stop_gradient")
        value = nn_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(value, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: Any = 0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross entropy of independent probabilities."""
    _given(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope:
        logits, labels = _cross_entropy_pair(logits, multi_class_labels)
        if isinstance(label_smoothing, Tensor) or label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        value = nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(value, weights, scope, loss_collection, reduction)


def _squeezed_weights(weights: Any, labels: Tensor) -> Any:
    """Weights without a last dimension of 1 that labels have not."""
    if weights is None:
        return None
    weights = convert_to_tensor(weights)
    shape, rank = weights.get_shape(), labels.get_shape().ndims
    if shape.ndims is not None and rank is not None:
        return array_ops.squeeze(weights, [-1]) if shape.ndims - rank == 1 else weights
    if shape.ndims == 0 or (shape.ndims is not None and shape.as_list()[-1] not in (None, 1)):
        return weights
    excess = array_ops.rank(weights) - array_ops.rank(labels)
    return control_flow_ops.cond(gen_ops.equal(1, excess), lambda: array_ops.squeeze(weights, [-1]), lambda: array_ops.identity(weights))


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: Optional[str] = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross entropy of class numbers."""
    _given(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        weights = _squeezed_weights(weights, labels)
        value = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(value, weights, scope, loss_collection, reduction)


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


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss", scope: Optional[str] = None) -> Tensor:
    """The sum of all losses, of a scope where one is given."""
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return gen_ops.add_n(found, name=name)
