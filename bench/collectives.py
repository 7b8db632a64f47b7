# SPDX-License-Identifier: Apache-2.0
"""What an all-reduce among processes of this machine costs, beside copying as many bytes.

  PYTHONPATH=build/release/python python bench/collectives.py [--mb 100] [--tasks 2,4] [--steps 10]

Starts the tasks as servers; each has a float32 value of that size and gets the sum. Prints the median step, and as "bandwidth" the bytes of one
value divided by it. A memcpy of the value is timed between the steps.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time

import numpy as np

import millrace as tf
from millrace.ops import collective_ops


def port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return int(s.getsockname()[1])


def measure(tasks: int, mb: float, steps: int) -> tuple[list[float], list[float]]:
    """Seconds of each step, and of a copy beside it."""
    cluster = "worker=" + ",".join("localhost:%d" % port() for _ in range(tasks))
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--job", "worker", "--task", str(i)], stdout=subprocess.PIPE, text=True
        )
        for i in range(tasks)
    ]
    try:
        for server in servers:
            assert server.stdout is not None and "listens at" in server.stdout.readline()
        size = int(mb * (1 << 20)) // 4
        with tf.Graph().as_default():
            sums, values = [], []
            for i in range(tasks):
                with tf.device("/job:worker/task:%d" % i):
                    values.append(tf.Variable(tf.fill([size], float(i + 1))))
                    sums.append(collective_ops.all_reduce(values[-1].read_value(), tasks, 1, 1, "Add", "Id"))
            checks = [s[size // 2] for s in sums]
            step = tf.group(*[s.op for s in sums])
            source = np.ones(size, np.float32)
            target = np.zeros_like(source)
            took, copies = [], []
            with tf.Session("grpc://" + cluster.split("=")[1].split(",")[0]) as session:
                session.run(tf.global_variables_initializer())
                assert session.run(checks) == [tasks * (tasks + 1) / 2] * tasks
                session.run(step)
                for _ in range(steps):
                    began = time.perf_counter()
                    session.run(step)
                    took.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    np.copyto(target, source)
                    copies.append(time.perf_counter() - began)
        return took, copies
    finally:
        for server in servers:
            server.kill()
            server.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--tasks", default="2,4")
    parser.add_argument("--steps", type=int, default=10)
    a = parser.parse_args()
    for tasks in map(int, a.tasks.split(",")):
        took, copies = measure(tasks, a.mb, a.steps)
        step, copy = statistics.median(took), statistics.median(copies)
        print(
            "%d tasks, %g MB: %.1f ms (%.1f to %.1f), bandwidth %.2f GB/s; memcpy %.1f ms, %.2f GB/s; %.1f copies"
            % (tasks, a.mb, step * 1e3, min(took) * 1e3, max(took) * 1e3, a.mb * 1.048576e-3 / step, copy * 1e3, a.mb * 1.048576e-3 / copy, step / copy)
        )


if __name__ == "__main__":
    main()
