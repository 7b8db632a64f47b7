# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq: decoding with several hypotheses for each example."""

from __future__ import annotations

import collections
from typing import Any, Optional

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.decoders import Decoder, start_and_end
from millrace.ops.dialects import either
from millrace.ops.tensor_array_ops import TensorArray

__all__ = [
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
    "gather_tree",
    "gather_tree_from_array",
    "tile_batch",
]

BeamSearchDecoderState = collections.namedtuple(
    "BeamSearchDecoderState", ["cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"], defaults=[()]
)
BeamSearchDecoderOutput = collections.namedtuple("BeamSearchDecoderOutput", ["scores", "predicted_ids", "parent_ids"])
FinalBeamSearchDecoderOutput = collections.namedtuple("FinalBeamSearchDecoderOutput", ["predicted_ids", "beam_search_decoder_output"])


def tile_batch(t: Any, multiplier: int, name: Optional[str] = None) -> Any:
    """Each entry of the batch repeated."""

    def one(x: Any) -> Tensor:
        x = convert_to_tensor(x)
        shape = x.get_shape()
        if shape.ndims is None or shape.ndims == 0:
            raise at_user_line(ValueError("t must have statically known rank of 1 or more"))
        wide = gen_ops.tile(array_ops.expand_dims(x, 1), [1, multiplier] + [1] * (shape.ndims - 1))
        made = array_ops.reshape(wide, array_ops.concat([[-1], array_ops.shape(x)[1:]], 0))
        made.set_shape(tensor_shape.TensorShape([None if shape[0].value is None else shape[0].value * multiplier]).concatenate(shape[1:]))
        return made

    with name_scope(name, "tile_batch", nest.flatten(t) + [multiplier]):
        return nest.map_structure(one, t)


def _of_beams(values: Any, beams: Any) -> Any:
    """values[example, beams[example, i]] of values [batch, beams, ...]."""
    shape = array_ops.shape(values)
    starts = array_ops.expand_dims(gen_ops.range(0, shape[0], 1) * shape[1], 1)
    flat = array_ops.reshape(values, array_ops.concat([[-1], shape[2:]], 0))
    made = array_ops.gather(flat, beams + starts)
    if values.get_shape().ndims is not None and beams.get_shape().ndims is not None:
        made.set_shape(tensor_shape.TensorShape([values.get_shape()[0].value, beams.get_shape()[1].value]).concatenate(values.get_shape()[2:]))
    return made


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any = None, end_token: Any = None, name: Optional[str] = None, sequence_length: Any = None
) -> Tensor:
    """The hypotheses [time, batch, beams] that end in the last beams, followed back by their parents; end tokens behind the first one.

    max_sequence_lengths: [batch]. Up to TensorFlow 1.4 there was no end_token but a sequence_length [batch, beams], behind which is -1.
    Raises: InvalidArgumentError in the step when a parent that is followed is no beam.
    """
    step_ids, parent_ids = convert_to_tensor(step_ids, dtypes.int32), convert_to_tensor(parent_ids, dtypes.int32)
    limits = convert_to_tensor(either("max_sequence_lengths", max_sequence_lengths, "sequence_length", sequence_length), dtypes.int32)
    if end_token is None and limits.get_shape().ndims != 2:
        raise at_user_line(TypeError("gather_tree needs end_token, or a sequence_length of shape [batch, beams], got %s" % limits.get_shape()))
    if end_token is not None:
        return gen_ops.gather_tree(step_ids, parent_ids, limits, convert_to_tensor(end_token, dtypes.int32), name=name)
    shape = array_ops.shape(step_ids)  # an example for each beam, which has a length of its own
    ids, parents = (
        array_ops.reshape(gen_ops.tile(array_ops.expand_dims(v, 2), array_ops.stack([1, 1, shape[2], 1])), array_ops.stack([shape[0], -1, shape[2]]))
        for v in (step_ids, parent_ids)
    )
    made = gen_ops.gather_tree(ids, parents, array_ops.reshape(limits, [-1]), -1)
    made = gen_ops.matrix_diag_part(array_ops.reshape(made, array_ops.concat([shape, shape[2:]], 0)))
    made.set_shape(step_ids.get_shape())
    return made


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Tensor:
    """What was written at each step [time, batch * beams, ...] or [time, batch, beams, ...] for the hypotheses that end in the last beams
    (parent_ids [time, batch, beams]), followed back by their parents. Behind a hypothesis' length [batch, beams] beams stay as they are."""
    t, parents = convert_to_tensor(t), convert_to_tensor(parent_ids, dtypes.int32)
    shape = array_ops.shape(parents)
    steps, batch, beams = shape[0], shape[1], shape[2]
    own = gen_ops.range(0, beams, 1) + array_ops.zeros_like(parents)
    lengths = gen_ops.cast(convert_to_tensor(sequence_length), dtypes.int32)
    followed = gather_tree(own, parents, math_ops.reduce_max(lengths, [1]), beams + 1)
    times = array_ops.reshape(gen_ops.range(0, steps, 1), [-1, 1, 1])
    at = gen_ops.select_v2(gen_ops.less(times, array_ops.expand_dims(lengths, 0)), followed, own)
    examples = array_ops.reshape(gen_ops.range(0, batch, 1), [1, -1, 1])
    rows = array_ops.reshape((times * batch + examples) * beams + at, [-1])
    whole = array_ops.shape(t)
    flat = array_ops.reshape(t, array_ops.stack([steps * batch * beams, -1]))
    made = array_ops.reshape(array_ops.gather(flat, rows), whole)
    made.set_shape(t.get_shape())
    return made


def _alignments_of(state: Any) -> Any:
    """What the AttentionWrappers of a cell read last, on the average; None: there is none."""
    from millrace.ops.attention import AttentionWrapperState

    states = (
        [state]
        if isinstance(state, AttentionWrapperState)
        else [s for s in state if isinstance(s, AttentionWrapperState)]
        if isinstance(state, (list, tuple))
        else []
    )
    means = [_mean(list(s.alignments) if isinstance(s.alignments, tuple) else [s.alignments]) for s in states]
    return _mean(means) if means else None


def _mean(values: Any) -> Any:
    return values[0] if len(values) == 1 else gen_ops.add_n(values) / float(len(values))


def _counts(weight: Any) -> bool:
    return isinstance(weight, Tensor) or weight != 0


def _mask_probs(probs: Any, eos_token: Any, finished: Any) -> Any:
    """Log-probabilities [batch, beams, classes]; of hypotheses that are finished the end token is free, and nothing else follows."""
    classes, dtype = probs.get_shape()[-1].value or array_ops.shape(probs)[-1], probs.dtype
    is_end = array_ops.one_hot(eos_token, classes, on_value=True, off_value=False, dtype=dtypes.bool_)
    free = gen_ops.select_v2(is_end, convert_to_tensor(0.0, dtype), convert_to_tensor(dtype.min, dtype))
    return gen_ops.select_v2(array_ops.expand_dims(gen_ops.cast(finished, dtypes.bool_), 2), free, probs)


def _beam_search_step(
    time: Any,
    logits: Any,
    next_cell_state: Any,
    beam_state: Any,
    batch_size: Any,
    beam_width: int,
    end_token: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any = 0.0,
) -> Any:
    """(output, next state): the best continuations of all hypotheses of an example."""
    del time  # every step is alike
    dtype, over = logits.dtype, array_ops.expand_dims(beam_state.finished, 2)
    classes = logits.get_shape()[-1].value or array_ops.shape(logits)[-1]
    total = array_ops.expand_dims(beam_state.log_probs, 2) + _mask_probs(nn_ops.log_softmax(logits), end_token, beam_state.finished)
    is_end = array_ops.one_hot(end_token, classes, on_value=True, off_value=False, dtype=dtypes.bool_)
    grows = gen_ops.cast(gen_ops.logical_not(gen_ops.logical_or(over, is_end)), dtypes.int64)
    scores, read = _scores(total, array_ops.expand_dims(beam_state.lengths, 2) + grows, length_penalty_weight), ()
    if _counts(coverage_penalty_weight):
        goes_on = gen_ops.cast(gen_ops.logical_not(over), dtype)
        read = beam_state.accumulated_attention_probs + _alignments_of(next_cell_state) * goes_on
        gaps = _penalty_of_gaps(read, beam_state.finished) * convert_to_tensor(coverage_penalty_weight, dtype)
        scores = scores + array_ops.expand_dims(gaps, 2)
    flat_shape = array_ops.stack([batch_size, -1])
    best, places = nn_ops.top_k(array_ops.reshape(scores, flat_shape), beam_width)
    words, beams = gen_ops.floor_mod(places, classes), gen_ops.floor_div(places, classes)
    probs = _of_beams(array_ops.reshape(total, flat_shape), places)
    for made in (best, words, beams, probs):
        made.set_shape(beam_state.log_probs.get_shape())
    was_over = _of_beams(beam_state.finished, beams)
    lengths = _of_beams(beam_state.lengths, beams) + gen_ops.cast(gen_ops.logical_not(was_over), dtypes.int64)
    kept = nest.map_structure(lambda s: s if isinstance(s, TensorArray) or s.get_shape().ndims == 0 else _of_beams(s, beams), next_cell_state)
    return (
        BeamSearchDecoderOutput(best, words, beams),
        BeamSearchDecoderState(
            kept,
            probs,
            gen_ops.logical_or(was_over, gen_ops.equal(words, end_token)),
            lengths,
            _of_beams(read, beams) if _counts(coverage_penalty_weight) else (),
        ),
    )


def _penalty_of_gaps(read: Any, finished: Any) -> Any:
    """For finished hypotheses: what they did not read of the memory, by Wu et al. 2016. Steps that none reads are beyond the memory's length."""
    ones = array_ops.ones_like(read)
    share = gen_ops.minimum(gen_ops.select(gen_ops.equal(read, array_ops.zeros_like(read)), ones, read), ones)
    return math_ops.reduce_sum(gen_ops.log(share), [2]) * gen_ops.cast(finished, read.dtype)


def _scores(log_probs: Any, lengths: Any, weight: Any) -> Any:
    """Divided by the penalty of Wu et al. 2016: ((5 + length) / 6) ** weight."""
    if not _counts(weight):
        return log_probs
    return log_probs / gen_ops.pow((gen_ops.cast(lengths, log_probs.dtype) + 5.0) / 6.0, convert_to_tensor(weight, log_probs.dtype))


class BeamSearchDecoder(Decoder):
    """Keeps the beam_width most likely beginnings of each example. The initial state is that of the cell for batch * beam_width examples (tile_batch)."""

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        self._coverage, self._reorder = coverage_penalty_weight, reorder_tensor_arrays
        self._cell, self._layer, self._penalty, self._width = cell, output_layer, length_penalty_weight, beam_width
        self._embed, self._tokens, self._end = start_and_end(embedding, start_tokens, end_token)
        self._batch, self._static_batch = array_ops.size(self._tokens), self._tokens.get_shape()[0].value
        self._start = self._embed(gen_ops.tile(array_ops.expand_dims(self._tokens, 1), [1, beam_width]))
        self._initial = nest.map_structure(self._split, initial_state)
        self._dtype = nest.flatten(initial_state)[0].dtype
        if _counts(self._coverage) and _alignments_of(initial_state) is None:
            raise at_user_line(ValueError("coverage_penalty_weight needs a cell that is an AttentionWrapper, so that its state tells what was read"))

    batch_size = property(lambda self: self._batch, doc="The number of examples.")
    tracks_own_finished = property(lambda self: True, doc="Hypotheses change places.")

    @property
    def output_size(self) -> Any:
        """The shapes of an example's output."""
        each = tensor_shape.TensorShape([self._width])
        return BeamSearchDecoderOutput(each, each, each)

    @property
    def output_dtype(self) -> Any:
        """The types of the output."""
        return BeamSearchDecoderOutput(self._dtype, dtypes.int32, dtypes.int32)

    def _split(self, value: Any) -> Any:
        """[batch * beams, ...] as [batch, beams, ...]."""
        if isinstance(value, TensorArray) or value.get_shape().ndims == 0:
            return value
        made = array_ops.reshape(value, array_ops.concat([array_ops.stack([self._batch, self._width]), array_ops.shape(value)[1:]], 0))
        made.set_shape(tensor_shape.TensorShape([self._static_batch, self._width]).concatenate(value.get_shape()[1:]))
        return made

    def _joined(self, value: Any) -> Any:
        """The other way."""
        if isinstance(value, TensorArray) or value.get_shape().ndims == 0:
            return value
        made = array_ops.reshape(value, array_ops.concat([[-1], array_ops.shape(value)[2:]], 0))
        count = None if self._static_batch is None else self._static_batch * self._width
        made.set_shape(tensor_shape.TensorShape([count]).concatenate(value.get_shape()[2:]))
        return made

    def initialize(self, name: Optional[str] = None) -> Any:
        """(finished, the first inputs, the initial state): only the first hypothesis of each example counts."""
        firsts = array_ops.zeros(array_ops.stack([self._batch]), dtypes.int32)
        alive = array_ops.one_hot(firsts, self._width, on_value=True, off_value=False, dtype=dtypes.bool_)
        finished = gen_ops.logical_not(alive)
        log_probs = array_ops.one_hot(
            firsts, self._width, on_value=convert_to_tensor(0.0, self._dtype), off_value=convert_to_tensor(-float("inf"), self._dtype), dtype=self._dtype
        )
        for made in (finished, log_probs):
            made.set_shape([self._static_batch, self._width])
        read = array_ops.zeros_like(_alignments_of(self._initial)) if _counts(self._coverage) else ()
        return finished, self._start, BeamSearchDecoderState(self._initial, log_probs, finished, array_ops.zeros_like(finished, dtypes.int64), read)

    def step(self, time: Any, inputs: Any, state: Any, name: Optional[str] = None) -> Any:
        """(outputs, next state, next inputs, finished)."""
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            outputs, cell_state = self._cell(nest.map_structure(self._joined, inputs), nest.map_structure(self._joined, state.cell_state))
            logits = self._split(outputs)
            if self._layer is not None:
                logits = self._layer(logits)
            output, following = _beam_search_step(
                time, logits, nest.map_structure(self._split, cell_state), state, self._batch, self._width, self._end, self._penalty, self._coverage
            )
            for made in (*output, following.log_probs):
                made.set_shape([self._static_batch, self._width])
            inputs = control_flow_ops.cond(math_ops.reduce_all(following.finished), lambda: self._start, lambda: self._embed(output.predicted_ids))
            inputs.set_shape(self._start.get_shape())
            return output, following, inputs, following.finished

    def _check_elements(self, written: Any) -> Any:
        sizes = array_ops.shape(written)
        fits = gen_ops.equal(sizes[1], self._batch * self._width)
        if written.get_shape().ndims > 2:
            apart = gen_ops.logical_and(gen_ops.equal(sizes[1], self._batch), gen_ops.equal(sizes[2], self._width))
            fits = gen_ops.logical_or(fits, apart)
        told = (
            "TensorArray reordering expects elements to be reshapable to [batch_size, beam_size, -1] which is incompatible with the dynamic shape of "
            "%s elements. Consider setting reorder_tensor_arrays to False to disable TensorArray reordering during the beam search." % written.name
        )
        return control_flow_ops.Assert(fits, [told])

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """The hypotheses from beginning to end, the best first. TensorArrays of the cell's state become what they held for these hypotheses."""
        if self._reorder:

            def sorted_by_hypotheses(value: Any) -> Any:
                if not isinstance(value, TensorArray):
                    return value
                written = value.stack()
                if (written.get_shape().ndims or 0) < 2:
                    return value
                checked = self._check_elements(written)
                with control_dependencies([checked]):
                    return gather_tree_from_array(written, outputs.parent_ids, final_state.lengths)

            final_state = final_state._replace(cell_state=nest.map_structure(sorted_by_hypotheses, final_state.cell_state))
        longest = gen_ops.cast(math_ops.reduce_max(final_state.lengths, [1]), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state
