# SPDX-License-Identifier: Apache-2.0
"""Linear operators that are made of others, of vectors, or of spectra. All compute with the matrices in full."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, linalg_ops, math_ops, matrix_ops
from millrace.ops.linalg_operators import LinearOperator


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros."""

    def __init__(
        self, num_rows: int, num_columns: Optional[int] = None, batch_shape: Any = None, dtype: Any = None, name: str = "LinearOperatorZeros", **unused: Any
    ) -> None:
        batch = [] if batch_shape is None else list(batch_shape)
        super().__init__(array_ops.zeros([*batch, num_rows, num_rows if num_columns is None else num_columns], dtype or dtypes.float32), name)


class LinearOperatorScaledIdentity(LinearOperator):
    """The identity of so many rows times a number for each matrix."""

    def __init__(self, num_rows: int, multiplier: Any, name: str = "LinearOperatorScaledIdentity", **unused: Any) -> None:
        scale = convert_to_tensor(multiplier)
        super().__init__(array_ops.expand_dims(array_ops.expand_dims(scale, -1), -1) * matrix_ops.eye(num_rows, dtype=scale.dtype.base_dtype), name)


class LinearOperatorAdjoint(LinearOperator):
    """The adjoint of an operator."""

    def __init__(self, operator: LinearOperator, name: Optional[str] = None, **unused: Any) -> None:
        self.operator = operator
        super().__init__(linalg_ops.adjoint(operator.to_dense()), name or operator.name + "_adjoint")


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator."""

    def __init__(self, operator: LinearOperator, name: Optional[str] = None, **unused: Any) -> None:
        self.operator = operator
        super().__init__(gen_ops.matrix_inverse(operator.to_dense()), name or operator.name + "_inv")

    def solve(self, rhs: Any, adjoint: bool = False) -> Tensor:
        """What the matrices times x give rhs: the operator itself times rhs."""
        return self.operator.matmul(rhs, adjoint=adjoint)


def _listed(operators: Sequence[LinearOperator]) -> List[LinearOperator]:
    if not operators:
        raise at_user_line(ValueError("Expected a non-empty list of operators. Found: %s" % (operators,)))
    return list(operators)


class LinearOperatorComposition(LinearOperator):
    """The product of operators, the last one applied first."""

    def __init__(self, operators: Sequence[LinearOperator], name: Optional[str] = None, **unused: Any) -> None:
        self.operators = _listed(operators)
        made = self.operators[0].to_dense()
        for operator in self.operators[1:]:
            made = matrix_ops.matmul(made, operator.to_dense())
        super().__init__(made, name or "_o_".join(o.name for o in self.operators))


class LinearOperatorBlockDiag(LinearOperator):
    """Operators along the diagonal."""

    def __init__(self, operators: Sequence[LinearOperator], name: Optional[str] = None, **unused: Any) -> None:
        self.operators = _listed(operators)
        blocks = [o.to_dense() for o in self.operators]
        width = sum(array_ops.shape(b)[-1] for b in blocks)
        rows: List[Tensor] = []
        at: Any = 0
        for block in blocks:
            size, rank = array_ops.shape(block), array_ops.rank(block)
            padding = array_ops.concat(
                [array_ops.zeros([rank - 1, 2], dtypes.int32), array_ops.reshape(array_ops.stack([at, width - at - size[-1]]), [1, 2])], 0
            )
            rows.append(array_ops.pad(block, padding))
            at = at + size[-1]
        super().__init__(array_ops.concat(rows, -2), name or "_ds_".join(o.name for o in self.operators))


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators."""

    def __init__(self, operators: Sequence[LinearOperator], name: Optional[str] = None, **unused: Any) -> None:
        self.operators = _listed(operators)
        made = self.operators[0].to_dense()
        for operator in self.operators[1:]:
            other = operator.to_dense()
            a, b = array_ops.shape(made), array_ops.shape(other)
            product = made[..., :, None, :, None] * other[..., None, :, None, :]
            made = array_ops.reshape(product, array_ops.concat([array_ops.shape(product)[:-4], [a[-2] * b[-2], a[-1] * b[-1]]], 0))
        super().__init__(made, name or "_x_".join(o.name for o in self.operators))


class LinearOperatorHouseholder(LinearOperator):
    """Reflections at the plane that stands on a vector."""

    def __init__(self, reflection_axis: Any, name: str = "LinearOperatorHouseholder", **unused: Any) -> None:
        axis = convert_to_tensor(reflection_axis)
        unit = array_ops.expand_dims(axis / gen_ops.sqrt(math_ops.reduce_sum(math_ops.square(axis), -1, keepdims=True)), -1)
        size = array_ops.shape(axis)[-1]
        super().__init__(matrix_ops.eye(size, dtype=axis.dtype.base_dtype) - 2 * matrix_ops.matmul(unit, unit, adjoint_b=True), name)


class LinearOperatorLowRankUpdate(LinearOperator):
    """base + u diag(diag_update) v^H; v is u, and the diagonal ones, where they are not given."""

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Optional[bool] = None,
        name: str = "LinearOperatorLowRankUpdate",
        **unused: Any,
    ) -> None:
        del is_diag_update_positive  # nothing is faster by it
        left = convert_to_tensor(u)
        right = left if v is None else convert_to_tensor(v, left.dtype.base_dtype)
        scaled = left if diag_update is None else left * array_ops.expand_dims(convert_to_tensor(diag_update, left.dtype.base_dtype), -2)
        self.base_operator = base_operator
        super().__init__(base_operator.to_dense() + matrix_ops.matmul(scaled, right, adjoint_b=True), name)


class LinearOperatorToeplitz(LinearOperator):
    """Matrices that are constant along diagonals: of a first column and a first row."""

    def __init__(self, col: Any, row: Any, name: str = "LinearOperatorToeplitz", **unused: Any) -> None:
        col, row = convert_to_tensor(col), convert_to_tensor(row)
        size = col.get_shape()[-1].value
        if size is None or size != row.get_shape()[-1].value:
            raise at_user_line(ValueError("col and row must have the same known size, got shapes %s and %s" % (col.get_shape(), row.get_shape())))
        line = array_ops.concat([col, row[..., 1:]], -1)
        i, j = np.arange(size)[:, None], np.arange(size)[None, :]
        super().__init__(array_ops.gather(line, np.where(i >= j, i - j, size - 1 + j - i), axis=-1), name)


class _Circulant(LinearOperator):
    _dimensions = 1

    def __init__(self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, name: Optional[str] = None, **unused: Any) -> None:
        self.spectrum = convert_to_tensor(spectrum)
        sizes: Any = self.spectrum.get_shape().as_list()[-self._dimensions :]
        if len(sizes) < self._dimensions or None in sizes:
            raise at_user_line(ValueError("The last %d sizes of the spectrum must be known, got shape %s" % (self._dimensions, self.spectrum.get_shape())))
        out = dtypes.as_dtype(input_output_dtype)
        wide = dtypes.complex128 if self.spectrum.dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64
        inverse = (gen_ops.ifft, gen_ops.ifft2d, gen_ops.ifft3d)[self._dimensions - 1]
        kernel = inverse(math_ops.cast(self.spectrum, wide))
        kernel = math_ops.cast(kernel if out.is_complex else math_ops.real(kernel), out)
        total = int(np.prod(sizes))
        places = np.stack(np.unravel_index(np.arange(total), sizes), -1)
        apart = (places[:, None] - places[None, :]) % np.array(sizes)  # which element of the kernel stands where
        flat = array_ops.reshape(kernel, array_ops.concat([array_ops.shape(kernel)[: -self._dimensions], [total]], 0))
        super().__init__(array_ops.gather(flat, np.ravel_multi_index(tuple(np.moveaxis(apart, -1, 0)), sizes), axis=-1), name)


class LinearOperatorCirculant(_Circulant):
    """Circulant matrices, by the Fourier transform of their first columns."""


class LinearOperatorCirculant2D(_Circulant):
    """Block circulant matrices, by a spectrum of two dimensions."""

    _dimensions = 2


class LinearOperatorCirculant3D(_Circulant):
    """Nested block circulant matrices, by a spectrum of three dimensions."""

    _dimensions = 3
