# SPDX-License-Identifier: Apache-2.0
"""Cells of tf.contrib.rnn that open by a clock, work in groups of units, or run along frequencies."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.keras import initializers
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops, random_ops
from millrace.ops.rnn_cell import LSTMStateTuple, RNNCell, _linear
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


class PhasedLSTMCell(RNNCell):
    """An LSTM cell that takes (times [batch, 1], inputs) and changes only while its units' clocks are on (Neil and others, 2016)."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._peepholes, self._leak, self._ratio_on, self._trainable = num_units, use_peepholes, leak, ratio_on, trainable_ratio_on
        self._first, self._last = float(period_init_min), float(period_init_max)

    state_size = property(lambda self: LSTMStateTuple(self._num_units, self._num_units), doc="The sizes of c and h.")
    output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _gates(self, scope: str, parts: Any, count: int) -> Tensor:
        with variable_scope(scope):
            return _linear(parts, count * self._num_units, True)

    def _openness(self, time: Tensor) -> Tensor:
        """How far each unit is open: it rises and falls while its clock is on, and leaks for the rest."""

        def periods(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
            first, last = gen_ops.log(self._first), gen_ops.log(self._last)
            return gen_ops.exp(random_ops.random_uniform(shape, first, last, dtype=dtype))

        period = get_variable("period", [self._num_units], dtypes.float32, periods)
        phases = init_ops.random_uniform_initializer(0.0, period.initial_value)
        phase = get_variable("phase", [self._num_units], dtypes.float32, phases)
        ratio = get_variable("ratio_on", [self._num_units], dtypes.float32, init_ops.constant_initializer(self._ratio_on), trainable=self._trainable)
        wide = math_ops.cast(period, time.dtype)  # times may be too large for float32
        at = math_ops.cast(math_ops.mod(time - math_ops.cast(phase, time.dtype), wide) / wide, dtypes.float32)
        rising = 2 * at / ratio
        closed = self._leak * at
        return array_ops.where(at < 0.5 * ratio + 0 * at, rising, array_ops.where(at < ratio + 0 * at, 2 - rising, closed))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, state)."""
        (time, x), (c, h) = inputs, state
        peep = [c] if self._peepholes else []
        take, keep = array_ops.split(gen_ops.sigmoid(self._gates("mask_gates", [x, h, *peep], 2)), 2, 1)
        new_c = c * keep + take * gen_ops.tanh(self._gates("new_input", [x, h], 1))
        new_h = gen_ops.tanh(new_c) * gen_ops.sigmoid(self._gates("output_gate", [x, h, *([new_c] if self._peepholes else [])], 1))
        share = self._openness(time)
        new_c, new_h = share * new_c + (1 - share) * c, share * new_h + (1 - share) * h
        return new_h, LSTMStateTuple(new_c, new_h)


class GLSTMCell(RNNCell):
    """An LSTM cell whose units work in groups, each of its part of the inputs and outputs (Kuchaiev and Ginsburg, 2017)."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: Optional[int] = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = math_ops.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer, self._num_proj = num_units, initializer, num_proj
        self._groups, self._forget_bias, self._activation = number_of_groups, forget_bias, activation
        for what, size in (("num_units", num_units), ("num_proj", num_proj)):
            if size is not None and size % number_of_groups != 0:
                raise at_user_line(ValueError("%s must be divisible by number_of_groups, got %d and %d" % (what, size, number_of_groups)))

    state_size = property(lambda self: LSTMStateTuple(self._num_units, self.output_size), doc="The sizes of c and h.")
    output_size = property(lambda self: self._num_proj or self._num_units, doc="The size of the output.")

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, state)."""
        c, h = state
        if inputs.get_shape()[1].value is None:
            raise at_user_line(ValueError("input size must be statically known"))
        if inputs.get_shape()[1].value % self._groups != 0:
            raise at_user_line(ValueError("input size (%d) must be divisible by number_of_groups (%d)" % (inputs.get_shape()[1].value, self._groups)))
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            parts = []
            for i, (x, m) in enumerate(zip(array_ops.split(inputs, self._groups, 1), array_ops.split(h, self._groups, 1))):
                with variable_scope("group%d" % i):
                    parts.append(array_ops.split(_linear([x, m], 4 * self._num_units // self._groups, False), 4, 1))

            def gate(number: int, name: str) -> Tensor:
                bias = get_variable("bias_" + name, [self._num_units], inputs.dtype.base_dtype, init_ops.constant_initializer(0.0))
                return nn_ops.bias_add(array_ops.concat([p[number] for p in parts], 1), bias)

            take, fresh, keep, show = (gate(number, name) for number, name in enumerate("ijfo"))
            new_c = gen_ops.sigmoid(keep + self._forget_bias) * c + gen_ops.sigmoid(take) * gen_ops.tanh(fresh)
            new_h = gen_ops.sigmoid(show) * self._activation(new_c)
            if self._num_proj is not None:
                with variable_scope("projection"):
                    new_h = _linear(new_h, self._num_proj, False)
        return new_h, LSTMStateTuple(new_c, new_h)


class TimeFreqLSTMCell(RNNCell):
    """An LSTM cell that runs along windows of the inputs as well, each of which sees what the one before it gave (Li and others, 2015)."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: Optional[float] = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: Optional[int] = None,
        frequency_skip: int = 1,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        del num_unit_shards  # where variables lie is the placement's choice
        if feature_size is None:
            raise at_user_line(ValueError("TimeFreqLSTMCell needs a feature_size"))
        self._num_units, self._peepholes, self._clip, self._initializer = num_units, use_peepholes, cell_clip, initializers.get(initializer)
        self._forget_bias, self._feature_size, self._skip = forget_bias, feature_size, frequency_skip

    state_size = property(lambda self: 2 * self._num_units, doc="The size of one window's state.")
    output_size = property(lambda self: 2 * self._num_units, doc="The size of one window's output.")

    def _windows(self, inputs: Tensor) -> Any:
        size = inputs.get_shape()[-1].value
        if size is None:
            raise at_user_line(ValueError("Cannot infer input_size from static shape inference."))
        count = (size - self._feature_size) // self._skip + 1
        return [inputs[:, k * self._skip : k * self._skip + self._feature_size] for k in range(count)]

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, state) of all windows side by side."""
        windows, units, dtype = self._windows(inputs), self._num_units, inputs.dtype.base_dtype
        weights = get_variable("W_0", [self._feature_size + 2 * units, 4 * units], dtype, self._initializer)
        bias = get_variable("B", [4 * units], dtype, init_ops.zeros_initializer())
        peep = [get_variable("W_%s_diag" % name, [units], dtype, self._initializer) for name in "FIO"] if self._peepholes else None
        below = array_ops.zeros([array_ops.shape(inputs)[0], units], dtype)
        states, outputs = [], []
        for k, window in enumerate(windows):
            c, m = state[:, 2 * k * units : (2 * k + 1) * units], state[:, (2 * k + 1) * units : (2 * k + 2) * units]
            gates = nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([window, m, below], 1), weights), bias)
            i, j, f, o = array_ops.split(gates, 4, 1)
            if peep is not None:
                f, i = f + peep[0] * c, i + peep[1] * c
            c = gen_ops.sigmoid(f + self._forget_bias) * c + gen_ops.sigmoid(i) * gen_ops.tanh(j)
            if self._clip is not None:
                c = gen_ops.clip_by_value(c, -self._clip, self._clip)
            below = gen_ops.sigmoid(o + peep[2] * c if peep is not None else o) * gen_ops.tanh(c)
            states += [c, below]
            outputs.append(below)
        return array_ops.concat(outputs, 1), array_ops.concat(states, 1)
