# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.crf: linear-chain conditional random fields."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, control_flow_ops, functional_ops, gen_ops, math_ops, rnn_cell
from millrace.ops.rnn import dynamic_rnn
from millrace.ops.variable_scope import get_variable


def _lengths_to_masks(lengths: Any, max_length: Any) -> Tensor:
    return array_ops.sequence_mask(lengths, maxlen=max_length, dtype=dtypes.float32)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The sum of the scores of the tags of each sequence."""
    inputs = convert_to_tensor(inputs)
    tags = inputs.get_shape()[2].value or array_ops.shape(inputs)[2]
    picked = inputs * array_ops.one_hot(tag_indices, tags, dtype=inputs.dtype.base_dtype)
    return math_ops.reduce_sum(math_ops.reduce_sum(picked, 2) * _lengths_to_masks(sequence_lengths, array_ops.shape(inputs)[1]), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The sum of the scores of the transitions of each sequence."""
    transitions = convert_to_tensor(transition_params)
    tags = transitions.get_shape()[0].value or array_ops.shape(transitions)[0]
    tag_indices = convert_to_tensor(tag_indices)
    moves = math_ops.cast(tag_indices[:, :-1], dtypes.int32) * tags + math_ops.cast(tag_indices[:, 1:], dtypes.int32)
    scores = array_ops.gather(array_ops.reshape(transitions, [-1]), moves)
    lengths = gen_ops.maximum(math_ops.cast(sequence_lengths, dtypes.int32) - 1, 0)
    return math_ops.reduce_sum(scores * _lengths_to_masks(lengths, array_ops.shape(moves)[1]), 1)


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The score of each tagged sequence, not normalised."""
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithm of the sum over all sequences of tags that tag_bitmap [batch, length, tags] allows, not normalised."""
    inputs = convert_to_tensor(inputs)
    impossible = array_ops.fill(array_ops.shape(inputs), convert_to_tensor(-np.inf, inputs.dtype.base_dtype))
    allowed = array_ops.where(tag_bitmap, inputs, impossible)
    length = inputs.get_shape()[1].value or array_ops.shape(inputs)[1]
    return control_flow_ops.smart_cond(
        math_ops.equal(length, 1),
        lambda: math_ops.reduce_logsumexp(allowed, axis=[1, 2]),  # also of sequences of length 0, as TensorFlow has it
        lambda: crf_log_norm(allowed, sequence_lengths, transition_params),
    )


class CrfForwardRnnCell(rnn_cell.RNNCell):
    """One step of the forward algorithm: the state is the logarithm of the sum over all paths to each tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        transitions = convert_to_tensor(transition_params)
        self._transition_params = array_ops.expand_dims(transitions, 0)
        self._num_tags = transitions.get_shape()[0].value

    state_size = output_size = property(lambda self: self._num_tags, doc="The number of tags.")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """(new state, new state)."""
        del scope  # there are no variables
        new = inputs + math_ops.reduce_logsumexp(array_ops.expand_dims(state, 2) + self._transition_params, axis=1)
        return new, new


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithm of the sum over all tags of each sequence."""
    inputs = convert_to_tensor(inputs)
    lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    _, alphas = dynamic_rnn(CrfForwardRnnCell(transition_params), inputs[:, 1:], gen_ops.maximum(lengths - 1, 0), inputs[:, 0], dtype=dtypes.float32)
    sums = math_ops.reduce_logsumexp(alphas, axis=1)
    return array_ops.where(gen_ops.less_equal(lengths, 0), array_ops.zeros_like(sums), sums)


def crf_log_likelihood(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None) -> Tuple[Tensor, Any]:
    """(the logarithm of each tagged sequence's probability, the transitions, which are made where none are given)."""
    inputs = convert_to_tensor(inputs)
    if transition_params is None:
        tags = inputs.get_shape()[2].value
        transition_params = get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> Tuple[Tensor, Tensor]:
    """(the best tags of each sequence, 0 behind its end; their scores)."""
    potentials = convert_to_tensor(potentials)
    transitions = array_ops.expand_dims(convert_to_tensor(transition_params), 0)
    tags, length = potentials.get_shape()[2].value, array_ops.shape(potentials)[1]
    last = gen_ops.maximum(math_ops.cast(sequence_length, dtypes.int32), 1)
    inside = array_ops.transpose(array_ops.sequence_mask(last, maxlen=length))[1:]
    same = array_ops.zeros_like(math_ops.cast(potentials[:, 0], dtypes.int32)) + gen_ops.range(0, tags, 1)

    def forwards(state: Any, step: Any) -> Any:
        unary, present = step
        scores = array_ops.expand_dims(state[0], 2) + transitions
        best, came = math_ops.reduce_max(scores, axis=1) + unary, math_ops.cast(math_ops.argmax(scores, axis=1), dtypes.int32)
        return array_ops.where(present, best, state[0]), array_ops.where(present, came, same)

    first = potentials[:, 0]
    bests, pointers = functional_ops.scan(forwards, (array_ops.transpose(potentials[:, 1:], [1, 0, 2]), inside), (first, same))
    final = array_ops.concat([array_ops.expand_dims(first, 0), bests], 0)[-1]
    end = math_ops.cast(math_ops.argmax(final, axis=1), dtypes.int32)
    rows = gen_ops.range(0, array_ops.shape(end)[0], 1)

    def backwards(tag: Any, came: Any) -> Any:
        return gen_ops.gather_nd(came, array_ops.stack([rows, tag], 1))

    earlier = functional_ops.scan(backwards, pointers, end, reverse=True)
    path = array_ops.transpose(array_ops.concat([earlier, array_ops.expand_dims(end, 0)], 0))
    path = path * array_ops.sequence_mask(last, maxlen=length, dtype=dtypes.int32)
    path.set_shape(potentials.get_shape()[:2])
    return path, math_ops.reduce_max(final, axis=1)


def viterbi_decode(score: Any, transition_params: Any) -> Tuple[List[int], Any]:
    """(the best tags, their score) of one sequence [time, tags]; of arrays, outside the graph."""
    score, transition_params = np.asarray(score), np.asarray(transition_params)
    best, pointers = score[0], []
    for row in score[1:]:
        paths = best[:, None] + transition_params
        pointers.append(paths.argmax(0))
        best = row + paths.max(0)
    tags = [int(best.argmax())]
    for came in reversed(pointers):
        tags.append(int(came[tags[-1]]))
    return tags[::-1], best.max()


__all__ = [
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]
