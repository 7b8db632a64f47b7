# SPDX-License-Identifier: Apache-2.0
"""The greatest of a row takes another way than the k greatest: both say the same."""

import numpy as np
import pytest

import millrace as tf


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("width", [2, 17, 256, 1000])
def test_one_is_the_first_of_two(dtype, width):
    rng = np.random.default_rng(width)
    rows = rng.integers(0, 50, (40, width)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        rows[0, width // 2 :] = np.nan  # above everything
        rows[1, -1] = np.nan
        rows[2] = -np.inf
        rows[3] = np.where(np.arange(width) % 2, 0.0, -0.0)  # alike
        rows[4, width - 1] = np.inf
    values, indices = tf.nn.top_k(tf.constant(rows), 1)
    wide_values, wide_indices = tf.nn.top_k(tf.constant(rows), 2)
    with tf.Session() as sess:
        one, at, two, at_two = sess.run([values, indices, wide_values, wide_indices])
    np.testing.assert_equal(at[:, 0], at_two[:, 0])
    np.testing.assert_equal(one[:, 0], two[:, 0])
