# SPDX-License-Identifier: Apache-2.0
"""TPUEstimator and what goes with it, on a machine without TPUs."""

import numpy as np
import pytest

import millrace as tf

tpu = tf.contrib.tpu


def _model(features, labels, mode, params):
    _model.seen.append((mode, params.get("batch_size"), params["use_tpu"]))
    answer = features["x"] * tf.get_variable("w", [], initializer=tf.zeros_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": answer})
    loss = tf.reduce_mean(tf.squared_difference(answer, labels))
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    step = tf.train.get_global_step()

    def told(values):
        _model.called.append(mode)
        with tf.contrib.summary.create_file_writer(params["told"]).as_default(), tf.contrib.summary.always_record_summaries():
            tf.contrib.summary.scalar("told", values[0], step=step)
            return [*tf.contrib.summary.all_summary_ops(), tf.py_func(lambda value: _model.told.append(float(value)) or np.float32(0), [values[0]], tf.float32)]

    return tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, step),
        eval_metrics=(lambda values: {"largest": tf.metrics.mean(tf.reduce_max(values))}, {"values": answer}),
        host_call=(told, [tf.reshape(loss, [1])]),
        scaffold_fn=tf.train.Scaffold,
    )


def _input(params):
    x = np.float32([1, 2, 1, 2, 1, 2, 1, 2])
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x)).repeat(20).batch(params["batch_size"])


@pytest.fixture
def estimator(tmp_path):
    _model.seen, _model.called, _model.told = [], [], []
    config = tpu.RunConfig(
        model_dir=str(tmp_path),
        cluster=tf.contrib.cluster_resolver.TPUClusterResolver(""),
        tpu_config=tpu.TPUConfig(iterations_per_loop=4, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2),
        log_step_count_steps=8,
    )
    return tpu.TPUEstimator(
        _model, config=config, params={"told": str(tmp_path / "told")}, use_tpu=False, train_batch_size=4, eval_batch_size=2, predict_batch_size=8
    )


def _tags(folder):
    return {value.tag for path in folder.glob("events*") for event in tf.train.summary_iterator(str(path)) for value in event.summary.value}


def test_each_mode_has_its_batch_size(estimator, tmp_path):
    estimator.train(_input, steps=6)
    measures = estimator.evaluate(_input, steps=3)
    predictions = [p["y"] for _, p in zip(range(2), estimator.predict(_input))]
    assert _model.seen == [("train", 4, False), ("eval", 2, False), ("infer", 8, False)]
    np.testing.assert_allclose(measures["largest"], predictions[1])
    assert abs(predictions[0] - 3) < 0.1 and measures["global_step"] == 6
    assert _model.called == ["train", "eval"] and len(_model.told) == 9 and _model.told[0] == 22.5
    assert {"examples/sec", "global_step/sec"} <= _tags(tmp_path) and _tags(tmp_path / "told") == {"told"}


def test_exports_for_this_machine(estimator, tmp_path):
    estimator.train(_input, steps=1)
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None])})
    path = estimator.export_savedmodel(str(tmp_path / "out"), receive)
    assert _model.seen[-1] == ("infer", None, False)
    np.testing.assert_allclose(tf.contrib.predictor.from_saved_model(path.decode())({"x": [0.0]})["y"], [0.0])


def test_there_are_no_tpus():
    config = tpu.RunConfig()
    with pytest.raises(RuntimeError, match="use_tpu=False"):
        tpu.TPUEstimator(_model, config=config, train_batch_size=4).train(_input, steps=1)
    for make, error, message in (
        (lambda: tpu.TPUEstimator(_model, config=config), ValueError, "train_batch_size"),
        (lambda: tpu.TPUEstimator(_model, config=tf.estimator.RunConfig(), use_tpu=False), ValueError, "tpu_config.RunConfig"),
        (lambda: tpu.TPUEstimator(_model, config=config, params={"batch_size": 1}, use_tpu=False), ValueError, "reserved keys"),
        (lambda: tpu.TPUEstimator(lambda features: None, config=config, use_tpu=False), ValueError, "does not include params"),
        (lambda: tpu.TPUEstimator(_model, config=config, use_tpu=False, train_batch_size=1).train(lambda: None, steps=1), ValueError, "input_fn .* params"),
        (lambda: tpu.TPUEstimatorSpec("eval", eval_metrics=(lambda a: a, [1, 2])), RuntimeError, "length of tensors 2 does not match"),
        (lambda: tpu.TPUConfig(iterations_per_loop="x"), ValueError, "iterations_per_loop"),
        (lambda: tpu.RunConfig(master="a", cluster=tf.contrib.cluster_resolver.TPUClusterResolver("")), ValueError, "Both master and cluster"),
        (lambda: tf.contrib.cluster_resolver.TPUClusterResolver("name"), ImportError, "google-api-python-client"),
        (lambda: tpu.rewrite, NotImplementedError, "no TPUs"),
    ):
        with pytest.raises(error, match=message):
            make()
    assert tf.estimator.tpu.TPUEstimator is tpu.TPUEstimator
    assert tpu.TPUConfig("60m", per_host_input_for_training=False)[:4] == ("60m", None, None, tpu.InputPipelineConfig.PER_SHARD_V1)


def test_variables_of_bfloat16_are_kept_as_float32():
    with tf.Graph().as_default():
        with tf.tpu.bfloat16_scope():
            assert tf.get_variable("a", [], tf.bfloat16).dtype == tf.bfloat16 and tf.get_variable("b", [], tf.float64).dtype.base_dtype == tf.float64
        assert [v.dtype.base_dtype for v in tf.global_variables()] == [tf.float32, tf.float64]
