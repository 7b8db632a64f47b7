# SPDX-License-Identifier: Apache-2.0
"""Positive definite operators of tf.contrib.distributions of early 1.x. Values are NumPy's."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib.operator_pd import OperatorPDBase, extract_batch_shape, flip_matrix_to_vector, flip_vector_to_matrix
from millrace.contrib.operator_pd_classes import OperatorPDCholesky, OperatorPDDiag, OperatorPDFull, OperatorPDIdentity, OperatorPDSqrtDiag
from millrace.contrib.operator_pd_update import OperatorPDSqrtVDVTUpdate

RANDOM = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def cases(batch):
    """(operator, S) of each class."""
    k = 4
    lower = np.tril(RANDOM.rand(*batch, k, k) + 0.5)
    full = lower @ np.swapaxes(lower, -1, -2)
    diag = RANDOM.rand(*batch, k) + 0.1
    eye = np.eye(k)
    v, d = RANDOM.randn(*batch, k, 2), RANDOM.rand(*batch, 2) + 0.1
    return {
        "cholesky": (OperatorPDCholesky(lower), lower),
        "full": (OperatorPDFull(full), lower),
        "diag": (OperatorPDDiag(diag), np.sqrt(diag)[..., None] * eye),
        "sqrt_diag": (OperatorPDSqrtDiag(diag), diag[..., None] * eye),
        "identity": (OperatorPDIdentity([*batch, k, k], tf.float64, scale=2.0), np.sqrt(2) * np.broadcast_to(eye, [*batch, k, k])),
        "update": (OperatorPDSqrtVDVTUpdate(OperatorPDFull(full), v, d), full + (v * d[..., None, :]) @ np.swapaxes(v, -1, -2)),
        "update_without_diag": (OperatorPDSqrtVDVTUpdate(OperatorPDFull(full), v), full + v @ np.swapaxes(v, -1, -2)),
    }


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("kind", ["cholesky", "full", "diag", "sqrt_diag", "identity", "update", "update_without_diag"])
def test_what_operators_compute(kind, batch):
    operator, root = cases(batch)[kind]
    a = root @ np.swapaxes(root, -1, -2)
    x = RANDOM.randn(*batch, 4, 5)
    vectors = RANDOM.randn(3, *batch, 4)
    wanted = {
        operator.to_dense(): a,
        operator.sqrt_to_dense(): root,
        operator.det(): np.linalg.det(a),
        operator.log_det(): np.log(np.linalg.det(a)),
        operator.sqrt_log_det(): np.log(np.linalg.det(a)) / 2,
        operator.sqrt_log_abs_det(): np.log(np.linalg.det(a)) / 2,
        operator.matmul(x): a @ x,
        operator.matmul(np.swapaxes(x, -1, -2), transpose_x=True): a @ x,
        operator.sqrt_matmul(x): root @ x,
        operator.sqrt_matmul(np.swapaxes(x, -1, -2), transpose_x=True): root @ x,
        operator.solve(x): np.linalg.solve(a, x),
        operator.sqrt_solve(x): np.linalg.solve(root, x),
        operator.add_to_tensor(np.ones_like(a)): a + 1,
        operator.inv_quadratic_form_on_vectors(vectors): np.einsum("...i,...ij,...j->...", vectors, np.linalg.inv(a), vectors),
    }
    with tf.Session() as sess:
        for got, value in zip(sess.run(list(wanted)), wanted.values()):
            np.testing.assert_allclose(got, value, rtol=1e-7, atol=1e-7)
        shapes = sess.run([operator.shape(), operator.batch_shape(), operator.vector_shape(), operator.rank(), operator.vector_space_dimension()])
    assert [list(np.ravel(s)) for s in shapes] == [[*batch, 4, 4], list(batch), [*batch, 4], [len(batch) + 2], [4]]
    for tensor, value in wanted.items():
        assert tensor.get_shape().as_list() == list(value.shape)


def test_shapes_of_vectors_and_matrices():
    mat, x = RANDOM.rand(2, 3, 4, 6), RANDOM.rand(3, 4, 5, 6)
    with tf.Session() as sess:
        vec = sess.run(flip_matrix_to_vector(mat, [6, 2, 3], tf.TensorShape(None)))
        back = sess.run(flip_vector_to_matrix(x, [4, 5], tf.TensorShape([4, 5])))
        assert list(sess.run(extract_batch_shape(mat, 2))) == [2, 3]
    np.testing.assert_array_equal(vec, np.moveaxis(mat, -1, 0))
    np.testing.assert_array_equal(back, np.moveaxis(x, 0, -1))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: OperatorPDCholesky([[1.0, 0.0], [2.0, 0.0]]), "x > 0"),
        (lambda: OperatorPDCholesky([[1.0], [2.0]]), "x == y"),
        (lambda: OperatorPDFull([[2.0, 0.1], [0.0, 2.0]]), "x == y"),
        (lambda: OperatorPDSqrtDiag([1.0, 0.0]), "must be positive"),
        (lambda: OperatorPDSqrtVDVTUpdate(OperatorPDDiag([1.0, 1.0]), [[1.0], [1.0]], [0.0]), "must be positive"),
        (lambda: OperatorPDSqrtVDVTUpdate(OperatorPDDiag([1.0, 1.0]), tf.placeholder_with_default([[1.0], [1.0]], None), [1.0, 1.0]), "diag and v"),
    ],
)
def test_matrices_that_are_not_positive_definite(make, message):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        sess.run(make().to_dense())


def test_they_may_be_taken_on_trust():
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(OperatorPDSqrtDiag([1.0, 0.0], verify_pd=False).to_dense()), [[1, 0], [0, 0]])


def test_arguments_that_do_not_fit():
    identity, plain = OperatorPDIdentity([2, 3, 3], tf.float32), OperatorPDDiag(np.ones([4, 3]))
    with pytest.raises(TypeError, match="dtype"):
        identity.matmul(np.ones([2, 3, 5]))
    with pytest.raises(ValueError, match="tensor rank"):
        identity.solve(np.ones([1, 2, 3, 5], "f"))
    with pytest.raises(ValueError, match="Incompatible"):
        identity.sqrt_solve(np.ones([2, 4, 5], "f"))
    with pytest.raises(TypeError, match="not instance"):
        OperatorPDSqrtVDVTUpdate("matrix", np.ones([3, 2]))
    for diag, message in [(np.ones([4, 1]), "diag.*v.*last dimension"), (np.ones([5, 2]), "diag.*batch shape"), (np.ones([2]), "diag.*rank")]:
        with pytest.raises(ValueError, match=message):
            OperatorPDSqrtVDVTUpdate(plain, np.ones([4, 3, 2]), diag)


def test_a_class_of_ones_own():
    class Twice(OperatorPDBase):
        name, verify_pd, dtype, inputs = "Twice", True, tf.float32, []

        def get_shape(self):
            return tf.TensorShape([2, 2])

        def _shape(self):
            return tf.constant([2, 2])

        def _batch_solve(self, rhs):
            return rhs / 2

        def _inv_quadratic_form_on_vectors(self, x):
            return self._iqfov_via_solve(x)

    with tf.Session() as sess:
        assert list(sess.run(Twice().inv_quadratic_form_on_vectors([[1.0, 1.0], [2.0, 0.0]]))) == [1, 2]
    with pytest.raises(NotImplementedError, match="matmul"):
        Twice().matmul([[1.0]])
