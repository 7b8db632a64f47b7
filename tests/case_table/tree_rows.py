# SPDX-License-Identifier: Apache-2.0
"""Sums, splits and quantiles of boosted trees. Ensembles are state, which python/tests/test_boosted_trees.py grows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table

_SPLITS, _BUCKETS = 3, 5
_SIZES = (0, 1, 15, 33)
_NONE, _LEFT, _RIGHT, _EQUAL = -np.inf, b"INEQUALITY_DEFAULT_LEFT", b"INEQUALITY_DEFAULT_RIGHT", b"EQUALITY_DEFAULT_RIGHT"


def _summed(nodes: Any, stats: np.ndarray, buckets: np.ndarray, num_buckets: int) -> np.ndarray:
    """[node, bucket, stat]"""
    sums = np.zeros((_SPLITS, num_buckets, stats.shape[1]))
    np.add.at(sums, (nodes, buckets), stats)
    return sums


def stats_cases(d: Draw) -> Iterator[Case]:
    for n in _SIZES:
        buckets = [d.integers((n,), 0, _BUCKETS), d.integers((n,), 0, _BUCKETS)]
        examples = [d.integers((n,), 0, _SPLITS), d.rng.uniform(-2, 2, (n, 1)), d.rng.uniform(0, 2, (n, 1))]
        yield Case([*examples, buckets], {"max_splits": _SPLITS, "num_buckets": _BUCKETS})


def stats(nodes: Any, gradients: Any, hessians: Any, features: Any, **attrs: Any) -> np.ndarray:
    return np.stack([_summed(nodes, np.concatenate([gradients, hessians], 1), f, _BUCKETS) for f in features])


def aggregate_cases(d: Draw) -> Iterator[Case]:
    for n, logits in itertools.product(_SIZES, (1, 2)):
        examples = [d.integers((n,), 0, _SPLITS), d.rng.uniform(-2, 2, (n, logits)), d.rng.uniform(0, 2, (n, logits * logits))]
        yield Case([*examples, d.integers((n, 2), -1, _BUCKETS)], {"max_splits": _SPLITS, "num_buckets": _BUCKETS})


def aggregate(nodes: Any, gradients: Any, hessians: Any, feature: Any, **attrs: Any) -> np.ndarray:
    values, buckets = np.concatenate([gradients, hessians], 1), np.where(feature < 0, _BUCKETS, feature)
    return np.stack([_summed(nodes, values, buckets[:, k], _BUCKETS + 1) for k in range(2)], axis=1)


def sparse_aggregate_cases(d: Draw) -> Iterator[Case]:
    for n in _SIZES:
        indices = np.argwhere(d.rng.random((n, 2)) < 0.5)
        examples = [d.integers((n,), 0, _SPLITS), d.rng.uniform(-2, 2, (n, 1)), d.rng.uniform(0, 2, (n, 1))]
        feature = [indices, d.integers((len(indices),), 0, _BUCKETS), np.array([n, 2])]
        yield Case([*examples, *feature], {"max_splits": _SPLITS, "num_buckets": _BUCKETS})


def sparse_aggregate(nodes: Any, gradients: Any, hessians: Any, indices: Any, values: Any, shape: Any, **attrs: Any) -> tuple[np.ndarray, ...]:
    feature = np.full((len(nodes), 2), -1)
    feature[tuple(indices.T)] = values
    sums, counts = (aggregate(nodes, *of, feature) for of in ((gradients, hessians), (np.ones_like(gradients),) * 2))
    there = np.argwhere(counts > 0)
    return there, sums[tuple(there.T)], np.array(sums.shape)


def _penalties(d: Draw) -> list[np.ndarray]:
    """l1, l2, tree_complexity, min_node_weight; that of some node is less."""
    return [np.array(x) for x in (0.1, 0.25, 0.5, 2.0)]


def _sums(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([d.rng.uniform(-2, 2, (*shape, 1)), d.rng.uniform(0.1, 1, (*shape, 1))], axis=-1)


def _leaf(sums: np.ndarray, l1: Any, l2: Any) -> tuple[float, float]:
    """(weight, gain)"""
    gradient = np.sign(sums[0]) * max(abs(sums[0]) - l1, 0)
    return -gradient / (sums[1] + l2), gradient**2 / (sums[1] + l2)


def _best(candidates: Any, total: np.ndarray, l1: Any, l2: Any, complexity: Any) -> list[Any]:
    """The first of the (left sums, what tells the split) that gains most, as gain, what tells it, left and right weight."""
    best: list[Any] = [_NONE]
    for left, told in candidates:
        (wl, gl), (wr, gr) = _leaf(left, l1, l2), _leaf(total - left, l1, l2)
        if gl + gr > best[0] + 1e-9:
            best = [gl + gr, told, wl, wr]
    return [best[0] - _leaf(total, l1, l2)[1] - complexity, *best[1:]]


def gains_cases(d: Draw) -> Iterator[Case]:
    for buckets in (1, 4, 17):
        sums = [_sums(d, (_SPLITS, buckets)) for _ in range(2)]
        yield Case([np.array([0, _SPLITS]), sums, *_penalties(d)], {"max_splits": _SPLITS})


def gains(node_range: Any, lists: Any, l1: Any, l2: Any, complexity: Any, least: Any, **attrs: Any) -> tuple[np.ndarray, ...]:
    rows = []
    for sums in lists:
        found = []
        for node in range(*node_range):
            total = sums[node].sum(axis=0)
            if total[1] >= least:
                upto = zip(np.cumsum(sums[node], axis=0), itertools.count())
                found.append((node, *_best(upto, total, l1, l2, complexity)))
        columns = [np.array([f[k] for f in found]) for k in range(5)]
        rows.append([*columns[:3], columns[3].reshape(-1, 1), columns[4].reshape(-1, 1)])
    return tuple(rows[f][k] for k in range(5) for f in range(len(rows)))


def split_cases(d: Draw) -> Iterator[Case]:
    for buckets, kind in itertools.product((1, 4, 17), ("inequality", "equality")):
        sums = _sums(d, (_SPLITS, 2, buckets + 1))
        # Every dimension has the same examples.
        sums[:, 1, 0] += sums[:, 0].sum(axis=1) - sums[:, 1].sum(axis=1)
        yield Case([np.array([0, _SPLITS]), sums, *_penalties(d)], {"logits_dimension": 1, "split_type": kind}, label=kind)


def _dimension_splits(sums: np.ndarray, kind: str) -> Iterator[tuple[np.ndarray, tuple[int, int, bytes]]]:
    """Of one node."""
    for k, of_buckets in enumerate(sums):
        upto, missing = np.cumsum(of_buckets, axis=0), of_buckets[-1]
        for b in range(len(of_buckets) - 1):
            if kind == "equality":
                yield of_buckets[b], (k, b, _EQUAL)
            else:
                yield upto[b] + missing, (k, b, _LEFT)
                yield upto[b], (k, b, _RIGHT)


def split(node_range: Any, sums: Any, l1: Any, l2: Any, complexity: Any, least: Any, split_type: str = "inequality", **attrs: Any) -> tuple[np.ndarray, ...]:
    found = []
    for node in range(*node_range):
        total = sums[node, 0].sum(axis=0)
        if total[1] >= least:
            gain, told, *weights = _best(_dimension_splits(sums[node], split_type), total, l1, l2, complexity)
            found.append((node, gain, told[0], told[1], *([w] for w in weights), told[2]))
    columns = [np.array([f[k] for f in found], dtype=object if k == 6 else None) for k in range(7)]
    return (*columns[:4], columns[4].reshape(-1, 1), columns[5].reshape(-1, 1), columns[6])


def sparse_split_cases(d: Draw) -> Iterator[Case]:
    for buckets in (1, 4, 17):
        sums = _sums(d, (_SPLITS, 1, buckets + 1))
        indices = np.argwhere(sums != 0)
        yield Case([np.array([0, _SPLITS]), indices, sums[tuple(indices.T)], np.array(sums.shape), *_penalties(d)], {"logits_dimension": 1})


def sparse_split(node_range: Any, indices: Any, values: Any, shape: Any, *options: Any, **attrs: Any) -> tuple[np.ndarray, ...]:
    sums = np.zeros(shape)
    sums[tuple(indices.T)] = values
    return split(node_range, sums, *options)


def bucket_cases(d: Draw) -> Iterator[Case]:
    for n in _SIZES:
        yield Case([[d.rng.uniform(-3, 3, n), np.arange(-3.0, n - 3)], [np.sort(d.rng.uniform(-2, 2, 7)), np.zeros(0)]])


def buckets(values: Any, boundaries: Any, **attrs: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.minimum(np.searchsorted(b, v), max(len(b) - 1, 0)) for v, b in zip(values, boundaries))


def summary_cases(d: Draw) -> Iterator[Case]:
    """So few values that nothing is left out."""
    for n in _SIZES:
        yield Case([[d.integers((n,), -5, 5), d.rng.uniform(-1, 1, n)], d.integers((n,), 0, 3), np.array(0.001)])
        yield Case([[d.rng.uniform(-1, 1, n)], np.array([2.0]), np.array(0.001)], label="one weight")


def summaries(lists: Any, weights: Any, epsilon: Any, **attrs: Any) -> tuple[np.ndarray, ...]:
    rows = []
    for values in lists:
        of_value = np.broadcast_to(weights, values.shape)
        distinct, place = np.unique(values[of_value > 0], return_inverse=True)
        sums = np.zeros(len(distinct))
        np.add.at(sums, place, of_value[of_value > 0])
        upto = np.cumsum(sums)
        rows.append(np.stack([distinct, sums, upto - sums, upto], axis=1))
    return tuple(rows)


def add_to(table: Table) -> None:
    table.add("BoostedTreesMakeStatsSummary", stats_cases, stats, tolerance=4, magnitude=True)
    table.add("BoostedTreesAggregateStats", aggregate_cases, aggregate, tolerance=4, magnitude=True)
    table.add("BoostedTreesSparseAggregateStats", sparse_aggregate_cases, sparse_aggregate, tolerance=16)
    table.add("BoostedTreesCalculateBestGainsPerFeature", gains_cases, gains, tolerance=64)
    table.add("BoostedTreesCalculateBestFeatureSplit", split_cases, split, tolerance=64)
    table.add("BoostedTreesSparseCalculateBestFeatureSplit", sparse_split_cases, sparse_split, tolerance=64)
    table.add("BoostedTreesBucketize", bucket_cases, buckets)
    table.add("BoostedTreesMakeQuantileSummaries", summary_cases, summaries, tolerance=4)
