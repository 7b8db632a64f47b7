# SPDX-License-Identifier: Apache-2.0
"""Transfer: what a net has learned of some digits helps to learn others from few examples.

  python transfer.py FOLDER

Trains a convolutional net on the digits 0 to 4 and exports it to FOLDER as a SavedModel. Then loads that model, takes its
features as they are, and trains a new last layer for the digits 5 to 9 on 100 images.
"""

import sys

import numpy as np

import millrace as tf
from millrace.examples import digits


def train_and_export(images, labels, folder):
    """A net for the digits 0 to 4, with its features as a second output."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        y = tf.placeholder(tf.int64, [None])
        h = tf.layers.max_pooling2d(tf.layers.conv2d(x, 16, 3, padding="same", activation=tf.nn.relu), 2, 2)
        h = tf.layers.conv2d(h, 32, 3, padding="same", activation=tf.nn.relu)
        features = tf.layers.dense(tf.layers.flatten(h), 64, activation=tf.nn.relu)
        logits = tf.layers.dense(features, 5)
        train = tf.train.AdamOptimizer(0.003).minimize(tf.losses.sparse_softmax_cross_entropy(y, logits))
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(1)
        for _ in range(200):
            rows = random.randint(0, len(images), 64)
            session.run(train, {x: images[rows], y: labels[rows]})
        tf.saved_model.simple_save(session, folder, {"images": x}, {"features": features, "logits": logits})


def learn_others(images, labels, folder, examples=100):
    """How many of the other digits are read right by a new last layer on the model's features."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], folder)
        signature = model.signature_def["serving_default"]
        x = session.graph.get_tensor_by_name(signature.inputs["images"].name)
        features = tf.stop_gradient(session.graph.get_tensor_by_name(signature.outputs["features"].name))
        y = tf.placeholder(tf.int64, [None])
        with tf.variable_scope("others"):
            logits = tf.layers.dense(features, 5, kernel_initializer=tf.zeros_initializer())
        mine = tf.global_variables("others/")
        before = set(tf.global_variables())
        train = tf.train.AdamOptimizer(0.01).minimize(tf.losses.sparse_softmax_cross_entropy(y, logits), var_list=mine)
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        session.run(tf.variables_initializer(mine + [v for v in tf.global_variables() if v not in before]))  # not those that were loaded
        for _ in range(300):
            session.run(train, {x: images[:examples], y: labels[:examples]})
        return session.run(right, {x: images[examples:], y: labels[examples:]})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    images, labels = digits.load()
    images, is_low = images[..., np.newaxis], labels < 5
    train_and_export(images[is_low], labels[is_low], sys.argv[1])
    right = learn_others(images[~is_low], labels[~is_low] - 5, sys.argv[1])
    print("%.1f %% of the digits 5 to 9 read right after 100 examples" % (100 * right))


if __name__ == "__main__":
    main()
