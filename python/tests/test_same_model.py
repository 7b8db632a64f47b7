# SPDX-License-Identifier: Apache-2.0
"""One model, stated in C++ (tests/client/same_model.cc) and here: the same GraphDef, and from one checkpoint
the same losses and variables, bit for bit, whichever client wrote it.

MILLRACE_SAME_MODEL names the C++ program.
"""

import functools
import os
import subprocess

import numpy as np
import pytest

import millrace as tf
from millrace.nn import rnn_cell as cells

PROGRAM = os.environ.get("MILLRACE_SAME_MODEL", "")
BATCH, STEPS = 16, 20

pytestmark = pytest.mark.skipif(not os.path.exists(PROGRAM), reason="MILLRACE_SAME_MODEL names no program")


def numbers(count, seed):
    """As in the C++ program."""
    bits = (np.arange(count, dtype=np.uint32) + np.uint32(seed * 7919 & 0xFFFFFFFF)) * np.uint32(2654435761)
    return ((bits >> np.uint32(8)).astype(np.float32) / np.float32(16777216.0)).astype(np.float32)


def initial(seed):
    return tf.glorot_uniform_initializer(seed=seed)


class Convolutional:
    """Convolution, batch normalisation, a dense layer, Adam with a global step."""

    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        self.y = tf.placeholder(tf.int64, [None], name="labels")
        h = tf.layers.conv2d(self.x, 4, 3, padding="same", activation=tf.nn.relu, name="conv1", kernel_initializer=initial(1))
        h = tf.layers.batch_normalization(h, training=True, name="bn1")
        h = tf.reshape(h, [-1, 256])
        logits = tf.layers.dense(h, 10, name="logits", kernel_initializer=initial(2))
        self.loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=logits), name="loss")
        step = tf.train.get_or_create_global_step()
        self.train = tf.train.AdamOptimizer(0.01).minimize(self.loss, global_step=step)

    def batch(self, step):
        labels = (numbers(BATCH, 2 * step + 1) * 10).astype(np.int64)
        return {self.x: numbers(BATCH * 64, 2 * step).reshape(BATCH, 8, 8, 1), self.y: labels}


class Recurrent:
    """Momentum on a recurrent network. `layer(x)` gives its last output."""

    def __init__(self, layer):
        self.x = tf.placeholder(tf.float32, [None, 5, 3], name="sequences")
        self.y = tf.placeholder(tf.float32, [None, 6], name="targets")
        # In C++ the seed of a kernel is its place among the variables of the cell.
        places = iter(layer.places)
        with tf.variable_scope("", initializer=lambda shape, dtype, partition_info=None: initial(next(places))(shape, dtype)):
            last = layer(self.x)
        self.loss = tf.reduce_mean(tf.square(last - self.y), name="loss")
        self.train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(self.loss)

    def batch(self, step):
        return {self.x: numbers(BATCH * 15, 2 * step).reshape(BATCH, 5, 3), self.y: numbers(BATCH * 6, 2 * step + 1).reshape(BATCH, 6)}


class Decaying:
    """A line, trained at the product of every rate that decays."""

    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, 5, 3], name="sequences")
        self.y = tf.placeholder(tf.float32, [None, 6], name="targets")
        last = tf.identity(tf.layers.dense(tf.reshape(self.x, [-1, 15]), 6, name="line", kernel_initializer=initial(1)), name="last")
        self.loss = tf.reduce_mean(tf.square(last - self.y), name="loss")
        step, t = tf.train.get_or_create_global_step(), tf.train
        rates = [
            t.exponential_decay(0.5, step, 7.0, 0.9, True),
            t.natural_exp_decay(1.0, step, 10.0, 0.1),
            t.inverse_time_decay(1.0, step, 10.0, 0.1),
            t.polynomial_decay(1.0, step, 30.0, 0.1, 0.5),
            t.polynomial_decay(1.0, step, 30.0, 0.1, cycle=True),
            t.cosine_decay(1.0, step, 30.0, 0.3),
            t.cosine_decay_restarts(1.0, step, 9.0, 2.0, 0.9, 0.3),
            t.cosine_decay_restarts(1.0, step, 9.0, 1.0, 0.9, 0.3),
            t.linear_cosine_decay(1.0, step, 50.0, 0.5, 0.2, 0.1),
            t.piecewise_constant(step, [np.int64(5), np.int64(8)], [1.0, 0.5, 0.25]),
        ]
        self.train = t.GradientDescentOptimizer(functools.reduce(lambda a, b: a * b, rates)).minimize(self.loss, global_step=step)

    batch = Recurrent.batch


class Losses:
    """A line, trained by the sum of every loss."""

    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, 5, 3], name="sequences")
        self.y = y = tf.placeholder(tf.float32, [None, 6], name="targets")
        last = tf.layers.dense(tf.reshape(self.x, [-1, 15]), 6, name="line", kernel_initializer=initial(1))
        chance = tf.sigmoid(last, name="chance")
        each = tf.constant(numbers(BATCH, 77).reshape(BATCH, 1), name="each")
        some, losses, kinds = tf.placeholder(tf.float32, name="some"), tf.losses, tf.losses.Reduction
        every = [
            losses.absolute_difference(y, last, each),
            losses.mean_squared_error(y, last, each, reduction=kinds.MEAN),
            losses.huber_loss(y, last, each, 0.25, reduction=kinds.SUM_OVER_BATCH_SIZE),
            losses.hinge_loss(y, last),
            losses.log_loss(y, chance),
            losses.cosine_distance(y, last, 1, each, reduction=kinds.SUM),
            losses.softmax_cross_entropy(y, last),
            losses.sigmoid_cross_entropy(y, last, each),
            losses.mean_pairwise_squared_error(y, last, each),
        ]
        self.loss = tf.add_n(every, name="loss")
        losses.mean_squared_error(y, last, some)  # whose weights nobody knows before a step
        self.train = tf.train.GradientDescentOptimizer(0.01).minimize(self.loss)

    batch = Recurrent.batch


def lstm(x):
    return tf.nn.dynamic_rnn(cells.BasicLSTMCell(6), x, dtype=tf.float32)[1].h


def stack(x):
    lengths = tf.constant([5, 1, 2, 5, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5, 4, 3], name="lengths")
    cell = cells.MultiRNNCell([cells.LSTMCell(5, use_peepholes=True, cell_clip=0.9, num_proj=4, proj_clip=0.7), cells.GRUCell(6)])
    return tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)[1][1]


def unrolled(x):
    cell = cells.MultiRNNCell([cells.BasicRNNCell(4), cells.BasicLSTMCell(6)])
    return tf.nn.static_rnn(cell, tf.unstack(x, 5, 1), dtype=tf.float32)[0][-1]


def lines_and_volumes(x):
    layers = tf.layers
    h = layers.conv1d(x, 4, 3, padding="same", activation=tf.nn.relu, name="sequence", kernel_initializer=initial(1))
    h = tf.contrib.layers.layer_norm(h, scope="layer")
    h = layers.average_pooling1d(layers.max_pooling1d(h, 2, 1), 3, 1, padding="same")
    h = tf.reshape(h, [-1, 2, 2, 2, 2])
    h = layers.conv3d(h, 3, 2, padding="same", activation=tf.tanh, name="volume", kernel_initializer=initial(2))
    h = tf.contrib.layers.instance_norm(h, scope="instance")
    h = layers.average_pooling3d(layers.max_pooling3d(h, 2, 1, padding="same"), 2, 2)
    return tf.identity(layers.dense(tf.reshape(h, [-1, 3]), 6, name="line", kernel_initializer=initial(3)), name="last")


lines_and_volumes.places = ()
lstm.places, stack.places, unrolled.places = (1,), (1, 3, 4, 5, 6, 7, 9), (1, 3)
MODELS = {
    "convolutional": Convolutional,
    "recurrent": lambda: Recurrent(lstm),
    "stack": lambda: Recurrent(stack),
    "unrolled": lambda: Recurrent(unrolled),
    "decaying": Decaying,
    "losses": Losses,
    "lines_and_volumes": lambda: Recurrent(lines_and_volumes),
}


def in_cpp(name, folder, checkpoint=None):
    folder.mkdir()
    subprocess.run([PROGRAM, name, str(folder)] + ([] if checkpoint is None else [checkpoint]), check=True, timeout=120)
    return np.fromfile(folder / "losses", np.float32)


def in_python(name, folder, checkpoint):
    """The GraphDef, and the losses from the checkpoint on."""
    folder.mkdir()
    tf.reset_default_graph()
    tf.set_random_seed(7)
    model = MODELS[name]()
    saver = tf.train.Saver()
    tf.global_variables_initializer()
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as session:
        saver.restore(session, checkpoint)
        losses = [session.run([model.loss, model.train, updates], model.batch(step))[0] for step in range(STEPS)]
        saver.save(session, str(folder / "end"), 0)
    return np.array(losses, np.float32)


def graph_def():
    return tf.get_default_graph().as_graph_def().SerializeToString()


def variables(prefix):
    reader = tf.train.NewCheckpointReader(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("name", MODELS)
def test_same_losses_from_one_checkpoint(name, tmp_path):
    cpp = in_cpp(name, tmp_path / "cpp")
    python = in_python(name, tmp_path / "python", str(tmp_path / "cpp" / "start-0"))
    assert cpp.size == STEPS and cpp[-1] < cpp[0]
    np.testing.assert_array_equal(cpp.view(np.uint32), python.view(np.uint32))
    end, wanted = variables(str(tmp_path / "python" / "end-0")), variables(str(tmp_path / "cpp" / "end-0"))
    assert sorted(end) == sorted(wanted)
    for variable, value in wanted.items():
        assert value.tobytes() == end[variable].tobytes(), variable
    # And on in C++, from what Python has written.
    on = in_cpp(name, tmp_path / "on", str(tmp_path / "python" / "end-0"))
    again = in_python(name, tmp_path / "again", str(tmp_path / "cpp" / "end-0"))
    np.testing.assert_array_equal(on.view(np.uint32), again.view(np.uint32))


@pytest.mark.parametrize("name", MODELS)
def test_same_graph(name, tmp_path):
    in_cpp(name, tmp_path / "cpp")
    tf.reset_default_graph()
    tf.set_random_seed(7)
    MODELS[name]()
    tf.train.Saver()
    tf.global_variables_initializer()
    # Python makes the variables of cells where a loop is stated, C++ before: the nodes are the same, not their order.
    graphs = [tf.GraphDef.FromString(encoded) for encoded in (graph_def(), (tmp_path / "cpp" / "graph.pb").read_bytes())]
    made, wanted = ({node.name: node for node in graph.node} for graph in graphs)
    assert sorted(made) == sorted(wanted)
    for name, node in wanted.items():
        assert made[name] == node, name
    assert graphs[0].library == graphs[1].library and graphs[0].versions == graphs[1].versions
