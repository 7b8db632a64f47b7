# SPDX-License-Identifier: Apache-2.0
"""Losses of examples as the loss of a batch, which several replicas would add up: here there is one."""

from __future__ import annotations

from typing import Any

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, check_ops, math_ops, weights_broadcast

__all__ = ["compute_average_loss", "scale_regularization_loss"]


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the losses of examples, each times its weight, divided by global_batch_size: how many there are unless it is given.

    Shapes: losses of rank 1 or more; weights of their shape, or of one that broadcasts to it behind dimensions of 1 at its end.
    Raises: ValueError for a scalar and for weights that do not broadcast; InvalidArgumentError in the step where only that tells.
    """
    losses = convert_to_tensor(per_example_loss)
    if losses.get_shape().ndims == 0:
        raise at_user_line(ValueError("Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1, received a scalar."))
    if losses.get_shape().ndims is None:
        said = "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1."
        with control_dependencies([check_ops.assert_rank_at_least(losses, 1, message=said)]):
            losses = array_ops.identity(losses)
    size = array_ops.shape(losses)[0] if global_batch_size is None else global_batch_size
    if sample_weight is not None:
        weights = math_ops.cast(sample_weight, losses.dtype.base_dtype)
        while (weights.get_shape().ndims or 0) < (losses.get_shape().ndims or 0) and weights.get_shape().ndims:
            weights = array_ops.expand_dims(weights, -1)
        with control_dependencies([weights_broadcast.assert_broadcastable(weights, losses)]):
            losses = losses * weights
    return math_ops.reduce_sum(losses) / math_ops.cast(size, losses.dtype.base_dtype)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of a loss of weights."""
    return math_ops.reduce_sum(regularization_loss)
