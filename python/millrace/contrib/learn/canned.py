# SPDX-License-Identifier: Apache-2.0
"""The linear and deep estimators of tf.contrib.learn."""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterable, Optional

from millrace.framework import arguments
from millrace import losses
from millrace.contrib.learn.estimators import BaseEstimator, ModelFnOps, as_array
from millrace.contrib.learn.metric_spec import PredictionKey
from millrace.estimator import canned
from millrace.estimator.heads import _regression_head_with_mean_squared_error_loss, class_head
from millrace.estimator.optimizers import get_optimizer_instance
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.ops import array_ops, math_ops, nn_ops
from millrace.train.optimizer import Optimizer


class _Clipping(Optimizer):
    """An optimizer whose gradients have a norm of at most so much."""

    def __init__(self, optimizer: Any, norm: float) -> None:
        super().__init__(False, optimizer.get_name())
        self._given, self._norm = optimizer, norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the optimizer, clipped."""
        pairs = [(g, v) for g, v in self._given.compute_gradients(*args, **kwargs) if g is not None]
        clipped, _ = math_ops.clip_by_global_norm([g for g, _ in pairs], self._norm)
        return list(zip(clipped, [v for _, v in pairs]))

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """That of the optimizer."""
        return self._given.apply_gradients(*args, **kwargs)


def _clipped(optimizer: Any, rate: float, norm: Optional[float]) -> Any:
    """An optimizer, as tf.estimator takes it, whose gradients are clipped where there is a norm."""
    return optimizer if norm is None else lambda: _Clipping(get_optimizer_instance(optimizer, rate), norm)


class _Canned(BaseEstimator):
    """What `build`, a model function of tf.estimator, makes with a head."""

    def __init__(self, head: Any, build: Any, model_dir: Any, config: Any, feature_engineering_fn: Any, **options: Any) -> None:
        self._head, self._build = head, functools.partial(build, head=head, **options)
        super().__init__(model_dir, config, None, feature_engineering_fn)

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The model, with the names of predictions that tf.contrib.learn has."""
        made = self._build(features if isinstance(features, dict) else {"": features}, labels, mode, config=config)
        return (
            ModelFnOps(mode, self._named(made.predictions), made.loss, made.train_op, made.eval_metric_ops)
            if mode != "infer"
            else made._replace(predictions=self._named(made.predictions))
        )

    def _named(self, predictions: Any) -> Any:
        if "predictions" in predictions:
            scores = predictions["predictions"]
            return {PredictionKey.SCORES: array_ops.squeeze(scores, [1]) if self._head.logits_dimension == 1 else scores}
        names = {"class_ids": PredictionKey.CLASSES}
        kept = {names.get(key, key): value for key, value in predictions.items() if key != "classes"}
        classes = predictions["classes"] if self._head._label_vocabulary else predictions["class_ids"]
        kept[PredictionKey.CLASSES] = array_ops.squeeze(classes, [1])
        return kept


class _Classifier(_Canned):
    def predict_classes(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """The most probable class of each example."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.CLASSES], as_iterable, PredictionKey.CLASSES)

    def predict_proba(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """How probable each class is."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.PROBABILITIES], as_iterable, PredictionKey.PROBABILITIES)

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: Optional[int] = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The classes, or the predictions that `outputs` names."""
        if not outputs and not iterate_batches:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)


class _Regressor(_Canned):
    def predict_scores(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """The number of each example."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.SCORES], as_iterable, PredictionKey.SCORES)

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: Optional[int] = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The numbers, or the predictions that `outputs` names."""
        if not outputs and not iterate_batches:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)


_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE  # of losses times weights


def _classes(n_classes: int, weight_column_name: Any, label_keys: Any, centered: bool) -> Any:
    _not_centered(centered)
    if n_classes < 2:
        raise at_user_line(ValueError("n_classes should be greater than 1. Given: %s" % n_classes))
    return class_head(n_classes, weight_column_name, label_keys, _MEAN)


def _numbers(label_dimension: int, weight_column_name: Any, centered: bool) -> Any:
    _not_centered(centered)
    return _regression_head_with_mean_squared_error_loss(weight_column_name, label_dimension, _MEAN)


def _not_centered(centered: bool) -> None:
    if centered:
        raise at_user_line(NotImplementedError("enable_centered_bias is not provided: leave it out."))


def _columns(given: Optional[Iterable[Any]]) -> Any:
    """Columns of models' inputs; in a deep model every column has to be one of numbers."""
    return list(given) if given is not None else None


def _linear(feature_columns: Any, optimizer: Any, gradient_clip_norm: Any) -> Dict[str, Any]:
    columns = _columns(feature_columns)
    return {
        "build": canned._linear_model_fn,
        "feature_columns": columns,
        "partitioner": None,
        "optimizer": _clipped(optimizer or "Ftrl", canned._linear_learning_rate(max(len(columns), 1)), gradient_clip_norm),
    }


def _deep(hidden_units: Any, feature_columns: Any, activation_fn: Any, dropout: Any, optimizer: Any, gradient_clip_norm: Any) -> Dict[str, Any]:
    return {
        "build": canned._dnn_model_fn,
        "hidden_units": hidden_units,
        "feature_columns": _columns(feature_columns),
        "activation_fn": activation_fn,
        "dropout": dropout,
        "optimizer": _clipped(optimizer or "Adagrad", canned._DEEP_RATE, gradient_clip_norm),
    }


def _both(linear: Any, linear_optimizer: Any, deep: Any, dnn_optimizer: Any, hidden_units: Any, activation_fn: Any, dropout: Any, norm: Any) -> Dict[str, Any]:
    linear, deep = _columns(linear), _columns(deep)
    canned._check_columns(linear, deep)
    return {
        "build": canned._dnn_linear_combined_model_fn,
        "linear_feature_columns": linear,
        "dnn_feature_columns": deep,
        "dnn_hidden_units": hidden_units,
        "dnn_activation_fn": activation_fn,
        "dnn_dropout": dropout,
        "linear_optimizer": _clipped(linear_optimizer or "Ftrl", canned._linear_learning_rate(max(len(linear or ()), 1)), norm),
        "dnn_optimizer": _clipped(dnn_optimizer or "Adagrad", canned._DEEP_RATE, norm),
    }


class LinearClassifier(_Classifier):
    """A linear model that tells classes apart."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_keys: Any = None,
    ) -> None:
        super().__init__(
            _classes(n_classes, weight_column_name, label_keys, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_linear(feature_columns, optimizer, gradient_clip_norm),
        )


class LinearRegressor(_Regressor):
    """A linear model that tells numbers."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        super().__init__(
            _numbers(label_dimension, weight_column_name, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_linear(feature_columns, optimizer, gradient_clip_norm),
        )


class DNNClassifier(_Classifier):
    """A deep network that tells classes apart."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
        label_keys: Any = None,
    ) -> None:
        del input_layer_min_slice_size  # partitions are those of the variable scope
        arguments.only(None, embedding_lr_multipliers=embedding_lr_multipliers)
        super().__init__(
            _classes(n_classes, weight_column_name, label_keys, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_deep(hidden_units, feature_columns, activation_fn, dropout, optimizer, gradient_clip_norm),
        )


class DNNRegressor(_Regressor):
    """A deep network that tells numbers."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
    ) -> None:
        del input_layer_min_slice_size  # partitions are those of the variable scope
        arguments.only(None, embedding_lr_multipliers=embedding_lr_multipliers)
        super().__init__(
            _numbers(label_dimension, weight_column_name, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_deep(hidden_units, feature_columns, activation_fn, dropout, optimizer, gradient_clip_norm),
        )


class DNNLinearCombinedClassifier(_Classifier):
    """A linear and a deep model that tell classes apart together."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column_name: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
        label_keys: Any = None,
        fix_global_step_increment_bug: bool = True,
    ) -> None:
        del input_layer_min_slice_size  # partitions are those of the variable scope
        del fix_global_step_increment_bug  # the step grows by one
        arguments.only(None, embedding_lr_multipliers=embedding_lr_multipliers)
        super().__init__(
            _classes(n_classes, weight_column_name, label_keys, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_both(
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                gradient_clip_norm,
            ),
        )


class DNNLinearCombinedRegressor(_Regressor):
    """A linear and a deep model that tell numbers together."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        weight_column_name: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn_ops.relu,
        dnn_dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
        fix_global_step_increment_bug: bool = True,
    ) -> None:
        del input_layer_min_slice_size  # partitions are those of the variable scope
        del fix_global_step_increment_bug  # the step grows by one
        arguments.only(None, embedding_lr_multipliers=embedding_lr_multipliers)
        super().__init__(
            _numbers(label_dimension, weight_column_name, enable_centered_bias),
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
            **_both(
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                gradient_clip_norm,
            ),
        )


def infer_real_valued_columns_from_input(x: Any) -> Any:
    """A column of numbers for each feature of arrays."""
    from millrace.contrib.feature_columns import infer_real_valued_columns

    with Graph().as_default():
        made = as_array(x)
        return infer_real_valued_columns({k: v[:1] for k, v in made.items()} if isinstance(made, dict) else made[:1])


def infer_real_valued_columns_from_input_fn(input_fn: Any) -> Any:
    """A column of numbers for each feature of an input function."""
    from millrace.contrib.feature_columns import infer_real_valued_columns

    with Graph().as_default():
        made = input_fn()
        return infer_real_valued_columns(made[0] if isinstance(made, tuple) else made)
