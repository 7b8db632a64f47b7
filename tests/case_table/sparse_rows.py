# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: indices [n, rank], values [n], shape [rank]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from table import Case, Draw, Table

_SIZES: tuple[tuple[tuple[int, ...], int], ...] = (((4,), 0), ((1,), 1), ((17,), 5), ((5, 7), 11), ((3, 1, 4), 6))


def _places(d: Draw, shape: Sequence[int], count: int) -> np.ndarray:
    """`count` distinct places, in row-major order."""
    flat = np.sort(d.rng.permutation(int(np.prod(shape)))[:count])
    return np.stack(np.unravel_index(flat, shape), axis=1).astype(np.int64).reshape(count, len(shape))


def _dense(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    out = np.zeros(tuple(int(s) for s in shape), values.dtype)
    for at, value in zip(indices, values):
        out[tuple(at)] += value
    return out


def to_dense(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        yield Case([_places(d, shape, count), np.array(shape), d.any((count,)), d.any()])
        yield Case([_places(d, shape, count), np.array(shape), d.any(), d.any()], {"validate_indices": False})
    yield Case([np.array([1, 3]), np.array([6]), d.any((2,)), d.any()], label="a list of indices")
    yield Case([np.array(2), np.array([6]), d.any(), d.any()], label="one index")


def dense(indices: np.ndarray, shape: np.ndarray, values: np.ndarray, default: np.ndarray, **_: bool) -> np.ndarray:
    out = np.full(tuple(int(s) for s in shape), default, default.dtype)
    places = indices.reshape(-1, len(shape)) if indices.ndim < 2 else indices
    for i, at in enumerate(places):
        out[tuple(int(k) for k in at)] = values[()] if values.ndim == 0 else values[i]
    return out


def products(d: Draw) -> Iterator[Case]:
    for rows, inner, columns, count in ((2, 3, 4, 3), (1, 1, 1, 1), (5, 17, 33, 20), (3, 4, 2, 0), (4, 3, 0, 5)):
        for flags in range(4):
            adjoint_a, adjoint_b = bool(flags & 1), bool(flags & 2)
            shape = (inner, rows) if adjoint_a else (rows, inner)
            b = d.uniform((columns, inner) if adjoint_b else (inner, columns))
            attrs = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
            inputs = [_places(d, shape, count), d.uniform((count,)), np.array(shape), b]
            yield Case(inputs, attrs, gradient=d.kind != "c")


def product(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, b: np.ndarray, adjoint_a: bool, adjoint_b: bool) -> np.ndarray:
    a = _dense(indices, values, shape)
    return (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)


def unordered(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        mixed = d.rng.permutation(count)
        yield Case([_places(d, shape, count)[mixed], d.any((count,)), np.array(shape)])


def reordered(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort(indices.T[::-1]) if len(indices) else np.arange(0)
    return indices[order], values[order]


def sequences(d: Draw) -> Iterator[Case]:
    for batch, longest in ((1, 1), (3, 4), (2, 9)):
        for normalize in (True, False):
            inputs = []
            for _ in range(2):
                lengths = d.rng.integers(0, longest + 1, batch)
                at = [(b, i) for b in range(batch) for i in range(lengths[b])]
                indices = np.array(at, np.int64).reshape(len(at), 2)
                inputs += [indices, d.integers((len(at),), 0, 3), np.array([batch, longest])]
            yield Case(inputs, {"normalize": normalize})


def distances(*inputs: np.ndarray, normalize: bool) -> np.ndarray:
    batch = int(inputs[2][0])
    out = np.zeros(batch)
    for b in range(batch):
        have = inputs[1][inputs[0][:, 0] == b].tolist()
        want = inputs[4][inputs[3][:, 0] == b].tolist()
        row = list(range(len(want) + 1))
        for i, x in enumerate(have, 1):
            before, row = row, [i]
            for j, y in enumerate(want, 1):
                row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        out[b] = row[-1]
        if normalize:
            out[b] = row[-1] / len(want) if want else np.inf if have else 0
    return out


def add_to(table: Table) -> None:
    table.add("SparseToDense", to_dense, dense, main="T", gradient=(2, 3))
    table.add("SparseTensorDenseMatMul", products, product, main="T", gradient=(1, 3))
    table.add("SparseReorder", unordered, reordered, main="T", gradient=(1,))
    table.add("EditDistance", sequences, distances, main="T")
