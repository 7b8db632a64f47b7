# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products that take in what follows them give the same bits as the ops one by one."""

import numpy as np
import pytest

import millrace as tf
from millrace.protos.definitions import RewriterConfig

_OFF = tf.ConfigProto(graph_options=tf.GraphOptions(rewrite_options=RewriterConfig(remapping=RewriterConfig.OFF)))


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _both(fetch, feed=None, fused=None):
    """The values with and without, which must be the same; how many nodes were fused."""
    with tf.Session() as with_it, tf.Session(config=_OFF) as without:
        for session in (with_it, without):
            session.run(tf.global_variables_initializer())
        a, b = with_it.run(fetch, feed), without.run(fetch, feed)
        assert a.shape == b.shape and np.array_equal(a.view(np.uint32), b.view(np.uint32)), np.nanmax(np.abs(a - b))
        assert " too, as " not in without.explain([fetch])
        text = with_it.explain([fetch])
        if fused is not None:
            assert text.count(" too, as ") == fused, text
    return a


def _norm(x, draw):
    c = int(x.shape[-1])
    values = [draw.rand(c).astype(np.float32) + 0.5 for _ in range(4)]
    return tf.nn.fused_batch_norm(x, values[0], values[1], values[2], values[3], epsilon=0.01, is_training=False)[0]


@pytest.mark.parametrize(
    "shape, filters, stride, padding",
    [
        ((2, 14, 14, 16), (3, 3, 16, 32), 1, "SAME"),
        ((1, 56, 56, 64), (1, 1, 64, 256), 1, "SAME"),
        ((3, 9, 7, 5), (2, 3, 5, 3), 2, "VALID"),
        ((1, 7, 7, 512), (1, 1, 512, 256), 1, "SAME"),
        ((4, 3, 3, 8), (3, 3, 8, 17), 1, "VALID"),
        ((1, 2, 2, 1), (1, 1, 1, 1), 1, "SAME"),
        ((1, 30, 30, 4), (7, 7, 2, 6), 2, "SAME"),
    ],
)
@pytest.mark.parametrize("parts", ["b", "n", "bn", "bnr", "nsr", "nsr6", "s", "bs6", "r", "6"])
def test_convolution(shape, filters, stride, padding, parts):
    draw = np.random.RandomState(1)
    x = tf.placeholder(tf.float32, [None, *shape[1:]])
    w = tf.constant(draw.randn(*filters).astype(np.float32) * 0.2)
    y = tf.nn.conv2d(x, w, [1, stride, stride, 1], padding)
    if "b" in parts:
        y = tf.nn.bias_add(y, tf.constant(draw.randn(filters[3]).astype(np.float32)))
    if "n" in parts:
        y = _norm(y, draw)
    if "s" in parts:
        y = tf.nn.conv2d(x, w * 0.5, [1, stride, stride, 1], padding) + y
    if "r" in parts:
        y = tf.nn.relu(y)
    if "6" in parts:
        y = tf.nn.relu6(y)
    value = draw.randn(*shape).astype(np.float32)
    value[0, 0, 0, 0] = np.nan
    got = _both(y, {x: value}, 2 if parts not in ("s", "r") and "s" in parts else 1)  # a sum joins the later of the two
    assert np.isnan(got).any()  # no part hides it


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise(multiplier):
    draw = np.random.RandomState(2)
    x = tf.constant(draw.randn(2, 20, 20, 12).astype(np.float32))
    w = tf.Variable(draw.randn(3, 3, 12, multiplier).astype(np.float32))
    _both(tf.nn.relu(_norm(tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), draw)), None, 1)


@pytest.mark.parametrize("other", [(1, 6, 6, 8), (6, 8), (8,), (1,), (), (2, 1, 6, 1), (3, 2, 6, 6, 8)])
def test_sums_that_broadcast(other):
    draw = np.random.RandomState(3)
    x = tf.placeholder(tf.float32, None)
    y = tf.nn.conv2d(tf.Variable(draw.randn(2, 6, 6, 4).astype(np.float32)), tf.constant(draw.randn(3, 3, 4, 8).astype(np.float32)), [1, 1, 1, 1], "SAME")
    got = _both(tf.nn.relu(y + x), {x: np.float32(draw.standard_normal(other))}, 1)
    assert got.shape == np.broadcast_shapes((2, 6, 6, 8), other)


def test_one_channel_and_empty_images():
    x, r = tf.placeholder(tf.float32, [None, None, None, 2]), tf.placeholder(tf.float32, None)
    y = tf.nn.relu(tf.nn.conv2d(x, tf.ones([1, 1, 2, 1]), [1, 1, 1, 1], "SAME") + r)
    for shape in ((0, 3, 3, 2), (2, 0, 3, 2), (1, 2, 2, 2)):
        _both(y, {x: np.ones(shape, np.float32), r: np.float32(-1)}, 1)
    _both(y, {x: np.ones((1, 2, 2, 2), np.float32), r: np.ones((1, 2, 2, 5), np.float32)}, 1)


def test_what_is_fetched_or_fed_between_is_there():
    draw = np.random.RandomState(4)
    x = tf.constant(draw.randn(1, 5, 5, 3).astype(np.float32))
    conv = tf.nn.conv2d(x, tf.constant(draw.randn(3, 3, 3, 4).astype(np.float32)), [1, 1, 1, 1], "SAME")
    relu = tf.nn.relu(conv)
    with tf.Session() as session:
        a, b = session.run([conv, relu])
        assert np.array_equal(np.maximum(a, 0), b)
        assert (session.run(relu, {conv: np.full((1, 5, 5, 4), 2, np.float32)}) == 2).all()


def test_a_variable_that_changes_between():
    v = tf.Variable(np.ones((1, 1, 1, 1), np.float32), use_resource=False)
    conv = tf.nn.conv2d(tf.ones([1, 1, 1, 1]), v, [1, 1, 1, 1], "SAME")
    with tf.control_dependencies([conv]):
        change = tf.assign(v, np.full((1, 1, 1, 1), 5, np.float32))
    with tf.control_dependencies([change]):
        relu = tf.nn.relu(conv)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(relu).item() == 1 and session.run(v).item() == 5


def test_errors_say_what_was_wrong():
    x, b = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, tf.ones([1, 1, 3, 2]), [1, 1, 1, 1], "SAME", name="first"), b), name="last")
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)bias must have shape \[2\], got \[5\].*first"):
            session.run(y, {x: np.ones((1, 2, 2, 3)), b: np.ones(5)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="input depth 4"):
            session.run(y, {x: np.ones((1, 2, 2, 4)), b: np.ones(2)})


def test_training_takes_in_the_bias():
    draw = np.random.RandomState(5)
    x = tf.constant(draw.randn(4, 8, 8, 3).astype(np.float32))
    w, b = tf.Variable(draw.randn(3, 3, 3, 6).astype(np.float32)), tf.Variable(draw.randn(6).astype(np.float32))
    loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))))
    _both(tf.gradients(loss, [w])[0], None, 1)


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (1, 300, 40), (3, 5, 7), (33, 64, 48), (128, 96, 200), (700, 40, 1100), (2, 0, 3), (0, 3, 3)])
@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
@pytest.mark.parametrize("parts", ["b", "br", "r6", "s", "bs6", "bvr", "c"])
def test_products(m, k, n, transposed, parts):
    draw = np.random.RandomState(6)
    a = tf.placeholder(tf.float32, [None, None])
    b = tf.Variable(draw.randn(*((n, k) if transposed[1] else (k, n))).astype(np.float32))
    residual = tf.placeholder(tf.float32, [None, None])
    y = tf.matmul(a, b, transpose_a=transposed[0], transpose_b=transposed[1])
    for part in parts:
        if part == "b":
            y = tf.nn.bias_add(y, tf.constant(draw.randn(n).astype(np.float32)))
        if part == "s":
            y = residual + y
        if part == "v":
            y += tf.constant(draw.randn(1, n).astype(np.float32))
        if part == "c":
            y += 0.1
        if part == "r":
            y = tf.nn.relu(y)
        if part == "6":
            y = tf.nn.relu6(y)
    value = draw.randn(*((k, m) if transposed[0] else (m, k))).astype(np.float32)
    if value.size > 40:
        value[0, 0] = np.nan
    got = _both(y, {a: value, residual: draw.randn(m, n).astype(np.float32)}, 1)
    assert np.isnan(got).any() == (value.size > 40)
    _both(y * y, {a: value, residual: draw.randn(m, n).astype(np.float32)}, 1)


@pytest.mark.parametrize("other", [(), (1,), (5,), (1, 5), (4, 1), (3, 4, 5), (1, 1, 5), (1, 1, 1)])
def test_sums_of_products_that_broadcast(other):
    draw = np.random.RandomState(7)
    x = tf.placeholder(tf.float32, None)
    y = tf.matmul(tf.constant(draw.randn(4, 6).astype(np.float32)), tf.Variable(draw.randn(6, 5).astype(np.float32)))
    got = _both(tf.nn.relu(y + x), {x: np.float32(draw.standard_normal(other))}, 1)
    assert got.shape == np.broadcast_shapes((4, 5), other)


def test_a_sum_of_two_products_and_what_is_added_to_itself():
    draw = np.random.RandomState(8)
    a, b = (tf.Variable(draw.randn(9, 9).astype(np.float32)) for _ in range(2))
    _both(tf.nn.relu(tf.matmul(a, b) + tf.matmul(b, a)), None, 1)
    twice = tf.matmul(a, b)
    _both(twice + twice, None, 0)


def test_a_product_does_not_wait_for_what_is_added_later():
    a, queue = tf.constant(np.ones((2, 2), np.float32)), tf.FIFOQueue(1, [tf.float32], [[2, 2]])
    later = queue.dequeue()
    with tf.Session() as session:
        assert " too, as " not in session.explain([tf.matmul(a, a, name="early") + later])
        assert " too, as " in session.explain([tf.matmul(later, a) + later])


def test_training_of_layers():
    draw = np.random.RandomState(9)
    x = tf.constant(draw.randn(8, 12).astype(np.float32))
    w, b = tf.Variable(draw.randn(12, 6).astype(np.float32)), tf.Variable(draw.randn(6).astype(np.float32))
    loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))))
    _both(tf.gradients(loss, [w])[0], None, 1)


def test_errors_of_products_say_what_was_wrong():
    a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, None)
    y = tf.nn.relu(tf.nn.bias_add(tf.matmul(a, tf.ones([3, 2]), name="first"), b), name="last")
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)bias must have shape \[2\], got \[5\].*first"):
            session.run(y, {a: np.ones((4, 3)), b: np.ones(5)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            session.run(y, {a: np.ones((4, 4)), b: np.ones(2)})
