# SPDX-License-Identifier: Apache-2.0
"""tf.image.ssim and ssim_multiscale: how alike two images look (Wang and others, 2004; Wang, Simoncelli and Bovik, 2003)."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.image_dtypes import convert_image_dtype

_MSSSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _as_float(img: Any, max_val: Any) -> Tuple[Tensor, Tensor]:
    img = convert_to_tensor(img)
    peak = convert_image_dtype(math_ops.cast(max_val, img.dtype.base_dtype), dtypes.float32)
    return convert_image_dtype(img, dtypes.float32), peak


def _checked(first: Tensor, second: Tensor) -> None:
    for image in (first, second):
        if image.get_shape().ndims is not None and image.get_shape().ndims < 3:  # type: ignore[operator]
            raise at_user_line(ValueError("images must have height, width and channels, got shape %s" % image.get_shape()))
    if not first.get_shape()[-3:].is_compatible_with(second.get_shape()[-3:]):
        raise at_user_line(ValueError("images of one shape are needed, got %s and %s" % (first.get_shape(), second.get_shape())))


def _window(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights of a Gaussian window, which sum to 1."""
    square = (np.arange(size, dtype=np.float64) - (size - 1) / 2) ** 2
    weights = np.exp(-0.5 / sigma**2 * (square[:, None] + square[None, :]))
    return (weights / weights.sum()).astype(np.float32)


def _per_channel(first: Tensor, second: Tensor, peak: Tensor, size: int, sigma: float, k1: float, k2: float) -> Tuple[Tensor, Tensor]:
    """([..., channels] of the index, and of its part that is contrast and structure)."""
    channels = array_ops.shape(first)[-1]
    window = array_ops.tile(array_ops.reshape(_window(size, sigma), [size, size, 1, 1]), array_ops.stack([1, 1, channels, 1]))

    def mean(x: Tensor) -> Tensor:
        shape = array_ops.shape(x)
        y = nn_ops.depthwise_conv2d(array_ops.reshape(x, array_ops.concat([[-1], shape[-3:]], 0)), window, [1, 1, 1, 1], "VALID")
        return array_ops.reshape(y, array_ops.concat([shape[:-3], array_ops.shape(y)[1:]], 0))

    c1, c2 = (k1 * peak) ** 2, (k2 * peak) ** 2
    mean1, mean2 = mean(first), mean(second)
    product, squares = mean1 * mean2 * 2.0, mean1 * mean1 + mean2 * mean2
    luminance = (product + c1) / (squares + c1)
    structure = (mean(first * second) * 2.0 - product + c2) / (mean(first * first + second * second) - squares + c2)
    return math_ops.reduce_mean(luminance * structure, [-3, -2]), math_ops.reduce_mean(structure, [-3, -2])


def ssim(img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03) -> Tensor:
    """The index of structural similarity of images [..., height, width, channels], 1 for equal ones, one for each pair.

    max_val: the range of their values, such as 255 or 1.0. The window of filter_size must fit into them.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        (first, peak), (second, _) = _as_float(img1, max_val), _as_float(img2, max_val)
        _checked(first, second)
        return math_ops.reduce_mean(_per_channel(first, second, peak, filter_size, filter_sigma, k1, k2)[0], [-1])


def _halved(image: Tensor) -> Tensor:
    """Means of squares of four pixels; a last row or column without a second one counts twice."""
    shape = array_ops.shape(image)
    flat = array_ops.reshape(image, array_ops.concat([[-1], shape[-3:]], 0))
    odd = gen_ops.floor_mod(shape[-3:-1], 2)
    padded = gen_ops.mirror_pad(flat, array_ops.stack([[0, 0], array_ops.stack([0, odd[0]]), array_ops.stack([0, odd[1]]), [0, 0]]), mode="SYMMETRIC")
    small = nn_ops.avg_pool(padded, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    return array_ops.reshape(small, array_ops.concat([shape[:-3], array_ops.shape(small)[1:]], 0))


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _MSSSIM_WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    name: Optional[str] = None,
) -> Tensor:
    """The product of the similarities of images at several sizes, each half of the one before, to the powers given."""
    with name_scope(name, "MS-SSIM", [img1, img2]):
        (first, peak), (second, _) = _as_float(img1, max_val), _as_float(img2, max_val)
        _checked(first, second)
        found = []
        for k in range(len(power_factors)):
            if k:
                first, second = _halved(first), _halved(second)
            whole, structure = _per_channel(first, second, peak, filter_size, filter_sigma, k1, k2)
            found.append(gen_ops.relu(structure if k < len(power_factors) - 1 else whole))
        powers = gen_ops.pow(array_ops.stack(found, axis=-1), np.asarray(power_factors, np.float32))
        return math_ops.reduce_mean(math_ops.reduce_prod(powers, [-1]), [-1])
