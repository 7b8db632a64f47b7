# SPDX-License-Identifier: Apache-2.0
"""The same fit in Python.

fit.py log_cosh.so
"""

import sys

import numpy as np

import millrace as tf

if len(sys.argv) != 2:
    sys.exit("usage: fit.py LIBRARY")
log_cosh = tf.load_op_library(sys.argv[1]).log_cosh

xs = np.arange(100, dtype=np.float32) / 100
ys = np.where(np.arange(100) % 20 == 7, np.float32(100), 3 * xs - 1)
slope, offset = tf.Variable(0.0), tf.Variable(0.0)
loss = tf.reduce_sum(log_cosh(slope * xs + offset - ys))
train = tf.train.GradientDescentOptimizer(0.005).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5000):
        session.run(train)
    found = session.run([slope, offset])
print("y = %.2f x %+.2f" % tuple(found))
sys.exit(0 if np.allclose(found, [3, -1], atol=0.2) else 1)
