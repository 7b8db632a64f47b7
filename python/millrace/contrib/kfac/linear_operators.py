# SPDX-License-Identifier: Apache-2.0
"""The linear operators of tf.contrib.kfac: products from both sides, with rows by number too."""

from __future__ import annotations

from typing import Any

from millrace.contrib.kfac import utils
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import linalg_operators, math_ops, matrix_ops


class _BothSides(linalg_operators.LinearOperator):
    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The operator times x, which may be rows by number where the operator is diagonal."""
        if not isinstance(x, IndexedSlices):
            return super().matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg, name=name)
        if adjoint_arg or not isinstance(self, LinearOperatorDiag):
            raise at_user_line(NotImplementedError("A %s cannot be multiplied with IndexedSlices on its right." % type(self).__name__))
        return utils.matmul_diag_sparse(self.diag, x)

    def matmul_right(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """x times the operator; x may be rows by number where the operator is a full matrix."""
        if not isinstance(x, IndexedSlices):
            return matrix_ops.matmul(convert_to_tensor(x), self.to_dense(), adjoint_a=adjoint_arg, adjoint_b=adjoint, name=name)
        if adjoint or adjoint_arg or isinstance(self, LinearOperatorDiag):
            raise at_user_line(NotImplementedError("A %s cannot be multiplied with IndexedSlices on its left this way." % type(self).__name__))
        return utils.matmul_sparse_dense(x, self.to_dense(), name=name)


class LinearOperatorFullMatrix(_BothSides, linalg_operators.LinearOperatorFullMatrix):
    """A full matrix."""


class LinearOperatorDiag(_BothSides, linalg_operators.LinearOperatorDiag):
    """A diagonal matrix."""


def trace_and_size(cov: Any) -> Any:
    """(trace, number of rows) of a linear operator, a square matrix or the diagonal of one."""
    if isinstance(cov, linalg_operators.LinearOperator):
        return cov.trace(), int(cov.domain_dimension)
    shape = cov.shape.as_list()
    if len(shape) not in (1, 2):
        raise at_user_line(ValueError("What's the trace of a Tensor of rank %d?" % len(shape)))
    return (matrix_ops.trace(cov) if len(shape) == 2 else math_ops.reduce_sum(cov)), shape[0]
