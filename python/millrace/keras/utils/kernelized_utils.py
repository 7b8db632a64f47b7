# SPDX-License-Identifier: Apache-2.0
"""Values of kernels for all pairs of rows."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops


def _as_rows(u: Any) -> Any:
    u = convert_to_tensor(u)
    rank = u.get_shape().ndims
    if rank not in (1, 2):
        raise at_user_line(ValueError("The input tensor should have rank 1 or 2. Given rank: %s" % rank))
    return array_ops.expand_dims(u, 0) if rank == 1 else u


def _pairs(x: Any, y: Any) -> Tuple[Any, Any]:
    """The rows of both so that each of one meets each of the other."""
    x, y = _as_rows(x), _as_rows(y)
    sizes = [t.get_shape().as_list()[1] for t in (x, y)]
    if sizes[0] != sizes[1]:
        raise at_user_line(ValueError("The outermost dimensions of the input tensors should match. Given: %s vs %s." % (sizes[1], sizes[0])))
    return array_ops.expand_dims(x, 1), array_ops.expand_dims(y, 0)


def inner_product(u: Any, v: Any) -> Any:
    """The inner products of the rows of u with those of v."""
    return matrix_ops.matmul(_as_rows(u), _as_rows(v), transpose_b=True)


def exact_gaussian_kernel(x: Any, y: Any, stddev: Any) -> Any:
    """exp(-|u - v|^2 / (2 stddev^2)) of the rows of x and of y."""
    u, v = _pairs(x, y)
    return gen_ops.exp(-math_ops.reduce_sum(gen_ops.squared_difference(u, v), 2) / (2 * stddev * stddev))


def exact_laplacian_kernel(x: Any, y: Any, stddev: Any) -> Any:
    """exp(-|u - v| / stddev) of the rows of x and of y, where |.| is the sum of absolute values."""
    u, v = _pairs(x, y)
    return gen_ops.exp(-math_ops.reduce_sum(math_ops.abs(u - v), 2) / stddev)
