# SPDX-License-Identifier: Apache-2.0
"""Counting, and rows of different lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table

# Lengths of rows.
_ROWS: tuple[list[int], ...] = ([], [0], [5], [3, 0, 2], [1, 17, 4, 0, 33], [0, 0, 1])


def _splits(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths])


def counts(d: Draw) -> Iterator[Case]:
    for n, size in ((0, 3), (1, 1), (17, 5), (33, 40), (1025, 7)):
        values = d.integers((n,), 0, size)
        yield Case([values, np.array(size), d.uniform((n,), 1, 9)])
        yield Case([values, np.array(size), np.zeros(0)], label="no weights")
        yield Case([values, np.array(max(1, size // 2)), d.uniform((n,), 1, 9)], label="the rest is dropped")


def _bincount(values: np.ndarray, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.zeros(int(size), weights.dtype)
    kept = values < int(size)
    np.add.at(out, values[kept], weights[kept] if weights.size else 1)
    return out


def counts_of_rows(d: Draw) -> Iterator[Case]:
    for shape, size in (((0,), 3), ((17,), 5), ((1, 1), 1), ((3, 0), 2), ((5, 33), 7), ((2, 1025), 40)):
        values = d.integers(shape, 0, size + 1)
        for once in (False, True):
            yield Case([values, np.array(size), d.uniform(shape, 1, 9)], {"binary_output": once})
            yield Case([values, np.array(size), np.zeros(0)], {"binary_output": once}, label="no weights")


def _bincount_of_rows(values: np.ndarray, size: np.ndarray, weights: np.ndarray, binary_output: bool) -> np.ndarray:
    rows = np.atleast_2d(values)
    parts = np.atleast_2d(weights) if weights.size else [weights] * len(rows)
    out = np.array([_bincount(row, size, part) for row, part in zip(rows, parts)])
    if binary_output:
        out = np.array([np.isin(np.arange(int(size)), row) for row in rows]).astype(weights.dtype)
    return out.reshape(*values.shape[:-1], int(size))


def ragged(d: Draw) -> Iterator[Case]:
    for lengths, inner, shape in (
        ([3, 0, 2], (), [-1, -1]),
        ([3, 0, 2], (), [2, 4]),
        ([0, 0], (), [-1, -1]),
        ([], (), [3, 2]),
        ([1, 17, 4, 0, 33], (2,), [-1, 16, -1]),
        ([2, 5], (2, 3), -1),
    ):
        n = sum(lengths)
        splits, ids = np.cumsum([0, *lengths]), np.repeat(np.arange(len(lengths)), lengths)
        values = d.any((n, *inner))
        for default in (d.any(), d.any(inner[-1:])):
            as_splits = {"num_row_partition_tensors": 1, "row_partition_types": ["ROW_SPLITS"]}
            yield Case([np.array(shape), values, default, [splits]], as_splits)
            as_ids = {"num_row_partition_tensors": 2, "row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]}
            yield Case([np.array(shape), values, default, [np.array(len(lengths)), ids]], as_ids)
    rows_of_rows = {"num_row_partition_tensors": 2, "row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"]}
    yield Case([np.array([-1, -1, -1]), d.any((6,)), d.any(), [np.array([0, 2, 3]), np.array([0, 3, 3, 6])]], rows_of_rows)


def _ragged(shape: np.ndarray, values: np.ndarray, default: np.ndarray, partitions: list[np.ndarray], **attrs: Any) -> np.ndarray:
    if attrs["row_partition_types"][0] == "FIRST_DIM_SIZE":
        partitions = [np.searchsorted(partitions[1], np.arange(int(partitions[0]) + 1))]
    at: list[tuple[int, ...]] = [(row,) for row in range(len(partitions[0]) - 1)]
    dims = [len(at)]
    for splits in partitions:
        at = [(*outer, k) for outer, begin, end in zip(at, splits, splits[1:]) for k in range(end - begin)]
        dims.append(max((a[-1] + 1 for a in at), default=0))
    dims += values.shape[1:]
    if shape.ndim:
        dims = [own if asked < 0 else int(asked) for own, asked in zip(dims, shape)]
    out = np.empty(dims, values.dtype)
    out[...] = default
    for index, value in zip(at, values):
        if all(i < n for i, n in zip(index, dims)):
            out[index] = value
    return out


def ragged_counts(d: Draw) -> Iterator[Case]:
    for lengths, size in zip(_ROWS, (3, 1, 4, 5, 7, 0)):
        n = sum(lengths)
        values = d.integers((n,), 0, size + 2)
        for once in (False, True):
            for weights in (d.uniform((n,), 1, 9), np.zeros(0)):
                yield Case([_splits(lengths), values, np.array(size), weights], {"binary_output": once})


def _rows_of(splits: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    return [values[a:b] for a, b in zip(splits, splits[1:])]


def _ragged_bincount(splits: np.ndarray, values: np.ndarray, size: np.ndarray, weights: np.ndarray, binary_output: bool) -> np.ndarray:
    rows = _rows_of(splits, values)
    parts = _rows_of(splits, weights) if weights.size else [weights] * len(rows)
    out = [_bincount_of_rows(row, size, part, binary_output) for row, part in zip(rows, parts)]
    return np.array(out).reshape(len(rows), int(size))


def _coordinates(d: Draw, shape: tuple[int, ...], n: int) -> np.ndarray:
    at = np.sort(d.rng.choice(int(np.prod(shape)), n, replace=False))
    return np.stack(np.unravel_index(at, shape), 1).astype(np.int64)


def sparse_values(d: Draw) -> Iterator[list[np.ndarray]]:
    """Indices, values, shape, weights."""
    for shape, n in (((4,), 3), ((1,), 0), ((3, 4), 5), ((5, 33), 100), ((2, 3, 4), 9)):
        values = d.integers((n,), 0, 6)
        for weights in (d.uniform((n,), 1, 9), np.zeros(0)):
            yield [_coordinates(d, shape, n), values, np.array(shape), weights]


def sparse_counts(d: Draw) -> Iterator[Case]:
    for indices, values, shape, weights in sparse_values(d):
        for once in (False, True):
            yield Case([indices, values, shape, np.array(5), weights], {"binary_output": once})


def _as_ragged(indices: np.ndarray, shape: np.ndarray) -> np.ndarray:
    rows = indices[:, 0] if len(shape) > 1 else np.zeros(len(indices), np.int64)
    return np.searchsorted(rows, np.arange(int(shape[0] if len(shape) > 1 else 1) + 1))


def _sparse_bincount(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, size: np.ndarray, weights: np.ndarray, binary_output: bool) -> np.ndarray:
    out = _ragged_bincount(_as_ragged(indices, shape), values, size, weights, binary_output)
    return out if len(shape) > 1 else out[0]


_LENGTHS: tuple[dict[str, int], ...] = ({}, {"minlength": 9}, {"maxlength": 4}, {"minlength": 2, "maxlength": 3})


def listed_rows(d: Draw) -> Iterator[Case]:
    for shape in ((0,), (17,), (1, 1), (3, 0), (5, 33)):
        values = d.integers(shape, 0, 6)
        for attrs in _LENGTHS:
            for weights, once in ((d.uniform(shape, 1, 9), False), (np.zeros(0), False), (np.zeros(0), True)):
                yield Case([values, weights], attrs | {"binary_output": once})


def listed_sparse(d: Draw) -> Iterator[Case]:
    for case in sparse_values(d):
        for attrs in _LENGTHS:
            yield Case(case, attrs | {"binary_output": False})


def listed_ragged(d: Draw) -> Iterator[Case]:
    for lengths in _ROWS:
        values = d.integers((sum(lengths),), 0, 6)
        for attrs in _LENGTHS:
            yield Case([_splits(lengths), values, d.uniform(values.shape, 1, 9)], attrs | {"binary_output": False})
            yield Case([_splits(lengths), values, np.zeros(0)], attrs | {"binary_output": True})


def _listed(rows: list[np.ndarray], weights: list[np.ndarray], is_matrix: bool, attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    most = attrs.get("maxlength", -1)
    found: dict[tuple[int, int], Any] = {}
    for r, row in enumerate(rows):
        for i, value in enumerate(row):
            if most < 0 or value < most:
                key = (r, int(value))
                found[key] = 1 if attrs["binary_output"] else found.get(key, 0) + (weights[r][i] if weights[r].size else 1)
    keys = sorted(found)
    size = most if most >= 0 else max([k[1] + 1 for k in keys] + [1, attrs.get("minlength", -1)])
    indices = np.array(keys, np.int64).reshape(-1, 2)
    shape = np.array([len(rows), size])
    return (indices if is_matrix else indices[:, 1:]), np.array([found[k] for k in keys]), (shape if is_matrix else shape[1:])


def _dense_listed(values: np.ndarray, weights: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    rows = list(np.atleast_2d(values))
    parts = list(np.atleast_2d(weights)) if weights.size else [weights] * len(rows)
    return _listed(rows, parts, values.ndim == 2, attrs)


def _ragged_listed(splits: np.ndarray, values: np.ndarray, weights: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    rows = _rows_of(splits, values)
    return _listed(rows, _rows_of(splits, weights) if weights.size else [weights] * len(rows), True, attrs)


def _sparse_listed(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, weights: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    out = _ragged_listed(_as_ragged(indices, shape), values, weights, **attrs)
    return out if len(shape) > 1 else (out[0][:, 1:], out[1], out[2][1:])


def ranges(d: Draw) -> Iterator[Case]:
    yield Case([np.array([0, 5, 8]), np.array([3, 5, 12]), np.array([1, 1, 2])])
    yield Case([np.array(7), np.array([3, 9, 8, 7]), np.array(1)])
    yield Case([np.array([9, -3]), np.array(-8), np.array([-4, -1])])
    yield Case([np.array(0), np.array(100), np.array(3)])
    yield Case([np.zeros(0), np.zeros(0), np.zeros(0)])


def _ranges(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts, limits, deltas = np.broadcast_arrays(*(np.atleast_1d(g) for g in given))
    rows = [np.arange(a, b, c) for a, b, c in zip(starts, limits, deltas)]
    return _splits([len(r) for r in rows]), np.concatenate(rows) if rows else np.zeros(0)


def gathered(d: Draw) -> Iterator[Case]:
    for lengths in _ROWS[1:]:
        for inner in ((), (2, 3)):
            for shape in ((), (0,), (4,), (2, 3)):
                at = d.integers(shape, 0, len(lengths))
                values = d.any((sum(lengths), *inner))
                yield Case([[_splits(lengths)], values, at], {"PARAMS_RAGGED_RANK": 1, "OUTPUT_RAGGED_RANK": len(shape)})
    nested = [np.array([0, 2, 2, 3]), np.array([0, 3, 3, 6])]
    yield Case([nested, d.any((6,)), np.array([2, 0, 1, 2])], {"PARAMS_RAGGED_RANK": 2, "OUTPUT_RAGGED_RANK": 2})
    yield Case([nested, d.any((6,)), np.array(0)], {"PARAMS_RAGGED_RANK": 2, "OUTPUT_RAGGED_RANK": 1})


def _nested(splits: list[np.ndarray], values: Any) -> list[Any]:
    for level in reversed(splits):
        values = [values[a:b] for a, b in zip(level, level[1:])]
    return values


def _gathered(splits: list[np.ndarray], values: np.ndarray, indices: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    rows = _nested(splits, np.arange(len(values)))

    def take(at: np.ndarray) -> Any:
        return [take(a) for a in at] if at.ndim else rows[int(at)]

    level, out = take(indices), []
    for d in range(attrs["OUTPUT_RAGGED_RANK"]):
        out.append(np.arange(indices.shape[0] + 1) * indices.shape[1] if d + 1 < indices.ndim else _splits([len(row) for row in level]))
        level = [value for row in level for value in row]
    return (*out, values[np.array(level, np.int64)])


def listed(d: Draw) -> Iterator[Case]:
    for lengths in _ROWS:
        for inner in ((), (2, 3), (0,)):
            yield Case([[_splits(lengths)], d.any((sum(lengths), *inner))], {"RAGGED_RANK": 1})
    yield Case([[np.array([0, 2, 2, 3]), np.array([0, 3, 3, 6])], d.any((6, 2))], {"RAGGED_RANK": 2})


def _coordinates_of(splits: list[np.ndarray], values: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    at: list[tuple[int, ...]] = [(row,) for row in range(len(splits[0]) - 1)]
    dims = [len(at)]
    for level in splits:
        dims.append(max(np.diff(level), default=0))
        at = [(*outer, k) for outer, begin, end in zip(at, level, level[1:]) for k in range(end - begin)]
    inner = list(np.ndindex(*values.shape[1:]))
    whole = [(*a, *i) for a in at for i in inner]
    dims += values.shape[1:]
    return np.array(whole, np.int64).reshape(-1, len(dims)), values.reshape(-1), np.array(dims)


def add_to(table: Table) -> None:
    table.add("Bincount", counts, _bincount, tolerance=8)
    table.add("DenseBincount", counts_of_rows, _bincount_of_rows, tolerance=8)
    table.add("RaggedTensorToTensor", ragged, _ragged)
    table.add("RaggedBincount", ragged_counts, _ragged_bincount, tolerance=8)
    table.add("SparseBincount", sparse_counts, _sparse_bincount, tolerance=8)
    table.add("DenseCountSparseOutput", listed_rows, _dense_listed, tolerance=8)
    table.add("SparseCountSparseOutput", listed_sparse, _sparse_listed, tolerance=8)
    table.add("RaggedCountSparseOutput", listed_ragged, _ragged_listed, tolerance=8)
    table.add("RaggedRange", ranges, _ranges)
    table.add("RaggedGather", gathered, _gathered, gradient=(1,))
    table.add("RaggedTensorToSparse", listed, _coordinates_of, gradient=(1,))
