# SPDX-License-Identifier: Apache-2.0
"""Readers: records out of files whose names come from a queue."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import gen_ops

__all__ = ["ReaderBase", "WholeFileReader", "TextLineReader", "FixedLengthRecordReader", "TFRecordReader", "LMDBReader", "IdentityReader"]


class ReaderBase:
    """Takes names of files from a queue and gives their records, each a key and a value."""

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._reader_ref, self._supports_serialize = reader_ref, supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved."""
        return self._supports_serialize

    def _op(self, what: str) -> Any:
        return getattr(gen_ops, "reader_" + what + ("_v2" if self._reader_ref.dtype.base_dtype == dtypes.resource else ""))

    def _queue(self, queue: Any) -> Tensor:
        handle: Tensor = getattr(queue, "queue_ref", queue)
        if handle.dtype.base_dtype == dtypes.resource and self._reader_ref.dtype.base_dtype == dtypes.string:
            return gen_ops.fake_queue(handle)  # for a reader of the first form
        if handle.dtype.base_dtype != self._reader_ref.dtype.base_dtype:
            raise at_user_line(TypeError("the handle of the queue is %s, that of the reader %s" % (handle.dtype, self._reader_ref.dtype)))
        return handle

    def read(self, queue: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """The next record: its key and its value."""
        key, value = self._op("read")(self._reader_ref, self._queue(queue), name=name)
        return key, value

    def read_up_to(self, queue: Any, num_records: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """Up to so many records of one file: their keys and their values."""
        keys, values = self._op("read_up_to")(self._reader_ref, self._queue(queue), convert_to_tensor(num_records, dtypes.int64), name=name)
        return keys, values

    def num_records_produced(self, name: Optional[str] = None) -> Tensor:
        """How many records it has given."""
        return self._op("num_records_produced")(self._reader_ref, name=name)

    def num_work_units_completed(self, name: Optional[str] = None) -> Tensor:
        """How many files it has read to their ends."""
        return self._op("num_work_units_completed")(self._reader_ref, name=name)

    def serialize_state(self, name: Optional[str] = None) -> Tensor:
        """Its state, as a string."""
        return self._op("serialize_state")(self._reader_ref, name=name)

    def restore_state(self, state: Any, name: Optional[str] = None) -> Operation:
        """Sets it back to a state."""
        return self._op("restore_state")(self._reader_ref, convert_to_tensor(state, dtypes.string), name=name)

    def reset(self, name: Optional[str] = None) -> Operation:
        """Makes it as it was at first."""
        return self._op("reset")(self._reader_ref, name=name)


class WholeFileReader(ReaderBase):
    """Gives files as they are: a name and the contents."""

    def __init__(self, name: Optional[str] = None) -> None:
        super().__init__(gen_ops.whole_file_reader_v2(name=name))


class TextLineReader(ReaderBase):
    """Gives lines of text."""

    def __init__(self, skip_header_lines: Optional[int] = None, name: Optional[str] = None) -> None:
        super().__init__(gen_ops.text_line_reader_v2(skip_header_lines=skip_header_lines or 0, name=name))


class FixedLengthRecordReader(ReaderBase):
    """Gives records of one length."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: Optional[int] = None,
        footer_bytes: Optional[int] = None,
        hop_bytes: Optional[int] = None,
        name: Optional[str] = None,
        encoding: Optional[str] = None,
    ) -> None:
        super().__init__(
            gen_ops.fixed_length_record_reader_v2(
                record_bytes, header_bytes=header_bytes or 0, footer_bytes=footer_bytes or 0, hop_bytes=hop_bytes or 0, encoding=encoding or "", name=name
            )
        )


class TFRecordReader(ReaderBase):
    """Gives the records of TensorFlow's files of records."""

    def __init__(self, name: Optional[str] = None, options: Any = None) -> None:
        kind = getattr(options, "compression_type", options) or ""
        compression = kind if isinstance(kind, str) else {1: "ZLIB", 2: "GZIP"}.get(kind, "")
        super().__init__(gen_ops.tf_record_reader_v2(compression_type=compression, name=name))


class LMDBReader(ReaderBase):
    """Would give the pairs of LMDB databases; its steps fail, since nothing reads them yet."""

    def __init__(self, name: Optional[str] = None, options: Any = None) -> None:
        del options  # TensorFlow has none either
        super().__init__(gen_ops.lmdb_reader(name=name))


class IdentityReader(ReaderBase):
    """Gives the names themselves."""

    def __init__(self, name: Optional[str] = None) -> None:
        super().__init__(gen_ops.identity_reader_v2(name=name), supports_serialize=True)
