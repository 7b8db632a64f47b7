# SPDX-License-Identifier: Apache-2.0
"""Data sets of the records of files."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace.data.dataset import Dataset, _int64
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.framework.type_spec import TensorSpec
from millrace.ops import array_ops, gen_ops


class _Records(Dataset):
    """Scalars of bytes."""

    def __init__(self, variant: Tensor) -> None:
        super().__init__(variant, TensorSpec([], dtypes.string))


def _names(filenames: Any) -> Tensor:
    return convert_to_tensor(filenames, dtypes.string)


def _or(value: Any, default: Any) -> Any:
    """The value, which may be a tensor, or a default for None."""
    return default if value is None else value


def _records(filenames: Any, num_parallel_reads: Any, read: Callable[[Tensor], Tensor]) -> Tensor:
    """The data set of the records that `read` finds in files, one file after the other; with num_parallel_reads of so many files in turns."""
    files = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(array_ops.reshape(_names(filenames), [-1]))
    if num_parallel_reads is None:
        return files.flat_map(lambda name: _Records(read(name)))._variant
    return files.interleave(lambda name: _Records(read(name)), num_parallel_reads, 1, num_parallel_calls=num_parallel_reads)._variant


class MatchingFilesDataset(_Records):
    """The names of the files that match patterns, those of one pattern after those of the other; tf.errors.NotFoundError where there are none."""

    def __init__(self, patterns: Any) -> None:
        super().__init__(gen_ops.matching_files_dataset(_names(patterns)))


class TFRecordDataset(_Records):
    """The records of record files, one file after the other; with num_parallel_reads one record of each of so many files in turns."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None) -> None:
        def read(names: Tensor) -> Tensor:
            return gen_ops.tf_record_dataset(names, _or(compression_type, ""), _int64(_or(buffer_size, 0)))

        super().__init__(_records(filenames, num_parallel_reads, read))


class _TFRecordDataset(_Records):
    """The records of record files, which one operation reads one after the other."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(gen_ops.tf_record_dataset(_names(filenames), _or(compression_type, ""), _int64(_or(buffer_size, 0))))


class _Source(_Records):
    """One of which it is said that it is made of no other: the names of its files are its own."""

    def _inputs(self) -> List[Dataset]:
        return []


class TextLineDataset(_Source):
    """The lines of text files, one file after the other; with num_parallel_reads one line of each of so many files in turns."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None) -> None:
        def read(names: Tensor) -> Tensor:
            return gen_ops.text_line_dataset(names, _or(compression_type, ""), _int64(_or(buffer_size, 0)))

        super().__init__(_records(filenames, num_parallel_reads, read))


class FixedLengthRecordDataset(_Source):
    """Records of one length, between a header and a footer of each file; with num_parallel_reads one of each of so many files in turns."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Optional[Any] = None,
        num_parallel_reads: Any = None,
    ) -> None:
        def read(names: Tensor) -> Tensor:
            return gen_ops.fixed_length_record_dataset_v2(
                names, _int64(_or(header_bytes, 0)), _int64(record_bytes), _int64(_or(footer_bytes, 0)), _int64(_or(buffer_size, 0)), _or(compression_type, "")
            )

        super().__init__(_records(filenames, num_parallel_reads, read))
