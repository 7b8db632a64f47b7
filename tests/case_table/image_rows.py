# SPDX-License-Identifier: Apache-2.0
"""Images: resizing as a matrix along each axis, colours, boxes."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table

_SIZES = (((1, 1), (3, 2)), ((5, 4), (5, 4)), ((3, 7), (8, 5)), ((6, 4), (2, 3)), ((2, 2), (1, 9)))
_PLACINGS = ((False, False), (True, False), (False, True))


def _scale(size: int, wanted: int, corners: bool) -> np.float32:
    """Places are float32: a pixel more or less would be another answer."""
    if corners and wanted > 1:
        return np.float32(size - 1) / np.float32(wanted - 1)
    return np.float32(size) / np.float32(wanted)


def _cubic(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _matrix(method: str, size: int, wanted: int, corners: bool, centers: bool) -> np.ndarray:
    """What each of `wanted` places takes of `size` pixels."""
    m = np.zeros((wanted, size))
    scale = _scale(size, wanted, corners)
    for i in range(wanted):
        middle = (np.float32(i) + np.float32(0.5)) * scale
        at = middle - np.float32(0.5) if centers else np.float32(i) * scale
        below = int(np.floor(at))
        if method == "bilinear":
            part = float(at - np.float32(below))
            m[i, np.clip(below, 0, size - 1)] += 1 - part
            m[i, np.clip(int(np.ceil(at)), 0, size - 1)] += part
        elif method == "nearest":
            at = middle if centers else at
            m[i, np.clip(int(np.floor(at + np.float32(0.5)) if corners else np.floor(at)), 0, size - 1)] = 1
        elif method == "area":
            if scale == 0:
                m[i, 0] = 1
                continue
            begin, end = float(np.float32(i) * scale), float(np.float32(i + 1) * scale)
            for v in range(int(np.floor(begin)), int(np.ceil(end))):
                m[i, np.clip(v, 0, size - 1)] += (min(end, v + 1) - max(begin, v)) / float(scale)
        else:
            part = np.round(float(at - np.float32(below)) * 1024) / 1024  # a table of that many places
            weights = [_cubic(k - 1 - part, -0.5 if centers else -0.75) for k in range(4)]
            if centers:
                weights = [w if 0 <= below - 1 + k < size else 0.0 for k, w in enumerate(weights)]
                weights = [w / sum(weights) for w in weights]
            for k, w in enumerate(weights):
                m[i, np.clip(below - 1 + k, 0, size - 1)] += w
    return m


def resized(method: str) -> Callable[..., np.ndarray]:
    def oracle(images: np.ndarray, size: np.ndarray, align_corners: bool, half_pixel_centers: bool = False) -> np.ndarray:
        rows, columns = (_matrix(method, images.shape[k + 1], int(size[k]), align_corners, half_pixel_centers) for k in (0, 1))
        out = np.einsum("yh,xw,nhwc->nyxc", rows, columns, images.astype(np.float64))
        return out.astype(images.dtype) if method == "nearest" else out

    return oracle


def spread(method: str, sizes_given: bool) -> Callable[..., np.ndarray]:
    """The transpose: what each pixel of the original images gets of the gradients."""

    def oracle(grads: np.ndarray, original: np.ndarray, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
        sizes = [int(s) for s in original] if sizes_given else original.shape[1:3]
        rows, columns = (_matrix(method, sizes[k], grads.shape[k + 1], align_corners, half_pixel_centers) for k in (0, 1))
        out = np.einsum("yh,xw,nyxc->nhwc", rows, columns, grads.astype(np.float64))
        return out.astype(grads.dtype) if sizes_given else out

    return oracle


def images(centers: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for size, wanted in _SIZES:
            for corners, middle in _PLACINGS if centers else _PLACINGS[:2]:
                attrs = {"align_corners": corners}
                if centers:
                    attrs["half_pixel_centers"] = middle
                yield Case([d.uniform((2, *size, 3)), np.array(wanted)], attrs)
        for channels in (1, 2, 4, 5, 12, 64):
            placing = {"half_pixel_centers": False} if centers else {}
            yield Case([d.uniform((1, 2, 3, channels)), np.array((4, 6))], {"align_corners": False, **placing})

    return cases


def gradients(sizes_given: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for size, wanted in _SIZES:
            for corners, middle in _PLACINGS:
                grads = d.uniform((2, *wanted, 3))
                original = np.array(size) if sizes_given else d.uniform((2, *size, 3))
                yield Case([grads, original], {"align_corners": corners, "half_pixel_centers": middle})

    return cases


def _mapped(fn: Callable[..., tuple[float, ...]], x: np.ndarray, *more: float) -> np.ndarray:
    flat = [fn(*(float(v) for v in colour), *more) for colour in x.reshape(-1, 3)]
    return np.array(flat).reshape(x.shape)


def _turned(r: float, g: float, b: float, delta: float) -> tuple[float, ...]:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb((h + delta) % 1, s, v)


def _saturated(r: float, g: float, b: float, scale: float) -> tuple[float, ...]:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return colorsys.hsv_to_rgb(h, min(1.0, max(0.0, s * scale)), v)


def colours(*amounts: float) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((1, 1, 3), (4, 5, 3), (2, 3, 17, 3), (0, 2, 3)):
            if not amounts:
                yield Case([d.uniform(shape, 0, 1)])
            for amount in amounts:
                yield Case([d.uniform(shape, 0, 1), np.array(amount)])

    return cases


def contrasted(x: np.ndarray, factor: np.ndarray) -> np.ndarray:
    mean = x.mean(axis=(-3, -2), keepdims=True) if x.size else x
    return (x - mean) * factor + mean if x.size else x


def boxes(thresholds: int) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for count in (0, 1, 9, 40):
            corners = d.rng.uniform(0, 1, (count, 4))
            inputs = [corners, d.rng.permutation(count) / max(1, count), np.array(6)]
            inputs += [np.array(v) for v in (0.3, 0.25)[:thresholds]]
            yield Case(inputs, {} if thresholds else {"iou_threshold": 0.3})

    return cases


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    (top, left), (bottom, right) = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    (top2, left2), (bottom2, right2) = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    both = max(0.0, min(bottom, bottom2) - max(top, top2)) * max(0.0, min(right, right2) - max(left, left2))
    return float(both / ((bottom - top) * (right - left) + (bottom2 - top2) * (right2 - left2) - both))


def chosen(
    corners: np.ndarray,
    scores: np.ndarray,
    limit: np.ndarray,
    iou: np.ndarray = np.array(0.3),
    least: np.ndarray = np.array(-np.inf),
    iou_threshold: float = 0.3,
) -> np.ndarray:
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) < limit and scores[i] > least and all(_overlap(corners[i], corners[k]) <= iou for k in kept):
            kept.append(int(i))
    return np.array(kept, np.int64)


def padded_choice(*inputs: np.ndarray, pad_to_max_output_size: bool) -> tuple[np.ndarray, ...]:
    kept = chosen(*inputs)
    out = np.zeros(int(inputs[2]), np.int64) if pad_to_max_output_size else kept
    out[: len(kept)] = kept
    return out, np.array(len(kept))


def boxes_padded(sigmas: tuple[float, ...] = ()) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for case in boxes(2)(d):
            for pad in (False, True):
                for sigma in sigmas or (None,):
                    more = [] if sigma is None else [np.array(sigma)]
                    yield Case([*case.inputs, *more], {"pad_to_max_output_size": pad})

    return cases


def softly_chosen(*inputs: np.ndarray, pad_to_max_output_size: bool) -> tuple[np.ndarray, ...]:
    """Of the definition: whoever scores best after all those chosen have lowered it."""
    corners, scores, limit, iou, least, sigma = inputs
    left = {i: float(s) for i, s in enumerate(scores) if s > least}
    kept: list[tuple[int, float]] = []
    while left and len(kept) < limit:
        best = min(left, key=lambda i: (-left[i], i))
        kept.append((best, left.pop(best)))
        for i in list(left):
            similarity = _overlap(corners[i], corners[best])
            left[i] *= np.exp(-(similarity**2) / (2 * sigma)) if sigma > 0 else float(similarity <= iou)
            if left[i] <= least:
                del left[i]
    size = int(limit) if pad_to_max_output_size else len(kept)
    numbers, values = np.zeros(size, np.int64), np.zeros(size)
    for k, (i, s) in enumerate(kept):
        numbers[k], values[k] = i, s
    return numbers, values, np.array(len(kept))


def overlaps(d: Draw) -> Iterator[Case]:
    for count in (0, 1, 9, 40):
        table = d.rng.uniform(0, 1, (count, count))
        scores = d.rng.permutation(count) / max(1, count)
        yield Case([table, scores, np.array(6), np.array(0.6), np.array(0.25)])


def chosen_by_overlaps(table: np.ndarray, scores: np.ndarray, limit: Any, most: Any, least: Any) -> np.ndarray:
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) < limit and scores[i] > least and all(table[i, k] <= most for k in kept):
            kept.append(int(i))
    return np.array(kept, np.int64)


def combined(d: Draw) -> Iterator[Case]:
    for batch, count, per_box, classes in ((2, 9, 1, 3), (1, 20, 3, 3), (1, 5, 1, 1), (0, 3, 1, 2), (2, 0, 1, 2)):
        for attrs in ({}, {"pad_per_class": True}, {"clip_boxes": False}):
            corners = d.rng.uniform(-0.2, 1.2, (batch, count, per_box, 4))
            scores = d.rng.permutation(batch * count * classes).reshape(batch, count, classes) / 100
            amounts = [np.array(v) for v in (2, 5, 0.3, 0.04)]
            yield Case([corners, scores, *amounts], {"pad_per_class": False, "clip_boxes": True, **attrs})


def best_of_classes(
    corners: np.ndarray, scores: np.ndarray, each: Any, total: Any, iou: Any, least: Any, pad_per_class: bool, clip_boxes: bool
) -> tuple[np.ndarray, ...]:
    batch, _, per_box, _ = corners.shape
    classes = scores.shape[2]
    size = min(int(total), int(each) * classes) if pad_per_class else int(total)
    out = np.zeros((batch, size, 4)), np.zeros((batch, size)), np.zeros((batch, size)), np.zeros(batch)
    for n in range(batch):
        found = []
        for c in range(classes):
            places = corners[n, :, 0 if per_box == 1 else c]
            found += [(-scores[n, i, c], c, places[i]) for i in chosen(places, scores[n, :, c], each, iou, least)]
        best = sorted(found, key=lambda f: f[0])[:size]
        for k, (score, c, place) in enumerate(best):
            out[0][n, k] = np.clip(place, 0, 1) if clip_boxes else place
            out[1][n, k], out[2][n, k] = -score, c
        out[3][n] = len(best)
    return out


def within(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1, 3), (4, 5, 2), (2, 3, 17, 3), (0, 2, 3)):
        for factor, low, high in ((0.5, -9.0, 9.0), (3.0, -1.0, 1.5)):
            yield Case([d.uniform(shape, -3, 3), *(np.array(v) for v in (factor, low, high))])


_KERNELS: dict[str, tuple[float, Callable[[float], float]]] = {
    **{f"lanczos{n}": (n, lambda x, n=n: float(np.sinc(x) * np.sinc(x / n)) if abs(x) <= n else 0.0) for n in (1, 3, 5)},
    "gaussian": (1.5, lambda x: float(np.exp(-(x**2) / 0.5)) if abs(x) < 1.5 else 0.0),
    "box": (1, lambda x: 1.0 if abs(x) < 0.5 else 0.5 if abs(x) == 0.5 else 0.0),
    "triangle": (1, lambda x: max(0.0, 1 - abs(x))),
    "keyscubic": (2, lambda x: _cubic(x, -0.5) if abs(x) < 2 else 0.0),
    "mitchellcubic": (2, lambda x: _mitchell(abs(x))),
}


def _mitchell(x: float) -> float:
    if x >= 2:
        return 0.0
    if x >= 1:
        return (-7 * x**3 / 3 + 12 * x**2 - 20 * x + 32 / 3) / 6
    return (7 * x**3 - 12 * x**2 + 16 / 3) / 6


def _scaling(name: str, antialias: bool, size: int, wanted: int, scale: float, translation: float) -> np.ndarray:
    radius, kernel = _KERNELS[name]
    wide = max(1.0, 1 / scale) if antialias else 1.0
    m = np.zeros((wanted, size))
    for i in range(wanted):
        at = (i + 0.5 - translation) / scale
        if 0 <= at <= size:
            weights = np.array([kernel((k + 0.5 - at) / wide) for k in range(size)])
            reached = np.abs(np.arange(size) + 0.5 - at) <= radius * wide + 0.5
            weights = np.where(reached, weights, 0)
            m[i] = weights / weights.sum() if weights.sum() else 0
    return m


def moved(gradient: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        ways = (((0.8, 1.2), (0.1, -0.5)), ((0.37, 2.3), (0.0, 1.0)), ((1.0, 1.0), (0.0, 0.0)), ((0.2, 0.9), (-4.0, 2.25)))
        for size, wanted in _SIZES:
            for k, name in enumerate(_KERNELS):
                scale, translation = ways[k % len(ways)]
                near = [np.array(scale), np.array(translation)]
                attrs = {"kernel_type": name, "antialias": k % 3 != 0}
                whole = d.uniform((2, *size, 3))
                yield Case([d.uniform((2, *wanted, 3)), whole, *near] if gradient else [whole, np.array(wanted), *near], attrs)

    return cases


def _ways(size: Any, wanted: Any, scale: np.ndarray, by: np.ndarray, kernel: str, antialias: bool) -> list[np.ndarray]:
    return [_scaling(kernel, antialias, int(size[k]), int(wanted[k]), float(scale[k]), float(by[k])) for k in (0, 1)]


def move(x: np.ndarray, size: np.ndarray, scale: np.ndarray, by: np.ndarray, kernel_type: str, antialias: bool) -> np.ndarray:
    rows, columns = _ways(x.shape[1:3], size, scale, by, kernel_type, antialias)
    return np.einsum("yh,xw,nhwc->nyxc", rows, columns, x.astype(np.float64))


def move_back(g: np.ndarray, x: np.ndarray, scale: np.ndarray, by: np.ndarray, kernel_type: str, antialias: bool) -> np.ndarray:
    rows, columns = _ways(x.shape[1:3], g.shape[1:3], scale, by, kernel_type, antialias)
    return np.einsum("yh,xw,nyxc->nhwc", rows, columns, g.astype(np.float64))


def add_to(table: Table) -> None:
    # The results of float64 images are float32.
    wide: dict[str, Any] = {"tolerance": 20, "main": "T"}
    floats = ("float32", "float16", "bfloat16", "uint8", "int32", "int64")
    for method, name in (("bilinear", "Bilinear"), ("bicubic", "Bicubic")):
        table.add(f"Resize{name}", images(True), resized(method), dtypes=floats, gradient=(0,), **wide)
        table.add(f"Resize{name}Grad", gradients(False), spread(method, False), dtypes=("float32",), **wide)
    table.add("ResizeArea", images(False), resized("area"), dtypes=floats, **wide)
    table.add("ResizeNearestNeighbor", images(True), resized("nearest"), gradient=(0,))
    table.add("ResizeNearestNeighborGrad", gradients(True), spread("nearest", True), tolerance=4)
    table.add("RGBToHSV", colours(), lambda x: _mapped(colorsys.rgb_to_hsv, x), tolerance=20, gradient=(0,), gradient_tolerance=9)
    table.add("HSVToRGB", colours(), lambda x: _mapped(colorsys.hsv_to_rgb, x), tolerance=20)
    table.add("AdjustHue", colours(0.3, -0.7), lambda x, d: _mapped(_turned, x, float(d)), tolerance=20)
    table.add("AdjustSaturation", colours(0.3, 4.0), lambda x, d: _mapped(_saturated, x, float(d)), tolerance=20)
    table.add("AdjustContrastv2", colours(0.5, 2.0), contrasted, tolerance=8)
    table.add("NonMaxSuppression", boxes(0), chosen)
    table.add("NonMaxSuppressionV2", boxes(1), chosen, dtypes=("float32",))
    table.add("NonMaxSuppressionV3", boxes(2), chosen, dtypes=("float32",))
    table.add("NonMaxSuppressionV4", boxes_padded(), padded_choice, dtypes=("float32",))
    table.add("NonMaxSuppressionV5", boxes_padded((0.0, 0.4)), softly_chosen, dtypes=("float32",))
    table.add("NonMaxSuppressionWithOverlaps", overlaps, chosen_by_overlaps)
    table.add("CombinedNonMaxSuppression", combined, best_of_classes)
    table.add("AdjustContrast", within, lambda x, f, low, high: np.clip(contrasted(x, f), low, high), **wide)
    scaled: dict[str, Any] = {"tolerance": 200, "main": "T"}
    table.add("ScaleAndTranslate", moved(False), move, dtypes=("float32", "uint8", "int64"), gradient=(0,), **scaled)
    table.add("ScaleAndTranslateGrad", moved(True), move_back, **scaled)
