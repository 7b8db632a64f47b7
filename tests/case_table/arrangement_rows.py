# SPDX-License-Identifier: Apache-2.0
"""Ops that make arrays, tell their shapes, or trade blocks, diagonals and partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import WITH_VALUES, DType, narrow, widen
from table import SHAPES, Case, Draw, Table


def any_shape(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)])


def shape_lists(d: Draw) -> Iterator[Case]:
    yield Case([[d.any(s) for s in SHAPES]])
    yield Case([[d.any((3,))]])


def fills(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([np.array(shape, np.int64), d.any(())])


def _fill(shape: np.ndarray, value: np.ndarray) -> np.ndarray:
    out = np.empty(shape.tolist(), value.dtype)
    out[...] = value[()]
    return out


def _zeros(x: np.ndarray) -> np.ndarray:
    return np.full(x.shape, b"", object) if x.dtype == object else np.zeros_like(x)


def ranges(d: Draw) -> Iterator[Case]:
    for start, limit, delta in ((0, 5, 1), (3, 3, 1), (10, 0, -3), (0, 17, 2), (2, 1025, 31), (-5, 6, 4)):
        yield Case([np.array(start), np.array(limit), np.array(delta)])
    if d.kind == "f":
        yield Case([np.array(0.5), np.array(4.0), np.array(0.25)])


def _range(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.arange(start.item(), limit.item(), delta.item())


def linear_spaces(d: Draw) -> Iterator[Case]:
    for start, stop, count in ((0.0, 1.0, 1), (0.0, 1.0, 2), (-3.0, 5.0, 17), (5.0, -3.0, 33), (2.0, 2.0, 4)):
        yield Case([np.array(start), np.array(stop), np.array(count)], gradient=False)


def one_hots(d: Draw) -> Iterator[Case]:
    for shape, depth, axis in (((), 3, -1), ((0,), 3, -1), ((5,), 1, -1), ((17,), 5, 0), ((2, 3), 4, 1), ((33,), 31, -1), ((3,), 0, -1)):
        yield Case([d.integers(shape, 0, max(1, depth)), np.array(depth), d.any(()), d.any(())], {"axis": axis})
    yield Case([np.array([5, 1, 9]), np.array(3), d.any(()), d.any(())], {"axis": -1}, label="beyond the depth")


def _one_hot(indices: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray, axis: int) -> np.ndarray:
    hit = np.moveaxis(indices[..., None] == np.arange(int(depth)), -1, axis)
    out = np.empty(hit.shape, on.dtype)
    out[...] = off[()]
    out[hit] = on[()]
    return out


_SQUARES: tuple[tuple[int, ...], ...] = ((1, 1), (3, 3), (2, 5), (5, 2), (17, 16), (2, 3, 4), (0, 3), (3, 0), (33, 1))


def matrices(d: Draw) -> Iterator[Case]:
    for shape in _SQUARES:
        yield Case([d.any(shape)])


def diagonals(d: Draw) -> Iterator[Case]:
    for shape in ((1,), (5,), (17,), (2, 3), (0,), (2, 0), (33, 2)):
        yield Case([d.any(shape)])


def new_diagonals(d: Draw) -> Iterator[Case]:
    for shape in _SQUARES:
        yield Case([d.any(shape), d.any((*shape[:-2], min(shape[-2:])))])


def _diagonal(x: np.ndarray) -> np.ndarray:
    return np.diagonal(x, 0, -2, -1)


def _with_diagonal(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    out = x.copy()
    at = np.arange(diagonal.shape[-1])
    out[..., at, at] = diagonal
    return out


def _matrix_of(diagonal: np.ndarray) -> np.ndarray:
    n = diagonal.shape[-1]
    return _with_diagonal(np.zeros((*diagonal.shape, n), diagonal.dtype), diagonal)


def bands(d: Draw) -> Iterator[Case]:
    for shape in _SQUARES:
        for low, high in ((0, 0), (-1, 0), (1, -1), (2, 1)):
            if low <= shape[-2] and high <= shape[-1]:
                yield Case([d.any(shape), np.array(low), np.array(high)])


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    offset = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    kept = ((int(low) < 0) | (-offset <= int(low))) & ((int(high) < 0) | (offset <= int(high)))
    return np.where(kept, x, np.zeros((), x.dtype))


def tensor_diagonals(d: Draw) -> Iterator[Case]:
    for shape in ((1,), (5,), (17,), (2, 3), (0,)):
        yield Case([d.any(shape)])


def doubled(d: Draw) -> Iterator[Case]:
    for shape in ((1,), (5,), (17,), (2, 3), (0,)):
        yield Case([d.any((*shape, *shape))])


def _tensor_diagonal(x: np.ndarray) -> np.ndarray:
    return np.diag(x.ravel()).reshape(x.shape * 2)


def _part_of_diagonal(x: np.ndarray) -> np.ndarray:
    shape = x.shape[: x.ndim // 2]
    n = int(np.prod(shape))
    return np.diagonal(x.reshape(n, n)).reshape(shape)


_BLOCKS = (((1, 2, 2, 1), 2), ((2, 4, 6, 3), 2), ((1, 6, 3, 17), 3), ((0, 2, 4, 2), 2), ((1, 4, 4, 80), 2), ((2, 8, 6, 1), 2))


def to_depths(d: Draw) -> Iterator[Case]:
    for shape, block in _BLOCKS:
        x = d.any(shape)
        yield Case([x], {"block_size": block, "data_format": "NHWC"})
        yield Case([np.moveaxis(x, -1, 1)], {"block_size": block, "data_format": "NCHW"})


def _to_depth(x: np.ndarray, block_size: int, data_format: str) -> np.ndarray:
    x = np.moveaxis(x, 1, -1) if data_format == "NCHW" else x
    b, h, w, c = x.shape
    y = x.reshape(b, h // block_size, block_size, w // block_size, block_size, c).transpose(0, 1, 3, 2, 4, 5)
    y = y.reshape(b, h // block_size, w // block_size, block_size * block_size * c)
    return np.moveaxis(y, -1, 1) if data_format == "NCHW" else y


def from_depths(d: Draw) -> Iterator[Case]:
    for case in to_depths(d):
        yield Case([d.any(_to_depth(case.inputs[0], **case.attrs).shape)], case.attrs)


def _from_depth(x: np.ndarray, block_size: int, data_format: str) -> np.ndarray:
    x = np.moveaxis(x, 1, -1) if data_format == "NCHW" else x
    b, h, w, c = x.shape
    y = x.reshape(b, h, w, block_size, block_size, c // block_size**2).transpose(0, 1, 3, 2, 4, 5)
    y = y.reshape(b, h * block_size, w * block_size, c // block_size**2)
    return np.moveaxis(y, -1, 1) if data_format == "NCHW" else y


_BATCHED: tuple[tuple[Any, ...], ...] = (
    ((1, 4), [2], [[0, 0]]),
    ((2, 5, 6, 3), [2, 3], [[1, 0], [0, 0]]),
    ((1, 4, 4, 17), [2, 2], [[0, 0], [0, 0]]),
    ((1, 4, 6, 80), [2, 3], [[0, 0], [0, 3]]),
    ((2, 7, 1), [3], [[2, 3]]),
    ((1, 2, 3, 2), [2, 2], [[3, 1], [0, 1]]),
    ((2, 2, 3, 4), [2, 3, 2], [[0, 0], [1, 2], [0, 0]]),
    ((1, 9, 5), [4], [[3, 4]]),
    ((2, 0, 3), [1], [[0, 0]]),
    ((3, 2), [], []),
)


def to_batches(d: Draw) -> Iterator[Case]:
    for shape, block, pads in _BATCHED:
        yield Case([d.any(shape), np.array(block, np.int64), np.array(pads, np.int64).reshape(-1, 2)])


def _to_batch(x: np.ndarray, block: np.ndarray, pads: np.ndarray) -> np.ndarray:
    count = len(block)
    widths = [(0, 0), *map(tuple, pads.tolist()), *[(0, 0)] * (x.ndim - 1 - count)]
    x = np.pad(x, widths, constant_values=b"" if x.dtype == object else x.dtype.type(0))
    inner = [n for s, b in zip(x.shape[1:], block.tolist()) for n in (s // b, b)]
    y = x.reshape(x.shape[0], *inner, *x.shape[1 + count :])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, y.ndim)]
    y = y.transpose(order)
    return y.reshape((x.shape[0] * int(np.prod(block)), *y.shape[count + 1 :]))


def from_batches(d: Draw) -> Iterator[Case]:
    for case in to_batches(d):
        yield Case([d.any(_to_batch(*case.inputs).shape), *case.inputs[1:]])


def _from_batch(x: np.ndarray, block: np.ndarray, crops: np.ndarray) -> np.ndarray:
    count, sizes = len(block), block.tolist()
    batch = x.shape[0] // int(np.prod(block))
    y = x.reshape(*sizes, batch, *x.shape[1:])
    order = [count, *(n for k in range(count) for n in (count + 1 + k, k)), *range(2 * count + 1, y.ndim)]
    y = y.transpose(order).reshape((batch, *(s * b for s, b in zip(x.shape[1:], sizes)), *x.shape[1 + count :]))
    kept = [slice(int(a), n - int(b)) for (a, b), n in zip(crops, y.shape[1:])]
    return y[tuple([slice(None), *kept])]


def square_to_batches(d: Draw) -> Iterator[Case]:
    for shape, block, pads in (((1, 2, 2, 1), 2, [[0, 0], [0, 0]]), ((2, 5, 6, 3), 2, [[1, 0], [1, 1]]), ((0, 2, 2, 1), 2, [[0, 0], [0, 0]])):
        yield Case([d.any(shape), np.array(pads)], {"block_size": block})


def square_from_batches(d: Draw) -> Iterator[Case]:
    for case in square_to_batches(d):
        yield Case([d.any(_square_to_batch(*case.inputs, **case.attrs).shape), case.inputs[1]], case.attrs)


def _square_to_batch(x: np.ndarray, pads: np.ndarray, block_size: int) -> np.ndarray:
    return _to_batch(x, np.array([block_size] * 2), pads)


def _square_from_batch(x: np.ndarray, crops: np.ndarray, block_size: int) -> np.ndarray:
    return _from_batch(x, np.array([block_size] * 2), crops)


def partitions(d: Draw) -> Iterator[Case]:
    for lead, rest, count in (((1,), (), 1), ((17,), (), 3), ((33,), (2,), 2), ((0,), (3,), 2), ((2, 3), (5,), 4), ((1025,), (), 3)):
        yield Case([d.any((*lead, *rest)), d.integers(lead, 0, count)], {"num_partitions": count})


def _partition(x: np.ndarray, where: np.ndarray, num_partitions: int) -> list[np.ndarray]:
    return [x[where == k] for k in range(num_partitions)]


def stitches(d: Draw) -> Iterator[Case]:
    for counts, rest in (((1,), ()), ((3, 2), ()), ((16, 17), (3,)), ((5, 0, 4), (2,)), ((0,), (3,))):
        order = d.rng.permutation(sum(counts))
        indices = np.split(order, np.cumsum(counts)[:-1])
        yield Case([indices, [d.any((n, *rest)) for n in counts]])
    yield Case([[np.array(1), np.array([[0, 2], [3, 4]])], [d.any((2,)), d.any((2, 2, 2))]], label="scalars and matrices of indices")


def _stitch(indices: list[np.ndarray], data: list[np.ndarray]) -> np.ndarray:
    rest = data[0].shape[indices[0].ndim :]
    size = max((int(i.max()) + 1 for i in indices if i.size), default=0)
    out = np.empty((size, *rest), data[0].dtype)
    for i, x in zip(indices, data):
        out[i.ravel()] = x.reshape((i.size, *rest))
    return out


def wheres(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        if shape:
            yield Case([d.integers(shape, 0, 2)])


def permutations(d: Draw) -> Iterator[Case]:
    for n in (0, 1, 5, 17, 1025):
        yield Case([d.rng.permutation(n)])


def _inverse_permutation(x: np.ndarray) -> np.ndarray:
    return np.argsort(x)


def shape_pairs(d: Draw) -> Iterator[Case]:
    for a, b in (([2, 3], [3]), ([1], [5]), ([], [2]), ([4, 1, 2], [3, 1]), ([2, 0], [1, 1]), ([3], [3])):
        yield Case([np.array(a, np.int64), np.array(b, np.int64)])


def _broadcast_shape(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array(np.broadcast_shapes(tuple(a.tolist()), tuple(b.tolist())), np.int64)


def _reduced_axes(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank = max(len(a), len(b))
    x, y = ([1] * (rank - len(s)) + s.tolist() for s in (a, b))
    if a.tolist() == b.tolist():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    of_x, of_y = (np.array([i for i in range(rank) if s[i] == 1], np.int64) for s in (x, y))
    return of_x, of_y


def bitcasts(d: Draw) -> Iterator[Case]:
    targets = [t for t in WITH_VALUES if t.kind not in "sb"]
    size = np.dtype(d.dtype.stored).itemsize
    for target in targets:
        to = np.dtype(target.stored).itemsize
        for shape in ((), (0,), (17,), (2, 3)):
            if to > size:
                shape = (*shape, to // size)
            value = d.uniform(shape, 1, 100)
            yield Case([value], {"source": narrow(value, d.dtype).tobytes()}, {"type": target}, f"to {target}", False)


def _same_bits(d_case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    """Not a number is one however its bits lie, so numbers are compared."""
    source, size = d_case.attrs["source"], np.dtype(types[0].stored).itemsize
    want = widen(np.frombuffer(source, types[0].stored), types[0])
    have = got[0].ravel()
    assert len(source) == have.size * size, f"{have.size * size} bytes, wanted {len(source)}"
    assert np.array_equal(want, have, equal_nan=types[0].is_inexact), f"other bits than went in, to {types[0]}"


def ensured(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)], {"shape": shape})
        yield Case([d.any(shape)], {"shape": [-1] * len(shape)})


def finite(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.uniform(shape)], {"message": "never seen"})


def many(d: Draw) -> Iterator[Case]:
    yield Case([[np.array([1, 2], np.float32), np.int64(3), np.array([True]), np.zeros((0, 2), np.float32)]])


def joined_strings(d: Draw) -> Iterator[Case]:
    for shape in ((), (0,), (1,), (17,), (2, 3)):
        for separator in ("", ", "):
            yield Case([[d.any(shape), d.any(()), d.any(shape)]], {"separator": separator})


def _join(values: list[np.ndarray], separator: str) -> np.ndarray:
    shape = next((v.shape for v in values if v.ndim), ())
    rows = [np.broadcast_to(v, shape).ravel() for v in values]
    out = np.empty(int(np.prod(shape, dtype=np.int64)), object)
    out[:] = [separator.encode().join(parts) for parts in zip(*rows)]
    return out.reshape(shape)


def empties(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([np.array(shape, np.int64)], {"init": True})


def shards(d: Draw) -> Iterator[Case]:
    for number, count in ((0, 1), (3, 17), (99999, 100000)):
        yield Case([np.array(b"some/name", object), np.array(number), np.array(count)])


def _shard(name: np.ndarray, number: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.array(name[()] + b"-%05d-of-%05d" % (int(number), int(count)), object)


def truthful(d: Draw) -> Iterator[Case]:
    yield from any_shape(d)
    yield Case([np.array(0 if d.kind != "s" else b"", object if d.kind == "s" else None)])


def _truth(x: np.ndarray) -> np.ndarray:
    return np.array(x.size > 0 if x.ndim else bool(x[()]))


def defaults(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)], {"shape": shape})


def trees(d: Draw) -> Iterator[Case]:
    for time, batch, width in ((1, 1, 1), (6, 3, 4), (5, 2, 1), (0, 2, 3), (4, 0, 2)):
        shape = (time, batch, width)
        ids, parents = d.rng.integers(0, 7, shape), d.rng.integers(0, width, shape)
        yield Case([ids, parents, d.rng.integers(0, time + 2, (batch,)), np.array(3)])


def _hypotheses(ids: np.ndarray, parents: np.ndarray, lengths: np.ndarray, end: np.ndarray) -> np.ndarray:
    out = np.full_like(ids, end)
    for b in range(ids.shape[1]):
        at = np.arange(ids.shape[2])
        for t in reversed(range(min(ids.shape[0], int(lengths[b])))):
            out[t, b], at = ids[t, b, at], parents[t, b, at]
    ended = np.cumsum(out == end, 0) - (out == end) > 0
    return np.where(ended, end, out)


def add_to(table: Table) -> None:
    table.add("Shape", any_shape, lambda x: np.array(x.shape, np.int64))
    table.add("ShapeN", shape_lists, lambda v: [np.array(x.shape, np.int64) for x in v])
    table.add("Size", any_shape, lambda x: np.array(x.size))
    table.add("Rank", any_shape, lambda x: np.array(x.ndim))
    table.add("Fill", fills, _fill, gradient=(1,), main="T")
    table.add("ZerosLike", any_shape, _zeros)
    table.add("OnesLike", any_shape, np.ones_like)
    table.add("Range", ranges, _range, tolerance=4)
    table.add("LinSpace", linear_spaces, lambda a, b, n: np.linspace(a[()], b[()], int(n)), tolerance=4)
    table.add("OneHot", one_hots, _one_hot, main="T")
    for prefix in ("", "Batch"):  # the old names have no gradients
        table.add(prefix + "MatrixDiag", diagonals, _matrix_of, gradient=None if prefix else (0,))
        table.add(prefix + "MatrixDiagPart", matrices, _diagonal, gradient=None if prefix else (0,))
        table.add(prefix + "MatrixSetDiag", new_diagonals, _with_diagonal, gradient=None if prefix else (0, 1))
        table.add(prefix + "MatrixBandPart", bands, _band, gradient=None if prefix else (0,))
    table.add("Diag", tensor_diagonals, _tensor_diagonal, gradient=(0,))
    table.add("DiagPart", doubled, _part_of_diagonal, gradient=(0,))
    table.add("SpaceToDepth", to_depths, _to_depth, gradient=(0,))
    table.add("DepthToSpace", from_depths, _from_depth, gradient=(0,))
    table.add("SpaceToBatchND", to_batches, _to_batch, gradient=(0,))
    table.add("BatchToSpaceND", from_batches, _from_batch, gradient=(0,))
    table.add("SpaceToBatch", square_to_batches, _square_to_batch, gradient=(0,))
    table.add("BatchToSpace", square_from_batches, _square_from_batch, gradient=(0,))
    table.add("DynamicPartition", partitions, _partition, gradient=(0,))
    table.add("DynamicStitch", stitches, _stitch, gradient=(2, 3))
    table.add("ParallelDynamicStitch", stitches, _stitch, gradient=(2, 3))
    table.add("Where", wheres, lambda x: np.argwhere(x))
    table.add("GatherTree", trees, _hypotheses, dtypes=("int32",))
    table.add("InvertPermutation", permutations, _inverse_permutation)
    table.add("BroadcastArgs", shape_pairs, _broadcast_shape)
    table.add("BroadcastGradientArgs", shape_pairs, _reduced_axes)
    table.add("EnsureShape", ensured, lambda x, shape: x, gradient=(0,))
    table.add("CheckNumerics", finite, lambda x, message: x, gradient=(0,))
    table.add("CheckNumericsV2", finite, lambda x, message: x, gradient=(0,))
    table.add("IdentityN", many, lambda v: v, gradient=(0,))
    table.add("StringJoin", joined_strings, _join)
    table.add("PlaceholderWithDefault", defaults, lambda x, shape: x)
    table.add("ToBool", truthful, _truth)
    table.add("PreventGradient", any_shape, lambda x: x)
    table.add("Empty", empties, lambda shape, init: np.zeros(shape.tolist()), main="dtype", dtypes=tuple(t.name for t in WITH_VALUES if t.kind != "s"))
    table.add("ShardedFilename", shards, _shard)
    table.add("Bitcast", bitcasts, check=_same_bits)
