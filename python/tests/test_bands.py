# SPDX-License-Identifier: Apache-2.0
"""Bands of matrices and functions of matrices under their public names."""

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_diagonals(session):
    x = np.arange(12.0).reshape(3, 4)
    assert session.run(tf.matrix_diag_part(x, k=1)).tolist() == [1, 6, 11]
    assert session.run(tf.linalg.diag_part(x, k=(-1, 0), padding_value=-9)).tolist() == [[0, 5, 10], [4, 9, -9]]
    assert session.run(tf.linalg.diag([1.0, 2.0], k=1)).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    wide = np.arange(1.0, 13.0).reshape(4, 3)  # of which diagonal 3 is outside of three columns
    assert session.run(tf.linalg.diag(wide, k=(0, 3), num_rows=3)).tolist() == [[10, 7, 4], [0, 11, 8], [0, 0, 12]]
    assert session.run(tf.linalg.diag(wide, k=(-3, 0), num_cols=3)).tolist() == [[1, 0, 0], [4, 2, 0], [7, 5, 3]]
    assert session.run(tf.matrix_diag([1, 2], num_rows=2, num_cols=3, padding_value=7)).tolist() == [[1, 7, 7], [7, 2, 7]]
    assert session.run(tf.linalg.set_diag(x, [-1.0, -2.0], k=-1))[[1, 2], [0, 1]].tolist() == [-1, -2]
    assert session.run(tf.matrix_diag([True], k=1)).tolist() == [[False, True], [False, False]]
    assert session.run(tf.matrix_diag_part([[True, False], [True, True]], k=-1)).tolist() == [True]
    assert tf.matrix_diag([1.0]).op.type == "MatrixDiag" and tf.matrix_diag_part(x).op.type == "MatrixDiagPart"


def test_functions(session):
    a = np.float64([[2, 1], [0.5, 3]])
    assert np.allclose(session.run(tf.linalg.logm(tf.linalg.expm(a.astype(np.complex128)))), a)
    root = session.run(tf.linalg.sqrtm(a))
    assert np.allclose(root @ root, a) and np.allclose(root, session.run(tf.matrix_square_root(a)))
    assert np.isnan(session.run(tf.linalg.sqrtm([[-1.0]]))).all()
    assert np.isnan(session.run(tf.linalg.expm([[np.inf, 0], [0, 1]]))).all()
    assert np.allclose(session.run(tf.linalg.expm([[0.0, 700.0], [0, 0]])), [[1, 700], [0, 1]])
    assert np.allclose(session.run(tf.math.cumulative_logsumexp([0.0, 1.0, 2.0])), np.logaddexp.accumulate([0, 1, 2.0]))
    assert np.allclose(session.run(tf.sparse_matmul([[1.0, 2]], [[3.0, 4]], transpose_b=True, a_is_sparse=True)), [[11]])


@pytest.mark.parametrize("pivoting", [True, False])
def test_three_diagonals(session, pivoting):
    a = np.array([[4.0, 1, 0], [2, 5, -1], [0, 3, 6]])
    upper, main, lower = np.append(np.diag(a, 1), 0), np.diag(a), np.append(0, np.diag(a, -1))
    b = np.arange(6.0).reshape(3, 2)
    for diagonals, form in ((a, "matrix"), ([upper, main, lower], "compact"), ([upper, main, lower], "sequence")):
        assert np.allclose(session.run(tf.linalg.tridiagonal_matmul(diagonals, b, form)), a @ b)
        assert np.allclose(session.run(tf.linalg.tridiagonal_solve(diagonals, b, form, partial_pivoting=pivoting)), np.linalg.solve(a, b))
        assert np.allclose(session.run(tf.linalg.tridiagonal_solve(diagonals, b[:, 0], form)), np.linalg.solve(a, b[:, 0]))
        turned = tf.linalg.tridiagonal_solve(diagonals, b.T, form, transpose_rhs=True, partial_pivoting=pivoting)
        assert np.allclose(session.run(turned), np.linalg.solve(a, b).T)
    assert np.allclose(session.run(tf.linalg.tridiagonal_solve([upper[:-1], main, lower[1:]], b, "sequence")), np.linalg.solve(a, b))
    assert session.run(tf.linalg.tridiagonal_solve([[4.0]], [[2.0]], "matrix")).tolist() == [[0.5]]
    for wrong, form in ((np.ones((4, 3)), "compact"), (np.ones((2, 3)), "matrix"), ([upper[:1], main, lower], "sequence"), (np.ones((5, 3, 3)), "compact")):
        with pytest.raises(ValueError):
            tf.linalg.tridiagonal_solve(wrong, b, form)
    assert np.isnan(session.run(tf.linalg.tridiagonal_solve(np.zeros((3, 2)), np.ones((2, 1)), partial_pivoting=pivoting))).all()
