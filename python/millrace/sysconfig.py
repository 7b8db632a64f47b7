# SPDX-License-Identifier: Apache-2.0
"""tf.sysconfig: how this package was built, and where its library is.

Op libraries that were compiled for TensorFlow by its C API alone load here too; those that use its C++ classes do not (docs/custom_ops.md).
"""

from __future__ import annotations

import os
from typing import List

from millrace.framework import not_provided as _not_provided
from millrace.framework.versions import CXX11_ABI_FLAG, MONOLITHIC_BUILD  # noqa: F401

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def get_include() -> str:
    """The folder of the headers, where they were installed with the package."""
    return os.path.join(_FOLDER, "include")


def get_lib() -> str:
    """The folder of the library."""
    return _FOLDER


def get_compile_flags() -> List[str]:
    """What a compiler is told."""
    return ["-I%s" % get_include(), "-D_GLIBCXX_USE_CXX11_ABI=%d" % CXX11_ABI_FLAG]


def get_link_flags() -> List[str]:
    """What a linker is told."""
    return ["-L%s" % get_lib(), "-lmillrace"]


__getattr__ = _not_provided.getter("sysconfig")
