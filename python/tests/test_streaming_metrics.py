# SPDX-License-Identifier: Apache-2.0
"""What tf.contrib.metrics and tf.contrib.losses have beside tf.metrics and tf.losses."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

metrics, losses = tf.contrib.metrics, tf.contrib.losses

P = np.array([0.1, 0.4, 0.35, 0.8, 0.8, 0.6], np.float32)
Y = np.array([0, 0, 1, 1, 0, 1])


def after(make, batches):
    """The value and the last update when batches have been counted; make gets a placeholder for each part of a batch."""
    with tf.Graph().as_default():
        parts = [tf.placeholder(np.asarray(part).dtype, [None, *np.shape(part)[1:]]) for part in batches[0]]
        value, update = make(*parts)
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            for batch in batches:
                last = session.run(update, dict(zip(parts, batch)))
            return session.run(value), last


BATCHES = [(P[:2], Y[:2]), (P[2:], Y[2:])]


def test_covariance_and_correlation_of_batches():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30)).astype(np.float32) + 3
    batches = [(x[:7], y[:7]), (x[7:8], y[7:8]), (x[8:], y[8:])]
    for got in after(metrics.streaming_covariance, batches):
        np.testing.assert_allclose(got, np.cov(x, y)[0, 1], rtol=1e-4)
    for got in after(metrics.streaming_pearson_correlation, batches):
        np.testing.assert_allclose(got, np.corrcoef(x, y)[0, 1], rtol=1e-4)
    assert np.isnan(after(metrics.streaming_covariance, [(x[:1], y[:1])])[0])
    weights = np.array([1, 0, 2], np.float32)
    got = after(lambda a, b, w: metrics.streaming_covariance(a, b, weights=w), [(x[:3], y[:3], weights)])[0]
    np.testing.assert_allclose(got, np.cov(x[[0, 2, 2]], y[[0, 2, 2]])[0, 1], rtol=1e-4)


def test_rates_of_errors():
    guessed, truth = np.array([1, 1, 0, 0, 0]), np.array([1, 0, 1, 0, 0])
    assert after(metrics.streaming_false_positive_rate, [(guessed, truth)])[0] == np.float32(1 / 3)
    assert after(metrics.streaming_false_negative_rate, [(guessed, truth)])[0] == 0.5
    at = [0.3, 0.7]
    np.testing.assert_allclose(after(lambda p, y: metrics.streaming_false_positive_rate_at_thresholds(p, y, at), BATCHES)[0], [2 / 3, 1 / 3], rtol=1e-5)
    np.testing.assert_allclose(after(lambda p, y: metrics.streaming_false_negative_rate_at_thresholds(p, y, at), BATCHES)[0], [0, 2 / 3], rtol=1e-5)


def test_counts_by_class_for_metrics_of_a_program():
    impl = names.find("python.ops.metrics_impl")
    batches = [([[0, 1], [2, 2]], [[0, 2], [2, 2]], [[1.0, 2.0], [1.0, 0.0]]), ([[1, 1]], [[1, 0]], [[3.0, 1.0]])]
    value, last = after(lambda y, p, w: impl._streaming_confusion_matrix(y, p, 3, w), batches)
    np.testing.assert_equal(value, [[1, 0, 0], [1, 3, 2], [0, 0, 1]])
    np.testing.assert_equal(last, value)
    assert value.dtype == np.float64
    made = impl.metric_variable([2], tf.int32, name="seen")
    assert made in tf.get_collection("metric_variables") and made in tf.get_collection("local_variables") and made not in tf.trainable_variables()
    assert (made.op.name, made.dtype.base_dtype, made.shape.as_list()) == ("seen", tf.int32, [2])


def best_over_thresholds(of):
    points = []
    for level in np.arange(1, 199) / 199:
        hits = level < P
        points.append(of(np.sum(hits & (Y == 1)), np.sum(hits & (Y == 0)), np.sum(~hits & (Y == 1))))
    return max(points)


def test_the_best_of_thresholds():
    best = best_over_thresholds(lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn))
    for got in after(lambda p, y: metrics.f1_score(y, p), BATCHES):
        np.testing.assert_allclose(got, best, rtol=1e-5)
    np.testing.assert_allclose(after(lambda p, y: metrics.precision_at_recall(y, p, 0.6), BATCHES)[0], 2 / 3, rtol=1e-5)
    np.testing.assert_allclose(after(lambda p, y: metrics.recall_at_precision(y, p, 0.7), BATCHES)[0], 2 / 3, rtol=1e-5)
    assert after(lambda p, y: metrics.recall_at_precision(y, p, 0.9, strict_mode=True), BATCHES)[0] == 0
    with pytest.raises(ValueError, match="range"):
        metrics.precision_at_recall(Y, P, 1.5)


def exact_area():
    return np.mean([(a > b) + 0.5 * (a == b) for a in P[Y == 1] for b in P[Y == 0]])


def test_the_exact_area_and_curves():
    np.testing.assert_allclose(after(lambda p, y: metrics.streaming_dynamic_auc(y, p), BATCHES)[0], exact_area(), rtol=1e-6)
    assert after(lambda p, y: metrics.streaming_dynamic_auc(y, p), [(P[:2], Y[:2])])[0] == 0
    doubled = [(p, y, np.full(len(p), 2.0, np.float32)) for p, y in BATCHES]
    np.testing.assert_allclose(after(lambda p, y, w: metrics.streaming_dynamic_auc(y, p, weights=w), doubled)[0], exact_area(), rtol=1e-6)
    points, _ = after(lambda p, y: metrics.streaming_curve_points(y, p), BATCHES)
    area, _ = after(lambda p, y: metrics.streaming_auc(p, y), BATCHES)
    np.testing.assert_allclose(-np.trapezoid(points[:, 1], points[:, 0]) if hasattr(np, "trapezoid") else area, area, rtol=1e-4)
    curve, _ = after(lambda p, y: metrics.precision_recall_at_equal_thresholds(y, p, num_thresholds=11), [(p, y == 1) for p, y in BATCHES])
    np.testing.assert_allclose(curve.thresholds, np.arange(11) / 10, rtol=1e-6)
    assert curve.tp.tolist() == [3, 3, 3, 3, 2, 2, 2, 1, 1, 0, 0] and curve.fp.tolist() == [3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0]


def test_all_values_of_batches():
    rows = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    made, _ = after(lambda x: metrics.streaming_concat(x, max_size=5), [(rows[:2],), (rows[2:],)])
    np.testing.assert_array_equal(made, rows[:5])
    columns, _ = after(lambda x: metrics.streaming_concat(tf.transpose(x), axis=1), [(rows[:2],), (rows[2:],)])
    np.testing.assert_array_equal(columns, rows.T)
    assert after(lambda x, w: metrics.count(x, w), [(rows, np.array([[1.0], [0], [2], [1], [1], [1]], np.float32))])[0] == 12


def test_agreement_beyond_chance():
    said, truth = np.array([0, 1, 2, 1, 1]), np.array([0, 1, 2, 2, 1])
    table = np.histogram2d(truth, said, bins=3)[0] / 5
    chance = table.sum(0) @ table.sum(1)
    for got in after(lambda y, p: metrics.cohen_kappa(y, p, 3), [(truth[:2], said[:2]), (truth[2:], said[2:])]):
        np.testing.assert_allclose(got, (np.trace(table) - chance) / (1 - chance), rtol=1e-6)


def test_the_best_k_by_numbers():
    best, labels = np.array([[1, 2], [0, 3]], np.int64), np.array([[1], [2]], np.int64)
    assert after(metrics.streaming_sparse_precision_at_top_k, [(best, labels)])[0] == 0.25
    assert after(lambda y, p: metrics.sparse_recall_at_top_k(y, p), [(labels, best)])[0] == 0.5
    assert after(metrics.streaming_sparse_average_precision_at_top_k, [(best, labels)])[0] == 0.5
    logits, one = np.array([[1.0, 3, 2], [3.0, 2, 1]], np.float32), np.array([2, 2], np.int32)
    assert after(lambda p, y: metrics.streaming_recall_at_k(p, y, 2), [(logits, one)])[0] == 0.5


def test_accuracy_of_unlike_types_is_refused():
    with pytest.raises(ValueError, match="same dtype"):
        metrics.accuracy(tf.constant([1]), tf.constant([1], tf.int64))
    with pytest.raises(ValueError, match="bool, integer, or string"):
        metrics.accuracy(tf.constant([1.0]), tf.constant([1.0]))


# ---- losses ----


def test_weights_of_first_dimensions_and_columns():
    logits, classes = tf.constant([[10.0, 0, 0], [0, 10, 0], [0, 0, 10]]), tf.constant([[2], [0], [1]])
    column = losses.sparse_softmax_cross_entropy(logits, classes, tf.constant([[1.2], [3.4], [5.6]]))
    assert column.op.name == "sparse_softmax_cross_entropy_loss/value"
    some = tf.placeholder(tf.float32, [None, None])
    fed = losses.softmax_cross_entropy(logits, tf.one_hot(tf.reshape(classes, [-1]), 3), some)
    pairs = losses.mean_pairwise_squared_error(tf.constant([[1.0, 3], [2, 2]]), tf.zeros([2, 2]), tf.constant([2.0, 0]))
    alone = losses.mean_pairwise_squared_error(tf.constant([[1.0, 3]]), tf.zeros([1, 2]), 2.0)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(column), 34, rtol=1e-4)
        np.testing.assert_allclose(session.run(fed, {some: [[2.3], [2.4], [2.5]]}), 24, rtol=1e-4)
        np.testing.assert_allclose(*session.run([pairs, alone]))
    with pytest.raises(ValueError, match="weights.get_shape"):
        losses.compute_weighted_loss(tf.ones([2]), tf.placeholder(tf.float32))


def test_scopes_keep_losses_out():
    with tf.Graph().as_default():
        with tf.contrib.framework.arg_scope([losses.add_loss], loss_collection=None):
            losses.mean_squared_error(tf.ones([2]), tf.zeros([2]))
        assert losses.get_losses() == []


def test_losses_of_embeddings():
    rng = np.random.default_rng(2)
    x, labels = rng.normal(size=(6, 4)), np.array([0, 0, 1, 1, 2, 2])
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
    terms = []
    for i in range(6):
        for j in range(i + 1, 6):
            if labels[i] == labels[j]:
                reach = [np.exp(1 - d[a, k]) for a in (i, j) for k in range(6) if labels[k] != labels[a]]
                terms.append(max(np.log(sum(reach)) + d[i, j], 0) ** 2 / 2)
    lifted = losses.metric_learning.lifted_struct_loss(tf.constant(labels), tf.constant(x, tf.float32))
    anchors, positives = tf.constant(x[:3], tf.float32), tf.constant(x[3:], tf.float32)
    several = [tf.SparseTensor([[n]], [True], [3]) for n in (0, 1, 2)]
    single = losses.metric_learning.npairs_loss(tf.constant([0, 1, 2]), anchors, positives)
    multiple = losses.metric_learning.npairs_loss_multilabel(several, anchors, positives)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(lifted), np.mean(terms), rtol=1e-4)
        np.testing.assert_allclose(*session.run([single, multiple]), rtol=1e-6)


@pytest.mark.parametrize(
    "predictions, labels, weights, auc, lower, upper",
    [  # what TensorFlow 1.15 gives
        ([0.0, 0.2, 0.3, 0.3, 0.4, 0.5, 0.6, 0.6, 0.8, 1.0], [0, 0, 1, 0, 0, 1, 0, 1, 1, 0], None, 0.66666667, 0.27826795, 0.91208512),
        ([0.0, 0.2, 0.3, 0.3, 0.4], [0, 0, 1, 0, 1], [0.5, 0.6, 1.2, 1.5, 2.0], None, None, None),
        ([2.5, -2.5, 0.5, -0.5, 1.0], [1, 0, 1, 0, 0], None, 0.83333333, 0.15229267, 0.99286517),
        ([0.0, 0.2, 0.6, 0.8], [0, 0, 1, 1], None, 1.0, 1.0, 1.0),
        ([0.0, 0.2, 0.6, 0.8], [1, 1, 1, 1], None, 0.0, 0.0, 0.0),
        ([0.0, 0.2], [0, 1], [0.1, 0.2], 0.0, 0.0, 0.0),
    ],
)
def test_area_under_a_curve_with_bounds(predictions, labels, weights, auc, lower, upper):
    metrics = tf.contrib.metrics
    with tf.Graph().as_default(), tf.Session() as session:
        made, update = metrics.auc_with_confidence_intervals(tf.constant(labels), tf.constant(predictions), weights and tf.constant(weights))
        straight, again = metrics.auc_with_confidence_intervals(
            tf.constant(labels), tf.constant(predictions), weights and tf.constant(weights), alpha=0.5, logit_transformation=False
        )
        session.run(tf.local_variables_initializer())
        session.run([update, again])
        got, narrow = session.run([made, straight])
    if auc is None:
        p, y, w = (np.array(part) for part in (predictions, labels, weights))
        pairs = (p[:, None] > p[None]) + 0.5 * (p[:, None] == p[None])
        auc = (pairs * np.outer(w * y, w * (1 - y))).sum() / np.outer(w * y, w * (1 - y)).sum()
        assert 0 < got.lower < got.auc < got.upper < 1
    else:
        np.testing.assert_allclose(got, [auc, lower, upper], atol=1e-5)
    np.testing.assert_allclose(narrow.auc, auc, atol=1e-5)
    np.testing.assert_allclose(narrow.upper - narrow.auc, narrow.auc - narrow.lower, atol=1e-6)


def test_names_of_counts_at_thresholds():
    with tf.Graph().as_default():
        tf.contrib.metrics.streaming_true_positives_at_thresholds(tf.constant([0.2, 0.8]), tf.constant([True, False]), [0.5])
        tf.contrib.metrics.precision_recall_at_equal_thresholds(tf.constant([True, False]), tf.constant([0.2, 0.8]))
        scope = "precision_recall_at_equal_thresholds/variables/"
        assert [v.op.name for v in tf.local_variables()] == ["true_positives", scope + "tp_buckets", scope + "fp_buckets"]


def test_arrays_of_values_grow_in_leaps():
    rows = np.random.RandomState(0).rand(40, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.placeholder(tf.float32, [None, 3])
        kept, update = tf.contrib.metrics.streaming_concat(batch)
        array, size = tf.local_variables()
        assert (array.op.name, size.op.name, update.dtype.base_dtype) == ("streaming_concat/array", "streaming_concat/size", tf.int32)
        session.run(tf.local_variables_initializer())
        done, rooms = 0, []
        for count in (0, 1, 2, 0, 7, 20, 1, 9):
            done += count
            assert session.run(update, {batch: rows[done - count : done]}) == done
            np.testing.assert_array_equal(session.run(kept), rows[:done])
            rooms.append(len(session.run(array)))
        assert rooms == [0, 1, 4, 4, 12, 39, 39, 58]  # powers of 1.5, rounded up
