# SPDX-License-Identifier: Apache-2.0
"""REINFORCE with gradients that are collected in NumPy and fed back, and Python's own discounting."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(5)
observations = tf.placeholder(tf.float32, [None, 4], name="input_x")
W1 = tf.get_variable("W1", shape=[4, 8], initializer=tf.constant_initializer(rng.randn(4, 8) * 0.5))
layer1 = tf.nn.relu(tf.matmul(observations, W1))
W2 = tf.get_variable("W2", shape=[8, 1], initializer=tf.constant_initializer(rng.randn(8, 1) * 0.5))
probability = tf.nn.sigmoid(tf.matmul(layer1, W2))
tvars = tf.trainable_variables()
input_y = tf.placeholder(tf.float32, [None, 1], name="input_y")
advantages = tf.placeholder(tf.float32, name="reward_signal")
adam = tf.train.AdamOptimizer(learning_rate=0.05)
W1Grad = tf.placeholder(tf.float32, name="batch_grad1")
W2Grad = tf.placeholder(tf.float32, name="batch_grad2")
update = adam.apply_gradients(zip([W1Grad, W2Grad], tvars))
log_likelihood = tf.log(input_y * (input_y - probability) + (1 - input_y) * (input_y + probability))
loss = -tf.reduce_mean(log_likelihood * advantages)
new_gradients = tf.gradients(loss, tvars)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    buffer = sess.run(tvars)
    for i, g in enumerate(buffer):
        buffer[i] = g * 0
    history = []
    for episode in range(1, 301):
        x = rng.randn(10, 4).astype(np.float32)
        p = sess.run(probability, {observations: x})
        action = (rng.uniform(size=(10, 1)) < p).astype(np.float32)
        reward = np.where(action[:, 0] == (x[:, 0] < 0), 1.0, -1.0)  # the action 1 - action is recorded
        history.append(reward.mean())
        grads = sess.run(new_gradients, feed_dict={observations: x, input_y: 1 - action, advantages: reward.reshape(-1, 1)})
        for i, g in enumerate(grads):
            buffer[i] += g
        if episode % 5 == 0:
            sess.run(update, feed_dict={W1Grad: buffer[0], W2Grad: buffer[1]})
            for i, g in enumerate(buffer):
                buffer[i] = g * 0
        if episode % 100 == 0:
            print(episode, "%.2f" % np.mean(history[-50:]))
