# SPDX-License-Identifier: Apache-2.0
"""tf.linalg.LinearOperator...: matrices of a certain form, and what is computed of them."""

from __future__ import annotations

import functools
import re
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.module import Module
from millrace.ops.variables import Variable
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, linalg_broadcast, linalg_ops, math_ops, matrix_ops


HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


class LinearOperator(Module):
    """A batch of matrices. A class of your own fills in _shape, _shape_tensor and _matmul, or _to_dense; the rest stands on these.

    The hints is_non_singular, is_self_adjoint, is_positive_definite and is_square are what the caller promises; None says nothing. What is
    computed does not depend on them, but solve and cholesky refuse an operator of which they say that it has none.
    """

    acts_as_a_matrix = True  # to functions of tensors

    _matrix: Any = None
    _variables_of: List[Variable]  # what it was made of, which Module.variables finds

    def __new__(cls, *args: Any, **kwargs: Any) -> "LinearOperator":
        made = super().__new__(cls)
        made._variables_of = [value for value in (*args, *kwargs.values()) if isinstance(value, Variable)]
        return made

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> None:
        if is_positive_definite and is_non_singular is False:
            raise at_user_line(ValueError("A positive definite matrix is always non-singular."))
        if (is_positive_definite or is_non_singular) and is_square is False:
            raise at_user_line(ValueError("A non-singular matrix is always square."))
        if is_self_adjoint and is_square is False:
            raise at_user_line(ValueError("A self-adjoint matrix is always square."))
        self._operator_dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._graph_parents = list(graph_parents or [])
        self._hints = (True if is_positive_definite else is_non_singular, is_self_adjoint, is_positive_definite)
        self._is_square = True if is_positive_definite or is_self_adjoint or is_non_singular else is_square
        super().__init__(_scope_name(name or type(self).__name__))
        self._operator_name = name or type(self).__name__

    def _of(self, matrix: Tensor, parents: List[Any], hints: Dict[str, Any], name: str) -> None:
        """Makes it the operator of a matrix, with hints by name."""
        unknown = sorted(hints.keys() - set(HINTS))
        if unknown:
            raise at_user_line(TypeError("%s() got an unexpected keyword argument '%s'" % (type(self).__name__, unknown[0])))
        LinearOperator.__init__(self, matrix.dtype.base_dtype, parents, name=name, **hints)
        self._matrix = matrix

    name = property(lambda self: self._operator_name, doc="Its name.")
    dtype = property(lambda self: self._operator_dtype, doc="The type of its elements.")
    graph_parents = property(lambda self: list(self._graph_parents), doc="The tensors that it is made of.")
    is_non_singular = property(lambda self: self._hints[0], doc="Whether it has an inverse; None: nobody says.")
    is_self_adjoint = property(lambda self: self._hints[1], doc="Whether it is its own adjoint; None: nobody says.")
    is_positive_definite = property(lambda self: self._hints[2], doc="Whether the real part of x^H A x is positive for all x but 0; None: nobody says.")

    @property
    def is_square(self) -> Optional[bool]:
        """Whether it has as many rows as columns, by its shape or by what its maker says."""
        rows, columns = self.range_dimension.value, self.domain_dimension.value
        if rows is None or columns is None:
            return self._is_square
        if self._is_square is False and rows == columns or self._is_square and rows != columns:
            raise at_user_line(
                ValueError(
                    "User set is_square=%s, but the operator was%s square: its shape is %s" % (self._is_square, "" if rows == columns else " not", self.shape)
                )
            )
        return bool(rows == columns)

    # ---- what a subclass may fill in ----

    def _shape(self) -> TensorShape:
        return self._dense().get_shape()

    def _shape_tensor(self) -> Tensor:
        return array_ops.shape(self._dense())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return _product(self._dense(), x, adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        count = self.domain_dimension.value
        sizes = self._shape_tensor()
        eye = matrix_ops.eye(sizes[-1] if count is None else count, batch_shape=sizes[:-2], dtype=self.dtype)
        return self._matmul(eye)

    def _dense(self) -> Tensor:
        return self._to_dense() if self._matrix is None else self._matrix

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_positive_definite and self.is_self_adjoint)

    @property
    def _use_cholesky(self) -> bool:
        """Whether solve goes by Cholesky's factors."""
        return self._can_use_cholesky()

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        matrix, rhs = self._dense(), linalg_ops.adjoint(rhs) if adjoint_arg else rhs
        if self._use_cholesky:
            return linalg_broadcast.solved(linalg_ops.cholesky_solve, gen_ops.cholesky(matrix), rhs)
        return linalg_broadcast.solved(functools.partial(gen_ops.matrix_solve, adjoint=adjoint), matrix, rhs)

    def _determinant(self) -> Tensor:
        return gen_ops.matrix_determinant(self._dense())

    def _log_abs_determinant(self) -> Tensor:
        return linalg_ops.slogdet(self._dense())[1]

    def _diag_part(self) -> Tensor:
        return gen_ops.matrix_diag_part(self._dense())

    # ---- shapes ----

    shape = property(lambda self: self._shape(), doc="What is known of the shape of the matrices.")
    batch_shape = property(lambda self: self.shape[:-2], doc="How many matrices there are.")
    range_dimension = property(lambda self: self.shape[-2], doc="The number of rows.")
    domain_dimension = property(lambda self: self.shape[-1], doc="The number of columns.")
    tensor_rank = property(lambda self: self.shape.ndims, doc="The rank of the tensor of the matrices.")

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape of the matrices."""
        with self._scope(name):
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """How many matrices there are, as a tensor."""
        with self._scope(name):
            return self._shape_tensor()[:-2]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows, as a tensor."""
        with self._scope(name):
            return self._shape_tensor()[-2]

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns, as a tensor."""
        with self._scope(name):
            return self._shape_tensor()[-1]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The rank of the tensor of the matrices, as a tensor."""
        with self._scope(name):
            return array_ops.size(self._shape_tensor())

    # ---- products and solutions ----

    def _scope(self, name: str) -> Any:
        return name_scope("%s/%s/" % (_scope_name(self.name), name))

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices in full."""
        if self._matrix is not None:
            return self._matrix
        with self._scope(name):
            return self._to_dense()

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The matrices times others, or composed with another operator."""
        if isinstance(x, LinearOperator):
            return _algebra().matmul(*self._fitting(x, adjoint, adjoint_arg))
        with self._scope(name):
            x = convert_to_tensor(x, self.dtype, "x")
            self.shape[-2 if adjoint else -1].assert_is_compatible_with(x.get_shape()[-1 if adjoint_arg else -2])
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _fitting(self, other: "LinearOperator", adjoint: bool, adjoint_arg: bool) -> Any:
        """This operator and another, or their adjoints; ValueError where their sizes do not fit."""
        left, right = self.adjoint() if adjoint else self, other.adjoint() if adjoint_arg else other
        if not left.domain_dimension.is_compatible_with(right.range_dimension):
            raise at_user_line(ValueError("Operators are incompatible. Expected %s rows, got %s." % (left.domain_dimension, right.range_dimension)))
        return left, right

    def apply(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "apply") -> Any:
        """`matmul`, under its older name."""
        return self.matmul(x, adjoint, adjoint_arg, name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The matrices times vectors."""
        with self._scope(name):
            return array_ops.squeeze(self._matmul(array_ops.expand_dims(convert_to_tensor(x, self.dtype, "x"), -1), adjoint=adjoint), [-1])

    def _refuse_singular(self, what: str) -> None:
        if self.is_non_singular is False:
            raise at_user_line(NotImplementedError("%s not implemented for an operator that is expected to be singular." % what))
        self._refuse_rectangular(what)

    def _refuse_rectangular(self, what: str) -> None:
        if self.is_square is False:
            raise at_user_line(NotImplementedError("%s not implemented for an operator that is expected to not be square." % what))

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The x that times the matrices gives rhs; an operator, if rhs is one."""
        self._refuse_singular("Exact solve")
        if isinstance(rhs, LinearOperator):
            return _algebra().solve(*self._fitting(rhs, adjoint, adjoint_arg))
        with self._scope(name):
            rhs = convert_to_tensor(rhs, self.dtype, "rhs")
            self.shape[-1 if adjoint else -2].assert_is_compatible_with(rhs.get_shape()[-1 if adjoint_arg else -2])
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """solve for vectors."""
        return array_ops.squeeze(self.solve(array_ops.expand_dims(convert_to_tensor(rhs, self.dtype, "rhs"), -1), adjoint, name=name), [-1])

    def adjoint(self, name: str = "adjoint") -> "LinearOperator":
        """The adjoint operator, of the same form where there is one."""
        if self.is_self_adjoint is True:
            return self
        with self._scope(name):
            return _algebra().adjoint(self)

    H = property(lambda self: self.adjoint(), doc="The adjoint operator.")

    def inverse(self, name: str = "inverse") -> "LinearOperator":
        """The inverse operator, of the same form where there is one."""
        if self.is_square is False:
            raise at_user_line(ValueError("Cannot take the Inverse: This operator represents a non square matrix."))
        if self.is_non_singular is False:
            raise at_user_line(ValueError("Cannot take the Inverse: This operator represents a singular matrix."))
        with self._scope(name):
            return _algebra().inverse(self)

    def cholesky(self, name: str = "cholesky") -> "LinearOperator":
        """The lower triangular operator whose product with its adjoint this is. ValueError unless it is said to be positive definite and self-adjoint."""
        if not self._can_use_cholesky():
            raise at_user_line(ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix."))
        with self._scope(name):
            return _algebra().cholesky(self)

    # ---- of the matrices ----

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants."""
        self._refuse_rectangular("Determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms of the determinants' absolute values."""
        self._refuse_rectangular("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonals."""
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Tensor:
        """The sums of the diagonals."""
        with self._scope(name):
            return math_ops.reduce_sum(self._diag_part(), -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The matrices plus others."""
        with self._scope(name):
            return self._dense() + convert_to_tensor(x, self.dtype, "x")

    # ---- checks in the step ----

    def _eigenvalues(self) -> Optional[Tensor]:
        """The eigenvalues, where the form of the operator tells them and its eigenvectors are orthogonal."""
        return None

    def _assert_non_singular(self) -> Any:
        values = self._eigenvalues()
        if values is not None:
            return assert_no_entries_with_modulus_zero(values, "Singular operator: %s was singular, an eigenvalue is zero." % self.name)
        spread = math_ops.real(gen_ops.svd(self._dense(), compute_uv=False).s)
        least, most = math_ops.reduce_min(spread, -1), math_ops.reduce_max(spread, -1)
        bound = max(100, self.domain_dimension.value or 0) * _EPSILON[spread.dtype.base_dtype]
        return check_ops.assert_greater(least, most * math_ops.cast(bound, spread.dtype.base_dtype), message="Singular matrix up to precision epsilon.")

    def _assert_self_adjoint(self) -> Any:
        values = self._eigenvalues()
        if values is not None:
            return assert_zero_imag_part(values, "An eigenvalue has an imaginary part: %s was not self-adjoint." % self.name)
        matrix = self._dense()
        return check_ops.assert_equal(matrix, linalg_ops.adjoint(matrix), message="Matrix was not equal to its adjoint.")

    def _assert_positive_definite(self) -> Any:
        values = self._eigenvalues()
        if values is not None:
            text = "An eigenvalue has a non-positive real part: %s was not positive definite." % self.name
            return check_ops.assert_positive(math_ops.real(values), message=text)
        matrix = self._dense()
        factor = gen_ops.cholesky(matrix if self.is_self_adjoint else (matrix + linalg_ops.adjoint(matrix)) / 2)  # x^H A x has the real part of that
        good = math_ops.reduce_all(gen_ops.is_finite(math_ops.abs(gen_ops.matrix_diag_part(factor))))
        return control_flow_ops.Assert(good, ["Operator was not positive definite."])

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where a matrix is singular to within the precision of its type."""
        with self._scope(name):
            return self._assert_non_singular()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where a matrix is not its own adjoint."""
        with self._scope(name):
            return self._assert_self_adjoint()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where x^H A x has a real part that is not positive for some x but 0."""
        with self._scope(name):
            return self._assert_positive_definite()


def assert_no_entries_with_modulus_zero(x: Any, message: Optional[str] = None, name: str = "assert_no_entries_with_modulus_zero") -> Any:
    """An operation that fails with the message where a number is zero."""
    with name_scope(name):
        return check_ops.assert_positive(math_ops.abs(convert_to_tensor(x)), message=message)


def assert_zero_imag_part(x: Any, message: Optional[str] = None, name: str = "assert_zero_imag_part") -> Any:
    """An operation that fails with the message where a complex number is not real."""
    with name_scope(name):
        x = convert_to_tensor(x)
        if not x.dtype.is_complex:
            return control_flow_ops.no_op()
        imaginary = math_ops.imag(x)
        return check_ops.assert_equal(imaginary, array_ops.zeros_like(imaginary), message=message)


def assert_compatible_matrix_dimensions(operator: LinearOperator, x: Any) -> Any:
    """An operation that fails where matrices have not as many rows as an operator has columns."""
    return check_ops.assert_equal(
        array_ops.shape(x)[-2],
        operator.domain_dimension_tensor(),
        message="Incompatible matrix dimensions. Dimensions are not compatible: rows of the argument.",
    )


def use_operator_or_provided_hint_unless_contradicting(operator: LinearOperator, hint_attr_name: str, provided_hint_value: Any, message: str) -> Any:
    """A hint of an operator or what is said of it; None where neither is known. ValueError with the message where they contradict each other."""
    known = getattr(operator, hint_attr_name)
    if None not in (known, provided_hint_value) and known != provided_hint_value:
        raise at_user_line(ValueError(message))
    return provided_hint_value if known is None else known


_EPSILON = {dtypes.float16: 2.0**-10, dtypes.float32: 2.0**-23, dtypes.float64: 2.0**-52}


def _algebra() -> Any:
    from millrace.ops import linalg_algebra  # which knows all forms of operators

    return linalg_algebra


def with_rank(tensor: Tensor, least: int, name: str) -> Tensor:
    """The tensor; ValueError where it is known to have fewer dimensions than that."""
    shape = tensor.get_shape()
    if shape.ndims is not None and shape.ndims < least:
        raise at_user_line(ValueError("Argument %s must have at least %d dimension%s. Found: shape %s" % (name, least, "s" * (least > 1), shape)))
    return tensor


def _scope_name(name: str) -> str:
    """A name as the scope of nodes."""
    return re.sub(r"\W", "_", name).lstrip("_") or "LinearOperator"


def _batched(a: Any, b: Any) -> List[Tensor]:
    """Both with the leading axes that they have together."""
    return linalg_broadcast.same_batch([convert_to_tensor(a), convert_to_tensor(b)])


def _product(a: Any, b: Any, adjoint_a: bool, adjoint_b: bool) -> Tensor:
    a, b = _batched(a, b)
    return matrix_ops.matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


class LinearOperatorFullMatrix(LinearOperator):
    """Matrices of any form."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        matrix = with_rank(convert_to_tensor(matrix), 2, "matrix")
        self._of(matrix, [matrix], hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square), name)


def hints(non_singular: Any, self_adjoint: Any, positive_definite: Any, square: Any, /, **known: bool) -> Dict[str, Any]:
    """Hints by name; those that are known of a form stand where the caller says nothing."""
    given = dict(zip(HINTS, (non_singular, self_adjoint, positive_definite, square)))
    for key, value in given.items():
        if value is False and known.get(key):
            raise at_user_line(ValueError("%s=False contradicts the operator's form: it is always %s." % (key, key[3:].replace("_", "-"))))
    return {key: known.get(key) if value is None else value for key, value in given.items()}


class _Triangular(LinearOperator):
    """Matrices of which all above the diagonal is zero."""

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        solve = functools.partial(gen_ops.matrix_triangular_solve, lower=True, adjoint=adjoint)
        return linalg_broadcast.solved(solve, self._matrix, linalg_ops.adjoint(rhs) if adjoint_arg else rhs)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(self._diag_part(), "Singular operator: the diagonal contained zero values.")

    def _determinant(self) -> Tensor:
        return math_ops.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return math_ops.reduce_sum(gen_ops.log(math_ops.abs(self._diag_part())), -1)


class LinearOperatorLowerTriangular(_Triangular):
    """Matrices of which all above the diagonal counts as zero."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise at_user_line(ValueError("Only square lower triangular operators supported at this time."))
        tril = with_rank(convert_to_tensor(tril), 2, "tril")
        whole = gen_ops.matrix_band_part(tril, -1, 0)
        self._of(whole, [tril], hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True), name)


LinearOperatorTriL = LinearOperatorLowerTriangular


class LinearOperatorDiag(_Triangular):
    """Diagonal matrices."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: Optional[bool] = None,
        is_self_adjoint: Optional[bool] = None,
        is_positive_definite: Optional[bool] = None,
        is_square: Optional[bool] = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        if is_square is False:
            raise at_user_line(ValueError("Only square diagonal operators supported at this time."))
        self._diag = with_rank(convert_to_tensor(diag), 1, "diag")
        if is_self_adjoint is False and not self._diag.dtype.is_complex:
            raise at_user_line(ValueError("A real diagonal operator is always self adjoint."))
        given = hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square, is_square=True)
        if not self._diag.dtype.is_complex:
            given["is_self_adjoint"] = True
        self._of(gen_ops.matrix_diag(self._diag), [self._diag], given, name)

    diag = property(lambda self: self._diag, doc="The diagonals.")

    def _eigenvalues(self) -> Optional[Tensor]:
        return self._diag


class LinearOperatorIdentity(LinearOperatorDiag):
    """The identity of so many rows, for each matrix of a batch."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Optional[bool] = True,
        is_self_adjoint: Optional[bool] = True,
        is_positive_definite: Optional[bool] = True,
        is_square: Optional[bool] = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for what, value in (
            ("is_self_adjoint", is_self_adjoint),
            ("is_square", is_square),
            ("is_non_singular", is_non_singular),
            ("is_positive_definite", is_positive_definite),
        ):
            if not value:
                raise at_user_line(ValueError("An identity operator is always %s." % what[3:].replace("_", "-")))
        sizes = identity_sizes(batch_shape, num_rows, assert_proper_shapes)
        self._diag = array_ops.ones(sizes, dtypes.float32 if dtype is None else dtype)
        self._of(gen_ops.matrix_diag(self._diag), [], dict.fromkeys(HINTS, True), name)


def _fixed_sizes(value: Any, rank: int, name: str) -> Any:
    """Sizes of a shape that are known here as an int or a list; a tensor as it is. TypeError or ValueError for what no sizes can be."""
    if isinstance(value, Variable):
        raise at_user_line(TypeError("Argument %s cannot be reference type. Found: %s" % (name, type(value))))
    if value is None or isinstance(value, Tensor):
        return value
    sizes = np.array([-1 if d is None else d for d in TensorShape(value).as_list()] if isinstance(value, TensorShape) else value)
    if sizes.ndim != rank:
        raise at_user_line(ValueError("Argument %s must be a %d-D Tensor. Found: %s" % (name, rank, value)))
    if sizes.size and sizes.dtype.kind not in "iu":
        raise at_user_line(TypeError("Argument %s must be integer type. Found: %s" % (name, value)))
    if (sizes < 0).any():
        raise at_user_line(ValueError("Argument %s must be non-negative. Found: %s" % (name, value)))
    return sizes.astype(np.int64).tolist()


def identity_sizes(batch_shape: Any, num_rows: Any, check: bool, num_columns: Any = None) -> Any:
    """[batch..., rows] or [batch..., rows, columns]; with `check` operations of the step see to those that are tensors."""
    sizes = [(_fixed_sizes(batch_shape, 1, "batch_shape"), 1, "batch_shape"), (_fixed_sizes(num_rows, 0, "num_rows"), 0, "num_rows")]
    if num_columns is not None:
        sizes.append((_fixed_sizes(num_columns, 0, "num_columns"), 0, "num_columns"))
    if not any(isinstance(value, Tensor) for value, _, _ in sizes):
        return [*(sizes[0][0] or []), *(value for value, _, _ in sizes[1:])]
    parts = []
    for value, rank, name in sizes:
        part = math_ops.cast([] if value is None else value, dtypes.int32)
        if check and isinstance(value, Tensor):
            with control_dependencies([check_ops.assert_rank(part, rank, message="Argument %s must be a %d-D Tensor." % (name, rank))]):
                part = array_ops.identity(part)
            with control_dependencies([check_ops.assert_non_negative(part, message="Argument %s must be non-negative." % name)]):
                part = array_ops.identity(part)
        parts.append(part if rank else array_ops.reshape(part, [1]))
    return array_ops.concat(parts, 0)
