# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn: exports before SavedModels, strategies of exports, signatures, kinds of tensors, and what metrics compare."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace.compat import as_text
from millrace.contrib import layers, learn
from millrace.contrib.learn import export, export_utils, tensor_signature
from millrace.contrib.learn.metric_spec import MetricSpec
from millrace.contrib.session_bundle import bundle_shim
from millrace.contrib.session_bundle.session_bundle import load_session_bundle_from_path


def _line():
    x = np.linspace(-1, 1, 32).astype(np.float32)
    return x, 2 * x + 1


def _example(**values):
    features = {key: tf.train.Feature(float_list=tf.train.FloatList(value=[value])) for key, value in values.items()}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def test_export_writes_a_bundle_that_answers_examples(tmp_path):
    def input_fn():
        x, y = _line()
        return {"x": tf.constant(x[:, None])}, tf.constant(y)

    model = learn.LinearRegressor([layers.real_valued_column("x")], model_dir=str(tmp_path / "model"))
    model.fit(input_fn=input_fn, steps=200)
    folder = as_text(model.export(str(tmp_path / "out"), default_batch_size=None))
    assert os.path.basename(folder) == "00000200"
    session, meta = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(folder)
    signature = meta.signature_def["serving_default"]
    assert signature.method_name == "tensorflow/serving/regress"
    answer = session.run(signature.outputs["outputs"].name, {signature.inputs["inputs"].name: [_example(x=0.0), _example(x=1.0)]})
    wanted = list(model.predict(input_fn=lambda: ({"x": tf.constant([[0.0], [1.0]])}, None)))
    np.testing.assert_allclose(answer, wanted, rtol=1e-6)


def test_an_estimator_reads_examples_as_the_features_it_was_trained_with(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(w * features["x"] - labels))
        return {"y": w * features["x"]}, loss, layers.optimize_loss(loss, None, 0.1, "SGD")

    model = learn.Estimator(model_fn, model_dir=str(tmp_path / "model"))
    with pytest.raises(ValueError, match="was fit"):
        model._get_feature_ops_from_example(tf.constant([""]))
    model.fit(input_fn=lambda: ({"x": tf.constant([[1.0]])}, tf.constant([[3.0]])), steps=5)
    folder = model.export(str(tmp_path / "out"), signature_fn=export.generic_signature_fn)
    session, _ = load_session_bundle_from_path(as_text(folder))
    w = session.run("w:0")
    np.testing.assert_allclose(session.run("mul:0", {"input_example_tensor:0": [_example(x=2.0)]}), [[2 * w]], rtol=1e-6)
    with pytest.raises(ValueError, match="incompatible with given information"):
        model.evaluate(input_fn=lambda: ({"x": tf.constant([[1]])}, tf.constant([[3.0]])), steps=1)


def test_export_monitor_exports_what_is_saved(tmp_path):
    x, y = _line()
    monitor = learn.monitors.ExportMonitor(10, str(tmp_path / "out"), exports_to_keep=1, signature_fn=export.generic_signature_fn)
    learn.LinearRegressor([layers.real_valued_column("")]).fit(x, y, steps=3, monitors=[monitor])
    assert os.listdir(str(tmp_path / "out")) == ["00000003"]
    assert as_text(monitor.last_export_dir) == str(tmp_path / "out" / "00000003")


def test_signatures_of_all_outputs_are_named_after_both_ends():
    with tf.Graph().as_default():
        examples, number, word = tf.constant(["a"]), tf.constant([1.0]), tf.constant(["b"])
        outputs = {
            "one": (learn.ProblemType.LINEAR_REGRESSION, {"y": number}),
            "two": (learn.ProblemType.CLASSIFICATION, {"classes": word, "scores": number}),
            "three": (learn.ProblemType.CLASSIFICATION, {"classes": tf.constant([1]), "logits": number}),
        }
        made = export_utils.build_all_signature_defs({export_utils.DEFAULT_INPUT_ALTERNATIVE_KEY: {"in": examples}}, outputs, "one")
    methods = {key: value.method_name.rpartition("/")[2] for key, value in made.items()}
    start = "default_input_alternative:"
    assert methods == {"serving_default": "regress", start + "one": "regress", start + "two": "classify", start + "three": "predict"}
    ops = learn.ModelFnOps("infer", {"y": 1.0}, output_alternatives={"a": (0, {}), "b": (0, {})})
    with pytest.raises(ValueError, match="Please specify a default_output_alternative"):
        export_utils.get_output_alternatives(ops)


def test_only_better_models_are_exported(tmp_path):
    class Written:
        model_dir = str(tmp_path)

        def export_savedmodel(self, folder, *unused, **options):
            os.makedirs(folder)
            return folder

    strategy = learn.utils.make_best_model_export_strategy(None)
    answers = [strategy.export(Written(), str(tmp_path / "out"), "checkpoint-%d" % i, {"loss": loss}) for i, loss in enumerate([5, 6, 4])]
    assert [os.path.basename(answer) for answer in answers] == ["checkpoint-0", "", "checkpoint-2"]


def test_an_export_can_be_made_into_another(tmp_path):
    def base(estimator, folder, checkpoint_path=None):
        os.makedirs(os.path.join(folder, "1"))
        return os.path.join(folder, "1")

    def after(path, folder):
        os.makedirs(os.path.join(folder, "2"))
        return os.path.join(folder, "2")

    extended = learn.utils.extend_export_strategy(learn.ExportStrategy("base", base), after, "after")
    assert extended.name == "after"
    assert extended.export(None, str(tmp_path)) == str(tmp_path / "2") and os.listdir(str(tmp_path)) == ["2"]


def test_kinds_of_tensors_leave_the_number_of_examples_open():
    with tf.Graph().as_default():
        kinds = tensor_signature.create_signatures({"a": tf.placeholder(tf.int32, [None, 3])})
        assert tensor_signature.tensors_compatible({"a": tf.zeros([7, 3], tf.int32)}, kinds)
        assert not tensor_signature.tensors_compatible({"a": tf.zeros([7, 4], tf.int32)}, kinds)
        assert not tensor_signature.tensors_compatible({"a": tf.zeros([7, 3])}, kinds)
        assert not tensor_signature.tensors_compatible(tf.zeros([7, 3], tf.int32), kinds)
        parsed = tensor_signature.create_example_parser_from_signatures(kinds, tf.placeholder(tf.string, [None]))
        assert tensor_signature.tensors_compatible(parsed, kinds)


def test_metrics_get_what_their_arguments_are_named_after():
    def call(function, **keys):
        return MetricSpec(function, **keys).create_metric_ops({"w": "weights"}, {"l": "labels"}, {"p": "predictions"})

    assert call(lambda logits, target, weight=None: (target, logits, weight), weight_key="w") == ("labels", "predictions", "weights")
    assert call(lambda labels, other: (labels, other)) == ("labels", "predictions")
    assert call(lambda other, labels: (labels, other)) == ("labels", "predictions")
    assert call(lambda other: other) == "predictions"
    with pytest.raises(ValueError, match="provide only one of"):
        MetricSpec(lambda labels, target: None)
    with pytest.raises(ValueError, match=r"weight.* missing from"):
        MetricSpec(lambda labels: None, weight_key="w")
    with pytest.raises(ValueError, match="label_key specified requires labels dict"):
        MetricSpec(lambda labels: None, label_key="l").create_metric_ops({}, "labels", "predictions")
