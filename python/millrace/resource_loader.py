# SPDX-License-Identifier: Apache-2.0
"""tf.resource_loader: files beside the program."""

from __future__ import annotations

import inspect
import os
from typing import Any


def _folder_of_caller() -> str:
    frame: Any = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return os.path.dirname(os.path.abspath(frame.f_code.co_filename)) if frame is not None else os.getcwd()


def get_data_files_path() -> str:
    """The folder of the file that calls this."""
    return _folder_of_caller()


def get_path_to_datafile(path: str) -> str:
    """The path of a file that is named from the folder of the file that calls this."""
    return os.path.join(_folder_of_caller(), path)


def get_root_dir_with_all_resources() -> str:
    """The folder that paths of resources start from: that of the file that calls this, or the runfiles of Bazel around it."""
    folder = _folder_of_caller()
    inside = folder.split(os.sep)
    runfiles = [i for i, part in enumerate(inside) if part.endswith(".runfiles")]
    return os.sep.join(inside[: runfiles[-1] + 2]) if runfiles else folder


def load_resource(path: str) -> bytes:
    """What is in a file that is named from the package's folder."""
    with open(os.path.join(os.path.dirname(__file__), path), "rb") as file:
        return file.read()


def readahead_file_path(path: str, readahead: Any = "128M") -> str:
    """The path: nothing is read ahead."""
    del readahead  # files of this machine are read as they are
    return path
