# SPDX-License-Identifier: Apache-2.0
"""Residual blocks of tf.layers: batch normalisation, update ops, transposed convolution, regularisers, reuse by name."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(12)
images = rng.rand(12, 8, 8, 3).astype(np.float32)
classes = (images[..., 0].mean((1, 2)) > images[..., 1].mean((1, 2))).astype(np.int64)
is_training = tf.placeholder(tf.bool, name="is_training")
x = tf.placeholder(tf.float32, [None, 8, 8, 3])
y = tf.placeholder(tf.int64, [None])


def start(*shape):
    return tf.constant_initializer(np.random.RandomState(sum(shape)).randn(*shape) * 0.2)


def block(inputs, filters, strides, name):
    with tf.variable_scope(name):
        n = int(inputs.get_shape()[-1])
        net = tf.layers.batch_normalization(inputs, training=is_training, momentum=0.9, name="bn1")
        net = tf.nn.relu(net)
        shortcut = inputs
        if n != filters or strides != 1:
            shortcut = tf.layers.conv2d(net, filters, 1, strides=strides, padding="same", use_bias=False, kernel_initializer=start(1, 1, n, filters),
                                        name="shortcut")
        net = tf.layers.conv2d(net, filters, 3, strides=strides, padding="same", kernel_initializer=start(3, 3, n, filters),
                               kernel_regularizer=lambda w: 1e-3 * tf.nn.l2_loss(w), name="conv1")
        net = tf.layers.batch_normalization(net, training=is_training, fused=False, momentum=0.9, name="bn2")
        net = tf.layers.conv2d(tf.nn.relu(net), filters, (3, 3), padding="SAME", kernel_initializer=start(3, 3, filters, filters), name="conv2")
        return net + shortcut


net = tf.layers.conv2d(x, 4, [3, 3], padding="same", activation=tf.nn.relu, kernel_initializer=start(3, 3, 3, 4))
net = block(net, 4, 1, "block1")
net = block(net, 8, 2, "block2")
net = tf.layers.max_pooling2d(net, 2, 2)
up = tf.layers.conv2d_transpose(net, 3, 3, strides=4, padding="same", kernel_initializer=start(3, 3, 3, 8), name="up")
flat = tf.layers.flatten(net)
flat = tf.layers.dropout(flat, rate=0.0, training=is_training)
logits = tf.layers.dense(flat, 2, kernel_initializer=start(32, 2), name="logits")
again = tf.layers.dense(flat * 0.0, 2, name="logits", reuse=True)
loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits) + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
print(len(update_ops), up.get_shape().as_list(), flat.get_shape().as_list())
print([v.name for v in tf.global_variables() if "block1" in v.name and "Momentum" not in v.name])
total = np.sum([np.prod(v.get_shape().as_list()) for v in tf.trainable_variables()])
print("parameters", int(total))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(31):
        _, value = sess.run([train, loss], {x: images, y: classes, is_training: True})
        if step % 10 == 0:
            print(step, "%.2f" % value)
    print(np.abs(sess.run(again, {x: images, is_training: False})).max() < 1e-6, sess.run(up, {x: images, is_training: False}).shape)
    mean = [v for v in tf.global_variables() if v.op.name == "block1/bn1/moving_mean"][0]
    print(np.round(sess.run(mean), 2).tolist())
