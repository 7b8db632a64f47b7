# SPDX-License-Identifier: Apache-2.0
"""Heads of tf.contrib.learn that tell classes apart."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from millrace import losses as _losses
from millrace import metrics, nn
from millrace.contrib.learn import head_measures as measures
from millrace.contrib.learn.head import BinaryLogisticHead, Head, SingleHead, as_column, custom_loss, served
from millrace.contrib.learn.keys import MetricKey, ProblemType
from millrace.contrib.learn.keys import PredictionKey as P
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops, lookup_ops, math_ops
from millrace.ops.sparse_ops import sparse_to_indicator


class MultiClassHead(SingleHead):
    """One of several classes; label_keys are the names of labels that are strings."""

    default_name = "multi_class_head"

    def __init__(self, n_classes: int, loss_fn: Any = None, metric_class_ids: Any = None, label_keys: Any = None, **names: Any) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, **names)
        if n_classes is None or n_classes <= 2:
            raise at_user_line(ValueError("n_classes must be > 2: %s." % n_classes))
        if label_keys is not None and len(label_keys) != n_classes:
            raise at_user_line(ValueError("Length of label_keys must equal n_classes."))
        self._loss, self._keys, self._class_ids = loss_fn, label_keys, _class_ids(metric_class_ids, n_classes)

    def checked_labels(self, labels: Any) -> Any:
        """The numbers of the classes; those of fewer than 32 bits, as images' labels often are, as int64."""
        labels = super().checked_labels(labels)
        if labels.dtype.is_integer and labels.dtype not in (dtypes.int32, dtypes.int64):
            labels = math_ops.cast(labels, dtypes.int64)
        if self._keys is not None:
            return lookup_ops.index_table_from_tensor(self._keys, name="label_id_lookup").lookup(labels)
        return labels

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """Cross entropies, unless the user has a loss."""
        if self._loss is not None:
            return custom_loss(self._loss)(labels, logits, weights)
        if not labels.dtype.is_integer:
            raise at_user_line(ValueError("Labels dtype should be integer. Instead got %s." % labels.dtype))
        column = labels.get_shape().ndims == 2
        each = nn.sparse_softmax_cross_entropy_with_logits(labels=array_ops.squeeze(labels, [1]) if column else labels, logits=logits)
        return measures.weighted_loss(as_column(each) if column else each, weights)

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The class, the probabilities of all, and the logits."""
        with name_scope("predictions", values=[logits]):
            classes = math_ops.argmax(logits, 1, name=P.CLASSES)
            if self._keys is not None:
                classes = lookup_ops.index_to_string_table_from_tensor(self._keys, name="class_string_lookup").lookup(classes)
            return {P.LOGITS: logits, P.PROBABILITIES: nn.softmax(logits, name=P.PROBABILITIES), P.CLASSES: classes}

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """Accuracy, and means for the classes that were asked for."""
        if self._keys is not None:
            predictions = {**predictions, P.CLASSES: math_ops.argmax(predictions[P.LOGITS], 1)}
        return measures.of_classes(predictions, labels, weights, self._class_ids)

    def alternatives(self, predictions: Dict[str, Any]) -> Dict[Any, Any]:
        """Probabilities, and the names of the classes."""
        return {self._head_name: (self._problem_type, served(predictions[P.PROBABILITIES], self._logits_dimension, self._keys))}


def _class_ids(given: Any, n_classes: int) -> Tuple[int, ...]:
    ids = tuple(given or ())
    if any(not 0 <= i < n_classes for i in ids):
        raise at_user_line(ValueError("Class IDs %s are not within 0 and %d." % (ids, n_classes)))
    return ids


class BinarySvmHead(SingleHead):
    """On which side of a plane an example lies."""

    default_name = "binary_svm_head"

    def __init__(self, **names: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, **names)

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """How far examples lie within the margin."""
        each = _losses.hinge_loss(labels=as_column(labels), logits=logits, reduction=_losses.Reduction.NONE)
        return measures.weighted_loss(each, weights)

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The class, and the logits."""
        with name_scope("predictions", values=[logits]):
            both = array_ops.concat([array_ops.zeros_like(logits), logits], 1)
            return {P.LOGITS: logits, P.CLASSES: math_ops.argmax(both, 1, name=P.CLASSES)}

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """Accuracy."""
        classes = array_ops.reshape(predictions[P.CLASSES], [-1])
        weights = weights if weights is None or weights.get_shape().ndims == 0 else array_ops.reshape(weights, [-1])
        return {MetricKey.ACCURACY: metrics.accuracy(math_ops.to_int64(array_ops.reshape(labels, [-1])), classes, weights)}


class MultiLabelHead(SingleHead):
    """Which of several classes are there: labels are [batch, classes] of 0 and 1, or the numbers of classes as a SparseTensor."""

    default_name = "multi_label_head"

    def __init__(self, n_classes: int, loss_fn: Any = None, metric_class_ids: Any = None, **names: Any) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, **names)
        self._loss, self._class_ids = loss_fn, _class_ids(metric_class_ids, n_classes)

    def checked_labels(self, labels: Any) -> Any:
        """The classes as 0 and 1."""
        if not isinstance(labels, (SparseTensor, SparseTensorValue)):
            return super().checked_labels(labels)
        if self._logits_dimension < 2:
            raise at_user_line(ValueError("Must set num_classes >= 2 when passing labels as a SparseTensor."))
        labels = labels if isinstance(labels, SparseTensor) else SparseTensor(*labels)
        numbers = SparseTensor(labels.indices, math_ops.to_int64(labels.values), labels.dense_shape)
        return math_ops.to_int64(sparse_to_indicator(numbers, self._logits_dimension))

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """Cross entropies, unless the user has a loss."""
        if self._loss is not None:
            return custom_loss(self._loss)(labels, logits, weights)
        return measures.weighted_loss(nn.sigmoid_cross_entropy_with_logits(labels=math_ops.to_float(labels), logits=logits), weights)

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The classes, their probabilities, and the logits."""
        with name_scope("predictions", values=[logits]):
            classes = math_ops.cast(gen_ops.greater(logits, 0), dtypes.int64, name=P.CLASSES)
            return {P.LOGITS: logits, P.PROBABILITIES: math_ops.sigmoid(logits, name=P.PROBABILITIES), P.CLASSES: classes}

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """Accuracy, areas below curves, and means for the classes that were asked for."""
        return measures.of_many_labels(predictions, labels, weights, self._class_ids)

    def alternatives(self, predictions: Dict[str, Any]) -> Dict[Any, Any]:
        """Probabilities, and the names of the classes."""
        return {self._head_name: (self._problem_type, served(predictions[P.PROBABILITIES], self._logits_dimension))}


def multi_class_head(
    n_classes: int,
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: Optional[str] = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
    label_keys: Any = None,
) -> Head:
    """A head of classes, each example of one. Of two classes the logit is one number."""
    if n_classes is None or n_classes < 2:
        raise at_user_line(ValueError("n_classes must be > 1 for classification: %s." % n_classes))
    names = {"label_name": label_name, "weight_column_name": weight_column_name, "head_name": head_name, "centered": enable_centered_bias}
    if n_classes == 2:
        if metric_class_ids:
            raise at_user_line(ValueError("metric_class_ids invalid for n_classes==2."))
        if label_keys:
            raise at_user_line(ValueError("label_keys is not supported for n_classes=2."))
        return BinaryLogisticHead(loss_fn, thresholds, **names)
    if thresholds:
        raise at_user_line(ValueError("thresholds is not supported for n_classes>2."))
    return MultiClassHead(n_classes, loss_fn, metric_class_ids, label_keys, **names)


_multi_class_head = multi_class_head


def binary_svm_head(
    label_name: Any = None, weight_column_name: Any = None, enable_centered_bias: bool = False, head_name: Optional[str] = None, thresholds: Any = None
) -> Head:
    """A head of two classes with a margin between them."""
    if thresholds:
        raise at_user_line(NotImplementedError("thresholds of binary_svm_head are not provided: its logits are no probabilities."))
    return BinarySvmHead(label_name=label_name, weight_column_name=weight_column_name, head_name=head_name, centered=enable_centered_bias)


def multi_label_head(
    n_classes: int,
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: Optional[str] = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
) -> Head:
    """A head of classes, each example of any of them."""
    if n_classes < 2:
        raise at_user_line(ValueError("n_classes must be > 1 for classification."))
    if thresholds:
        raise at_user_line(NotImplementedError("thresholds of multi_label_head are not provided: compare its probabilities in a metric."))
    return MultiLabelHead(
        n_classes, loss_fn, metric_class_ids, label_name=label_name, weight_column_name=weight_column_name, head_name=head_name, centered=enable_centered_bias
    )
