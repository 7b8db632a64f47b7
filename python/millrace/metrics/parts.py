# SPDX-License-Identifier: Apache-2.0
"""What metrics are made of: local variables that count, and weights that fit."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import GraphKeys, Tensor, add_to_collections
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions
from millrace.ops.variables import Variable


def local(name: str, shape: Any, dtype: Any = dtypes.float32) -> Variable:
    """A variable of zeros that belongs to no model."""
    return Variable(array_ops.zeros(shape, dtype), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], name=name)


def metric_variable(shape: Any, dtype: Any, validate_shape: bool = True, name: Optional[str] = None) -> Variable:
    """A variable of zeros for a metric of a program's own."""
    return Variable(array_ops.zeros(shape, dtype), False, [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], validate_shape=validate_shape, name=name)


def ratio(a: Any, b: Any, name: Optional[str] = None) -> Tensor:
    """a / b; 0 where b is not positive."""
    positive = gen_ops.greater(b, array_ops.zeros_like(b))
    return array_ops.where(positive, gen_ops.real_div(a, array_ops.where(positive, b, array_ops.ones_like(b))), array_ops.zeros_like(a), name=name)


def done(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> Tuple[Tensor, Tensor]:
    """Both, each added to the collections given for it."""
    for collections, made in ((metrics_collections, value), (updates_collections, update)):
        if collections:
            add_to_collections(collections, made)
    return value, update


def fitted(predictions: Any, labels: Any, weights: Any) -> Any:
    """(predictions, labels, weights) without last dimensions of 1 that one of them has too many; weights also with one that they miss."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    shape, rank = weights.get_shape(), predictions.get_shape().ndims
    if shape.ndims == 0:
        return predictions, labels, weights
    if shape.ndims is not None and rank is not None:
        if shape.ndims - rank == 1:
            weights = array_ops.squeeze(weights, [-1])
        elif rank - shape.ndims == 1:
            weights = array_ops.expand_dims(weights, -1)
        return predictions, labels, weights
    given = weights
    excess = array_ops.rank(given) - array_ops.rank(predictions)
    may_squeeze = shape.ndims is None or shape.as_list()[-1] in (None, 1)

    def wider() -> Any:
        return control_flow_ops.cond(gen_ops.equal(excess, -1), lambda: array_ops.expand_dims(given, -1), lambda: array_ops.identity(given))

    def adjusted() -> Any:
        return control_flow_ops.cond(gen_ops.equal(excess, 1), lambda: array_ops.squeeze(given, [-1]), wider) if may_squeeze else wider()

    return predictions, labels, control_flow_ops.cond(gen_ops.equal(array_ops.rank(given), 0), lambda: array_ops.identity(given), adjusted)
