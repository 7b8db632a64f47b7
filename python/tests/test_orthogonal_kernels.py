# SPDX-License-Identifier: Apache-2.0
"""Initializers of convolutions that keep lengths: a convolution on a torus is a product with a matrix for each frequency, which is orthogonal."""

import numpy as np
import pytest

import millrace as tf

framework = tf.contrib.framework


def made(initializer, shape):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(initializer(shape))


@pytest.mark.parametrize(
    "kind,sizes",
    [
        ("delta_orthogonal", [3]),
        ("delta_orthogonal", [2, 4]),
        ("orthogonal_1d", [1]),
        ("orthogonal_1d", [4]),
        ("orthogonal_2d", [3, 3]),
        ("orthogonal_3d", [2, 2, 2]),
    ],
)
def test_convolutions_keep_lengths(kind, sizes):
    initializer = getattr(framework, "convolutional_" + kind)
    kernel = made(initializer(gain=2.0, seed=1, dtype=tf.float64), [*sizes, 3, 5])
    matrices = np.fft.fftn(kernel, [6] * len(sizes), range(len(sizes))).reshape(-1, 3, 5)
    np.testing.assert_allclose(matrices @ matrices.conj().transpose(0, 2, 1), np.tile(4 * np.eye(3), (len(matrices), 1, 1)), atol=1e-10)
    np.testing.assert_array_equal(kernel, made(initializer(gain=2.0, seed=1, dtype=tf.float64), [*sizes, 3, 5]))
    assert not np.allclose(kernel, made(initializer(gain=2.0, seed=7, dtype=tf.float64), [*sizes, 3, 5]))


def test_what_is_refused():
    with pytest.raises(ValueError, match="greater than out_filters"):
        framework.convolutional_orthogonal_2d()([3, 3, 6, 5])
    with pytest.raises(ValueError, match="must be equal"):
        framework.convolutional_orthogonal_2d()([3, 2, 5, 5])
    with pytest.raises(ValueError, match="3 axes"):
        framework.convolutional_orthogonal_1d()([3, 3, 5, 5])
    with pytest.raises(ValueError):
        framework.convolutional_delta_orthogonal(dtype=tf.string)
