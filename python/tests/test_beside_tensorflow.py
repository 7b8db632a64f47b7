# SPDX-License-Identifier: Apache-2.0
"""Millrace and TensorFlow in one process, imported in either order. MILLRACE_TF_PYTHON names a Python that has TensorFlow."""

import os
import subprocess

import pytest

import millrace

PYTHON = os.environ.get("MILLRACE_TF_PYTHON")

IMPORTS = {"tensorflow": "import tensorflow as other", "millrace": "import millrace as tf"}

PROGRAM = """
import numpy as np
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
%s
%s
other = other.compat.v1
other.disable_eager_execution()

def train(tf):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.Variable(np.float32([[1.], [2.], [-1.]]))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        scaled = tf.py_func(lambda v: v * np.float32(2), [loss], tf.float32)
        data = np.float32([[1, 2, 3], [0, -1, 2]])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [session.run([loss, step, scaled], {x: data})[::2] for _ in range(5)]

for _ in range(2):
    np.testing.assert_allclose(train(tf), train(other), rtol=1e-5)
try:
    tf.Session().run(tf.Variable(1.))
except tf.errors.FailedPreconditionError as error:
    assert not isinstance(error, other.errors.OpError)
nested = tf.py_func(lambda: np.float32(train(other)[0][0]), [], tf.float32)
assert abs(tf.Session().run(nested) - train(tf)[0][0]) < 1e-5
print("fine")
"""


@pytest.mark.skipif(not PYTHON, reason="MILLRACE_TF_PYTHON names no Python with TensorFlow")
@pytest.mark.parametrize("first", list(IMPORTS))
def test_both_in_one_process(first):
    second = next(n for n in IMPORTS if n != first)
    done = subprocess.run(
        [PYTHON, "-c", PROGRAM % (IMPORTS[first], IMPORTS[second])],
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(millrace.__file__))},
    )
    assert done.returncode == 0 and "fine" in done.stdout, done.stderr[-3000:]
