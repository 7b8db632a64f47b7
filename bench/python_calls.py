# SPDX-License-Identifier: Apache-2.0
"""What the Python client costs beside TensorFlow's: both in one process, in turns.

  PYTHONPATH=build/release/python PYTHON_WITH_TENSORFLOW bench/python_calls.py [ROUNDS]

Prints a table: medians in microseconds, and the median of the paired ratios (TensorFlow's time over ours).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
import tensorflow

import millrace

tensorflow.compat.v1.disable_eager_execution()
Run = Callable[[int], None]


def session(tf: Any) -> Any:
    return tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2))


def run(tf: Any) -> Run:
    x = tf.placeholder(tf.float32, [2])
    y, s, feed = x + 1.0, session(tf), np.ones(2, np.float32)

    def go(count: int) -> None:
        for _ in range(count):
            s.run(y, {x: feed})

    return go


def call(tf: Any) -> Run:
    x = tf.placeholder(tf.float32, [2])
    f, feed = session(tf).make_callable(x + 1.0, [x]), np.ones(2, np.float32)

    def go(count: int) -> None:
        for _ in range(count):
            f(feed)

    return go


def large(tf: Any) -> Run:
    # A fed array comes back as it is nowhere: reshaping shares its memory in both libraries.
    x = tf.placeholder(tf.float32, [None])
    y, s, feed = tf.reshape(x, [-1, 1024]), session(tf), np.ones(1 << 24, np.float32)

    def go(count: int) -> None:
        for _ in range(count):
            s.run(y.op, {x: feed})

    return go


def fetch(tf: Any) -> Run:
    y, s = tf.fill(tf.placeholder_with_default([1 << 24], [1]), 1.0), session(tf)

    def go(count: int) -> None:
        for _ in range(count):
            s.run(y)

    return go


def fill(tf: Any) -> Run:
    y, s = tf.fill(tf.placeholder_with_default([1 << 24], [1]), 1.0), session(tf)

    def go(count: int) -> None:
        for _ in range(count):
            s.run(y.op)

    return go


def build(tf: Any) -> Run:
    def go(count: int) -> None:
        for _ in range(count):
            with tf.Graph().as_default():
                y = tf.placeholder(tf.float32, [2])
                for _ in range(9999):
                    y = tf.sqrt(y)

    return go


def function(tf: Any) -> Run:
    x = tf.placeholder(tf.float32, [2])
    y, s, feed = tf.py_func(lambda v: v, [x], tf.float32), session(tf), np.ones(2, np.float32)

    def go(count: int) -> None:
        for _ in range(count):
            s.run(y, {x: feed})

    return go


CASES: list[tuple[str, Callable[[Any], Run], int]] = [
    ("`Session.run`, one feed, one fetch", run, 500),
    ("the same by `make_callable`", call, 500),
    ("64 MB fed", large, 30),
    ("64 MB made and fetched", fetch, 3),
    ("64 MB made and not fetched", fill, 3),
    ("graph of 10,000 nodes built", build, 1),
    ("`py_func` in a step", function, 100),
]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print("| what | TensorFlow, us | Millrace, us | ratio |\n|---|---|---|---|")
    for what, case, count in CASES:
        with tensorflow.Graph().as_default():
            theirs = case(tensorflow.compat.v1)
        with millrace.Graph().as_default():
            ours = case(millrace)
        times: dict[Run, list[float]] = {theirs: [], ours: []}
        for i in range(rounds + 1):
            for go in (theirs, ours):
                begin = time.perf_counter()
                go(count)
                if i > 0:
                    times[go].append((time.perf_counter() - begin) / count * 1e6)
        ratio = statistics.median(t / o for t, o in zip(times[theirs], times[ours]))
        print("| %s | %.1f | %.1f | %.1f |" % (what, statistics.median(times[theirs]), statistics.median(times[ours]), ratio), flush=True)


if __name__ == "__main__":
    main()
