# SPDX-License-Identifier: Apache-2.0
"""Every optimizer on reference and on resource variables, with dense and sparse gradients, saved and restored."""
import os
import tempfile
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(8)
table0, w0 = rng.randn(6, 3).astype(np.float32), rng.randn(3, 2).astype(np.float32)
makers = [
    lambda: tf.train.GradientDescentOptimizer(0.1), lambda: tf.train.MomentumOptimizer(0.01, 0.9),
    lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True), lambda: tf.train.AdagradOptimizer(0.1),
    lambda: tf.train.AdadeltaOptimizer(0.5), lambda: tf.train.AdamOptimizer(0.1), lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    lambda: tf.train.RMSPropOptimizer(0.1, centered=True), lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)]
for make in makers:
    results = []
    for use_resource in (False, True):
        tf.reset_default_graph()
        with tf.variable_scope("model", use_resource=use_resource):
            table = tf.get_variable("table", initializer=table0)
            w = tf.get_variable("w", initializer=w0)
        rows = tf.nn.embedding_lookup(table, [1, 4, 1])
        loss = tf.reduce_sum(tf.square(tf.matmul(rows, w) - 1.0))
        global_step = tf.train.get_or_create_global_step()
        optimizer = make()
        train = optimizer.minimize(loss, global_step=global_step)
        saver = tf.train.Saver()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(5):
                sess.run(train)
            results.append(sess.run([table, w, loss, global_step]))
            path = saver.save(sess, os.path.join(tempfile.mkdtemp(), "model"))
            sess.run(train)
            after = sess.run(w)
            saver.restore(sess, path)
            sess.run(train)
            same = np.allclose(after, sess.run(w))
            names = sorted(v.op.name for v in tf.global_variables())
    a, b = results
    print(type(optimizer).__name__, [np.allclose(x, y, atol=1e-4) for x, y in zip(a, b)], "%.4f" % a[2], int(a[3]), same, names[1:4])
