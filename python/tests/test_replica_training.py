# SPDX-License-Identifier: Apache-2.0
"""Ways of training with replicas: backup workers, Downpour."""

import os
import sys
import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.testing.test_util import create_local_cluster


def _threads(function, n):
    failures = []

    def run(i):
        try:
            function(i)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    return threads, failures


def test_the_first_two_of_three_gradients_make_a_step_and_a_late_one_is_dropped():
    """Worker i's gradient is 1, 10 and 1000: each step applies the mean of the first two, and what the straggler computed for a step that is
    over never counts."""
    workers, servers = create_local_cluster(num_workers=3, num_ps=1)
    chief_is_there, all_are_there, worker_1_is_done, straggling = (threading.Event() for _ in range(4))
    steps = 12
    graphs = []
    for i in range(3):
        with tf.Graph().as_default() as graph, tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % i)):
            v = tf.Variable(0.0, name="v")
            global_step = tf.train.create_global_step()
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), replicas_to_aggregate=2, total_num_replicas=3)
            train = optimizer.apply_gradients([(tf.constant([1.0, 10.0, 1000.0][i]), v)], global_step=global_step)
            graphs.append((graph, v, global_step, train, optimizer.make_session_run_hook(i == 0, num_tokens=0)))
    seen = []

    def work(i):
        graph, v, global_step, train, hook = graphs[i]
        assert i == 0 or chief_is_there.wait(60)  # or it would look again in 30 s
        with (
            graph.as_default(),
            tf.train.MonitoredTrainingSession(
                workers[i].target, is_chief=i == 0, hooks=[hook], save_summaries_steps=None, save_summaries_secs=None, stop_grace_period_secs=1
            ) as session,
        ):
            chief_is_there.set()
            if i == 2:
                all_are_there.set()
                straggling.wait(60)
                session.run(train)  # for the first step, delivered when that is long over
                return
            all_are_there.wait(60)
            while not session.should_stop():
                session.run(train)
                seen.append(session.run_step_fn(lambda step_context: step_context.session.run([global_step, v])))
                if seen[-1][0] >= steps and (i == 1 or worker_1_is_done.is_set()):
                    worker_1_is_done.set()  # the chief makes the steps that it waits for
                    return

    threads, failures = _threads(work, 3)
    for t in threads[:2]:
        t.join(timeout=60)
    assert not failures and not any(t.is_alive() for t in threads[:2])
    assert max(s for s, _ in seen) >= steps  # nobody waited for the straggler
    with graphs[0][0].as_default(), tf.Session(servers[0].target) as session:
        before = session.run([graphs[0][2], graphs[0][1]])
        straggling.set()
        threads[2].join(timeout=2)  # it goes on to wait for a token of a step that nobody makes any more
        time.sleep(0.3)
        step, value = session.run([graphs[0][2], graphs[0][1]])
    assert [step, value] == before
    # Steps of two gradients each, of workers 0 and 1: never the straggler's thousand.
    assert -10.0 * step <= value <= -1.0 * step and value > -500


def _quadratic():
    w = tf.get_variable("w", [4], initializer=tf.ones_initializer())
    target = tf.placeholder(tf.float32, [4])
    return w, target, tf.reduce_sum(tf.square(w - target))


def test_downpour_step_by_step():
    with tf.Graph().as_default(), tf.Session() as session:
        w, target, loss = _quadratic()
        optimizer = tf.train.DownpourOptimizer(tf.train.GradientDescentOptimizer(0.5), "/cpu:0", n_push=2, n_fetch=3, local_learning_rate=0.1)
        step = tf.train.create_global_step()
        train = optimizer.minimize(loss, global_step=step)
        assert w not in tf.global_variables() and w in tf.local_variables() and optimizer.centers[0] in tf.global_variables()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(optimizer.local_init_op)
        goal = np.array([0, 1, 2, 3], np.float32)
        local, center, accrued, pushes = np.ones(4, np.float32), np.ones(4, np.float32), np.zeros(4, np.float32), 0
        for k in range(1, 13):
            session.run(train, {target: goal})
            gradient = 2 * (local - goal)
            accrued, local = accrued + gradient, local - np.float32(0.1) * gradient
            if k % 2 == 0:
                center, accrued, pushes = center - np.float32(0.5) * accrued, np.zeros(4, np.float32), pushes + 1
            if k % 3 == 0:
                local = center.copy()
            np.testing.assert_allclose(session.run(w), local, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(session.run(optimizer.centers[0]), center, rtol=1e-5, atol=1e-6)
            assert session.run(step) == pushes


def test_downpour_over_a_cluster_with_adagrad_and_a_warm_start():
    workers, _ = create_local_cluster(num_workers=3, num_ps=2)
    r = np.random.RandomState(0)
    data = r.randn(600, 10).astype(np.float32)
    truth = r.randn(10, 1).astype(np.float32)
    answers = data @ truth
    chief_is_there, begun = threading.Event(), [threading.Event() for _ in range(3)]
    first_step, losses = [None] * 3, [None] * 3

    def work(i):
        with tf.Graph().as_default():
            with tf.device("/job:worker/task:%d" % i):
                x, y = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.float32, [None, 1])
                w, b = tf.get_variable("w", [10, 1]), tf.get_variable("b", [1], initializer=tf.zeros_initializer())
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
            with tf.device("/job:ps/task:0"):
                step = tf.train.create_global_step()
            optimizer = tf.train.DownpourOptimizer(
                tf.train.AdagradOptimizer(0.3), tf.train.replica_device_setter(ps_tasks=2), n_push=2, n_fetch=2, local_learning_rate=0.02
            )
            train = optimizer.minimize(loss, global_step=step)
            assert {c.device for c in optimizer.centers} == {"/job:ps/task:0", "/job:ps/task:1"}
            hook = optimizer.make_session_run_hook(i == 0, warm_start_steps=20)
            part = slice(i * 200, i * 200 + 200)
            assert i == 0 or chief_is_there.wait(60)
            with tf.train.MonitoredTrainingSession(
                workers[i].target, is_chief=i == 0, hooks=[hook, tf.train.StopAtStepHook(last_step=400)], save_summaries_steps=None, save_summaries_secs=None
            ) as session:
                chief_is_there.set()
                first_step[i] = session.run_step_fn(lambda step_context: step_context.session.run(step))
                begun[i].set()
                k = 0
                while not session.should_stop():
                    if i == 0 and k == 60:  # a busy machine may run the chief alone until the last step
                        assert all(b.wait(60) for b in begun)
                    rows = np.arange(k * 20, k * 20 + 20) % 200
                    _, losses[i] = session.run([train, loss], {x: data[part][rows], y: answers[part][rows]})
                    k += 1

    threads, failures = _threads(work, 3)
    for t in threads:
        t.join(timeout=100)
    assert not failures, failures
    assert first_step[0] == 0 and min(first_step[1:]) >= 20
    assert max(losses) < 0.2, losses


def test_a_dead_replica_stops_nobody_in_downpour():
    workers, _ = create_local_cluster(num_workers=2, num_ps=1)
    done, chief_is_there = [], threading.Event()

    def work(i):
        with tf.Graph().as_default():
            with tf.device("/job:worker/task:%d" % i):
                _, target, loss = _quadratic()
                if i == 1:
                    loss = loss + tf.py_func(lambda: 1 / 0, [], tf.float32)
            with tf.device("/job:ps/task:0"):
                step = tf.train.create_global_step()
            optimizer = tf.train.DownpourOptimizer(tf.train.AdagradOptimizer(0.5), "/job:ps/task:0", local_learning_rate=0.05)
            train = optimizer.minimize(loss, global_step=step)
            assert i == 0 or chief_is_there.wait(60)
            with tf.train.MonitoredTrainingSession(
                workers[i].target, is_chief=i == 0, hooks=[optimizer.make_session_run_hook(i == 0)], save_summaries_steps=None, save_summaries_secs=None
            ) as session:
                chief_is_there.set()
                for _ in range(100):
                    value = session.run([train, loss], {target: [0, 1, 2, 3]})[1]
                done.append(value)

    threads, failures = _threads(work, 2)
    for t in threads:
        t.join(timeout=60)
    assert len(done) == 1 and done[0] < 0.05 and len(failures) == 1, (done, failures)


def test_downpour_checks():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="n_push"):
            tf.train.DownpourOptimizer(tf.train.AdagradOptimizer(0.1), "/cpu:0", n_push=0)
        optimizer = tf.train.DownpourOptimizer(tf.train.AdagradOptimizer(0.1), "/cpu:0")
        with pytest.raises(ValueError, match="after apply_gradients"):
            optimizer.make_session_run_hook(True)
        _, _, loss = _quadratic()
        optimizer.minimize(loss)
        with pytest.raises(ValueError, match="global step"):
            optimizer.make_session_run_hook(False, warm_start_steps=5)
        with pytest.raises(ValueError, match="once"):
            optimizer.minimize(loss)


if __name__ == "__main__":
    sys.exit(pytest.main([os.path.abspath(__file__)]))
