# SPDX-License-Identifier: Apache-2.0
"""Functions of matrices, matrices of three diagonals, products said to be sparse, running sums of exponentials, patches of volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table

_STACKS = ((1, 1), (2, 2), (3, 3), (2, 5, 5), (2, 1, 4, 4), (0, 3, 3), (2, 0, 0), (17, 17))


def squares(size: float) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _STACKS:
            yield Case([d.uniform(shape, -1, 1) * size / max(1, shape[-1])])

    return cases


def near_one(d: Draw) -> Iterator[Case]:
    """Matrices without eigenvalues near the negative axis."""
    for shape in _STACKS:
        yield Case([2 * np.eye(shape[-1]) + d.uniform(shape, -1, 1) / max(1, shape[-1])])


def exponential(x: np.ndarray) -> np.ndarray:
    part, term = np.asarray(x, np.result_type(x, np.float64)) / 64, np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    total = term + 0 * part
    for k in range(1, 30):
        term = term @ part / k
        total = total + term
    for _ in range(6):
        total = total @ total
    return total


def by_eigenvalues(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    def oracle(x: np.ndarray) -> np.ndarray:
        if x.size == 0:
            return x
        values, vectors = np.linalg.eig(x)
        out = (vectors * function(values.astype(np.complex128))[..., None, :]) @ np.linalg.inv(vectors)
        return out if x.dtype.kind == "c" else out.real

    return oracle


def _dense(upper: np.ndarray, main: np.ndarray, lower: np.ndarray) -> np.ndarray:
    m = main.shape[-1]
    out = np.zeros(main.shape + (m,), main.dtype)
    for i in range(m):
        out[..., i, i] = main[..., i]
        if i + 1 < m:
            out[..., i, i + 1] = upper[..., i]
            out[..., i + 1, i] = lower[..., i + 1]
    return out


def three_diagonals(d: Draw) -> Iterator[Case]:
    for batch, m, n in (((), 1, 1), ((), 3, 2), ((2,), 5, 4), ((2, 3), 2, 1), ((0,), 3, 2), ((2,), 0, 3), ((), 17, 3)):
        yield Case([*(d.uniform((*batch, 1, m)) for _ in range(3)), d.uniform((*batch, m, n))])


def times(upper: np.ndarray, main: np.ndarray, lower: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _dense(upper[..., 0, :], main[..., 0, :], lower[..., 0, :]) @ x


def equations(pivoting: bool) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for batch, m, n in (((), 1, 1), ((), 3, 2), ((2,), 5, 4), ((2, 3), 2, 1), ((0,), 3, 2), ((), 17, 3)):
            diagonals = d.uniform((*batch, 3, m), -0.9, 0.9)
            diagonals[..., 1, :] += 3 if not pivoting else 0
            if pivoting:  # the lower diagonal is the large one, and the corners keep the matrix regular
                diagonals[..., 2, :] += 2
                diagonals[..., 0, :] += 1
                diagonals[..., 1, ::2] += 4
            yield Case([diagonals, d.uniform((*batch, m, n))], {"partial_pivoting": pivoting})

    return cases


def solved(diagonals: np.ndarray, x: np.ndarray, partial_pivoting: bool) -> np.ndarray:
    return np.linalg.solve(_dense(diagonals[..., 0, :], diagonals[..., 1, :], diagonals[..., 2, :]), x)


def products(d: Draw) -> Iterator[Case]:
    for ta in (False, True):
        for tb in (False, True):
            for m, k, n in ((2, 3, 4), (1, 1, 1), (17, 33, 5), (0, 2, 3), (2, 0, 3)):
                a, b = d.uniform((k, m) if ta else (m, k)), d.uniform((n, k) if tb else (k, n))
                attrs = {"transpose_a": ta, "transpose_b": tb, "a_is_sparse": ta, "b_is_sparse": not tb}
                yield Case([a * (np.abs(a) > 0.5), b], attrs)


def product(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool, **_: Any) -> np.ndarray:
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


def scans(d: Draw) -> Iterator[Case]:
    for shape, axis in (((1,), 0), ((17,), -1), ((2, 5), 0), ((2, 5), 1), ((2, 3, 4), 1), ((0, 3), 0), ((3, 0), 1)):
        for exclusive in (False, True):
            for reverse in (False, True):
                # Differences of infinities have no number: exclusive scans are differentiated by TensorFlow's own cases.
                yield Case([d.uniform(shape, -4, 4), np.array(axis)], {"exclusive": exclusive, "reverse": reverse}, gradient=not exclusive)


def scanned(x: np.ndarray, axis: np.ndarray, exclusive: bool, reverse: bool) -> np.ndarray:
    y = np.moveaxis(x, int(axis), 0)
    y = y[::-1] if reverse else y
    y = np.logaddexp.accumulate(y, 0) if y.shape[0] else y
    if exclusive and y.shape[0]:
        y = np.concatenate([np.full_like(y[:1], -np.inf), y[:-1]])
    return np.moveaxis(y[::-1] if reverse else y, 0, int(axis))


def volumes(d: Draw) -> Iterator[Case]:
    for shape, size, step in (((1, 3, 4, 3, 2), (2, 2, 3), (1, 2, 1)), ((2, 4, 3, 5, 1), (1, 3, 2), (2, 1, 3)), ((1, 2, 2, 2, 3), (2, 2, 2), (1, 1, 1))):
        for padding in ("SAME", "VALID"):
            yield Case([d.any(shape)], {"ksizes": [1, *size, 1], "strides": [1, *step, 1], "padding": padding})


def cut(x: np.ndarray, ksizes: list[int], strides: list[int], padding: str) -> np.ndarray:
    pads = [(0, 0)] * 5
    if padding == "SAME":
        for k in (1, 2, 3):
            total = max((-(-x.shape[k] // strides[k]) - 1) * strides[k] + ksizes[k] - x.shape[k], 0)
            pads[k] = (total // 2, total - total // 2)
    y = np.pad(x, pads)
    counts = [(y.shape[k] - ksizes[k]) // strides[k] + 1 for k in (1, 2, 3)]
    out = np.zeros((x.shape[0], *counts, int(np.prod(ksizes)) * x.shape[4]), x.dtype)
    for at in np.ndindex(*counts):
        window = tuple(slice(a * strides[k], a * strides[k] + ksizes[k]) for k, a in zip((1, 2, 3), at))
        out[(slice(None), *at)] = y[(slice(None), *window)].reshape(x.shape[0], -1)
    return out


def add_to(table: Table) -> None:
    table.add("MatrixExponential", squares(9), exponential, gradient=(0,), tolerance=64)
    table.add("MatrixLogarithm", near_one, by_eigenvalues(np.log), gradient=(0,), tolerance=256)
    table.add("MatrixSquareRoot", near_one, by_eigenvalues(np.sqrt), gradient=(0,), tolerance=64)
    table.add("TridiagonalMatMul", three_diagonals, times, gradient=(0, 1, 2, 3), tolerance=4)
    for pivoting in (False, True):
        table.add("TridiagonalSolve", equations(pivoting), solved, gradient=(0, 1), tolerance=256, note=f"pivoting {pivoting}")
    table.add("SparseMatMul", products, product, gradient=(0, 1), magnitude=True, gradient_tolerance=4000, note="bfloat16 rounds gradients")
    table.add("CumulativeLogsumexp", scans, scanned, gradient=(0,), tolerance=4)
    table.add("ExtractVolumePatches", volumes, cut, gradient=(0,))
