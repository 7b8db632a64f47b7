# SPDX-License-Identifier: Apache-2.0
"""tf.python_io: files of records, which the library writes and reads."""

from __future__ import annotations

import os
import sys
import zlib
from typing import Any, Callable, Dict, Iterator, Optional

import numpy as np

import millrace._core as _core
from millrace.framework.errors import FailedPreconditionError, at_user_line

masked_crc: Callable[[bytes], int] = _core.masked_crc32c


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE, ZLIB, GZIP = 0, 1, 2


class TFRecordOptions:
    """Options of a file of records: how it is compressed (a TFRecordCompressionType, or "", "ZLIB" or "GZIP"), and zlib's parameters for it.

    TFRecordWriter obeys compression_level (0 to 9, -1: zlib's own choice), window_bits, mem_level and compression_strategy (zlib's numbers); a
    window_bits beyond 15 makes a gzip file, as in zlib. compression_method is zlib's only one, 8. flush_mode and the sizes of buffers are when
    and in which parts bytes are written, not which: zlib's own are used. A writer refuses numbers that zlib does not take.
    """

    compression_type_map = {0: "", 1: "ZLIB", 2: "GZIP"}

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: Optional[int] = None,
        input_buffer_size: Optional[int] = None,
        output_buffer_size: Optional[int] = None,
        window_bits: Optional[int] = None,
        compression_level: Optional[int] = None,
        compression_method: Optional[int] = None,
        mem_level: Optional[int] = None,
        compression_strategy: Optional[int] = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        if compression_method not in (None, zlib.DEFLATED):
            raise ValueError("compression_method must be %d (deflate), got %r" % (zlib.DEFLATED, compression_method))
        self.compression_type, self.flush_mode = compression_type, flush_mode
        self.input_buffer_size, self.output_buffer_size = input_buffer_size, output_buffer_size
        self.window_bits, self.compression_level, self.compression_method = window_bits, compression_level, compression_method
        self.mem_level, self.compression_strategy = mem_level, compression_strategy

    @staticmethod
    def get_compression_type_string(options: Any) -> str:
        """ "", "ZLIB" or "GZIP": of options, of a number or of a name."""
        return ("", "ZLIB", "GZIP")[_kind(options)]


_NUMBERS = {None: 0, "": 0, "ZLIB": 1, "GZIP": 2, 0: 0, 1: 1, 2: 2}


def _kind(options: Any) -> int:
    kind = getattr(options, "compression_type", options)
    if isinstance(kind, TFRecordOptions):
        return _kind(kind)
    if kind not in _NUMBERS:
        raise ValueError("Not a valid compression_type: %r" % (kind,))
    return _NUMBERS[kind]


_RANGES = {
    "compression_level": range(-1, 10),
    "mem_level": range(1, 10),
    "compression_strategy": range(5),
    "input_buffer_size": range(sys.maxsize),
    "output_buffer_size": range(2, sys.maxsize),
}
_WINDOWS = {"ZLIB": (*range(-15, -8), *range(8, 16), *range(25, 32)), "GZIP": (*range(9, 16), *range(25, 32))}  # what deflateInit2 takes


def _checked_numbers(options: Any, kind: str) -> Dict[str, int]:
    """The numbers that options give. TypeError for what is no integer; ValueError for what zlib refuses, where it is to compress."""
    given: Dict[str, int] = {}
    for name in (*_RANGES, "window_bits", "flush_mode"):
        value = getattr(options, name, None)
        if value is None:
            continue
        if not isinstance(value, (int, np.integer)):
            raise at_user_line(TypeError("%s of a record file must be an integer, got %r" % (name, value)))
        allowed: Any = _WINDOWS.get(kind) if name == "window_bits" else _RANGES.get(name)
        if kind and allowed is not None and value not in allowed:
            raise at_user_line(ValueError("%s of a record file that %s compresses cannot be %d: zlib does not take it" % (name, kind, value)))
        given[name] = int(value)
    return given


def _path(path: Any) -> str:
    return os.fsdecode(path)


class TFRecordWriter:
    """Writes records to a file."""

    def __init__(self, path: Any, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        numbers = _checked_numbers(options, kind)
        obeyed = (("compression_level", -1), ("window_bits", 15), ("mem_level", 9), ("compression_strategy", 0))
        self._closed = False
        self._writer: Any = _core.RecordWriter(_path(path), kind, *(numbers.get(name, default) for name, default in obeyed))

    def write(self, record: bytes) -> None:
        """Appends a record."""
        self._check_open("Writing to a closed TFRecordWriter.")
        self._writer.write(record.encode() if isinstance(record, str) else bytes(record))

    def flush(self) -> None:
        """Writes what is still in memory."""
        self._check_open("Flushing a closed TFRecordWriter.")
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()
        self._closed = True

    def _check_open(self, message: str) -> None:
        if self._closed:
            raise at_user_line(FailedPreconditionError(None, None, message))

    def __enter__(self) -> "TFRecordWriter":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file. NotFoundError when it is not there, DataLossError when it is damaged."""
    yield from iter(_core.RecordReader(_path(path), TFRecordOptions.get_compression_type_string(options)).read, None)
