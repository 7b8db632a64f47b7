# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.parallel_reader: several readers that put what they read into one queue."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace import gfile, summary
from millrace.framework import dtypes as dtypes_module
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, name_scope
from millrace.ops import math_ops
from millrace.ops.queues import FIFOQueue, QueueBase, RandomShuffleQueue
from millrace.train.input import fullness, string_input_producer
from millrace.train.queue_runner import QueueRunner, add_queue_runner


class ParallelReader:
    """Readers of the same queue of files, and the queue that they fill."""

    def __init__(self, reader_class: Any, common_queue: QueueBase, num_readers: int = 4, reader_kwargs: Any = None) -> None:
        if len(common_queue.dtypes) != 2:
            raise at_user_line(TypeError("common_queue.dtypes must be a list of two types, those of keys and values"))
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def common_queue(self) -> QueueBase:
        """The queue that they fill."""
        return self._common_queue

    def _fill_from(self, files: QueueBase) -> None:
        add_queue_runner(QueueRunner(self._common_queue, [self._common_queue.enqueue(reader.read(files)) for reader in self._readers]))

    def read(self, queue: QueueBase, name: Optional[str] = None) -> Any:
        """(key, value) of the next record of the files that a queue names."""
        self._fill_from(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: QueueBase, num_records: Any, name: Optional[str] = None) -> Any:
        """(keys, values) of the next records."""
        self._fill_from(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def num_records_produced(self, name: Optional[str] = None) -> Tensor:
        """How many records were read."""
        return math_ops.add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: Optional[str] = None) -> Tensor:
        """How many files were read."""
        return math_ops.add_n([reader.num_work_units_completed() for reader in self._readers], name=name)

    def reset(self, name: Optional[str] = None) -> Operation:
        """An operation that makes all of them begin anew."""
        from millrace.ops.control_flow_ops import group

        return group(*[reader.reset() for reader in self._readers], name=name)


def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: Optional[int] = None,
    num_readers: int = 4,
    reader_kwargs: Any = None,
    shuffle: bool = True,
    dtypes: Any = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: Optional[int] = None,
    scope: Optional[str] = None,
) -> Any:
    """(key, value) of the next record of some files."""
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames")
        types = dtypes or [dtypes_module.string, dtypes_module.string]
        queue: QueueBase = (
            RandomShuffleQueue(capacity, min_after_dequeue, types, seed=seed, name="common_queue")
            if shuffle
            else FIFOQueue(capacity, types, name="common_queue")
        )
        summary.scalar("fraction_of_%d_full" % capacity, fullness(queue, None, capacity))
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


def single_pass_read(data_sources: Any, reader_class: Any, reader_kwargs: Any = None, scope: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(key, value) of the next record of some files, in their order and once."""
    files = get_data_files(data_sources)
    with name_scope(scope, "single_pass_read"):
        names = string_input_producer(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(names)


def get_data_files(data_sources: Any) -> List[str]:
    """The files that match a pattern, or one of several."""
    if isinstance(data_sources, (list, tuple)):
        files = [file for source in data_sources for file in get_data_files(source)]
    elif any(c in data_sources for c in "*?["):
        files = gfile.Glob(data_sources)
    else:
        files = [data_sources]
    if not files:
        raise at_user_line(ValueError("No data files found in %s" % (data_sources,)))
    return files
