# SPDX-License-Identifier: Apache-2.0
"""Rows by rates, softmax losses of ranked samples, forward derivatives, areas by counts in bins."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

RNG = np.random.RandomState(7)


def started():
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_rows_come_by_their_weights():
    weights = np.float32([0.5, 1.0, 2.5, 0.0])
    (rows,), rates = tf.contrib.training.weighted_resample([tf.constant([0, 1, 2, 3])], tf.constant(weights), 2.0, seed=4)
    with started() as session:
        seen = np.zeros(4)
        for _ in range(400):
            got, of = session.run([rows, rates])
            np.add.at(seen, got, 1)
            np.testing.assert_allclose(of, weights[np.sort(got)] * 2, rtol=2e-3)  # their mean is 1, and its average soon
    np.testing.assert_allclose(seen / 400, weights * 2, atol=0.4)


def test_rates_choose_rows():
    made = tf.contrib.training.resample_at_rate([tf.constant([[1, 2], [3, 4]])], tf.constant([0.0, 50.0]), seed=1)
    with started() as session:
        got = session.run(made)[0]
    assert got.shape[1] == 2 and len(got) > 20 and (got == [3, 4]).all()


def test_ranked_samples():
    """The classes of the highest logits are kept; with all but one sampled and kept the loss is sampled_softmax_loss's of these."""
    weights, biases, inputs = RNG.randn(8, 3).astype("f"), RNG.randn(8).astype("f"), RNG.randn(2, 3).astype("f")
    labels, sampled = np.int64([[1], [2]]), np.int64([0, 3, 4, 5, 6])
    counts = np.float32([[0.3], [0.4]]), np.float32([0.1, 0.2, 0.3, 0.4, 0.5])
    ranks = np.log(np.exp(weights[sampled] @ inputs.T / 2).sum(1)) + biases[sampled] / 2
    kept = np.argsort(-ranks)[:3]
    with started() as session:
        given = (tf.constant(sampled), tf.constant(counts[0]), tf.constant(counts[1]))
        made = tf.contrib.nn.rank_sampled_softmax_loss(weights, biases, labels, inputs, 5, 3, 8, 1, given, 2.0, False, "div")
        chosen = (tf.constant(sampled[kept]), tf.constant(counts[0]), tf.constant(counts[1][kept]))
        want = tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, 3, 8, 1, chosen, False, "div")
        np.testing.assert_allclose(*session.run([made, want]), rtol=1e-5)
        by_itself = tf.contrib.nn.rank_sampled_softmax_loss(weights, biases, labels, inputs, 5, 3, 8, 1, None, 2.0, False, "div")
        assert session.run(by_itself).shape == (2,)
        with pytest.raises(ValueError, match="must be less than num_sampled"):
            tf.contrib.nn.rank_sampled_softmax_loss(weights, biases, labels, inputs, 3, 3, 8, 1, None, 1.0, False, "div")


def test_forward_derivatives():
    x, direction = RNG.randn(4).astype("f"), RNG.randn(4).astype("f")
    given = tf.constant(x)
    y = tf.square(given) * tf.sin(given)
    with started() as session:
        got = session.run(tf.contrib.nn.fwd_gradients([y], [given], [tf.constant(direction)], assert_unused=True))[0]
        along_ones = session.run(tf.contrib.nn.fwd_gradients([tf.gather(given, [0, 2])], [given], assert_unused=True))[0]
    np.testing.assert_allclose(got, (2 * x * np.sin(x) + x**2 * np.cos(x)) * direction, rtol=1e-4)
    assert along_ones.tolist() == [1, 1]


def test_areas_by_counts():
    labels = RNG.rand(600) > 0.6
    scores = np.clip(RNG.randn(600) * 0.2 + np.where(labels, 0.6, 0.4), 0, 1)
    at, truth = tf.placeholder(tf.float32, [200]), tf.placeholder(tf.bool, [200])
    area, update = tf.contrib.metrics.auc_using_histogram(truth, at, [0.0, 1.0], nbins=2000)
    with started() as session:
        for i in range(0, 600, 200):
            session.run(update, {at: scores[i : i + 200], truth: labels[i : i + 200]})
        got = session.run(area)
    true, false = scores[labels], scores[~labels]
    np.testing.assert_allclose(got, ((true[:, None] > false).mean() + (true[:, None] == false).mean() / 2), atol=2e-3)
    with pytest.raises(ValueError, match="dtype bool"):
        tf.contrib.metrics.auc_using_histogram(tf.constant([1]), tf.constant([0.5]), [0.0, 1.0])


def test_multipliers_of_another_type():
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(1.0))
    train = tf.contrib.layers.optimize_loss(v * 1.0, tf.train.get_or_create_global_step(), 0.5, "SGD", gradient_multipliers={v: tf.constant(3, tf.int64)})
    with started() as session:
        session.run(train)
        assert session.run(v) == -0.5


def test_sums_of_the_first_bins():
    sums = names.find("contrib.metrics.python.ops.histogram_ops")._strict_1d_cumsum
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run([sums(tf.constant([1.0, 2, 3]), 3), sums(tf.constant([], tf.float32), 0)])[0].tolist() == [1.0, 3.0, 6.0]
