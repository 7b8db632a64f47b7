# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues, singular values, factors, equations."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = [
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "svd",
    "qr",
    "matrix_solve_ls",
    "cholesky_solve",
    "batch_self_adjoint_eig",
    "batch_self_adjoint_eigvals",
    "batch_svd",
    "batch_matrix_solve_ls",
    "batch_cholesky_solve",
]


def self_adjoint_eig(tensor: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors (columns) of Hermitian matrices."""
    e, v = gen_ops.self_adjoint_eig_v2(tensor, compute_v=True, name=name)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: Optional[str] = None) -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending."""
    return gen_ops.self_adjoint_eig_v2(tensor, compute_v=False, name=name)[0]


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: Optional[str] = None) -> Any:
    """Singular values s, descending, and vectors (s, u, v) with tensor = u diag(s) v^H; s alone without compute_uv."""
    s, u, v = gen_ops.svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    s = math_ops.real(s)  # the op gives them the type of the matrix
    return (s, u, v) if compute_uv else s


def qr(input: Any, full_matrices: bool = False, name: Optional[str] = None) -> Any:
    """Matrices as (q, r): q with orthonormal columns, r upper triangular."""
    return gen_ops.qr(input, full_matrices=full_matrices, name=name)


def matrix_solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: Optional[str] = None) -> Tensor:
    """x that minimises |matrix x - rhs|^2 + l2_regularizer |x|^2."""
    return gen_ops.matrix_solve_ls(matrix, rhs, l2_regularizer, fast=fast, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: Optional[str] = None) -> Tensor:
    """x with A x = rhs, from the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = gen_ops.matrix_triangular_solve(chol, rhs, lower=True, adjoint=False)
        return gen_ops.matrix_triangular_solve(chol, y, lower=True, adjoint=True)


def slogdet(input: Any, name: Optional[str] = None) -> Any:
    """(sign, log of the absolute value) of determinants."""
    return gen_ops.log_matrix_determinant(input, name=name)


def logdet(matrix: Any, name: Optional[str] = None) -> Tensor:
    """The logarithm of the determinant of Hermitian positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = gen_ops.matrix_diag_part(gen_ops.cholesky(matrix))
        if diagonal.dtype.is_complex:
            diagonal = math_ops.real(diagonal)
        return 2.0 * math_ops.reduce_sum(gen_ops.log(diagonal), [-1])


def adjoint(matrix: Any, name: Optional[str] = None) -> Tensor:
    """The last two axes exchanged, complex numbers conjugated."""
    with name_scope(name, "adjoint", [matrix]):
        x = convert_to_tensor(matrix, name="matrix")
        return array_ops.matrix_transpose(gen_ops.conj(x) if x.dtype.is_complex else x)


batch_self_adjoint_eig, batch_self_adjoint_eigvals, batch_svd = self_adjoint_eig, self_adjoint_eigvals, svd
batch_matrix_solve_ls, batch_cholesky_solve = matrix_solve_ls, cholesky_solve
