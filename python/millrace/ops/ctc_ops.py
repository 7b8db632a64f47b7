# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = [
    "ctc_loss",
    "ctc_greedy_decoder",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_loss_v2",
    "ctc_loss_dense",
    "collapse_repeated",
    "ctc_unique_labels",
]


def ctc_loss(
    labels: Any = None,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The negative log-probability of each label sequence; 0.x had the inputs before the labels."""
    inputs = logits if inputs is None else inputs
    if isinstance(inputs, SparseTensor):
        labels, inputs = inputs, labels
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = convert_to_tensor(inputs)
    if not time_major:
        inputs = array_ops.transpose(inputs, [1, 0, 2])
    loss, _ = gen_ops.ctc_loss(
        inputs,
        labels.indices,
        math_ops.cast(labels.values, dtypes.int32),
        math_ops.cast(sequence_length, dtypes.int32),
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    return loss


def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> Tuple[List[SparseTensor], Tensor]:
    """([labels of the best class of each step], negated sums of their logits)."""
    indices, values, shape, score = gen_ops.ctc_greedy_decoder(inputs, math_ops.cast(sequence_length, dtypes.int32), merge_repeated=merge_repeated)
    return [SparseTensor(indices, values, shape)], score


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True, name: Optional[str] = None
) -> Tuple[List[SparseTensor], Tensor]:
    """([labels of the best paths], their log-probabilities)."""
    indices, values, shapes, score = gen_ops.ctc_beam_search_decoder(
        inputs, math_ops.cast(sequence_length, dtypes.int32), beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated, name=name
    )
    return [SparseTensor(i, v, s) for i, v, s in zip(indices, values, shapes)], score


def ctc_beam_search_decoder_v2(inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1) -> Tuple[List[SparseTensor], Tensor]:
    """ctc_beam_search_decoder that keeps repeated labels."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def dense_labels_to_sparse(dense: Any, length: Any) -> SparseTensor:
    """Labels [batch, time], of which the first length[i] of row i count, as the SparseTensor that ctc_loss takes."""
    dense = convert_to_tensor(dense)
    length = math_ops.cast(length, dtypes.int64)
    there = array_ops.where(array_ops.sequence_mask(length, array_ops.shape(dense)[1]))
    shape = array_ops.stack([array_ops.shape(dense, out_type=dtypes.int64)[0], math_ops.reduce_max(length)])
    return SparseTensor(there, gen_ops.gather_nd(dense, there), shape)


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: Optional[int] = None,
    name: Optional[str] = None,
) -> Tensor:
    """ctc_loss with any number for the blank: of dense labels 0, unless another is given. `unique` makes it no faster here."""
    del unique
    logits = convert_to_tensor(logits, name="logits")
    classes = logits.get_shape()[2].value
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise at_user_line(ValueError("blank_index must be given when using SparseTensor labels."))
    else:
        labels, blank_index = dense_labels_to_sparse(labels, label_length), blank_index or 0
    if classes is None:
        raise at_user_line(ValueError("ctc_loss_v2 must know the number of classes, got logits of shape %s" % logits.get_shape()))
    blank = blank_index + classes if blank_index < 0 else blank_index
    with name_scope(name, "ctc_loss", [logits]):
        if blank != classes - 1:  # where the op has it
            logits = array_ops.concat([logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank : blank + 1]], 2)
            lower = math_ops.cast(gen_ops.greater(labels.values, math_ops.cast(blank, labels.dtype)), labels.dtype)
            labels = SparseTensor(labels.indices, labels.values - lower, labels.dense_shape)
        return ctc_loss(labels, logits, logit_length, time_major=logits_time_major)


def ctc_loss_dense(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int = 0,
    name: Optional[str] = None,
) -> Tensor:
    """ctc_loss_v2 of labels that are no SparseTensor."""
    return ctc_loss_v2(convert_to_tensor(labels), logits, label_length, logit_length, logits_time_major, unique, blank_index, name)


def collapse_repeated(labels: Any, seq_length: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(labels [batch, time] with runs of one label as one, filled up with 0; their new lengths)."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        width = array_ops.shape(labels)[1]
        changes = array_ops.concat([array_ops.ones_like(labels[:, :1], dtypes.bool), gen_ops.not_equal(labels[:, 1:], labels[:, :-1])], 1)
        kept = gen_ops.logical_and(changes, array_ops.sequence_mask(seq_length, width))
        lengths = math_ops.reduce_sum(math_ops.cast(kept, dtypes.int32), 1)
        longest = math_ops.reduce_max(lengths)
        places = array_ops.where(array_ops.sequence_mask(lengths, longest))
        shape = array_ops.stack([array_ops.shape(labels, out_type=dtypes.int64)[0], math_ops.cast(longest, dtypes.int64)])
        return gen_ops.scatter_nd(places, array_ops.boolean_mask(labels, kept), shape), math_ops.cast(lengths, convert_to_tensor(seq_length).dtype)


def ctc_unique_labels(labels: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(for each row of labels its distinct ones, in order, filled up with 0; for each label its place among them)."""
    from millrace.ops.functional_ops import map_fn

    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")

        def of_row(row: Tensor) -> Any:
            distinct, places = gen_ops.unique(row)
            padded = array_ops.pad(distinct, [[0, array_ops.shape(row)[0] - array_ops.shape(distinct)[0]]])
            return math_ops.cast(padded, dtypes.int64), places

        return map_fn(of_row, labels, dtype=(dtypes.int64, dtypes.int32))
