# SPDX-License-Identifier: Apache-2.0
"""Trains the same nets with Millrace, PyTorch, TensorFlow and JAX in turns, and prints how their steps compare.

  compare.py LIBRARY [--torch PYTHON] [--tensorflow PYTHON] [--jax PYTHON] [--pairs 9] [--threads 2] [--only NET]

Each library trains in a process of its own, which has the others' processor while they wait. One turn of every library
makes a round; ratios are taken within a round, and their median is printed: above 1 Millrace is faster. The error is
that of the loss after five steps against the same training in double precision by the first peer.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

from nets import NETS

_HERE = os.path.dirname(os.path.abspath(__file__))
_STEPS_BEFORE = 5
_TURN_SECONDS = 0.3
_PAUSE = 0.05  # until the threads of the last turn have stopped spinning


class Worker:
    def __init__(self, python: str, peer: str, net: str, dtype: str, threads: int, *more: str) -> None:
        self.peer = peer
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MILLRACE_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [python, os.path.join(_HERE, "worker.py"), peer, net, dtype, str(threads), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)  # fmt: skip
        if self._line() != "ready":
            raise RuntimeError(f"{peer} did not start")

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{self.peer} ended")
        return line

    def run(self, steps: int) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        seconds, loss = map(float, self._line().split())
        return seconds / steps, loss

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(net: str, pythons: dict[str, str], library: str, pairs: int, threads: int) -> None:
    def start(peer: str, dtype: str) -> Worker:
        return Worker(pythons[peer], peer, net, dtype, threads, *([library] if peer == "millrace" else []))

    peers = [p for p in pythons if p != "millrace"]
    exact = start(peers[0], "float64")
    wanted = exact.run(_STEPS_BEFORE)[1]
    exact.close()
    workers = [start(peer, "float32") for peer in pythons]
    errors = {w.peer: abs(w.run(_STEPS_BEFORE)[1] - wanted) / abs(wanted) for w in workers}
    steps = {w.peer: max(1, round(_TURN_SECONDS / w.run(1)[0])) for w in workers}
    times: dict[str, list[float]] = {w.peer: [] for w in workers}
    for number in range(pairs):
        for worker in workers if number % 2 else reversed(workers):
            time.sleep(_PAUSE)
            times[worker.peer].append(worker.run(steps[worker.peer])[0])
    for worker in workers:
        worker.close()
    ours = times["millrace"]
    for peer, taken in times.items():
        ratio = "" if peer == "millrace" else f"{statistics.median(a / b for a, b in zip(taken, ours)):.2f}"
        print(f"{net:8} {peer:11} {statistics.median(taken) * 1e3:10.3f} {ratio:>6}  {errors[peer]:.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--torch", default=os.environ.get("MILLRACE_TORCH_PYTHON", ""), help="a Python with torch")
    parser.add_argument("--tensorflow", default=os.environ.get("MILLRACE_TF_PYTHON", ""), help="one with tensorflow")
    parser.add_argument("--jax", default=os.environ.get("MILLRACE_JAX_PYTHON", ""), help="one with jax")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    pythons = {p: python for p, python in (("torch", args.torch), ("tensorflow", args.tensorflow), ("jax", args.jax)) if python}
    if not pythons:
        parser.error("name a Python with a peer: --torch, --tensorflow, --jax, or MILLRACE_TORCH_PYTHON, MILLRACE_TF_PYTHON, MILLRACE_JAX_PYTHON")
    pythons["millrace"] = sys.executable
    print(f"{'net':8} {'library':11} {'ms a step':>10} {'ratio':>6}  error of the loss")
    for net in NETS:
        if args.only in net:
            compare(net, pythons, os.path.abspath(args.library), args.pairs, args.threads)


if __name__ == "__main__":
    main()
