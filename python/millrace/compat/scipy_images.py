# SPDX-License-Identifier: Apache-2.0
"""What scipy.misc had for images until SciPy 1.2, by Pillow: arrays are (height, width) or (height, width, channels) of uint8."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

__all__ = ["bytescale", "fromimage", "imread", "imresize", "imrotate", "imsave", "toimage"]

_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}  # Pillow's numbers


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> Any:
    """Numbers between cmin and cmax (their own least and largest if not given) as uint8 between low and high; uint8 as it is."""
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    if not 0 <= low <= high <= 255:
        raise ValueError("`low` and `high` must be in order and within 0 and 255, got %r and %r" % (low, high))
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    if cmax < cmin:
        raise ValueError("`cmax` should be larger than `cmin`, got %r and %r" % (cmax, cmin))
    scaled = (data - cmin) * (float(high - low) / (float(cmax - cmin) or 1.0)) + low
    return (np.clip(scaled, low, high) + 0.5).astype(np.uint8)


def _channels_last(data: Any, channel_axis: Optional[int]) -> Any:
    if channel_axis is None:
        found = [axis for count in (3, 4) for axis, size in enumerate(data.shape) if size == count]
        if not found:
            raise ValueError("Could not find channel dimension in shape %s" % (data.shape,))
        channel_axis = found[0]
    if data.shape[channel_axis] not in (3, 4):
        raise ValueError("Channel axis dimension is not valid: %d" % data.shape[channel_axis])
    return np.moveaxis(data, channel_axis, -1)


def toimage(
    arr: Any, high: int = 255, low: int = 0, cmin: Any = None, cmax: Any = None, pal: Any = None, mode: Any = None, channel_axis: Optional[int] = None
) -> Any:
    """A Pillow image of an array, whose numbers are scaled by bytescale."""
    from PIL import Image

    data = np.asarray(arr)
    if np.iscomplexobj(data):
        raise ValueError("Cannot convert a complex-valued array.")
    if data.ndim not in (2, 3):
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    if data.ndim == 2:
        if mode in ("F", "I"):
            return Image.fromarray(data.astype(np.float32 if mode == "F" else np.int32))
        image = Image.fromarray(bytescale(data, cmin, cmax, high, low))
        if pal is not None:
            image.putpalette(np.asarray(pal, np.uint8).tobytes())
        return image if mode in (None, "L", "P") else image.convert(mode)
    scaled = np.ascontiguousarray(bytescale(_channels_last(data, channel_axis), cmin, cmax, high, low))
    return Image.fromarray(scaled) if mode in (None, "RGB", "RGBA") else Image.fromarray(scaled).convert(mode)


def fromimage(im: Any, flatten: bool = False, mode: Any = None) -> Any:
    """The array of a Pillow image: of float32 grey values with `flatten`, colors for those of a palette."""
    if mode is not None:
        im = im.convert(mode) if mode != im.mode else im
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: Any, flatten: bool = False, mode: Any = None) -> Any:
    """The array of an image file, by name or open."""
    from PIL import Image

    with Image.open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: Any, arr: Any, format: Optional[str] = None) -> None:
    """Writes an array as an image file."""
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(name, format=format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: Any = None) -> Any:
    """An image resized: `size` is a percentage (int), a fraction (float), or (height, width)."""
    image = toimage(arr, mode=mode)
    if np.ndim(size) == 0:
        factor = size / 100.0 if isinstance(size, (int, np.integer)) else size
        wanted = tuple(int(length * factor) for length in image.size)
    else:
        wanted = (int(size[1]), int(size[0]))
    return fromimage(image.resize(wanted, _FILTERS[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> Any:
    """An image turned counter-clockwise by degrees about its center, in its own size."""
    return fromimage(toimage(arr).rotate(angle, _FILTERS[interp]))
