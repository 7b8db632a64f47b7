# SPDX-License-Identifier: Apache-2.0
"""tf.io.gfile: tf.gfile with names in small letters, and as tf.gfile has them."""

from millrace.gfile import Copy as copy  # noqa: F401
from millrace.gfile import DeleteRecursively as rmtree  # noqa: F401
from millrace.gfile import Exists as exists  # noqa: F401
from millrace.gfile import GFile  # noqa: F401
from millrace.gfile import Glob as glob  # noqa: F401
from millrace.gfile import IsDirectory as isdir  # noqa: F401
from millrace.gfile import ListDirectory as listdir  # noqa: F401
from millrace.gfile import MakeDirs as makedirs  # noqa: F401
from millrace.gfile import MkDir as mkdir  # noqa: F401
from millrace.gfile import Remove as remove  # noqa: F401
from millrace.gfile import Rename as rename  # noqa: F401
from millrace.gfile import Stat as stat  # noqa: F401
from millrace.gfile import Walk as walk  # noqa: F401
