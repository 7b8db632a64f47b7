#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every op, and says how exact the functions and reductions are.

  ops.py OURS.so [--peer LIB.so] [--only REGEX] [--threads 1,2] [--rounds 7] [--goal RATIO] [--json OUT] [--shapes] [--list]

Rows come from the registry of the library: op_rows.py says how. With a peer, TensorFlow's C library (found by itself where
this Python has the wheel) or another build of ours, both are timed in turns, a process for each library and thread count,
and their values compared. Times are the least of the rounds, in microseconds: what other programs do only adds to them;
with one thread they are the processor's. A ratio is peer / ours: above 1 ours is faster. `scale` is how many times faster the last thread count is than the first.
Errors are the largest over the elements that NumPy's answer in float64 is known for, in units of the last place: of ours,
then of the peer.

An op has no row for a reason (--list shows it). The exit status is 1 when an op has neither, when values differ, or with
--goal when a row's ratio is below it twice.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "case_table"))

from numpy_or_skip import np
from op_rows import Declared, OpRow, Rows
from op_timer import Failed, Worker, open_library
from dtypes import F32, F64, DType, widen

_SECONDS = 0.004  # of one timing, at least
_PATIENCE = 120.0
_CHECKED = 1 << 14  # elements that NumPy computes of element-wise rows


@dataclasses.dataclass
class Measured:
    name: str
    op: str
    failed: str = ""
    ours: dict[int, float] = dataclasses.field(default_factory=dict)  # microseconds by thread count
    peer: dict[int, float] = dataclasses.field(default_factory=dict)
    ratio: dict[int, float] = dataclasses.field(default_factory=dict)
    ulp: float | None = None
    peer_ulp: float | None = None
    values: str = "-"

    @property
    def scaling(self) -> float:
        counts = sorted(self.ours)
        return self.ours[counts[0]] / self.ours[counts[-1]]


Values = list[tuple[tuple[int, ...], np.ndarray, DType]]


def differ(row: OpRow, ours: Values, peer: Values) -> str:
    """How the peer's values compare, as far as they are determined."""
    if row.tested is None or row.tested.check is not None or row.tested.oracle is None:
        return "-"
    for k, ((shape, a, dtype), (other, b, _)) in enumerate(zip(ours, peer)):
        if shape != other:
            return f"differ: output {k} is {shape}, the peer's {other}"
        if dtype.kind in "fc":
            x, y = widen(a, dtype), widen(b, dtype)
            tolerance = 2e-2 if dtype.name in ("bfloat16", "float16") else 1e-3
            same = np.isclose(x, y, tolerance, tolerance * max(1e-6, float(np.nanmax(np.abs(y), initial=0))), equal_nan=True)
        else:
            same = a == b
        if not np.all(same):
            return f"differ: output {k} in {int(np.size(same) - np.sum(same))} of {np.size(same)}"
    return "agree"


def largest_error(want: Sequence[np.ndarray] | None, got: Values) -> float | None:
    """In units of the last place of what is wanted, of the floats among the outputs."""
    largest = None
    for expected, (_, stored, dtype) in zip(want or (), got):
        if dtype not in (F32, F64) or expected.dtype.kind != "f":
            continue
        n = min(expected.size, stored.size)
        exact, have = expected.ravel()[:n].astype(np.float64), widen(stored[:n], dtype)
        finite = np.isfinite(exact) & np.isfinite(have)
        unit = np.spacing(np.abs(exact[finite]).astype(dtype.stored)).astype(np.float64)
        if unit.size:
            largest = max(largest or 0.0, float(np.max(np.abs(have[finite] - exact[finite]) / unit)))
    return largest


class Sweep:
    def __init__(self, rows: Rows, ours: dict[int, Worker], peer: dict[int, Worker], rounds: int) -> None:
        self.rows, self.ours, self.peer, self.rounds = rows, ours, peer, rounds

    def measure(self, at: int) -> Measured:
        row = self.rows.rows[at]
        result = Measured(row.name, row.op)
        try:
            built = {n: worker.ask("build", at) for n, worker in self.ours.items()}
        except Failed as problem:
            result.failed = f"ours: {problem}"
            return result
        first = built[min(built)]
        with np.errstate(all="ignore"):
            want = self.rows.expected(row, _CHECKED)
            result.ulp = largest_error(want, first)
        sides = [("ours", self.ours)]
        try:
            theirs = {n: worker.ask("build", at) for n, worker in self.peer.items()}
            if theirs:
                sides.append(("peer", self.peer))
                result.values = differ(row, first, theirs[min(theirs)])
                result.peer_ulp = largest_error(want, theirs[min(theirs)])
        except Failed as problem:
            result.values = f"no peer: {' '.join(str(problem).split())[:70]}"
        try:
            self._time(sides, result)
        except Failed as problem:
            result.failed = str(problem)
        return result

    def _time(self, sides: list[tuple[str, dict[int, Worker]]], result: Measured) -> None:
        keys = [(side, n, workers[n]) for n in self.ours for side, workers in sides]
        loops = {}
        for side, n, worker in keys:
            took = min(worker.ask("time", 1) for _ in range(2))
            loops[side, n] = max(1, min(10_000, math.ceil(_SECONDS / max(took, 1e-9))))
        times: dict[tuple[str, int], list[float]] = {key: [] for key in loops}
        start = time.perf_counter()
        for turn in range(self.rounds):
            if turn >= 3 and time.perf_counter() - start > 1.5:
                break
            for side, n, worker in keys if turn % 2 else keys[::-1]:
                times[side, n].append(worker.ask("time", loops[side, n]) * 1e6)
        for n in self.ours:
            result.ours[n] = min(times["ours", n])
            if len(sides) > 1:
                result.peer[n] = min(times["peer", n])
                result.ratio[n] = result.peer[n] / result.ours[n]


def line(m: Measured, threads: Sequence[int]) -> str:
    if m.failed:
        return f"{m.name:52} {' '.join(m.failed.split())[:110]}"
    cells = [f"{m.name:52}"]
    for n in threads:
        peer = f"{m.peer[n]:10.1f} {m.ratio[n]:6.2f}" if m.peer else " " * 17
        cells.append(f"{m.ours[n]:10.1f} {peer}")
    if len(threads) > 1:
        cells.append(f"{m.scaling:5.2f}")
    errors = [f"{e:9.3g}" if e is not None else " " * 9 for e in (m.ulp, m.peer_ulp)]
    return " ".join(cells + errors + [m.values])


def summary(results: Sequence[Measured], threads: Sequence[int]) -> None:
    timed = [m for m in results if not m.failed]
    paired = [m for m in timed if m.ratio]
    print(f"{len(timed)} rows timed, {len(results) - len(timed)} not; values differ in {sum(m.values.startswith('differ') for m in timed)}")
    for n in threads if paired else ():
        ratios = [m.ratio[n] for m in paired]
        print(
            f"{n} threads: geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}, "
            f"{sum(r < 0.9 for r in ratios)} below 0.9, {sum(r < 0.5 for r in ratios)} below 0.5"
        )
    if len(threads) > 1:
        slower = [m.name for m in timed if m.scaling < 0.8 and m.ours[threads[-1]] > 100]
        print(f"slower with {threads[-1]} threads than with {threads[0]}: {'; '.join(slower) or 'none'}")


def peer_library() -> str:
    found = importlib.util.find_spec("tensorflow")
    path = os.path.join(os.path.dirname(found.origin), "libtensorflow_cc.so.2") if found and found.origin else ""
    return path if os.path.exists(path) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", metavar="OURS.so")
    parser.add_argument("--peer", default=peer_library(), metavar="LIB.so", help="'' for none")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose name it matches, in any case")
    parser.add_argument("--threads", default="1,2", help="thread counts (1,2)")
    parser.add_argument("--rounds", type=int, default=7, help="timings of a row (7)")
    parser.add_argument("--goal", type=float, default=0.0, metavar="RATIO")
    parser.add_argument("--json", metavar="OUT", help="all figures")
    parser.add_argument("--shapes", action="store_true", help="also awkward shapes and other dtypes, of op_shapes.py")
    parser.add_argument("--list", action="store_true", help="the rows, and the ops without one; nothing is timed")
    args = parser.parse_args()
    ours = os.path.abspath(args.ours)
    library = open_library(ours)
    declared = Declared(library.ops(), library.kernels(), args.shapes)
    rows = Rows(declared)
    unexplained = sorted(op for op, why in rows.reasons.items() if not why)
    for op in unexplained:
        print(f"{op}: neither a row nor a reason")
    picked = [k for k, r in enumerate(rows.rows) if re.search(args.only, r.name, re.IGNORECASE)]
    if args.list:
        for k in picked:
            print(rows.rows[k].name)
        for op, why in sorted(rows.reasons.items()):
            print(f"{op}: no row: {why}")
        print(f"{len(rows.rows)} rows of {len({r.op for r in rows.rows})} ops; {len(rows.reasons)} ops without")
        return 1 if unexplained else 0
    threads = [int(n) for n in args.threads.split(",")]
    sides = [{n: Worker(path, declared, n, _PATIENCE) for n in threads} if path else {} for path in (ours, args.peer)]
    sweep = Sweep(rows, sides[0], sides[1], args.rounds)
    heads = [f"{f'ours/{n}':>10} {f'peer/{n}':>10} {'ratio':>6}" for n in threads]
    scaling = ["scale"] * (len(threads) > 1)
    print(" ".join([f"{'microseconds':52}", *heads, *scaling, f"{'ulp':>9} {'peer ulp':>9}", "values"]))
    results, short = [], []
    for k in picked:
        m = sweep.measure(k)
        if m.ratio and min(m.ratio.values()) < args.goal:
            m = sweep.measure(k)
            if m.failed or min(m.ratio.values(), default=0.0) < args.goal:
                short.append(m.name)
        results.append(m)
        print(line(m, threads), flush=True)
    summary(results, threads)
    if short:
        print(f"below the goal of {args.goal:g} twice: {'; '.join(short)}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            figures: list[dict[str, Any]] = [dataclasses.asdict(m) for m in results]
            json.dump(figures, out, indent=1)
    bad = [m for m in results if m.values.startswith("differ") or m.failed.startswith("ours")]
    return 1 if bad or short or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
