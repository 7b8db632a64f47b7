# SPDX-License-Identifier: Apache-2.0
"""The network of the digits tutorial: two hidden layers."""

from __future__ import annotations

import math
from typing import Any

import millrace as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def _layer(inputs: Any, size: int, units: int, name: str) -> Any:
    with tf.name_scope(name):
        weights = tf.Variable(tf.truncated_normal([size, units], stddev=1.0 / math.sqrt(float(size))), name="weights")
        biases = tf.Variable(tf.zeros([units]), name="biases")
        return tf.matmul(inputs, weights) + biases


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """The logits of images."""
    hidden1 = tf.nn.relu(_layer(images, IMAGE_PIXELS, hidden1_units, "hidden1"))
    hidden2 = tf.nn.relu(_layer(hidden1, hidden1_units, hidden2_units, "hidden2"))
    return _layer(hidden2, hidden2_units, NUM_CLASSES, "softmax_linear")


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross entropy."""
    values = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.to_int64(labels), logits=logits, name="xentropy")
    return tf.reduce_mean(values, name="xentropy_mean")


def training(loss: Any, learning_rate: Any) -> Any:
    """An operation that does one training step, and a summary of the loss."""
    tf.summary.scalar("loss", loss)
    step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many predictions are right."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
