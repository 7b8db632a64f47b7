# SPDX-License-Identifier: Apache-2.0
"""Batch renormalisation: its corrections, updates and gradients."""
import numpy as np
import tensorflow as tf

x, phase = tf.placeholder(tf.float32, [8, 3]), tf.placeholder(tf.bool)
for training in (True, phase):
    y = tf.layers.batch_normalization(x, training=training, renorm=True, renorm_clipping={"rmax": 1.5, "rmin": 0.6, "dmax": 0.5}, momentum=0.9,
                                      renorm_momentum=0.8)
    gradient = tf.gradients(tf.reduce_sum(y * y * x), x)[0]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rng = np.random.RandomState(1)
        for i in range(4):
            out = sess.run([y, gradient] + list(updates), {x: rng.randn(8, 3) * 2 + 1, phase: True})
            print(i, "%.2f %.2f" % (out[0].sum(), np.abs(out[1]).sum()))
        for name in ("moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev"):
            print(name, ["%.3f" % v for v in sess.run("batch_normalization/%s:0" % name)])
        print("inference %.3f" % sess.run(y, {x: np.ones([8, 3]), phase: False}).sum())
