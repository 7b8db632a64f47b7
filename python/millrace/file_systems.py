# SPDX-License-Identifier: Apache-2.0
"""File systems that libraries add: what is kept at "scheme://..." is read and written by the core. tf.gfile knows which path is whose."""

from __future__ import annotations

import io
import re
from typing import Any

from millrace import _core

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9.]*://")
_BUFFER = 1 << 19
_MOST_AT_ONCE = 1 << 24


def has_scheme(path: str) -> bool:
    """Whether a path (of no "file://") is not the machine's."""
    return _SCHEME.match(path) is not None


class _Reading(io.RawIOBase):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._file, self._at = _core.FileReader(path), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, int(self._file.size()))[whence]
        if at < 0:
            raise ValueError("negative seek position %d" % at)
        self._at = at
        return at

    def readall(self) -> bytes:
        parts = []
        while self._at < self._file.size():
            parts.append(self._file.read(self._at, _MOST_AT_ONCE))
            self._at += len(parts[-1])
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Writing(io.RawIOBase):
    def __init__(self, path: str, appends: bool) -> None:
        super().__init__()
        self._file: Any = _core.FileWriter(path, appends)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        finally:
            super().close()


class _Writer(io.BufferedWriter):
    """Flushed down to the file system: some show what they have only then."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()


def open_file(path: str, mode: str) -> Any:
    """As open(path, mode), of "rb", "wb" and "ab"."""
    if mode == "rb":
        return io.BufferedReader(_Reading(path), _BUFFER)
    return _Writer(_Writing(path, mode == "ab"))
