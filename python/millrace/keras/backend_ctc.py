# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification of tf.keras.backend."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.keras.backend_settings import epsilon
from millrace.ops import array_ops, gen_ops, math_ops


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """The labels of each row up to its length, as a sparse tensor."""
    labels = convert_to_tensor(labels)
    dims = array_ops.shape(labels)
    there = gen_ops.less(array_ops.expand_dims(math_ops.range(dims[1]), 0), array_ops.expand_dims(math_ops.cast(label_lengths, dtypes.int32), 1))
    indices = gen_ops.where(there)
    return SparseTensor(indices, gen_ops.gather_nd(labels, indices), math_ops.cast(dims, dtypes.int64))


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The loss of each example, [batch, 1]; y_pred are probabilities, [batch, steps, classes]."""
    from millrace.ops import ctc_ops

    lengths = [math_ops.cast(array_ops.squeeze(convert_to_tensor(v), [-1]), dtypes.int32) for v in (label_length, input_length)]
    labels = ctc_label_dense_to_sparse(math_ops.cast(y_true, dtypes.int32), lengths[0])
    logits = gen_ops.log(array_ops.transpose(convert_to_tensor(y_pred), [1, 0, 2]) + epsilon())
    return array_ops.expand_dims(ctc_ops.ctc_loss(labels=labels, inputs=logits, sequence_length=lengths[1]), 1)


def ctc_decode(y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1) -> Any:
    """(best paths as dense tensors with -1 for nothing, their log probabilities)."""
    from millrace.ops import ctc_ops

    logits = gen_ops.log(array_ops.transpose(convert_to_tensor(y_pred), [1, 0, 2]) + epsilon())
    length = math_ops.cast(input_length, dtypes.int32)
    if greedy:
        decoded, scores = ctc_ops.ctc_greedy_decoder(inputs=logits, sequence_length=length)
    else:
        decoded, scores = ctc_ops.ctc_beam_search_decoder(inputs=logits, sequence_length=length, beam_width=beam_width, top_paths=top_paths)
    from millrace.ops.sparse_ops import sparse_to_dense

    return [sparse_to_dense(d.indices, d.dense_shape, d.values, default_value=-1) for d in decoded], scores
