# SPDX-License-Identifier: Apache-2.0
"""tf.gfile: files and folders."""
from __future__ import annotations

import glob as _glob
import os
import shutil
from typing import Any, Iterator, List, Tuple


def _path(path: Any) -> str:
    path = os.fspath(path)
    path = path.decode() if isinstance(path, bytes) else path
    return path[7:] if path.startswith("file://") else path


def _not_found(path: str) -> Exception:
    from millrace.framework import errors
    return errors.NotFoundError(None, None, "%s; No such file or directory" % path)  # type: ignore[call-arg, arg-type]


class GFile:
    """A file. Text unless the mode has a `b`; opened when first used."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = _path(name), mode
        self._file: Any = None

    name = property(lambda self: self._name, doc="Its path.")
    mode = property(lambda self: self._mode, doc="How it was opened.")

    def _open(self) -> Any:
        if self._file is None:
            try:
                self._file = open(self._name, self._mode, encoding=None if "b" in self._mode else "utf-8")
            except FileNotFoundError:
                raise _not_found(self._name) from None
        return self._file

    def read(self, n: int = -1) -> Any:
        """The rest, or the next n characters."""
        return self._open().read(n)

    def write(self, data: Any) -> None:
        """Appends."""
        self._open().write(data)

    def readline(self) -> Any:
        """The next line."""
        return self._open().readline()

    def readlines(self) -> Any:
        """The lines that are left."""
        return self._open().readlines()

    def size(self) -> int:
        """Its length in bytes."""
        return os.path.getsize(self._name)

    def seek(self, offset: int = 0, whence: int = 0, position: Any = None) -> None:
        """Goes to a place."""
        self._open().seek(offset if position is None else position, whence)

    def tell(self) -> int:
        """The place."""
        return int(self._open().tell())

    def flush(self) -> None:
        """Writes what is still in memory."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes it."""
        if self._file is None and ("w" in self._mode or "a" in self._mode):
            self._open()
        if self._file is not None:
            self._file.close()

    def next(self) -> Any:
        """The next line."""
        return next(self._open())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._open())

    __next__ = next

    def __enter__(self) -> "GFile":
        self._open()
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


FastGFile = Open = GFile


def Exists(filename: Any) -> bool:  # noqa: N802
    """Whether a file or folder is there."""
    return os.path.exists(_path(filename))


def IsDirectory(dirname: Any) -> bool:  # noqa: N802
    """Whether it is a folder."""
    return os.path.isdir(_path(dirname))


def MakeDirs(dirname: Any, mode: int = 0o755) -> None:  # noqa: N802
    """Makes a folder and those above it."""
    os.makedirs(_path(dirname), exist_ok=True)


def MkDir(dirname: Any, mode: int = 0o755) -> None:  # noqa: N802
    """Makes a folder."""
    os.mkdir(_path(dirname))


def Remove(filename: Any) -> None:  # noqa: N802
    """Deletes a file."""
    try:
        os.remove(_path(filename))
    except FileNotFoundError:
        raise _not_found(_path(filename)) from None


def DeleteRecursively(dirname: Any) -> None:  # noqa: N802
    """Deletes a folder and what is in it."""
    path = _path(dirname)
    if not os.path.exists(path):
        raise _not_found(path)
    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:  # noqa: N802
    """Copies a file."""
    if os.path.exists(_path(newpath)) and not overwrite:
        from millrace.framework import errors
        raise errors.AlreadyExistsError(None, None, "file already exists: %s" % _path(newpath))  # type: ignore[call-arg, arg-type]
    shutil.copyfile(_path(oldpath), _path(newpath))


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:  # noqa: N802
    """Renames a file."""
    os.replace(_path(oldname), _path(newname)) if overwrite else os.rename(_path(oldname), _path(newname))


def Glob(filename: Any) -> List[str]:  # noqa: N802
    """The files that fit a pattern."""
    patterns = filename if isinstance(filename, (list, tuple)) else [filename]
    return [p for pattern in patterns for p in sorted(_glob.glob(_path(pattern)))]


def ListDirectory(dirname: Any) -> List[str]:  # noqa: N802
    """What is in a folder."""
    try:
        return os.listdir(_path(dirname))
    except FileNotFoundError:
        raise _not_found(_path(dirname)) from None


ListDir = ListDirectory


def Stat(filename: Any) -> Any:  # noqa: N802
    """Size and times of a file."""
    info = os.stat(_path(filename))
    return type("FileStatistics", (), {"length": info.st_size, "mtime_nsec": info.st_mtime_ns, "is_directory": os.path.isdir(_path(filename))})()


def Walk(top: Any, in_order: bool = True) -> Iterator[Tuple[str, List[str], List[str]]]:  # noqa: N802
    """(folder, folders in it, files in it) of a folder and those below."""
    return os.walk(_path(top), topdown=in_order)
