# SPDX-License-Identifier: Apache-2.0
"""Batches of elements that belong together: by a bucket, by length."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from millrace import summary
from millrace.framework import dtypes, errors, tensor_shape
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from millrace.train import sparse_batching
from millrace.train.batching import as_given, in_form_of, known_keep_input, listed, shapes_of, types_of
from millrace.train.input import fullness
from millrace.train.queue_runner import QueueRunner, add_queue_runner

_ENDS = (errors.OutOfRangeError, errors.CancelledError)


def _for_each(value: Any, count: int, what: str) -> List[Any]:
    """A value for each bucket."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise at_user_line(ValueError("The list %s (%s) must have exactly num_buckets (%d) elements." % (what, values, count)))
    return values


def _add_runners(buckets: List[QueueBase], fillers: List[Any], top: QueueBase, movers: List[Any]) -> None:
    close = control_flow_ops.group(*[q.close() for q in buckets])
    cancel = control_flow_ops.group(*[q.close(cancel_pending_enqueues=True) for q in buckets])
    add_queue_runner(QueueRunner(buckets[0], fillers, close_op=close, cancel_op=cancel, queue_closed_exception_types=_ENDS))
    add_queue_runner(QueueRunner(top, movers, queue_closed_exception_types=_ENDS))


def _in_bucket(queues: List[QueueBase], tensors: List[Tensor], which: Any) -> Any:
    """An operation that puts the tensors into the queue of that number."""
    each = [control_flow_ops.cond(math_ops.equal(which, i), lambda q=queue: q.enqueue(tensors), control_flow_ops.no_op) for i, queue in enumerate(queues)]
    return control_flow_ops.group(*each, name="group_enqueues")


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Any = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Tuple[Tensor, Any]:
    """(bucket, batch of tensors that went into it)."""
    tensor_list = listed(tensors)
    sizes, capacities = (
        _for_each(batch_size, num_buckets, "batch_size"),
        _for_each(capacity if bucket_capacities is None else bucket_capacities, num_buckets, "bucket_capacities"),
    )
    with name_scope(name, "bucket", tensor_list):
        given = [convert_to_tensor_or_sparse_tensor(t) for t in tensor_list]
        if not given:
            raise at_user_line(ValueError("Expected at least one tensor in bucket()."))
        keep = known_keep_input(keep_input, False)
        stored, sparse = sparse_batching.store([given], False, keep)
        types, known = types_of(stored), shapes_of(stored, False) if shapes is None else shapes
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(
                capacity=capacities[i], dtypes=types, shapes=known, name="bucket_queue_%d" % i, shared_name="%s_%d" % (shared_name, i) if shared_name else None
            )
            for i in range(num_buckets)
        ]
        rows = None if allow_smaller_final_batch or len(set(sizes)) > 1 or isinstance(sizes[0], Tensor) else sizes[0]
        top = PaddingFIFOQueue(
            capacity=capacity,
            dtypes=[dtypes.int32, *types],
            name="top_queue",
            shared_name=shared_name,
            shapes=[tensor_shape.scalar(), *(tensor_shape.TensorShape([rows]).concatenate(s) for s in queues[0].shapes)],
        )
        fill = control_flow_ops.smart_cond(keep, lambda: _in_bucket(queues, stored[0], which_bucket), control_flow_ops.no_op)
        movers = []
        for i, (queue, size) in enumerate(zip(queues, sizes)):
            made = (queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many)(size, name="read_bucket_%d" % i)
            movers.append(top.enqueue([constant(i), *(made if isinstance(made, list) else [made])], name="enqueue_from_bucket_%d" % i))
        _add_runners(queues, [fill] * num_threads, top, movers)
        for queue in queues:
            summary.scalar("bucket/%s/size" % queue.name, math_ops.cast(queue.size(), dtypes.float32))
        summary.scalar("bucket/%s/fraction_of_%d_full" % (top.name, capacity), fullness(top, None, capacity))
        which, *batch = top.dequeue(name="dequeue_top")
        return which, as_given(tensors, sparse_batching.restore(batch, sparse))


def _checked_boundaries(boundaries: Any) -> Sequence[int]:
    if not isinstance(boundaries, (list, tuple)):
        raise at_user_line(TypeError("bucket_boundaries must be a list or tuple, but received: %s" % (boundaries,)))
    if not boundaries:
        raise at_user_line(ValueError("bucket_boundaries must not be empty"))
    for low, high in zip(boundaries, [*boundaries[1:], None]):
        if not isinstance(low, (int, np.integer)):
            raise at_user_line(TypeError("bucket boundaries must be integers, but saw: %s" % (low,)))
        if high is not None and low >= high:
            raise at_user_line(ValueError("Buckets must contain sequential increasing lengths, but saw: %s before %s" % (low, high)))
    return boundaries


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Any,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Any = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Tuple[Tensor, Any]:
    """(lengths, batch of tensors of similar lengths)."""
    boundaries = list(_checked_boundaries(bucket_boundaries))
    tensor_list = listed(tensors)
    with name_scope(name, "bucket_by_sequence_length", [input_length, *tensor_list]):
        length = convert_to_tensor(input_length, dtypes.int32, "input_length")
        limits = np.iinfo(np.int32)
        inside = gen_ops.logical_and(
            gen_ops.less_equal(np.array([limits.min, *boundaries], np.int32), length), gen_ops.less(length, np.array([*boundaries, limits.max], np.int32))
        )
        which = math_ops.cast(math_ops.reduce_min(array_ops.where(inside)), dtypes.int32)
        _, batch = bucket(
            [length, *tensor_list],
            which,
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [tensor_shape.scalar(), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return batch[0], in_form_of(tensors, batch[1:])
