# SPDX-License-Identifier: Apache-2.0
"""Estimators whose models are made already: linear ones, deep ones and both together."""
from __future__ import annotations

import math
from typing import Any, Callable, List, Optional, Sequence

from millrace import feature_column, layers, summary
from millrace.estimator.estimator import Estimator
from millrace.estimator.heads import Head, binary_head, classes_head, regression_head
from millrace.estimator.spec import EstimatorSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import nn_ops
from millrace.ops.variable_scope import variable_scope
from millrace.ops.variables import trainable_variables

_OPTIMIZERS = {"Adagrad": "AdagradOptimizer", "Adam": "AdamOptimizer", "Ftrl": "FtrlOptimizer", "RMSProp": "RMSPropOptimizer", "SGD": "GradientDescentOptimizer"}


def _optimizer(given: Any, rate: float) -> Any:
    from millrace import train
    if isinstance(given, str):
        if given not in _OPTIMIZERS:
            raise at_user_line(ValueError("Unsupported optimizer name: %s. Supported names are: %s" % (given, sorted(_OPTIMIZERS))))
        return getattr(train, _OPTIMIZERS[given])(rate)
    return given() if callable(given) and not hasattr(given, "apply_gradients") else given


def _deep(features: Any, columns: Any, hidden_units: Sequence[int], activation: Any, dropout: Optional[float], training: bool, outputs: int) -> Any:
    with variable_scope("dnn"):
        with variable_scope("input_from_feature_columns"):
            net = feature_column.input_layer(features, columns)
        for i, units in enumerate(hidden_units):
            net = layers.dense(net, units, activation, name="hiddenlayer_%d" % i)
            if dropout is not None and training:
                net = layers.dropout(net, dropout, training=True)
            summary.histogram("dnn/hiddenlayer_%d/activation" % i, net)
        return layers.dense(net, outputs, name="logits")


def _linear(features: Any, columns: Any, outputs: int) -> Any:
    with variable_scope("linear"):
        return feature_column.linear_model(features, columns, outputs)


class _Part:
    """A half of a model: what it computes, and what trains it."""

    def __init__(self, scope: str, logits: Callable[[Any, bool, int], Any], optimizer: Any, rate: float) -> None:
        self.scope, self.logits, self.optimizer, self.rate = scope, logits, optimizer, rate


def _model_fn(head: Head, parts: List[_Part]) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if not isinstance(features, dict):
            raise at_user_line(ValueError("features should be a dictionary of `Tensor`s. Given type: %s" % type(features)))
        training = mode == "train"
        logits: Any = None
        for part in parts:
            made = part.logits(features, training, head.logits_dimension)
            logits = made if logits is None else logits + made

        def train_op(loss: Any, global_step: Any) -> Any:
            ops = [_optimizer(p.optimizer, p.rate).minimize(loss, var_list=trainable_variables(p.scope)) for p in parts]
            with control_dependencies(ops):
                return global_step.assign_add(1).op
        return head.spec(mode, logits, labels, features, train_op)
    return model_fn


def _deep_part(hidden_units: Any, columns: Any, activation: Any, dropout: Any, optimizer: Any) -> _Part:
    if not hidden_units or not columns:
        raise at_user_line(ValueError("hidden_units and feature_columns must be given for a deep model."))
    return _Part("dnn", lambda features, training, n: _deep(features, columns, hidden_units, activation, dropout, training, n), optimizer, 0.05)


def _linear_part(columns: Any, optimizer: Any) -> _Part:
    columns = list(columns)
    return _Part("linear", lambda features, training, n: _linear(features, columns, n), optimizer, min(0.2, 1.0 / math.sqrt(max(len(columns), 1))))


def _classes(n_classes: int, weight_column: Any, label_vocabulary: Any) -> Head:
    return binary_head(weight_column, label_vocabulary) if n_classes == 2 else classes_head(n_classes, weight_column, label_vocabulary)


class DNNClassifier(Estimator):
    """A deep network that tells classes apart."""

    def __init__(self, hidden_units: Any, feature_columns: Any, model_dir: Optional[str] = None, n_classes: int = 2, weight_column: Any = None,
                 label_vocabulary: Any = None, optimizer: Any = "Adagrad", activation_fn: Any = nn_ops.relu, dropout: Optional[float] = None,
                 input_layer_partitioner: Any = None, config: Any = None, warm_start_from: Any = None) -> None:
        super().__init__(_model_fn(_classes(n_classes, weight_column, label_vocabulary), [
            _deep_part(hidden_units, feature_columns, activation_fn, dropout, optimizer)]), model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """A deep network that tells numbers."""

    def __init__(self, hidden_units: Any, feature_columns: Any, model_dir: Optional[str] = None, label_dimension: int = 1, weight_column: Any = None,
                 optimizer: Any = "Adagrad", activation_fn: Any = nn_ops.relu, dropout: Optional[float] = None, input_layer_partitioner: Any = None,
                 config: Any = None, warm_start_from: Any = None) -> None:
        super().__init__(_model_fn(regression_head(label_dimension, weight_column), [
            _deep_part(hidden_units, feature_columns, activation_fn, dropout, optimizer)]), model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(Estimator):
    """A linear model that tells classes apart."""

    def __init__(self, feature_columns: Any, model_dir: Optional[str] = None, n_classes: int = 2, weight_column: Any = None, label_vocabulary: Any = None,
                 optimizer: Any = "Ftrl", config: Any = None, partitioner: Any = None, warm_start_from: Any = None) -> None:
        super().__init__(_model_fn(_classes(n_classes, weight_column, label_vocabulary), [_linear_part(feature_columns, optimizer)]),
                         model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """A linear model that tells numbers."""

    def __init__(self, feature_columns: Any, model_dir: Optional[str] = None, label_dimension: int = 1, weight_column: Any = None, optimizer: Any = "Ftrl",
                 config: Any = None, partitioner: Any = None, warm_start_from: Any = None) -> None:
        super().__init__(_model_fn(regression_head(label_dimension, weight_column), [_linear_part(feature_columns, optimizer)]),
                         model_dir, config, warm_start_from=warm_start_from)


def _both(linear_columns: Any, linear_optimizer: Any, deep_columns: Any, deep_optimizer: Any, hidden_units: Any, activation: Any, dropout: Any) -> List[_Part]:
    parts = []
    if deep_columns:
        parts.append(_deep_part(hidden_units, deep_columns, activation, dropout, deep_optimizer))
    if linear_columns:
        parts.append(_linear_part(linear_columns, linear_optimizer))
    if not parts:
        raise at_user_line(ValueError("Either linear_feature_columns or dnn_feature_columns must be defined."))
    return parts


class DNNLinearCombinedClassifier(Estimator):
    """A linear and a deep model that tell classes apart together."""

    def __init__(self, model_dir: Optional[str] = None, linear_feature_columns: Any = None, linear_optimizer: Any = "Ftrl", dnn_feature_columns: Any = None,
                 dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None, dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Optional[float] = None,
                 n_classes: int = 2, weight_column: Any = None, label_vocabulary: Any = None, config: Any = None, **unused: Any) -> None:
        super().__init__(_model_fn(_classes(n_classes, weight_column, label_vocabulary), _both(
            linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout)), model_dir, config)


class DNNLinearCombinedRegressor(Estimator):
    """A linear and a deep model that tell numbers together."""

    def __init__(self, model_dir: Optional[str] = None, linear_feature_columns: Any = None, linear_optimizer: Any = "Ftrl", dnn_feature_columns: Any = None,
                 dnn_optimizer: Any = "Adagrad", dnn_hidden_units: Any = None, dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Optional[float] = None,
                 label_dimension: int = 1, weight_column: Any = None, config: Any = None, **unused: Any) -> None:
        super().__init__(_model_fn(regression_head(label_dimension, weight_column), _both(
            linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout)), model_dir, config)
