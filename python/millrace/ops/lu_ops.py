# SPDX-License-Identifier: Apache-2.0
"""Equations by factors that are there already, pseudo-inverses, ranks, and tensors of length one."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, band_ops, gen_ops, linalg_ops, math_ops, matrix_ops, sort_ops

__all__ = ["lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matrix_rank", "normalize", "pinv"]


def _rows(matrices: Tensor, order: Tensor) -> Tensor:
    """Rows of matrices in another order, which is that of all, or one for each."""
    if order.get_shape().ndims == 1 and matrices.get_shape().ndims == 2:
        return gen_ops.gather_v2(matrices, order, 0)
    return array_ops.batch_gather(matrices, order)


def _unit_lower(lower_upper: Tensor) -> Tensor:
    return band_ops.matrix_set_diag(gen_ops.matrix_band_part(lower_upper, -1, 0), array_ops.ones(array_ops.shape(lower_upper)[:-1], lower_upper.dtype))


def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """x with A x = rhs, from tf.linalg.lu(A). `validate_args` changes nothing: factors of wrong shapes are errors."""
    del validate_args  # factors of wrong shapes are errors in any case
    with name_scope(name, "lu_solve", [lower_upper, perm, rhs]) as scope:
        factors, perm, rhs = convert_to_tensor(lower_upper), convert_to_tensor(perm, dtypes.int32), convert_to_tensor(rhs)
        y = gen_ops.matrix_triangular_solve(_unit_lower(factors), _rows(rhs, perm), lower=True)
        return gen_ops.matrix_triangular_solve(factors, y, lower=False, name=scope)


def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """The inverse of A, from tf.linalg.lu(A)."""
    with name_scope(name, "lu_matrix_inverse", [lower_upper, perm]):
        factors = convert_to_tensor(lower_upper)
        shape = array_ops.shape(factors)
        unit = gen_ops.broadcast_to(matrix_ops.eye(shape[-1], dtype=factors.dtype.base_dtype), shape)
        return lu_solve(factors, perm, unit, validate_args)


def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """A, from tf.linalg.lu(A)."""
    del validate_args  # factors of wrong shapes are errors in any case
    with name_scope(name, "lu_reconstruct", [lower_upper, perm]) as scope:
        factors, perm = convert_to_tensor(lower_upper), convert_to_tensor(perm, dtypes.int32)
        product = matrix_ops.matmul(_unit_lower(factors), gen_ops.matrix_band_part(factors, 0, -1))
        return array_ops.identity(_rows(product, sort_ops.argsort(perm)), name=scope)


def _largest(s: Tensor, a: Tensor, factor: Any) -> Tensor:
    """What singular values must exceed to count: a factor of the largest."""
    if factor is None:
        sizes = math_ops.cast(math_ops.reduce_max(array_ops.shape(a)[-2:]), s.dtype)
        factor = float(np.finfo(s.dtype.as_numpy_dtype).eps) * sizes
    return math_ops.cast(factor, s.dtype) * math_ops.reduce_max(s, -1, keepdims=True)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """The pseudo-inverse, by singular values above rcond times the largest."""
    del validate_args  # factors of wrong shapes are errors in any case
    with name_scope(name, "pinv", [a, rcond]) as scope:
        a = convert_to_tensor(a)
        s, u, v = linalg_ops.svd(a)
        if rcond is None:
            rcond = 10.0 * float(np.finfo(s.dtype.as_numpy_dtype).eps) * math_ops.cast(math_ops.reduce_max(array_ops.shape(a)[-2:]), s.dtype)
        else:
            rcond = array_ops.expand_dims(convert_to_tensor(rcond, s.dtype, "rcond"), -1)
        counts = gen_ops.greater(s, _largest(s, a, rcond))
        inverse = array_ops.where(counts, 1 / array_ops.where(counts, s, array_ops.ones_like(s)), array_ops.zeros_like(s))
        return matrix_ops.matmul(v * math_ops.cast(array_ops.expand_dims(inverse, -2), v.dtype), u, adjoint_b=True, name=scope)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: Optional[str] = None) -> Tensor:
    """How many singular values are above tol (eps times the larger size times the largest of them, unless given)."""
    del validate_args  # factors of wrong shapes are errors in any case
    with name_scope(name, "matrix_rank", [a, tol]) as scope:
        a = convert_to_tensor(a)
        s = linalg_ops.svd(a, compute_uv=False)
        limit = _largest(s, a, None) if tol is None else math_ops.cast(tol, s.dtype)
        return math_ops.reduce_sum(math_ops.cast(gen_ops.greater(s, limit), dtypes.int32), -1, name=scope)


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(the tensor divided by its norm, the norm), along an axis."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        size = math_ops.cast(matrix_ops.norm(tensor, ord, axis, keepdims=True), tensor.dtype.base_dtype)
        return tensor / size, size
