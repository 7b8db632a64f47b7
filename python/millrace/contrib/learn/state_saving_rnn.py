# SPDX-License-Identifier: Apache-2.0
"""StateSavingRnnEstimator of tf.contrib.learn: long sequences in segments, whose state goes from each segment to the next."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.contrib import layers
from millrace.contrib.feature_columns.models import check_sequence_columns
from millrace.contrib.learn import rnn_common
from millrace.contrib.learn.dynamic_rnn import _get_state_name, state_tuple_to_dict
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.keys import ModeKeys, ProblemType
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.contrib.learn.rnn_common import PredictionType, RNNKeys
from millrace.contrib.training_sequences import batch_sequences_with_states
from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops
from millrace.ops.rnn import static_state_saving_rnn
from millrace.ops.rnn_cell import LSTMStateTuple
from millrace.train.rules import MomentumOptimizer


def construct_state_saving_rnn(cell: Any, inputs: Any, num_label_columns: int, state_saver: Any, state_name: Any, scope: str = "rnn") -> Tuple[Any, Any]:
    """(a layer of that many columns above the outputs of a network, its last state, which state_saver has saved)."""
    with name_scope(scope):
        outputs, state = static_state_saving_rnn(cell=cell, inputs=inputs, state_saver=state_saver, state_name=state_name, scope=scope)
        activations = layers.fully_connected(array_ops.stack(outputs, axis=1), num_label_columns, activation_fn=None, trainable=True)
        return activations, array_ops.identity(state, name=RNNKeys.FINAL_STATE_KEY)


def _multi_value_loss(activations: Any, labels: Any, sequence_length: Any, target_column: Any, features: Any) -> Any:
    with name_scope("MultiValueLoss"):
        return target_column.loss(*rnn_common.mask_activations_and_labels(activations, labels, sequence_length), features)


def _get_name_or_parent_names(column: Any) -> List[str]:
    """The features that a column is made of."""
    parents = getattr(column, "columns", None) or [getattr(column, "sparse_id_column", None) or getattr(column, "source_column", None) or column]
    return [parent.name for parent in parents]


def _prepare_features_for_sqss(
    features: Dict[Any, Any], labels: Any, mode: str, sequence_feature_columns: Any, context_feature_columns: Any
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """(what has a value for each step, with the labels, what has one for a sequence)."""
    check_sequence_columns(sequence_feature_columns)

    def of(names: List[str], what: str) -> Dict[str, Any]:
        for name in names:
            if features.get(name) is None:
                raise at_user_line(ValueError("No key in features for %s feature: %s" % (what, name)))
        return {name: features[name] for name in names}

    steps = of([name for column in sequence_feature_columns for name in _get_name_or_parent_names(column)], "sequence")
    if mode != ModeKeys.INFER:
        steps[RNNKeys.LABELS_KEY] = labels
    return steps, of([column.name for column in context_feature_columns or []], "context")


def _get_state_names(cell: Any) -> Any:
    """Names of a cell's states, formed as these."""
    sizes = cell.state_size
    if isinstance(sizes, tensor_shape.TensorShape):
        raise at_user_line(TypeError("cell.state_size of type TensorShape is not supported."))
    if isinstance(sizes, int):
        return _get_state_name(0)
    if isinstance(sizes, LSTMStateTuple):
        return [_get_state_name(0) + "_c", _get_state_name(0) + "_h"]
    if isinstance(sizes[0], LSTMStateTuple):
        return [[_get_state_name(i) + "_c", _get_state_name(i) + "_h"] for i in range(len(sizes))]
    return [_get_state_name(i) for i in range(len(sizes))]


def _get_initial_states(cell: Any) -> Dict[str, Any]:
    zeros = nest.flatten(cell.zero_state(1, dtype=dtypes.float32))
    return {name: array_ops.squeeze(value, axis=[0]) for name, value in zip(nest.flatten(_get_state_names(cell)), zeros)}


def _prepare_inputs_for_rnn(sequence_features: Any, context_features: Any, sequence_feature_columns: Any, num_unroll: int) -> List[Any]:
    """For each step what columns make of the sequences, with what holds for all steps behind it."""
    for feature in sequence_features.values():
        if isinstance(feature, SparseTensor):
            feature.dense_shape.set_shape([3])  # which the queue does not say
    steps = layers.sequence_input_from_feature_columns(sequence_features, sequence_feature_columns, weight_collections=None, scope=None)
    steps.set_shape([None, num_unroll, None])
    if context_features:
        repeated = [array_ops.tile(array_ops.expand_dims(context_features[k], 1), [1, num_unroll, 1]) for k in sorted(context_features)]
        steps = array_ops.concat([steps, *repeated], axis=2)
    return array_ops.unstack(steps, axis=1)


def _get_rnn_model_fn(
    cell_type: Any,
    target_column: Any,
    problem_type: int,
    optimizer: Any,
    num_unroll: int,
    num_units: Any,
    num_threads: int,
    queue_capacity: int,
    batch_size: int,
    sequence_feature_columns: Any,
    context_feature_columns: Any = None,
    predict_probabilities: bool = False,
    learning_rate: Any = None,
    gradient_clipping_norm: Optional[float] = None,
    dropout_keep_probabilities: Any = None,
    name: str = "StateSavingRNNModel",
    seed: Optional[int] = None,
) -> Callable[..., ModelFnOps]:
    """A model function of (features, labels, mode)."""
    if problem_type not in (ProblemType.CLASSIFICATION, ProblemType.LINEAR_REGRESSION):
        raise at_user_line(ValueError("problem_type must be ProblemType.LINEAR_REGRESSION or ProblemType.CLASSIFICATION; got %s" % problem_type))
    if problem_type != ProblemType.CLASSIFICATION and predict_probabilities:
        message = "predict_probabilities can only be set to True for problem_type ProblemType.CLASSIFICATION; got %s."
        raise at_user_line(ValueError(message % problem_type))
    if num_unroll <= 0:
        raise at_user_line(ValueError("num_unroll must be positive; got %s." % num_unroll))

    def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
        with name_scope(name):
            cell = rnn_common.construct_rnn_cell(num_units, cell_type, dropout_keep_probabilities if mode == ModeKeys.TRAIN else None)
            states = _get_initial_states(cell)
            steps, context = _prepare_features_for_sqss(features, labels, mode, sequence_feature_columns, context_feature_columns)
            batch = batch_sequences_with_states(
                input_key="key",
                input_sequences=steps,
                input_context=context,
                input_length=None,
                initial_states=states,
                num_unroll=num_unroll,
                batch_size=batch_size,
                pad=True,
                make_keys_unique=True,
                make_keys_unique_seed=seed,
                num_threads=num_threads,
                capacity=queue_capacity,
            )
            steps = batch.sequences
            if mode != ModeKeys.INFER:
                labels = steps.pop(RNNKeys.LABELS_KEY)
            inputs = _prepare_inputs_for_rnn(steps, batch.context, sequence_feature_columns, num_unroll)
            activations, state = construct_state_saving_rnn(cell, inputs, target_column.num_label_columns, batch, _get_state_names(cell))
            predictions = rnn_common.multi_value_predictions(activations, target_column, problem_type, predict_probabilities)
            loss, measured, train_op = None, None, None
            if mode != ModeKeys.INFER:
                loss = _multi_value_loss(activations, labels, batch.length, target_column, features)
                measured = rnn_common.get_eval_metric_ops(problem_type, PredictionType.MULTIPLE_VALUE, batch.length, predictions, labels)
            predictions.update(state_tuple_to_dict(state))
            if mode == ModeKeys.TRAIN:
                train_op = layers.optimize_loss(
                    loss, None, learning_rate, optimizer, clip_gradients=gradient_clipping_norm, summaries=layers.OPTIMIZER_SUMMARIES
                )
        return ModelFnOps(mode, predictions, loss, train_op, measured)

    return model_fn


class StateSavingRnnEstimator(Estimator):
    """A recurrent network over sequences in segments of num_unroll steps, with a prediction for each step."""

    def __init__(
        self,
        problem_type: int,
        num_unroll: int,
        batch_size: int,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_classes: Optional[int] = None,
        num_units: Any = None,
        cell_type: Any = "basic_rnn",
        optimizer_type: Any = "SGD",
        learning_rate: Any = 0.1,
        predict_probabilities: bool = False,
        momentum: Optional[float] = None,
        gradient_clipping_norm: Optional[float] = 5.0,
        dropout_keep_probabilities: Optional[List[float]] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        num_threads: int = 3,
        queue_capacity: int = 1000,
        seed: Optional[int] = None,
    ) -> None:
        if problem_type == ProblemType.LINEAR_REGRESSION:
            name, target = "MultiValueStateSavingRNNRegressor", layers.regression_target()
        elif problem_type != ProblemType.CLASSIFICATION:
            raise at_user_line(ValueError("problem_type must be either ProblemType.LINEAR_REGRESSION or ProblemType.CLASSIFICATION; got %s" % problem_type))
        elif not num_classes:
            raise at_user_line(ValueError("For CLASSIFICATION problem_type, num_classes must be specified."))
        else:
            name, target = "MultiValueStateSavingRNNClassifier", layers.multi_class_target(n_classes=num_classes)
        if optimizer_type == "Momentum":
            optimizer_type = MomentumOptimizer(learning_rate, momentum)
        model_fn = _get_rnn_model_fn(
            cell_type,
            target,
            problem_type,
            optimizer_type,
            num_unroll,
            num_units,
            num_threads,
            queue_capacity,
            batch_size,
            sequence_feature_columns,
            context_feature_columns,
            predict_probabilities,
            learning_rate,
            gradient_clipping_norm,
            dropout_keep_probabilities,
            name,
            seed,
        )
        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)
