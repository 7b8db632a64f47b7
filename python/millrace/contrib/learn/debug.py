# SPDX-License-Identifier: Apache-2.0
"""Estimators of tf.contrib.learn that learn a bias alone: what others must be better than."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from millrace.contrib.layers_training import optimize_loss
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.head import regression_head
from millrace.contrib.learn.head_classes import multi_class_head
from millrace.contrib.learn.keys import PredictionKey
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops


def debug_model_fn(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any = None) -> ModelFnOps:
    """Logits of zero, to which the head adds its bias. params: head."""
    del config  # nothing of it is asked
    features, head = features if isinstance(features, dict) else {"": features}, params["head"]
    if not features:
        raise at_user_line(ValueError("Features cannot be empty."))
    counts = [array_ops.shape(feature)[0] for feature in features.values()]
    with control_dependencies([check_ops.assert_equal(counts[0], count) for count in counts[1:]]):
        logits = array_ops.zeros([counts[0], head.logits_dimension])

    def train_op(loss: Any) -> Any:
        return optimize_loss(loss, None, 0.3, "Adagrad")

    return head.create_model_fn_ops(features, mode, labels, train_op, logits)


class _DebugEstimator(Estimator):
    def _predictions(self, key: str, input_fn: Any, batch_size: Optional[int]) -> Iterator[Any]:
        return (prediction[key] for prediction in self.predict(input_fn=input_fn, batch_size=batch_size, outputs=[key]))


class DebugClassifier(_DebugEstimator):
    """Tells the class that was there most often, and how often each was."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column_name: Optional[str] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_keys: Any = None,
    ) -> None:
        head = multi_class_head(n_classes, weight_column_name=weight_column_name, enable_centered_bias=True, label_keys=label_keys)
        super().__init__(debug_model_fn, model_dir, config, {"head": head}, feature_engineering_fn)

    def predict_classes(self, input_fn: Any = None, batch_size: Optional[int] = None) -> Iterator[Any]:
        """The most frequent class, for each example."""
        return self._predictions(PredictionKey.CLASSES, input_fn, batch_size)

    def predict_proba(self, input_fn: Any = None, batch_size: Optional[int] = None) -> Iterator[Any]:
        """How frequent each class was, for each example."""
        return self._predictions(PredictionKey.PROBABILITIES, input_fn, batch_size)


class DebugRegressor(_DebugEstimator):
    """Tells the mean."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        label_dimension: int = 1,
        weight_column_name: Optional[str] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        head = regression_head(weight_column_name=weight_column_name, label_dimension=label_dimension, enable_centered_bias=True)
        super().__init__(debug_model_fn, model_dir, config, {"head": head}, feature_engineering_fn)

    def predict_scores(self, input_fn: Any = None, batch_size: Optional[int] = None) -> Iterator[Any]:
        """The mean, for each example."""
        return self._predictions(PredictionKey.SCORES, input_fn, batch_size)
