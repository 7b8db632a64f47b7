# SPDX-License-Identifier: Apache-2.0
"""Connectionist temporal classification, against the sum over all paths: the last class is the blank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from dtypes import DType
from table import Case, Draw, Table

_TIME, _BATCH, _CLASSES = 4, 3, 3
_LENGTHS = np.array([4, 3, 2])


def _log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _collapsed(path: Sequence[int], merge: bool = True) -> tuple[int, ...]:
    if merge:
        path = [c for c, _ in itertools.groupby(path)]
    return tuple(c for c in path if c != _CLASSES - 1)


def _labelings(log_p: np.ndarray, merge: bool = True) -> dict[tuple[int, ...], float]:
    """The probability of each label sequence for log-probabilities [time, classes]."""
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(_CLASSES), repeat=len(log_p)):
        labels = _collapsed(path, merge)
        found[labels] = found.get(labels, 0.0) + float(np.exp(sum(log_p[t, c] for t, c in enumerate(path))))
    return found


def _rows(indices: np.ndarray, values: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(values[indices[:, 0] == b].astype(int).tolist()) for b in range(_BATCH)]


def labelled(d: Draw) -> Iterator[Case]:
    for labels in (((0, 1), (1,), (0,)), ((0, 0), (1, 0), (1,))):
        at = [(b, i) for b, row in enumerate(labels) for i in range(len(row))]
        values = np.array([c for row in labels for c in row], np.int32)
        x = d.uniform((_TIME, _BATCH, _CLASSES))
        yield Case([x, np.array(at, np.int64).reshape(-1, 2), values, _LENGTHS])


def losses(x: np.ndarray, indices: np.ndarray, values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    log_p = _log_softmax(x)
    return np.array([-np.log(_labelings(log_p[: lengths[b], b])[row]) for b, row in enumerate(_rows(indices, values))])


def check_loss(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    x, indices, values, lengths = (np.asarray(v) for v in case.inputs)
    step = 1e-5
    want = losses(x, indices, values, lengths)
    assert np.allclose(got[0], want, rtol=1e-4), f"losses {got[0]}, wanted {want}"
    for at in itertools.product(*(range(n) for n in x.shape)):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        slope = (losses(up, indices, values, lengths) - losses(down, indices, values, lengths)).sum() / (2 * step)
        assert abs(got[1][at] - slope) < 1e-4, f"derivative at {at}: {got[1][at]}, wanted {slope}"


def unlabelled(attrs: dict[str, object]) -> object:
    def cases(d: Draw) -> Iterator[Case]:
        for _ in range(3):
            yield Case([d.apart((_TIME, _BATCH, _CLASSES)), _LENGTHS], dict(attrs))

    return cases


def check_greedy(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    x, lengths = case.inputs
    merge = bool(case.attrs["merge_repeated"])
    want = [_collapsed(x[: lengths[b], b].argmax(-1).tolist(), merge) for b in range(_BATCH)]
    assert _rows(got[0], got[1]) == want, f"labels {_rows(got[0], got[1])}, wanted {want}"
    assert got[2].tolist() == [_BATCH, max(map(len, want))], f"shape {got[2]}"
    scores = [[-x[: lengths[b], b].max(-1).sum()] for b in range(_BATCH)]
    assert np.allclose(got[3], scores, rtol=1e-4), f"scores {got[3]}, wanted {scores}"


def check_beam(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    """The beam is wide enough to hold every prefix, so the search is exact."""
    x, lengths = case.inputs
    paths = int(str(case.attrs["top_paths"]))
    for b in range(_BATCH):
        best = sorted(_labelings(_log_softmax(x)[: lengths[b], b]).items(), key=lambda item: -item[1])
        for p in range(paths):
            labels = _rows(got[p], got[paths + p])[b]
            assert labels == best[p][0], f"path {p} of sequence {b} is {labels}, wanted {best[p][0]}"
            have, want = got[3 * paths][b, p], np.log(best[p][1])
            assert abs(have - want) < 1e-4, f"log-probability {have}, wanted {want}"


def add_to(table: Table) -> None:
    table.add("CTCLoss", labelled, check=check_loss)
    for merge in (False, True):
        table.add("CTCGreedyDecoder", unlabelled({"merge_repeated": merge}), check=check_greedy, note=f"merge {merge}")
    beam = {"beam_width": 200, "top_paths": 2, "merge_repeated": False}
    table.add("CTCBeamSearchDecoder", unlabelled(beam), check=check_beam)
