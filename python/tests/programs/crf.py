# SPDX-License-Identifier: Apache-2.0
"""A conditional random field over sequences: the forward algorithm by scan, Viterbi by a TensorArray in a while_loop."""
import itertools
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(13)
STEPS, TAGS = 5, 3
unary_np = rng.randn(STEPS, TAGS).astype(np.float32)
unary = tf.placeholder(tf.float32, [None, TAGS])
gold = tf.placeholder(tf.int32, [None])
transitions = tf.get_variable("transitions", initializer=(rng.randn(TAGS, TAGS) * 0.1).astype(np.float32))


def step(alpha, scores):
    return tf.reduce_logsumexp(tf.expand_dims(alpha, 1) + transitions, 0) + scores


alphas = tf.scan(step, unary[1:], initializer=unary[0])
log_z = tf.reduce_logsumexp(alphas[-1])
picked = tf.reduce_sum(tf.gather_nd(unary, tf.stack([tf.range(tf.shape(unary)[0]), gold], 1)))
moved = tf.reduce_sum(tf.gather(tf.reshape(transitions, [-1]), gold[:-1] * TAGS + gold[1:]))
loss = log_z - picked - moved
train = tf.train.AdagradOptimizer(0.5).minimize(loss)

n = tf.shape(unary)[0]
inputs = tf.TensorArray(tf.float32, n).unstack(unary)
pointers = tf.TensorArray(tf.int32, n, element_shape=[TAGS])


def viterbi(t, best, pointers):
    scores = tf.expand_dims(best, 1) + transitions
    pointers = pointers.write(t, tf.cast(tf.argmax(scores, 0), tf.int32))
    return t + 1, tf.reduce_max(scores, 0) + inputs.read(t), pointers


_, best, pointers = tf.while_loop(lambda t, *_: t < n, viterbi, (1, inputs.read(0), pointers.write(0, tf.zeros([TAGS], tf.int32))))
backward = tf.reverse(pointers.stack()[1:], [0])
path = tf.reverse(tf.concat([[tf.cast(tf.argmax(best), tf.int32)],
                             tf.scan(lambda tag, row: row[tag], backward, initializer=tf.cast(tf.argmax(best), tf.int32))], 0), [0])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {unary: unary_np, gold: [0, 1, 2, 1, 0]}
    t = sess.run(transitions)
    score = {p: sum(unary_np[i, k] for i, k in enumerate(p)) + sum(t[a, b] for a, b in zip(p, p[1:]))
             for p in itertools.product(range(TAGS), repeat=STEPS)}
    print("%.4f" % sess.run(log_z, feed), np.allclose(sess.run(log_z, feed), np.log(sum(np.exp(v) for v in score.values())), atol=1e-4))
    print(sess.run(path, feed).tolist(), tuple(sess.run(path, feed).tolist()) == max(score, key=score.get))
    for i in range(41):
        _, value = sess.run([train, loss], feed)
        if i % 10 == 0:
            print(i, "%.3f" % value)
