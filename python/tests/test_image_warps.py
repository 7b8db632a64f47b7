# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.image: flows and splines."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import image

RNG = np.random.default_rng(1)


def test_a_flow_moves_pixels():
    pixels = RNG.normal(size=(2, 4, 5, 3)).astype(np.float32)
    flow = np.zeros((2, 4, 5, 2), np.float32)
    flow[0] = [1, 0]
    flow[1] = [0, -0.25]
    place = tf.placeholder(tf.float32, [None, None, None, 3])
    with tf.Session() as session:
        made = session.run(image.dense_image_warp(place, flow), {place: pixels})
    np.testing.assert_allclose(made[0], pixels[0][[0, 0, 1, 2]], rtol=1e-5)
    after = pixels[1][:, [1, 2, 3, 4, 4]]
    np.testing.assert_allclose(made[1], 0.75 * pixels[1] + 0.25 * after, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_splines_pass_through_values_and_keep_planes(order):
    points = RNG.uniform(-1, 1, (2, 12, 2))
    values = RNG.normal(size=(2, 12, 3))
    asked = RNG.uniform(-1, 1, (2, 7, 2))
    plane = (points @ np.array([[2.0], [-1.0]])) + 0.5
    with tf.Session() as session:
        made = session.run(image.interpolate_spline(tf.constant(points), values, points, order))
        flat = session.run(image.interpolate_spline(tf.constant(points), plane, asked, order))
        loose = session.run(image.interpolate_spline(tf.constant(points), values, points, order, regularization_weight=0.1))
    np.testing.assert_allclose(made, values, atol=1e-4)
    np.testing.assert_allclose(flat, asked @ np.array([[2.0], [-1.0]]) + 0.5, atol=1e-4)
    assert np.abs(loose - values).max() > 1e-3


def test_a_few_places_are_moved():
    pixels = np.zeros((1, 9, 9, 1), np.float32)
    pixels[0, 4, 4] = 1
    source, target = [[[4.0, 4.0]]], [[[4.0, 6.0]]]
    warped, flow = image.sparse_image_warp(pixels, source, target, num_boundary_points=2)
    with tf.Session() as session:
        made, moved = session.run([warped, flow])
    assert made[0, 4, 6, 0] > 0.99 and made[0, 4, 4, 0] < 0.5 and made.shape == pixels.shape
    np.testing.assert_allclose(moved[0, 4, 6], [0, 2], atol=1e-3)
    np.testing.assert_allclose(moved[0, [0, 0, 8, 8], [0, 8, 0, 8]], 0, atol=1e-3)


def test_points_are_rows_and_columns_or_the_other_way():
    grid = tf.constant(np.arange(6.0).reshape(1, 2, 3, 1))
    from millrace.contrib.image_warps import _interpolate_bilinear

    with tf.Session() as session:
        assert session.run(_interpolate_bilinear(grid, [[[1.0, 0.5]]])).item() == 3.5
        assert session.run(_interpolate_bilinear(grid, [[[0.5, 1.0]]], indexing="xy")).item() == 3.5
    with pytest.raises(ValueError, match="4 dimensional"):
        _interpolate_bilinear(tf.zeros([2, 2]), [[[1.0, 0.5]]])
