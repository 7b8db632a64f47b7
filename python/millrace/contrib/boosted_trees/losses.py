# SPDX-License-Identifier: Apache-2.0
"""losses of tf.contrib.boosted_trees: a loss for each example, and an operation that does nothing."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace import losses
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops

_Loss = Tuple[Any, Any]


def _told(loss: Any, weights: Any) -> _Loss:
    return loss * convert_to_tensor(weights, dtype=loss.dtype), control_flow_ops.no_op()


def per_example_squared_hinge_loss(labels: Any, weights: Any, predictions: Any) -> _Loss:
    """The square of the hinge loss, which is one number for the batch."""
    return gen_ops.square(losses.hinge_loss(labels=labels, logits=predictions, weights=weights)), control_flow_ops.no_op()


def per_example_logistic_loss(labels: Any, weights: Any, predictions: Any) -> _Loss:
    """The cross entropy of the sigmoid of predictions."""
    return _told(nn_ops.sigmoid_cross_entropy_with_logits(labels=math_ops.to_float(convert_to_tensor(labels)), logits=predictions), weights)


def per_example_squared_loss(labels: Any, weights: Any, predictions: Any) -> _Loss:
    """The squared difference, added up over the numbers of an example."""
    predictions = convert_to_tensor(predictions)
    difference = math_ops.cast(convert_to_tensor(labels), predictions.dtype) - predictions
    return _told(math_ops.reduce_sum(gen_ops.square(difference), 1, keepdims=True), weights)


def per_example_maxent_loss(labels: Any, weights: Any, logits: Any, num_classes: int, eps: float = 1e-15) -> _Loss:
    """The cross entropy of the softmax of logits [batch, num_classes], labels [batch, 1] being classes. No probability counts as less than eps."""
    labels, logits = math_ops.to_int64(convert_to_tensor(labels)), convert_to_tensor(logits)
    if labels.get_shape().ndims == 1:
        labels = array_ops.expand_dims(labels, 1)
    if labels.get_shape().ndims not in (None, 2) or labels.get_shape()[1:].as_list() not in ([1], [None]):
        raise at_user_line(ValueError("labels must have shape [batch, 1], got %s" % labels.get_shape()))
    chances = gen_ops.softmax(logits)
    chance = math_ops.reduce_sum(chances * array_ops.one_hot(labels[:, 0], num_classes, dtype=logits.dtype), 1, keepdims=True)
    return _told(-gen_ops.log(math_ops.maximum(chance, eps)), weights)


def per_example_quantile_regression_loss(labels: Any, weights: Any, predictions: Any, quantile: float) -> _Loss:
    """The distance to the label, times quantile where the prediction is too small, and 1 - quantile where it is too large."""
    predictions = convert_to_tensor(predictions)
    missed = math_ops.cast(convert_to_tensor(labels), predictions.dtype) - predictions
    loss = array_ops.where(gen_ops.greater(missed, array_ops.zeros_like(missed)), quantile * missed, (quantile - 1) * missed)
    return _told(loss, weights)


def per_example_exp_loss(labels: Any, weights: Any, predictions: Any, name: Optional[str] = None, eps: float = 0.1) -> _Loss:
    """exp(-side * y), y going from -1 to 1 where the sigmoid of predictions goes from 0.5 - eps to 0.5 + eps; labels 0 and 1 say the sides."""
    del name  # nothing has a name
    side = 2 * math_ops.cast(convert_to_tensor(labels), dtypes.float32) - 1
    y = (math_ops.sigmoid(convert_to_tensor(predictions)) - 0.5) / eps
    return _told(gen_ops.exp(-side * math_ops.maximum(-1.0, math_ops.minimum(1.0, y))), weights)


def per_example_full_exp_loss(labels: Any, weights: Any, predictions: Any, name: Optional[str] = None) -> _Loss:
    """exp(-side * p), whose sides are those of labels 0 and 1."""
    del name  # nothing has a name
    side = 2 * math_ops.cast(convert_to_tensor(labels), dtypes.float32) - 1
    return _told(gen_ops.exp(-side * convert_to_tensor(predictions)), weights)
