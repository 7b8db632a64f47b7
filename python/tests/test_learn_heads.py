# SPDX-License-Identifier: Apache-2.0
"""Heads, monitors, exports and input functions of tf.contrib.learn."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace.estimator import feeding_functions

learn, layers = tf.contrib.learn, tf.contrib.layers


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def values(ops):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([update for _, update in ops.eval_metric_ops.values()])
        loss, measured = session.run([ops.loss, {key: value for key, (value, _) in ops.eval_metric_ops.items()}])
    return float(loss), measured


def made(head, labels, logits, mode="eval", **features):
    return head.create_model_fn_ops(features, mode, labels, learn.no_op_train_fn, logits)


def test_a_head_of_numbers_trains_the_mean_of_losses_times_weights_and_tells_the_weighted_mean():
    ops = made(learn.regression_head(weight_column_name="w"), [[0.0], [1.0], [1.0]], [[1.0], [1.0], [3.0]], w=(2.0, 5.0, 0.0))
    loss, measured = values(ops)
    assert loss == pytest.approx(2 / 3) and measured["loss"] == pytest.approx(2 / 7)
    assert list(ops.output_alternatives[None][1]) == ["scores"] and ops.estimator_spec().export_outputs.keys() == {"serving_default"}
    counts = made(learn.poisson_regression_head(), [[2.0]], [[0.5]])
    stirling = 2 * np.log(2) - 2 + 0.5 * np.log(2 * np.pi * 2)
    assert values(counts)[0] == pytest.approx(np.exp(0.5) - 2 * 0.5 + stirling)


def test_heads_of_classes():
    loss, measured = values(made(learn.multi_class_head(2, head_name="h"), [[1.0], [0.0]], [[1.0], [1.0]]))
    assert loss == pytest.approx((2 * np.log1p(np.exp(-1)) + 1) / 2)
    assert measured["accuracy/h"] == 0.5 and measured["labels/prediction_mean/h"] == pytest.approx(1 / (1 + np.exp(-1)))
    assert measured["recall/positive_threshold_0.500000_mean/h"] == pytest.approx(1) and measured["auc/h"] == pytest.approx(0.5, abs=1e-4)

    head = learn.multi_class_head(3, label_keys=["a", "b", "c"], metric_class_ids=[2])
    ops = made(head, ["c"], [[0.0, 0.0, 1.0]])
    loss, measured = values(ops)
    assert loss == pytest.approx(np.log(2 + np.e) - 1) and measured["accuracy"] == 1 and measured["labels/actual_label_mean/class2"] == 1
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(ops.predictions["classes"]).tolist() == [b"c"]
        assert session.run(ops.output_alternatives[None][1]["classes"]).tolist() == [[b"a", b"b", b"c"]]

    labels = tf.SparseTensor([[0, 0]], [2], [1, 1])
    loss, measured = values(made(learn.multi_label_head(3, metric_class_ids=[0]), labels, [[1.0, 0.0, 0.0]]))
    assert loss == pytest.approx((np.log1p(np.e) + 2 * np.log(2)) / 3) and measured["accuracy"] == pytest.approx(1 / 3)
    assert values(made(learn.binary_svm_head(), (0, 1), [[-0.5], [1.2]]))[0] == pytest.approx(0.25)
    with pytest.raises(ValueError, match="not compatible"):
        made(learn.multi_class_head(3), [[0]], [[1.0, 2.0]])


def test_several_heads():
    heads = [learn.multi_class_head(3, "a", head_name="one"), learn.regression_head("b", head_name="two"), learn.loss_only_head(lambda: 1.0, "three")]
    head, labels = learn.multi_head(heads, (1, 0.5, 2)), {"a": (1,), "b": ((2.0,),)}
    assert head.logits_dimension == 4
    ops = made(head, labels, [[0.0, 0.0, 0.0, 1.0]], "train")
    assert values(ops)[0] == pytest.approx(np.log(3) + 0.5 + 2) and ops.predictions is None
    asked = made(head, None, [[0.0, 0.0, 0.0, 1.0]], "infer")
    assert ("two", "scores") in asked.predictions and set(asked.output_alternatives) == {"one", "two"}
    with pytest.raises(ValueError, match="must have names"):
        learn.multi_head([learn.regression_head()])


X = np.random.RandomState(0).randn(64, 2).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


def inputs():
    return {"x": tf.constant(X)}, tf.constant(Y[:, None])


def test_models_have_the_names_of_contrib():
    column = layers.real_valued_column("x", 2)
    classifier = learn.DNNClassifier([3], [column], n_classes=3, enable_centered_bias=True)
    classifier.fit(input_fn=inputs, steps=2)
    names = classifier.get_variable_names()
    assert {"dnn/hiddenlayer_0/weights", "dnn/logits/biases", "dnn/multi_class_head/centered_bias_weight"} <= set(names)
    estimator = learn.LinearEstimator([column], learn.regression_head())
    assert "linear/x/weight" in estimator.fit(input_fn=inputs, steps=2).get_variable_names()
    both = {"linear_feature_columns": [column], "dnn_feature_columns": [column], "dnn_hidden_units": [2]}
    for once, times in ((False, 3), (True, 4)):  # both parts count each step, as in TensorFlow, unless they are asked not to
        trained = []

        class Counted(learn.monitors.BaseMonitor):
            def step_end(self, step, output, trained=trained):
                trained.append(step)
                return super().step_end(step, output)

        model = learn.DNNLinearCombinedClassifier(**both, fix_global_step_increment_bug=once)
        model.fit(input_fn=inputs, steps=4, monitors=[Counted()])
        assert model.evaluate(input_fn=inputs, steps=1)["global_step"] == (4 if once else 2 * len(trained)) and 2 <= len(trained) <= times


class Every(learn.monitors.EveryN):
    def __init__(self):
        super().__init__(every_n_steps=3, first_n_steps=1)
        self.seen, self.after = [], []

    def every_n_step_begin(self, step):
        return ["dnn/logits/biases", "linear/x/weight:0"][1:]

    def every_n_step_end(self, step, outputs):
        self.seen.append((step, outputs["linear/x/weight:0"].shape))
        return step >= 7

    def every_n_post_step(self, step, session):
        self.after.append(step)


def test_monitors_of_ones_own():
    monitor, kept = Every(), learn.monitors.CaptureVariable("linear/x/weight", every_n=2)
    estimator = learn.LinearClassifier([layers.real_valued_column("x", 2)])
    estimator.fit(input_fn=inputs, steps=100, monitors=[monitor, kept, learn.monitors.PrintTensor(["global_step:0"])])
    assert monitor.seen == [(1, (2, 1)), (4, (2, 1)), (7, (2, 1))] and monitor.after == [1, 4, 7]
    assert sorted(kept.values) == [1, 3, 5, 7]
    with pytest.raises(ValueError, match="One of num_steps or last_step"):
        learn.monitors.StopAtStep()
    base = learn.monitors.BaseMonitor()
    with pytest.raises(ValueError, match="end called without begin"):
        base.end()


def test_experiments_export(tmp_path):
    spec = layers.create_feature_spec_for_parsing([layers.real_valued_column("x", 2)])
    strategy = learn.make_export_strategy(learn.build_parsing_serving_input_fn(spec), exports_to_keep=1)
    estimator = learn.LinearClassifier([layers.real_valued_column("x", 2)], str(tmp_path))
    results, exported = learn.Experiment(estimator, inputs, inputs, train_steps=3, eval_steps=1, export_strategies=strategy).train_and_evaluate()
    assert results["global_step"] == 3 and os.path.dirname(tf.compat.as_str(exported[0])) == str(tmp_path / "export" / "Servo")
    example = tf.train.Example(features=tf.train.Features(feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=[5, 0]))}))
    with tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], tf.compat.as_str(exported[0]))
        signature = meta.signature_def["serving_default"]
        (given,) = signature.inputs.values()
        classes = session.run(signature.outputs["classes"].name, {given.name: [example.SerializeToString()]})
    assert classes.tolist() == [[b"0", b"1"]]
    with pytest.raises(ValueError, match="must be an ExportStrategy"):
        learn.Experiment(estimator, inputs, inputs, export_strategies=[1])


def test_generators_as_input():
    def rows():
        for i in range(3):
            yield {"a": np.array([i]), "b": np.array([10.0 * i]), "y": np.array([-i])}

    features, labels = learn.io.generator_input_fn(rows, target_key="y", batch_size=2, shuffle=False)()
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        a, b, y = session.run([features["a"], features["b"], labels])
        coord.request_stop()
        coord.join(threads)
    assert a.ravel().tolist() == [0, 1] and b.ravel().tolist() == [0, 10] and y.ravel().tolist() == [0, -1]
    for size, epochs, batches in ((2, 1, [[0, 1], [2, 0]]), (5, 1, [[0, 1, 2, 0, 1]]), (5, 3, [[0, 1, 2, 0, 1], [2, 0, 1, 2, 0]]), (3, 1, [[0, 1, 2]] * 2)):
        take, _ = feeding_functions._of_generator(rows, size, epochs, None)  # as TensorFlow 1.15.5 counts epochs
        assert [take()[0].ravel().tolist() for _ in batches] == batches
        with pytest.raises(StopIteration):
            take()
    for given, key, message in ((1, None, "x must be generator function"), (lambda: 1, None, r"x\(\) must be generator"), (rows, 1, "target_key must be str")):
        with pytest.raises(TypeError, match=message):
            learn.io.generator_input_fn(given, target_key=key)
    with pytest.raises(KeyError, match="not in yielded dict"):
        learn.io.generator_input_fn(rows, target_key="z")


def test_a_probability_of_ones_own_is_measured():
    def model(features, labels, mode):
        predictions = tf.sigmoid(layers.fully_connected(features["x"], 1, activation_fn=None))
        if mode == learn.ModeKeys.INFER:
            return predictions, None, None
        loss = tf.losses.log_loss(labels, predictions)
        return predictions, loss, tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())

    estimator = learn.LogisticRegressor(model, thresholds=[0.25])
    with pytest.raises(learn.NotFittedError):
        estimator.evaluate(input_fn=inputs, steps=1)
    results = estimator.fit(input_fn=inputs, steps=60).evaluate(input_fn=inputs, steps=1)
    assert results["accuracy"] > 0.9 and results["auc"] > 0.95 and 0 < results["precision/positive_threshold_0.250000_mean"] <= 1


def test_points_that_no_line_tells_apart():
    circles, again = (learn.datasets.make_dataset("circles", 60, 0.1, 3) for _ in range(2))
    assert np.array_equal(circles.data, again.data) and np.bincount(circles.target).tolist() == [30, 30]
    spirals = learn.datasets.synthetic.spirals(50, mode="fermat")
    assert spirals.data.shape == (50, 2) and np.abs(spirals.data).max() == 1
    with pytest.raises(ValueError):
        learn.datasets.make_dataset("squares")
