# SPDX-License-Identifier: Apache-2.0
"""The linear and deep estimators of tf.contrib.learn."""
from __future__ import annotations

from typing import Any, Iterable, List, Optional

from millrace.contrib.learn.estimators import BaseEstimator, ModelFnOps, as_array
from millrace.contrib.learn.metric_spec import PredictionKey
from millrace.estimator import canned
from millrace.estimator.heads import Head, regression_head
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.ops import array_ops, math_ops, nn_ops


class _Clipping:
    """An optimizer whose gradients have a norm of at most so much."""

    def __init__(self, optimizer: Any, rate: float, norm: float) -> None:
        self._given, self._rate, self._norm = optimizer, rate, norm

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """That of the optimizer."""
        return canned._optimizer(self._given, self._rate).apply_gradients(*args, **kwargs)

    def minimize(self, loss: Any, var_list: Any = None) -> Any:
        """A training step."""
        optimizer = canned._optimizer(self._given, self._rate)
        pairs = [(g, v) for g, v in optimizer.compute_gradients(loss, var_list) if g is not None]
        clipped, _ = math_ops.clip_by_global_norm([g for g, _ in pairs], self._norm)
        return optimizer.apply_gradients(list(zip(clipped, [v for _, v in pairs])))


class _Canned(BaseEstimator):
    def __init__(self, head: Head, parts: List[Any], model_dir: Any, config: Any, clip: Optional[float], feature_engineering_fn: Any) -> None:
        head.mean = True
        if clip is not None:
            for part in parts:
                part.optimizer = _Clipping(part.optimizer, part.rate, clip)
        self._build, self._head = canned._model_fn(head, parts), head
        super().__init__(model_dir, config, None, feature_engineering_fn)

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The model, with the names of predictions that tf.contrib.learn has."""
        made = self._build(features if isinstance(features, dict) else {"": features}, labels, mode)
        return ModelFnOps(mode, self._named(made.predictions), made.loss, made.train_op, made.eval_metric_ops) if mode != "infer" else made._replace(
            predictions=self._named(made.predictions))

    def _named(self, predictions: Any) -> Any:
        if "predictions" in predictions:
            scores = predictions["predictions"]
            return {PredictionKey.SCORES: array_ops.squeeze(scores, [1]) if self._head.logits_dimension == 1 else scores}
        names = {"class_ids": PredictionKey.CLASSES}
        kept = {names.get(key, key): value for key, value in predictions.items() if key != "classes"}
        classes = predictions["classes"] if self._head._vocabulary else predictions["class_ids"]  # type: ignore[attr-defined]
        kept[PredictionKey.CLASSES] = array_ops.squeeze(classes, [1])
        return kept


class _Classifier(_Canned):
    def predict_classes(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """The most probable class of each example."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.CLASSES], as_iterable, PredictionKey.CLASSES)

    def predict_proba(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """How probable each class is."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.PROBABILITIES], as_iterable, PredictionKey.PROBABILITIES)

    def predict(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, outputs: Any = None, as_iterable: bool = True,
                iterate_batches: bool = False) -> Any:
        """The classes, or the predictions that `outputs` names."""
        if not outputs and not iterate_batches:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)


class _Regressor(_Canned):
    def predict_scores(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, as_iterable: bool = True) -> Any:
        """The number of each example."""
        return self._predicted(x, input_fn, batch_size, [PredictionKey.SCORES], as_iterable, PredictionKey.SCORES)

    def predict(self, x: Any = None, input_fn: Any = None, batch_size: Optional[int] = None, outputs: Any = None, as_iterable: bool = True,
                iterate_batches: bool = False) -> Any:
        """The numbers, or the predictions that `outputs` names."""
        if not outputs and not iterate_batches:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)


def _classes(n_classes: int, weight_column_name: Any, label_keys: Any, centered: bool) -> Head:
    _not_centered(centered)
    if n_classes < 2:
        raise at_user_line(ValueError("n_classes should be greater than 1. Given: %s" % n_classes))
    return canned._classes(n_classes, weight_column_name, label_keys)


def _not_centered(centered: bool) -> None:
    if centered:
        raise at_user_line(NotImplementedError("enable_centered_bias is not provided: leave it out."))


def _columns(given: Optional[Iterable[Any]]) -> Any:
    """Columns of models' inputs; in a deep model every column has to be one of numbers."""
    return list(given) if given is not None else None


class LinearClassifier(_Classifier):
    """A linear model that tells classes apart."""

    def __init__(self, feature_columns: Any, model_dir: Optional[str] = None, n_classes: int = 2, weight_column_name: Optional[str] = None,
                 optimizer: Any = None, gradient_clip_norm: Optional[float] = None, enable_centered_bias: bool = False, _joint_weight: bool = False,
                 config: Any = None, feature_engineering_fn: Any = None, label_keys: Any = None) -> None:
        super().__init__(_classes(n_classes, weight_column_name, label_keys, enable_centered_bias),
                         [canned._linear_part(_columns(feature_columns), optimizer or "Ftrl")], model_dir, config, gradient_clip_norm, feature_engineering_fn)


class LinearRegressor(_Regressor):
    """A linear model that tells numbers."""

    def __init__(self, feature_columns: Any, model_dir: Optional[str] = None, weight_column_name: Optional[str] = None, optimizer: Any = None,
                 gradient_clip_norm: Optional[float] = None, enable_centered_bias: bool = False, label_dimension: int = 1, _joint_weights: bool = False,
                 config: Any = None, feature_engineering_fn: Any = None) -> None:
        _not_centered(enable_centered_bias)
        super().__init__(regression_head(label_dimension, weight_column_name), [canned._linear_part(_columns(feature_columns), optimizer or "Ftrl")],
                         model_dir, config, gradient_clip_norm, feature_engineering_fn)


class DNNClassifier(_Classifier):
    """A deep network that tells classes apart."""

    def __init__(self, hidden_units: Any, feature_columns: Any, model_dir: Optional[str] = None, n_classes: int = 2, weight_column_name: Optional[str] = None,
                 optimizer: Any = None, activation_fn: Any = nn_ops.relu, dropout: Optional[float] = None, gradient_clip_norm: Optional[float] = None,
                 enable_centered_bias: bool = False, config: Any = None, feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None,
                 input_layer_min_slice_size: Any = None, label_keys: Any = None) -> None:
        super().__init__(_classes(n_classes, weight_column_name, label_keys, enable_centered_bias),
                         [canned._deep_part(hidden_units, _columns(feature_columns), activation_fn, dropout, optimizer or "Adagrad")], model_dir, config,
                         gradient_clip_norm, feature_engineering_fn)


class DNNRegressor(_Regressor):
    """A deep network that tells numbers."""

    def __init__(self, hidden_units: Any, feature_columns: Any, model_dir: Optional[str] = None, weight_column_name: Optional[str] = None, optimizer: Any = None,
                 activation_fn: Any = nn_ops.relu, dropout: Optional[float] = None, gradient_clip_norm: Optional[float] = None,
                 enable_centered_bias: bool = False, config: Any = None, feature_engineering_fn: Any = None, label_dimension: int = 1,
                 embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None) -> None:
        _not_centered(enable_centered_bias)
        super().__init__(regression_head(label_dimension, weight_column_name),
                         [canned._deep_part(hidden_units, _columns(feature_columns), activation_fn, dropout, optimizer or "Adagrad")], model_dir, config,
                         gradient_clip_norm, feature_engineering_fn)


class DNNLinearCombinedClassifier(_Classifier):
    """A linear and a deep model that tell classes apart together."""

    def __init__(self, model_dir: Optional[str] = None, n_classes: int = 2, weight_column_name: Optional[str] = None, linear_feature_columns: Any = None,
                 linear_optimizer: Any = None, _joint_linear_weights: bool = False, dnn_feature_columns: Any = None, dnn_optimizer: Any = None,
                 dnn_hidden_units: Any = None, dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Optional[float] = None,
                 gradient_clip_norm: Optional[float] = None, enable_centered_bias: bool = False, config: Any = None, feature_engineering_fn: Any = None,
                 embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None, label_keys: Any = None,
                 fix_global_step_increment_bug: bool = True) -> None:
        super().__init__(_classes(n_classes, weight_column_name, label_keys, enable_centered_bias), canned._both(
            _columns(linear_feature_columns), linear_optimizer or "Ftrl", _columns(dnn_feature_columns), dnn_optimizer or "Adagrad", dnn_hidden_units,
            dnn_activation_fn, dnn_dropout), model_dir, config, gradient_clip_norm, feature_engineering_fn)


class DNNLinearCombinedRegressor(_Regressor):
    """A linear and a deep model that tell numbers together."""

    def __init__(self, model_dir: Optional[str] = None, weight_column_name: Optional[str] = None, linear_feature_columns: Any = None,
                 linear_optimizer: Any = None, _joint_linear_weights: bool = False, dnn_feature_columns: Any = None, dnn_optimizer: Any = None,
                 dnn_hidden_units: Any = None, dnn_activation_fn: Any = nn_ops.relu, dnn_dropout: Optional[float] = None,
                 gradient_clip_norm: Optional[float] = None, enable_centered_bias: bool = False, label_dimension: int = 1, config: Any = None,
                 feature_engineering_fn: Any = None, embedding_lr_multipliers: Any = None, input_layer_min_slice_size: Any = None,
                 fix_global_step_increment_bug: bool = True) -> None:
        _not_centered(enable_centered_bias)
        super().__init__(regression_head(label_dimension, weight_column_name), canned._both(
            _columns(linear_feature_columns), linear_optimizer or "Ftrl", _columns(dnn_feature_columns), dnn_optimizer or "Adagrad", dnn_hidden_units,
            dnn_activation_fn, dnn_dropout), model_dir, config, gradient_clip_norm, feature_engineering_fn)



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
