# SPDX-License-Identifier: Apache-2.0
"""tf.linalg.LinearOperator...: matrices of a certain form, and what is computed of them."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, linalg_ops, math_ops, matrix_ops


class LinearOperator:
    """A batch of matrices."""

    def __init__(self, matrix: Any, name: Optional[str]) -> None:
        self._matrix, self.name = matrix, name or type(self).__name__

    dtype = property(lambda self: self.to_dense().dtype, doc="The type of its elements.")
    shape = property(lambda self: self.to_dense().get_shape(), doc="What is known of the shape of the matrices.")

    def to_dense(self) -> Tensor:
        """The matrices in full."""
        return self._matrix

    def shape_tensor(self) -> Tensor:
        """The shape of the matrices."""
        return array_ops.shape(self.to_dense())

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        """The matrices times others."""
        return matrix_ops.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    apply = matmul

    def matvec(self, x: Any, adjoint: bool = False) -> Tensor:
        """The matrices times vectors."""
        return array_ops.squeeze(self.matmul(array_ops.expand_dims(x, -1), adjoint), [-1])

    def solve(self, rhs: Any, adjoint: bool = False) -> Tensor:
        """What the matrices times x give rhs."""
        return gen_ops.matrix_solve(self.to_dense(), rhs, adjoint=adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False) -> Tensor:
        """solve for vectors."""
        return array_ops.squeeze(self.solve(array_ops.expand_dims(rhs, -1), adjoint), [-1])

    def adjoint(self, name: str = "adjoint") -> "LinearOperator":
        """The adjoint operator."""
        from millrace.ops.linalg_composed_operators import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self, name)

    H = property(lambda self: self.adjoint(), doc="The adjoint operator.")

    def inverse(self, name: str = "inverse") -> "LinearOperator":
        """The inverse operator."""
        from millrace.ops.linalg_composed_operators import LinearOperatorInversion

        return LinearOperatorInversion(self, name)

    batch_shape = property(lambda self: self.shape[:-2], doc="How many matrices there are.")
    range_dimension = property(lambda self: self.shape[-2], doc="The number of rows.")
    domain_dimension = property(lambda self: self.shape[-1], doc="The number of columns.")

    def determinant(self) -> Tensor:
        """The determinants."""
        return gen_ops.matrix_determinant(self.to_dense())

    def log_abs_determinant(self) -> Tensor:
        """The logarithms of the determinants' absolute values."""
        return linalg_ops.slogdet(self.to_dense())[1]

    def diag_part(self) -> Tensor:
        """The diagonals."""
        return gen_ops.matrix_diag_part(self.to_dense())

    def trace(self) -> Tensor:
        """The sums of the diagonals."""
        return math_ops.reduce_sum(self.diag_part(), -1)

    def add_to_tensor(self, x: Any) -> Tensor:
        """The matrices plus others."""
        return self.to_dense() + x


class LinearOperatorFullMatrix(LinearOperator):
    """Matrices of any form."""

    def __init__(self, matrix: Any, name: Optional[str] = None, **unused: Any) -> None:
        super().__init__(convert_to_tensor(matrix), name)


class LinearOperatorLowerTriangular(LinearOperator):
    """Matrices of which all above the diagonal counts as zero."""

    def __init__(self, tril: Any, name: Optional[str] = None, **unused: Any) -> None:
        super().__init__(gen_ops.matrix_band_part(convert_to_tensor(tril), -1, 0), name)

    def solve(self, rhs: Any, adjoint: bool = False) -> Tensor:
        """What the matrices times x give rhs."""
        return gen_ops.matrix_triangular_solve(self._matrix, rhs, lower=True, adjoint=adjoint)

    def determinant(self) -> Tensor:
        """The determinants."""
        return math_ops.reduce_prod(self.diag_part(), -1)

    def log_abs_determinant(self) -> Tensor:
        """The logarithms of the determinants' absolute values."""
        return math_ops.reduce_sum(gen_ops.log(math_ops.abs(self.diag_part())), -1)


LinearOperatorTriL = LinearOperatorLowerTriangular


class LinearOperatorDiag(LinearOperatorLowerTriangular):
    """Diagonal matrices."""

    def __init__(self, diag: Any, name: Optional[str] = None, **unused: Any) -> None:
        super().__init__(gen_ops.matrix_diag(convert_to_tensor(diag)), name)


class LinearOperatorIdentity(LinearOperatorDiag):
    """The identity of so many rows."""

    def __init__(self, num_rows: int, batch_shape: Any = None, dtype: Any = None, name: Optional[str] = None, **unused: Any) -> None:
        if batch_shape is not None:
            raise at_user_line(NotImplementedError("batch_shape is not provided: matmul and others broadcast by tf.tile."))
        super().__init__(array_ops.ones([num_rows], dtype or dtypes.float32), name)
