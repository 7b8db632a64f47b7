# SPDX-License-Identifier: Apache-2.0
"""Losses of examples as the loss of a batch, which several replicas would add up: here there is one."""

from __future__ import annotations

from typing import Any

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, math_ops

__all__ = ["compute_average_loss", "scale_regularization_loss"]


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the losses of examples, each times its weight, divided by global_batch_size: how many there are unless it is given."""
    losses = convert_to_tensor(per_example_loss)
    if losses.get_shape().ndims == 0:
        raise at_user_line(ValueError("Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1, received a scalar."))
    size = array_ops.shape(losses)[0] if global_batch_size is None else global_batch_size
    if sample_weight is not None:
        weights = math_ops.cast(sample_weight, losses.dtype.base_dtype)
        while (weights.get_shape().ndims or 0) < (losses.get_shape().ndims or 0) and weights.get_shape().ndims:
            weights = array_ops.expand_dims(weights, -1)
        losses = losses * weights
    return math_ops.reduce_sum(losses) / math_ops.cast(size, losses.dtype.base_dtype)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of a loss of weights."""
    return math_ops.reduce_sum(regularization_loss)
