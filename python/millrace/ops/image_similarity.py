# SPDX-License-Identifier: Apache-2.0
"""How alike two images are: psnr; ssim and ssim_multiscale, how they look (Wang and others, 2004; Wang, Simoncelli and Bovik, 2003)."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.image_crops import after
from millrace.ops.image_dtypes import convert_image_dtype

_MSSSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _as_float(img: Any, max_val: Any) -> Tuple[Tensor, Tensor]:
    img = convert_to_tensor(img)
    peak = convert_image_dtype(math_ops.cast(max_val, img.dtype.base_dtype), dtypes.float32)
    return convert_image_dtype(img, dtypes.float32), peak


def verify_compatible(first: Tensor, second: Tensor) -> Tuple[Tensor, Tensor, List[Operation]]:
    """(shapes of two images, operations that check them); ValueError where what is known of them says already that they are unlike."""
    for image in (first, second):
        if image.get_shape().ndims is not None and image.get_shape().ndims < 3:  # type: ignore[operator]
            raise at_user_line(ValueError("images must have height, width and channels, got shape %s" % image.get_shape()))
    if not first.get_shape()[-3:].is_compatible_with(second.get_shape()[-3:]):
        raise at_user_line(ValueError("images of one shape are needed, got %s and %s" % (first.get_shape(), second.get_shape())))
    shapes = array_ops.shape(first), array_ops.shape(second)
    images = [control_flow_ops.Assert(gen_ops.greater_equal(array_ops.size(shape), 3), list(shapes), summarize=10) for shape in shapes]
    with control_dependencies(images):
        same = math_ops.reduce_all(gen_ops.equal(shapes[0][-3:], shapes[1][-3:]))
        return (*shapes, [control_flow_ops.Assert(same, list(shapes), summarize=10)])


def _verified(first: Tensor, second: Tensor) -> Tensor:
    """The first of two images, which are alike."""
    if first.get_shape().is_fully_defined() and second.get_shape().is_fully_defined():
        verify_compatible(first, second)
        return first
    return after(verify_compatible(first, second)[2], first)  # type: ignore[no-any-return]


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


def psnr(a: Any, b: Any, max_val: Any, name: Optional[str] = None) -> Tensor:
    """The peak signal in decibels over the mean squared difference."""
    with name_scope(name, "PSNR", [a, b]) as scope:
        (first, peak), (second, _) = _as_float(a, max_val), _as_float(b, max_val)
        error = math_ops.reduce_mean(gen_ops.squared_difference(_verified(first, second), second), [-3, -2, -1])
        return gen_ops.sub(gen_ops.log(peak) * np.float32(20 / np.log(10)), gen_ops.log(error) * np.float32(10 / np.log(10)), name=scope)


def ssim(img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03) -> Tensor:
    """The index of structural similarity of images [..., height, width, channels], 1 for equal ones, one for each pair.

    max_val: the range of their values, such as 255 or 1.0. The window of filter_size must fit into them.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        (first, peak), (second, _) = _as_float(img1, max_val), _as_float(img2, max_val)
        first = _verified(first, second)
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
        first = _verified(first, second)
        found = []
        for k in range(len(power_factors)):
            if k:
                first, second = _halved(first), _halved(second)
            whole, structure = _per_channel(first, second, peak, filter_size, filter_sigma, k1, k2)
            found.append(gen_ops.relu(structure if k < len(power_factors) - 1 else whole))
        powers = gen_ops.pow(array_ops.stack(found, axis=-1), np.asarray(power_factors, np.float32))
        return math_ops.reduce_mean(math_ops.reduce_prod(powers, [-1]), [-1])
