# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues, singular values, QR and LU factors, least squares. Vectors are judged by what they must satisfy, since
their signs are open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from table import Case, Draw, Table, real_gradient

_SQUARE = ((1, 1), (2, 2), (5, 5), (3, 4, 4), (0, 3, 3), (2, 0, 0), (33, 33))
_ANY = (*_SQUARE, (5, 2), (2, 5), (3, 4, 2), (17, 33), (1, 7), (7, 1), (2, 0, 3), (3, 0), (67, 40))


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def _hermitian(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """With eigenvalues that are well apart."""
    n = shape[-1]
    if 0 in shape:
        return d.uniform(shape)
    q = np.linalg.qr(d.uniform(shape))[0]
    values = np.linspace(-2, 3, n) + 0.1
    return (q * values) @ _adjoint(q)


def _full_rank(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """With singular values that are well apart."""
    least = min(shape[-2:])
    if 0 in shape:
        return d.uniform(shape)
    u = np.linalg.qr(d.uniform((*shape[:-1], least)))[0]
    v = np.linalg.qr(d.uniform((*shape[:-2], shape[-1], least)))[0]
    return (u * np.linspace(3, 0.5, least)) @ _adjoint(v)


def hermitian(attrs: dict[str, Any]) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _SQUARE:
            yield Case([_hermitian(d, shape)], dict(attrs), gradient=shape[-1] < 10 and d.kind != "c")

    return cases


def _eigenvalues(x: np.ndarray, compute_v: bool) -> tuple[np.ndarray, np.ndarray]:
    return np.linalg.eigvalsh(x), np.zeros(0)


def _near(got: np.ndarray, want: np.ndarray, dtype: Any, what: str) -> None:
    limit = (2e-3 if dtype.name == "float16" else 2e-5 if "32" in dtype.name or dtype.name == "complex64" else 1e-12) * 4
    assert got.shape == want.shape, f"{what}: shape {got.shape}, want {want.shape}"
    assert got.size == 0 or np.abs(got - want).max() <= limit * max(1.0, np.abs(want).max()), what


def _unitary(x: np.ndarray, dtype: Any, what: str) -> None:
    identity = np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
    _near(_adjoint(x) @ x, identity, dtype, what)


def check_eigen(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    x = case.inputs[0]
    e, v = got
    assert e.shape == x.shape[:-1] and v.shape == x.shape
    assert np.all(np.diff(e.real, axis=-1) >= 0), "order"
    _unitary(v, types[0], "vectors")
    _near((v * e[..., None, :]) @ _adjoint(v), x, types[0], "v e v^H")


def check_old_eigen(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    check_eigen(case, [got[0][..., 0, :], got[0][..., 1:, :]], types)


def any_shape(attrs: dict[str, Any]) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _ANY:
            yield Case([_full_rank(d, shape)], dict(attrs), gradient=max(shape) < 10 and d.kind != "c")

    return cases


def _singular_values(x: np.ndarray, **_: Any) -> tuple[np.ndarray, ...]:
    values = np.linalg.svd(x, compute_uv=False) if x.size else np.zeros((*x.shape[:-2], min(x.shape[-2:])))
    return values, np.zeros(0), np.zeros(0)


def check_svd(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    x = case.inputs[0]
    s, u, v = got
    m, n = x.shape[-2:]
    k = min(m, n)
    full = case.attrs["full_matrices"]
    assert u.shape == (*x.shape[:-2], m, m if full else k) and v.shape == (*x.shape[:-2], n, n if full else k)
    assert np.all(np.diff(s.real, axis=-1) <= 0) and np.all(s.real >= 0), "order"
    _unitary(u, types[0], "u")
    _unitary(v, types[0], "v")
    _near((u[..., :k] * s[..., None, :]) @ _adjoint(v[..., :k]), x, types[0], "u s v^H")


def check_qr(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    x = case.inputs[0]
    q, r = got
    m, n = x.shape[-2:]
    columns = m if case.attrs["full_matrices"] else min(m, n)
    assert q.shape == (*x.shape[:-2], m, columns) and r.shape == (*x.shape[:-2], columns, n)
    assert np.array_equal(r, np.triu(r)), "r is not upper triangular"
    _unitary(q, types[0], "q")
    _near(q @ r, x, types[0], "q r")


def regular(d: Draw) -> Iterator[Case]:
    for shape in _SQUARE:
        yield Case([d.uniform(shape, -1, 1) + (2 * shape[-1] ** 0.5 + 1) * np.eye(shape[-1])[::-1]])


def check_lu(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    x = case.inputs[0]
    lu, p = got
    assert lu.shape == x.shape and p.shape == x.shape[:-1]
    if not x.size:
        return
    lower, upper = np.tril(lu, -1) + np.eye(x.shape[-1]), np.triu(lu)
    _near(lower @ upper, np.take_along_axis(x, p.astype(np.int64)[..., None], -2), types[0], "l u")


def equations(fast: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((1, 1), (5, 2), (2, 5), (3, 4, 2), (2, 0, 3), (2, 3, 0), (33, 17), (17, 33)):
            for l2 in (0.0, 0.5) if fast else (0.0,):
                rhs = d.uniform((*shape[:-1], 3))
                yield Case([_full_rank(d, shape), rhs, np.array(l2)], {"fast": fast}, gradient=max(shape) < 10)

    return cases


def _least_squares(a: np.ndarray, b: np.ndarray, l2: np.ndarray, fast: bool) -> np.ndarray:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], b.shape[-1]))
    if l2 == 0:
        return np.linalg.pinv(a) @ b
    gram = _adjoint(a) @ a + l2 * np.eye(a.shape[-1])
    return np.linalg.solve(gram, _adjoint(a) @ b)


def add_to(table: Table) -> None:
    loose = dict(tolerance=500)
    for prefix in ("", "Batch"):
        eigen, svd = prefix + "SelfAdjointEigV2", prefix + "Svd"
        table.add(eigen, hermitian({"compute_v": False}), _eigenvalues, gradient=(0,), gradient_of=(0,), **loose)
        table.add(eigen, hermitian({"compute_v": True}), check=check_eigen, note="vectors")
        table.add(prefix + "SelfAdjointEig", hermitian({}), check=check_old_eigen)
        table.add(svd, any_shape({"compute_uv": False}), _singular_values, gradient=(0,), gradient_of=(0,), **loose)
        for full in (False, True):
            table.add(svd, any_shape({"full_matrices": full}), check=check_svd, note=f"full {full}")
        for fast in (True, False):
            gradient = (0, 1) if fast else None
            name = prefix + "MatrixSolveLs"
            cases = real_gradient(equations(fast))
            table.add(name, cases, _least_squares, gradient=gradient, note=f"fast {fast}", **loose)
    for full in (False, True):
        table.add("Qr", any_shape({"full_matrices": full}), check=check_qr, note=f"full {full}")
    table.add("Lu", regular, check=check_lu)
    table.add("LogMatrixDeterminant", real_gradient(regular), np.linalg.slogdet, gradient=(0,), gradient_of=(1,), **loose)
