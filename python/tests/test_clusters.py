# SPDX-License-Identifier: Apache-2.0
"""Estimators of clusters: centres, and mixtures of normal distributions against NumPy."""

import numpy as np
import pytest

import millrace as tf

F = tf.contrib.factorization
RNG = np.random.RandomState(2)
CENTRES = np.float32([[0, 0], [6, 6], [-6, 6]])
ROWS = np.concatenate([c + RNG.randn(40, 2) for c in CENTRES]).astype(np.float32)


def rows():
    return tf.constant(ROWS), None


@pytest.mark.parametrize("whole", [False, True])
def test_centres(tmp_path, whole):
    made = F.KMeansClustering(3, str(tmp_path), "kmeans_plus_plus", use_mini_batch=not whole, random_seed=3)
    made.train(rows, steps=10)
    centres = made.cluster_centers()
    wanted = ROWS.reshape(3, 40, 2).mean(1)
    order = [np.argmin(((centres - w) ** 2).sum(1)) for w in wanted]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(centres[order], wanted, atol=0.3 if not whole else 1e-3)
    given = tf.estimator.inputs.numpy_input_fn({"b": ROWS[:, 1:], "a": ROWS[:, :1]}, num_epochs=1, shuffle=False)  # by name
    assert [order.index(i) for i in made.predict_cluster_index(given)] == [0] * 40 + [1] * 40 + [2] * 40
    apart = ((ROWS[:, None] - centres) ** 2).sum(2)
    np.testing.assert_allclose(np.array(list(made.transform(given))), apart, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(made.score(rows), apart.min(1).sum(), rtol=1e-4)


def test_the_estimator_as_1_15_has_it(tmp_path):
    made = tf.estimator.experimental.KMeans(3, str(tmp_path), ROWS.reshape(3, 40, 2)[:, 0], seed=3, use_mini_batch=False)
    made.train(rows, steps=5)
    np.testing.assert_allclose(made.cluster_centers(), ROWS.reshape(3, 40, 2).mean(1), atol=1e-3)
    assert isinstance(made, F.KMeansClustering)


@pytest.mark.parametrize("metric", [F.SQUARED_EUCLIDEAN_DISTANCE, F.COSINE_DISTANCE])
@pytest.mark.parametrize("mini_batch", [False, True])
def test_a_step_moves_centres_as_in_tensorflow(metric, mini_batch):
    start = np.float32([[2, 0.1], [50, -60]])
    with tf.Graph().as_default(), tf.Session() as session:
        *_, init_op, train_op = F.KMeans(tf.constant(ROWS), 2, tf.constant(start), metric, mini_batch).training_graph()
        clusters = tf.global_variables()[0]
        session.run(tf.global_variables_initializer())
        session.run(init_op)
        first = session.run(clusters)
        session.run(train_op)
        got = session.run(clusters)

    def unit(v):
        return v / np.sqrt((v**2).sum(1, keepdims=True))

    cosine = metric == F.COSINE_DISTANCE
    rows, want = (unit(ROWS), unit(start)) if cosine else (ROWS, start)
    np.testing.assert_allclose(first, want, rtol=1e-6)
    apart = 1 - rows @ want.T if cosine else ((rows[:, None] - want) ** 2).sum(2)
    members = np.eye(2)[apart.argmin(1)]
    if mini_batch:  # a centre counts as one row
        want = (want + members.T @ rows) / (1 + members.sum(0))[:, None]
    else:
        want = members.T @ rows / (members.sum(0) + 1e-6)[:, None]
        want = unit(want) if cosine else want
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_more_clusters_than_rows_are_refused():
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="5 clusters need as many rows; the first batch has 3"):
            F.KMeans(tf.constant(ROWS[:3]), 5).training_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        *_, init_op, _ = F.KMeans(tf.placeholder_with_default(ROWS[:3], [None, 2]), 5).training_graph()
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="5 clusters need as many rows; the first batch has"):
            session.run(init_op)


def test_training_ends_when_little_changes(tmp_path):
    made = F.KMeansClustering(3, str(tmp_path), CENTRES, use_mini_batch=False, relative_tolerance=1e-4)
    made.train(rows, max_steps=50)
    assert made.get_variable_value("global_step") < 10
    with pytest.raises(ValueError, match="Unsupported distance metric"):
        F.KMeansClustering(3, distance_metric="other")


def stepped(x, means, covs, alpha, full):
    """One step of expectation and maximization in doubles."""
    logs = np.empty([len(x), len(means)])
    for k, (mean, cov) in enumerate(zip(means, covs)):
        cov = cov + 1e-3 * np.eye(2) if full else np.diag(cov + 1e-3)
        away = x - mean
        logs[:, k] = np.log(alpha[k]) - 0.5 * (np.einsum("ni,ij,nj->n", away, np.linalg.inv(cov), away) + np.log(np.linalg.det(2 * np.pi * cov)))
    density = np.log(np.exp(logs).sum(1))
    share = np.exp(logs - density[:, None])
    count = share.sum(0)
    means = share.T @ x / count[:, None]
    covs = [(x.T * share[:, k]) @ x / count[k] - np.outer(m, m) + 1e-3 * np.eye(2) for k, m in enumerate(means)]
    return density, means, np.array([c if full else np.diag(c) for c in covs]), count / len(x)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_steps_of_mixtures(kind):
    with tf.Graph().as_default(), tf.Session() as session:
        tool = F.GmmAlgorithm([tf.constant(ROWS[:50]), tf.constant(ROWS[50:])], 3, tf.constant(CENTRES + 1), covariance_type=kind)
        session.run(tf.global_variables_initializer())
        session.run(tool.init_ops())
        state = [CENTRES + 1.0, session.run(tool.covariances()).astype(float), np.ones(3) / 3]
        for _ in range(4):
            density, *state = stepped(ROWS.astype(float), *state, kind == "full")
            np.testing.assert_allclose(session.run(tool.scores())[:, 0], density, rtol=1e-3)
            session.run(tool.training_ops())
        for got, want in zip(session.run([tool.clusters(), tool.covariances(), tool.alphas()]), state):
            np.testing.assert_allclose(np.squeeze(got), want, rtol=2e-2, atol=2e-2)
        assert np.concatenate(session.run(tool.assignments())).tolist() == [0] * 40 + [1] * 40 + [2] * 40
        session.run(tool.init_ops())  # which does nothing then
        np.testing.assert_allclose(np.squeeze(session.run(tool.clusters())), state[0], rtol=2e-2, atol=2e-2)


def test_only_some_parameters_change():
    with tf.Graph().as_default(), tf.Session() as session:
        tool = F.GmmAlgorithm([tf.constant(ROWS)], 3, tf.constant(CENTRES), params="w")
        session.run(tf.global_variables_initializer())
        session.run(tool.init_ops())
        session.run(tool.training_ops())
        np.testing.assert_array_equal(np.squeeze(session.run(tool.clusters())), CENTRES)
        assert abs(session.run(tool.alphas()).sum() - 1) < 1e-5
    with pytest.raises(ValueError, match="Invalid covariance type"):
        F.GmmAlgorithm([ROWS], 3, covariance_type="other")


def test_estimators_of_mixtures(tmp_path):
    made = F.GMM(3, str(tmp_path), initial_clusters=CENTRES, random_seed=1)
    made.fit(input_fn=rows, steps=0)
    assert made.get_variable_value("global_step") == 1
    made.fit(input_fn=rows, steps=9)
    np.testing.assert_allclose(made.clusters(), ROWS.reshape(3, 40, 2).mean(1), atol=0.1)
    np.testing.assert_allclose(made.weights(), 1 / 3, atol=0.02)
    assert made.covariances().shape == (3, 2, 2) and np.isfinite(made.score(input_fn=rows, steps=1))
    assert list(made.predict_assignments(input_fn=rows))[:120:40] == [0, 1, 2]


def test_clusters_by_fit(tmp_path):
    made = tf.contrib.learn.KMeansClustering(3, str(tmp_path), CENTRES, use_mini_batch=False)
    made.fit(input_fn=rows, steps=5)
    centres = made.clusters()
    np.testing.assert_allclose(centres, ROWS.reshape(3, 40, 2).mean(1), atol=1e-4)
    assert [i for i, _ in zip(made.predict_cluster_idx(input_fn=rows), range(120))] == [0] * 40 + [1] * 40 + [2] * 40
    np.testing.assert_allclose(made.score(input_fn=rows, steps=1), ((ROWS[:, None] - centres) ** 2).sum(2).min(1).sum(), rtol=1e-4)
    assert next(made.transform(input_fn=rows, as_iterable=True)).shape == (3,)
