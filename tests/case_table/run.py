# SPDX-License-Identifier: Apache-2.0
"""The case table: every op against NumPy in float64, and its gradient against differences.

  run.py LIBRARY [--only OP] [--seed N] [--device TYPE --plugin LIBRARY]

Each op of the library has a row in one of the *_rows.py files, a graph in *programs.py, or a line in reasons.py that
says where it is tested. A failing case is printed with its dtype, shapes, attributes, and the command that repeats it.
NumPy is that of this Python, else that of Debian's.

With --device the ops that have kernels on that type of device, which a library adds, run there.
"""

from __future__ import annotations

import argparse
import sys
import time

from numpy_or_skip import np

import families
import programs
from capi import Library
from reasons import REASONS
from runner import Runner
from table import Table


def missing(runner: Runner, table: Table) -> list[str]:
    rows = {row.op for row in table.rows} | {op for ops in programs.PROGRAMS.values() for op in ops}
    wrong = [f"{op}: neither a row nor a reason" for op in runner.ops if op not in rows and op not in REASONS]
    wrong += [f"{op}: a row and a reason" for op in sorted(rows & REASONS.keys())]
    return wrong + [f"{op}: a row, but no such op" for op in sorted(rows - runner.ops.keys())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--only", default="", help="ops that contain this, in any case")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--device", default="")
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    np.seterr(all="ignore")
    library = Library(args.library)
    if args.device:
        library.run_on(args.plugin, args.device)
    runner = Runner(library, args.seed)
    table = Table()
    families.add_to(table)
    wrong = [] if args.only or args.device else missing(runner, table)
    if not args.device:
        wrong += programs.run_all(runner.library, args.only)
    for line in wrong:
        print(f"FAILED {line}")
    rows = [r for r in table.rows if args.only.lower() in r.op.lower() and r.op in runner.ops]
    if args.device:
        there = {k.op for k in library.kernels() if k.device == args.device}
        rows = [r for r in rows if r.op in there]
    start = shown = time.monotonic()
    for number, row in enumerate(rows):
        failures = list(runner.run_row(row))
        wrong += failures
        for line in failures[:3]:
            print(f"FAILED {line}\n  again: run.py {args.library} --only {row.op} --seed {args.seed}")
        if len(failures) > 3:
            print(f"  and {len(failures) - 3} more of {row.op}")
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            print(f"{number + 1} of {len(rows)} rows, {runner.stats.values} values, {runner.stats.gradients} gradients, {shown - start:.0f} s", flush=True)
    print(
        f"{len(rows)} rows: {runner.stats.values} values, {runner.stats.gradients} gradients, {len(wrong)} wrong, "
        f"{runner.stats.not_there} not there, "
        f"{time.monotonic() - start:.0f} s, seed {args.seed}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
