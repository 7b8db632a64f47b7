# SPDX-License-Identifier: Apache-2.0
"""Dilation, fractional pooling, fused convolutions, orders of dimensions, n-th elements: against loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from table import Case, Draw, Table


def _window(size: int, taps: int, stride: int, rate: int, padding: str) -> tuple[int, int]:
    """(results, cells of padding before)."""
    reach = (taps - 1) * rate + 1
    if padding == "VALID":
        return (size - reach) // stride + 1, 0
    count = -(-size // stride)
    return count, max(0, (count - 1) * stride + reach - size) // 2


_DILATIONS = (
    ((2, 5, 6, 3), (2, 3, 3), (1, 1), (1, 1), "SAME"),
    ((1, 7, 7, 2), (3, 2, 2), (2, 1), (1, 2), "VALID"),
    ((1, 6, 5, 17), (2, 2, 17), (2, 2), (2, 2), "SAME"),
    ((0, 4, 4, 1), (2, 2, 1), (1, 1), (1, 1), "SAME"),
    ((3, 3, 3, 1), (1, 1, 1), (1, 1), (1, 1), "VALID"),
)


def dilations(backprop: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for image, taps, strides, rates, padding in _DILATIONS:
            attrs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
            x, f = d.apart(image, -3, 3), d.apart(taps, -1, 1)
            if d.kind == "f":
                f = f * 0.37
            sizes = [_window(image[k + 1], taps[k], strides[k], rates[k], padding)[0] for k in (0, 1)]
            more = [d.uniform((image[0], *sizes, image[3]), -1, 1)] if backprop else []
            yield Case([x, f, *more], attrs)

    return cases


def _taps(x: np.ndarray, f: np.ndarray, attrs: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """For each window and channel: where its result lies, and the first (cell, tap) of the largest sum."""
    strides, rates = attrs["strides"][1:3], attrs["rates"][1:3]
    (rows, top), (columns, left) = (_window(x.shape[k + 1], f.shape[k], strides[k], rates[k], attrs["padding"]) for k in (0, 1))
    for n, r, c, d in np.ndindex(x.shape[0], rows, columns, x.shape[3]):
        best: tuple[Any, ...] = ()
        for i, j in np.ndindex(f.shape[:2]):
            y, z = r * strides[0] - top + i * rates[0], c * strides[1] - left + j * rates[1]
            if 0 <= y < x.shape[1] and 0 <= z < x.shape[2]:
                value = x[n, y, z, d] + f[i, j, d]
                if not best or value > best[0]:
                    best = (value, (n, y, z, d), (i, j, d))
        yield ((n, r, c, d), *best)


def _pooled(x: np.ndarray, f: np.ndarray, attrs: dict[str, Any]) -> tuple[int, ...]:
    strides, rates = attrs["strides"][1:3], attrs["rates"][1:3]
    sizes = [_window(x.shape[k + 1], f.shape[k], strides[k], rates[k], attrs["padding"])[0] for k in (0, 1)]
    return (x.shape[0], *sizes, x.shape[3])


def dilated(x: np.ndarray, f: np.ndarray, **attrs: Any) -> np.ndarray:
    out = np.zeros(_pooled(x, f, attrs), np.result_type(x, f))
    for at, value, _, _ in _taps(x, f, attrs):
        out[at] = value
    return out


def dilation_spread(to_input: bool) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, f: np.ndarray, g: np.ndarray, **attrs: Any) -> np.ndarray:
        out = np.zeros((x if to_input else f).shape, np.result_type(x, f))
        for at, _, cell, tap in _taps(x, f, attrs):
            out[cell if to_input else tap] += g[at]
        return out

    return oracle


def fractional(d: Draw) -> Iterator[Case]:
    for shape, ratio in (((2, 6, 4, 3), (2.0, 1.0)), ((1, 9, 5, 2), (1.5, 1.7)), ((1, 1, 1, 1), (1.0, 1.0)), ((3, 17, 12, 5), (2.6, 1.44))):
        for k in range(4):
            attrs = {"pooling_ratio": [1.0, *ratio, 1.0], "pseudo_random": k % 2 == 1, "overlapping": k > 1}
            steady = {"deterministic": True, "seed": 5 + k, "seed2": 7}
            whole = shape[1] % int(shape[1] / ratio[0]) == 0 and shape[2] % int(shape[2] / ratio[1]) == 0
            yield Case([d.apart(shape, -9, 9)], {**attrs, **steady}, gradient=whole)


def _bounds(bounds: np.ndarray, i: int, overlapping: bool, size: int) -> slice:
    return slice(int(bounds[i]), min(int(bounds[i + 1]) + overlapping, size))


def _cut(size: int, ratio: float) -> int:
    return int(np.floor(np.float32(size) / np.float32(ratio)))


def check_fractional(largest: bool) -> Any:
    def check(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
        x, attrs = case.inputs[0], case.attrs
        out, rows, columns = got
        ratio = attrs["pooling_ratio"]
        for bounds, size, r in ((rows, x.shape[1], ratio[1]), (columns, x.shape[2], ratio[2])):
            count = _cut(size, r)
            steps = np.diff(bounds)
            assert len(bounds) == count + 1 and bounds[0] == 0 and bounds[-1] == size, bounds
            assert set(steps.tolist()) <= {size // count, size // count + 1}, steps
        want = np.zeros(out.shape)
        for r, c in np.ndindex(out.shape[1:3]):
            window = x[:, _bounds(rows, r, attrs["overlapping"], x.shape[1]), _bounds(columns, c, attrs["overlapping"], x.shape[2])]
            want[:, r, c] = window.max(axis=(1, 2)) if largest else window.sum(axis=(1, 2)) / (window.shape[1] * window.shape[2])
        if out.dtype.kind in "iu":
            want = np.trunc(want)
        np.testing.assert_allclose(out.astype(np.float64), want, rtol=1e-5, atol=1e-5)

    return check


def fractional_gradients(largest: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, rows, columns in (((2, 6, 4, 3), (0, 2, 5, 6), (0, 1, 4)), ((1, 1, 1, 1), (0, 1), (0, 1)), ((0, 3, 3, 2), (0, 3), (0, 1, 3))):
            for overlapping in (False, True):
                pooled = (shape[0], len(rows) - 1, len(columns) - 1, shape[3])
                x, g = d.apart(shape, -9, 9), d.uniform(pooled, -3, 3)
                first = [x, np.zeros(pooled, x.dtype)] if largest else [np.array(shape)]
                yield Case([*first, g, np.array(rows), np.array(columns)], {"overlapping": overlapping})

    return cases


def to_largest(x: np.ndarray, _: Any, g: np.ndarray, rows: np.ndarray, columns: np.ndarray, overlapping: bool) -> np.ndarray:
    out = np.zeros(x.shape, x.dtype)
    for n, r, c, d in np.ndindex(g.shape):
        window = _bounds(rows, r, overlapping, x.shape[1]), _bounds(columns, c, overlapping, x.shape[2])
        cells = x[n, window[0], window[1], d]
        y, z = np.unravel_index(int(cells.argmax()), cells.shape)
        out[n, window[0].start + y, window[1].start + z, d] += g[n, r, c, d]
    return out


def to_all(shape: np.ndarray, g: np.ndarray, rows: np.ndarray, columns: np.ndarray, overlapping: bool) -> np.ndarray:
    out = np.zeros([int(s) for s in shape])
    for r, c in np.ndindex(g.shape[1:3]):
        window = _bounds(rows, r, overlapping, out.shape[1]), _bounds(columns, c, overlapping, out.shape[2])
        cells = (window[0].stop - window[0].start) * (window[1].stop - window[1].start)
        out[:, window[0], window[1]] += g[:, r, c][:, None, None] / cells
    return np.trunc(out) if g.dtype.kind in "iu" else out


_MIRROR = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}


def fused(resizes: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        ways = (("REFLECT", (1, 2), "VALID"), ("SYMMETRIC", (1, 1), "SAME"), ("SYMMETRIC", (2, 3), "VALID"))
        for k, (mode, strides, padding) in enumerate(ways):
            for shape, taps, pads in (((2, 4, 5, 3), (2, 3, 3, 4), ((1, 2), (0, 3))), ((1, 3, 3, 1), (1, 1, 1, 1), ((0, 0), (1, 1)))):
                x, f = d.uniform(shape), d.uniform(taps)
                paddings = np.array([(0, 0), *pads, (0, 0)])
                attrs: dict[str, Any] = {"mode": mode, "strides": [1, *strides, 1], "padding": padding}
                if resizes:
                    attrs["resize_align_corners"] = k % 2 == 1
                yield Case([x, np.array((5, 4)), paddings, f] if resizes else [x, paddings, f], attrs)

    return cases


def _resized(x: np.ndarray, size: Sequence[int], corners: bool) -> np.ndarray:
    for axis in (0, 1):
        old, new = x.shape[axis + 1], int(size[axis])
        scale = np.float32(old - 1) / np.float32(new - 1) if corners and new > 1 else np.float32(old) / np.float32(new)
        at = (np.arange(new, dtype=np.float32) * scale).astype(np.float64)
        below = np.minimum(np.floor(at).astype(int), old - 1)
        part = (at - below).reshape((-1, 1, 1) if axis == 0 else (-1, 1))
        a, b = np.take(x, below, axis + 1), np.take(x, np.minimum(below + 1, old - 1), axis + 1)
        x = a + (b - a) * part
    return x


def _convolved(x: np.ndarray, f: np.ndarray, strides: Sequence[int], padding: str) -> np.ndarray:
    (rows, top), (columns, left) = (_window(x.shape[k + 1], f.shape[k], strides[k], 1, padding) for k in (0, 1))
    wide = np.pad(x, ((0, 0), (top, f.shape[0]), (left, f.shape[1]), (0, 0)))
    out = np.zeros((x.shape[0], rows, columns, f.shape[3]))
    for r, c in np.ndindex(rows, columns):
        y, z = r * strides[0], c * strides[1]
        out[:, r, c] = np.einsum("nijc,ijco->no", wide[:, y : y + f.shape[0], z : z + f.shape[1]], f)
    return out


def fused_convolution(*inputs: np.ndarray, mode: str, strides: list[int], padding: str, resize_align_corners: bool = False) -> np.ndarray:
    x, *size, paddings, f = inputs
    if size:
        x = _resized(x, size[0], resize_align_corners)
    return _convolved(np.pad(x, [tuple(p) for p in paddings], _MIRROR[mode]), f, strides[1:3], padding)


def dimensions(d: Draw) -> Iterator[Case]:
    for src, dst in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"), ("NHWC", "HWNC")):
        yield Case([d.integers((3, 4), -len(src), len(src))], {"src_format": src, "dst_format": dst})


def sizes(d: Draw) -> Iterator[Case]:
    for src, dst in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"), ("NHWC", "WHNC")):
        for shape in ((len(src),), (len(src), 2), (len(src) - 2,), (len(src) - 2, 2)):
            yield Case([d.integers(shape, -50, 50)], {"src_format": src, "dst_format": dst})


def permuted(x: np.ndarray, src_format: str, dst_format: str) -> np.ndarray:
    if len(x) < len(src_format):
        src_format, dst_format = ("".join(c for c in f if c in "HWD") for f in (src_format, dst_format))
    return x[[src_format.index(c) for c in dst_format]]


def nth(d: Draw) -> Iterator[Case]:
    for shape, n in (((1,), 0), ((7,), 3), ((3, 17), 16), ((2, 3, 5), 1), ((0, 4), 2), ((2, 33), 0)):
        for reverse in (False, True):
            yield Case([d.apart(shape, -9, 9), np.array(n)], {"reverse": reverse})


def add_to(table: Table) -> None:
    table.add("Dilation2D", dilations(False), dilated, gradient=(0, 1), tolerance=4)
    table.add("Dilation2DBackpropInput", dilations(True), dilation_spread(True), dtypes=("float32", "float64", "int32"), tolerance=8)
    table.add("Dilation2DBackpropFilter", dilations(True), dilation_spread(False), dtypes=("float32", "float64", "int32"), tolerance=32)
    table.add("FractionalMaxPool", fractional, check=check_fractional(True), gradient=None)
    table.add("FractionalAvgPool", fractional, check=check_fractional(False), gradient=None)
    table.add("FractionalMaxPoolGrad", fractional_gradients(True), to_largest, tolerance=4)
    table.add("FractionalAvgPoolGrad", fractional_gradients(False), to_all, tolerance=8, main="T")
    table.add("FusedPadConv2D", fused(False), fused_convolution, tolerance=64, main="T")
    table.add("FusedResizeAndPadConv2D", fused(True), fused_convolution, tolerance=64, main="T")
    table.add("DataFormatDimMap", dimensions, lambda x, src_format, dst_format: np.array([dst_format.index(c) for c in src_format])[x])
    table.add("DataFormatVecPermute", sizes, permuted)
    table.add("NthElement", nth, lambda x, n, reverse: np.sort(x, -1)[..., x.shape[-1] - 1 - n if reverse else n], gradient=(0,))
