# SPDX-License-Identifier: Apache-2.0
"""Variables of both kinds, and what changes them in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from array_rows import index_of, spread, strided_slices
from dtypes import WITH_VALUES
from table import SHAPES, Case, Draw, Table


def variables(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)])


def assigned(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape), d.any(shape)])


def added(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.uniform(shape, 50, 90), d.uniform(shape, 1, 9)])


# The variable's shape and the shape of the indices into its first dimension.
_ROWS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5,), ()),
    ((5,), (3,)),
    ((1,), (17,)),
    ((5, 3), (2, 2)),
    ((17, 16), (33,)),
    ((4, 0), (2,)),
    ((4, 2), (0,)),
    ((33, 2, 3), (31,)),
    ((1025,), (40,)),
)


def row_updates(d: Draw) -> Iterator[Case]:
    for shape, picked in _ROWS:
        yield Case([d.uniform(shape, 60, 90), d.integers(picked, 0, shape[0]), d.uniform((*picked, *shape[1:]), 1, 3)])


def factors(d: Draw) -> Iterator[Case]:
    """Few updates of one place, by small factors, so that no dtype overflows."""
    for shape, picked in _ROWS:
        count = int(np.prod(picked, dtype=np.int64))
        if count <= shape[0]:
            indices = d.rng.permutation(shape[0])[:count].reshape(picked)
            yield Case([d.uniform(shape, 20, 60), indices, d.uniform((*picked, *shape[1:]), 1, 2)])


def distinct_rows(d: Draw) -> Iterator[Case]:
    for shape, picked in _ROWS:
        count = int(np.prod(picked, dtype=np.int64))
        if count <= shape[0]:
            yield Case([d.any(shape), d.rng.permutation(shape[0])[:count].reshape(picked), d.any((*picked, *shape[1:]))])


def _to_rows(combine: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        return spread(x, indices[..., None], updates, combine)

    return oracle


_POINTS = (((5,), (3,), 1), ((5, 3), (7,), 2), ((17, 3), (2, 2), 1), ((33, 16), (31,), 1), ((3, 4, 5), (1,), 3), ((5,), (0,), 1), ((1025,), (513,), 1))


def point_updates(values: str) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, lead, depth in _POINTS:
            space = shape[:depth]
            count = int(np.prod(lead))
            flat = d.rng.permutation(int(np.prod(space)))[:count]
            indices = np.stack(np.unravel_index(flat, space), -1).reshape(*lead, depth)
            rest = (*lead, *shape[depth:])
            if values == "any":
                yield Case([d.any(shape), indices, d.any(rest)])
            else:
                yield Case([d.uniform(shape, 50, 90), indices, d.uniform(rest, 1, 9)])

    return cases


def _point(combine: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, i, u: spread(x, i, u, combine)


def slice_assignments(d: Draw) -> Iterator[Case]:
    for case in strided_slices(d):
        if not case.attrs["new_axis_mask"]:
            x, begin, end, strides = case.inputs
            value = x[index_of(begin, end, strides, case.attrs)]
            yield Case([*case.inputs, d.any(value.shape)], case.attrs)
            yield Case([*case.inputs, d.any(())], case.attrs, label="one value for all")
            yield Case([*case.inputs, d.any((1, *value.shape))], case.attrs, label="a dimension more")
            yield Case([*case.inputs, d.any([1 if i % 2 else n for i, n in enumerate(value.shape)])], case.attrs)


def _assign_slice(x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, value: np.ndarray, **masks: int) -> np.ndarray:
    out = x.copy()
    at = index_of(begin, end, strides, masks)
    out[at] = value.reshape(value.shape[max(0, value.ndim - np.ndim(out[at])) :])[()]
    return out


def row_reads(d: Draw) -> Iterator[Case]:
    for shape, picked in _ROWS:
        if 0 not in shape:
            yield Case([d.any(shape), d.integers(picked, 0, shape[0])])


def point_reads(d: Draw) -> Iterator[Case]:
    for shape, lead, depth in _POINTS:
        indices = np.stack([d.rng.integers(0, n, lead) for n in shape[:depth]], -1)
        yield Case([d.any(shape), indices])


def counters(d: Draw) -> Iterator[Case]:
    yield Case([np.array(3)], {"limit": 4})
    yield Case([np.array(-5)], {"limit": 0})


def _keep_second(_: Any, new: Any) -> Any:
    return new


_COMBINE: dict[str, tuple[Callable[..., Any], Any]] = {
    "Add": (lambda a, b: a + b, row_updates),
    "Sub": (lambda a, b: a - b, row_updates),
    "Mul": (lambda a, b: a * b, factors),
    "Div": (lambda a, b: a / b if np.asarray(a).dtype.kind in "fc" else a // b, factors),
    "Max": (np.maximum, distinct_rows),
    "Min": (np.minimum, distinct_rows),
}


def add_to(table: Table) -> None:
    loose = dict(mutates=True, tolerance=64)
    table.add("Assign", assigned, lambda x, y: y, mutates=True)
    table.add("AssignAdd", added, np.add, mutates=True)
    table.add("AssignSub", added, np.subtract, mutates=True)
    table.add("AssignVariableOp", assigned, lambda x, y: y, mutates=True)
    table.add("AssignAddVariableOp", added, np.add, mutates=True)
    table.add("AssignSubVariableOp", added, np.subtract, mutates=True)
    table.add("ReadVariableOp", variables, lambda x: x)
    table.add("RefIdentity", variables, lambda x: x)
    table.add("VariableShape", variables, lambda x: np.array(x.shape, np.int64), main="out_type")
    table.add("IsVariableInitialized", variables, lambda x: np.array(True))
    table.add("VarIsInitializedOp", variables, lambda x: np.array(True))
    table.add("ResourceGather", row_reads, lambda x, i: x[i], main="dtype")
    table.add("ResourceGatherNd", point_reads, lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], main="dtype")
    table.add("CountUpTo", counters, lambda x, limit: x)
    table.add("ResourceCountUpTo", counters, lambda x, limit: x)
    table.add("StridedSliceAssign", slice_assignments, _assign_slice, mutates=True)
    table.add("ScatterUpdate", distinct_rows, _to_rows(_keep_second), mutates=True)
    table.add("ResourceScatterUpdate", distinct_rows, _to_rows(_keep_second), mutates=True, main="dtype")
    for name, (combine, cases) in _COMBINE.items():
        table.add(f"Scatter{name}", cases, _to_rows(combine), **loose)
        table.add(f"ResourceScatter{name}", cases, _to_rows(combine), main="dtype", **loose)
    for op, values, combine in (
        ("Update", "any", _keep_second),
        ("Add", "numbers", lambda a, b: a + b),
        ("Sub", "numbers", lambda a, b: a - b),
        ("Max", "numbers", np.maximum),
        ("Min", "numbers", np.minimum),
    ):
        table.add(f"ScatterNd{op}", point_updates(values), _point(combine), mutates=True)
        table.add(
            f"ResourceScatterNd{op}",
            point_updates(values),
            _point(combine),
            mutates=True,
            main="T",
            dtypes=None if values == "any" else tuple(t.name for t in WITH_VALUES if t.kind in "fciu"),
        )
