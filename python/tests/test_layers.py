# SPDX-License-Identifier: Apache-2.0
"""Layers and cells whose arguments change what is computed, against NumPy and against each other."""
import numpy as np
import pytest

import millrace as tf


def run(*made):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(made))


@pytest.mark.parametrize("outputs, rate", [(4, 1), (None, 1), (None, 2), (4, 2)])
def test_separable_convolutions_with_channels_first(outputs, rate):
    x = np.random.RandomState(1).randn(2, 3, 7, 8).astype(np.float32)
    with tf.Graph().as_default():
        same = dict(num_outputs=outputs, kernel_size=[3, 2], depth_multiplier=2, rate=rate, activation_fn=None, scope="s",
                    weights_initializer=tf.random_uniform_initializer(seed=3), biases_initializer=tf.constant_initializer(0.5))
        first = tf.contrib.layers.separable_conv2d(x, data_format="NCHW", **same)
        last = tf.contrib.layers.separable_conv2d(x.transpose(0, 2, 3, 1), reuse=True, **same)
        assert first.get_shape().as_list() == [2, outputs or 6, 7, 8]
        got, wanted = run(first, last)
        np.testing.assert_allclose(got, wanted.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


def test_a_bias_of_the_first_axis_behind_the_batch():
    with tf.Graph().as_default():
        made = tf.contrib.layers.bias_add(tf.zeros([2, 3, 4, 4]), initializer=tf.constant_initializer([1.0, 2.0, 3.0]), data_format="NCHW")
        (value,) = run(made)
        np.testing.assert_array_equal(value[1, :, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("call", [
    lambda x: tf.contrib.layers.conv2d(x, 2, 3, data_format="CHWN"), lambda x: tf.contrib.layers.separable_conv2d(x, 2, 3, data_format="NDHWC"),
    lambda x: tf.contrib.layers.conv2d_transpose(x, 2, 3, data_format="x"), lambda x: tf.contrib.layers.max_pool2d(x, 3, data_format="CHWN"),
    lambda x: tf.contrib.layers.batch_norm(x, data_format="CHWN"), lambda x: tf.contrib.layers.bias_add(x, data_format="x"),
    lambda x: tf.layers.conv2d(x, 2, 3, data_format="NCHW"), lambda x: tf.layers.max_pooling2d(x, 3, 1, data_format="x"),
    lambda x: tf.layers.flatten(x, data_format="x"), lambda x: tf.layers.separable_conv2d(x, 2, 3, data_format="x")])
def test_unknown_data_formats_are_refused(call):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="data_format"):
        call(tf.zeros([2, 5, 5, 3]))


def test_flattened_with_channels_first_the_order_is_that_of_channels_last():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 2, 2)
    with tf.Graph().as_default():
        unknown = tf.placeholder_with_default(x, [None, 3, None, 2])
        for made in (tf.layers.flatten(x, data_format="channels_first"), tf.layers.Flatten("channels_first")(unknown)):
            np.testing.assert_array_equal(run(made)[0], x.transpose(0, 2, 3, 1).reshape(2, 12))
        with pytest.raises(ValueError, match="rank"):
            tf.layers.flatten(tf.placeholder(tf.float32), data_format="channels_first")


def test_the_largest_of_each_group_of_features():
    x = np.random.RandomState(2).randn(2, 6, 3).astype(np.float32)
    with tf.Graph().as_default():
        made = tf.layers.maxout(tf.placeholder_with_default(x, [None, 6, 3]), 2, axis=1)
        assert made.get_shape().as_list() == [None, 2, 3]
        np.testing.assert_array_equal(run(made)[0], x.reshape(2, 2, 3, 3).max(2))
        with pytest.raises(ValueError, match="multiple"):
            tf.layers.maxout(x, 4, axis=1)


def test_a_transposed_convolution_of_volumes_is_the_gradient_of_one():
    x = np.random.RandomState(3).randn(1, 3, 4, 2, 2).astype(np.float32)
    for format, turn in (("channels_last", lambda v: v), ("channels_first", lambda v: v.transpose(0, 4, 1, 2, 3))):
        with tf.Graph().as_default():
            layer = tf.layers.Conv3DTranspose(3, 2, strides=2, data_format=format, use_bias=False)
            made = layer(tf.constant(turn(x)))
            ahead = tf.zeros([1, 6, 8, 4, 3])
            back = tf.gradients(tf.nn.conv3d(ahead, layer.kernel, [1, 2, 2, 2, 1], "VALID"), ahead, tf.constant(x))[0]
            got, wanted = run(made, back)
            np.testing.assert_allclose(got, turn(wanted), rtol=1e-5, atol=1e-5)


def test_constraints_of_normalizations_and_separable_convolutions_are_kept():
    with tf.Graph().as_default():
        half = lambda v: v * 0.5
        norm = tf.layers.BatchNormalization(gamma_constraint=half, beta_constraint=half)
        norm(tf.ones([2, 3]))
        conv = tf.layers.SeparableConv2D(2, 3, depthwise_constraint=half, pointwise_constraint=half)
        conv(tf.ones([1, 4, 4, 2]))
        assert all(v.constraint is half for v in (norm.gamma, norm.beta, conv.depthwise_kernel, conv.pointwise_kernel))


@pytest.mark.parametrize("arguments, zero", [(dict(cell_clip=0.0), "c"), (dict(num_proj=3, proj_clip=0), "h")])
def test_a_bound_of_zero_clips(arguments, zero):
    with tf.Graph().as_default():
        _, state = tf.nn.rnn_cell.LSTMCell(4, **arguments)(tf.ones([2, 3]), tf.nn.rnn_cell.LSTMCell(4, **arguments).zero_state(2, tf.float32))
        (value,) = run(state)
        assert (getattr(value, zero) == 0).all()
        assert zero == "c" or np.abs(value.c).max() > 0


@pytest.mark.parametrize("peepholes", [False, True])
def test_a_fused_lstm_is_the_lstm(peepholes):
    x, lengths = np.random.RandomState(4).randn(5, 3, 2).astype(np.float32), [5, 0, 3]
    with tf.Graph().as_default():
        with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-1, 1, seed=5)):
            fused = tf.contrib.rnn.LSTMBlockFusedCell(4, use_peephole=peepholes)
            got = fused(tf.constant(x), dtype=tf.float32, sequence_length=lengths)
            assert [v.op.name for v in tf.trainable_variables()][:2] == ["net/lstm_fused_cell/kernel", "net/lstm_fused_cell/bias"]
        with tf.variable_scope("net", reuse=True):
            cells = [tf.nn.rnn_cell.LSTMCell(4, use_peepholes=peepholes, name="lstm_fused_cell"),
                     tf.contrib.rnn.LSTMBlockCell(4, use_peephole=peepholes, cell_clip=0, name="lstm_fused_cell")]
            state = cells[0].zero_state(3, tf.float32)
            for cell in cells:
                wanted = tf.nn.dynamic_rnn(cell, x, lengths, state, time_major=True, scope=tf.get_variable_scope())
                for a, b in zip(run(got, wanted)[0], run(got, wanted)[1]):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
