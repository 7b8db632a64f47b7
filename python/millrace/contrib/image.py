# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.image: projective transforms, rotations, colours in YIQ, connected pixels, and pairs of boxes."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.contrib.image_warps import dense_image_warp, interpolate_spline, sparse_image_warp  # noqa: F401
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import InvalidArgumentError, at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, random_ops


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


def adjust_hsv_in_yiq(image: Any, delta_hue: Any = 0, scale_saturation: Any = 1, scale_value: Any = 1, name: Optional[str] = None) -> Tensor:
    """Colours turned by delta_hue radians in the plane of I and Q, which is scaled by scale_saturation, and all by scale_value.

    image: [..., height, width, 3] of floats. Nothing is cut to [0, 1].
    """
    with name_scope(name, "adjust_hsv_in_yiq", [image]):
        image = convert_to_tensor(image, name="image")
        shape = image.get_shape()
        if shape.ndims is not None and shape.ndims < 3:
            raise at_user_line(ValueError("Shape must be at least rank 3 but is rank %d for an image" % shape.ndims))
        if shape.ndims is not None and shape[-1].value not in (None, 3):
            raise at_user_line(InvalidArgumentError(None, None, "input must have 3 channels but instead has %s channels." % shape[-1]))
        if not image.dtype.is_floating:
            raise at_user_line(TypeError("adjust_hsv_in_yiq takes floating point images, got %s" % image.dtype.name))
        amounts = [math_ops.cast(v, dtypes.float32) for v in (delta_hue, scale_saturation, scale_value)]
        return math_ops.cast(gen_ops.adjust_hsv_in_yiq(math_ops.cast(image, dtypes.float32), *amounts), image.dtype.base_dtype)


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
        parts = gen_ops.image_connected_components(batch)
        # A part's number is one more than the place of its first pixel: the firsts are counted.
        flat = array_ops.reshape(parts, [-1])
        firsts = gen_ops.equal(flat, math_ops.range(1, array_ops.size(flat, out_type=dtypes.int64) + 1))
        numbers = array_ops.concat([[0], math_ops.cumsum(math_ops.cast(firsts, dtypes.int32))], 0)
        made = array_ops.gather(numbers, parts)
        return made[0] if batch is not given else made


# ---- pairs ----


def bipartite_match(distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str = "bipartite_match") -> Tuple[Tensor, Tensor]:
    """(the column of each row, the row of each column), -1 where there is none: the least distance first, greedily, of the first num_valid_rows rows."""
    made = gen_ops.bipartite_match(distance_mat, num_valid_rows, top_k=top_k, name=name)
    return made[0], made[1]


# ---- depths ----


def single_image_random_dot_stereograms(
    depth_values: Any,
    hidden_surface_removal: bool = True,
    convergence_dots_size: int = 8,
    dots_per_inch: int = 72,
    eye_separation: float = 2.5,
    mu: float = 0.3333,
    normalize: bool = True,
    normalize_max: float = -100,
    normalize_min: float = 100,
    border_level: float = 0,
    number_colors: int = 256,
    output_image_shape: Any = (1024, 768, 1),
    output_data_window: Any = (1022, 757),
    name: Optional[str] = None,
) -> Tensor:
    """An image [height, width, channels] of random dots (uint8) in which two eyes see the depths of a matrix, 0 far and 1 near.

    normalize: brings depths between normalize_min and normalize_max there, or those between their least and largest where these are no range.
    output_image_shape: [width, height, channels]; three channels where number_colors is above 256. output_data_window: [width, height] of the part
    that shows the depths; the rest is as deep as border_level. Squares of convergence_dots_size help the eyes. InvalidArgumentError for a window
    that is larger than the image, and depths of no elements.
    """
    return gen_ops.single_image_random_dot_stereograms(
        depth_values,
        hidden_surface_removal=hidden_surface_removal,
        convergence_dots_size=convergence_dots_size,
        dots_per_inch=dots_per_inch,
        eye_separation=eye_separation,
        mu=mu,
        normalize=normalize,
        normalize_max=normalize_max,
        normalize_min=normalize_min,
        border_level=border_level,
        number_colors=number_colors,
        output_image_shape=output_image_shape,
        output_data_window=output_data_window,
        name=name,
    )
