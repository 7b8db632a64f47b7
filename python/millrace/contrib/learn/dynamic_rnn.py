# SPDX-License-Identifier: Apache-2.0
"""DynamicRnnEstimator of tf.contrib.learn: sequences of any length, with a prediction for each, or for each of its steps."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.contrib import layers
from millrace.contrib.learn import rnn_common
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.keys import ModeKeys, PredictionKey, ProblemType
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.contrib.learn.rnn_common import PredictionType, RNNKeys
from millrace.framework import dtypes, nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, math_ops
from millrace.ops.rnn import dynamic_rnn
from millrace.train.rules import MomentumOptimizer


def _get_state_name(i: int) -> str:
    return "%s_%d" % (RNNKeys.STATE_PREFIX, i)


def state_tuple_to_dict(state: Any) -> Dict[str, Any]:
    """The tensors of a state by the names that features give them."""
    with name_scope("state_tuple_to_dict"):
        named = {_get_state_name(i): part for i, part in enumerate(nest.flatten(state))}
        return {name: None if part is None else array_ops.identity(part, name=name) for name, part in named.items()}


def dict_to_state_tuple(input_dict: Dict[str, Any], cell: Any) -> Any:
    """The state that features give a cell; None where they give none of it."""
    sizes, parts = nest.flatten(cell.state_size), []
    with name_scope("dict_to_state_tuple"):
        for i, size in enumerate(sizes):
            part = input_dict.get(_get_state_name(i))
            if part is None:
                continue
            checks = [
                check_ops.assert_rank(part, 2, name="check_state_%d_rank" % i),
                check_ops.assert_equal(array_ops.shape(part)[1], size, name="check_state_%d_shape" % i),
            ]
            with control_dependencies(checks):
                parts.append(array_ops.identity(part, name=_get_state_name(i)))
        if not parts:
            return None
        if len(parts) != len(sizes):
            raise at_user_line(ValueError("RNN state was partially specified. Expected zero or %d state Tensors; got %d" % (len(sizes), len(parts))))
        return nest.pack_sequence_as(cell.state_size, parts)


def _with_context(steps: Any, context: Any) -> Any:
    """[batch, steps, d0 + d1]: what holds for a sequence behind each of its steps."""
    checks = []
    for value, rank, what in ((steps, 3, "sequence_input"), (context, 2, "context_input")):
        checks.append(check_ops.assert_rank(value, rank, message="%s must have rank %d" % (what, rank), data=[array_ops.shape(value)]))
        checks.append(check_ops.assert_type(value, dtypes.float32, message="%s must have dtype float32; got %s." % (what, value.dtype)))
    with control_dependencies(checks):
        count = array_ops.shape(steps)[1]
        tiled = array_ops.tile(array_ops.expand_dims(context, 1), array_ops.stack([1, count, 1]))
    return array_ops.concat([steps, tiled], 2)


def build_sequence_input(
    features: Dict[Any, Any], sequence_feature_columns: Any, context_feature_columns: Any, weight_collections: Any = None, scope: Any = None
) -> Any:
    """[batch, steps, ?]: what columns make of sequences, and of what holds for all steps of one."""
    both = [*sequence_feature_columns, *(context_feature_columns or [])]
    features = {**features, **layers.transform_features(features, both)}
    steps = layers.sequence_input_from_feature_columns(features, sequence_feature_columns, weight_collections, scope=scope)
    if context_feature_columns is None:
        return steps
    return _with_context(steps, layers.input_from_feature_columns(features, context_feature_columns, weight_collections, scope=scope))


def construct_rnn(
    initial_state: Any,
    sequence_input: Any,
    cell: Any,
    num_label_columns: int,
    dtype: Any = dtypes.float32,
    parallel_iterations: Optional[int] = 32,
    swap_memory: bool = True,
) -> Tuple[Any, Any]:
    """(a layer of that many columns above the outputs of a network, its last state)."""
    with name_scope("RNN"):
        outputs, state = dynamic_rnn(
            cell, sequence_input, initial_state=initial_state, dtype=dtype, parallel_iterations=parallel_iterations, swap_memory=swap_memory
        )
        return layers.fully_connected(outputs, num_label_columns, activation_fn=None, trainable=True), state


def _single_value_predictions(activations: Any, sequence_length: Any, target_column: Any, problem_type: int, predict_probabilities: bool) -> Dict[str, Any]:
    with name_scope("SingleValuePrediction"):
        last = rnn_common.select_last_activations(activations, sequence_length)
        name = PredictionKey.CLASSES if problem_type == ProblemType.CLASSIFICATION else PredictionKey.SCORES
        if not predict_probabilities:
            return {name: target_column.logits_to_predictions(last, proba=False)}
        likely = target_column.logits_to_predictions(last, proba=True)
        return {PredictionKey.PROBABILITIES: likely, name: math_ops.argmax(likely, 1)}


def _loss(prediction_type: int, activations: Any, labels: Any, sequence_length: Any, target_column: Any, features: Any) -> Any:
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        with name_scope("MultiValueLoss"):
            activations, labels = rnn_common.mask_activations_and_labels(activations, labels, sequence_length)
            return target_column.loss(activations, labels, features)
    with name_scope("SingleValueLoss"):
        return target_column.loss(rnn_common.select_last_activations(activations, sequence_length), labels, features)


def _get_output_alternatives(prediction_type: int, problem_type: int, prediction_dict: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """What is served where sequences have one prediction: all but the state."""
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        return None
    return {"dynamic_rnn_output": (problem_type, {key: value for key, value in prediction_dict.items() if RNNKeys.STATE_PREFIX not in key})}


def _check_kinds(problem_type: int, prediction_type: int, predict_probabilities: bool) -> None:
    if problem_type not in (ProblemType.CLASSIFICATION, ProblemType.LINEAR_REGRESSION):
        raise at_user_line(ValueError("problem_type must be ProblemType.LINEAR_REGRESSION or ProblemType.CLASSIFICATION; got %s" % problem_type))
    if prediction_type not in (PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE):
        message = "prediction_type must be one of PredictionType.MULTIPLE_VALUE or PredictionType.SINGLE_VALUE; got %s"
        raise at_user_line(ValueError(message % prediction_type))
    if problem_type != ProblemType.CLASSIFICATION and predict_probabilities:
        message = "predict_probabilities can only be set to True for problem_type ProblemType.CLASSIFICATION; got %s."
        raise at_user_line(ValueError(message % problem_type))


def _get_dynamic_rnn_model_fn(
    cell_type: Any,
    num_units: Any,
    target_column: Any,
    problem_type: int,
    prediction_type: int,
    optimizer: Any,
    sequence_feature_columns: Any,
    context_feature_columns: Any = None,
    predict_probabilities: bool = False,
    learning_rate: Any = None,
    gradient_clipping_norm: Optional[float] = None,
    dropout_keep_probabilities: Any = None,
    sequence_length_key: str = RNNKeys.SEQUENCE_LENGTH_KEY,
    dtype: Any = dtypes.float32,
    parallel_iterations: Optional[int] = None,
    swap_memory: bool = True,
    name: str = "DynamicRNNModel",
) -> Callable[..., ModelFnOps]:
    """A model function of (features, labels, mode)."""
    _check_kinds(problem_type, prediction_type, predict_probabilities)
    multiple = prediction_type == PredictionType.MULTIPLE_VALUE

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        with name_scope(name):
            lengths = features.get(sequence_length_key)
            inputs = build_sequence_input(features, sequence_feature_columns, context_feature_columns)
            cell = rnn_common.construct_rnn_cell(num_units, cell_type, dropout_keep_probabilities if mode == ModeKeys.TRAIN else None)
            state = dict_to_state_tuple(features, cell)
            activations, state = construct_rnn(state, inputs, cell, target_column.num_label_columns, dtype, parallel_iterations, swap_memory)
            if multiple:
                predictions = rnn_common.multi_value_predictions(activations, target_column, problem_type, predict_probabilities)
            else:
                predictions = _single_value_predictions(activations, lengths, target_column, problem_type, predict_probabilities)
            loss, measured, train_op = None, None, None
            if mode != ModeKeys.INFER:
                loss = _loss(prediction_type, activations, labels, lengths, target_column, features)
            predictions.update(state_tuple_to_dict(state))
            if mode != ModeKeys.INFER:
                measured = rnn_common.get_eval_metric_ops(problem_type, prediction_type, lengths, predictions, labels)
            if mode == ModeKeys.TRAIN:
                train_op = layers.optimize_loss(
                    loss, None, learning_rate, optimizer, clip_gradients=gradient_clipping_norm, summaries=layers.OPTIMIZER_SUMMARIES
                )
        served = _get_output_alternatives(prediction_type, problem_type, predictions)
        return ModelFnOps(mode, predictions, loss, train_op, measured, served)

    return model_fn


class DynamicRnnEstimator(Estimator):
    """A recurrent network over sequences of features, whose lengths the feature "sequence_length" may tell, and whose first state those named
    rnn_cell_state_0, ...; its last state is among the predictions."""

    def __init__(
        self,
        problem_type: int,
        prediction_type: int,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_classes: Optional[int] = None,
        num_units: Any = None,
        cell_type: Any = "basic_rnn",
        optimizer: Any = "SGD",
        learning_rate: Any = 0.1,
        predict_probabilities: bool = False,
        momentum: Optional[float] = None,
        gradient_clipping_norm: Optional[float] = 5.0,
        dropout_keep_probabilities: Optional[List[float]] = None,
        model_dir: Optional[str] = None,
        feature_engineering_fn: Any = None,
        config: Any = None,
    ) -> None:
        _check_kinds(problem_type, prediction_type, predict_probabilities)
        name = "MultiValueDynamicRNN" if prediction_type == PredictionType.MULTIPLE_VALUE else "SingleValueDynamicRNN"
        if problem_type == ProblemType.LINEAR_REGRESSION:
            name, target = name + "Regressor", layers.regression_target()
        elif not num_classes:
            raise at_user_line(ValueError("For CLASSIFICATION problem_type, num_classes must be specified."))
        else:
            name, target = name + "Classifier", layers.multi_class_target(n_classes=num_classes)
        if optimizer == "Momentum":
            optimizer = MomentumOptimizer(learning_rate, momentum)
        model_fn = _get_dynamic_rnn_model_fn(
            cell_type,
            num_units,
            target,
            problem_type,
            prediction_type,
            optimizer,
            sequence_feature_columns,
            context_feature_columns,
            predict_probabilities,
            learning_rate,
            gradient_clipping_norm,
            dropout_keep_probabilities,
            name=name,
        )
        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)
