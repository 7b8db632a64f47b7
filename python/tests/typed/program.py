# SPDX-License-Identifier: Apache-2.0
"""A program whose types are checked strictly: what users write, with hints of their own."""

from typing import Dict, List, Tuple

import numpy as np

import millrace as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer("steps", 20, "how many steps")


class Model:
    """A small network with two kinds of input."""

    def __init__(self, features: int, classes: int) -> None:
        self.x: tf.Tensor = tf.placeholder(tf.float32, [None, features], name="x")
        self.y: tf.Tensor = tf.placeholder(tf.int64, [None], name="y")
        hidden = tf.layers.dense(self.x, 16, activation=tf.nn.relu)
        with tf.variable_scope("out", reuse=tf.AUTO_REUSE):
            w: tf.Variable = tf.get_variable("w", [16, classes], initializer=tf.zeros_initializer())
            b = tf.Variable(tf.zeros([classes]), name="b")
        self.logits: tf.Tensor = tf.matmul(hidden, w) + b
        self.loss: tf.Tensor = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=self.logits)) + 0.001 * tf.nn.l2_loss(w)
        hits: tf.Tensor = tf.equal(tf.argmax(self.logits, 1), self.y)
        self.accuracy: tf.Tensor = tf.reduce_mean(tf.cast(hits, tf.float32))
        self.step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdamOptimizer(0.01)
        pairs: List[Tuple[tf.Tensor, tf.Variable]] = optimizer.compute_gradients(self.loss)
        self.train: tf.Operation = optimizer.apply_gradients([(tf.clip_by_norm(g, 5.0), v) for g, v in pairs], global_step=self.step)

    def names(self) -> Dict[str, tf.TensorShape]:
        """The shapes of the variables."""
        return {v.op.name: v.get_shape() for v in tf.global_variables()}


def main(argv: List[str]) -> None:
    """Trains."""
    with tf.Graph().as_default() as graph, tf.device("/cpu:0"):
        tf.set_random_seed(1)
        model = Model(4, 3)
        print(len(graph.get_operations()), graph.get_tensor_by_name("x:0").shape.as_list(), sorted(model.names()))
        saver = tf.train.Saver(max_to_keep=2)
        first: tf.Tensor = model.logits[0, :2] * 2 - 1
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            feed = {model.x: np.eye(4, dtype=np.float32), model.y: np.array([0, 1, 2, 0])}
            try:
                for _ in range(FLAGS.steps):
                    session.run([model.train, model.loss], feed_dict=feed)
            except tf.errors.InvalidArgumentError as error:
                print(error.message, error.op)
            print(session.run(first, feed).shape, float(model.accuracy.eval(feed)), saver.last_checkpoints)


if __name__ == "__main__":
    tf.app.run(main)
