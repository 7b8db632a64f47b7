# SPDX-License-Identifier: Apache-2.0
"""Layers along sequences. Gates lie beside each other in the weights: of LSTM input, forget, cell and output; of GRU update, reset and candidate."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras import regularizers
from millrace.layers.base import Layer, arguments_of, is_keras_tensor
from millrace.layers.nodes import listed, one_or_all
from millrace.layers.serialization import deserialize
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.keras.utils.generic_utils import has_arg
from millrace.layers.nodes import shape_tuple
from millrace.ops import array_ops, nn_ops

_CELL = (
    "units",
    "activation",
    "use_bias",
    "kernel_initializer",
    "recurrent_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "recurrent_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "recurrent_constraint",
    "bias_constraint",
    "dropout",
    "recurrent_dropout",
)


class _Cell(SettingsLayer):
    """A step of a recurrent layer: call(inputs, states) gives (output, new states)."""

    settings: Tuple[str, ...] = _CELL
    gates, states = 1, 1
    biases = 1  # how many

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.use_bias = int(units), use_bias
        self._set(
            activation=activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
        )
        self.dropout, self.recurrent_dropout = min(1.0, max(0.0, dropout)), min(1.0, max(0.0, recurrent_dropout))
        self.state_size: Any = self.units if self.states == 1 else [self.units] * self.states
        self.output_size: Any = self.units
        self.bias: Any = None
        self._masks: Tuple[Any, Any] = (None, None)

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        width = self.units * self.gates
        self.kernel = self.add_weight(
            "kernel", [TensorShape(input_shape)[-1].value, width], None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint
        )
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", [self.units, width], None, self.recurrent_initializer, self.recurrent_regularizer, True, self.recurrent_constraint
        )
        if self.use_bias:
            self.bias = self.add_weight("bias", self._bias_shape(), None, self._first_bias(), self.bias_regularizer, True, self.bias_constraint)
        self.built = True

    def _bias_shape(self) -> List[int]:
        return [self.units * self.gates * self.biases]

    def _first_bias(self) -> Any:
        return self.bias_initializer

    def _bias_of_inputs(self) -> Any:
        return self.bias

    def drop(self, x: Any, h: Any, training: Any) -> None:
        """Draws which of the inputs (like x) and of the states (like h) are dropped at all steps of a call."""

        def drawn(like: Any, rate: float) -> Any:
            if not 0 < rate < 1:
                return None
            ones = array_ops.ones_like(like)
            return K.in_train_phase(lambda: nn_ops.dropout(ones, 1 - rate), lambda: array_ops.identity(ones), training)

        self._masks = drawn(x, self.dropout), drawn(h, self.recurrent_dropout)

    def project(self, x: Any) -> Any:
        """What the inputs add to the gates."""
        if self._masks[0] is not None:
            x = x * (self._masks[0] if K.ndim(x) == K.ndim(self._masks[0]) else array_ops.expand_dims(self._masks[0], 1))
        made = K.dot(x, self.kernel)
        return made if self.bias is None else nn_ops.bias_add(made, self._bias_of_inputs())

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states), of what the inputs add."""
        raise NotImplementedError

    def _before(self, h: Any) -> Any:
        return h if self._masks[1] is None else h * self._masks[1]

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        """(output, new states)."""
        self.drop(inputs, states[0], training)
        return self.advance(self.project(inputs), states)

    def __call__(self, inputs: Any, states: Any = None, *args: Any, **kwargs: Any) -> Any:
        """(output, new states)."""
        with self._around_call():
            if not self.built:
                self.build(inputs.get_shape())
            return self.call(inputs, listed(states), *args, **kwargs)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """Zeros: a tensor, or a list where there are several states."""
        if inputs is None and (batch_size is None or dtype is None):
            raise at_user_line(
                ValueError("batch_size and dtype cannot be None while constructing initial state: batch_size=%s, dtype=%s" % (batch_size, dtype))
            )
        batch = array_ops.shape(inputs)[0] if inputs is not None else batch_size
        made = [array_ops.zeros(array_ops.stack([batch, self.units]), dtype or inputs.dtype.base_dtype) for _ in range(self.states)]
        return one_or_all(made)


class SimpleRNNCell(_Cell):
    """h = activation(x W + h U + b)."""

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states)."""
        h = self.activation(projected + K.dot(self._before(states[0]), self.recurrent_kernel))
        return h, [h]


class _GatedCell(_Cell):
    settings: Tuple[str, ...] = (*_CELL, "recurrent_activation", "implementation")

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "hard_sigmoid", *args: Any, implementation: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(units, activation, *args, **kwargs)
        self._set(recurrent_activation=recurrent_activation)
        self.implementation = implementation


class GRUCell(_GatedCell):
    """Gated recurrent units."""

    settings: Tuple[str, ...] = (*_GatedCell.settings, "reset_after")
    gates = 3

    def __init__(self, *args: Any, reset_after: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reset_after = reset_after

    def _bias_shape(self) -> List[int]:
        return [2, *super()._bias_shape()] if self.reset_after else super()._bias_shape()

    def _bias_of_inputs(self) -> Any:
        return self.bias.value()[0] if self.reset_after else self.bias

    def _of_states(self, h: Any) -> Any:
        made = K.dot(h, self.recurrent_kernel)
        return made if self.bias is None else nn_ops.bias_add(made, self.bias.value()[1])

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states): the reset gate works on the state, or after on what the state adds to the candidate."""
        h, n = states[0], self.units
        before = self._before(h)
        if self.reset_after:
            added = self._of_states(before)
            z, r = array_ops.split(self.recurrent_activation(projected[:, : 2 * n] + added[:, : 2 * n]), 2, 1)
            candidate = self.activation(projected[:, 2 * n :] + r * added[:, 2 * n :])
        else:
            kernel = self.recurrent_kernel.value()
            z, r = array_ops.split(self.recurrent_activation(projected[:, : 2 * n] + K.dot(before, kernel[:, : 2 * n])), 2, 1)
            candidate = self.activation(projected[:, 2 * n :] + K.dot(r * before, kernel[:, 2 * n :]))
        made = z * h + (1 - z) * candidate
        return made, [made]


class LSTMCell(_GatedCell):
    """Long short-term memory."""

    settings: Tuple[str, ...] = (*_GatedCell.settings, "unit_forget_bias")
    gates, states = 4, 2

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer, *args, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    def _first_bias(self) -> Any:
        if not self.unit_forget_bias:
            return self.bias_initializer
        start, n = self.bias_initializer, self.units

        def of(shape: Any, dtype: Any = None) -> Any:
            return array_ops.concat([start([n], dtype=dtype), array_ops.ones([n], dtype), start([2 * n], dtype=dtype)], 0)

        return of

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states)."""
        h, c = states
        i, f, g, o = array_ops.split(projected + K.dot(self._before(h), self.recurrent_kernel), 4, 1)
        cell = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        made = self.recurrent_activation(o) * self.activation(cell)
        return made, [made, cell]


class PeepholeLSTMCell(LSTMCell):
    """An LSTM whose gates see the cell too: input and forget gate that of the step before, the output gate the new one."""

    def build(self, input_shape: Any) -> None:
        """Makes kernels, bias and the weights of the cell in the gates."""
        super().build(input_shape)
        self.peepholes = [
            self.add_weight("%s_gate_peephole_weights" % gate, [self.units], None, self.kernel_initializer) for gate in ("input", "forget", "output")
        ]

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states)."""
        h, c = states
        i, f, g, o = array_ops.split(projected + K.dot(self._before(h), self.recurrent_kernel), 4, 1)
        into, forget, out = self.peepholes
        cell = self.recurrent_activation(f + forget * c) * c + self.recurrent_activation(i + into * c) * self.activation(g)
        made = self.recurrent_activation(o + out * cell) * self.activation(cell)
        return made, [made, cell]


class AbstractRNNCell(Layer):
    """Base of cells that programs write for tf.keras.layers.RNN: call(inputs, states) gives (output, new states)."""

    @property
    def state_size(self) -> Any:
        """The sizes of its states."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of its output."""
        raise NotImplementedError("Abstract method")

    def call(self, inputs: Any, states: Any) -> Any:
        """(output, new states)."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """Zeros."""
        batch = array_ops.shape(inputs)[0] if inputs is not None else batch_size
        kind = dtype or inputs.dtype.base_dtype
        made = _zeros_for(self, batch, kind)
        return made if isinstance(self.state_size, (list, tuple)) else made[0]


def _states(state_size: Any) -> List[Any]:
    """The sizes of states one after the other, of such of cells too."""
    return [n for part in state_size for n in _states(part)] if isinstance(state_size, (list, tuple)) else [state_size]


def _zeros_for(cell: Any, batch: Any, dtype: Any) -> List[Any]:
    """Zeros as the states of a cell."""
    return [array_ops.zeros(array_ops.stack([batch, *_sizes(size)]), dtype) for size in _states(cell.state_size)]


def _is_nested(size: Any) -> bool:
    """Whether states lie in more than a list."""
    return hasattr(size, "_fields") or isinstance(size, (list, tuple)) and any(isinstance(part, (list, tuple)) for part in size)


def _computing(cell: Any) -> Any:
    """What a step calls, with states one after the other or in the structure of state_size. Cells of tf.nn find their variables in their scope, and take
    and give a single state as it is."""
    if not hasattr(cell, "_scope_name"):
        return cell.call
    compute = cell.call if hasattr(cell, "_cells") else cell

    def step(inputs: Any, states: Any, **kwargs: Any) -> Any:
        return compute(inputs, nest.pack_sequence_as(cell.state_size, nest.flatten(states)), **kwargs)

    return step


def _sizes(size: Any) -> List[Any]:
    """The sizes of a state or output beside the batch: a number is one, a shape has any number."""
    return size.as_list() if isinstance(size, TensorShape) else [size]


def _output_size(cell: Any) -> Any:
    """The size of a cell's output: that of the first state where it does not say it."""
    size = getattr(cell, "output_size", None)
    return _states(cell.state_size)[0] if size is None else size


class StackedRNNCells(SettingsLayer):
    """Cells one above the other as one; with reverse_state_order, as up to 1.10, the states of the last come first."""

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        for cell in cells:
            if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
                raise at_user_line(ValueError("All cells must have a `call` method and a `state_size` attribute. Received cells: %s" % (cells,)))
        self.reverse_state_order = bool(kwargs.pop("reverse_state_order", False))
        super().__init__(**kwargs)
        self.cells = list(cells)

    def _ordered(self) -> List[Any]:
        """The cells in the order of their states."""
        return self.cells[::-1] if self.reverse_state_order else self.cells

    @property
    def state_size(self) -> Any:
        """The sizes of the states of each cell."""
        return tuple(cell.state_size for cell in self._ordered())

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return _output_size(self.cells[-1])

    def build(self, input_shape: Any) -> None:
        """Builds the cells."""
        shape = TensorShape(input_shape)
        for cell in self.cells:
            if not getattr(cell, "built", True):
                cell.build(shape)
                cell.built = True
            shape = TensorShape([shape[0].value, *_sizes(_output_size(cell))])
        self.built = True

    def call(self, inputs: Any, states: Any, constants: Any = None, **kwargs: Any) -> Any:
        """(output, new states): these in the form of `states`, one after the other or those of each cell together, as state_size has them."""
        nested = any(isinstance(s, (list, tuple)) for s in states)
        rest, before = nest.flatten(states) if nested else list(states), {}  # type: List[Any], Dict[int, Any]
        for cell in self._ordered():
            count = len(_states(cell.state_size))
            before[id(cell)], rest = rest[:count], rest[count:]
        after: Dict[int, Any] = {}
        for cell in self.cells:
            inputs, new = _computing(cell)(inputs, before[id(cell)], **({"constants": constants} if constants and has_arg(cell.call, "constants") else {}))
            after[id(cell)] = nest.flatten(new)
        made = [s for cell in self._ordered() for s in after[id(cell)]]
        return inputs, nest.pack_sequence_as(self.state_size, made) if nested else made

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """What the cells say, or zeros, in the order of their states."""
        batch = array_ops.shape(inputs)[0] if batch_size is None else batch_size
        dtype = dtype or inputs.dtype.base_dtype

        def of(cell: Any) -> Any:
            if hasattr(cell, "get_initial_state"):
                return cell.get_initial_state(inputs=inputs, batch_size=batch, dtype=dtype)
            return one_or_all(_zeros_for(cell, batch, dtype))

        return tuple(of(cell) for cell in self._ordered())

    trainable_weights = property(lambda self: [w for c in self.cells for w in getattr(c, "trainable_weights", [])] if self.trainable else [])
    non_trainable_weights = property(
        lambda self: [w for c in self.cells for w in (getattr(c, "non_trainable_weights", []) if self.trainable else getattr(c, "weights", []))]
    )
    losses = property(lambda self: [v for c in self.cells for v in getattr(c, "losses", [])])

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        order = {"reverse_state_order": True} if self.reverse_state_order else {}
        return {**super().get_config(), **order, "cells": [{"class_name": type(c).__name__, "config": c.get_config()} for c in self.cells]}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """Cells of what get_config gave."""
        config = dict(config)
        return cls([deserialize(c, custom_objects=custom_objects) for c in config.pop("cells")], **config)


_LOOP = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll")


def _swapped(x: Any) -> Any:
    """[batch, steps, ...] as [steps, batch, ...], and back."""
    return array_ops.transpose(x, [1, 0, *range(2, x.get_shape().ndims)])


class RNN(SettingsLayer):
    """A cell along sequences, [batch, steps, ...] or with time_major [steps, batch, ...]. A tuple is a structure of them, which the cell takes."""

    settings: Tuple[str, ...] = _LOOP
    supports_masking = True
    _keeps_tuples = True
    _num_constants = 0  # how many of the inputs' last ones go to the cell with each step

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        activity_regularizer: Any = None,
        zero_output_for_mask: bool = False,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
            raise at_user_line(ValueError("`cell` should have a `call` method and a `state_size` attribute. The RNN was passed: %s" % (cell,)))
        self.cell, self.zero_output_for_mask, self.time_major = cell, zero_output_for_mask, time_major
        if "input_shape" not in kwargs and ("input_dim" in kwargs or "input_length" in kwargs):
            kwargs["input_shape"] = kwargs.pop("input_length", None), kwargs.pop("input_dim", None)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.return_sequences, self.return_state, self.go_backwards, self.stateful, self.unroll = return_sequences, return_state, go_backwards, stateful, unroll
        self.input_spec: Any = [InputSpec(ndim=3) if isinstance(cell, _Cell) else InputSpec(min_ndim=3)]
        self.states: List[Any] = [None for _ in _states(cell.state_size)]

    def build(self, input_shape: Any) -> None:
        """Builds the cell, and variables for states that are kept."""
        given = input_shape[0] if isinstance(input_shape, list) and not isinstance(input_shape[0], (int, type(None))) else input_shape
        deep = isinstance(given, tuple) and bool(given) and not isinstance(given[0], (int, type(None)))
        shapes = [TensorShape(s) for s in nest.flatten(given)] if deep else [TensorShape(given)]
        shape = shapes[0]
        self.input_spec = [InputSpec(ndim=s.ndims, axes={s.ndims - 1: s[-1].value}) for s in shapes]  # type: ignore[operator]
        if not getattr(self.cell, "built", True):
            steps = [TensorShape([s[int(self.time_major)].value, *s.as_list()[2:]]) for s in shapes]
            self.cell.build(nest.pack_sequence_as(given, steps) if deep else steps[0])
            self.cell.built = True
        self._batch = shape[int(self.time_major)].value
        if self.stateful and self.states[0] is None:
            self.reset_states()
        self.built = True

    def _check(self, tensors: List[Any]) -> None:
        for i, (spec, x) in enumerate(zip(self.input_spec, tensors)):
            spec.check(x, i, self.name)

    def __call__(self, inputs: Any, initial_state: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer at the first call, then computes. `constants` go to the cell with each step."""
        given = listed(initial_state)
        if kwargs.get("constants") is not None:
            self._num_constants = len(listed(kwargs["constants"]))
        if given and all(is_keras_tensor(s) for s in given):
            return super().__call__([*(listed(inputs) if isinstance(inputs, list) else [inputs]), *given], *args, **kwargs)
        if given:
            kwargs["initial_state"] = initial_state
        return super().__call__(inputs, *args, **kwargs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs."""
        mask = listed(mask)[0] if listed(mask) else None
        made = mask if self.return_sequences else None
        return [made] + [None] * len(self.states) if self.return_state else made

    def get_initial_state(self, inputs: Any) -> List[Any]:
        """The states before the first step for inputs: what the cell says, or zeros."""
        inputs = nest.flatten(inputs)[0]
        batch = array_ops.shape(inputs)[int(self.time_major)]
        if hasattr(self.cell, "get_initial_state"):
            made = nest.flatten(self.cell.get_initial_state(inputs=None, batch_size=batch, dtype=inputs.dtype.base_dtype))
        else:
            made = _zeros_for(self.cell, batch, inputs.dtype.base_dtype)
        self._shape_states(made, inputs.get_shape()[int(self.time_major)].value)
        return made

    def call(self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None, constants: Any = None) -> Any:
        """Computes the outputs."""
        tensors = inputs if isinstance(inputs, list) else [inputs]
        x, further = tensors[0], tensors[1:]
        if further and constants is None and self._num_constants:
            further, constants = further[: -self._num_constants], further[-self._num_constants :]
        given = further or nest.flatten([] if initial_state is None else initial_state)
        mask = listed(mask)[0] if listed(mask) else None
        if self.time_major:
            x, mask = nest.map_structure(_swapped, x), None if mask is None else _swapped(mask)
        if given and len(given) != len(self.states):
            raise at_user_line(ValueError("Layer has %d states but was passed %d initial states." % (len(self.states), len(given))))
        first = nest.flatten(x)[0]
        if self.unroll and first.get_shape()[1].value in (None, 1):
            if first.get_shape()[1].value is None:
                raise at_user_line(ValueError("Cannot unroll a RNN if the time dimension is undefined."))
        start = (
            list(given)
            if given
            else [array_ops.identity(s.value()) for s in self.states]
            if self.stateful
            else self.get_initial_state(_swapped(first) if self.time_major else first)
        )
        start = [s.value() if hasattr(s, "initializer") else s for s in start]
        self._shape_states(start, first.get_shape()[0].value)
        step, along, like = self._stepping(x, start, training, listed(constants))
        last, outputs, states = K.rnn(
            step, along, start, self.go_backwards, mask, None, self.unroll, zero_output_for_mask=self.zero_output_for_mask, output_like=like
        )
        if self.stateful:
            self.add_update([s.assign(new) for s, new in zip(self.states, states)], inputs=tensors)
        made = outputs if self.return_sequences else last
        if self.return_sequences:
            for t in nest.flatten(made):
                t.set_shape([*first.get_shape().as_list()[:2], *t.get_shape().as_list()[2:]])
            made = nest.map_structure(_swapped, made) if self.time_major else made
        return [*(made if isinstance(made, list) else [made]), *states] if self.return_state else made

    def _shape_states(self, states: List[Any], batch: Optional[int]) -> None:
        for s, n in zip(states, _states(self.cell.state_size)):
            wanted = TensorShape([batch, *_sizes(n)])
            if not s.get_shape().is_compatible_with(wanted):
                raise at_user_line(
                    ValueError(
                        "An `initial_state` was passed that is not compatible with `cell.state_size`. Received a state of shape %s; however `cell.state_size` is %s"
                        % (s.get_shape(), self.cell.state_size)
                    )
                )
            s.set_shape(wanted)

    def _stepping(self, x: Any, start: List[Any], training: Any, constants: List[Any]) -> Any:
        """(a function of a step, what it takes at each step, a tensor like its output)."""
        if isinstance(self.cell, _Cell):
            self.cell.drop(x[:, 0] if self.cell.dropout else x, start[0], training)
            return (lambda now, states: self.cell.advance(now, states)), self.cell.project(x), start[0]
        taken: Dict[str, Any] = {"training": training} if has_arg(self.cell.call, "training") else {}
        if constants:
            if not has_arg(self.cell.call, "constants"):
                raise at_user_line(ValueError("RNN cell does not support constants"))
            taken["constants"] = constants

        size = self.cell.state_size
        nested = not isinstance(self.cell, StackedRNNCells) and _is_nested(size)
        compute = _computing(self.cell)

        def step(now: Any, states: Any) -> Any:
            before = list(states)[: len(_states(size))]
            output, after = compute(now, nest.pack_sequence_as(size, before) if nested else before, **taken)
            return output, nest.flatten(after)

        return step, x, None

    def reset_states(self, states: Any = None) -> None:
        """Forgets the kept states, or sets them."""
        if not self.stateful:
            raise at_user_line(AttributeError("Layer must be stateful."))
        batch = getattr(self, "_batch", None)
        if batch is None:
            raise at_user_line(
                ValueError(
                    "If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input tensors: `batch_input_shape` of "
                    "the first layer of a Sequential model, or `batch_shape` of Input."
                )
            )
        if self.states[0] is None:
            self.states = [K.zeros(s) for s in self._state_shapes(batch)]
            if states is None:
                return
        if states is None:
            K.batch_set_value([(s, np.zeros(shape_tuple(s))) for s in self.states])
            return
        values = nest.flatten(states)
        if len(values) != len(self.states):
            raise at_user_line(ValueError("Layer %s expects %d states, but it received %d state values." % (self.name, len(self.states), len(values))))
        for s, value in zip(self.states, values):
            if np.shape(value) != shape_tuple(s):
                raise at_user_line(
                    ValueError("A state of layer %s is incompatible: expected shape=%s, found shape=%s" % (self.name, shape_tuple(s), np.shape(value)))
                )
            K.set_value(s, value)

    def _state_shapes(self, batch: int) -> List[Any]:
        return [(batch, *_sizes(n)) for n in _states(self.cell.state_size)]

    def _parts(self) -> List[Any]:
        return [self.cell] if isinstance(self.cell, Layer) else []

    @property
    def trainable_weights(self) -> List[Any]:
        """The cell's that are trained."""
        return list(self.cell.trainable_weights) if self.trainable and hasattr(self.cell, "trainable_weights") else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The cell's others."""
        if not hasattr(self.cell, "weights"):
            return []
        return list(self.cell.non_trainable_weights if self.trainable else self.cell.weights)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        cell = {"class_name": type(self.cell).__name__, "config": self.cell.get_config()}
        constants = {"num_constants": self._num_constants} if self._num_constants else {}
        return {**super().get_config(), **self._flags(), **constants, "cell": cell}

    def _flags(self) -> Dict[str, Any]:
        return {"time_major": self.time_major, **({"zero_output_for_mask": True} if self.zero_output_for_mask else {})}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        config = dict(config)
        constants = config.pop("num_constants", 0)
        made = cls(deserialize(config.pop("cell"), custom_objects=custom_objects), **config)
        made._num_constants = constants
        return made


class _OwnCell(RNN):
    """A layer that makes its cell; the cell's settings are its own."""

    kind: Any = SimpleRNNCell

    def __init__(
        self,
        *args: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        kind = type(self).kind
        names = [n for base in kind.__mro__ for n in arguments_of(base.__init__) if n not in ("self", "args", "kwargs", "name", "trainable", "dtype")]
        names = [n for n in names if n not in arguments_of(SettingsLayer.__init__)]
        implementation = kwargs.pop("implementation", None)
        own = {n: kwargs.pop(n) for n in list(kwargs) if n in names}
        if implementation is not None and "implementation" in kind.settings:
            own["implementation"] = implementation
        self._implementation = implementation
        if kwargs.get("dtype") is not None:
            own["dtype"] = kwargs["dtype"]
        super().__init__(kind(*args, **own), return_sequences, return_state, go_backwards, stateful, unroll, activity_regularizer, **kwargs)
        self.cell._name = self.name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = self.cell._name = value

    def __getattr__(self, name: str) -> Any:
        cell = self.__dict__.get("cell")
        if cell is None or name.startswith("__") or name not in vars(cell):
            raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))
        return getattr(cell, name)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        own, penalty = self.cell.get_config(), self.activity_regularizer
        own["activity_regularizer"] = None if penalty is None else regularizers.serialize(penalty)
        return {**SettingsLayer.get_config(self), **self._flags(), **{n: own[n] for n in ("activity_regularizer", *type(self).kind.settings)}}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        return cls(**config)


class SimpleRNN(_OwnCell):
    """h = activation(x W + h U + b) along sequences."""


class GRU(_OwnCell):
    """Gated recurrent units along sequences."""

    kind = GRUCell


class LSTM(_OwnCell):
    """Long short-term memory along sequences."""

    kind = LSTMCell


Recurrent = RNN
