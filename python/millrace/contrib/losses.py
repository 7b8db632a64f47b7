# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.losses: tf.losses with predictions before labels, and their names of 0.x."""

from typing import Any, Dict, Sequence

from millrace import losses as _losses
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, name_scope
from millrace.losses import add_loss, get_losses, get_regularization_losses, get_total_loss  # noqa: F401
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.dialects import bind

# What arguments are called here or were called in 0.x, by what tf.losses calls them.
_OLD = {"weight": "weights", "target": "labels", "targets": "labels", "loss_collection": "loss_collection"}


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES) -> Any:
    """tf.losses' with weights that may also be of the first dimensions of the losses only."""
    if weights is None:
        raise at_user_line(ValueError("`weights` cannot be None"))
    losses = convert_to_tensor(losses)
    weights = math_ops.cast(weights, dtypes.float32)
    rank, wanted = weights.get_shape().ndims, losses.get_shape().ndims
    if rank is not None and wanted is not None and 0 < rank < wanted:
        weights = array_ops.reshape(weights, array_ops.concat([array_ops.shape(weights), [1] * (wanted - rank)], 0))
    return _losses.compute_weighted_loss(losses, weights, scope, loss_collection)


def _swapped(function: Any, names: Sequence[str], means: Dict[str, str]) -> Any:
    """tf.losses' function with the arguments in this order; `means` are other names of them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {means.get(k, _OLD.get(k, k)): v for k, v in bind(function.__name__, names, args, kwargs).items()}
        given = {means.get(k, k): v for k, v in given.items()}
        weights, scope, collection = given.pop("weights", 1.0), given.pop("scope", None), given.pop("loss_collection", GraphKeys.LOSSES)
        with name_scope(scope, function.__name__):
            each = function(**given, loss_collection=None, reduction=_losses.Reduction.NONE)
            return compute_weighted_loss(each, weights, None, collection)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


_PLAIN = ("predictions", "labels", "weights", "scope")
_SMOOTHED = ("logits", "onehot_labels", "weights", "label_smoothing", "scope")
mean_squared_error = sum_of_squares = _swapped(_losses.mean_squared_error, _PLAIN, {})
absolute_difference = _swapped(_losses.absolute_difference, _PLAIN, {})
log_loss = log = _swapped(_losses.log_loss, ("predictions", "labels", "weights", "epsilon", "scope"), {})
cosine_distance = _swapped(_losses.cosine_distance, ("predictions", "labels", "axis", "weights", "scope"), {"dim": "axis"})
softmax_cross_entropy = _swapped(_losses.softmax_cross_entropy, _SMOOTHED, {"labels": "onehot_labels"})
sigmoid_cross_entropy = _swapped(
    _losses.sigmoid_cross_entropy,
    ("logits", "multi_class_labels", "weights", "label_smoothing", "scope"),
    {"labels": "multi_class_labels", "onehot_labels": "multi_class_labels"},
)
sparse_softmax_cross_entropy = _swapped(_losses.sparse_softmax_cross_entropy, ("logits", "labels", "weights", "scope"), {})


def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """max(0, 1 - label logit) of each element, with labels 0 and 1 taken for -1 and 1; not among the losses."""
    with name_scope(scope, "hinge_loss", [logits, labels]) as inside:
        logits, labels = convert_to_tensor(logits), math_ops.to_float(labels)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        return gen_ops.relu(1.0 - (2.0 * labels - 1.0) * logits, name=inside)


def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """tf.losses' by the number of all pairs, an element with itself among them."""
    return _losses._mean_pairwise(labels, predictions, weights, scope, GraphKeys.LOSSES, count_self=True)


sum_of_pairwise_squares = mean_pairwise_squared_error
