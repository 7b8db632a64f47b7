# SPDX-License-Identifier: Apache-2.0
"""What a session keeps between steps: tensors under handles, mutexes; parts of variables, files as constants."""

import gc
import threading
import time

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_handle_keeps_a_tensor(session):
    a = tf.constant(10) * 2
    handle = session.run(tf.get_session_handle(a))
    assert handle.eval() == 20 and str(handle).count(";") == 2
    holder, kept = tf.get_session_tensor(handle.handle, tf.int32)
    pair = session.run([tf.get_session_handle(kept + 1), kept], {holder: handle.handle})
    assert pair[0].eval() == 21 and pair[1] == 20
    x = tf.placeholder(tf.int32)
    assert session.run(x * 3, {x: handle}) == 60
    with pytest.raises(tf.errors.InvalidArgumentError, match="is int32, it is read as float"):
        holder, wrong = tf.get_session_tensor(handle.handle, tf.float32)
        session.run(wrong, {holder: handle.handle})
    handle.delete()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
        session.run(kept, {holder: handle.handle} if kept.op.inputs[0] is holder else {kept.op.inputs[0]: handle.handle})
    with pytest.raises(TypeError, match="already been deleted"):
        handle.eval()


def test_handles_of_a_loop(session):
    handle = session.run(tf.get_session_handle(tf.constant(0.0)))
    holder, total = tf.get_session_tensor(handle.handle, tf.float32)
    following = tf.get_session_handle(total + 1.5)
    for _ in range(20):
        handle = session.run(following, {holder: handle.handle})
    assert handle.eval() == 30


def test_a_tensor_goes_with_its_handle(session):
    handle = session.run(tf.get_session_handle(tf.zeros([4])))
    name = handle.handle
    holder, kept = tf.get_session_tensor(name, tf.float32)
    session.run(kept, {holder: name})
    del handle
    gc.collect()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
        session.run(kept, {holder: name})
    raw = session.run(tf.get_session_handle(tf.ones([2]))).get_raw_handle()
    gc.collect()
    assert session.run(kept, {holder: raw}).tolist() == [1, 1]
    holder, drop = tf.delete_session_tensor(raw)
    session.run(drop, {holder: raw})
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(drop, {holder: raw})


def _locked(mutex, body):
    """A section of which one step at a time runs `body`."""
    lock = tf.raw_ops.MutexLock(mutex=mutex)
    with tf.control_dependencies([lock]):
        done = body()
    with tf.control_dependencies([done]):
        return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)


def test_one_step_at_a_time(session):
    v = tf.Variable(0)
    session.run(v.initializer)
    mutex = tf.raw_ops.MutexV2()

    def body():
        read = v.read_value() + 0
        with tf.control_dependencies([read]):
            waited = tf.py_func(lambda x: time.sleep(0.001) or x, [read], tf.int32)
        return tf.assign(v, waited + 1).op

    section = _locked(mutex, body)
    threads = [threading.Thread(target=lambda: [session.run(section) for _ in range(10)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert session.run(v) == 40


def test_who_waits_for_a_mutex_can_be_stopped(session):
    mutex = tf.raw_ops.MutexV2(shared_name="m")
    go = tf.FIFOQueue(1, [tf.int32], shapes=[[]])
    section = _locked(mutex, lambda: go.dequeue().op)
    holder = threading.Thread(target=lambda: session.run(section))
    holder.start()
    time.sleep(0.05)
    with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.CancelledError)):
        session.run(section, options=tf.RunOptions(timeout_in_ms=100))
    session.run(go.enqueue(1))
    holder.join()
    session.run(go.enqueue(1))
    session.run(section)  # free again


def test_a_step_that_fails_gives_its_lock_back(session):
    mutex = tf.raw_ops.MutexV2()
    bad = tf.placeholder(tf.int32)
    section = _locked(mutex, lambda: tf.Assert(tf.equal(bad, 0), [bad]))
    for value in (1, 1, 0, 0):
        if value:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(section, {bad: value})
        else:
            session.run(section, {bad: value}, options=tf.RunOptions(timeout_in_ms=10000))


def test_parts_of_a_variable(session):
    v = tf.get_variable("v", initializer=np.zeros((3, 4), np.float32), use_resource=True)
    session.run(v.initializer)
    update = tf.raw_ops.ResourceStridedSliceAssign(ref=v.handle, begin=[1, 0], end=[3, 4], strides=[1, 2], value=[5.0, 6.0])
    session.run(update)
    assert session.run(v).tolist() == [[0, 0, 0, 0], [5, 0, 6, 0], [5, 0, 6, 0]]
    wrong = tf.raw_ops.ResourceStridedSliceAssign(ref=v.handle, begin=[0], end=[1], strides=[1], value=[1, 2, 3, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="l-value dtype float does not match r-value dtype int32"):
        session.run(wrong)


def test_a_file_as_a_constant(session, tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(6, dtype=np.int32).tobytes() + b"x")
    whole = tf.raw_ops.ImmutableConst(dtype=tf.int32, shape=[2, 3], memory_region_name=str(path))
    assert session.run(whole).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(tf.errors.OpError, match="too few"):
        session.run(tf.raw_ops.ImmutableConst(dtype=tf.int32, shape=[7], memory_region_name=str(path)))
    with pytest.raises(tf.errors.OpError):
        session.run(tf.raw_ops.ImmutableConst(dtype=tf.int32, shape=[2**40, 2**20], memory_region_name=str(path)))
