# SPDX-License-Identifier: Apache-2.0
"""Asynchronous and synchronous training with replicas some of which straggle, and what backup workers are worth.

  PYTHONPATH=build/release/python python bench/replicas.py [--steps 60] [--plot docs/img/replicas.png]

The computation of a replica is a wait (40 ms, and now and then, as machines that others use too do, five to ten times as long), so that many
fit on one machine: what is measured is who waits for whom. Servers of one process; parameters on two of them. Prints the median time between
updates, with its 10th and 90th percentile, and gradients used a second, against the number of workers; and, for one number of workers whose
gradients make a step, against that of backup workers beside them. --plot draws it, with a Python that has matplotlib.
"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any

import numpy as np

import millrace as tf
from millrace.testing.test_util import create_local_cluster

COMPUTATION, STRAGGLES = 0.040, 0.06


def compute(random: np.random.RandomState) -> None:
    """A replica's computation: most take about as long, some much longer."""
    time.sleep(COMPUTATION * (random.uniform(5, 10) if random.rand() < STRAGGLES else random.uniform(0.95, 1.15)))


def replica(i: int, aggregate: int, total: int, target: str, times: list[float], begun: threading.Event, stop: threading.Event, steps: int) -> None:
    """Trains until `stop`; worker 0 notes when updates happened."""
    random = np.random.RandomState(i)
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:%d" % i)):
        w = tf.Variable(np.ones(1000, np.float32))
        step = tf.train.create_global_step()
        gradient = 0.01 * w
        optimizer: Any = tf.train.GradientDescentOptimizer(0.01)
        hooks = []
        if aggregate:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=aggregate, total_num_replicas=total)
        train = optimizer.apply_gradients([(gradient, w)], global_step=step)
        if aggregate:
            hooks.append(optimizer.make_session_run_hook(i == 0, num_tokens=total))
        if i > 0:
            begun.wait()
        with tf.train.MonitoredTrainingSession(
            target, is_chief=i == 0, hooks=hooks, save_summaries_steps=None, save_summaries_secs=None, stop_grace_period_secs=1
        ) as session:
            begun.set()
            if i == 0:
                threading.Thread(target=watch, args=(session, step, times, stop, steps), daemon=True).start()
            try:
                while not stop.is_set():
                    compute(random)
                    session.run(train)
            except tf.errors.OpError:
                if not stop.is_set():
                    raise
            if i == 0:
                stop.wait()


def watch(session: Any, step: Any, times: list[float], stop: threading.Event, steps: int) -> None:
    """Notes the time of each update until there are enough."""
    seen, warm = None, 5
    while len(times) < steps + warm:
        now = int(session.run_step_fn(lambda step_context: step_context.session.run(step)))
        at = time.perf_counter()
        if seen is not None and now > seen:
            times.extend([at] * (now - seen))
        seen = now
        time.sleep(0.0005)
    del times[:warm]
    stop.set()


def measure(total: int, aggregate: int, steps: int) -> tuple[float, float, float, float]:
    """Milliseconds between updates: median, 10th, 90th percentile; and gradients used a second."""
    workers, _ = create_local_cluster(num_workers=total, num_ps=2)
    times: list[float] = []
    begun, stop = threading.Event(), threading.Event()
    wanted = steps if aggregate else steps * total
    threads = [threading.Thread(target=replica, args=(i, aggregate, total, workers[i].target, times, begun, stop, wanted), daemon=True) for i in range(total)]
    for t in threads:
        t.start()
    if not stop.wait(timeout=120):
        raise RuntimeError("%d workers did not make %d updates in 2 minutes" % (total, wanted))
    gaps = np.diff(times) * 1e3
    low, middle, high = np.percentile(gaps, [10, 50, 90])
    return middle, low, high, len(gaps) * max(aggregate, 1) / (times[-1] - times[0])


def plot(path: str, scaling: dict[str, list[Any]], backup: list[Any], workers: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for name, colour in (("asynchronous", "tab:blue"), ("synchronous", "tab:red")):
        rows = scaling[name]
        left.plot([r[0] for r in rows], [r[4] for r in rows], "o-", color=colour, label=name)
    left.set(xlabel="workers", ylabel="gradients used per second", title="Throughput", ylim=(0, None))
    left.legend()
    extra, medians = [r[0] for r in backup], [r[1] for r in backup]
    right.errorbar(extra, medians, yerr=[[r[1] - r[2] for r in backup], [r[3] - r[1] for r in backup]], fmt="o-", color="tab:green", capsize=4)
    right.set(
        xlabel="backup workers beside %d" % workers,
        ylabel="step, ms (10th, 50th, 90th percentile)",
        title="Synchronous steps with backup workers",
        ylim=(0, None),
        xticks=extra,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--aggregate", type=int, default=8)
    parser.add_argument("--backups", default="0,1,2,3,4")
    parser.add_argument("--plot")
    a = parser.parse_args()
    scaling: dict[str, list[Any]] = {"asynchronous": [], "synchronous": []}
    for n in map(int, a.workers.split(",")):
        for name, rows in scaling.items():
            rows.append((n, *measure(n, n if name == "synchronous" else 0, a.steps)))
            print("%2d workers, %-12s %6.1f ms (%.1f to %.1f), %6.0f gradients/s" % (n, name, *rows[-1][1:]), flush=True)
    backup = []
    for b in map(int, a.backups.split(",")):
        backup.append((b, *measure(a.aggregate + b, a.aggregate, a.steps)))
        print("%d of %d workers: %6.1f ms (%.1f to %.1f), %6.0f gradients/s" % (a.aggregate, a.aggregate + b, *backup[-1][1:]), flush=True)
    if a.plot:
        plot(a.plot, scaling, backup, a.aggregate)


if __name__ == "__main__":
    main()
