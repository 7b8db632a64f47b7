# SPDX-License-Identifier: Apache-2.0
"""Mixtures of affine maps of numbers, and the parts of shapes of samples."""

import numpy as np
import pytest

import millrace as tf
from millrace.distributions.sample_shape import DistributionShape

distributions = tf.contrib.distributions


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def scales(kind):
    if kind == "diagonal":
        first = tf.linalg.LinearOperatorScaledIdentity(2, np.float64(1.1), is_positive_definite=True)
        return [first, tf.linalg.LinearOperatorDiag(np.array([2.0, 3.0]), is_positive_definite=True)]
    first = tf.linalg.LinearOperatorIdentity(2, dtype=tf.float64, is_positive_definite=True)
    return [first, tf.linalg.LinearOperatorLowerTriangular(np.array([[1.0, 0.0], [0.5, 2.0]]), is_positive_definite=True, is_non_singular=True)]


@pytest.mark.parametrize(
    "kind, log_prob, mean, variance, covariances, sample",
    [  # what TensorFlow 1.15 gives
        (
            "diagonal",
            [-4.241127, -4.407291],
            [[2.55, 1.55], [1.91968, 1.354383]],
            [[5.559851, 9.590257], [4.229726, 6.119128]],
            [0.039338, 0.026127],
            [1.843494530105843, -5.62283420226387],
        ),
        (
            "triangle",
            [-3.674415, -4.332748],
            [[2.0, 1.25], [1.565296, 1.141324]],
            [[2.310289, 5.249283], [2.290041, 3.777263]],
            [0.577572, 0.327989],
            [1.6325385404595938, -4.057052822099356],
        ),
    ],
)
def test_maps_between_two(session, kind, log_prob, mean, variance, covariances, sample):
    base = distributions.Normal(np.float64(1.0), np.float64(1.5))
    made = distributions.VectorDiffeomixture(
        [[0.0], [1.0]], np.array([1.0]), base, [None, np.array([2.0, -1.0])], scales(kind), quadrature_size=4, validate_args=True
    )
    assert made.batch_shape == [2] and made.event_shape == [2] and len(made.interpolated_affine) == 4
    x = np.array([[0.3, 1.0], [2.0, -2.0]])
    got = session.run([made.log_prob(x), made.mean(), made.variance(), made.covariance(), made.sample(3, seed=5)])
    for value, wanted in zip(got, (log_prob, mean, variance)):
        np.testing.assert_allclose(value, wanted, atol=2e-6)
    np.testing.assert_allclose(got[3][:, 0, 1], covariances, atol=2e-6)
    np.testing.assert_allclose(np.diagonal(got[3], axis1=-2, axis2=-1), variance, atol=2e-6)
    assert got[4].shape == (3, 2, 2)
    np.testing.assert_allclose(got[4][0, 0], sample)


def test_points_of_softmaxes_of_normal_variables(session):
    grid, weights = session.run(distributions.quadrature_scheme_softmaxnormal_gauss_hermite(np.array([0.5]), np.array([1.0]), 3))
    np.testing.assert_allclose(grid.sum(0), 1.0)
    np.testing.assert_allclose(grid[0], 1 / (1 + np.exp(-0.5 - np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0]))))
    np.testing.assert_allclose(weights, [1 / 6, 2 / 3, 1 / 6])
    with pytest.raises(NotImplementedError, match="only bimixtures"):
        distributions.quadrature_scheme_softmaxnormal_quantiles(np.zeros(2), np.ones(2), 3)
    with pytest.raises(ValueError, match="num_component >= 2"):
        distributions.VectorDiffeomixture([0.0], [1.0], distributions.Normal(0.0, 1.0), scale=[])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("batch, event", [(0, 0), (0, 1), (1, 0), (1, 2)])
def test_parts_of_shapes_of_samples(session, known, batch, event):
    x = np.arange(24.0).reshape(4, 1, 2, 3)
    if known:
        given, ranks, feed = x, (batch, event), {}
    else:
        given, *ranks = tf.placeholder(tf.float64), tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
        feed = dict(zip((given, *ranks), (x, batch, event)))
    shaper = DistributionShape(*ranks, validate_args=True)
    matrices, draws = shaper.make_batch_of_event_sample_matrices(given)
    back = shaper.undo_make_batch_of_event_sample_matrices(matrices, draws)
    got, shapes, dims, undone = session.run([matrices, shaper.get_shape(given), shaper.get_dims(given), back], feed)
    n = 4 - batch - event
    assert [s.tolist() for s in shapes] == [[4, 1, 2, 3][:n], [4, 1, 2, 3][n : n + batch], [4, 1, 2, 3][n + batch :]]
    assert [d.tolist() for d in dims] == [list(range(n)), list(range(n, n + batch)), list(range(n + batch, 4))]
    wanted = np.moveaxis(x.reshape(-1, *x.shape[n:]), 0, -1)
    wanted = wanted if event else np.expand_dims(wanted, -2)
    np.testing.assert_array_equal(got, wanted if batch else wanted[np.newaxis])
    np.testing.assert_array_equal(undone, x)
    with pytest.raises(ValueError, match=r"expected batch_ndims\(1\) \+ event_ndims\(1\) <= ndims\(1\)"):
        DistributionShape(1, 1).get_shape(np.zeros(1))
