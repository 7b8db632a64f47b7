# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensor_forest: trees of soft decisions before neural networks, metrics, settings. Values are NumPy's."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import tensor_forest
from millrace.contrib.tensor_forest import hybrid, metrics, routing
from millrace.contrib.tensor_forest.scatter import scatter_add_ndim

RANDOM = np.random.RandomState(0)
X, W, B = RANDOM.randn(5, 4).astype("f"), RANDOM.randn(7, 4).astype("f"), RANDOM.randn(7).astype("f")
LEFT = 1 / (1 + np.exp(-(X @ W.T - B)))


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        yield


def reached(left, nodes):
    made = np.ones([len(left), nodes])
    for node in range(1, nodes):
        above = (node - 1) // 2
        made[:, node] = made[:, above] * (left[:, above] if node % 2 else 1 - left[:, above])
    return made


@pytest.mark.parametrize("nodes", [1, 3, 6, 7])
def test_soft_ways(nodes):
    routes = routing.routing_function(X, W[:nodes], B[:nodes], max_nodes=nodes)
    assert routes.get_shape().as_list() == [5, nodes]
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(routes), reached(LEFT, nodes), rtol=1e-5)


def test_soft_ways_have_gradients():
    with tf.Session():
        weights = tf.constant(W)
        error = tf.test.compute_gradient_error(weights, [7, 4], routing.routing_function(X, weights, B, max_nodes=7), [5, 7], W, 1e-2)
    assert error < 1e-3


def test_nodes_that_look_at_some_features():
    with tf.Session() as sess:
        all_of_them = sess.run(routing.k_feature_routing_function(X, W, B, layer_num=0, max_nodes=7, num_features_per_node=4, random_seed=3))
        np.testing.assert_allclose(all_of_them, reached(LEFT, 7), rtol=1e-5)
        two = [routing.k_feature_routing_function(X, W[:, :2], B, 0, 7, 2, seed) for seed in (3, 3, 4)]
        first, again, other = sess.run(two)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    np.testing.assert_allclose(first[:, 3:].sum(1), 1, rtol=1e-5)


def test_hard_ways():
    chances, path = routing.hard_routing_function(X, W, B, max_nodes=7, tree_depth=3)
    with tf.Session() as sess:
        c, p, unpacked = sess.run([chances, path, routing.unpack_path(path, chances)])
    for row in range(5):
        node = 0
        for step in range(3):
            assert p[row, step] == node
            np.testing.assert_allclose(c[row, step], reached(LEFT, 7)[row, node], rtol=1e-5)
            node = 2 * node + (1 if LEFT[row, node] >= 0.5 else 2)
        np.testing.assert_array_equal(np.flatnonzero(unpacked[row]), p[row])


def test_drawn_ways_are_as_frequent_as_they_are_probable():
    _, path = routing.stochastic_hard_routing_function(np.repeat(X[:1], 4000, 0), W, B, tree_depth=3, random_seed=5)
    with tf.Session() as sess:
        leaves = sess.run(path)[:, 2]
    np.testing.assert_allclose([np.mean(leaves == leaf) for leaf in range(3, 7)], reached(LEFT[:1], 7)[0, 3:], atol=0.03)


def params(**kwargs):
    return tensor_forest.ForestHParams(
        num_classes=2,
        num_features=4,
        layer_size=8,
        num_layers=2,
        num_trees=3,
        hybrid_tree_depth=3,
        learning_rate=0.3,
        regularization_strength=0.001,
        base_random_seed=1,
        weight_init_mean=0.0,
        weight_init_std=0.5,
        **{"regression": False, "regularization": "", **kwargs},
    )


@pytest.mark.parametrize(
    "kind",
    [
        "NN",
        "DecisionsToDataThenNN",
        "KFeatureDecisionsToDataThenNN",
        "ForestToDataThenNN",
        "HardDecisionsToDataThenNN",
        "StochasticHardDecisionsToDataThenNN",
        "StochasticSoftDecisionsToDataThenNN",
    ],
)
def test_hybrid_models_learn(kind):
    x = np.random.RandomState(1).randn(60, 4).astype("f")
    labels = (x[:, 0] > 0).astype(int)
    given = params(regularization="l2")
    model = getattr(hybrid, kind)(given)
    train, chances = model.training_graph(tf.constant(x), labels), model.predict_proba(tf.constant(x))
    loss = model.training_loss(tf.constant(x), labels)
    assert given.num_nodes == 7 and given.num_leaves == 4 and isinstance(train, tf.Operation)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before, p = sess.run([loss, chances])
        for _ in range(60):
            sess.run(train)
        assert sess.run(loss) < before - 0.05
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)


def test_hybrid_models_of_numbers():
    x = np.random.RandomState(1).randn(60, 4).astype("f")
    model = hybrid.DecisionsToDataThenNN(params(regression=True))
    train, loss = model.training_graph(tf.constant(x), x[:, 1]), model.validation_loss(tf.constant(x), x[:, 1])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss)
        for _ in range(60):
            sess.run(train)
        assert sess.run(loss) < 0.7 * before


def test_settings_that_others_imply():
    filled = tensor_forest.ForestHParams(num_classes=2, num_features=1000, split_after_samples=25, feature_bagging_fraction=0.5, num_trees=2).fill()
    assert (filled.num_splits_to_consider, filled.num_output_columns, filled.num_outputs, filled.bagged_num_features) == (31, 3, 1, 500)
    assert [len(set(features)) for features in filled.bagged_features] == [500, 500]
    assert tensor_forest.ForestHParams(num_classes=2, num_features=60).fill().num_splits_to_consider == 10
    with pytest.raises(AttributeError, match="num_features"):
        tensor_forest.ForestHParams(num_classes=2).fill()
    with pytest.raises(NotImplementedError, match="BoostedTrees"):
        tensor_forest.RandomForestGraphs(filled)


def value(metric, *args):
    result, update = metric(*args)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        sess.run(update)
        return sess.run(result)


def test_metrics_by_name():
    chances = np.array([[0.1, 0.9], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], "f")
    labels = np.array([[1], [0], [0], [1]])
    ones = np.eye(2)[labels[:, 0]]
    assert value(metrics._top_k_generator(1), chances, labels) == 0.75
    assert value(metrics.get_metric("accuracy"), np.array([1, 0, 1, 1]), labels[:, 0]) == 0.75
    np.testing.assert_allclose(value(metrics.get_metric("auc"), chances, labels), 1.0, rtol=1e-3)
    np.testing.assert_allclose(value(metrics.get_metric("precision_at_thresholds"), chances, labels)[5], 2 / 3, rtol=1e-4)
    log = np.log(chances + 1e-7) * ones + np.log(1 - chances + 1e-7) * (1 - ones)
    np.testing.assert_allclose(value(metrics.get_metric("classification_log_loss"), chances, labels), -log.mean(), rtol=1e-4)
    softmax = np.exp(chances) / np.exp(chances).sum(1, keepdims=True)
    np.testing.assert_allclose(value(metrics.get_metric("softmax_entropy"), chances, labels), -np.log((softmax * ones).sum(1)).mean(), rtol=1e-5)
    scores, wanted = np.array([1.0, 2.0, 4.0], "f"), np.array([1.0, 3.0, 4.0], "f")
    np.testing.assert_allclose(value(metrics.get_metric("r2"), scores, wanted), 1 - 1 / ((wanted - wanted.mean()) ** 2).sum(), rtol=1e-5)
    assert metrics.get_prediction_key("auc") == "probabilities" and metrics.get_prediction_key("r2") == "scores"
    with pytest.raises(KeyError, match="top_5"):
        metrics.get_metric("luck")


def test_additions_to_parts_of_variables():
    v = tf.Variable(tf.ones([2, 2, 3]))
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(scatter_add_ndim(v, [[0, 1, 2]], [5.0]))
        sess.run(scatter_add_ndim(v, [[1, 0]], [[1.0, 2.0, 3.0]]))
        sess.run(scatter_add_ndim(v, [], []))
        np.testing.assert_array_equal(sess.run(v), [[[1, 1, 1], [1, 1, 6]], [[2, 3, 4], [1, 1, 1]]])
        with pytest.raises(tf.errors.InvalidArgumentError, match="same as number of indices"):
            sess.run(scatter_add_ndim(v, [[0, 1, 2], [0, 0, 0]], [5.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="same as number of indices"):
            deltas = tf.placeholder(tf.float32, [None])
            sess.run(scatter_add_ndim(v, [[0, 1, 2], [0, 0, 0]], deltas), {deltas: [5.0]})
