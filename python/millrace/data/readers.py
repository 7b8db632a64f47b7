# SPDX-License-Identifier: Apache-2.0
"""Data sets of the records of files."""

from __future__ import annotations

from typing import Any, Optional

from millrace.data.dataset import Dataset, _int64
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import gen_ops


class _Records(Dataset):
    """Scalars of bytes."""

    def __init__(self, variant: Tensor) -> None:
        super().__init__(variant, dtypes.string, TensorShape([]))


def _names(filenames: Any) -> Tensor:
    return convert_to_tensor(filenames, dtypes.string)


def _or(value: Any, default: Any) -> Any:
    """The value, which may be a tensor, or a default for None."""
    return default if value is None else value


class TFRecordDataset(_Records):
    """The records of record files, one file after the other."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None) -> None:
        del num_parallel_reads
        if isinstance(filenames, Dataset):
            nested = filenames.flat_map(lambda name: TFRecordDataset(name, compression_type, buffer_size))
            super().__init__(nested._variant)
        else:
            super().__init__(gen_ops.tf_record_dataset(_names(filenames), _or(compression_type, ""), _int64(_or(buffer_size, 0))))


class TextLineDataset(_Records):
    """The lines of text files, one file after the other."""

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(gen_ops.text_line_dataset(_names(filenames), _or(compression_type, ""), _int64(_or(buffer_size, 0))))


class FixedLengthRecordDataset(_Records):
    """Records of one length, between a header and a footer of each file."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Optional[Any] = None,
    ) -> None:
        super().__init__(
            gen_ops.fixed_length_record_dataset_v2(
                _names(filenames),
                _int64(_or(header_bytes, 0)),
                _int64(record_bytes),
                _int64(_or(footer_bytes, 0)),
                _int64(_or(buffer_size, 0)),
                _or(compression_type, ""),
            )
        )
