# SPDX-License-Identifier: Apache-2.0
"""Windows of images, and boxes in them: sums over pixels, one by one."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import DType
from table import Case, Draw, Table

_BOXES = np.array([[0.051, 0.103, 0.937, 0.881], [0.912, 0.817, 0.107, 0.053], [-0.313, 0.217, 0.719, 1.437], [0.317, 0.421, 0.317, 0.421]])
_WHICH = np.array([0, 1, 1, 0])
_CROPS = ((4, 3), (1, 1), (1, 5), (7, 2))


def _places(begin: float, end: float, size: int, crop: int) -> list[tuple[float, float, float]]:
    """Where the pixels of a crop are, and how that moves with the begin and the end of the box."""
    begin, end = float(np.float32(begin)), float(np.float32(end))
    if crop == 1:
        return [((begin + end) / 2 * (size - 1), (size - 1) / 2, (size - 1) / 2)]
    step = (size - 1) / (crop - 1)
    return [(begin * (size - 1) + i * (end - begin) * step, size - 1 - i * step, i * step) for i in range(crop)]


def _around(at: float) -> list[tuple[int, float, float]]:
    """The two pixels next to a place, their weights, and how those move with it."""
    below = int(np.floor(at))
    return [(below, 1 - (at - below), -1.0), (int(np.ceil(at)), at - below, 1.0)]


def _crop_pixels(box: np.ndarray, size: tuple[int, int], crop: tuple[int, int]) -> Iterator[Any]:
    for y, row in enumerate(_places(box[0], box[2], size[0], crop[0])):
        for x, column in enumerate(_places(box[1], box[3], size[1], crop[1])):
            inside = 0 <= row[0] <= size[0] - 1 and 0 <= column[0] <= size[1] - 1
            yield y, x, row, column, inside


def cropped(image: np.ndarray, boxes: np.ndarray, which: np.ndarray, crop: np.ndarray, method: str, extrapolation_value: float) -> np.ndarray:
    height, width = (int(v) for v in crop)
    out = np.full((len(boxes), height, width, image.shape[3]), float(np.float32(extrapolation_value)))
    for b, box in enumerate(boxes):
        for y, x, row, column, inside in _crop_pixels(box, image.shape[1:3], (height, width)):
            if inside and method == "nearest":
                out[b, y, x] = image[which[b], int(row[0] + 0.5), int(column[0] + 0.5)]
            elif inside:
                out[b, y, x] = sum(image[which[b], i, j] * v * w for i, v, _ in _around(row[0]) for j, w, _ in _around(column[0]))
    return out


def spread(grads: np.ndarray, boxes: np.ndarray, which: np.ndarray, size: np.ndarray, method: str) -> np.ndarray:
    out = np.zeros(tuple(int(v) for v in size))
    for b, box in enumerate(boxes):
        for y, x, row, column, inside in _crop_pixels(box, out.shape[1:3], grads.shape[1:3]):
            if inside and method == "nearest":
                out[which[b], int(row[0] + 0.5), int(column[0] + 0.5)] += grads[b, y, x]
            elif inside:
                for i, v, _ in _around(row[0]):
                    for j, w, _ in _around(column[0]):
                        out[which[b], i, j] += grads[b, y, x] * v * w
    return out


def moved(grads: np.ndarray, image: np.ndarray, boxes: np.ndarray, which: np.ndarray, method: str) -> np.ndarray:
    out = np.zeros(boxes.shape)
    for b, box in enumerate(boxes):
        for y, x, row, column, inside in _crop_pixels(box, image.shape[1:3], grads.shape[1:3]):
            if not inside:
                continue
            for i, v, dv in _around(row[0]):
                for j, w, dw in _around(column[0]):
                    product = float((image[which[b], i, j].astype(np.float64) * grads[b, y, x]).sum())
                    out[b] += product * np.array([dv * w * row[1], v * dw * column[1], dv * w * row[2], v * dw * column[2]])
    return out


def crops(d: Draw) -> Iterator[Case]:
    for crop in _CROPS:
        for method in ("bilinear", "nearest"):
            attrs = {"method": method, "extrapolation_value": 1.5}
            yield Case([d.uniform((2, 6, 5, 3), -100, 100), _BOXES, _WHICH, np.array(crop)], attrs)
    yield Case([d.uniform((2, 6, 5, 3)), _BOXES[:0], _WHICH[:0], np.array([2, 2])], {"method": "bilinear", "extrapolation_value": 0.0})


def image_gradients(d: Draw) -> Iterator[Case]:
    for crop in _CROPS:
        for method in ("bilinear", "nearest"):
            grads = d.rng.uniform(-1, 1, (4, *crop, 2))
            yield Case([grads, _BOXES, _WHICH, np.array([2, 6, 5, 2])], {"method": method}, {"T": d.dtype})


def box_gradients(d: Draw) -> Iterator[Case]:
    for crop in _CROPS:
        grads = d.rng.uniform(-1, 1, (4, *crop, 2))
        yield Case([grads, d.uniform((2, 6, 5, 2), -9, 9), _BOXES, _WHICH], {"method": "bilinear"})


_COLOURS = np.array(
    [[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1]] + [[0, 1, 1, 1], [1, 0, 1, 1]]
)


def drawn(images: np.ndarray, boxes: np.ndarray, colours: np.ndarray | None = None) -> np.ndarray:
    out, (height, width, depth) = images.copy(), images.shape[1:]
    if colours is None or not colours.size:
        colours = np.array([[1.0]]) if depth == 1 else _COLOURS
    for n in range(len(images)):
        for k, box in enumerate(boxes[n].astype(np.float32)):
            (top, bottom), (left, right) = (
                (int(box[i] * np.float32(size - 1)), int(box[i + 2] * np.float32(size - 1))) for i, size in ((0, height), (1, width))
            )
            if top > bottom or left > right or top >= height or left >= width or bottom < 0 or right < 0:
                continue
            for y in range(max(0, top), min(height - 1, bottom) + 1):
                for x in range(max(0, left), min(width - 1, right) + 1):
                    if y in (top, bottom) or x in (left, right):
                        out[n, y, x] = colours[k % len(colours), :depth]
    return out


def drawings(colours: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for depth in (1, 3, 4):
            for shape in ((9, 13), (1, 1), (20, 4)):
                corners = np.sort(d.rng.uniform(-0.3, 1.3, (2, 12, 2, 2)), 2).reshape(2, 12, 4)
                corners[:, -1] = corners[:, -1, ::-1]  # one that is upside down
                inputs = [d.uniform((2, *shape, depth), 0, 1), corners]
                yield Case(inputs + ([d.rng.uniform(0, 1, (3 if shape[0] > 1 else 0, 4))] if colours else []))

    return cases


def glimpses(d: Draw) -> Iterator[Case]:
    image = d.uniform((3, 8, 11, 2))
    for size in ((3, 5), (8, 11), (12, 4), (1, 1), (0, 3)):
        for centered in (False, True):
            for normalized in (False, True):
                offsets = d.rng.integers(-4, 5, (3, 2)) / (4 if normalized else 1)
                attrs = {"centered": centered, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
                yield Case([image, np.array(size), offsets], attrs)


def glimpsed(image: np.ndarray, size: np.ndarray, offsets: np.ndarray, centered: bool, normalized: bool, corners: bool = False, **_: Any) -> np.ndarray:
    out = np.zeros((len(image), int(size[0]), int(size[1]), image.shape[3]))
    for n, offset in enumerate(offsets):
        start = []
        for at, whole, part in zip(offset, image.shape[1:3], size):
            at = at * whole if normalized else at
            at = (at if corners and not normalized else at / 2) + whole / 2 if centered else at
            start.append(int(at if corners and not (centered and normalized) else at - part / 2))
        for y in range(out.shape[1]):
            for x in range(out.shape[2]):
                if 0 <= y + start[0] < image.shape[1] and 0 <= x + start[1] < image.shape[2]:
                    out[n, y, x] = image[n, y + start[0], x + start[1]]
    return out


def samples(covered: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for size in ((50, 70, 3), (100, 40, 1), (1, 1, 3)):
            for seed in range(1, 6):
                attrs: dict[str, Any] = {"seed": seed, "aspect_ratio_range": [0.5, 2.0], "area_range": [0.2, 0.9]}
                inputs = [np.array(size), np.array([[[0.1, 0.2, 0.6, 0.8]]])]
                yield Case(inputs + ([np.array(0.3)] if covered else []), attrs if covered else attrs | {"min_object_covered": 0.3})

    return cases


def check_sample(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    height, width = (int(v) for v in case.inputs[0][:2])
    (top, left, zero), (rows, columns, rest) = ([int(v) for v in part] for part in got[:2])
    assert zero == 0 and rest in (-1, 255), f"channels {zero}, {rest}"
    box = np.array([top / height, left / width, (top + rows) / height, (left + columns) / width])
    assert np.allclose(got[2], box.reshape(1, 1, 4), atol=1e-6), f"box {got[2]}, wanted {box}"
    if (rows, columns) == (height, width):
        return
    assert 0 <= top <= height - rows and 0 <= left <= width - columns, "beyond the image"
    assert columns / rows * (1 + 1 / columns) >= 0.5 and (columns - 1) / rows <= 2, f"a window of {rows} x {columns}"
    assert 0.2 * height * width <= rows * columns <= 0.9 * height * width, f"a window of {rows} x {columns}"
    object_box = (case.inputs[1][0, 0] * [height, width, height, width]).astype(np.float32).astype(int)
    low, high = np.maximum(object_box[:2], [top, left]), np.minimum(object_box[2:], [top + rows, left + columns])
    shared = np.prod(np.maximum(high - low, 0)) / np.prod(object_box[2:] - object_box[:2])
    assert shared >= 0.3, f"covers {shared} of the object"


def random_windows(d: Draw) -> Iterator[Case]:
    for size in ((1, 1), (4, 6), (7, 9)):
        image = np.arange(7 * 9).reshape(7, 9, 1)
        yield Case([image, np.array(size)], {"seed": 3, "seed2": 5})


def check_window(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    image, (height, width) = case.inputs[0], (int(v) for v in case.inputs[1])
    top, left = divmod(int(got[0].ravel()[0]), image.shape[1])
    assert np.array_equal(got[0], image[top : top + height, left : left + width]), "no window of the image"


_MODES = ("CONSTANT", "REFLECT", "WRAP", "NEAREST")


def shifted(with_value: bool) -> Any:
    """Images moved by whole pixels, and by halves; one transform, and one for each image."""

    def cases(d: Draw) -> Iterator[Case]:
        for shape, size in (((2, 5, 4, 3), (6, 7)), ((1, 1, 1, 1), (2, 3)), ((2, 3, 9, 1), (1, 1)), ((0, 2, 2, 1), (2, 2))):
            images = d.uniform(shape, 0, 90)
            for mode in _MODES:
                for by, interpolation in (((2, -1), "NEAREST"), ((-3, 0), "BILINEAR"), ((0.5, 0.5), "BILINEAR")):
                    for count in {1, max(shape[0], 1)}:
                        rows = np.tile(np.array([1, 0, by[0], 0, 1, by[1], 0, 0], np.float32), (count, 1))
                        inputs = [images, rows, np.array(size, np.int32)] + ([np.array(3, np.float32)] if with_value else [])
                        whole = mode == "CONSTANT" and interpolation == "NEAREST"  # elsewhere gradients are TensorFlow's, no derivatives
                        yield Case(inputs, {"interpolation": interpolation, "fill_mode": mode}, gradient=whole)

    return cases


def shifted_in_place(d: Draw) -> Iterator[Case]:
    for case in shifted(False)(d):
        if case.attrs["fill_mode"] == "CONSTANT":
            yield Case(case.inputs[:2], {"interpolation": case.attrs["interpolation"]}, gradient=case.gradient)


def _shifted(images: np.ndarray, rows: np.ndarray, size: np.ndarray, value: Any = 0, *, interpolation: str, fill_mode: str) -> np.ndarray:
    """Each place goes back to the image first, and then is between its neighbours; beyond them is the value."""
    height, width = (int(v) for v in size)
    rows_at = _back(np.arange(height) + float(rows[0, 5]), images.shape[1], fill_mode) + 9
    columns_at = _back(np.arange(width) + float(rows[0, 2]), images.shape[2], fill_mode) + 9
    wide = np.pad(images.astype(np.float64), ((0, 0), (9, 9), (9, 9), (0, 0)), constant_values=float(value))
    r, c = np.floor(rows_at).astype(int), np.floor(columns_at).astype(int)
    fr, fc = (rows_at - r)[:, None, None], (columns_at - c)[None, :, None]
    above = wide[:, r][:, :, c] * (1 - fc) + wide[:, r][:, :, c + 1] * fc
    below = wide[:, r + 1][:, :, c] * (1 - fc) + wide[:, r + 1][:, :, c + 1] * fc
    return above * (1 - fr) + below * fr


def _back(at: np.ndarray, size: int, mode: str) -> np.ndarray:
    """Places along an axis, folded; the period of WRAP is counted by the distance of the ends, as SciPy does."""
    if mode == "CONSTANT":
        return at
    if mode == "REFLECT" and size > 1:
        at = at % (2 * size)
        at = np.where(at >= size - 0.5, 2 * size - 1 - at, at)
    if mode == "WRAP" and size > 1:
        down, up = size * (np.trunc(-at / (size - 1)) + 1), -size * np.trunc(at / (size - 1))
        at = np.where(at < 0, at + down, np.where(at > size - 1, at + up, at))
    return np.clip(at if size > 1 or mode == "NEAREST" else np.zeros_like(at), 0, size - 1)


def add_to(table: Table) -> None:
    types = ("float32", "float16", "uint8", "int8", "int16", "uint16", "int32", "int64")
    table.add("CropAndResize", crops, cropped, dtypes=types, main="T", tolerance=200)
    table.add("CropAndResizeGradImage", image_gradients, spread, dtypes=("float32", "float16"), main="T", tolerance=30)
    table.add("CropAndResizeGradBoxes", box_gradients, moved, dtypes=types, main="T", tolerance=2000)
    table.add("DrawBoundingBoxes", drawings(False), drawn)
    table.add("DrawBoundingBoxesV2", drawings(True), drawn)
    table.add("ExtractGlimpse", glimpses, glimpsed)
    table.add("ExtractGlimpseV2", glimpses, functools.partial(glimpsed, corners=True))
    table.add("SampleDistortedBoundingBox", samples(False), check=check_sample)
    table.add("SampleDistortedBoundingBoxV2", samples(True), check=check_sample)
    # TensorFlow has removed it: graphs of its first versions only.
    table.add("RandomCrop", random_windows, check=check_window)
    table.add(
        "ImageProjectiveTransform",
        shifted_in_place,
        lambda x, rows, interpolation: _shifted(x, rows, x.shape[1:3], interpolation=interpolation, fill_mode="CONSTANT"),
        tolerance=8,
    )
    table.add("ImageProjectiveTransformV2", shifted(False), _shifted, tolerance=8)
    table.add("ImageProjectiveTransformV3", shifted(True), _shifted, tolerance=8)
