# SPDX-License-Identifier: Apache-2.0
"""Towers that share variables, averaged gradients, batch normalisation with update ops, averages that evaluation restores."""
import os
import tempfile
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(9)
images_np = rng.rand(32, 8, 8, 1).astype(np.float32)
labels_np = (images_np[:, :4].mean((1, 2, 3)) > images_np[:, 4:].mean((1, 2, 3))).astype(np.int64)
FILTERS = rng.randn(3, 3, 1, 4).astype(np.float32) * 0.3
DENSE = rng.randn(64, 2).astype(np.float32) * 0.1


def _variable_with_weight_decay(name, value, wd):
    with tf.device("/cpu:0"):
        var = tf.get_variable(name, initializer=tf.constant(value))
    if wd is not None:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(var), wd, name="weight_loss"))
    return var


def batch_norm(x, train, scope="bn"):
    with tf.variable_scope(scope):
        beta = tf.get_variable("beta", [4], initializer=tf.constant_initializer(0.0))
        gamma = tf.get_variable("gamma", [4], initializer=tf.constant_initializer(1.0))
        batch_mean, batch_var = tf.nn.moments(x, [0, 1, 2], name="moments")
        ema = tf.train.ExponentialMovingAverage(decay=0.5)

        def mean_var_with_update():
            ema_apply_op = ema.apply([batch_mean, batch_var])
            with tf.control_dependencies([ema_apply_op]):
                return tf.identity(batch_mean), tf.identity(batch_var)
        with tf.variable_scope(tf.get_variable_scope(), reuse=False):
            mean, var = tf.cond(train, mean_var_with_update, lambda: (ema.average(batch_mean), ema.average(batch_var)))
        return tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-3)


def inference(images, train):
    with tf.variable_scope("conv1") as scope:
        kernel = _variable_with_weight_decay("weights", FILTERS, 1e-3)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        biases = tf.get_variable("biases", [4], initializer=tf.constant_initializer(0.0))
        conv1 = tf.nn.relu(batch_norm(tf.nn.bias_add(conv, biases), train), name=scope.name)
    pool = tf.nn.max_pool(conv1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", name="pool1")
    flat = tf.reshape(pool, [-1, 64])
    with tf.variable_scope("softmax_linear"):
        w = _variable_with_weight_decay("weights", DENSE, None)
        return tf.matmul(flat, w, name="softmax")


images, labels = tf.placeholder(tf.float32, [32, 8, 8, 1]), tf.placeholder(tf.int64, [32])
train = tf.placeholder(tf.bool, name="phase_train")
global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False, dtype=tf.int32)
logits = inference(images, train)
loss = tf.add_n(tf.get_collection("losses") + [tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))])
opt = tf.train.GradientDescentOptimizer(0.2)
grads = opt.compute_gradients(loss)
apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
variable_averages = tf.train.ExponentialMovingAverage(0.9, global_step)
averages_op = variable_averages.apply(tf.trainable_variables())
with tf.control_dependencies([apply_gradient_op, averages_op]):
    train_op = tf.no_op(name="train")
accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
saver = tf.train.Saver(tf.global_variables())
restorer = tf.train.Saver(variable_averages.variables_to_restore())
print(sorted(variable_averages.variables_to_restore())[:6])
path = os.path.join(tempfile.mkdtemp(), "model.ckpt")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(61):
        _, value = sess.run([train_op, loss], {images: images_np, labels: labels_np, train: True})
        if step % 20 == 0:
            print(step, "%.3f" % value)
    where = saver.save(sess, path, global_step=global_step)
    print(os.path.basename(where), "%.2f" % sess.run(accuracy, {images: images_np, labels: labels_np, train: True}))
    raw = sess.run("softmax_linear/weights:0")
    restorer.restore(sess, where)
    averaged = sess.run("softmax_linear/weights:0")
    print(np.abs(raw - averaged).max() > 1e-4, np.round(averaged.sum(), 3), np.round(raw.sum(), 3))
    print("%.4f" % sess.run(loss, {images: images_np, labels: labels_np, train: False}))
