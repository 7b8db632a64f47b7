# SPDX-License-Identifier: Apache-2.0
"""Collective ops: among the devices of a process, and among processes."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.ops import collective_ops
from millrace.testing.test_util import _unused_port
from test_servers import _HAS_GRPC

_CONFIG = tf.ConfigProto(device_count={"CPU": 4})


def _members(n, make, tasks=False):
    """What `make(i)` gives on each of n devices of this process, or of n workers."""
    made = []
    for i in range(n):
        with tf.device("/job:worker/task:%d" % i if tasks else "/CPU:%d" % i):
            made.append(make(i))
    return made


def _run(fetches, target="", feed=None):
    with tf.Session(target, config=_CONFIG) as session:
        return session.run(fetches, feed)


@pytest.mark.parametrize(
    "merge_op, final_op, want",
    [
        ("Add", "Id", lambda v: sum(v)),
        ("Add", "Div", lambda v: sum(v) / len(v)),
        ("Mul", "Id", lambda v: np.prod(v, axis=0)),
        ("Max", "Id", lambda v: np.max(v, axis=0)),
        ("Min", "Id", lambda v: np.min(v, axis=0)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_reductions_within_a_process(merge_op, final_op, want, dtype):
    values = (np.random.RandomState(0).randint(-9, 9, [3, 5, 7]) * (1 if "int" in dtype else 0.25)).astype(dtype)
    with tf.Graph().as_default():
        results = _run(_members(3, lambda i: collective_ops.all_reduce(tf.constant(values[i]), 3, 1, 1, merge_op, final_op)))
    truth = want(values.astype(np.float64))
    truth = np.trunc(truth).astype(dtype) if "int" in dtype else truth
    for r in results:
        assert r.dtype == values.dtype and r.tobytes() == results[0].tobytes()
        np.testing.assert_allclose(r, truth, rtol=2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("shape", [[0], [], [1], [3, 0, 2], [1000003]])
def test_odd_sizes(shape):
    values = [np.float32(np.random.RandomState(i).standard_normal(shape)) for i in range(4)]
    with tf.Graph().as_default():
        holders = _members(4, lambda i: tf.placeholder(tf.float32, shape))
        results = _run(_members(4, lambda i: collective_ops.all_reduce(tf.identity(holders[i]), 4, 1, 1, "Add", "Id")), feed=dict(zip(holders, values)))
    want = ((values[0] + values[1]) + values[2]) + values[3]  # in the order of the devices
    assert all(r.tobytes() == np.asarray(want).tobytes() for r in results)


def test_gather_and_broadcast_within_a_process():
    with tf.Graph().as_default():
        gathered = _members(3, lambda i: collective_ops.all_gather(tf.constant([[i, i + 0.5]]), 3, 1, 1))
        assert gathered[0].get_shape().as_list() == [3, 2]
        value = np.arange(6, dtype=np.int32).reshape(2, 3)
        sent = _members(
            3,
            lambda i: (
                collective_ops.broadcast_send(tf.constant(value), [2, 3], tf.int32, 3, 1, 2)
                if i == 1
                else collective_ops.broadcast_recv([2, 3], tf.int32, 3, 1, 2)
            ),
        )
        rows, copies = _run([gathered, sent])
    assert all(r.tolist() == [[0, 0.5], [1, 1.5], [2, 2.5]] for r in rows)
    assert all((c == value).all() for c in copies)


def test_groups_whose_numbers_are_inputs():
    numbers = {"group_size": 3, "group_key": 5}
    values = np.float32(np.random.RandomState(0).standard_normal([3, 2, 4]))
    ops = tf.raw_ops
    with tf.Graph().as_default():
        instance = tf.placeholder(tf.int32, [])

        def received(i):
            if i == 1:
                return ops.CollectiveBcastSendV2(input=values[i], instance_key=9, **numbers)
            return ops.CollectiveBcastRecvV2(shape=[2, 4], T=tf.float32, instance_key=9, **numbers)

        sums = _members(
            3, lambda i: ops.CollectiveReduceV2(input=values[i], merge_op="Add", final_op="Id", instance_key=instance, ordering_token=[], **numbers)
        )
        old = _members(3, lambda i: collective_ops.all_reduce(tf.constant(values[i]), 3, 5, 8, "Add", "Id"))
        rows = _members(3, lambda i: ops.CollectiveGatherV2(input=values[i], instance_key=7, ordering_token=[], **numbers))
        sent = _members(3, received)
        assert rows[0].shape.as_list() == [6, 4] and sums[0].shape.as_list() == [2, 4] and sent[0].shape.as_list() == [2, 4]
        feed = {instance: 3}
        for new, same in zip(_run(sums, feed=feed), _run(old)):
            assert new.tobytes() == same.tobytes()
        for got in _run(rows):
            assert np.array_equal(got, values.reshape([6, 4]))
        for got in _run(sent):
            assert np.array_equal(got, values[1])
        with tf.device("/CPU:0"):
            bits = [ops.CollectiveBcastSendV2(input=[True, False], instance_key=1, group_size=2, group_key=1)]
        with tf.device("/CPU:1"):
            bits.append(ops.CollectiveBcastRecvV2(shape=np.int64([2]), T=tf.bool, instance_key=1, group_size=2, group_key=1))
        assert [b.tolist() for b in _run(bits)] == [[True, False]] * 2

    def alone(size):
        return lambda i: ops.CollectiveReduceV2(input=[1.0], merge_op="Add", final_op="Id", group_size=size, group_key=1, instance_key=1, ordering_token=[])

    with tf.Graph().as_default():
        assert _run(_members(1, alone(1)))[0].tolist() == [1.0]
    _refused(alone(0), "group_size must be positive, got 0", n=1)
    with tf.Graph().as_default():
        shape = tf.placeholder(tf.int32, [1])
        with tf.device("/CPU:0"):
            received = ops.CollectiveBcastRecvV2(shape=shape, T=tf.float32, group_size=2, group_key=1, instance_key=1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
            _run(received, feed={shape: [-2]})


def test_again_and_again_and_several_at_once():
    with tf.Graph().as_default(), tf.Session(config=_CONFIG) as session:
        x = tf.placeholder(tf.float32, [2])
        sums = []
        for instance in range(8):  # several of one device's may wait at once
            sums.append(_members(2, lambda i, k=instance: collective_ops.all_reduce(tf.identity(x * float(i + k)), 2, 1, k, "Add", "Id")))
        for step in range(30):
            got = session.run(sums, {x: [1, step]})
            assert np.array_equal(got, [[[2 * k + 1, step * (2 * k + 1)]] * 2 for k in range(8)])


def test_in_a_loop():
    with tf.Graph().as_default():

        def member(i):
            return tf.while_loop(
                lambda n, v: n < 5, lambda n, v: (n + 1, collective_ops.all_reduce(tf.identity(v), 2, 1, 1, "Add", "Id")), [0, tf.constant(float(i + 1))]
            )[1]

        assert _run(_members(2, member)) == [48.0, 48.0]


def test_python_checks():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Device assignment required"):
            collective_ops.all_reduce(tf.constant(1.0), 2, 1, 1, "Add", "Id")
        with tf.device("/CPU:0"):
            with pytest.raises(ValueError, match="at least 2"):
                collective_ops.all_reduce(tf.constant(1.0), 1, 1, 1, "Add", "Id")
            with pytest.raises(ValueError, match="declared shape"):
                collective_ops.broadcast_send(tf.constant([1.0]), [2], tf.float32, 2, 1, 1)
            with pytest.raises(ValueError, match="declared type"):
                collective_ops.broadcast_send(tf.constant([1.0]), [1], tf.int32, 2, 1, 1)
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="merge_op"):
                collective_ops.all_reduce(tf.constant(1.0), 2, 1, 1, "Xor", "Id")
        assert tf.python.ops.collective_ops.all_reduce is collective_ops.all_reduce


def _refused(make, *words, code=tf.errors.InvalidArgumentError, n=2):
    with tf.Graph().as_default(), pytest.raises(code) as failure:
        _run(_members(n, make))
    for word in words:
        assert word in str(failure.value), str(failure.value)


def test_members_that_disagree():
    _refused(lambda i: collective_ops.all_reduce(tf.zeros([2 + i]), 2, 1, 1, "Add", "Id"), "CPU:0", "CPU:1", "float[2]", "float[3]", "instance 1")
    _refused(lambda i: collective_ops.all_reduce(tf.zeros([2], [tf.int32, tf.int64][i]), 2, 1, 1, "Add", "Id"), "int32[2]", "int64[2]")
    _refused(lambda i: collective_ops.all_reduce(tf.zeros([2]), 2 + i, 1, 1, "Add", "Id"), "group of 2", "group of 3")
    _refused(lambda i: collective_ops.all_reduce(tf.zeros([2]), 2, 1, 1, ["Add", "Max"][i], "Id"), "Add, Id", "Max, Id")
    _refused(
        lambda i: collective_ops.all_gather(tf.zeros([2]), 2, 1, 1) if i else collective_ops.all_reduce(tf.zeros([2]), 2, 1, 1, "Add", "Id"),
        "CollectiveGather",
        "CollectiveReduce",
    )
    _refused(lambda i: collective_ops.broadcast_recv([2], tf.float32, 2, 1, 1), "nobody sends")
    _refused(lambda i: collective_ops.broadcast_send(tf.zeros([2]), [2], tf.float32, 2, 1, 1), "both", "CPU:0", "CPU:1")
    _refused(
        lambda i: collective_ops.broadcast_recv([3], tf.float32, 2, 1, 1) if i else collective_ops.broadcast_send(tf.zeros([2]), [2], tf.float32, 2, 1, 1),
        "[2]",
        "[3]",
    )
    _refused(lambda i: tf.raw_ops.CollectiveGather(input=tf.constant(1.0), group_size=2, group_key=1, instance_key=1, shape=None), "scalars")

    def twice(i):
        return [collective_ops.all_reduce(tf.zeros([2]), 2, 1, 1, "Add", "Id") for _ in range(2 if i == 0 else 0)]

    _refused(twice, "twice", "CPU:0")


def test_a_member_that_does_not_come():
    with tf.Graph().as_default(), tf.Session(config=_CONFIG) as session:
        both = _members(2, lambda i: collective_ops.all_reduce(tf.ones([2]), 2, 7, 1, "Add", "Id", timeout=0.3))
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"1 of 2 members are there: \S*CPU:0; 1 missing"):
            session.run(both[0])
        session.run(both)
        with pytest.raises(tf.errors.DeadlineExceededError, match=r"1 of 2 members are there: \S*CPU:0; missing: \S*CPU:1"):
            session.run(both[0])
        assert np.array_equal(session.run(both), [[2, 2]] * 2)  # and goes on as if nothing had been


def test_a_step_that_is_stopped_takes_its_group_along():
    with tf.Graph().as_default(), tf.Session(config=_CONFIG) as session:
        both = _members(2, lambda i: collective_ops.all_reduce(tf.ones([2]), 2, 1, 1, "Add", "Id"))
        began = time.time()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(both[0], options=tf.RunOptions(timeout_in_ms=200))
        assert time.time() - began < 3
        assert np.array_equal(session.run(both), [[2, 2]] * 2)
        failing = tf.raw_ops.CheckNumerics(tensor=tf.constant(float("nan")), message="not a number")
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
            session.run([both[0], failing])


def _start_workers(n):
    if not _HAS_GRPC:
        pytest.skip("libmillrace_grpc.so is not built")
    cluster = "worker=" + ",".join("localhost:%d" % _unused_port() for _ in range(n))
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--job", "worker", "--task", str(i)], stdout=subprocess.PIPE, text=True
        )
        for i in range(n)
    ]
    for task in tasks:
        assert "listens at" in task.stdout.readline()
    return ["grpc://" + a for a in cluster.split("=")[1].split(",")], tasks


@pytest.fixture(scope="module")
def three_workers():
    targets, tasks = _start_workers(3)
    yield targets
    for task in tasks:
        task.kill()
        task.wait()


def _ring_order(values):
    """The sum with the ring's order of additions: block b begins with task b."""
    n, size = len(values), values[0].size
    block = (size // n + 64) // 64 * 64
    want = np.empty_like(values[0])
    for b in range(n):
        part = slice(min(b * block, size), size if b + 1 == n else min((b + 1) * block, size))
        total = values[b][part]
        for k in range(1, n):
            total = total + values[(b + k) % n][part]
        want[part] = total
    return want


@pytest.mark.parametrize("size", [1, 2, 191, 3 * 1024 * 1024 + 7])
def test_among_processes_in_one_graph(three_workers, size):
    values = [np.random.RandomState(i).randn(size).astype(np.float32) for i in range(3)]
    with tf.Graph().as_default(), tf.Session(three_workers[0]) as session:
        holders = _members(3, lambda i: tf.placeholder(tf.float32, [size]), tasks=True)
        sums = _members(3, lambda i: collective_ops.all_reduce(tf.identity(holders[i]), 3, 1, 1, "Add", "Id"), tasks=True)
        rows = _members(3, lambda i: collective_ops.all_gather(tf.identity(holders[i]), 3, 1, 2), tasks=True)
        copies = _members(
            3,
            lambda i: (
                collective_ops.broadcast_send(tf.identity(holders[2]), [size], tf.float32, 3, 1, 3)
                if i == 2
                else collective_ops.broadcast_recv([size], tf.float32, 3, 1, 3)
            ),
            tasks=True,
        )
        feed = dict(zip(holders, values))
        for _ in range(2):
            got = session.run([sums, rows, copies], feed)
            assert all(r.tobytes() == _ring_order(values).tobytes() for r in got[0])
            assert all(r.tobytes() == np.concatenate(values).tobytes() for r in got[1])
            assert all(r.tobytes() == values[2].tobytes() for r in got[2])


def test_among_processes_each_with_its_own_client(three_workers):
    rounds, results, failures = 20, [[] for _ in range(3)], []

    def client(i):
        try:
            with tf.Graph().as_default(), tf.Session(three_workers[i]) as session:
                x = tf.placeholder(tf.float32, [1000])
                with tf.device("/job:worker/task:%d" % i):
                    total = collective_ops.all_reduce(tf.identity(x), 3, 5, 1, "Add", "Div")
                for k in range(rounds):
                    results[i].append(session.run(total, {x: np.full([1000], i + k, np.float32)}))
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=60)
    assert not failures and all(len(r) == rounds for r in results)
    for k in range(rounds):
        assert all((r[k] == k + 1).all() for r in results)


def test_one_client_fails_and_the_others_hear_of_it(three_workers):
    told = []

    def client(i):
        with tf.Graph().as_default(), tf.Session(three_workers[i]) as session:
            with tf.device("/job:worker/task:%d" % i):
                total = collective_ops.all_reduce(tf.ones([4]), 3, 6, 1, "Add", "Id")
            try:
                session.run(total, options=tf.RunOptions(timeout_in_ms=500) if i == 1 else None)
            except tf.errors.OpError as failure:
                told.append((i, failure))

    began = time.time()
    threads = [threading.Thread(target=client, args=(i,)) for i in (0, 1)]  # 2 never comes
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=60)
    assert time.time() - began < 10 and sorted(i for i, _ in told) == [0, 1]
    assert isinstance(dict(told)[0], tf.errors.AbortedError) and "task:1" in str(dict(told)[0])


def test_a_process_dies_in_the_middle():
    targets, tasks = _start_workers(3)
    told = []

    def client(i):
        with tf.Graph().as_default(), tf.Session(targets[i]) as session:
            with tf.device("/job:worker/task:%d" % i):
                total = collective_ops.all_reduce(tf.ones([1 << 20]), 3, 6, 1, "Add", "Id", timeout=5)
            try:
                while True:
                    session.run(total)
            except tf.errors.OpError as failure:
                told.append((i, failure))

    threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(3)]
    try:
        for t in threads:
            t.start()
        time.sleep(1.0)
        assert not told, told
        tasks[2].kill()
        for t in threads:
            t.join(timeout=30)
        assert sorted(i for i, _ in told) == [0, 1, 2]
        for i in (0, 1):
            assert "task:2" in str(dict(told)[i]), dict(told)[i]
    finally:
        for task in tasks:
            task.kill()
            task.wait()


if __name__ == "__main__":
    sys.exit(pytest.main([os.path.abspath(__file__)]))
