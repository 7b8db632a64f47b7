# SPDX-License-Identifier: Apache-2.0
"""Cells of tf.contrib.rnn whose units hear little or nothing of each other's last values."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace.framework.graph import Tensor
from millrace.keras import initializers
from millrace.layers.nodes import InputSpec
from millrace.ops import array_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.rnn_cell import LSTMStateTuple, RNNCell, _depth
from millrace.ops.rnn_cells import _function


class _LightCell(RNNCell):
    """A cell of so many units, whose state is its output."""

    input_spec = InputSpec(ndim=2)
    _num_units: int

    def _set(self, num_units: int, activation: Any) -> None:
        self._num_units, self._activation = int(num_units), _function(activation) or math_ops.tanh

    state_size = output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _kernels(self, depth: int, dtype: Any, kinds: int, prefix: str = "", names: Any = ("kernel_w", "kernel_u"), bias: float = 0.0) -> List[Any]:
        """Of the inputs, of each unit's last value, and the bias, for so many sums."""
        width = kinds * self._num_units
        own = getattr(self, "_bias_initializer", None)
        return [
            self._variable(prefix + names[0], [depth, width], dtype, getattr(self, "_kernel_initializer", None)),
            self._variable(prefix + names[1], [1, width], dtype, init_ops.random_uniform_initializer(-1, 1, dtype=dtype)),
            self._variable(prefix + "bias", [width], dtype, own if own is not None else init_ops.constant_initializer(bias)),
        ]


def _sums(inputs: Any, last: Any, parameters: Any) -> Tensor:
    kernel, own, bias = parameters
    return nn_ops.bias_add(matrix_ops.matmul(inputs, kernel) + last * own, bias)


class IndRNNCell(_LightCell):
    """activation(inputs kernel + state u + bias), each unit by its own last value alone (Li and others, 2018)."""

    _settings = ("num_units", "activation", "reuse")

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._set(num_units, activation)

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        return self._kernels(depth, dtype, 1)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        output = self._activation(_sums(inputs, state, self._parameters(_depth(inputs), inputs.dtype.base_dtype)))
        return output, output


class IndyGRUCell(_LightCell):
    """A GRU whose gates and candidates hear their own unit's last value alone."""

    _settings = ("num_units", "kernel_initializer", "bias_initializer", "activation", "reuse")

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._set(num_units, activation)
        self._kernel_initializer, self._bias_initializer = initializers.get(kernel_initializer), initializers.get(bias_initializer)

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        gates = self._kernels(depth, dtype, 2, "gates/", bias=1.0)
        return [*gates, *self._kernels(depth, dtype, 1, "candidate/", names=("kernel", "kernel_u"))]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        parameters = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        reset, keep = array_ops.split(math_ops.sigmoid(_sums(inputs, array_ops.tile(state, [1, 2]), parameters[:3])), 2, 1)
        new = keep * state + (1 - keep) * self._activation(_sums(inputs, reset * state, parameters[3:]))
        return new, new


class IndyLSTMCell(_LightCell):
    """An LSTM whose gates hear their own unit's last output alone (Gonnet and Deselaers, 2019)."""

    _settings = ("num_units", "kernel_initializer", "bias_initializer", "forget_bias", "activation", "reuse")

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._set(num_units, activation)
        self._kernel_initializer, self._bias_initializer = initializers.get(kernel_initializer), initializers.get(bias_initializer)
        self._forget_bias = forget_bias

    state_size = property(lambda self: LSTMStateTuple(self._num_units, self._num_units), doc="The sizes of c and h.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        return self._kernels(depth, dtype, 4)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        c, h = state
        sums = _sums(inputs, array_ops.tile(h, [1, 4]), self._parameters(_depth(inputs), inputs.dtype.base_dtype))
        i, j, f, o = array_ops.split(sums, 4, 1)
        new_c = c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class SRUCell(_LightCell):
    """The simple recurrent unit (Lei and others, 2017): its gates hear the inputs alone."""

    _settings = ("num_units", "activation", "reuse")

    def __init__(self, num_units: int, activation: Any = None, reuse: Any = None, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._set(num_units, activation)

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        kernel = self._variable("kernel", [depth, 4 * self._num_units], dtype)
        return [kernel, self._variable("bias", [2 * self._num_units], dtype, init_ops.zeros_initializer())]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kernel, bias = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        new, forget, reset, through = array_ops.split(matrix_ops.matmul(inputs, kernel), 4, 1)
        gates = math_ops.sigmoid(nn_ops.bias_add(array_ops.concat([forget, reset], 1), bias))
        forget, reset = array_ops.split(gates, 2, 1)
        c = forget * state + (1.0 - forget) * new
        return reset * self._activation(c) + (1.0 - reset) * through, c


class _KerasLike(_LightCell):
    """A cell with the arguments of Keras' layers."""

    _settings = ("units", "activation", "kernel_initializer", "bias_initializer")

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "ones",
        name: Optional[str] = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        self._set(units, activation)
        self.units = self._units = self._num_units
        self._kernel_initializer, self._bias_initializer = initializers.get(kernel_initializer), initializers.get(bias_initializer)


class MinimalRNNCell(_KerasLike):
    """A cell that keeps by a gate what it made of its inputs (Chen, 2017)."""

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        kernel = self._variable("kernel", [depth + 2 * self._num_units, self._num_units], dtype, self._kernel_initializer)
        return [kernel, self._variable("bias", [self._num_units], dtype, self._bias_initializer)]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        depth = _depth(inputs)
        kernel, bias = self._parameters(depth, inputs.dtype.base_dtype)
        made = self._activation(matrix_ops.matmul(inputs, kernel[:depth]))
        keep = math_ops.sigmoid(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([made, state], 1), kernel[depth:]), bias))
        new = keep * state + (1 - keep) * made
        return new, new


class CFNCell(_KerasLike):
    """The chaos free network (Laurent and von Brecht, 2016): without inputs its state goes to 0."""

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        make: Callable[..., Any] = self._variable
        return [
            make("kernel", [depth, 3 * self._num_units], dtype, self._kernel_initializer),
            make("recurrent_kernel", [self._num_units, 2 * self._num_units], dtype, self._kernel_initializer),
            make("bias", [2 * self._num_units], dtype, self._bias_initializer),
        ]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kernel, recurrent, bias = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        of_inputs = matrix_ops.matmul(inputs, kernel)
        gates, projected = of_inputs[:, : 2 * self._num_units], of_inputs[:, 2 * self._num_units :]
        sums = nn_ops.bias_add(matrix_ops.matmul(state, recurrent) + gates, bias)
        keep, drop = array_ops.split(math_ops.sigmoid(sums), 2, 1)
        new = keep * self._activation(state) + (1 - drop) * self._activation(projected)
        return new, new
