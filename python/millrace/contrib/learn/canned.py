# SPDX-License-Identifier: Apache-2.0
"""The linear and deep estimators of tf.contrib.learn."""

from __future__ import annotations

from typing import Any, Optional

from millrace import tf_logging
from millrace.contrib import feature_columns as columns_of_contrib
from millrace.contrib.learn import export as _export
from millrace.contrib.learn.estimators import Estimator, as_array
from millrace.contrib.learn.head import Head, regression_head
from millrace.contrib.learn.head_classes import multi_class_head
from millrace.contrib.learn.keys import PredictionKey
from millrace.contrib.learn.model_builders import combined_model_fn, dnn_model_fn, linear_model_fn
from millrace.contrib.linear_optimizer import SDCAOptimizer
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.ops import nn_ops


class _Canned(Estimator):
    """What a model function of model_builders makes with a head."""

    def __init__(self, build: Any, head: Head, model_dir: Any, config: Any, feature_engineering_fn: Any, **params: Any) -> None:
        self._build, self._head = build, head
        super().__init__(None, model_dir, config, {"head": head, **params}, feature_engineering_fn)

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The model."""
        return self._build(features, labels, mode, params, config)

    def _parsed(self, unused_estimator: Any, examples: Any) -> Any:
        """Serialized Example messages as what the columns of features take."""
        del unused_estimator  # it is this one
        given = self.params
        columns = [*(given.get("feature_columns") or ()), *(given.get("linear_feature_columns") or ()), *(given.get("dnn_feature_columns") or ())]
        return columns_of_contrib.parse_feature_columns_from_examples(examples, columns)

    def _export(self, export_dir: Any, input_fn: Any, key: Any, deprecated: bool, signature_fn: Any, prediction: str, batch: Any, keep: Any) -> bytes:
        return super().export(export_dir, input_fn or self._parsed, key, deprecated, signature_fn, prediction, batch, keep)


class _Classifier(_Canned):
    def export(  # type: ignore[override]
        self,
        export_dir: Any,
        input_fn: Any = None,
        input_feature_key: Any = None,
        use_deprecated_input_fn: bool = True,
        signature_fn: Any = None,
        default_batch_size: Optional[int] = 1,
        exports_to_keep: Optional[int] = None,
    ) -> bytes:
        """Estimator.export of the probabilities."""
        signature_fn = signature_fn or _export.classification_signature_fn_with_prob
        given = input_fn, input_feature_key, use_deprecated_input_fn, signature_fn
        return self._export(export_dir, *given, PredictionKey.PROBABILITIES, default_batch_size, exports_to_keep)

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
    def export(  # type: ignore[override]
        self,
        export_dir: Any,
        input_fn: Any = None,
        input_feature_key: Any = None,
        use_deprecated_input_fn: bool = True,
        signature_fn: Any = None,
        default_batch_size: Optional[int] = 1,
        exports_to_keep: Optional[int] = None,
    ) -> bytes:
        """Estimator.export of the numbers."""
        given = input_fn, input_feature_key, use_deprecated_input_fn, signature_fn or _export.regression_signature_fn
        return self._export(export_dir, *given, PredictionKey.SCORES, default_batch_size, exports_to_keep)

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


def _check_columns(linear: Any, deep: Any) -> None:
    if not linear and not deep:
        raise at_user_line(ValueError("Either linear_feature_columns or dnn_feature_columns must be defined."))


def _check_sdca(optimizer: Any, centered: bool, joint: bool, is_one_number: bool) -> None:
    """What an SDCAOptimizer does not train."""
    if not isinstance(optimizer, SDCAOptimizer):
        return
    if centered:
        raise at_user_line(ValueError("enable_centered_bias is not supported with SDCA"))
    if joint:
        raise at_user_line(ValueError("_joint_weights is incompatible with SDCAOptimizer"))
    if not is_one_number:
        raise at_user_line(ValueError("SDCA only applies to two classes, or to labels of one number."))


def _checked_units(hidden_units: Any) -> Any:
    if isinstance(hidden_units, (str, bytes)):
        raise at_user_line(ValueError("hidden_units must be a list of numbers, got %r" % (hidden_units,)))
    return hidden_units


class LinearEstimator(_Canned):
    """A linear model below a head."""

    def __init__(
        self,
        feature_columns: Any,
        head: Head,
        model_dir: Optional[str] = None,
        weight_column_name: Optional[str] = None,
        optimizer: Any = None,
        gradient_clip_norm: Optional[float] = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        del weight_column_name  # the head has one
        if isinstance(optimizer, SDCAOptimizer):
            raise at_user_line(ValueError("LinearEstimator does not support SDCA optimizer."))
        super().__init__(
            linear_model_fn,
            head,
            model_dir,
            config,
            feature_engineering_fn,
            feature_columns=feature_columns,
            optimizer=optimizer,
            gradient_clip_norm=gradient_clip_norm,
            joint_weights=_joint_weights,
        )


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
        if n_classes < 2:
            raise at_user_line(ValueError("n_classes should be greater than 1. Given: %s" % n_classes))
        _check_sdca(optimizer, enable_centered_bias, _joint_weight, n_classes == 2)
        super().__init__(
            linear_model_fn,
            multi_class_head(n_classes, weight_column_name=weight_column_name, enable_centered_bias=enable_centered_bias, label_keys=label_keys),
            model_dir,
            config,
            feature_engineering_fn,
            feature_columns=feature_columns,
            optimizer=optimizer,
            gradient_clip_norm=gradient_clip_norm,
            joint_weights=_joint_weight,
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
        if isinstance(optimizer, SDCAOptimizer) and enable_centered_bias:
            enable_centered_bias = False
            tf_logging.warning("centered_bias is not supported with SDCA, please disable it explicitly.")
        _check_sdca(optimizer, False, _joint_weights, label_dimension == 1)
        super().__init__(
            linear_model_fn,
            regression_head(weight_column_name=weight_column_name, label_dimension=label_dimension, enable_centered_bias=enable_centered_bias),
            model_dir,
            config,
            feature_engineering_fn,
            feature_columns=feature_columns,
            optimizer=optimizer,
            gradient_clip_norm=gradient_clip_norm,
            joint_weights=_joint_weights,
        )


class DNNEstimator(_Canned):
    """A deep network below a head."""

    def __init__(
        self,
        head: Head,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Optional[str] = None,
        optimizer: Any = None,
        activation_fn: Any = nn_ops.relu,
        dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: Any = None,
    ) -> None:
        del input_layer_min_slice_size  # there is one parameter server at most: nothing is cut
        super().__init__(
            dnn_model_fn,
            head,
            model_dir,
            config,
            feature_engineering_fn,
            hidden_units=_checked_units(hidden_units),
            feature_columns=feature_columns,
            optimizer=optimizer,
            activation_fn=activation_fn,
            dropout=dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
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
        del input_layer_min_slice_size  # there is one parameter server at most: nothing is cut
        super().__init__(
            dnn_model_fn,
            multi_class_head(n_classes, weight_column_name=weight_column_name, enable_centered_bias=enable_centered_bias, label_keys=label_keys),
            model_dir,
            config,
            feature_engineering_fn,
            hidden_units=_checked_units(hidden_units),
            feature_columns=feature_columns,
            optimizer=optimizer,
            activation_fn=activation_fn,
            dropout=dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
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
        del input_layer_min_slice_size  # there is one parameter server at most: nothing is cut
        super().__init__(
            dnn_model_fn,
            regression_head(weight_column_name=weight_column_name, label_dimension=label_dimension, enable_centered_bias=enable_centered_bias),
            model_dir,
            config,
            feature_engineering_fn,
            hidden_units=_checked_units(hidden_units),
            feature_columns=feature_columns,
            optimizer=optimizer,
            activation_fn=activation_fn,
            dropout=dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
        )


class DNNLinearCombinedEstimator(_Canned):
    """A linear and a deep model together, below a head."""

    def __init__(
        self,
        head: Head,
        model_dir: Optional[str] = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: Optional[float] = None,
        gradient_clip_norm: Optional[float] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        del input_layer_partitioner  # there is one parameter server at most: nothing is cut
        _check_columns(linear_feature_columns, dnn_feature_columns)
        super().__init__(
            combined_model_fn,
            head,
            model_dir,
            config,
            feature_engineering_fn,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            joint_linear_weights=_joint_linear_weights,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=_checked_units(dnn_hidden_units),
            dnn_activation_fn=dnn_activation_fn or nn_ops.relu,
            dnn_dropout=dnn_dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
            fix_global_step_increment_bug=fix_global_step_increment_bug,
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
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        del input_layer_min_slice_size  # there is one parameter server at most: nothing is cut
        _check_columns(linear_feature_columns, dnn_feature_columns)
        super().__init__(
            combined_model_fn,
            multi_class_head(n_classes, weight_column_name=weight_column_name, enable_centered_bias=enable_centered_bias, label_keys=label_keys),
            model_dir,
            config,
            feature_engineering_fn,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            joint_linear_weights=_joint_linear_weights,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=_checked_units(dnn_hidden_units),
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
            fix_global_step_increment_bug=fix_global_step_increment_bug,
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
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        del input_layer_min_slice_size  # there is one parameter server at most: nothing is cut
        _check_columns(linear_feature_columns, dnn_feature_columns)
        super().__init__(
            combined_model_fn,
            regression_head(weight_column_name=weight_column_name, label_dimension=label_dimension, enable_centered_bias=enable_centered_bias),
            model_dir,
            config,
            feature_engineering_fn,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            joint_linear_weights=_joint_linear_weights,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=_checked_units(dnn_hidden_units),
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            gradient_clip_norm=gradient_clip_norm,
            embedding_lr_multipliers=embedding_lr_multipliers,
            fix_global_step_increment_bug=fix_global_step_increment_bug,
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
