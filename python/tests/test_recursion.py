# SPDX-License-Identifier: Apache-2.0
"""Functions that call themselves: they run when they are reached, and end by a branch, a limit or a deadline."""

import threading

import pytest

import millrace as tf
from millrace.framework import function


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def declared(name, result=tf.int64):
    return function.Declare(name, [("n", tf.int64)], [("result", result)])


def factorial():
    again = declared("Factorial")

    @function.Defun(tf.int64, func_name="Factorial")
    def made(n):
        return tf.cond(n < 2, lambda: tf.constant(1, tf.int64), lambda: n * again(n - 1))

    return made


def test_a_branch_ends_it(sess):
    n = tf.placeholder(tf.int64, [])
    y = factorial()(n) + 1
    assert [sess.run(y, {n: i}) for i in (0, 1, 5, 20)] == [2, 2, 121, 2432902008176640001]


def test_two_calls_and_two_functions(sess):
    fibonacci, odd = declared("Fibonacci"), declared("Odd", tf.bool)

    @function.Defun(tf.int64, func_name="Fibonacci")
    def fib(n):
        return tf.cond(n < 2, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2))

    @function.Defun(tf.int64, func_name="Even")
    def even(n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(True), lambda: odd(n - 1))

    @function.Defun(tf.int64, func_name="Odd")
    def is_odd(n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(False), lambda: even(n - 1))

    is_odd.add_to_graph(sess.graph)
    n = tf.placeholder(tf.int64, [])
    y, e = fib(n), even(n)
    assert sess.run([y, e], {n: 12}) == [144, True] and sess.run(e, {n: 7}) == False  # noqa: E712
    loop = tf.while_loop(lambda i, _: i < 5, lambda i, s: (i + 1, s + tf.reshape(fib(i), [])), (tf.constant(0, tf.int64), tf.constant(0, tf.int64)))
    assert sess.run(loop[1]) == 0 + 1 + 1 + 2 + 3


def test_functional_branches_that_call_the_function(sess):
    @function.Defun(tf.int64, func_name="Down")
    def down(n):
        return tf.raw_ops.If(cond=n > 0, input=[n - 2], Tout=[tf.int64], then_branch="Down", else_branch="Same")[0]

    @function.Defun(tf.int64, func_name="Same")
    def same(n):
        return tf.identity(n)

    same.add_to_graph(sess.graph)
    assert sess.run(down(tf.constant(7, tf.int64))) == -3


def test_what_does_not_end_says_which_function_and_how_deep(sess):
    again = declared("Endless")

    @function.Defun(tf.int64, func_name="Endless")
    def endless(n):
        return again(n + 1)

    with pytest.raises(tf.errors.ResourceExhaustedError, match="function 'Endless' calls itself too deep: .* calls"):
        sess.run(endless(tf.constant(0, tf.int64)))
    assert sess.run(factorial()(tf.constant(5, tf.int64))) == 120  # the session goes on


def test_a_deadline_ends_it(sess):
    again = declared("Wide")

    @function.Defun(tf.int64, func_name="Wide")
    def wide(n):
        return tf.cond(n < 1, lambda: n, lambda: again(n - 1) + again(n - 1))

    y = wide(tf.constant(60, tf.int64))
    with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(y, options=tf.RunOptions(timeout_in_ms=300))


def test_a_gradient_is_refused(sess):
    x = tf.constant(3, tf.int64)
    again = function.Declare("Power", [("x", tf.float32), ("n", tf.int64)], [("result", tf.float32)])

    @function.Defun(tf.float32, tf.int64, func_name="Power")
    def power(v, n):
        return tf.cond(n < 1, lambda: tf.ones_like(v), lambda: v * again(v, n - 1))

    v = tf.constant(2.0)
    y = power(v, x)
    assert sess.run(y) == 8.0
    with pytest.raises((NotImplementedError, LookupError, tf.errors.UnimplementedError, ValueError), match="Power|PartitionedCall"):
        sess.run(tf.gradients(y, v))


def test_steps_go_on_while_others_of_the_same_call_are_compiled(sess):
    n = tf.placeholder(tf.int64, [])
    y = factorial()(n)
    others = [y + i for i in range(60)]
    sess.run(y, {n: 3})
    wrong, done = [], threading.Event()

    def again():
        try:
            while not done.is_set():
                value = sess.run(y, {n: 15})
                if value != 1307674368000:
                    wrong.append(value)
        except tf.errors.OpError as error:
            wrong.append(error)

    threads = [threading.Thread(target=again) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        assert [sess.run(o, {n: 4}) for o in others] == [24 + i for i in range(60)]
    finally:
        done.set()
        for t in threads:
            t.join()
    assert wrong == []
