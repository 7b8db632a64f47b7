# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, reductions, layout and sets of sparse tensors, against dense arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dtypes import F32
from sparse_rows import _SIZES, _dense, _places
from table import Case, Draw, Table


def _elements(d: Draw, shape: tuple[int, ...], count: int) -> list[np.ndarray]:
    return [_places(d, shape, count), d.apart((count,)), np.array(shape)]


def pairs(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        yield Case(_elements(d, shape, count) + _elements(d, shape, max(0, count - 1)))


def sums(d: Draw) -> Iterator[Case]:
    for case in pairs(d):
        yield Case([*case.inputs, np.array(0)], types={"Treal": F32})


def _present(indices: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return _dense(indices, np.ones(len(indices)), shape) > 0


def _both(ai, av, shape, bi, bv, combine):  # type: ignore[no-untyped-def]
    at = np.argwhere(_present(ai, shape) | _present(bi, shape)).reshape(-1, len(shape))
    whole = combine(_dense(ai, av, shape), _dense(bi, bv, shape))
    return at, whole[tuple(at.T)]


def added(ai, av, shape, bi, bv, b_shape, thresh):  # type: ignore[no-untyped-def]
    return (*_both(ai, av, shape, bi, bv, np.add), shape)


def greater(ai, av, shape, bi, bv, b_shape):  # type: ignore[no-untyped-def]
    return _both(ai, av, shape, bi, bv, np.maximum)


def smaller(ai, av, shape, bi, bv, b_shape):  # type: ignore[no-untyped-def]
    return _both(ai, av, shape, bi, bv, np.minimum)


def sum_gradients(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        a, b = _places(d, shape, count), _places(d, shape, count // 2)
        at = np.argwhere(_present(a, np.array(shape)) | _present(b, np.array(shape))).reshape(-1, len(shape))
        yield Case([d.uniform((len(at),)), a, b, at], gradient=False)


def sum_gradient(grad, a, b, at):  # type: ignore[no-untyped-def]
    by_index = dict(zip(map(tuple, at.tolist()), grad))
    return tuple(np.array([by_index[tuple(i)] for i in own.tolist()], grad.dtype) for own in (a, b))


def with_dense(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        smaller_shapes = [shape, shape[1:], (*([1] * (len(shape) - 1)), shape[-1]), (*shape[:-1], 1)]
        for dense in smaller_shapes:
            yield Case([*_elements(d, shape, count), d.away(dense)])


def _operand(indices: np.ndarray, shape: np.ndarray, dense: np.ndarray) -> np.ndarray:
    return np.broadcast_to(dense, tuple(shape))[tuple(indices.T)]


def times(i, v, shape, dense):  # type: ignore[no-untyped-def]
    return v * _operand(i, shape, dense)


def divided(i, v, shape, dense):  # type: ignore[no-untyped-def]
    by = _operand(i, shape, dense)
    return np.trunc(v / by).astype(v.dtype) if v.dtype.kind in "iu" else v / by


def plus(i, v, shape, dense):  # type: ignore[no-untyped-def]
    return v + _operand(i, shape, dense)


def sums_with_dense(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        yield Case([*_elements(d, shape, count), d.uniform(shape)])


def dense_sum(i, v, shape, dense):  # type: ignore[no-untyped-def]
    return dense + _dense(i, v, shape)


def softmaxes(d: Draw) -> Iterator[Case]:
    for shape, count in (((2, 3), 4), ((1, 1), 1), ((3, 17), 0), ((2, 2, 33), 40)):
        yield Case(_elements(d, shape, count))


def softmax(i, v, shape):  # type: ignore[no-untyped-def]
    powers = np.exp(v)
    rows = [tuple(at[:-1]) for at in i.tolist()]
    return np.array([p / sum(q for q, r in zip(powers, rows) if r == row) for p, row in zip(powers, rows)]).reshape(-1)


def reductions(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        for axes in ([], [0], [-1], list(range(len(shape))), 0):
            for keep in (False, True):
                yield Case([*_elements(d, shape, count), np.array(axes, np.int32)], {"keep_dims": keep})


def _reduced(i, v, shape, axes, keep, fold):  # type: ignore[no-untyped-def]
    rank = len(shape)
    gone = {int(a) % rank for a in np.atleast_1d(axes)}
    groups: dict[tuple[int, ...], list] = {}
    for at, value in zip(i.tolist(), v):
        rest = tuple(0 if k in gone else x for k, x in enumerate(at) if keep or k not in gone)
        groups.setdefault(rest, []).append(value)
    dims = [1 if k in gone else int(s) for k, s in enumerate(shape) if keep or k not in gone]
    at = sorted(groups)
    indices = np.array(at, np.int64).reshape(len(at), len(dims))
    return indices, np.array([fold(groups[k]) for k in at], v.dtype).reshape(-1), np.array(dims, np.int64)


def _to_dense(fold):  # type: ignore[no-untyped-def]
    return lambda i, v, shape, axes, keep_dims: _dense(*_reduced(i, v, shape, axes, keep_dims, fold))


def _to_sparse(fold):  # type: ignore[no-untyped-def]
    return lambda i, v, shape, axes, keep_dims: _reduced(i, v, shape, axes, keep_dims, fold)


def shapes(d: Draw) -> Iterator[Case]:
    for old, new in (((6,), (2, 3)), ((2, 3), (-1,)), ((2, 3), (2, 3)), ((4, 5, 6), (10, -1, 3)), ((1, 1), ()), ((0, 3), (0, 7))):
        count = int(np.prod(old)) // 2 if 0 not in old else 0
        yield Case([_places(d, old, count), np.array(old), np.array(new, np.int64)])


def reshaped(i, shape, new):  # type: ignore[no-untyped-def]
    made = np.zeros(tuple(shape)).reshape(tuple(new)).shape
    flat = np.ravel_multi_index(tuple(i.T), tuple(shape)) if len(i) else np.zeros(0, np.int64)
    at = np.array(np.unravel_index(flat, made), np.int64).T if made else np.zeros((len(i), 0))
    return at.reshape(len(i), len(made)), np.array(made, np.int64)


def blocks(d: Draw) -> Iterator[Case]:
    for shape, count in _SIZES:
        for start, size in ((0, 2), (1, 99), (0, 0)):
            yield Case([*_elements(d, shape, count), np.full(len(shape), start), np.full(len(shape), size)])


def _inside(i, start, size):  # type: ignore[no-untyped-def]
    return np.all((i >= start) & (i < start + size), axis=1)


def block(i, v, shape, start, size):  # type: ignore[no-untyped-def]
    kept = _inside(i, start, size)
    return i[kept] - start, v[kept], np.maximum(0, np.minimum(size, shape - start))


def block_gradients(d: Draw) -> Iterator[Case]:
    for case in blocks(d):
        i, _, _, start, size = case.inputs
        kept = _inside(i, start, size)
        yield Case([d.uniform((int(kept.sum()),)), i, start, i[kept] - start], gradient=False)


def block_gradient(grad, i, start, at):  # type: ignore[no-untyped-def]
    by_index = dict(zip(map(tuple, (at + start).tolist()), grad))
    return np.array([by_index.get(tuple(k), 0) for k in i.tolist()], grad.dtype)


def splits(d: Draw) -> Iterator[Case]:
    for axis, count in ((0, 1), (0, 3), (1, 2), (1, 7)):
        yield Case([np.array(axis), _places(d, (5, 7), 11), d.any((11,)), np.array((5, 7))], {"num_split": count})


def parts(axis, i, v, shape, num_split):  # type: ignore[no-untyped-def]
    axis = int(axis)
    found = []
    for own in np.array_split(np.arange(int(shape[axis])), num_split):
        kept = np.isin(i[:, axis], own)
        at, dims = i[kept].copy(), shape.copy()
        at[:, axis] -= own[0]
        dims[axis] = len(own)
        found.append((at, v[kept], dims))
    return tuple(part[k] for k in range(3) for part in found)


def joins(d: Draw) -> Iterator[Case]:
    for axis in (0, 1, -1):
        given = [(2, 3), (2, 3), (2, 3)] if axis == 0 else [(2, 3), (2, 1), (2, 6)]
        inputs = [[_places(d, s, 2) for s in given], [d.any((2,)) for _ in given], [np.array(s) for s in given]]
        yield Case(inputs, {"concat_dim": axis})


def joined(indices, values, dims, concat_dim):  # type: ignore[no-untyped-def]
    moved, offset = [], 0
    for i, s in zip(indices, dims):
        at = i.copy()
        at[:, concat_dim] += offset
        offset += s[concat_dim]
        moved.append(at)
    at, shape = np.concatenate(moved), dims[0].copy()
    shape[concat_dim] = offset
    order = np.lexsort(at.T[::-1])
    return at[order], np.concatenate(values)[order], shape


def holes(d: Draw) -> Iterator[Case]:
    for shape, count in (*_SIZES, ((0, 3), 0)):
        mixed = d.rng.permutation(count)
        places = _places(d, shape, count) if 0 not in shape else np.zeros((0, 2), np.int64)
        yield Case([places[mixed], d.any((count,)), np.array(shape), d.any()])
    full = np.stack([np.repeat(np.arange(4), 3), np.tile([0, 2, 5], 4)], 1)  # no row is empty
    for order in (np.arange(12), d.rng.permutation(12)):
        yield Case([full[order], d.any((12,)), np.array((4, 6)), d.any()])


def filled(i, v, shape, default):  # type: ignore[no-untyped-def]
    at, source, empty, back = [], [], [], np.zeros(len(i), np.int64)
    for row in range(int(shape[0])):
        own = np.flatnonzero(i[:, 0] == row)
        empty.append(not len(own))
        for k in own:
            back[k] = len(at)
            at.append(i[k])
            source.append(int(k))
        if not len(own):
            at.append(np.array([row] + [0] * (len(shape) - 1)))
            source.append(len(v))
    values = np.append(v, default)[np.array(source, np.int64)]
    return np.array(at, np.int64).reshape(len(at), len(shape)), values, np.array(empty, bool), back


def hole_gradients(d: Draw) -> Iterator[Case]:
    for total, kept in ((1, 1), (5, 3), (4, 0)):
        yield Case([d.rng.permutation(total)[:kept], d.uniform((total,))], gradient=False)


def hole_gradient(back, grad):  # type: ignore[no-untyped-def]
    rest = np.delete(grad, back.astype(int))
    return grad[back.astype(int)], rest.sum()


def dense_sets(d: Draw) -> Iterator[Case]:
    for a, b in (((2, 3), (2, 4)), ((1, 1), (1, 1)), ((2, 2, 5), (2, 2, 3)), ((3, 0), (3, 2))):
        for name in ("a-b", "b-a", "intersection", "union"):
            yield Case([d.integers(a, 0, 9), d.integers(b, 0, 9)], {"set_operation": name})


_OPERATIONS = {"a-b": np.setdiff1d, "b-a": lambda a, b: np.setdiff1d(b, a), "intersection": np.intersect1d, "union": np.union1d}


def operated(a, b, set_operation):  # type: ignore[no-untyped-def]
    lead = a.shape[:-1]
    at, values, longest = [], [], 0
    for row in np.ndindex(*lead):
        made = _OPERATIONS[set_operation](a[row], b[row])
        at += [(*row, k) for k in range(len(made))]
        values += list(made)
        longest = max(longest, len(made))
    indices = np.array(at, np.int64).reshape(len(at), len(lead) + 1)
    return indices, np.array(values, a.dtype), np.array([*lead, longest])


def sparse_sets(d: Draw) -> Iterator[Case]:
    for name in ("a-b", "b-a", "intersection", "union"):
        inputs = [_places(d, (3, 4), 6), d.integers((6,), 0, 5), np.array((3, 4))]
        inputs += [_places(d, (3, 5), 7), d.integers((7,), 0, 5), np.array((3, 5))]
        yield Case(inputs, {"set_operation": name})


def mixed_sets(d: Draw) -> Iterator[Case]:
    for case in sparse_sets(d):
        yield Case([d.integers((3, 4), 0, 5), *case.inputs[3:]], case.attrs)


def _rows(i, v, shape):  # type: ignore[no-untyped-def]
    return [v[i[:, 0] == row] for row in range(int(shape[0]))]


def _operated(a, b, operation, dtype):  # type: ignore[no-untyped-def]
    made = [_OPERATIONS[operation](x, y) for x, y in zip(a, b)]
    at = [(row, k) for row, values in enumerate(made) for k in range(len(values))]
    values = np.concatenate(made).astype(dtype)
    return np.array(at, np.int64).reshape(len(at), 2), values, np.array([len(made), max(map(len, made))])


def operated_sparse(ai, av, a_shape, bi, bv, b_shape, set_operation):  # type: ignore[no-untyped-def]
    return _operated(_rows(ai, av, a_shape), _rows(bi, bv, b_shape), set_operation, av.dtype)


def operated_mixed(a, bi, bv, b_shape, set_operation):  # type: ignore[no-untyped-def]
    return _operated(list(a), _rows(bi, bv, b_shape), set_operation, a.dtype)


def sets(d: Draw) -> Iterator[Case]:
    for shape, count in (((3, 4), 7), ((1, 1), 1), ((4, 2), 0)):
        yield Case([_places(d, shape, count), d.integers((count,), 0, 4), np.array(shape)])


def set_sizes(i, v, shape):  # type: ignore[no-untyped-def]
    return np.array([len(np.unique(row)) for row in _rows(i, v, shape)])


def add_to(table: Table) -> None:
    table.add("SparseAdd", sums, added, main="T", dtypes=("float32",))
    table.add("SparseAddGrad", sum_gradients, sum_gradient, main="T")
    table.add("SparseSparseMaximum", pairs, greater, main="T")
    table.add("SparseSparseMinimum", pairs, smaller, main="T")
    table.add("SparseDenseCwiseMul", with_dense, times, main="T", gradient=(1, 3))
    table.add("SparseDenseCwiseDiv", with_dense, divided, main="T", gradient=(1, 3), gradient_tolerance=10)
    table.add("SparseDenseCwiseAdd", with_dense, plus, main="T")
    table.add("SparseTensorDenseAdd", sums_with_dense, dense_sum, main="T", gradient=(1, 3))
    table.add("SparseSoftmax", softmaxes, softmax, main="T", gradient=(1,), tolerance=8)
    table.add("SparseReduceSum", reductions, _to_dense(sum), main="T", gradient=(1,), tolerance=8)
    table.add("SparseReduceMax", reductions, _to_dense(max), main="T")
    table.add("SparseReduceSumSparse", reductions, _to_sparse(sum), main="T", tolerance=8)
    table.add("SparseReduceMaxSparse", reductions, _to_sparse(max), main="T")
    table.add("SparseReshape", shapes, reshaped)
    table.add("SparseSlice", blocks, block, main="T", gradient=(1,))
    table.add("SparseSliceGrad", block_gradients, block_gradient, main="T")
    table.add("SparseSplit", splits, parts, main="T")
    table.add("SparseConcat", joins, joined, main="T")
    table.add("SparseFillEmptyRows", holes, filled, main="T", gradient=(1, 3), gradient_of=(1,))
    table.add("SparseFillEmptyRowsGrad", hole_gradients, hole_gradient, main="T", tolerance=4)
    table.add("DenseToDenseSetOperation", dense_sets, operated, main="T")
    table.add("DenseToSparseSetOperation", mixed_sets, operated_mixed, main="T")
    table.add("SparseToSparseSetOperation", sparse_sets, operated_sparse, main="T")
    table.add("SetSize", sets, set_sizes, main="T")
