# SPDX-License-Identifier: Apache-2.0
"""Images as TensorFlow 1.15 has them: sizes by pixels that have centres, types that are kept, shapes that are refused."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

image_ops = names.find("python.ops.image_ops")


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def row(values):
    return np.asarray(values, np.float32).reshape(1, 1, -1, 1)


def test_pixels_have_centres():
    method = image_ops.ResizeMethod
    grown = image_ops.resize_images_v2(row([0, 1]), [1, 4])
    np.testing.assert_allclose(run(grown).ravel(), [0, 0.25, 0.75, 1])
    assert run(image_ops.resize_images_v2(row([0, 1, 2]), [1, 2], method=method.NEAREST_NEIGHBOR)).ravel().tolist() == [0, 2]
    assert run(image_ops.resize_images_v2(row([0, 1, 2, 3]), [1, 2], method=method.AREA)).ravel().tolist() == [0.5, 2.5]


def test_kernels_are_widened_where_images_shrink():
    four = row([0, 1, 2, 3])
    left = (0.75 * 0 + 0.75 * 1 + 0.25 * 2) / 1.75  # a triangle of radius 2 around 1, over centres at 0.5, 1.5, 2.5
    np.testing.assert_allclose(run(image_ops.resize_images_v2(four, [1, 2], antialias=True)).ravel(), [left, 3 - left], rtol=1e-6)
    plain = run(image_ops.resize_images_v2(four, [1, 2])).ravel()
    np.testing.assert_allclose(plain, [0.5, 2.5])
    for method in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic"):
        wide = run(image_ops.resize_images_v2(np.ones([1, 5, 6, 2], np.uint8), [3, 9], method=method))
        assert wide.dtype == np.float32 and wide.shape == (1, 3, 9, 2)
        np.testing.assert_allclose(wide, 1, rtol=1e-5)
        with pytest.raises(ValueError, match="not implemented: %s" % method):
            tf.image.resize_images(four, [1, 2], method=method)


def test_padding_to_a_size():
    padded = image_ops.resize_image_with_pad_v2(np.ones([2, 4, 1], np.float32), 4, 4)
    assert run(padded)[:, 0, 0].tolist() == [0, 1, 1, 0]
    assert run(tf.image.resize_image_with_pad(tf.ones([8, 8, 1]), 7, 7)).sum() == 49  # 8 / (8 / 7) is less than 7 in single precision
    with pytest.raises(ValueError, match="target_width must be > 0"):
        tf.image.resize_image_with_pad(tf.ones([5, 4, 1]), 6, 0)


def test_standardization_keeps_types():
    images = np.random.RandomState(0).uniform(0, 255, [2, 5, 5, 3])
    for kind in (np.float16, np.float32, np.uint8):
        assert run(tf.image.per_image_standardization(images.astype(kind))).dtype == kind
    even = np.full([4, 4, 1], 1000.1, np.float32)  # the mean of squares less the square of the mean is noise
    np.testing.assert_allclose(run(tf.image.per_image_standardization(even)), 0, atol=1e-3)


@pytest.mark.parametrize("turn", ["flip_left_right", "flip_up_down", "random_flip_left_right", "random_flip_up_down", "transpose", "rot90"])
def test_images_without_pixels_are_refused(turn):
    function = getattr(tf.image, turn)
    with pytest.raises(ValueError, match="must be > 0"):
        function(tf.placeholder(tf.uint8, [64, 0, 3]))
    with pytest.raises(ValueError, match="at least three-dimensional"):
        function(tf.placeholder(tf.uint8, [None, None]))
    image = tf.placeholder(tf.uint8)
    turned = function(image)
    assert turned.shape.ndims == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be > 0"):
        run(turned, {image: np.zeros([3, 0, 3])})


def test_what_images_are_refused_for():
    with pytest.raises(ValueError, match="Last dimension of a grayscale image should be size 1"):
        tf.image.grayscale_to_rgb(tf.zeros([1, 1, 2]))
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.image.adjust_contrast(tf.zeros([2, 2, 3]), [2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Gamma should be"):
        run(tf.image.adjust_gamma(tf.ones([2, 2, 1]), tf.constant(-1.0)))
    first, second = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    for measure in (tf.image.psnr, tf.image.ssim):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(measure(first, second, 1.0), {first: np.ones([12, 12, 1]), second: np.ones([1, 12, 1])})
        with pytest.raises(ValueError, match="one shape"):
            measure(tf.ones([12, 12, 1]), tf.ones([1, 12, 1]), 1.0)
