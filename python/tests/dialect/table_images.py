# SPDX-License-Identifier: Apache-2.0
"""tf.image: files, boxes, windows, turns, types."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from table import case, f32

RGB = (np.arange(60).reshape(4, 5, 3) * 4 + 3).astype(np.uint8)
FLOATS = RGB.astype(f32) / 255
BATCH = np.stack([FLOATS, FLOATS[::-1] * f32(0.5)])
GREY = np.full((8, 16, 1), 128, np.uint8)
BOXES = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 0]], f32)
IMAGES = np.arange(32, dtype=f32).reshape(2, 4, 4, 1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(pixels: np.ndarray) -> bytes:
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[pixels.shape[2]]
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8 * pixels.itemsize, kind, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _bmp(pixels: np.ndarray) -> bytes:
    width = pixels.shape[1]
    rows = b"".join(row[:, ::-1].tobytes().ljust((3 * width + 3) // 4 * 4, b"\0") for row in pixels[::-1])
    return b"BM" + struct.pack("<IIIIiiHH", 54 + len(rows), 0, 54, 40, width, pixels.shape[0], 1, 24) + bytes(24) + rows


PNG, BMP, WIDE = _png(RGB), _bmp(RGB), (RGB.astype(np.uint16) * 250 + 7)
ALPHA = np.concatenate([RGB, np.full((4, 5, 1), 255, np.uint8)], 2)
# Two frames of 4 x 3 in red, green, blue and grey; in the second one grey is not drawn.
GIF = bytes.fromhex(
    "47494638396104000300810000ff000000ff000000ff09090921ff0b4e45545343415045322e30030100000021f90401000003002c000000000400030000080d0001"
    "04102070200001080304040021f90401000003002c000000000400030081ff000000ff000000ff090909080c000708140800c0c001010202003b"
)
_PALETTE = np.eye(3, dtype=np.uint8) * np.uint8(255)
_FIRST = _PALETTE[np.array([[0, 1, 2, 0], [1, 1, 2, 0], [2, 2, 2, 1]])]
_SECOND = _FIRST.copy()
_SECOND[1, 1:3] = _PALETTE[0]

case(
    "image.decode_png",
    RGB,
    lambda tf: tf.image.decode_png(PNG),
    lambda tf: tf.image.decode_png(contents=PNG, channels=3, dtype=tf.uint8, name="p"),
    lambda tf: tf.image.decode_png(PNG, 3),
    lambda tf: tf.image.decode_jpeg(PNG, channels=3),
    lambda tf: tf.image.decode_image(PNG),
    lambda tf: tf.image.decode_gif(PNG)[0],
    old=[lambda tf: tf.image.decode_png(PNG, channels=None, dtype=None)],
)
case(
    "image.decode_png with alpha",
    ALPHA,
    lambda tf: tf.image.decode_png(PNG, channels=4),
    lambda tf: tf.image.decode_png(_png(ALPHA)),
    lambda tf: tf.image.decode_image(PNG, 4),
)
case(
    "image.decode_png of 16 bits",
    [WIDE, RGB.astype(np.uint16) * 257, (WIDE // 256).astype(np.uint8)],
    lambda tf: [tf.image.decode_png(_png(WIDE), dtype=tf.uint16), tf.image.decode_png(PNG, dtype=tf.uint16), tf.image.decode_png(_png(WIDE))],
)
case(
    "image.decode_png, its shape",
    [[None, None, 3], [None, None, None], [None, None, None, 3]],
    lambda tf: [t.get_shape().as_list() for t in (tf.image.decode_png(PNG, 3), tf.image.decode_jpeg(PNG), tf.image.decode_gif(GIF))],
)
case(
    "image.encode_png",
    [RGB, WIDE, ALPHA],
    lambda tf: [
        tf.image.decode_png(tf.image.encode_png(RGB)),
        tf.image.decode_png(tf.image.encode_png(image=WIDE, compression=9, name="e"), dtype=tf.uint16),
        tf.image.decode_png(tf.image.encode_png(ALPHA, 0)),
    ],
)
case(
    "image.decode_bmp",
    RGB,
    lambda tf: tf.image.decode_bmp(BMP),
    lambda tf: tf.image.decode_bmp(contents=BMP, channels=3, name="b"),
    lambda tf: tf.image.decode_image(BMP),
)
case(
    "image.decode_gif",
    np.stack([_FIRST, _SECOND]),
    lambda tf: tf.image.decode_gif(GIF),
    lambda tf: tf.image.decode_gif(contents=GIF, name="g"),
    lambda tf: tf.image.decode_image(GIF),
)
case(
    "image.decode_image",
    [_FIRST, RGB.astype(f32) / 255, RGB.astype(np.uint16) * 256],
    lambda tf: [
        tf.image.decode_image(GIF, expand_animations=False),
        tf.image.decode_image(contents=PNG, channels=3, dtype=tf.float32, name="d"),
        tf.image.decode_image(BMP, dtype=tf.uint16),
    ],
)
case(
    "image.decode_jpeg",
    GREY,
    *[
        lambda tf, c=c: c(tf, tf.image.encode_jpeg(GREY))
        for c in (
            lambda tf, j: tf.image.decode_jpeg(j),
            lambda tf, j: tf.image.decode_jpeg(j, 1),
            lambda tf, j: tf.image.decode_jpeg(
                contents=j,
                channels=1,
                ratio=1,
                fancy_upscaling=False,
                try_recover_truncated=True,
                acceptable_fraction=0.5,
                dct_method="INTEGER_ACCURATE",
                name="j",
            ),
            lambda tf, j: tf.image.decode_png(j),
            lambda tf, j: tf.image.decode_image(j),
        )
    ],
    old=[lambda tf: tf.image.decode_jpeg(tf.image.encode_jpeg(GREY), channels=None, ratio=None, name=None)],
)
case(
    "image.decode_jpeg, smaller",
    [GREY[:4, :8], np.repeat(GREY[:2, :4], 3, 2), GREY[:3, :5]],
    lambda tf: [
        tf.image.decode_jpeg(tf.image.encode_jpeg(GREY), ratio=2),
        tf.image.decode_jpeg(tf.image.encode_jpeg(GREY), channels=3, ratio=4),
        tf.image.decode_and_crop_jpeg(tf.image.encode_jpeg(GREY), [2, 7, 3, 5]),
    ],
)
case(
    "image.encode_jpeg",
    GREY,
    *[
        lambda tf, c=c: tf.image.decode_jpeg(c(tf))
        for c in (
            lambda tf: tf.image.encode_jpeg(GREY, "grayscale", 80),
            lambda tf: tf.image.encode_jpeg(
                image=GREY,
                format="",
                quality=60,
                progressive=True,
                optimize_size=True,
                chroma_downsampling=False,
                density_unit="cm",
                x_density=1,
                y_density=2,
                xmp_metadata="x",
                name="e",
            ),
        )
    ],
)
case(
    "image.extract_jpeg_shape",
    [np.array([8, 16, 1], np.int32), np.array([8, 16, 1]), True, False],
    lambda tf: [
        tf.image.extract_jpeg_shape(tf.image.encode_jpeg(GREY)),
        tf.image.extract_jpeg_shape(contents=tf.image.encode_jpeg(GREY), output_type=tf.int64, name="s"),
        tf.image.is_jpeg(tf.image.encode_jpeg(GREY)),
        tf.image.is_jpeg(contents=PNG, name="i"),
    ],
)


def _halves(image: np.ndarray) -> np.ndarray:
    """The crop of 2 x 2 that has the image's corners."""
    return image[:: image.shape[0] - 1, :: image.shape[1] - 1]


case(
    "image.crop_and_resize",
    np.stack([_halves(IMAGES[0]), _halves(IMAGES[1])]),
    *[
        lambda tf, c=c: c(tf, np.tile(BOXES[:1], (2, 1)))
        for c in (
            lambda tf, b: tf.image.crop_and_resize(IMAGES, b, [0, 1], [2, 2]),
            lambda tf, b: tf.image.crop_and_resize(
                image=IMAGES, boxes=b, box_ind=[0, 1], crop_size=[2, 2], method="bilinear", extrapolation_value=1.0, name="c"
            ),
            lambda tf, b: tf.image.crop_and_resize(IMAGES, b, box_indices=[0, 1], crop_size=[2, 2], method="nearest"),
        )
    ],
)
case(
    "image.crop_and_resize, mirrored, outside",
    [IMAGES[1:, 1:3, 1::-1] * 0.5 + IMAGES[1:, 1:3, 2:0:-1] * 0.5, np.full((1, 1, 1, 1), 9, f32)],
    lambda tf: [
        tf.image.crop_and_resize(IMAGES, np.array([[1 / 3, 0.5, 2 / 3, 1 / 6]], f32), [1], [2, 2]),
        tf.image.crop_and_resize(IMAGES, np.array([[2, 2, 3, 3]], f32), [0], [1, 1], extrapolation_value=9),
    ],
)
case(
    "image.crop_and_resize, its gradient",
    np.pad(np.ones((1, 2, 2, 1), f32), ((0, 1), (1, 1), (1, 1), (0, 0)), "constant"),
    lambda tf: (lambda x: tf.gradients(tf.image.crop_and_resize(x, np.array([[1 / 3, 1 / 3, 2 / 3, 2 / 3]], f32), [0], [2, 2], "nearest"), x)[0])(
        tf.constant(IMAGES)
    ),
)


def _drawn(colour: Any) -> np.ndarray:
    out = np.zeros((1, 5, 5, 3), f32)
    out[0, 1, 1:4] = out[0, 3, 1:4] = out[0, 1:4, 1] = out[0, 1:4, 3] = colour
    return out


_BOX, _EMPTY = np.array([[[0.25, 0.25, 0.75, 0.75]]], f32), np.zeros((1, 5, 5, 3), f32)
case(
    "image.draw_bounding_boxes",
    _drawn([1, 1, 0]),
    lambda tf: tf.image.draw_bounding_boxes(_EMPTY, _BOX),
    lambda tf: tf.image.draw_bounding_boxes(images=_EMPTY, boxes=_BOX, name="d"),
)
case(
    "image.draw_bounding_boxes with colours",
    _drawn([0.25, 0.5, 1]),
    lambda tf: tf.image.draw_bounding_boxes(_EMPTY, _BOX, colors=np.array([[0.25, 0.5, 1]], f32)),
)
case(
    "image.sample_distorted_bounding_box",
    [np.array([0, 5, 0]), np.array([49, 63, -1]), np.array([[[0, 5 / 70, 49 / 50, 68 / 70]]], f32)],
    *[
        lambda tf, c=c: list(c(tf, np.array([[[0.1, 0.2, 0.6, 0.8]]], f32)))
        for c in (
            lambda tf, b: tf.image.sample_distorted_bounding_box(np.array([50, 70, 3]), b, 3, 4),
            lambda tf, b: tf.image.sample_distorted_bounding_box(
                image_size=np.array([50, 70, 3]),
                bounding_boxes=b,
                seed=3,
                seed2=4,
                min_object_covered=0.1,
                aspect_ratio_range=[0.75, 1.33],
                area_range=[0.05, 1.0],
                max_attempts=100,
                use_image_if_no_bounding_boxes=True,
                name="s",
            ),
            lambda tf, b: tf.image.sample_distorted_bounding_box(np.array([50, 70, 3]), b, seed=3, seed2=4, min_object_covered=tf.constant(0.1)),
        )
    ],
    old=[
        lambda tf: list(
            tf.image.sample_distorted_bounding_box(np.array([50, 70, 3]), np.array([[[0.1, 0.2, 0.6, 0.8]]], f32), 3, 4, None, None, None, None, None)
        )
    ],
)
case(
    "image.sample_distorted_bounding_box by name",
    (3,),
    lambda tf: (lambda s: [s.begin, s.size, s.bboxes][0].get_shape().as_list())(
        tf.image.sample_distorted_bounding_box([50, 70, 3], _BOX, min_object_covered=0.2)
    ),
)
case(
    "image.extract_glimpse",
    IMAGES[:, 1:3, 1:3],
    lambda tf: tf.image.extract_glimpse(IMAGES, [2, 2], [[0, 0], [0, 0]]),
    lambda tf: tf.image.extract_glimpse(input=IMAGES, size=[2, 2], offsets=[[0.5, 0.5]] * 2, centered=False, normalized=True, uniform_noise=False, name="g"),
    lambda tf: tf.image.extract_glimpse(IMAGES, [2, 2], [[2, 2], [2, 2]], False, False),
)

for _kind, _image, _rows in (("an image", FLOATS, 0), ("images", BATCH, 1)):
    for _k in range(-1, 5):
        case(
            "image.rot90 of %s, %d" % (_kind, _k),
            np.rot90(_image, _k, (_rows, _rows + 1)),
            *[
                lambda tf, c=c, x=_image, k=_k: c(tf, x, k)
                for c in (lambda tf, x, k: tf.image.rot90(x, k), lambda tf, x, k: tf.image.rot90(image=x, k=tf.constant(k), name="r"))
            ],
        )
    case(
        "image.transpose_image of %s" % _kind,
        np.swapaxes(_image, _rows, _rows + 1),
        lambda tf, x=_image: tf.image.transpose_image(x),
        lambda tf, x=_image: tf.image.transpose_image(image=x, name="t"),
    )
    case(
        "image.flip of %s" % _kind,
        [np.flip(_image, _rows + 1), np.flip(_image, _rows)],
        lambda tf, x=_image: [tf.image.flip_left_right(x), tf.image.flip_up_down(x)],
    )
    case(
        "image.random_flip of %s, its shape" % _kind,
        [list(_image.shape)] * 2,
        lambda tf, x=_image: [tf.image.random_flip_left_right(x, seed=1).get_shape().as_list(), tf.image.random_flip_up_down(x, seed=1).get_shape().as_list()],
    )
    case(
        "image.total_variation of %s" % _kind,
        sum(np.abs(np.diff(_image, axis=_rows + k)).sum(axis=(-1, -2, -3)) for k in (0, 1)),
        lambda tf, x=_image: tf.image.total_variation(tf.constant(x)),
        lambda tf, x=_image: tf.image.total_variation(images=tf.constant(x), name="v"),
    )
    case(
        "image.per_image_standardization of %s" % _kind,
        (_image - _image.mean((-1, -2, -3), keepdims=True)) / _image.std((-1, -2, -3), keepdims=True),
        lambda tf, x=_image: tf.image.per_image_standardization(x),
        old=[lambda tf, x=_image: tf.image.per_image_whitening(x)],
    )
    case(
        "image.central_crop of %s" % _kind,
        _image[..., 1:3, 1:4, :],
        lambda tf, x=_image: tf.image.central_crop(x, 0.5),
        lambda tf, x=_image: tf.image.central_crop(image=x, central_fraction=0.5),
    )
    case(
        "image.adjust_brightness of %s" % _kind,
        _image + f32(0.25),
        lambda tf, x=_image: tf.image.adjust_brightness(x, 0.25),
        lambda tf, x=_image: tf.image.adjust_brightness(image=x, delta=0.25),
    )
    case(
        "image.adjust_contrast of %s" % _kind,
        (_image - _image.mean((-3, -2), keepdims=True)) * 2 + _image.mean((-3, -2), keepdims=True),
        lambda tf, x=_image: tf.image.adjust_contrast(x, 2.0),
        lambda tf, x=_image: tf.image.adjust_contrast(images=x, contrast_factor=2.0),
    )
    case(
        "image.adjust_gamma of %s" % _kind,
        2 * _image ** f32(0.5),
        lambda tf, x=_image: tf.image.adjust_gamma(x, 0.5, 2),
        lambda tf, x=_image: tf.image.adjust_gamma(image=x, gamma=0.5, gain=2),
    )
    case(
        "image.pad_to_bounding_box of %s" % _kind,
        np.pad(_image, [(0, 0)] * _rows + [(1, 2), (2, 1), (0, 0)], "constant"),
        lambda tf, x=_image: tf.image.pad_to_bounding_box(x, 1, 2, 7, 8),
        lambda tf, x=_image: tf.image.pad_to_bounding_box(image=x, offset_height=1, offset_width=2, target_height=7, target_width=8),
    )
    case(
        "image.crop_to_bounding_box of %s" % _kind,
        _image[..., 1:3, 2:5, :],
        lambda tf, x=_image: tf.image.crop_to_bounding_box(x, 1, 2, 2, 3),
        lambda tf, x=_image: tf.image.crop_to_bounding_box(image=x, offset_height=1, offset_width=2, target_height=2, target_width=3),
    )
    case(
        "image.resize_image_with_crop_or_pad of %s" % _kind,
        np.pad(_image[..., 1:3, :, :], [(0, 0)] * _rows + [(0, 0), (1, 1), (0, 0)], "constant"),
        lambda tf, x=_image: tf.image.resize_image_with_crop_or_pad(x, 2, 7),
        lambda tf, x=_image: tf.image.resize_image_with_crop_or_pad(image=x, target_height=2, target_width=7),
    )
    case(
        "image.grayscale_to_rgb of %s" % _kind,
        np.repeat(_image[..., :1], 3, -1),
        lambda tf, x=_image: tf.image.grayscale_to_rgb(tf.constant(x[..., :1])),
        lambda tf, x=_image: tf.image.grayscale_to_rgb(images=tf.constant(x[..., :1]), name="g"),
    )
    case(
        "image.resize_images of %s, of the same size" % _kind,
        _image,
        lambda tf, x=_image: tf.image.resize_images(x, [4, 5]),
        old=[lambda tf, x=_image: tf.image.resize_images(x, 4, 5)],
    )
    case(
        "image.resize_images of %s, keeping its ratio" % _kind,
        np.array(_image.shape[:_rows] + (8, 10, 3), np.int32),
        lambda tf, x=_image: tf.shape(tf.image.resize_images(x, [8, 20], preserve_aspect_ratio=True)),
    )
case(
    "image.resize_images, methods and corners",
    [FLOATS[::3, ::2], FLOATS[::3, ::2], FLOATS[::3, ::2]],
    lambda tf: [
        tf.image.resize_images(FLOATS, [2, 3], method=m, align_corners=True)
        for m in (tf.image.ResizeMethod.BILINEAR, tf.image.ResizeMethod.NEAREST_NEIGHBOR, tf.image.ResizeMethod.BICUBIC)
    ],
    old=[lambda tf: [tf.image.resize_images(FLOATS, 2, 3, m, True) for m in range(3)]],
)
case(
    "image.resize_images by area",
    FLOATS.reshape(2, 2, 5, 3).mean(1).mean(1, keepdims=True),
    lambda tf: tf.image.resize_images(FLOATS, [2, 1], tf.image.ResizeMethod.AREA),
    lambda tf: tf.image.resize_images(images=FLOATS, size=tf.constant([2, 1]), method=3),
)
case(
    "image.resize_ ops",
    [BATCH[:, ::3, ::2]] * 3,
    lambda tf: [r(BATCH, [2, 3], True) for r in (tf.image.resize_bilinear, tf.image.resize_bicubic, tf.image.resize_nearest_neighbor)],
    lambda tf: [
        r(images=BATCH, size=tf.constant([2, 3]), align_corners=True, name="r")
        for r in (tf.image.resize_bilinear, tf.image.resize_bicubic, tf.image.resize_nearest_neighbor)
    ],
)
case(
    "image.convert_image_dtype",
    [RGB.astype(f32) / 255, RGB.astype(np.uint16) * 256, (RGB // 2).astype(np.int8), RGB],
    lambda tf: [
        tf.image.convert_image_dtype(RGB, tf.float32),
        tf.image.convert_image_dtype(image=RGB, dtype=tf.uint16, name="c"),
        tf.image.convert_image_dtype(RGB, tf.int8),
        tf.image.convert_image_dtype(FLOATS, tf.uint8),
    ],
)
case(
    "image.convert_image_dtype, saturating",
    [np.array([0, 127, 255], np.uint8), np.array([0, 256], np.uint16), np.array([-2147483648, 2147483520], np.int32)],
    lambda tf: [
        tf.image.convert_image_dtype(np.array([-1, 0.5, 3], f32), tf.uint8, saturate=True),
        tf.image.convert_image_dtype(np.array([-3, 1], np.int8), tf.uint16, True) // 2,
        tf.saturate_cast(np.array([-1e10, 1e10], f32), tf.int32),
    ],
)
case(
    "image.rgb_to_hsv",
    FLOATS,
    lambda tf: tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(FLOATS)),
    lambda tf: tf.image.hsv_to_rgb(images=tf.image.rgb_to_hsv(images=FLOATS, name="h"), name="r"),
)
case(
    "image.adjust_hue",
    FLOATS,
    lambda tf: tf.image.adjust_hue(tf.image.adjust_hue(FLOATS, 0.25), -0.25),
    lambda tf: tf.image.adjust_hue(image=FLOATS, delta=1.0, name="h"),
)
case(
    "image.adjust_saturation",
    [np.repeat(FLOATS.max(2, keepdims=True), 3, 2), FLOATS],
    lambda tf: [tf.image.adjust_saturation(FLOATS, 0.0), tf.image.adjust_saturation(image=FLOATS, saturation_factor=1.0, name="s")],
)
case(
    "image.rgb_to_grayscale",
    (FLOATS @ np.array([0.2989, 0.587, 0.114], f32))[..., None],
    lambda tf: tf.image.rgb_to_grayscale(FLOATS),
    lambda tf: tf.image.rgb_to_grayscale(images=FLOATS, name="g"),
)
case(
    "image.psnr",
    10 * np.log10(1 / np.mean((FLOATS - FLOATS * f32(0.5)) ** 2)),
    lambda tf: tf.image.psnr(FLOATS, FLOATS * f32(0.5), 1.0),
    lambda tf: tf.image.psnr(a=FLOATS, b=FLOATS * f32(0.5), max_val=1.0, name="p"),
)
case(
    "image.image_gradients",
    [
        np.pad(np.diff(BATCH, axis=1), ((0, 0), (0, 1), (0, 0), (0, 0)), "constant"),
        np.pad(np.diff(BATCH, axis=2), ((0, 0), (0, 0), (0, 1), (0, 0)), "constant"),
    ],
    lambda tf: list(tf.image.image_gradients(tf.constant(BATCH))),
)
_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]], f32)
case("image.rgb_to_yiq", FLOATS @ _YIQ, lambda tf: tf.image.rgb_to_yiq(FLOATS))
case(
    "image.adjust_jpeg_quality",
    GREY,
    lambda tf: tf.image.adjust_jpeg_quality(GREY, 50),
    lambda tf: tf.image.adjust_jpeg_quality(image=GREY, jpeg_quality=tf.constant(50), name="a"),
)
case(
    "image.random_crop",
    [[2, 3, 3], [2, 3, 3]],
    lambda tf: [
        tf.random_crop(FLOATS, [2, 3, 3]).get_shape().as_list(),
        tf.image.random_crop(value=FLOATS, size=[2, 3, 3], seed=1, name="c").get_shape().as_list(),
    ],
)
