# SPDX-License-Identifier: Apache-2.0
"""Pooling and convolution of one to three dimensions, against plain loops."""

import itertools

import numpy as np
import pytest

import millrace as tf

RNG = np.random.RandomState(0)


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def pooled(x, size, step, padding, rate, reduce):
    """Windows one by one; x is channels-last."""
    n = len(size)
    reach = [(k - 1) * r + 1 for k, r in zip(size, rate)]
    before, out = [0] * n, []
    for i in range(n):
        length = x.shape[1 + i]
        if padding == "SAME":
            count = -(-length // step[i])
            before[i] = max((count - 1) * step[i] + reach[i] - length, 0) // 2
        else:
            count = (length - reach[i]) // step[i] + 1
        out.append(count)
    made = np.zeros([x.shape[0], *out, x.shape[-1]], x.dtype)
    for at in itertools.product(*map(range, out)):
        cells = []
        for tap in itertools.product(*map(range, size)):
            cell = [at[i] * step[i] - before[i] + tap[i] * rate[i] for i in range(n)]
            if all(0 <= c < x.shape[1 + i] for i, c in enumerate(cell)):
                cells.append(x[(slice(None), *cell)])
        made[(slice(None), *at)] = reduce(np.stack(cells), 0)
    return made


@pytest.mark.parametrize("kind, reduce", [("MAX", np.max), ("AVG", np.mean)])
@pytest.mark.parametrize(
    "shape, size, step, padding, rate",
    [
        ([2, 9, 3], [3], [2], "SAME", [1]),
        ([2, 9, 3], [3], [1], "VALID", [2]),
        ([2, 6, 7, 2], [2, 3], [2, 1], "SAME", [1, 1]),
        ([1, 7, 8, 2], [2, 3], [1, 1], "VALID", [3, 2]),
        ([2, 5, 4, 6, 3], [2, 3, 2], [2, 1, 3], "SAME", [1, 1, 1]),
        ([1, 5, 6, 7, 2], [2, 2, 3], [1, 1, 1], "VALID", [2, 1, 3]),
        ([1, 3, 2, 2, 1], [5, 1, 2], [1, 2, 2], "SAME", [1, 1, 1]),
    ],
)
def test_pool(sess, kind, reduce, shape, size, step, padding, rate):
    x = (RNG.rand(*shape) + 0.1).astype(np.float32)
    expected = pooled(x, size, step, padding, rate, reduce)
    made = tf.nn.pool(x, size, kind, padding, dilation_rate=rate, strides=step)
    assert made.get_shape().as_list()[-1] == shape[-1]
    np.testing.assert_allclose(sess.run(made), expected, rtol=1e-5)
    n = len(size)
    swapped = tf.nn.pool(np.moveaxis(x, -1, 1), size, kind, padding, rate, step, data_format=["NCW", "NCHW", "NCDHW"][n - 1])
    np.testing.assert_allclose(sess.run(swapped), np.moveaxis(expected, -1, 1), rtol=1e-5)


def test_pooling_of_volumes_and_its_gradients(sess):
    x = tf.constant(RNG.rand(2, 5, 4, 6, 3).astype(np.float32))
    for op, reduce in ((tf.nn.max_pool3d, np.max), (tf.nn.avg_pool3d, np.mean)):
        for padding in ("SAME", "VALID"):
            y = op(x, [1, 2, 3, 2, 1], [1, 2, 1, 1, 1], padding)
            np.testing.assert_allclose(sess.run(y), pooled(sess.run(x), [2, 3, 2], [2, 1, 1], padding, [1, 1, 1], reduce), rtol=1e-5)
            small = tf.constant(RNG.permutation(24).reshape(1, 2, 3, 4, 1).astype(np.float32))
            z = tf.square(op(small, [1, 2, 2, 2, 1], [1, 1, 1, 2, 1], padding))
            assert tf.test.compute_gradient_error(small, small.get_shape().as_list(), z, z.get_shape().as_list(), sess.run(small) / 24, 1e-2) < 2e-3
    planes = op(tf.transpose(x, [0, 4, 1, 2, 3]), [1, 1, 2, 3, 2], [1, 1, 2, 1, 1], "VALID", data_format="NCDHW")
    np.testing.assert_allclose(sess.run(tf.transpose(planes, [0, 2, 3, 4, 1])), sess.run(y), rtol=1e-5)


def test_layers_of_volumes(sess):
    x = tf.constant(RNG.rand(1, 4, 4, 4, 2).astype(np.float32))
    expected = pooled(sess.run(x), [2] * 3, [2] * 3, "VALID", [1] * 3, np.max)
    for made in (
        tf.layers.max_pooling3d(x, 2, 2),
        tf.layers.MaxPooling3D(2, 2)(x),
        tf.contrib.layers.max_pool3d(x, 2),
        tf.contrib.layers.pool(x, 2, "MAX", stride=2),
    ):
        np.testing.assert_array_equal(sess.run(made), expected)
    np.testing.assert_allclose(sess.run(tf.layers.average_pooling3d(x, 2, 2)), sess.run(tf.contrib.layers.avg_pool3d(x, 2)))
    line = tf.constant(RNG.rand(2, 3, 8).astype(np.float32))
    np.testing.assert_array_equal(sess.run(tf.layers.max_pooling1d(line, 2, 2, data_format="channels_first")).shape, [2, 3, 4])


@pytest.mark.parametrize("shape, size, rate", [([2, 12, 3], [3], [2]), ([1, 8, 9, 2], [3, 2], [2, 3]), ([1, 6, 5, 7, 2], [2, 3, 2], [2, 1, 3])])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolution_with_holes(sess, shape, size, rate, padding):
    """As a convolution with a filter that has zeros in the holes."""
    x, weights = RNG.rand(*shape).astype(np.float32), RNG.rand(*size, shape[-1], 4).astype(np.float32)
    wide = np.zeros([(k - 1) * r + 1 for k, r in zip(size, rate)] + [shape[-1], 4], np.float32)
    wide[tuple(slice(None, None, r) for r in rate)] = weights
    expected = sess.run(tf.nn.convolution(x, wide, padding))
    np.testing.assert_allclose(sess.run(tf.nn.convolution(x, weights, padding, dilation_rate=rate)), expected, rtol=1e-4)
    first = tf.nn.convolution(np.moveaxis(x, -1, 1), weights, padding, dilation_rate=rate, data_format=["NCW", "NCHW", "NCDHW"][len(size) - 1])
    np.testing.assert_allclose(np.moveaxis(sess.run(first), 1, -1), expected, rtol=1e-4)


def test_mistakes(sess):
    x = tf.zeros([1, 4, 4, 1])
    for call, message in (
        (lambda: tf.nn.pool(x, [2, 2], "MIN", "VALID"), "pooling_type must be MAX or AVG"),
        (lambda: tf.nn.pool(x, [2, 2], "MAX", "VALID", [2, 2], [2, 2]), "strides > 1 not supported"),
        (lambda: tf.nn.pool(x, [2, 2], "AVG", "SAME", 2), "pooling with SAME padding is not implemented"),
        (lambda: tf.nn.pool(x, [2, 2], "MAX", "SAME", strides=[1]), "strides must have 2 elements"),
        (lambda: tf.nn.pool(x, [1] * 4, "MAX", "SAME"), "1, 2 or 3 elements"),
    ):
        with pytest.raises(ValueError, match=message + ".*test_windows.py"):
            call()


def test_older_gradients_are_those_of_the_newer_ops():
    from millrace.ops import gen_ops

    rng = np.random.RandomState(4)
    with tf.Graph().as_default() as graph:
        x, f, g = (tf.constant(rng.randn(*shape), tf.float32) for shape in ((2, 3, 4, 3, 2), (2, 2, 3, 2, 3), (2, 3, 4, 3, 3)))
        strides = [1, 1, 1, 1, 1]
        newer = (
            [gen_ops.conv3_d_backprop_input_v2(tf.shape(x), f, g, strides, "SAME"), gen_ops.conv3_d_backprop_filter_v2(x, tf.shape(f), g, strides, "SAME")]
            if hasattr(gen_ops, "conv3_d_backprop_input_v2")
            else [gen_ops.conv3d_backprop_input_v2(tf.shape(x), f, g, strides, "SAME"), gen_ops.conv3d_backprop_filter_v2(x, tf.shape(f), g, strides, "SAME")]
        )
        image = tf.constant(rng.randn(2, 4, 6, 3), tf.float32)
        _, places = tf.nn.max_pool_with_argmax(image, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        other = tf.constant(rng.randn(2, 4, 6, 3), tf.float32)
        taken = gen_ops.max_pool_grad_grad_with_argmax(image, other, places, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        pooled = tf.nn.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        by_value = gen_ops.max_pool_grad_grad(image, pooled, other, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        with tf.Session(graph=graph) as sess:
            want, got, same = sess.run([newer, taken, by_value])
    np.testing.assert_array_equal(got, same)
    definition = graph.as_graph_def()
    for node in definition.node:  # as graphs of before version 10 have them
        if node.op in ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"):
            node.op = node.op[:-2]
            node.input[0 if "Input" in node.op else 1] = x.op.name if "Input" in node.op else f.op.name
            for name in ("data_format", "Tshape"):
                if name in node.attr:
                    del node.attr[name]
    definition.versions.producer = 9
    with tf.Graph().as_default() as older:
        tensors = tf.import_graph_def(definition, return_elements=[t.name for t in newer], name="")
        with tf.Session(graph=older) as sess:
            got = sess.run(tensors)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def test_dilation_and_erosion():
    x, f = np.array([[0.0, 1], [2, 3]]).reshape(1, 2, 2, 1), np.array([[0.4, 0.3], [0.1, 0.0]]).reshape(2, 2, 1)
    with tf.Graph().as_default(), tf.Session() as sess:
        up, down, second = sess.run(
            [
                tf.nn.dilation2d(x, f, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
                tf.nn.erosion2d(x, f, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"),
                tf.nn.nth_element([5.0, 1, 4, 2], 1),
            ]
        )
        pooled = sess.run(tf.nn.fractional_max_pool(np.arange(16.0).reshape(1, 4, 4, 1), [1.0, 2.0, 2.0, 1.0])[0])
    np.testing.assert_allclose([up.item(), down.item(), second], [3.0, 0.0, 2.0])
    assert pooled.ravel().tolist() == [5, 7, 13, 15]


def test_convolutions_take_arrays_of_another_type():
    image, kernel = tf.placeholder(tf.float32, [1, 3, 3, 1]), np.ones((2, 2, 1, 1))
    with tf.Session() as session:
        made = session.run(tf.nn.convolution(image, kernel, "VALID"), {image: np.arange(9.0).reshape(1, 3, 3, 1)})
    assert made.dtype == np.float32 and made.reshape(2, 2).tolist() == [[8, 12], [20, 24]]


def test_gradients_of_convolutions_are_built_of_sizes_that_do_not_fit(sess):
    cases = [
        (tf.nn.conv2d_backprop_input([3, 9, 9, 4], tf.zeros([5, 5, 4, 2]), tf.zeros([3, 5, 7, 2]), [1, 1, 1, 1], "VALID"), [3, 9, 9, 4]),
        (tf.nn.conv2d_backprop_input([3, 2, 9, 7], tf.zeros([5, 5, 4, 2]), tf.zeros([3, 5, 5, 2]), [1, 1, 1, 1], "VALID"), [3, 2, 9, 7]),
        (tf.nn.conv2d_backprop_filter(tf.zeros([3, 9, 9, 4]), [5, 5, 3, 2], tf.zeros([3, 5, 7, 6]), [1, 1, 1, 1], "VALID"), [5, 5, 3, 2]),
        (tf.nn.conv3d_transpose(tf.zeros([3, 5, 7, 5, 2]), tf.zeros([5, 5, 5, 4, 2]), [3, 9, 9, 9, 4], [1, 1, 1, 1, 1], "VALID"), [3, 9, 9, 9, 4]),
        (tf.nn.depthwise_conv2d_native_backprop_input([3, 9, 9, 4], tf.zeros([5, 5, 4, 1]), tf.zeros([3, 5, 7, 4]), [1, 1, 1, 1], "VALID"), [3, 9, 9, 4]),
    ]
    for made, shape in cases:
        assert made.shape.as_list() == shape
        with pytest.raises(tf.errors.InvalidArgumentError, match="out_backprop has shape|output size would be negative|input depth"):
            sess.run(made)
