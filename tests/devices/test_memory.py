# SPDX-License-Identifier: Apache-2.0
"""Values between the memories, placement, and what is said where something cannot be."""

import threading

import numpy as np
import pytest

import millrace as tf
from accelerator import ACC, SOFT, bytes_in_use, delays, fail_late, peak_bytes, run_on, seeds


def test_devices_of_a_session():
    with tf.Session() as session:
        devices = {d.name.split("/")[-1]: d for d in session.list_devices()}
        assert sorted(devices) == ["device:CPU:0", "device:TESTACC:0", "device:TESTACC:1"]
        assert devices["device:TESTACC:1"].device_type == "TESTACC"
        assert devices["device:TESTACC:1"].memory_limit_bytes == 32 << 20
    with tf.Session(config=tf.ConfigProto(device_count={"TESTACC": 1})) as session:
        assert len(session.list_devices()) == 2


def test_values_go_there_and_come_back():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.device(ACC):
        y = tf.matmul(x, tf.constant(np.eye(3, dtype=np.float32) * 2)) + tf.constant([1.0, 2.0, 3.0])
        z = tf.identity(y) * y
    with tf.Session() as session:
        for rows in (0, 1, 5, 100):
            value = np.random.RandomState(rows).randn(rows, 3).astype(np.float32)
            got_y, got_z = session.run([y, z], {x: value})
            np.testing.assert_array_equal(got_y, value * 2 + np.float32([1, 2, 3]))
            np.testing.assert_array_equal(got_z, got_y * got_y)


def test_an_op_without_a_kernel():
    def build():
        return tf.lgamma(tf.constant([1.0, 5.0], name="c") + 0.0, name="far_away")

    with pytest.raises(tf.errors.UnimplementedError, match=r"Lgamma(.|\n)*far_away(.|\n)*no TESTACC kernel(.|\n)*CPU"):
        run_on(ACC, build)
    np.testing.assert_allclose(run_on(ACC, build, config=SOFT), [0, np.log(24)], atol=1e-6)


def test_a_device_that_is_not_there():
    with pytest.raises(tf.errors.InvalidArgumentError, match="TESTACC:7"):
        run_on("/device:TESTACC:7", lambda: tf.constant(1.0))
    assert run_on("/device:TESTACC:7", lambda: tf.constant(1.0), config=SOFT) == 1


def test_strings_and_shapes_stay_on_the_host():
    def build():
        return [tf.constant(["a", "b"]), tf.shape(tf.zeros([2, 3]) + 1.0), tf.rank(tf.ones([4]))]

    names, shape, rank = run_on(ACC, build)
    assert names.tolist() == [b"a", b"b"] and shape.tolist() == [2, 3] and rank == 1


def hopping(places):
    """A graph in which each node is somewhere else than those before it."""
    x = tf.placeholder(tf.float32, [4], name="x")
    turn = iter(places)
    values = [x]
    for k in range(12):
        with tf.device(next(turn)):
            a, b = values[-1], values[len(values) // 2]
            values.append([tf.add, tf.multiply, tf.maximum, tf.subtract][k % 4](a, b) * np.float32(0.5))
    with tf.device(next(turn)):
        return x, tf.reduce_sum(tf.stack(values[1:]), 0)


@pytest.mark.parametrize("places", [["/cpu:0", ACC], [ACC, "/device:TESTACC:1"], [ACC, "/cpu:0", "/device:TESTACC:1"]])
def test_graphs_that_hop(places):
    value = np.float32([1, -2, 3, 0.25])
    with tf.Graph().as_default():
        x, y = hopping(["/cpu:0"] * 13)
        with tf.Session() as session:
            want = session.run(y, {x: value})
    x, y = hopping([places[k % len(places)] for k in range(13)])
    with tf.Session() as session:
        for seed in seeds(200):
            delays(seed, 60)
            np.testing.assert_array_equal(session.run(y, {x: value}), want, err_msg="seed %d" % seed)


def test_control_edges_between_devices():
    with tf.device(ACC):
        v = tf.Variable(0.0, name="v")
        bump = tf.assign_add(v, 1.0)
    with tf.control_dependencies([bump]), tf.device("/cpu:0"):
        waited = tf.constant(5.0) + 0.0
    with tf.control_dependencies([waited]), tf.device(ACC):
        read = tf.identity(v._ref() if hasattr(v, "_ref") else v)
    with tf.Session() as session:
        session.run(v.initializer)
        for k in range(1, 20):
            delays(k)
            assert session.run([waited, read]) == [5, k]


def test_late_errors_name_their_node():
    with tf.device(ACC):
        index = tf.placeholder(tf.int32, [None], name="index")
        rows = tf.gather(tf.constant([[1.0], [2.0]]) + 0.0, index, name="rows")
        end = tf.reduce_sum(rows * 2.0)
    with tf.Session() as session:
        assert session.run(end, {index: [0, 1, 1]}) == 10
        for seed in seeds(29):
            delays(seed)
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 7 is not in \[0, 2\)(.|\n)*rows \(Gather"):
                session.run(end, {index: [0, 7]})
        assert session.run(end, {index: [1]}) == 4


def test_failures_on_request():
    with tf.device(ACC):
        x = tf.placeholder(tf.float32, [], name="x")
        a = tf.add(x, 1.0, name="first")
        b = tf.multiply(a, 2.0, name="second")
    with tf.device("/cpu:0"):
        c = b + 1.0
    with tf.Session() as session:
        for node in ("first", "second"):
            for nth in (1, 3):
                fail_late(node, nth)
                for k in range(1, nth):
                    assert session.run(c, {x: k}) == (k + 1) * 2 + 1
                with pytest.raises(tf.errors.InternalError, match=r"as it was asked to(.|\n)*\[\[node %s \(" % node):
                    session.run(c, {x: 1.0})
        assert session.run(c, {x: 1.0}) == 5


def test_out_of_memory_names_the_node():
    def build():
        return tf.reduce_sum(tf.add(tf.fill([3000, 3000], 1.0, name="large"), 1.0, name="too_much"))

    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"TESTACC:0 cannot allocate 36000000 bytes(.|\n)*large"):
        run_on(ACC, build)
    # What is free is enough, but held for work of other sizes.
    with tf.device(ACC):
        n = tf.placeholder(tf.int32, [2])
        total = tf.reduce_sum(tf.fill(n, 1.0) + 1.0)
    with tf.Session() as session:
        for k in range(1, 40):
            delays(k)
            size = 300 + 50 * k
            assert session.run(total, {n: [size, size // 2]}) == 2 * size * (size // 2)
    assert peak_bytes() <= 32 << 20


def test_a_handle_does_not_leave_its_device():
    with tf.device(ACC):
        v = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="handle of variable 'v'(.|\n)*TESTACC:0"):
            session.run(v.handle)
        assert session.run(v) == 1


def test_variables_and_their_updates_are_together():
    with tf.device(ACC):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/cpu:0"):
        doubled = tf.assign(v, v.value() * 2.0)  # takes a reference: it is where the variable is
    assert doubled.device == v.device
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(doubled).tolist() == [2, 4]
    doubled.op._set_device("/cpu:0")  # who makes the variable decides
    for config in (None, SOFT):
        with tf.Session(config=config) as session:
            session.run(v.initializer)
            assert session.run(doubled).tolist() == [2, 4]


def test_steps_at_once():
    x = tf.placeholder(tf.float32, [64, 64])
    with tf.device(ACC):
        y = x
        for _ in range(6):
            y = tf.matmul(y, tf.constant(np.eye(64, dtype=np.float32))) + 1.0
    wrong = []
    delays(7, 50)
    with tf.Session() as session:

        def work(k):
            value = np.full([64, 64], k, np.float32)
            for _ in range(10):
                if not (session.run(y, {x: value}) == k + 6).all():
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_nothing_stays_after_a_step():
    with tf.device(ACC):
        y = tf.exp(tf.placeholder_with_default(np.ones([100, 100], np.float32), [100, 100]) + 1.0)
    with tf.Session() as session:
        session.run(y)
        before = bytes_in_use()
        for _ in range(5):
            session.run(y)
        assert bytes_in_use() == before
