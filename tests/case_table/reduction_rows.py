# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, segments, ordering."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import Case, Cases, Draw, Table, real_gradient

# Shapes with the axes to reduce: whole, inner, outer, middle, none, empty, one element.
REDUCED: tuple[tuple[tuple[int, ...], list[int]], ...] = (
    ((), []),
    ((1,), [0]),
    ((0,), [0]),
    ((15,), [0]),
    ((16,), [-1]),
    ((17,), [0]),
    ((1025,), [0]),
    ((33, 31), [0]),
    ((33, 31), [1]),
    ((33, 31), [0, 1]),
    ((3, 17, 5), [1]),
    ((3, 17, 5), [0, 2]),
    ((3, 4, 5), []),
    ((0, 3), [0]),
    ((3, 0), [0]),
    ((3, 0), [1]),
    ((2, 1, 3, 1, 5), [1, 2, -1]),
    ((4, 257), [-1]),
)


def _times(d: Draw, shape: tuple[int, ...], low: float, high: float, apart: bool) -> np.ndarray:
    return d.apart(shape, low, high) if apart else d.uniform(shape, low, high)


def reduced(low: float, high: float, apart: bool = False, empty: bool = True) -> Cases:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, axes in REDUCED:
            if not empty and 0 in shape:
                continue
            for keep in (False, True):
                yield Case([_times(d, shape, low, high, apart), np.array(axes, np.int64)], {"keep_dims": keep})
        yield Case([_times(d, (4, 5), low, high, apart), np.array(1)], label="a scalar axis")

    return cases


def _over(function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    def oracle(x: np.ndarray, axes: np.ndarray, keep_dims: bool = False) -> np.ndarray:
        return function(x, axis=tuple(int(a) for a in np.atleast_1d(axes)), keepdims=keep_dims, **more)

    return oracle


def _mean(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    count = np.prod([x.shape[a] for a in axis], dtype=np.int64)
    total = np.sum(x, axis=axis, keepdims=keepdims)
    if x.dtype.kind in "fc":
        return total / np.float64(count)
    return np.where(count == 0, 0, (np.sign(total) if x.dtype.kind == "i" else 1) * (np.abs(total) // max(1, count)))


def booleans(d: Draw) -> Iterator[Case]:
    for shape, axes in REDUCED:
        for share in (0.1, 0.9):
            for keep in (False, True):
                yield Case([d.rng.random(shape) < share, np.array(axes, np.int64)], {"keep_dims": keep})


def arguments(d: Draw) -> Iterator[Case]:
    for shape, axis in (
        ((1,), 0),
        ((15,), 0),
        ((16,), -1),
        ((17,), 0),
        ((1025,), 0),
        ((33, 31), 0),
        ((33, 31), 1),
        ((3, 17, 5), 1),
        ((0, 3), 1),
        ((2, 1, 3), -2),
        ((513, 7), 0),
    ):
        yield Case([d.apart(shape, -90, 90), np.array(axis)])
        yield Case([d.integers(shape, 0, 2), np.array(axis)], label="ties: the first wins")


def scans(low: float, high: float) -> Cases:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, axis in (
            ((1,), 0),
            ((0,), 0),
            ((15,), 0),
            ((16,), 0),
            ((17,), -1),
            ((33,), 0),
            ((1025,), 0),
            ((5, 33), 1),
            ((33, 5), 0),
            ((2, 7, 3), 1),
            ((2, 0, 3), 1),
            ((0, 3), 1),
        ):
            for exclusive in (False, True):
                for reverse in (False, True):
                    yield Case([d.uniform(shape, low, high), np.array(axis)], {"exclusive": exclusive, "reverse": reverse})

    return cases


def _scan(function: Callable[..., Any], neutral: int) -> Callable[..., Any]:
    def oracle(x: np.ndarray, axis: np.ndarray, exclusive: bool, reverse: bool) -> np.ndarray:
        x = np.flip(x, int(axis)) if reverse else x
        y = function(x, axis=int(axis), dtype=x.dtype)
        if exclusive:
            first = np.full_like(np.take(y, [], int(axis)), neutral, shape=[1 if a == int(axis) % x.ndim else n for a, n in enumerate(x.shape)])
            y = np.concatenate([first, y], int(axis)).take(range(x.shape[int(axis)]), int(axis))
        return np.flip(y, int(axis)) if reverse else y

    return oracle


SEGMENTED = ((1, ()), (2, (3,)), (15, ()), (16, (4,)), (17, (1,)), (33, (17,)), (64, (2, 3)), (0, (3,)), (5, (0,)), (1025, ()))


def sorted_segments(low: float, high: float, apart: bool = False) -> Cases:
    def cases(d: Draw) -> Iterator[Case]:
        for count, rest in SEGMENTED:
            ids = np.sort(d.rng.integers(0, max(1, count // 2), count))
            yield Case([_times(d, (count, *rest), low, high, apart), ids])
        yield Case([_times(d, (4, 2), low, high, apart), np.array([1, 1, 4, 4])], label="ids with gaps")
        most = 1 if d.kind in "iu" and high == 4 else high  # a sum of bytes must not wrap
        for width in (1, 3, 7, 16):
            values = _times(d, (170, width), low if most == high else 0, most, apart)
            yield Case([values, np.repeat([0, 1, 3], [140, 9, 21])], label="long segments of narrow rows", gradient=False)

    return cases


def full_segments(d: Draw) -> Iterator[Case]:
    """No segment is empty: what an extreme of nothing is depends on the dtype."""
    for count, rest in SEGMENTED:
        segments = max(1, count // 4) if count else 0
        ids = d.rng.permutation(np.concatenate([np.arange(segments), d.rng.integers(0, max(1, segments), count - segments)]))
        yield Case([d.apart((count, *rest), -90, 90), ids, np.array(segments)])


def _segments(combine: Callable[..., Any], nothing: float) -> Callable[..., Any]:
    def oracle(x: np.ndarray, ids: np.ndarray, count: np.ndarray | None = None) -> np.ndarray:
        ids_flat = ids.ravel()
        rows = x.reshape(ids_flat.size, *x.shape[ids.ndim :])
        segments = int(count) if count is not None else int(ids_flat[-1]) + 1 if ids_flat.size else 0
        out = np.full((segments, *rows.shape[1:]), nothing if x.dtype.kind == "f" or nothing in (0, 1) else 0, x.dtype)
        for s in range(segments):
            if (ids_flat == s).any():
                out[s] = combine(rows[ids_flat == s], axis=0)
        return out

    return oracle


def _segment_mean(x: np.ndarray, axis: int) -> np.ndarray:
    return np.mean(x, axis) if x.dtype.kind in "fc" else np.trunc(np.sum(x, axis) / len(x)).astype(x.dtype)


def unsorted_segments(low: float, high: float, apart: bool = False) -> Cases:
    def cases(d: Draw) -> Iterator[Case]:
        for count, rest in SEGMENTED:
            segments = max(4, count // 8)
            ids = d.rng.integers(0, segments, count)
            yield Case([_times(d, (count, *rest), low, high, apart), ids, np.array(segments)])
        yield Case([_times(d, (3, 2, 2), low, high, apart), np.array([[0, -1], [2, 2], [-1, 0]]), np.array(3)], label="negative ids drop")
        yield Case([_times(d, (3,), low, high, apart), np.array([0, 2, 2]), np.array(6)], label="gaps", gradient=low > 0)

    return cases


def sparse_segments(d: Draw) -> Iterator[Case]:
    for rows, picked, rest in ((3, 1, ()), (5, 4, (3,)), (9, 17, (16,)), (4, 33, (2, 2)), (7, 0, (3,)), (6, 5, (1,))):
        ids = np.sort(d.rng.integers(0, max(1, picked // 2), picked))
        yield Case([d.uniform((rows, *rest), 1, 9), d.integers((picked,), 0, rows), ids])


def with_segments(cases: Cases) -> Cases:
    def counted(d: Draw) -> Iterator[Case]:
        for case in cases(d):
            last = int(case.inputs[2][-1]) + 1 if len(case.inputs[2]) else 0
            for more in (0, 3):
                yield Case([*case.inputs, np.array(last + more)])

    return counted


def _sparse(power: float) -> Callable[..., Any]:
    def combine(x: np.ndarray, axis: int) -> np.ndarray:
        return np.sum(x, 0) if power == 0 else np.sum(x, 0) / len(x) ** power

    def oracle(data: np.ndarray, indices: np.ndarray, ids: np.ndarray, count: np.ndarray | None = None) -> np.ndarray:
        return _segments(combine, 0)(data[indices], ids, count)

    return oracle


def sparse_segment_gradients(d: Draw) -> Iterator[Case]:
    for case in sparse_segments(d):
        data, indices, ids = case.inputs
        segments = int(ids[-1]) + 1 if len(ids) else 0
        yield Case([d.uniform((segments, *data.shape[1:]), 1, 9), indices, ids, np.array(data.shape[0])], gradient=False)


def _sparse_gradient(power: float) -> Callable[..., Any]:
    def oracle(grad: np.ndarray, indices: np.ndarray, ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out = np.zeros((int(rows), *grad.shape[1:]), grad.dtype)
        for row, segment in zip(indices, ids):
            out[row] += grad[segment] / float((ids == segment).sum()) ** power
        return out

    return oracle


def top(d: Draw) -> Iterator[Case]:
    for shape, k in (
        ((1,), 1),
        ((1,), 0),
        ((15,), 3),
        ((16,), 16),
        ((17,), 5),
        ((33,), 1),
        ((1025,), 40),
        ((3, 31), 4),
        ((2, 3, 5), 2),
        ((0, 5), 2),
        ((4, 0), 0),
    ):
        yield Case([d.apart(shape, -90, 90), np.array(k)], {"sorted": True})
        yield Case([d.integers(shape, 0, 3), np.array(k)], {"sorted": True}, label="ties: the lower index first", gradient=False)


def top_by_attribute(d: Draw) -> Iterator[Case]:
    for case in top(d):
        yield Case(case.inputs[:1], {"k": int(case.inputs[1]), "sorted": True}, gradient=case.gradient)


def approximate_top(d: Draw) -> Iterator[Case]:
    for case in top(d):
        yield Case(case.inputs[:1], {"k": int(case.inputs[1])}, gradient=case.gradient)


def rows_to_fit(d: Draw) -> Iterator[Case]:
    for shape in ((1,), (7,), (3, 20), (2, 0), (2, 3, 5)):
        yield Case([d.uniform(shape, -9, 9)])


def _fitted(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By the min-max formula: of row i the least mean from some j <= i, of the largest to some k >= i (Robertson et al., 1988, 1.2)."""
    n = x.shape[-1]
    if n == 0:
        return x, x
    rows = x.reshape(-1, n)
    made = np.array([[min(max(np.mean(r[j : k + 1]) for k in range(i, n)) for j in range(i + 1)) for i in range(n)] for r in rows])
    runs = [np.cumsum(np.concatenate([[0], np.diff(r) < -1e-9])) for r in made]
    return made.reshape(x.shape), np.array(runs, np.int32).reshape(x.shape)


def _top(x: np.ndarray, k: Any, sorted: bool) -> tuple[np.ndarray, np.ndarray]:  # sorted: the attribute's name
    keys = -x if x.dtype.kind != "u" else x.max(initial=0) - x
    order = np.argsort(keys, axis=-1, kind="stable")[..., : int(k)]
    return np.take_along_axis(x, order, -1), order


def in_top(d: Draw) -> Iterator[Case]:
    for rows, classes, k in ((1, 1, 1), (5, 3, 2), (17, 31, 5), (33, 9, 1), (0, 4, 2)):
        yield Case([d.rng.normal(size=(rows, classes)), d.integers((rows,), 0, classes)], {"k": k})


def in_top_by_input(d: Draw) -> Iterator[Case]:
    for case in in_top(d):
        yield Case([*case.inputs, np.array(case.attrs["k"])])


def _in_top(predictions: np.ndarray, targets: np.ndarray, k: Any) -> np.ndarray:
    if not len(targets):
        return np.zeros(0, bool)
    return (predictions > np.take_along_axis(predictions, targets[:, None], 1)).sum(1) < k


def uniques(d: Draw) -> Iterator[Case]:
    for n in (0, 1, 15, 17, 33, 1025):
        yield Case([d.integers((n,), 0, 9)])


def uniques_along(d: Draw) -> Iterator[Case]:
    for shape, axis in (((5,), [0]), ((17,), []), ((6, 2), [0]), ((2, 9), [1]), ((2, 9), [-1])):
        yield Case([d.integers(shape, 0, 2), np.array(axis, np.int64)])


def _unique(x: np.ndarray, axis: Any = ()) -> tuple[np.ndarray, ...]:
    along = int(axis[0]) if len(axis) else 0
    parts = [np.take(x, i, along) for i in range(x.shape[along])]
    first: dict[Any, int] = {}
    index: list[int] = []
    kept: list[int] = []
    for i, part in enumerate(parts):
        key = tuple(np.asarray(part).ravel().tolist())
        if key not in first:
            first[key] = len(kept)
            kept.append(i)
        index.append(first[key])
    positions = np.array(index, np.int64)
    return np.take(x, kept, along), positions, np.bincount(positions, minlength=len(kept)).astype(np.int64)


def differences(d: Draw) -> Iterator[Case]:
    for n, m in ((0, 0), (1, 0), (0, 5), (17, 5), (33, 3), (1025, 40)):
        yield Case([d.integers((n,), 0, 40), d.integers((m,), 0, 40)])


def _difference(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.array([i for i, v in enumerate(x.tolist()) if v not in set(y.tolist())], np.int64)
    return x[kept], kept


def add_to(table: Table) -> None:
    table.add("Sum", reduced(-9, 9), _over(np.sum), gradient=(0,), magnitude=True, tolerance=4)
    table.add("Prod", reduced(0.9, 1.1), _over(np.prod), gradient=(0,), tolerance=64)
    table.add("Mean", reduced(-9, 9, empty=False), _over(_mean), gradient=(0,), magnitude=True, tolerance=4)
    table.add("Max", reduced(-90, 90, apart=True, empty=False), _over(np.max), gradient=(0,))
    table.add("Min", reduced(-90, 90, apart=True, empty=False), _over(np.min), gradient=(0,))
    table.add(
        "EuclideanNorm",
        real_gradient(reduced(1, 4)),
        _over(lambda x, axis, keepdims: np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims))),
        gradient=None,
        tolerance=8,
        dtypes=("float32", "float64", "complex64", "complex128"),
    )
    table.add("All", booleans, _over(np.all))
    table.add("Any", booleans, _over(np.any))
    table.add("ArgMax", arguments, lambda x, axis: np.argmax(x, int(axis)))
    table.add("ArgMin", arguments, lambda x, axis: np.argmin(x, int(axis)))
    table.add("Cumsum", scans(-9, 9), _scan(np.cumsum, 0), gradient=(0,), tolerance=64, magnitude=True)
    table.add("Cumprod", real_gradient(scans(0.97, 1.03)), _scan(np.cumprod, 1), gradient=(0,), tolerance=64)
    table.add("SegmentSum", sorted_segments(1, 4), _segments(np.sum, 0), gradient=(0,), tolerance=8)
    table.add("SegmentProd", sorted_segments(0.8, 1.25), _segments(np.prod, 1), gradient=None, tolerance=64)
    table.add("SegmentMean", sorted_segments(1, 4), _segments(_segment_mean, 0), gradient=(0,), tolerance=8)
    table.add("SegmentMax", sorted_segments(-90, 90, apart=True), _segments(np.max, 0), gradient=(0,))
    table.add("SegmentMin", sorted_segments(-90, 90, apart=True), _segments(np.min, 0), gradient=(0,))
    table.add("UnsortedSegmentSum", unsorted_segments(1, 4), _segments(np.sum, 0), gradient=(0,), tolerance=8)
    table.add("UnsortedSegmentProd", unsorted_segments(0.8, 1.25), _segments(np.prod, 1), gradient=(0,), tolerance=64)
    table.add("UnsortedSegmentMax", full_segments, _segments(np.max, 0), gradient=(0,))
    table.add("UnsortedSegmentMin", full_segments, _segments(np.min, 0), gradient=(0,))
    table.add("SegmentSumV2", unsorted_segments(1, 4), _segments(np.sum, 0), gradient=(0,), tolerance=8)
    table.add("SegmentProdV2", unsorted_segments(0.8, 1.25), _segments(np.prod, 1), gradient=(0,), tolerance=64)
    table.add("SegmentMaxV2", full_segments, _segments(np.max, 0), gradient=(0,))
    table.add("SegmentMinV2", full_segments, _segments(np.min, 0), gradient=(0,))
    for suffix, power in (("Sum", 0.0), ("Mean", 1.0), ("SqrtN", 0.5)):
        table.add(f"SparseSegment{suffix}", sparse_segments, _sparse(power), gradient=(0,), tolerance=8)
        table.add(f"SparseSegment{suffix}WithNumSegments", with_segments(sparse_segments), _sparse(power), gradient=(0,), tolerance=8)
        table.add(f"SparseSegment{suffix}Grad", sparse_segment_gradients, _sparse_gradient(power), tolerance=16)
    table.add("TopKV2", top, _top, gradient=(0,))
    table.add("TopK", top_by_attribute, _top, gradient=(0,))
    table.add("ApproxTopK", approximate_top, lambda x, k: _top(x, k, True), gradient=(0,))
    table.add("IsotonicRegression", rows_to_fit, _fitted, dtypes=("float32",), tolerance=4)
    table.add("InTopK", in_top, _in_top)
    table.add("InTopKV2", in_top_by_input, _in_top)
    table.add("Unique", uniques, lambda x: _unique(x)[:2])
    table.add("UniqueWithCounts", uniques, _unique)
    table.add("UniqueV2", uniques_along, lambda x, axis: _unique(x, axis)[:2])
    table.add("UniqueWithCountsV2", uniques_along, _unique)
    table.add("ListDiff", differences, _difference)
