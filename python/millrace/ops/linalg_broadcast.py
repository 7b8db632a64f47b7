# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.ops.linalg.linear_operator_util: solvers whose matrices and right-hand sides have batches that broadcast."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, linalg_ops


def broadcast_matrix_batch_dims(batch_matrices: Any, name: Optional[str] = None) -> List[Tensor]:
    """Matrices [..., M_i, N_i] of one dtype, with the leading dimensions that all of them broadcast to. ValueError unless they do."""
    with name_scope(name or "broadcast_matrix_batch_dims"):
        first = None
        matrices = []
        for i, given in enumerate(batch_matrices):
            matrices.append(convert_to_tensor(given, dtype=first))
            first = matrices[-1].dtype.base_dtype
            if matrices[-1].shape.ndims is not None and matrices[-1].shape.ndims < 2:
                raise ValueError("batch_matrices[%d] must be at least a matrix, got shape %s" % (i, matrices[-1].shape))
        if len(matrices) < 2 or all(m.shape.is_fully_defined() and m.shape[:-2] == matrices[0].shape[:-2] for m in matrices):
            return matrices
        batch = array_ops.shape(matrices[0])[:-2]
        for matrix in matrices[1:]:
            batch = array_ops.broadcast_dynamic_shape(batch, array_ops.shape(matrix)[:-2])
        return [gen_ops.broadcast_to(m, array_ops.concat([batch, array_ops.shape(m)[-2:]], 0)) for m in matrices]


def matrix_solve_with_broadcast(matrix: Any, rhs: Any, adjoint: bool = False, name: Optional[str] = None) -> Tensor:
    """tf.matrix_solve of [..., M, M] and [..., M, K], whose leading dimensions broadcast."""
    with name_scope(name or "MatrixSolveWithBroadcast"):
        matrix, rhs = broadcast_matrix_batch_dims([matrix, rhs])
        return gen_ops.matrix_solve(matrix, rhs, adjoint=adjoint)


def matrix_triangular_solve_with_broadcast(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: Optional[str] = None) -> Tensor:
    """tf.matrix_triangular_solve of [..., M, M] and [..., M, K], whose leading dimensions broadcast."""
    with name_scope(name or "MatrixTriangularSolve"):
        matrix, rhs = broadcast_matrix_batch_dims([matrix, rhs])
        return gen_ops.matrix_triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


def cholesky_solve_with_broadcast(chol: Any, rhs: Any, name: Optional[str] = None) -> Tensor:
    """tf.cholesky_solve of [..., M, M] and [..., M, K], whose leading dimensions broadcast."""
    with name_scope(name or "CholeskySolveWithBroadcast"):
        chol, rhs = broadcast_matrix_batch_dims([chol, rhs])
        return linalg_ops.cholesky_solve(chol, rhs)
