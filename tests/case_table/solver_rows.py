# SPDX-License-Identifier: Apache-2.0
"""One step of dual coordinate ascent, and of weighted alternating least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from table import SHAPES, Case, Draw, Table

_LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")
_L1, _L2 = 0.3, 2.0


def _pass(d: Draw, loss: str, count: int, attrs: dict[str, Any]) -> Case:
    """Examples none of whose features another has, so that their order does not matter."""
    classes = loss in ("logistic_loss", "hinge_loss", "smooth_hinge_loss")
    labels = d.integers((count,), 0, 2) if classes else d.integers((count,), 0, 5)
    signed = np.where(labels == 0, -1, 1)
    duals = signed * d.uniform((count,), 0.1, 0.9) if classes else labels - d.uniform((count,), 0.1, 2)
    state = np.concatenate([duals[:, None], d.uniform((count, 3))], axis=1)
    examples = np.arange(count)
    features = d.rng.permutation(5 * count)
    return Case(
        [
            [np.repeat(examples, 2), examples[1:]],  # the first example has nothing in the second group
            [features[: 2 * count], features[: max(count - 1, 0)]],
            [d.uniform((2 * count,))],
            [np.diag(d.uniform((count,)))],
            d.uniform((count,), 0.5, 2),
            labels,
            [features[: 2 * count][::-1], features[: max(count - 1, 0)]],
            [d.uniform((2 * count,)), d.uniform((max(count - 1, 0),))],
            [d.uniform((count,))],
            state,
        ],
        {"loss_type": loss, "l1": _L1, "l2": _L2, "num_loss_partitions": 3, "num_inner_iterations": 1, **attrs},
        label=loss,
    )


def passes(adaptive: str) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for loss in _LOSSES:
            for count in (0, 1, 7, 33):
                yield _pass(d, loss, count, {})
            yield _pass(d, loss, 1, {adaptive: True})

    return cases


def _shrunk(x: np.ndarray, l1: float = _L1, l2: float = _L2) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - l1 / l2, 0)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def _best_dual(loss: str, label: float, dual: float, prediction: float, curvature: float) -> float:
    """Where the dual objective of one example has slope 0, or the end of where it is defined."""

    def rest(a: float) -> float:
        return -prediction - curvature * (a - dual)

    if loss == "squared_loss":
        return _root(lambda a: label - a + rest(a), -1e3, 1e3)
    if loss == "poisson_loss":  # a = label - exp(u)
        return label - float(np.exp(_root(lambda u: -u - rest(label - np.exp(u)), -50, 50)))
    slopes = {
        "hinge_loss": lambda p: 1 + label * rest(label * p),
        "smooth_hinge_loss": lambda p: 1 - p + label * rest(label * p),
        "logistic_loss": lambda p: np.log1p(-p) - np.log(p) + label * rest(label * p),
    }
    return label * _root(slopes[loss], 0, 1)


def _losses(loss: str, label: float, prediction: float, dual: float) -> tuple[float, float]:
    """(primal, dual)."""
    margin, p = label * prediction, label * dual
    if loss == "squared_loss":
        return (prediction - label) ** 2 / 2, dual**2 / 2 - dual * label
    if loss == "poisson_loss":
        return np.exp(prediction) - label * prediction, (label - dual) * (np.log(label - dual) - 1)
    if loss == "logistic_loss":
        return np.log1p(np.exp(-margin)), p * np.log(p) + (1 - p) * np.log(1 - p)
    if loss == "hinge_loss":
        return max(0, 1 - margin), -p
    return 0 if margin >= 1 else 0.5 - margin if margin <= 0 else (1 - margin) ** 2 / 2, p**2 / 2 - p


def one_pass(
    examples: Any, features: Any, values: Any, dense: Any, costs: Any, labels: Any, known: Any, weights: Any, dense_weights: Any, state: Any, **attrs: Any
) -> tuple[np.ndarray, ...]:
    loss, parts = attrs["loss_type"], attrs["num_loss_partitions"]
    values = [values[0], np.ones(len(examples[1]))]
    changes = [np.zeros_like(w) for w in [*weights, *dense_weights]]
    after = state.copy()
    for e in range(len(labels)):
        label = -1 if labels[e] == 0 and loss in ("logistic_loss", "hinge_loss", "smooth_hinge_loss") else labels[e]
        row = []  # of the example: (which weights, at what place, the value)
        for g in range(2):
            row += [(g, list(known[g]).index(f), x) for f, x in zip(features[g][examples[g] == e], values[g][examples[g] == e])]
        row += [(2, k, x) for k, x in enumerate(dense[0][e])]
        every = [*weights, *dense_weights]
        prediction = sum(x * _shrunk(every[g][k]) for g, k, x in row)
        norm = sum(x * x for _, _, x in row) / _L2
        dual = state[e, 0]
        found = _best_dual(loss, label, dual, prediction, parts * norm * costs[e])
        for g, k, x in row:
            changes[g][k] += x * (found - dual) * costs[e] / _L2
        primal, conjugate = _losses(loss, label, prediction, dual)
        after[e] = found, primal * costs[e], conjugate * costs[e], costs[e]
    return (after, *changes)


def shrinks(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([[d.uniform(shape), d.uniform((3,))]], {"l1": _L1, "l2": _L2})


def masked(d: Draw) -> Iterator[Case]:
    for m, k, n, count in ((1, 1, 1, 1), (2, 3, 4, 5), (5, 33, 7, 40), (3, 0, 2, 4), (3, 4, 2, 0)):
        for flags in range(4):
            a, b = d.uniform((m, k)), d.uniform((k, n))
            places = np.stack([d.integers((count,), 0, m), d.integers((count,), 0, n)], axis=1)
            yield Case([a.T if flags & 1 else a, b.T if flags & 2 else b, places, np.array(bool(flags & 1)), np.array(bool(flags & 2))])


def masked_product(a: Any, b: Any, places: Any, transpose_a: Any, transpose_b: Any) -> np.ndarray:
    product = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    return product[places[:, 0], places[:, 1]]


def equations(d: Draw) -> Iterator[Case]:
    for rows, columns, k, count in ((1, 1, 1, 1), (4, 5, 3, 9), (17, 6, 9, 40), (3, 2, 2, 0)):
        for transposed in (False, True):
            for by_entry in (False, True):
                places = np.stack([d.integers((count,), 0, rows), d.integers((count,), 0, columns)], axis=1)
                nothing = np.zeros((0,))
                of_columns, of_rows, of_entries = d.uniform((columns,), 0, 2), d.uniform((rows,), 0, 2), d.uniform((count,), 0, 2)
                yield Case(
                    [
                        d.uniform((columns, k)),
                        nothing if by_entry else of_columns,
                        np.array(0.25),
                        nothing if by_entry else of_rows,
                        places[:, ::-1] if transposed else places,
                        d.uniform((count,)),
                        of_entries if by_entry else nothing,
                        np.array(rows),
                        np.array(transposed),
                    ]
                )


def equations_of(
    factors: Any, of_columns: Any, unobserved: Any, of_rows: Any, places: Any, values: Any, of_entries: Any, rows: Any, transposed: Any
) -> tuple[np.ndarray, np.ndarray]:
    k = factors.shape[1]
    left, right = np.zeros((int(rows), k, k)), np.zeros((int(rows), k))
    for i, at in enumerate(places):
        r, c = (at[1], at[0]) if transposed else at
        weight = of_rows[r] * of_columns[c] if len(of_rows) else of_entries[i]
        left[r] += weight * np.outer(factors[c], factors[c])
        right[r] += (unobserved + weight) * values[i] * factors[c]
    return left, right


def add_to(table: Table) -> None:
    table.add("SdcaOptimizer", passes("adaptative"), one_pass, tolerance=64)
    table.add("SdcaOptimizerV2", passes("adaptive"), one_pass, tolerance=64)
    table.add("SdcaShrinkL1", shrinks, lambda w, l1, l2: tuple(_shrunk(x, l1, l2) for x in w), mutates=True)
    table.add("MaskedMatmul", masked, masked_product, magnitude=True)
    table.add("WALSComputePartialLhsAndRhs", equations, equations_of, tolerance=16, magnitude=True)
