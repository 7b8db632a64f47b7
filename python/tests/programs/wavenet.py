# SPDX-License-Identifier: Apache-2.0
"""Dilated causal convolutions, a Gram matrix and total variation by gradients of the input, mixtures, Gumbel noise."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(15)


def causal(x, w, dilation):
    length = tf.shape(x)[1]
    width = w.shape[0]
    padded = tf.pad(x, [[0, 0], [dilation * (width - 1), 0], [0, 0]])
    if dilation > 1:
        extra = (-(tf.shape(padded)[1])) % dilation
        padded = tf.pad(padded, [[0, 0], [0, extra], [0, 0]])
        batches = tf.reshape(tf.transpose(tf.reshape(padded, [tf.shape(x)[0], -1, dilation, x.get_shape()[2].value]), [2, 0, 1, 3]),
                             [tf.shape(x)[0] * dilation, -1, x.get_shape()[2].value])
        conv = tf.nn.conv1d(batches, w, stride=1, padding="VALID")
        n = tf.shape(conv)[1]
        joined = tf.reshape(tf.transpose(tf.reshape(conv, [dilation, tf.shape(x)[0], n, w.shape[2]]), [1, 2, 0, 3]),
                            [tf.shape(x)[0], -1, w.shape[2]])
        return tf.slice(joined, [0, 0, 0], [-1, length, -1])
    return tf.slice(tf.nn.conv1d(padded, w, stride=1, padding="VALID"), [0, 0, 0], [-1, length, -1])


audio = np.sin(np.arange(64) / 3.0).astype(np.float32)
quantized = np.digitize(audio, np.linspace(-1, 1, 8)).astype(np.int64) % 8
x = tf.placeholder(tf.int64, [1, None])
net = tf.one_hot(x, 8)
skips = []
for i, dilation in enumerate([1, 2, 4]):
    wf, wg = [tf.Variable((rng.randn(2, 8, 8) * 0.4).astype(np.float32)) for _ in range(2)]
    out = tf.tanh(causal(net, wf, dilation)) * tf.sigmoid(causal(net, wg, dilation))
    skips.append(out)
    net = net + out
logits = tf.nn.conv1d(tf.nn.relu(tf.add_n(skips)), tf.Variable((rng.randn(1, 8, 8) * 0.4).astype(np.float32)), 1, "SAME")
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x[:, 1:], logits=logits[:, :-1]))
train = tf.train.AdamOptimizer(0.03, epsilon=1e-4).minimize(loss)

image = tf.Variable(rng.rand(1, 6, 6, 3).astype(np.float32), name="image")
kernel = tf.constant(rng.randn(3, 3, 3, 4).astype(np.float32) * 0.3)
features = tf.nn.atrous_conv2d(image, kernel, 2, "SAME")
depthwise = tf.nn.depthwise_conv2d(image, tf.constant(rng.randn(3, 3, 3, 1).astype(np.float32)), [1, 1, 1, 1], "SAME")
flat = tf.reshape(features, [-1, 4])
gram = tf.matmul(tf.transpose(flat), flat) / tf.cast(tf.size(flat), tf.float32)
style = tf.nn.l2_loss(gram - tf.eye(4)) + 0.01 * tf.nn.l2_loss(image[:, 1:] - image[:, :-1]) + 1e-3 * tf.reduce_sum(tf.abs(depthwise))
paint = tf.train.GradientDescentOptimizer(0.5).minimize(style, var_list=[image])
gumbel = tf.placeholder(tf.float32, [2, 4])
soft = tf.nn.softmax((tf.log(tf.constant([[0.1, 0.2, 0.3, 0.4]])) + gumbel) / 0.5)
hard = tf.stop_gradient(tf.cast(tf.equal(soft, tf.reduce_max(soft, 1, keep_dims=True)), soft.dtype) - soft) + soft
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(41):
        _, value = sess.run([train, loss], {x: quantized[None]})
        if i % 10 == 0:
            print(i, "%.2f" % value)
    for i in range(21):
        _, value = sess.run([paint, style])
        if i % 10 == 0:
            print(i, "%.3f" % value)
    g = rng.gumbel(size=(2, 4))
    print(np.round(sess.run(hard, {gumbel: g}), 3).tolist())
    print(np.round(sess.run(tf.gradients(hard, gumbel)[0], {gumbel: g}), 3).tolist())
