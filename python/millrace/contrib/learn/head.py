# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Heads of tf.contrib.learn: what makes predictions, a loss and metrics of logits. Those of numbers, of two classes and of several heads;
head_classes.py has those of more classes."""

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace import metrics, nn
from millrace.contrib import layers
from millrace.contrib.learn import head_measures as measures
from millrace.contrib.learn.keys import MetricKey, ModeKeys, ProblemType
from millrace.contrib.learn.keys import PredictionKey as P
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import Dimension
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops, string_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.train.rules import AdagradOptimizer

_CENTERED_BIAS_RATE = 0.1


def no_op_train_fn(loss: Any) -> Any:
    """Trains nothing."""
    del loss  # nothing is made of it
    return control_flow_ops.no_op()


class Head(metaclass=abc.ABCMeta):
    """Makes ModelFnOps of logits, or of the layer below them."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abc.abstractmethod
    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None, logits_input: Any = None, scope: Any = None
    ) -> ModelFnOps:
        """The model. train_op_fn(loss) trains; no_op_train_fn does not."""


class SingleHead(Head):
    """A head of one kind: a subclass says what losses, predictions and metrics are."""

    default_name = "head"

    def __init__(
        self, problem_type: int, logits_dimension: int, label_name: Any = None, weight_column_name: Any = None, head_name: Any = None, centered: bool = False
    ) -> None:
        if problem_type is None:
            raise at_user_line(ValueError("Invalid problem_type %s." % problem_type))
        if logits_dimension is None or logits_dimension < 1:
            raise at_user_line(ValueError("Invalid logits_dimension %s." % logits_dimension))
        self._problem_type, self._logits_dimension, self._label_name = problem_type, logits_dimension, label_name
        self._weight_column_name, self._head_name, self._centered = weight_column_name, head_name, centered

    logits_dimension = property(lambda self: self._logits_dimension, doc="How many logits an example has.")  # type: ignore[assignment]
    problem_type = property(lambda self: self._problem_type, doc="A ProblemType.")
    label_name = property(lambda self: self._label_name, doc="The name of the labels among several, or None.")
    weight_column_name = property(lambda self: self._weight_column_name, doc="The name of the feature that weighs examples, or None.")
    head_name = property(lambda self: self._head_name, doc="Its name, or None.")

    @abc.abstractmethod
    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """(what is trained, what is told)."""

    @abc.abstractmethod
    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The answers, by PredictionKey."""

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """What is measured beside the loss."""
        del predictions, labels, weights  # the loss says it
        return {}

    def alternatives(self, predictions: Dict[str, Any]) -> Dict[Any, Any]:
        """What is served."""
        return {self._head_name: (self._problem_type, predictions)}

    def checked_labels(self, labels: Any) -> Any:
        """Labels as a tensor."""
        if isinstance(labels, (SparseTensor, SparseTensorValue)):
            raise at_user_line(ValueError("SparseTensor is not supported."))
        return convert_to_tensor(labels, name="labels")

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None, logits_input: Any = None, scope: Any = None
    ) -> ModelFnOps:
        """The model."""
        with variable_scope(scope, self._head_name or self.default_name, values=list(features.values()) if isinstance(features, dict) else None):
            logits = self._logits(logits_input, logits)
            if mode == ModeKeys.INFER or labels is None:
                labels = None
            else:
                if isinstance(labels, dict) and self._label_name is not None:
                    labels = labels[self._label_name]
                labels = self.checked_labels(labels)
            bias = self._bias() if self._centered else None
            if bias is not None:
                logits = nn.bias_add(logits, bias)
            predictions = self.predictions(logits)
            loss, train_op, measured = None, None, None
            if labels is not None:
                weights = self._weights(features)
                loss, told = self.losses(labels, logits, weights)
                _summarize(measures.tagged(self._head_name, MetricKey.LOSS), told)
                if mode == ModeKeys.TRAIN:
                    train_op = self._train(loss, train_op_fn, bias, array_ops.shape(logits)[0], labels, weights)
                measured = {MetricKey.LOSS: metrics.mean(told), **self.metrics(predictions, labels, weights)}
                measured = {measures.tagged(self._head_name, key): value for key, value in measured.items()}
            return ModelFnOps(mode, predictions, loss, train_op, measured, self.alternatives(predictions))

    def _logits(self, below: Any, logits: Any) -> Any:
        if below is not None and logits is not None:
            raise at_user_line(ValueError("Both logits and logits_input supplied: %s, %s." % (logits, below)))
        if logits is not None:
            logits = convert_to_tensor(logits, name="logits")
            if logits.get_shape().ndims is not None:
                logits.get_shape()[-1].assert_is_compatible_with(Dimension(self._logits_dimension))
            return logits
        if below is None:
            raise at_user_line(ValueError("Neither logits nor logits_input supplied."))
        return layers.linear(convert_to_tensor(below), self._logits_dimension, scope="logits")

    def _weights(self, features: Any) -> Any:
        name = self._weight_column_name
        if not name:
            return None
        if name not in features:
            raise at_user_line(ValueError("Weights %s missing from features." % name))
        return math_ops.to_float(features[name])

    def _bias(self) -> Any:
        bias = get_variable("centered_bias_weight", [self._logits_dimension], initializer=init_ops.zeros_initializer())
        for i in range(self._logits_dimension):
            _summary().scalar("centered_bias/bias_%d" % i, bias[i])
        return bias

    def _train(self, loss: Any, train_op_fn: Any, bias: Any, count: Any, labels: Any, weights: Any) -> Any:
        if train_op_fn is None:
            raise at_user_line(ValueError("train_op_fn can not be None in TRAIN mode"))
        train_op = train_op_fn(loss)
        if bias is None:
            return train_op
        with name_scope("centered_bias_step"):
            alone = array_ops.reshape(array_ops.tile(bias, [count]), [count, self._logits_dimension])
            step = AdagradOptimizer(_CENTERED_BIAS_RATE).minimize(self.losses(labels, alone, weights)[0], var_list=[bias])
        return control_flow_ops.group(train_op, step)


def _summary() -> Any:
    from millrace import summary

    return summary


def _summarize(tag: str, value: Any) -> None:
    with name_scope(""):  # tags are those of the whole model
        _summary().scalar(tag, value)


def as_column(values: Any) -> Any:
    """[batch] as [batch, 1]."""
    return array_ops.expand_dims(values, 1) if values.get_shape().ndims == 1 else values


def custom_loss(function: Callable[..., Any]) -> Callable[..., Tuple[Any, Any]]:
    """A loss of the user's, which is trained as it is told."""

    def losses(labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        loss = function(labels, logits) if weights is None else function(labels, logits, weights)
        return loss, loss

    return losses


class RegressionHead(SingleHead):
    """Numbers, as far off as the square of the difference."""

    default_name = "regression_head"

    def __init__(self, label_dimension: int, link_fn: Any, poisson: bool, **names: Any) -> None:
        super().__init__(ProblemType.LINEAR_REGRESSION, label_dimension, **names)
        self._link, self._poisson = link_fn, poisson

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """The mean squares, or Poisson's negative logarithms of probability."""
        labels, logits = math_ops.to_float(as_column(labels)), as_column(logits)
        if self._poisson:
            return measures.weighted_loss(nn.log_poisson_loss(targets=labels, log_input=logits, compute_full_loss=True), weights)
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        return measures.weighted_loss(gen_ops.square(logits - labels), weights)

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """Scores: what the link makes of logits."""
        with name_scope("predictions", values=[logits]):
            scores = array_ops.squeeze(logits, [1], name=P.SCORES) if self._logits_dimension == 1 else logits
            return {P.SCORES: scores if self._link is None else self._link(scores)}


class BinaryLogisticHead(SingleHead):
    """Whether something holds, by the logarithm of the odds."""

    default_name = "binary_logistic_head"

    def __init__(self, loss_fn: Any = None, thresholds: Any = None, **names: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, **names)
        self._loss, self._thresholds = loss_fn, tuple(thresholds or (0.5,))

    def losses(self, labels: Any, logits: Any, weights: Any) -> Tuple[Any, Any]:
        """Cross entropies, unless the user has a loss."""
        labels = as_column(labels)
        if self._loss is not None:
            return custom_loss(self._loss)(labels, logits, weights)
        return measures.weighted_loss(nn.sigmoid_cross_entropy_with_logits(labels=math_ops.to_float(labels), logits=logits), weights)

    def predictions(self, logits: Any) -> Dict[str, Any]:
        """The class, its probabilities, and what they come from."""
        with name_scope("predictions", values=[logits]):
            both = array_ops.concat([array_ops.zeros_like(logits), logits], 1, name="two_class_logits")
            return {
                P.LOGITS: logits,
                P.LOGISTIC: math_ops.sigmoid(logits, name=P.LOGISTIC),
                P.PROBABILITIES: nn.softmax(both, name=P.PROBABILITIES),
                P.CLASSES: math_ops.argmax(both, 1, name=P.CLASSES),
            }

    def metrics(self, predictions: Dict[str, Any], labels: Any, weights: Any) -> Dict[str, Any]:
        """Accuracy, areas below curves, and means."""
        return measures.of_two_classes(predictions, labels, weights, self._thresholds)

    def alternatives(self, predictions: Dict[str, Any]) -> Dict[Any, Any]:
        """Probabilities, and the names of the classes."""
        return {self._head_name: (self._problem_type, served(predictions[P.PROBABILITIES], 2))}


def served(probabilities: Any, n_classes: int, label_keys: Any = None) -> Dict[str, Any]:
    """Probabilities with the names of classes for each example."""
    names = string_ops.as_string(math_ops.range(n_classes)) if label_keys is None else constant(list(label_keys))
    count = array_ops.shape(probabilities)[0]
    return {P.CLASSES: array_ops.tile(array_ops.expand_dims(names, 0), array_ops.stack([count, 1])), P.PROBABILITIES: probabilities}


class LossOnlyHead(Head):
    """A loss that nothing is predicted by, to be trained beside others."""

    def __init__(self, loss_fn: Callable[[], Any], head_name: Optional[str] = None) -> None:
        self._loss_fn, self._head_name = loss_fn, head_name or "loss_only_head"

    head_name = property(lambda self: self._head_name, doc="Its name.")
    logits_dimension = property(lambda self: 0, doc="It takes none.")  # type: ignore[assignment]

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None, logits_input: Any = None, scope: Any = None
    ) -> ModelFnOps:
        """The loss."""
        ModeKeys.validate(mode)
        if mode == ModeKeys.TRAIN and train_op_fn is None:
            raise at_user_line(ValueError("train_op_fn can not be None in TRAIN mode"))
        with variable_scope(scope, self._head_name):
            loss = self._loss_fn()
            if isinstance(loss, (list, tuple)):
                loss = math_ops.add_n(list(loss))
            _summarize(measures.tagged(self._head_name, MetricKey.LOSS), loss)
            loss = None if mode == ModeKeys.INFER else loss
            train_op = train_op_fn(loss) if mode == ModeKeys.TRAIN else None
            return ModelFnOps(mode, {}, loss, train_op, {}, {})


class MultiHead(Head):
    """Several heads with names, whose losses are trained together."""

    def __init__(self, heads: Sequence[Any], loss_merger: Callable[[List[Any]], Any]) -> None:
        for head in heads:
            if not head.head_name:
                raise at_user_line(ValueError("Members of MultiHead must have names."))
        self._heads, self._merge = list(heads), loss_merger
        self._logits_dimension = sum(head.logits_dimension for head in heads)

    logits_dimension = property(lambda self: self._logits_dimension, doc="How many logits an example has.")  # type: ignore[assignment]

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None, logits_input: Any = None, scope: Any = None
    ) -> ModelFnOps:
        """The models of the heads as one; logits are one tensor, or a dict by the names of heads."""
        ModeKeys.validate(mode)
        if mode == ModeKeys.TRAIN and train_op_fn is None:
            raise at_user_line(ValueError("train_op_fn can not be None in TRAIN mode"))
        with variable_scope(scope, "multi_head"):
            if logits is None:
                parts: Dict[str, Any] = {}
            else:
                parts = logits if isinstance(logits, dict) else self._split(convert_to_tensor(logits))
            made = [
                head.create_model_fn_ops(features, mode, labels, no_op_train_fn, parts.get(head.head_name), None if head.head_name in parts else logits_input)
                for head in self._heads
            ]
        measured = {key: value for ops in made for key, value in ops.eval_metric_ops.items()}
        predictions = {(head.head_name, key): value for head, ops in zip(self._heads, made) for key, value in (ops.predictions or {}).items()}
        if mode == ModeKeys.TRAIN:
            loss = self._merge([ops.loss for ops in made])
            train_op = control_flow_ops.group(train_op_fn(loss), *[ops.train_op for ops in made])
            return ModelFnOps(mode, None, loss, train_op, measured)
        if mode == ModeKeys.INFER:
            return ModelFnOps(mode, predictions, output_alternatives={name: value for ops in made for name, value in (ops.output_alternatives or {}).items()})
        return ModelFnOps(mode, predictions, self._merge([ops.loss for ops in made]), eval_metric_ops=measured)

    def _split(self, logits: Any) -> Dict[str, Any]:
        made, begin = {}, 0
        for head in self._heads:
            made[head.head_name] = logits[:, begin : begin + head.logits_dimension]
            begin += head.logits_dimension
        return made


def regression_head(
    label_name: Any = None,
    weight_column_name: Any = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: Any = None,
    link_fn: Any = None,
) -> Head:
    """A head of numbers; link_fn makes scores of logits."""
    names = {"label_name": label_name, "weight_column_name": weight_column_name, "head_name": head_name, "centered": enable_centered_bias}
    return RegressionHead(label_dimension, link_fn, False, **names)


def poisson_regression_head(
    label_name: Any = None, weight_column_name: Any = None, label_dimension: int = 1, enable_centered_bias: bool = False, head_name: Any = None
) -> Head:
    """A head of counts: logits are the logarithms of the means."""
    names = {"label_name": label_name, "weight_column_name": weight_column_name, "head_name": head_name, "centered": enable_centered_bias}
    return RegressionHead(label_dimension, gen_ops.exp, True, **names)


def loss_only_head(loss_fn: Callable[[], Any], head_name: Optional[str] = None) -> Head:
    """A head of a loss alone."""
    return LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Any], loss_weights: Optional[Sequence[float]] = None) -> Head:
    """Several heads, whose losses are added, times weights."""

    def merged(losses: List[Any]) -> Any:
        if loss_weights is None:
            return math_ops.add_n(losses)
        if len(losses) != len(loss_weights):
            raise at_user_line(ValueError("losses and loss_weights must have the same length, got %d and %d" % (len(losses), len(loss_weights))))
        return math_ops.add_n([loss * weight for loss, weight in zip(losses, loss_weights)])

    return MultiHead(heads, merged)
