# SPDX-License-Identifier: Apache-2.0
"""Threads beside the program: coordinators, queue runners, and how a program with them ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import millrace as tf


def counting(limit=None):
    """(a queue, an operation that puts 1, 2, ... into it; after `limit` it fails with OutOfRangeError)."""
    queue = tf.FIFOQueue(10, tf.int64, shapes=[[]], name="numbers")
    count = tf.Variable(0, dtype=tf.int64, trainable=False)
    return queue, queue.enqueue(count.count_up_to(limit or 2**40))


def test_the_input_ends():
    queue, enqueue = counting(25)
    runner = tf.train.QueueRunner(queue, [enqueue])
    tf.train.add_queue_runner(runner)
    element = queue.dequeue()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners(session)
        assert [t.daemon for t in threads] == [True]
        assert [session.run(element) for _ in range(25)] == list(range(25))
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert runner.exceptions_raised == []


def test_the_last_of_several_threads_closes_the_queue():
    queue, enqueue = counting(1000)
    runner = tf.train.QueueRunner(queue, [enqueue] * 4)
    element = queue.dequeue()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, start=True)
        assert len(threads) == 5
        found = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(element))
        assert sorted(found) == list(range(1000))
        coordinator.request_stop()
        coordinator.join(threads)


def test_a_coordinator_cancels_who_waits():
    queue, enqueue = counting()
    runner = tf.train.QueueRunner(queue, [enqueue])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, start=True)
        while session.run(queue.size()) < 10:
            time.sleep(0.01)
        begin = time.monotonic()
        coordinator.request_stop()
        coordinator.join(threads)
        assert time.monotonic() - begin < 5
        assert session.run(queue.is_closed())


def test_an_error_reaches_who_joins_and_is_named_to_who_waits():
    queue = tf.FIFOQueue(10, tf.float32, shapes=[[]], name="reasons")
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.check_numerics(tf.log(-1.0), "no logarithm"))])
    tf.train.add_queue_runner(runner)
    element = queue.dequeue()
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError), match="fills queue 'reasons' had failed: InvalidArg.*no logarithm"):
            session.run(element)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no logarithm"):
            coordinator.join(threads)


def test_what_a_runner_needs():
    queue, enqueue = counting()
    with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
        tf.train.QueueRunner(queue)
    with pytest.raises(TypeError, match="tuple of tf.error types"):
        tf.train.QueueRunner(queue, [enqueue], queue_closed_exception_types=(ValueError,))
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.train.QueueRunner(queue, [enqueue], queue_runner_def=tf.train.QueueRunner(queue, [enqueue]).to_proto())
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match="must be a `tf.Session`"):
        tf.train.start_queue_runners("session")


def test_a_runner_starts_once_for_each_session():
    queue, enqueue = counting()
    runner = tf.train.QueueRunner(queue, [enqueue])
    with tf.Session() as one, tf.Session() as two:
        assert len(runner.create_threads(one)) == 1
        assert runner.create_threads(one) == []
        assert len(runner.create_threads(two)) == 1


def test_a_runner_as_a_message():
    with tf.name_scope("outer"):
        queue, enqueue = counting()
        runner = tf.train.QueueRunner(queue, [enqueue, enqueue], queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError))
    message = runner.to_proto()
    assert message.queue_name == "outer/numbers"
    assert list(message.enqueue_op_name) == [enqueue.name] * 2
    assert list(message.queue_closed_exception_types) == [tf.errors.OUT_OF_RANGE, tf.errors.CANCELLED]
    assert runner.to_proto("outer").queue_name == "numbers"
    assert runner.to_proto("other") is None
    again = tf.train.QueueRunner.from_proto(type(message).FromString(message.SerializeToString()))
    assert again.name == "outer/numbers" and again.enqueue_ops == [enqueue] * 2
    assert again.close_op is runner.close_op and again.cancel_op is runner.cancel_op
    assert again.queue_closed_exception_types == (tf.errors.OutOfRangeError, tf.errors.CancelledError)


# ---- coordinators ----


def test_a_coordinator_stops_threads():
    coordinator = tf.train.Coordinator()
    turns = []

    def work():
        while not coordinator.should_stop():
            turns.append(1)
            coordinator.wait_for_stop(0.01)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not coordinator.wait_for_stop(0.05)
    coordinator.request_stop()
    coordinator.join(threads)
    assert turns and coordinator.joined and coordinator.should_stop()
    coordinator.clear_stop()
    assert not coordinator.joined and not coordinator.should_stop()


def test_a_coordinator_hands_on_the_first_error():
    coordinator = tf.train.Coordinator()

    def work(error):
        with coordinator.stop_on_exception():
            raise error

    for error in (KeyError("first"), ValueError("second")):
        thread = threading.Thread(target=work, args=(error,))
        thread.start()
        thread.join()
    with pytest.raises(KeyError, match="first"):
        coordinator.raise_requested_exception()
    with pytest.raises(KeyError, match="first"):
        coordinator.join([])
    with pytest.raises(ValueError, match="third"):
        coordinator.request_stop(ValueError("third"))


def test_ends_that_are_no_errors():
    coordinator = tf.train.Coordinator()
    coordinator.request_stop(tf.errors.OutOfRangeError(None, None, "the end"))
    coordinator.join([])
    coordinator = tf.train.Coordinator(clean_stop_exception_types=(KeyError,))
    coordinator.request_stop(KeyError("fine"))
    coordinator.join([])
    coordinator = tf.train.Coordinator(clean_stop_exception_types=())
    coordinator.request_stop(tf.errors.OutOfRangeError(None, None, "not fine"))
    with pytest.raises(tf.errors.OutOfRangeError):
        coordinator.join([])


def test_threads_that_do_not_stop():
    coordinator = tf.train.Coordinator()
    never = threading.Event()
    thread = threading.Thread(target=never.wait, name="stubborn", daemon=True)
    coordinator.register_thread(thread)
    thread.start()
    coordinator.request_stop()
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="threads still running: stubborn"):
        coordinator.join(stop_grace_period_secs=0.2)
    assert time.monotonic() - begin < 5
    coordinator.clear_stop()
    coordinator.request_stop()
    coordinator.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True)
    never.set()


def test_a_function_again_and_again():
    coordinator = tf.train.Coordinator()
    turns = []
    tf.train.LooperThread.loop(coordinator, 0.01, turns.append, (1,))
    while len(turns) < 3:
        time.sleep(0.01)
    coordinator.request_stop()
    coordinator.join()
    coordinator = tf.train.Coordinator()

    def fail():
        raise KeyError("in the loop")

    tf.train.LooperThread.loop(coordinator, None, fail)
    with pytest.raises(KeyError, match="in the loop"):
        coordinator.join()
    with pytest.raises(ValueError, match="Coordinator"):
        tf.train.LooperThread(None, 1)
    with pytest.raises(ValueError, match="target"):
        tf.train.LooperThread(coordinator, 1, args=(1,))


# ---- sessions that start them ----


def pipeline(limit=12):
    n = tf.train.range_input_producer(limit, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([n], 3)


def test_a_monitored_session_starts_them():
    batch = pipeline()
    tf.train.create_global_step()
    found = []
    with tf.train.MonitoredTrainingSession() as session:
        while not session.should_stop():
            found.append(session.run(batch).tolist())
    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_a_supervisor_starts_them():
    batch = pipeline()
    found = []
    supervisor = tf.train.Supervisor(logdir=None)
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            found.append(session.run(batch).tolist())
    assert len(found) == 4


def test_a_monitored_session_says_what_went_wrong_in_a_thread():
    bad = tf.check_numerics(tf.log(-1.0), "no logarithm")
    batch = tf.train.batch([bad], 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no logarithm"):
        with tf.train.MonitoredSession() as session:
            session.run(batch)


# ---- how programs end ----

PROLOGUE = """
import os, signal, sys, threading, time
import millrace as tf
n = tf.train.range_input_producer(1000).dequeue()
batch = tf.train.batch([n], 8)
"""


def program(text, signal_after=None, timeout=60):
    process = subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if signal_after:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(signal_after)
        process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err, time.monotonic() - begin


ENDS = {
    "forgets to join": """
        sess = tf.Session()
        coord = tf.train.Coordinator()
        tf.train.start_queue_runners(sess, coord)
        print(sess.run(batch).shape)""",
    "forgets the coordinator, too": """
        with tf.Session() as sess:
            tf.train.start_queue_runners()
            print(sess.run(batch).shape)""",
    "leaves its session open": """
        sess = tf.InteractiveSession()
        tf.train.start_queue_runners()
        print(batch.eval().shape)""",
    "closes its session first": """
        coord = tf.train.Coordinator()
        with tf.Session() as sess:
            tf.train.start_queue_runners(sess, coord)
            print(sess.run(batch).shape)
        coord.request_stop()""",
    "joins": """
        coord = tf.train.Coordinator()
        with tf.Session() as sess:
            threads = tf.train.start_queue_runners(sess, coord)
            print(sess.run(batch).shape)
            coord.request_stop()
            coord.join(threads)""",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=[e.replace(" ", "_").replace(",", "") for e in ENDS])
def test_a_program_ends(text):
    code, out, err, _ = program(text)
    assert (code, out.split("\n")[0], err) == (0, "(8,)", "")


def test_ctrl_c_while_a_step_waits():
    code, _, err, took = program(
        """
        sess = tf.Session()
        print("ready", flush=True)
        sess.run(batch)""",
        signal_after=1.0,
    )
    assert code != 0 and "KeyboardInterrupt" in err and took < 10, err


def test_ctrl_c_while_it_joins():
    code, _, err, took = program(
        """
        sess = tf.Session()
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        print("ready", flush=True)
        coord.join(threads)""",
        signal_after=1.0,
    )
    assert code != 0 and "KeyboardInterrupt" in err and took < 10, err


def test_a_program_that_forgets_to_start_them_is_told():
    code, out, err, _ = program("""
        import logging
        sess = tf.Session()
        class Listener(logging.Handler):
            def emit(self, record):
                print(record.getMessage(), flush=True)
                threading.Timer(0.1, lambda: tf.train.start_queue_runners(sess)).start()
        logging.getLogger("tensorflow").addHandler(Listener())
        print(sess.run(batch).shape)
        print(sess.run(batch).shape)""")
    assert code == 0, err
    told, *shapes = out.splitlines()
    assert "'batch/fifo_queue'" in told and "tf.train.start_queue_runners" in told
    assert shapes == ["(8,)", "(8,)"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_operations_by_name():
    queue, enqueue = counting(3)
    runner = tf.train.QueueRunner(queue, [enqueue.name, "no operation"])
    assert list(runner.to_proto().enqueue_op_name) == [enqueue.name, "no operation"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for thread in runner.create_threads(session, start=True):
            thread.join(10)
        assert session.run(queue.size()) == 3
    assert ["'no operation' refers to an Operation not in the graph" in str(e) for e in runner.exceptions_raised] == [True]
