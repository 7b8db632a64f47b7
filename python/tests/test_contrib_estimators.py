# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: recurrent estimators, and estimators of SavedModels."""

import pickle

import numpy as np
import pytest

import millrace as tf

E, C = tf.estimator, tf.contrib.estimator


def _data():
    return tf.data.Dataset.from_tensors(({"x": tf.constant([[1.0], [2.0]])}, tf.constant([[2.0], [4.0]]))).repeat()


def _model(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    y = w * features["x"]
    if mode == E.ModeKeys.PREDICT:
        return E.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.reduce_mean(tf.square(y - labels))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return E.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=train_op, eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, y)})


def _exported(tmp_path, modes):
    estimator = E.Estimator(_model, str(tmp_path / "first"))
    estimator.train(_data, steps=1)
    feature, label = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    receivers = {mode: C.build_raw_supervised_input_receiver_fn({"x": feature}, label) for mode in (E.ModeKeys.TRAIN, E.ModeKeys.EVAL)}
    receivers[E.ModeKeys.PREDICT] = E.export.build_raw_serving_input_receiver_fn({"x": feature})
    path = C.export_all_saved_models(estimator, str(tmp_path / "exported"), {mode: receivers[mode] for mode in modes})
    return path, estimator.get_variable_value("w")


def test_an_estimator_of_a_saved_model_goes_on_training(tmp_path):
    path, w = _exported(tmp_path, [E.ModeKeys.TRAIN, E.ModeKeys.EVAL, E.ModeKeys.PREDICT])
    made = C.SavedModelEstimator(path, str(tmp_path / "second"))
    before = made.evaluate(_data, steps=1)
    assert before["global_step"] == 1
    np.testing.assert_allclose(before["metrics/error"], 1.5 * abs(2 - w), rtol=1e-5)
    np.testing.assert_allclose(next(made.predict(lambda: tf.data.Dataset.from_tensors({"x": tf.constant([[3.0]])})))["y"], [3 * w], rtol=1e-6)
    made.train(_data, steps=20)
    assert made.get_variable_value("global_step") == 21 and abs(made.get_variable_value("w") - 2) < 1e-3
    assert made.evaluate(_data, steps=1)["loss"] < 1e-6


def test_a_saved_model_says_what_can_be_done_and_what_it_takes(tmp_path):
    path, _ = _exported(tmp_path, [E.ModeKeys.EVAL])
    made = C.SavedModelEstimator(path, str(tmp_path / "second"))
    with pytest.raises(RuntimeError, match="train mode is not available"):
        made.train(_data, steps=1)
    with pytest.raises(ValueError, match="Expected dtype"):
        made.evaluate(lambda: tf.data.Dataset.from_tensors(({"x": tf.constant([[1]])}, tf.constant([[1.0]]))), steps=1)
    with pytest.raises(ValueError, match='Key "x" not found'):
        made.evaluate(lambda: tf.data.Dataset.from_tensors(({"z": tf.constant([[1.0]])}, tf.constant([[1.0]]))), steps=1)


def test_an_evaluation_initializes_its_measures_beside_the_models_own(tmp_path):
    def model(features, labels, mode):
        v = tf.Variable(5.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return E.EstimatorSpec(mode, loss=tf.identity(v), train_op=step, scaffold=tf.train.Scaffold(local_init_op=v.initializer))

    estimator = E.Estimator(model, str(tmp_path))
    estimator.train(_data, steps=1)
    assert estimator.evaluate(_data, steps=2)["loss"] == 5


def test_a_recurrent_classifier_reads_the_order_of_words():
    words = tf.contrib.feature_column.sequence_categorical_column_with_vocabulary_list("words", ["a", "b"])
    column = tf.feature_column.embedding_column(words, 2)

    def input_fn():
        texts = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], ["a", "b", "b", "a", "b"], [3, 2])
        return {"words": texts, "context": tf.constant([[0.0], [0.0], [1.0]])}, tf.constant([[1], [0], [1]])

    made = C.RNNClassifier(
        [column],
        [tf.feature_column.numeric_column("context")],
        num_units=[4],
        cell_type="gru",
        optimizer=tf.train.AdamOptimizer(0.05),
        config=E.RunConfig(tf_random_seed=1),
    )
    made.train(input_fn, steps=100)
    result = made.evaluate(input_fn, steps=1)
    assert result["accuracy"] == 1 and result["loss"] < 0.2
    assert "rnn/logits/dense/kernel" in made.get_variable_names()
    with pytest.raises(ValueError, match="must not be specified when using rnn_cell_fn"):
        C.RNNClassifier([column], num_units=[2], rnn_cell_fn=lambda mode: None)


def _towers(rate, reduction, devices, optimizer=C.TowerOptimizer):
    def model_fn(features, labels, mode, params):
        w = tf.get_variable("w", [1], initializer=tf.zeros_initializer())
        y = features["x"] * w
        if mode == E.ModeKeys.PREDICT:
            return E.EstimatorSpec(mode, {"y": y, "here": tf.fill([tf.shape(y)[0]], tf.convert_to_tensor(y.device))})
        loss = tf.losses.absolute_difference(labels, y, reduction=reduction)
        train = optimizer(tf.train.GradientDescentOptimizer(params["rate"])).minimize(loss, tf.train.get_global_step())
        return E.EstimatorSpec(mode, {"y": y}, loss, train, {"error": tf.metrics.mean_absolute_error(labels, y)})

    return C.replicate_model_fn(model_fn, reduction, devices)


def test_models_on_several_devices(tmp_path):
    x = np.arange(1, 7, dtype=np.float32)[:, np.newaxis]  # the losses and gradients of 6 rows in 3 towers
    fed = tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x, batch_size=6, shuffle=False)
    for i, (reduction, step, loss) in enumerate((("weighted_sum", 21.0, 399.0), ("weighted_sum_by_nonzero_weights", 3.5, 5.25))):
        made = tf.estimator.Estimator(_towers(1.0, reduction, ["/cpu:0"] * 3), str(tmp_path / str(i)), params={"rate": 1.0})
        made.train(fed, steps=1)
        np.testing.assert_allclose(made.get_variable_value("w"), [step])
        found = made.evaluate(fed)
        np.testing.assert_allclose([found["loss"], found["error"]], [loss, 3.5 * abs(step - 2)])
        assert found["global_step"] == 1
        np.testing.assert_allclose([row["y"] for row in made.predict(fed)], step * x)


def test_optimizers_may_say_how_losses_of_towers_are_reduced():
    old = tf.python.estimator.replicate_model_fn

    def applied(*reductions):
        def model_fn(features, labels, mode):
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            loss = tf.losses.absolute_difference(labels, features * w, reduction="weighted_sum")
            steps = [old._TowerOptimizer(tf.train.GradientDescentOptimizer(1.0), by).minimize(loss) for by in reductions]
            return E.EstimatorSpec(mode, loss=loss, train_op=tf.group(*steps))

        with tf.Graph().as_default(), tf.Session() as session:
            spec = old._replicate_model_fn(model_fn, ["/cpu:0"] * 2)(tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0]), E.ModeKeys.TRAIN)
            session.run(tf.global_variables_initializer())
            session.run(spec.train_op)
            return session.run([tf.global_variables()[0], spec.loss])

    assert applied("weighted_sum") == [3.0, 1.0]
    assert applied("weighted_mean") == [1.5, 1.75]
    with pytest.raises(ValueError, match="share one loss_reduction"):
        applied("weighted_sum", "weighted_mean")
    with pytest.raises(ValueError, match="none reduction"):
        old._TowerOptimizer(None, "none")


def test_where_towers_are(tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.ones([4, 1])
        spec = _towers(1.0, "weighted_sum", ["/device:GPU:1", "/device:GPU:2"])({"x": x}, x, E.ModeKeys.TRAIN, {"rate": 1.0})
        assert graph.get_operation_by_name("w").device == "/device:CPU:0" and spec.loss.device == "/device:CPU:0"
        assert [graph.get_operation_by_name(name).device for name in ("mul", "tower_1/mul")] == ["/device:GPU:1", "/device:GPU:2"]
        assert not graph.get_collection_ref(C.TowerOptimizer.COLLECTION_FOR_GRAPH_STATES)


def test_towers_that_cannot_be(tmp_path):
    x = np.ones([3, 1], np.float32)
    with pytest.raises(ValueError, match="Batch size 3 needs to be divisible"):
        _towers(1.0, "weighted_sum", ["/cpu:0", "/cpu:0"])({"x": x}, x, E.ModeKeys.TRAIN, {"rate": 1.0})
    with pytest.raises(ValueError, match="none reduction"):
        _towers(1.0, "none", ["/cpu:0"])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="wrap optimizers with TowerOptimizer"):
        _towers(1.0, "weighted_sum", ["/cpu:0", "/cpu:0"], lambda o: o)({"x": x[:2]}, x[:2], E.ModeKeys.TRAIN, {"rate": 1.0})


@pytest.mark.parametrize("of_today", [False, True])
def test_annotated_inputs(tmp_path, of_today):
    fc = tf.feature_column
    columns = [fc.embedding_column(fc.categorical_column_with_vocabulary_list("c", ["a", "b"]), 3), fc.numeric_column("x")]
    if not of_today:
        columns[1] = fc.bucketized_column(columns[1], [0.0, 1.0])
    made = C.DNNRegressorWithLayerAnnotations([4], columns, str(tmp_path))
    features = {"x": tf.constant([[1.0], [2.0]]), "c": tf.constant([["a"], ["b"]]), "unused": tf.constant([1, 2])}
    with tf.get_default_graph().as_default() as graph:
        spec = made.model_fn(features, None, E.ModeKeys.PREDICT, made.config)
    kept = {
        name: graph.get_collection("layer_annotat%ss/%s" % ("on" if "proc" in name[:4] else "ion", name))
        for name in ("processed_features/keys", "unprocessed_features/keys", "feature_columns")
    }
    assert spec.predictions and sorted(kept["unprocessed_features/keys"]) == ["c", "x"] and kept["processed_features/keys"] == [c.name for c in columns]
    assert [pickle.loads(column).name for column in kept["feature_columns"]] == [c.name for c in columns]
    info = tf.MetaGraphDef.FromString(tf.train.export_meta_graph().SerializeToString()).collection_def["layer_annotatons/processed_features/values"]
    found = tf.saved_model.utils.build_tensor_info(features["x"])
    assert info.any_list.value[0].Unpack(found) and [d.size for d in found.tensor_shape.dim] == [2, 3]
