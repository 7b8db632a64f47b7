# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.lib.io.file_io: tf.gfile with other names."""

from typing import Any

from millrace.gfile import Copy as copy  # noqa: F401
from millrace.gfile import DeleteRecursively as delete_recursively  # noqa: F401
from millrace.gfile import Exists as file_exists  # noqa: F401
from millrace.gfile import GFile as FileIO
from millrace.gfile import Glob as get_matching_files  # noqa: F401
from millrace.gfile import IsDirectory as is_directory  # noqa: F401
from millrace.gfile import ListDirectory as list_directory  # noqa: F401
from millrace.gfile import MakeDirs as recursive_create_dir  # noqa: F401
from millrace.gfile import MkDir as create_dir  # noqa: F401
from millrace.gfile import Remove as delete_file  # noqa: F401
from millrace.gfile import Rename as rename  # noqa: F401
from millrace.gfile import Stat as stat  # noqa: F401
from millrace.gfile import Walk as walk  # noqa: F401
from millrace.gfile import FileStatistics  # noqa: F401
from millrace.gfile import atomic_write as atomic_write_string_to_file  # noqa: F401


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """What is in a file."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    """Writes a file."""
    with FileIO(filename, "wb" if isinstance(file_content, bytes) else "w") as file:
        file.write(file_content)
