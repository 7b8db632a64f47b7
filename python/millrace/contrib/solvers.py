# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.solvers: iterative methods that know a matrix by its products only.

An operator has `shape` [M, N], `dtype`, `apply` (the matrix times columns) and `apply_adjoint` (its adjoint times columns); `create_operator` makes
one of a matrix.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, random_ops


class LinearOperator(NamedTuple):
    """A matrix by its products."""

    shape: Any
    dtype: Any
    apply: Callable[[Any], Tensor]
    apply_adjoint: Callable[[Any], Tensor]


class SolverState(NamedTuple):
    """Where a solver stopped: after how many steps, the solution, its residual, the next direction, and the square that the steps make small."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


class Bidiagonalization(NamedTuple):
    """u [m, k+1] and v [n, k] of orthonormal columns, and the diagonals alpha and beta [k] of a lower bidiagonal matrix between them."""

    u: Tensor
    v: Tensor
    alpha: Tensor
    beta: Tensor


def _shape(matrix: Tensor) -> Any:
    shape = matrix.get_shape()
    return shape.as_list() if shape.is_fully_defined() else array_ops.shape(matrix)


def create_operator(matrix: Any) -> LinearOperator:
    """The operator of a matrix [M, N]."""
    matrix = convert_to_tensor(matrix)
    return LinearOperator(_shape(matrix), matrix.dtype, lambda x: matrix_ops.matmul(matrix, x), lambda x: matrix_ops.matmul(matrix, x, adjoint_a=True))


def identity_operator(matrix: Any) -> LinearOperator:
    """The identity with the shape and the type of a matrix."""
    matrix = convert_to_tensor(matrix)
    return LinearOperator(_shape(matrix), matrix.dtype, array_ops.identity, array_ops.identity)


def dot(x: Any, y: Any) -> Tensor:
    """The sum of the products of y with the conjugate x."""
    return math_ops.reduce_sum(math_ops.conj(x) * y)


def l2norm_squared(v: Any) -> Tensor:
    """The sum of the squares."""
    return dot(v, v)


def l2norm(v: Any) -> Tensor:
    """The Euclidean norm."""
    return gen_ops.sqrt(l2norm_squared(v))


def l2normalize(v: Any) -> Tuple[Tensor, Tensor]:
    """(v with norm 1 unless it is zeros, its norm)."""
    norm = l2norm(v)
    return v / array_ops.where(math_ops.equal(norm, 0), array_ops.ones_like(norm), norm), norm


def _iterated(step: Any, goes_on: Any, max_iter: Any, start: List[Any]) -> SolverState:
    def body(i: Any, *values: Any) -> List[Any]:
        made = step(*values)
        for value, first in zip(made, start):
            value.set_shape(first.get_shape())  # an operator may not tell it
        return [i + 1, *made]

    i, *columns, gamma = control_flow_ops.while_loop(
        lambda i, *values: gen_ops.logical_and(i < max_iter, goes_on(*values)), body, [convert_to_tensor(0), *start]
    )
    x, r, p = (array_ops.squeeze(column, [-1]) for column in columns)
    return SolverState(i, x, r, p, gamma)


def conjugate_gradient(
    operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: float = 1e-4, max_iter: int = 20, name: str = "conjugate_gradient"
) -> SolverState:
    """The x [N] whose product with a positive definite self-adjoint operator is rhs [N], by conjugate gradients (Hestenes and Stiefel 1952).

    It begins at x (zeros), and ends after `max_iter` steps or where the norm of the residual is at most `tol` of what it was. The preconditioner is
    an operator near the inverse. `gamma` is the residual's product with the preconditioned one.
    """

    def conditioned(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.apply(r)

    def step(x: Any, r: Any, p: Any, gamma: Any) -> List[Any]:
        image = operator.apply(p)
        rate = gamma / dot(p, image)
        r_next = r - rate * image
        q = conditioned(r_next)
        gamma_next = dot(r_next, q)
        return [x + rate * p, r_next, q + gamma_next / gamma * p, gamma_next]

    with name_scope(name):
        rhs = array_ops.expand_dims(convert_to_tensor(rhs), -1)
        start = array_ops.zeros_like(rhs) if x is None else array_ops.expand_dims(convert_to_tensor(x), -1)
        r = rhs if x is None else rhs - operator.apply(start)
        p = conditioned(r)
        least = tol * math_ops.abs(l2norm(r))
        return _iterated(step, lambda x, r, p, gamma: math_ops.abs(l2norm(r)) > least, max_iter, [start, r, p, dot(r, p)])


def cgls(operator: Any, rhs: Any, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls") -> SolverState:
    """The x [N] for which the operator's product is nearest to rhs [M], by conjugate gradients of the normal equations.

    It begins at zeros, and ends after `max_iter` steps or where the norm of the adjoint times the residual is at most `tol` of what it was; `gamma`
    is the square of that norm.
    """

    def step(x: Any, r: Any, p: Any, gamma: Any) -> List[Any]:
        image = operator.apply(p)
        rate = gamma / l2norm_squared(image)
        r = r - rate * image
        slope = operator.apply_adjoint(r)
        gamma_next = l2norm_squared(slope)
        return [x + rate * p, r, slope + gamma_next / gamma * p, gamma_next]

    with name_scope(name):
        r = array_ops.expand_dims(convert_to_tensor(rhs), -1)
        p = operator.apply_adjoint(r)
        gamma = l2norm_squared(p)
        least = tol * tol * math_ops.abs(gamma)
        return _iterated(step, lambda x, r, p, gamma: math_ops.abs(gamma) > least, max_iter, [array_ops.zeros_like(p), r, p, gamma])


def lanczos_bidiag(operator: Any, k: Any, orthogonalize: bool = True, starting_vector: Optional[Any] = None, name: str = "lanczos_bidiag") -> Bidiagonalization:
    """k steps of Golub and Kahan's bidiagonalization: A V = U B and A^H U[:, :-1] = V B[:-1]^H, with alpha and beta on B's diagonal and below it.

    With `orthogonalize` every column is made orthogonal to all before it, which rounding would not leave so. `starting_vector` [M] is the first
    column of U but for its norm; without one it is drawn at random.
    """
    known: Any = constant_value(k) if isinstance(k, Tensor) else k
    if known is None:
        raise at_user_line(NotImplementedError("k is a tensor whose value is not known when the graph is built, got %s: the steps are unrolled" % (k,)))
    k = int(known)
    if k < 1:
        raise at_user_line(ValueError("k must be at least 1, got %s" % k))

    def cleared(vector: Any, columns: List[Any]) -> Any:
        for _ in range(2 if orthogonalize and columns else 0):  # once leaves what rounding brought in, twice does not
            basis = array_ops.concat(columns, 1)
            vector = vector - matrix_ops.matmul(basis, matrix_ops.matmul(basis, vector, adjoint_a=True))
        return vector

    with name_scope(name):
        if starting_vector is None:
            starting_vector = random_ops.random_uniform(operator.shape[:1], -1, 1, dtype=operator.dtype)
        us = [l2normalize(array_ops.expand_dims(convert_to_tensor(starting_vector), -1))[0]]
        vs: List[Any] = []
        alphas: List[Any] = []
        betas: List[Any] = []
        for _ in range(k):
            image = operator.apply_adjoint(us[-1])
            v, alpha = l2normalize(cleared(image - betas[-1] * vs[-1] if vs else image, vs))
            vs.append(v)
            alphas.append(alpha)
            u, beta = l2normalize(cleared(operator.apply(v) - alpha * us[-1], us))
            us.append(u)
            betas.append(beta)
        return Bidiagonalization(array_ops.concat(us, 1), array_ops.concat(vs, 1), array_ops.stack(alphas), array_ops.stack(betas))


def bidiag_matmul(matrix: Any, alpha: Any, beta: Any, adjoint_b: bool = False, name: str = "bidiag_matmul") -> Tensor:
    """A matrix [M, k+1] times the bidiagonal one [k+1, k] of these diagonals; with `adjoint_b` one [M, k] times the adjoint of its first k rows."""
    with name_scope(name):
        matrix, alpha, beta = convert_to_tensor(matrix), convert_to_tensor(alpha), convert_to_tensor(beta)
        if not adjoint_b:
            return matrix[:, :-1] * alpha + matrix[:, 1:] * beta
        return matrix * alpha + array_ops.pad(matrix[:, :-1] * beta[:-1], [[0, 0], [1, 0]])


lanczos = least_squares = linear_equations = util = sys.modules[__name__]  # TensorFlow has a module for each
