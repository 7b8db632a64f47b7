# SPDX-License-Identifier: Apache-2.0
"""tf.keras.activations."""

from __future__ import annotations

from typing import Any, Callable

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import gen_ops, math_ops, nn_ops


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) by its sum along an axis."""
    rank = K.ndim(x)
    if rank is not None and rank < 2:
        raise at_user_line(ValueError("Cannot apply softmax to a tensor that is 1D"))
    return nn_ops.softmax(x, axis)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha (exp(x) - 1) below zero."""
    return K.elu(x, alpha)


def selu(x: Any) -> Any:
    """elu scaled so that means and variances stay."""
    return gen_ops.selu(x)


def softplus(x: Any) -> Any:
    """log(exp(x) + 1)."""
    return gen_ops.softplus(x)


def softsign(x: Any) -> Any:
    """x / (|x| + 1)."""
    return gen_ops.softsign(x)


def relu(x: Any, alpha: float = 0.0, max_value: Any = None, threshold: float = 0) -> Any:
    """max(x, 0), with a slope alpha below and a largest value."""
    return K.relu(x, alpha=alpha, max_value=max_value, threshold=threshold)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return math_ops.tanh(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return math_ops.sigmoid(x)


def exponential(x: Any) -> Any:
    """exp(x)."""
    return gen_ops.exp(x)


def hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5 within 0 and 1."""
    return K.hard_sigmoid(x)


def linear(x: Any) -> Any:
    """x."""
    return x


def serialize(activation: Any) -> Any:
    """The name of an activation; of a layer its class and settings."""
    if hasattr(activation, "get_config"):
        return serialize_keras_object(activation)
    return "softmax" if activation.__name__ == "softmax_v2" else activation.__name__  # tf.nn.softmax of TensorFlow 2


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The activation of a name, or of a class and settings."""
    return deserialize_keras_object(name, globals(), custom_objects, "activation function")


def get(identifier: Any) -> Callable[..., Any]:
    """An activation by name; none is the number itself."""
    if identifier is None:
        return linear
    if isinstance(identifier, (str, dict)):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret activation function identifier: %s" % (identifier,)))
