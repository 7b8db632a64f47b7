# SPDX-License-Identifier: Apache-2.0
"""Names below tensorflow.python, a cell of the program's own, partial runs, nested fetches, guided relu by gradient_override_map."""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, init_ops, math_ops
from tensorflow.python.ops import variable_scope as vs

rng = np.random.RandomState(18)
x, y = tf.placeholder("float", [None, 4]), tf.placeholder("float", [None, 3])
W = tf.Variable(rng.randn(4, 3).astype(np.float32), name="W")
activation = tf.nn.softmax(tf.matmul(x, W) + tf.Variable(tf.zeros([3])))
cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(tf.clip_by_value(activation, 1e-10, 1.0)), reduction_indices=1))
train = tf.train.AdagradOptimizer(0.1).minimize(cost)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(activation, 1), tf.argmax(y, 1)), "float"))


class MyCell(tf.nn.rnn_cell.RNNCell):
    def __init__(self, units):
        super(MyCell, self).__init__()
        self._units = units

    @property
    def state_size(self):
        return self._units

    @property
    def output_size(self):
        return self._units

    def __call__(self, inputs, state, scope=None):
        with vs.variable_scope(scope or type(self).__name__):
            w = vs.get_variable("w", [inputs.get_shape()[1] + self._units, self._units], initializer=init_ops.constant_initializer(0.1))
            h = math_ops.tanh(math_ops.matmul(array_ops.concat([inputs, state], 1), w))
        return h, h


sequence = tf.placeholder(tf.float32, [2, 3, 4])
outputs, state = tf.nn.dynamic_rnn(MyCell(5), sequence, dtype=tf.float32)
unrolled, _ = tf.nn.static_rnn(MyCell(5), tf.unstack(sequence, axis=1), dtype=tf.float32, scope="static")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    data = rng.randn(30, 4)
    labels = np.eye(3)[np.argmax(data.dot(rng.randn(4, 3)), 1)]
    for _ in range(100):
        sess.run(train, {x: data, y: labels})
    print("%.3f %.2f" % (sess.run(cost, {x: data, y: labels}), sess.run(accuracy, {x: data, y: labels})))
    s = rng.randn(2, 3, 4)
    print(np.allclose(sess.run(outputs, {sequence: s})[:, -1], sess.run(unrolled[-1], {sequence: s})), "%.4f" % sess.run(state, {sequence: s}).sum())
    print([v.name for v in tf.global_variables()][2:])
    handle = sess.partial_run_setup([cost, activation], [x, y])
    print("%.2f" % sess.partial_run(handle, activation, {x: data}).sum(), "%.3f" % sess.partial_run(handle, cost, {y: labels}))
    print(sess.run({"a": x, "b": [y, {"c": cost}]}, {x: data[:1], y: labels[:1]})["b"][1]["c"].dtype)


@ops.RegisterGradient("GuidedReluOfThisProgram")
def guided(op, grad):
    return tf.where(0.0 < grad, tf.where(op.outputs[0] > 0.0, grad, tf.zeros(tf.shape(grad))), tf.zeros(tf.shape(grad)))


with tf.Graph().as_default() as graph:
    with graph.gradient_override_map({"Relu": "GuidedReluOfThisProgram"}):
        v = tf.constant([1.0, -1.0, 2.0])
        relu = tf.nn.relu(v)
    gradient = tf.gradients(tf.reduce_sum(relu * tf.constant([1.0, 1.0, -1.0])), v)[0]
    print(tf.Session().run(gradient).tolist())
    print([n.name for n in graph.as_graph_def().node][:3])
