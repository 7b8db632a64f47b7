# SPDX-License-Identifier: Apache-2.0
"""Special functions by their series, bits, places in sorted rows, bands of diagonals, rows replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import special
from dtypes import BY_NAME
from elementwise_rows import one, two
from table import SHAPES, Case, Draw, Table

_NUMBERS = tuple(t.name for t in BY_NAME.values() if t.kind in "fciu" and not t.name.startswith("q"))
_BANDS = ((0, 0), (1, 1), (-1, -1), (0, 2), (-2, 0), (-1, 1), (2, 2), (-3, 1))


def _bessel(order: int) -> Callable[[float], float]:
    def scaled(x: float) -> float:
        terms = [(x / 2) ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(60)]
        return math.fsum(terms) * math.exp(-abs(x))

    return scaled


def _lower_gamma(a: float, x: float) -> float:
    if x == 0:
        return 0.0
    term, terms = 1 / a, []
    for n in range(1, 400):
        terms.append(term)
        term *= x / (a + n)
    return math.fsum(terms) * math.exp(a * math.log(x) - x - math.lgamma(a))


def _gamma_by_a(a: float, x: float) -> float:
    def slope(h: float) -> float:
        return (_lower_gamma(a + h, x) - _lower_gamma(a - h, x)) / (2 * h)

    return (4 * slope(5e-4) - slope(1e-3)) / 3


def _gamma_sample_by_a(a: float, x: float) -> float:
    return -_gamma_by_a(a, x) / math.exp((a - 1) * math.log(x) - x - math.lgamma(a)) if x > 0 else 0.0


def _beta(a: float, b: float, x: float) -> float:
    if x > 0.5:
        return 1 - _beta(b, a, 1 - x)
    term, terms = 1 / a, []
    for n in range(400):
        terms.append(term)
        term *= (a + b + n) / (a + 1 + n) * x
    return math.fsum(terms) * math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))


bessel_0, bessel_1 = special._each(_bessel(0)), special._each(_bessel(1))
lower_gamma, gamma_by_a = special._each(_lower_gamma), special._each(_gamma_by_a)
gamma_sample_by_a, beta = special._each(_gamma_sample_by_a), special._each(_beta)


def betas(d: Draw) -> Iterator[Case]:
    for shape in ((), (1,), (17,), (2, 3), (0,)):
        for a, b, x in ((shape, shape, shape), ((), shape, ()), (shape, (), shape)):
            yield Case([d.uniform(a, 0.3, 40), d.uniform(b, 0.3, 40), d.uniform(x, 0.02, 0.98)])


def packed(d: Draw) -> Iterator[Case]:
    for shape in ((8,), (0,), (3, 16), (2, 3, 40)):
        yield Case([d.uniform(shape, -5, 5), d.uniform((), -1, 1)])


def pack(x: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    return np.packbits(x if x.dtype == bool else x > threshold, axis=-1)


def ones(x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: bin(int(v) & (1 << 64) - 1).count("1"), otypes=[np.uint8])(x)


def bits(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.integers(shape, 0, 127)])


def sorted_rows(d: Draw) -> Iterator[Case]:
    for rows, length, values in ((1, 1, 1), (3, 17, 5), (2, 0, 4), (2, 4, 0), (0, 3, 3)):
        yield Case([np.sort(d.uniform((rows, length), -9, 9)), np.round(d.uniform((rows, values), -9, 9))])


def places(side: str) -> Any:
    def oracle(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        found = [np.searchsorted(row, value, side) for row, value in zip(rows, values)]
        return np.array(found, np.int64).reshape(values.shape)

    return oracle


def buckets(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([np.round(d.uniform(shape, -9, 9))], {"boundaries": [-4.0, 0.0, 0.0, 3.5, 8.0]})
    yield Case([d.uniform((4,))], {"boundaries": []})


def histograms(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.uniform(shape, 0, 100), np.array([7, 80]), np.array(5)])


def histogram(x: np.ndarray, limits: np.ndarray, bins: np.ndarray) -> np.ndarray:
    low, high, count = float(limits[0]), float(limits[1]), int(bins)
    at = np.clip(np.floor((x.astype(np.float64) - low) / ((high - low) / count)), 0, count - 1)
    return np.bincount(at.astype(np.int64).ravel(), minlength=count)


def flat_places(d: Draw) -> Iterator[Case]:
    for dims in ((7,), (3, 4), (2, 1, 5, 3)):
        for shape in ((), (1,), (33,)):
            yield Case([d.integers(shape, 0, int(np.prod(dims))), np.array(dims)])


def unravel(x: np.ndarray, dims: np.ndarray) -> np.ndarray:
    return np.array(np.unravel_index(x, tuple(dims)))


def _offset(align: str, d: int, length: int, longest: int) -> int:
    return longest - length if align.split("_")[d < 0] == "RIGHT" else 0


def _lengths(rows: int, cols: int, low: int, high: int) -> dict[int, int]:
    return {d: min(rows + min(d, 0), cols - max(d, 0)) for d in range(high, low - 1, -1)}


def _part(x: np.ndarray, low: int, high: int, padding: Any, align: str) -> np.ndarray:
    lengths = _lengths(*x.shape[-2:], low, high)
    longest = max(lengths.values())
    out = np.full(x.shape[:-2] + (len(lengths), longest), padding, x.dtype)
    for k, (d, n) in enumerate(lengths.items()):
        at = _offset(align, d, n, longest)
        out[..., k, at : at + n] = np.diagonal(x, d, -2, -1)
    return out[..., 0, :] if low == high else out


def _put(x: np.ndarray, part: np.ndarray, low: int, high: int, align: str) -> np.ndarray:
    out = x.copy()
    lengths = _lengths(*x.shape[-2:], low, high)
    longest = max(lengths.values())
    part = part.reshape(x.shape[:-2] + (len(lengths), longest))
    for k, (d, n) in enumerate(lengths.items()):
        at = _offset(align, d, n, longest)
        for i in range(n):
            out[..., i + max(-d, 0), i + max(d, 0)] = part[..., k, at + i]
    return out


def _aligns(version: str) -> tuple[str, ...]:
    return ("LEFT_LEFT",) if version == "V2" else ("RIGHT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT", "LEFT_LEFT")


def band_cases(version: str, make: Callable[..., list[Any]]) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for align in _aligns(version):
            for shape in ((4, 4), (2, 5, 3), (3, 0, 3, 6)):
                rows, cols = shape[-2:]
                for low, high in _BANDS:
                    if -rows < low and high < cols:
                        k = np.array(low) if low == high else np.array([low, high])
                        yield Case(make(d, shape, low, high, k), {} if version == "V2" else {"align": align})

    return cases


def _shape_of_part(shape: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    return _part(np.zeros(shape), low, high, 0, "LEFT_LEFT").shape


def parts(d: Draw, shape: tuple[int, ...], low: int, high: int, k: np.ndarray) -> list[Any]:
    return [d.any(shape), k, d.any(())]


def new_bands(d: Draw, shape: tuple[int, ...], low: int, high: int, k: np.ndarray) -> list[Any]:
    return [d.any(shape), d.any(_shape_of_part(shape, low, high)), k]


def made_of_bands(d: Draw, shape: tuple[int, ...], low: int, high: int, k: np.ndarray) -> list[Any]:
    sizes = [np.array(n) for n in shape[-2:]]
    return [d.any(_shape_of_part(shape, low, high)), k, *sizes, d.any(())]


def part_of(x: np.ndarray, k: np.ndarray, padding: np.ndarray, align: str = "LEFT_LEFT") -> np.ndarray:
    return _part(x, int(k.flat[0]), int(k.flat[-1]), padding, align)


def with_band(x: np.ndarray, part: np.ndarray, k: np.ndarray, align: str = "LEFT_LEFT") -> np.ndarray:
    return _put(x, part, int(k.flat[0]), int(k.flat[-1]), align)


def of_band(part: np.ndarray, k: np.ndarray, rows: np.ndarray, cols: np.ndarray, padding: np.ndarray, align: str = "LEFT_LEFT") -> np.ndarray:
    outer = part.shape[: -1 if k.flat[0] == k.flat[-1] else -2]
    blank = np.full(outer + (int(rows), int(cols)), padding, part.dtype)
    return _put(blank, part, int(k.flat[0]), int(k.flat[-1]), align)


def new_rows(repeat: bool) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((5,), (4, 3), (3, 2, 17), (4, 0)):
            for rows in ([0], [2, -1], [], *([[1, 1, 0]] if repeat else [])):
                yield Case([d.any(shape), np.array(rows, np.int32), d.any((len(rows), *shape[1:]))])

    return cases


def with_rows(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = x.copy()
        for i, r in enumerate(rows):
            out[r] = combine(out[r], v[i])
        return out

    return oracle


def single_rows(d: Draw) -> Iterator[Case]:
    for count, shape in ((1, (3,)), (4, (2, 3)), (2, ())):
        yield Case([[d.any((1, *shape)) for _ in range(count)]], {"shape": [count, *shape]})


def pieces(d: Draw) -> Iterator[Case]:
    ends = (np.array([1, 0]), np.array([4, 3]), np.array([2, 1]))
    yield Case([d.any((5, 4)), *ends, d.any((2, 3))])
    yield Case([d.any((5, 4)), *ends, d.any((3,))])
    yield Case([d.any((5, 4)), *ends, d.any(())])
    yield Case([d.any((5, 4, 2)), *ends, d.any((2, 3, 2))])


def with_piece(x: np.ndarray, begin: np.ndarray, end: np.ndarray, step: np.ndarray, v: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[tuple(slice(int(b), int(e), int(s)) for b, e, s in zip(begin, end, step))] = v
    return out


def with_sums(x: np.ndarray, at: np.ndarray, v: np.ndarray) -> np.ndarray:
    out = x.copy()
    for k in np.ndindex(at.shape[:-1]):
        place = tuple(at[k])
        out[place] = out[place] | v[k] if x.dtype == bool else out[place] + v[k]
    return out


def sums(d: Draw) -> Iterator[Case]:
    yield Case([d.uniform((5, 3), -9, 9), np.array([[4], [0], [4]]), d.uniform((3, 3), -9, 9)])
    yield Case([d.uniform((5, 3), -9, 9), np.array([[4, 1], [0, 2]]), d.uniform((2,), -9, 9)])


def add_to(table: Table) -> None:
    table.add("BesselI0e", one(-30, 30), bessel_0, gradient=(0,), tolerance=4)
    table.add("BesselI1e", one(-30, 30, True), bessel_1, gradient=(0,), tolerance=8)
    table.add("Igamma", two(0.3, 9), lower_gamma, gradient=(0, 1), tolerance=64)
    table.add("Igammac", two(0.3, 9), lambda a, x: 1 - lower_gamma(a, x), gradient=(0, 1), tolerance=256)
    table.add("IgammaGradA", two(0.3, 9), gamma_by_a, dtypes=("float32",), tolerance=16)
    table.add("RandomGammaGrad", two(0.3, 9), gamma_sample_by_a, dtypes=("float32",), tolerance=64)
    table.add("Betainc", betas, beta, gradient=(2,), tolerance=256, gradient_tolerance=4)
    table.add("NextAfter", two(-5, 5), np.nextafter, dtypes=("float64",), gradient=())
    table.add("NextAfter", two(-5, 5), lambda a, b: np.nextafter(np.float32(a), np.float32(b)), dtypes=("float32",), note="narrow")
    table.add("PopulationCount", bits, ones)
    table.add("CompareAndBitpack", packed, pack)
    for op, side in (("LowerBound", "left"), ("UpperBound", "right")):
        table.add(op, sorted_rows, places(side))
    table.add("Bucketize", buckets, lambda x, boundaries: np.searchsorted(np.array(boundaries), x, "right"))
    table.add("HistogramFixedWidth", histograms, histogram)
    table.add("UnravelIndex", flat_places, unravel)
    for version in ("V2", "V3"):
        table.add("MatrixDiag" + version, band_cases(version, made_of_bands), of_band, gradient=(0,))
        table.add("MatrixDiagPart" + version, band_cases(version, parts), part_of, gradient=(0,))
        table.add("MatrixSetDiag" + version, band_cases(version, new_bands), with_band, gradient=(0, 1))
    table.add("InplaceUpdate", new_rows(False), with_rows(lambda old, new: new))
    table.add("InplaceAdd", new_rows(True), with_rows(np.add), dtypes=_NUMBERS)
    table.add("InplaceSub", new_rows(True), with_rows(np.subtract), dtypes=_NUMBERS)
    table.add("ParallelConcat", single_rows, lambda rows, shape: np.concatenate(rows))
    table.add("TensorStridedSliceUpdate", pieces, with_piece, gradient=(0, 4))
    table.add("ScatterNdNonAliasingAdd", sums, with_sums, gradient=(0, 2))
    for op in ("GuaranteeConst", "DeepCopy", "DebugGradientIdentity"):
        table.add(op, one(-9, 9), lambda x: x)
