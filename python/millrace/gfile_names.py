# SPDX-License-Identifier: Apache-2.0
"""tf.io.gfile: tf.gfile with names in small letters."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace import gfile as _gfile
from millrace.file_systems import has_scheme as _has_scheme
from millrace.framework import errors as _errors
from millrace.gfile import GFile  # noqa: F401


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file. AlreadyExistsError where the new one is there, unless overwrite."""
    _gfile.Copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Whether a file or folder is there."""
    return _gfile.Exists(path)


def glob(pattern: Any) -> List[str]:
    """The files that fit a pattern, or any of several."""
    return _gfile.Glob(pattern)


def isdir(path: Any) -> bool:
    """Whether it is a folder."""
    return _gfile.IsDirectory(path)


def listdir(path: Any) -> List[str]:
    """The names of what is in a folder."""
    return _gfile.ListDirectory(path)


def makedirs(path: Any) -> None:
    """Makes a folder and those above it."""
    _gfile.MakeDirs(path)


def mkdir(path: Any) -> None:
    """Makes a folder."""
    _gfile.MkDir(path)


def remove(path: Any) -> None:
    """Deletes a file."""
    _gfile.Remove(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file. AlreadyExistsError where the new one is there, unless overwrite."""
    _gfile.Rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Deletes a folder and what is in it."""
    _gfile.DeleteRecursively(path)


def stat(path: Any) -> Any:
    """Length and times of a file."""
    return _gfile.Stat(path)


def walk(top: Any, topdown: bool = True, onerror: Optional[Callable[[Any], Any]] = None) -> Iterator[Tuple[str, List[str], List[str]]]:
    """(folder, folders in it, files in it) of a folder and those below; those below first unless topdown.

    A folder that cannot be read is left out; onerror, where it is given, is called with the error, and may raise it.
    """

    def told(error: OSError) -> None:
        if onerror is not None:
            kind = _errors.NotFoundError if isinstance(error, FileNotFoundError) else _errors.PermissionDeniedError
            onerror(kind(None, None, "%s; %s" % (error.filename, error.strerror)))

    path = _gfile.as_path(top)
    if not _has_scheme(path):
        return os.walk(path, topdown=topdown, onerror=told)
    try:
        return iter(list(_gfile.Walk(path, topdown)))
    except _errors.OpError as error:
        if onerror is not None:
            onerror(error)
        return iter([])
