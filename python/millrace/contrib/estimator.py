# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: heads, and estimators of them. The loss of a batch is a mean there."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from millrace import losses
from millrace.estimator.canned import BaselineEstimator, DNNEstimator, DNNLinearCombinedEstimator, LinearEstimator  # noqa: F401
from millrace.estimator.extenders import add_metrics  # noqa: F401
from millrace.estimator.heads import (
    _binary_logistic_head_with_sigmoid_cross_entropy_loss,
    _Head,
    _multi_class_head_with_softmax_cross_entropy_loss,
    _regression_head_with_mean_squared_error_loss,
)
from millrace.contrib.replication import TowerOptimizer, replicate_model_fn  # noqa: F401
from millrace.framework import missing as _missing

_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Optional[Sequence[float]] = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """Two classes."""
    return _binary_logistic_head_with_sigmoid_cross_entropy_loss(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """More than two classes."""
    return _multi_class_head_with_softmax_cross_entropy_loss(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def regression_head(
    weight_column: Any = None, label_dimension: int = 1, loss_reduction: str = _MEAN, loss_fn: Optional[Callable[..., Any]] = None, name: Optional[str] = None
) -> _Head:
    """Numbers."""
    return _regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction, loss_fn, name)


_missing.fill(
    globals(),
    "contrib.estimator.",
    {
        "multi_label_head": "binary_classification_head for each label",
        "multi_head": "an estimator of your own model_fn",
        "poisson_regression_head": "regression_head with loss_fn=tf.nn.log_poisson_loss of targets and log_input",
        "logistic_regression_head": "regression_head with loss_fn=tf.nn.sigmoid_cross_entropy_with_logits",
        "RNNClassifier": "an estimator with tf.nn.dynamic_rnn",
        "RNNEstimator": "an estimator with tf.nn.dynamic_rnn",
    },
)
