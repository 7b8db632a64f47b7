# SPDX-License-Identifier: Apache-2.0
"""What becomes of linear operators by their types: adjoints, inverses, Cholesky factors, products and solutions that keep their form."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.ops import gen_ops, linalg_ops, math_ops
from millrace.ops.linalg_composed_operators import (
    LinearOperatorAdjoint,
    LinearOperatorBlockDiag,
    LinearOperatorCirculant,
    LinearOperatorCirculant2D,
    LinearOperatorCirculant3D,
    LinearOperatorComposition,
    LinearOperatorHouseholder,
    LinearOperatorInversion,
    LinearOperatorKronecker,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from millrace.ops.linalg_operators import HINTS, LinearOperator, LinearOperatorDiag, LinearOperatorIdentity, LinearOperatorLowerTriangular


class _Functions(Dict[Tuple[type, ...], Callable[..., Any]]):
    """Functions by the types of the operators that they take."""

    def of(self, *kinds: type) -> Callable[..., Any]:
        """The function for these types or the nearest of their bases; of several the one registered first."""
        found = [(sum(kind.__mro__.index(base) for kind, base in zip(kinds, bases)), bases) for bases in self if all(map(issubclass, kinds, bases))]
        return self[min(found, key=lambda one: one[0])[1]]

    def register(self, *kinds: type) -> Callable[[Any], Any]:
        """A decorator of the function for operators of these types. TypeError for what is no function, ValueError where there is one."""

        def add(function: Any) -> Any:
            if not callable(function):
                raise at_user_line(TypeError("What is registered for %s must be callable, received: %s" % (_listed(kinds), function)))
            if kinds in self:
                raise at_user_line(ValueError("A function for %s has already been registered: %s" % (_listed(kinds), self[kinds])))
            self[kinds] = function
            return function

        return add


def _listed(kinds: Tuple[type, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


_ADJOINTS, _CHOLESKY_DECOMPS, _INVERSES, _MATMUL, _SOLVE = (_Functions() for _ in range(5))
RegisterAdjoint, _registered_adjoint = _ADJOINTS.register, _ADJOINTS.of
RegisterCholesky, _registered_cholesky = _CHOLESKY_DECOMPS.register, _CHOLESKY_DECOMPS.of
RegisterInverse, _registered_inverse = _INVERSES.register, _INVERSES.of
RegisterMatmul, _registered_matmul = _MATMUL.register, _MATMUL.of
RegisterSolve, _registered_solve = _SOLVE.register, _SOLVE.of


def adjoint(a: LinearOperator) -> LinearOperator:
    """The adjoint of an operator."""
    return _registered_adjoint(type(a))(a)


def cholesky(a: LinearOperator) -> LinearOperator:
    """The lower triangular factor of an operator."""
    return _registered_cholesky(type(a))(a)


def inverse(a: LinearOperator) -> LinearOperator:
    """The inverse of an operator."""
    return _registered_inverse(type(a))(a)


def matmul(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """The product of two operators."""
    return _registered_matmul(type(a), type(b))(a, b)


def solve(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """The operator whose product with `a` is `b`."""
    return _registered_solve(type(a), type(b))(a, b)


def called(method: str, first: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of tensors gives of operators: that of their method."""
    if method == "matmul":
        return _product(first, *args, **kwargs)
    if method == "solve" and not isinstance(first, LinearOperator):
        raise at_user_line(ValueError("Expected `matrix` to be a LinearOperator, got %r" % (first,)))
    return getattr(first, method)(*args, **{key: value for key, value in kwargs.items() if value is not None})


def _product(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: Optional[str] = None,
) -> Any:
    if transpose_a or transpose_b:
        raise at_user_line(ValueError("Transposing is not supported for LinearOperators: use the adjoint."))
    if a_is_sparse or b_is_sparse:
        raise at_user_line(ValueError("LinearOperators are not sparse."))
    name = name or "matmul"
    if isinstance(a, LinearOperator):
        return a.matmul(b, adjoint_a, adjoint_b, name)
    return linalg_ops.adjoint(b.matmul(a, not adjoint_b, not adjoint_a, name))  # AB is (B^H A^H)^H


def _hints_of(a: LinearOperator) -> Dict[str, Any]:
    return {key: getattr(a, key) for key in HINTS}


def _conj(x: Any) -> Any:
    return math_ops.conj(x) if x.dtype.is_complex else x


# ---- adjoints ----

_ADJOINTS[(LinearOperator,)] = lambda a: LinearOperatorAdjoint(a, **_hints_of(a))
_ADJOINTS[(LinearOperatorAdjoint,)] = lambda a: a.operator
_ADJOINTS[(LinearOperatorDiag,)] = lambda a: LinearOperatorDiag(_conj(a.diag), **_hints_of(a))
_ADJOINTS[(LinearOperatorScaledIdentity,)] = lambda a: LinearOperatorScaledIdentity(a._num_rows, _conj(a.multiplier), **_hints_of(a))

# ---- inverses ----

_INVERSES[(LinearOperator,)] = lambda a: LinearOperatorInversion(a, **_hints_of(a))
_INVERSES[(LinearOperatorInversion,)] = lambda a: a.operator
_INVERSES[(LinearOperatorIdentity,)] = _INVERSES[(LinearOperatorHouseholder,)] = lambda a: a
_INVERSES[(LinearOperatorDiag,)] = lambda a: LinearOperatorDiag(1.0 / a.diag, **_hints_of(a))
_INVERSES[(LinearOperatorScaledIdentity,)] = lambda a: LinearOperatorScaledIdentity(a._num_rows, 1.0 / a.multiplier, **_hints_of(a))

# ---- Cholesky factors ----

_FACTOR: Dict[str, Any] = {"is_non_singular": True, "is_square": True}
_DIAGONAL_FACTOR: Dict[str, Any] = dict.fromkeys(HINTS, True)


@RegisterCholesky(LinearOperator)
def _(a: Any) -> LinearOperator:
    return LinearOperatorLowerTriangular(gen_ops.cholesky(a.to_dense()), **_FACTOR)


_CHOLESKY_DECOMPS[(LinearOperatorIdentity,)] = lambda a: a
_CHOLESKY_DECOMPS[(LinearOperatorDiag,)] = lambda a: LinearOperatorDiag(gen_ops.sqrt(a.diag), **_DIAGONAL_FACTOR)
_CHOLESKY_DECOMPS[(LinearOperatorScaledIdentity,)] = lambda a: LinearOperatorScaledIdentity(a._num_rows, gen_ops.sqrt(a.multiplier), **_DIAGONAL_FACTOR)

# ---- of blocks, factors and spectra ----


def _part_by_part(kind: Any) -> None:
    _ADJOINTS[(kind,)] = lambda a: kind([part.adjoint() for part in a.operators], **_hints_of(a))
    _INVERSES[(kind,)] = lambda a: kind([part.inverse() for part in a.operators], **_hints_of(a))

    @RegisterCholesky(kind)
    def _(a: Any) -> LinearOperator:
        if all(part._can_use_cholesky() for part in a.operators):
            return kind([part.cholesky() for part in a.operators], **_FACTOR)
        return _CHOLESKY_DECOMPS[(LinearOperator,)](a)  # positive definite as a whole


def _by_spectrum(kind: Any) -> None:
    _ADJOINTS[(kind,)] = lambda a: kind(_conj(a.spectrum), a.dtype, **_hints_of(a))
    _INVERSES[(kind,)] = lambda a: kind(1.0 / a.spectrum, a.dtype, **_hints_of(a))
    _MATMUL[kind, kind] = lambda a, b: kind(a.spectrum * b.spectrum, a.dtype, **_hints_of_commuting(a, b))


# ---- products ----


def _hint_of_square(a: LinearOperator, b: LinearOperator) -> Optional[bool]:
    """Whether the product is square: a square matrix times one that is not is none."""
    if a.is_square and b.is_square:
        return True
    return False if a.is_square and b.is_square is False or b.is_square and a.is_square is False else None


def _hint_of_non_singular(a: LinearOperator, b: LinearOperator) -> Optional[bool]:
    if a.is_non_singular is False or b.is_non_singular is False:
        return False
    return True if a.is_non_singular and b.is_non_singular else None


def _hints_of_commuting(a: LinearOperator, b: LinearOperator) -> Dict[str, Any]:
    """The hints of a square product whose factors may change places."""
    sides = {a.is_self_adjoint, b.is_self_adjoint}
    return {
        "is_non_singular": _hint_of_non_singular(a, b),
        "is_self_adjoint": True if sides == {True} else False if sides == {True, False} else None,
        "is_positive_definite": a._can_use_cholesky() and b._can_use_cholesky() or None,
        "is_square": True,
    }


@RegisterMatmul(LinearOperator, LinearOperator)
def _(a: Any, b: Any) -> LinearOperator:
    square = _hint_of_square(a, b)
    if square is False:
        none: Dict[str, Any] = dict.fromkeys(HINTS, False)
        return LinearOperatorComposition([a, b], **none)
    return LinearOperatorComposition([a, b], is_non_singular=_hint_of_non_singular(a, b) if square else None, is_square=square)


def _zeros(a: Any, b: Any) -> LinearOperator:
    if not (a.is_square and b.is_square):
        raise at_user_line(ValueError("A product with zeros needs square operators, got %s and %s" % (a.shape, b.shape)))
    return a if isinstance(a, LinearOperatorZeros) else b


for _kind in (LinearOperator, LinearOperatorDiag, LinearOperatorIdentity):
    _MATMUL[LinearOperatorIdentity, _kind] = lambda a, b: b
    _MATMUL[_kind, LinearOperatorIdentity] = lambda a, b: a
_MATMUL[LinearOperatorZeros, LinearOperator] = _MATMUL[LinearOperator, LinearOperatorZeros] = _zeros
_MATMUL[LinearOperatorZeros, LinearOperatorZeros] = _zeros


@RegisterMatmul(LinearOperatorDiag, LinearOperatorDiag)
def _(a: Any, b: Any) -> LinearOperator:
    return LinearOperatorDiag(a.diag * b.diag, **_hints_of_commuting(a, b))


@RegisterMatmul(LinearOperatorScaledIdentity, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> LinearOperator:
    return LinearOperatorScaledIdentity(a._num_rows, a.multiplier * b.multiplier, **_hints_of_commuting(a, b))


@RegisterMatmul(LinearOperatorDiag, LinearOperatorScaledIdentity)
def _(a: Any, b: Any) -> LinearOperator:
    return LinearOperatorDiag(a.diag * b.multiplier[..., None], **_hints_of_commuting(a, b))


_MATMUL[LinearOperatorScaledIdentity, LinearOperatorDiag] = lambda a, b: _MATMUL[LinearOperatorDiag, LinearOperatorScaledIdentity](b, a)


@RegisterMatmul(LinearOperatorDiag, LinearOperatorLowerTriangular)
def _(a: Any, b: Any) -> LinearOperator:
    return LinearOperatorLowerTriangular(a.diag[..., None] * b.to_dense(), is_non_singular=_hint_of_non_singular(a, b))


@RegisterMatmul(LinearOperatorLowerTriangular, LinearOperatorDiag)
def _(a: Any, b: Any) -> LinearOperator:
    return LinearOperatorLowerTriangular(a.to_dense() * b.diag[..., None, :], is_non_singular=_hint_of_non_singular(a, b))


_part_by_part(LinearOperatorBlockDiag)
_part_by_part(LinearOperatorKronecker)
_by_spectrum(LinearOperatorCirculant)
_by_spectrum(LinearOperatorCirculant2D)
_by_spectrum(LinearOperatorCirculant3D)

# ---- solutions ----

_SOLVE[LinearOperator, LinearOperator] = lambda a, b: a.inverse().matmul(b)
