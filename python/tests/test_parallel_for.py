# SPDX-License-Identifier: Apache-2.0
"""What a function gives for 0, 1, 2 ..., stacked, and Jacobians."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import parallel_for


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(value):
    with tf.Session() as session:
        return session.run(value)


def test_structures_are_stacked():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for parallel in (None, 2):
        made = parallel_for.pfor(lambda i: {"row": tf.gather(x, i) * 2, "none": None, "i": i}, 3, parallel)
        assert made["none"] is None and made["row"].shape.as_list() == [3, 2]
        found = run({"row": made["row"], "i": made["i"]})
        np.testing.assert_array_equal(found["row"], [[2, 4], [6, 8], [10, 12]])
        np.testing.assert_array_equal(found["i"], [0, 1, 2])
    np.testing.assert_array_equal(run(parallel_for.for_loop(lambda i: i * i, tf.int32, tf.placeholder_with_default(4, []))), [0, 1, 4, 9])
    for wrong in (0, 1):
        with pytest.raises(ValueError, match="parallel_iterations"):
            parallel_for.pfor(lambda i: i, 3, wrong)


def test_reductions_over_iterations():
    x = tf.constant([1.0, 2.0, 6.0])

    def centred(i, pfor_config):
        mean = pfor_config.reduce_mean(tf.gather(x, i))
        return tf.gather(x, i) - mean, pfor_config.reduce_sum(tf.square(tf.gather(x, i) - mean)), pfor_config.reduce_concat(i)

    rest, squares, every = run(parallel_for.pfor(centred, 3))
    np.testing.assert_allclose(rest, [-2, -1, 3])
    np.testing.assert_allclose(squares, [14] * 3)
    np.testing.assert_array_equal(every, [[0, 1, 2]] * 3)


def test_sparse_tensors_and_operations():
    made = parallel_for.pfor(lambda i: tf.SparseTensor([[tf.cast(i, tf.int64)]], [i + 1], [tf.cast(i + 1, tf.int64)]), 3)
    np.testing.assert_array_equal(run(tf.sparse.to_dense(made)), np.diag([1, 2, 3]))
    v = tf.Variable(0, use_resource=True)
    added = parallel_for.pfor(lambda i: v.assign_add(i).op, 4)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(added)
        assert session.run(v) == 6


def test_jacobians():
    w, x = np.arange(6.0).reshape(2, 3), tf.constant([1.0, 2.0, 3.0], tf.float64)
    y = tf.square(tf.linalg.matvec(tf.constant(w), x))
    expected = 2 * (w @ [1, 2, 3])[:, None] * w
    for use_pfor in (True, False):
        made, absent = parallel_for.jacobian(y, [x, tf.constant(1.0)], use_pfor)
        assert absent is None and made.shape.as_list() == [2, 3]
        np.testing.assert_allclose(run(made), expected)
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(run(parallel_for.batch_jacobian(tf.square(rows), rows)), [np.diag([2, 4]), np.diag([6, 8])])
    with pytest.raises(ValueError, match="Need first dimension"):
        parallel_for.batch_jacobian(rows, tf.zeros([3, 2]))


def test_a_tape_differentiates_what_it_recorded():
    x, v, other = tf.constant(3.0), tf.Variable(2.0), tf.Variable(1.0)
    outside = x * x
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * v
        z = outside * x
        with tape.stop_recording():
            stopped = x * x
        w = stopped * v
    by_x, by_v = tape.gradient(y, [x, v])
    with tf.GradientTape() as inner:
        inner.watch(x)
        square = x * x
        cube = square * x
    by_square = inner.gradient(cube, square)
    made = {"square": by_square, "x": by_x, "v": by_v, "z": tape.gradient(z, {"x": x})["x"], "w": tape.gradient(w, v)}
    assert tape.gradient(y, other) is None and tape.gradient(w, x) is None and tape.gradient(y, tf.constant(1.0)) is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(made) == {"square": 3.0, "x": 12.0, "v": 9.0, "z": 9.0, "w": 9.0}
        assert session.run(tape.gradient(y, other, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == 0.0
    with tf.GradientTape() as once:
        y = v * v
    once.gradient(y, v)
    with pytest.raises(RuntimeError, match="only be called once"):
        once.gradient(y, v)


def test_a_tape_watches_the_variables_that_are_read():
    with tf.Graph().as_default():
        v, unread, fixed = (tf.Variable(start, use_resource=True, trainable=start != 3.0) for start in (2.0, 1.0, 3.0))

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                y = x * v * v * fixed
            (watched,) = tape.watched_variables()
            assert watched is v
            return tape.gradient(y, watched)

        with tf.GradientTape(watch_accessed_variables=False) as none, tf.GradientTape() as tape:
            none.watch(unread)
            y = v * fixed
        assert tape.watched_variables() == (v,) and none.watched_variables() == (unread,)
        with tf.GradientTape() as outer:
            made = step(tf.constant(5.0))
        assert outer.watched_variables() == (v,)
        with tf.GradientTape() as again:  # the function is made already
            step(tf.constant(6.0))
        assert again.watched_variables() == (v,)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run([made, tape.gradient(y, v)]) == [60.0, 3.0]


def test_jacobians_of_what_does_not_depend_are_none_or_zeros():
    with tf.Graph().as_default(), tf.Session() as session:
        x, other = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = x * x
        assert tape.jacobian(y, [x, other])[1] is None
        zero = tf.UnconnectedGradients.ZERO
        own, none = session.run(tape.jacobian(y, [x, other], unconnected_gradients=zero))
        assert own[1, 0, 1, 0] == 6.0 and none.shape == (2, 2, 2, 3) and not none.any()
        none = session.run(tape.batch_jacobian(y, other, unconnected_gradients=zero))
        assert none.shape == (2, 2, 3) and not none.any()


def test_jacobians_behind_loops():
    w = tf.constant([[0.5, -1.0], [2.0, 0.25]])
    x = tf.constant([[1.0, 2.0], [3.0, -1.0]])
    y = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]
    straight = x
    for _ in range(3):
        straight = tf.tanh(tf.matmul(straight, w))
    for pfor in (True, False):
        made = parallel_for.batch_jacobian(y, x, use_pfor=pfor), parallel_for.jacobian(y, [w, x], use_pfor=pfor)
        want = parallel_for.batch_jacobian(straight, x), parallel_for.jacobian(straight, [w, x])
        assert made[0].shape.as_list() == [2, 2, 2] and made[1][0].shape.as_list() == [2, 2, 2, 2]
        for got, wanted in zip(tf.contrib.framework.nest.flatten(run(made)), tf.contrib.framework.nest.flatten(run(want))):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
    hessian = parallel_for.jacobian(parallel_for.jacobian(y[0, 0], x), x)
    np.testing.assert_allclose(run(hessian), run(parallel_for.jacobian(parallel_for.jacobian(straight[0, 0], x), x)), rtol=1e-4)
    rows = tf.placeholder(tf.float32, [None, 2])
    looped = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * h), [0, rows], [tf.TensorShape([]), rows.shape])[1]
    with pytest.raises(NotImplementedError, match="here an unknown number of times"):
        parallel_for.jacobian(looped, rows)
    mask = tf.stop_gradient(tf.map_fn(lambda v: v + 1.0, tf.ones([300])))  # a loop that does not depend on what is asked for
    inputs = tf.ones([300])
    np.testing.assert_array_equal(run(parallel_for.jacobian(inputs * mask, inputs)), 2 * np.eye(300))
