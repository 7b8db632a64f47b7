# SPDX-License-Identifier: Apache-2.0
"""Positive definite matrices whose root is another operator and a part of low rank."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.contrib.operator_pd import OperatorPDBase, tensors
from millrace.contrib.operator_pd_classes import OperatorPDDiag, OperatorPDIdentity
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, linalg_ops, math_ops, matrix_ops


def _check_known(operator: OperatorPDBase, v: Tensor, diag: Optional[Tensor]) -> None:
    """ValueError where shapes that are known do not fit."""
    matrix, low = operator.get_shape(), v.get_shape()
    if matrix.ndims is not None and low.ndims is not None and not matrix[:-1].is_compatible_with(low[:-1]):
        raise at_user_line(ValueError("operator %s and v %s differ before the last dimension" % (matrix, low)))
    if diag is None or low.ndims is None or diag.get_shape().ndims is None:
        return
    middle = diag.get_shape()
    if middle.ndims != low.ndims - 1:
        raise at_user_line(ValueError("diag %s must have a rank less by one than that of v %s" % (middle, low)))
    if not middle[:-1].is_compatible_with(low[:-2]):
        raise at_user_line(ValueError("diag %s must have the batch shape of v %s" % (middle, low)))
    if not middle[-1:].is_compatible_with(low[-1:]):
        raise at_user_line(ValueError("diag %s and v %s must have the same last dimension" % (middle, low)))


def _checks(operator: OperatorPDBase, v: Tensor, diag: Optional[Tensor]) -> List[Any]:
    """Operations that fail where shapes do not fit: of the ranks first."""
    fits: List[Any] = [check_ops.assert_equal(operator.rank(), array_ops.rank(v), message="operator and v must have the same rank.")]
    if diag is not None:
        fits.append(check_ops.assert_equal(array_ops.rank(diag) + 1, array_ops.rank(v), message="diag must have a rank less by one than that of v."))
    with control_dependencies(fits):
        low = array_ops.shape(v)
        fits.append(check_ops.assert_equal(operator.vector_shape(), low[:-1], message="operator and v."))
        if diag is not None:
            fits.append(check_ops.assert_equal(array_ops.shape(diag), array_ops.concat([low[:-2], low[-1:]], 0), message="diag and v."))
    return fits


class OperatorPDSqrtVDVTUpdate(OperatorPDBase):
    """A = S S^T, of S = M + V D V^T, where the operator is M [*batch, k, k], v is V [*batch, k, r], and D has diag [*batch, r] on its diagonal, ones
    when it is not given. With small r, solve and determinants take little more than M's own.

    verify_pd: steps fail unless diag is positive. verify_shapes: steps fail where shapes do not fit that nobody knew before."""

    def __init__(
        self, operator: Any, v: Any, diag: Any = None, verify_pd: bool = True, verify_shapes: bool = True, name: str = "OperatorPDSqrtVDVTUpdate"
    ) -> None:
        if not isinstance(operator, OperatorPDBase):
            raise at_user_line(TypeError("operator was not instance of OperatorPDBase: %r" % (operator,)))
        with name_scope(name), name_scope("init", values=[*operator.inputs, v, diag]):
            low = convert_to_tensor(v, name="v")
            middle = None if diag is None else convert_to_tensor(diag, name="diag")
            for what, tensor in (("v", low), ("diag", middle)):
                if tensor is not None and tensor.dtype != operator.dtype:
                    raise at_user_line(TypeError("%s has dtype %s, the operator has dtype %s" % (what, tensor.dtype.name, operator.dtype.name)))
            _check_known(operator, low, middle)
            with control_dependencies(_checks(operator, low, middle) if verify_shapes else []):
                low = array_ops.identity(low)
                middle = None if middle is None else array_ops.identity(middle)
            sizes = array_ops.shape(low)
            self._diag: Any = (
                OperatorPDIdentity(array_ops.concat([sizes[:-2], sizes[-1:], sizes[-1:]], 0), low.dtype, verify_pd=False)
                if middle is None
                else OperatorPDDiag(middle, verify_pd=verify_pd)
            )
        self._operator, self._v, self._middle, self._verify_pd, self._name = operator, low, middle, verify_pd, name

    @property
    def name(self) -> str:  # type: ignore[override]
        """What its operations are below."""
        return self._name

    @property
    def verify_pd(self) -> bool:  # type: ignore[override]
        """Whether steps fail where diag is not positive."""
        return self._verify_pd

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]
        """The type of the elements."""
        return self._v.dtype

    @property
    def inputs(self) -> List[Tensor]:  # type: ignore[override]
        """The tensors that it was made of."""
        return [*self._operator.inputs, *tensors(self._v, self._middle)]

    def get_shape(self) -> TensorShape:
        """[..., k, k], as far as it is known."""
        shape: TensorShape = self._operator.get_shape()
        return shape

    def _shape(self) -> Tensor:
        return self._operator.shape()

    def _turned(self, x: Tensor) -> Tensor:
        """V^T x."""
        return matrix_ops.matmul(self._v, x, transpose_a=True)

    def _factor(self) -> Tensor:
        """The Cholesky factor of D^-1 + V^T M^-1 V, [*batch, r, r]."""
        inner = self._turned(self._operator.solve(self._v))
        return gen_ops.cholesky(gen_ops.matrix_set_diag(inner, gen_ops.matrix_diag_part(inner) + 1.0 / self._diag._diag()))

    def _batch_sqrt_log_det(self) -> Tensor:
        of_factor = 2.0 * math_ops.reduce_sum(gen_ops.log(gen_ops.matrix_diag_part(self._factor())), [-1])
        return self._operator.log_det() + self._diag.log_det() + of_factor

    def _batch_sqrt_log_abs_det(self) -> Tensor:
        return self._batch_sqrt_log_det()

    def _batch_log_det(self) -> Tensor:
        return 2.0 * self._batch_sqrt_log_det()

    def _batch_sqrt_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        given = array_ops.matrix_transpose(x) if transpose_x else x
        return self._operator.matmul(given) + matrix_ops.matmul(self._v, self._diag.matmul(self._turned(given)))

    def _batch_matmul(self, x: Tensor, transpose_x: bool = False) -> Tensor:
        return self._batch_sqrt_matmul(self._batch_sqrt_matmul(x, transpose_x))

    def _batch_sqrt_solve(self, rhs: Tensor) -> Tensor:
        solved = self._operator.solve(rhs)
        return solved - self._operator.solve(matrix_ops.matmul(self._v, linalg_ops.cholesky_solve(self._factor(), self._turned(solved))))

    def _batch_solve(self, rhs: Tensor) -> Tensor:
        return self._batch_sqrt_solve(self._batch_sqrt_solve(rhs))

    def _sqrt_to_dense(self) -> Tensor:
        return self._operator.to_dense() + matrix_ops.matmul(self._v, self._diag.matmul(array_ops.matrix_transpose(self._v)))

    def _to_dense(self) -> Tensor:
        root = self._sqrt_to_dense()
        return matrix_ops.matmul(root, root, transpose_b=True)
