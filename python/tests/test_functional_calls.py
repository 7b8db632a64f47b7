# SPDX-License-Identifier: Apache-2.0
"""Nodes that call functions: tensorflow.python.ops.functional_ops."""

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.framework import function

functional_ops = names.find("python.ops.functional_ops")


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_branches():
    x = tf.placeholder(tf.float32, [])
    twice, thrice = function.Defun(tf.float32)(lambda x: x * 2), function.Defun(tf.float32)(lambda x: x * 3 + 1)
    (chosen,) = functional_ops.If(x > 0, [x], twice, thrice)
    assert run(chosen, {x: 9.0}) == 18 and run(chosen, {x: -8.0}) == -23


def test_loops():
    more = function.Defun(tf.int32, tf.int32)(lambda n, x: n > 0)
    step = function.Defun(tf.int32, tf.int32)(lambda n, x: [n - 1, x + n])
    assert run(functional_ops.While([20, 0], more, step)) == [0, 210]
    wide = function.Defun(tf.int32, tf.float32)(lambda n, x: True)
    with pytest.raises(ValueError, match="signatures do not match"):
        functional_ops.While([20, 0], wide, step)


@pytest.mark.parametrize("by_while", [False, True])
def test_loops_over_numbers(by_while):
    add = function.Defun(tf.int32, tf.float32)(lambda n, x: x + tf.cast(n, tf.float32))
    for start, limit, delta in ((1, 21, 1), (100, 0, -1), (0, 10, 3), (3, 3, 1)):
        (total,) = functional_ops.For(start, limit, delta, [0.0], add, rewrite_with_while=by_while)
        assert run(total) == sum(range(start, limit, delta))


def test_bodies_with_tensors_from_outside():
    v = tf.Variable(1.0)

    def more(n, x):
        return n < 10

    step = function.Defun(tf.float32, tf.float32)(lambda n, x: [n + 1, x + n + v])
    made = functional_ops.While([1.0, 0.0], function.Defun(tf.float32, tf.float32)(more), step)
    assert run(made) == [10, 54]
    with pytest.raises(ValueError, match="without implicitly captured inputs"):
        functional_ops.While([1.0, 0.0], function.Defun(tf.float32, tf.float32)(lambda n, x: n + v < 10), step)
    add = function.Defun(tf.int32, tf.float32)(lambda n, x: x + tf.cast(n, tf.float32) + v)
    for by_while in (False, True):
        assert run(functional_ops.For(1, 10, 1, [0.0], add, rewrite_with_while=by_while)) == [54]


def test_gradients_of_functions():
    poly = function.Defun(tf.float32)(lambda x: 2 * x * x * x + 3 * x * x + 4 * x + 8)
    assert run(functional_ops.Gradient([[0.0, 1.0], [1.0, 1.0]], poly))[0].tolist() == [4, 16]
    named = function.Defun(tf.float32, func_name="Squared")(lambda x: x * x)
    named(1.0)
    assert run(functional_ops.symbolic_gradient(input=[3.0, 1.0], Tout=[tf.float32], f="Squared")) == 6


def test_calls():
    both = function.Defun(tf.float32, tf.float32)(lambda x, y: [x + y, x * y])
    np.testing.assert_array_equal(run(functional_ops.partitioned_call([[1.0, 2.0], [3.0, 4.0]], both)), [[4, 6], [3, 8]])
    v = tf.Variable(1.0, use_resource=True)

    @function.Defun()
    def add():
        return v.assign_add(1.0)

    (after,) = functional_ops.partitioned_call(add.captured_inputs, add)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(after) == 2 and session.run(v) == 2


def test_remote_calls_whose_target_a_step_says():
    following = function.Defun(tf.string)(lambda h: tf.data.Iterator.from_string_handle(h, tf.int64, []).get_next())
    with tf.device("/cpu:1"):
        handle = tf.data.Dataset.range(3).make_one_shot_iterator().string_handle()
    target = tf.placeholder(tf.string, [])
    with tf.device("/cpu:0"):
        value = functional_ops.remote_call(target=target, args=[handle], Tout=[tf.int64], f=following)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(value, {target: "/job:localhost/replica:0/task:0/device:CPU:1"}) == [0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="iterator on device .*CPU:0 from handle defined on device .*CPU:1"):
            session.run(value, {target: "/cpu:0"})
        with pytest.raises(tf.errors.InvalidArgumentError, match="target '/gpu:0' of a remote call names none of the devices /job:localhost"):
            session.run(value, {target: "/gpu:0"})
        assert session.run(value, {target: "/cpu:1"}) == [1]
