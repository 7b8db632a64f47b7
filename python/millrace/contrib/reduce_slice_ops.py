# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.reduce_slice_ops: sums, products and extremes of slices of a tensor, which may overlap."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.graph import Tensor
from millrace.ops import gen_ops


def reduce_slice_sum(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The sums along an axis from indices[i, 0] to indices[i, 1], or from indices[i] to indices[i + 1]; 0 of an empty slice."""
    return gen_ops.reduce_slice_sum(data, indices, axis, name=name)


def reduce_slice_prod(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The products along an axis of such slices; 1 of an empty one."""
    return gen_ops.reduce_slice_prod(data, indices, axis, name=name)


def reduce_slice_max(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The largest along an axis of such slices; the least number of an empty one."""
    return gen_ops.reduce_slice_max(data, indices, axis, name=name)


def reduce_slice_min(data: Any, indices: Any, axis: Any, name: Optional[str] = None) -> Tensor:
    """The least along an axis of such slices; the largest number of an empty one."""
    return gen_ops.reduce_slice_min(data, indices, axis, name=name)
