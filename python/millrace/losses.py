# SPDX-License-Identifier: Apache-2.0
"""tf.losses: the library's losses with weights, collected in the graph."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, get_collection, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions


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


def _float_weights(weights: Any) -> Tensor:
    return math_ops.cast(convert_to_tensor(weights, name="weights"), dtypes.float32)


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: Optional[str] = None, loss_collection: Any = GraphKeys.LOSSES, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS
) -> Tensor:
    """Losses times weights, as one number. Weights are a scalar, or of the rank of losses with each dimension 1 or theirs (ValueError)."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]) as inside:
        losses = convert_to_tensor(losses)
        wide, weights = math_ops.cast(losses, dtypes.float32), _float_weights(weights)
        result = math_ops.cast(gen_ops.compute_weighted_loss(wide, weights, reduction=reduction, name=inside), losses.dtype.base_dtype)
        if reduction != Reduction.NONE:
            result.set_shape([])
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
        return compute_weighted_loss(gen_ops.absolute_difference(p, y, name=scope), weights, scope, loss_collection, reduction)


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
    return _mean_pairwise(labels, predictions, weights, scope, loss_collection, count_self=False)


def _mean_pairwise(labels: Any, predictions: Any, weights: Any, scope: Optional[str], loss_collection: Any, count_self: bool) -> Tensor:
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]) as inside:
        p, y = _pair(predictions, labels)
        weights = _float_weights(weights)
        result = gen_ops.mean_pairwise_squared_error(p, y, weights, count_self=count_self, name=inside)
        result.set_shape([])
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
        return compute_weighted_loss(gen_ops.huber_loss(p, y, delta, name=scope), weights, scope, loss_collection, reduction)


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
        return compute_weighted_loss(gen_ops.hinge_loss(p, y, name=scope), weights, scope, loss_collection, reduction)


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
        return compute_weighted_loss(gen_ops.log_loss(p, y, epsilon, name=scope), weights, scope, loss_collection, reduction)


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
        return compute_weighted_loss(gen_ops.cosine_distance(p, y, axis=axis, name=scope), weights, scope, loss_collection, reduction)


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
            labels = gen_ops.smoothed_labels(labels, label_smoothing, name=scope)
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
            labels = gen_ops.smoothed_labels(labels, label_smoothing, exclusive=False, name=scope)
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
