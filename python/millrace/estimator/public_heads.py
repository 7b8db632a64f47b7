# SPDX-License-Identifier: Apache-2.0
"""The heads of tf.estimator of 1.15, as classes. The loss of a batch is a mean there."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace import losses
from millrace.estimator import heads, multi_head
from millrace.estimator.head_inputs import checked_logits, train_op_of
from millrace.estimator.spec import EstimatorSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import gen_ops, math_ops, nn_ops

_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE


class Head(heads._Head):
    """What a model's outputs are: predictions, losses, metrics and exports."""

    loss_reduction = property(lambda self: self._reduction, doc="How the losses of examples become one.")

    def loss(self, labels: Any, logits: Any, features: Any = None, mode: Any = None, regularization_losses: Any = None) -> Any:
        """The loss that is trained: that of the examples, weighted and reduced, and the regularization losses."""
        whole = self.create_loss(features, mode, checked_logits(logits, self._logits_dimension), labels).training_loss
        return whole + gen_ops.add_n(list(regularization_losses)) if regularization_losses else whole

    def create_estimator_spec(  # type: ignore[override]
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

        def train(loss: Any) -> Any:
            with control_dependencies(list(update_ops or [])):
                return train_op_of(loss, train_op_fn, optimizer, trainable_variables)

        return self._spec(features, mode, logits, labels, regularization_losses, train)

    def predictions(self, logits: Any, keys: Optional[List[str]] = None) -> Dict[str, Any]:
        """The predictions, or those of some keys."""
        made = self._predictions(checked_logits(logits, self._logits_dimension))
        unknown = [key for key in keys or () if key not in made]
        if unknown:
            raise at_user_line(ValueError("the head predicts %s, not %s" % (sorted(made), unknown)))
        return made if keys is None else {key: made[key] for key in keys}

    def metrics(self, regularization_losses: Any = None) -> Dict[str, Any]:
        """Not provided: create_estimator_spec makes the metrics of an evaluation."""
        del regularization_losses  # an error follows
        raise at_user_line(NotImplementedError("metrics as objects are not provided: create_estimator_spec gives those of an evaluation"))

    def update_metrics(self, eval_metrics: Any, features: Any, logits: Any, labels: Any, regularization_losses: Any = None, mode: Any = None) -> Any:
        """Not provided: create_estimator_spec makes the metrics of an evaluation."""
        del eval_metrics, features, logits, labels, mode  # an error follows
        return self.metrics(regularization_losses)


class BinaryClassHead(heads._BinaryLogisticHeadWithSigmoidCrossEntropyLoss, Head):
    """Two classes."""

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Optional[Sequence[float]] = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Optional[Callable[..., Any]] = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(weight_column, thresholds, label_vocabulary, name, loss_reduction=loss_reduction, loss_fn=loss_fn)


class MultiClassHead(heads._MultiClassHeadWithSoftmaxCrossEntropyLoss, Head):
    """More than two classes."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Optional[Callable[..., Any]] = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(n_classes, weight_column, label_vocabulary, name, loss_reduction=loss_reduction, loss_fn=loss_fn)


class RegressionHead(heads._RegressionHeadWithMeanSquaredErrorLoss, Head):
    """Numbers; inverse_link_fn makes them of the logits."""

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Optional[Callable[..., Any]] = None,
        inverse_link_fn: Optional[Callable[[Any], Any]] = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(label_dimension, weight_column, name, inverse_link_fn, loss_reduction=loss_reduction, loss_fn=loss_fn)


class MultiLabelHead(heads._MultiLabelHead, Head):
    """Any number of classes for each example."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Optional[Sequence[float]] = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Optional[Callable[..., Any]] = None,
        classes_for_class_based_metrics: Optional[Sequence[Any]] = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(
            n_classes, weight_column, thresholds, label_vocabulary, name, classes_for_class_based_metrics, loss_reduction=loss_reduction, loss_fn=loss_fn
        )


class MultiHead(multi_head._MultiHead, Head):
    """Several heads: their losses are added up, each with its weight. Logits and labels are dicts by the names of the heads."""


class LogisticRegressionHead(RegressionHead):
    """Probabilities: labels from 0 to 1, the cross entropy with the sigmoid of the logits."""

    def __init__(self, weight_column: Any = None, loss_reduction: str = _MEAN, name: Optional[str] = None) -> None:
        super().__init__(1, weight_column, loss_reduction, _cross_entropy, math_ops.sigmoid, name)


class PoissonRegressionHead(RegressionHead):
    """Counts: the negative logarithm of the Poisson distribution whose mean is the exponential of the logits."""

    def __init__(
        self, label_dimension: int = 1, weight_column: Any = None, loss_reduction: str = _MEAN, compute_full_loss: bool = True, name: Optional[str] = None
    ) -> None:
        def loss(labels: Any, logits: Any) -> Any:
            return nn_ops.log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss)

        super().__init__(label_dimension, weight_column, loss_reduction, loss, gen_ops.exp, name)


def _cross_entropy(labels: Any, logits: Any) -> Any:
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
