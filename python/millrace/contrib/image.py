# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.image: projective transforms, rotations, colours in YIQ, connected pixels, and pairs of boxes."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.contrib.image_warps import dense_image_warp, interpolate_spline, sparse_image_warp  # noqa: F401
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import InvalidArgumentError, at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, random_ops
from millrace.ops.script_ops import py_func


def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: Optional[str] = None) -> Tensor:
    """Transforms that turn images around their middle, counterclockwise; angles in radians, one or one for each image."""
    with name_scope(name, "angles_to_projective_transforms"):
        angle = array_ops.reshape(convert_to_tensor(angles, dtypes.float32), [-1])
        h, w = (math_ops.cast(s, dtypes.float32) - 1 for s in (image_height, image_width))
        cos, sin, zero = gen_ops.cos(angle), gen_ops.sin(angle), array_ops.zeros_like(angle)
        across, down = (w - (cos * w - sin * h)) / 2, (h - (sin * w + cos * h)) / 2
        return array_ops.stack([cos, -sin, across, sin, cos, down, zero, zero], 1)


def translations_to_projective_transforms(translations: Any, name: Optional[str] = None) -> Tensor:
    """Transforms that move images by [across, down]."""
    with name_scope(name, "translations_to_projective_transforms"):
        moves = array_ops.reshape(convert_to_tensor(translations, dtypes.float32), [-1, 2])
        zero, one = array_ops.zeros_like(moves[:, 0]), array_ops.ones_like(moves[:, 0])
        return array_ops.stack([one, zero, -moves[:, 0], zero, one, -moves[:, 1], zero, zero], 1)


def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Rows of eight numbers as 3 x 3 matrices."""
    rows = array_ops.reshape(convert_to_tensor(transforms), [-1, 8])
    return array_ops.reshape(array_ops.concat([rows, array_ops.ones_like(rows[:, :1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """3 x 3 matrices as rows of eight numbers."""
    rows = array_ops.reshape(convert_to_tensor(transform_matrices), [-1, 9])
    return (rows / rows[:, 8:])[:, :8]


def compose_transforms(*transforms: Any) -> Tensor:
    """Transforms one after the other, as one."""
    if not transforms:
        raise at_user_line(AssertionError("transforms cannot be empty"))
    made = flat_transforms_to_matrices(transforms[0])
    for other in transforms[1:]:
        made = matrix_ops.matmul(made, flat_transforms_to_matrices(other))
    return matrices_to_flat_transforms(made)


def transform(images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: Optional[str] = None) -> Tensor:
    """Images [batch, height, width, channels] (or of rank 3, or 2) whose pixel (x, y) is taken from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
    k = c0 x + c1 y + 1, of transforms [a0, a1, a2, b0, b1, b2, c0, c1], one or one for each image. What lies outside is 0."""
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise at_user_line(ValueError('interpolation must be "NEAREST" or "BILINEAR", got %r' % (interpolation,)))
    with name_scope(name, "transform"):
        images = convert_to_tensor(images)
        rank = images.get_shape().ndims
        if rank is None or not 2 <= rank <= 4:
            raise at_user_line(TypeError("Images should have rank between 2 and 4, got %s" % images.get_shape()))
        batch = images[None, :, :, None] if rank == 2 else images[None] if rank == 3 else images
        rows = array_ops.reshape(convert_to_tensor(transforms, dtypes.float32), [-1, 8])
        size = array_ops.shape(batch)[1:3] if output_shape is None else convert_to_tensor(output_shape, dtypes.int32)
        made = gen_ops.image_projective_transform_v2(batch, rows, size, interpolation)
        made = made[0, :, :, 0] if rank == 2 else made[0] if rank == 3 else made
        if output_shape is None:
            made.set_shape(images.get_shape())
        return made


def _size(images: Tensor) -> Tuple[Any, Any]:
    rank = images.get_shape().ndims
    if rank not in (2, 3, 4):
        raise at_user_line(TypeError("Images should have rank between 2 and 4, got %s" % images.get_shape()))
    shape = array_ops.shape(images)
    return (shape[1], shape[2]) if rank == 4 else (shape[0], shape[1])


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: Optional[str] = None) -> Tensor:
    """Images turned around their middle by angles in radians, counterclockwise."""
    images = convert_to_tensor(images)
    return transform(images, angles_to_projective_transforms(angles, *_size(images)), interpolation, name=name or "rotate")


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: Optional[str] = None) -> Tensor:
    """Images moved by [across, down]."""
    return transform(images, translations_to_projective_transforms(translations), interpolation, name=name or "translate")


# ---- colours ----

_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])


def _of_three_channels(image: Tensor) -> Tensor:
    shape = image.get_shape()
    if shape.ndims is not None and shape.ndims < 3:
        raise at_user_line(ValueError("Shape must be at least rank 3 but is rank %d for an image" % shape.ndims))
    channels = None if shape.ndims is None else shape[-1].value
    if channels == 3:
        return image
    if channels is not None:
        raise at_user_line(InvalidArgumentError(None, None, "input must have 3 channels but instead has %d channels." % channels))
    return control_flow_ops.with_dependencies([check_ops.assert_equal(array_ops.shape(image)[-1], 3, message="input must have 3 channels")], image)


def adjust_hsv_in_yiq(image: Any, delta_hue: Any = 0, scale_saturation: Any = 1, scale_value: Any = 1, name: Optional[str] = None) -> Tensor:
    """Colours turned by delta_hue radians in the plane of I and Q, which is scaled by scale_saturation, and all by scale_value."""
    with name_scope(name, "adjust_hsv_in_yiq"):
        image = _of_three_channels(convert_to_tensor(image))
        if not image.dtype.is_floating:
            raise at_user_line(TypeError("adjust_hsv_in_yiq takes floating point images, got %s" % image.dtype.name))
        hue, saturation, value = (math_ops.cast(v, dtypes.float32) for v in (delta_hue, scale_saturation, scale_value))
        cos, sin = saturation * gen_ops.cos(hue), saturation * gen_ops.sin(hue)
        one, zero = array_ops.ones([]), array_ops.zeros([])
        turn = array_ops.reshape(array_ops.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos]), [3, 3])
        matrix = value * matrix_ops.matmul(np.linalg.inv(_YIQ).astype("f"), matrix_ops.matmul(turn, _YIQ.astype("f")))
        return math_ops.cast(matrix_ops.tensordot(math_ops.cast(image, dtypes.float32), matrix, [[-1], [1]]), image.dtype.base_dtype)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: Optional[int] = None,
    name: Optional[str] = None,
) -> Tensor:
    """adjust_hsv_in_yiq by random numbers."""
    for what, wrong in (
        ("max_delta must be non-negative.", max_delta_hue < 0),
        ("lower_saturation must be non-negative.", lower_saturation < 0),
        ("lower_value must be non-negative.", lower_value < 0),
        ("lower_saturation must be < upper_saturation.", lower_saturation > upper_saturation),
        ("lower_value must be < upper_value.", lower_value > upper_value),
    ):
        if wrong:
            raise at_user_line(ValueError(what))

    def drawn(low: float, high: float) -> Any:
        return low if low == high else random_ops.random_uniform([], low, high, seed=seed)

    return adjust_hsv_in_yiq(image, drawn(-max_delta_hue, max_delta_hue), drawn(lower_saturation, upper_saturation), drawn(lower_value, upper_value), name)


# ---- connected pixels ----


def connected_components(images: Any) -> Tensor:
    """Numbers of components, from 1 on in the order of their first pixels, of an image [height, width] or of all of a batch: pixels of one value other
    than 0 belong together where they touch at a side. Those of value 0 have the number 0."""
    with name_scope("connected_components"):
        given = convert_to_tensor(images, name="images")
        if given.get_shape().ndims not in (2, 3):
            raise at_user_line(TypeError("images should have rank 2 (HW) or 3 (NHW). Static shape is %s" % given.get_shape()))
        batch = array_ops.expand_dims(given, 0) if given.get_shape().ndims == 2 else given
        own = array_ops.reshape(math_ops.range(1, array_ops.size(batch) + 1), array_ops.shape(batch))
        counted = gen_ops.not_equal(batch, array_ops.zeros_like(batch))
        # Each pixel has the place of another of its component, at first its own: the least of its neighbours', and then the one that that pixel has.
        sides = [(_beside(batch, axis, first) & counted, axis, first) for axis in (1, 2) for first in (True, False)]

        def spread(places: Tensor, moved: Tensor) -> Any:
            del moved  # it has said that there is more to do
            least = places
            for same, axis, first in sides:
                least = gen_ops.minimum(least, array_ops.where(same, _shifted(places, axis, first), places))
            least = _looked_up(least, least)
            return least, math_ops.reduce_any(gen_ops.not_equal(least, places))

        begin = array_ops.where(counted, own, array_ops.zeros_like(own))
        places = control_flow_ops.while_loop(lambda _, moved: moved, spread, [begin, convert_to_tensor(True)], back_prop=False)[0]
        roots = math_ops.cast(gen_ops.equal(places, own), dtypes.int32)
        numbers = array_ops.reshape(math_ops.cumsum(array_ops.reshape(roots, [-1])), array_ops.shape(batch))
        made = _looked_up(numbers, places)
        made.set_shape(batch.get_shape())
        return made[0] if batch is not given else made


def _shifted(x: Tensor, axis: int, first: bool) -> Tensor:
    """Each pixel has what the one before it along an axis has; with `first` unset, the one behind it. At the border, its own."""
    ahead = (slice(None),) * axis
    parts = [x[(*ahead, slice(0, 1))], x[(*ahead, slice(0, -1))]] if first else [x[(*ahead, slice(1, None))], x[(*ahead, slice(-1, None))]]
    return array_ops.concat(parts, axis)


def _beside(x: Tensor, axis: int, first: bool) -> Tensor:
    return gen_ops.equal(x, _shifted(x, axis, first))


def _looked_up(values: Tensor, places: Tensor) -> Tensor:
    """The values of the pixels at places, which count from 1; of 0 it is 0."""
    return array_ops.gather(array_ops.concat([[0], array_ops.reshape(values, [-1])], 0), places)


# ---- pairs ----


def _pairs(distances: Any, valid: Any, top_k: Any) -> List[Any]:
    d = np.array(distances, np.float32)
    rows = d.shape[0] if valid < 0 else min(int(valid), d.shape[0])
    to_column, to_row = np.full(d.shape[0], -1, np.int32), np.full(d.shape[1], -1, np.int32)
    d[rows:] = np.inf
    limit = min(rows, d.shape[1]) if top_k < 0 else min(int(top_k), rows, d.shape[1])
    for _ in range(limit):
        at = np.unravel_index(np.argmin(d), d.shape)
        to_column[at[0]], to_row[at[1]] = at[1], at[0]
        d[at[0], :] = np.inf
        d[:, at[1]] = np.inf
    return [to_column, to_row]


def bipartite_match(distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(the column of each row, the row of each column), -1 where there is none: the least distance first, greedily, of the first num_valid_rows rows."""
    distances = convert_to_tensor(distance_mat, dtypes.float32)
    made = py_func(_pairs, [distances, convert_to_tensor(num_valid_rows, dtypes.float32), convert_to_tensor(top_k)], [dtypes.int32, dtypes.int32], name=name)
    shape = distances.get_shape().with_rank(2)
    made[0].set_shape(shape[:1])
    made[1].set_shape(shape[1:])
    return made[0], made[1]
