# SPDX-License-Identifier: Apache-2.0
"""Initializers of TensorFlow 2, which are told the type when they are called, and the outputs of supervised steps in signatures."""

import numpy as np
import pytest

import millrace as tf
from millrace.estimator import export_output, mode_keys
from millrace.ops import init_ops, init_ops_v2
from millrace.saved_model import signature_def_utils


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(value):
    with tf.Session() as session:
        return session.run(value)


def test_values():
    np.testing.assert_array_equal(run(init_ops_v2.Constant((1, 2, 3))([3])), [1, 2, 3])
    assert run(init_ops_v2.Ones()([2], tf.int32)).dtype == np.int32
    drawn = run(init_ops_v2.RandomUniform(seed=1)([1000]))
    assert -0.05 <= drawn.min() < -0.04 and 0.04 < drawn.max() < 0.05
    assert abs(run(init_ops_v2.TruncatedNormal(stddev=2.0, seed=1)([5000], tf.float64)).std() - 2 * 0.8796) < 0.05
    q = run(init_ops_v2.Orthogonal(seed=1)([4, 4]))
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-5)
    assert abs(run(init_ops_v2.he_normal(1)([100, 100])).var() - 0.02) < 0.002
    assert init_ops_v2.GlorotUniform(seed=3).get_config() == {"seed": 3} and "dtype" not in init_ops_v2.RandomNormal().get_config()
    assert init_ops._compute_fans(tf.TensorShape([5, 6, 4, 2])) == (120, 60)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: init_ops_v2.Constant([1, 2])([2, 2]), TypeError),
        (lambda: init_ops_v2.Constant(tf.constant(1)), TypeError),
        (lambda: init_ops_v2.RandomNormal()([2], tf.int32), ValueError),
        (lambda: init_ops_v2.Identity()([3, 3, 3]), ValueError),
        (lambda: init_ops_v2.Zeros()([2], tf.string), ValueError),
        (lambda: tf.summary.text("n", tf.constant(1)), ValueError),
        (lambda: mode_keys.ModeKeyMap(eval=1, test=2), ValueError),
        (lambda: export_output.EvalOutput(loss={"l": 1.0}), ValueError),
    ],
)
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_outputs_of_supervised_steps():
    x, loss = tf.placeholder(tf.float32, [2], name="x"), tf.constant(1.0, name="loss")
    made = export_output.TrainOutput(loss=loss, predictions={"p": x}, metrics={"m": (loss, tf.no_op())})
    assert sorted(made.metrics) == ["metrics/m/update_op", "metrics/m/value"] and list(made.predictions) == ["predictions/p"]
    signature = made.as_signature_def({"x": x})
    assert signature.method_name == "tensorflow/supervised/training" and signature.outputs["loss"].name == "loss:0"
    assert not signature_def_utils.is_valid_signature(signature)  # which knows methods of serving alone, as in 1.15
    keys = mode_keys.ModeKeyMap(train=1, test=2)
    assert keys["eval"] == 2 and mode_keys.is_predict("infer")
