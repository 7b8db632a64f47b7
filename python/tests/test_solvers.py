# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.solvers against NumPy."""

import numpy as np
import pytest

import millrace as tf

S = tf.contrib.solvers


@pytest.mark.parametrize("known", [True, False])
def test_equations_and_least_squares(known):
    rng = np.random.RandomState(2)
    a, b = rng.randn(7, 4), rng.randn(7)
    square = a.T @ a + np.eye(4)
    with tf.Graph().as_default(), tf.Session() as session:
        given = [tf.constant(v) if known else tf.placeholder(tf.float64) for v in (a, b, square)]
        feed = {} if known else dict(zip(given, (a, b, square)))
        matrix, rhs, form = given
        nearest = S.cgls(S.create_operator(matrix), rhs, tol=1e-10)
        operator, scaled = S.create_operator(form), S.create_operator(tf.diag(1 / tf.diag_part(form)))
        solved = [
            S.conjugate_gradient(operator, rhs[:4], tol=1e-10),
            S.conjugate_gradient(operator, rhs[:4], preconditioner=S.identity_operator(form), tol=1e-10),
            S.conjugate_gradient(operator, rhs[:4], preconditioner=scaled, x=tf.ones([4], tf.float64), tol=1e-10),
        ]
        stopped = S.conjugate_gradient(operator, rhs[:4], tol=0.0, max_iter=2)
        nearest, solved, stopped = session.run([nearest, solved, stopped], feed)
    np.testing.assert_allclose(nearest.x, np.linalg.lstsq(a, b, rcond=None)[0])
    np.testing.assert_allclose(nearest.r, b - a @ nearest.x)
    for state in solved:
        np.testing.assert_allclose(state.x, np.linalg.solve(square, b[:4]))
        assert 0 < state.i <= 5
    assert solved[0].i == solved[1].i and stopped.i == 2


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("orthogonalize", [True, False])
def test_bidiagonalization(dtype, orthogonalize):
    rng = np.random.RandomState(3)
    a = (rng.randn(6, 5) + (1j * rng.randn(6, 5) if dtype is np.complex128 else 0)).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        operator = S.create_operator(tf.constant(a))
        made = S.lanczos_bidiag(operator, 4, orthogonalize, starting_vector=tf.ones([6], dtype))
        forth, back = S.bidiag_matmul(made.u, made.alpha, made.beta), S.bidiag_matmul(made.v, made.alpha, made.beta, adjoint_b=True)
        made, forth, back = session.run([made, forth, back])
        exhausted = session.run(S.lanczos_bidiag(S.create_operator(tf.eye(3)), 3))
        assert np.isfinite(exhausted.u).all() and exhausted.alpha[0] == pytest.approx(1)
        with pytest.raises(ValueError, match="at least 1"):
            S.lanczos_bidiag(operator, 0)
    np.testing.assert_allclose(a @ made.v, forth, atol=1e-12)
    np.testing.assert_allclose(a.conj().T @ made.u[:, :-1], back, atol=1e-12)
    np.testing.assert_allclose(made.u.conj().T @ made.u, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(made.v.conj().T @ made.v, np.eye(4), atol=1e-9)


def test_its_modules_are_attributes_too():
    assert all(getattr(S, name) is S for name in ("lanczos", "least_squares", "linear_equations", "util"))
    with pytest.raises(NotImplementedError, match="a tensor whose value is not known"):
        S.lanczos.lanczos_bidiag(S.create_operator(tf.eye(3)), tf.placeholder(tf.int32, []))
    assert S.lanczos.lanczos_bidiag(S.create_operator(tf.eye(3)), tf.constant(2)).alpha.get_shape() == [2]


def test_norms():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.constant([[3.0], [-4.0]])
        unit, norm = S.l2normalize(v)
        found = session.run([S.l2norm(v), S.l2norm_squared(v), norm, unit])
    np.testing.assert_allclose(np.concatenate([np.ravel(f) for f in found]), [5, 25, 5, 0.6, -0.8])
