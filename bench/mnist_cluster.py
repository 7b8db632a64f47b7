# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training of a perceptron of MNIST's size over processes, on one or two systems in turns.

  python bench/mnist_cluster.py --system tensorflow=PYTHON --system millrace=PYTHON [--ps 2] [--workers 3] [--seconds 8] [--rounds 3]

784-100-10 units, batches of 100 made-up images, Adagrad, variables shared out over the parameter servers. Each worker trains through its own
server for some seconds. Prints the steps a second of all workers together, the last loss, and the median of the paired ratios. For millrace,
PYTHONPATH names the built package.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import Any


def module(name: str) -> Any:
    if name == "tensorflow":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
        return tf
    return __import__(name)


def task(a: argparse.Namespace) -> None:
    tf = module(a.module)
    import numpy as np

    cluster = tf.train.ClusterSpec(json.loads(a.cluster))
    server = tf.train.Server(cluster, job_name=a.job, task_index=a.index)
    if a.job == "ps":
        server.join()
        return
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % a.index)):
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
        w1 = tf.Variable(tf.random_uniform([784, 100], -0.05, 0.05, seed=1))
        b1 = tf.Variable(tf.zeros([100]))
        w2 = tf.Variable(tf.random_uniform([100, 10], -0.1, 0.1, seed=2))
        b2 = tf.Variable(tf.zeros([10]))
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = tf.train.AdagradOptimizer(0.01).minimize(loss)
        init = tf.global_variables_initializer()
        ready = tf.report_uninitialized_variables()
    r = np.random.RandomState(0)
    truth = r.randn(784, 10)
    r = np.random.RandomState(a.index + 1)
    data = r.rand(5000, 784).astype(np.float32)
    labels = np.argmax((data - 0.5) @ truth, axis=1)
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % a.index])
    with tf.Session(server.target, config=config) as session:
        if a.index == 0:
            session.run(init)
        while len(session.run(ready)) > 0:
            time.sleep(0.05)

        def train(k: int) -> float:
            rows = slice(k % 50 * 100, k % 50 * 100 + 100)
            return float(session.run([step, loss], {x: data[rows], y: labels[rows]})[1])

        for k in range(30):
            train(k)
        print("ready", flush=True)
        sys.stdin.readline()
        end, k, last = time.perf_counter() + a.seconds, 0, 0.0
        while time.perf_counter() < end:
            last = train(k)
            k += 1
        print(json.dumps({"steps": k, "loss": last}), flush=True)
        sys.stdin.readline()  # others may still need this server


def run(name: str, python: str, a: argparse.Namespace) -> tuple[float, float]:
    """Steps a second of all workers, and the mean of their last losses."""
    ports = []
    for _ in range(a.ps + a.workers):
        s = socket.socket()
        s.bind(("localhost", 0))
        ports.append(s)
    addresses = ["localhost:%d" % s.getsockname()[1] for s in ports]
    for s in ports:
        s.close()
    cluster = json.dumps({"ps": addresses[: a.ps], "worker": addresses[a.ps :]})
    tasks = []
    for job, count in (("ps", a.ps), ("worker", a.workers)):
        for i in range(count):
            tasks.append(
                subprocess.Popen(
                    [
                        python,
                        os.path.abspath(__file__),
                        "--task",
                        "--module",
                        name,
                        "--cluster",
                        cluster,
                        "--job",
                        job,
                        "--index",
                        str(i),
                        "--seconds",
                        str(a.seconds),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
    try:
        workers = tasks[a.ps :]
        for w in workers:
            assert w.stdout is not None and w.stdout.readline().strip() == "ready"
        for w in workers:
            assert w.stdin is not None
            w.stdin.write("go\n")
            w.stdin.flush()
        results = [json.loads(w.stdout.readline()) for w in workers if w.stdout is not None]
        return sum(r["steps"] for r in results) / a.seconds, statistics.mean(r["loss"] for r in results)
    finally:
        for t in tasks:
            t.kill()
            t.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--system", action="append", default=[])
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", action="store_true")
    for name in ("--module", "--cluster", "--job"):
        parser.add_argument(name)
    parser.add_argument("--index", type=int)
    a = parser.parse_args()
    if a.task:
        return task(a)
    systems = [s.split("=", 1) for s in a.system]
    rates: dict[str, list[float]] = {name: [] for name, _ in systems}
    for _ in range(a.rounds):
        for name, python in systems:
            rate, loss = run(name, python, a)
            rates[name].append(rate)
            print("%-12s %8.0f steps/s  loss %.3f" % (name, rate, loss), flush=True)
    for name, values in rates.items():
        print("%-12s %8.0f steps/s (median)" % (name, statistics.median(values)))
    if len(systems) == 2:
        first, second = (rates[name] for name, _ in systems)
        print("ratio %.2f" % statistics.median(b / f for f, b in zip(first, second)))


if __name__ == "__main__":
    main()
