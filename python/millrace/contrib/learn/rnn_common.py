# SPDX-License-Identifier: Apache-2.0
"""What the recurrent estimators of tf.contrib.learn share: cells, and what is made of the outputs of steps."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from millrace import metrics
from millrace.contrib.learn.keys import PredictionKey, ProblemType
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, math_ops, rnn_cell


class RNNKeys:
    """The names of features and predictions."""

    FINAL_STATE_KEY, LABELS_KEY, SEQUENCE_LENGTH_KEY, STATE_PREFIX = "final_state", "__labels__", "sequence_length", "rnn_cell_state"


class PredictionType:
    """Whether a sequence has one prediction, or each of its steps."""

    SINGLE_VALUE, MULTIPLE_VALUE = 1, 2


_CELLS = {"basic_rnn": rnn_cell.BasicRNNCell, "lstm": rnn_cell.LSTMCell, "gru": rnn_cell.GRUCell}


def _get_single_cell(cell_type: Any, num_units: int) -> Any:
    made = _CELLS.get(cell_type, cell_type)
    if not made or not issubclass(made, rnn_cell.RNNCell):
        raise at_user_line(ValueError("The supported cell types are %s; got %s" % (list(_CELLS), made)))
    return made(num_units=num_units)


def construct_rnn_cell(num_units: Any, cell_type: Any = "basic_rnn", dropout_keep_probabilities: Any = None) -> Any:
    """A cell, or several, one above the other, of a class or a name of _CELLS."""
    cells = [_get_single_cell(cell_type, n) for n in (num_units if isinstance(num_units, (list, tuple)) else [num_units])]
    if dropout_keep_probabilities:
        cells = apply_dropout(cells, dropout_keep_probabilities)
    return cells[0] if len(cells) == 1 else rnn_cell.MultiRNNCell(cells)


def apply_dropout(cells: Sequence[Any], dropout_keep_probabilities: Sequence[Any], random_seed: Any = None) -> List[Any]:
    """Cells with dropout before each and behind the last one."""
    kept = dropout_keep_probabilities
    if len(kept) != len(cells) + 1:
        message = "The number of dropout probabilities must be one greater than the number of cells. Got %d cells and %d dropout probabilities."
        raise at_user_line(ValueError(message % (len(cells), len(kept))))
    below = [rnn_cell.DropoutWrapper(cell, before, 1.0, seed=random_seed) for cell, before in zip(cells[:-1], kept)]
    return [*below, rnn_cell.DropoutWrapper(cells[-1], kept[-2], kept[-1])]


def get_eval_metric_ops(problem_type: int, prediction_type: int, sequence_length: Any, prediction_dict: Dict[str, Any], labels: Any) -> Dict[str, Any]:
    """The accuracy of classes; nothing for numbers."""
    if problem_type != ProblemType.CLASSIFICATION:
        return {}
    classes = prediction_dict[PredictionKey.CLASSES]
    if prediction_type == PredictionType.MULTIPLE_VALUE:
        classes, labels = mask_activations_and_labels(classes, labels, sequence_length)
    return {"accuracy": metrics.accuracy(labels=labels, predictions=classes)}


def select_last_activations(activations: Any, sequence_lengths: Any) -> Any:
    """[batch, k] of [batch, steps, k]: the last step of each sequence."""
    with name_scope("select_last_activations", values=[activations, sequence_lengths]):
        shape = array_ops.shape(activations)
        lengths = shape[1] if sequence_lengths is None else math_ops.cast(sequence_lengths, dtypes.int32)
        rows = math_ops.range(shape[0]) * shape[1] + lengths - 1
        last = array_ops.gather(array_ops.reshape(activations, [-1, shape[2]]), rows)
        last.set_shape([activations.get_shape()[0], activations.get_shape()[2]])
        return last


def mask_activations_and_labels(activations: Any, labels: Any, sequence_lengths: Any) -> Tuple[Any, Any]:
    """Both without the steps behind the ends of sequences, as [steps, k] and [steps]."""
    with name_scope("mask_activations_and_labels", values=[activations, labels, sequence_lengths]):
        shape = array_ops.shape(labels)
        if sequence_lengths is None:
            count = shape[1] * shape[0]
            return array_ops.reshape(activations, [count, -1]), array_ops.reshape(labels, [count])
        mask = array_ops.sequence_mask(sequence_lengths, shape[1])
        return array_ops.boolean_mask(activations, mask), array_ops.boolean_mask(labels, mask)


def multi_value_predictions(activations: Any, target_column: Any, problem_type: int, predict_probabilities: bool) -> Dict[str, Any]:
    """Predictions of each step, with or without the probabilities of classes."""
    with name_scope("MultiValuePrediction"):
        shape = array_ops.shape(activations)
        flat = array_ops.reshape(activations, [-1, shape[2]])
        made: Dict[str, Any] = {}
        if predict_probabilities:
            likely = target_column.logits_to_predictions(flat, proba=True)
            values = math_ops.argmax(likely, 1)
            shaped = array_ops.concat([shape[:2], [2]], 0) if target_column.num_label_columns == 1 else shape
            made[PredictionKey.PROBABILITIES] = array_ops.reshape(likely, shaped, name=PredictionKey.PROBABILITIES)
        else:
            values = target_column.logits_to_predictions(flat, proba=False)
        name = PredictionKey.CLASSES if problem_type == ProblemType.CLASSIFICATION else PredictionKey.SCORES
        made[name] = array_ops.reshape(values, [shape[0], shape[1]], name=name)
        return made
