# SPDX-License-Identifier: Apache-2.0
"""Conditionals and loops whose parts are Python functions."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import control_flow_ops


def test_cond_and_loops_have_values_and_gradients():
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: x * 2, lambda: x - 1)
    _, power = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, 1.0])
    mapped = tf.map_fn(lambda v: v * v, tf.constant([1.0, 2.0]))
    summed = tf.scan(lambda a, v: a + v, tf.constant([1.0, 2.0, 3.0]))
    with tf.Session() as session:
        assert session.run([y, power] + tf.gradients(power, x), {x: 2.0}) == [4.0, 32.0, 80.0]
        assert session.run(y, {x: -2.0}) == -3.0
        np.testing.assert_array_equal(session.run(mapped), [1, 4])
        np.testing.assert_array_equal(session.run(summed), [1, 3, 6])


def test_errors_in_a_body_are_the_programs_own():
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(ZeroDivisionError):
        tf.cond(x > 0, lambda: x / (1 // 0), lambda: x)
    assert tf.Session().run(x + 1, {x: 1}) == 2


@pytest.mark.parametrize("cell", ["BasicLSTMCell", "GRUCell", "LSTMCell", "BasicRNNCell"])
def test_recurrent_networks_train_and_stop_at_the_lengths(cell):
    inputs = tf.placeholder(tf.float32, [4, 5, 3])
    outputs, _ = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, cell)(6), inputs, sequence_length=[1, 2, 3, 5], dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs - 1))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    value = np.random.RandomState(0).randn(4, 5, 3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made, before, _ = session.run([outputs, loss, train], {inputs: value})
        assert made[0, 0].any() and not made[0, 1:].any()
        assert session.run(loss, {inputs: value}) < before


def test_lookups_inside_a_conditional_inside_a_loop_have_gradients():
    table = tf.Variable(tf.ones([5, 2]))

    def body(i, a):
        row = tf.cond(tf.equal(i, 0), lambda: tf.zeros([3, 2]), lambda: tf.nn.embedding_lookup(table, tf.argmax(a, 1)))
        return i + 1, a + row

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, tf.ones([3, 2])])
    (gradient,) = tf.gradients(a, table)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(gradient)), [[6, 6]] + [[0, 0]] * 4)


def test_conditions_that_are_known_choose_when_the_graph_is_built():
    def never():
        raise AssertionError("called")

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [])
        assert session.run(control_flow_ops.smart_cond(tf.constant(True), lambda: tf.constant(1), never)) == 1
        made = control_flow_ops.smart_case([(x > 1, lambda: tf.constant(1)), (False, never), (True, lambda: tf.constant(3))], never)
        assert [session.run(made, {x: n}) for n in (2, 0)] == [1, 3]
        assert session.run(control_flow_ops.smart_case([(False, never)], lambda: tf.constant(5))) == 5
        assert control_flow_ops.smart_constant_value(x > 1) is None
        with pytest.raises(TypeError, match="1 or 0"):
            control_flow_ops.smart_cond(2, never, never)
        with pytest.raises(TypeError, match="true_fn"):
            control_flow_ops.smart_cond(True)


def test_elements_of_another_type_are_refused_by_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.TensorArray(tf.float32, 2)
        written = array.write(0, 3)
        assert written.flow.op.inputs[2].name == "TensorArrayWrite/value:0" and written.flow.op.inputs[2].dtype == tf.float32
        with pytest.raises(tf.errors.InvalidArgumentError, match="string"):
            session.run(tf.TensorArray(tf.float32, 2).write(0, "text").flow)


def test_tensors_of_a_loop_that_could_not_be_made_are_shown():
    kept = []

    def body(i):
        kept.extend([i, i + 1])
        raise RuntimeError("no body")

    with tf.Graph().as_default():
        with pytest.raises(RuntimeError, match="no body"):
            tf.while_loop(lambda i: i < 3, body, [0])
        assert [repr(t) for t in kept] == ["<tf.Tensor '(removed):0' dtype=int32, of a loop or branch that could not be made>"] * 2
        assert repr(kept[0].op) == "<tf.Operation '(removed)' type=(removed)>"


def test_an_array_says_which_type_it_does_not_take():
    flow = tf.TensorArray(tf.float32, 3).write(0, "text").flow
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float but Op is trying to write dtype string"):
        sess.run(flow)


def grown(*start, shapes=None, step=lambda x: tf.concat([x, x], 0)):
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, step(x)), [0, *start], shape_invariants=shapes)


def test_a_shape_that_changes_in_a_loop_is_told_of_with_its_variable():
    one, any_size = tf.ones([2], name="one"), tf.placeholder(tf.float32, [None], name="any")
    said = r"Input tensor 'one:0' enters the loop with shape \(2,\), but has shape %s after one iteration"
    for shapes, step, after in (
        (None, lambda x: tf.concat([x, x], 0), r"\(4,\)"),
        (None, lambda x: any_size, r"\(\?,\)"),
        ([tf.TensorShape([]), tf.TensorShape([None])], lambda x: x[tf.newaxis], r"\(1, \?\)"),
    ):
        with pytest.raises(ValueError, match=said % after):
            grown(one, shapes=shapes, step=step)


@pytest.mark.parametrize("shape", [tf.TensorShape([3]), tf.TensorShape([2, 2]), tf.TensorSpec([3], tf.float32)])
def test_a_loop_begins_within_its_invariants(shape):
    with pytest.raises(ValueError, match=r"specified for one:0 is not .* enters the loop with shape \(2,\), but the specified"):
        grown(tf.ones([2], name="one"), shapes=[tf.TensorShape([]), shape])
    with pytest.raises(ValueError, match="specified for TensorArray"):
        grown(tf.TensorArray(tf.float32, 2), shapes=[tf.TensorShape([]), tf.TensorShape([2])], step=lambda x: x)


def test_invariants_are_shapes_in_the_structure_of_the_variables():
    one = tf.ones([2])
    assert grown(one, shapes=[tf.TensorShape([]), None], step=lambda x: x)[1].shape == [2]  # None: as it begins
    for wrong in ([tf.TensorShape([]), [2]], [tf.TensorShape([])], tf.TensorShape([2])):
        with pytest.raises(ValueError, match="same nested structure"):
            grown(one, shapes=wrong)
    for wrong in ("a", 3):
        with pytest.raises(ValueError, match="must be a .possibly nested. list of shapes"):
            grown(one, shapes=[tf.TensorShape([]), wrong])


def test_a_body_returns_the_structure_that_it_takes():
    pair = [(tf.constant(1.0), tf.constant(2.0))]
    for result, error in ((lambda p: [p[0]], TypeError), (lambda p: list(p), TypeError), (lambda p: {"a": p[0], "b": p[1]}, TypeError)):
        with pytest.raises(error, match="same nested structure"):
            grown(*pair, step=result)
    with pytest.raises(ValueError, match="same nested structure"):
        grown({"a": tf.constant(1.0)}, step=lambda x: {"b": x["a"]})


def test_a_condition_is_a_function_and_gives_a_bool():
    with pytest.raises(TypeError, match="^cond must be callable"):
        tf.while_loop(3, lambda x: x, [1])
    with pytest.raises(TypeError, match="^body must be callable"):
        tf.while_loop(lambda x: x < 3, 3, [1])
    with pytest.raises(TypeError, match="bool"):
        tf.while_loop(lambda x: x, lambda x: x, [1.0])
