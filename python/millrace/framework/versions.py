# SPDX-License-Identifier: Apache-2.0
"""Which TensorFlow the names and files are those of, and which Millrace this is."""

import millrace._core as _core

__version__ = VERSION = "1.15.0"
GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER = 25, 0, 0  # what graphs say
CXX11_ABI_FLAG = __cxx11_abi_flag__ = 1
MONOLITHIC_BUILD = __monolithic_build__ = 1


def __getattr__(name: str) -> str:
    """What asks the library is asked when somebody wants it: loading the library takes longer than the rest."""
    if name in ("GIT_VERSION", "COMPILER_VERSION", "__git_version__", "__compiler_version__"):
        return "millrace " + _core.version()
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
