# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: recurrent networks above columns of sequences, below a head."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence

from millrace import feature_column, layers, losses, summary
from millrace.contrib.estimator_extenders import clip_gradients_by_norm
from millrace.contrib.feature_column import concatenate_context_input, sequence_input_layer
from millrace.contrib.learn.rnn_common import select_last_activations
from millrace.estimator.canned import _check_features, _replicas, _tables_partitioner
from millrace.estimator.estimator import Estimator
from millrace.estimator.heads import _Head, class_head
from millrace.estimator.optimizers import get_optimizer_instance
from millrace.estimator.spec import EstimatorSpec
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import init_ops, rnn_cell
from millrace.ops.partitioned_variables import min_max_variable_partitioner
from millrace.ops.rnn import dynamic_rnn
from millrace.ops.variable_scope import variable_scope
from millrace.train.global_step import get_global_step
from millrace.train.optimizer import Optimizer

_RATE, _CLIP_NORM = 0.05, 5.0
_CELLS = {"basic_rnn": rnn_cell.BasicRNNCell, "lstm": rnn_cell.BasicLSTMCell, "gru": rnn_cell.GRUCell}
USE_DEFAULT = object()


def _cell(num_units: int, cell_type: Any) -> Any:
    made = _CELLS.get(cell_type, cell_type)
    if not made or not issubclass(made, rnn_cell.RNNCell):
        raise at_user_line(ValueError("Supported cell types are %s; got %s" % (list(_CELLS), made)))
    return made(num_units=num_units)


def _make_rnn_cell_fn(num_units: Sequence[int], cell_type: Any = "basic_rnn") -> Callable[[str], Any]:
    """A function of a mode that gives a cell, or several, one above the other."""

    def rnn_cell_fn(mode: str) -> Any:
        del mode  # the cells are the same
        cells = [_cell(n, cell_type) for n in num_units]
        return cells[0] if len(cells) == 1 else rnn_cell.MultiRNNCell(cells)

    return rnn_cell_fn


def _checked_cell_fn(rnn_cell_fn: Any, num_units: Any, cell_type: Any) -> Callable[[str], Any]:
    if rnn_cell_fn and (num_units or cell_type is not USE_DEFAULT):
        raise at_user_line(ValueError("num_units and cell_type must not be specified when using rnn_cell_fn"))
    return rnn_cell_fn or _make_rnn_cell_fn(num_units, "basic_rnn" if cell_type is USE_DEFAULT else cell_type)


def _rnn_logit_fn_builder(
    output_units: int, rnn_cell_fn: Callable[[str], Any], sequence_feature_columns: Any, context_feature_columns: Any, input_layer_partitioner: Any
) -> Callable[..., Any]:
    """A function of features and a mode that gives the logits of the last steps."""
    if not isinstance(output_units, int):
        raise at_user_line(ValueError("output_units must be an int.  Given type: %s" % type(output_units)))

    def rnn_logit_fn(features: Dict[str, Any], mode: str) -> Any:
        with variable_scope("sequence_input_layer", values=tuple(features.values()), partitioner=input_layer_partitioner):
            steps, lengths = sequence_input_layer(features, sequence_feature_columns)
            summary.histogram("sequence_length", lengths)
            if context_feature_columns:
                steps = concatenate_context_input(feature_column.input_layer(features, context_feature_columns), steps)
        outputs, _ = dynamic_rnn(rnn_cell_fn(mode), steps, sequence_length=lengths, dtype=dtypes.float32)
        last = select_last_activations(outputs, lengths)
        with variable_scope("logits", values=(outputs,)):
            return layers.dense(last, output_units, kernel_initializer=init_ops.glorot_uniform_initializer())  # type: ignore[arg-type]

    return rnn_logit_fn


def _rnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: _Head,
    rnn_cell_fn: Callable[[str], Any],
    sequence_feature_columns: Any,
    context_feature_columns: Any,
    optimizer: Any = "Adagrad",
    input_layer_partitioner: Any = None,
    config: Any = None,
) -> EstimatorSpec:
    """A recurrent model; an optimizer that is not one already clips gradients to a norm of 5."""
    _check_features(features)
    if not isinstance(optimizer, Optimizer):
        optimizer = clip_gradients_by_norm(get_optimizer_instance(optimizer, _RATE), _CLIP_NORM)
    with variable_scope("rnn", values=tuple(features.values()), partitioner=min_max_variable_partitioner(max_partitions=_replicas(config))):
        partitioner = _tables_partitioner(input_layer_partitioner, config)
        build = _rnn_logit_fn_builder(head.logits_dimension, rnn_cell_fn, sequence_feature_columns, context_feature_columns, partitioner)
        logits = build(features=features, mode=mode)
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, logits=logits, train_op_fn=lambda loss: optimizer.minimize(loss, global_step=get_global_step())
        )


class RNNEstimator(Estimator):
    """A recurrent network below a head. `rnn_cell_fn(mode)` gives its cell, or `num_units` and `cell_type` (a class, or "basic_rnn", "lstm" or
    "gru") say what cells there are, one above the other."""

    def __init__(
        self,
        head: _Head,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_units: Optional[Sequence[int]] = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Optional[Callable[[str], Any]] = None,
        model_dir: Optional[str] = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        cell_fn = _checked_cell_fn(rnn_cell_fn, num_units, cell_type)
        columns = tuple(sequence_feature_columns or ()), tuple(context_feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return _rnn_model_fn(features, labels, mode, head, cell_fn, *columns, optimizer, input_layer_partitioner, config)

        super().__init__(model_fn, model_dir, config)


class RNNClassifier(RNNEstimator):
    """A recurrent network that tells classes apart."""

    def __init__(
        self,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_units: Optional[Sequence[int]] = None,
        cell_type: Any = USE_DEFAULT,
        rnn_cell_fn: Optional[Callable[[str], Any]] = None,
        model_dir: Optional[str] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = losses.Reduction.SUM_OVER_BATCH_SIZE,
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            sequence_feature_columns,
            context_feature_columns,
            num_units,
            cell_type,
            rnn_cell_fn,
            model_dir,
            optimizer,
            input_layer_partitioner,
            config,
        )
