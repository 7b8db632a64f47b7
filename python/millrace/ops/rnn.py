# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: a cell along a sequence, unrolled or in a loop."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.rnn_parts import _concat, _zeros, assert_like_rnncell
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import variable_scope

__all__ = [
    "static_rnn",
    "static_state_saving_rnn",
    "static_bidirectional_rnn",
    "dynamic_rnn",
    "bidirectional_dynamic_rnn",
    "raw_rnn",
    "rnn",
    "bidirectional_rnn",
    "state_saving_rnn",
]


def _batch(x: Tensor, axis: int = 0) -> Any:
    size = x.get_shape()[axis].value if x.get_shape().ndims is not None else None
    return size if size is not None else array_ops.shape(x)[axis]


def _where(mask: Tensor, new: Any, old: Any) -> Any:
    """By rows: new where the mask is true, old elsewhere."""

    def pick(a: Any, b: Any) -> Any:
        if a.get_shape().ndims == 0:
            return a
        made = gen_ops.select(mask, a, b)
        made.set_shape(a.get_shape())
        return made

    return nest.map_structure(pick, new, old)


class _KerasCell:
    """A cell of tf.keras.layers, whose states are a list, as one of tf.nn.rnn_cell."""

    def __init__(self, cell: Any) -> None:
        self._cell, self.output_size, self.state_size = cell, cell.output_size, cell.state_size

    def _packed(self, states: Any) -> Any:
        size = self.state_size
        return tuple(states) if isinstance(size, tuple) else list(states) if isinstance(size, list) else states[0]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros."""
        made = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
        return self._packed(made) if isinstance(made, (list, tuple)) else made

    def __call__(self, inputs: Any, state: Any) -> Any:
        """(output, new state)."""
        output, states = self._cell(inputs, state if isinstance(state, (list, tuple)) else [state])
        return output, self._packed(states)


def _with_zero_state(cell: Any) -> Any:
    return _KerasCell(cell) if not hasattr(cell, "zero_state") and hasattr(cell, "get_initial_state") else cell


def static_rnn(cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
    """(outputs, last state) of a cell along a list of inputs, unrolled."""
    if not isinstance(inputs, (list, tuple)):
        raise at_user_line(TypeError("inputs must be a sequence"))
    if not inputs:
        raise at_user_line(ValueError("inputs must not be empty"))
    cell, outputs = _with_zero_state(cell), []
    with variable_scope(scope or "rnn") as varscope:
        first = nest.flatten(inputs[0])[0]
        if initial_state is not None:
            state = initial_state
        else:
            if dtype is None:
                raise at_user_line(ValueError("If no initial_state is provided, dtype must be specified"))
            state = cell.zero_state(_batch(first), dtype)
        lengths = None
        if sequence_length is not None:
            lengths = gen_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
            if lengths.get_shape().ndims not in (None, 1):
                raise at_user_line(ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s" % lengths.get_shape()))
        for time, value in enumerate(inputs):
            if time > 0:
                varscope.reuse_variables()
            output, new = cell(value, state)
            if lengths is not None:
                running = gen_ops.less(convert_to_tensor(time), lengths)
                output = _where(running, output, nest.map_structure(array_ops.zeros_like, output))
                new = _where(running, new, state)
            state = new
            outputs.append(output)
    return outputs, state


def rnn(cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
    """static_rnn, as it was called in 0.x."""
    return static_rnn(cell, inputs, initial_state, dtype, sequence_length, scope)


def static_state_saving_rnn(cell: Any, inputs: Any, state_saver: Any, state_name: Any, sequence_length: Any = None, scope: Any = None) -> Any:
    """static_rnn whose state comes from, and goes to, a state saver."""
    names = nest.flatten(state_name)
    state = nest.pack_sequence_as(state_name if nest.is_sequence(state_name) else cell.state_size, [state_saver.state(n) for n in names])
    outputs, last = static_rnn(cell, inputs, state, sequence_length=sequence_length, scope=scope)
    saves = [state_saver.save_state(n, s) for n, s in zip(names, nest.flatten(last))]
    outputs[-1], last = nest.map_structure(lambda kept: control_flow_ops.with_dependencies(saves, kept), (outputs[-1], last))
    return outputs, last


state_saving_rnn = static_state_saving_rnn


def _reversed(inputs: List[Any], lengths: Any) -> List[Any]:
    if lengths is None:
        return list(reversed(inputs))
    parts = []
    for steps in zip(*map(nest.flatten, inputs)):  # of a part of the inputs
        turned = gen_ops.reverse_sequence(array_ops.stack(steps), lengths, 0, batch_dim=1)
        parts.append(array_ops.unstack(turned, len(inputs)))
    return [nest.pack_sequence_as(x, list(step)) for x, step in zip(inputs, zip(*parts))]


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """(joined outputs, last state forwards, last state backwards) of two cells along a list of inputs."""
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            outputs_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, fw)
        with variable_scope("bw") as bw:
            turned, state_bw = static_rnn(cell_bw, _reversed(list(inputs), sequence_length), initial_state_bw, dtype, sequence_length, bw)
    outputs_bw = _reversed(turned, sequence_length)
    joined = [nest.map_structure(lambda f, b: array_ops.concat([f, b], 1), *both) for both in zip(outputs_fw, outputs_bw)]
    return joined, state_fw, state_bw


bidirectional_rnn = static_bidirectional_rnn


def _time_major(x: Any) -> Any:
    ndims = x.get_shape().ndims
    if ndims is None:
        raise at_user_line(ValueError("inputs of known rank are needed, got %s" % x))
    rest = math_ops.range(2, array_ops.rank(x))
    made = array_ops.transpose(x, array_ops.concat([[1, 0], rest], 0))
    made.set_shape([x.get_shape()[1].value, x.get_shape()[0].value, *x.get_shape().as_list()[2:]])
    return made


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: Optional[int] = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """(outputs, last state) of a cell along [batch, time, ...], in a loop."""
    cell = _with_zero_state(cell)
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(i) for i in nest.flatten(inputs)]
        if not flat:
            raise at_user_line(ValueError("dynamic_rnn needs inputs [batch, time, ...], got %r" % (inputs,)))
        if not time_major:
            flat = [_time_major(i) for i in flat]
        lengths = None
        if sequence_length is not None:
            lengths = math_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
            if lengths.get_shape().ndims not in (None, 1):
                raise at_user_line(ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s" % lengths.get_shape()))
            lengths = array_ops.identity(lengths, "sequence_length")
        batch = _batch(flat[0], 1)
        if initial_state is not None:
            state = nest.map_structure(convert_to_tensor, initial_state)
        else:
            if dtype is None:
                raise at_user_line(ValueError("If there is no initial_state, you must give a dtype."))
            state = cell.zero_state(batch, dtype)
        if lengths is not None:
            lengths = _of_each(lengths, batch)
        outputs, last = _loop(cell, inputs, flat, state, lengths, parallel_iterations or 32, swap_memory, dtype)
        if not time_major:
            outputs = nest.map_structure(_time_major, outputs)
        return outputs, last


def _of_each(lengths: Tensor, batch: Any) -> Tensor:
    """The lengths, once it is seen that there is one for each example."""
    got = array_ops.shape(lengths)
    wanted = array_ops.stack([batch])
    same = math_ops.reduce_all(gen_ops.equal(got, wanted))
    fits = control_flow_ops.Assert(same, ["Expected shape for Tensor %s is " % lengths.name, wanted, " but saw shape: ", got])
    with control_dependencies([fits]):
        return array_ops.identity(lengths, "CheckSeqLen")


def _loop(cell: Any, structure: Any, inputs: List[Tensor], state: Any, lengths: Any, parallel_iterations: int, swap_memory: bool, dtype: Any) -> Any:
    """Nodes, names and order as in TensorFlow 1.x, and the same in C++ (src/ops/rnn/rnn_dynamic_composites.cc)."""
    sizes = nest.flatten(cell.output_size)
    out_type = dtype or nest.flatten(state)[0].dtype.base_dtype
    static_batch = inputs[0].get_shape()[1].value
    steps = last_step = array_ops.shape(inputs[0])[0]
    batch = _batch(inputs[0], 1)
    zeros = [array_ops.zeros(_concat(batch, s), out_type) for s in sizes]
    if lengths is not None:
        math_ops.reduce_min(lengths)  # TensorFlow's, which nobody reads
        last_step = math_ops.reduce_max(lengths)
    start = convert_to_tensor(0, dtypes.int32, "time")
    shapes = [tensor_shape.TensorShape([static_batch]).concatenate(s) for s in sizes]
    with name_scope("dynamic_rnn") as base:
        pass

    def array(kind: str, k: int, shape: Any, of: Any) -> TensorArray:
        return TensorArray(of, steps, element_shape=shape, tensor_array_name="%s%s_%d" % (base, kind, k))

    results = [array("output", k, s, out_type) for k, s in enumerate(shapes)]
    sources = [array("input", k, i.get_shape()[1:], i.dtype.base_dtype) for k, i in enumerate(inputs)]
    sources = [source.unstack(i) for source, i in zip(sources, inputs)]
    # One step at least, so that there are outputs to stack.
    limit = gen_ops.minimum(steps, gen_ops.maximum(1, last_step))
    flat_state = nest.flatten(state)

    def body(time: Any, written: Any, current: Any) -> Any:
        values = []
        for source, whole in zip(sources, inputs):
            value = source.read(time)
            value.set_shape(whole.get_shape()[1:])
            values.append(value)
        packed = nest.pack_sequence_as(state, list(current))
        ended: Any = None if lengths is None else gen_ops.greater_equal(time, lengths)
        output, new = cell(nest.pack_sequence_as(structure, values) if nest.is_sequence(structure) else values[0], packed)
        nest.assert_same_structure(state, new)
        flat_output, flat_new = nest.flatten(output), nest.flatten(new)
        if lengths is not None:
            flat_output = [_copied_through(ended, z, o) for o, z in zip(flat_output, zeros)]
            flat_new = [_copied_through(ended, c, n) for n, c in zip(flat_new, current)]
        for n, c in zip(flat_new, current):
            if not isinstance(n, TensorArray):  # as the alignments that an AttentionWrapper keeps
                n.set_shape(c.get_shape())
        flows = tuple(w.write(time, o) for w, o in zip(written, flat_output))
        return time + 1, flows, tuple(flat_new)

    _, written, last = control_flow_ops.while_loop(
        lambda time, *_: gen_ops.less(time, limit),
        body,
        (start, tuple(results), tuple(flat_state)),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        maximum_iterations=steps,
    )
    outputs = [w.stack() for w in written]
    for value, size in zip(outputs, sizes):
        value.set_shape(_concat([inputs[0].get_shape()[0].value, static_batch], size, static=True))
    return nest.pack_sequence_as(cell.output_size, outputs), nest.pack_sequence_as(state, list(last))


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: Optional[int] = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """((outputs forwards, outputs backwards), (last states)) of two cells along [batch, time, ...]."""
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def turned(x: Any) -> Any:
        if sequence_length is not None:
            return gen_ops.reverse_sequence(x, sequence_length, time_axis, batch_dim=batch_axis)
        return gen_ops.reverse_v2(x, [time_axis])

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            output_fw, state_fw = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, dtype, parallel_iterations, swap_memory, time_major, fw)
        with variable_scope("bw") as bw:
            backwards, state_bw = dynamic_rnn(
                cell_bw, nest.map_structure(turned, inputs), sequence_length, initial_state_bw, dtype, parallel_iterations, swap_memory, time_major, bw
            )
    return (output_fw, nest.map_structure(turned, backwards)), (state_fw, state_bw)


class _Emitted:
    """What a raw_rnn emits in each step: one TensorArray per tensor, and zeros for the examples that are finished."""

    def __init__(self, cell: Any, structure: Any, state: Any, batch: Any, static_batch: Any) -> None:
        self.structure = cell.output_size if structure is None else structure
        self.zeros, self.arrays = [], []
        for i, leaf in enumerate(nest.flatten(self.structure)):
            if structure is None:
                size, dtype, dims = tensor_shape.as_shape(leaf), nest.flatten(state)[0].dtype, None
            else:
                leaf = leaf if hasattr(leaf, "dtype") and hasattr(leaf, "shape") else convert_to_tensor(leaf)
                size, dtype, dims = tensor_shape.as_shape(leaf.shape), dtypes.as_dtype(leaf.dtype), None
                if isinstance(leaf, Tensor) and not size.is_fully_defined():
                    dims = array_ops.shape(leaf)
            whole = tensor_shape.TensorShape([static_batch]).concatenate(size)
            if dims is None:
                self.zeros.append(_zeros(size, batch, dtype))
            else:
                self.zeros.append(array_ops.zeros(array_ops.concat([array_ops.reshape(convert_to_tensor(batch, dtypes.int32), [1]), dims], 0), dtype))
            self.arrays.append(TensorArray(dtype, 0, dynamic_size=True, element_shape=whole, name="rnn_output_%d" % i))


def _copied_through(finished: Tensor, current: Any, candidate: Any) -> Any:
    """The candidates, but what is there for the examples that are finished; scalars and TensorArrays pass."""
    if isinstance(candidate, TensorArray):
        return candidate
    candidate = convert_to_tensor(candidate)
    if isinstance(current, Tensor) and current.get_shape().ndims == 0:
        return candidate
    made = gen_ops.select(finished, current, candidate)
    made.set_shape(current.get_shape())
    return made


def raw_rnn(cell: Any, loop_fn: Any, parallel_iterations: Optional[int] = None, swap_memory: bool = False, scope: Any = None) -> Any:
    """(TensorArray of outputs, last state, last loop state) of a cell whose inputs a function decides step by step.

    loop_fn(time, output, state, loop_state) gives (finished, next input, next state, what to emit, next loop state). The first call has the time 0 and
    None else: it gives the first input, the initial state, and the structure, shapes (without the batch) and types of what is emitted (None: those of
    the cell's output). Examples that are finished emit zeros and keep their state; the loop ends when all are."""
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise at_user_line(TypeError("loop_fn must be a callable"))
    with variable_scope(scope or "rnn"):
        time = convert_to_tensor(0, dtypes.int32)
        finished, first_input, state, emit_structure, loop_state = loop_fn(time, None, None, None)
        first_input = nest.map_structure(convert_to_tensor, first_input)
        flat_input = nest.flatten(first_input)
        static_batch = flat_input[0].get_shape().with_rank_at_least(1)[0]
        for other in flat_input[1:]:
            static_batch.assert_is_compatible_with(other.get_shape().with_rank_at_least(1)[0])
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        emitted = _Emitted(cell, emit_structure, state, _batch(flat_input[0]), static_batch.value)
        surrogate = convert_to_tensor(0, dtypes.int32) if loop_state is None else loop_state

        def body(time: Any, done: Any, current: Any, written: Any, held: Any, extra: Any) -> Any:
            output, new_state = cell(current, held)
            nest.assert_same_structure(held, new_state)
            nest.assert_same_structure(cell.output_size, output)
            after = time + 1
            next_done, next_input, next_state, emit, next_loop = loop_fn(after, output, new_state, extra)
            nest.assert_same_structure(held, next_state)
            nest.assert_same_structure(current, next_input)
            nest.assert_same_structure(emitted.structure, emit)
            values = [_copied_through(done, z, e) for z, e in zip(emitted.zeros, nest.flatten(emit))]
            kept = nest.pack_sequence_as(held, [_copied_through(done, c, n) for c, n in zip(nest.flatten(held), nest.flatten(next_state))])
            next_input = nest.map_structure(convert_to_tensor, next_input)
            for was, now in zip(flat_input, nest.flatten(next_input)):
                now.set_shape(was.get_shape())
            return (
                after,
                gen_ops.logical_or(done, next_done),
                next_input,
                tuple(w.write(time, v) for w, v in zip(written, values)),
                kept,
                extra if next_loop is None else next_loop,
            )

        _, _, _, written, last, extra = control_flow_ops.while_loop(
            lambda time, done, *_: gen_ops.logical_not(math_ops.reduce_all(done)),
            body,
            (time, convert_to_tensor(finished), first_input, tuple(emitted.arrays), state, surrogate),
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return nest.pack_sequence_as(emitted.structure, list(written)), last, None if loop_state is None else extra
