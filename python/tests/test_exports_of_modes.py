# SPDX-License-Identifier: Apache-2.0
"""Estimators written as SavedModels that train and are evaluated, beside those that serve."""

import numpy as np
import pytest

import millrace as tf
from millrace.estimator.export import SupervisedInputReceiver, export_outputs_for_mode
from millrace.saved_model import reading

E = tf.estimator
TRAIN, EVAL, PREDICT = E.ModeKeys.TRAIN, E.ModeKeys.EVAL, E.ModeKeys.PREDICT


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    made = {"y": features["x"] * w}
    if mode == PREDICT:
        return E.EstimatorSpec(mode, made)
    loss = tf.losses.mean_squared_error(labels, made["y"])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return E.EstimatorSpec(mode, made, loss, train, {"error": tf.metrics.mean_absolute_error(labels, made["y"])})


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": np.float32([1, 2])}, np.float32([2, 4]))).batch(2)


@pytest.fixture
def trained(tmp_path):
    return E.Estimator(model_fn, str(tmp_path / "model")).train(input_fn)


def test_three_graphs_share_their_variables(trained, tmp_path):
    supervised = tf.contrib.estimator.build_supervised_input_receiver_fn_from_input_fn(lambda: input_fn().make_one_shot_iterator().get_next())
    serving = E.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None], "x")})
    folder = trained.experimental_export_all_saved_models(str(tmp_path), {TRAIN: supervised, EVAL: supervised, PREDICT: serving})
    w = trained.get_variable_value("w")
    for tag, key in (("train", "train"), ("eval", "eval"), ("serve", "serving_default")):
        with tf.Graph().as_default(), tf.Session() as session:
            signature = tf.saved_model.loader.load(session, [tag], folder).signature_def[key]
            feed = {signature.inputs["x"].name: [1.0, 2.0]}
            assert session.run("w:0") == w
            if tag == "serve":
                np.testing.assert_allclose(session.run(signature.outputs["y"].name, feed), w * np.array([1, 2]))
                continue
            feed[signature.inputs["label"].name] = [2.0, 4.0]
            assert np.isclose(session.run(signature.outputs["loss"].name, feed), (2 - w) ** 2 * 2.5)
            np.testing.assert_allclose(session.run(signature.outputs["predictions/y"].name, feed), w * np.array([1, 2]))
            session.run(signature.outputs["metrics/error/update_op"].name, feed)
            assert np.isclose(session.run(signature.outputs["metrics/error/value"].name), (2 - w) * 1.5)
            if tag == "train":
                session.run(session.graph.get_collection("saved_model_train_op")[0], feed)
                assert session.run("w:0") > w


def test_one_mode(trained, tmp_path):
    receive = E.experimental.build_raw_supervised_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])}, tf.placeholder(tf.float32, [None]))
    folder = trained.export_saved_model(str(tmp_path), receive, experimental_mode=EVAL)
    with tf.Graph().as_default(), tf.Session() as session:
        assert set(tf.saved_model.loader.load(session, ["eval"], folder).signature_def) == {"eval"}
    with pytest.raises(ValueError, match="No valid modes"):
        trained.experimental_export_all_saved_models(str(tmp_path), {})
    with pytest.raises(ValueError, match="overlapping keys"):
        E.experimental.build_raw_supervised_input_receiver_fn({"label": tf.zeros([1])}, tf.zeros([1]))


def test_a_graph_with_more_variables_than_the_checkpoint(trained, tmp_path):
    def larger(features, labels, mode):
        tf.get_variable("more", [])
        return model_fn(features, labels, mode)

    made = E.Estimator(larger, trained.model_dir)
    with pytest.raises(ValueError, match="Could not load all requested variables"):
        made.export_saved_model(str(tmp_path), E.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])}))


def test_exports_at_steps(trained, tmp_path):
    made = tf.contrib.estimator.StepsExporter([7, 2, 3], "some", E.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])}))
    checkpoint = trained.latest_checkpoint()

    def exported(step):
        return made.export(trained, str(tmp_path / "out"), checkpoint, {"global_step": step}, False)

    assert exported(1) is None and exported(4) is not None and exported(5) is None
    (meta,) = reading.parse_saved_model(exported(9)).meta_graphs  # an import would fill them in
    graph = meta.graph_def
    assert not any("container" in node.attr for node in graph.node)  # attributes that have their default values are left out
    with pytest.raises(ValueError, match="at least one positive integer"):
        tf.contrib.estimator.StepsExporter([0, "a"])


def test_receivers_check_what_they_are_given():
    x = tf.zeros([1])
    made = E.export.ServingInputReceiver({1: x}, x)
    assert made.features == {1: x} and made.receiver_tensors == {"input": x}
    with pytest.raises(ValueError, match="labels must be defined"):
        SupervisedInputReceiver({"x": x}, None, x)


def test_outputs_of_the_modes_of_keras():
    with tf.Graph().as_default():
        predictions = {"predictions": tf.constant([1.0])}
        made = export_outputs_for_mode("predict", None, predictions)
        assert list(made) == ["serving_default"] and made["serving_default"].outputs == predictions
        assert list(export_outputs_for_mode("test", None, predictions, {"loss": tf.constant(1.0)})) == ["eval"]
        assert export_outputs_for_mode("predict", {"other": 1}) == {"other": 1}


def test_features_with_labeled_axes():
    labeled = tf.contrib.labeled_tensor.LabeledTensor(tf.ones([2, 3]), ["x", "y"])
    assert E.export.ServingInputReceiver(labeled, tf.ones([1])).features["feature"] is labeled

    class Other:
        tensor = "no tensor"

    with pytest.raises(ValueError, match="feature feature must be a Tensor"):
        E.export.ServingInputReceiver(Other(), tf.ones([1]))
