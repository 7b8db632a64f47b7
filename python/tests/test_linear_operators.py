# SPDX-License-Identifier: Apache-2.0
"""tf.linalg.LinearOperator...: products, solutions and hints, against NumPy's matrices."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import linalg_addition, linalg_broadcast

L = tf.linalg
R = np.random.RandomState(3)
A = R.rand(3, 3) + 3 * np.eye(3)
S = A @ A.T


def operators():
    full = L.LinearOperatorFullMatrix(S, is_self_adjoint=True, is_positive_definite=True)
    diag = L.LinearOperatorDiag(np.array([1.0, 2.0, 3.0]))
    scaled = L.LinearOperatorScaledIdentity(3, np.float64(2))
    axis = np.array([1.0, 2.0, 2.0])
    u = R.rand(3, 1)
    lower = L.LinearOperatorLowerTriangular(A)
    circulant = np.fft.ifft([1.0, 2.0, 3.0])
    return [
        (full, S),
        (diag, np.diag([1.0, 2.0, 3.0])),
        (L.LinearOperatorIdentity(3, [2], tf.float64), np.stack([np.eye(3)] * 2)),
        (lower, np.tril(A)),
        (L.LinearOperatorZeros(3, dtype=tf.float64), np.zeros((3, 3))),
        (scaled, 2 * np.eye(3)),
        (L.LinearOperatorToeplitz(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 5.0])), np.array([[1.0, 4, 5], [2, 1, 4], [3, 2, 1]])),
        (L.LinearOperatorCirculant(np.array([1.0, 2.0, 3.0]), tf.complex128), np.array([[circulant[(i - j) % 3] for j in range(3)] for i in range(3)])),
        (L.LinearOperatorHouseholder(axis), np.eye(3) - 2 * np.outer(axis, axis) / 9),
        (L.LinearOperatorLowRankUpdate(diag, u), np.diag([1.0, 2.0, 3.0]) + u @ u.T),
        (L.LinearOperatorComposition([full, diag]), S @ np.diag([1.0, 2.0, 3.0])),
        (L.LinearOperatorBlockDiag([diag, scaled]), np.diag([1.0, 2, 3, 2, 2, 2])),
        (L.LinearOperatorKronecker([diag, scaled]), np.kron(np.diag([1.0, 2.0, 3.0]), 2 * np.eye(3))),
        (lower.adjoint(), np.tril(A).T),
        (lower.inverse(), np.linalg.inv(np.tril(A))),
        (full.cholesky(), np.linalg.cholesky(S)),
        (full.matmul(diag), S @ np.diag([1.0, 2.0, 3.0])),
    ]


def test_what_they_compute():
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, wants = [], []
        for operator, matrix in operators():
            x = R.rand(matrix.shape[-1], 2).astype(matrix.dtype)
            rows = np.swapaxes(matrix, -1, -2).conj()
            pairs = [
                (operator.to_dense(name="d"), matrix),
                (operator.matmul(x, name="m"), matrix @ x),
                (operator.matmul(x.T.conj(), adjoint=True, adjoint_arg=True), rows @ x),
                (operator.matvec(x[:, 0]), matrix @ x[:, 0]),
                (operator.shape_tensor(), matrix.shape),
                (operator.batch_shape_tensor(), matrix.shape[:-2]),
                (operator.range_dimension_tensor(), matrix.shape[-2]),
                (operator.tensor_rank_tensor(), matrix.ndim),
                (operator.diag_part(), np.diagonal(matrix, axis1=-2, axis2=-1)),
                (operator.trace(), np.trace(matrix, axis1=-2, axis2=-1)),
                (operator.add_to_tensor(matrix), 2 * matrix),
                (operator.determinant(), np.linalg.det(matrix)),
            ]
            if operator.is_non_singular is not False:
                pairs.append((operator.solve(x, name="s"), np.linalg.solve(matrix, np.broadcast_to(x, (*matrix.shape[:-2], *x.shape)))))
                pairs.append((operator.solvevec(x[:, 0]), np.linalg.solve(matrix, np.broadcast_to(x[:, :1], (*matrix.shape[:-2], len(x), 1)))[..., 0]))
                pairs.append((operator.log_abs_determinant(), np.log(np.abs(np.linalg.det(matrix)))))
            assert operator.shape.as_list() == list(matrix.shape) and operator.is_square
            fetches.append([p[0] for p in pairs])
            wants.append([p[1] for p in pairs])
        for found, want in zip(session.run(fetches), wants):
            for f, w in zip(found, want):
                np.testing.assert_allclose(f, w, rtol=1e-7, atol=1e-9)


def test_of_complex_numbers_and_of_shapes_known_in_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        axis = np.array([1 + 2j, 3 - 1j, 2j])
        unit = axis / np.linalg.norm(axis)
        reflection = session.run(L.LinearOperatorHouseholder(axis).to_dense())
        np.testing.assert_allclose(reflection, np.eye(3) - 2 * np.outer(unit, unit.conj()), rtol=1e-12)

        col, row, spectrum = (tf.placeholder(tf.float64) for _ in range(3))
        toeplitz = session.run(L.LinearOperatorToeplitz(col, row).to_dense(), {col: [[1.0, 2.0], [3.0, 4.0]], row: [1.0, 9.0]})
        np.testing.assert_array_equal(toeplitz, [[[1, 9], [2, 1]], [[3, 9], [4, 3]]])
        values = R.rand(2, 3, 2)
        dense = session.run(L.LinearOperatorCirculant2D(spectrum, tf.complex128).to_dense(), {spectrum: values})
        x = R.rand(3, 2)
        want = np.fft.ifft2(values * np.fft.fft2(x)).reshape(2, 6)
        np.testing.assert_allclose(dense @ x.reshape(6), want, rtol=1e-12, atol=1e-12)


def test_what_is_said_to_be_positive_definite_is_solved_so():
    with tf.Graph().as_default(), tf.Session() as session:
        x, u = R.rand(3, 2), R.rand(3, 1)
        for operator, matrix in (
            (L.LinearOperatorFullMatrix(S, is_positive_definite=True, is_self_adjoint=True), S),
            (L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(np.array([1.0, 2.0, 3.0]), is_positive_definite=True), u), np.diag([1.0, 2.0, 3.0]) + u @ u.T),
        ):
            for adjoint in (False, True):
                np.testing.assert_allclose(session.run(operator.solve(x.astype(operator.dtype.as_numpy_dtype), adjoint)), np.linalg.solve(matrix, x), rtol=1e-4)
        assert np.isnan(session.run(L.LinearOperatorFullMatrix(-S, is_positive_definite=True, is_self_adjoint=True).solve(x))).all()  # it has no factor


def test_hints():
    with tf.Graph().as_default():
        full = L.LinearOperatorFullMatrix(S, is_positive_definite=True, is_self_adjoint=True)
        assert full.is_non_singular and full.is_square and full.adjoint() is full
        skew = L.LinearOperatorFullMatrix(A, is_positive_definite=True)  # one that is not its own adjoint may be positive definite as well
        assert skew.is_non_singular and skew.is_square and skew.is_self_adjoint is None
        with pytest.raises(ValueError, match="Cholesky"):
            skew.cholesky()
        assert L.LinearOperatorDiag([1.0, 2.0]).is_self_adjoint and L.LinearOperatorDiag([1.0, 2.0]).is_positive_definite is None
        singular = L.LinearOperatorFullMatrix(A, is_non_singular=False)
        with pytest.raises(NotImplementedError, match="singular"):
            singular.solve(A)
        with pytest.raises(ValueError, match="singular"):
            singular.inverse()
        with pytest.raises(ValueError, match="Cholesky"):
            singular.cholesky()
        with pytest.raises(ValueError, match="self-adjoint"):
            L.LinearOperatorCirculant([1.0, 2.0], is_self_adjoint=False)
        for make in (lambda: L.LinearOperatorDiag(1.0), lambda: L.LinearOperatorToeplitz([1.0], 1.0), lambda: L.LinearOperatorCirculant2D([1.0])):
            with pytest.raises(ValueError, match="must have at least"):
                make()
        with pytest.raises(ValueError, match="was square"):
            L.LinearOperatorFullMatrix(A, is_square=False).is_square
        with pytest.raises(TypeError, match="unexpected keyword"):
            L.LinearOperatorDiag([1.0], is_diagonal=True)
        with pytest.raises(ValueError, match="always"):
            L.LinearOperatorIdentity(2, is_square=False)


def test_checks_in_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        good, skew = L.LinearOperatorFullMatrix(S), L.LinearOperatorFullMatrix([[1.0, 2.0], [0.5, 1.0]])
        session.run([good.assert_non_singular(), good.assert_self_adjoint(), good.assert_positive_definite()])
        turned = L.LinearOperatorFullMatrix([[1.0, 5.0], [-5.0, 1.0]])  # x^H A x is that of the identity
        session.run([turned.assert_positive_definite(), L.LinearOperatorDiag([1 + 1j]).assert_positive_definite()])
        unreal, spread = L.LinearOperatorDiag([1j, 0.0]), L.LinearOperatorCirculant([1.0, -2.0, 0.0])
        below = L.LinearOperatorLowerTriangular([[1.0, 0.0], [1.0, 0.0]]), L.LinearOperatorFullMatrix([[1.0, 0.0], [5.0, 1.0]])
        for check, match in (
            (unreal.assert_non_singular, "Singular"),
            (unreal.assert_self_adjoint, "imaginary"),
            (unreal.assert_positive_definite, "non-positive real"),
            (spread.assert_positive_definite, "not positive definite"),
            (spread.assert_non_singular, "Singular"),
            (below[0].assert_non_singular, "Singular"),
            (below[1].assert_positive_definite, "not positive definite"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                session.run(check())
        for check in (skew.assert_non_singular, skew.assert_self_adjoint, L.LinearOperatorFullMatrix([[1.0, 2.0], [2.0, 1.0]]).assert_positive_definite):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(check())


def test_operators_keep_their_form():
    d, e = L.LinearOperatorDiag, L.LinearOperatorScaledIdentity
    with tf.Graph().as_default(), tf.Session() as session:
        diag, positive = d(np.array([1 + 2j, 3.0])), d(np.array([4.0, 9.0]), is_positive_definite=True)
        double = e(2, np.float64(2), is_positive_definite=True)
        lower, one = L.LinearOperatorLowerTriangular(np.array([[2.0, 0.0], [1.0, 4.0]])), L.LinearOperatorIdentity(2, dtype=tf.float64)
        blocks, products = L.LinearOperatorBlockDiag([positive, double]), L.LinearOperatorKronecker([positive, double])
        ring = L.LinearOperatorCirculant(np.array([1j, 2.0, 3.0]), tf.complex128)
        full = L.LinearOperatorFullMatrix(A[:2, :2])
        t = np.array([[2.0, 0.0], [1.0, 4.0]])
        p, dense_ring = np.diag([4.0, 9.0]), session.run(ring.to_dense())
        for made, kind, want in [
            (diag.adjoint(), d, np.diag([1 - 2j, 3.0])),
            (diag.inverse(), d, np.diag([1 / (1 + 2j), 1 / 3])),
            (positive.cholesky(), d, np.diag([2.0, 3.0])),
            (double.inverse(), e, np.eye(2) / 2),
            (double.cholesky(), e, np.eye(2) * 2**0.5),
            (blocks.cholesky(), L.LinearOperatorBlockDiag, np.diag([2, 3, 2**0.5, 2**0.5])),
            (blocks.inverse(), L.LinearOperatorBlockDiag, np.diag([1 / 4, 1 / 9, 1 / 2, 1 / 2])),
            (products.inverse(), L.LinearOperatorKronecker, np.linalg.inv(np.kron(p, 2 * np.eye(2)))),
            (products.cholesky(), L.LinearOperatorKronecker, np.linalg.cholesky(np.kron(p, 2 * np.eye(2)))),
            (ring.inverse(), L.LinearOperatorCirculant, np.linalg.inv(dense_ring)),
            (ring.adjoint(), L.LinearOperatorCirculant, dense_ring.conj().T),
            (ring.matmul(ring), L.LinearOperatorCirculant, dense_ring @ dense_ring),
            (lower.inverse().inverse(), type(lower), t),
            (positive.matmul(positive), d, p @ p),
            (positive.matmul(double), d, 2 * p),
            (double.matmul(positive), d, 2 * p),
            (double.matmul(double), e, 4 * np.eye(2)),
            (positive.matmul(lower), type(lower), p @ t),
            (lower.matmul(positive), type(lower), t @ p),
            (one.matmul(one), type(one), np.eye(2)),
            (one.matmul(lower), type(lower), t),
            (positive.solve(positive), d, np.eye(2)),
            (double.solve(positive), d, p / 2),
            (positive.solve(lower), type(lower), np.linalg.solve(p, t)),
            (full.solve(lower), L.LinearOperatorComposition, np.linalg.solve(A[:2, :2], t)),
            (full.matmul(lower, adjoint=True, adjoint_arg=True), L.LinearOperatorComposition, A[:2, :2].T @ t.T),
        ]:
            assert type(made) is kind
            np.testing.assert_allclose(session.run(made.to_dense()), want, atol=1e-12)
        whole = L.LinearOperatorBlockDiag([lower], is_positive_definite=True, is_self_adjoint=True)  # said of the whole alone
        assert type(whole.cholesky()) is L.LinearOperatorLowerTriangular
        with pytest.raises(ValueError, match="incompatible"):
            positive.matmul(ring)
        with pytest.raises(ValueError, match="not compatible"):
            positive.matmul(np.ones([3, 2]))


def test_refusals():
    two = L.LinearOperatorDiag([1.0, 2.0], is_non_singular=True)
    for error, match, make in (
        (TypeError, "same dtype", lambda: L.LinearOperatorKronecker([two, L.LinearOperatorDiag(np.array([1.0]))])),
        (ValueError, "contradicts", lambda: L.LinearOperatorComposition([two, two], is_non_singular=False)),
        (ValueError, "no inverse", lambda: L.LinearOperatorInversion(L.LinearOperatorFullMatrix(S), is_non_singular=False)),
        (TypeError, "num_rows must be integer", lambda: L.LinearOperatorIdentity(2.5)),
        (TypeError, "num_rows cannot be reference", lambda: L.LinearOperatorIdentity(tf.Variable(2))),
        (ValueError, "num_columns must be non-negative", lambda: L.LinearOperatorZeros(2, -1)),
        (ValueError, "batch_shape must be a 1-D", lambda: L.LinearOperatorZeros(2, batch_shape=3)),
        (tf.errors.InvalidArgumentError, "non-invertible", lambda: L.LinearOperatorZeros(2).assert_non_singular()),
    ):
        with tf.Graph().as_default(), pytest.raises(error, match=match):
            make()
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.placeholder(tf.int32)
        checked = L.LinearOperatorIdentity(size, assert_proper_shapes=True).to_dense()
        for value, match in ((-1, "non-negative"), ([2], "0-D")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                session.run(checked, {size: value})


def test_one_of_your_own():
    class Twice(L.LinearOperator):
        def __init__(self, rows):
            self.scale = tf.Variable(2.0)
            self.rows = rows
            super().__init__(tf.float32, [], is_non_singular=True, name="Twice")

        def _shape(self):
            return tf.TensorShape([self.rows, self.rows])

        def _shape_tensor(self):
            return tf.constant([self.rows, self.rows])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return self.scale * (tf.linalg.adjoint(x) if adjoint_arg else x)

    with tf.Graph().as_default(), tf.Session() as session:
        twice = Twice(3)
        assert twice.variables == (twice.scale,)
        session.run(tf.global_variables_initializer())
        dense, solved, det = session.run([twice.to_dense(), twice.solvevec([2.0, 4.0, 6.0]), twice.determinant()])
        np.testing.assert_array_equal(dense, 2 * np.eye(3))
        np.testing.assert_allclose(solved, [1, 2, 3])
        assert abs(det - 8) < 1e-5


def test_solvers_broadcast_batches():
    rng = np.random.RandomState(1)
    matrix, rhs = rng.rand(3, 1, 2, 2) + 2 * np.eye(2), rng.rand(4, 2, 5)
    want = np.linalg.solve(np.broadcast_to(matrix, (3, 4, 2, 2)), np.broadcast_to(rhs, (3, 4, 2, 5)))
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_allclose(session.run(linalg_broadcast.matrix_solve_with_broadcast(matrix, rhs)), want, rtol=1e-10)
        lower = np.tril(matrix)
        np.testing.assert_allclose(
            session.run(linalg_broadcast.matrix_triangular_solve_with_broadcast(lower, rhs)),
            np.linalg.solve(np.broadcast_to(lower, (3, 4, 2, 2)), rhs),
            rtol=1e-10,
        )
        chol = np.linalg.cholesky(matrix @ np.swapaxes(matrix, -1, -2))
        product = np.broadcast_to(matrix @ np.swapaxes(matrix, -1, -2), (3, 4, 2, 2))
        np.testing.assert_allclose(session.run(linalg_broadcast.cholesky_solve_with_broadcast(chol, rhs)), np.linalg.solve(product, rhs), rtol=1e-9)
        shape = tf.placeholder(tf.float64)
        assert session.run(linalg_broadcast.broadcast_matrix_batch_dims([shape, rhs]), {shape: matrix})[1].shape == (3, 4, 2, 5)
        with pytest.raises(ValueError, match=r"batch_matrices\[1\]"):
            linalg_broadcast.broadcast_matrix_batch_dims([matrix, np.zeros(3)])
        with pytest.raises(ValueError, match="(?i)broadcast"):
            linalg_broadcast.broadcast_matrix_batch_dims([np.ones((3, 2, 2)), np.ones((4, 2, 1))])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(linalg_broadcast.broadcast_matrix_batch_dims([shape, np.ones((4, 2, 1))]), {shape: np.ones((3, 2, 2))})
        assert [str(m.shape) for m in linalg_broadcast.broadcast_matrix_batch_dims([np.ones((3, 1, 2, 2)), np.ones((4, 2, 1))])] == [
            "(3, 4, 2, 2)",
            "(3, 4, 2, 1)",
        ]


def test_functions_of_matrices_take_operators():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    operator = tf.linalg.LinearOperatorFullMatrix(matrix, is_self_adjoint=True, is_positive_definite=True)
    x = np.random.RandomState(0).rand(3, 2, 2)
    with tf.Session() as session:
        for ours, theirs in (
            (tf.matmul(operator, x, adjoint_b=True), np.matmul(matrix, x.swapaxes(1, 2))),
            (tf.linalg.matmul(x, operator, adjoint_a=True), np.matmul(x.swapaxes(1, 2), matrix)),
            (tf.linalg.solve(operator, x), np.linalg.solve(matrix, x)),
            (tf.trace(operator), 3.0),
            (tf.linalg.diag_part(operator), [2.0, 1.0]),
            (tf.linalg.det(operator), 1.75),
            (tf.linalg.logdet(operator), np.log(1.75)),
            (tf.linalg.inv(operator).to_dense(), np.linalg.inv(matrix)),
            (tf.linalg.cholesky(operator).to_dense(), np.linalg.cholesky(matrix)),
        ):
            np.testing.assert_allclose(session.run(ours), theirs, rtol=1e-12)
    assert isinstance(tf.matmul(operator, operator), tf.linalg.LinearOperator) and tf.linalg.adjoint(operator) is operator
    with pytest.raises(ValueError, match="adjoint"):
        tf.matmul(operator, x, transpose_a=True)


def test_variables_of_operators():
    diagonal = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(diagonal)
    assert operator.variables == (diagonal,) and tf.matmul(operator, operator).variables == ()
    assert tf.linalg.LinearOperatorKronecker([operator, operator]).variables == (diagonal,)
    assert tf.gradients(operator.to_dense(), operator.trainable_variables)[0] is not None


def test_rectangles_are_refused():
    wide = tf.linalg.LinearOperatorFullMatrix(np.ones([2, 3]))
    with pytest.raises(ValueError, match="square matrices"):
        tf.linalg.LinearOperatorBlockDiag([wide])
    with pytest.raises(NotImplementedError, match="not be square"):
        wide.determinant()


def test_pseudo_inverses_by_limits_of_each_matrix():
    matrices, limits = np.random.RandomState(0).rand(2, 3, 2), [0.0, 0.9]
    with tf.Session() as session:
        np.testing.assert_allclose(
            session.run(tf.linalg.pinv(matrices, rcond=limits)), [np.linalg.pinv(m, rcond=r) for m, r in zip(matrices, limits)], rtol=1e-9
        )


def test_sums_keep_their_form():
    eye, scaled = L.LinearOperatorIdentity(2, [3]), L.LinearOperatorScaledIdentity(2, [2.0, 3, 4])
    diag, tril = L.LinearOperatorDiag([1.0, 2], is_positive_definite=True, name="D"), L.LinearOperatorLowerTriangular([[5.0, 0], [6, 7]])
    full = L.LinearOperatorFullMatrix([[1.0, 2], [3, 4]])
    add_operators = tf.contrib.linalg.add_operators
    with tf.Session() as session:
        for more, kind in (([], type(scaled)), ([diag], type(diag)), ([tril], type(tril)), ([tril, full, diag], type(full))):
            (made,) = add_operators([eye, scaled, *more])
            assert type(made) is kind and made.is_positive_definite is None
            parts = session.run([one.to_dense() for one in (made, eye, scaled, *more)])
            np.testing.assert_allclose(parts[0], sum(parts[1:]))
    (made,) = add_operators([diag, L.LinearOperatorDiag([3.0, 4], is_positive_definite=True, name="E")])
    assert made.name == "Add/E__D/" and made.is_positive_definite and made.is_non_singular and made.is_self_adjoint
    assert [type(one) for one in add_operators([diag, tril, diag], addition_tiers=[[linalg_addition._AddAndReturnDiag()]])] == [type(tril), type(diag)]
    assert not isinstance(diag, L.LinearOperatorLowerTriangular) and not isinstance(eye, L.LinearOperatorLowerTriangular)
    assert add_operators([full]) == [full] and add_operators([full, diag], operator_name="sum")[0].name == "sum"
    for wrong, kind, text in (
        ([], ValueError, "at least one"),
        ([1], TypeError, "only LinearOperator"),
        ([eye, L.LinearOperatorIdentity(3)], ValueError, "same domain"),
    ):
        with pytest.raises(kind, match=text):
            add_operators(wrong)


@pytest.mark.parametrize("said", [False, True])
def test_updates_that_are_said_to_be_positive_definite_and_are_not(said):
    """Values of 1.15, which looks at the parts."""
    random = np.random.RandomState(0)
    diagonal, u, update = random.randn(3), random.randn(3, 2), np.array([0.5, -2.0])
    hints = {"is_non_singular": True, "is_self_adjoint": True, "is_positive_definite": True} if said else {}
    with tf.Graph().as_default(), tf.Session() as session:
        operator = tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(diagonal, is_non_singular=True), u, update, **hints)
        got = session.run([operator.log_abs_determinant(), tf.reduce_sum(operator.solve(np.ones([3, 1])))])
        np.testing.assert_allclose(got, [2.9320928924365415, 0.8649802915884965])
        positive = tf.linalg.LinearOperatorDiag(np.abs(diagonal), is_positive_definite=True)
        assert tf.linalg.LinearOperatorLowRankUpdate(positive, u)._use_cholesky and not operator._use_cholesky


@pytest.mark.parametrize("of_matrix, of_sides", [((), (4, 5)), ((5,), (4, 5)), ((5,), (4, 1)), ((4, 5), (5,)), ((), ()), ((2,), (0, 2))])
def test_dimensions_that_right_sides_have_alone_become_columns(of_matrix, of_sides):
    random = np.random.RandomState(0)
    matrix, sides = np.tril(random.rand(*of_matrix, 3, 3)) + np.eye(3), random.rand(*of_sides, 3, 2)
    square = matrix @ np.swapaxes(matrix, -1, -2)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        for hide in (False, True):
            x = tf.placeholder_with_default(sides, [None] * sides.ndim) if hide else tf.constant(sides)
            made = {
                "lower": tf.linalg.LinearOperatorLowerTriangular(matrix).solve(x),
                "full": tf.linalg.LinearOperatorFullMatrix(matrix).solve(x),
                "positive": tf.linalg.LinearOperatorFullMatrix(square, is_positive_definite=True, is_self_adjoint=True).solve(x),
            }
            wanted = {"lower": np.linalg.solve(matrix, sides), "full": np.linalg.solve(matrix, sides), "positive": np.linalg.solve(square, sides)}
            got = session.run(made)
            for key, value in wanted.items():
                np.testing.assert_allclose(got[key], value, rtol=1e-7, err_msg=key)
                assert hide or made[key].shape == value.shape
        if not of_matrix:
            assert [op.inputs[0].shape.ndims for op in graph.get_operations() if op.type == "MatrixTriangularSolve"][0] == 2
