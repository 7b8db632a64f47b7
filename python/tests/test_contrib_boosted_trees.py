# SPDX-License-Identifier: Apache-2.0
"""The operations of tf.contrib.boosted_trees. Numbers and bytes are those of TensorFlow 1.15.5."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib.boosted_trees import estimators, gbdt, losses, model, quantiles, splits, stats
from millrace.ops import gen_ops, resources
from millrace.protos import contrib_trees as messages

Learner = messages.LearnerConfig
NODES, BUCKETS = np.array([0, 0, 0, 1, 1]), np.array([[0, 0], [1, 0], [2, 0], [0, 0], [2, 0]])
GRADIENTS, HESSIANS = np.array([2.4, -0.6, 1.0, 8, -2], "f"), np.array([0.4, 0.38, 1.0, 0.26, 0.5], "f")
PENALTIES = {
    "class_id": -1,
    "feature_column_group_id": 3,
    "l1_regularization": 0.1,
    "l2_regularization": 1.0,
    "tree_complexity_regularization": 0.05,
    "min_node_weight": 0.0,
}
TREES = (
    b"\nR\n\x15\x12\x0b\x08\x03\x15\x9a\x99\x99>\x18\x01 \x02\xca0\x05\r\x00\x00\x00?\n\n\n\x08\n\x06\n\x04\xaa\xaaj\xbf\n\x15\x12\x0b\x08\x03\x15\x9a\x99\x99>"
    b"\x18\x03 \x04\xca0\x05\r\x9a\x99\x99>\n\n\n\x08\n\x06\n\x04\x05\xac`\xc0\n\n\n\x08\n\x06\n\x04\x0c,)?\n1\n\x17\x12\x0b\x08\x03\x15\x9a\x99\x99>\x18\x01 \x02"
    b"\xca0\x07\r\x00\x00\x00\xbf\x12\x00\n\n\n\x08\n\x06\n\x04\x8d\xe2\\\xc0\n\n\n\x08\n\x06\n\x04\xebQ8?\x12\x08\x9a\x99\x99>\x9a\x99\x99>\x1a\x06\x08\x01\x10\x02"
    b'\x18\x01\x1a\x04\x08\x01\x10\x01"\x04\x08\x02\x10\x04'
)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def session():
    sess = tf.Session()
    sess.run(resources.initialize_resources(resources.shared_resources()))
    return sess


def dense(gradients=GRADIENTS, hessians=HESSIANS, strategy=Learner.TREE_PER_CLASS, **changed):
    return splits.build_dense_inequality_splits(
        num_minibatches=2,
        partition_ids=NODES,
        bucket_ids=BUCKETS,
        gradients=gradients,
        hessians=hessians,
        bucket_boundaries=[0.3, 0.5, 0.9],
        multiclass_strategy=strategy,
        **{**PENALTIES, **changed},
    )


def test_dense_splits():
    several = np.stack([GRADIENTS, GRADIENTS[::-1] * 0.7], 1), np.stack([HESSIANS, HESSIANS[::-1]], 1)
    with tf.Session() as sess:
        nodes, gains, infos = sess.run(dense())
        np.testing.assert_array_equal(nodes, [0, 1])
        np.testing.assert_allclose(gains, [0.07007052, 7.963974], rtol=1e-5)
        assert infos[0] == b"\n\t\x12\x07\x08\x03\x15\x9a\x99\x99>\x12\x08\n\x06\n\x04\xaa\xaaj\xbf\x1a\x08\n\x06\n\x04\xf2]r\xbd"
        nodes, gains, infos = sess.run(dense(class_id=1, min_node_weight=0.3))
        np.testing.assert_allclose(gains, [-0.05, -0.05], rtol=1e-5)
        assert infos[1] == b"\n\t\x12\x07\x08\x03\x15fff?\x12\x0b\x12\t\n\x01\x01\x12\x04%~\x06\xc0\x1a\x0b\x12\t\n\x01\x01\x12\x04\x00\x00\x00\x00"
        nodes, gains, infos = sess.run(dense(*several, Learner.DIAGONAL_HESSIAN, l1_regularization=0.0))
        np.testing.assert_allclose(gains, [3.4232366, 8.727072], rtol=1e-5)
        np.testing.assert_allclose(messages.SplitInfo.FromString(infos[0]).right_child.vector.value, [-0.11834322, -1.9325154], rtol=1e-5)


def test_splits_of_features_that_examples_lack():
    ids = np.array([[-1, 0], [0, 0], [2, 0], [1, 1], [-1, 0], [2, 1]])
    sums = {
        "num_minibatches": 1,
        "partition_ids": [0, 0, 0, 0, 1, 1],
        "gradients": np.array([5, 2.4, -0.6, 1, 3, 1], "f"),
        "hessians": np.array([3, 0.4, 0.5, 0.6, 2, 0.3], "f"),
        "bias_feature_id": -1,
        "multiclass_strategy": Learner.TREE_PER_CLASS,
        **PENALTIES,
    }
    with tf.Session() as sess:
        _, gains, infos = sess.run(splits.build_sparse_inequality_splits(bucket_ids=ids, bucket_boundaries=[0.3, 0.5, 0.9], **sums))
        np.testing.assert_allclose(gains, [2.7570236, -0.05], rtol=1e-5)
        assert infos[0] == b"\n\x0b\x1a\t\n\x07\x08\x03\x15\x9a\x99\x99>\x12\x08\n\x06\n\x04\x92$\xc9\xbf\x1a\x08\n\x06\n\x04\xab\xaa\xaa>"
        _, gains, infos = sess.run(splits.build_categorical_equality_splits(feature_ids=ids, **sums))
        np.testing.assert_allclose(gains, [2.7570236, -0.89321965], rtol=1e-5)
        assert infos[0] == b"\n\x06*\x04\x08\x03\x10\x02\x12\x08\n\x06\n\x04\xab\xaa\xaa>\x1a\x08\n\x06\n\x04\x92$\xc9\xbf"
        with pytest.raises(tf.errors.InvalidArgumentError, match="no sums under the id of the bias, 7"):
            sess.run(splits.build_categorical_equality_splits(feature_ids=ids, **{**sums, "bias_feature_id": 7}))


def test_ensembles_grow_and_predict():
    config = Learner(num_classes=2, growing_mode=Learner.LAYER_BY_LAYER, pruning_mode=Learner.POST_PRUNE)
    config.constraints.max_tree_depth = 2
    handle = model.tree_ensemble_variable(0, b"", "trees")
    state, stamp = gen_ops.tree_ensemble_serialize(handle), tf.placeholder(tf.int64, [])
    stamps = {"stamp_token": stamp, "next_stamp_token": stamp + 1, "learning_rate": 0.3, "dropout_seed": 1}
    nodes, gains, infos = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.string, [None])
    grow = model.grow_tree_ensemble(
        handle, **stamps, partition_ids=[nodes], gains=[gains], splits=[infos], learner_config=config.SerializeToString(), center_bias=False
    )
    counts = gen_ops.tree_ensemble_stats(handle, stamp)
    x = np.array([[0.0, 0.2], [0, 0.4], [0, 0.95]], "f")
    features = [[x[:, :1], x[:, :1], x[:, :1], x[:, 1:]], [], [], [], [], [], []]
    options = {"apply_dropout": False, "center_bias": False, "reduce_dim": True}

    def predictions(averaged=False):
        made = gen_ops.gradient_trees_prediction_verbose(handle, 0, *features, learner_config=config.SerializeToString(), apply_averaging=averaged, **options)
        return made.predictions, made.leaf_index

    asked, inside = predictions(), gen_ops.gradient_trees_partition_examples(handle, *features)
    config.averaging_config.average_last_n_trees = 2
    averaged = predictions(True)[0]
    config.growing_mode = Learner.WHOLE_TREE
    finished = predictions()[0]
    with session() as sess:
        info = sess.run(dense())[2]
        layers = [([0], [0.5], info[:1]), ([1, 2], [-0.2, 0.3], info), ([0], [-0.5], info[1:]), ([], [], [])]
        for i, (where, gain, split) in enumerate(layers):
            sess.run(grow, {stamp: i, nodes: where, gains: gain, infos: split})
        assert sess.run(state) == (4, TREES)
        assert list(sess.run(counts, {stamp: 4})) == [1, 3, 2, 1, 2, 4] and list(sess.run(counts, {stamp: 3})) == [0] * 6
        said, leaves = sess.run(asked)
        trees = messages.DecisionTreeEnsembleConfig.FromString(TREES).trees
        values = np.array([[t.nodes[leaf].leaf.vector.value[0] for t, leaf in zip(trees, row)] for row in leaves])
        np.testing.assert_array_equal(leaves, [[1, 1], [4, 2], [4, 2]])
        np.testing.assert_allclose(said[:, 0], 0.3 * values.sum(1), rtol=1e-6)
        np.testing.assert_allclose(sess.run(averaged)[:, 0], 0.3 * (values[:, 0] + values[:, 1] / 2), rtol=1e-6)
        np.testing.assert_allclose(sess.run(finished)[:, 0], 0.3 * values[:, 0], rtol=1e-6)
        np.testing.assert_array_equal(sess.run(inside), [1, 2, 2])
        for where in ([0], [3], [-1]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is no leaf of the tree that grows"):
                sess.run(grow, {stamp: 4, nodes: where, gains: [1], infos: info[:1]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid stamp token"):
            sess.run(grow, {stamp: 0, nodes: [1], gains: [1], infos: info[:1]})


def test_a_bias_is_centered():
    handle = model.tree_ensemble_variable(0, b"", "trees")
    delta, stamp = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int64, [])
    center = gen_ops.center_tree_ensemble_bias(handle, stamp, stamp + 1, delta, learner_config=Learner(num_classes=3).SerializeToString())
    state = gen_ops.tree_ensemble_serialize(handle)
    with session() as sess:
        assert sess.run(center, {stamp: 0, delta: [-0.2, 0.3]})
        assert not sess.run(center, {stamp: 1, delta: [0.001, 0.0]})
        made = messages.DecisionTreeEnsembleConfig.FromString(sess.run(state)[1])
        np.testing.assert_allclose(made.trees[0].nodes[0].leaf.vector.value, [-0.199, 0.3], rtol=1e-5)
        assert made.tree_metadata[0].is_finalized
        with pytest.raises(tf.errors.InvalidArgumentError, match="a bias of 1 numbers"):
            sess.run(center, {stamp: 2, delta: [0.1]})


def test_dropped_trees_share_their_weights():
    config = Learner(num_classes=2, growing_mode=Learner.WHOLE_TREE, pruning_mode=Learner.PRE_PRUNE)
    config.learning_rate_tuner.dropout.dropout_probability = 1.0
    before = messages.DecisionTreeEnsembleConfig(tree_weights=[0.7, 1.0])
    for _ in range(2):
        before.trees.add().nodes.add().leaf.vector.value.append(1.0)
        before.tree_metadata.add(is_finalized=True, num_tree_weight_updates=5)
    handle = model.tree_ensemble_variable(0, before.SerializeToString(), "trees")
    grow = model.grow_tree_ensemble(
        handle, 0, 1, 1.0, 9, 1, partition_ids=[[0]], gains=[[1.0]], splits=[dense()[2][:1]], learner_config=config.SerializeToString(), center_bias=True
    )
    state = gen_ops.tree_ensemble_serialize(handle)
    with session() as sess:
        sess.run(grow)
        made = messages.DecisionTreeEnsembleConfig.FromString(sess.run(state)[1])
        np.testing.assert_allclose(made.tree_weights, [0.7, 0.5, 0.5], rtol=1e-6)
        assert [m.num_tree_weight_updates for m in made.tree_metadata] == [5, 6, 2]


def test_sums_are_kept_by_stamps_and_checkpoints(tmp_path):
    sums = stats.StatsAccumulator(0, [], [], name="scalar")
    tensors = stats.StatsAccumulator(0, [2], [2, 2], name="tensor")
    add = sums.add(0, [1, 2, 1], [[2, 0], [3, 0], [2, 0]], [0.1, 0.3, 0.5], [0.2, 0.4, 0.1])
    late = sums.add(-1, [1], [[2, 0]], [9.0], [9.0])
    several = tensors.add(0, [1, 1], [[2, 1], [2, 1]], [[1.0, 2], [3, 4]], np.ones([2, 2, 2], "f"))
    saver = tf.train.Saver()
    with session() as sess:
        sess.run([add, late, several])
        path = saver.save(sess, str(tmp_path / "sums"))
        updates, nodes, features, gradients, hessians = sess.run(sums.flush(0, 1))
        assert updates == 1 and nodes.tolist() == [1, 2] and features.tolist() == [[2, 0], [3, 0]]
        np.testing.assert_allclose([gradients, hessians], [[0.6, 0.3], [0.3, 0.4]], rtol=1e-6)
        assert sess.run(sums.flush(1, 2))[0] == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid stamp token"):
            sess.run(sums.flush(0, 1)[0])
        saver.restore(sess, path)
        np.testing.assert_allclose(sess.run(sums.flush(0, 1))[3], [0.6, 0.3], rtol=1e-6)
        np.testing.assert_allclose(sess.run(tensors.flush(0, 1))[4], [[[2, 2], [2, 2]]])
        for bad in ([[2, 0]], [[2], [3]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="feature_ids must have shape"):
                sess.run(gen_ops.stats_accumulator_scalar_add([sums.resource_handle], 1, [[1, 2]], [bad], [[1.0, 1]], [[1.0, 1]]))


def test_quantiles_of_streams(tmp_path):
    drawn = np.random.RandomState(0)
    batches = [(drawn.randn(200, 1).astype("f"), drawn.rand(200, 1).astype("f")) for _ in range(5)]
    stream = quantiles.QuantileAccumulator(0, 0.1, 5, name="stream")
    values, weights = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    add, saver = stream.add_summary(0, values, weights), tf.train.Saver()
    ready, buckets = stream.get_buckets(1)
    with session() as sess:
        for batch in batches:
            sess.run(add, {values: batch[0], weights: batch[1]})
        path = saver.save(sess, str(tmp_path / "stream"))
        assert not sess.run(ready)
        sess.run(stream.flush(0, 1))
        wanted = [-2.9946129, -0.88778013, -0.28900522, 0.24211796, 0.89067167, 3.1709747]
        assert sess.run(ready)
        np.testing.assert_allclose(sess.run(buckets), wanted, rtol=1e-6)
        saver.restore(sess, path)
        assert not sess.run(ready)
        sess.run(stream.flush(0, 1))
        np.testing.assert_allclose(sess.run(buckets), wanted, rtol=1e-6)


def test_buckets_of_batches():
    config = messages.QuantileConfig(eps=0.33, num_quantiles=3).SerializeToString()
    indices, present = [[1, 0], [2, 0], [3, 0], [4, 0], [5, 0]], [2.0, 3, 4, 5, 6]
    weights = [10.0, 1, 1, 1, 1, 1]
    made = gen_ops.quantile_buckets([[1.0, 2, 3, 4, 4, 5]], [indices], [present], [[6, 1]], weights, dense_config=[config], sparse_config=[config])
    places = gen_ops.quantiles(
        [[[-0.1], [0.4], [3.2], [190]]], [[1.0, 2, 1, 8, 1]], [[0.4, 5, 190]], [[1.0, 2, 1000]], [[[0, 1], [1, 0], [3, 0], [3, 1], [3, 2]]]
    )
    with tf.Session() as sess:
        (dense_buckets,), (sparse_buckets,) = sess.run(made)
        assert dense_buckets.tolist() == [1, 3, 5] and sparse_buckets.tolist() == [2, 4, 6]
        (of_dense,), (of_sparse,) = sess.run(places)
        assert of_dense.tolist() == [[0, 0], [0, 0], [1, 0], [2, 0]] and of_sparse.tolist() == [[0, 1], [1, 0], [0, 0], [2, 1], [0, 2]]
        assert sess.run(gen_ops.bucketize_with_input_boundaries([1, 2, 3, 4], [3.0])).tolist() == [0, 0, 1, 1]


def test_losses_of_examples():
    p, w = np.array([[-3.0], [-0.05], [0.2]], "f"), np.full((3, 1), 2, "f")
    zeros = np.zeros_like(p)
    with tf.Session() as sess:
        values = {
            name: sess.run(getattr(losses, "per_example_" + name)(zeros, w, p)[0]).ravel()
            for name in ("exp_loss", "full_exp_loss", "logistic_loss", "squared_loss", "squared_hinge_loss")
        }
        maxent = losses.per_example_maxent_loss([[0], [1]], np.ones((2, 1), "f"), [[1.0, 2, -100], [3, -200.0, 5]], 3)[0]
        quantile = losses.per_example_quantile_regression_loss(p, w, zeros, 0.3)[0]
        np.testing.assert_allclose(sess.run(maxent).ravel(), [1.3132617, 34.538776], rtol=1e-5)
        np.testing.assert_allclose(sess.run(quantile).ravel(), [4.2, 0.07, 0.12], rtol=1e-5)
    np.testing.assert_allclose(values["exp_loss"], [0.7357589, 1.76504, 3.2919722], rtol=1e-5)
    np.testing.assert_allclose(values["full_exp_loss"], [0.09957413, 1.9024589, 2.4428055], rtol=1e-5)
    np.testing.assert_allclose(values["logistic_loss"], [0.0971747, 1.3369193, 1.5962777], rtol=1e-5)
    np.testing.assert_allclose(values["squared_loss"], [18, 0.005, 0.08], rtol=1e-5)
    np.testing.assert_allclose(values["squared_hinge_loss"], [(2 * (0.95 + 1.2) / 3) ** 2], rtol=1e-5)


# ---- Models and estimators: what TensorFlow 1.8's tests of gbdt_batch say ----


def test_features_by_their_kinds():
    sparse = [tf.SparseTensor([[0, 0]], tf.ones([1], dtype), [2, 3]) for dtype in (tf.float32, tf.int64)]
    made = gbdt.extract_features({"c": sparse[0], "b": sparse[1], "a": tf.zeros([2, 2]), "d": tf.zeros([2])}, None)
    assert made[0] == ["a_0", "a_1", "d", "c", "b"] and [len(part) for part in made[1:]] == [3, 1, 1, 1, 1, 1, 1]
    for bad in (tf.zeros([2, 1], tf.int32), tf.SparseTensor([[0, 0]], tf.constant(["x"]), [2, 3])):
        with pytest.raises(ValueError, match="Unsupported"):
            gbdt.extract_features({"a": bad}, None)


def test_a_model_grows_once_it_has_buckets():
    config = Learner(num_classes=2)
    config.learning_rate_tuner.fixed.learning_rate = 0.1
    config.constraints.max_tree_depth = 1
    handle = model.tree_ensemble_variable(0, b"", "trees")
    trees = gbdt.GradientBoostedDecisionTreeModel(True, 0, handle, False, 1, config, {"x": tf.ones([4, 1])}, 1)
    predictions, stamp = tf.constant([[0.0], [1.0], [0.0], [2.0]]), tf.placeholder(tf.int64, [])
    loss = tf.reduce_mean(tf.square(predictions - 1))
    said = {"predictions": predictions, "partition_ids": tf.zeros([4], tf.int32), "ensemble_stamp": stamp, "num_trees": 0}
    train, state = trees.train(loss, said, tf.ones([4, 1])), gen_ops.tree_ensemble_serialize(handle)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(2):
            sess.run(train, {stamp: i})
        assert sess.run(state)[0] == 2
        made = messages.DecisionTreeEnsembleConfig.FromString(sess.run(state)[1])
        nodes = made.trees[0].nodes
        assert len(made.trees) == 1 and nodes[0].dense_float_binary_split.threshold == 1
        np.testing.assert_allclose([nodes[i].leaf.vector.value[0] for i in (1, 2)], [0.25, 0])


@pytest.mark.parametrize("reduction, leaf", [("weighted_sum", 4 / 17), ("weighted_sum_by_nonzero_weights", 2 / 9)])
def test_sums_of_batches_by_the_reduction_of_the_loss(reduction, leaf):
    config = Learner(num_classes=2)
    config.learning_rate_tuner.fixed.learning_rate = 1
    config.regularization.l2, config.constraints.max_tree_depth = 1, 1
    handle = model.tree_ensemble_variable(0, b"", "trees")
    trees = gbdt.GradientBoostedDecisionTreeModel(True, 0, handle, False, 8, config, {"x": tf.ones([4, 1])}, 1, reduction)
    predictions, stamp = tf.constant([[0.0], [1.0], [0.0], [2.0]]), tf.placeholder(tf.int64, [])  # gradients -2, 0, -2, 2, hessians 2
    said = {"predictions": predictions, "partition_ids": tf.zeros([4], tf.int32), "ensemble_stamp": stamp, "num_trees": 0}
    train, state = trees.train(tf.reduce_sum(tf.square(predictions - 1)), said, tf.ones([4, 1])), gen_ops.tree_ensemble_serialize(handle)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in (0, 0, 1, 1):
            sess.run(train, {stamp: i})
        made = messages.DecisionTreeEnsembleConfig.FromString(sess.run(state)[1])
    np.testing.assert_allclose(made.trees[0].nodes[1].leaf.vector.value[0], leaf, rtol=1e-6)


@pytest.mark.parametrize("asked, there", [(None, ["infer"]), (["train", "eval"], ["train", "eval"])])
def test_who_is_told_the_leaves(asked, there):
    handle = model.tree_ensemble_variable(0, b"", "trees")
    given = {"output_leaf_index": True, "output_leaf_index_modes": asked}
    trees = gbdt.GradientBoostedDecisionTreeModel(True, 0, handle, False, 8, Learner(num_classes=2), {"x": tf.ones([4, 1])}, 1, **given)
    assert [mode for mode in ("train", "eval", "infer") if gbdt.LEAF_INDEX in trees.predict(mode)] == there


@pytest.mark.parametrize("kind", ["two", "three", "each", "full", "number"])
def test_estimators_learn(kind):
    drawn = np.random.RandomState(1)
    x = drawn.randn(1000, 3).astype("f")
    classes = (x[:, 0] > 0).astype("i") + ((x[:, 1] > 0.3) & (x[:, 0] > 0))
    config = Learner(growing_mode=Learner.LAYER_BY_LAYER)
    config.learning_rate_tuner.fixed.learning_rate = 0.3
    config.regularization.l2, config.constraints.max_tree_depth = 0.01, 3
    config.multi_class_strategy = {"each": Learner.TREE_PER_CLASS, "full": Learner.FULL_HESSIAN}.get(kind, 0)
    options = {"examples_per_layer": 250, "num_trees": 9, "center_bias": kind in ("two", "number")}
    if kind == "number":
        y, made = x[:, :1] * 2 + x[:, 1:2], estimators.GradientBoostedDecisionTreeRegressor(config, **options)
    else:
        y = np.minimum(classes, 1) if kind == "two" else classes
        made = estimators.GradientBoostedDecisionTreeClassifier(config, n_classes=2 if kind == "two" else 3, **options)
    made.fit(input_fn=tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=250, num_epochs=None, shuffle=True), max_steps=150)
    told = made.evaluate(input_fn=tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=250, shuffle=False))
    assert told["global_step"] < 150  # the trees were finished before
    if kind == "number":
        assert told["loss"] < 1  # of 5
    else:
        assert told["accuracy"] > 0.93


def test_the_step_that_training_ends_with():
    config = Learner(num_classes=2)
    config.constraints.max_tree_depth = 2
    options = {"examples_per_layer": 3, "num_trees": 1, "num_quantiles": 4, "override_global_step_value": 10000}
    made = estimators.GradientBoostedDecisionTreeClassifier(config, **options)
    made.fit(input_fn=lambda: ({"x": tf.constant([[2.0], [1.0], [1.0]])}, tf.constant([[1], [0], [0]])), steps=15)
    assert made.get_variable_value("global_step") == 10000
    with pytest.raises(ValueError, match="num_classes"):
        estimators.GradientBoostedDecisionTreeClassifier(config, 3, n_classes=3)
