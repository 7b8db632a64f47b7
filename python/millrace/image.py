# SPDX-License-Identifier: Apache-2.0
"""tf.image: changes of images [height, width, channels] and of batches of them."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import not_provided as _not_provided
from millrace.framework import dtypes, numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, derived_ops, dialects, gen_ops, math_ops, matrix_ops, random_ops
from millrace.ops.image_boxes import (  # noqa: F401
    combined_non_max_suppression,
    crop_and_resize,
    draw_bounding_boxes,
    extract_glimpse,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
    sample_distorted_bounding_box,
)
from millrace.ops.image_crops import after as _after, axes as _axes, require as _require, require_pixels as _require_pixels
from millrace.ops.image_crops import central_crop, crop_to_bounding_box, pad_to_bounding_box, resize_image_with_crop_or_pad  # noqa: F401
from millrace.ops.image_dtypes import convert_image_dtype
from millrace.ops.image_files import (  # noqa: F401
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from millrace.ops.image_resize import (  # noqa: F401
    ResizeMethod,
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_image_with_pad,
    resize_images,
    resize_nearest_neighbor,
)
from millrace.ops.image_scopes import scoped
from millrace.ops.image_similarity import psnr, ssim, ssim_multiscale  # noqa: F401
from millrace.ops.tensor_scatter import sobel_edges  # noqa: F401
from millrace.ops.random_ops import random_crop  # noqa: F401


def _with_pixels(image: Any) -> Tensor:
    """One image or a batch of them; ValueError for one that has none, which a step finds out where the graph does not."""
    image = convert_to_tensor(image)
    _axes(image)
    return _after(_require_pixels(image), image)  # type: ignore[no-any-return]


@scoped
def flip_left_right(image: Any) -> Tensor:
    """Turned around sideways."""
    image = _with_pixels(image)
    return _like(gen_ops.reverse_v2(image, [_axes(image)[1]]), image)


@scoped
def flip_up_down(image: Any) -> Tensor:
    """Turned upside down."""
    image = _with_pixels(image)
    return _like(gen_ops.reverse_v2(image, [_axes(image)[0]]), image)


def _like(result: Tensor, image: Tensor) -> Tensor:
    """Of the image's shape; an image of unknown rank is one, not a batch."""
    result.set_shape(image.get_shape() if image.get_shape().ndims is not None else [None, None, None])
    return result


def _like_turned(result: Tensor, image: Tensor) -> Tensor:
    """Of three dimensions where the rank of the image is unknown."""
    if image.get_shape().ndims is None:
        result.set_shape([None, None, None])
    return result


def _exchanged(image: Tensor, name: Optional[str] = None) -> Tensor:
    return array_ops.transpose(image, [1, 0, 2] if _axes(image) == (0, 1) else [0, 2, 1, 3], name=name or "transpose")


def transpose_image(image: Any, name: Optional[str] = None) -> Tensor:
    """Height and width exchanged."""
    with name_scope(name, "transpose", [image]):
        image = _with_pixels(image)
        return _like_turned(_exchanged(image, name), image)


transpose = transpose_image


def rot90(image: Any, k: Any = 1, name: Optional[str] = None) -> Tensor:
    """Turned by k right angles against the clock."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = _with_pixels(image)
        rows, columns = _axes(image)
        turns = [
            lambda: image,
            lambda: _exchanged(gen_ops.reverse_v2(image, [columns])),
            lambda: gen_ops.reverse_v2(image, [rows, columns]),
            lambda: gen_ops.reverse_v2(_exchanged(image), [columns]),
        ]
        number = constant_value(convert_to_tensor(k, dtypes.int32))
        if number is not None:
            made = array_ops.identity(turns[int(number) % 4](), scope)  # type: ignore[no-untyped-call]
        else:
            part = gen_ops.floor_mod(k, 4)
            made = control_flow_ops.case([(gen_ops.equal(part, i), turns[i]) for i in (1, 2, 3)], turns[0], exclusive=True, name=scope)
        return _like_turned(made, image)


def _maybe(image: Any, axis: int, seed: Optional[int], name: str) -> Tensor:
    """Each image by itself."""
    with name_scope(None, name, [image]) as scope:
        image = _with_pixels(image)
        if _axes(image)[0] == 1:
            count = array_ops.shape(image)[0]
            turned = gen_ops.round(array_ops.reshape(random_ops.random_uniform([count], 0, 1.0, seed=seed), [count, 1, 1, 1]))
            turned = math_ops.cast(turned, image.dtype.base_dtype)
            return _like(turned * gen_ops.reverse_v2(image, [axis + 1]) + (1 - turned) * image, image)
        if image.get_shape()[:3].is_fully_defined():
            image = control_flow_ops.with_dependencies([], image)
        less = gen_ops.less(random_ops.random_uniform([], 0, 1.0, seed=seed), 0.5)
        if image.get_shape().ndims is None:
            image.set_shape([None, None, None])
        return _like(control_flow_ops.cond(less, lambda: gen_ops.reverse_v2(image, [axis]), lambda: image, name=scope), image)


def random_flip_left_right(image: Any, seed: Optional[int] = None) -> Tensor:
    """Turned around sideways, or not."""
    return _maybe(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: Optional[int] = None) -> Tensor:
    """Turned upside down, or not."""
    return _maybe(image, 0, seed, "random_flip_up_down")


def rgb_to_grayscale(images: Any, name: Optional[str] = None) -> Tensor:
    """One channel: how bright each pixel is."""
    images = convert_to_tensor(images)
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        wide = _wide(images)
        gray = math_ops.reduce_sum(wide * np.array([0.2989, 0.5870, 0.1140], np.float32), -1, True)
        gray.set_shape(images.get_shape()[:-1].concatenate([1]))
        return convert_image_dtype(gray, images.dtype.base_dtype, name=scope)


def grayscale_to_rgb(images: Any, name: Optional[str] = None) -> Tensor:
    """Three equal channels."""
    images = convert_to_tensor(images)
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        ndims = images.get_shape().ndims
        if ndims is not None and ndims < 2:
            raise at_user_line(ValueError("A grayscale image must be at least two-dimensional, got shape %s." % images.get_shape()))
        if ndims is not None and images.get_shape()[-1].value not in (1, None):
            raise at_user_line(ValueError("Last dimension of a grayscale image should be size 1, got shape %s." % images.get_shape()))
        if ndims is None:
            ones = gen_ops.fill(array_ops.expand_dims(array_ops.rank(images) - 1, 0), 1)
            return gen_ops.tile(images, array_ops.concat([ones, [3]], 0), name=scope)
        made = gen_ops.tile(images, [1] * (ndims - 1) + [3], name=scope)
        made.set_shape(images.get_shape()[:-1].concatenate([3]))
        return made


def _wide(image: Tensor) -> Tensor:
    return image if image.dtype.base_dtype == dtypes.float32 else convert_image_dtype(image, dtypes.float32)


@scoped
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Brighter by delta, of a range from 0 to 1."""
    image = convert_to_tensor(image)
    bright = _wide(image) + math_ops.cast(delta, dtypes.float32)
    return convert_image_dtype(bright, image.dtype.base_dtype, saturate=True)


def random_brightness(image: Any, max_delta: float, seed: Optional[int] = None) -> Tensor:
    """Brighter or darker by up to max_delta."""
    if max_delta < 0:
        raise at_user_line(ValueError("max_delta must be non-negative."))
    return adjust_brightness(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


@scoped
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Differences from each channel's mean, times a factor."""
    images = convert_to_tensor(images)
    wide = _wide(images)
    mean = math_ops.reduce_mean(wide, [-3, -2], True)
    contrast_factor = convert_to_tensor(contrast_factor, dtypes.float32)
    rank = contrast_factor.get_shape().ndims
    if rank not in (0, None):
        raise at_user_line(ValueError("Shape must be rank 0 but is rank %d (the contrast_factor of adjust_contrast)" % rank))
    return convert_image_dtype((wide - mean) * contrast_factor + mean, images.dtype.base_dtype, saturate=True)


def random_contrast(image: Any, lower: float, upper: float, seed: Optional[int] = None) -> Tensor:
    """adjust_contrast with a factor in a range."""
    if upper <= lower:
        raise at_user_line(ValueError("upper must be > lower."))
    if lower < 0:
        raise at_user_line(ValueError("lower must be non-negative."))
    return adjust_contrast(image, random_ops.random_uniform([], lower, upper, seed=seed))


@scoped
def per_image_standardization(image: Any) -> Tensor:
    """Scaled to mean zero and variance one, in the images' own type."""
    image = convert_to_tensor(image)
    kind = image.dtype.base_dtype
    wide = image if kind in (dtypes.float16, dtypes.float32) else convert_image_dtype(image, dtypes.float32)
    axes = None if image.get_shape().ndims == 3 else [-1, -2, -3]
    count = gen_ops.prod(array_ops.shape(image)[-3:], [0])
    mean = math_ops.reduce_mean(wide, axes, True)
    deviation = gen_ops.maximum(derived_ops.reduce_std(wide, axes, True), gen_ops.rsqrt(math_ops.cast(count, wide.dtype)))
    scaled = gen_ops.real_div(wide - mean, deviation, name=get_default_graph().get_name_scope() + "/")
    return scaled if wide is image else convert_image_dtype(scaled, kind, saturate=True)


per_image_whitening = per_image_standardization


def total_variation(images: Any, name: Optional[str] = None) -> Tensor:
    """The sum of differences of neighbouring pixels."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        rank = images.get_shape().ndims
        if rank == 3:
            down, right, axes = images[1:] - images[:-1], images[:, 1:] - images[:, :-1], None
        elif rank == 4:
            down, right, axes = images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1], [1, 2, 3]
        else:
            raise at_user_line(ValueError("'images' must be either 3 or 4-dimensional."))
        return math_ops.reduce_sum(math_ops.abs(down), axes) + math_ops.reduce_sum(math_ops.abs(right), axes)


def _of_own_type(images: Any) -> Any:
    """Arrays of numbers that an op takes keep their type, lists get the op's usual one."""
    return convert_to_tensor(images) if isinstance(images, np.ndarray) and images.dtype.kind == "f" else images


def rgb_to_hsv(images: Any, name: Optional[str] = None) -> Tensor:
    """Hue, saturation and value."""
    return gen_ops.rgb_to_hsv(_of_own_type(images), name=name)


def hsv_to_rgb(images: Any, name: Optional[str] = None) -> Tensor:
    """Red, green and blue."""
    return gen_ops.hsv_to_rgb(_of_own_type(images), name=name)


def adjust_hue(image: Any, delta: Any, name: Optional[str] = None) -> Tensor:
    """Turned around the circle of colours by delta, from -1 to 1."""
    image = convert_to_tensor(image)
    with name_scope(name, "adjust_hue", [image]):
        turned = gen_ops.adjust_hue(_wide(image), delta)
        return convert_image_dtype(turned, image.dtype.base_dtype, saturate=True)


def adjust_saturation(image: Any, saturation_factor: Any, name: Optional[str] = None) -> Tensor:
    """More or less colourful, by a factor."""
    image = convert_to_tensor(image)
    with name_scope(name, "adjust_saturation", [image]):
        made = gen_ops.adjust_saturation(_wide(image), saturation_factor)
        return convert_image_dtype(made, image.dtype.base_dtype, saturate=True)


def random_hue(image: Any, max_delta: float, seed: Optional[int] = None) -> Tensor:
    """adjust_hue by up to max_delta."""
    if not 0 <= max_delta <= 0.5:
        raise at_user_line(ValueError("max_delta must be between 0 and 0.5."))
    return adjust_hue(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: Optional[int] = None) -> Tensor:
    """adjust_saturation with a factor in a range."""
    if upper <= lower or lower < 0:
        raise at_user_line(ValueError("upper must be > lower, and lower must be non-negative."))
    return adjust_saturation(image, random_ops.random_uniform([], lower, upper, seed=seed))


@scoped
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain image^gamma, of a range from 0 to 1."""
    image = convert_to_tensor(image)
    checks = _require(gamma, 0, "Gamma should be a non-negative real number.")
    gamma = _after(checks, gamma)
    wide = _wide(image)
    return convert_image_dtype(gain * gen_ops.pow(wide, convert_to_tensor(gamma, dtypes.float32)), image.dtype.base_dtype, saturate=True)


resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad


def extract_image_patches(
    images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: Optional[str] = None, sizes: Any = None
) -> Tensor:
    """The windows of a size around every pixel, side by side as channels."""
    return gen_ops.extract_image_patches(images, dialects.either("sizes", sizes, "ksizes", ksizes), strides, rates, padding, name=name)


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: Any, name: Optional[str] = None) -> Tensor:
    """extract_image_patches by its later name."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: Optional[str] = None, dct_method: str = "") -> Tensor:
    """As it looks after having been a JPEG file of a quality."""
    image = convert_to_tensor(image)
    with name_scope(name, "adjust_jpeg_quality", [image]):
        channels = image.get_shape()[-1].value if image.get_shape().ndims else None
        file = gen_ops.encode_jpeg_variable_quality(convert_image_dtype(image, dtypes.uint8, saturate=True), convert_to_tensor(jpeg_quality, dtypes.int32))
        return convert_image_dtype(decode_jpeg(file, channels=channels, dct_method=dct_method), image.dtype.base_dtype, saturate=True)


def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Optional[int] = None) -> Tensor:
    """adjust_jpeg_quality with a quality in a range."""
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise at_user_line(ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`, and both between 0 and 100."))
    return adjust_jpeg_quality(image, random_ops.random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed=seed))


def _mixed(images: Any, matrix: Any) -> Tensor:
    images = convert_to_tensor(images)
    return matrix_ops.tensordot(images, numpy_cast.cast(matrix, images.dtype.base_dtype), [[images.get_shape().ndims - 1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """Brightness and the two colour differences of NTSC."""
    return _mixed(images, [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])


def yiq_to_rgb(images: Any) -> Tensor:
    """The inverse of rgb_to_yiq."""
    return _mixed(images, [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])


def rgb_to_yuv(images: Any) -> Tensor:
    """Brightness and the two colour differences of PAL."""
    return _mixed(images, [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])


def yuv_to_rgb(images: Any) -> Tensor:
    """The inverse of rgb_to_yuv."""
    return _mixed(images, [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def image_gradients(image: Any) -> Any:
    """(down, right): differences to the next row and the next column, zero in the last ones."""
    image = convert_to_tensor(image)
    if image.get_shape().ndims != 4:
        raise at_user_line(ValueError("image_gradients expects a 4D tensor [batch_size, h, w, d], not %s." % image.get_shape()))
    down, right = image[:, 1:] - image[:, :-1], image[:, :, 1:] - image[:, :, :-1]
    return (_like(gen_ops.pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), image), _like(gen_ops.pad(right, [[0, 0], [0, 0], [0, 1], [0, 0]]), image))


__getattr__ = _not_provided.getter("image")
