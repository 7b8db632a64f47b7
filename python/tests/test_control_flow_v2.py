# SPDX-License-Identifier: Apache-2.0
"""Conditionals and loops as one operation each: tensorflow.python.ops.cond_v2 and while_v2, and tf.enable_control_flow_v2."""

import pytest

import millrace as tf
from millrace import names

cond_v2 = names.find("python.ops.cond_v2")
while_v2 = names.find("python.ops.while_v2")


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


@pytest.fixture
def functional():
    tf.enable_control_flow_v2()
    yield
    tf.disable_control_flow_v2()


@pytest.mark.parametrize("pred, values, by_x, by_y", [(True, (6.0, 3.0), 3.0, 3.0), ([[False]], (2.0, 9.0), 1.0, 3.0)])
def test_branches_and_their_gradients(pred, values, by_x, by_y):
    p, x, y = tf.placeholder(tf.bool), tf.constant(2.0), tf.constant(3.0)
    made = cond_v2.cond_v2(p, lambda: (x * y, y), lambda: (x, y * 3), name="chosen")
    call = made[0].op.inputs[0].op
    assert (call.type, call.name) == ("StatelessIf", "chosen") and made[0].op.name == "chosen/Identity"
    assert call.get_attr("then_branch").name.startswith("chosen_true_")
    assert run([made, tf.gradients(made, [x, y])], {p: pred}) == [values, [by_x, by_y]]


def test_branches_with_a_state_and_inner_ones():
    v = tf.get_variable("v", initializer=2.0, use_resource=True)
    p = tf.placeholder(tf.bool)
    made = cond_v2.cond_v2(p, lambda: cond_v2.cond_v2(p, lambda: v * 2, lambda: v), lambda: tf.identity(1.0))
    assert made.op.inputs[0].op.type == "If" and made.op.name == "cond/Identity_1"  # a branch has an Identity
    assert run([made], {p: True}) == [4] and run([made], {p: False}) == [1]


def test_second_derivatives():
    p, x = tf.placeholder(tf.bool), tf.constant(3.0)
    (first,) = tf.gradients(cond_v2.cond_v2(p, lambda: x**3, lambda: x), x)
    second = tf.gradients(first, x)
    assert run([first, second], {p: True}) == [27, [18]] and run([first, second], {p: False}) == [1, [0]]


def test_second_derivatives_of_loops_one_after_the_other():
    x = tf.constant(2.0)

    def square(limit, v):
        return while_v2.while_loop(lambda v: v < limit, lambda v: v * v, [v], return_same_structure=False)

    (slope,) = tf.gradients(square(16.0, square(4.0, x)), x)
    assert run([slope, tf.gradients(slope, x)[0]]) == [32.0, 48.0]


def test_names_of_a_body_beside_those_of_the_caller():
    drawn = cond_v2.cond_v2(tf.placeholder_with_default(True, []), lambda: tf.random_uniform([]), lambda: tf.random_uniform([]))
    assert drawn.op.name == "cond/Identity" and 0 <= run(drawn) < 1


def test_shapes_and_structures_of_branches():
    p = tf.placeholder(tf.bool)
    made = cond_v2.cond_v2(p, lambda: {"a": tf.zeros([2, 3])}, lambda: {"a": tf.zeros([2, 4])})
    assert made["a"].shape.as_list() == [2, None]
    with pytest.raises(TypeError, match="same number, type, and overall structure of return values"):
        cond_v2.cond_v2(p, lambda: (1.0, 2.0), lambda: ((1.0,), 2.0))
    with pytest.raises(TypeError, match="overall structure"):
        cond_v2.cond_v2(p, lambda: 1.0, lambda: 1)
    with pytest.raises(TypeError, match="pred must not be a Python bool"):
        cond_v2.cond_v2(True, lambda: 1.0, lambda: 1.0)


def test_what_waits_for_an_operation_outside():
    v = tf.Variable(1.0)
    change = v.assign_add(1.0)

    def branch():
        with tf.control_dependencies([change]):
            return tf.constant(1.0)

    made = cond_v2.cond_v2(tf.placeholder_with_default(False, None), branch, lambda: 2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(made) == 2 and session.run(v) == 2


def test_loops_and_their_gradients():
    x, y = tf.constant(5.0), tf.constant(3.0)
    made = while_v2.while_loop(lambda v, w: v < 45, lambda v, w: (v * w, v + w), [x, y])
    assert made[0].name == "while/Identity_2:0" and made[0].op.inputs[0].op.type == "StatelessWhile" and made[0].op.inputs[0].op.name == "while"
    assert run([made, tf.gradients(made[0], [x, y])]) == [[120, 23], [39, 55]]
    reads = while_v2.while_loop(lambda v: v + y < 30, lambda v: v * y, [x], return_same_structure=False)
    assert run([reads, tf.gradients(reads, [x, y])]) == [45, [9, 30]]
    bounded = while_v2.while_loop(lambda v: True, lambda v: v * y, [x], maximum_iterations=3)
    assert run([bounded, tf.gradients(bounded, [x, y])]) == [[135], [27, 135]]


def test_shapes_of_loops():
    with pytest.raises(TypeError, match="Loop var .* enters the loop with type .*float32.* but has type .*float16.* after 1 iteration"):
        while_v2.while_loop(lambda x: x < 10, lambda x: tf.cast(x, tf.float16) + 1, [1.0])
    grows = [lambda x: tf.size(x) < 5, lambda x: tf.concat([x, x], 0), [tf.constant([1.0])]]
    with pytest.raises(ValueError, match=r"enters the loop with shape \(1,\), but has shape \(2,\) after one iteration"):
        while_v2.while_loop(*grows)
    (made,) = while_v2.while_loop(*grows, shape_invariants=[tf.TensorShape([None])])
    assert made.shape.as_list() == [None] and run(made).tolist() == [1] * 8


def test_enable_control_flow_v2(functional):
    assert tf.control_flow_v2_enabled()
    x = tf.constant(2.0)
    chosen = tf.cond(x > 1, lambda: x * 2, lambda: x)
    looped = tf.while_loop(lambda v: v < 9, lambda v: tf.cond(v > 3, lambda: v * v, lambda: v + 1), [x])
    assert chosen.op.inputs[0].op.type == "StatelessIf" and looped.op.inputs[0].op.type == "StatelessWhile"
    assert run([chosen, looped, tf.gradients(chosen, x), tf.gradients(looped, x)]) == [4, 16, [2], [8]]
    array = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, i * i)), [0, tf.TensorArray(tf.int32, 3)])[1].stack()
    assert run(array).tolist() == [0, 1, 4]


def test_disable_control_flow_v2():
    assert not tf.control_flow_v2_enabled()
    assert tf.cond(tf.placeholder(tf.bool), lambda: 1.0, lambda: 2.0).op.type == "Merge"


@pytest.mark.parametrize("what", ["reshape", "fill", "random_uniform", "random_poisson"])
def test_shapes_in_a_body_follow_from_constants_outside(what):
    shape = tf.constant([3, 4])
    made = {
        "reshape": lambda u, size: tf.reshape(tf.reshape(u, [-1]), size),
        "fill": lambda u, size: tf.fill(size, 1.0),
        "random_uniform": lambda u, size: tf.random_uniform(size),
        "random_poisson": lambda u, size: tf.random_poisson(1.0, size),
    }[what]

    def body(i, u):
        u = made(u, tf.concat([[5], shape], axis=0))
        assert u.shape.as_list() == [5, 3, 4]
        return i + 1, u

    assert run(while_v2.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([5, 3, 4])])[1]).shape == (5, 3, 4)
