# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.opt's Shampoo, against NumPy, and roots of matrices by iterations."""

import numpy as np
import pytest

import millrace as tf

O = tf.contrib.opt
RNG = np.random.RandomState(11)


def power(matrix, exponent):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * values**exponent @ vectors.T


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_roots():
    a = RNG.randn(5, 5)
    a = (a @ a.T + np.eye(5)).astype("f")
    with tf.Session() as session:
        root, inverse = session.run([O.matrix_square_root(tf.constant(a), 5, ridge_epsilon=0.0), O.matrix_inverse_pth_root(tf.constant(a), 5, -0.25)])
    np.testing.assert_allclose(root @ root, a, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(inverse, power(a.astype(float), -0.25), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("iterative", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_steps(iterative, resource):
    gradients = [RNG.rand(4, 3) for _ in range(3)]
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [4, 3], initializer=tf.ones_initializer(), use_resource=resource)
    made = O.ShampooOptimizer(step, learning_rate=0.5, gbar_decay=0.9, gbar_weight=0.1, use_iterative_root=iterative)
    feed = tf.placeholder(tf.float32, [4, 3])
    train = made.apply_gradients([(feed, v)], step)
    want, momentum, left, right = np.ones([4, 3]), 0.0, np.zeros([4, 4]), np.zeros([3, 3])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in gradients:
            session.run(train, {feed: g})
            momentum, left, right = 0.9 * momentum + 0.1 * g, left + g @ g.T, right + g.T @ g
            want = want - 0.5 * power(left / 4 + 1e-4 * np.eye(4), -0.25) @ momentum @ power(right / 3 + 1e-4 * np.eye(3), -0.25)
        np.testing.assert_allclose(session.run(v), want, rtol=1e-2 if iterative else 1e-3, atol=2e-3)


def test_large_dimensions_have_diagonals_and_rows_are_updated_alone():
    v = tf.get_variable("v", [5, 2], initializer=tf.zeros_initializer())
    rows, values = np.array([3, 1]), RNG.rand(2, 2).astype("f")
    train = O.ShampooOptimizer(max_matrix_size=3).apply_gradients([(tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([5, 2])), v)])
    want = np.zeros([5, 2])
    scaled = values * ((values**2).sum(1, keepdims=True)) ** -0.25
    want[rows] = -scaled @ power(values.T @ values / 2 + 1e-4 * np.eye(2), -0.25)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), want, rtol=1e-3, atol=1e-4)


def test_powers_that_are_kept_for_some_steps():
    step, v = tf.train.get_or_create_global_step(), tf.get_variable("v", [3], initializer=tf.zeros_initializer())
    made = O.ShampooOptimizer(step, svd_interval=2, precond_update_interval=2)
    train = made.apply_gradients([(tf.constant([1.0, 2.0, 3.0]), v)], step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)  # the first power is the identity
        np.testing.assert_allclose(session.run(v), [-1, -2, -3])
        session.run(train)
        assert abs(session.run(v)[2] + 3) < 2 and session.run(made.get_slot(v, "Gbar_0"))[2, 2] == 18
