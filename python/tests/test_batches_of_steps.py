# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.batching: steps of several threads fill one batch."""

import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.framework.function import Defun
from millrace.ops import batch_ops, gen_ops

LONG = 60_000_000  # microseconds


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _together(calls):
    """What functions return that run at the same time; an exception is a result too."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def _batch(inputs, **given):
    attributes = dict(num_batch_threads=1, max_batch_size=2, batch_timeout_micros=LONG, grad_timeout_micros=LONG)
    return gen_ops.batch(inputs, **{**attributes, **given})


def test_one_step_of_a_batch_gets_it_all():
    x, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.string, [None, 2])
    batched, index, number = _batch([x, y])
    assert batched[0].shape.as_list() == [None] and batched[1].shape.as_list() == [None, 2] and index.shape.as_list() == [None, 3]
    with tf.Session() as session:
        fetch = lambda v: session.run([*batched, index, number], {x: [v], y: [["a", str(v)]]})
        with_all, without = sorted(_together([lambda: fetch(1), lambda: fetch(2)]), key=lambda r: -len(r[0]))
    assert sorted(with_all[0].tolist()) == [1, 2] and [row[1] for row in with_all[1].tolist()] == [b"%d" % v for v in with_all[0]]
    assert with_all[2][:, 1:].tolist() == [[0, 1], [1, 2]] and set(with_all[2][:, 0]) == {with_all[3], without[3]}
    assert [len(v) for v in without[:3]] == [0, 0, 0]


def test_batches_end_in_time_and_are_filled_up():
    x = tf.placeholder(tf.float32, [None, 1])
    batched, index, _number = _batch([x], max_batch_size=8, allowed_batch_sizes=[3, 8], batch_timeout_micros=1000)
    with tf.Session() as session:
        values, rows = session.run([batched[0], index], {x: [[5.0], [6.0]]})
    assert values.tolist() == [[5.0], [6.0], [5.0]] and rows[:, 1:].tolist() == [[0, 2]]


def test_a_session_may_close_as_soon_as_a_batch_is_over():
    batched, _index, _number = _batch([tf.constant([1, 2])], max_batch_size=4, batch_timeout_micros=50)

    def runs():
        for _ in range(100):
            with tf.Session(graph=batched[0].graph) as session:
                assert session.run(batched[0]).tolist() == [1, 2]

    assert _together([runs] * 8) == [None] * 8


@pytest.mark.parametrize("decorator", [batch_ops.batch_function, batch_ops.batch_function_v1, tf.nondifferentiable_batch_function])
def test_functions_of_batches(decorator):
    runs = []

    def seen(values):
        runs.append(len(values))
        return values * 10

    factor = tf.placeholder_with_default(2, [])

    @decorator(1, 4, LONG)
    def computation(values):
        return tf.py_func(seen, [values], tf.int32) + factor, values

    x = tf.placeholder(tf.int32, [None])
    result = computation(x)
    with tf.Session() as session:
        fed = [[1], [2, 3], [4]]
        made = _together([lambda v=v: [r.tolist() for r in session.run(result, {x: v})] for v in fed])
    assert made == [[[10 * v + 2 for v in values], values] for values in fed]
    assert [n for n in runs if n] == [4]  # steps without rows may run the function too


def test_what_does_not_fit_waits_for_the_next_batch():
    sizes = []

    @batch_ops.batch_function(2, 3, 200_000)
    def computation(values):
        return tf.py_func(lambda v: (sizes.append(len(v)), v + 1)[1], [values], tf.int64)

    x = tf.placeholder(tf.int64, [None])
    result = computation(x)
    with tf.Session() as session:
        made = _together([lambda v=v: session.run(result, {x: [v, v]})[0].tolist() for v in range(4)])
    assert made == [[v + 1, v + 1] for v in range(4)] and sizes == [2] * 4


def test_gradients_flow_through_batches():
    x = tf.placeholder(tf.float32, [None])
    batched, index, number = _batch([x], max_batch_size=4, allowed_batch_sizes=[4])
    scaled = gen_ops.unbatch(batched[0] * batched[0], index, number, timeout_micros=LONG)
    (slope,) = tf.gradients(scaled, x, [tf.constant(3.0) * tf.ones_like(scaled)])
    with tf.Session() as session:
        made = _together([lambda v=v: session.run(slope, {x: v}).tolist() for v in ([1.0], [2.0, 5.0, 7.0])])
    assert made == [[6.0], [12.0, 30.0, 42.0]]


def test_a_step_does_not_wait_longer_than_it_may():
    batched, index, number = tf.constant([1.0]), tf.constant(np.zeros((0, 3), np.int64)), tf.placeholder(tf.int64, [])
    rows = gen_ops.unbatch(batched, index, number, timeout_micros=20_000)
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError, match="did not arrive"):
            session.run(rows, {number: 1})


@pytest.mark.parametrize("how", ["timeout", "close"])
def test_steps_that_end_leave_the_batch(how):
    x = tf.placeholder(tf.int32, [None])
    batched = _batch([x], max_batch_size=2)[0]
    session = tf.Session()
    if how == "timeout":
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(batched, {x: [1]}, options=tf.RunOptions(timeout_in_ms=100))
        made = _together([lambda: session.run(batched, {x: [2]})[0].tolist(), lambda: session.run(batched, {x: [3]})[0].tolist()])
        assert sorted(sum(made, [])) == [2, 3]
    else:
        (ended, _closed) = _together([lambda: session.run(batched, {x: [1]}), lambda: (time.sleep(0.2), session.close())])
        assert isinstance(ended, tf.errors.CancelledError)
    session.close()


def test_work_that_nobody_waits_for_ends():
    queue = tf.FIFOQueue(1, tf.int32, [])

    @batch_ops.batch_function(1, 1, 0)
    def computation(values):
        return values + queue.dequeue()

    x = tf.placeholder(tf.int32, [None])
    result = computation(x)
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(result, {x: [1]}, options=tf.RunOptions(timeout_in_ms=100))
        session.run(queue.enqueue(5))
        assert session.run(result, {x: [1]})[0].tolist() == [6]  # the one thread is free again, and took nothing


def test_full_queues_and_failures_reach_every_step():
    refused = threading.Event()

    @batch_ops.batch_function(1, 1, 0, max_enqueued_batches=1)
    def slow(values):
        return tf.py_func(lambda v: (refused.wait(30), v)[1], [values], tf.int32)

    @batch_ops.batch_function(1, 2, LONG)
    def failing(values):
        with tf.control_dependencies([tf.Assert(tf.reduce_sum(values) < 0, ["too much"])]):
            return tf.identity(values)

    @batch_ops.batch_function(1, 1, 0)
    def joined(values):
        return tf.reduce_sum(values, keepdims=True)[:0]

    x = tf.placeholder(tf.int32, [None])
    slow, failing, joined = slow(x), failing(x), joined(x)
    with tf.Session() as session:

        def call():
            try:
                return session.run(slow, {x: [1]})
            except tf.errors.UnavailableError:
                refused.set()
                return "refused"

        made = _together([call] * 3)  # one at work, one waiting, one too many
        assert made.count("refused") == 1
        made = _together([lambda: session.run(failing, {x: [1]})] * 2)
        assert all(isinstance(m, tf.errors.InvalidArgumentError) and "too much" in str(m) for m in made)
        with pytest.raises(tf.errors.FailedPreconditionError, match="does not equal the sum"):
            session.run(joined, {x: [1]})


@pytest.mark.parametrize(
    "given, text",
    [
        (dict(num_batch_threads=0), "num_batch_threads must be positive"),
        (dict(max_batch_size=-1), "max_batch_size must be positive"),
        (dict(max_enqueued_batches=0), "max_enqueued_batches must be positive"),
        (dict(batch_timeout_micros=-1), "must not be negative"),
        (dict(allowed_batch_sizes=[2, 1]), "monotonically increasing"),
        (dict(allowed_batch_sizes=[1]), "must equal max_batch_size"),
        (dict(max_batch_size=1), "Task size 2 is larger than maximum batch size 1"),
        (dict(max_batch_size=2**62, allowed_batch_sizes=[2**62], batch_timeout_micros=0), "."),
    ],
)
def test_refusals(given, text):
    batched = _batch([tf.placeholder_with_default([1, 2], [None])], **given)
    with tf.Session() as session, pytest.raises((tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError), match=text):
        session.run(batched[0])


def test_wrong_inputs_are_refused():
    fed = [tf.placeholder(tf.int32), tf.placeholder(tf.int32)]
    batched = _batch(fed)
    index = tf.placeholder(tf.int64)
    rows = gen_ops.unbatch(tf.constant([1, 2]), index, np.int64(1), timeout_micros=1000)

    gradient = gen_ops.unbatch_grad(tf.constant([1.0, 2.0]), index, tf.constant([1.0]), np.int64(1))

    @Defun(tf.int32)
    def one(values):
        return values

    called = batch_ops.called_in_batches(fed, [], one, num_batch_threads=1, max_batch_size=2, batch_timeout_micros=0, Tout=[tf.int32])
    with tf.Session() as session:
        for values, text in (([1, [1]], "at least one dimension"), ([[1], [1, 2]], "equal 0th-dimension size")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.run(batched[0], dict(zip(fed, values)))
        for value in ([1, 2, 3], [[1, 0]], [[1, 0, 3]], [[1, 1, 2]], [[1, 0, 2], [2, 2, 1]], [[1, 0, -1]], [[1, 0, 1], [1, 1, 2]]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="batch_index"):
                session.run(rows, {index: value})
            with pytest.raises(tf.errors.InvalidArgumentError, match="batch_index"):
                session.run(gradient, {index: value})
        with pytest.raises(tf.errors.InvalidArgumentError, match="takes 1 inputs"):
            session.run(called, dict(zip(fed, [[1], [1]])))
    with pytest.raises(ValueError, match="supposed to be Tensors"):
        batch_ops.batch_function(1, 1, 0)(lambda v: v)(3)
