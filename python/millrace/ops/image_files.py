# SPDX-License-Identifier: Apache-2.0
"""Images from the bytes of files, and to them. An argument that is None, as in 0.x, is as if it had not been given."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import control_flow_ops, gen_ops, string_ops
from millrace.ops.image_dtypes import convert_image_dtype


def _given(**attributes: Any) -> Dict[str, Any]:
    return {k: v for k, v in attributes.items() if v is not None}


def decode_jpeg(
    contents: Any,
    channels: Optional[int] = None,
    ratio: Optional[int] = None,
    fancy_upscaling: Optional[bool] = None,
    try_recover_truncated: Optional[bool] = None,
    acceptable_fraction: Optional[float] = None,
    dct_method: Optional[str] = None,
    name: Optional[str] = None,
) -> Tensor:
    """The image [height, width, channels] in a JPEG file; PNG files and GIFs of one frame are taken too."""
    return gen_ops.decode_jpeg(
        contents,
        name=name,
        **_given(
            channels=channels,
            ratio=ratio,
            fancy_upscaling=fancy_upscaling,
            try_recover_truncated=try_recover_truncated,
            acceptable_fraction=acceptable_fraction,
            dct_method=dct_method,
        ),
    )


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: Optional[int] = None,
    ratio: Optional[int] = None,
    fancy_upscaling: Optional[bool] = None,
    try_recover_truncated: Optional[bool] = None,
    acceptable_fraction: Optional[float] = None,
    dct_method: Optional[str] = None,
    name: Optional[str] = None,
) -> Tensor:
    """The window [top, left, height, width] of the image in a JPEG file."""
    return gen_ops.decode_and_crop_jpeg(
        contents,
        crop_window,
        name=name,
        **_given(
            channels=channels,
            ratio=ratio,
            fancy_upscaling=fancy_upscaling,
            try_recover_truncated=try_recover_truncated,
            acceptable_fraction=acceptable_fraction,
            dct_method=dct_method,
        ),
    )


def decode_png(contents: Any, channels: Optional[int] = None, dtype: Any = None, name: Optional[str] = None) -> Tensor:
    """The image [height, width, channels] in a PNG file, uint8 or uint16; JPEG files and GIFs of one frame are taken too."""
    return gen_ops.decode_png(contents, name=name, **_given(channels=channels, dtype=dtype))


def decode_gif(contents: Any, name: Optional[str] = None) -> Tensor:
    """The frames [n, height, width, 3] of a GIF file."""
    return gen_ops.decode_gif(contents, name=name)


def decode_bmp(contents: Any, channels: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """The image [height, width, channels] in a BMP file."""
    return gen_ops.decode_bmp(contents, name=name, **_given(channels=channels))


def _starts(contents: Tensor, mark: bytes) -> Tensor:
    return gen_ops.equal(string_ops.substr(contents, 0, len(mark)), mark)


def is_jpeg(contents: Any, name: Optional[str] = None) -> Tensor:
    """Whether bytes are a JPEG file."""
    with name_scope(name, "is_jpeg"):
        return _starts(convert_to_tensor(contents, dtypes.string), b"\xff\xd8\xff")


def decode_image(
    contents: Any, channels: Optional[int] = None, dtype: Any = dtypes.uint8, name: Optional[str] = None, expand_animations: bool = True
) -> Tensor:
    """The image in a JPEG, PNG, BMP or GIF file, which is [frames, height, width, 3] for a GIF unless expand_animations is False."""
    wanted, channels = dtypes.as_dtype(dtype), channels or 0
    bits = wanted if wanted in (dtypes.uint8, dtypes.uint16) else dtypes.uint8 if wanted == dtypes.float32 else dtypes.uint16

    def converted(image: Tensor, through: Any = bits) -> Tensor:
        return convert_image_dtype(convert_image_dtype(image, through), wanted)

    def gif() -> Tensor:
        if channels not in (0, 3):
            return converted(decode_png(contents, channels))  # says that there is no such thing
        frames = decode_gif(contents)
        return converted(frames if expand_animations else frames[0])

    def other() -> Tensor:
        if wanted != dtypes.float32:
            return converted(decode_png(contents, channels, bits))
        # Of sixteen bits of a PNG none is lost.
        return control_flow_ops.cond(
            _starts(contents, b"\x89PNG"),
            lambda: converted(decode_png(contents, channels, dtypes.uint16), dtypes.uint16),
            lambda: converted(decode_png(contents, channels)),
        )

    with name_scope(name, "decode_image"):
        contents = convert_to_tensor(contents, dtypes.string)
        return control_flow_ops.cond(
            _starts(contents, b"GIF"), gif, lambda: control_flow_ops.cond(_starts(contents, b"BM"), lambda: converted(decode_bmp(contents, channels)), other)
        )


def encode_jpeg(
    image: Any,
    format: Optional[str] = None,
    quality: Optional[int] = None,
    progressive: Optional[bool] = None,
    optimize_size: Optional[bool] = None,
    chroma_downsampling: Optional[bool] = None,
    density_unit: Optional[str] = None,
    x_density: Optional[int] = None,
    y_density: Optional[int] = None,
    xmp_metadata: Optional[str] = None,
    name: Optional[str] = None,
) -> Tensor:
    """A JPEG file of an image [height, width, 1 or 3]."""
    return gen_ops.encode_jpeg(
        image,
        name=name,
        **_given(
            format=format,
            quality=quality,
            progressive=progressive,
            optimize_size=optimize_size,
            chroma_downsampling=chroma_downsampling,
            density_unit=density_unit,
            x_density=x_density,
            y_density=y_density,
            xmp_metadata=xmp_metadata,
        ),
    )


def encode_png(image: Any, compression: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """A PNG file of an image [height, width, 1 to 4] of uint8 or uint16."""
    if isinstance(image, np.ndarray):
        image = convert_to_tensor(image)  # of its own type
    return gen_ops.encode_png(image, name=name, **_given(compression=compression))


def extract_jpeg_shape(contents: Any, output_type: Any = None, name: Optional[str] = None) -> Tensor:
    """[height, width, channels] of the image in a JPEG file."""
    return gen_ops.extract_jpeg_shape(contents, name=name, **_given(output_type=output_type))
