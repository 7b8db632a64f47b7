# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues, singular values, factors, equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from table import A, B, CUBE, S, case, f32

H = np.array([[4, 1, 2], [1, 3, 0.5], [2, 0.5, 7]], f32)
COMPLEX = H + np.array([[0, -1j, 2j], [1j, 0, 0.5j], [-2j, -0.5j, 0]], np.complex64)
STACK = np.stack([H, H + 2 * np.eye(3, dtype=f32)])


def _again(s: Any, u: Any, v: Any, tf: Any) -> Any:
    return tf.matmul(u, tf.matmul(tf.matrix_diag(s), v, adjoint_b=True))


case(
    "self_adjoint_eig",
    [np.linalg.eigvalsh(H), H],
    *[
        lambda tf, c=c: (lambda e, v: [e, tf.matmul(v * e, v, adjoint_b=True)])(*c(tf))
        for c in (lambda tf: tf.self_adjoint_eig(H), lambda tf: tf.self_adjoint_eig(tensor=H, name="e"), lambda tf: tf.linalg.eigh(H))
    ],
)
case("self_adjoint_eig of a stack", np.linalg.eigvalsh(STACK), lambda tf: tf.self_adjoint_eig(STACK)[0], lambda tf: tf.self_adjoint_eigvals(STACK))
case(
    "self_adjoint_eigvals",
    np.linalg.eigvalsh(H),
    lambda tf: tf.self_adjoint_eigvals(H),
    lambda tf: tf.self_adjoint_eigvals(tensor=H, name="e"),
    lambda tf: tf.linalg.eigvalsh(H),
)
case("self_adjoint_eig of a complex matrix", np.linalg.eigvalsh(COMPLEX), lambda tf: tf.real(tf.self_adjoint_eig(COMPLEX)[0]))
case(
    "svd",
    [np.linalg.svd(A, compute_uv=False), A, (2, 2), (3, 2)],
    *[
        lambda tf, c=c: (lambda s, u, v: [s, _again(s, u, v, tf), tuple(u.get_shape().as_list()), tuple(v.get_shape().as_list())])(*c(tf))
        for c in (
            lambda tf: tf.svd(A),
            lambda tf: tf.svd(tensor=A, full_matrices=False, compute_uv=True, name="s"),
            lambda tf: tf.svd(A, False, True),
            lambda tf: tf.linalg.svd(A),
        )
    ],
)
case(
    "svd with full matrices",
    [(2, 2), (3, 3)],
    *[lambda tf, c=c: [tuple(x.get_shape().as_list()) for x in c(tf)[1:]] for c in (lambda tf: tf.svd(A, full_matrices=True), lambda tf: tf.svd(A, True))],
)
case("svd's values", np.linalg.svd(CUBE, compute_uv=False), lambda tf: tf.svd(CUBE, compute_uv=False), lambda tf: tf.svd(CUBE, False, False))
case(
    "qr",
    [A, (2, 2), (2, 3)],
    *[
        lambda tf, c=c: (lambda q, r: [tf.matmul(q, r), tuple(q.get_shape().as_list()), tuple(r.get_shape().as_list())])(*c(tf))
        for c in (lambda tf: tf.qr(A), lambda tf: tf.qr(input=A, full_matrices=False, name="q"), lambda tf: tf.linalg.qr(A))
    ],
)
case("qr with full matrices", [(3, 3), (3, 2)], lambda tf: [tuple(x.get_shape().as_list()) for x in tf.qr(A.T, full_matrices=True)])
case(
    "matrix_solve_ls",
    np.linalg.lstsq(A.T, B.T, None)[0],
    lambda tf: tf.matrix_solve_ls(A.T, B.T),
    lambda tf: tf.matrix_solve_ls(matrix=A.T, rhs=B.T, l2_regularizer=0.0, fast=True, name="m"),
    lambda tf: tf.matrix_solve_ls(A.T, B.T, fast=False),
    lambda tf: tf.linalg.lstsq(A.T, B.T),
)
case(
    "matrix_solve_ls with a regularizer",
    np.linalg.solve(A @ A.T + 0.5 * np.eye(2, dtype=f32), A @ B.T),
    lambda tf: tf.matrix_solve_ls(A.T, B.T, 0.5),
    lambda tf: tf.matrix_solve_ls(A.T, B.T, l2_regularizer=0.5),
)
case(
    "cholesky_solve",
    np.linalg.solve(H, CUBE[0, :, :2]),
    lambda tf: tf.cholesky_solve(tf.cholesky(H), CUBE[0, :, :2]),
    lambda tf: tf.cholesky_solve(chol=tf.cholesky(H), rhs=CUBE[0, :, :2], name="c"),
)
case(
    "linalg.slogdet",
    list(np.linalg.slogdet(-H)),
    lambda tf: list(tf.linalg.slogdet(-H)),
    lambda tf: [tf.linalg.slogdet(input=-H).sign, tf.linalg.slogdet(-H)[1]],
    wheel=True,
)
case("linalg.logdet", np.linalg.slogdet(H)[1], lambda tf: tf.linalg.logdet(H))
case(
    "linalg's other names",
    [np.linalg.det(S), np.linalg.inv(S), np.trace(S), np.linalg.solve(S, S.T), A.T, COMPLEX.conj().T, np.eye(2, dtype=f32)],
    lambda tf: [
        tf.linalg.det(S),
        tf.linalg.inv(S),
        tf.linalg.trace(S),
        tf.linalg.solve(S, S.T),
        tf.linalg.matrix_transpose(A),
        tf.linalg.adjoint(COMPLEX),
        tf.linalg.eye(2),
    ],
)
for _ord, _keep in ((1, False), (1, True), (2, False), (2, True), (np.inf, False), (np.inf, True)):
    case(
        "norm %s of matrices, kept: %s" % (_ord, _keep),
        np.linalg.norm(CUBE, _ord, (1, 2), _keep),
        *[lambda tf, o=_ord, k=_keep: tf.norm(CUBE, o, [1, 2], k), lambda tf, o=_ord, k=_keep: tf.norm(CUBE, ord=o, axis=[1, 2], keepdims=k)],
    )
