# SPDX-License-Identifier: Apache-2.0
"""python -m millrace.examples.digits [steps]: trains a small convolutional network on the digits of the package."""

from __future__ import annotations

import sys
import time

import numpy as np

import millrace as tf
from millrace.examples import digits


def main() -> None:
    """Trains, and says what part of the held back digits is read right."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    images, labels = digits.load()
    shuffled = np.random.RandomState(1).permutation(len(images))
    held_back, learned = shuffled[:360], shuffled[360:]

    tf.set_random_seed(1)
    image = tf.placeholder(tf.float32, [None, 8, 8], "image")
    label = tf.placeholder(tf.int32, [None], "label")
    net = tf.layers.conv2d(tf.expand_dims(image, 3), 16, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.flatten(net), 10)
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    train = tf.train.AdamOptimizer(0.002).minimize(loss)
    right = tf.reduce_mean(tf.cast(tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), label), tf.float32))

    random, began = np.random.RandomState(2), time.time()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(1, steps + 1):
            batch = random.choice(learned, 64)
            _, value = session.run([train, loss], {image: images[batch], label: labels[batch]})
            if step % 100 == 0:
                print("step %d, loss %.3f" % (step, value))
        accuracy = session.run(right, {image: images[held_back], label: labels[held_back]})
    print("%.1f %% of %d held back digits read right after %.1f s" % (100 * accuracy, len(held_back), time.time() - began))


if __name__ == "__main__":
    main()
