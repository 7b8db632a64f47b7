# SPDX-License-Identifier: Apache-2.0
"""tf.keras.metrics: functions of what is and of what was predicted."""
from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.losses import (KLD, MAE, MAPE, MSE, MSLE, binary_crossentropy, categorical_crossentropy, cosine, cosine_proximity,  # noqa: F401
                                   hinge, kld, kullback_leibler_divergence, logcosh, mae, mape, mean_absolute_error,
                                   mean_absolute_percentage_error, mean_squared_error, mean_squared_logarithmic_error, mse, msle, poisson,
                                   sparse_categorical_crossentropy, squared_hinge)
from millrace.keras.utils.generic_utils import deserialize_keras_object
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """How often yes or no is right."""
    said = math_ops.round(y_pred) if threshold == 0.5 else math_ops.cast(gen_ops.greater(y_pred, threshold), y_pred.dtype.base_dtype)
    return math_ops.reduce_mean(math_ops.cast(gen_ops.equal(y_true, said), dtypes.float32), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    return math_ops.cast(gen_ops.equal(math_ops.argmax(y_true, -1), math_ops.argmax(y_pred, -1)), dtypes.float32)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    y_true = math_ops.cast(y_true, dtypes.int64)
    if K.ndim(y_true) is None or K.ndim(y_true) == K.ndim(y_pred):
        y_true = math_ops.reduce_max(y_true, -1)
    return math_ops.cast(gen_ops.equal(y_true, math_ops.argmax(y_pred, -1)), dtypes.float32)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """How often the class is among the k most probable ones."""
    return math_ops.reduce_mean(math_ops.cast(nn_ops.in_top_k(y_pred, math_ops.argmax(y_true, -1), k), dtypes.float32), -1)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """How often the class, a number, is among the k most probable ones."""
    flat = array_ops.reshape(math_ops.cast(math_ops.reduce_max(y_true, -1), dtypes.int32), [-1])
    return math_ops.reduce_mean(math_ops.cast(nn_ops.in_top_k(y_pred, flat, k), dtypes.float32), -1)


def serialize(metric: Any) -> Any:
    """The name of a metric."""
    return metric.__name__


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The metric of a name."""
    return deserialize_keras_object(name, globals(), custom_objects, "metric function")


def get(identifier: Any) -> Any:
    """A metric by name, or what is one already."""
    if isinstance(identifier, str):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret metric function identifier: %s" % (identifier,)))
