# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors added, joined, cut, reshaped and reduced; and attention over the edges of a graph, trained."""
import numpy as np
import tensorflow as tf


def show(name, value):
    if hasattr(value, "indices"):
        print(name, value.indices.tolist(), np.round(value.values.astype(np.float64), 4).tolist(), value.dense_shape.tolist())
    else:
        print(name, value.tolist() if value.dtype == bool else np.round(value.astype(np.float64), 4).tolist())


a = tf.SparseTensor([[0, 1], [0, 3], [2, 0]], [1.0, 2.0, 3.0], [3, 4])
b = tf.SparseTensor([[0, 3], [1, 1], [2, 2]], [-2.0, 5.0, 0.25], [3, 4])
x = tf.placeholder(tf.float32, [None])
fed = tf.SparseTensor(a.indices, x, a.dense_shape)
with tf.Session() as sess:
    show("sum", sess.run(tf.sparse_add(a, b)))
    show("sum above 1", sess.run(tf.sparse_add(a, b, 1.0)))
    show("dense sum", sess.run(tf.sparse_add(a, tf.ones([3, 4]))))
    show("softmax", sess.run(tf.sparse_softmax(a)))
    show("reshape", sess.run(tf.sparse_reshape(a, [2, -1, 3])))
    show("rows", sess.run(tf.sparse_concat(0, [a, b])))
    show("columns", sess.run(tf.sparse_concat(1, [a, b])))
    show("expand", sess.run(tf.sparse_concat(0, [a, tf.SparseTensor([[0, 5]], [9.0], [1, 6])], expand_nonconcat_dim=True)))
    show("slice", sess.run(tf.sparse_slice(a, [0, 1], [2, 3])))
    for part in sess.run(tf.sparse_split(sp_input=b, num_split=3, axis=1)):
        show("split", part)
    show("row sums", sess.run(tf.sparse_reduce_sum(a, 1)))
    show("column sums", sess.run(tf.sparse_reduce_sum(a, 0, True)))
    show("total", sess.run(tf.sparse_reduce_sum(a)))
    show("greatest", sess.run(tf.sparse_reduce_max(b, 1)))
    show("maximum", sess.run(tf.sparse_maximum(a, b)))
    show("minimum", sess.run(tf.sparse_minimum(a, b)))
    filled, empty = sess.run(tf.sparse_fill_empty_rows(a, 7.0))
    show("filled", filled)
    show("empty", empty)
    loss = tf.reduce_sum(tf.square(tf.sparse_softmax(tf.sparse_reshape(tf.sparse_add(fed, b), [4, 3])).values))
    show("gradient", sess.run(tf.gradients(loss, x)[0], {x: [1.0, 2.0, 3.0]}))

rng = np.random.RandomState(2)
edges = np.array(sorted({(i, j) for i, j in rng.randint(0, 6, (14, 2))} | {(i, i) for i in range(6)}), np.int64)
features, wanted = rng.randn(6, 5).astype(np.float32), rng.randint(0, 2, 6)
w = tf.Variable(rng.randn(5, 4).astype(np.float32) * 0.3)
left, right, top = (tf.Variable(rng.randn(4, n).astype(np.float32) * 0.3) for n in (1, 1, 2))
hidden = tf.matmul(features, w)
graph = tf.SparseTensor(edges, np.ones(len(edges), np.float32), [6, 6])
scores = tf.sparse_add(graph * tf.matmul(hidden, left), graph * tf.transpose(tf.matmul(hidden, right), [1, 0]))
weights = tf.sparse_softmax(tf.SparseTensor(scores.indices, tf.nn.leaky_relu(scores.values), scores.dense_shape))
logits = tf.matmul(tf.nn.elu(tf.sparse_tensor_dense_matmul(weights, hidden)), top)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))
step = tf.train.AdamOptimizer(0.05).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(40):
        value, _ = sess.run([loss, step])
        if i % 10 == 9:
            print("step %d loss %.4f" % (i + 1, value))
