# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: a cell along a sequence, unrolled or in a loop."""
from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import variable_scope

__all__ = ["static_rnn", "static_state_saving_rnn", "static_bidirectional_rnn", "dynamic_rnn", "bidirectional_dynamic_rnn", "raw_rnn", "rnn",
           "bidirectional_rnn", "state_saving_rnn"]


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


def static_rnn(cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
    """(outputs, last state) of a cell along a list of inputs, unrolled."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs = []
    with variable_scope(scope or "rnn") as varscope:
        first = nest.flatten(inputs[0])[0]
        if initial_state is not None:
            state = initial_state
        else:
            if dtype is None:
                raise ValueError("If no initial_state is provided, dtype must be specified")
            state = cell.zero_state(_batch(first), dtype)
        lengths = None
        if sequence_length is not None:
            lengths = gen_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
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
    outputs[-1] = control_flow_ops.with_dependencies(saves, outputs[-1])
    return outputs, last


state_saving_rnn = static_state_saving_rnn


def _reversed(inputs: List[Any], lengths: Any) -> List[Any]:
    if lengths is None:
        return list(reversed(inputs))
    joined = array_ops.stack(inputs)
    turned = gen_ops.reverse_sequence(joined, lengths, 0, batch_dim=1)
    return array_ops.unstack(turned, len(inputs))


def static_bidirectional_rnn(cell_fw: Any, cell_bw: Any, inputs: Any, initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
                             sequence_length: Any = None, scope: Any = None) -> Any:
    """(joined outputs, last state forwards, last state backwards) of two cells along a list of inputs."""
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            outputs_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, fw)
        with variable_scope("bw") as bw:
            turned, state_bw = static_rnn(cell_bw, _reversed(list(inputs), sequence_length), initial_state_bw, dtype, sequence_length, bw)
    outputs_bw = _reversed(turned, sequence_length)
    return [array_ops.concat([f, b], 1) for f, b in zip(outputs_fw, outputs_bw)], state_fw, state_bw


bidirectional_rnn = static_bidirectional_rnn


def _time_major(x: Any) -> Any:
    ndims = x.get_shape().ndims
    if ndims is None:
        raise ValueError("inputs of known rank are needed, got %s" % x)
    return array_ops.transpose(x, [1, 0] + list(range(2, ndims)))


def dynamic_rnn(cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None, dtype: Any = None, parallel_iterations: Optional[int] = None,
                swap_memory: bool = False, time_major: bool = False, scope: Any = None) -> Any:
    """(outputs, last state) of a cell along [batch, time, ...], in a loop."""
    with variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(i) for i in nest.flatten(inputs)]
        if not time_major:
            flat = [_time_major(i) for i in flat]
        batch = _batch(flat[0], 1)
        lengths = None
        if sequence_length is not None:
            lengths = gen_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
            if lengths.get_shape().ndims not in (None, 1):
                raise ValueError("sequence_length must be a vector of length batch_size, but saw shape: %s" % lengths.get_shape())
        if initial_state is not None:
            state = nest.map_structure(convert_to_tensor, initial_state)
        else:
            if dtype is None:
                raise ValueError("If there is no initial_state, you must give a dtype.")
            state = cell.zero_state(batch, dtype)
        outputs, last = _loop(cell, inputs, flat, state, lengths, batch, parallel_iterations or 32, swap_memory, dtype)
        if not time_major:
            outputs = nest.map_structure(_time_major, outputs)
        return outputs, last


def _loop(cell: Any, structure: Any, inputs: List[Tensor], state: Any, lengths: Any, batch: Any, parallel_iterations: int, swap_memory: bool, dtype: Any) -> Any:
    steps = _batch(inputs[0], 0)
    sizes = nest.flatten(cell.output_size)
    out_type = dtype or nest.flatten(state)[0].dtype.base_dtype
    static_batch = inputs[0].get_shape()[1].value
    with_steps = convert_to_tensor(steps, dtypes.int32)
    sources = [TensorArray(i.dtype.base_dtype, with_steps, element_shape=i.get_shape()[1:], name="dynamic_rnn/input_%d" % k).unstack(i)
               for k, i in enumerate(inputs)]
    shapes = [tensor_shape.TensorShape([static_batch]).concatenate(s) for s in sizes]
    results = [TensorArray(out_type, with_steps, element_shape=s, name="dynamic_rnn/output_%d" % k) for k, s in enumerate(shapes)]
    zeros = None
    if lengths is not None:
        from millrace.ops.rnn_cell import _zeros
        zeros = [_zeros(s, batch, out_type) for s in sizes]
    flat_state = nest.flatten(state)

    def body(time: Any, written: Any, current: Any) -> Any:
        values = []
        for source, whole in zip(sources, inputs):
            value = source.read(time)
            value.set_shape(whole.get_shape()[1:])
            values.append(value)
        packed = nest.pack_sequence_as(state, list(current))
        output, new = cell(nest.pack_sequence_as(structure, values) if nest.is_sequence(structure) else values[0], packed)
        nest.assert_same_structure(state, new)
        flat_output, flat_new = nest.flatten(output), nest.flatten(new)
        if lengths is not None:
            running = gen_ops.less(time, lengths)
            flat_output = [_where(running, o, z) for o, z in zip(flat_output, zeros or [])]
            flat_new = [_where(running, n, c) for n, c in zip(flat_new, current)]
        for n, c in zip(flat_new, current):
            n.set_shape(c.get_shape())
        return time + 1, tuple(w.write(time, o) for w, o in zip(written, flat_output)), tuple(flat_new)

    _, written, last = control_flow_ops.while_loop(
        lambda time, *_: gen_ops.less(time, with_steps), body, (convert_to_tensor(0, dtypes.int32), tuple(results), tuple(flat_state)),
        parallel_iterations=parallel_iterations, swap_memory=swap_memory)
    outputs = []
    for w, shape in zip(written, shapes):
        value = w.stack()
        value.set_shape(tensor_shape.TensorShape([inputs[0].get_shape()[0]]).concatenate(shape))
        outputs.append(value)
    return nest.pack_sequence_as(cell.output_size, outputs), nest.pack_sequence_as(state, list(last))


def bidirectional_dynamic_rnn(cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None, initial_state_fw: Any = None, initial_state_bw: Any = None,
                              dtype: Any = None, parallel_iterations: Optional[int] = None, swap_memory: bool = False, time_major: bool = False,
                              scope: Any = None) -> Any:
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
            backwards, state_bw = dynamic_rnn(cell_bw, nest.map_structure(turned, inputs), sequence_length, initial_state_bw, dtype,
                                              parallel_iterations, swap_memory, time_major, bw)
    return (output_fw, nest.map_structure(turned, backwards)), (state_fw, state_bw)


def raw_rnn(cell: Any, loop_fn: Any, parallel_iterations: Optional[int] = None, swap_memory: bool = False, scope: Any = None) -> Any:
    """(TensorArray of outputs, last state, last loop state) of a cell whose inputs a function decides step by step."""
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        time = convert_to_tensor(0, dtypes.int32)
        finished, first_input, state, emit_structure, loop_state = loop_fn(time, None, None, None)
        flat_input = [convert_to_tensor(i) for i in nest.flatten(first_input)]
        batch = _batch(flat_input[0])
        static_batch = flat_input[0].get_shape()[0].value
        state = nest.map_structure(convert_to_tensor, state)
        if emit_structure is not None:
            kinds = [(e.get_shape(), e.dtype) if isinstance(e, Tensor) else (tensor_shape.as_shape(getattr(e, "shape", e)), getattr(e, "dtype", flat_input[0].dtype))
                     for e in nest.flatten(emit_structure)]
        else:
            emit_structure = cell.output_size
            kinds = [(tensor_shape.as_shape(s), nest.flatten(state)[0].dtype) for s in nest.flatten(emit_structure)]
        arrays = [TensorArray(t, 0, dynamic_size=True, element_shape=tensor_shape.TensorShape([static_batch]).concatenate(s), name="rnn_output_%d" % i)
                  for i, (s, t) in enumerate(kinds)]
        from millrace.ops.rnn_cell import _zeros
        zero_emit = [_zeros(s, batch, t) for s, t in kinds]
        carries = loop_state is not None
        loop_leaves = list(nest.flatten(loop_state)) if carries else []
        loop_leaves = [v if isinstance(v, TensorArray) else convert_to_tensor(v) for v in loop_leaves]
        shape_of = [(i.get_shape()) for i in flat_input]

        def body(time: Any, done: Any, current: Any, written: Any, current_state: Any, extra: Any) -> Any:
            packed_state = nest.pack_sequence_as(state, list(current_state))
            output, new_state = cell(nest.pack_sequence_as(first_input, list(current)) if nest.is_sequence(first_input) else current[0], packed_state)
            packed_loop = nest.pack_sequence_as(loop_state, list(extra)) if carries else None
            after = time + 1
            next_done, next_input, next_state, emit, next_loop = loop_fn(after, output, new_state, packed_loop)
            flat_emit = nest.flatten(emit)
            flat_emit = [_where(done, z, convert_to_tensor(e)) for z, e in zip(zero_emit, flat_emit)]
            kept_state = [_where(done, c, convert_to_tensor(n)) for c, n in zip(current_state, nest.flatten(next_state))]
            next_flat = [convert_to_tensor(i) for i in nest.flatten(next_input)]
            for i, s in zip(next_flat, shape_of):
                i.set_shape(s)
            for n, c in zip(kept_state, current_state):
                n.set_shape(c.get_shape())
            leaves = nest.flatten(next_loop) if carries and next_loop is not None else list(extra)
            return (after, gen_ops.logical_or(done, next_done), tuple(next_flat), tuple(w.write(time, e) for w, e in zip(written, flat_emit)),
                    tuple(kept_state), tuple(leaves))

        values = control_flow_ops.while_loop(
            lambda time, done, *_: gen_ops.logical_not(math_ops.reduce_all(done)), body,
            (time, convert_to_tensor(finished), tuple(flat_input), tuple(arrays), tuple(nest.flatten(state)), tuple(loop_leaves)),
            parallel_iterations=parallel_iterations or 32, swap_memory=swap_memory)
        _, _, _, written, last, extra = values
        return (nest.pack_sequence_as(emit_structure, list(written)) if nest.is_sequence(emit_structure) else written[0],
                nest.pack_sequence_as(state, list(last)), nest.pack_sequence_as(loop_state, list(extra)) if carries else None)
