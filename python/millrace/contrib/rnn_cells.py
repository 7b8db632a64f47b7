# SPDX-License-Identifier: Apache-2.0
"""The cells of tf.contrib.rnn that tf.nn.rnn_cell does not have, and cells that run a whole sequence."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import arguments, nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import initializers as named
from millrace.ops import array_ops, init_ops, math_ops, matrix_ops, nn_ops, rnn
from millrace.ops.rnn_cell import LSTMStateTuple, RNNCell, _depth, _linear, assert_like_rnncell
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


class _Memory(RNNCell):
    """A cell whose state is c and h."""

    _num_units: int
    _state_is_tuple = True

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        return LSTMStateTuple(self._num_units, self._num_units) if self._state_is_tuple else 2 * self._num_units

    output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _read(self, state: Any) -> Any:
        return state if self._state_is_tuple else array_ops.split(state, 2, 1)

    def _written(self, c: Tensor, h: Tensor) -> Any:
        return LSTMStateTuple(c, h) if self._state_is_tuple else array_ops.concat([c, h], 1)


class CoupledInputForgetGateLSTMCell(_Memory):
    """An LSTM cell that forgets as much as it takes in (Greff and others)."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: Optional[int] = None,
        proj_clip: Any = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = math_ops.tanh,
        reuse: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        arguments.only(1, num_unit_shards=num_unit_shards or 1)
        arguments.only(1, num_proj_shards=num_proj_shards or 1)
        super().__init__(_reuse=reuse)
        self._num_units, self._peepholes, self._initializer, self._num_proj = num_units, use_peepholes, named.get(initializer), num_proj
        self._proj_clip, self._forget_bias, self._state_is_tuple, self._activation = proj_clip, forget_bias, state_is_tuple, activation
        self._gains = (norm_gain, norm_shift) if layer_norm else None

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        sizes = LSTMStateTuple(self._num_units, self._num_proj or self._num_units)
        return sizes if self._state_is_tuple else sum(sizes)

    output_size = property(lambda self: self._num_proj or self._num_units, doc="The size of the output.")

    def _peep(self, name: str, c: Tensor) -> Any:
        return get_variable(name, [self._num_units], c.dtype.base_dtype, self._initializer) * c if self._peepholes else 0.0

    def _norm(self, value: Tensor, scope: str) -> Tensor:
        return value if self._gains is None else _normalized(value, scope, *self._gains)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        n, dtype = self._num_units, inputs.dtype.base_dtype
        c, h = state if self._state_is_tuple else (state[:, :n], state[:, n:])
        kernel = get_variable("W_0", [_depth(inputs) + _depth(h), 3 * n], dtype, self._initializer)
        bias = get_variable("B", [3 * n], dtype, init_ops.zeros_initializer())
        j, f, o = array_ops.split(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, h], 1), kernel), bias), 3, 1)
        j, f, o = self._norm(j, "transform"), self._norm(f, "forget"), self._norm(o, "output")
        keep = math_ops.sigmoid(f + self._forget_bias + self._peep("W_F_diag", c))
        new_c = self._norm(keep * c + (1.0 - keep) * self._activation(j), "state")
        new_h = math_ops.sigmoid(o + self._peep("W_O_diag", new_c)) * self._activation(new_c)
        if self._num_proj is not None:
            new_h = matrix_ops.matmul(new_h, get_variable("W_P_0", [n, self._num_proj], dtype, self._initializer))
            if self._proj_clip is not None:
                new_h = math_ops.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, self._written(new_c, new_h)


class NASCell(_Memory):
    """The cell that Zoph and Le found by search (Neural Architecture Search with Reinforcement Learning)."""

    def __init__(
        self, num_units: int, num_proj: Optional[int] = None, use_biases: bool = False, reuse: Any = None, use_bias: Optional[bool] = None, **unused: Any
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_proj, self._biased = num_units, num_proj, use_biases if use_bias is None else use_bias

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        return LSTMStateTuple(self._num_units, self._num_proj or self._num_units)

    output_size = property(lambda self: self._num_proj or self._num_units, doc="The size of the output.")

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        n, dtype = self._num_units, inputs.dtype.base_dtype
        c, h = state
        own = matrix_ops.matmul(h, get_variable("recurrent_kernel", [self.output_size, 8 * n], dtype))
        if self._biased:
            own = nn_ops.bias_add(own, get_variable("bias", [8 * n], dtype, init_ops.zeros_initializer()))
        given = matrix_ops.matmul(inputs, get_variable("kernel", [_depth(inputs), 8 * n], dtype))
        a, b = array_ops.split(given, 8, 1), array_ops.split(own, 8, 1)
        sigmoid, tanh, relu = math_ops.sigmoid, math_ops.tanh, nn_ops.relu
        first = tanh(sigmoid(a[0] + b[0]) * relu(a[1] + b[1]))
        second = tanh(sigmoid(a[2] + b[2]) + relu(a[3] * b[3]))
        third = tanh(tanh(a[4] + b[4]) * sigmoid(a[5] + b[5]))
        fourth = sigmoid(tanh(a[6] + b[6]) + sigmoid(a[7] + b[7]))
        new_c = tanh(first + c) * second
        new_h = tanh(new_c * tanh(third + fourth))
        if self._num_proj is not None:
            new_h = matrix_ops.matmul(new_h, get_variable("projection_weights", [n, self._num_proj], dtype))
        return new_h, LSTMStateTuple(new_c, new_h)


def _normalized(value: Tensor, scope: str, gain: float, shift: float) -> Tensor:
    """The rows with mean 0 and variance 1, times gamma, plus beta."""
    size, dtype = _depth(value), value.dtype.base_dtype
    with variable_scope(scope):
        gamma = get_variable("gamma", [size], dtype, init_ops.constant_initializer(gain))
        beta = get_variable("beta", [size], dtype, init_ops.constant_initializer(shift))
    mean, variance = nn_ops.moments(value, [1], keep_dims=True)
    return nn_ops.batch_normalization(value, mean, variance, beta, gamma, 1e-12)


class LayerNormBasicLSTMCell(_Memory):
    """An LSTM cell with layer normalization and recurrent dropout."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = math_ops.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: Optional[int] = None,
        reuse: Any = None,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._activation, self._normalize = num_units, forget_bias, activation, layer_norm
        self._gain, self._shift, self._keep, self._seed = norm_gain, norm_shift, dropout_keep_prob, dropout_prob_seed

    def _norm(self, value: Tensor, scope: str) -> Tensor:
        return _normalized(value, scope, self._gain, self._shift) if self._normalize else value

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        sums = _linear([inputs, h], 4 * self._num_units, False)
        if not self._normalize:
            sums = nn_ops.bias_add(sums, get_variable("bias", [4 * self._num_units], sums.dtype.base_dtype))  # of the scope's initializer
        parts = array_ops.split(sums, 4, 1)
        i, j, f, o = (self._norm(part, scope) for part, scope in zip(parts, ("input", "transform", "forget", "output")))
        g = self._activation(j)
        if not isinstance(self._keep, (int, float)) or self._keep < 1:
            g = nn_ops.dropout(g, self._keep, seed=self._seed)
        new_c = self._norm(c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * g, "state")
        new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class UGRNNCell(RNNCell):
    """The update gate recurrent cell."""

    def __init__(self, num_units: int, initializer: Any = None, forget_bias: float = 1.0, activation: Any = math_ops.tanh, reuse: Any = None) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer, self._forget_bias, self._activation = num_units, initializer, forget_bias, activation

    state_size = output_size = property(lambda self: self._num_units, doc="The number of units.")

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        gate, candidate = array_ops.split(_linear([inputs, state], 2 * self._num_units, True, kernel_initializer=self._initializer), 2, 1)
        gate = math_ops.sigmoid(gate + self._forget_bias)
        new = gate * state + (1.0 - gate) * self._activation(candidate)
        return new, new


class HighwayWrapper(RNNCell):
    """A cell whose output is mixed with its input by a gate."""

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0) -> None:
        super().__init__()
        self._cell, self._couple, self._carry_bias = cell, couple_carry_transform_gates, carry_bias_init

    state_size = property(lambda self: self._cell.state_size, doc="The cell's.")
    output_size = property(lambda self: self._cell.output_size, doc="The cell's.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cell's."""
        return self._cell.zero_state(batch_size, dtype)

    def _gate(self, name: str, value: Any, bias: float) -> Tensor:
        size = _depth(value)
        kernel = get_variable("%s_w" % name, [size, size], value.dtype.base_dtype)
        offset = get_variable("%s_b" % name, [size], value.dtype.base_dtype, init_ops.constant_initializer(bias))
        return math_ops.sigmoid(nn_ops.xw_plus_b(value, kernel, offset))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """(output, next state)."""
        output, state = self._cell(inputs, state, scope) if scope is not None else self._cell(inputs, state)
        carry = self._gate("carry", inputs, self._carry_bias)
        transform = 1.0 - carry if self._couple else self._gate("transform", inputs, -self._carry_bias)
        return inputs * carry + output * transform, state


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its last outputs (Bahdanau and others)."""

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: Optional[int] = None,
        attn_vec_size: Optional[int] = None,
        input_size: Optional[int] = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if attn_length <= 0:
            raise at_user_line(ValueError("attn_length should be greater than zero, got %s" % attn_length))
        if not state_is_tuple and nest.is_sequence(cell.state_size):
            raise at_user_line(ValueError("Cell returns tuple of states, but the flag state_is_tuple is not set. State size is: %s" % (cell.state_size,)))
        self._cell, self._length, self._size = cell, attn_length, attn_size or cell.output_size
        self._vector, self._input_size, self._state_is_tuple = attn_vec_size or self._size, input_size, state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of the cell's state, of what was attended to, and of the last outputs."""
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    output_size = property(lambda self: self._size, doc="The size of the attention.")

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        if self._state_is_tuple:
            inner, attended, memory = state
        else:
            size = self._cell.state_size
            inner, attended, memory = state[:, :size], state[:, size : size + self._size], state[:, size + self._size :]
        memory = array_ops.reshape(memory, [-1, self._length, self._size])
        output, inner = self._cell(_linear([inputs, attended], self._input_size or _depth(inputs), True), inner)
        flat = array_ops.concat(list(inner), 1) if isinstance(inner, (list, tuple)) else inner
        attended, memory = self._attention(flat, memory)
        with variable_scope("attn_output_projection"):
            output = _linear([output, attended], self._size, True)
        memory = array_ops.reshape(array_ops.concat([memory, array_ops.expand_dims(output, 1)], 1), [-1, self._length * self._size])
        new = (inner, attended, memory)
        return output, new if self._state_is_tuple else array_ops.concat(list(new), 1)

    def _attention(self, query: Tensor, memory: Tensor) -> Tuple[Tensor, Tensor]:
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, self._size, self._vector])
            vector = get_variable("attn_v", [self._vector])
            hidden = array_ops.reshape(memory, [-1, self._length, 1, self._size])
            features = nn_ops.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            asked = array_ops.reshape(_linear(query, self._vector, True), [-1, 1, 1, self._vector])
            weights = nn_ops.softmax(math_ops.reduce_sum(vector * math_ops.tanh(features + asked), [2, 3]))
            found = math_ops.reduce_sum(array_ops.reshape(weights, [-1, self._length, 1, 1]) * hidden, [1, 2])
            return array_ops.reshape(found, [-1, self._size]), memory[:, 1:]


class ConvLSTMCell(_Memory):
    """An LSTM whose state is an image (Shi and others)."""

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Any,
        output_channels: int,
        kernel_shape: Any,
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        arguments.only(None, initializers=initializers)
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise at_user_line(ValueError("Invalid input_shape %s for conv_ndims=%d." % (input_shape, conv_ndims)))
        self._input_shape, self._channels, self._kernel, self._biased = list(input_shape), output_channels, list(kernel_shape), use_bias
        self._skip, self._forget_bias = skip_connection, forget_bias

    @property
    def state_size(self) -> Any:
        """The shapes of c and h."""
        shape = TensorShape(self._input_shape[:-1] + [self._channels])
        return LSTMStateTuple(shape, shape)

    @property
    def output_size(self) -> Any:
        """The shape of the output."""
        return TensorShape(self._input_shape[:-1] + [self._channels + (self._input_shape[-1] if self._skip else 0)])

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        both = array_ops.concat([inputs, h], -1)
        channels = self._input_shape[-1] + self._channels
        kernel = get_variable("kernel", self._kernel + [channels, 4 * self._channels], inputs.dtype.base_dtype)
        values = nn_ops.convolution(both, kernel, "SAME")
        if self._biased:
            values = values + get_variable("biases", [4 * self._channels], inputs.dtype.base_dtype, init_ops.zeros_initializer())
        i, j, f, o = array_ops.split(values, 4, -1)
        new_c = c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * math_ops.tanh(j)
        new_h = math_ops.tanh(new_c) * math_ops.sigmoid(o)
        return array_ops.concat([new_h, inputs], -1) if self._skip else new_h, LSTMStateTuple(new_c, new_h)


class Conv1DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of rows."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell of volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)


class IntersectionRNNCell(RNNCell):
    """The +RNN of Collins and others (2017): gates between state and candidate, and between inputs and output."""

    def __init__(
        self,
        num_units: int,
        num_in_proj: Optional[int] = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = nn_ops.relu,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_in_proj, self._initializer = num_units, num_in_proj, initializer
        self._forget_bias, self._y_activation = forget_bias, y_activation

    state_size = output_size = property(lambda self: self._num_units, doc="The number of units.")

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        n = self._num_units
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if _depth(inputs) != n:
                if not self._num_in_proj:
                    raise at_user_line(
                        ValueError("Must have input size == output size for Intersection RNN. To fix, num_in_proj should be set to num_units at cell init.")
                    )
                with variable_scope("in_projection"):
                    inputs = _linear(inputs, n, True)
            parts = _linear(array_ops.concat([inputs, state], 1), 4 * n, True)
        forget, candidate, mix, output = array_ops.split(parts, 4, 1)
        forget, mix = math_ops.sigmoid(forget + self._forget_bias), math_ops.sigmoid(mix + self._forget_bias)
        new = forget * state + (1.0 - forget) * math_ops.tanh(candidate)
        return mix * inputs + (1.0 - mix) * self._y_activation(output), new


class FusedRNNCellAdaptor:
    """A cell as one that runs a whole sequence [time, batch, depth]."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._dynamic = cell, use_dynamic_rnn

    def __call__(self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
        """(outputs, last state)."""
        if self._dynamic or not isinstance(inputs, (list, tuple)):
            return rnn.dynamic_rnn(self._cell, inputs, sequence_length, initial_state, dtype, time_major=True, scope=scope)
        return rnn.static_rnn(self._cell, inputs, initial_state, dtype, sequence_length, scope)


class TimeReversedFusedRNN:
    """Runs a cell from the end of each sequence to its beginning."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    @staticmethod
    def _turned(value: Any, lengths: Any) -> Any:
        if isinstance(value, list):
            return value[::-1]
        return array_ops.reverse(value, [0]) if lengths is None else array_ops.reverse_sequence(value, lengths, 0, 1)

    def __call__(self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
        """(outputs, last state)."""
        outputs, state = self._cell(self._turned(inputs, sequence_length), initial_state, dtype, sequence_length, scope)
        return self._turned(outputs, sequence_length), state
