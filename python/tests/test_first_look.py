# SPDX-License-Identifier: Apache-2.0
"""What a person sees who looks at objects and asks for help."""

import re
import inspect

import numpy as np
import pytest

import millrace as tf


def test_objects_say_what_they_are():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        table = tf.contrib.lookup.index_table_from_tensor(["a"])
        cell = tf.nn.rnn_cell.BasicLSTMCell(4)
        sparse = tf.SparseTensor([[0, 1]], [2.0], [3, 4])
        dense = tf.layers.Dense(3, name="d")
        before = repr(dense)
        dense.apply(tf.placeholder(tf.float32, [None, 2]))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        for made, wanted in (
            (sparse, "<tf.SparseTensor 'SparseTensor/values' shape=(3, 4) dtype=float32, 1 stored>"),
            (tf.FIFOQueue(3, [tf.float32, tf.string], [[2], []], name="q"), "<tf.FIFOQueue 'q' of (float32 (2,), string ())>"),
            (cell, "<BasicLSTMCell, state LSTMStateTuple(c=4, h=4), output 4>"),
            (dense, "<Dense 'd', weights (2, 3), (3,)>"),
            (optimizer, "<MomentumOptimizer 'Momentum', learning_rate=0.1, momentum=0.9>"),
            (table, "<tf.HashTable 'hash_table' from string to int64>"),
            (tf.TensorArray(tf.int32, 3, element_shape=[2]), "<tf.TensorArray dtype=int32, element shape (2,)>"),
            (tf.get_variable_scope(), "<VariableScope ''>"),
            (tf.train.Saver(max_to_keep=3), "<Saver of 2 objects, keeps 3>"),
            (tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2)), "<tf.PartitionedVariable 'p' shape=(4, 2) dtype=float32, in 2 parts>"),
            (tf.train.Coordinator(), "<Coordinator, running, 0 threads>"),
        ):
            assert repr(made) == wanted
        assert before == "<Dense 'd', not built yet>"
        last = graph.get_operations()[-1].name
        count = len(graph.get_operations())
        assert repr(graph) == "<tf.Graph of %d operations, the last '%s'>" % (count, last)
        assert repr(session) == "<tf.Session of %r>" % graph and not repr(session).endswith("closed>")
    assert repr(session).endswith(", closed>") and "(closed)" in session._repr_html_()
    assert repr(tf.Graph()) == "<tf.Graph of 0 operations>"


def test_notebooks_show_values_and_places():
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.constant(np.arange(3.0), name="c")._repr_html_()
        assert "[0. 1. 2.]" in value and "test_first_look.py" in value
        assert "pre" not in tf.placeholder(tf.float32, name="x")._repr_html_()
        assert "trainable variable" in tf.get_variable("v", [2])._repr_html_()
        assert "CPU:0" in session._repr_html_() and "other ops" not in session._repr_html_()
        assert "fed: <code>x:0</code> float32" in session.graph._repr_html_()
        for i, op in enumerate(
            (tf.sin, tf.cos, tf.tan, tf.exp, tf.log, tf.sqrt, tf.square, tf.negative, tf.abs, tf.sign, tf.floor, tf.ceil, tf.round, tf.tanh)
        ):
            op(float(i))
        for op in (tf.asin, tf.acos, tf.atan, tf.sinh, tf.cosh, tf.erf, tf.lgamma, tf.digamma, tf.reciprocal, tf.rsqrt):
            op(0.5)
        assert re.search(r"</table><br>and \d+ other ops$", session.graph._repr_html_())
        assert "&lt;" in tf.constant("<b>")._repr_html_()


@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "nn.conv2d",
        "reshape",
        "concat",
        "placeholder",
        "gather",
        "nn.sparse_softmax_cross_entropy_with_logits",
        "cond",
        "while_loop",
        "transpose",
        "one_hot",
        "stack",
        "split",
        "nn.embedding_lookup",
        "nn.bias_add",
    ],
)
def test_help_has_shapes_and_errors(name):
    function = tf
    for part in name.split("."):
        function = getattr(function, part)
    text = inspect.getdoc(function)
    assert "\nShapes: " in text and "\nRaises: " in text


def test_the_errors_are_those_that_help_tells():
    x = tf.placeholder
    with tf.Graph().as_default(), tf.Session() as session:
        for error, mistake in (
            (ValueError, lambda: tf.matmul(x(tf.float32, [2, 3]), tf.ones([2, 3]))),
            (ValueError, lambda: tf.matmul(x(tf.float32, [2, 3]), tf.ones([3, 2], tf.float64))),
            (ValueError, lambda: tf.nn.conv2d(tf.ones([2, 3]), tf.ones([1, 1, 1, 1]), [1, 1, 1, 1], "SAME")),
            (tf.errors.InvalidArgumentError, lambda: session.run(tf.gather(tf.ones([2]), tf.constant([2]) + 0))),
            (ValueError, lambda: tf.concat([tf.ones([2, 3]), tf.ones([3, 3])], 1)),
            (TypeError, lambda: tf.concat([tf.ones([2]), tf.ones([2], tf.int32)], 0)),
            (tf.errors.InvalidArgumentError, lambda: session.run(x(tf.float32) + 1.0)),
            (TypeError, lambda: tf.cond(True, tf.no_op, tf.no_op)),
            (TypeError, lambda: tf.while_loop(1, lambda i: i, [0])),
            (ValueError, lambda: tf.while_loop(lambda i: i < 3, lambda i: [i, i], [0])),
            (ValueError, lambda: tf.transpose(tf.ones([2, 3]), [0])),
            (ValueError, lambda: tf.one_hot([1], 3, axis=5)),
            (ValueError, lambda: tf.stack([tf.ones([2]), tf.ones([3])])),
            (ValueError, lambda: tf.split(tf.ones([3]), 2)),
            (ValueError, lambda: tf.nn.embedding_lookup([], [0])),
            (ValueError, lambda: tf.nn.bias_add(tf.ones([2, 3]), tf.ones([2]))),
        ):
            with pytest.raises(error):
                mistake()
        assert (session.run(tf.one_hot([7], 3)) == 0).all()
