# SPDX-License-Identifier: Apache-2.0
"""From what a model computes to losses, predictions and metrics."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace import metrics
from millrace.estimator import export
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from millrace.train.global_step import get_global_step


class Head:
    """One kind of question."""

    logits_dimension = 1
    mean = False  # whether the loss is a mean over the batch, as in tf.contrib.learn

    def __init__(self, weight_column: Any, label_vocabulary: Any = None) -> None:
        self._weight_column, self._vocabulary = weight_column, label_vocabulary

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """What the model says."""
        raise NotImplementedError

    def losses(self, logits: Any, labels: Any) -> Any:
        """A loss for each example [n, 1]."""
        raise NotImplementedError

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """Beside the mean loss."""
        return {}

    def output(self, predictions: Dict[str, Any]) -> Any:
        """What is served."""
        raise NotImplementedError

    def target(self, labels: Any) -> Any:
        """Labels as [n, 1]."""
        labels = convert_to_tensor(labels)
        return array_ops.expand_dims(labels, -1) if labels.get_shape().ndims == 1 else labels

    def spec(self, mode: str, logits: Any, labels: Any, features: Dict[str, Any], train_op: Callable[[Any, Any], Any]) -> EstimatorSpec:
        """The EstimatorSpec of a model; as in TensorFlow 1.x the loss is a sum over the batch."""
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs={DEFAULT_SERVING_SIGNATURE_DEF_KEY: self.output(predictions)})
        if labels is None:
            raise at_user_line(ValueError("You must provide a labels Tensor. Given: None."))
        target = self.target(labels)
        weights = 1.0
        if self._weight_column is not None:
            column = self._weight_column
            weights = column.dense(features, False) if hasattr(column, "dense") else Head.target(self, math_ops.cast(features[column], dtypes.float32))
        each = self.losses(logits, target)
        loss = (math_ops.reduce_mean if self.mean else math_ops.reduce_sum)(each * weights)
        if mode == ModeKeys.EVAL:
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops={
                "average_loss": metrics.mean(each, None if isinstance(weights, float) else weights),
                **self.metrics(predictions, target, None if isinstance(weights, float) else weights)})
        return EstimatorSpec(mode, predictions, loss, train_op(loss, get_global_step()))


class _Classes(Head):
    def _class_names(self, ids: Any) -> Any:
        if self._vocabulary:
            return array_ops.gather(convert_to_tensor(list(self._vocabulary)), ids)
        return gen_ops.as_string(ids)

    def target(self, labels: Any) -> Any:
        """Numbers of classes [n, 1]."""
        labels = super().target(labels)
        if self._vocabulary:
            words = array_ops.reshape(convert_to_tensor(list(self._vocabulary)), [1, -1])
            labels = array_ops.expand_dims(math_ops.argmax(math_ops.cast(math_ops.equal(labels, words), dtypes.int32), -1), -1)
        return labels

    def output(self, predictions: Dict[str, Any]) -> Any:
        """What is served."""
        return export.ClassificationOutput(predictions["probabilities"], predictions["classes"])


class _ManyClasses(_Classes):
    def __init__(self, n_classes: int, weight_column: Any, label_vocabulary: Any) -> None:
        super().__init__(weight_column, label_vocabulary)
        self.logits_dimension = n_classes

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The most probable class, and how probable each is."""
        ids = array_ops.expand_dims(math_ops.argmax(logits, -1), -1)
        return {"logits": logits, "probabilities": nn_ops.softmax(logits), "class_ids": ids, "classes": self._class_names(ids)}

    def losses(self, logits: Any, labels: Any) -> Any:
        """Cross entropies."""
        labels = array_ops.squeeze(math_ops.cast(labels, dtypes.int64), [-1])
        return array_ops.expand_dims(nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), -1)

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """The share of right classes."""
        return {"accuracy": metrics.accuracy(math_ops.cast(labels, dtypes.int64), predictions["class_ids"], weights)}


class _TwoClasses(_Classes):
    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The more probable class, and how probable both are."""
        probable = math_ops.sigmoid(logits)
        both = array_ops.concat([array_ops.zeros_like(logits), logits], -1)
        ids = array_ops.expand_dims(math_ops.argmax(both, -1), -1)
        return {"logits": logits, "logistic": probable, "probabilities": nn_ops.softmax(both), "class_ids": ids, "classes": self._class_names(ids)}

    def losses(self, logits: Any, labels: Any) -> Any:
        """Cross entropies."""
        return nn_ops.sigmoid_cross_entropy_with_logits(labels=math_ops.cast(labels, dtypes.float32), logits=logits)

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """How right the model is, and how right one that always says the same would be."""
        labels = math_ops.cast(labels, dtypes.float32)
        mean = metrics.mean(labels, weights)
        return {"accuracy": metrics.accuracy(math_ops.cast(labels, dtypes.int64), predictions["class_ids"], weights), "label/mean": mean,
                "accuracy_baseline": (math_ops.maximum(mean[0], 1 - mean[0]), mean[1]), "prediction/mean": metrics.mean(predictions["logistic"], weights),
                "auc": metrics.auc(labels, predictions["logistic"], weights),
                "auc_precision_recall": metrics.auc(labels, predictions["logistic"], weights, curve="PR")}


class _Regression(Head):
    def __init__(self, label_dimension: int, weight_column: Any) -> None:
        super().__init__(weight_column)
        self.logits_dimension = label_dimension

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The numbers."""
        return {"predictions": logits}

    def losses(self, logits: Any, labels: Any) -> Any:
        """Squared differences."""
        return gen_ops.square(logits - math_ops.cast(labels, dtypes.float32))

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """The means."""
        return {"label/mean": metrics.mean(math_ops.cast(labels, dtypes.float32), weights), "prediction/mean": metrics.mean(predictions["predictions"], weights)}

    def output(self, predictions: Dict[str, Any]) -> Any:
        """What is served."""
        return export.RegressionOutput(predictions["predictions"])


def binary_head(weight_column: Any = None, label_vocabulary: Optional[Any] = None) -> Head:
    """Two classes."""
    return _TwoClasses(weight_column, label_vocabulary)


def classes_head(n_classes: int, weight_column: Any = None, label_vocabulary: Optional[Any] = None) -> Head:
    """More than two classes."""
    return _ManyClasses(n_classes, weight_column, label_vocabulary)


def regression_head(label_dimension: int = 1, weight_column: Any = None) -> Head:
    """Numbers."""
    return _Regression(label_dimension, weight_column)
