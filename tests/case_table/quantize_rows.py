# SPDX-License-Identifier: Apache-2.0
"""Floats rounded to what integers of some bits could hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import SHAPES, Case, Draw, Table

_RANGES = ((-6.0, 6.0), (-1.0, 2.0), (0.5, 3.0), (-3.0, -0.5))


def nudged(low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The range moved so that zero is a step of it, and the step; in float32 as the kernels."""
    least, most = np.float32(int(narrow_range)), np.float32(2**num_bits - 1)
    low, high = np.float32(low), np.float32(high)
    step = (high - low) / (most - least)
    zero = np.clip(least - low / step, least, most)
    zero = np.floor(zero + np.float32(0.5))
    return (least - zero) * step, (most - zero) * step, step


def between_steps(d: Draw, shape: tuple[int, ...], low: Any, high: Any, bits: int, narrow: bool) -> np.ndarray:
    """Values that are not near the middle between two steps, some outside of the range."""
    first, _, step = nudged(low, high, bits, narrow)
    places = d.rng.integers(-3, 2**bits + 3, shape) + d.rng.uniform(-0.4, 0.4, shape)
    return np.asarray((first + places * step).astype(np.float32), np.float64)


def rounded(x: np.ndarray, low: Any, high: Any, num_bits: int, narrow_range: bool) -> np.ndarray:
    first, last, step = nudged(low, high, num_bits, narrow_range)
    return first + np.rint((np.clip(x, first, last) - first) / step) * step


def _attrs() -> Iterator[tuple[int, bool]]:
    return iter(((8, False), (8, True), (4, False), (2, True)))


def by_attributes(gradient: bool) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            for low, high in _RANGES[:2]:
                for bits, narrow in _attrs():
                    x = between_steps(d, shape, low, high, bits, narrow)
                    inputs = [d.uniform(shape), x] if gradient else [x]
                    yield Case(inputs, {"min": low, "max": high, "num_bits": bits, "narrow_range": narrow}, gradient=False)

    return cases


def by_inputs(gradient: bool, channels: bool) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((3,), (2, 5), (2, 3, 4), (0, 2)) if channels else SHAPES:
            for bits, narrow in _attrs():
                ends = [_RANGES[i % 4] for i in range(shape[-1])] if channels else [_RANGES[d.rng.integers(4)]]
                low, high = (np.array(e) if channels else np.array(e[0]) for e in zip(*ends))
                x = between_steps(d, shape, low, high, bits, narrow)
                inputs = [d.uniform(shape), x, low, high] if gradient else [x, low, high]
                yield Case(inputs, {"num_bits": bits, "narrow_range": narrow}, gradient=False)

    return cases


def slopes(g: np.ndarray, x: np.ndarray, low: Any, high: Any, num_bits: int, narrow_range: bool) -> tuple[np.ndarray, ...]:
    first, last, _ = nudged(low, high, num_bits, narrow_range)
    axes = tuple(range(x.ndim - 1)) if np.ndim(low) else None
    return (np.where((x >= first) & (x <= last), g, 0), np.sum(np.where(x < first, g, 0), axis=axes), np.sum(np.where(x > last, g, 0), axis=axes))


def _scale(low: float, high: float, bits: int, signed: bool, narrow: bool) -> tuple[float, float, float]:
    least = -(2 ** (bits - 1)) + narrow if signed else 0
    most = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    scales = [end / value if end * value > 0 else np.inf for end, value in ((least, low), (most, high))]
    return min(scales), least / min(scales), most / min(scales)


def there_and_back(version: str) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            for bits, signed, low, high in ((8, True, -2.0, 3.0), (4, True, -3.0, 1.0), (6, False, 0.0, 2.5)):
                scale, first, last = _scale(low, high, bits, signed, False)
                places = d.rng.integers(round(first * scale) - 2, round(last * scale) + 3, shape) + d.rng.uniform(-0.4, 0.4, shape)
                attrs: dict[str, Any] = {"signed_input": signed, "range_given": True}
                ends = [np.array(low), np.array(high)]
                if version == "":
                    yield Case([places / scale], attrs | {"num_bits": bits, "input_min": low, "input_max": high}, gradient=False)
                elif version == "V4":
                    for axis in (-1, 0) if shape else (-1,):
                        by_place = [np.full(shape[:1], end) for end in (low, high)] if axis == 0 else ends
                        yield Case([places / scale, *by_place], attrs | {"num_bits": bits, "axis": axis}, gradient=False)
                elif version == "V2":
                    for mode in ("HALF_TO_EVEN", "HALF_UP"):
                        yield Case([places / scale, *ends], attrs | {"num_bits": bits, "round_mode": mode}, gradient=False)
                else:
                    yield Case([places / scale, *ends, np.array(bits)], attrs, gradient=False)

    return cases


def back(x: np.ndarray, *ends: np.ndarray, signed_input: bool, range_given: bool, **attrs: Any) -> np.ndarray:
    if ends and ends[0].size == 0:
        return x
    low = float(ends[0].flat[0]) if ends else attrs["input_min"]
    high = float(ends[1].flat[0]) if ends else attrs["input_max"]
    bits = int(ends[2]) if len(ends) > 2 else attrs["num_bits"]
    scale, first, last = _scale(low, high, bits, signed_input, False)
    return np.rint(np.clip(x, first, last) * scale) / scale


def within(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        x = d.uniform(shape, -3, 3)
        yield Case([d.uniform(shape), x, np.array(-1.0), np.array(2.0)], {"axis": -1})
        if shape:
            yield Case([d.uniform(shape), x, np.linspace(-2, 0, shape[0]), np.linspace(0.5, 2, shape[0])], {"axis": 0})


def slopes_within(g: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    first, last = (end.reshape([-1] + [1] * (x.ndim - 1)) if axis == 0 else end for end in (low, high))
    return np.where((x >= first) & (x <= last), g, 0), np.zeros_like(low), np.zeros_like(high)


def images(d: Draw) -> Iterator[Case]:
    for shape, size in (((1, 2, 3, 2), (4, 5)), ((2, 5, 4, 1), (3, 2)), ((1, 1, 1, 3), (2, 2))):
        yield Case([d.uniform(shape), np.array(size, np.int32), np.array(-1.0), np.array(2.0)], {"align_corners": True})


def resized(x: np.ndarray, size: np.ndarray, low: np.ndarray, high: np.ndarray, align_corners: bool) -> tuple[Any, ...]:
    for axis, count in ((1, int(size[0])), (2, int(size[1]))):
        at = np.linspace(0, x.shape[axis] - 1, count) if count > 1 else np.zeros(1)
        below, part = np.floor(at).astype(int), at - np.floor(at)
        above = np.minimum(below + 1, x.shape[axis] - 1)
        weight = part.reshape([-1 if k == axis else 1 for k in range(4)])
        x = np.take(x, below, axis) * (1 - weight) + np.take(x, above, axis) * weight
    return x, low, high


def add_to(table: Table) -> None:
    table.add(
        "FakeQuantWithMinMaxArgs", by_attributes(False), lambda x, min, max, num_bits, narrow_range: rounded(x, min, max, num_bits, narrow_range), tolerance=8
    )
    table.add(
        "FakeQuantWithMinMaxArgsGradient", by_attributes(True), lambda g, x, min, max, num_bits, narrow_range: slopes(g, x, min, max, num_bits, narrow_range)[0]
    )
    for op, channels in (("FakeQuantWithMinMaxVars", False), ("FakeQuantWithMinMaxVarsPerChannel", True)):
        table.add(op, by_inputs(False, channels), rounded, tolerance=8)
        table.add(op + "Gradient", by_inputs(True, channels), slopes, tolerance=16)
    for version in ("", "V2", "V3", "V4"):
        table.add("QuantizeAndDequantize" + version, there_and_back(version), back, tolerance=4)
    table.add("QuantizeAndDequantizeV4Grad", within, slopes_within)
    table.add("QuantizedResizeBilinear", images, resized, dtypes=("float32",), tolerance=4)
