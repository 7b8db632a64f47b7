# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.prefetch_queue."""

from __future__ import annotations

from typing import Any, Optional

from millrace import summary
from millrace.framework.graph import name_scope
from millrace.ops.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from millrace.train.batching import listed
from millrace.train.input import fullness
from millrace.train.queue_runner import QueueRunner, add_queue_runner


def prefetch_queue(
    tensors: Any, capacity: int = 8, num_threads: int = 1, dynamic_pad: bool = False, shared_name: Optional[str] = None, name: Optional[str] = None
) -> QueueBase:
    """A queue of what some tensors are in steps to come; of a dict, one with names."""
    tensor_list = listed(tensors)
    with name_scope(name, "prefetch_queue", tensor_list):
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue: QueueBase = kind(
            capacity=capacity,
            dtypes=[t.dtype.base_dtype for t in tensor_list],
            shapes=[t.get_shape() for t in tensor_list],
            names=sorted(tensors, key=str) if isinstance(tensors, dict) else None,
            shared_name=shared_name,
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue(tensors)] * num_threads))
        summary.scalar("fraction_of_%d_full" % capacity, fullness(queue, None, capacity))
        return queue
