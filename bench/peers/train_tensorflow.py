# SPDX-License-Identifier: Apache-2.0
"""The step in TensorFlow, as a graph of its 1.x interface."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow

from nets import RATE, Conv, Lstm, Net, Pool

tf = tensorflow.compat.v1


def _lstm(x: tensorflow.Tensor, kernel: tf.Variable, bias: tf.Variable, units: int) -> tensorflow.Tensor:
    steps, batch = int(x.shape[1]), int(x.shape[0])
    x, zeros = tf.transpose(x, [1, 0, 2]), tf.zeros([batch, units], x.dtype)
    if x.dtype == tf.float32:
        none = tf.zeros([units])
        h = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, w=kernel, wci=none, wcf=none,
            wco=none, b=bias, forget_bias=1.0, cell_clip=-1.0, use_peephole=False).h  # fmt: skip
        return tf.transpose(h, [1, 0, 2])
    c, h, outputs = zeros, zeros, []
    for t in range(steps):
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x[t], h], 1), kernel), bias), 4, 1)
        c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        outputs.append(h)
    return tf.stack(outputs, 1)


def make(net: Net, dtype: str, threads: int) -> Callable[[], float]:
    x, labels = net.data()
    with tf.Graph().as_default() as graph:
        fed = tf.placeholder(dtype, x.shape)
        wanted = tf.placeholder(tf.int64, labels.shape)
        y = fed
        for layer, weights, _ in net.weights():
            if isinstance(layer, Pool):
                y = tf.nn.max_pool2d(y, layer.size, layer.stride, "VALID")
                continue
            assert weights is not None
            kernel = tf.Variable(weights.astype(dtype), use_resource=False)
            if isinstance(layer, Lstm):
                bias = tf.Variable(np.zeros(weights.shape[-1], dtype), use_resource=False)
                y = _lstm(y, kernel, bias, layer.units)
                continue
            if isinstance(layer, Conv):
                y = tf.nn.conv2d(y, kernel, [1, layer.stride, layer.stride, 1], "SAME" if layer.same else "VALID")
                relu = True
            else:
                y = tf.matmul(tf.reshape(y, [-1, weights.shape[0]]), kernel)
                relu = layer.relu
            y = tf.nn.bias_add(y, tf.Variable(np.zeros(weights.shape[-1], dtype), use_resource=False))
            y = tf.nn.relu(y) if relu else y
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=y, labels=wanted))
        train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        initial = tf.global_variables_initializer()
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.Session(graph=graph, config=config)
    session.run(initial)
    feeds = {fed: x.astype(dtype), wanted: labels}
    return lambda: float(session.run([loss, train], feeds)[0])
