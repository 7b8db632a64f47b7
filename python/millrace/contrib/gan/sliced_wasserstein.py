# SPDX-License-Identifier: Apache-2.0
"""How far the small patches of two sets of images are apart, by size (Karras 2017)."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, linalg_ops, math_ops, matrix_ops, nn_ops, random_ops

_BINOMIAL = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32).reshape(5, 5, 1, 1) / 256.0


def _blurred(images: Tensor, gain: float) -> Tensor:
    """Each channel of images smoothed by binomial weights times gain; the edges are mirrors."""
    shape = array_ops.shape(images)
    padded = array_ops.pad(images, [[0, 0], [2, 2], [2, 2], [0, 0]], "REFLECT")
    planes = array_ops.reshape(array_ops.transpose(padded, [0, 3, 1, 2]), [shape[0] * shape[3], shape[1] + 4, shape[2] + 4, 1])
    smooth = nn_ops.conv2d(planes, constant(_BINOMIAL * np.float32(gain)), [1, 1, 1, 1], "VALID")
    return array_ops.transpose(array_ops.reshape(smooth, [shape[0], shape[3], shape[1], shape[2]]), [0, 2, 3, 1])


def _doubled(images: Tensor) -> Tensor:
    """Images of twice the height and width."""
    shape = array_ops.shape(images)
    apart = array_ops.pad(array_ops.reshape(images, [shape[0], shape[1], 1, shape[2], 1, shape[3]]), [[0, 0], [0, 0], [0, 1], [0, 0], [0, 1], [0, 0]])
    return _blurred(array_ops.reshape(apart, [shape[0], 2 * shape[1], 2 * shape[2], shape[3]]), 4.0)


def _laplacian_pyramid(batch: Any, num_levels: int) -> List[Tensor]:
    """What each size has that the next smaller one has not; the last is the smallest whole."""
    pyramid = [math_ops.to_float(batch)]
    for _ in range(num_levels - 1):
        smaller = _blurred(pyramid[-1], 1.0)[:, ::2, ::2]
        pyramid[-1] -= _doubled(smaller)
        pyramid.append(smaller)
    return pyramid


def _patches(images: Tensor, each: int, size: int) -> Tensor:
    """So many square patches of each image from anywhere in it, as rows with the mean 0 and the variance 1. The size is odd: one more of an even one."""
    half = size // 2
    shape = array_ops.shape(images)
    count = shape[0] * each

    def anywhere(whole: Any) -> Tensor:
        centers = gen_ops.floor(random_ops.random_uniform([count]) * math_ops.to_float(whole - 2 * half))
        return math_ops.cast(centers, "int32") + half

    offsets = math_ops.range(-half, half + 1)
    of = array_ops.reshape(math_ops.range(count) // each, [-1, 1, 1])
    down = array_ops.reshape(anywhere(shape[1]), [-1, 1, 1]) + array_ops.reshape(offsets, [1, -1, 1])
    across = array_ops.reshape(anywhere(shape[2]), [-1, 1, 1]) + array_ops.reshape(offsets, [1, 1, -1])
    pixels = array_ops.reshape(images, [-1, shape[3]])
    made = array_ops.gather(pixels, (of * shape[1] + down) * shape[2] + across)
    mean, variance = nn_ops.moments(made, [1, 2, 3], keep_dims=True)
    return array_ops.reshape((made - mean) / gen_ops.sqrt(variance), [count, (2 * half + 1) ** 2 * images.get_shape()[3].value])


def _sorted_columns(matrix: Tensor) -> Tensor:
    return array_ops.transpose(nn_ops.top_k(array_ops.transpose(matrix), array_ops.shape(matrix)[0])[0])


def _distance_of_projections(a: Tensor, b: Tensor) -> Tensor:
    """The mean of the Wasserstein distances of columns, which is that of their sorted numbers."""
    return math_ops.reduce_mean(gen_ops.abs(_sorted_columns(a) - _sorted_columns(b)))


def _sliced_wasserstein(a: Tensor, b: Tensor, random_sampling_count: int, random_projection_dim: int) -> Tensor:
    means = []
    for _ in range(random_sampling_count):
        directions = random_ops.random_normal([array_ops.shape(a)[1], random_projection_dim])
        directions *= gen_ops.rsqrt(math_ops.reduce_sum(gen_ops.square(directions), 0, keepdims=True))
        means.append(_distance_of_projections(matrix_ops.matmul(a, directions), matrix_ops.matmul(b, directions)))
    return math_ops.reduce_mean(array_ops.stack(means))


def _sliced_wasserstein_svd(a: Tensor, b: Tensor) -> Tensor:
    """That along the principal axes of both."""
    sizes, left = linalg_ops.svd(array_ops.concat([a, b], 0))[:2]
    return _distance_of_projections(*array_ops.split(left * sizes, 2, axis=0))


def sliced_wasserstein_distance(
    real_images: Any,
    fake_images: Any,
    resolution_min: int = 16,
    patches_per_image: int = 64,
    patch_size: int = 7,
    random_sampling_count: int = 1,
    random_projection_dim: int = 7 * 7 * 3,
    use_svd: bool = False,
) -> List[Tuple[Tensor, Tensor]]:
    """For each size of square RGB images, halves down to resolution_min: (the distance of patches of the real images from others of them, that from
    patches of the fake images), by random directions or, with use_svd, principal ones."""
    real_images, fake_images = convert_to_tensor(real_images), convert_to_tensor(fake_images)
    height = real_images.get_shape()[1].value
    real_images.get_shape().assert_is_compatible_with([None, None, height, 3])
    fake_images.get_shape().assert_is_compatible_with(real_images.get_shape())
    levels = int(np.log2(height)) - int(np.log2(min(resolution_min, height))) + 1
    scores = []
    for real, fake in zip(_laplacian_pyramid(real_images, levels), _laplacian_pyramid(fake_images, levels)):
        real.set_shape([None, None, None, 3])
        fake.set_shape([None, None, None, 3])
        patches, others, fakes = (_patches(images, patches_per_image, patch_size) for images in (real, real, fake))
        if use_svd:
            scores.append((_sliced_wasserstein_svd(patches, others), _sliced_wasserstein_svd(patches, fakes)))
        else:
            shape = random_sampling_count, random_projection_dim
            scores.append((_sliced_wasserstein(patches, others, *shape), _sliced_wasserstein(patches, fakes, *shape)))
    return scores
