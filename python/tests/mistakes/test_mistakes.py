# SPDX-License-Identifier: Apache-2.0
"""The commonest mistakes, and what the errors say: the class, what was got and wanted, and the line of the program.

Each row is (what goes wrong, class, words that the message has, mistake). Each message names a line of this file too: the one that
made the node, or the one that made the mistake where it is about no node.
"""

import re

import numpy as np
import pytest

import millrace as tf
from millrace.framework.errors import OperatorNotAllowedInGraphError

MISTAKES = []


def x(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, list(shape), name="x")


def row(what, error, words, function):
    MISTAKES.append(pytest.param(function, error, words, id=what.replace(" ", "_")))


def run(fetches, feed=None):
    with tf.Session() as session:
        return session.run(fetches, feed)


def fed(shape, value, dtype=tf.float32, use=tf.identity):
    made = tf.placeholder(dtype, shape, name="x")
    return run(use(made), {made: value})


INVALID, VALUE, TYPE = tf.errors.InvalidArgumentError, ValueError, TypeError

# ---- shapes ----
row("matmul of sizes that do not match", VALUE, ["MatMul", "3 and 4", "[?,3]", "[4,2]"], lambda: tf.matmul(x(None, 3), tf.ones([4, 2])))
row("matmul of a vector", VALUE, ["MatMul", "rank 2", "[3]"], lambda: tf.matmul(x(2, 3), tf.ones([3])))
row("adding shapes that do not broadcast", VALUE, ["Add", "[2,3]", "[2,4]"], lambda: x(2, 3) + tf.ones([2, 4]))
row("an array of another size", VALUE, ["Mul", "[3]", "[4]"], lambda: x(3) * np.ones(4, np.float32))
row("concat of other sizes", VALUE, ["concat", "3 and 4", "[?,3]", "[2,4]"], lambda: tf.concat([x(None, 3), tf.ones([2, 4])], 0))
row("reshape to another number of elements", VALUE, ["Reshape", "6 elements", "[4,2]"], lambda: tf.reshape(tf.zeros([2, 3]), [4, 2]))
row("reshape of what was fed", INVALID, ["Reshape", "6 values", "[4,2]"], lambda: fed(None, np.ones(6), use=lambda t: tf.reshape(t, [4, 2])))
row(
    "a flat image into a convolution",
    VALUE,
    ["Conv2D", "rank 4", "rank 2", "[?,784]"],
    lambda: tf.nn.conv2d(x(None, 784), tf.ones([3, 3, 1, 4]), [1, 1, 1, 1], "SAME"),
)
row(
    "colour images into a filter for grey ones",
    VALUE,
    ["Conv2D", "input depth 3", "filter's input depth 1", "[?,8,8,3]", "[3,3,1,4]", '\n  input: Tensor("x:0"'],
    lambda: tf.nn.conv2d(x(None, 8, 8, 3), tf.ones([3, 3, 1, 4]), [1, 1, 1, 1], "SAME"),
)
row(
    "a padding that there is not",
    VALUE,
    ["Conv2D", "FULL", "SAME", "VALID"],
    lambda: tf.nn.conv2d(x(None, 8, 8, 1), tf.ones([3, 3, 1, 4]), [1, 1, 1, 1], "FULL"),
)
row("a bias of another size", VALUE, ["BiasAdd", "3 and 4", "[2,3]", "[4]"], lambda: tf.nn.bias_add(x(2, 3), tf.ones([4])))
row("a permutation of another length", VALUE, ["Transpose", "size 2", "size 3"], lambda: tf.transpose(x(2, 3), [0, 1, 2]))
row("squeezing what is not one", VALUE, ["Squeeze", "expected a dimension of 1, got 3"], lambda: tf.squeeze(x(2, 3), [1]))
row("a split that leaves a rest", VALUE, ["Split", "size 3", "divide into 2 parts"], lambda: tf.split(x(2, 3), 2, 1))
row("an axis that there is not", VALUE, ["ArgMax", "axis 2", "[-2, 2)", "[2,3]"], lambda: tf.argmax(x(2, 3), 2))
row("an index out of bounds", VALUE, ["StridedSlice", "index 2", "[2,3]"], lambda: x(2, 3)[2])
row("more indices than dimensions", VALUE, ["StridedSlice", "only 2 dims", "[2,3]"], lambda: x(2, 3)[0, 0, 0])
row("assigning another shape", VALUE, ["Assign", "[2]", "[3]"], lambda: tf.assign(tf.Variable(tf.zeros([2])), tf.zeros([3])))
row(
    "labels of another size",
    VALUE,
    ["SoftmaxCrossEntropyWithLogits", "[2,4]", "[2,3]"],
    lambda: tf.nn.softmax_cross_entropy_with_logits(labels=tf.ones([2, 3]), logits=tf.ones([2, 4])),
)
row(
    "one-hot labels where numbers are wanted",
    VALUE,
    ["sparse_softmax_cross_entropy_with_logits", "received 2", "(2, 3)"],
    lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.ones([2, 3], tf.int32), logits=tf.ones([2, 3])),
)
row(
    "labels and logits of other ranks",
    VALUE,
    ["sigmoid_cross_entropy_with_logits", "(2, 1)", "(2,)"],
    lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([2]), logits=tf.ones([2, 1])),
)
row(
    "a label out of range",
    INVALID,
    ["SparseSoftmaxCrossEntropyWithLogits", "5", "[0, 3)"],
    lambda: run(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[5, 0], logits=tf.ones([2, 3]))),
)
row("an index out of the table", INVALID, ["Gather", "3", "[0, 3)"], lambda: run(tf.gather(tf.ones([3, 2]), [3])))
row("a shape that contradicts", VALUE, ["[3,2]", "[2,3]", "ones:0"], lambda: tf.ones([2, 3]).set_shape([3, 2]))

# ---- types ----
row("integers and floats", TYPE, ["Add", "int32", "float32"], lambda: x(3) + tf.constant([1, 2, 3]))
row("doubles into a matmul", VALUE, ["Const:0", "float32", "float64", "(3, 2)"], lambda: tf.matmul(x(None, 3), tf.constant(np.ones((3, 2)))))
row("an integer and a fraction", TYPE, ["add", "int32", "1.5"], lambda: tf.constant(1) + 1.5)
row(
    "labels that are floats",
    TYPE,
    ["sparse_softmax_cross_entropy_with_logits", "float32"],
    lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.ones([2]), logits=tf.ones([2, 3])),
)
row("assigning to what is not a variable", TYPE, ["Assign", "variable", "zeros:0"], lambda: tf.assign(tf.zeros([2]), tf.zeros([2])))
row("indices that are floats", TYPE, ["parameter 'indices' of 'OneHot'", "float32", "int32, int64"], lambda: tf.one_hot([1.0, 2.0], 3))
row("an unknown size in a shape", TYPE, ["[None, 3]", "-1", "tf.shape(x)[0]"], lambda: tf.zeros([None, 3]))
row("a constant with rows of several lengths", VALUE, ["dense", "[[1, 2], [3]]", "lengths"], lambda: tf.constant([[1, 2], [3]]))
row("a type that there is not", TYPE, ["'flaot'", "DType"], lambda: tf.placeholder("flaot", [None]))
row("a dimension that is no number", TYPE, ["'a'", "str", "integer or None"], lambda: tf.placeholder(tf.float32, [None, "a"]))
row("a tensor as a condition", OperatorNotAllowedInGraphError, ["bool", "tf.cond"], lambda: 1 if x() > 0 else 2)
row("iterating over a tensor", OperatorNotAllowedInGraphError, ["iterating over", "tf.map_fn"], lambda: list(tf.placeholder(tf.float32)))
row("the length of a tensor", TYPE, ["len()", "get_shape"], lambda: len(x(3)))
row("a constant of nothing", VALUE, ["None"], lambda: tf.constant(None))
row("a constant of another type", TYPE, ["float32", "'a'", "str"], lambda: tf.constant("a", tf.float32))

# ---- feeds and fetches ----
row("a placeholder that is not fed", INVALID, ["placeholder", "'x'", "float", "[3]"], lambda: run(x(3) * 2))
row("feeding another shape", VALUE, ["x:0", "(2, 4)", "(?, 3)"], lambda: fed([None, 3], np.ones((2, 4))))
row("feeding text for numbers", VALUE, ["x:0", "float32", "list", "'a'"], lambda: fed([2], ["a", "b"]))
row("feeding rows of several lengths", VALUE, ["x:0", "float32", "inhomogeneous"], lambda: fed([None, 3], [[1, 2, 3], [1]]))
row("feeding a tensor", TYPE, ["feed", "tf.Tensor", "numpy"], lambda: fed([2], tf.ones([2])))
row("feeding a name that there is not", TYPE, ["feed_dict", "y:0", "does not exist"], lambda: run(tf.ones([2]), {"y:0": 1}))
row("fetching nothing", TYPE, ["Fetch", "None"], lambda: run(None))
row("fetching a number", TYPE, ["Fetch", "3.0", "float"], lambda: run(3.0))
row("fetching a name that there is not", VALUE, ["Fetch", "loss", "not in the graph"], lambda: run("loss"))
row("a tensor of another graph", VALUE, ["Fetch", "ones:0", "not an element of this graph"], lambda: tf.Session(graph=tf.Graph()).run(tf.ones([2])))
row("mixing two graphs", VALUE, ["Add", "same graph"], lambda: other_graph(tf.ones([2])))
row("eval without a session", VALUE, ["eval", "session"], lambda: tf.ones([1]).eval())
row("a closed session", RuntimeError, ["closed"], lambda: closed().run(tf.ones([1])))

# ---- variables and training ----
row(
    "a variable without a value",
    tf.errors.FailedPreconditionError,
    ["uninitialized", 'Tensor("v:0"', "tf.global_variables_initializer()"],
    lambda: run(tf.Variable([1.0], name="v") + 1),
)
row("a variable made twice", VALUE, ["Variable v", "already exists", "reuse"], lambda: [tf.get_variable("v", [1]) for _ in "ab"])
row("reusing what there is not", VALUE, ["s/w", "does not exist", "reuse"], lambda: reused("w", [1]))
row("reusing another shape", VALUE, ["s/v", "(2,)", "(1,)"], lambda: reused("v", [2]))
row("a variable of unknown size", VALUE, ["w", "fully defined", "(?, 3)"], lambda: tf.get_variable("w", [None, 3]))
row("nothing to train", VALUE, ["No variables"], lambda: tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0)))
row(
    "a loss without variables",
    VALUE,
    ["No gradients", "v:0", "Const:0"],
    lambda: (tf.Variable(1.0, name="v"), tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))),
)
row(
    "a checkpoint that is not there",
    VALUE,
    ["checkpoint", "nowhere/model.ckpt"],
    lambda: (tf.Variable(1.0), tf.train.Saver().restore(tf.Session(), "nowhere/model.ckpt")),
)
row("nothing to save", VALUE, ["No variables"], lambda: tf.train.Saver())
row("a number that is not", INVALID, ["loss", "NaN", "CheckNumerics"], lambda: fed([], -1.0, use=lambda t: tf.check_numerics(tf.log(t), "loss")))
row("an assertion", INVALID, ["assertion failed", "bad", "[1 1]"], lambda: run(tf.Assert(tf.constant(False), ["bad", tf.ones([2])])))
row("dropping too much", VALUE, ["keep_prob", "1.5"], lambda: tf.nn.dropout(x(2), 1.5))
row("a finalized graph", RuntimeError, ["finalized"], lambda: (tf.get_default_graph().finalize(), tf.ones([1])))
row("a bad name", VALUE, ["my x", "name"], lambda: tf.placeholder(tf.float32, name="my x"))
row("a tensor's name without its number", VALUE, ["'x'", "Operation name"], lambda: tf.get_default_graph().get_tensor_by_name("x"))
row("saving what is not a variable", TYPE, ["not a Variable", "'v'"], lambda: tf.train.Saver(["v"]))
row("an assignment without a value", TYPE, ["assign()", "value"], lambda: tf.assign(tf.Variable(1.0)))
row("a dimension that there is not", IndexError, ["dimension 2", "(2, 3)"], lambda: x(2, 3).get_shape()[2])
row("an equation that is not first", TYPE, ["einsum", "'ij,jk->ik'"], lambda: tf.einsum(x(2, 3), x(3, 2)))
row(
    "an input to a loop over nothing",
    VALUE,
    ["dynamic_rnn", "[batch, time, ...]", "[]"],
    lambda: tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), [], dtype=tf.float32),
)
row("a name that is not there", AttributeError, ["no_such"], lambda: tf.no_such)


def other_graph(first):
    with tf.Graph().as_default():
        return tf.add(first, tf.ones([2]))


def reused(name, shape):
    with tf.variable_scope("s"):
        tf.get_variable("v", [1])
    with tf.variable_scope("s", reuse=True):
        return tf.get_variable(name, shape)


def closed():
    session = tf.Session()
    session.close()
    return session


@pytest.mark.parametrize("function, error, words", MISTAKES)
def test_mistake(function, error, words):
    with pytest.raises(error) as caught:
        function()
    assert type(caught.value) is error or error is ValueError
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert len(message.splitlines()) <= 12, message
    assert not re.search(r"File \"|millrace/(framework|ops)/|src/.*\.cc", message), message
    # A line of this file: that of the mistake, or that of the helper it calls.
    assert re.search(re.escape(__file__) + r":\d+", message), message


def test_the_line_is_the_one_of_the_mistake():
    here = test_the_line_is_the_one_of_the_mistake.__code__.co_firstlineno
    a = tf.placeholder(tf.float32, [2, 3])
    with pytest.raises(ValueError, match=":%d" % (here + 4)):
        tf.matmul(a, a)
    with pytest.raises(TypeError, match=":%d" % (here + 6)):
        a + tf.constant(1)
    with tf.Session() as session, pytest.raises(ValueError, match="made at .*:%d" % (here + 2)):
        session.run(a, {a: np.ones([3, 3])})
