# SPDX-License-Identifier: Apache-2.0
"""Estimators whose models are made already: linear ones, deep ones, both together, and those that look at no feature at all."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from millrace import feature_column, layers, losses, summary
from millrace.estimator.estimator import Estimator
from millrace.estimator.heads import _Head, _regression_head_with_mean_squared_error_loss, class_head
from millrace.estimator.linear_sdca import LinearSDCA, loss_of, sdca_model_fn
from millrace.estimator.optimizers import get_optimizer_instance
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.feature_column.layers import _LinearModelLayer
from millrace.framework import dtypes
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, control_dependencies, get_collection
from millrace.layers.columns import DenseFeatures
from millrace.ops import array_ops, control_flow_ops, init_ops, nn_ops
from millrace.ops.partitioned_variables import min_max_variable_partitioner
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import PartitionedVariable
from millrace.train.global_step import get_global_step

_DEEP_RATE, _LINEAR_RATE, _BASELINE_RATE = 0.05, 0.2, 0.3
_LARGE_SLICE = 64 << 20  # bytes of the tables of features: smaller ones are not cut
_SUM = losses.Reduction.SUM


def _check_features(features: Any) -> None:
    if not isinstance(features, dict):
        raise at_user_line(ValueError("features should be a dictionary of `Tensor`s. Given type: %s" % type(features)))


def _replicas(config: Any) -> int:
    return config.num_ps_replicas if config else 0


def _tables_partitioner(given: Any, config: Any) -> Any:
    return given or min_max_variable_partitioner(max_partitions=_replicas(config), min_slice_size=_LARGE_SLICE)


def _add_layer_summary(value: Any, tag: str) -> None:
    summary.scalar("%s/fraction_of_zero_values" % tag, nn_ops.zero_fraction(value))
    summary.histogram("%s/activation" % tag, value)


def _after_updates(make: Callable[[], Any]) -> Any:
    """A training operation that runs what batch normalization and the like have put into UPDATE_OPS, too."""
    with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):
        return make()


# ---- deep models ----


def _dnn_logit_fn_builder(
    units: Union[int, Sequence[int]],
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Any,
    dropout: Optional[float],
    input_layer_partitioner: Any,
    batch_norm: bool = False,
    cols_to_output_tensors: Optional[Dict[Any, Any]] = None,
) -> Callable[..., Any]:
    """A function (features, mode) that gives a deep model's logits: of `units` numbers, or a list of logits for a list of units.

    It tells cols_to_output_tensors what each column has made of the features."""
    if not isinstance(units, (int, list)):
        raise at_user_line(ValueError("units must be an int or list.  Given type: %s" % type(units)))

    def output(net: Any, size: int, name: str) -> Any:
        with variable_scope(name, values=(net,)) as scope:
            made = layers.dense(net, size, kernel_initializer=init_ops.glorot_uniform_initializer(), name=scope)  # type: ignore[arg-type]
        _add_layer_summary(made, scope.name)
        return made

    def dnn_logit_fn(features: Dict[str, Any], mode: str) -> Any:
        training = mode == ModeKeys.TRAIN
        with variable_scope("input_from_feature_columns", values=tuple(features.values()), partitioner=input_layer_partitioner):
            by_layer = feature_column.is_feature_column_v2(feature_columns)
            inputs = (
                DenseFeatures(feature_columns, name="input_layer")
                if by_layer
                else functools.partial(feature_column.input_layer, feature_columns=feature_columns)
            )
            net = inputs(features, cols_to_output_tensors=cols_to_output_tensors)
        for i, size in enumerate(hidden_units):
            with variable_scope("hiddenlayer_%d" % i, values=(net,)) as scope:
                net = layers.dense(net, size, activation_fn, kernel_initializer=init_ops.glorot_uniform_initializer(), name=scope)  # type: ignore[arg-type]
                if dropout is not None and training:
                    net = layers.dropout(net, dropout, training=True)
                if batch_norm:
                    net = layers.batch_normalization(net, momentum=0.999, training=training, name="batchnorm_%d" % i)
            _add_layer_summary(net, scope.name)
        if isinstance(units, int):
            return output(net, units, "logits")
        return [output(net, size, "logits_head_%d" % i) for i, size in enumerate(units)]

    return dnn_logit_fn


def _dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: _Head,
    hidden_units: Sequence[int],
    feature_columns: Any,
    optimizer: Any = "Adagrad",
    activation_fn: Any = nn_ops.relu,
    dropout: Optional[float] = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    batch_norm: bool = False,
    cols_to_output_tensors: Optional[Dict[Any, Any]] = None,
) -> EstimatorSpec:
    """A deep model."""
    _check_features(features)
    optimizer = get_optimizer_instance(optimizer, _DEEP_RATE)
    with variable_scope("dnn", values=tuple(features.values()), partitioner=min_max_variable_partitioner(max_partitions=_replicas(config))):
        partitioner = _tables_partitioner(input_layer_partitioner, config)
        logits = _dnn_logit_fn_builder(
            head.logits_dimension, hidden_units, feature_columns, activation_fn, dropout, partitioner, batch_norm, cols_to_output_tensors
        )(features=features, mode=mode)
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            logits=logits,
            train_op_fn=lambda loss: _after_updates(lambda: optimizer.minimize(loss, global_step=get_global_step())),
        )


# ---- linear models ----


def _linear_logit_fn_builder(units: int, feature_columns: Any, sparse_combiner: str = "sum") -> Callable[..., Any]:
    """A function of features that gives a linear model's logits."""

    def linear_logit_fn(features: Dict[str, Any]) -> Any:
        if feature_column.is_feature_column_v2(feature_columns):
            model = _LinearModelLayer(feature_columns, units, sparse_combiner, name="linear_model")
            logits = model(features)
            _add_linear_summary(model)
        else:
            made: Dict[Any, Any] = {}
            logits = feature_column.linear_model(features, feature_columns, units, sparse_combiner, cols_to_vars=made)
            bias = made.pop("bias")
            _add_weights_summary(bias, [v for variables in made.values() for v in variables])
        return logits

    return linear_logit_fn


def _add_weights_summary(bias: List[Any], weights: List[Any]) -> None:
    summary.histogram("bias", bias[0] if len(bias) == 1 else array_ops.concat(bias, 0))
    _add_zero_fraction(weights)


def _add_linear_summary(model: _LinearModelLayer) -> None:
    _add_weights_summary(_parts(model.bias), [part for v in model.weights if v is not model.bias for part in _parts(v)])


def _parts(variable: Any) -> List[Any]:
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def _add_zero_fraction(variables: List[Any]) -> None:
    if variables:
        summary.scalar("fraction_of_zero_weights", nn_ops.zero_fraction(array_ops.concat([array_ops.reshape(v, [-1]) for v in variables], 0)))


def _linear_learning_rate(num_linear_feature_columns: int) -> float:
    """The default of a model with so many columns."""
    return min(_LINEAR_RATE, 1.0 / math.sqrt(num_linear_feature_columns))


def _linear_model_fn(
    features: Any, labels: Any, mode: str, head: _Head, feature_columns: Any, optimizer: Any, partitioner: Any, config: Any, sparse_combiner: str = "sum"
) -> EstimatorSpec:
    """A linear model."""
    _check_features(features)
    if not isinstance(optimizer, LinearSDCA):
        optimizer = get_optimizer_instance(optimizer or "Ftrl", _linear_learning_rate(max(len(feature_columns), 1)))
    with variable_scope("linear", values=tuple(features.values()), partitioner=_tables_partitioner(partitioner, config)):
        if isinstance(optimizer, LinearSDCA):
            return sdca_model_fn(features, labels, mode, head, feature_columns, optimizer, sparse_combiner, _add_linear_summary)
        logits = _linear_logit_fn_builder(head.logits_dimension, feature_columns, sparse_combiner)(features=features)
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, logits=logits, train_op_fn=lambda loss: optimizer.minimize(loss, global_step=get_global_step())
        )


# ---- both ----


def _no_replicas_in_sync(optimizer: Any) -> None:
    from millrace import train

    if isinstance(optimizer, train.SyncReplicasOptimizer):
        raise at_user_line(
            ValueError(
                "SyncReplicasOptimizer does not support multi optimizers case. Therefore, it is not supported in DNNLinearCombined "
                "model. If you want to use this optimizer, please use either DNN or Linear model."
            )
        )


def _dnn_linear_combined_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: _Head,
    linear_feature_columns: Any = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Any = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Any = None,
    dnn_activation_fn: Any = nn_ops.relu,
    dnn_dropout: Optional[float] = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    batch_norm: bool = False,
    linear_sparse_combiner: str = "sum",
) -> EstimatorSpec:
    """A linear and a deep model whose logits are added; each is trained by an optimizer of its own."""
    _check_features(features)
    _check_columns(linear_feature_columns, dnn_feature_columns)
    values, partitioner, parts = tuple(features.values()), _tables_partitioner(input_layer_partitioner, config), []
    if dnn_feature_columns:
        optimizer = get_optimizer_instance(dnn_optimizer, _DEEP_RATE)
        _no_replicas_in_sync(optimizer)
        if not dnn_hidden_units:
            raise at_user_line(ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified."))
        with variable_scope("dnn", values=values, partitioner=min_max_variable_partitioner(max_partitions=_replicas(config))):
            logits = _dnn_logit_fn_builder(
                head.logits_dimension, dnn_hidden_units, dnn_feature_columns, dnn_activation_fn, dnn_dropout, partitioner, batch_norm
            )(features=features, mode=mode)
        parts.append(("dnn", optimizer, logits))
    if linear_feature_columns:
        optimizer = get_optimizer_instance(linear_optimizer, _linear_learning_rate(len(linear_feature_columns)))
        _no_replicas_in_sync(optimizer)
        with variable_scope("linear", values=values, partitioner=partitioner) as scope:
            logits = _linear_logit_fn_builder(head.logits_dimension, linear_feature_columns, linear_sparse_combiner)(features=features)
            _add_layer_summary(logits, scope.name)
        parts.append(("linear", optimizer, logits))
    total = parts[0][2] if len(parts) == 1 else parts[0][2] + parts[1][2]

    def train_op(loss: Any) -> Any:
        ops = [optimizer.minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)) for scope, optimizer, _ in parts]
        with control_dependencies([control_flow_ops.group(*ops)]):
            return get_global_step().assign_add(1).op

    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, logits=total, train_op_fn=lambda loss: _after_updates(lambda: train_op(loss))
    )


def _check_columns(linear: Any, deep: Any) -> None:
    if not linear and not deep:
        raise at_user_line(ValueError("Either linear_feature_columns or dnn_feature_columns must be defined."))


# ---- neither ----


def _baseline_logit_fn_builder(num_outputs: int, weight_column: Any = None) -> Callable[..., Any]:
    """A function that gives each example of the features a bias [num_outputs], whatever its weight."""
    del weight_column  # what has no inputs but a bias gives all examples the same

    def logit_fn(features: Any) -> Any:
        _check_features(features)
        if not features:
            raise at_user_line(ValueError("features should not be empty."))
        with variable_scope("baseline", values=tuple(features.values())):
            bias = get_variable("bias", [num_outputs], dtypes.float32, init_ops.zeros_initializer())
            some = convert_to_tensor_or_sparse_tensor(next(iter(features.values())))
            batch = array_ops.shape(some)[0] if not hasattr(some, "dense_shape") else some.dense_shape[0]
            return array_ops.tile(array_ops.expand_dims(bias, 0), array_ops.stack([batch, 1]))

    return logit_fn


def _baseline_model_fn(features: Any, labels: Any, mode: str, head: _Head, optimizer: Any) -> EstimatorSpec:
    """A bias alone: what a model says that knows how often each answer is right, and nothing else."""
    optimizer = get_optimizer_instance(optimizer, _BASELINE_RATE)
    logits = _baseline_logit_fn_builder(head.logits_dimension)(features)
    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, logits=logits, train_op_fn=lambda loss: optimizer.minimize(loss, global_step=get_global_step())
    )


# ---- the estimators ----


def _columns(given: Any) -> Any:
    return (given,) if isinstance(given, (feature_column.FeatureColumn, feature_column._FeatureColumn)) else tuple(given or ())


class DNNEstimator(Estimator):
    """A deep network with any head."""

    def __init__(
        self,
        head: _Head,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Optional[str] = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        columns = _columns(feature_columns)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return _dnn_model_fn(
                features, labels, mode, head, hidden_units, columns, optimizer, activation_fn, dropout, input_layer_partitioner, config, batch_norm
            )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """A deep network that tells classes apart."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class DNNRegressor(DNNEstimator):
    """A deep network that tells numbers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Any,
        model_dir: Optional[str] = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            _regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class LinearEstimator(Estimator):
    """A linear model with any head."""

    def __init__(
        self,
        head: _Head,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        columns = _columns(feature_columns)
        if isinstance(optimizer, LinearSDCA):
            loss_of(head, columns, sparse_combiner)  # or it is refused

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return _linear_model_fn(features, labels, mode, head, columns, optimizer, partitioner, config, sparse_combiner)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """A linear model that tells classes apart."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from,
        )


class LinearRegressor(LinearEstimator):
    """A linear model that tells numbers."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            _regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction),
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from,
        )


class DNNLinearCombinedEstimator(Estimator):
    """A linear and a deep model together, with any head."""

    def __init__(
        self,
        head: _Head,
        model_dir: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Optional[float] = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        linear_sparse_combiner: str = "sum",
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        linear, deep = _columns(linear_feature_columns), _columns(dnn_feature_columns)
        _check_columns(linear, deep)
        self._feature_columns = [*linear, *deep]

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return _dnn_linear_combined_model_fn(
                features,
                labels,
                mode,
                head,
                linear,
                linear_optimizer,
                deep,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                input_layer_partitioner,
                config,
                batch_norm,
                linear_sparse_combiner,
            )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A linear and a deep model that tell classes apart together."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Optional[float] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from,
            batch_norm,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A linear and a deep model that tell numbers together."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Optional[float] = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            _regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from,
            batch_norm,
        )


class BaselineEstimator(Estimator):
    """A bias alone, with any head."""

    def __init__(self, head: _Head, model_dir: Optional[str] = None, optimizer: Any = "Ftrl", config: Any = None) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            return _baseline_model_fn(features, labels, mode, head, optimizer)

        super().__init__(model_fn, model_dir, config)


class BaselineClassifier(BaselineEstimator):
    """Says how often each class is right."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        super().__init__(class_head(n_classes, weight_column, label_vocabulary, loss_reduction), model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """Says the mean of the labels."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        super().__init__(_regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction), model_dir, optimizer, config)
