# SPDX-License-Identifier: Apache-2.0
"""Images of PIL as arrays, and arrays turned, moved, scaled, mirrored and made brighter. Random changes draw from NumPy's generator, in the order of 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout


def pillow() -> Any:
    """The package Pillow; ImportError says that it is needed."""
    try:
        from PIL import Image
    except ImportError:
        raise at_user_line(ImportError("Files of images need the package Pillow: install it.")) from None
    return Image


# ---- images and arrays ----


def array_to_img(x: Any, data_format: Any = None, scale: bool = True, dtype: Any = None) -> Any:
    """An image of an array; with scale its smallest number is black, and its largest white."""
    x = np.asarray(x, dtype or K.floatx())
    if x.ndim != 3:
        raise at_user_line(ValueError("Expected image array to have rank 3 (single image). Got array with shape: %s" % (x.shape,)))
    if layout(data_format) == "channels_first":
        x = x.transpose(1, 2, 0)
    if scale:
        x = x - np.min(x)
        x = (x / np.max(x) if np.max(x) else x) * 255
    if x.shape[2] not in (1, 3, 4):
        raise at_user_line(ValueError("Unsupported channel number: %d" % x.shape[2]))
    if x.shape[2] == 1:
        return pillow().fromarray(x[:, :, 0].astype("int32" if np.max(x) > 255 else "uint8"))
    return pillow().fromarray(x.astype("uint8"), {3: "RGB", 4: "RGBA"}[x.shape[2]])


def img_to_array(img: Any, data_format: Any = None, dtype: Any = None) -> Any:
    """The array of an image."""
    x = np.asarray(img, dtype or K.floatx())
    if x.ndim not in (2, 3):
        raise at_user_line(ValueError("Unsupported image shape: %s" % (x.shape,)))
    x = x[:, :, None] if x.ndim == 2 else x
    return x.transpose(2, 0, 1) if layout(data_format) == "channels_first" else x


# ---- changed as parameters say ----


def transform_matrix_offset_center(matrix: Any, x: float, y: float) -> Any:
    """The matrix about the middle of an image."""
    there, back = np.eye(3), np.eye(3)
    there[:2, 2], back[:2, 2] = (x / 2.0 + 0.5, y / 2.0 + 0.5), (-x / 2.0 - 0.5, -y / 2.0 - 0.5)
    return there @ matrix @ back


def apply_transform(x: Any, transform_matrix: Any, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0, order: int = 0) -> Any:
    """Each channel by an affine matrix of places, with splines of an order between them."""
    from scipy import ndimage  # type: ignore[import-untyped]

    channels = [
        ndimage.affine_transform(c, transform_matrix[:2, :2], transform_matrix[:2, 2], order=order, mode=fill_mode, cval=cval)
        for c in np.moveaxis(x, channel_axis, 0)
    ]
    return np.moveaxis(np.stack(channels), 0, channel_axis)


def apply_affine_transform(
    x: Any,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 0,
    col_axis: int = 1,
    channel_axis: int = 2,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> Any:
    """Turned by theta and sheared (in degrees), moved by tx rows and ty columns, scaled."""
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return x
    turn, lean = np.deg2rad(theta), np.deg2rad(shear)
    matrix = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    matrix = matrix @ np.array([[1, 0, tx], [0, 1, ty], [0, 0, 1]]) @ np.array([[1, -np.sin(lean), 0], [0, np.cos(lean), 0], [0, 0, 1]])
    matrix = transform_matrix_offset_center(matrix @ np.diag([zx, zy, 1.0]), x.shape[row_axis], x.shape[col_axis])
    return apply_transform(x, matrix, channel_axis, fill_mode, cval, order)


def apply_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> Any:
    """Every channel brighter by a number, within what the image has."""
    del channel_axis  # it is the same number for all
    return np.clip(x + intensity, np.min(x), np.max(x))


def apply_brightness_shift(x: Any, brightness: float) -> Any:
    """The image from black to white, that many times as bright."""
    pillow()
    from PIL import ImageEnhance

    return img_to_array(ImageEnhance.Brightness(array_to_img(x, "channels_last")).enhance(brightness), "channels_last")


def flip_axis(x: Any, axis: int) -> Any:
    """Mirrored."""
    return np.flip(x, axis)


# ---- changed at random ----


def random_rotation(
    x: Any, rg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1
) -> Any:
    """Turned by up to rg degrees."""
    theta = np.random.uniform(-rg, rg)
    return apply_affine_transform(x, theta, 0, 0, 0, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)


def random_shift(
    x: Any,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> Any:
    """Moved by up to fractions of width and height."""
    tx, ty = np.random.uniform(-hrg, hrg) * x.shape[row_axis], np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return apply_affine_transform(x, 0, tx, ty, 0, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)


def random_shear(
    x: Any,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> Any:
    """Sheared by up to an angle in degrees."""
    shear = np.random.uniform(-intensity, intensity)
    return apply_affine_transform(x, 0, 0, 0, shear, 1, 1, row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)


def random_zoom(
    x: Any,
    zoom_range: Any,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> Any:
    """Scaled by factors of a range."""
    if len(zoom_range) != 2:
        raise at_user_line(ValueError("`zoom_range` should be a tuple or list of two floats. Received: %s" % (zoom_range,)))
    zx, zy = (1, 1) if zoom_range[0] == 1 and zoom_range[1] == 1 else np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return apply_affine_transform(x, 0, 0, 0, 0, zx, zy, row_axis, col_axis, channel_axis, fill_mode, cval, interpolation_order)


def random_channel_shift(x: Any, intensity_range: float, channel_axis: int = 0) -> Any:
    """Every channel brighter or darker by a number."""
    return apply_channel_shift(x, np.random.uniform(-intensity_range, intensity_range), channel_axis)


def random_brightness(x: Any, brightness_range: Any) -> Any:
    """The image from black to white, as many times as bright as a range says."""
    if len(brightness_range) != 2:
        raise at_user_line(ValueError("`brightness_range should be tuple or list of two floats. Received: %s" % (brightness_range,)))
    return apply_brightness_shift(x, np.random.uniform(brightness_range[0], brightness_range[1]))
