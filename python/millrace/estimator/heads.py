# SPDX-License-Identifier: Apache-2.0
"""From what a model computes to losses, predictions and metrics: one head for each kind of question."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from millrace import losses, metrics, summary, tf_logging
from millrace.estimator.export_output import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from millrace.estimator.head_inputs import check_loss_fn, checked_labels, checked_logits, in_range, of_shape, train_op_of, weights_of
from millrace.estimator.keys import MetricKeys, PredictionKeys
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.estimator.util import fn_args
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_collection, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, lookup_ops, math_ops, nn_ops, sparse_ops
from millrace.ops.control_flow_ops import group
from millrace.ops.weights_broadcast import broadcast_weights
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_CLASSIFY, _REGRESS, _PREDICT = "classification", "regression", "predict"  # names of exported signatures


class LossSpec(NamedTuple):
    """The loss that is trained; the loss of each example, before weights; the weights; the labels as numbers."""

    training_loss: Any
    unreduced_loss: Any
    weights: Any
    processed_labels: Any


class _Head:
    """What a model's outputs are: predictions, losses, metrics and exports. The loss of a batch is a sum, unless `loss_reduction` says otherwise."""

    def __init__(
        self,
        logits_dimension: Any = None,
        weight_column: Any = None,
        name: Optional[str] = None,
        loss_reduction: str = losses.Reduction.SUM,
        loss_fn: Optional[Callable[..., Any]] = None,
    ) -> None:
        if loss_reduction not in losses.Reduction.all() or loss_reduction == losses.Reduction.NONE:
            raise at_user_line(ValueError("Invalid loss_reduction: %s" % loss_reduction))
        if loss_fn is not None:
            check_loss_fn(loss_fn)
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

    _loss_dimension = 1  # how many losses an example has, and with it whether each number may have a weight

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> LossSpec:
        """The losses of logits [..., logits_dimension] and labels of the same outer shape."""
        del mode  # the loss is that of every mode
        logits = convert_to_tensor(logits)
        target = self._processed(labels, logits)
        each = self._losses(logits, target) if self._loss_fn is None else self._own_losses(logits, target, features)
        weights = weights_of(features, self._weight_column, logits, self._loss_dimension)
        return LossSpec(losses.compute_weighted_loss(each, weights, reduction=self._reduction), each, weights, target)

    def _processed(self, labels: Any, logits: Any) -> Any:
        return self._target(checked_labels(labels, logits, self._labels_dimension()))

    def _labels_dimension(self) -> int:
        return self._logits_dimension

    def _own_losses(self, logits: Any, target: Any, features: Any) -> Any:
        assert self._loss_fn is not None
        given = {"features": features} if "features" in fn_args(self._loss_fn) else {}
        with name_scope(None, "call_loss_fn", [logits, target]):
            each = self._loss_fn(labels=target, logits=logits, **given)
            message = "loss_fn must return Tensor of shape [D0, D1, ... DN, %d]. " % self._loss_dimension
            shape = array_ops.shape(logits)
            return of_shape(each, array_ops.concat([shape[:-1], [self._loss_dimension]], 0), message, "loss_shape", ("logits_shape", shape))

    def _key(self, metric: str) -> str:
        return "%s/%s" % (metric, self._name) if self._name else metric

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Optional[Callable[[Any], Any]] = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec of a model with these outputs; train_op_fn(loss), or the optimizer, makes what trains it, with what is in UPDATE_OPS."""
        if type(self)._predictions is _Head._predictions and type(self)._spec is _Head._spec:  # of a program, and without a create_estimator_spec
            raise at_user_line(NotImplementedError("Subclasses of Head must implement `create_estimator_spec()`: %s does not." % type(self).__name__))
        spec = self._spec(features, mode, logits, labels, regularization_losses, lambda loss: train_op_of(loss, train_op_fn, optimizer))
        updates = get_collection(GraphKeys.UPDATE_OPS)
        return spec._replace(train_op=group(spec.train_op, *updates)) if updates and mode == ModeKeys.TRAIN else spec

    def _spec(self, features: Any, mode: str, logits: Any, labels: Any, regularization_losses: Any, train: Callable[[Any], Any]) -> EstimatorSpec:
        keys = MetricKeys
        with name_scope(self._name, "head"):
            logits = checked_logits(logits, self._logits_dimension)
            with name_scope(None, "predictions", [logits]):
                predictions = self._predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions, export_outputs=self._exports(predictions))
            loss, each, weights, target = self.create_loss(features, mode, logits, labels)
            penalty = gen_ops.add_n(list(regularization_losses)) if regularization_losses else None
            whole = loss if penalty is None else gen_ops.add_n([loss, penalty])
            if mode == ModeKeys.EVAL:
                with name_scope(None, "metrics", [each]):
                    measures = {keys.LOSS_MEAN: metrics.mean(each, weights, name=keys.LOSS_MEAN), **self._metrics(predictions, target, weights)}
                    if penalty is not None:
                        measures[keys.LOSS_REGULARIZATION] = metrics.mean(penalty, name=keys.LOSS_REGULARIZATION)
                return EstimatorSpec(mode, predictions, whole, eval_metric_ops={self._key(key): value for key, value in measures.items()})
            train_op = train(whole)
            shown = {keys.LOSS: whole}
            if self._reduction == losses.Reduction.SUM:  # otherwise the loss is a mean already
                shown[keys.LOSS_MEAN] = loss / math_ops.reduce_sum(weights * array_ops.ones_like(each))
            if penalty is not None:
                shown[keys.LOSS_REGULARIZATION] = penalty
        with name_scope(""):
            for key, value in shown.items():
                summary.scalar(self._key(key), value)
        return EstimatorSpec(ModeKeys.TRAIN, predictions, whole, train_op)


# ---- classes ----


class _Classes(_Head):
    """A head that tells classes apart."""

    def __init__(
        self,
        n_classes: int,
        logits_dimension: int,
        weight_column: Any,
        label_vocabulary: Any,
        name: Optional[str],
        thresholds: Optional[Sequence[float]] = None,
        **options: Any,
    ) -> None:
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise at_user_line(ValueError("label_vocabulary should be a list or tuple. Given type: %s" % type(label_vocabulary)))
        super().__init__(logits_dimension, weight_column, name, **options)
        self._n_classes, self._label_vocabulary, self._thresholds = n_classes, label_vocabulary, tuple(thresholds or ())
        if any(not 0 < threshold < 1 for threshold in self._thresholds):
            raise at_user_line(ValueError("thresholds not in (0, 1): %s." % (self._thresholds,)))

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

    def _for_each(self, row: Any, of: Any) -> Any:
        return array_ops.tile(array_ops.expand_dims(row, 0), array_ops.stack([array_ops.shape(of)[0], 1]))

    def _names(self) -> Any:
        return convert_to_tensor(list(self._label_vocabulary) if self._label_vocabulary else ["%d" % i for i in range(self._n_classes)])

    def _all_classes(self, logits: Any) -> Dict[str, Any]:
        """What the columns of the probabilities are, for each example."""
        return {
            PredictionKeys.ALL_CLASS_IDS: self._for_each(math_ops.range(self._n_classes), logits),
            PredictionKeys.ALL_CLASSES: self._for_each(self._names(), logits),
        }

    def _classification(self, probabilities: Any) -> ClassificationOutput:
        return ClassificationOutput(scores=probabilities, classes=self._for_each(self._names(), probabilities))

    def _at_thresholds(self, target: Any, predictions: Any, weights: Any) -> Dict[str, Any]:
        keys, made = MetricKeys, {}
        for at in self._thresholds:
            made[keys.ACCURACY_AT_THRESHOLD % at] = _accuracy_at(target, predictions, weights, at)
            made[keys.PRECISION_AT_THRESHOLD % at] = _first(metrics.precision_at_thresholds(target, predictions, (at,), weights, name="precision_at_%s" % at))
            made[keys.RECALL_AT_THRESHOLD % at] = _first(metrics.recall_at_thresholds(target, predictions, (at,), weights, name="recall_at_%s" % at))
        return made


class _MultiClassHeadWithSoftmaxCrossEntropyLoss(_Classes):
    def __init__(self, n_classes: int, weight_column: Any = None, label_vocabulary: Any = None, name: Optional[str] = None, **options: Any) -> None:
        if n_classes is None or n_classes <= 2:
            raise at_user_line(ValueError("n_classes must be > 2: %s." % n_classes))
        super().__init__(n_classes, n_classes, weight_column, label_vocabulary, name, **options)

    def _target(self, labels: Any) -> Any:
        if self._label_vocabulary is None and not labels.dtype.is_integer:
            raise at_user_line(ValueError("Labels dtype should be integer. Instead got %s." % labels.dtype))
        return in_range(self._numbers(labels), self._n_classes)

    def _losses(self, logits: Any, target: Any) -> Any:
        return array_ops.expand_dims(losses.sparse_softmax_cross_entropy(labels=target, logits=logits, reduction=losses.Reduction.NONE), -1)

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        """The most probable class, and how probable each is."""
        ids = array_ops.expand_dims(math_ops.argmax(logits, -1, name=PredictionKeys.CLASS_IDS), -1)
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: nn_ops.softmax(logits, name=PredictionKeys.PROBABILITIES),
            PredictionKeys.CLASS_IDS: ids,
            PredictionKeys.CLASSES: self._named(ids),
            **self._all_classes(logits),
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
        super().__init__(2, 1, weight_column, label_vocabulary, name, thresholds=thresholds, **options)

    def _target(self, labels: Any) -> Any:
        return in_range(math_ops.cast(self._numbers(labels), dtypes.float32), 2)

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
            **self._all_classes(logits),
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
        return {**made, **self._at_thresholds(target, logistic, weights)}


class _MultiLabelHead(_Classes):
    """Any number of classes for each example."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Optional[Sequence[float]] = None,
        label_vocabulary: Any = None,
        name: Optional[str] = None,
        classes_for_class_based_metrics: Optional[Sequence[Any]] = None,
        **options: Any,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise at_user_line(ValueError("n_classes must be > 1 for multi-class classification. Given: %s" % n_classes))
        for threshold in thresholds or ():
            if not 0 < threshold < 1:
                raise at_user_line(ValueError("thresholds must be in (0, 1) range. Given: %s" % threshold))
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise at_user_line(ValueError("label_vocabulary must be a list or tuple. Given type: %s" % type(label_vocabulary)))
        super().__init__(n_classes, n_classes, weight_column, label_vocabulary, name, thresholds=thresholds, **options)
        if label_vocabulary is not None and len(label_vocabulary) != n_classes:
            raise at_user_line(ValueError("Length of label_vocabulary must be n_classes (%d). Given: %d" % (n_classes, len(label_vocabulary))))
        self._measured = [self._number(c) for c in classes_for_class_based_metrics or ()]

    def _number(self, measured: Any) -> int:
        if isinstance(measured, str):
            if not self._label_vocabulary:
                raise at_user_line(ValueError("label_vocabulary must be provided when classes_for_class_based_metrics are strings."))
            return list(self._label_vocabulary).index(measured)
        if not 0 <= measured < self._n_classes:
            raise at_user_line(ValueError("All classes_for_class_based_metrics must be in range [0, %d]. Given: %s" % (self._n_classes - 1, measured)))
        return measured

    def _processed(self, labels: Any, logits: Any) -> Any:
        if isinstance(labels, SparseTensor):
            values = labels.values
            if labels.dtype.base_dtype == dtypes.string:
                values = self._numbers(values)
            else:
                message = "labels must be an integer SparseTensor with values in [0, %d)" % self._n_classes
                check_ops.assert_integer(values, message=message)
                values = in_range(values, self._n_classes, message)
            labels = sparse_ops.sparse_to_indicator(SparseTensor(labels.indices, values, labels.dense_shape), self._n_classes)
            labels = math_ops.cast(labels, dtypes.int64)
        elif labels is not None:
            labels = in_range(convert_to_tensor(labels), 2, "labels must be an integer indicator Tensor with values in [0, 1]")
        return checked_labels(labels, logits, self._n_classes)

    def _losses(self, logits: Any, target: Any) -> Any:
        each = losses.sigmoid_cross_entropy(target, logits, reduction=losses.Reduction.NONE)
        return math_ops.reduce_mean(each, -1, keepdims=True)

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        """How probable each class is."""
        return {PredictionKeys.LOGITS: logits, PredictionKeys.PROBABILITIES: math_ops.sigmoid(logits, name=PredictionKeys.PROBABILITIES)}

    def _exports(self, predictions: Dict[str, Any]) -> Dict[str, ExportOutput]:
        made = self._classification(predictions[PredictionKeys.PROBABILITIES])
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: made, _CLASSIFY: made, _PREDICT: PredictOutput(predictions)}

    def _metrics(self, predictions: Dict[str, Any], target: Any, weights: Any) -> Dict[str, Any]:
        keys, probabilities = MetricKeys, predictions[PredictionKeys.PROBABILITIES]
        made = {
            keys.AUC: _auc(target, probabilities, weights, "ROC", keys.AUC),
            keys.AUC_PR: _auc(target, probabilities, weights, "PR", keys.AUC_PR),
            **self._at_thresholds(target, probabilities, weights),
        }
        for number in self._measured:
            mine, wanted = probabilities[..., number : number + 1], target[..., number : number + 1]
            if self._label_vocabulary is None:
                mean, roc, pr = (key % number for key in (keys.PROBABILITY_MEAN_AT_CLASS, keys.AUC_AT_CLASS, keys.AUC_PR_AT_CLASS))
            else:
                word = self._label_vocabulary[number]
                mean, roc, pr = (key % word for key in (keys.PROBABILITY_MEAN_AT_NAME, keys.AUC_AT_NAME, keys.AUC_PR_AT_NAME))
            made.update({mean: _mean(mine, weights, mean), roc: _auc(wanted, mine, weights, "ROC", roc), pr: _auc(wanted, mine, weights, "PR", pr)})
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
    """Numbers; inverse_link_fn makes them of the logits."""

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        name: Optional[str] = None,
        inverse_link_fn: Optional[Callable[[Any], Any]] = None,
        **options: Any,
    ) -> None:
        if label_dimension < 1:
            raise at_user_line(ValueError("Invalid label_dimension %s." % label_dimension))
        super().__init__(label_dimension, weight_column, name, **options)
        self._loss_dimension, self._inverse_link = label_dimension, inverse_link_fn

    def _target(self, labels: Any) -> Any:
        return math_ops.cast(labels, dtypes.float32)

    def _losses(self, logits: Any, target: Any) -> Any:
        return losses.mean_squared_error(labels=target, predictions=logits, reduction=losses.Reduction.NONE)

    def _predictions(self, logits: Any) -> Dict[str, Any]:
        if self._inverse_link is None:
            return {PredictionKeys.PREDICTIONS: logits}
        return {PredictionKeys.PREDICTIONS: self._inverse_link(logits), PredictionKeys.LOGITS: logits}

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


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: Optional[str] = None,
) -> _Head:
    """Numbers."""
    return _RegressionHeadWithMeanSquaredErrorLoss(label_dimension, weight_column, name, inverse_link_fn, loss_reduction=loss_reduction, loss_fn=loss_fn)


_regression_head_with_mean_squared_error_loss = _regression_head  # its name before 1.9


def class_head(n_classes: int, weight_column: Any = None, label_vocabulary: Any = None, loss_reduction: str = losses.Reduction.SUM) -> _Head:
    """Two classes or more."""
    if n_classes == 2:
        return _binary_logistic_head_with_sigmoid_cross_entropy_loss(weight_column, None, label_vocabulary, loss_reduction)
    return _multi_class_head_with_softmax_cross_entropy_loss(n_classes, weight_column, label_vocabulary, loss_reduction)
