# SPDX-License-Identifier: Apache-2.0
"""tf.gfile: files and folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from typing import Any, Iterator, List, Tuple

from millrace import _core, file_systems
from millrace.file_systems import has_scheme
from millrace.framework import errors

_READS, _WRITES = ("r", "r+", "a+", "w+"), ("a", "w", "r+", "a+", "w+")


def as_path(path: Any) -> str:
    """A path as text, without the prefix file://."""
    path = os.fspath(path)
    path = path.decode() if isinstance(path, bytes) else path
    return path[7:] if path.startswith("file://") else path


def folder_of(path: str) -> str:
    """os.path.dirname(path), which keeps the slashes of "scheme://file"."""
    folder = os.path.dirname(path)
    return folder + "//" if has_scheme(path) and folder.endswith(":") else folder


def _error(kind: Any, message: str) -> Exception:
    return kind(None, None, message)


@contextlib.contextmanager
def _statuses(path: str) -> Iterator[None]:
    """A context in which errors of the system become those of tf.errors."""
    try:
        yield
    except FileNotFoundError:
        raise _error(errors.NotFoundError, "%s; No such file or directory" % path) from None
    except FileExistsError:
        raise _error(errors.AlreadyExistsError, "%s; File exists" % path) from None
    except PermissionError as error:
        raise _error(errors.PermissionDeniedError, "%s; %s" % (path, error.strerror)) from None
    except (IsADirectoryError, NotADirectoryError) as error:
        raise _error(errors.FailedPreconditionError, "%s; %s" % (path, error.strerror)) from None
    except OSError as error:
        raise _error(errors.UnknownError, "%s; %s" % (path, error.strerror)) from None


def _open(path: str, mode: str, buffering: int = -1) -> Any:
    return file_systems.open_file(path, mode) if has_scheme(path) else open(path, mode, buffering)


class GFile:
    """A file; text unless the mode has a `b`. It is opened when it is first read or written.

    What is read and what is written have places of their own: reading starts at the beginning of the file, writing at the end that
    the file has (a, a+) or in an empty file.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = as_path(name), mode
        self._binary, self._kind = "b" in mode, mode.replace("b", "").replace("t", "")
        self._reader: Any = None
        self._writer: Any = None

    name = property(lambda self: self._name, doc="Its path.")
    mode = property(lambda self: self._mode, doc="How it was opened.")

    def _to_read(self) -> Any:
        self.flush()
        if self._reader is None:
            if self._kind not in _READS:
                raise _error(errors.PermissionDeniedError, "File isn't open for reading")
            with _statuses(self._name):
                if IsDirectory(self._name):
                    raise IsADirectoryError(21, "Is a directory")
                self._reader = _open(self._name, "rb", 1 << 19)
        return self._reader

    def _to_write(self) -> Any:
        if self._writer is None:
            if self._kind not in _WRITES:
                raise _error(errors.PermissionDeniedError, "File isn't open for writing")
            with _statuses(self._name):
                self._writer = _open(self._name, "ab" if "a" in self._kind else "wb")
        return self._writer

    def _text(self, data: bytes) -> Any:
        return data if self._binary else data.decode("utf-8")

    def read(self, n: int = -1) -> Any:
        """The rest, or the next n bytes."""
        return self._text(self._to_read().read(n))

    def write(self, file_content: Any) -> None:
        """Appends."""
        data = file_content.encode("utf-8") if isinstance(file_content, str) else bytes(file_content)
        writer = self._to_write()
        with _statuses(self._name):
            writer.write(data)

    def seekable(self) -> bool:
        """True: any place of a file can be read."""
        return True

    def readline(self) -> Any:
        """The next line, with its end; empty behind the last one."""
        return self._text(self._to_read().readline())

    def readlines(self) -> List[Any]:
        """The lines that are left."""
        return [self._text(line) for line in self._to_read().readlines()]

    def size(self) -> int:
        """Its length in bytes."""
        self.flush()
        return Stat(self._name).length

    def seek(self, offset: Any = None, whence: int = 0, position: Any = None) -> None:
        """Goes to a place for reading: from the beginning, from here (1), or from the end (2)."""
        if offset is None and position is None:
            raise TypeError("seek(): offset argument required")
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        reader = self._to_read()
        if whence not in (0, 1, 2):
            raise _error(errors.InvalidArgumentError, "Invalid whence argument: %s. Valid values are 0, 1, or 2." % (whence,))
        try:
            reader.seek(position if offset is None else offset, whence)
        except (OSError, ValueError):
            raise _error(errors.InvalidArgumentError, "%s; cannot seek to %s" % (self._name, offset)) from None

    def tell(self) -> int:
        """The place for reading."""
        return int(self._to_read().tell())

    def flush(self) -> None:
        """Writes what is still in memory."""
        if self._writer is not None:
            with _statuses(self._name):
                self._writer.flush()

    def close(self) -> None:
        """Closes it."""
        for file in (self._reader, self._writer):
            if file is not None:
                with _statuses(self._name):
                    file.close()
        self._reader = self._writer = None

    def __iter__(self) -> "GFile":
        return self

    def next(self) -> Any:
        """The next line."""
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    __next__ = next

    def __enter__(self) -> "GFile":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the process may be at its end
            pass


FastGFile = OpenFast = Open = GFile


def Exists(filename: Any) -> bool:
    """Whether a file or folder is there."""
    path = as_path(filename)
    if not has_scheme(path):
        return os.path.exists(path)
    try:
        _core.file_stat(path)
    except errors.NotFoundError:
        return False
    return True


def IsDirectory(dirname: Any) -> bool:
    """Whether it is a folder."""
    path = as_path(dirname)
    if not has_scheme(path):
        return os.path.isdir(path)
    try:
        return bool(_core.file_stat(path)[2])
    except errors.NotFoundError:
        return False


def MakeDirs(dirname: Any, mode: int = 0o755) -> None:
    """Makes a folder and those above it."""
    path = as_path(dirname)
    if has_scheme(path):
        return _core.create_folders(path)
    with _statuses(path):
        os.makedirs(path, mode, exist_ok=True)


def MkDir(dirname: Any, mode: int = 0o755) -> None:
    """Makes a folder, unless there is something of its name."""
    path = as_path(dirname)
    with _statuses(path), contextlib.suppress(FileExistsError, errors.AlreadyExistsError):
        if has_scheme(path):
            _core.create_folder(path)
        else:
            os.mkdir(path, mode)


def Remove(filename: Any) -> None:
    """Deletes a file."""
    path = as_path(filename)
    if has_scheme(path):
        return _core.delete_file(path)
    with _statuses(path):
        os.remove(path)


def DeleteRecursively(dirname: Any) -> None:
    """Deletes a folder and what is in it."""
    path = as_path(dirname)
    if has_scheme(path):
        return _core.delete_recursively(path)
    with _statuses(path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def _refuse_existing(path: str, overwrite: bool) -> None:
    if not overwrite and Exists(path):
        raise _error(errors.AlreadyExistsError, "file already exists: %s" % path)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file. AlreadyExistsError where the new one is there, unless overwrite."""
    source, target = as_path(oldpath), as_path(newpath)
    if has_scheme(source) or has_scheme(target):
        return _core.copy_file(source, target, overwrite)
    _refuse_existing(target, overwrite)
    with _statuses(source):
        shutil.copyfile(source, target)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames a file. AlreadyExistsError where the new one is there, unless overwrite."""
    source, target = as_path(oldname), as_path(newname)
    _refuse_existing(target, overwrite)
    if has_scheme(source) or has_scheme(target):
        return _core.rename_file(source, target)
    with _statuses(source):
        os.replace(source, target)


def Glob(filename: Any) -> List[str]:
    """The files that fit a pattern, or any of several; those of the working folder as "./a", unless the pattern tells a folder."""
    patterns = filename if isinstance(filename, (list, tuple)) else [filename]
    return [p for pattern in patterns for p in _core.match_files(as_path(pattern))]


def ListDirectory(dirname: Any) -> List[str]:
    """The names of what is in a folder."""
    path = as_path(dirname)
    if not IsDirectory(path):
        raise _error(errors.NotFoundError, "Could not find directory %s" % path)
    if has_scheme(path):
        return list(_core.list_folder(path))
    with _statuses(path):
        return os.listdir(path)


ListDir = ListDirectory


class FileStatistics:
    """Length, time of change and kind of a file."""

    def __init__(self, length: int, mtime_nsec: int, is_directory: bool) -> None:
        self.length, self.mtime_nsec, self.is_directory = length, mtime_nsec, is_directory


def Stat(filename: Any) -> FileStatistics:
    """Length and times of a file."""
    path = as_path(filename)
    if has_scheme(path):
        return FileStatistics(*_core.file_stat(path))
    with _statuses(path):
        info = os.stat(path)
    return FileStatistics(info.st_size, info.st_mtime_ns, os.path.isdir(path))


def Walk(top: Any, in_order: bool = True) -> Iterator[Tuple[str, List[str], List[str]]]:
    """(folder, folders in it, files in it) of a folder and those below; those below first unless in_order."""
    path = as_path(top)
    if not has_scheme(path):
        yield from os.walk(path, topdown=in_order)
        return
    names = ListDirectory(path) if IsDirectory(path) else []
    folders = [name for name in names if IsDirectory(os.path.join(path, name))]
    here = (path, folders, [name for name in names if name not in folders])
    if in_order:
        yield here
    for name in folders:
        yield from Walk(os.path.join(path, name), in_order)
    if not in_order:
        yield here


def atomic_write(filename: Any, contents: Any, overwrite: bool = True) -> None:
    """Writes a file that is there whole or not at all."""
    path = as_path(filename)
    temporary = "%s.tmp%s" % (path, uuid.uuid4().hex)
    with GFile(temporary, "wb") as file:
        file.write(contents)
    try:
        Rename(temporary, path, overwrite)
    except errors.OpError:
        Remove(temporary)
        raise
