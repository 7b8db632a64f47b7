# SPDX-License-Identifier: Apache-2.0
"""tf.python_io: files of records."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any, Callable, Iterator

import millrace._core as _core

masked_crc: Callable[[bytes], int] = _core.masked_crc32c


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE, ZLIB, GZIP = 0, 1, 2


class TFRecordOptions:
    """Options of a file of records."""

    def __init__(self, compression_type: int = TFRecordCompressionType.NONE) -> None:
        self.compression_type = compression_type

    @staticmethod
    def get_compression_type_string(options: Any) -> str:
        """ "", "ZLIB" or "GZIP": of options, of a number or of a name."""
        return ("", "ZLIB", "GZIP")[_kind(options)]


def _kind(options: Any) -> int:
    if options is None:
        return 0
    kind = getattr(options, "compression_type", options)
    return {"": 0, "ZLIB": 1, "GZIP": 2}.get(kind, 0) if isinstance(kind, str) else kind or 0


class TFRecordWriter:
    """Writes records to a file."""

    def __init__(self, path: str, options: Any = None) -> None:
        self._kind = _kind(options)
        self._file: Any = gzip.open(path, "wb") if self._kind == 2 else open(path, "wb")
        self._zlib = zlib.compressobj() if self._kind == 1 else None

    def write(self, record: bytes) -> None:
        """Appends a record."""
        record = record.encode() if isinstance(record, str) else bytes(record)
        length = struct.pack("<Q", len(record))
        data = length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))
        self._file.write(self._zlib.compress(data) if self._zlib else data)

    def flush(self) -> None:
        """Writes what is still in memory."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if not self._file.closed:
            if self._zlib:
                self._file.write(self._zlib.flush())
            self._file.close()

    def __enter__(self) -> "TFRecordWriter":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def tf_record_iterator(path: str, options: Any = None) -> Iterator[bytes]:
    """The records of a file. DataLossError when it is damaged."""
    from millrace.framework import errors

    kind = _kind(options)
    if kind == 1:
        with open(path, "rb") as raw:
            import io

            file: Any = io.BytesIO(zlib.decompress(raw.read()))
    else:
        file = gzip.open(path, "rb") if kind == 2 else open(path, "rb")
    with file:
        while True:
            head = file.read(12)
            if not head:
                return
            if len(head) < 12 or struct.unpack("<I", head[8:])[0] != masked_crc(head[:8]):
                raise errors.DataLossError(None, None, "corrupted record in " + path)
            size = struct.unpack("<Q", head[:8])[0]
            body = file.read(size + 4)
            if len(body) < size + 4:
                raise errors.DataLossError(None, None, "truncated record in " + path)
            if struct.unpack("<I", body[size:])[0] != masked_crc(body[:size]):
                raise errors.DataLossError(None, None, "corrupted record in " + path)
            yield body[:size]
