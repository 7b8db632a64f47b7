# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.LogisticRegressor: a model of one's own that tells a probability, with the metrics of such models."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.head_measures import of_two_classes
from millrace.contrib.learn.keys import ModeKeys, PredictionKey, ProblemType
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.convert import convert_to_tensor
from millrace.ops import gen_ops


def LogisticRegressor(
    model_fn: Callable[..., Any], thresholds: Any = None, model_dir: Optional[str] = None, config: Any = None, feature_engineering_fn: Any = None
) -> Estimator:
    """An Estimator of model_fn(features, labels, mode), which gives (probabilities, loss, train_op)."""

    def measured(features: Any, labels: Any, mode: str) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        metrics = None
        if mode == ModeKeys.EVAL:
            answers = {PredictionKey.LOGISTIC: predictions, PredictionKey.CLASSES: gen_ops.greater(predictions, 0.5)}
            metrics = of_two_classes(answers, convert_to_tensor(labels), None, thresholds or (0.5,))
        served = {"head": (ProblemType.LOGISTIC_REGRESSION, {PredictionKey.SCORES: predictions})}
        return ModelFnOps(mode, predictions, loss, train_op, metrics, served)

    return Estimator(measured, model_dir, config, None, feature_engineering_fn)
