# SPDX-License-Identifier: Apache-2.0
"""Estimators of boosted trees: trees, predictions and explanations of TensorFlow 1.15.5, checkpoints, exports, and what is refused."""

import numpy as np
import pytest

import millrace as tf
from millrace.protos.trees import TreeEnsemble

fc = tf.feature_column
FEATURES = {
    "a": np.array([0.5, -1.5, 2.25, 0.75, -0.25, 1.5, -2.0, 3.0], np.float32),
    "b": np.array([1, 4, 6, 9, 2.5, 7, 5, 3], np.float32),
    "c": np.array(["x", "y", "x", "z", "y", "x", "z", "y"]),
}
NUMBERS = np.array([[1], [-2], [3.5], [2], [-1], [2.5], [-3], [4]], np.float32)
CLASSES = (NUMBERS > 0.5).astype(np.float32)
# What TensorFlow's BoostedTreesRegressor makes of them from batches of four.
TREES = (
    b"\nh\n\x10\x12\x06\x10\x02\x18\x01 \x02\xca0\x05\r=\xfe\x0cA\n\x17\x12\x06\x10\x01\x18\x03 \x04\xca0\x0c\r\xf0.y>\x12\x05\x1d\xb7m[\xbf\n\x17\x12"
    b"\x06\x10\x04\x18\x05 \x06\xca0\x0c\rH\x15;?\x12\x05\x1d\xd1E\x97?\n\x07\n\x05\x1d\x1d\xd4\xc1\xbf\n\x07\n\x05\x1dz\x9eg\xbf\n\x07\n\x05\x1dJ\x90"
    b"\xa7?\n\x07\n\x05\x1d<\xa6\x06@\nf\n\x10\x12\x06\x10\x03\x18\x01 \x02\xca0\x05\rIf\xa1?\n\x15\x12\x04\x18\x03 \x04\xca0\x0c\r\xdeX\x1c>\x12\x05"
    b"\x1dz'\x87\xbe\n\x17\x12\x06\x10\x05\x18\x05 \x06\xca0\x0c\r\x9cNW>\x12\x05\x1d\x07!\xf9>\n\x07\n\x05\x1d\x15\xd5+\xbf\n\x07\n\x05\x1d\xcfT\x8e"
    b"\xbe\n\x07\n\x05\x1d\xced\x02?\n\x07\n\x05\x1d\xbcLs?\n\x04\n\x02\n\x00\x12\x0c\x00\x00\x80?\x00\x00\x80?\x00\x00\x80?\x1a\x04\x10\x02\x18\x01"
    b'\x1a\x04\x10\x02\x18\x01\x1a\x00"\x06\x08\x02\x10\x04 \x01'
)
PREDICTIONS = [1.0311, -1.7922765, 3.0542857, 1.8184415, -1.1827527, 2.613247, -2.1855059, 3.0542857]


def columns():
    classes = fc.categorical_column_with_vocabulary_list("c", ["x", "y", "z"])
    return [fc.numeric_column("a"), fc.bucketized_column(fc.numeric_column("b"), [2.0, 5.0, 8.0]), fc.indicator_column(classes)]


def batches(labels, size=8):
    return lambda: tf.data.Dataset.from_tensor_slices((dict(FEATURES), labels)).batch(size).repeat()


def examples():
    return tf.data.Dataset.from_tensors(dict(FEATURES))


def predicted(model, key="predictions"):
    return [p[key][0] for p in model.predict(examples)]


def regressor(folder, **options):
    return tf.estimator.BoostedTreesRegressor(
        columns(), n_batches_per_layer=2, model_dir=str(folder), n_trees=2, max_depth=2, l2_regularization=0.125, learning_rate=0.5, **options
    )


def test_a_regressor_grows_tensorflows_trees(tmp_path):
    model = regressor(tmp_path)
    model.train(batches(NUMBERS, 4))
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    assert reader.get_tensor("boosted_trees:0_serialized") == TREES
    assert reader.get_tensor("boosted_trees/QuantileAccumulator:0_bucket_boundaries_0").tolist() == [-2, -1.5, -0.25, 0.5, 0.75, 1.5, 2.25, 3]
    assert reader.get_tensor("global_step") == 8
    assert {"boosted_trees/are_boundaries_ready", "boosted_trees/center_bias_needed", "boosted_trees:0_stamp"} <= set(reader.get_variable_to_shape_map())
    np.testing.assert_allclose(predicted(model), PREDICTIONS, rtol=1e-6)
    assert list(model.experimental_feature_importances(normalize=True).items()) == [("a", 1), ("b_bucketized", 0), ("c", 0)]
    squares = (np.array(PREDICTIONS) - NUMBERS.ravel()) ** 2
    np.testing.assert_allclose(model.evaluate(batches(NUMBERS), steps=1)["average_loss"], squares.mean(), rtol=1e-5)


def test_a_trained_model_is_exported(tmp_path):
    model = regressor(tmp_path / "model")
    model.train(batches(NUMBERS, 4))
    given = {"a": tf.placeholder(tf.float32, [None]), "b": tf.placeholder(tf.float32, [None]), "c": tf.placeholder(tf.string, [None])}
    folder = model.export_saved_model(str(tmp_path / "export"), tf.estimator.export.build_raw_serving_input_receiver_fn(given))
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["predict"]
        feeds = {signature.inputs[key].name: FEATURES[key] for key in FEATURES}
        np.testing.assert_allclose(session.run(signature.outputs["predictions"].name, feeds).ravel(), PREDICTIONS, rtol=1e-6)


def test_a_classifier_explains_itself(tmp_path):
    options = {"n_batches_per_layer": 1, "n_trees": 2, "max_depth": 2, "center_bias": True, "learning_rate": 0.5}
    model = tf.estimator.BoostedTreesClassifier(columns(), model_dir=str(tmp_path), **options)
    model.train(batches(CLASSES))
    wanted = [0.9551018, 0.0625367, 0.9551018, 0.9551018, 0.0625367, 0.9551018, 0.0625367, 0.9551018]
    np.testing.assert_allclose(predicted(model, "logistic"), wanted, atol=1e-6)
    first, second = list(model.experimental_predict_with_explanations(examples))[:2]
    np.testing.assert_allclose([first["bias"], second["bias"]], [0.625] * 2, atol=1e-6)
    assert list(first["dfc"]) == ["a", "b_bucketized", "c"]
    np.testing.assert_allclose([*first["dfc"].values(), *second["dfc"].values()], [0.3301019, 0, 0, -0.5624633, 0, 0], atol=1e-6)


@pytest.mark.parametrize("pruning", [{}, {"pruning_mode": "post", "tree_complexity": 0.25}, {"center_bias": True}])
def test_training_in_memory_gives_the_same_trees(tmp_path, pruning):
    whole = lambda: tf.data.Dataset.from_tensors((dict(FEATURES), NUMBERS)).repeat()
    serialized = []
    for in_memory in (False, True):
        folder = str(tmp_path / str(in_memory))
        options = {"n_batches_per_layer": 1, "n_trees": 2, "max_depth": 3, "train_in_memory": in_memory, **pruning}
        tf.estimator.BoostedTreesRegressor(columns(), model_dir=folder, **options).train(whole)
        serialized.append(tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder)).get_tensor("boosted_trees:0_serialized"))
    ours, in_memory = (TreeEnsemble.FromString(s) for s in serialized)
    assert len(ours.trees) == 3
    for one, other in zip(ours.trees, in_memory.trees):
        splits = [[(n.bucketized_split.feature_id, n.bucketized_split.threshold) for n in tree.nodes] for tree in (one, other)]
        assert splits[0] == splits[1]
        np.testing.assert_allclose([n.leaf.scalar for n in one.nodes], [n.leaf.scalar for n in other.nodes], atol=1e-6)


def test_many_values_have_buckets_of_their_own(tmp_path):
    """Streams of quantiles give more boundaries than they are asked for."""
    values = np.random.RandomState(1).randn(3000).astype(np.float32)
    labels = np.sin(values).reshape(-1, 1)
    make = tf.contrib.estimator.boosted_trees_regressor_train_in_memory
    model = make(
        lambda: tf.data.Dataset.from_tensors(({"a": values}, labels)), [fc.numeric_column("a")], str(tmp_path), n_trees=20, max_depth=4, learning_rate=0.5
    )
    boundaries = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("boosted_trees/QuantileAccumulator:0_bucket_boundaries_0")
    assert len(boundaries) > 100
    got = [p["predictions"][0] for p in model.predict(lambda: tf.data.Dataset.from_tensors({"a": values}))]
    assert np.abs(np.array(got) - labels.ravel()).mean() < 0.05


def test_examples_with_names_go_on_where_they_were(tmp_path):
    from millrace.estimator.boosted_trees import _bt_model_fn, _create_regression_head
    from millrace.estimator.boosted_trees_growing import _TreeHParams

    def model_fn(features, labels, mode, config):
        hparams = _TreeHParams(2, 2, 0.5, 0.0, 0.125, 0.0, 0.0)
        return _bt_model_fn(features, labels, mode, _create_regression_head(1), columns(), hparams, 2, config, example_id_column_name="name")

    def named():
        features = {**FEATURES, "name": np.arange(8)}
        return tf.data.Dataset.from_tensor_slices((features, NUMBERS)).batch(4).repeat()

    tf.estimator.Estimator(model_fn, str(tmp_path)).train(named)
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    assert reader.get_tensor("boosted_trees:0_serialized") == TREES


def test_what_is_refused(tmp_path):
    make = tf.estimator.BoostedTreesClassifier
    with pytest.raises(ValueError, match="only binary classification is supported"):
        make(columns(), 1, n_classes=3)
    with pytest.raises(ValueError, match="must be wrapped by IndicatorColumn"):
        make([fc.categorical_column_with_vocabulary_list("c", ["x"])], 1)
    with pytest.raises(ValueError, match="Tree complexity have no effect"):
        make(columns(), 1, str(tmp_path), tree_complexity=0.5).train(batches(CLASSES))
    with pytest.raises(ValueError, match="pruning_mode mode must be one of: none, post, pre"):
        make(columns(), 1, str(tmp_path), pruning_mode="later").train(batches(CLASSES))
    with pytest.raises(ValueError, match="center_bias must be enabled"):
        next(make(columns(), 1).experimental_predict_with_explanations(examples))
    broken = {**FEATURES, "a": np.full(8, np.nan, np.float32)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="float_values must hold numbers, got NaN at 0"):
        make(columns(), 1, str(tmp_path)).train(lambda: tf.data.Dataset.from_tensors((broken, CLASSES)).repeat())
