# SPDX-License-Identifier: Apache-2.0
"""A denoising autoencoder with tied weights, L1 and L2 terms from a collection, and a decayed learning rate."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
base = rng.rand(6, 20).astype(np.float32)
data = base[rng.randint(0, 6, 200)]
tf.reset_default_graph()
X = tf.placeholder("float", [None, 20], name="X")
corrupted = tf.placeholder("float", [None, 20])
W = tf.get_variable("W", initializer=(rng.randn(20, 6) * 0.2).astype(np.float32))
b = tf.get_variable("b", shape=(6,), initializer=tf.zeros_initializer())
c = tf.get_variable("c", shape=[20], initializer=tf.zeros_initializer)
tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(W), 1e-3, name="weight_loss"))
tf.add_to_collection("losses", 1e-4 * tf.reduce_sum(tf.abs(W)))
H = tf.nn.sigmoid(tf.matmul(corrupted, W) + b)
Z = tf.nn.sigmoid(tf.matmul(H, tf.transpose(W)) + c)
cost = tf.reduce_mean(tf.pow(X - Z, 2))
tf.add_to_collection("losses", cost)
total = tf.add_n(tf.get_collection("losses"), name="total_loss")
global_step = tf.Variable(0, trainable=False)
rate = tf.train.exponential_decay(0.5, global_step, 50, 0.9, staircase=True)
optimizer = tf.train.MomentumOptimizer(rate, 0.9)
gradients = optimizer.compute_gradients(total)
gradients = [(tf.clip_by_norm(g, 1.0), v) for g, v in gradients if g is not None]
train_op = optimizer.apply_gradients(gradients, global_step=global_step)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(10):
        for start, end in zip(range(0, 200, 20), range(20, 201, 20)):
            mask = rng.binomial(1, 0.9, [20, 20])
            sess.run(train_op, feed_dict={X: data[start:end], corrupted: data[start:end] * mask})
        if i % 3 == 0:
            print(i, "%.4f" % sess.run(cost, feed_dict={X: data, corrupted: data}))
    print(sess.run(global_step), "%.4f" % sess.run(rate), [v.op.name for v in tf.trainable_variables()])
    print([op.name for op in tf.get_default_graph().get_operations() if op.type == "ApplyMomentum"])
