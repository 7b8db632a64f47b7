# SPDX-License-Identifier: Apache-2.0
"""GridLSTMCell: an LSTM along time and one along frequencies at once (Li and others, 2016), and one that runs along frequencies both ways.

The inputs are cut into windows, which lie in blocks with weights of their own. Each window has a state along time; along frequencies the
state begins with zeros in each block and goes from window to window. Both see what either left, in their inputs and through peepholes.
"""

from __future__ import annotations

import collections
from typing import Any, Dict, List, Optional, Tuple

from millrace import tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.keras import initializers
from millrace.ops import array_ops, gen_ops, init_ops, matrix_ops, nn_ops
from millrace.ops.rnn_cell import RNNCell
from millrace.ops.variable_scope import get_variable, variable_scope


def _tuple_of_states(name: str, fields: List[str]) -> Any:
    return collections.namedtuple(name, fields)  # type: ignore[misc]


class _Weights:
    """The variables of one direction, "freq" or "time", of a block."""

    def __init__(self, cell: "GridLSTMCell", block: int, direction: str, rows: int, dtype: Any) -> None:
        self._cell, self._block, self._direction, self._dtype = cell, block, direction, dtype
        columns = (3 if cell._couple else 4) * cell._num_units
        name, shards = "W_%s_%d" % (direction[0], block), cell._shards
        sizes = [rows // shards + (i < rows % shards) for i in range(shards)]
        parts = [get_variable("%s_%d" % (name, i), [size, columns], dtype, cell._initializer) for i, size in enumerate(sizes)]
        self._matrix = parts[0] if shards == 1 else array_ops.concat(parts, 0, name=name)
        self._bias = get_variable("B_%s_%d" % (direction[0], block), [columns], dtype, init_ops.zeros_initializer())
        self._peepholes: Dict[str, List[Any]] = {}

    def make_peepholes(self) -> None:
        cell = self._cell
        for gate in "IO" if cell._couple else "FIO":
            names = ["W_%s_diag_%s%s_%d" % (gate, self._direction, of, self._block) for of in "ft"]
            self._peepholes[gate] = [get_variable(name, [cell._num_units], self._dtype, cell._initializer) for name in names]

    def gates(self, inputs: Tensor) -> List[Tensor]:
        """i, j, f (left out where it is coupled with i) and o, before their nonlinearities."""
        return array_ops.split(nn_ops.bias_add(matrix_ops.matmul(inputs, self._matrix), self._bias), 3 if self._cell._couple else 4, 1)

    def _seen(self, gate: str, value: Tensor, along: Tuple[Tensor, Tensor]) -> Tensor:
        for weight, c in zip(self._peepholes.get(gate, ()), along):
            value = value + weight * c
        return gen_ops.sigmoid(value)

    def c(self, gates: List[Tensor], before: Tensor, along: Tuple[Tensor, Tensor]) -> Tensor:
        """The new state, of the one before and of both directions'."""
        take = self._seen("I", gates[0], along)
        keep = 1.0 - take if self._cell._couple else self._seen("F", gates[2] + self._cell._forget_bias, along)
        new = keep * before + take * gen_ops.tanh(gates[1])
        clip = self._cell._cell_clip
        return new if clip is None else gen_ops.clip_by_value(new, -clip, clip)

    def m(self, gates: List[Tensor], new: Tensor, along: Tuple[Tensor, Tensor]) -> Tensor:
        """The output, of the new state and of both directions'."""
        return self._seen("O", gates[-1], along) * gen_ops.tanh(new)


class GridLSTMCell(RNNCell):
    """An LSTM cell along time and along the windows of its inputs."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: Optional[float] = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: Optional[int] = None,
        frequency_skip: Optional[int] = None,
        num_frequency_blocks: Any = None,
        start_freqindex_list: Any = None,
        end_freqindex_list: Any = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        """Windows are feature_size wide and frequency_skip apart; num_frequency_blocks[b] of them lie in block b, which reaches from
        start_freqindex_list[b] to end_freqindex_list[b] (all inputs where there are no lists)."""
        super().__init__(_reuse=reuse)
        if not state_is_tuple:
            tf_logging.warning("%s: Using a concatenated state is slower and will soon be deprecated.  Use state_is_tuple=True.", self)
        if num_frequency_blocks is None:
            raise at_user_line(ValueError("Must specify num_frequency_blocks"))
        self._num_units, self._peeps, self._share, self._cell_clip = num_units, use_peepholes, share_time_frequency_weights, cell_clip
        self._initializer, self._shards, self._forget_bias, self._couple = (
            initializers.get(initializer),
            num_unit_shards,
            forget_bias,
            couple_input_forget_gates,
        )
        self._feature_size: Any = feature_size
        self._skip: Any = frequency_skip
        self._blocks = [int(count) for count in num_frequency_blocks]
        self._starts, self._ends = start_freqindex_list, end_freqindex_list
        names = self._state_names("state")
        self._state_tuple_type: Any = _tuple_of_states("GridLSTMStateTuple", names) if state_is_tuple else None
        sizes = [num_units] * len(names)
        self._state_size = sum(sizes) if self._state_tuple_type is None else self._state_tuple_type(*sizes)
        self._output_size = sum(sizes)

    state_size = property(lambda self: self._state_size, doc="The sizes of the states.")
    output_size = property(lambda self: self._output_size, doc="The size of the output.")
    state_tuple_type = property(lambda self: self._state_tuple_type, doc="The named tuple of the states; None where they are one tensor.")

    def _state_names(self, prefix: str) -> List[str]:
        places = [(window, block) for block, count in enumerate(self._blocks) for window in range(count)]
        return ["%s_f%02d_b%02d_%s" % (prefix, window, block, part) for window, block in places for part in "cm"]

    def _windows(self, inputs: Tensor, offset: int = 0) -> List[List[Tensor]]:
        """The windows of each block. An offset moves them all; what lies outside of the inputs is 0."""
        size = inputs.get_shape().with_rank(2)[1].value
        if size is None:
            raise at_user_line(ValueError("Cannot infer input_size from static shape inference."))
        starts, ends = self._starts or [0], self._ends if self._starts else [size]
        for what, given in (("start and end freqindex_list", ends), ("start_freqindex_list and num_frequency_blocks", self._blocks)):
            if len(given) != len(starts):
                raise at_user_line(ValueError("Length of %s does not match: %d and %d" % (what, len(starts), len(given))))
        if offset:
            inputs = array_ops.pad(inputs, [[0, 0], [max(-offset, 0), max(offset, 0)]])
        blocks = []
        for start, end, count in zip(starts, ends, self._blocks):
            found = int((end - start - self._feature_size) / self._skip) + 1
            if found != count:
                wrong = "Invalid num_frequency_blocks, requires %d but gets %d, please check the input size and filter config are correct." % (count, found)
                raise at_user_line(ValueError(wrong))
            firsts = [start + max(offset, 0) + k * self._skip for k in range(count)]
            blocks.append([inputs[:, first : first + self._feature_size] for first in firsts])
        return blocks

    def _along_time(self, state: Any, prefix: str) -> List[Tuple[Tensor, Tensor]]:
        """c and m of each window."""
        names = self._state_names(prefix)
        parts = array_ops.split(state, len(names), 1) if self._state_tuple_type is None else [getattr(state, name) for name in names]
        return list(zip(parts[::2], parts[1::2]))

    def _block(self, block: int, windows: List[Tensor], states: List[Tuple[Tensor, Tensor]]) -> Tuple[List[Tensor], List[Tensor]]:
        """(outputs, states) of the windows of a block."""
        dtype, units = windows[0].dtype.base_dtype, self._num_units
        rows = windows[0].get_shape()[1].value + 2 * units
        frequency = time = _Weights(self, block, "freq", rows, dtype)
        if not self._share:
            time = _Weights(self, block, "time", rows, dtype)
        if self._peeps:
            for weights in (frequency,) if self._share else (frequency, time):
                weights.make_peepholes()
        m_freq = c_freq = array_ops.zeros(array_ops.stack([array_ops.shape(windows[0])[0], units]), dtype)
        outputs, left = [], []
        for window, (c_time, m_time) in zip(windows, states):
            inputs = array_ops.concat([window, m_time, m_freq], 1)
            gates = frequency.gates(inputs)
            gates_time = gates if self._share else time.gates(inputs)
            before = (c_freq, c_time)
            c_freq, c_time = frequency.c(gates, c_freq, before), time.c(gates_time, c_time, before)
            m_freq, m_time = frequency.m(gates, c_freq, (c_freq, c_time)), time.m(gates_time, c_time, (c_freq, c_time))
            left += [c_time, m_time]
            outputs += [m_time, m_freq]
        return outputs, left

    def _all_blocks(self, blocks: List[List[Tensor]], state: Any, prefix: str) -> Tuple[List[Tensor], List[Tensor]]:
        states, outputs, left = self._along_time(state, prefix), [], []
        for block, windows in enumerate(blocks):
            given, states = states[: len(windows)], states[len(windows) :]
            made, new = self._block(block, windows, given)
            outputs += made
            left += new
        return outputs, left

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, state)."""
        outputs, left = self._all_blocks(self._windows(inputs), state, "state")
        return array_ops.concat(outputs, 1), array_ops.concat(left, 1) if self._state_tuple_type is None else self._state_tuple_type(*left)


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A GridLSTMCell that runs along the windows both ways, each with weights of its own."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: Optional[float] = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: Optional[int] = None,
        frequency_skip: Optional[int] = None,
        num_frequency_blocks: Any = None,
        start_freqindex_list: Any = None,
        end_freqindex_list: Any = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: Any = None,
    ) -> None:
        """backward_slice_offset moves the windows of the way back."""
        super().__init__(
            num_units,
            use_peepholes,
            share_time_frequency_weights,
            cell_clip,
            initializer,
            num_unit_shards,
            forget_bias,
            feature_size,
            frequency_skip,
            num_frequency_blocks,
            start_freqindex_list,
            end_freqindex_list,
            couple_input_forget_gates,
            reuse=reuse,
        )
        self._backward_offset = int(backward_slice_offset)
        names = self._state_names("fwd_state") + self._state_names("bwd_state")
        self._state_tuple_type = _tuple_of_states("BidirectionalGridLSTMStateTuple", names)
        self._state_size = self._state_tuple_type(*[num_units] * len(names))
        self._output_size = num_units * len(names)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, state)."""
        with variable_scope("fwd"):
            outputs, left = self._all_blocks(self._windows(inputs), state, "fwd_state")
        back = [windows[::-1] for windows in self._windows(inputs, self._backward_offset)]
        with variable_scope("bwd"):
            outputs_back, left_back = self._all_blocks(back, state, "bwd_state")
        return array_ops.concat(outputs + outputs_back, 1), self._state_tuple_type(*left, *left_back)
