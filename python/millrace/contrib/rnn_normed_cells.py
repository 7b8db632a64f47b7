# SPDX-License-Identifier: Apache-2.0
"""LSTM cells of tf.contrib.rnn with peepholes and projections, whose sums or weights are normalised."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.rnn_cells import _normalized
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.rnn_cell import LSTMStateTuple, RNNCell, _depth
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


class _WholeLSTMCell(RNNCell):
    """An LSTM cell; what it normalises is a subclass'."""

    _num_units: int
    _use_peepholes: bool
    _cell_clip: Any
    _initializer: Any
    _num_proj: Optional[int]
    _proj_clip: Any
    _forget_bias: float
    _activation: Any

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        return LSTMStateTuple(self._num_units, self._num_proj or self._num_units)

    output_size = property(lambda self: self._num_proj or self._num_units, doc="That of h.")

    def _linear(self, args: Any, size: int, bias: bool) -> Tensor:
        raise NotImplementedError

    def _part(self, value: Tensor, name: str) -> Tensor:
        """A part of the sums, or the state, as it is used."""
        del name  # what a subclass names its parameters after
        return value

    def _step(self, inputs: Any, c: Any, h: Any) -> Any:
        sums = array_ops.split(self._linear([inputs, h], 4 * self._num_units, True), 4, 1)
        i, j, f, o = (self._part(part, name) for part, name in zip(sums, ("input", "transform", "forget", "output")))
        peeps: Any = [None] * 3
        if self._use_peepholes:
            peeps = [get_variable("w_%s_diag" % gate, [self._num_units], inputs.dtype.base_dtype) for gate in "fio"]

        def opened(value: Any, peep: Any, state: Any) -> Any:
            return math_ops.sigmoid(value if peep is None else value + peep * state)

        new_c = opened(f + self._forget_bias, peeps[0], c) * c + opened(i, peeps[1], c) * self._activation(j)
        new_c = self._part(new_c, "state")
        if self._cell_clip is not None:
            new_c = math_ops.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        new_h = opened(o, peeps[2], new_c) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                new_h = self._linear([new_h], self._num_proj, False)
            if self._proj_clip is not None:
                new_h = math_ops.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h)


def _product(args: Any, kernel: Any) -> Tensor:
    return matrix_ops.matmul(args[0] if len(args) == 1 else array_ops.concat(args, 1), kernel)


class LayerNormLSTMCell(_WholeLSTMCell):
    """An LSTM cell with peepholes and a projection whose sums, and state, may be normalised over the units (Ba and others, 2016)."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: Any = None,
        initializer: Any = None,
        num_proj: Optional[int] = None,
        proj_clip: Any = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip, self._initializer = num_units, use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip, self._forget_bias, self._activation = num_proj, proj_clip, forget_bias, activation or math_ops.tanh
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    def _part(self, value: Tensor, name: str) -> Tensor:
        return _normalized(value, name, self._gain, self._shift) if self._layer_norm else value

    def _linear(self, args: Any, size: int, bias: bool) -> Tensor:
        dtype = args[0].dtype.base_dtype
        sums = _product(args, get_variable("kernel", [sum(_depth(a) for a in args), size], dtype))
        if not bias:
            return sums
        offset = get_variable("bias", [size], dtype, init_ops.zeros_initializer())
        return sums if self._layer_norm else nn_ops.bias_add(sums, offset)  # what is normalised has a shift of its own

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            return self._step(inputs, *state)


class WeightNormLSTMCell(_WholeLSTMCell):
    """An LSTM cell with peepholes and a projection whose weights are directions and lengths (Salimans and Kingma, 2016)."""

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: Any = None,
        initializer: Any = None,
        num_proj: Optional[int] = None,
        proj_clip: Any = None,
        forget_bias: float = 1,
        activation: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name="wn_lstm_cell")
        self._num_units, self._norm, self._use_peepholes, self._cell_clip, self._initializer = num_units, norm, use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip, self._forget_bias, self._activation = num_proj, proj_clip, forget_bias, activation or math_ops.tanh

    def _linear(self, args: Any, size: int, bias: bool) -> Tensor:
        dtype, depths = args[0].dtype.base_dtype, [_depth(a) for a in args]
        kernel: Any = get_variable("kernel", [sum(depths), size], dtype)
        if self._norm:
            parts = array_ops.split(kernel, depths, 0)
            lengths = [get_variable("norm_%d" % i, [size], dtype) for i in range(len(args))]
            kernel = array_ops.concat([nn_ops.l2_normalize(part, 0) * g for part, g in zip(parts, lengths)], 0)
        sums = _product(args, kernel)
        return nn_ops.bias_add(sums, get_variable("bias", [size], dtype, init_ops.zeros_initializer())) if bias else sums

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        with variable_scope("wn_lstm_cell", initializer=self._initializer):
            return self._step(inputs, *state)
