# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.rnn: recurrent cells and networks, as in tf.nn."""

from typing import Any

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, math_ops
from millrace.ops.rnn import static_bidirectional_rnn, static_rnn, static_state_saving_rnn  # noqa: F401
from millrace.ops.rnn_cell import (  # noqa: F401
    BasicLSTMCell,
    BasicRNNCell,
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    GRUCell,
    InputProjectionWrapper,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
    RNNCell,
    _linear,
)
from millrace.contrib.rnn_cells import (  # noqa: F401
    AttentionCellWrapper,
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
    CoupledInputForgetGateLSTMCell,
    FusedRNNCellAdaptor,
    HighwayWrapper,
    IntersectionRNNCell,
    LayerNormBasicLSTMCell,
    NASCell,
    TimeReversedFusedRNN,
    UGRNNCell,
)
from millrace.contrib.rnn_grid_cells import BidirectionalGridLSTMCell, GridLSTMCell  # noqa: F401
from millrace.contrib.rnn_light_cells import CFNCell, IndRNNCell, IndyGRUCell, IndyLSTMCell, MinimalRNNCell, SRUCell  # noqa: F401
from millrace.contrib.rnn_normed_cells import LayerNormLSTMCell, WeightNormLSTMCell  # noqa: F401
from millrace.contrib.rnn_timed_cells import GLSTMCell, PhasedLSTMCell, TimeFreqLSTMCell  # noqa: F401
from millrace.contrib.rnn_block_cells import LSTMBlockCell, LSTMBlockFusedCell, _block_lstm  # noqa: F401
from millrace.ops import rnn_cell
from millrace.ops.rnn import bidirectional_dynamic_rnn, dynamic_rnn, raw_rnn  # noqa: F401

GRUBlockCell = GRUBlockCellV2 = GRUCell
linear = _linear
core_rnn_cell = rnn_cell


def transpose_batch_time(x: Any) -> Any:
    """A tensor with its first two dimensions exchanged."""
    x = convert_to_tensor(x)
    rank = x.get_shape().ndims
    if rank is not None and rank < 2:
        raise at_user_line(ValueError("Expected input tensor %s to have rank at least 2, but saw shape: %s" % (x.name, x.get_shape())))
    if rank is None:
        return array_ops.transpose(x, array_ops.concat([[1, 0], math_ops.range(2, array_ops.rank(x))], 0))
    return array_ops.transpose(x, [1, 0, *range(2, rank)])


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The size of the batch of one of some tensors [time, batch, ...]: a number where one of them knows it, and otherwise a tensor."""
    for part in flat_input:
        shape = part.get_shape()
        if shape.ndims is not None and shape.ndims < 2:
            raise at_user_line(ValueError("Expected input tensor %s to have rank at least 2" % part.name))
        if shape.ndims is not None and shape[1].value is not None:
            return shape[1].value
    return array_ops.shape(flat_input[0])[1]


def stack_bidirectional_rnn(  # type: ignore[no-untyped-def]
    cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None, dtype=None, sequence_length=None, scope=None
):
    """(outputs, last states forwards, last states backwards) of layers of two cells, for a list of steps."""
    from millrace.ops.variable_scope import variable_scope

    for name, cells in (("cells_fw", cells_fw), ("cells_bw", cells_bw)):
        if not isinstance(cells, list) or not cells:
            raise at_user_line(ValueError("%s must be a list of RNNCells (one per layer)." % name))
    if len(cells_fw) != len(cells_bw):
        raise at_user_line(ValueError("Forward and Backward cells must have the same depth."))
    for name, states in (("initial_states_fw", initial_states_fw), ("initial_states_bw", initial_states_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):
            raise at_user_line(ValueError("%s must be a list of state tensors (one per layer)." % name))
    states_fw, states_bw, value = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope("cell_%d" % i) as inside:
                value, state_fw, state_bw = static_bidirectional_rnn(
                    fw, bw, value, initial_states_fw and initial_states_fw[i], initial_states_bw and initial_states_bw[i], dtype, sequence_length, inside
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return value, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(  # type: ignore[no-untyped-def]
    cells_fw,
    cells_bw,
    inputs,
    initial_states_fw=None,
    initial_states_bw=None,
    dtype=None,
    sequence_length=None,
    parallel_iterations=None,
    time_major=False,
    scope=None,
    swap_memory=False,
):
    """(outputs, last states forwards, last states backwards) of layers of two cells."""
    from millrace.ops import rnn
    from millrace.ops.variable_scope import variable_scope

    states_fw, states_bw, value = [], [], inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope("cell_%d" % i):
                outputs, (state_fw, state_bw) = rnn.bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    value,
                    sequence_length,
                    initial_states_fw and initial_states_fw[i],
                    initial_states_bw and initial_states_bw[i],
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                value = array_ops.concat(list(outputs), 2)
                states_fw.append(state_fw)
                states_bw.append(state_bw)
    return value, tuple(states_fw), tuple(states_bw)
