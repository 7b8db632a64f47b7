# SPDX-License-Identifier: Apache-2.0
"""Random ops: shapes, ranges, moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import DType
from table import Case, Draw, Table

_MANY = 20000
_SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (17,), (2, 3), (_MANY,), (20, 1000))


def shaped(seeded: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in _SHAPES:
            if seeded:
                yield Case([np.array(shape, np.int64), np.array([7, 11])])
            else:
                yield Case([np.array(shape, np.int64)], {"seed": 7, "seed2": 11})

    return cases


def _sample(what: str, values: np.ndarray, shape: Sequence[int], mean: float, deviation: float) -> None:
    """Six standard errors: wrong once in 1e9 runs of other seeds, never of these."""
    assert values.shape == tuple(shape), f"{what}: shape {values.shape}, wanted {tuple(shape)}"
    if values.size < _MANY:
        return
    error = deviation / values.size**0.5
    assert abs(values.mean() - mean) < 6 * error + 1e-3 * abs(mean), f"{what}: mean {values.mean()}, wanted {mean}"
    assert abs(values.std() - deviation) < 0.06 * deviation + 1e-3, f"{what}: deviation {values.std()}, wanted {deviation}"


def uniform(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _sample("uniform", got[0], case.inputs[0], 0.5, 12**-0.5)
    assert not got[0].size or (got[0].min() >= 0 and got[0].max() < 1), "uniform: outside [0, 1)"


def normal(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _sample("normal", got[0], case.inputs[0], 0, 1)
    if got[0].size >= _MANY:
        beyond = (np.abs(got[0]) > 1.96).mean()
        assert abs(beyond - 0.05) < 0.01, f"normal: {beyond} beyond 1.96, wanted 0.05"


def truncated(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _sample("truncated normal", got[0], case.inputs[0], 0, 0.8796)
    assert not got[0].size or np.abs(got[0]).max() <= 2, "truncated normal: beyond 2"


def between(d: Draw) -> Iterator[Case]:
    """Means of several deviations, of scalars and of rows: normal, uniform and exponential proposals, and mirrored ones."""
    bounds = ((-1.0, 2.0), (-0.5, 0.3), (3.0, 3.1), (4.0, 40.0), (-40.0, -4.0), (-np.inf, 0.5), (0.5, np.inf))
    for shape in _SHAPES[1:]:
        for low, high in bounds:
            parameters = [np.array(v) for v in (1.0, 2.0, 1 + 2 * low, 1 + 2 * high)]
            yield Case([np.array(shape, np.int64), *parameters], {"seed": 7, "seed2": 11})
    rows = [np.array(v, np.float64) for v in ([0, 5, 9], [1, 2, 0.5], [-1, 6, 0], [1, 90, 9])]
    yield Case([np.array([3, _MANY], np.int64), *rows], {"seed": 7, "seed2": 11})


def within(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _, mean, deviation, low, high = case.inputs
    for row in range(mean.size) if mean.ndim else (slice(None),):
        m, s, a, b = (float(np.atleast_1d(v)[row if mean.ndim else 0]) for v in (mean, deviation, low, high))
        x = np.linspace(max(a, m - 12 * s), min(b, m + 12 * s), 200001)
        density = np.exp(-0.5 * (((x - m) / s) ** 2 - min(((x - m) / s) ** 2)))
        density /= density.sum()
        want = (density * x).sum()
        spread = (density * (x - want) ** 2).sum() ** 0.5
        values = got[0][row].astype(np.float64)
        slack = 0 if types[0].name == "float64" else 4e-3 * (abs(m) + 12 * s)
        assert not values.size or (values.min() >= a - slack and values.max() <= b + slack), f"row {row} is out of bounds"
        if values.size >= _MANY and types[0].name in ("float32", "float64"):
            _sample("truncated normal", values, values.shape, want, spread)


def bounded(d: Draw) -> Iterator[Case]:
    for shape in _SHAPES:
        yield Case([np.array(shape, np.int64), np.array(-3), np.array(7)], {"seed": 3, "seed2": 5})


def integers(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _sample("integers", got[0].astype(float), case.inputs[0], 1.5, (99 / 12) ** 0.5)
    assert not got[0].size or (got[0].min() >= -3 and got[0].max() < 7), "integers: outside [-3, 7)"


def gammas(d: Draw) -> Iterator[Case]:
    for shape in _SHAPES:
        yield Case([np.array(shape, np.int64), np.array([0.5, 3.0])], {"seed": 3, "seed2": 5}, gradient=False)


def gamma(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    for k, alpha in enumerate((0.5, 3.0)):
        _sample(f"gamma {alpha}", got[0][..., k], case.inputs[0], alpha, alpha**0.5)
    assert not got[0].size or got[0].min() >= 0, "gamma: below 0"


def poissons(d: Draw) -> Iterator[Case]:
    for shape in _SHAPES:
        yield Case([np.array(shape, np.int64), np.array([2, 30])], {"seed": 3, "seed2": 5}, gradient=False)


def poisson(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    for k, rate in enumerate((2.0, 30.0)):
        _sample(f"Poisson {rate}", got[0][..., k].astype(float), case.inputs[0], rate, rate**0.5)
    assert np.array_equal(got[0], np.round(got[0])), "Poisson: fractions"


def of_all(cases: Any) -> Any:
    """The cases with the shape of all samples."""

    def whole(d: Draw) -> Iterator[Case]:
        for case in cases(d):
            shape = np.concatenate([case.inputs[0].ravel(), np.shape(case.inputs[-1])]).astype(np.int64)
            yield Case([shape, *case.inputs[1:]], case.attrs, gradient=False)

    return whole


def samples_of_all(check: Any) -> Any:
    def of_front(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
        check(Case([case.inputs[0][:-1], *case.inputs[1:]], case.attrs), got, types)

    return of_front


def logits(d: Draw) -> Iterator[Case]:
    for rows, classes, count in ((1, 1, 17), (2, 5, 0), (0, 3, 4), (2, 3, _MANY)):
        yield Case([d.uniform((rows, classes), 0, 3), np.array(count)], {"seed": 3, "seed2": 5}, gradient=False)


def multinomial(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    values, count = case.inputs[0], int(case.inputs[1])
    assert got[0].shape == (len(values), count), f"multinomial: shape {got[0].shape}"
    if count < _MANY:
        return
    share = np.exp(values - values.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    for row, want in zip(got[0], share):
        have = np.bincount(row.astype(np.int64), minlength=len(want)) / count
        assert np.abs(have - want).max() < 0.03, f"multinomial: shares {have}, wanted {want}"


def with_seed(cases: Any, at: int) -> Any:
    """The cases with a seed for an input instead of attributes."""

    def seeded(d: Draw) -> Iterator[Case]:
        for k, case in enumerate(cases(d)):
            inputs = list(case.inputs)
            inputs.insert(at if at >= 0 else len(inputs), np.array([k, 7]))
            yield Case(inputs, {n: v for n, v in case.attrs.items() if n not in ("seed", "seed2")}, case.types, case.label)

    return seeded


def stateless_integers(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    shape, _, *bounds = case.inputs
    integers(Case([shape, *bounds], case.attrs), got, types)


# ---- keys and counters ----


def _philox(counter: int, key: int) -> list[int]:
    """The block of Philox4x32-10 (Salmon et al., 2011) of a counter of 128 bits under a key of 64."""
    low = (1 << 32) - 1
    c = [counter >> 32 * i & low for i in range(4)]
    k = [key & low, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    return c


def _key_counter(seed: np.ndarray) -> tuple[int, int]:
    """The key, and the high half of the counter, that stand for a seed."""
    wide = (1 << 64) - 1
    x = _philox(int(seed[0]) & wide | (int(seed[1]) & wide) << 64, 0x02461E293EC8F720)
    return x[0] | x[1] << 32, x[2] | x[3] << 32


def seeds(d: Draw) -> Iterator[Case]:
    for seed in ([0, 0], [3, 7], [-3, 7], [(1 << 31) - 1, -(1 << 31)]):
        yield Case([np.array(seed)], gradient=False)


def check_key_counter(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    key, counter = _key_counter(case.inputs[0])
    assert got[0].tolist() == [key] and got[1].tolist() == [0, counter], f"{got}, wanted {key} and {counter}"
    assert len(got) == 2 or got[2] == 1, f"algorithm {got[2]}, wanted 1"


def with_key(cases: Any) -> Any:
    """The cases of stateless ops with key, counter and algorithm for their seed."""

    def keyed(d: Draw) -> Iterator[Case]:
        for case in cases(d):
            shape, seed, *rest = case.inputs
            rest = [r + 3 for r in rest] if d.kind == "u" else rest  # bounds that are not below 0
            key, counter = _key_counter(seed)
            for algorithm in (1, 3):
                of = [np.array([key], np.uint64), np.array([0, counter], np.uint64), np.array(algorithm, np.int32)]
                yield Case([shape, *of, *rest], case.attrs, case.types, case.label)

    return keyed


def keyed_integers(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    integers(case, [got[0].astype(np.int64) - (3 if types[0].name.startswith("u") else 0)], types)


def _full(case: Case, key: int, counter: int, got: np.ndarray, bits: int) -> None:
    assert got.shape == tuple(case.inputs[0]), f"shape {got.shape}"
    words = [w for i in range(3) for w in _philox(counter << 64 | i, key)]
    if bits == 64:
        words = [low | high << 32 for low, high in zip(words[::2], words[1::2])]
    have = [int(v) & (1 << bits) - 1 for v in got.reshape(-1)[: len(words)]]
    assert have == words[: len(have)], f"{have}, wanted {words}"


def _bits(types: Sequence[DType]) -> int:
    return 32 if types[0].name.endswith("32") else 64


def full_integers(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _full(case, *_key_counter(case.inputs[1]), got[0], _bits(types))


def full_keyed_integers(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    _full(case, int(case.inputs[1][0]), int(case.inputs[2][1]), got[0], _bits(types))


def older_poissons(d: Draw) -> Iterator[Case]:
    for case in poissons(d):
        yield Case(case.inputs, case.attrs, {}, case.label)


def shuffled(d: Draw) -> Iterator[Case]:
    for shape in ((), (0,), (1,), (17,), (5, 3), (1025,)):
        yield Case([d.any(shape)], {"seed": 3, "seed2": 5}, gradient=False)


def shuffle(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    have, want = got[0], case.inputs[0]
    assert have.shape == want.shape, f"shuffle: shape {have.shape}, wanted {want.shape}"
    if have.ndim and types[0].kind in "iu":
        assert sorted(have.tolist()) == sorted(want.tolist()), "shuffle: other rows than went in"
        assert len(have) < 100 or have.tolist() != want.tolist(), "shuffle: nothing moved"


_CLASSES, _DRAWN = 12, 30000
_COUNTS = np.array([9.0, 1, 4, 0, 16, 1, 25, 2, 3, 1, 1, 1])
_DISTRIBUTIONS = {
    "UniformCandidateSampler": np.ones(_CLASSES),
    "LogUniformCandidateSampler": np.log((np.arange(_CLASSES) + 2.0) / (np.arange(_CLASSES) + 1.0)),
    "LearnedUnigramCandidateSampler": np.ones(_CLASSES),
    "ThreadUnsafeUnigramCandidateSampler": np.ones(_CLASSES),
    "FixedUnigramCandidateSampler": _COUNTS**0.5,
}


def candidates(op: str) -> Any:
    more: dict[str, Any] = {"range_max": _CLASSES}
    if op.startswith("Fixed"):
        more |= {"unigrams": _COUNTS.tolist(), "distortion": 0.5}
    if op.startswith("All"):
        more = {}

    def cases(d: Draw) -> Iterator[Case]:
        true = np.array([[1, 6], [0, 4], [8, 8]])
        seeds = {"num_true": 2, "seed": 3, "seed2": 5, **more}
        yield Case([true], {"num_sampled": 7, "unique": True, **seeds})
        if more:
            yield Case([true], {"num_sampled": _DRAWN, "unique": False, **seeds})

    return cases


def check_candidates(op: str) -> Any:
    def check(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
        count = int(case.attrs["num_sampled"])
        drawn = got[0].astype(int)
        assert drawn.shape == (count,) and drawn.min() >= 0, f"{op}: drew {drawn}"
        if op.startswith("All"):
            assert drawn.tolist() == list(range(count)), f"{op}: drew {drawn}"
            return
        share = _DISTRIBUTIONS[op] / _DISTRIBUTIONS[op].sum()
        if case.attrs["unique"]:
            assert len(set(drawn.tolist())) == count, f"{op}: drew {drawn}, which is not unique"
            return
        have = np.bincount(drawn, minlength=_CLASSES) / count
        assert np.abs(have - share).max() < 0.02, f"{op}: shares {have}, wanted {share}"
        for name, expected, classes in (("true", got[1], case.inputs[0]), ("sampled", got[2], drawn)):
            want = share[classes] * count
            assert np.allclose(expected, want, rtol=1e-4), f"{op}: expected counts of {name} classes are wrong"

    return check


def hits(d: Draw) -> Iterator[Case]:
    yield Case([np.array([[1, 2], [7, 1], [3, 3]]), np.array([7, 1, 5, 2])], {"num_true": 2})
    yield Case([np.array([[4]]), np.array([0, 1])], {"num_true": 1})


def check_hits(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    true, drawn = case.inputs
    want = sorted((r, k) for r, row in enumerate(true) for c in row for k, s in enumerate(drawn) if s == c)
    have = sorted(zip(got[0].astype(int).tolist(), got[1].astype(int).tolist()))
    assert have == want, f"hits {have}, wanted {want}"
    assert (got[2] == -np.finfo(np.float32).max).all(), f"weights {got[2]}"


def add_to(table: Table) -> None:
    for seeded, prefix in ((False, "Random"), (True, "StatelessRandom")):
        table.add(f"{prefix}Uniform", shaped(seeded), check=uniform, main="dtype")
    table.add("RandomStandardNormal", shaped(False), check=normal, main="dtype")
    table.add("StatelessRandomNormal", shaped(True), check=normal, main="dtype")
    table.add("TruncatedNormal", shaped(False), check=truncated, main="dtype")
    table.add("StatelessTruncatedNormal", shaped(True), check=truncated, main="dtype")
    table.add("ParameterizedTruncatedNormal", between, check=within, main="dtype")
    table.add("RandomUniformInt", bounded, check=integers, main="Tout")
    table.add("RandomGamma", gammas, check=gamma, main="T")
    table.add("RandomPoissonV2", poissons, check=poisson, main="dtype")
    table.add("StatelessRandomGammaV2", with_seed(of_all(gammas), 1), check=samples_of_all(gamma), main="dtype")
    table.add("StatelessRandomGammaV3", with_key(with_seed(of_all(gammas), 1)), check=samples_of_all(gamma), main="dtype")
    table.add("StatelessRandomPoisson", with_seed(of_all(poissons), 1), check=samples_of_all(poisson), main="dtype")
    table.add("StatelessShuffle", with_key(with_seed(shuffled, 1)), check=shuffle)
    table.add("Multinomial", logits, check=multinomial)
    table.add("RandomPoisson", older_poissons, check=poisson, main="dtype")
    table.add("StatelessMultinomial", with_seed(logits, -1), check=multinomial)
    table.add("StatelessRandomUniformInt", with_seed(bounded, 1), check=stateless_integers, main="dtype")
    table.add("StatelessRandomUniformV2", with_key(shaped(True)), check=uniform, main="dtype")
    table.add("StatelessRandomNormalV2", with_key(shaped(True)), check=normal, main="dtype")
    table.add("StatelessTruncatedNormalV2", with_key(shaped(True)), check=truncated, main="dtype")
    table.add("StatelessRandomUniformIntV2", with_key(with_seed(bounded, 1)), check=keyed_integers, main="dtype")
    table.add("StatelessRandomUniformFullInt", shaped(True), check=full_integers, main="dtype")
    table.add("StatelessRandomUniformFullIntV2", with_key(shaped(True)), check=full_keyed_integers, main="dtype")
    table.add("StatelessRandomGetKeyCounter", seeds, check=check_key_counter)
    table.add("StatelessRandomGetKeyCounterAlg", seeds, check=check_key_counter)
    table.add("StatelessRandomGetAlg", lambda d: iter([Case([], gradient=False)]), lambda: np.array(1))
    table.add("RandomShuffle", shuffled, check=shuffle)
    for op in (*_DISTRIBUTIONS, "AllCandidateSampler"):
        table.add(op, candidates(op), check=check_candidates(op))
    table.add("ComputeAccidentalHits", hits, check=check_hits)
