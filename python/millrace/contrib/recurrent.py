# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.recurrent: cells as functions of weights, state and inputs, run over time; and tf.nn.dynamic_rnn by its names."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, control_flow_ops, math_ops
from millrace.ops.gradients import custom_gradient
from millrace.ops.rnn import bidirectional_dynamic_rnn, dynamic_rnn
from millrace.ops.tensor_array_ops import TensorArray


def Recurrent(
    theta: Any,
    state0: Any,
    inputs: Any,
    cell_fn: Callable[..., Any],
    cell_grad: Optional[Callable[..., Any]] = None,
    extras: Any = None,
    max_input_length: Any = None,
    use_tpu: bool = False,
    aligned_end: bool = False,
) -> Tuple[Any, Any]:
    """(the states after each step, the last state) of state, extras = cell_fn(theta, state, inputs[t]), all of which are structures of tensors.

    cell_grad(theta, state, inputs[t], extras, gradients of the new state) gives the gradients of the first three. With max_input_length only so
    many steps are made, the last ones if aligned_end; the states of others are 0.
    """
    del use_tpu  # there is none
    flat_theta, begin, xs = ([convert_to_tensor(t) for t in nest.flatten(s)] for s in (theta, state0, inputs))
    if not xs:
        raise at_user_line(ValueError("Recurrent needs inputs, whose first dimension is time."))
    whole = array_ops.shape(xs[0])[0]
    count = whole if max_input_length is None else math_ops.cast(max_input_length, whole.dtype)
    first = whole - count if aligned_end else convert_to_tensor(0)
    shapes = (theta, state0, inputs)

    def step(*flat: Any) -> List[Any]:
        parts = _packed(shapes, flat)
        state, made = cell_fn(*parts)
        nest.assert_same_structure(state0, state)
        if extras is not None:
            nest.assert_same_structure(extras, made)
        new = [convert_to_tensor(t) for t in nest.flatten(state)]
        if cell_grad is None:
            return new

        def backward(*gradients: Any) -> List[Any]:
            found = cell_grad(*parts, made, nest.pack_sequence_as(state0, list(gradients)))
            return [array_ops.zeros_like(t) if g is None else g for t, g in zip(flat, nest.flatten(list(found)))]

        return new, backward  # type: ignore[return-value]

    run = step if cell_grad is None else custom_gradient(step)
    kept = [TensorArray(s.dtype.base_dtype, count, element_shape=s.get_shape()) for s in begin]
    sources = [TensorArray(x.dtype.base_dtype, whole).unstack(x) for x in xs]

    def body(t: Any, states: Any, arrays: Any) -> Any:
        states = run(*flat_theta, *states, *[source.read(first + t) for source in sources])
        for new, old in zip(states, begin):
            new.set_shape(old.get_shape())
        return t + 1, list(states), [array.write(t, s) for array, s in zip(arrays, states)]

    _, last, kept = control_flow_ops.while_loop(lambda t, *_: t < count, body, [0, begin, kept])
    accumulated = [_with_zeros(array.stack(), whole - count, aligned_end) for array in kept]
    for made, old in zip(accumulated, begin):
        made.set_shape(xs[0].get_shape()[:1].concatenate(old.get_shape()))
    return nest.pack_sequence_as(state0, accumulated), nest.pack_sequence_as(state0, list(last))


def _packed(structures: Any, flat: Any) -> List[Any]:
    made, rest = [], list(flat)
    for structure in structures:
        size = len(nest.flatten(structure))
        made.append(nest.pack_sequence_as(structure, rest[:size]))
        rest = rest[size:]
    return made


def _with_zeros(steps: Any, count: Any, in_front: bool) -> Any:
    """The steps, and so many of zeros."""
    zeros = array_ops.zeros(array_ops.concat([[count], array_ops.shape(steps)[1:]], 0), steps.dtype)
    return array_ops.concat([zeros, steps] if in_front else [steps, zeros], 0)


def functional_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    time_major: bool = False,
    scope: Any = None,
    use_tpu: bool = False,
    reverse: bool = False,
) -> Tuple[Any, Any]:
    """tf.nn.dynamic_rnn; with reverse, from the last step to the first."""
    del use_tpu  # there is none
    axis, batch_axis = (0, 1) if time_major else (1, 0)

    def turned(x: Any) -> Any:
        return array_ops.reverse(x, [axis]) if sequence_length is None else array_ops.reverse_sequence(x, sequence_length, axis, batch_axis)

    inputs = nest.map_structure(convert_to_tensor, inputs)
    outputs, state = dynamic_rnn(
        cell, nest.map_structure(turned, inputs) if reverse else inputs, sequence_length, initial_state, dtype, time_major=time_major, scope=scope or "rnn"
    )
    return nest.map_structure(turned, outputs) if reverse else outputs, state


def bidirectional_functional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    time_major: bool = False,
    use_tpu: bool = False,
    fast_reverse: bool = False,
    scope: Any = None,
) -> Tuple[Any, Any]:
    """tf.nn.bidirectional_dynamic_rnn."""
    del use_tpu, fast_reverse  # there is no TPU, and sequences are turned by their lengths, which fast_reverse takes for alike
    lengths, begin = sequence_length, (initial_state_fw, initial_state_bw)
    return bidirectional_dynamic_rnn(cell_fw, cell_bw, inputs, lengths, *begin, dtype, time_major=time_major, scope=scope)
