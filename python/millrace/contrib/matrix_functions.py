# SPDX-License-Identifier: Apache-2.0
"""Roots of positive matrices by iterations of products: tf.contrib.opt's matrix_square_root and matrix_inverse_pth_root."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.framework.graph import Tensor
from millrace.ops import control_flow_ops, gen_ops, math_ops
from millrace.ops.matrix_ops import eye, matmul, norm


def matrix_square_root(mat_a: Any, mat_a_size: Any, iter_count: int = 100, ridge_epsilon: float = 1e-4) -> Tensor:
    """The root of mat_a + ridge_epsilon by Newton and Schulz (Higham 1997), until an iteration makes it no better."""
    identity = eye(math_ops.cast(mat_a_size, dtypes.int32))
    mat_a = mat_a + ridge_epsilon * identity
    size = norm(mat_a)

    def better(i: Any, y: Any, last: Any, z: Any, error: Any, before: Any) -> Any:
        return gen_ops.logical_and(gen_ops.less(i, iter_count), gen_ops.less(error, before))

    def step(i: Any, y: Any, last: Any, z: Any, error: Any, before: Any) -> Any:
        half = 0.5 * (3.0 * identity - matmul(z, y))
        root = matmul(y, half)
        return i + 1, root, y, matmul(half, z), norm(mat_a - matmul(root, root) * size) / size, error

    made = control_flow_ops.while_loop(better, step, [0, mat_a / size, mat_a / size, identity, size, size + 1.0])
    return made[2] * gen_ops.sqrt(size)


def matrix_inverse_pth_root(mat_g: Any, mat_g_size: Any, alpha: float, iter_count: int = 100, epsilon: float = 1e-6, ridge_epsilon: float = 1e-6) -> Tensor:
    """(mat_g + ridge_epsilon) to the power of alpha = -1 / p by coupled iterations of Newton (Guo and Higham 2006)."""
    if mat_g_size == 1:
        return gen_ops.pow(mat_g + ridge_epsilon, alpha)
    identity = eye(math_ops.cast(mat_g_size, dtypes.int32))
    damped = mat_g + ridge_epsilon * identity
    scale = (1 - 1 / alpha) / (2 * norm(damped))

    def apart(i: Any, m: Any, x: Any) -> Any:
        return gen_ops.logical_and(gen_ops.less(i, iter_count), gen_ops.greater(math_ops.reduce_max(gen_ops.abs(m - identity)), epsilon))

    def step(i: Any, m: Any, x: Any) -> Any:
        factor = (1 - alpha) * identity + alpha * m
        return i + 1, matmul(_power(factor, round(-1.0 / alpha)), m), matmul(x, factor)

    return control_flow_ops.while_loop(apart, step, [0, damped * scale, identity * gen_ops.pow(scale, -alpha)])[2]


def _power(matrix: Any, p: int) -> Any:
    if p == 1:
        return matrix
    half = _power(matmul(matrix, matrix), p // 2)
    return matmul(matrix, half) if p % 2 else half
