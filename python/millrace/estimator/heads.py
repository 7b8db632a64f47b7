# SPDX-License-Identifier: Apache-2.0
"""From what a model computes to losses, predictions and metrics: one head for each kind of question."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from millrace import feature_column, losses, metrics, summary, tf_logging
from millrace.estimator.export_output import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from millrace.estimator.keys import MetricKeys, PredictionKeys
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, lookup_ops, math_ops, nn_ops
from millrace.ops.weights_broadcast import broadcast_weights
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_CLASSIFY, _REGRESS, _PREDICT = "classification", "regression", "predict"  # names of exported signatures


class LossAndLabels(NamedTuple):
    """The loss of each example, before weights, and the labels as numbers."""

    unweighted_loss: Any
    processed_labels: Any


class _Head:
    """What a model's outputs are: predictions, losses, metrics and exports. The loss of a batch is a sum, unless `loss_reduction` says otherwise."""

    def __init__(
        self,
        logits_dimension: int,
        weight_column: Any = None,
        name: Optional[str] = None,
        loss_reduction: str = losses.Reduction.SUM,
        loss_fn: Optional[Callable[..., Any]] = None,
    ) -> None:
        self._logits_dimension, self._weight_column, self._name = logits_dimension, weight_column, name
        self._reduction, self._loss_fn = loss_reduction, loss_fn

    name = property(lambda self: self._name, doc="What the names of its metrics end with, or None.")
    logits_dimension = property(lambda self: self._logits_dimension, doc="How many numbers a model gives it for each example.")

    # ---- what differs ----

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        raise NotImplementedError

    def _exports(self, predictions: Dict[str, Any]) -> Dict[str, ExportOutput]:
        raise NotImplementedError

    def _target(self, labels: Any) -> Any:
        """The labels as numbers, checked."""
        raise NotImplementedError

    def _losses(self, logits: Any, target: Any) -> Any:
        """A loss for each example [n, 1] or number [n, d]."""
        raise NotImplementedError

    def _metrics(self, predictions: Dict[str, Any], target: Any, weights: Any) -> Dict[str, Any]:
        """Beside the mean loss."""
        raise NotImplementedError

    # ---- what is the same ----

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> LossAndLabels:
        """The loss of each example, and the labels as numbers."""
        del features, mode  # weights come later, and the loss is that of every mode
        target = self._target(_checked_labels(labels, self._labels_dimension()))
        return LossAndLabels(self._own_losses(logits, target) if self._loss_fn is not None else self._losses(logits, target), target)

    def _labels_dimension(self) -> int:
        return self._logits_dimension

    def _own_losses(self, logits: Any, target: Any) -> Any:
        each = self._loss_fn(labels=target, logits=logits)  # type: ignore[misc]
        if each.get_shape().ndims == 1:
            each = array_ops.expand_dims(each, -1)
        if each.get_shape().ndims not in (None, 2):
            raise at_user_line(ValueError("loss_fn must return a loss for each example: Tensor of shape [batch_size, 1], got %s" % each.get_shape()))
        return each

    def _key(self, metric: str) -> str:
        return "%s/%s" % (metric, self._name) if self._name else metric

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Optional[Callable[[Any], Any]] = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec of a model with these outputs; train_op_fn(loss), or the optimizer, makes what trains it, after update_ops."""
        with name_scope("head"):
            logits = _checked_logits(logits, self._logits_dimension)
            with name_scope(None, "predictions", [logits]):
                predictions = self._predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions, export_outputs=self._exports(predictions))
            each, target = self.create_loss(features, mode, logits, labels)
            weights = _weights(features, self._weight_column)
            loss = losses.compute_weighted_loss(each, weights, reduction=self._reduction)
            if regularization_losses:
                loss = loss + gen_ops.add_n(list(regularization_losses))
            if mode == ModeKeys.EVAL:
                with name_scope(None, "metrics", [each]):
                    measures = {MetricKeys.LOSS_MEAN: metrics.mean(each, weights, name=MetricKeys.LOSS_MEAN), **self._metrics(predictions, target, weights)}
                return EstimatorSpec(mode, predictions, loss, eval_metric_ops={self._key(key): value for key, value in measures.items()})
            with control_dependencies(list(update_ops or [])):
                train_op = _train_op(loss, train_op_fn, optimizer, trainable_variables)
        with name_scope(""):
            summary.scalar(self._key(MetricKeys.LOSS), loss)
            if self._reduction == losses.Reduction.SUM:
                summary.scalar(self._key(MetricKeys.LOSS_MEAN), losses.compute_weighted_loss(each, weights, reduction=losses.Reduction.MEAN))
        return EstimatorSpec(ModeKeys.TRAIN, predictions, loss, train_op)


def _train_op(loss: Any, train_op_fn: Any, optimizer: Any, variables: Any = None) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise at_user_line(ValueError("train_op_fn and optimizer must not both be set."))
    if optimizer is not None:
        from millrace.train.global_step import get_global_step

        return optimizer.minimize(loss, global_step=get_global_step(), var_list=variables)
    if train_op_fn is None:
        raise at_user_line(ValueError("train_op_fn can not be None."))
    return train_op_fn(loss)


# ---- what a head is given ----


def _as_column(values: Any) -> Any:
    """One number for each example as [n, 1]."""
    values = convert_to_tensor_or_sparse_tensor(values)
    if isinstance(values, SparseTensor):
        raise at_user_line(ValueError("SparseTensor labels are not supported."))
    return array_ops.expand_dims(values, -1) if values.get_shape().ndims == 1 else values


def _of_width(values: Any, width: int, message: str) -> Any:
    """The values, once a step has found them to be [n, width]."""
    with control_dependencies([check_ops.assert_rank(values, 2, message=message)]):
        found = array_ops.identity(array_ops.shape(values))
    with control_dependencies([check_ops.assert_equal(width, found[1], data=[message, found])]):
        return array_ops.identity(values)


def _checked_labels(labels: Any, width: int) -> Any:
    if labels is None:
        raise at_user_line(
            ValueError(
                "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contain your label "
                "feature. Check that your input_fn properly parses and returns labels."
            )
        )
    with name_scope(None, "labels", [labels]):
        labels = _as_column(labels)
        known = labels.get_shape()
        if known.ndims is not None and known.ndims > 1 and known[1].value not in (None, width):
            raise at_user_line(
                ValueError(
                    "Mismatched label shape. Expected labels dimension=%s.  Received %s. Suggested Fix: If your classifier expects "
                    "one-hot encoding label, check your n_classes argument to the estimator and/or the shape of your label. Otherwise, "
                    "check the shape of your label." % (width, known[1].value)
                )
            )
        return _of_width(labels, width, "labels shape must be [batch_size, %s]" % width)


def _checked_logits(logits: Any, width: int) -> Any:
    with name_scope(None, "logits", [logits]):
        logits = math_ops.cast(convert_to_tensor(logits), dtypes.float32)
        known = logits.get_shape()
        message = "logits shape must be [batch_size, logits_dimension]"
        if known.ndims not in (None, 2) or known.ndims == 2 and known[1].value not in (None, width):
            raise at_user_line(ValueError("%s, got %s." % (message, known)))
        return _of_width(logits, width, message)


def _in_range(labels: Any, n_classes: int) -> Any:
    with name_scope(None, "assert_range", [labels]):
        below = check_ops.assert_less(labels, math_ops.cast(n_classes, labels.dtype), message="Label IDs must < n_classes")
        with control_dependencies([below, check_ops.assert_non_negative(labels, message="Label IDs must >= 0")]):
            return array_ops.identity(labels)


def _weights(features: Any, weight_column: Any) -> Any:
    if weight_column is None:
        return 1.0
    column = feature_column.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, feature_column._NumericColumn):
        raise at_user_line(TypeError("Weight column must be either a string or _NumericColumn. Given type: %s." % type(column)))
    with name_scope(None, "weights", list(features.values())):
        weights = column._get_dense_tensor(feature_column._LazyBuilder(features))
        if not (weights.dtype.is_floating or weights.dtype.is_integer):
            raise at_user_line(ValueError("Weight column should be castable to float. Given dtype: %s" % weights.dtype))
        return _as_column(math_ops.cast(weights, dtypes.float32))


# ---- classes ----


class _Classes(_Head):
    """A head that tells classes apart."""

    def __init__(self, n_classes: int, logits_dimension: int, weight_column: Any, label_vocabulary: Any, name: Optional[str], **options: Any) -> None:
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise at_user_line(ValueError("label_vocabulary should be a list or tuple. Given type: %s" % type(label_vocabulary)))
        super().__init__(logits_dimension, weight_column, name, **options)
        self._n_classes, self._label_vocabulary = n_classes, label_vocabulary

    def _labels_dimension(self) -> int:
        return 1

    def _numbers(self, labels: Any) -> Any:
        """The classes' places in the vocabulary, where there is one."""
        if self._label_vocabulary is None:
            return labels
        if labels.dtype.base_dtype != dtypes.string:
            raise at_user_line(ValueError("Labels dtype should be string if there is a vocabulary. Instead got %s" % labels.dtype))
        return lookup_ops.index_table_from_tensor(tuple(self._label_vocabulary), name="class_id_lookup").lookup(labels)

    def _named(self, class_ids: Any) -> Any:
        if not self._label_vocabulary:
            return gen_ops.as_string(class_ids, name="str_classes")
        return lookup_ops.index_to_string_table_from_tensor(list(self._label_vocabulary), name="class_string_lookup").lookup(class_ids)

    def _classification(self, probabilities: Any) -> ClassificationOutput:
        names = convert_to_tensor(list(self._label_vocabulary) if self._label_vocabulary else ["%d" % i for i in range(self._n_classes)])
        rows = array_ops.stack([array_ops.shape(probabilities)[0], 1])
        return ClassificationOutput(scores=probabilities, classes=array_ops.tile(array_ops.expand_dims(names, 0), rows))


class _MultiClassHeadWithSoftmaxCrossEntropyLoss(_Classes):
    def __init__(self, n_classes: int, weight_column: Any = None, label_vocabulary: Any = None, name: Optional[str] = None, **options: Any) -> None:
        if n_classes is None or n_classes <= 2:
            raise at_user_line(ValueError("n_classes must be > 2: %s." % n_classes))
        super().__init__(n_classes, n_classes, weight_column, label_vocabulary, name, **options)

    def _target(self, labels: Any) -> Any:
        if self._label_vocabulary is None and not labels.dtype.is_integer:
            raise at_user_line(ValueError("Labels dtype should be integer. Instead got %s." % labels.dtype))
        return _in_range(self._numbers(labels), self._n_classes)

    def _losses(self, logits: Any, target: Any) -> Any:
        each = losses.sparse_softmax_cross_entropy(labels=target, logits=logits, reduction=losses.Reduction.NONE)
        return array_ops.expand_dims(each, -1) if each.get_shape().ndims in (None, 1) else each

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        """The most probable class, and how probable each is."""
        ids = array_ops.expand_dims(math_ops.argmax(logits, 1, name=PredictionKeys.CLASS_IDS), 1)
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: nn_ops.softmax(logits, name=PredictionKeys.PROBABILITIES),
            PredictionKeys.CLASS_IDS: ids,
            PredictionKeys.CLASSES: self._named(ids),
        }

    def _exports(self, predictions: Dict[str, Any]) -> Dict[str, ExportOutput]:
        made = self._classification(predictions[PredictionKeys.PROBABILITIES])
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: made, _CLASSIFY: made, _PREDICT: PredictOutput(predictions)}

    def _metrics(self, predictions: Dict[str, Any], target: Any, weights: Any) -> Dict[str, Any]:
        return {MetricKeys.ACCURACY: metrics.accuracy(target, predictions[PredictionKeys.CLASS_IDS], weights, name=MetricKeys.ACCURACY)}


class _BinaryLogisticHeadWithSigmoidCrossEntropyLoss(_Classes):
    def __init__(
        self, weight_column: Any = None, thresholds: Optional[Sequence[float]] = None, label_vocabulary: Any = None, name: Optional[str] = None, **options: Any
    ) -> None:
        super().__init__(2, 1, weight_column, label_vocabulary, name, **options)
        self._thresholds = tuple(thresholds or ())
        if any(not 0 < threshold < 1 for threshold in self._thresholds):
            raise at_user_line(ValueError("thresholds not in (0, 1): %s." % (self._thresholds,)))

    def _target(self, labels: Any) -> Any:
        return _in_range(math_ops.cast(self._numbers(labels), dtypes.float32), 2)

    def _losses(self, logits: Any, target: Any) -> Any:
        return nn_ops.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        """The more probable class, and how probable both are."""
        keys, logistic = PredictionKeys, math_ops.sigmoid(logits, name=PredictionKeys.LOGISTIC)
        both = array_ops.concat([array_ops.zeros_like(logits), logits], -1, name="two_class_logits")
        ids = array_ops.expand_dims(math_ops.argmax(both, -1), -1, name="classes")
        return {
            keys.LOGITS: logits,
            keys.LOGISTIC: logistic,
            keys.PROBABILITIES: nn_ops.softmax(both, name=keys.PROBABILITIES),
            keys.CLASS_IDS: ids,
            keys.CLASSES: self._named(ids),
        }

    def _exports(self, predictions: Dict[str, Any]) -> Dict[str, ExportOutput]:
        made = self._classification(predictions[PredictionKeys.PROBABILITIES])
        return {
            DEFAULT_SERVING_SIGNATURE_DEF_KEY: made,
            _CLASSIFY: made,
            _REGRESS: RegressionOutput(predictions[PredictionKeys.LOGISTIC]),
            _PREDICT: PredictOutput(predictions),
        }

    def _metrics(self, predictions: Dict[str, Any], target: Any, weights: Any) -> Dict[str, Any]:
        """How right the model is, and how right one that always says the same would be."""
        keys, logistic, ids = MetricKeys, predictions[PredictionKeys.LOGISTIC], predictions[PredictionKeys.CLASS_IDS]
        label_mean = _mean(target, weights, keys.LABEL_MEAN)
        made = {
            keys.ACCURACY: metrics.accuracy(target, ids, weights, name=keys.ACCURACY),
            keys.PRECISION: metrics.precision(target, ids, weights, name=keys.PRECISION),
            keys.RECALL: metrics.recall(target, ids, weights, name=keys.RECALL),
            keys.PREDICTION_MEAN: _mean(logistic, weights, keys.PREDICTION_MEAN),
            keys.LABEL_MEAN: label_mean,
            keys.ACCURACY_BASELINE: tuple(math_ops.maximum(mean, 1.0 - mean) for mean in label_mean),
            keys.AUC: _auc(target, logistic, weights, "ROC", keys.AUC),
            keys.AUC_PR: _auc(target, logistic, weights, "PR", keys.AUC_PR),
        }
        for at in self._thresholds:
            made.update(
                {
                    keys.ACCURACY_AT_THRESHOLD % at: _accuracy_at(target, logistic, weights, at),
                    keys.PRECISION_AT_THRESHOLD % at: _first(metrics.precision_at_thresholds(target, logistic, (at,), weights, name="precision_at_%s" % at)),
                    keys.RECALL_AT_THRESHOLD % at: _first(metrics.recall_at_thresholds(target, logistic, (at,), weights, name="recall_at_%s" % at)),
                }
            )
        return made


def _mean(values: Any, weights: Any, name: str) -> Tuple[Any, Any]:
    values = math_ops.cast(values, dtypes.float32)
    return metrics.mean(values, broadcast_weights(weights, values), name=name)


def _auc(labels: Any, predictions: Any, weights: Any, curve: str, name: str) -> Tuple[Any, Any]:
    if labels.dtype.base_dtype != dtypes.bool:
        tf_logging.debug("Casting %s labels to bool.", labels.dtype)
    return metrics.auc(math_ops.cast(labels, dtypes.bool), predictions, broadcast_weights(weights, predictions), curve=curve, name=name)


def _accuracy_at(labels: Any, predictions: Any, weights: Any, threshold: float) -> Tuple[Any, Any]:
    chosen = math_ops.cast(gen_ops.greater_equal(predictions, threshold), dtypes.float32)
    return metrics.accuracy(labels, chosen, weights, name="accuracy_at_%s" % threshold)


def _first(pair: Tuple[Any, Any]) -> Tuple[Any, Any]:
    return array_ops.squeeze(pair[0]), array_ops.squeeze(pair[1])


# ---- numbers ----


class _RegressionHeadWithMeanSquaredErrorLoss(_Head):
    def __init__(self, label_dimension: int = 1, weight_column: Any = None, name: Optional[str] = None, **options: Any) -> None:
        if label_dimension < 1:
            raise at_user_line(ValueError("Invalid label_dimension %s." % label_dimension))
        super().__init__(label_dimension, weight_column, name, **options)

    def _target(self, labels: Any) -> Any:
        return math_ops.cast(labels, dtypes.float32)

    def _losses(self, logits: Any, target: Any) -> Any:
        return losses.mean_squared_error(labels=target, predictions=logits, reduction=losses.Reduction.NONE)

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        return {PredictionKeys.PREDICTIONS: logits}

    def _exports(self, predictions: Dict[str, Any]) -> Dict[str, ExportOutput]:
        made = RegressionOutput(predictions[PredictionKeys.PREDICTIONS])
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: made, _REGRESS: made, _PREDICT: PredictOutput(predictions)}

    def _metrics(self, predictions: Dict[str, Any], target: Any, weights: Any) -> Dict[str, Any]:
        return {
            MetricKeys.PREDICTION_MEAN: _mean(predictions[PredictionKeys.PREDICTIONS], weights, MetricKeys.PREDICTION_MEAN),
            MetricKeys.LABEL_MEAN: _mean(target, weights, MetricKeys.LABEL_MEAN),
        }


# ---- by the names that TensorFlow has for them ----


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    name: Optional[str] = None,
) -> _Head:
    """More than two classes."""
    return _MultiClassHeadWithSoftmaxCrossEntropyLoss(n_classes, weight_column, label_vocabulary, name, loss_reduction=loss_reduction, loss_fn=loss_fn)


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    name: Optional[str] = None,
) -> _Head:
    """Two classes."""
    return _BinaryLogisticHeadWithSigmoidCrossEntropyLoss(weight_column, thresholds, label_vocabulary, name, loss_reduction=loss_reduction, loss_fn=loss_fn)


def _regression_head_with_mean_squared_error_loss(
    weight_column: Any = None, label_dimension: int = 1, loss_reduction: str = losses.Reduction.SUM, loss_fn: Any = None, name: Optional[str] = None
) -> _Head:
    """Numbers."""
    return _RegressionHeadWithMeanSquaredErrorLoss(label_dimension, weight_column, name, loss_reduction=loss_reduction, loss_fn=loss_fn)


def class_head(n_classes: int, weight_column: Any = None, label_vocabulary: Any = None, loss_reduction: str = losses.Reduction.SUM) -> _Head:
    """Two classes or more."""
    if n_classes == 2:
        return _binary_logistic_head_with_sigmoid_cross_entropy_loss(weight_column, None, label_vocabulary, loss_reduction)
    return _multi_class_head_with_softmax_cross_entropy_loss(n_classes, weight_column, label_vocabulary, loss_reduction)
