# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.rnn: recurrent cells and networks, as in tf.nn."""

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


def stack_bidirectional_rnn(  # type: ignore[no-untyped-def]
    cells_fw, cells_bw, inputs, initial_states_fw=None, initial_states_bw=None, dtype=None, sequence_length=None, scope=None
):
    """(outputs, last states forwards, last states backwards) of layers of two cells, for a list of steps."""
    from millrace.framework.errors import at_user_line
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
    from millrace.ops import array_ops, rnn
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
