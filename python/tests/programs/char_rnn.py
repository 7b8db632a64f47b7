# SPDX-License-Identifier: Apache-2.0
"""A stacked character model with dropout, truncated backpropagation, state carried between batches, and sampling."""
import numpy as np
import tensorflow as tf

text = "the quick brown fox jumps over the lazy dog and runs. " * 12
vocabulary = sorted(set(text))
ids = np.array([vocabulary.index(c) for c in text], np.int32)
BATCH, STEPS, UNITS = 4, 8, 16
N = len(vocabulary)


class Model(object):
    def __init__(self, is_training, batch, steps):
        self.input_data = tf.placeholder(tf.int32, [batch, steps])
        self.targets = tf.placeholder(tf.int32, [batch, steps])
        cells = []
        for _ in range(2):
            cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS, forget_bias=0.0, state_is_tuple=True)
            if is_training:
                cell = tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=1.0)
            cells.append(cell)
        self.cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=True)
        self.initial_state = self.cell.zero_state(batch, tf.float32)
        embedding = tf.get_variable("embedding", [N, UNITS])
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        outputs, state = [], self.initial_state
        with tf.variable_scope("RNN"):
            for t in range(steps):
                if t > 0:
                    tf.get_variable_scope().reuse_variables()
                output, state = self.cell(inputs[:, t, :], state)
                outputs.append(output)
        self.final_state = state
        flat = tf.reshape(tf.concat(outputs, 1), [-1, UNITS])
        w = tf.get_variable("softmax_w", [UNITS, N])
        b = tf.get_variable("softmax_b", [N], initializer=tf.zeros_initializer())
        logits = tf.matmul(flat, w) + b
        self.probs = tf.nn.softmax(logits)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(self.targets, [-1]), logits=logits)
        self.cost = tf.reduce_sum(loss) / batch / steps
        if not is_training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self.lr_update = tf.assign(self.lr, self.new_lr)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), 5.0)
        self.train_op = tf.train.AdamOptimizer(self.lr).apply_gradients(zip(grads, tvars))


with tf.Graph().as_default(), tf.Session() as sess:
    initializer = tf.random_uniform_initializer(-0.2, 0.2, seed=3)
    with tf.variable_scope("model", reuse=None, initializer=initializer):
        m = Model(True, BATCH, STEPS)
    with tf.variable_scope("model", reuse=True, initializer=initializer):
        one = Model(False, 1, 1)
    sess.run(tf.global_variables_initializer())
    print([v.name for v in tf.trainable_variables()])
    for i, v in enumerate(tf.trainable_variables()):
        v.load(np.random.RandomState(i).uniform(-0.2, 0.2, v.get_shape().as_list()), sess)
    data = ids[:len(ids) // BATCH * BATCH].reshape(BATCH, -1)
    sess.run(m.lr_update, feed_dict={m.new_lr: 0.02})
    for epoch in range(12):
        state = sess.run(m.initial_state)
        costs = []
        for i in range((data.shape[1] - 1) // STEPS):
            feed = {m.input_data: data[:, i * STEPS:(i + 1) * STEPS], m.targets: data[:, i * STEPS + 1:(i + 1) * STEPS + 1]}
            for j, (c, h) in enumerate(m.initial_state):
                feed[c], feed[h] = state[j].c, state[j].h
            cost, state, _ = sess.run([m.cost, m.final_state, m.train_op], feed)
            costs.append(cost)
        if epoch in (0, 1, 2):
            print(epoch, "%.2f" % np.exp(np.mean(costs)))
    print("perplexity below 4", np.exp(np.mean(costs)) < 4, type(state[0]).__name__)
    state, char, said = sess.run(one.initial_state), "t", "t"
    for _ in range(5):
        probs, state = sess.run([one.probs, one.final_state], {one.input_data: [[vocabulary.index(char)]], one.initial_state: state})
        char = vocabulary[int(np.argmax(probs[0]))]
        said += char
    print(said.startswith("th"))
