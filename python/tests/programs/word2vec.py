# SPDX-License-Identifier: Apache-2.0
"""Skip-gram embeddings with noise-contrastive estimation, and the nearest words by cosine."""
import math
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
vocabulary, width, batch = 40, 8, 32
tf.set_random_seed(7)


def next_batch():
    centre = rng.randint(0, vocabulary, batch)
    context = (centre // 4) * 4 + rng.randint(0, 4, batch)  # words come in groups of four
    return centre.astype(np.int32), context.reshape(-1, 1).astype(np.int32)


inputs = tf.placeholder(tf.int32, shape=[batch])
labels = tf.placeholder(tf.int32, shape=[batch, 1])
valid = tf.constant([0, 5, 9], dtype=tf.int32)
with tf.device("/cpu:0"):
    embeddings = tf.Variable(tf.random_uniform([vocabulary, width], -1.0, 1.0))
    embed = tf.nn.embedding_lookup(embeddings, inputs)
    nce_weights = tf.Variable(tf.truncated_normal([vocabulary, width], stddev=1.0 / math.sqrt(width)))
    nce_biases = tf.Variable(tf.zeros([vocabulary]))
loss = tf.reduce_mean(tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=labels, inputs=embed, num_sampled=8,
                                     num_classes=vocabulary))
softmax = tf.reduce_mean(tf.nn.sampled_softmax_loss(nce_weights, nce_biases, labels, embed, 8, vocabulary))
train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
normalized = embeddings / norm
similarity = tf.matmul(tf.nn.embedding_lookup(normalized, valid), normalized, transpose_b=True)
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    losses = []
    for step in range(1500):
        x, y = next_batch()
        losses.append(sess.run([train, loss], feed_dict={inputs: x, labels: y})[1])
    print("first", np.round(np.mean(losses[:5]), 1), "last", np.round(np.mean(losses[-200:]), 1))
    print("falls", np.mean(losses[-200:]) < 0.7 * np.mean(losses[:20]))
    print("softmax finite", np.isfinite(sess.run(softmax, {inputs: x, labels: y})))
    sim = similarity.eval()
    near = [(-sim[i]).argsort()[1:4] // 4 for i in range(3)]
    print("neighbours of one group", [int(np.sum(n == g // 4)) >= 2 for n, g in zip(near, [0, 5, 9])])
