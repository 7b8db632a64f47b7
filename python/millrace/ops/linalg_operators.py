# SPDX-License-Identifier: Apache-2.0
"""tf.linalg.LinearOperator...: matrices of a certain form, and what is computed of them."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.module import Module
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, linalg_broadcast, linalg_ops, math_ops, matrix_ops


HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


class LinearOperator(Module):
    """A batch of matrices. A class of your own fills in _shape, _shape_tensor and _matmul, or _to_dense; the rest stands on these.

    The hints is_non_singular, is_self_adjoint, is_positive_definite and is_square are what the caller promises; None says nothing. What is
    computed does not depend on them, but solve and cholesky refuse an operator of which they say that it has none.
    """

    _matrix: Any = None

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
            raise at_user_line(ValueError("User provided is_square hint conflicted with static shape %s" % self.shape))
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

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        matrix, rhs = _batched(self._dense(), linalg_ops.adjoint(rhs) if adjoint_arg else rhs)
        if self._can_use_cholesky():
            return linalg_ops.cholesky_solve(gen_ops.cholesky(matrix), rhs)
        return gen_ops.matrix_solve(matrix, rhs, adjoint=adjoint)

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
            from millrace.ops.linalg_composed_operators import LinearOperatorComposition

            return LinearOperatorComposition([self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x])
        with self._scope(name):
            return self._matmul(convert_to_tensor(x, self.dtype, "x"), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def apply(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "apply") -> Any:
        """matmul."""
        return self.matmul(x, adjoint, adjoint_arg, name)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The matrices times vectors."""
        with self._scope(name):
            return array_ops.squeeze(self._matmul(array_ops.expand_dims(convert_to_tensor(x, self.dtype, "x"), -1), adjoint=adjoint), [-1])

    def _refuse_singular(self, what: str) -> None:
        if self.is_non_singular is False:
            raise at_user_line(NotImplementedError("%s not implemented for an operator that is expected to be singular." % what))
        if self.is_square is False:
            raise at_user_line(NotImplementedError("%s not implemented for an operator that is expected to not be square." % what))

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Tensor:
        """What the matrices times x give rhs."""
        self._refuse_singular("Exact solve")
        with self._scope(name):
            return self._solve(convert_to_tensor(rhs, self.dtype, "rhs"), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """solve for vectors."""
        return array_ops.squeeze(self.solve(array_ops.expand_dims(convert_to_tensor(rhs, self.dtype, "rhs"), -1), adjoint, name=name), [-1])

    def adjoint(self, name: str = "adjoint") -> "LinearOperator":
        """The adjoint operator."""
        del name  # of no single operation
        if self.is_self_adjoint is True:
            return self
        from millrace.ops.linalg_composed_operators import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self)

    H = property(lambda self: self.adjoint(), doc="The adjoint operator.")

    def inverse(self, name: str = "inverse") -> "LinearOperator":
        """The inverse operator."""
        if self.is_square is False:
            raise at_user_line(ValueError("Cannot take the Inverse: This operator represents a non square matrix."))
        if self.is_non_singular is False:
            raise at_user_line(ValueError("Cannot take the Inverse: This operator represents a singular matrix."))
        del name  # of no single operation
        from millrace.ops.linalg_composed_operators import LinearOperatorInversion

        return LinearOperatorInversion(self)

    def cholesky(self, name: str = "cholesky") -> "LinearOperator":
        """The lower triangular operator whose product with its adjoint this is. ValueError unless it is said to be positive definite and self-adjoint."""
        if not self._can_use_cholesky():
            raise at_user_line(ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix."))
        with self._scope(name):
            return LinearOperatorLowerTriangular(gen_ops.cholesky(self._dense()), is_non_singular=True, is_square=True)

    # ---- of the matrices ----

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants."""
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms of the determinants' absolute values."""
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

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where a matrix is singular to within the precision of its type."""
        with self._scope(name):
            spread = math_ops.real(gen_ops.svd(self._dense(), compute_uv=False).s)
            real = spread.dtype.base_dtype.as_numpy_dtype
            least, most = math_ops.reduce_min(spread, -1), math_ops.reduce_max(spread, -1)
            text = "Singular matrix up to precision epsilon."
            bound = most * real(self.domain_dimension.value or 1) * real(_EPSILON[spread.dtype.base_dtype])
            return check_ops.assert_greater(least, bound, message=text)

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where a matrix is not its own adjoint."""
        with self._scope(name):
            matrix = self._dense()
            return check_ops.assert_equal(matrix, linalg_ops.adjoint(matrix), message="Matrix was not equal to its adjoint.")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where a matrix has no Cholesky decomposition."""
        with self._scope(name):
            factor = gen_ops.cholesky(self._dense())
            good = math_ops.reduce_all(gen_ops.is_finite(math_ops.abs(gen_ops.matrix_diag_part(factor))))
            return control_flow_ops.Assert(good, ["Operator was not positive definite."])


_EPSILON = {dtypes.float16: 2.0**-10, dtypes.float32: 2.0**-23, dtypes.float64: 2.0**-52}


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
        matrix = convert_to_tensor(matrix)
        self._of(matrix, [matrix], hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square), name)


def hints(non_singular: Any, self_adjoint: Any, positive_definite: Any, square: Any, /, **known: bool) -> Dict[str, Any]:
    """Hints by name; those that are known of a form stand where the caller says nothing."""
    given = dict(zip(HINTS, (non_singular, self_adjoint, positive_definite, square)))
    return {key: known.get(key) if value is None else value for key, value in given.items()}


class LinearOperatorLowerTriangular(LinearOperator):
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

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        matrix, rhs = _batched(self._matrix, linalg_ops.adjoint(rhs) if adjoint_arg else rhs)
        return gen_ops.matrix_triangular_solve(matrix, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return math_ops.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return math_ops.reduce_sum(gen_ops.log(math_ops.abs(self._diag_part())), -1)


LinearOperatorTriL = LinearOperatorLowerTriangular


class LinearOperatorDiag(LinearOperatorLowerTriangular):
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
                raise at_user_line(ValueError("An identity operator always is %s." % what[3:].replace("_", " ")))
        sizes = identity_sizes(batch_shape, num_rows, assert_proper_shapes)
        self._diag = array_ops.ones(sizes, dtypes.float32 if dtype is None else dtype)
        self._of(gen_ops.matrix_diag(self._diag), [], dict.fromkeys(HINTS, True), name)


def identity_sizes(batch_shape: Any, num_rows: Any, check: bool) -> Any:
    """[batch..., rows]; with `check` operations of the step see to it that they are not negative, and scalars or vectors as they should be."""
    if not hasattr(num_rows, "graph") and np.ndim(num_rows) != 0:
        raise at_user_line(ValueError("Argument num_rows must be a 0-D Tensor. Found: %s" % (num_rows,)))
    if not hasattr(num_rows, "graph") and num_rows < 0:
        raise at_user_line(ValueError("Argument num_rows must be non-negative. Found: %s" % num_rows))
    if batch_shape is None and not hasattr(num_rows, "graph"):
        return [int(num_rows)]
    if batch_shape is not None and not hasattr(batch_shape, "graph"):
        sizes = [-1 if d is None else d for d in TensorShape(batch_shape).as_list()] if isinstance(batch_shape, TensorShape) else batch_shape
        if np.ndim(sizes) != 1:
            raise at_user_line(ValueError("Argument batch_shape must be a 1-D Tensor. Found: %s" % (batch_shape,)))
        if any(d < 0 for d in sizes):
            raise at_user_line(ValueError("Argument batch_shape must be non-negative. Found: %s" % (batch_shape,)))
        if not hasattr(num_rows, "graph"):
            return [*sizes, int(num_rows)]
        batch_shape = sizes
    rows = math_ops.cast(num_rows, dtypes.int32)
    batch = array_ops.zeros([0], dtypes.int32) if batch_shape is None else math_ops.cast(batch_shape, dtypes.int32)
    if check:
        with control_dependencies([check_ops.assert_rank(rows, 0), check_ops.assert_non_negative(rows), check_ops.assert_rank(batch, 1)]):
            rows = array_ops.identity(rows)
        with control_dependencies([check_ops.assert_non_negative(batch)]):
            batch = array_ops.identity(batch)
    return array_ops.concat([batch, [rows]], 0)
