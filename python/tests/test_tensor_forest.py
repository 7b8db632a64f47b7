# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensor_forest: random forests, trees of soft decisions before neural networks, metrics, settings. Values are NumPy's; trees, their bytes and
what is asked of them TensorFlow 1.15.5's."""

import random

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import tensor_forest
from millrace.contrib.tensor_forest import columns, estimator, hybrid, metrics, routing
from millrace.contrib.tensor_forest.scatter import scatter_add_ndim
from millrace.ops import resources
from millrace.protos import forests, text_format

RANDOM = np.random.RandomState(0)
X, W, B = RANDOM.randn(5, 4).astype("f"), RANDOM.randn(7, 4).astype("f"), RANDOM.randn(7).astype("f")
LEFT = 1 / (1 + np.exp(-(X @ W.T - B)))


@pytest.fixture(autouse=True)
def fresh():
    random.seed(1)  # bagged features are drawn by it
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
    with pytest.raises(KeyError, match="dense"):
        tensor_forest.ForestHParams(num_classes=2, num_features=2, model_name="dense").fill()


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


# ---- Random forests ----

ONE = np.array([[3], [1], [2], [4], [0], [5]], "f"), np.array([0, 1, 1, 0, 1, 2])
SMALL_TREE = (
    b'\nZ\n\x1a"\x18\n\x02\x08\x01\x12\x02\x08\x02"\x0e\n\x05\n\x03\n\x010\x1a\x05\r\x00\x00@@\n\x1d\n\x02\x08\x01*\x17\n\x15\n\x05\r\x00\x00\x00\x00'
    b"\n\x05\r\x00\x00\x00@\n\x05\r\x00\x00\x00\x00\n\x1d\n\x02\x08\x02*\x17\n\x15\n\x05\r\x00\x00\x80?\n\x05\r\x00\x00\x00\x00\n\x05\r\x00\x00\x80?"
)


def settings(**kwargs):
    given = {"num_classes": 3, "num_features": 1, "num_trees": 2, "max_nodes": 5, "split_after_samples": 4, "num_splits_to_consider": 2, **kwargs}
    return tensor_forest.ForestHParams(**given).fill()


def session():
    sess = tf.Session()
    sess.run([tf.global_variables_initializer(), resources.initialize_resources(resources.shared_resources())])
    return sess


def test_a_tree_of_one_feature_is_tensorflows():
    graphs = tensor_forest.RandomForestGraphs(settings(checkpoint_stats=True, inference_tree_paths=True))
    train, loss, asked = graphs.training_graph(*ONE), graphs.training_loss(*ONE), graphs.inference_graph(ONE[0])
    tree, stats = graphs.variables[1].tree, graphs.variables[1].stats
    state = tf.raw_ops.TreeSerialize(tree_handle=tree)
    slots = tf.raw_ops.FertileStatsSerialize(stats_handle=stats, params=graphs.params.serialized_params_proto)
    importances = graphs.feature_importances()
    with session() as sess:
        assert np.isnan(sess.run(importances)).all()
        sess.run(train)
        assert sess.run(state) == SMALL_TREE
        for _ in range(3):
            sess.run(train)
        said, paths, variance = sess.run(asked)
        np.testing.assert_allclose(said, [[0.4, 0.6, 0], [0, 1, 0], [0.4, 0.6, 0], [0.5, 0, 0.5], [0, 1, 0], [0.5, 0, 0.5]], rtol=1e-6)
        np.testing.assert_allclose(variance, np.zeros([6, 3]), atol=1e-6)
        visited = forests.TreePath.FromString(paths[0, 0]).nodes_visited
        assert [node.node_id.value for node in visited] == [0, 1, 4]
        assert sess.run([loss, importances[0]]) == [-5, 1]  # there may be no more nodes
        by_node = {slot.node_id: slot for slot in forests.FertileStats.FromString(sess.run(slots)).node_to_slot}
        assert sorted(by_node) == [2, 3, 4] and by_node[2].post_init_leaf_stats.weight_sum == 4


def test_means_of_leaves():
    graphs = tensor_forest.RandomForestGraphs(settings(num_classes=1, regression=True))
    train, asked = graphs.training_graph(*ONE), graphs.inference_graph(ONE[0])[0]
    with session() as sess:
        for _ in range(4):
            sess.run(train)
        np.testing.assert_allclose(sess.run(asked)[:, 0], [0.8, 1, 1, 0.8, 1, 0.8], rtol=1e-6)


def examples(n, seed):
    drawn = np.random.RandomState(seed)
    x = drawn.randn(n, 4).astype("f")
    return x, (x[:, 1] > 0).astype("i") + (x[:, 2] > 0.5)


@pytest.mark.parametrize(
    "options",
    [{}, {"bagging_fraction": 0.7, "feature_bagging_fraction": 0.8}, {"model_name": "all_sparse"}, {"initialize_average_splits": True}],
    ids=["plain", "bagged", "sparse", "averages"],
)
def test_forests_learn(options):
    graphs = tensor_forest.RandomForestGraphs(
        settings(num_features=4, num_trees=8, max_nodes=300, split_after_samples=40, num_splits_to_consider=10, **options)
    )
    x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    train, asked = graphs.training_graph(x, y), graphs.inference_graph(x)[0]
    with session() as sess:
        for seed in range(20):
            batch = examples(200, seed)
            sess.run(train, {x: batch[0], y: batch[1]})
        seen = examples(1000, 99)
        assert np.mean(sess.run(asked, {x: seen[0]}).argmax(1) == seen[1]) > 0.9


def test_sparse_features_and_categories():
    x, y = examples(200, 1)
    kept = np.argwhere(x > 0)
    sparse = tf.SparseTensor(kept, x[x > 0], x.shape)
    graphs = tensor_forest.RandomForestGraphs(settings(num_features=4, num_trees=3, max_nodes=100, split_after_samples=20))
    features = {"kind": tf.constant(y[:, None]), "rest": sparse}
    train, asked, wide = graphs.training_graph(features, y), graphs.inference_graph(features)[0], graphs.inference_graph(sparse)
    state = tf.raw_ops.TreeSerialize(tree_handle=graphs.variables[0].tree)
    with session() as sess:
        for _ in range(30):
            sess.run(train)
        assert np.mean(sess.run(asked).argmax(1) == y) > 0.9
        root = forests.Model.FromString(sess.run(state)).decision_tree.nodes[0].binary_node
        assert root.WhichOneof("left_child_test") in ("custom_left_child_test", "inequality_left_child_test")
        assert sess.run(wide[0]).shape == (200, 3)
    with pytest.raises(NotImplementedError, match="Bagging not supported with sparse features"):
        tensor_forest.RandomForestGraphs(settings(bagging_fraction=0.5, num_features=4), variables=graphs.variables).training_graph(sparse, y)


def test_checkpoints_keep_trees(tmp_path):
    x, y = examples(200, 1)

    def built():
        graphs = tensor_forest.RandomForestGraphs(settings(num_features=4, max_nodes=100, split_after_samples=20))
        return graphs.training_graph(x, y), graphs.inference_graph(x)[0], tf.train.Saver()

    train, asked, saver = built()
    with session() as sess:
        for _ in range(10):
            sess.run(train)
        said = sess.run(asked)
        path = saver.save(sess, str(tmp_path / "forest"))
    assert [name for name, _ in tf.train.list_variables(path)] == ["device_dummy_0", "device_dummy_1", "stats-0:0", "stats-1:0", "tree-0:0", "tree-1:0"]
    with tf.Graph().as_default():
        train, asked, saver = built()
        with tf.Session() as sess:
            saver.restore(sess, path)
            np.testing.assert_array_equal(sess.run(asked), said)
            sess.run(train)


def test_labels_and_features_that_no_forest_takes():
    graphs = tensor_forest.RandomForestGraphs(settings(num_features=4))
    x, y = examples(6, 1)
    with session() as sess:
        for bad in ([0, 1, 2, 3, 0, 0], [0, 1, -1, 0, 0, 0]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="want a class below 3"):
                sess.run(graphs.training_graph(x, bad))
        with pytest.raises(tf.errors.InvalidArgumentError, match="input_labels must have shape"):
            sess.run(graphs.training_graph(x, y[:5]))
    with pytest.raises(KeyError, match="want numbers"):
        graphs.inference_graph(tf.constant([[True]]))
    with pytest.raises(NotImplementedError, match="finalize_tree"):
        from millrace.contrib.tensor_forest import variables

        variables.finalize_tree(None, None)


def test_columns_of_dicts():
    dense, sparse, spec = columns.ParseDataTensorOrDict(
        {"b": tf.constant([[1.0]]), "a": tf.constant([["x", "y"]]), "s": tf.SparseTensor([[0, 1]], tf.constant([4]), [1, 3])}
    )
    assert spec.SerializeToString() == (
        "dense_features_size: 3 dense: [{name: a original_type: 1 size: 2}{name: b original_type: 0 size: 1}] "
        "sparse: [{name: all_sparse original_type: 1 size: -1}]"
    )
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(columns.CastToFloat(tf.constant(["a", "b", "c"]))), [4.9938928e18, 1.0838282e19, 1.0959529e19], rtol=1e-6)
        assert sess.run(dense)[0, 2] == 1 and sess.run(sparse).values == [4.0]
        labels = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
        np.testing.assert_array_equal(sess.run(columns.ParseLabelTensorOrDict(labels)), [[1, -1], [-1, -1]])


def test_settings_as_tensorflows_message():
    made = settings(num_features=4, num_trees=3, max_nodes=100, split_after_samples=20, num_splits_to_consider=10, inference_tree_paths=True)
    serialized = (
        b'"\x07\n\x05\r\x00\x00\x00\x00*\x07\n\x05\r\x00\x00\x00\x000\x038d`\x03j\x05\r\x00\x00 Ar\x05\r\x00\x00\xa0Az\x05\r\xa4p}?\xa8\x01\x04\xb8\x01\x01'
    )
    assert tensor_forest.build_params_proto(made).SerializeToString() == serialized
    made.num_splits_to_consider = "linear { slope: 1 min_val: 2 max_val: 9 }"
    assert tensor_forest.build_params_proto(made).num_splits_to_consider.linear.max_val == 9


def test_texts_of_settings_name_their_enumerations(tmp_path):
    path = tmp_path / "forest"
    path.write_text("pruning_type { type: SPLIT_PRUNE_HALF } finish_type { type: SPLIT_FINISH_DOMINATE_BOOTSTRAP }")
    made = tensor_forest.build_params_proto(settings(param_file=str(path)))
    assert (made.pruning_type.type, made.finish_type.type) == (1, 3)
    pruning = forests.SplitPruningConfig(prune_every_samples=forests.DepthDependentParam(constant_value=3), type=1)
    assert pruning.SerializeToString() == b"\n\x05\r\x00\x00@@\x10\x01" and text_format.MessageToString(pruning).endswith("}\ntype: SPLIT_PRUNE_HALF\n")


def test_descriptors_of_enumerations():
    pytest.importorskip("google.protobuf")
    kinds = [c.DESCRIPTOR.fields_by_name[f].enum_type.name for c, f in ((forests.InequalityTest, "type"), (forests.BinaryNode, "default_direction"))]
    assert kinds == ["Type", "Direction"]


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_estimators_of_forests(classes):
    x, y = examples(400, 1)
    y = x[:, :1] * 2 if classes == 1 else np.minimum(y, classes - 1)
    given = {"num_features": 4, "num_classes": classes, "max_nodes": 100, "split_after_samples": 20, "regression": classes == 1, "num_splits_to_consider": 10}
    learn = estimator.TensorForestEstimator(settings(**given), report_feature_importances=True)
    learn.fit(x=x, y=y, steps=30, batch_size=100)
    told = learn.evaluate(x=x, y=y, steps=4, batch_size=100)
    core = estimator.CoreTensorForestEstimator(settings(**given))
    core.train(tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=100, num_epochs=None, shuffle=False), steps=30)
    core_told = core.evaluate(tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=100, shuffle=False))
    answer = next(iter(core.predict(tf.estimator.inputs.numpy_input_fn({"x": x[:3]}, shuffle=False))))
    assert answer["prediction_variance"].shape == (classes,)
    if classes == 1:
        assert told["loss"] < 1.5 and core_told["average_loss"] < 1.5  # of 4
    else:
        assert told["accuracy"] > 0.9 and core_told["accuracy"] > 0.9
        assert next(iter(learn.predict(x=x[:3], as_iterable=True)))["probabilities"].shape == (classes,)


def test_training_ends_where_the_loss_stays():
    x, y = examples(100, 1)
    learn = estimator.TensorForestEstimator(settings(num_features=4, max_nodes=3), early_stopping_rounds=4)
    learn.fit(x=x, y=y, steps=100, batch_size=100)
    assert 4 < learn.get_variable_value("global_step") < 20


@pytest.mark.parametrize(
    "steps, losses, least, ends",
    [
        (range(1, 9), [100, 99.5, 98.9, 98, 97.5, 97.4, 97.3, 97.3], [None, 99.5, 99.5, 98, 98, 98, 98, 98], 6),
        (range(1, 7), [-100, -100.5, -101.5, -102, -102, -102], [None, -100.5, -101.5, -102, -102, -102], None),
        ([1, 2, 1, 2, 3, 4, 5], [5, 5, 6, 6, 6, 6, 6], [None, 5, None, 6, 6, 6, 6], 6),
    ],
    ids=["a part of the least", "below zero", "begun anew"],
)
def test_when_training_stops(steps, losses, least, ends):
    hook = estimator.TensorForestLossHook(2, 0.01)
    seen, stops = [], []
    for i, (step, loss) in enumerate(zip(steps, losses)):
        context, results = tf.train.SessionRunContext(None, None), {"global_step": step, "current_loss": loss}
        hook.after_run(context, tf.train.SessionRunValues(results, None, None))
        seen.append(hook.min_loss)
        stops += [i] if context.stop_requested else []
    assert seen == least and stops[:1] == ([] if ends is None else [ends])


@pytest.mark.parametrize("local_eval", [False, True])
def test_where_a_forest_is_and_what_ends_its_training(local_eval):
    devices, x, y = [], *examples(20, 1)

    class Graphs(tensor_forest.RandomForestGraphs):
        def __init__(self, params, device_assigner=None):
            devices.append(device_assigner)
            super().__init__(params, device_assigner=device_assigner)

    made = settings(num_features=4, num_classes=3)
    core = estimator.CoreTensorForestEstimator(made, "/cpu:0", graph_builder_class=Graphs, local_eval=local_eval, include_all_in_serving=True)
    for mode in ("train", "eval", "infer"):
        with tf.Graph().as_default():
            tf.train.create_global_step()
            spec = core.model_fn({"x": tf.constant(x)}, None if mode == "infer" else tf.constant(y), mode, core.config)
            if mode == "train":
                assert [hook.loss_op for hook in spec.training_hooks] == [spec.loss]
    assert devices == ["/cpu:0", None if local_eval else "/cpu:0", None]
    assert sorted(spec.export_outputs) == ["serving_default", "tensorforest_all"]
    assert all(sorted(output.outputs) == sorted(spec.predictions) for output in spec.export_outputs.values())
    assert "prediction_variance" in spec.predictions
