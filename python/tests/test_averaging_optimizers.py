# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt whose workers meet in central variables, and GGT."""

import contextlib
import socket
import threading

import numpy as np
import pytest

import millrace as tf

opt = tf.contrib.opt


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def begun(optimizer, *hook_args):
    """A session at the central variables, and the hook that brought it there."""
    hook = optimizer.make_session_run_hook(*hook_args)
    hook.begin()
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    hook.after_create_session(session, None)
    return session


@pytest.mark.parametrize("use_resource", [False, True])
def test_elastic_averages(use_resource, tmp_path):
    getter = opt.ElasticAverageCustomGetter(worker_device="/cpu:0")
    with tf.variable_scope("", custom_getter=getter, use_resource=use_resource):
        x = tf.get_variable("x", initializer=[0.0, 4.0])
        step = tf.train.get_or_create_global_step()
    meeting = opt.ElasticAverageOptimizer(tf.train.MomentumOptimizer(1.0, 0.0), 1, getter, communication_period=2, moving_rate=0.25, rho=0.5)
    train = meeting.apply_gradients([(tf.constant([-1.0, -1.0]), x)], step)
    (gradient, _) = meeting.compute_gradients(tf.reduce_sum(x))[0]
    center = getter._global_map[x]
    assert {v.op.name for v in tf.global_variables()} == {"global_center_variable/x", "global_step"}  # the momentum stays with the worker
    saver = meeting.swapping_saver()
    with begun(meeting, True, 0) as session:
        session.run(train)
        assert session.run([x, center])[0].tolist() == [1, 5] and session.run(step) == 0
        np.testing.assert_allclose(session.run(gradient), [1.5, 1.5])  # 1 + rho (x - what the center was)
        session.run(train)
        np.testing.assert_allclose(session.run([x, center]), [[1.5, 5.5], [0.5, 4.5]])  # both moved by a quarter of the difference
        assert session.run(step) == 1
        path = saver.save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "x").tolist() == [0.5, 4.5]


def test_gradients_are_accumulated():
    getter = opt.AGNCustomGetter(worker_device="/cpu:0")
    with tf.variable_scope("", custom_getter=getter):
        x, step = tf.get_variable("x", initializer=1.0), tf.train.get_or_create_global_step()
    g = tf.placeholder(tf.float32, [])
    meeting = opt.AGNOptimizer(tf.train.AdamOptimizer(0.1, beta1=0.0, beta2=0.0), 1, getter, communication_period=2)
    train = meeting.apply_gradients([(g, x)], step)
    names = [v.op.name for v in tf.global_variables()]
    assert "global_center_variable/x/Adam" in names and "x/Adam" not in names and not any(n.startswith("beta") for n in names)
    with begun(meeting, True, 0) as session:
        seen = []
        for value in (3.0, -1.0, 2.0):
            session.run(train, {g: value})
            seen.append(session.run([x, getter._global_map[x], getter._grad_map[x], step]))
    # Adam without memory goes by 0.1 against the sign: of each gradient where it is local, of their mean where it is central.
    np.testing.assert_allclose(seen, [[0.9, 1, 3, 0], [0.9, 0.9, 0, 1], [0.8, 0.9, 2, 1]], rtol=1e-6)


def test_two_workers_go_on_from_their_mean():
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(3)]
        ports = ["localhost:%d" % s.getsockname()[1] for s in sockets]
    cluster = tf.train.ClusterSpec({"ps": ports[:1], "worker": ports[1:]})
    servers = [tf.train.Server(cluster, job_name=job, task_index=task) for job, task in (("worker", 0), ("worker", 1), ("ps", 0))]
    sessions, trains, watched = [], [], []
    for worker, server in enumerate(servers[:2]):
        here = "/job:worker/task:%d" % worker
        with tf.Graph().as_default():
            getter = opt.ModelAverageCustomGetter(worker_device=here)
            with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)), tf.variable_scope("", custom_getter=getter):
                x, step = tf.get_variable("x", initializer=1.0), tf.train.get_or_create_global_step()
            assert getter._local_2_global[x].device == "/job:ps/task:0" and x.device == here
            with tf.device(here):
                meeting = opt.ModelAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, worker == 0, getter, interval_steps=2)
                trains.append(meeting.apply_gradients([(tf.constant(-1.0 - 2 * worker), x)], step))
            watched.append([x, step])
            hook = meeting.make_session_run_hook()
            sessions.append(tf.train.MonitoredTrainingSession(server.target, is_chief=worker == 0, hooks=[hook]))
    for session, train in zip(sessions, trains):
        session.run(train)
    assert [s.run(w) for s, w in zip(sessions, watched)] == [[2, 0], [4, 0]]
    threads = [threading.Thread(target=s.run, args=(t,)) for s, t in zip(sessions, trains)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [s.run(w) for s, w in zip(sessions, watched)] == [[5, 1], [5, 1]]  # (3 + 7) / 2
    for session in sessions:
        session.close()


def ggt_step(state, gradient, window, eps=1e-4, svd_eps=1e-6, sigma_eps=1e-2):
    """The change for a learning rate of 1, with eigenvectors in place of singular ones."""
    state["t"] += 1
    state["m"] = 0.9 * state["m"] + 0.1 * gradient
    state["ring"][(state["t"] - 1) % window] = state["m"]
    m = state["ring"].T / np.sqrt(min(state["t"], window))
    values, u = np.linalg.eigh(m.T @ m + svd_eps * np.eye(window))
    root = np.sqrt(values)
    step = m @ u @ np.diag((root + sigma_eps) ** -3.0) @ u.T @ m.T @ state["m"]
    if root.min() > eps:
        step += (state["m"] - m @ u @ np.diag(1 / values) @ u.T @ m.T @ state["m"]) / root.min()
    return step


@pytest.mark.parametrize("use_resource", [False, True])
def test_ggt(use_resource):
    gradient = tf.placeholder(tf.float64, [5])
    b = tf.get_variable("b", initializer=np.arange(3.0), use_resource=use_resource)
    a = tf.get_variable("a", initializer=np.ones([2, 1]), use_resource=use_resource)
    optimizer = opt.GGTOptimizer(0.01, window=3)
    train = optimizer.apply_gradients([(gradient[2:], b), (gradient[:2, None], a)])
    assert [v.op.name for v in optimizer.variables()] == ["flat_grad", "global_step", "grad_buffer", "moment1"]
    state, flat = {"t": 0, "m": np.zeros(5), "ring": np.zeros((3, 5))}, np.array([1, 1, 0, 1, 2.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for g in np.random.RandomState(0).randn(5, 5):
            session.run(train, {gradient: g})
            flat = flat - 0.01 * ggt_step(state, g, 3)
            np.testing.assert_allclose(np.concatenate([np.ravel(v) for v in session.run([a, b])]), flat, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="Sparse"):
        optimizer.apply_gradients([(tf.IndexedSlices(tf.zeros([1], tf.float64), [0]), b)])
