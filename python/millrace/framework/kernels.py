# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.kernels: the kernels that are registered."""

from __future__ import annotations

from typing import Any

import millrace._core as _core
from millrace.protos import definitions


def get_all_registered_kernels() -> Any:
    """The KernelList of all kernels."""
    return definitions.KernelList.FromString(_core.registered_kernels())


def get_registered_kernels_for_op(name: str) -> Any:
    """The KernelList of the kernels of an op."""
    return definitions.KernelList.FromString(_core.registered_kernels(name))
