# SPDX-License-Identifier: Apache-2.0
"""Functions called with arguments that few programs give: answers of TensorFlow 1.15."""

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_an_imaginary_number_is_no_real_one():
    x = tf.placeholder(tf.float32, [2])
    for made in (lambda: x * 3j, lambda: 3j + x, lambda: tf.constant([1, 2j], tf.float64)):
        with pytest.raises(TypeError, match="Expected float"):
            made()


def test_a_norm_of_zero_has_a_gradient(session):
    rows = tf.constant([[0.0, 0.0], [3.0, 4.0]])
    clipped = tf.clip_by_norm(rows, 1.0, axes=[1])
    np.testing.assert_allclose(session.run(tf.gradients(clipped, rows)[0]), [[1, 1], [0.032, -0.024]], rtol=1e-5)
    looked_up = tf.nn.embedding_lookup(rows, [0, 1], max_norm=1.0)
    gradient = tf.gradients(looked_up, rows)[0]
    np.testing.assert_allclose(session.run(tf.convert_to_tensor(gradient)), [[1, 1], [0.032, -0.024]], rtol=1e-5)
    first = tf.gradients(tf.clip_by_norm(rows[0], 1.0), rows)[0]
    assert session.run(tf.gradients(first**2, rows)[0]).tolist() == [[0, 0], [0, 0]]


def test_batches_of_products_whose_sizes_steps_tell(session):
    a, b = tf.placeholder(tf.float32, [None] * 4), tf.placeholder(tf.float32, [None] * 4)
    feeds = {a: np.ones([1, 5, 2, 3]), b: np.ones([5, 1, 3, 4])}
    product, gradients = session.run([tf.matmul(a, b), tf.gradients(tf.matmul(a, b), [a, b])], feeds)
    assert product.shape == (5, 5, 2, 4) and np.all(product == 3)
    assert gradients[0].shape == (1, 5, 2, 3) and np.all(gradients[0] == 20)


def test_axes_that_are_tensors(session):
    x = tf.placeholder(tf.float32, [None, 2])
    for axis in (tf.constant(1), tf.placeholder_with_default([1], [None])):
        np.testing.assert_allclose(session.run(tf.reduce_logsumexp(x, axis), {x: [[0, 0], [3, 4]]}), [np.log(2), 4.3132615], rtol=1e-6)
    axes = tf.constant([[1, 2], [1, 0]])
    assert tf.tensordot(tf.zeros([2, 3, 4]), tf.zeros([4, 3, 5]), axes).shape == [2, 5]


def test_lists_that_are_tensors_and_lists_of_nothing(session):
    rows = tf.placeholder(tf.float32, [None, 2])
    assert session.run(tf.stack(rows), {rows: [[1, 2]]}).tolist() == [[1, 2]]
    assert tf.unstack(tf.zeros([0, 3]), num=0) == []
    assert session.run(tf.math.polyval(np.array([1.0, 2.0]), tf.constant([2.0, 3.0]))).tolist() == [4, 5]
    indices = tf.placeholder(tf.int32)
    assert session.run(tf.gather([[1, 2], [3, 4]], indices, batch_dims=1, axis=1), {indices: [[1], [0]]}).tolist() == [[2], [3]]


def test_types_of_quotients_and_ones(session):
    assert session.run(tf.realdiv(tf.constant([7, -7]), 2)).tolist() == [3, -3]
    with pytest.raises(TypeError, match="Expected string"):
        tf.ones([2], tf.string)
