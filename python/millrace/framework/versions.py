# SPDX-License-Identifier: Apache-2.0
"""Which TensorFlow the names and files are those of, and which Millrace this is."""

import millrace._core as _core

__version__ = VERSION = "1.15.0"
GIT_VERSION = __git_version__ = COMPILER_VERSION = __compiler_version__ = "millrace " + _core.version()
GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_CONSUMER, GRAPH_DEF_VERSION_MIN_PRODUCER = 25, 0, 0  # what graphs say
CXX11_ABI_FLAG = __cxx11_abi_flag__ = 1
MONOLITHIC_BUILD = __monolithic_build__ = 1
