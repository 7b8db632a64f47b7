# SPDX-License-Identifier: Apache-2.0
"""Positive definite matrices by their Cholesky factors, by themselves, by their diagonals, and multiples of the identity."""

from __future__ import annotations

from typing import Any, List

from millrace.contrib.operator_pd import OperatorPDBase
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, linalg_ops, math_ops, matrix_ops


class _OfTensor(OperatorPDBase):
    """An operator that a tensor says all of."""

    def __init__(self, tensor: Tensor, verify_pd: bool, name: str) -> None:
        self._tensor, self._verify_pd, self._name = tensor, verify_pd, name

    @property
    def name(self) -> str:  # type: ignore[override]
        """What its operations are below."""
        return self._name

    @property
    def verify_pd(self) -> bool:  # type: ignore[override]
        """Whether steps fail where it is not positive definite."""
        return self._verify_pd

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]
        """The type of the elements."""
        return self._tensor.dtype

    @property
    def inputs(self) -> List[Tensor]:  # type: ignore[override]
        """The tensors that it was made of."""
        return [self._tensor]

    def get_shape(self) -> TensorShape:
        """[..., k, k], as far as it is known."""
        return self._tensor.get_shape()

    def _shape(self) -> Tensor:
        return array_ops.shape(self._tensor)


class OperatorPDCholesky(_OfTensor):
    """A = chol chol^T, of lower triangles chol [*batch, k, k]; what is above their diagonals counts as zero.

    verify_pd: steps fail unless the diagonals are positive and the matrices square."""

    def __init__(self, chol: Any, verify_pd: bool = True, name: str = "OperatorPDCholesky") -> None:
        with name_scope(name), name_scope("init", values=[chol]):
            super().__init__(self._checked(convert_to_tensor(chol, name="chol"), verify_pd), verify_pd, name)

    @staticmethod
    def _checked(chol: Tensor, verify_pd: bool) -> Tensor:
        lower = gen_ops.matrix_band_part(chol, -1, 0)
        if not verify_pd:
            return lower
        sizes = array_ops.shape(lower)
        checks = [check_ops.assert_equal(sizes[-1], sizes[-2]), check_ops.assert_positive(gen_ops.matrix_diag_part(lower))]
        return control_flow_ops.with_dependencies(checks, lower)

    def _batch_log_det(self) -> Tensor:
        return 2.0 * math_ops.reduce_sum(gen_ops.log(gen_ops.matrix_diag_part(self._tensor)), [-1])

    def _batch_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        inner = matrix_ops.matmul(self._tensor, x, transpose_a=True, transpose_b=transpose_x)
        return matrix_ops.matmul(self._tensor, inner)

    def _batch_sqrt_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return matrix_ops.matmul(self._tensor, x, transpose_b=transpose_x)

    def _batch_solve(self, rhs: Tensor) -> Tensor:
        return linalg_ops.cholesky_solve(self._tensor, rhs)

    def _batch_sqrt_solve(self, rhs: Tensor) -> Tensor:
        return gen_ops.matrix_triangular_solve(self._tensor, rhs, lower=True)

    def _to_dense(self) -> Tensor:
        return matrix_ops.matmul(self._tensor, self._tensor, transpose_b=True)

    def _sqrt_to_dense(self) -> Tensor:
        return self._tensor


class OperatorPDFull(OperatorPDCholesky):
    """Matrices A [*batch, k, k] as they are; S is their Cholesky factor. verify_pd: steps fail unless they are symmetric."""

    def __init__(self, matrix: Any, verify_pd: bool = True, name: str = "OperatorPDFull") -> None:
        with name_scope(name), name_scope("init", values=[matrix]):
            whole = convert_to_tensor(matrix, name="matrix")
            if verify_pd:
                whole = control_flow_ops.with_dependencies([check_ops.assert_equal(whole, array_ops.matrix_transpose(whole))], whole)
            factor = gen_ops.cholesky(whole)
        super().__init__(factor, verify_pd, name)


class OperatorPDDiagBase(_OfTensor):
    """Diagonal matrices by a vector [*batch, k]. A class says by _diag what A's diagonal is, and by _sqrt_diag what S's is.

    verify_pd: steps fail unless all elements are positive."""

    def __init__(self, diag: Any, verify_pd: bool = True, name: str = "OperatorPDDiagBase") -> None:
        with name_scope(name), name_scope("init", values=[diag]):
            given = convert_to_tensor(diag, name="diag")
            if verify_pd:
                given = control_flow_ops.with_dependencies([check_ops.assert_positive(given, message="diag must be positive.")], given)
            super().__init__(given, verify_pd, name)

    def get_shape(self) -> TensorShape:
        """[..., k, k], as far as it is known."""
        shape = self._tensor.get_shape()
        return shape if shape.ndims is None else shape.concatenate(shape[-1:])

    def _shape(self) -> Tensor:
        sizes = array_ops.shape(self._tensor)
        return array_ops.concat([sizes, sizes[-1:]], 0)

    def _diag(self) -> Tensor:
        raise NotImplementedError("%s has no _diag" % type(self).__name__)

    def _sqrt_diag(self) -> Tensor:
        raise NotImplementedError("%s has no _sqrt_diag" % type(self).__name__)

    def _batch_log_det(self) -> Tensor:
        return math_ops.reduce_sum(gen_ops.log(self._diag()), [-1])

    def _inv_quadratic_form_on_vectors(self, x: Tensor) -> Tensor:
        return self._iqfov_via_solve(x)

    def _batch_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return array_ops.expand_dims(self._diag(), -1) * (array_ops.matrix_transpose(x) if transpose_x else x)

    def _batch_sqrt_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return array_ops.expand_dims(self._sqrt_diag(), -1) * (array_ops.matrix_transpose(x) if transpose_x else x)

    def _batch_solve(self, rhs: Tensor) -> Tensor:
        return rhs / array_ops.expand_dims(self._diag(), -1)

    def _batch_sqrt_solve(self, rhs: Tensor) -> Tensor:
        return rhs / array_ops.expand_dims(self._sqrt_diag(), -1)

    def _to_dense(self) -> Tensor:
        return gen_ops.matrix_diag(self._diag())

    def _sqrt_to_dense(self) -> Tensor:
        return gen_ops.matrix_diag(self._sqrt_diag())

    def _add_to_tensor(self, mat: Tensor) -> Tensor:
        return gen_ops.matrix_set_diag(mat, gen_ops.matrix_diag_part(mat) + self._diag())


class OperatorPDDiag(OperatorPDDiagBase):
    """A with diag on its diagonal."""

    def __init__(self, diag: Any, verify_pd: bool = True, name: str = "OperatorPDDiag") -> None:
        super().__init__(diag, verify_pd, name)

    def _diag(self) -> Tensor:
        return self._tensor

    def _sqrt_diag(self) -> Tensor:
        return gen_ops.sqrt(self._tensor)


class OperatorPDSqrtDiag(OperatorPDDiagBase):
    """A = S S^T, of S with diag on its diagonal."""

    def __init__(self, diag: Any, verify_pd: bool = True, name: str = "OperatorPDSqrtDiag") -> None:
        super().__init__(diag, verify_pd, name)

    def _diag(self) -> Tensor:
        return gen_ops.square(self._tensor)

    def _sqrt_diag(self) -> Tensor:
        return self._tensor


class OperatorPDIdentity(OperatorPDDiagBase):
    """scale times identities of shape [*batch, k, k]. scale: a positive scalar, 1 when it is not given."""

    def __init__(self, shape: Any, dtype: Any, scale: Any = None, verify_pd: bool = True, name: str = "OperatorPDIdentity") -> None:
        kind = dtypes.as_dtype(dtype)
        with name_scope(name), name_scope("init", values=[shape, scale]):
            sizes = convert_to_tensor(shape, dtype=dtypes.int32, name="shape")
            factor = convert_to_tensor(1 if scale is None else scale, dtype=kind, name="scale")
            if factor.get_shape().ndims not in (None, 0):
                raise at_user_line(ValueError("scale must be a scalar, got shape %s" % factor.get_shape()))
            known = constant_value(sizes)
            if known is not None and (len(known) < 2 or known[-1] != known[-2]):
                raise at_user_line(ValueError("shape must end with two equal sizes, got %s" % list(known)))
            if known is None and verify_pd:
                sizes = control_flow_ops.with_dependencies([check_ops.assert_equal(sizes[-1], sizes[-2])], sizes)
            diagonal = factor * array_ops.ones(sizes[:-1], kind)
        super().__init__(diagonal, verify_pd, name)

    def _diag(self) -> Tensor:
        return self._tensor

    def _sqrt_diag(self) -> Tensor:
        return gen_ops.sqrt(self._tensor)

    def _given(self, x: Any) -> Tensor:
        given = convert_to_tensor(x, name="x")
        if given.dtype != self.dtype:
            raise at_user_line(TypeError("x has dtype %s, the operator has dtype %s" % (given.dtype.name, self.dtype.name)))
        rank, own = given.get_shape().ndims, self.get_shape().ndims
        if None not in (rank, own) and rank != own:
            raise at_user_line(ValueError("x must have the tensor rank of the operator, %s, got %s" % (own, rank)))
        return given

    def _fitting(self, x: Tensor) -> Tensor:
        if not self.get_shape()[:-1].is_compatible_with(x.get_shape()[:-1]):
            raise at_user_line(ValueError("Incompatible shapes: %s of the operator and %s of x" % (self.get_shape(), x.get_shape())))
        return x

    def _batch_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return super()._batch_matmul(self._fitting(array_ops.matrix_transpose(x) if transpose_x else x))

    def _batch_sqrt_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return super()._batch_sqrt_matmul(self._fitting(array_ops.matrix_transpose(x) if transpose_x else x))

    def _batch_solve(self, rhs: Tensor) -> Tensor:
        return super()._batch_solve(self._fitting(rhs))

    def _batch_sqrt_solve(self, rhs: Tensor) -> Tensor:
        return super()._batch_sqrt_solve(self._fitting(rhs))
