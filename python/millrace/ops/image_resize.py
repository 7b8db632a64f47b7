# SPDX-License-Identifier: Apache-2.0
"""Images of another size: the functions of TensorFlow 1, whose pixels lie on the corners of a grid, and those of 2, whose pixels have centres."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, dialects, gen_ops, math_ops
from millrace.ops.image_crops import axes as _axes, check_target as _check_target, pad_to_bounding_box, size as _size


class ResizeMethod:
    """How pixels between others are made."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = 0, 1, 2, 3


class ResizeMethodV2:
    """How pixels between others are made: what resize_images_v2 takes, and resize_images takes the first four of."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: Optional[str] = None, half_pixel_centers: bool = False) -> Tensor:
    """Each pixel made from the four around its place."""
    return gen_ops.resize_bilinear(images, math_ops.cast(size, dtypes.int32), align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name)


def resize_bicubic(images: Any, size: Any, align_corners: bool = False, name: Optional[str] = None, half_pixel_centers: bool = False) -> Tensor:
    """Each pixel made from the sixteen around its place."""
    return gen_ops.resize_bicubic(images, math_ops.cast(size, dtypes.int32), align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name)


def resize_nearest_neighbor(images: Any, size: Any, align_corners: bool = False, name: Optional[str] = None, half_pixel_centers: bool = False) -> Tensor:
    """Each pixel a copy of the nearest one."""
    return gen_ops.resize_nearest_neighbor(
        images, math_ops.cast(size, dtypes.int32), align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name
    )


def resize_area(images: Any, size: Any, align_corners: bool = False, name: Optional[str] = None) -> Tensor:
    """Each pixel the mean of those that it covers."""
    return gen_ops.resize_area(images, math_ops.cast(size, dtypes.int32), align_corners=align_corners, name=name)


_RESIZERS: Dict[Any, Any] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
    ResizeMethodV2.BILINEAR: resize_bilinear,
    ResizeMethodV2.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethodV2.BICUBIC: resize_bicubic,
    ResizeMethodV2.AREA: resize_area,
}
_KERNELS = {"bilinear": "triangle", "bicubic": "keyscubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5", "gaussian": "gaussian"}
_KERNELS["mitchellcubic"] = "mitchellcubic"  # the ways of ResizeMethodV2 that are sums under a kernel, and what ScaleAndTranslate calls it


def _within(size: Any, batch: Tensor) -> Any:
    """The largest size of the proportions of the images within a size: numbers where both are known."""
    known, bound = [d.value for d in batch.get_shape()[1:3]], constant_value(convert_to_tensor(size))
    if None not in known and bound is not None and bound.shape == (2,) and bound.dtype.kind == "i":
        have = np.array(known, np.float32)
        return np.round(have * np.min(bound.astype(np.float32) / have)).astype(np.int32)
    have = math_ops.cast(array_ops.shape(batch)[1:3], dtypes.float32)
    return math_ops.cast(gen_ops.round(have * math_ops.reduce_min(math_ops.cast(size, dtypes.float32) / have)), dtypes.int32)


def _resized(images: Any, size: Any, resize: Callable[[Tensor, Tensor], Tensor], keep_proportions: bool, name: Optional[str], leave_same: bool) -> Tensor:
    """What `resize` makes of a batch, for one image or several. With leave_same, images that have the size already stay as they are."""
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        ndims = images.get_shape().ndims
        if ndims not in (3, 4):
            shape = "'images' contains no shape." if ndims is None else "'images' must have either 3 or 4 dimensions, got shape %s." % images.get_shape()
            raise at_user_line(ValueError(shape))
        batch = images if ndims == 4 else array_ops.expand_dims(images, 0)
        if isinstance(size, (list, tuple)) and any(isinstance(v, Tensor) for v in size):
            size = array_ops.stack([math_ops.cast(v, dtypes.int32) for v in size])
        if keep_proportions:
            size = _within(size, batch)
        try:
            size = convert_to_tensor(size, name="size")
        except (TypeError, ValueError) as error:
            raise at_user_line(ValueError("'size' must be a 1-D int32 Tensor: %s" % error)) from None
        if size.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("'size' must be a 1-D int32 Tensor: it must be integers, got %s" % size.dtype.name))
        if size.get_shape().ndims is not None and size.get_shape().as_list() not in ([2], [None]):
            raise at_user_line(ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width"))
        wanted = constant_value(size)
        if leave_same and wanted is not None and wanted.shape == (2,) and list(wanted) == [d.value for d in batch.get_shape()[1:3]]:
            return images
        result = resize(batch, size)
        return result if ndims == 4 else array_ops.squeeze(result, [0])


def _resizer(method: Any, align_corners: bool) -> Callable[[Tensor, Tensor], Tensor]:
    if not isinstance(method, (int, str)) or method not in _RESIZERS:
        raise at_user_line(ValueError("Resize method is not implemented: %s" % (method,)))
    return lambda batch, size: _RESIZERS[method](batch, size, align_corners)


def resize_images(images: Any, size: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Of another size; 0.x had height and width as two arguments. Images that have that size already stay as they are."""
    names = ["method", "align_corners", "preserve_aspect_ratio", "name"]
    if args and dialects.is_axis(size) and (isinstance(args[0], (int, Tensor)) and not isinstance(args[0], bool)):
        size, args = [size, args[0]], args[1:]
    elif "new_width" in kwargs:
        size = [size, kwargs.pop("new_width")]
    given = dialects.bind("resize_images", names, args, kwargs)
    dialects.refuse({k: v for k, v in given.items() if k not in names}, "resize_images")
    resize = _resizer(given.get("method", ResizeMethod.BILINEAR), bool(given.get("align_corners", False)))
    return _resized(images, size, resize, bool(given.get("preserve_aspect_ratio")), given.get("name"), True)


def _resizer_v2(method: Any, antialias: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Pixels are where their centres are, but for the means of areas, which know no places."""
    kernel = _KERNELS.get(method) if isinstance(method, str) else None
    if kernel is not None and (antialias or method not in _RESIZERS):

        def under_kernel(batch: Tensor, size: Tensor) -> Tensor:
            scale = math_ops.cast(size, dtypes.float32) / math_ops.cast(array_ops.shape(batch)[1:3], dtypes.float32)
            return gen_ops.scale_and_translate(batch, math_ops.cast(size, dtypes.int32), scale, array_ops.zeros([2]), kernel_type=kernel, antialias=antialias)

        return under_kernel
    if not isinstance(method, str) or method not in _RESIZERS:
        raise at_user_line(ValueError("Resize method is not implemented: %s" % (method,)))
    if method == ResizeMethodV2.AREA:
        return resize_area
    return lambda batch, size: _RESIZERS[method](batch, size, half_pixel_centers=True)


def resize_images_v2(
    images: Any, size: Any, method: str = ResizeMethodV2.BILINEAR, preserve_aspect_ratio: bool = False, antialias: bool = False, name: Optional[str] = None
) -> Tensor:
    """Of another size, as in TensorFlow 2: pixels have centres, kernels may be widened where images shrink, and all but the nearest pixels are float32."""
    return _resized(images, size, _resizer_v2(method, antialias), preserve_aspect_ratio, name, False)


def _padded(image: Any, target_height: Any, target_width: Any, resize: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """As large as fits into a size without distortion, with zeros around."""
    with name_scope(None, "resize_image_with_pad", [image]):
        image = convert_to_tensor(image, name="image")
        _check_target(target_height, target_width)
        have = [math_ops.cast(_size(image, axis), dtypes.float64) for axis in _axes(image)]
        want = [math_ops.cast(v, dtypes.float64) for v in (target_height, target_width)]
        ratio = gen_ops.maximum(have[0] / want[0], have[1] / want[1])
        inner = [v / ratio for v in have]
        size = [math_ops.cast(gen_ops.floor(v), dtypes.int32) for v in inner]
        offset = [gen_ops.maximum(0, math_ops.cast(gen_ops.floor((w - v) / 2), dtypes.int32)) for v, w in zip(inner, want)]
        resized = resize(image, array_ops.stack(size))
        return pad_to_bounding_box(resized, offset[0], offset[1], target_height, target_width)


def resize_image_with_pad(image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False) -> Tensor:
    """As large as fits into a size without distortion, with zeros around."""
    return _padded(image, target_height, target_width, lambda image, size: resize_images(image, size, method, align_corners))


def resize_image_with_pad_v2(image: Any, target_height: Any, target_width: Any, method: Any = ResizeMethodV2.BILINEAR, antialias: bool = False) -> Tensor:
    """resize_image_with_pad by resize_images_v2."""
    return _padded(image, target_height, target_width, lambda image, size: resize_images_v2(image, size, method, antialias=antialias))
