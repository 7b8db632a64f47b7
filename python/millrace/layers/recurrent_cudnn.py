# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as cuDNN computes them, with its weights: two biases, one for the inputs and one for the states."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.keras import backend as K
from millrace.layers.recurrent import GRUCell, LSTMCell, _OwnCell
from millrace.ops import array_ops, nn_ops

_OWN = (
    "units",
    "kernel_initializer",
    "recurrent_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "recurrent_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "recurrent_constraint",
    "bias_constraint",
)


class _CuDNNLSTMCell(LSTMCell):
    settings: Tuple[str, ...] = (*_OWN, "unit_forget_bias")
    biases = 2

    def __init__(
        self,
        units: int,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            "tanh",
            "sigmoid",
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            **kwargs,
        )

    def _first_bias(self) -> Any:
        if not self.unit_forget_bias:
            return self.bias_initializer
        start, n = self.bias_initializer, self.units

        def of(shape: Any, dtype: Any = None) -> Any:  # the forget gate's bias of the states is 1
            return array_ops.concat([start([5 * n], dtype=dtype), array_ops.ones([n], dtype), start([2 * n], dtype=dtype)], 0)

        return of

    def project(self, x: Any) -> Any:
        """What the inputs add to the gates, both biases with it."""
        of_inputs, of_states = array_ops.split(self.bias.value(), 2)
        return nn_ops.bias_add(K.dot(x, self.kernel), of_inputs + of_states)


class _CuDNNGRUCell(GRUCell):
    settings: Tuple[str, ...] = _OWN

    def __init__(
        self,
        units: int,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            "tanh",
            "sigmoid",
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
            reset_after=True,
            **kwargs,
        )

    def _bias_shape(self) -> List[int]:
        return [6 * self.units]  # of the inputs and of the states, in one vector

    def _bias_of_inputs(self) -> Any:
        return array_ops.split(self.bias.value(), 2)[0]

    def _of_states(self, h: Any) -> Any:
        return nn_ops.bias_add(K.dot(h, self.recurrent_kernel), array_ops.split(self.bias.value(), 2)[1])


class CuDNNLSTM(_OwnCell):
    """Long short-term memory along sequences, with the weights and the arithmetic of cuDNN."""

    kind = _CuDNNLSTMCell


class CuDNNGRU(_OwnCell):
    """Gated recurrent units along sequences, with the weights and the arithmetic of cuDNN."""

    kind = _CuDNNGRUCell
