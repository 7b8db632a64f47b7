# SPDX-License-Identifier: Apache-2.0
"""The rules of Keras' optimizers against NumPy in float64: on variables of both kinds, with a rate that falls and with a constraint."""

import numpy as np
import pytest

import millrace as tf

START, STEPS, LR, DECAY = np.array([1.0, -2.0, 0.5]), 4, 0.125, 0.5


def adam(t, p, g, s, lr):
    s["m"], s["v"] = 0.9 * s["m"] + 0.1 * g, 0.999 * s["v"] + 0.001 * g * g
    return p - lr * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * s["m"] / (np.sqrt(s["v"]) + 1e-3)


def amsgrad(t, p, g, s, lr):
    s["m"], s["v"] = 0.9 * s["m"] + 0.1 * g, 0.999 * s["v"] + 0.001 * g * g
    s["h"] = np.maximum(s["h"], s["v"])
    return p - lr * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * s["m"] / (np.sqrt(s["h"]) + 1e-3)


def adamax(t, p, g, s, lr):
    s["m"], s["v"] = 0.9 * s["m"] + 0.1 * g, np.maximum(0.999 * s["v"], np.abs(g))
    return p - lr / (1 - 0.9**t) * s["m"] / (s["v"] + 1e-3)


def adagrad(t, p, g, s, lr):
    s["a"] = s["a"] + g * g
    return p - lr * g / (np.sqrt(s["a"]) + 1e-3)


def adadelta(t, p, g, s, lr):
    s["a"] = 0.95 * s["a"] + 0.05 * g * g
    step = g * np.sqrt(s["u"] + 1e-3) / np.sqrt(s["a"] + 1e-3)
    s["u"] = 0.95 * s["u"] + 0.05 * step * step
    return p - lr * step


def rmsprop(t, p, g, s, lr):
    s["a"] = 0.9 * s["a"] + 0.1 * g * g
    return p - lr * g / (np.sqrt(s["a"]) + 1e-3)


def momentum(t, p, g, s, lr):
    s["m"] = 0.9 * s["m"] - lr * g
    return p + s["m"]


def nesterov(t, p, g, s, lr):
    s["m"] = 0.9 * s["m"] - lr * g
    return p + 0.9 * s["m"] - lr * g


K = tf.keras.optimizers
RULES = {
    adam: lambda **k: K.Adam(epsilon=1e-3, **k),
    amsgrad: lambda **k: K.Adam(epsilon=1e-3, amsgrad=True, **k),
    adamax: lambda **k: K.Adamax(epsilon=1e-3, **k),
    adagrad: lambda **k: K.Adagrad(epsilon=1e-3, **k),
    adadelta: lambda **k: K.Adadelta(epsilon=1e-3, **k),
    rmsprop: lambda **k: K.RMSprop(epsilon=1e-3, **k),
    momentum: lambda **k: K.SGD(momentum=0.9, **k),
    nesterov: lambda **k: K.SGD(momentum=0.9, nesterov=True, **k),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rules(rule, resource):
    tf.reset_default_graph()
    least = -1.9
    v = tf.Variable(START.astype(np.float32), name="v", use_resource=resource, constraint=lambda value: tf.maximum(value, least))
    optimizer = RULES[rule](lr=LR, decay=DECAY)
    step = tf.group(*optimizer.get_updates(tf.reduce_sum(v**3 / 3), [v]))
    p, state = START, {**dict.fromkeys("mvhu", np.zeros(3)), "a": np.full(3, 0.1 if rule is adagrad else 0.0)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for t in range(1, STEPS + 1):
            session.run(step)
            p = np.maximum(rule(t, p, p * p, state, LR / (1 + DECAY * (t - 1))), least)
            np.testing.assert_allclose(session.run(v), p, rtol=1e-5, atol=1e-6)
        assert session.run(optimizer.iterations) == STEPS
        assert len(optimizer.weights) == 1 + len(optimizer.get_slot_names())


@pytest.mark.parametrize("shape", [(), (4,), (4, 1)])
def test_weights_of_losses_are_those_of_examples(shape):
    y, p, weights = np.random.RandomState(1).rand(4, 3), np.random.RandomState(2).rand(4, 3), np.random.RandomState(3).rand(*shape)
    wanted = ((y - p) ** 2).mean(-1) * np.reshape(weights, [-1])
    small = np.abs(y - p)
    by_number = 0.5 * small**2 * np.reshape(weights, [-1, 1])
    with tf.Graph().as_default(), tf.Session() as session:
        for reduction, reduce in (("none", lambda v: v), ("sum", np.sum), ("auto", np.mean)):
            made = tf.keras.losses.MeanSquaredError(reduction=reduction)(y, p, sample_weight=weights)
            np.testing.assert_allclose(session.run(made), reduce(wanted), rtol=1e-5)
            made = tf.keras.losses.Huber(reduction=reduction)(y, p, sample_weight=weights)
            np.testing.assert_allclose(session.run(made), reduce(by_number), rtol=1e-5)


@pytest.mark.parametrize("name", ["zeros", "ones", "constant", "random_uniform", "random_normal", "truncated_normal", "orthogonal", "variance_scaling"])
def test_configurations_of_initializers_name_types(name):
    kind = getattr(tf, name + "_initializer")
    config = kind(dtype=tf.float64).get_config()
    assert config["dtype"] == "float64"
    again = kind.from_config(config)
    assert again.get_config() == config
    with tf.Graph().as_default():
        assert again([2, 3]).dtype == tf.float64


def test_layers_tell_the_constraints_of_their_variables():
    with tf.Graph().as_default():
        dense, gru = tf.keras.layers.Dense(3, kernel_constraint="max_norm"), tf.keras.layers.GRU(2, recurrent_constraint="max_norm", bias_constraint="max_norm")
        dense(tf.ones([2, 4]))
        gru(tf.ones([2, 5, 4]))
        assert list(dense.constraints) == [dense.kernel] and len(gru.constraints) == 2
        dense.constraints = {}
        assert dense.constraints == {}
