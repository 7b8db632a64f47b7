# SPDX-License-Identifier: Apache-2.0
"""Where the first NaN of a step comes from."""

import numpy as np
import pytest

import millrace as tf
from millrace import debug


def test_the_op_that_makes_a_bad_value_out_of_good_ones_is_named():
    x = tf.placeholder(tf.float32, [2], name="x")
    late = tf.log(x, name="logarithm")
    y = tf.reduce_sum(late * 2.0, name="sum")
    with tf.Session() as session:
        assert session.run(y, {x: [1.0, 0.0]}) == -np.inf
        bad = debug.find_bad_value(session, y, {x: [1.0, 0.0]})
        assert (bad.tensor, bad.kind, bad.op.type, bad.inputs) == ("logarithm:0", "Inf", "Log", ["x:0"])
        assert repr(bad) == "<BadValue logarithm:0 has Inf: Log(x:0)>"
        assert debug.find_bad_value(session, {"y": [y, "x:0"]}, {x: [1.0, 2.0]}) is None
        assert debug.find_bad_value(session, y, {x: [1.0, np.nan]}).tensor == "x:0"
        assert debug.find_bad_value(session, late, {x: [1.0, -1.0]}).kind == "NaN"
        before = len(session.graph.get_operations())
        assert debug.check_values() == 0 and len(session.graph.get_operations()) == before  # all have theirs


def test_it_sees_into_loops_branches_and_their_gradients():
    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    start = tf.placeholder(tf.float32, [], name="start")

    def body(i, value):
        grown = tf.multiply(value * v, 1e20, name="grown")
        return i + 1, tf.cond(i > 10, lambda: grown, lambda: tf.sqrt(value - 3.0, name="root") + grown)

    _, end = tf.while_loop(lambda i, value: i < 3, body, [0, start])
    _, flat = tf.while_loop(lambda i, value: i < 3, lambda i, value: (i + 1, tf.sqrt(value * v)), [0, start], name="flat")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(flat)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        bad = debug.find_bad_value(session, end, {start: 1.0})
        assert bad.tensor.endswith("root:0") and bad.kind == "NaN" and bad.op.type == "Sqrt"
        assert debug.find_bad_value(session, end, {start: 4.0}).tensor.endswith("grown:0")  # in the second iteration
        assert debug.find_bad_value(session, [flat, train], {start: 1.0}) is None
        v.load(0.5, session)
        bad = debug.find_bad_value(session, [flat, train], {start: 0.0})
        assert bad.tensor.startswith("gradients/flat/") and bad.op.type == "SqrtGrad"
        assert session.run(v) == 0.5  # the step has stopped


def test_what_is_left_out_may_be_infinite_and_other_errors_are_told():
    mask = tf.constant([0.0, -np.inf], name="mask")
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.nn.softmax(x + mask)
    with tf.Session() as session:
        assert debug.find_bad_value(session, y, {x: [1.0, 2.0]}, leave_out="^(mask|add)") is None
        with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed"):
            debug.find_bad_value(session, y)


def test_a_finalized_graph_is_refused():
    tf.sqrt(tf.sqrt(tf.placeholder(tf.float32)))
    tf.get_default_graph().finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        debug.check_values()
