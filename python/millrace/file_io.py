# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.lib.io.file_io: tf.gfile with other names."""

import zlib
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
from millrace.gfile import Stat as stat
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


def filecmp(filename_a: Any, filename_b: Any) -> bool:
    """Whether two files hold the same bytes."""
    if stat(filename_a).length != stat(filename_b).length:
        return False
    with FileIO(filename_a, "rb") as first, FileIO(filename_b, "rb") as second:
        while True:
            part = first.read(_BLOCK)
            if part != second.read(_BLOCK):
                return False
            if not part:
                return True


_BLOCK = 1 << 20


def file_crc32(filename: Any, block_size: int = _BLOCK) -> str:
    """The CRC-32 of a file as text, 0x and eight digits; read in blocks, or at once where block_size is negative."""
    total = 0
    with FileIO(filename, "rb") as file:
        while True:
            part = file.read(block_size)
            if not part:
                return "0x%08X" % total
            total = zlib.crc32(part, total)
