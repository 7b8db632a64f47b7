# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.nn.rnn_cell: recurrent cells."""

from millrace.ops.rnn_cells import (  # noqa: F401
    BasicLSTMCell,
    BasicRNNCell,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    RNNCell,
    _LayerRNNCell,
)
from millrace.ops.rnn_parts import (  # noqa: F401
    _BIAS_VARIABLE_NAME,
    _WEIGHTS_VARIABLE_NAME,
    ASSERT_LIKE_RNNCELL_ERROR_REGEXP,
    _concat,
    _depth,
    _linear,
    _Linear,
    _zero_state_tensors,
    _zeros,
    assert_like_rnncell,
)
from millrace.ops.rnn_wrappers import (  # noqa: F401
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
    ResidualWrapper,
    _SlimRNNCell,
)

LayerRNNCell = _LayerRNNCell
