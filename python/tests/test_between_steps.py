# SPDX-License-Identifier: Apache-2.0
"""Steps that run between those that change variables, and checkpoints of one moment."""

import contextlib
import threading
import time

import numpy as np
import pytest

import millrace as tf

BETWEEN = tf.RunOptions(between_steps=True)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _first_then_second(resource=False):
    """Two variables, and a step that adds 1 to the first, works a while, and adds 1 to the second."""
    first = tf.get_variable("first", [], initializer=tf.zeros_initializer(), use_resource=resource)
    second = tf.get_variable("second", [], initializer=tf.zeros_initializer(), use_resource=resource)
    with tf.control_dependencies([first.assign_add(1.0)]):
        with tf.control_dependencies([tf.py_func(lambda: time.sleep(0.01), [], [])]):
            step = second.assign_add(1.0)
    return first, second, step.op


@contextlib.contextmanager
def _running(session, step, threads=3):
    """The step again and again, in several threads."""
    over, went_wrong = threading.Event(), []

    def train():
        try:
            while not over.is_set():
                session.run(step)
        except tf.errors.OpError as error:
            went_wrong.append(error)

    workers = [threading.Thread(target=train) for _ in range(threads)]
    for w in workers:
        w.start()
    try:
        yield
    finally:
        over.set()
        for w in workers:
            w.join()
    assert not went_wrong, went_wrong


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_a_consistent_checkpoint_is_of_one_moment(tmp_path, asynchronous, resource):
    first, second, step = _first_then_second(resource)
    saver = tf.train.Saver(consistent=True, asynchronous=asynchronous, max_to_keep=None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with _running(session, step):
            paths = [saver.save(session, str(tmp_path / "c"), global_step=i) for i in range(8)]
            saver.wait()
        assert session.run(first) == session.run(second)
    counts = [(tf.train.load_variable(p, "first"), tf.train.load_variable(p, "second")) for p in paths]
    assert all(a == b for a, b in counts), counts
    assert counts[-1][0] > counts[0][0], "steps ran meanwhile"


def test_any_step_may_ask_for_it():
    first, second, step = _first_then_second()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with _running(session, step):
            for _ in range(8):
                a, b = session.run([first, second], options=BETWEEN)
                assert a == b


def test_steps_that_change_no_variable_are_not_waited_for():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    queue = tf.FIFOQueue(1, tf.float32)
    enqueue = queue.enqueue(v)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(enqueue)
        waits = threading.Thread(target=lambda: session.run(enqueue))
        waits.start()
        time.sleep(0.1)
        assert waits.is_alive()
        assert session.run(v, options=BETWEEN) == 0
        session.run(queue.dequeue())
        waits.join()


def test_a_step_that_does_not_end_is_named_by_the_error():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    queue = tf.FIFOQueue(1, tf.float32)
    waits = v.assign_add(queue.dequeue()).op
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        stuck = threading.Thread(target=lambda: session.run(waits))
        stuck.start()
        time.sleep(0.1)
        with pytest.raises(tf.errors.DeadlineExceededError, match="1 steps? that change"):
            session.run(v, options=tf.RunOptions(between_steps=True, timeout_in_ms=200))
        assert session.run(v) == 0, "others may go on"
        session.run(queue.enqueue(3.0))
        stuck.join()
        assert session.run(v, options=BETWEEN) == 3


def test_it_is_refused_where_a_partial_run_is_open():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [])
    y = v.assign_add(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        handle = session.partial_run_setup([y], [x])
        with pytest.raises(tf.errors.FailedPreconditionError, match="between_steps: a partial run is open"):
            session.run(v, options=BETWEEN)
        assert session.partial_run(handle, y, {x: 2.0}) == 2
        assert session.run(v, options=BETWEEN) == 2


def test_it_is_refused_where_other_sessions_change_the_variables(tmp_path):
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    saver = tf.train.Saver(consistent=True)
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.FailedPreconditionError, match="other sessions may change the variables"):
            saver.save(session, str(tmp_path / "c"))
        tf.train.Saver([v]).save(session, str(tmp_path / "relaxed"))
    with tf.Session(server.target, config=tf.ConfigProto(isolate_session_state=True)) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "isolated"))
    np.testing.assert_array_equal(tf.train.load_variable(path, "v"), [1, 1])


def test_updates_beside_what_fails_are_done():
    """As in TensorFlow 1.15.5, whose steps end when nothing can run any more."""
    for _ in range(30):
        with tf.Graph().as_default(), tf.Session() as session:
            steps = tf.get_variable("steps", initializer=0)
            element = tf.data.Dataset.range(2).make_one_shot_iterator().get_next()
            both = [steps.assign_add(1), element]
            session.run(steps.initializer)
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    session.run(both)
            assert session.run(steps) == 3


@pytest.mark.parametrize("change", ["assign_add", "scatter_add", "slice", "count_up_to", "optimizer"])
def test_changes_of_a_variable_without_a_value_name_it(change):
    v = tf.get_variable("v", initializer=[1, 2] if change != "optimizer" else [1.0, 2.0], use_resource=False)
    ops = {
        "assign_add": lambda: v.assign_add([1, 1]),
        "scatter_add": lambda: tf.scatter_add(v, [0], [1]),
        "slice": lambda: v[:1].assign([3]),
        "count_up_to": lambda: tf.count_up_to(tf.get_variable("v2", initializer=1, use_resource=False), 3),
        "optimizer": lambda: tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.constant([1.0, 1.0]), v)]),
    }
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value v"):
        session.run(ops[change]())


def test_resources_are_counted_up():
    v = tf.get_variable("v", initializer=1, use_resource=True)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(v.count_up_to(3)) == 1 and session.run(tf.count_up_to(v, 3)) == 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(tf.count_up_to(v, 3))
