# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.experimental.ops.snapshot: data sets that are written to files once, and read there afterwards."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.data.dataset import Dataset
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.ops import gen_ops

COMPRESSION_GZIP = "GZIP"
COMPRESSION_NONE = None


def snapshot(
    path: Any,
    compression: Optional[str] = None,
    reader_path_prefix: Optional[str] = None,
    writer_path_prefix: Optional[str] = None,
    shard_size_bytes: Optional[int] = None,
    pending_snapshot_expiry_seconds: Optional[int] = None,
    num_reader_threads: Optional[int] = None,
    reader_buffer_size: Optional[int] = None,
    num_writer_threads: Optional[int] = None,
    writer_buffer_size: Optional[int] = None,
) -> Callable[[Dataset], Dataset]:
    """For Dataset.apply: the elements are written to files under `path` while they are read for the first time, shard_size_bytes to a file, and
    read there afterwards. What has not come to its end pending_snapshot_expiry_seconds after it began is written anew. Files are written and read
    by the thread that wants the elements, in their order, whatever the numbers of threads say."""
    numbers = [shard_size_bytes, pending_snapshot_expiry_seconds, num_reader_threads, reader_buffer_size, num_writer_threads, writer_buffer_size]
    names = ("shard_size_bytes", "pending_snapshot_expiry_seconds", "num_reader_threads", "reader_buffer_size", "num_writer_threads", "writer_buffer_size")
    settings: Dict[str, Any] = {name: -1 if number is None else number for name, number in zip(names, numbers)}
    settings.update(compression=compression or "", reader_path_prefix=reader_path_prefix or "", writer_path_prefix=writer_path_prefix or "")

    def applied(dataset: Dataset) -> Dataset:
        folder, (types, shapes) = convert_to_tensor(path, dtypes.string), dataset._spec
        return dataset._same(gen_ops.snapshot_dataset(dataset._variant, folder, types, shapes, **settings))

    return applied
