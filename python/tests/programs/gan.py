# SPDX-License-Identifier: Apache-2.0
"""A generative adversarial net on a one-dimensional normal distribution: scopes, reuse, two optimizers."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)


def dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [x.get_shape()[-1], units], initializer=tf.constant_initializer(
            np.random.RandomState(len(name) + units).randn(int(x.get_shape()[-1]), units) * 0.4))
        b = tf.get_variable("b", [units], initializer=tf.constant_initializer(0.0))
        y = tf.nn.xw_plus_b(x, w, b)
        return activation(y) if activation is not None else y


def generator(z):
    with tf.variable_scope("G"):
        return dense(dense(z, 8, "hidden", tf.nn.softplus), 1, "out")


def discriminator(x, reuse=None):
    with tf.variable_scope("D", reuse=reuse):
        h = dense(x, 8, "h0", tf.nn.tanh)
        h = dense(h, 8, "h1_", lambda v: tf.maximum(0.2 * v, v))
        logits = dense(h, 1, "out")
        return tf.nn.sigmoid(logits), logits


z = tf.placeholder(tf.float32, [None, 1], name="z")
x = tf.placeholder(tf.float32, [None, 1], name="x")
fake = generator(z)
real_p, real_logits = discriminator(x)
fake_p, fake_logits = discriminator(fake, reuse=True)
d_loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=real_logits, labels=tf.ones_like(real_logits))) + \
    tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=fake_logits, labels=tf.zeros_like(fake_logits)))
g_loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=fake_logits, labels=tf.ones_like(fake_logits)))
t_vars = tf.trainable_variables()
d_vars = [v for v in t_vars if v.name.startswith("D/")]
g_vars = [v for v in t_vars if v.name.startswith("G/")]
print([v.name for v in d_vars], [v.name for v in g_vars])
d_step = tf.train.AdamOptimizer(0.005, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_step = tf.train.AdamOptimizer(0.005, beta1=0.5).minimize(g_loss, var_list=g_vars)
init = tf.global_variables_initializer()
sess = tf.Session()
sess.run(init)
for step in range(201):
    feed = {x: rng.normal(4, 0.5, [32, 1]), z: rng.uniform(-1, 1, [32, 1])}
    _, dl = sess.run([d_step, d_loss], feed)
    _, gl = sess.run([g_step, g_loss], {z: rng.uniform(-1, 1, [32, 1])})
    if step % 50 == 0:
        print("%d %.3f %.3f" % (step, dl, gl))
print(sorted(v.name for v in tf.global_variables() if "Adam" in v.name)[:4])
print("mean %.2f" % sess.run(tf.reduce_mean(fake), {z: rng.uniform(-1, 1, [500, 1])}))
sess.close()
