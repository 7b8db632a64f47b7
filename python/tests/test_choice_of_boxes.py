# SPDX-License-Identifier: Apache-2.0
"""tf.image's choices of boxes, by name."""

import numpy as np

import millrace as tf

BOXES = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 0, 0.5, 0.5], [2, 2, 3, 3]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7, 0.6], np.float32)


def test_choices():
    soft = tf.image.non_max_suppression_with_scores(BOXES, SCORES, 4, 0.5, 0.1, 0.5)
    padded = tf.image.non_max_suppression_padded(BOXES, SCORES, 5, 0.5, 0.65, pad_to_max_output_size=True)
    overlaps = np.array([[1, 0.6, 0.2, 0], [0.6, 1, 0.1, 0], [0.2, 0.1, 1, 0], [0, 0, 0, 1]], np.float32)
    by_overlaps = tf.image.non_max_suppression_overlaps(overlaps, SCORES, 4)
    combined = tf.image.combined_non_max_suppression(BOXES[None, :, None], np.stack([SCORES, SCORES[::-1]], 1)[None], 2, 3)
    assert padded[0].get_shape().as_list() == [5] and combined[0].get_shape().as_list() == [1, 3, 4]
    with tf.Session() as sess:
        soft, padded, by_overlaps, combined = sess.run([soft, padded, by_overlaps, combined])
    np.testing.assert_array_equal(soft[0], [0, 2, 3, 1])
    np.testing.assert_allclose(soft[1], [0.9, 0.657589, 0.6, 0.329459], rtol=1e-5)
    assert padded[0].tolist() == [0, 2, 0, 0, 0] and padded[1] == 2 and by_overlaps.tolist() == [0, 2, 3]
    np.testing.assert_allclose(combined[1], [[0.9, 0.9, 0.8]])
    assert combined[2].tolist() == [[0, 1, 1]] and combined[3].tolist() == [3]


def test_gradient_of_hsv():
    x = np.random.RandomState(2).rand(6, 3)
    t = tf.constant(x, tf.float64)
    weight = np.arange(18.0).reshape(6, 3)
    loss = tf.reduce_sum(tf.image.rgb_to_hsv(t) * weight)
    with tf.Session() as sess:
        (slope,) = sess.run(tf.gradients(loss, [t]))
        for i in range(18):
            d = np.zeros(18)
            d[i] = 1e-6
            up, down = (sess.run(loss, {t: x + s * d.reshape(6, 3)}) for s in (1, -1))
            np.testing.assert_allclose((up - down) / 2e-6, slope.ravel()[i], rtol=1e-4, atol=1e-5)
