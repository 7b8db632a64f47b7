# SPDX-License-Identifier: Apache-2.0
"""Staging areas: values that one step leaves for another."""

import threading

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_elements_leave_in_the_order_of_coming():
    area = tf.StagingArea([tf.float32, tf.int32], shapes=[[2], []])
    fed = tf.placeholder(tf.float32, [2])
    put, got, peeked, size, clear = area.put([fed, 7]), area.get(), area.peek(1), area.size(), area.clear()
    assert [t.get_shape().as_list() for t in got] == [[2], []]
    with tf.Session() as sess:
        for k in range(3):
            sess.run(put, {fed: [k, k]})
        assert sess.run(size) == 3
        np.testing.assert_equal(sess.run(peeked)[0], [1, 1])
        np.testing.assert_equal(sess.run(got)[0], [0, 0])
        assert sess.run(got)[1] == 7
        sess.run(clear)
        assert sess.run(size) == 0


def test_one_step_waits_for_another():
    area = tf.contrib.staging.StagingArea(tf.int32, capacity=1)
    fed = tf.placeholder(tf.int32)
    put, got = area.put(fed), area.get()
    with tf.Session() as sess:

        def fill():
            for k in range(20):
                sess.run(put, {fed: k})

        thread = threading.Thread(target=fill)
        thread.start()
        assert [sess.run(got)[0] for _ in range(20)] == list(range(20))
        thread.join()
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(got, options=tf.RunOptions(timeout_in_ms=20))


def test_names_make_dictionaries():
    area = tf.StagingArea([tf.int32, tf.string], names=["a", "b"], shared_name="shared")
    other = tf.StagingArea([tf.int32, tf.string], names=["a", "b"], shared_name="shared")
    put, got = area.put({"a": 1, "b": "x"}), other.get()
    with tf.Session() as sess:
        sess.run(put)
        assert sess.run(got) == {"a": 1, "b": b"x"}
    for wrong in ([1, "x"], {"a": 1}, {"a": 1, "c": "x"}):
        with pytest.raises(ValueError):
            area.put(wrong)


def test_what_makes_no_sense():
    with pytest.raises(ValueError):
        tf.StagingArea([tf.int32], shapes=[[1], [2]])
    with pytest.raises(ValueError):
        tf.StagingArea([tf.int32], names=["a", "b"])
    with pytest.raises(ValueError):
        tf.StagingArea([tf.int32], capacity=-1)
    area = tf.StagingArea([tf.int32], shapes=[[2]], memory_limit=4)
    with pytest.raises(ValueError):
        area.put([[1, 2], [3, 4]])
    with pytest.raises(ValueError):
        area.put([[1, 2, 3]])
    with tf.Session() as sess, pytest.raises(tf.errors.ResourceExhaustedError):
        sess.run(area.put([[1, 2]]))


def test_elements_come_to_the_device_of_who_takes_them():
    with tf.device("/cpu:1"):
        area = tf.contrib.staging.StagingArea([tf.float32])
    with tf.device("/cpu:0"):
        put, got, at = area.put([1.0]), area.get()[0], area.peek(0)[0]
    assert put.device == "/device:CPU:1" and got.device == at.device == "/device:CPU:0"
    assert got.op.inputs[0].device == "/device:CPU:1"
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(put)
        assert session.run(at) == 1.0 and session.run(got) == 1.0
