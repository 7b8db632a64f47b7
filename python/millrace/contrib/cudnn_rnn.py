# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.cudnn_rnn: cells whose variables are those of cuDNN's layers, for models that were trained with these; the layers need GPUs."""

from __future__ import annotations

from typing import Any, List

from millrace.contrib.rnn_block_cells import LSTMBlockCell
from millrace.framework import missing
from millrace.ops import array_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.rnn_cells import GRUCell
from millrace.ops.variable_scope import variable_scope

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"
CUDNN_LSTM = "lstm"
CUDNN_GRU = "gru"
CUDNN_RNN_RELU = "rnn_relu"
CUDNN_RNN_TANH = "rnn_tanh"
CUDNN_LSTM_PARAMS_PER_LAYER = 8
CUDNN_GRU_PARAMS_PER_LAYER = 6
CUDNN_RNN_TANH_PARAMS_PER_LAYER = 2
CUDNN_RNN_RELU_PARAMS_PER_LAYER = 2
CUDNN_INPUT_LINEAR_MODE = "linear_input"
CUDNN_INPUT_SKIP_MODE = "skip_input"
CUDNN_INPUT_AUTO_MODE = "auto_select"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The cell of cuDNN's LSTM: without peepholes, clipping and a bias of the forget gate beside the variable."""

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(num_units, forget_bias=0, cell_clip=None, use_peephole=False, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """The cell of cuDNN's GRU, whose reset gate works on what the state adds to the candidate, with its bias, rather than on the state."""

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, activation=None, reuse=reuse, kernel_initializer=kernel_initializer)

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        n = self._num_units

        def make(scope: str, name: str, shape: List[int], initializer: Any) -> Any:
            with variable_scope(scope, auxiliary_name_scope=False):
                return self._variable(name, shape, dtype, initializer)

        ones, zeros = init_ops.constant_initializer(1.0, dtype), init_ops.zeros_initializer()
        return [
            make("gates", "kernel", [depth + n, 2 * n], self._kernel_initializer),
            make("gates", "bias", [2 * n], ones),
            make("candidate/input_projection", "kernel", [depth, n], self._kernel_initializer),
            make("candidate/hidden_projection", "kernel", [n, n], self._kernel_initializer),
            make("candidate/input_projection", "bias", [n], zeros),
            make("candidate/hidden_projection", "bias", [n], zeros),
        ]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        depth = inputs.get_shape()[1].value
        if depth is None:
            raise ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % inputs.get_shape())
        gates, gate_bias, kernel, recurrent, bias, recurrent_bias = self._parameters(depth, inputs.dtype.base_dtype)
        both = nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, state], 1), gates), gate_bias)
        r, u = array_ops.split(math_ops.sigmoid(both), 2, 1)
        candidate = nn_ops.bias_add(matrix_ops.matmul(inputs, kernel), bias)
        candidate = math_ops.tanh(candidate + r * nn_ops.bias_add(matrix_ops.matmul(state, recurrent), recurrent_bias))
        output = (1 - u) * candidate + u * state
        return output, output


_CELL = "tf.contrib.cudnn_rnn.CudnnCompatible%sCell and tf.nn.dynamic_rnn: cuDNN needs GPUs"
missing.fill(
    globals(),
    "contrib.cudnn_rnn.",
    {
        "CudnnLSTM": _CELL % "LSTM",
        "CudnnLSTMSaveable": _CELL % "LSTM",
        "CudnnGRU": _CELL % "GRU",
        "CudnnGRUSaveable": _CELL % "GRU",
        "CudnnRNNTanh": "tf.nn.rnn_cell.BasicRNNCell and tf.nn.dynamic_rnn: cuDNN needs GPUs",
        "CudnnRNNTanhSaveable": "tf.nn.rnn_cell.BasicRNNCell and tf.nn.dynamic_rnn: cuDNN needs GPUs",
        "CudnnRNNRelu": "tf.nn.rnn_cell.BasicRNNCell with activation=tf.nn.relu and tf.nn.dynamic_rnn: cuDNN needs GPUs",
        "CudnnRNNReluSaveable": "tf.nn.rnn_cell.BasicRNNCell with activation=tf.nn.relu and tf.nn.dynamic_rnn: cuDNN needs GPUs",
    },
)
