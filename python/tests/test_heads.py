# SPDX-License-Identifier: Apache-2.0
"""The heads of estimators: losses, weights, shapes, several heads as one, and what extends estimators."""

import numpy as np
import pytest

import millrace as tf

heads = tf.contrib.estimator
EVAL, TRAIN, PREDICT = tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.PREDICT


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def entropy(labels, logits):
    labels, p = np.asarray(labels, np.float64), sigmoid(logits)
    return -labels * np.log(p) - (1 - labels) * np.log(1 - p)


def run(*tensors):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return session.run(tensors)


def measured(spec):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([update for _, update in spec.eval_metric_ops.values()])
        return session.run({key: value for key, (value, _) in spec.eval_metric_ops.items()})


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_losses_of_many_labels():
    logits, labels = np.float32([[-1, 2, 0], [3, 0.5, -2]]), np.int64([[1, 0, 1], [0, 1, 1]])
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "c", "b", "c"], [2, 2])
    each = entropy(labels, logits).mean(1, keepdims=True)
    weights = np.float32([[2], [1]])
    for given, words in ((labels, None), (sparse, ["a", "b", "c"])):
        made = heads.multi_label_head(3, weight_column="w", label_vocabulary=words).create_loss({"w": weights}, EVAL, logits, given)
        loss, unreduced, target = run(made.training_loss, made.unreduced_loss, made.processed_labels)
        np.testing.assert_allclose(unreduced, each, rtol=1e-5)
        assert np.isclose(loss, (each * weights).sum() / 2, rtol=1e-5) and target.tolist() == labels.tolist()
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        heads.multi_label_head(1)
    with pytest.raises(ValueError, match=r"thresholds must be in \(0, 1\) range. Given: 1.0"):
        heads.multi_label_head(2, thresholds=[0.5, 1.0])
    with pytest.raises(ValueError, match="label_vocabulary must be a list or tuple. Given type: .*dict"):
        heads.multi_label_head(2, label_vocabulary={"a": 1, "b": 2})
    with pytest.raises(ValueError, match="Length of label_vocabulary"):
        heads.multi_label_head(3, label_vocabulary=["a"])
    with pytest.raises(ValueError, match="must be in range"):
        heads.multi_label_head(3, classes_for_class_based_metrics=[3])


def test_measures_of_classes():
    logits, labels = np.float32([[-1, 2], [3, 0.5]]), np.int64([[1, 0], [0, 1]])
    head = heads.multi_label_head(2, thresholds=[0.6], classes_for_class_based_metrics=[1], name="many")
    got = measured(head.create_estimator_spec({}, EVAL, logits, labels, regularization_losses=[tf.constant(1.5)]))
    assert np.isclose(got["probability_mean/class1/many"], sigmoid(logits[:, 1]).mean())
    assert np.isclose(got["accuracy/positive_threshold_0.6/many"], 0.25)
    assert np.isclose(got["regularization_loss/many"], 1.5) and np.isclose(got["average_loss/many"], entropy(labels, logits).mean(), rtol=1e-5)


def test_outer_shapes_and_weights():
    logits = np.float32([[[1], [2]], [[3], [-1]]])  # [2, 2, 1]
    labels, weights = np.float32([[0, 1], [1, 1]]), np.float32([[1, 2], [3, 4]])
    made = heads.binary_classification_head(weight_column="w").create_loss({"w": weights}, EVAL, logits, labels)
    want = (entropy(labels, logits[..., 0]) * weights).mean()
    assert np.isclose(run(made.training_loss)[0], want, rtol=1e-5)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        run(heads.binary_classification_head().create_loss({}, EVAL, logits, tf.placeholder_with_default(np.float32([[0], [1]]), None)).training_loss)
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights shape must be"):
        rows = tf.placeholder_with_default(np.float32([[1], [2], [3]]), [None, 1])
        run(heads.regression_head("w").create_loss({"w": rows}, EVAL, np.float32([[1], [2]]), np.float32([[1], [2]])).weights)


def test_a_weighted_sum_shows_its_mean_by_weights(tmp_path):
    head = heads.regression_head(weight_column="w", loss_reduction=tf.losses.Reduction.SUM)
    spec = head.create_estimator_spec({"w": np.float32([[1], [3]])}, TRAIN, np.float32([[1], [2]]), np.float32([[0], [0]]), train_op_fn=lambda loss: tf.no_op())
    values = {v.tag: v.simple_value for v in tf.Summary.FromString(run(tf.summary.merge_all())[0]).value}
    assert values["loss"] == 13 and values["average_loss"] == 13 / 4 and run(spec.loss)[0] == 13


def test_updates_are_part_of_the_training():
    """Moving averages of a model with a head move, though nobody names them."""
    moved = tf.Variable(0.0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, moved.assign_add(1.0).op)
    spec = heads.regression_head().create_estimator_spec({}, TRAIN, np.float32([[1]]), np.float32([[0]]), train_op_fn=lambda loss: tf.no_op())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(spec.train_op)
        assert session.run(moved) == 1


def test_links_of_regressions():
    logits, labels = np.float32([[0.3], [-1]]), np.float32([[2], [1]])
    spec = heads.poisson_regression_head(compute_full_loss=False).create_estimator_spec({}, EVAL, logits, labels)
    loss, mean = run(spec.loss, spec.predictions["predictions"])
    assert np.isclose(loss, (np.exp(logits) - labels * logits).mean(), rtol=1e-5) and np.allclose(mean, np.exp(logits))
    spec = heads.logistic_regression_head().create_estimator_spec({}, EVAL, logits, np.float32([[0.25], [1]]))
    assert np.isclose(run(spec.loss)[0], entropy([[0.25], [1]], logits).mean(), rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Labels must be in range \[0, 1\]"):
        run(heads.logistic_regression_head().create_loss({}, EVAL, logits, tf.placeholder_with_default(labels, [2, 1])).training_loss)


def test_all_classes_are_predicted():
    made = heads.multi_class_head(3, label_vocabulary=["x", "y", "z"]).create_estimator_spec({}, PREDICT, np.float32([[1, 2, 0], [4, 3, 0]])).predictions
    ids, words = run(made["all_class_ids"], made["all_classes"])
    assert ids.tolist() == [[0, 1, 2]] * 2 and words.tolist() == [[b"x", b"y", b"z"]] * 2


@pytest.mark.parametrize("as_dict", [True, False])
def test_several_heads(as_dict):
    first = heads.regression_head(name="a", label_dimension=2)
    head = heads.multi_head([first, heads.regression_head(name="b")], head_weights=[1.0, 2.0])
    a, b = np.float32([[1, 2], [0, 1]]), np.float32([[3], [1]])
    logits = {"a": a, "b": b} if as_dict else np.concatenate([a, b], 1)
    zeros = {"a": np.zeros_like(a), "b": np.zeros_like(b)}
    assert head.name == "a_b" and head.logits_dimension == 3
    spec = head.create_estimator_spec({}, EVAL, logits, zeros)
    want = (a**2).mean() + 2 * (b**2).mean()
    got = measured(spec)
    assert np.isclose(run(spec.loss)[0], want) and np.isclose(got["loss/a"], 1.5) and np.isclose(got["average_loss/b"], 5)
    exports = head.create_estimator_spec({}, PREDICT, logits)
    assert {"serving_default", "a", "b", "a/predict", "b/regression", "predict"} <= set(exports.export_outputs)
    assert ("b", "predictions") in exports.predictions
    trained = head.create_estimator_spec({}, TRAIN, logits, zeros, train_op_fn=lambda loss: tf.identity(loss))
    assert np.isclose(run(trained.train_op)[0], want)
    with pytest.raises(ValueError, match="name specified"):
        heads.multi_head([heads.regression_head()])
    with pytest.raises(ValueError, match="Could not split logits"):
        head.create_estimator_spec({}, PREDICT, np.zeros([2, 4], "f"))


def test_heads_of_later_estimators():
    head = tf.estimator.MultiHead([tf.estimator.MultiLabelHead(2, name="m"), tf.estimator.RegressionHead(name="r")])
    logits = np.float32([[1, -1, 2]])
    spec = head.create_estimator_spec({}, TRAIN, logits, {"m": np.int64([[1, 0]]), "r": np.float32([[0]])}, train_op_fn=tf.identity)
    assert np.isclose(run(spec.train_op)[0], entropy([[1, 0]], logits[:, :2]).mean() + 4, rtol=1e-5)


def test_functions_of_losses_are_checked():
    with pytest.raises(ValueError, match="must contain argument: logits"):
        heads.regression_head(loss_fn=lambda labels: labels)
    with pytest.raises(ValueError, match="unexpected args"):
        heads.regression_head(loss_fn=lambda labels, logits, other: labels)
    with pytest.raises(ValueError, match="Invalid loss_reduction"):
        heads.regression_head(loss_reduction="none")
    head = heads.regression_head(loss_fn=lambda labels, logits, features: features["x"] * tf.abs(labels - logits))
    assert run(head.create_loss({"x": 2.0}, EVAL, np.float32([[1], [2]]), np.float32([[0], [0]])).training_loss)[0] == 3


def _linear(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = heads.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 0.5).minimize(-100 * w, global_step=tf.train.get_or_create_global_step())
        made = {"y": features["x"] * w}
        return tf.estimator.EstimatorSpec(mode, made, tf.reduce_sum(made["y"]), step, export_outputs={"predict": tf.estimator.export.PredictOutput(made)})

    return tf.estimator.Estimator(model_fn, str(tmp_path))


def test_shapes_that_differ_are_found_by_the_step_or_by_the_loss():
    def loss_fn(labels, logits):
        return tf.constant([1.0, 2])

    logits = np.float32([[-10], [10]])
    made = heads.binary_classification_head(loss_fn=loss_fn).create_loss({"x": logits}, EVAL, logits, np.int64([[1], [0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[loss_fn must return .* 1\]. \] \[logits_shape: \] \[2 1\] \[loss_shape: \] \[2\]"):
        run(made.training_loss)
    with pytest.raises(ValueError, match="logits and labels must have the same shape"):
        heads.binary_classification_head().create_loss({"x": logits}, EVAL, logits, np.int64([[1], [0], [0]]))
    with pytest.raises(ValueError, match=r"The shape of labels \(received \(3,\)\) should equal .* last dimension \(received \(2, 3\)\)"):
        heads.multi_class_head(3).create_loss({"x": logits}, EVAL, np.zeros((2, 3), "f"), np.int64([[1], [0], [2]]))


def test_extended_estimators(tmp_path):
    def input_fn():
        return tf.data.Dataset.from_tensors({"x": [1.0, 2.0], "key": ["a", "b"]})

    made = _linear(tmp_path).train(input_fn, steps=1)
    assert made.get_variable_value("w") == 0.5 and made.eval_dir() == str(tmp_path / "eval") and made.eval_dir("b").endswith("eval_b")
    forwarded = heads.forward_features(made, "key")
    assert [(p["y"], p["key"]) for p in forwarded.predict(input_fn)] == [(0.5, b"a"), (1.0, b"b")]
    with pytest.raises(TypeError, match="string or a list"):
        heads.forward_features(made, {"key"})
    with pytest.raises(ValueError, match="keys should be exist in features"):
        next(heads.forward_features(made, ["other"]).predict(input_fn))


def test_heads_of_programs():
    from millrace.estimator.heads import _Head

    class Unfinished(_Head):
        def name(self):
            return "unfinished"

        def logits_dimension(self):
            return 2

    class Whole(Unfinished):
        def create_estimator_spec(self, features, mode, logits, labels=None, optimizer=None, train_op_fn=None, regularization_losses=None):
            return tf.estimator.EstimatorSpec(mode, predictions=logits)

    with pytest.raises(NotImplementedError, match="must implement `create_estimator_spec.*Unfinished"):
        Unfinished().create_estimator_spec({}, PREDICT, [[1.0, 2.0]])
    assert Whole().name() == "unfinished" and Whole().create_estimator_spec({}, PREDICT, tf.ones([1, 2])).predictions.shape == [1, 2]
