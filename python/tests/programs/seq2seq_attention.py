# SPDX-License-Identifier: Apache-2.0
"""An encoder (dynamic_rnn) and a decoder cell by cell with attention: learns to reverse digits."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(11)
SYMBOLS, LENGTH, BATCH, UNITS = 6, 4, 16, 12
init = lambda *shape: tf.constant_initializer(rng.randn(*shape) * 0.4)

encoder_inputs = tf.placeholder(tf.int32, [BATCH, LENGTH], name="encoder_inputs")
lengths = tf.placeholder(tf.int32, [BATCH])
targets = [tf.placeholder(tf.int32, [BATCH], name="target%d" % i) for i in range(LENGTH)]
embeddings = tf.get_variable("embeddings", [SYMBOLS, 5], initializer=init(SYMBOLS, 5))
with tf.variable_scope("encoder"):
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS, state_is_tuple=True)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embeddings, encoder_inputs), sequence_length=lengths, dtype=tf.float32)
with tf.variable_scope("attention", initializer=tf.constant_initializer(0.1)):
    w_a = tf.get_variable("w", [UNITS, UNITS], initializer=init(UNITS, UNITS))
    keys = tf.reshape(tf.matmul(tf.reshape(outputs, [-1, UNITS]), w_a), [BATCH, LENGTH, UNITS])


def attend(query):
    scores = tf.reduce_sum(keys * tf.expand_dims(query, 1), 2)
    mask = tf.sequence_mask(lengths, LENGTH, dtype=tf.float32)
    weights = tf.nn.softmax(scores + (1.0 - mask) * -1e9)
    return tf.reduce_sum(tf.expand_dims(weights, 2) * outputs, 1), weights


w_o = tf.get_variable("w_o", [2 * UNITS, SYMBOLS], initializer=init(2 * UNITS, SYMBOLS))
decoder = tf.nn.rnn_cell.GRUCell(UNITS)
state = state.h
symbol = tf.nn.embedding_lookup(embeddings, tf.zeros([BATCH], tf.int32))
context = tf.zeros([BATCH, UNITS])
logits, all_weights = [], []
with tf.variable_scope("decoder") as scope:
    for i in range(LENGTH):
        if i > 0:
            scope.reuse_variables()
            symbol = tf.nn.embedding_lookup(embeddings, targets[i - 1])
        output, state = decoder(tf.concat([symbol, context], 1), state)
        context, weights = attend(output)
        all_weights.append(weights)
        logits.append(tf.matmul(tf.concat([output, context], 1), w_o))
loss = tf.add_n([tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=l)) for t, l in zip(targets, logits)]) / LENGTH
params = tf.trainable_variables()
clipped, norm = tf.clip_by_global_norm(tf.gradients(loss, params), 2.0)
train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(clipped, params))
print([(v.name, v.get_shape().as_list()) for v in params])


def feed():
    digits = rng.randint(1, SYMBOLS, [BATCH, LENGTH])
    d = {encoder_inputs: digits, lengths: [LENGTH] * BATCH}
    d.update({t: digits[:, LENGTH - 1 - i] for i, t in enumerate(targets)})
    return d


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for v in params:
        if "cell" in v.name:
            sess.run(v.assign(np.random.RandomState(1).randn(*v.get_shape().as_list()) * 0.3))
    for step in range(121):
        _, value, n = sess.run([train, loss, norm], feed())
        if step in (0, 1, 5):
            print(step, "%.3f %.3f" % (value, n))
    print("learnt", value < 0.3)
    w = sess.run(tf.stack(all_weights, 1), feed())
    print(w.shape, np.allclose(w.sum(2), 1, atol=1e-4))
