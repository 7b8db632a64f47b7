# SPDX-License-Identifier: Apache-2.0
"""First centres of clusters and the nearest ones of points, beside NumPy."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


@pytest.mark.parametrize(
    "points, centers, dims, k", [(1, 1, 1, 1), (70, 5, 3, 2), (3, 2500, 7, 4), (130, 1030, 1, 1030), (4, 6, 0, 3), (5, 3, 2, 9), (5, 0, 2, 1)]
)
def test_nearest_centers(points, centers, dims, k):
    random = np.random.RandomState(0)
    p, c = random.randint(-9, 9, (points, dims)).astype("f"), random.randint(-9, 9, (centers, dims)).astype("f")
    squares = ((p[:, None].astype(float) - c[None]) ** 2).sum(-1)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]  # of centers as near, the first
    indices, distances = gen_ops.nearest_neighbors(p, c, k)
    assert indices.shape.as_list() == [points, min(k, centers)]
    have, far = _run([indices, distances])
    np.testing.assert_array_equal(have, order)
    np.testing.assert_allclose(far, np.take_along_axis(squares, order, 1), atol=1e-3)


def test_centers_that_are_no_numbers_are_the_furthest():
    centers = np.float32([[np.nan, 0], [1, 1], [np.nan, 1], [0, 0]])
    indices, distances = _run(gen_ops.nearest_neighbors(np.float32([[0, 0]]), centers, 4))
    assert indices.tolist() == [[3, 1, 0, 2]] and np.isnan(distances[0]).tolist() == [False, False, True, True]


POINTS = np.float32([[100, 0], [101, 2], [102, 0], [100, 1], [100, 2], [101, 0], [101, 0], [101, 1], [102, 0], [-1, -1]])
# What TensorFlow 1.15.5 chooses of these.
OF_TENSORFLOW = {
    (0, 0): [[-1, -1], [101, 0], [100, 0], [100, 2]],
    (1, 0): [[102, 0], [-1, -1], [101, 2], [100, 0]],
    (7, 2): [[100, 1], [-1, -1], [102, 0], [101, 0]],
    (12, -1): [[101, 0], [-1, -1], [100, 2], [100, 0]],
    (2**40, 1): [[101, 0], [-1, -1], [100, 2], [101, 1]],
}


@pytest.mark.parametrize("seed, retries", sorted(OF_TENSORFLOW))
def test_first_centers_of_tensorflow(seed, retries):
    assert _run(gen_ops.kmeans_plus_plus_initialization(POINTS, 4, seed, retries)).tolist() == OF_TENSORFLOW[seed, retries]


@pytest.mark.parametrize("points", [np.zeros((6, 2), "f"), np.full((6, 2), np.nan, "f"), np.full((6, 2), 1e30, "f"), np.zeros((6, 0), "f")])
def test_each_point_is_chosen_once_whatever_the_distances_are(points):
    made = _run(gen_ops.kmeans_plus_plus_initialization(points, 6, 3, 2))
    np.testing.assert_array_equal(made, points)


def test_chains():
    random = np.random.RandomState(1)
    distances = random.rand(500).astype("f")
    distances[7] = 1e9
    made = _run([gen_ops.kmc2_chain_initialization(distances[:n], seed) for n, seed in ((1, 5), (8, 5), (500, 5))])
    assert made == [0, 7, 7]
    ends = _run([gen_ops.kmc2_chain_initialization(np.float32([1, 1, 0, 3]), s) for s in range(300)])
    assert ends.count(2) == 0 and 200 < ends.count(3) <= 300 and _run(gen_ops.kmc2_chain_initialization(np.zeros(9, "f"), 4)) == 0


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda f: gen_ops.nearest_neighbors(f([1.0]), f([[1.0]]), 1), "points should be a matrix"),
        (lambda f: gen_ops.nearest_neighbors(f([[1.0]]), f([[1.0, 2.0]]), 1), "1 vs 2"),
        (lambda f: gen_ops.nearest_neighbors(f([[1.0]]), f([[1.0]]), f(np.int64(-1))), "k >= 0"),
        (lambda f: gen_ops.nearest_neighbors(f(np.zeros((0, 1), "f")), f([[1.0]]), 1), r"rows\(\) > 0"),
        (lambda f: gen_ops.kmeans_plus_plus_initialization(f([[1.0]]), f(np.int64(2)), 1, 1), "2 vs 1"),
        (lambda f: gen_ops.kmeans_plus_plus_initialization(f([[1.0]]), f(np.int64(0)), 1, 1), "num_to_sample > 0"),
        (lambda f: gen_ops.kmeans_plus_plus_initialization(f([1.0]), 1, 1, 1), "should be a matrix"),
        (lambda f: gen_ops.kmc2_chain_initialization(f(np.zeros(0, "f")), 1), "> 0"),
        (lambda f: gen_ops.kmc2_chain_initialization(f([[1.0]]), 1), "should be a vector"),
    ],
)
def test_refusals(make, text):
    """Of values whose shapes only a step tells."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _run(make(lambda value: tf.placeholder_with_default(value, None)))


@pytest.mark.parametrize("start", ["random", "kmeans_plus_plus", "kmc2"])
@pytest.mark.parametrize("metric", ["squared_euclidean", "cosine"])
def test_clusters_from_every_start(start, metric):
    random = np.random.RandomState(0)
    data = np.concatenate([random.randn(30, 2) * 0.1 + at for at in ([5, 0], [0, 5], [-5, -5])]).astype("f")
    kmeans = tf.contrib.factorization.KMeans(data, 3, start, metric, random_seed=6, kmeans_plus_plus_num_retries=-1, kmc2_chain_length=50)
    _scores, (nearest,), (distance,), ready, init, train = kmeans.training_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(init)
        assert session.run(ready)
        for _ in range(20):
            session.run(train)
        groups = session.run(nearest).reshape(3, 30)
        assert start == "random" or [len(set(g)) for g in groups.tolist()] == [1, 1, 1] and len(set(groups[:, 0])) == 3
        assert (session.run(distance) >= 0).all()
