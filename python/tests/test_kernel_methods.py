# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kernel_methods: kernels by random features, hinges of many classes, classifiers of mapped features."""

import numpy as np
import pytest

import millrace as tf

K = tf.contrib.kernel_methods
RNG = np.random.RandomState(5)


def run(tensor):
    with tf.Session() as session:
        return session.run(tensor)


def test_products_are_the_gaussian_kernel():
    x = RNG.randn(6, 3).astype(np.float32)
    with tf.Graph().as_default():
        mapped = run(K.RandomFourierFeatureMapper(3, 20000, stddev=1.5, seed=3).map(tf.constant(x)))
        apart = ((x[:, None] - x[None]) ** 2).sum(2)
        np.testing.assert_allclose(mapped @ mapped.T, np.exp(-apart / (2 * 1.5**2)), atol=0.03)
        with pytest.raises(K.InvalidShapeError, match="expected 3 input features"):
            K.RandomFourierFeatureMapper(3, 4).map(tf.zeros([2, 2]))


def test_hinges_of_many_classes():
    logits, labels, weights = RNG.randn(5, 4).astype(np.float32), np.array([0, 3, 1, 1, 2]), np.float32([1, 0, 2, 1, 1])
    each = np.array([max(0, *(1 + logits[i, j] - logits[i, k] for j in range(4) if j != k)) for i, k in enumerate(labels)])
    with tf.Graph().as_default():
        made = K.sparse_multiclass_hinge_loss(tf.constant(labels), tf.constant(logits), tf.constant(weights[:, None]))
        np.testing.assert_allclose(run(made), (each * weights).sum() / 4, rtol=1e-5)
        wrong = tf.placeholder_with_default(np.array([0, 3, 1, 1, 4]), [5])
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(K.sparse_multiclass_hinge_loss(wrong, tf.constant(logits)))


def test_circles_are_told_apart(tmp_path):
    x = RNG.uniform(-1, 1, (400, 2)).astype(np.float32)
    labels = ((x**2).sum(1) < 0.5).astype(np.int64)
    column = tf.contrib.layers.real_valued_column("x", 2)

    def input_fn():
        return {"x": tf.constant(x)}, tf.constant(labels[:, None])

    made = K.KernelLinearClassifier(kernel_mappers={column: [K.RandomFourierFeatureMapper(2, 100, 0.5)]}, model_dir=str(tmp_path))
    made.fit(input_fn=input_fn, steps=60)
    assert made.evaluate(input_fn=input_fn, steps=1)["accuracy"] > 0.8  # a line alone gets 0.6
    assert np.mean(np.array(list(made.predict_classes(input_fn=input_fn)))[:400] == labels) > 0.8
    with pytest.raises(ValueError, match="Invalid kernel mappers"):
        K.KernelLinearClassifier([column], kernel_mappers={column: [object()]})
