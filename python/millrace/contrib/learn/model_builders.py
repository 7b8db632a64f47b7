# SPDX-License-Identifier: Apache-2.0
"""The linear and deep models of tf.contrib.learn: logits of columns, a head on them, and the optimizers."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

from millrace import feature_column, nn, summary
from millrace.contrib import feature_columns as columns_of_contrib
from millrace.contrib import layers
from millrace.contrib.feature_columns.base import _Column
from millrace.contrib.layers_training import optimize_loss
from millrace.contrib.learn.head import Head, as_column
from millrace.contrib.learn.keys import ModeKeys
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.contrib.learn.sdca_model import sdca_model_fn
from millrace.contrib.linear_optimizer import SDCAOptimizer
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, get_collection
from millrace.ops import control_flow_ops
from millrace.ops.variable_scope import variable_scope
from millrace.train.global_step import get_global_step
from millrace.train.optimizer import Optimizer
from millrace.train.rules import FtrlOptimizer

_DEEP_RATE, _LINEAR_RATE = 0.05, 0.2


def _by_name(features: Any) -> Dict[Any, Any]:
    return features if isinstance(features, dict) else {"": features}


def _of_core(columns: Any) -> bool:
    """Whether the columns are those of tf.feature_column."""
    return all(not isinstance(column, _Column) for column in columns)


def _made(optimizer: Any) -> Any:
    """An optimizer, or the name that optimize_loss takes."""
    made = optimizer() if callable(optimizer) and not isinstance(optimizer, (str, type, Optimizer)) else optimizer
    if not hasattr(made, "compute_gradients") and hasattr(made, "get_train_step"):
        raise at_user_line(ValueError("SDCAOptimizer trains LinearClassifier and LinearRegressor alone: use tf.train.FtrlOptimizer."))
    return made


def usual_linear_rate(count: int) -> float:
    """The rate of a linear model of so many columns."""
    return min(_LINEAR_RATE, 1.0 / math.sqrt(max(count, 1)))


def _summarize_layer(value: Any, tag: str) -> None:
    summary.scalar("%s/fraction_of_zero_values" % tag, nn.zero_fraction(value))
    summary.histogram("%s/activation" % tag, value)


def deep_logits(
    features: Any, columns: Any, hidden_units: Any, units: int, activation_fn: Any, dropout: Optional[float], parent: str = "dnn", trainable: bool = True
) -> Any:
    """Layers above what columns make of features; variables are in the collection `parent`. `dropout` is None unless it is to be trained."""
    with variable_scope(parent, values=list(features.values())):
        with variable_scope("input_from_feature_columns", values=list(features.values())) as scope:
            if _of_core(columns):
                net = feature_column.input_layer(features, columns, weight_collections=[parent], trainable=trainable)
            else:
                net = columns_of_contrib.input_from_feature_columns(features, columns, [parent], trainable, scope)
        for i, size in enumerate(hidden_units):
            with variable_scope("hiddenlayer_%d" % i, values=[net]) as scope:
                net = layers.fully_connected(net, size, activation_fn=activation_fn, variables_collections=[parent], trainable=trainable, scope=scope)
                if dropout is not None:
                    net = layers.dropout(net, keep_prob=1.0 - dropout)
            _summarize_layer(net, scope.name)
        with variable_scope("logits", values=[net]) as scope:
            logits = layers.fully_connected(net, units, activation_fn=None, variables_collections=[parent], trainable=trainable, scope=scope)
        _summarize_layer(logits, scope.name)
        return logits


def linear_logits(features: Any, columns: Any, units: int, joint: bool, parent: str = "linear", trainable: bool = True) -> Any:
    """Weighted sums of what columns make of features; variables are in the collection `parent`."""
    with variable_scope(parent, values=list(features.values())) as scope:
        if _of_core(columns):
            if joint:
                raise at_user_line(NotImplementedError("_joint_weights of columns of tf.feature_column are not provided: use those of tf.contrib.layers."))
            return feature_column.linear_model(features, columns, units=units, weight_collections=[parent], trainable=trainable)
        build: Any = columns_of_contrib.joint_weighted_sum_from_feature_columns if joint else columns_of_contrib.weighted_sum_from_feature_columns
        return build(features, columns, units, [parent], trainable, scope)[0]


def _trained(loss: Any, optimizer: Any, rate: float, norm: Optional[float], name: str, increment: bool = True, multipliers: Any = None) -> Any:
    return optimize_loss(
        loss,
        get_global_step(),
        rate,
        _made(optimizer),
        gradient_multipliers=multipliers,
        clip_gradients=norm,
        name=name,
        variables=get_collection(name),
        summaries=[],
        increment_global_step=increment,
    )


def _below(scope: str, head: Head, features: Any, mode: str, labels: Any, train_op: Any, logits: Any) -> ModelFnOps:
    """The head on logits; its variables are those of the scope, whose names are absolute."""
    with variable_scope(scope, auxiliary_name_scope=False):
        return head.create_model_fn_ops(features, mode, labels, train_op, logits)


def linear_model_fn(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any = None) -> ModelFnOps:
    """A linear model. params: head, feature_columns, optimizer, gradient_clip_norm, joint_weights."""
    if isinstance(params.get("optimizer"), SDCAOptimizer):
        return sdca_model_fn(_by_name(features), labels, mode, params, config)
    head, columns, features = params["head"], list(params["feature_columns"]), _by_name(features)
    logits = linear_logits(features, columns, head.logits_dimension, params.get("joint_weights", False))
    rate = usual_linear_rate(len(columns))
    optimizer = params.get("optimizer") or FtrlOptimizer(rate)

    def train_op(loss: Any) -> Any:
        return _trained(loss, optimizer, _LINEAR_RATE, params.get("gradient_clip_norm"), "linear")

    return _below("linear", head, features, mode, labels, train_op, logits)


def dnn_model_fn(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any = None) -> ModelFnOps:
    """A deep model. params: head, hidden_units, feature_columns, optimizer, activation_fn, dropout, gradient_clip_norm."""
    del config  # nothing of it is asked
    head, features = params["head"], _by_name(features)
    columns = list(params["feature_columns"] or [])
    if not columns:
        raise at_user_line(ValueError("feature_columns must be defined."))
    dropout = params.get("dropout") if mode == ModeKeys.TRAIN else None
    logits = deep_logits(features, columns, params["hidden_units"], head.logits_dimension, params.get("activation_fn"), dropout)

    def train_op(loss: Any) -> Any:
        return _trained(
            loss, params.get("optimizer") or "Adagrad", _DEEP_RATE, params.get("gradient_clip_norm"), "dnn", multipliers=_multipliers(params, columns)
        )

    return _below("dnn", head, features, mode, labels, train_op, logits)


def _multipliers(params: Dict[str, Any], columns: List[Any]) -> Any:
    """{variable: what its gradients are multiplied by} of embedding_lr_multipliers, which are by columns."""
    given = params.get("embedding_lr_multipliers")
    if not given:
        return None
    made = {}
    for column, factor in given.items():
        if column not in columns:
            raise at_user_line(ValueError("learning rate multipliers can only be specified for columns that are used, got %s" % (column,)))
        inside = "dnn/input_from_feature_columns/%s/" % getattr(column, "_var_scope_name", column.name)
        made.update({variable: factor for variable in get_collection("dnn") if variable.op.name.startswith(inside)})
    return made


def combined_model_fn(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any = None) -> ModelFnOps:
    """Both models, whose logits are added. Unless fix_global_step_increment_bug each of their optimizers counts steps, as TensorFlow has it."""
    del config  # nothing of it is asked
    head, features = params["head"], _by_name(features)
    linear, deep = list(params.get("linear_feature_columns") or []), list(params.get("dnn_feature_columns") or [])
    if not linear and not deep:
        raise at_user_line(ValueError("Either linear_feature_columns or dnn_feature_columns must be defined."))
    if deep and not params.get("dnn_hidden_units"):
        raise at_user_line(ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified."))
    norm, once = params.get("gradient_clip_norm"), params.get("fix_global_step_increment_bug", False)
    parts: List[Any] = []
    if deep:
        dropout = params.get("dnn_dropout") if mode == ModeKeys.TRAIN else None
        parts.append(deep_logits(features, deep, params["dnn_hidden_units"], head.logits_dimension, params.get("dnn_activation_fn"), dropout))
    if linear:
        parts.append(as_column(linear_logits(features, linear, head.logits_dimension, params.get("joint_linear_weights", False))))
    logits = parts[0] + parts[1] if len(parts) > 1 else parts[0]

    def train_op(loss: Any) -> Any:
        made = []
        if deep:
            made.append(_trained(loss, params.get("dnn_optimizer") or "Adagrad", _DEEP_RATE, norm, "dnn", not once, _multipliers(params, deep)))
        if linear:
            made.append(_trained(loss, params.get("linear_optimizer") or "Ftrl", usual_linear_rate(len(linear)), norm, "linear", not once))
        trained = control_flow_ops.group(*made)
        if not once:
            return trained
        with control_dependencies([trained]):
            return get_global_step().assign_add(1).op

    return head.create_model_fn_ops(features, mode, labels, train_op, logits)
