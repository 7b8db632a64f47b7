# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = ["ctc_loss", "ctc_greedy_decoder", "ctc_beam_search_decoder"]


def ctc_loss(labels: Any = None, inputs: Any = None, sequence_length: Any = None, preprocess_collapse_repeated: bool = False,
             ctc_merge_repeated: bool = True, ignore_longer_outputs_than_inputs: bool = False, time_major: bool = True,
             logits: Any = None) -> Tensor:
    """The negative log-probability of each label sequence; 0.x had the inputs before the labels."""
    inputs = logits if inputs is None else inputs
    if isinstance(inputs, SparseTensor):
        labels, inputs = inputs, labels
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = convert_to_tensor(inputs)
    if not time_major:
        inputs = array_ops.transpose(inputs, [1, 0, 2])
    loss, _ = gen_ops.ctc_loss(inputs, labels.indices, math_ops.cast(labels.values, dtypes.int32), math_ops.cast(sequence_length, dtypes.int32),
                               preprocess_collapse_repeated=preprocess_collapse_repeated, ctc_merge_repeated=ctc_merge_repeated,
                               ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs)
    return loss  # type: ignore[no-any-return]


def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> Tuple[List[SparseTensor], Tensor]:
    """([labels of the best class of each step], negated sums of their logits)."""
    indices, values, shape, score = gen_ops.ctc_greedy_decoder(inputs, math_ops.cast(sequence_length, dtypes.int32), merge_repeated=merge_repeated)
    return [SparseTensor(indices, values, shape)], score


def ctc_beam_search_decoder(inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True,
                            name: Optional[str] = None) -> Tuple[List[SparseTensor], Tensor]:
    """([labels of the best paths], their log-probabilities)."""
    indices, values, shapes, score = gen_ops.ctc_beam_search_decoder(
        inputs, math_ops.cast(sequence_length, dtypes.int32), beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated, name=name)
    return [SparseTensor(i, v, s) for i, v, s in zip(indices, values, shapes)], score
