# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.losses: tf.losses with predictions before labels."""
from typing import Any

from millrace import losses as _losses
from millrace.losses import add_loss, compute_weighted_loss, get_losses, get_regularization_losses, get_total_loss  # noqa: F401


def _swapped(function: Any) -> Any:
    def call(predictions: Any, labels: Any = None, weights: Any = 1.0, *args: Any, **kwargs: Any) -> Any:
        return function(labels, predictions, weights, *args, **kwargs)
    call.__doc__ = function.__doc__
    return call


mean_squared_error, absolute_difference, log_loss, hinge_loss = (
    _swapped(f) for f in (_losses.mean_squared_error, _losses.absolute_difference, _losses.log_loss, _losses.hinge_loss))
softmax_cross_entropy, sigmoid_cross_entropy, sparse_softmax_cross_entropy = (
    _swapped(f) for f in (_losses.softmax_cross_entropy, _losses.sigmoid_cross_entropy, _losses.sparse_softmax_cross_entropy))
