# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.rnn's LSTM cells of one operation: LSTMBlockCell for a step, LSTMBlockFusedCell for a whole sequence."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.layers.scoped import Layer
from millrace.ops import array_ops, gen_ops, init_ops, math_ops
from millrace.ops.rnn_cell import LSTMCell, LSTMStateTuple


def _block_lstm(
    seq_len_max: Any,
    x: Any,
    w: Any,
    b: Any,
    cs_prev: Any = None,
    h_prev: Any = None,
    wci: Any = None,
    wcf: Any = None,
    wco: Any = None,
    forget_bias: Optional[float] = None,
    cell_clip: Optional[float] = None,
    use_peephole: Optional[bool] = None,
    name: Optional[str] = None,
) -> Tuple[Any, ...]:
    """(i, cs, f, o, ci, co, h) of a list of steps, each as a list of steps."""
    x = array_ops.stack(x)
    width = b.get_shape()[0].value
    if width is None or width % 4:
        raise at_user_line(ValueError("b must have 4 * cell_size elements, got shape %s" % b.get_shape()))
    if cs_prev is None or h_prev is None:
        zeros = array_ops.zeros(array_ops.stack([array_ops.shape(x)[1], width // 4]), x.dtype)
        cs_prev, h_prev = zeros if cs_prev is None else cs_prev, zeros if h_prev is None else h_prev
    if wci is None:
        wci = wcf = wco = array_ops.zeros([width // 4], x.dtype)
    made = gen_ops.block_lstm(
        seq_len_max,
        x,
        cs_prev,
        h_prev,
        w,
        wci,
        wcf,
        wco,
        b,
        forget_bias=1.0 if forget_bias is None else forget_bias,
        cell_clip=-1.0 if cell_clip is None else cell_clip,
        use_peephole=bool(use_peephole),
        name=name,
    )
    steps = x.get_shape()[0].value
    return tuple(array_ops.unstack(part, steps) for part in made)


def _bound(cell_clip: Any) -> Any:
    """To these cells a bound that is not above zero is none."""
    return cell_clip if cell_clip is not None and cell_clip > 0 else None


class LSTMBlockCell(LSTMCell):
    """An LSTM cell with the variables of LSTMCell."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Any = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: Optional[str] = "lstm_cell",
    ) -> None:
        super().__init__(num_units, use_peepholes=use_peephole, cell_clip=_bound(cell_clip), forget_bias=forget_bias, reuse=reuse, name=name, dtype=dtype)


class LSTMBlockFusedCell(Layer):
    """An LSTM that runs a whole sequence [time, batch, depth], or a list of steps. A layer: two of them have variables of their own."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Any = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._forget_bias, self._cell_clip, self._use_peephole = num_units, forget_bias, _bound(cell_clip), use_peephole

    num_units = property(lambda self: self._num_units, doc="The number of units.")

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, depth = self._num_units, input_shape[-1]
        self._kernel = self.add_variable("kernel", [int(depth) + n, 4 * n])
        self._bias = self.add_variable("bias", [4 * n], initializer=init_ops.zeros_initializer())
        if self._use_peephole:
            self._w_i_diag, self._w_f_diag, self._w_o_diag = (self.add_variable(name, [n]) for name in ("w_i_diag", "w_f_diag", "w_o_diag"))
        self.built = True

    def __call__(self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None) -> Any:
        """(outputs, last state)."""
        listed = isinstance(inputs, (list, tuple))
        x = array_ops.stack(inputs) if listed else convert_to_tensor(inputs)
        if x.get_shape().ndims != 3:
            raise at_user_line(ValueError("inputs must be [time, batch, depth], got shape %s" % x.get_shape()))
        outputs, state = super().__call__(x, initial_state=initial_state, dtype=dtype, sequence_length=sequence_length, scope=scope)
        return array_ops.unstack(outputs, x.get_shape()[0].value) if listed else outputs, state

    def call(self, inputs: Tensor, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None) -> Any:
        """(outputs, last state)."""
        batch = array_ops.shape(inputs)[1]
        if initial_state is None:
            if dtype is None:
                raise at_user_line(ValueError("Either initial_state or dtype needs to be specified"))
            zeros = array_ops.zeros(array_ops.stack([batch, self._num_units]), dtype)
            zeros.set_shape([inputs.get_shape()[1], self._num_units])
            initial_state = (zeros, zeros)
        if len(initial_state) != 2:
            raise at_user_line(ValueError("Expecting initial_state to be a tuple with length 2 or None"))
        c, h = (convert_to_tensor(part) for part in initial_state)
        memories, outputs = self._run(inputs, c, h, sequence_length)
        if sequence_length is None:
            return outputs, LSTMStateTuple(memories[-1], outputs[-1])
        return outputs, LSTMStateTuple(*(self._at(sequence_length, first, values, batch) for first, values in ((c, memories), (h, outputs))))

    def _run(self, x: Tensor, c: Tensor, h: Tensor, lengths: Any) -> Tuple[Tensor, Tensor]:
        """Memories and outputs of all steps; outputs behind the end of a sequence are zero."""
        n, dtype = self._num_units, x.dtype.base_dtype
        if self._use_peephole:
            wci, wcf, wco = self._w_i_diag, self._w_f_diag, self._w_o_diag
        else:
            wci = wcf = wco = array_ops.zeros([n], dtype)
        steps = array_ops.shape(x)[0]
        longest = math_ops.to_int64(steps if lengths is None else math_ops.reduce_max(lengths))
        made = gen_ops.block_lstm(
            longest,
            x,
            c,
            h,
            self._kernel,
            wci,
            wcf,
            wco,
            self._bias,
            forget_bias=float(self._forget_bias),
            cell_clip=-1.0 if self._cell_clip is None else float(self._cell_clip),
            use_peephole=bool(self._use_peephole),
        )
        memories, outputs = made[1], made[6]
        if lengths is not None:
            outputs = outputs * array_ops.expand_dims(array_ops.transpose(array_ops.sequence_mask(lengths, steps, dtype=dtype)), -1)
        return memories, outputs

    def _at(self, lengths: Any, first: Tensor, values: Tensor, batch: Tensor) -> Tensor:
        """Of each example what is there after its last step."""
        rows = array_ops.reshape(array_ops.concat([array_ops.expand_dims(first, 0), values], 0), [-1, self._num_units])
        found = array_ops.gather(rows, math_ops.to_int32(lengths) * batch + math_ops.range(batch))
        found.set_shape(first.get_shape())
        return found
