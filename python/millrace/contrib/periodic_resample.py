# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.periodic_resample: the numbers of one dimension laid out along others, as in convolutions finer than pixels (Shi and others 2016)."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.graph import Tensor
from millrace.ops import gen_ops


def periodic_resample(values: Any, shape: Any, name: Optional[str] = None) -> Tensor:
    """A tensor of a shape, one of whose sizes is None: the numbers of values in that dimension fill what the others grow by."""
    return gen_ops.periodic_resample(values, shape=shape, name=name)


def periodic_resample_op_grad(grad: Any, original_shape: Any, desired_shape: Any, name: Optional[str] = None) -> Tensor:
    """The gradient of periodic_resample of values of original_shape to desired_shape, for that of its result."""
    return gen_ops.periodic_resample_op_grad(grad, original_shape=original_shape, desired_shape=desired_shape, name=name)
