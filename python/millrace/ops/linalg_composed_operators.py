# SPDX-License-Identifier: Apache-2.0
"""Linear operators that are made of others, of vectors, or of spectra. All compute with the matrices in full."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import InvalidArgumentError, at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, check_ops, gen_ops, linalg_ops, math_ops, matrix_ops
from millrace.ops.linalg_operators import HINTS, LinearOperator, LinearOperatorDiag, LinearOperatorIdentity
from millrace.ops.linalg_operators import hints, identity_sizes, use_operator_or_provided_hint_unless_contradicting, with_rank


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros."""

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Optional[bool] = False,
        is_self_adjoint: Optional[bool] = True,
        is_positive_definite: Optional[bool] = False,
        is_square: Optional[bool] = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular or is_positive_definite:
            raise at_user_line(ValueError("A zero operator is never %s." % ("non-singular" if is_non_singular else "positive-definite")))
        columns = num_rows if num_columns is None else num_columns
        sizes = identity_sizes(batch_shape, num_rows, assert_proper_shapes, columns)
        square = columns is num_rows or columns == num_rows
        given = hints(False, is_self_adjoint and square, False, is_square and square)
        self._of(array_ops.zeros(sizes, dtypes.float32 if dtype is None else dtype), [], given, name)

    def _assert_non_singular(self) -> Any:
        raise at_user_line(InvalidArgumentError(None, None, "Zero operators are always non-invertible."))

    def _assert_positive_definite(self) -> Any:
        raise at_user_line(InvalidArgumentError(None, None, "Zero operators are always non-positive definite."))


class LinearOperatorScaledIdentity(LinearOperator):
    """The identity of so many rows times a number for each matrix."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        if not is_square:
            raise at_user_line(ValueError("A ScaledIdentity operator is always square."))
        self._multiplier = convert_to_tensor(multiplier)
        rows = self._num_rows = identity_sizes(None, num_rows, assert_proper_shapes)[0]
        wide = array_ops.expand_dims(array_ops.expand_dims(self._multiplier, -1), -1)
        real = {} if self._multiplier.dtype.is_complex else {"is_self_adjoint": True}
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, **real)
        self._of(wide * matrix_ops.eye(rows, dtype=self._multiplier.dtype.base_dtype), [self._multiplier], given, name)

    multiplier = property(lambda self: self._multiplier, doc="The numbers on the diagonals.")

    def _eigenvalues(self) -> Optional[Tensor]:
        return self._multiplier


class _OfOne(LinearOperator):
    """An operator made of another, with the same hints."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> None:
        self._operator = operator
        given = {}
        for key, value in zip(HINTS, (is_non_singular, is_self_adjoint, is_positive_definite, is_square)):
            text = "%s=%s contradicts the operator %s: both or none of them are %s" % (key, value, operator.name, key[3:].replace("_", "-"))
            given[key] = use_operator_or_provided_hint_unless_contradicting(operator, key, value, text)
        self._of(self._computed(operator, given), list(operator.graph_parents), given, name or operator.name + self._suffix)

    _suffix = ""

    @staticmethod
    def _computed(operator: LinearOperator, given: Dict[str, Any]) -> Tensor:
        raise NotImplementedError

    operator = property(lambda self: self._operator, doc="The operator that it is made of.")


class LinearOperatorAdjoint(_OfOne):
    """The adjoint of an operator."""

    _suffix = "_adjoint"

    @staticmethod
    def _computed(operator: LinearOperator, given: Dict[str, Any]) -> Tensor:
        return linalg_ops.adjoint(operator.to_dense())


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator."""

    _suffix = "_inv"

    @staticmethod
    def _computed(operator: LinearOperator, given: Dict[str, Any]) -> Tensor:
        if given["is_non_singular"] is False or given["is_square"] is False:
            raise at_user_line(ValueError("%s has no inverse: is_square or is_non_singular is False." % operator.name))
        return gen_ops.matrix_inverse(operator.to_dense())

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)


def _listed(operators: Sequence[LinearOperator]) -> List[LinearOperator]:
    if not operators:
        raise at_user_line(ValueError("Expected a non-empty list of operators (>=1 operators). Found: %s" % (operators,)))
    if len({o.dtype for o in operators}) > 1:
        raise at_user_line(TypeError("Expected all operators to have the same dtype. Found: %s" % ", ".join("%s of %s" % (o.name, o.dtype) for o in operators)))
    return list(operators)


def _every(operators: Sequence[LinearOperator], *keys: str) -> Dict[str, bool]:
    """The hints that hold of all operators."""
    return {key: True for key in keys if all(getattr(o, key) for o in operators)}


def _parents(operators: Sequence[LinearOperator]) -> List[Any]:
    return [p for o in operators for p in o.graph_parents]


class LinearOperatorComposition(LinearOperator):
    """The product of operators, the last one applied first."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> None:
        self._operators = _listed(operators)
        made = self._operators[0].to_dense()
        for operator in self._operators[1:]:
            made = matrix_ops.matmul(made, operator.to_dense())
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, **_every(self._operators, "is_non_singular"))
        self._of(made, _parents(self._operators), given, name or "_o_".join(o.name for o in self._operators))

    operators = property(lambda self: list(self._operators), doc="The operators that it is made of.")


class LinearOperatorBlockDiag(LinearOperator):
    """Operators along the diagonal."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = True,
        name: Optional[str] = None,
    ) -> None:
        self._operators = _listed(operators)
        if is_square is False or any(operator.is_square is False for operator in self._operators):
            raise at_user_line(ValueError("Can only represent a block diagonal of square matrices."))
        blocks = [o.to_dense() for o in self._operators]
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
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, **_every(self._operators, *HINTS))
        self._of(array_ops.concat(rows, -2), _parents(self._operators), given, name or "_ds_".join(o.name for o in self._operators))

    operators = property(lambda self: list(self._operators), doc="The operators that it is made of.")


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators."""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> None:
        self._operators = _listed(operators)
        made = self._operators[0].to_dense()
        for operator in self._operators[1:]:
            other = operator.to_dense()
            a, b = array_ops.shape(made), array_ops.shape(other)
            product = made[..., :, None, :, None] * other[..., None, :, None, :]
            made = array_ops.reshape(product, array_ops.concat([array_ops.shape(product)[:-4], [a[-2] * b[-2], a[-1] * b[-1]]], 0))
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, **_every(self._operators, *HINTS))
        self._of(made, _parents(self._operators), given, name or "_x_".join(o.name for o in self._operators))

    operators = property(lambda self: list(self._operators), doc="The operators that it is made of.")


class LinearOperatorHouseholder(LinearOperator):
    """Reflections at the plane that stands on a vector."""

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        axis = self._reflection_axis = with_rank(convert_to_tensor(reflection_axis), 1, "reflection_axis")
        unit = array_ops.expand_dims(axis / matrix_ops.norm(axis, axis=-1, keepdims=True), -1)
        size = array_ops.shape(axis)[-1]
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True, is_non_singular=True, is_self_adjoint=True)
        self._of(matrix_ops.eye(size, dtype=axis.dtype.base_dtype) - 2 * matrix_ops.matmul(unit, unit, adjoint_b=True), [axis], given, name)

    reflection_axis = property(lambda self: self._reflection_axis, doc="The vector that it turns around.")


class LinearOperatorLowRankUpdate(LinearOperator):
    """base + u diag(diag_update) v^H; v is u, and the diagonal ones, where they are not given."""

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Optional[bool] = None,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        left = self._u = convert_to_tensor(u)
        right = self._v = left if v is None else convert_to_tensor(v, left.dtype.base_dtype)
        self._diag_update = None if diag_update is None else convert_to_tensor(diag_update, left.dtype.base_dtype)
        scaled = left if self._diag_update is None else left * array_ops.expand_dims(self._diag_update, -2)
        self._base_operator = base_operator
        self._positive = True if diag_update is None else is_diag_update_positive
        grows = base_operator.is_positive_definite and self._positive and v is None  # then the sum is positive definite too
        known = {"is_positive_definite": True, "is_self_adjoint": True, "is_non_singular": True} if grows and base_operator.is_self_adjoint else {}
        parents = [*base_operator.graph_parents, left, *([] if self._diag_update is None else [self._diag_update]), *([] if v is None else [right])]
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, **known)
        self._of(base_operator.to_dense() + matrix_ops.matmul(scaled, right, adjoint_b=True), parents, given, name)

    base_operator = property(lambda self: self._base_operator, doc="The operator that it updates.")
    u = property(lambda self: self._u, doc="The left factor.")
    v = property(lambda self: self._v, doc="The right factor, u where none was given.")
    diag_update = property(lambda self: self._diag_update, doc="The diagonal between the factors; None for ones.")
    is_diag_update_positive = property(lambda self: self._positive, doc="Whether that diagonal is positive; None: nobody says.")

    @property
    def _use_cholesky(self) -> bool:  # not where it is said to be positive definite alone: 1.15 takes that from the parts
        base = self._base_operator
        return bool(base.is_positive_definite and base.is_self_adjoint and self._positive and self._v is self._u)

    @property
    def diag_operator(self) -> LinearOperator:
        """The diagonal between the factors, as an operator."""
        if self._diag_update is None:
            return LinearOperatorIdentity(array_ops.shape(self._u)[-1], dtype=self.dtype)
        return LinearOperatorDiag(self._diag_update, is_positive_definite=self._positive)


class LinearOperatorToeplitz(LinearOperator):
    """Matrices that are constant along diagonals: of a first column and a first row."""

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        col, row = self._col, self._row = with_rank(convert_to_tensor(col), 1, "col"), with_rank(convert_to_tensor(row), 1, "row")
        if not col.get_shape()[-1:].is_compatible_with(row.get_shape()[-1:]):
            raise at_user_line(ValueError("col and row must have the same size, got shapes %s and %s" % (col.get_shape(), row.get_shape())))
        line = array_ops.concat([col + array_ops.zeros_like(row), (row + array_ops.zeros_like(col))[..., 1:]], -1)  # of one batch
        size = array_ops.shape(col)[-1]
        places = math_ops.range(size)
        down = array_ops.expand_dims(places, 1) - array_ops.expand_dims(places, 0)  # how far below the diagonal
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True)
        self._of(array_ops.gather(line, array_ops.where(down >= 0, down, size - 1 - down), axis=-1), [col, row], given, name)

    col = property(lambda self: self._col, doc="The first column.")
    row = property(lambda self: self._row, doc="The first row.")


_TRANSFORMS = ((gen_ops.fft, gen_ops.ifft), (gen_ops.fft2d, gen_ops.ifft2d), (gen_ops.fft3d, gen_ops.ifft3d))


def _to_complex(x: Any) -> Tensor:
    """As complex numbers of the same precision (complex64 for float16), as the transforms take them."""
    x = convert_to_tensor(x)
    return math_ops.cast(x, dtypes.complex128 if x.dtype.base_dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64)


class _Circulant(LinearOperator):
    _dimensions = 1

    def _set_up(self, spectrum: Any, input_output_dtype: Any, given: Dict[str, Any], name: str) -> None:
        self._spectrum = with_rank(convert_to_tensor(spectrum), self._dimensions, "spectrum")
        if not self._spectrum.dtype.is_complex:
            if given["is_self_adjoint"] is False:
                raise at_user_line(ValueError("An operator with a real spectrum is always self-adjoint."))
            given["is_self_adjoint"] = True
        self._out = dtypes.as_dtype(input_output_dtype)
        forth, back = _TRANSFORMS[self._dimensions - 1]
        wide = _to_complex(self._spectrum)
        sizes = array_ops.shape(wide)
        block, batch = sizes[-self._dimensions :], sizes[: -self._dimensions]
        total = math_ops.reduce_prod(block)
        # Column by column: the transform of a unit vector times the spectrum, transformed back.
        units = forth(array_ops.reshape(matrix_ops.eye(total, dtype=wide.dtype), array_ops.concat([[total], block], 0)))
        columns = back(array_ops.expand_dims(wide, -self._dimensions - 1) * units)
        matrix = array_ops.matrix_transpose(array_ops.reshape(columns, array_ops.concat([batch, [total, total]], 0)))
        self._of(self._cast(matrix), [self._spectrum], given, name)

    def _cast(self, values: Tensor) -> Tensor:
        """Complex numbers in the operator's type: their real parts, if that is real."""
        return math_ops.cast(values if self._out.is_complex else math_ops.real(values), self._out)

    def _eigenvalues(self) -> Optional[Tensor]:
        return self._spectrum

    spectrum = property(lambda self: self._spectrum, doc="The Fourier transform of the first columns.")
    block_depth = property(lambda self: self._dimensions, doc="How many dimensions the spectrum has.")
    block_shape = property(lambda self: self._spectrum.get_shape()[-self._dimensions :], doc="The sizes of these dimensions.")

    def block_shape_tensor(self, name: str = "block_shape_tensor") -> Tensor:
        """block_shape as a tensor."""
        with self._scope(name):
            return array_ops.shape(self._spectrum)[-self._dimensions :]

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """What it convolves with: the inverse transform of the spectrum."""
        with self._scope(name):
            return self._cast(_TRANSFORMS[self._dimensions - 1][1](_to_complex(self._spectrum)))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """An operation that fails where the spectrum is not Hermitian, the operator not real."""
        with self._scope(name):
            unreal = math_ops.abs(math_ops.imag(_TRANSFORMS[self._dimensions - 1][1](_to_complex(self._spectrum))))
            bound = np.finfo(unreal.dtype.base_dtype.as_numpy_dtype).eps * 5.0 * float(self.domain_dimension.value or 1)
            return check_ops.assert_less_equal(unreal, convert_to_tensor(bound, unreal.dtype.base_dtype), message="Spectrum was not Hermitian")


class LinearOperatorCirculant(_Circulant):
    """Circulant matrices, by the Fourier transform of their first columns."""

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True)
        self._set_up(spectrum, input_output_dtype, given, name)


class LinearOperatorCirculant2D(_Circulant):
    """Block circulant matrices, by a spectrum of two dimensions."""

    _dimensions = 2

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = True,
        name: str = "LinearOperatorCirculant2D",
    ) -> None:
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True)
        self._set_up(spectrum, input_output_dtype, given, name)


class LinearOperatorCirculant3D(_Circulant):
    """Nested block circulant matrices, by a spectrum of three dimensions."""

    _dimensions = 3

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = True,
        name: str = "LinearOperatorCirculant3D",
    ) -> None:
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True)
        self._set_up(spectrum, input_output_dtype, given, name)
