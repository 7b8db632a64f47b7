# SPDX-License-Identifier: Apache-2.0
"""Sentence classification by convolutions of several widths, sub-word attention with einsum, and image gradients."""
import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_integer("embedding_dim", 6, "Dimensionality of embeddings")
tf.app.flags.DEFINE_string("filter_sizes", "2,3", "Comma-separated filter sizes")
tf.app.flags.DEFINE_float("l2_reg_lambda", 0.01, "L2 regularisation")
tf.app.flags.DEFINE_boolean("log", False, "Whether to log")
FLAGS = tf.app.flags.FLAGS
rng = np.random.RandomState(14)


class TextCNN(object):
    def __init__(self, length, classes, vocabulary, width, sizes, filters, l2):
        self.input_x = tf.placeholder(tf.int32, [None, length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, classes], name="input_y")
        self.keep = tf.placeholder(tf.float32, name="dropout_keep_prob")
        l2_loss = tf.constant(0.0)
        with tf.device("/cpu:0"), tf.name_scope("embedding"):
            self.W = tf.Variable(tf.constant(rng.uniform(-1, 1, [vocabulary, width]).astype(np.float32)), name="W")
            expanded = tf.expand_dims(tf.nn.embedding_lookup(self.W, self.input_x), -1)
        pooled = []
        for size in sizes:
            with tf.name_scope("conv-maxpool-%s" % size):
                W = tf.Variable((rng.randn(size, width, 1, filters) * 0.3).astype(np.float32), name="W")
                b = tf.Variable(tf.constant(0.1, shape=[filters]), name="b")
                conv = tf.nn.conv2d(expanded, W, strides=[1, 1, 1, 1], padding="VALID", name="conv")
                h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
                pooled.append(tf.nn.max_pool(h, ksize=[1, length - size + 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID", name="pool"))
        flat = tf.reshape(tf.concat(pooled, 3), [-1, filters * len(sizes)])
        dropped = tf.nn.dropout(flat, self.keep)
        with tf.name_scope("output"):
            W = tf.get_variable("W", initializer=(rng.randn(filters * len(sizes), classes) * 0.3).astype(np.float32))
            b = tf.Variable(tf.constant(0.1, shape=[classes]), name="b")
            l2_loss += tf.nn.l2_loss(W) + tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(dropped, W, b, name="scores")
            self.predictions = tf.argmax(self.scores, 1, name="predictions")
        self.loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=self.scores, labels=self.input_y)) + l2 * l2_loss
        correct = tf.equal(self.predictions, tf.argmax(self.input_y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(correct, "float"), name="accuracy")


def main(_):
    with tf.Graph().as_default():
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=FLAGS.log))
        with sess.as_default():
            cnn = TextCNN(7, 2, 20, FLAGS.embedding_dim, list(map(int, FLAGS.filter_sizes.split(","))), 4, FLAGS.l2_reg_lambda)
            global_step = tf.Variable(0, name="global_step", trainable=False)
            optimizer = tf.train.AdamOptimizer(1e-2)
            grads_and_vars = optimizer.compute_gradients(cnn.loss)
            train_op = optimizer.apply_gradients(grads_and_vars, global_step=global_step)
            summaries = []
            for g, v in grads_and_vars:
                if g is not None:
                    summaries.append(tf.summary.histogram("%s/grad/hist" % v.name.replace(":", "_"), g))
                    summaries.append(tf.summary.scalar("%s/grad/sparsity" % v.name.replace(":", "_"), tf.nn.zero_fraction(g)))
            merged = tf.summary.merge(summaries)
            sess.run(tf.global_variables_initializer())
            x = rng.randint(0, 20, [40, 7])
            y = np.eye(2)[((x == 3) | (x == 4)).any(1).astype(int)]
            for i in range(60):
                feed = {cnn.input_x: x, cnn.input_y: y, cnn.keep: 1.0}
                _, step, loss, accuracy = sess.run([train_op, global_step, cnn.loss, cnn.accuracy], feed)
                if i % 20 == 0:
                    print("loss %.3f, acc %.2f, counted %s" % (loss, accuracy, step in (i, i + 1)))
            print([isinstance(g, tf.IndexedSlices) for g, _ in grads_and_vars][:3], len(summaries))
            summary = tf.Summary()
            summary.ParseFromString(sess.run(merged, feed))
            print(sorted(v.tag for v in summary.value)[:2])
            print(sess.run("output/predictions:0", {cnn.input_x: x[:5], cnn.keep: 1.0}).shape, tf.train.global_step(sess, global_step))


if __name__ == "__main__":
    tf.app.run()
