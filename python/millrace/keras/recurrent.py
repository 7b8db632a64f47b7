# SPDX-License-Identifier: Apache-2.0
"""tf.keras.layers that go along sequences."""
from __future__ import annotations

import copy
from typing import Any, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.engine import Layer, activation, listed
from millrace.ops import array_ops, functional_ops, nn_ops

_activation = activation


class RNN(Layer):
    """Base: _step(projected inputs, states) gives the next states, the first of which is the output."""

    gates, states = 1, 1

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, recurrent_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 dropout: float = 0.0, recurrent_dropout: float = 0.0, implementation: int = 1, return_sequences: bool = False, return_state: bool = False,
                 go_backwards: bool = False, stateful: bool = False, unroll: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if stateful or recurrent_dropout:
            raise at_user_line(NotImplementedError("stateful and recurrent_dropout are not provided: use tf.nn.dynamic_rnn and its wrappers."))
        self.units, self.activation, self.recurrent_activation = int(units), _activation(activation), _activation(recurrent_activation)
        self.use_bias, self.dropout, self.return_sequences, self.return_state, self.go_backwards = use_bias, dropout, return_sequences, return_state, go_backwards
        self._starts = (kernel_initializer, recurrent_initializer, bias_initializer)
        self._penalties = (kernel_regularizer, recurrent_regularizer, bias_regularizer)

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        width = self.units * self.gates
        self.kernel = self.add_weight("kernel", [shape[-1].value, width], None, self._starts[0], self._penalties[0])
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.units, width], None, self._starts[1], self._penalties[1])
        self.bias = self.add_weight("bias", [width], None, self._first_bias(), self._penalties[2]) if self.use_bias else None

    def _first_bias(self) -> Any:
        return self._starts[2]

    def _step(self, x: Any, states: Tuple[Any, ...]) -> Tuple[Any, ...]:
        raise NotImplementedError

    def call(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """Computes the outputs."""
        tensors = listed(inputs)
        x, given = tensors[0], tensors[1:] or listed(initial_state)
        if self.dropout:
            x = K.in_train_phase(lambda: nn_ops.dropout(x, 1 - self.dropout), lambda: array_ops.identity(x))
        steps, batch = x.get_shape()[1].value, array_ops.shape(x)[0]
        projected = K.dot(x, self.kernel)
        if self.bias is not None:
            projected = nn_ops.bias_add(projected, self.bias)
        start = tuple(given) if given else tuple(array_ops.zeros(array_ops.stack([batch, self.units]), x.dtype.base_dtype) for _ in range(self.states))
        for s in start:
            s.set_shape([x.get_shape()[0].value, self.units])
        along = array_ops.transpose(projected, [1, 0, 2])
        made = functional_ops.scan(lambda states, now: self._step(now, states), along if not self.go_backwards else array_ops.reverse(along, [0]), start)
        lasts = [m[-1] for m in made]
        for t in lasts:
            t.set_shape([x.get_shape()[0].value, self.units])
        outputs = lasts[0]
        if self.return_sequences:
            outputs = array_ops.transpose(made[0], [1, 0, 2])
            outputs.set_shape([x.get_shape()[0].value, steps, self.units])
        return [outputs, *lasts] if self.return_state else outputs

    def __call__(self, inputs: Any, initial_state: Any = None, **kwargs: Any) -> Any:
        """Builds the layer at the first call, then computes."""
        return super().__call__(inputs if initial_state is None else [inputs, *listed(initial_state)], **kwargs)


class SimpleRNN(RNN):
    """h = activation(x W + h U + b)."""

    def __init__(self, units: int, activation: Any = "tanh", *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, None, *args, **kwargs)

    def _step(self, x: Any, states: Tuple[Any, ...]) -> Tuple[Any, ...]:
        return (self.activation(x + K.dot(states[0], self.recurrent_kernel)),)


class LSTM(RNN):
    """Long short-term memory; gates are input, forget, cell and output."""

    gates, states = 4, 2

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid", use_bias: bool = True,
                 kernel_initializer: Any = "glorot_uniform", recurrent_initializer: Any = "orthogonal", bias_initializer: Any = "zeros",
                 unit_forget_bias: bool = True, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer, *args, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    def _first_bias(self) -> Any:
        if not self.unit_forget_bias:
            return self._starts[2]
        from millrace.keras.engine import initializer
        start = initializer(self._starts[2])
        n = self.units

        def of(shape: Any, dtype: Any = None) -> Any:
            return array_ops.concat([start([n], dtype=dtype), array_ops.ones([n], dtype), start([2 * n], dtype=dtype)], 0)
        return of

    def _step(self, x: Any, states: Tuple[Any, ...]) -> Tuple[Any, ...]:
        h, c = states
        i, f, g, o = array_ops.split(x + K.dot(h, self.recurrent_kernel), 4, 1)
        cell = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        return self.recurrent_activation(o) * self.activation(cell), cell


class GRU(RNN):
    """Gated recurrent units; gates are update, reset and candidate."""

    gates = 3

    def _step(self, x: Any, states: Tuple[Any, ...]) -> Tuple[Any, ...]:
        h, n = states[0], self.units
        kernel = self.recurrent_kernel.value()
        z, r = array_ops.split(self.recurrent_activation(x[:, :2 * n] + K.dot(h, kernel[:, :2 * n])), 2, 1)
        candidate = self.activation(x[:, 2 * n:] + K.dot(r * h, kernel[:, 2 * n:]))
        return (z * h + (1 - z) * candidate,)


class _Wrapper(Layer):
    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**{"batch_input_shape": layer.batch_input_shape, **kwargs} if layer.batch_input_shape and "input_shape" not in kwargs else kwargs)
        self.layer = layer

    def _parts(self) -> List[Any]:
        return [self.layer]

    trainable_weights = property(lambda self: [w for p in self._parts() for w in p.trainable_weights] if self.trainable else [])
    non_trainable_weights = property(lambda self: [w for p in self._parts() for w in (p.non_trainable_weights if self.trainable else p.weights)])
    losses = property(lambda self: [v for p in self._parts() for v in p.losses])


class TimeDistributed(_Wrapper):
    """A layer at each step."""

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        static, dynamic = inputs.get_shape().as_list(), array_ops.shape(inputs)
        flat = array_ops.reshape(inputs, array_ops.concat([[-1], dynamic[2:]], 0))
        flat.set_shape([None, *static[2:]])
        made = self.layer(flat)
        inner = made.get_shape().as_list()[1:]
        result = array_ops.reshape(made, array_ops.concat([dynamic[:2], array_ops.shape(made)[1:]], 0))
        result.set_shape([*static[:2], *inner])
        return result


class Bidirectional(_Wrapper):
    """A layer along a sequence in both directions."""

    def __init__(self, layer: Any, merge_mode: Optional[str] = "concat", **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        self.merge_mode = merge_mode
        self.backward_layer = copy.copy(layer)
        self.backward_layer._weights, self.backward_layer._trainable, self.backward_layer._losses, self.backward_layer.nodes = [], [], [], []
        self.backward_layer.name, self.backward_layer.go_backwards = "backward_" + layer.name, not layer.go_backwards
        layer.name = "forward_" + layer.name

    def _parts(self) -> List[Any]:
        return [self.layer, self.backward_layer]

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        there, back = self.layer(inputs), self.backward_layer(inputs)
        if self.layer.return_sequences:
            back = array_ops.reverse(back, [1])
        if self.merge_mode is None:
            return [there, back]
        if self.merge_mode == "concat":
            return K.concatenate([there, back], -1)
        return {"sum": there + back, "ave": (there + back) / 2.0, "mul": there * back}[self.merge_mode]
