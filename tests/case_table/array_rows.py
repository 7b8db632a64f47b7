# SPDX-License-Identifier: Apache-2.0
"""Ops that cut, join and reorder arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from table import SHAPES, Case, Draw, Table

_TRANSPOSED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((5,), (0,)),
    ((0, 3), (1, 0)),
    ((1, 1), (1, 0)),
    ((15, 17), (1, 0)),
    ((16, 16), (1, 0)),
    ((33, 31), (1, 0)),
    ((2, 3, 4), (2, 0, 1)),
    ((2, 3, 4), (0, 2, 1)),
    ((2, 3, 4), (1, 0, 2)),
    ((1, 1025), (1, 0)),
    ((2, 3, 4, 5), (3, 1, 0, 2)),
    ((2, 2, 2, 2, 3), (4, 2, 0, 1, 3)),
    ((2, 1, 3, 1), (0, 1, 2, 3)),
)


def same(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)])


def transposes(d: Draw) -> Iterator[Case]:
    for shape, order in _TRANSPOSED:
        yield Case([d.any(shape), np.array(order, np.int64)])


def _joined() -> Iterator[tuple[list[tuple[int, ...]], int]]:
    yield [(3,), (4,)], 0
    yield [(1,), (0,), (17,)], -1
    yield [(0,), (0,)], 0
    yield [(2, 3), (2, 1), (2, 16)], 1
    yield [(2, 3), (5, 3)], -2
    yield [(2, 31, 2), (2, 33, 2), (2, 1, 2)], 1
    yield [(2, 0), (2, 0)], 1
    yield [(1025,), (1,)], 0


def joins(d: Draw) -> Iterator[Case]:
    for shapes, axis in _joined():
        yield Case([[d.any(s) for s in shapes], np.array(axis)])


def joins_axis_first(d: Draw) -> Iterator[Case]:
    for shapes, axis in _joined():
        if axis >= 0:
            yield Case([np.array(axis), [d.any(s) for s in shapes]])


def offsets(d: Draw) -> Iterator[Case]:
    yield Case([np.array(1), [np.array([2, 3]), np.array([2, 4]), np.array([2, 1])]])
    yield Case([np.array(0), [np.array([0]), np.array([5])]])


def _offsets(axis: np.ndarray, shapes: list[np.ndarray]) -> list[np.ndarray]:
    out, total = [], 0
    for shape in shapes:
        row = np.zeros_like(shape)
        row[int(axis)] = total
        total += int(shape[int(axis)])
        out.append(row)
    return out


def packs(d: Draw) -> Iterator[Case]:
    for shape, axis in (((), 0), ((3,), 0), ((3,), 1), ((3,), -1), ((0,), 0), ((2, 17), 1), ((33, 2), 2), ((1025,), 0)):
        for count in (1, 3):
            yield Case([[d.any(shape) for _ in range(count)]], {"axis": axis})


def unpacks(d: Draw) -> Iterator[Case]:
    for shape, axis in (((3,), 0), ((1, 5), 0), ((2, 17), 1), ((4, 0), 0), ((2, 3, 5), -1), ((33, 2), 0), ((101, 3), 1), ((5, 9, 4), 2)):
        yield Case([d.any(shape)], {"num": shape[axis], "axis": axis})


def _unpack(x: np.ndarray, num: int, axis: int) -> list[np.ndarray]:
    return [np.take(x, i, axis) for i in range(num)]


def splits(d: Draw) -> Iterator[Case]:
    for shape, axis, count in (((4,), 0, 2), ((4,), 0, 1), ((2, 6), 1, 3), ((34, 3), 0, 2), ((2, 0, 3), 0, 2), ((3, 32), -1, 2), ((101, 6), 1, 3)):
        yield Case([np.array(axis), d.any(shape)], {"num_split": count})


def _split(axis: np.ndarray, x: np.ndarray, num_split: int) -> list[np.ndarray]:
    return np.split(x, num_split, int(axis))


def uneven_splits(d: Draw) -> Iterator[Case]:
    for shape, axis, sizes in (
        ((5,), 0, [2, 3]),
        ((5,), 0, [2, -1]),
        ((2, 17), 1, [1, 16, 0]),
        ((33, 2), 0, [33]),
        ((0,), 0, [0, 0]),
        ((3, 9), -1, [-1, 4, 5]),
    ):
        yield Case([d.any(shape), np.array(sizes), np.array(axis)], {"num_split": len(sizes)})


def _split_sizes(x: np.ndarray, sizes: np.ndarray, axis: np.ndarray, num_split: int) -> list[np.ndarray]:
    total = x.shape[int(axis)]
    known = [int(s) if s >= 0 else total - int(sizes[sizes >= 0].sum()) for s in sizes]
    return np.split(x, np.cumsum(known)[:-1], int(axis))


def slices(d: Draw) -> Iterator[Case]:
    for shape, begin, size in (
        ((), [], []),
        ((5,), [1], [3]),
        ((5,), [0], [-1]),
        ((5,), [5], [0]),
        ((17, 16), [1, 2], [16, 5]),
        ((17, 16), [0, 3], [-1, -1]),
        ((3, 0), [1, 0], [2, 0]),
        ((2, 3, 33), [1, 0, 1], [1, 3, 31]),
        ((1025,), [1], [1023]),
    ):
        yield Case([d.any(shape), np.array(begin, np.int64), np.array(size, np.int64)])


def _slice(x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    return x[tuple(slice(int(b), int(b + s) if s >= 0 else None) for b, s in zip(begin, size))]


# Shape, begin, end, strides, then the masks begin, end, ellipsis, new_axis, shrink_axis.
_STRIDED: tuple[tuple[Any, ...], ...] = (
    ((5,), [1], [4], [1], 0, 0, 0, 0, 0),
    ((5,), [-1], [0], [-1], 0, 1, 0, 0, 0),
    ((5,), [0], [0], [2], 1, 1, 0, 0, 0),
    ((5,), [2], [3], [1], 0, 0, 0, 0, 1),
    ((4, 17), [1, 2], [3, 16], [1, 3], 0, 0, 0, 0, 0),
    ((4, 17), [0, 16], [4, 1], [2, -4], 0, 0, 0, 0, 0),
    ((2, 3, 5), [0, 1], [0, 2], [1, 1], 0, 0, 1, 0, 0),
    ((2, 3, 5), [1, 0, 1], [2, 0, 4], [1, 1, 2], 0, 0, 2, 0, 1),
    ((2, 3), [0, 0, 0], [2, 0, 3], [1, 1, 1], 0, 0, 0, 2, 0),
    ((0, 3), [0, 0], [0, 2], [1, 1], 1, 1, 0, 0, 0),
    ((33,), [31], [1], [1], 0, 0, 0, 0, 0),
    ((1025,), [3], [1024], [7], 0, 0, 0, 0, 0),
    ((3, 4), [-100, -2], [100, 100], [1, 1], 0, 0, 0, 0, 0),
    ((), [], [], [], 0, 0, 0, 0, 0),
)
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def strided_slices(d: Draw) -> Iterator[Case]:
    for shape, begin, end, strides, *masks in _STRIDED:
        at = [np.array(v, np.int64) for v in (begin, end, strides)]
        yield Case([d.any(shape), *at], dict(zip(_MASKS, masks)))


def index_of(begin: np.ndarray, end: np.ndarray, strides: np.ndarray, masks: dict[str, int]) -> tuple[Any, ...]:
    index: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist())):
        if masks["ellipsis_mask"] >> i & 1:
            index.append(Ellipsis)
        elif masks["new_axis_mask"] >> i & 1:
            index.append(None)
        elif masks["shrink_axis_mask"] >> i & 1:
            index.append(b)
        else:
            index.append(slice(None if masks["begin_mask"] >> i & 1 else b, None if masks["end_mask"] >> i & 1 else e, s))
    return tuple(index)


def _strided(x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, **masks: int) -> np.ndarray:
    return x[index_of(begin, end, strides, masks)]


def strided_slice_gradients(d: Draw) -> Iterator[Case]:
    for case in strided_slices(d):
        shape = np.array(case.inputs[0].shape, np.int64)
        yield Case([shape, *case.inputs[1:], d.any(_strided(*case.inputs, **case.attrs).shape)], case.attrs)


def _strided_gradient(shape: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, dy: np.ndarray, **masks: int) -> np.ndarray:
    out: np.ndarray = np.zeros(shape.tolist(), dy.dtype)
    if dy.dtype == object:
        out[...] = b""
    out[index_of(begin, end, strides, masks)] = dy[()]
    return out


def gathers(d: Draw) -> Iterator[Case]:
    for shape, picked in (((1,), ()), ((5,), (17,)), ((5, 3), (2, 2)), ((17, 16), (33,)), ((3, 0), (4,)), ((4, 2), (0,)), ((9, 1025), (3,)), ((2, 3, 4), (5,))):
        yield Case([d.any(shape), d.integers(picked, 0, shape[0])])


def axis_gathers(d: Draw) -> Iterator[Case]:
    for case in gathers(d):
        yield Case([*case.inputs, np.array(0)])
    for shape, axis, picked in (((2, 5), 1, (3,)), ((2, 5, 17), 1, (2, 2)), ((3, 33), -1, (31,)), ((2, 3, 4), 2, ())):
        yield Case([d.any(shape), d.integers(picked, 0, shape[axis]), np.array(axis)])
    yield Case([d.any((3, 5, 2)), d.integers((3, 4), 0, 5), np.array(1)], {"batch_dims": 1})


def _gather(x: np.ndarray, indices: np.ndarray, axis: Any = 0, batch_dims: int = 0) -> np.ndarray:
    if batch_dims:
        return np.stack([np.take(row, i, int(axis) - 1) for row, i in zip(x, indices)])
    return np.take(x, indices, int(axis))


_POINTS: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...] = (
    ((5,), (3,), 1),
    ((5, 3), (17,), 2),
    ((5, 3), (2, 2), 1),
    ((4, 16), (33,), 1),
    ((3, 4, 5), (), 3),
    ((3, 4, 5), (6,), 2),
    ((3, 2), (4,), 0),
    ((5, 0), (0,), 1),
    ((5,), (0,), 1),
)


def _points(d: Draw, shape: Sequence[int], lead: Sequence[int], depth: int, distinct: bool = False) -> np.ndarray:
    count = int(np.prod(lead, dtype=np.int64))
    space = shape[:depth]
    size = int(np.prod(space, dtype=np.int64))
    flat = d.rng.permutation(size)[:count] if distinct else d.rng.integers(0, max(1, size), count)
    return np.stack(np.unravel_index(flat, space), -1).reshape(*lead, depth) if depth else np.zeros((*lead, 0), np.int64)


def point_gathers(d: Draw) -> Iterator[Case]:
    for shape, lead, depth in _POINTS:
        yield Case([d.any(shape), _points(d, shape, lead, depth)], gradient=depth > 0)


def _gather_points(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    rest = x.shape[indices.shape[-1] :]
    rows = [x[tuple(i)] for i in indices.reshape(int(np.prod(indices.shape[:-1], dtype=np.int64)), indices.shape[-1])]
    out = np.empty((len(rows), *rest), x.dtype)
    for k, row in enumerate(rows):
        out[k] = row
    return out.reshape((*indices.shape[:-1], *rest))


_SPREAD: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...] = (
    ((5,), (3,), 1),
    ((5, 3), (7,), 2),
    ((17, 3), (2, 2), 1),
    ((33, 16), (31,), 1),
    ((3, 4, 5), (1,), 3),
    ((4, 0), (0,), 1),
    ((5,), (0,), 1),
    ((1025,), (513,), 1),
)


def point_scatters(repeats: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        adds = repeats and d.kind in "fciu"
        for shape, lead, depth in _SPREAD:
            indices = _points(d, shape, lead, depth, distinct=not adds)
            updates = d.uniform((*lead, *shape[depth:]), 1, 9) if adds else d.any((*lead, *shape[depth:]))
            yield Case([indices, updates, np.array(shape)])

    return cases


def _scatter_points(indices: np.ndarray, updates: np.ndarray, shape: np.ndarray) -> np.ndarray:
    out: np.ndarray = np.zeros(shape.tolist(), updates.dtype)
    if updates.dtype == object:
        out[...] = b""
    return spread(out, indices, updates, lambda old, new: new if updates.dtype.kind == "b" else old + new)


def spread(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, combine: Any) -> np.ndarray:
    out = x.copy()
    depth = indices.shape[-1]
    count = int(np.prod(indices.shape[:-1], dtype=np.int64))
    for at, update in zip(indices.reshape(count, depth), updates.reshape((count, *x.shape[depth:]))):
        out[tuple(at)] = combine(out[tuple(at)], update)
    return out


def tensor_scatters(distinct: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, lead, depth in _SPREAD:
            indices = _points(d, shape, lead, depth, distinct)
            update = (*lead, *shape[depth:])
            yield Case([d.any(shape) if distinct else d.uniform(shape, 1, 9), indices, d.any(update) if distinct else d.uniform(update, 1, 9)])

    return cases


def extreme_scatters(d: Draw) -> Iterator[Case]:
    """All numbers are far from each other."""
    for shape, lead, depth in _SPREAD:
        update = (*lead, *shape[depth:])
        size = int(np.prod(shape, dtype=np.int64))
        values = d.apart((size + int(np.prod(update, dtype=np.int64)),), -90, 90)
        yield Case([values[:size].reshape(shape), _points(d, shape, lead, depth, False), values[size:].reshape(update)])


_PADDED: tuple[tuple[tuple[int, ...], list[list[int]]], ...] = (
    ((), []),
    ((3,), [[0, 0]]),
    ((3,), [[2, 1]]),
    ((0,), [[2, 3]]),
    ((17, 16), [[1, 0], [0, 31]]),
    ((2, 3, 4), [[1, 1], [0, 0], [2, 1]]),
    ((2, 2, 2, 2), [[0, 1], [1, 0], [0, 0], [3, 3]]),
    ((1, 33), [[0, 2], [1, 1]]),
    ((1025,), [[5, 6]]),
)


def pads(d: Draw) -> Iterator[Case]:
    for shape, widths in _PADDED:
        yield Case([d.any(shape), np.array(widths, np.int64).reshape(-1, 2)])


def pads_with_value(d: Draw) -> Iterator[Case]:
    for shape, widths in _PADDED:
        yield Case([d.any(shape), np.array(widths, np.int64).reshape(-1, 2), d.any(())])


def _pad(x: np.ndarray, widths: np.ndarray, value: Any = None) -> np.ndarray:
    fill = value if value is not None else b"" if x.dtype == object else x.dtype.type(0)
    if not x.ndim:
        return x
    return np.pad(x, widths.tolist(), constant_values=np.asarray(fill)[()] if x.dtype != object else fill)


_MIRRORED: tuple[tuple[tuple[int, ...], list[list[int]]], ...] = (
    ((3,), [[0, 0]]),
    ((3,), [[2, 1]]),
    ((17, 16), [[1, 0], [0, 15]]),
    ((3, 4, 5), [[1, 1], [0, 0], [2, 3]]),
    ((33,), [[31, 32]]),
)


def mirrored(d: Draw) -> Iterator[Case]:
    for shape, widths in _MIRRORED:
        for mode in ("REFLECT", "SYMMETRIC"):
            yield Case([d.any(shape), np.array(widths)], {"mode": mode})


def _mirror(x: np.ndarray, widths: np.ndarray, mode: str) -> np.ndarray:
    return np.pad(x, widths.tolist(), mode=mode.lower())  # type: ignore[call-overload]


def mirror_gradients(d: Draw) -> Iterator[Case]:
    for shape, widths in _MIRRORED:
        for mode in ("REFLECT", "SYMMETRIC"):
            padded = tuple(n + w[0] + w[1] for n, w in zip(shape, widths))
            yield Case([d.uniform(padded, 1, 9), np.array(widths)], {"mode": mode})


def _mirror_gradient(g: np.ndarray, widths: np.ndarray, mode: str) -> np.ndarray:
    shape = [n - int(w.sum()) for n, w in zip(g.shape, widths)]
    source = _mirror(np.arange(int(np.prod(shape))).reshape(shape), widths, mode)
    out = np.zeros(int(np.prod(shape)), g.dtype)
    np.add.at(out, source.ravel(), g.ravel())
    return out.reshape(shape)


def tiles(d: Draw) -> Iterator[Case]:
    for shape, times in (
        ((), []),
        ((3,), [2]),
        ((3,), [0]),
        ((1,), [17]),
        ((0,), [3]),
        ((2, 3), [2, 1]),
        ((16, 1), [1, 33]),
        ((2, 3, 4), [1, 2, 3]),
        ((31,), [33]),
    ):
        yield Case([d.any(shape), np.array(times, np.int64)])


def _tile(x: np.ndarray, times: np.ndarray) -> np.ndarray:
    return np.tile(x, times.tolist()) if x.ndim else x


def tile_gradients(d: Draw) -> Iterator[Case]:
    for shape, times in (((3,), [2]), ((2, 3), [2, 1]), ((16, 1), [1, 5]), ((2, 3, 4), [1, 2, 3])):
        yield Case([d.uniform([n * t for n, t in zip(shape, times)], 1, 9), np.array(times)], gradient=False)


def _tile_gradient(g: np.ndarray, times: np.ndarray) -> np.ndarray:
    split = [n for pair in zip(times.tolist(), (s // t for s, t in zip(g.shape, times.tolist()))) for n in pair]
    return g.reshape(split).sum(tuple(range(0, len(split), 2)))


def reshapes(d: Draw) -> Iterator[Case]:
    for shape, to in (((), [1]), ((1,), []), ((6,), [2, 3]), ((6,), [-1, 2]), ((2, 0), [0, 5]), ((33, 2), [66]), ((2, 3, 4), [4, -1])):
        yield Case([d.any(shape), np.array(to, np.int64)])


def expansions(d: Draw) -> Iterator[Case]:
    for shape, axis in (((), 0), ((3,), 0), ((3,), -1), ((0,), 1), ((2, 3), 1), ((2, 3), -3)):
        yield Case([d.any(shape), np.array(axis)])


def squeezes(d: Draw) -> Iterator[Case]:
    for shape, axes in (((), []), ((1,), []), ((1, 3, 1), []), ((1, 3, 1), [0]), ((1, 3, 1), [-1]), ((1, 0, 1), [0, 2])):
        yield Case([d.any(shape)], {"squeeze_dims": axes})


def _squeeze(x: np.ndarray, squeeze_dims: list[int]) -> np.ndarray:
    return np.squeeze(x, tuple(squeeze_dims) if squeeze_dims else None)


def broadcasts(d: Draw) -> Iterator[Case]:
    for shape, to in (((), [3]), ((1,), [17]), ((3,), [3]), ((3, 1), [3, 5]), ((1, 0), [4, 0]), ((2, 1), [4, 2, 3]), ((16,), [33, 16])):
        yield Case([d.any(shape), np.array(to)])


def flips(d: Draw) -> Iterator[Case]:
    for shape, axes in (((1,), [0]), ((0,), [0]), ((17,), [0]), ((33, 2), [0]), ((2, 33), [-1]), ((2, 3, 5), [0, 2]), ((2, 3), []), ((4, 1, 3), [2, 0])):
        yield Case([d.any(shape), np.array(axes, np.int64)])


def flips_by_flag(d: Draw) -> Iterator[Case]:
    for case in flips(d):
        flags = np.zeros(case.inputs[0].ndim, bool)
        flags[case.inputs[1]] = True
        yield Case([case.inputs[0], flags])


def sequences(d: Draw) -> Iterator[Case]:
    for shape, seq, batch in (((3, 5), 1, 0), ((5, 3), 0, 1), ((2, 17, 4), 1, 0), ((4, 2, 33), 2, 1), ((0, 4), 1, 0)):
        yield Case([d.any(shape), d.integers((shape[batch],), 0, shape[seq] + 1)], {"seq_dim": seq, "batch_dim": batch})


def _reverse_sequence(x: np.ndarray, lengths: np.ndarray, seq_dim: int, batch_dim: int) -> np.ndarray:
    out = np.moveaxis(x, (batch_dim, seq_dim), (0, 1)).copy()
    for row, n in zip(out, lengths.tolist()):
        row[:n] = row[:n][::-1].copy()
    return np.moveaxis(out, (0, 1), (batch_dim, seq_dim))


def rolls(d: Draw) -> Iterator[Case]:
    for shape, shift, axis in (
        ((5,), [2], [0]),
        ((5,), [-7], [0]),
        ((0,), [1], [0]),
        ((3, 17), [1, 5], [0, 1]),
        ((3, 4), [1, 2], [1, 1]),
        ((33, 2), [40], [-2]),
    ):
        yield Case([d.any(shape), np.array(shift), np.array(axis)])


def _roll(x: np.ndarray, shift: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.roll(x, tuple(shift.tolist()), tuple(axis.tolist()))


def add_to(table: Table) -> None:
    table.add("Identity", same, lambda x: x, gradient=(0,))
    for op in ("Snapshot", "StopGradient"):
        table.add(op, same, lambda x: x)
    table.add("Transpose", transposes, lambda x, order: np.transpose(x, order), gradient=(0,))
    table.add("ConjugateTranspose", transposes, lambda x, order: np.transpose(np.conj(x) if x.dtype.kind == "c" else x, order), gradient=(0,))
    table.add("ConcatV2", joins, lambda v, axis: np.concatenate(v, int(axis)), gradient=(0, 1))
    table.add("Concat", joins_axis_first, lambda axis, v: np.concatenate(v, int(axis)), gradient=(1, 2))
    table.add("ConcatOffset", offsets, _offsets)
    table.add("Pack", packs, lambda v, axis: np.stack(v, axis), gradient=(0,))
    table.add("Unpack", unpacks, _unpack, gradient=(0,))
    table.add("Split", splits, _split, gradient=(1,))
    table.add("SplitV", uneven_splits, _split_sizes, gradient=(0,))
    table.add("Slice", slices, _slice, gradient=(0,))
    table.add("StridedSlice", strided_slices, _strided, gradient=(0,))
    table.add("StridedSliceGrad", strided_slice_gradients, _strided_gradient, gradient=(4,))
    table.add("Gather", gathers, _gather, gradient=(0,))
    table.add("GatherV2", axis_gathers, _gather, gradient=(0,))
    table.add("GatherNd", point_gathers, _gather_points, gradient=(0,))
    table.add("ScatterNd", point_scatters(repeats=True), _scatter_points, gradient=(1,), tolerance=8)
    table.add("TensorScatterUpdate", tensor_scatters(distinct=True), lambda x, i, u: spread(x, i, u, lambda a, b: b), gradient=(0, 2))
    for name, extreme in (("Max", np.maximum), ("Min", np.minimum)):
        table.add("TensorScatter" + name, extreme_scatters, lambda x, i, u, extreme=extreme: spread(x, i, u, extreme), gradient=(0, 2))
    table.add("TensorScatterAdd", tensor_scatters(distinct=False), lambda x, i, u: spread(x, i, u, lambda a, b: a + b), gradient=(0, 2), tolerance=8)
    table.add("TensorScatterSub", tensor_scatters(distinct=False), lambda x, i, u: spread(x, i, u, lambda a, b: a - b), gradient=(0, 2), tolerance=16)
    table.add("Pad", pads, _pad, gradient=(0,))
    table.add("PadV2", pads_with_value, _pad, gradient=(0,))
    table.add("MirrorPad", mirrored, _mirror, gradient=(0,))
    table.add("MirrorPadGrad", mirror_gradients, _mirror_gradient, gradient=(0,), tolerance=4)
    table.add("Tile", tiles, _tile, gradient=(0,))
    table.add("TileGrad", tile_gradients, _tile_gradient, tolerance=4)
    table.add("Reshape", reshapes, lambda x, to: x.reshape(to.tolist()), gradient=(0,))
    table.add("ExpandDims", expansions, lambda x, axis: np.expand_dims(x, int(axis)), gradient=(0,))
    table.add("Squeeze", squeezes, _squeeze, gradient=(0,))
    table.add("BroadcastTo", broadcasts, lambda x, to: np.broadcast_to(x, to.tolist()), gradient=(0,))
    table.add("ReverseV2", flips, lambda x, axes: np.flip(x, tuple(axes.tolist())), gradient=(0,), main="T")
    table.add("Reverse", flips_by_flag, lambda x, flags: np.flip(x, tuple(np.flatnonzero(flags).tolist())), gradient=(0,))
    table.add("ReverseSequence", sequences, _reverse_sequence, gradient=(0,))
    table.add("Roll", rolls, _roll, gradient=(0,))
