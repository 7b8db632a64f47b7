# SPDX-License-Identifier: Apache-2.0
"""Parts of images, and images within larger ones. What is known while the graph is built is checked then, the rest by the step."""

from __future__ import annotations

from typing import Any, List

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.image_scopes import scoped


def axes(image: Tensor) -> Any:
    """The axes of height and width."""
    ndims = image.get_shape().ndims
    if ndims is not None and ndims < 3:
        raise at_user_line(ValueError("'image' must be at least three-dimensional. Got shape %s." % image.get_shape()))
    _require_image(image)
    return (1, 2) if ndims == 4 else (0, 1)


def _require_image(image: Tensor) -> None:
    if image.get_shape().ndims not in (3, 4, None):
        raise at_user_line(ValueError("'image' must have either 3 or 4 dimensions. Got shape %s." % image.get_shape()))


def size(image: Tensor, axis: int) -> Any:
    """How large it is: a number where that is known, else a tensor."""
    static = image.get_shape()[axis].value if image.get_shape().ndims is not None else None
    return static if static is not None else array_ops.shape(image)[axis]


def check_target(height: Any, width: Any) -> None:
    """ValueError for sizes that are known and not positive."""
    for name, value in (("target_height", height), ("target_width", width)):
        require(value, 0, "%s must be > 0." % name, above=True)


def require(value: Any, least: Any, message: str, above: bool = False) -> List[Operation]:
    """ValueError unless value >= least (above: > least); where tensors decide, the operation that checks it."""
    if isinstance(value, Tensor) or isinstance(least, Tensor):
        holds = gen_ops.greater(value, least) if above else gen_ops.greater_equal(value, least)
        return [control_flow_ops.Assert(holds, [message])]
    if not (value > least if above else value >= least):
        raise at_user_line(ValueError(message))
    return []


def require_pixels(image: Tensor) -> List[Operation]:
    """ValueError for an image without pixels; where the step decides, the operation that checks it."""
    _require_image(image)
    shape = image.get_shape()
    message = "all dims of 'image.shape' must be > 0"
    if shape.ndims is not None and 0 in shape.as_list()[-3:]:
        raise at_user_line(ValueError("%s: %s" % (message, shape)))
    if shape.is_fully_defined():
        return []
    return [control_flow_ops.Assert(math_ops.reduce_all(gen_ops.greater(array_ops.shape(image), 0)), [message, array_ops.shape(image)])]


def after(checks: List[Operation], image: Any) -> Any:
    """It, when the checks are done."""
    if not checks:
        return image
    with control_dependencies(checks):
        return array_ops.identity(image)


def _vector(values: Any) -> Any:
    if any(isinstance(v, Tensor) for v in values):
        return array_ops.stack([math_ops.cast(v, dtypes.int32) for v in values])
    return [int(v) for v in values]


def _with_size(made: Tensor, image: Tensor, height: Any, width: Any) -> Tensor:
    sizes = [v if isinstance(v, (int, np.integer)) else None for v in (height, width)]
    static = image.get_shape()
    made.set_shape(([static[0]] if static.ndims == 4 else []) + sizes + [static[-1] if static.ndims else None])
    return made


@scoped
def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """The block of a size at a place of an image [height, width, channels] or a batch of them."""
    return _cropped(image, offset_height, offset_width, target_height, target_width)


def _cropped(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    image = convert_to_tensor(image)
    checks = require_pixels(image)
    h, w = axes(image)
    checks += require(offset_width, 0, "offset_width must be >= 0.") + require(offset_height, 0, "offset_height must be >= 0.")
    checks += require(target_width, 0, "target_width must be > 0.", True) + require(target_height, 0, "target_height must be > 0.", True)
    checks += require(size(image, w), target_width + offset_width, "width must be >= target + offset.")
    checks += require(size(image, h), target_height + offset_height, "height must be >= target + offset.")
    begin, block = [offset_height, offset_width, 0], [target_height, target_width, -1]
    if h == 1:
        begin, block = [0] + begin, [-1] + block
    return _with_size(gen_ops.slice(after(checks, image), _vector(begin), _vector(block)), image, target_height, target_width)


@scoped
def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """Zeros around, so that the image is at a place of a larger one."""
    image = convert_to_tensor(image)
    checks = require_pixels(image)
    h, w = axes(image)
    after_h, after_w = target_height - offset_height - size(image, h), target_width - offset_width - size(image, w)
    checks += require(offset_height, 0, "offset_height must be >= 0") + require(offset_width, 0, "offset_width must be >= 0")
    checks += require(after_w, 0, "width must be <= target - offset") + require(after_h, 0, "height must be <= target - offset")
    pads = [[offset_height, after_h], [offset_width, after_w], [0, 0]]
    if h == 1:
        pads.insert(0, [0, 0])
    flat = _vector([v for pair in pads for v in pair])
    paddings = array_ops.reshape(flat, [-1, 2]) if isinstance(flat, Tensor) else np.array(flat, np.int32).reshape(-1, 2)
    return _with_size(gen_ops.pad(after(checks, image), paddings), image, target_height, target_width)


@scoped
def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Cropped or padded around the centre to a size."""
    image = convert_to_tensor(image)
    checks = require_pixels(image)
    checks += require(target_width, 0, "target_width must be > 0.", True) + require(target_height, 0, "target_height must be > 0.", True)
    image = after(checks, image)
    h, w = axes(image)
    height, width = size(image, h), size(image, w)

    def smaller(a: Any, b: Any) -> Any:
        return min(a, b) if not isinstance(a, Tensor) and not isinstance(b, Tensor) else gen_ops.minimum(a, b)

    def positive(a: Any) -> Any:
        return max(a, 0) if not isinstance(a, Tensor) else gen_ops.maximum(a, 0)

    dh, dw = target_height - height, target_width - width
    cropped = crop_to_bounding_box(image, positive(-dh // 2), positive(-dw // 2), smaller(target_height, height), smaller(target_width, width))
    return pad_to_bounding_box(cropped, positive(dh // 2), positive(dw // 2), target_height, target_width)


@scoped
def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle part."""
    if not 0.0 < central_fraction <= 1.0:
        raise at_user_line(ValueError("central_fraction must be within (0, 1]"))
    image = convert_to_tensor(image)
    if central_fraction == 1.0:
        return image
    h, w = axes(image)
    height, width = size(image, h), size(image, w)
    dynamic = [
        math_ops.cast((1 - central_fraction) / 2 * math_ops.cast(v, dtypes.float32), dtypes.int32) if isinstance(v, Tensor) else None for v in (height, width)
    ]
    start = [int((v - v * central_fraction) / 2) if d is None else d for d, v in zip(dynamic, (height, width))]
    return _cropped(image, start[0], start[1], height - 2 * start[0], width - 2 * start[1])
