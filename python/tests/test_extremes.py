# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest of numbers with NaN among them is NaN, wherever it stands; numbers too small for a full mantissa are 0."""

import numpy as np
import pytest

import millrace as tf

NAN = np.nan
TYPES = [tf.float32, tf.float64, tf.float16, tf.bfloat16]


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def with_nan(shape, at, dtype=tf.float32):
    x = np.arange(np.prod(shape)).reshape(shape).astype(np.float64)
    x[at] = NAN
    return tf.cast(x, dtype)


def nans(sess, x):
    return np.isnan(sess.run(tf.cast(x, tf.float64)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("at", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_window_with_nan_is_nan(sess, dtype, channels, at):
    x = with_nan([1, 4, 6, channels], (0, *at, slice(None)), dtype)
    pooled = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    assert nans(sess, pooled).tolist() == [[[[i == j == 0] * channels for j in range(3)] for i in range(2)]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_its_gradient_goes_to_the_first_nan(sess, dtype):
    x = np.array([[1, 5, 2], [NAN, 3, NAN], [4, 9, 0]], dtype).reshape(1, 3, 3, 1)
    x = tf.constant(np.tile(x, [1, 1, 1, 9]))
    pooled = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "VALID")
    want = np.zeros([1, 3, 3, 9], dtype)
    want[0, 1, 0] = 1
    np.testing.assert_array_equal(sess.run(tf.gradients(pooled, x)[0]), want)
    again, place = tf.nn.max_pool_with_argmax(tf.cast(x, tf.float32), [1, 3, 3, 1], [1, 1, 1, 1], "VALID")
    assert nans(sess, again).all() and sess.run(place).ravel().tolist() == list(range(27, 36))


@pytest.mark.parametrize("at", range(4))
def test_over_channels_and_planes(sess, at):
    x = with_nan([1, 1, 2, 4], (0, 0, 1, at))
    over_channels = tf.nn.max_pool(x, [1, 1, 1, 4], [1, 1, 1, 4], "VALID")
    assert nans(sess, over_channels).ravel().tolist() == [False, True]
    x = with_nan([1, 4, 1, 1, 1], (0, at, 0, 0, 0))
    assert nans(sess, tf.nn.max_pool3d(x, [1, 4, 1, 1, 1], [1, 1, 1, 1, 1], "VALID")).all()


@pytest.mark.parametrize("at", range(4))
def test_other_windows(sess, at):
    x = with_nan([1, 2, 2, 1], (0, at // 2, at % 2, 0))
    assert nans(sess, tf.nn.dilation2d(x, np.zeros([2, 2, 1], np.float32), [1, 1, 1, 1], [1, 1, 1, 1], "VALID")).all()
    assert nans(sess, tf.nn.fractional_max_pool(x, [1.0, 2.0, 2.0, 1.0])[0]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [1, 40])
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("op", ["max", "min"])
def test_segments(sess, dtype, width, at, op):
    x = with_nan([5, width], at, dtype)
    ids = [0, 0, 0, 1, 1]
    for got in (getattr(tf, "segment_" + op)(x, ids), getattr(tf, "unsorted_segment_" + op)(x, ids, 2)):
        assert nans(sess, got).all(1).tolist() == [True, False] and not nans(sess, got)[1].any()


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("at", range(3))
def test_rows_of_variables(sess, op, at):
    v = tf.Variable(np.ones(2, np.float32), use_resource=False)
    sess.run(v.initializer)
    updates = [1.0, 2.0, 3.0]
    updates[at] = NAN
    got = sess.run(getattr(tf, "scatter_" + op)(v, [0, 0, 0], np.array(updates, np.float32)))
    assert np.isnan(got).tolist() == [True, False]
    again = sess.run(getattr(tf, "scatter_" + op)(v, [0], np.array([7], np.float32)))
    assert np.isnan(again).tolist() == [True, False], "what is NaN stays so"


@pytest.mark.parametrize("at", range(3))
def test_sparse(sess, at):
    values = np.array([1.0, 2.0, 3.0], np.float32)
    values[at] = NAN
    x = tf.SparseTensor([[0, 0], [0, 1], [0, 2]], values, [1, 3])
    assert nans(sess, tf.sparse_reduce_max(x, 1)).all()
    y = tf.SparseTensor([[0, 0], [0, 1], [0, 2]], np.ones(3, np.float32), [1, 3])
    for got in (tf.sparse_maximum(x, y), tf.sparse_maximum(y, x), tf.sparse_minimum(x, y), tf.sparse_minimum(y, x)):
        assert nans(sess, got.values).tolist() == [i == at for i in range(3)]


@pytest.mark.parametrize("channels", [2, 70])
def test_moments_survive_outliers_and_drift(sess, channels):
    """One row that is far from all others, where it would do the most harm, and a mean that wanders from block to block."""
    rows = 40000
    x = np.random.RandomState(0).randn(rows, channels) + (np.arange(rows) * 8 // rows * 64)[:, None]
    x[0] += 30000
    x = x.astype(np.float32)
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    _, mean, variance = sess.run(tf.nn.fused_batch_norm(x.reshape(1, 200, 200, channels), ones, zeros))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=3e-7)
    np.testing.assert_allclose(variance, wide.var(0, ddof=1), rtol=3e-6)


# What TensorFlow 1.15 computes of them, on one thread or several.
DENORMAL = {
    "sums": lambda x: x + 0,
    "products": lambda x: x * 3,
    "products with large numbers": lambda x: x * 1e20,
    "totals": lambda x: tf.reduce_sum(tf.stack([x, x]), 0),
    "matrix products": lambda x: tf.matmul(x[None], tf.ones_like(x)[:, None]),
    "order": lambda x: tf.cast(tf.greater(x, 0), tf.float32),
    "equality": lambda x: tf.cast(tf.not_equal(x, 0), tf.float32),
    "the larger": lambda x: tf.maximum(x, 0),
    "roots": tf.sqrt,
    "signs": tf.sign,
    "other types": lambda x: tf.cast(x, tf.float64 if x.dtype == tf.float32 else tf.float32),
    "quotients": lambda x: x * 0 + np.finfo(x.dtype.as_numpy_dtype).tiny / tf.fill(tf.shape(x), tf.cast(1e5, x.dtype)),
}


@pytest.mark.parametrize("count", [1, 7, 300000])
@pytest.mark.parametrize("dtype, tiny", [(np.float32, 1e-40), (np.float64, 1e-310)])
@pytest.mark.parametrize("fed", [True, False])
def test_denormal_numbers_are_zero(sess, count, dtype, tiny, fed):
    x = np.full(count, tiny, dtype)
    given = tf.placeholder(dtype, [None]) if fed else tf.constant(x)
    found = sess.run({what: op(given) for what, op in DENORMAL.items()}, {given: x} if fed else {})
    assert [what for what, y in found.items() if y.any()] == []
    moved = [tf.identity(given), tf.concat([given, given], 0)[:count], tf.gather(given, np.arange(count))]
    assert all(y.tobytes() == x.tobytes() for y in sess.run(moved, {given: x} if fed else {}))
    assert (x * 2).all()  # where the program computes nothing has changed


def test_a_variable_that_decays_ends_at_zero(sess):
    v = tf.Variable(tf.fill([1000], 1e-36))
    step = v.assign(v * 0.1)
    sess.run(v.initializer)
    values = [sess.run(step)[0] for _ in range(3)]
    assert values[0] == np.float32(1e-36) * np.float32(0.1) and values[1:] == [0, 0]
