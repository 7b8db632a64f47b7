# SPDX-License-Identifier: Apache-2.0
"""Writes the SavedModel that examples/go and examples/java load and train: a line through points.

  make_model.py FOLDER

Placeholders x and y, the op train, and the outputs loss, predicted and said (a string).
"""

import sys

import millrace as tf


def main(folder):
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    slope = tf.Variable(0.0, name="slope")
    offset = tf.Variable(0.0, name="offset")
    predicted = tf.add(slope * x, offset, name="predicted")
    loss = tf.reduce_mean(tf.square(predicted - y), name="loss")
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    tf.string_join(["slope ", tf.as_string(slope, precision=1), ", offset ", tf.as_string(offset, precision=1)], name="said")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()


if __name__ == "__main__":
    main(sys.argv[1])
