# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.ops.linalg.linear_operator_util: solvers whose matrices and right-hand sides have batches that broadcast."""

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, linalg_ops, math_ops


def same_batch(matrices: Sequence[Tensor]) -> List[Tensor]:
    """Tensors [..., M_i, N_i] with the leading dimensions that all of them broadcast to. ValueError where it is seen that they do not."""
    if any(m.shape.ndims is None or not m.shape[:-2].is_fully_defined() for m in matrices):
        batch: Any = functools.reduce(gen_ops.broadcast_args, [array_ops.shape(m)[:-2] for m in matrices])
        return [_spread(m, batch) for m in matrices]
    batch = functools.reduce(array_ops.broadcast_static_shape, [m.shape[:-2] for m in matrices])
    return [m if m.shape[:-2].as_list() == batch.as_list() else _spread(m, batch.as_list()) for m in matrices]


def _spread(matrix: Tensor, batch: Any) -> Tensor:
    return gen_ops.broadcast_to(matrix, array_ops.concat([convert_to_tensor(batch, dtypes.int32), array_ops.shape(matrix)[-2:]], 0))


def broadcast_matrix_batch_dims(batch_matrices: Any, name: Optional[str] = None) -> List[Tensor]:
    """Matrices [..., M_i, N_i] with the leading dimensions that all of them broadcast to. ValueError where it is seen that they do not."""
    with name_scope(name or "broadcast_matrix_batch_dims"):
        matrices = [convert_to_tensor(given) for given in batch_matrices]
        for i, matrix in enumerate(matrices):
            if matrix.shape.ndims is not None and matrix.shape.ndims < 2:
                raise ValueError("batch_matrices[%d] must be at least a matrix (have at least two dimensions), got shape %s" % (i, matrix.shape))
        return same_batch(matrices) if matrices else []


def solved(solve: Callable[[Tensor, Tensor], Tensor], matrix: Tensor, rhs: Tensor) -> Tensor:
    """solve(matrix, rhs), whose leading dimensions broadcast. Those that rhs has alone become columns: no matrix is copied for them."""
    rank, least = rhs.shape.ndims, matrix.shape.ndims
    if rank is None or least is None or rank <= least:
        return solve(*same_batch([matrix, rhs]))
    more, sizes = rank - least, array_ops.shape(rhs)
    columns = math_ops.reduce_prod(sizes[:more]) * sizes[-1]
    turned = array_ops.transpose(rhs, [*range(more, rank), *range(more)])
    made = solve(*same_batch([matrix, array_ops.reshape(turned, array_ops.concat([sizes[more:-1], [columns]], 0))]))
    apart = array_ops.reshape(made, array_ops.concat([array_ops.shape(made)[:-1], sizes[-1:], sizes[:more]], 0))
    return array_ops.transpose(apart, [*range(least, rank), *range(least)])


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
