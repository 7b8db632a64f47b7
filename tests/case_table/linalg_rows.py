# SPDX-License-Identifier: Apache-2.0
"""Matrix products, factors and solutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table, real_gradient

_PRODUCTS = ((1, 1, 1), (2, 3, 4), (15, 16, 17), (17, 1, 33), (1, 31, 1), (33, 5, 2), (3, 0, 2), (0, 3, 2), (1, 1025, 2))


def _maybe_turned(d: Draw, rows: int, columns: int, turned: bool, lead: tuple[int, ...] = ()) -> np.ndarray:
    return d.uniform((*lead, columns, rows) if turned else (*lead, rows, columns))


def products(d: Draw) -> Iterator[Case]:
    for m, k, n in _PRODUCTS:
        for a in (False, True):
            for b in (False, True):
                yield Case([_maybe_turned(d, m, k, a), _maybe_turned(d, k, n, b)], {"transpose_a": a, "transpose_b": b})


def _product(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


def batches(broadcast: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        leads = [((1,), (1,)), ((3,), (3,)), ((0,), (0,)), ((2, 3), (2, 3)), ((), ())]
        leads += [((2, 1), (3,)), ((), (5,)), ((1,), (17,))] if broadcast else []
        for left, right in leads:
            for m, k, n in ((1, 1, 1), (2, 3, 4), (17, 5, 16), (3, 0, 2)):
                for x in (False, True):
                    yield Case([_maybe_turned(d, m, k, x, left), _maybe_turned(d, k, n, not x, right)], {"adj_x": x, "adj_y": not x})

    return cases


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2)) if x.dtype.kind == "c" else np.swapaxes(x, -1, -2)


def _batch(x: np.ndarray, y: np.ndarray, adj_x: bool, adj_y: bool) -> np.ndarray:
    return (_adjoint(x) if adj_x else x) @ (_adjoint(y) if adj_y else y)


_EQUATIONS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,ij->", (5, 3), (5, 3)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("i,j->ij", (17,), (3,)),
    ("ij->ji", (15, 16)),
    ("ijk->j", (2, 33, 3)),
    ("abc,cd->abd", (2, 3, 4), (4, 5)),
    ("ij,kj->ik", (0, 3), (2, 3)),
    ("...ij,jk->...ik", (2, 2, 3), (3, 4)),
)


def equations(d: Draw) -> Iterator[Case]:
    for equation, *shapes in _EQUATIONS:
        yield Case([[d.uniform(s) for s in shapes]], {"equation": equation}, label=equation)


def _equation(values: list[np.ndarray], equation: str) -> np.ndarray:
    return np.einsum(equation, *values)


_SQUARE = ((1, 1), (2, 2), (5, 5), (3, 4, 4), (0, 3, 3), (2, 0, 0), (17, 17))


def _regular(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return d.uniform(shape, -1, 1) + (2 * shape[-1] ** 0.5 + 1) * np.eye(shape[-1])


def _positive(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    x = d.uniform(shape, -1, 1)
    return x @ _adjoint(x) + (shape[-1] + 1) * np.eye(shape[-1])


def squares(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        yield Case([_regular(d, shape)])


def square_inverses(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        for adjoint in (False, True):
            yield Case([_regular(d, shape)], {"adjoint": adjoint})


def _inverse(x: np.ndarray, adjoint: bool) -> np.ndarray:
    y = np.linalg.inv(x)
    return _adjoint(y) if adjoint else y


def systems(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        for adjoint in (False, True):
            yield Case([_regular(d, shape), d.uniform((*shape[:-1], 3))], {"adjoint": adjoint})


def _solve(a: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    return np.linalg.solve(_adjoint(a) if adjoint else a, b)


def triangles(d: Draw) -> Iterator[Case]:
    for case in systems(d):
        for lower in (False, True):
            yield Case(case.inputs, {**case.attrs, "lower": lower})


def _solve_triangle(a: np.ndarray, b: np.ndarray, lower: bool, adjoint: bool) -> np.ndarray:
    return _solve(np.tril(a) if lower else np.triu(a), b, adjoint)


def positives(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        yield Case([_positive(d, shape)], gradient=False)
        if d.kind == "f":
            yield Case([_positive(d, shape)])


def _cholesky_of_symmetric(x: np.ndarray) -> np.ndarray:
    """As a function of a matrix whose two halves move together, which is what its gradient is of."""
    half = (x + _adjoint(x)) / 2
    return np.linalg.cholesky(half)


def cholesky_gradients(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        factor = np.linalg.cholesky(_positive(d, shape))
        yield Case([factor, np.tril(d.uniform(shape))], gradient=False)


def _cholesky_gradient(factor: np.ndarray, g: np.ndarray) -> np.ndarray:
    """From the factor's defining equation: dA symmetric, L = chol(A), <g, dL> for every unit dA."""
    n = factor.shape[-1]
    inverse = np.linalg.inv(factor)
    out = np.zeros_like(factor)
    for i in range(n):
        for j in range(n):
            unit = np.zeros((n, n))
            unit[i, j] += 0.5
            unit[j, i] += 0.5
            inner = np.tril(inverse @ unit @ _adjoint(inverse))
            inner[..., range(n), range(n)] /= 2
            out[..., i, j] = (g * (factor @ inner)).sum((-1, -2))
    return out


def add_to(table: Table) -> None:
    wide = dict(tolerance=8, magnitude=True)
    table.add("MatMul", products, _product, gradient=(0, 1), **wide)
    table.add("BatchMatMul", batches(broadcast=False), _batch, gradient=(0, 1), **wide)
    table.add("BatchMatMulV2", batches(broadcast=True), _batch, gradient=(0, 1), **wide)
    table.add("Einsum", equations, _equation, gradient=(0,), **wide)
    loose = dict(tolerance=200)
    for prefix in ("", "Batch"):
        gradient = (0,)
        name = prefix + "Matrix"
        table.add(f"{name}Determinant", real_gradient(squares), np.linalg.det, gradient=gradient, **loose)
        table.add(f"{name}Inverse", square_inverses, _inverse, gradient=gradient, **loose)
        table.add(f"{name}Solve", systems, _solve, gradient=(0, 1), **loose)
        table.add(f"{name}TriangularSolve", triangles, _solve_triangle, gradient=(0, 1), **loose)
        table.add(f"{prefix}Cholesky", positives, _cholesky_of_symmetric, gradient=gradient, **loose)
        table.add(f"{prefix}CholeskyGrad", cholesky_gradients, _cholesky_gradient, **loose)
