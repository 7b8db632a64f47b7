# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.losses: tf.losses with predictions before labels, and their names of 0.x."""
from typing import Any, Dict, Sequence

from millrace import losses as _losses
from millrace.framework.graph import GraphKeys
from millrace.losses import add_loss, compute_weighted_loss, get_losses, get_regularization_losses, get_total_loss  # noqa: F401
from millrace.ops.dialects import bind

# What arguments are called here or were called in 0.x, by what tf.losses calls them.
_OLD = {"weight": "weights", "target": "labels", "targets": "labels", "loss_collection": "loss_collection"}


def _swapped(function: Any, names: Sequence[str], means: Dict[str, str]) -> Any:
    """tf.losses' function with the arguments in this order; `means` are other names of them."""
    def call(*args: Any, **kwargs: Any) -> Any:
        given = {means.get(k, _OLD.get(k, k)): v for k, v in bind(function.__name__, names, args, kwargs).items()}
        given = {means.get(k, k): v for k, v in given.items()}
        return function(**given)
    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


_PLAIN = ("predictions", "labels", "weights", "scope")
_SMOOTHED = ("logits", "onehot_labels", "weights", "label_smoothing", "scope")
mean_squared_error = sum_of_squares = _swapped(_losses.mean_squared_error, _PLAIN, {})
absolute_difference = _swapped(_losses.absolute_difference, _PLAIN, {})
log_loss = log = _swapped(_losses.log_loss, ("predictions", "labels", "weights", "epsilon", "scope"), {})
hinge_loss = _swapped(_losses.hinge_loss, ("logits", "labels", "scope"), {})
cosine_distance = _swapped(_losses.cosine_distance, ("predictions", "labels", "axis", "weights", "scope"), {"dim": "axis"})
softmax_cross_entropy = _swapped(_losses.softmax_cross_entropy, _SMOOTHED, {"labels": "onehot_labels"})
sigmoid_cross_entropy = _swapped(_losses.sigmoid_cross_entropy, ("logits", "multi_class_labels", "weights", "label_smoothing", "scope"),
                                 {"labels": "multi_class_labels", "onehot_labels": "multi_class_labels"})
sparse_softmax_cross_entropy = _swapped(_losses.sparse_softmax_cross_entropy, ("logits", "labels", "weights", "scope"), {})


def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """tf.losses' by the number of all pairs, an element with itself among them."""
    return _losses._mean_pairwise(labels, predictions, weights, scope, GraphKeys.LOSSES, 0.0)


sum_of_pairwise_squares = mean_pairwise_squared_error
