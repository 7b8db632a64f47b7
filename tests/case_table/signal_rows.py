# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: lengths of small primes, of large ones, and of both, over one to three axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dtypes import C64, C128, F32, F64
from table import Case, Draw, Table

_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 19, 22, 26, 30, 31, 34, 49, 64, 97, 105, 121, 169, 210)
_LONG = (251, 256, 360, 509, 1000, 1001, 1021, 1024, 2310, 4093, 4096, 8481)
_STACKS = {
    1: ((0, 4), (3, 0), (2, 3, 5), (17, 12), (33, 7), (65, 17), (3, 2, 1)),
    2: ((1, 1), (2, 3), (5, 4), (16, 15), (17, 34), (2, 7, 6), (3, 2, 11, 13), (0, 4, 4), (2, 0, 4), (40, 64)),
    3: ((1, 1, 1), (2, 3, 4), (7, 5, 6), (17, 4, 9), (2, 3, 2, 5), (0, 2, 3, 4), (2, 0, 3, 4), (12, 16, 20)),
}


def _shapes(axes: int) -> Iterator[tuple[int, ...]]:
    if axes == 1:
        yield from ((n,) for n in (*_LENGTHS, *_LONG))
    yield from _STACKS[axes]


def stacks(axes: int) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _shapes(axes):
            yield Case([d.uniform(shape)], gradient=int(np.prod(shape)) < 40)

    return cases


def _lengths(shape: tuple[int, ...], axes: int) -> Iterator[list[int]]:
    whole = list(shape[-axes:])
    yield whole
    cut = [max(1, n - 1 - i) for i, n in enumerate(whole)]
    if cut != whole and 0 not in whole:
        yield cut


def real_stacks(axes: int) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _shapes(axes):
            for lengths in _lengths(shape, axes):
                yield Case(
                    [d.uniform(shape), np.array(lengths, np.int32)], types={"Tcomplex": {F32: C64, F64: C128}[d.dtype]}, gradient=int(np.prod(shape)) < 40
                )

    return cases


def half_spectra(axes: int) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _shapes(axes):
            for lengths in _lengths(shape, axes):
                bins = (*shape[:-1], shape[-1] // 2 + 1 if 0 not in shape[-axes:] else 0)
                yield Case([d.uniform(bins), np.array(lengths, np.int32)], types={"Treal": {C64: F32, C128: F64}[d.dtype]}, gradient=int(np.prod(shape)) < 40)

    return cases


def _last(axes: int) -> tuple[int, ...]:
    return tuple(range(-axes, 0))


def transform(axes: int, inverse: bool) -> Any:
    def oracle(x: np.ndarray, **_: Any) -> np.ndarray:
        if not x.size:
            return x
        return np.fft.ifftn(x, axes=_last(axes)) if inverse else np.fft.fftn(x, axes=_last(axes))

    return oracle


def _window(x: np.ndarray, lengths: Any) -> np.ndarray:
    return x[(..., *(slice(0, n) for n in lengths))]


def real_transform(axes: int) -> Any:
    def oracle(x: np.ndarray, lengths: np.ndarray, **_: Any) -> np.ndarray:
        if not x.size:
            last = int(lengths[-1])
            return np.zeros((*x.shape[:-axes], *lengths[:-1], last // 2 + 1 if last else 0), np.complex128)
        return np.fft.rfftn(_window(x, lengths), axes=_last(axes))

    return oracle


def real_inverse(axes: int) -> Any:
    def oracle(x: np.ndarray, lengths: np.ndarray, **_: Any) -> np.ndarray:
        if not x.size:
            return np.zeros((*x.shape[:-axes], *lengths))
        n = int(lengths[-1])
        x = _window(x, [*lengths[:-1], n // 2 + 1])
        if axes > 1:
            x = np.fft.ifftn(x, axes=tuple(range(-axes, -1)))
        return np.fft.irfft(x, n)

    return oracle


def add_to(table: Table) -> None:
    loose = dict(tolerance=64, gradient_tolerance=16)
    for axes, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        for name, inverse in (("FFT", False), ("IFFT", True)):
            table.add(name + suffix, stacks(axes), transform(axes, inverse), gradient=(0,), **loose)
            table.add(f"Batch{name}{suffix}", stacks(axes), transform(axes, inverse), **loose)
        table.add("RFFT" + suffix, real_stacks(axes), real_transform(axes), gradient=(0,), **loose)
        table.add("IRFFT" + suffix, half_spectra(axes), real_inverse(axes), gradient=(0,), **loose)
