# SPDX-License-Identifier: Apache-2.0
"""Weights of losses and metrics, and metrics at thresholds and of the k best, against NumPy."""

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def fresh():
    tf.reset_default_graph()


def _measure(pair, feed=None):
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        updated = session.run(pair[1], feed)
        return updated, session.run(pair[0])


def test_weights_that_do_not_broadcast_are_refused():
    values, wide = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.ones([4, 1])
    for make in (lambda w: tf.losses.compute_weighted_loss(values, w), lambda w: tf.losses.mean_squared_error(values, values, w)):
        with pytest.raises(ValueError, match="weights can not be broadcast to values"):
            make(wide)
        fed = tf.placeholder(tf.float32)
        loss = make(fed)
        with tf.Session() as session:
            assert np.isfinite(session.run(loss, {fed: np.ones(4)}))
            with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast to values"):
                session.run(loss, {fed: np.ones((4, 1))})
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        tf.metrics.mean(values, tf.ones([3]))
    # Metrics take a last dimension of 1 away, as they do of labels.
    assert _measure(tf.metrics.mean(values, wide)) == (2.5, 2.5)


def test_names_and_reductions_of_losses():
    x, y, w = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32), np.zeros((2, 2), np.float32), np.array([[2.0], [0.0]], np.float32)
    loss = tf.losses.mean_squared_error(y, x, w)
    assert loss.op.name == "mean_squared_error/value" and tf.losses.get_losses() == [loss]
    every = {r: tf.losses.absolute_difference(y, x, w, reduction=r) for r in tf.losses.Reduction.all()}
    with tf.Session() as session:
        assert session.run(loss) == 5.0
        got = session.run(every)
    wanted = {"none": x * w, "weighted_sum": 6.0, "weighted_mean": 1.5, "weighted_sum_over_batch_size": 1.5, "weighted_sum_by_nonzero_weights": 3.0}
    for key, value in wanted.items():
        np.testing.assert_allclose(got[key], value)
    with pytest.raises(ValueError, match="Invalid ReductionKey"):
        tf.losses.absolute_difference(y, x, reduction="other")
    with pytest.raises(ValueError, match="labels must not be None"):
        tf.losses.log_loss(None, x)
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        tf.losses.cosine_distance(y, x)


def test_label_smoothing_counts_the_last_dimension():
    labels, logits = np.eye(4, dtype=np.float32)[np.array([[0, 1, 2], [3, 2, 1]])], np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    smooth = labels * 0.8 + 0.2 / 4
    loss = tf.losses.softmax_cross_entropy(labels, logits, label_smoothing=0.2)
    with tf.Session() as session:
        logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        np.testing.assert_allclose(session.run(loss), -(smooth * logp).sum(-1).mean(), rtol=1e-5)


def test_contrib_losses_take_weights_of_the_batch():
    x, y = tf.constant([[1.0, 2.0], [3.0, 5.0]]), tf.zeros([2, 2])
    loss = tf.contrib.losses.mean_squared_error(x, y, tf.constant([2.0, 0.0]))
    with tf.Session() as session:
        assert session.run(loss) == 5.0


def test_metrics_at_thresholds():
    p, y = np.array([0.1, 0.4, 0.6, 0.9], np.float32), np.array([0, 1, 0, 1])
    assert _measure(tf.metrics.true_positives_at_thresholds(y, p, [0.3, 0.7]))[1].tolist() == [2, 1]
    assert _measure(tf.metrics.false_positives_at_thresholds(y, p, [0.3, 0.7], weights=[1, 1, 3, 1]))[1].tolist() == [3, 0]
    np.testing.assert_allclose(_measure(tf.metrics.precision_at_thresholds(y, p, [0.3, 0.7]))[0], [2 / 3, 1], rtol=1e-5)
    np.testing.assert_allclose(_measure(tf.metrics.recall_at_thresholds(y, p, [0.3, 0.7]))[0], [1, 0.5], rtol=1e-5)
    np.testing.assert_allclose(_measure(tf.metrics.sensitivity_at_specificity(y, p, 0.9))[0], 0.5, rtol=1e-5)
    np.testing.assert_allclose(_measure(tf.metrics.specificity_at_sensitivity(y, p, 0.9))[0], 0.5, rtol=1e-5)
    areas = [_measure(tf.metrics.auc(y, p, summation_method=m))[0] for m in ("minoring", "trapezoidal", "majoring")]
    assert areas[0] <= areas[1] <= areas[2] and abs(areas[1] - 0.75) < 1e-3
    assert 0.7 < _measure(tf.metrics.auc(y, p, curve="PR", summation_method="careful_interpolation"))[0] < 0.9
    with pytest.raises(tf.errors.InvalidArgumentError, match="predictions must be in"):
        _measure(tf.metrics.auc(y, p + 1))


def test_metrics_of_the_k_best():
    scores = np.array([[0.1, 0.3, 0.2, 0.4], [0.4, 0.3, 0.2, 0.1]])
    labels = np.array([[3, 2], [1, 3]], np.int64)
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], labels.reshape(-1), [2, 2])
    for given in (labels, sparse):
        assert _measure(tf.metrics.recall_at_k(given, scores, 2)) == (0.5, 0.5)
        assert _measure(tf.metrics.precision_at_k(given, scores, 1))[0] == 0.5
        assert _measure(tf.metrics.recall_at_k(given, scores, 2, class_id=2))[0] == 0.0
        # Precisions where the labels are found: 1/1 and 2/3; 1/2 and 2/4.
        np.testing.assert_allclose(_measure(tf.metrics.average_precision_at_k(given, scores, 4))[0], ((1 + 2 / 3) / 2 + (1 / 2 + 2 / 4) / 2) / 2)
    assert _measure(tf.metrics.recall_at_k(np.array([3, 3], np.int64), scores, 1))[0] == 0.5
    assert _measure(tf.metrics.precision_at_top_k(labels, np.array([[3, 0], [0, 1]])))[0] == 0.5
    flat = tf.SparseTensor([[0], [1]], np.array([3, 2], np.int64), [2])  # one label for each example, without a dimension of its own
    assert _measure(tf.metrics.precision_at_top_k(flat, np.array([[3], [3]])))[0] == 0.5
    assert _measure(tf.metrics.recall_at_top_k(np.array([3, 2], np.int64), np.array([[3], [3]]), 1, class_id=3))[0] == 1.0
    # Labels below 0 fill up rows that have fewer.
    filled, ranked = np.array([[2, 3], [3, -1]], np.int64), np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], np.float32)
    np.testing.assert_allclose(_measure(tf.metrics.average_precision_at_k(filled, ranked, 4))[0], ((1 / 3 + 2 / 4) / 2 + 1) / 2)


def test_more_means():
    y, p = np.array([1.0, 2.0, 4.0], np.float32), np.array([2.0, 2.0, 2.0], np.float32)
    np.testing.assert_allclose(_measure(tf.metrics.mean_relative_error(y, p, [2.0, 0.0, 4.0]))[0], (0.5 + 0 + 0.5) / 3, rtol=1e-6)
    np.testing.assert_allclose(_measure(tf.metrics.mean_cosine_distance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], 1))[0], 0.5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bound"):
        _measure(tf.metrics.mean_iou([0, 5], [0, 1], 2))
