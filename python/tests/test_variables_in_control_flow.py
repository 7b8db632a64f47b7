# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and maps that read variables which they update. MILLRACE_TF_PYTHON names a Python that has TensorFlow."""

import os
import subprocess

import numpy as np
import pytest
import variable_programs

import millrace as tf

PYTHON = os.environ.get("MILLRACE_TF_PYTHON")
KINDS = pytest.mark.parametrize("use_resource", [False, True])


def _variable(name, value, use_resource):
    return tf.get_variable(name, initializer=tf.constant(value), use_resource=use_resource)


def _values(fetches, feed=None):
    with tf.control_dependencies(None):
        initializer = tf.global_variables_initializer()
    with tf.Session() as session:
        session.run(initializer)
        return session.run(fetches, feed)


@KINDS
def test_random_programs_give_what_python_gives(use_resource):
    for seed in range(60):
        assert variable_programs.wrong(tf, seed, use_resource) is None, seed


@pytest.mark.skipif(PYTHON is None, reason="MILLRACE_TF_PYTHON is not set")
@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_random_programs_mean_the_same_to_tensorflow(kind):
    program = os.path.join(os.path.dirname(__file__), "variable_programs.py")
    out = subprocess.run([PYTHON, program, "tensorflow.compat.v1", "0", "25", kind], stdout=subprocess.PIPE, timeout=300, check=True)
    assert out.stdout.decode().split("\n")[-2] == "0 of 25 programs are wrong"


@KINDS
def test_a_condition_reads_what_the_body_updates(use_resource):
    v = _variable("v", 0, use_resource)

    def body(i):
        with tf.control_dependencies([tf.assign_add(v, 1)]):
            return i + 1

    count = tf.while_loop(lambda i: tf.less(v, 10), body, [0], parallel_iterations=1)
    with tf.control_dependencies([count]):
        assert _values([count, v.read_value()]) == [10, 10]


@KINDS
def test_iterations_follow_each_other_where_nothing_else_orders_them(use_resource):
    v = _variable("v", 1.0, use_resource)

    def body(i, total):
        with tf.control_dependencies([tf.assign(v, v * 2.0)]):
            return i + 1, total + v.read_value()

    assert _values(tf.while_loop(lambda i, total: i < 4, body, [0, 0.0])) == (4, 30)


@KINDS
def test_branches_maps_and_scans_read_anew(use_resource):
    v, w, u = (_variable(n, 1.0, use_resource) for n in "vwu")
    p = tf.placeholder(tf.bool, [])

    def update():
        with tf.control_dependencies([tf.assign(v, v + 10.0)]):
            return tf.identity(v)

    def of(variable, x):
        with tf.control_dependencies([tf.assign_add(variable, x)]):
            return variable + 0.0

    fetches = [
        tf.cond(p, update, lambda: tf.identity(v)),
        tf.map_fn(lambda x: of(w, x), tf.constant([1.0, 2.0, 3.0]), parallel_iterations=1),
        tf.scan(lambda a, x: a + of(u, x), tf.constant([1.0, 2.0, 3.0]), 0.0, parallel_iterations=1),
    ]
    for truth, want in ((True, 11), (False, 1)):
        branch, mapped, scanned = _values(fetches, {p: truth})
        assert branch == want
        assert list(mapped) == [2, 4, 7]
        assert list(scanned) == [2, 6, 13]


@KINDS
def test_scatters_and_gathers_of_a_loop_see_each_other(use_resource):
    t = tf.get_variable("t", initializer=tf.zeros([4]), use_resource=use_resource)

    def body(i):
        with tf.control_dependencies([tf.scatter_add(t, [i], t.sparse_read([tf.maximum(i - 1, 0)]) + 1.0)]):
            return i + 1

    done = tf.while_loop(lambda i: i < 4, body, [0], parallel_iterations=1)
    with tf.control_dependencies([done]):
        assert list(_values(t.read_value())) == [1, 2, 3, 4]


@KINDS
@pytest.mark.parametrize(
    "optimizer, want", [(tf.train.GradientDescentOptimizer(0.1), [0.4096, 0.8192]), (tf.train.AdamOptimizer(0.1), [0.60394037, 1.6015062])]
)
def test_minimize_in_a_loop_takes_every_step(use_resource, optimizer, want):
    w = _variable("w", [1.0, 2.0], use_resource)

    def body(i):
        with tf.control_dependencies([optimizer.minimize(tf.reduce_sum(tf.square(w)))]):
            return i + 1

    done = tf.while_loop(lambda i: i < 4, body, [0], parallel_iterations=1)
    with tf.control_dependencies([done]):
        np.testing.assert_allclose(_values(w.read_value()), want, rtol=1e-6)


@KINDS
def test_gradients_use_the_value_that_each_iteration_read(use_resource):
    v = _variable("v", 1.0, use_resource)
    x = tf.constant(3.0)

    def body(i, a):
        with tf.control_dependencies([a]):
            updated = tf.assign_add(v, 1.0)
        with tf.control_dependencies([updated]):
            return i + 1, a * v.read_value() * x

    y = tf.while_loop(lambda i, a: i < 3, body, [0, 1.0])[1]
    assert _values([y, tf.gradients(y, x)[0]]) == [648, 648]


def test_a_product_with_one_keeps_the_value_from_before():
    v = tf.Variable(3.0)
    before = v * 1.0
    with tf.control_dependencies([before]):
        changed = tf.assign(v, 10.0)
    with tf.control_dependencies([changed]):
        assert _values([before + 1.0, v + 0.0]) == [4, 10]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("make", [lambda: tf.train.MomentumOptimizer(0.5, 0.5), lambda: tf.train.AdamOptimizer(0.5)])
def test_slots_of_an_update_in_a_branch_can_be_read(use_resource, make, tmp_path):
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=use_resource)
    optimizer, pred = make(), tf.placeholder(tf.bool, [])
    train = tf.cond(pred, lambda: tf.group(optimizer.minimize(tf.reduce_sum(v * v), var_list=[v])), tf.no_op)
    slots = [optimizer.get_slot(v, name) for name in optimizer.get_slot_names()]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {pred: False})
        assert not any(value.any() for value in session.run(slots))
        session.run(train, {pred: True})
        values = session.run(slots)
        assert all(value.any() for value in values)
        path = tf.train.Saver().save(session, str(tmp_path / "c"))
        np.testing.assert_array_equal(tf.train.load_variable(path, slots[0].op.name), values[0])
