# SPDX-License-Identifier: Apache-2.0
"""Programs that train on the accelerator: only tf.device says so."""

import os
import struct

import numpy as np
import pytest

import millrace as tf
from accelerator import ACC, SOFT, delays, seeds

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "digits", "data")


def digits():
    """Images and labels."""
    with open(os.path.join(DIGITS, "digits-images-idx3-ubyte"), "rb") as f:
        _, n, height, width = struct.unpack(">4i", f.read(16))
        images = np.frombuffer(f.read(), np.uint8).reshape(n, height, width, 1).astype(np.float32)
    with open(os.path.join(DIGITS, "digits-labels-idx1-ubyte"), "rb") as f:
        f.read(8)
        labels = np.frombuffer(f.read(), np.uint8).astype(np.int64)
    return images, labels


OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_optimizers(name, use_resource):
    def train(device):
        with tf.Graph().as_default(), tf.device(device):
            v = tf.get_variable("v", initializer=[1.0, -2.0, 3.0], use_resource=use_resource)
            loss = tf.reduce_sum(tf.square(v - tf.constant([0.5, 0.25, 0.0])))
            step = OPTIMIZERS[name]().minimize(loss)
            more = tf.assign_add(v, [1.0, 0.0, 0.0])
            with tf.Session(config=SOFT) as session:
                session.run(tf.global_variables_initializer())
                values = []
                for _ in range(5):
                    session.run(step)
                    values.append(session.run(v))
                values.append(session.run(more))
                return np.array(values)

    want = train("/cpu:0")
    for seed in seeds(5):
        delays(seed, 50)
        np.testing.assert_allclose(train(ACC), want, rtol=2e-6, atol=1e-6, err_msg="seed %d" % seed)


def test_a_read_value_stays_what_it_was():
    with tf.device(ACC):
        v = tf.get_variable("v", initializer=np.zeros(1000, np.float32), use_resource=True)
        before = tf.identity(v.read_value())
        with tf.control_dependencies([before]):
            change = tf.assign_add(v, np.ones(1000, np.float32))
        with tf.control_dependencies([change]):
            difference = v.read_value() - before
    with tf.Session() as session:
        session.run(v.initializer)
        for k in range(50):
            delays(k + 1, 100)
            old, d = session.run([before, difference])
            assert (old == k).all() and (d == 1).all()


@pytest.mark.parametrize("seed", seeds(8))
def test_a_recurrent_net_in_a_loop(seed):
    steps, width = 6, 4
    random = np.random.RandomState(seed)
    xs = random.randn(steps, 3, width).astype(np.float32)
    w = (random.randn(2 * width, width) * 0.3).astype(np.float32)

    def build():
        inputs = tf.placeholder(tf.float32, [steps, 3, width], name="inputs")
        weights = tf.identity(tf.constant(w))

        def body(i, h):
            return i + 1, tf.tanh(tf.matmul(tf.concat([tf.gather(inputs, i), h], 1), weights))

        _, last = tf.while_loop(lambda i, _: i < steps, body, [tf.constant(0), tf.zeros([3, width])])
        return inputs, [last] + tf.gradients(tf.reduce_sum(last), weights)

    def run(device):
        with tf.Graph().as_default() as graph:
            with tf.device(device):
                inputs, fetches = build()
            with tf.Session(graph=graph, config=SOFT) as session:
                return session.run(fetches, {inputs: xs})

    want = run("/cpu:0")
    delays(seed, 50)
    for got, expected in zip(run(ACC), want):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_loop_that_hops():
    with tf.device(ACC):
        start = tf.constant(1.0)

    def body(i, x):
        with tf.device(ACC):
            x = x * 1.5
        with tf.device("/cpu:0"):
            x = x + 1.0
        with tf.device("/device:TESTACC:1"):
            x = x * 0.5
        return i + 1, x

    _, y = tf.while_loop(lambda i, _: i < 10, body, [0, start])
    want = np.float32(1)
    for _ in range(10):
        want = (want * np.float32(1.5) + 1) * np.float32(0.5)
    with tf.Session(config=SOFT) as session:
        for seed in seeds(39):
            delays(seed, 40)
            assert session.run(y) == want


def test_digits():
    images, labels = digits()
    images /= images.max()
    size = images.shape[1]

    def network(x):
        random = np.random.RandomState(1)

        def weights(name, shape):
            first = (random.randn(*shape) * 0.1).astype(np.float32)
            return tf.get_variable(name, initializer=first), tf.get_variable(name + "_bias", initializer=np.full(shape[-1], 0.1, np.float32))

        w, b = weights("conv", [3, 3, 1, 8])
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        flat = (size + 1) // 2 * ((size + 1) // 2) * 8
        w, b = weights("dense", [flat, 32])
        h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, flat]), w) + b)
        w, b = weights("out", [32, 10])
        return tf.matmul(h, w) + b

    def train(device):
        with tf.Graph().as_default():
            with tf.device(device):
                x = tf.placeholder(tf.float32, [None, size, size, 1])
                y = tf.placeholder(tf.int64, [None])
                logits = network(x)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
                step = tf.train.AdamOptimizer(0.01).minimize(loss)
            with tf.Session(config=SOFT) as session:
                session.run(tf.global_variables_initializer())
                losses = []
                for k in range(200):
                    rows = np.arange(k * 50, k * 50 + 50) % (len(images) - 200)
                    losses.append(session.run([loss, step], {x: images[rows], y: labels[rows]})[0])
                return losses, session.run(right, {x: images[-200:], y: labels[-200:]})

    want, _ = train("/cpu:0")
    for seed in seeds(1):
        delays(seed, 30)
        losses, accuracy = train(ACC)
        assert accuracy > 0.85, seed
        np.testing.assert_allclose(losses[:10], want[:10], rtol=1e-3, err_msg="seed %d" % seed)
