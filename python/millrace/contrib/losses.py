# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.losses: tf.losses with predictions before labels, and their names of 0.x."""

from typing import Any, Dict, Sequence

from millrace import losses as _losses
from millrace.contrib import metric_learning  # noqa: F401
from millrace.contrib.framework import add_arg_scope
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, name_scope
from millrace.losses import get_losses, get_regularization_losses, get_total_loss  # noqa: F401
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.dialects import bind

# What arguments are called here or were called in 0.x, by what tf.losses calls them.
_OLD = {"weight": "weights", "target": "labels", "targets": "labels", "loss_collection": "loss_collection"}


@add_arg_scope
def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Puts a loss among the others; into no collection with None."""
    _losses.add_loss(loss, loss_collection)


def _spread(weights: Any, rank: Any) -> Any:
    """Weights of the first dimensions of what has so many, with a 1 for each of the others; a last 1 too many is taken off."""
    if weights is None:
        raise at_user_line(ValueError("`weights` cannot be None"))
    weights = math_ops.cast(weights, dtypes.float32)
    shape = weights.get_shape()
    if rank is None or shape.ndims is None:
        raise at_user_line(ValueError("%s.get_shape().ndims cannot be None" % ("losses" if rank is None else "weights")))
    if shape.ndims > 1 and shape[-1].is_compatible_with(1):
        weights = array_ops.squeeze(weights, [-1])
    missing = rank - weights.get_shape().ndims
    if weights.get_shape().ndims == 0 or missing <= 0:
        return weights
    return array_ops.reshape(weights, array_ops.concat([array_ops.shape(weights), [1] * missing], 0))


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """tf.losses' with weights that are of the first dimensions of the losses."""
    with name_scope(scope, "weighted_loss", [losses, weights]) as inside:
        losses = convert_to_tensor(losses)
        wide, weights = math_ops.cast(losses, dtypes.float32), _spread(weights, losses.get_shape().ndims)
        mean = gen_ops.compute_weighted_loss(wide, weights, reduction=_losses.Reduction.SUM_BY_NONZERO_WEIGHTS, name=inside)
        mean = math_ops.cast(mean, losses.dtype)
        add_loss(mean)
        return mean


def _swapped(function: Any, label: str, names: Sequence[str], means: Dict[str, str]) -> Any:
    """tf.losses' function with the arguments in this order, in a scope of a label; `means` are other names of them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {means.get(k, _OLD.get(k, k)): v for k, v in bind(function.__name__, names, args, kwargs).items()}
        given = {means.get(k, k): v for k, v in given.items()}
        weights, scope = given.pop("weights", 1.0), given.pop("scope", None)
        with name_scope(scope, label) as inside:
            each = function(**given, loss_collection=None, reduction=_losses.Reduction.NONE)
            return compute_weighted_loss(each, weights, inside)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


_PLAIN = ("predictions", "labels", "weights", "scope")
_SMOOTHED = ("logits", "onehot_labels", "weights", "label_smoothing", "scope")
mean_squared_error = sum_of_squares = _swapped(_losses.mean_squared_error, "mean_squared_error", _PLAIN, {})
absolute_difference = _swapped(_losses.absolute_difference, "absolute_difference", _PLAIN, {})
log_loss = log = _swapped(_losses.log_loss, "log_loss", ("predictions", "labels", "weights", "epsilon", "scope"), {})
cosine_distance = _swapped(_losses.cosine_distance, "cosine_distance_loss", ("predictions", "labels", "axis", "weights", "scope"), {"dim": "axis"})
softmax_cross_entropy = _swapped(_losses.softmax_cross_entropy, "softmax_cross_entropy_loss", _SMOOTHED, {"labels": "onehot_labels"})
sigmoid_cross_entropy = _swapped(
    _losses.sigmoid_cross_entropy,
    "sigmoid_cross_entropy_loss",
    ("logits", "multi_class_labels", "weights", "label_smoothing", "scope"),
    {"labels": "multi_class_labels", "onehot_labels": "multi_class_labels"},
)
sparse_softmax_cross_entropy = _swapped(_losses.sparse_softmax_cross_entropy, "sparse_softmax_cross_entropy_loss", ("logits", "labels", "weights", "scope"), {})


def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """max(0, 1 - label logit) of each element, with labels 0 and 1 taken for -1 and 1; not among the losses."""
    with name_scope(scope, "hinge_loss", [logits, labels]) as inside:
        logits, labels = convert_to_tensor(logits), math_ops.to_float(labels)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        return gen_ops.relu(1.0 - (2.0 * labels - 1.0) * logits, name=inside)


def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """tf.losses' by the number of all pairs, an element with itself among them."""
    predictions = convert_to_tensor(predictions)
    weights = _spread(weights, predictions.get_shape().ndims)
    return _losses._mean_pairwise(labels, predictions, weights, scope, GraphKeys.LOSSES, count_self=True)


sum_of_pairwise_squares = mean_pairwise_squared_error
