# SPDX-License-Identifier: Apache-2.0
"""batch_sequences_with_states: sequences of any length through a SequenceQueueingStateSaver that queue runners fill.

Sparse tensors travel serialized, three strings for each step of a sequence or for the context, and are read again in the batch.
"""

from __future__ import annotations

import numbers
from typing import Any, Dict, Optional, Tuple

from millrace import summary
from millrace.contrib.training_states import NextQueuedSequenceBatch, SequenceQueueingStateSaver, multiple_of
from millrace.framework import dtypes, errors
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, math_ops, random_ops, sparse_math_ops, string_ops
from millrace.train.queue_runner import QueueRunner, add_queue_runner

_ENDS = (errors.OutOfRangeError, errors.CancelledError)


def _tensors(sequences: Dict[str, Any]) -> Dict[str, Any]:
    if not isinstance(sequences, dict):
        raise at_user_line(TypeError("Unsupported sequences expected dict, got: %s" % (sequences,)))
    made = {}
    for key in sorted(sequences, key=str):
        if not isinstance(key, str):
            raise at_user_line(TypeError("Unsupported sequences key expected string, got: %s" % (key,)))
        value = sequences[key]
        if isinstance(value, SparseTensorValue):
            value = SparseTensor.from_value(value)
        made[key] = value if isinstance(value, SparseTensor) else convert_to_tensor(value)
    return made


def _padding(sequences: Any, num_unroll: int) -> Tuple[Any, Dict[str, Any]]:
    """(their length, the sequences with zeros or empty strings behind, up to a multiple of num_unroll)."""
    if not isinstance(num_unroll, numbers.Integral):
        raise at_user_line(ValueError("Unsupported num_unroll expected int, got: %s" % (num_unroll,)))
    given = _tensors(sequences)
    if not given:
        return 0, {}
    lengths = [array_ops.shape(value)[0] for value in given.values() if isinstance(value, Tensor)]
    if lengths:
        told = [string_ops.string_join(["All sequence lengths must match, but received lengths: ", string_ops.as_string(lengths)])]
        length = control_flow_ops.with_dependencies([control_flow_ops.Assert(math_ops.equal(other, lengths[0]), told) for other in lengths], lengths[0])
    else:
        length = math_ops.reduce_max(math_ops.cast(array_ops.stack([value.dense_shape[0] for value in given.values()]), dtypes.int32))
    steps = length + math_ops.mod(-length, num_unroll)
    padded: Dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Tensor):
            missing = array_ops.concat([[steps - array_ops.shape(value)[0]], array_ops.shape(value)[1:]], 0)
            filled = array_ops.fill(missing, convert_to_tensor("" if value.dtype == dtypes.string else 0, value.dtype))
            padded[key] = array_ops.concat([value, filled], 0)
        else:
            shape = array_ops.concat([[math_ops.cast(steps, dtypes.int64)], value.dense_shape[1:]], 0)
            padded[key] = SparseTensor(value.indices, value.values, shape)
    return length, padded


def _whole_segments(sequences: Dict[str, Any], num_unroll: int) -> Dict[str, Any]:
    """The sequences, whose lengths have to be multiples of num_unroll."""
    checked: Dict[str, Any] = {}
    for key, value in _tensors(sequences).items():
        if isinstance(value, Tensor):
            (checked[key],) = multiple_of(array_ops.shape(value)[0], num_unroll, "Tensor %s first dimension" % key, [value])
        else:
            parts = [value.indices, value.values, value.dense_shape]
            checked[key] = SparseTensor(*multiple_of(value.dense_shape[0], num_unroll, "SparseTensor %s first dimension" % key, parts))
    return checked


def _serialized(value: Any, many: bool) -> Any:
    if isinstance(value, Tensor):
        return value
    texts = (sparse_math_ops.serialize_many_sparse if many else sparse_math_ops.serialize_sparse)(value)
    texts.set_shape([None, 3] if many else [3])
    return texts


def _read(texts: Tensor, dtype: Any, num_unroll: Optional[int]) -> SparseTensor:
    """The sparse tensor of a batch: [batch, ...], or [batch, num_unroll, ...] where each step has its own."""
    rows = sparse_math_ops.deserialize_many_sparse(array_ops.reshape(texts, [-1, 3]), dtype)
    if num_unroll is None:
        return rows
    return sparse_math_ops.sparse_reshape(rows, array_ops.concat([[-1, num_unroll], rows.dense_shape[1:]], 0))


def batch_sequences_with_states(
    input_key: Any,
    input_sequences: Dict[str, Any],
    input_context: Dict[str, Any],
    input_length: Any,
    initial_states: Dict[str, Any],
    num_unroll: int,
    batch_size: Any,
    num_threads: int = 3,
    capacity: int = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    make_keys_unique: bool = False,
    make_keys_unique_seed: Optional[int] = None,
    name: Optional[str] = None,
) -> NextQueuedSequenceBatch:
    """Batches of segments of sequences, with the states that the segments before have saved (SequenceQueueingStateSaver).

    input_sequences, input_context: tensors, or sparse ones. pad: fills sequences up to a multiple of num_unroll; otherwise they must have
    such a length. make_keys_unique: a random number is put behind each key. A queue runner fills the barrier with num_threads threads.
    """
    with name_scope(name, "batch_sequences_with_states"):
        if pad:
            length, sequences = _padding(input_sequences, num_unroll)
            input_length = length if input_length is None else input_length
        else:
            sequences = _whole_segments(input_sequences, num_unroll)
        context = _tensors(input_context)
        if make_keys_unique:
            number = random_ops.random_uniform([], 0, 100000000, dtypes.int32, seed=make_keys_unique_seed)
            input_key = string_ops.string_join([input_key, string_ops.as_string(number)])
        saver = SequenceQueueingStateSaver(
            batch_size,
            num_unroll,
            input_length,
            input_key,
            {key: _serialized(value, True) for key, value in sequences.items()},
            {key: _serialized(value, False) for key, value in context.items()},
            initial_states,
            capacity=capacity,
            allow_small_batch=allow_small_batch,
        )
        summary.scalar("queue/%s/ready_segment_batches_" % saver.barrier.name, math_ops.cast(saver.barrier.ready_size(), dtypes.float32))
        add_queue_runner(QueueRunner(saver, [saver.prefetch_op] * num_threads, queue_closed_exception_types=_ENDS))
        batch = saver.next_batch
        for tensors, received, steps in ((sequences, batch.sequences, num_unroll), (context, batch.context, None)):
            for key, value in tensors.items():
                if isinstance(value, SparseTensor):
                    received[key] = _read(received[key], value.dtype, steps)
        return batch
