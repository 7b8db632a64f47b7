# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.metrics: functions of what is and of what was predicted, and classes that count over batches."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.losses import (  # noqa: F401
    KLD,
    MAE,
    MAPE,
    MSE,
    MSLE,
    binary_crossentropy,
    categorical_crossentropy,
    cosine,
    cosine_proximity,
    cosine_similarity,
    hinge,
    kld,
    kullback_leibler_divergence,
    logcosh,
    mae,
    mape,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    mse,
    msle,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from millrace.keras.losses import categorical_hinge as _categorical_hinge
from millrace.keras.metric_base import Mean, MeanRelativeError, MeanTensor, Metric, RootMeanSquaredError, Sum, mean_of  # noqa: F401
from millrace.keras.metric_counts import (  # noqa: F401
    AUC,
    FalseNegatives,
    FalsePositives,
    MeanIoU,
    Precision,
    Recall,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)
from millrace.keras.utils.generic_utils import deserialize_keras_object
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """How often yes or no is right."""
    said = math_ops.cast(gen_ops.greater(y_pred, math_ops.cast(threshold, y_pred.dtype.base_dtype)), y_pred.dtype.base_dtype)
    return math_ops.reduce_mean(math_ops.cast(gen_ops.equal(y_true, said), dtypes.float32), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    return math_ops.cast(gen_ops.equal(math_ops.argmax(y_true, -1), math_ops.argmax(y_pred, -1)), dtypes.float32)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the most probable class is right."""
    y_true = math_ops.cast(y_true, dtypes.int64)
    if K.ndim(y_true) is not None and K.ndim(y_true) == K.ndim(y_pred):
        y_true = array_ops.squeeze(y_true, [-1])
    return math_ops.cast(gen_ops.equal(y_true, math_ops.argmax(y_pred, -1)), dtypes.float32)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """For each example whether the class is among the k most probable ones."""
    return sparse_top_k_categorical_accuracy(math_ops.argmax(y_true, -1), y_pred, k)


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """For each example, or step, whether the class, a number, is among the k most probable ones."""
    y_true, y_pred = math_ops.cast(y_true, dtypes.int32), convert_to_tensor(y_pred)
    flat = array_ops.reshape(y_pred, [-1, array_ops.shape(y_pred)[-1]]) if (K.ndim(y_pred) or 2) > 2 else y_pred
    return math_ops.cast(nn_ops.in_top_k(flat, y_true if K.ndim(y_true) == 1 else array_ops.reshape(y_true, [-1]), k), dtypes.float32)


Accuracy = mean_of("Accuracy", lambda y, p: math_ops.cast(gen_ops.equal(y, p), dtypes.float32), "accuracy", "How often the prediction is the truth.")
BinaryAccuracy = mean_of("BinaryAccuracy", binary_accuracy, "binary_accuracy", "How often yes or no is right.", threshold=0.5)
CategoricalAccuracy = mean_of("CategoricalAccuracy", categorical_accuracy, "categorical_accuracy", "How often the most probable class is right.")
SparseCategoricalAccuracy = mean_of(
    "SparseCategoricalAccuracy",
    sparse_categorical_accuracy,
    "sparse_categorical_accuracy",
    "How often the most probable class, of numbers of classes, is right.",
)
TopKCategoricalAccuracy = mean_of(
    "TopKCategoricalAccuracy", top_k_categorical_accuracy, "top_k_categorical_accuracy", "How often the class is among the k most probable ones.", k=5
)
SparseTopKCategoricalAccuracy = mean_of(
    "SparseTopKCategoricalAccuracy",
    sparse_top_k_categorical_accuracy,
    "sparse_top_k_categorical_accuracy",
    "How often the class, a number, is among the k most probable ones.",
    k=5,
)
CosineSimilarity = mean_of("CosineSimilarity", cosine_similarity, "cosine_similarity", "The cosine of the angle between.", axis=-1)
MeanAbsoluteError = mean_of("MeanAbsoluteError", mean_absolute_error, "mean_absolute_error", "The mean of absolute differences.")
MeanAbsolutePercentageError = mean_of(
    "MeanAbsolutePercentageError", mean_absolute_percentage_error, "mean_absolute_percentage_error", "The mean of absolute differences in percent."
)
MeanSquaredError = mean_of("MeanSquaredError", mean_squared_error, "mean_squared_error", "The mean of squared differences.")
MeanSquaredLogarithmicError = mean_of(
    "MeanSquaredLogarithmicError", mean_squared_logarithmic_error, "mean_squared_logarithmic_error", "The mean of squared differences of logarithms."
)
Hinge = mean_of("Hinge", hinge, "hinge", "The mean of max(1 - y p, 0).")
SquaredHinge = mean_of("SquaredHinge", squared_hinge, "squared_hinge", "The mean of its square.")
CategoricalHinge = mean_of("CategoricalHinge", _categorical_hinge, "categorical_hinge", "The mean of max(0, 1 + the largest wrong one - the right one).")
LogCoshError = mean_of("LogCoshError", logcosh, "logcosh", "The mean of logarithms of the hyperbolic cosine of the difference.")
Poisson = mean_of("Poisson", poisson, "poisson", "The mean of the loss of counts.")
KLDivergence = mean_of("KLDivergence", kullback_leibler_divergence, "kullback_leibler_divergence", "How far distributions are apart.")
BinaryCrossentropy = mean_of(
    "BinaryCrossentropy", binary_crossentropy, "binary_crossentropy", "The mean of the cross entropy of yes and no.", from_logits=False, label_smoothing=0
)
CategoricalCrossentropy = mean_of(
    "CategoricalCrossentropy",
    categorical_crossentropy,
    "categorical_crossentropy",
    "The mean of the cross entropy of classes.",
    from_logits=False,
    label_smoothing=0,
)
SparseCategoricalCrossentropy = mean_of(
    "SparseCategoricalCrossentropy",
    sparse_categorical_crossentropy,
    "sparse_categorical_crossentropy",
    "The mean of the cross entropy of numbers of classes.",
    from_logits=False,
    axis=-1,
)


def serialize(metric: Any) -> Any:
    """A metric as its name, or as its class and settings."""
    return {"class_name": type(metric).__name__, "config": metric.get_config()} if hasattr(metric, "get_config") else metric.__name__


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The metric of a name."""
    return deserialize_keras_object(config, globals(), custom_objects, "metric function")


def get(identifier: Any) -> Any:
    """A metric by name or settings, or what is one already."""
    if isinstance(identifier, (str, dict)):
        found = deserialize(identifier)
        return found() if isinstance(found, type) else found
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret metric function identifier: %s" % (identifier,)))
