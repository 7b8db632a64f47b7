# SPDX-License-Identifier: Apache-2.0
"""Networks of tf.contrib.learn.models: functions that put layers below a linear model."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace.contrib.rnn_cells import AttentionCellWrapper
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.ops import array_ops, init_ops, nn_ops, rnn
from millrace.ops.rnn_cell import BasicLSTMCell, BasicRNNCell, GRUCell, MultiRNNCell, RNNCell
from millrace.ops.variable_scope import get_variable, variable_scope

DROPOUTS = "_learn_dropouts"  # the collection of (probability to be kept, what it is in training); else it is 1


def get_dnn_model(hidden_units: Sequence[int], target_predictor_fn: Callable[..., Any], dropout: Optional[float] = None) -> Callable[[Any, Any], Any]:
    """A function of (x, y): dense layers, each followed by relu, below a model. `dropout` is the probability of being left out in training."""

    def dnn_estimator(x: Any, y: Any) -> Any:
        with variable_scope("dnn"):
            for i, units in enumerate(hidden_units):
                with variable_scope("layer%d" % i):
                    with variable_scope("Linear"):
                        matrix = get_variable("Matrix", [x.get_shape()[1].value, units], x.dtype.base_dtype)
                        bias = get_variable("Bias", [units], x.dtype.base_dtype, init_ops.zeros_initializer())
                    x = nn_ops.relu(nn_ops.xw_plus_b(x, matrix, bias))
                    if dropout is not None:
                        kept = array_ops.placeholder_with_default(1.0, [], name="kept")
                        get_default_graph().add_to_collection(DROPOUTS, (kept, 1.0 - dropout))
                        x = nn_ops.dropout(x, keep_prob=kept)
        return target_predictor_fn(x, y)

    return dnn_estimator


def _turned(steps: List[Any], lengths: Any) -> List[Any]:
    if lengths is None:
        return steps[::-1]
    return list(array_ops.unstack(array_ops.reverse_sequence(array_ops.stack(steps), lengths, 0, 1)))


def bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Tuple[List[Tensor], Tensor]:
    """(outputs of both directions step by step, both last states), each joined along the depth, for a list of steps."""
    for name, cell in (("cell_fw", cell_fw), ("cell_bw", cell_bw)):
        if not isinstance(cell, RNNCell):
            raise at_user_line(TypeError("%s must be an instance of RNNCell, got %r" % (name, cell)))
    if not isinstance(inputs, list):
        raise at_user_line(TypeError("inputs must be a list, got %r" % (inputs,)))
    if not inputs:
        raise at_user_line(ValueError("inputs must not be empty"))
    name = scope or "BiRNN"
    with variable_scope(name + "_FW"):
        forwards, last_forwards = rnn.static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length)
    with variable_scope(name + "_BW"):
        backwards, last_backwards = rnn.static_rnn(cell_bw, _turned(inputs, sequence_length), initial_state_bw, dtype, sequence_length)
    outputs = [array_ops.concat([fw, bw], 1) for fw, bw in zip(forwards, _turned(list(backwards), sequence_length))]
    return outputs, array_ops.concat([last_forwards, last_backwards], 1)


def get_rnn_model(
    rnn_size: int,
    cell_type: str,
    num_layers: int,
    input_op_fn: Callable[[Any], Any],
    bidirectional: bool,
    target_predictor_fn: Callable[..., Any],
    sequence_length: Any,
    initial_state: Any,
    attn_length: Optional[int] = None,
    attn_size: Optional[int] = None,
    attn_vec_size: Optional[int] = None,
) -> Callable[[Any, Any], Any]:
    """A function of (x, y): a recurrent network over what input_op_fn makes of x, and a model on its last state. cell_type is rnn, gru or lstm."""
    kinds: Dict[str, Any] = {"rnn": BasicRNNCell, "gru": GRUCell, "lstm": functools.partial(BasicLSTMCell, state_is_tuple=False)}
    if cell_type not in kinds:
        raise at_user_line(ValueError("cell_type %s is not supported: one of %s" % (cell_type, ", ".join(kinds))))

    def cells() -> Any:
        made = [kinds[cell_type](rnn_size) for _ in range(num_layers)]
        if attn_length is not None:
            made = [AttentionCellWrapper(cell, attn_length, attn_size, attn_vec_size, state_is_tuple=False) for cell in made]
        return MultiRNNCell(made, state_is_tuple=False)

    def rnn_estimator(x: Any, y: Any) -> Any:
        x = input_op_fn(x)
        if bidirectional:
            _, encoding = bidirectional_rnn(cells(), cells(), x, initial_state, initial_state, dtypes.float32, sequence_length)
        else:
            _, encoding = rnn.static_rnn(cells(), x, initial_state, dtypes.float32, sequence_length)
        return target_predictor_fn(encoding, y)

    return rnn_estimator
