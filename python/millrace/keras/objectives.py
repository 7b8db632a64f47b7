# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics of tf.keras: functions of what is and of what was predicted, with one number for each example."""
from __future__ import annotations

from typing import Any, Callable, Dict

from millrace.framework import dtypes
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.keras import backend as K


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """Squared differences."""
    return math_ops.reduce_mean(gen_ops.square(y_pred - y_true), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """Absolute differences."""
    return math_ops.reduce_mean(math_ops.abs(y_pred - y_true), -1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """Absolute differences in percent."""
    return 100.0 * math_ops.reduce_mean(math_ops.abs((y_true - y_pred) / math_ops.maximum(math_ops.abs(y_true), K.epsilon())), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """Squared differences of logarithms."""
    return math_ops.reduce_mean(gen_ops.square(gen_ops.log(math_ops.maximum(y_pred, K.epsilon()) + 1.0) - gen_ops.log(
        math_ops.maximum(y_true, K.epsilon()) + 1.0)), -1)


def hinge(y_true: Any, y_pred: Any) -> Any:
    """max(1 - y p, 0)."""
    return math_ops.reduce_mean(math_ops.maximum(1.0 - y_true * y_pred, 0.0), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """Its square."""
    return math_ops.reduce_mean(gen_ops.square(math_ops.maximum(1.0 - y_true * y_pred, 0.0)), -1)


def logcosh(y_true: Any, y_pred: Any) -> Any:
    """The logarithm of the hyperbolic cosine of the difference."""
    x = y_pred - y_true
    return math_ops.reduce_mean(x + gen_ops.softplus(-2.0 * x) - 0.6931471805599453, -1)


def categorical_crossentropy(y_true: Any, y_pred: Any) -> Any:
    """Of probabilities."""
    return K.categorical_crossentropy(y_true, y_pred)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any) -> Any:
    """Of numbers of classes."""
    return K.sparse_categorical_crossentropy(y_true, y_pred)


def binary_crossentropy(y_true: Any, y_pred: Any) -> Any:
    """Of probabilities of yes."""
    return math_ops.reduce_mean(K.binary_crossentropy(y_true, y_pred), -1)


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """How far distributions are apart."""
    y_true, y_pred = K.clip(y_true, K.epsilon(), 1), K.clip(y_pred, K.epsilon(), 1)
    return math_ops.reduce_sum(y_true * gen_ops.log(y_true / y_pred), -1)


def poisson(y_true: Any, y_pred: Any) -> Any:
    """Of counts."""
    return math_ops.reduce_mean(y_pred - y_true * gen_ops.log(y_pred + K.epsilon()), -1)


def cosine_proximity(y_true: Any, y_pred: Any) -> Any:
    """Less the cosine of the angle between."""
    return -math_ops.reduce_sum(nn_ops.l2_normalize(y_true, -1) * nn_ops.l2_normalize(y_pred, -1), -1)


# ---- metrics ----

def binary_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often yes or no is right."""
    return math_ops.reduce_mean(math_ops.cast(gen_ops.equal(y_true, math_ops.round(y_pred)), dtypes.float32), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    return math_ops.cast(gen_ops.equal(math_ops.argmax(y_true, -1), math_ops.argmax(y_pred, -1)), dtypes.float32)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    truth = math_ops.cast(y_true, dtypes.int64)
    truth = array_ops.squeeze(truth, [-1]) if K.ndim(truth) == K.ndim(y_pred) else truth
    return math_ops.cast(gen_ops.equal(truth, math_ops.argmax(y_pred, -1)), dtypes.float32)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """How often the class is among the k most probable ones."""
    return math_ops.cast(nn_ops.in_top_k(y_pred, math_ops.argmax(y_true, -1), k), dtypes.float32)


_SHORT = {"mse": mean_squared_error, "mae": mean_absolute_error, "mape": mean_absolute_percentage_error, "msle": mean_squared_logarithmic_error,
          "kld": kullback_leibler_divergence, "cosine": cosine_proximity}
mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error


def get(identifier: Any) -> Callable[..., Any]:
    """A loss or metric by name."""
    if callable(identifier):
        return identifier  # type: ignore[no-any-return]
    found: Any = _SHORT.get(str(identifier).lower()) or globals().get(str(identifier))
    if not callable(found) or str(identifier).startswith("_"):
        raise ValueError("Unknown loss or metric function: %s" % (identifier,))
    return found  # type: ignore[no-any-return]


def accuracy_for(loss: Any, output: Any) -> Callable[..., Any]:
    """Which accuracy goes with a loss and the outputs' shape."""
    if loss is binary_crossentropy or (output.get_shape()[-1].value == 1 and loss is not sparse_categorical_crossentropy):
        return binary_accuracy
    return sparse_categorical_accuracy if loss is sparse_categorical_crossentropy else categorical_accuracy


def names() -> Dict[str, Any]:
    """All of them."""
    return {k: v for k, v in globals().items() if callable(v) and not k.startswith("_") and getattr(v, "__module__", "") == __name__}
