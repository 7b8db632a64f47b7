# SPDX-License-Identifier: Apache-2.0
"""tf.load_op_library: functions, gradients, errors."""

import inspect
import os
import threading

import numpy as np
import pytest

import millrace as tf
from millrace.framework.function import Defun
from millrace.framework.load_library import snake_case

PLUGINS = os.path.join(os.path.dirname(os.path.abspath(tf.__file__)), "..", "..", "plugins")


def library(name):
    path = os.path.join(PLUGINS, "plugin_%s.so" % name)
    if not os.path.exists(path):
        pytest.skip("the build has no plugins")
    return path


@pytest.mark.parametrize(
    "op, function",
    [
        ("MatMul", "mat_mul"),
        ("TopKV2", "top_kv2"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("Mine>ZeroOut", "mine_zero_out"),
        ("LRNGrad", "lrn_grad"),
        ("Abs", "abs"),
    ],
)
def test_names_of_functions(op, function):
    assert snake_case(op) == function


def test_functions_of_a_library():
    ops = tf.load_op_library(library("tensorflow_kernels"))
    assert tf.load_op_library(library("tensorflow_kernels")) is ops
    assert [o.name for o in ops.OP_LIST.op if o.name == "PluginAxpy"] == ["PluginAxpy"]
    assert str(inspect.signature(ops.plugin_axpy)) == "(x, y, a=2.0, name=None)"
    assert list(inspect.signature(ops.plugin_attrs).parameters)[:3] == ["s", "i", "small"]
    z = ops.plugin_axpy([1.0, 2.0], [3.0, 4.0], name="z")
    assert z.op.type == "PluginAxpy" and z.op.name == "z" and z.shape.as_list() == [2] and z.op.get_attr("a") == 2.0
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(z), [5, 8])
        assert session.run(ops.plugin_sum(0.0, [[1.0, 2.0], [3.0]])) == 6
        with pytest.raises(tf.errors.DataLossError, match="nothing but losses(.|\n)*lossy(.|\n)*PluginFails"):
            session.run(ops.plugin_fails(1.0, name="lossy"))
    for call in (
        lambda: ops.plugin_axpy(1.0),
        lambda: ops.plugin_axpy(1.0, 2.0, b=3),
        lambda: ops.plugin_axpy([1], [2]),
        lambda: ops.plugin_axpy(1.0, 2.0, a="x"),
    ):
        with pytest.raises(TypeError, match=r"test_op_library\.py"):
            call()


def test_gradients_of_a_library_and_of_python():
    ops = tf.load_op_library(library("log_cosh"))
    x = tf.constant([3.0, -4.0], tf.float64)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.gradients(ops.log_cosh(x), x)[0]), np.tanh([3.0, -4.0]), rtol=1e-12)
    # within a loop: x <- log_cosh(x), three times
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, ops.log_cosh(v)), [0, x])
    with tf.Session() as session:
        value, dx = session.run([y, tf.gradients(y, x)[0]])
    v, d = np.float64([3.0, -4.0]), 1.0
    for _ in range(3):
        v, d = np.log(np.cosh(v)), d * np.tanh(v)
    np.testing.assert_allclose(value, v, rtol=1e-9)
    np.testing.assert_allclose(dx, d, rtol=1e-9)

    axpy = tf.load_op_library(library("tensorflow_kernels")).plugin_axpy
    with pytest.raises(LookupError, match="PluginAxpy"):
        tf.gradients(axpy(x, x), x)

    @tf.RegisterGradient("PluginAxpy")
    def gradient(op, dz):  # pylint: disable=unused-variable
        return op.get_attr("a") * dz, dz

    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.gradients(axpy(x, x, a=4.0), x)[0]), [5, 5])


@pytest.mark.parametrize(
    "name, error, why",
    [
        ("init_fails", tf.errors.UnavailableError, "not plugged in"),
        ("taken_name", tf.errors.AlreadyExistsError, "MatMul"),
        ("newer_version", tf.errors.FailedPreconditionError, "made for version 2"),
        ("nothing_here", tf.errors.InvalidArgumentError, "registers no op"),
    ],
)
def test_libraries_that_fail(name, error, why):
    path = library(name)
    for _ in range(2):
        with pytest.raises(error, match=why) as caught:
            tf.load_op_library(path)
        assert path in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere.so"):
        tf.load_op_library("/nowhere.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(tf.errors.NotFoundError, match="text.so"):
        tf.load_op_library(tmp_path / "text.so")
    with pytest.raises(OSError, match="does not exist"):
        tf.load_library(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    tf.load_library(str(tmp_path / "empty"))


def test_ops_of_a_library_in_other_places():
    """In functions, saved graphs, and several steps at a time."""
    ops = tf.load_op_library(library("log_cosh"))
    x = tf.placeholder(tf.float64, [None], name="x")

    @Defun(tf.float64)
    def twice(v):
        return ops.log_cosh(ops.log_cosh(v))

    y = tf.identity(twice(x), name="y")
    dx = tf.gradients(y, x)[0]
    graph_def = tf.get_default_graph().as_graph_def()
    v = np.float64([3, -4])
    inner = np.log(np.cosh(v))
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(y, {x: v}), np.log(np.cosh(inner)), rtol=1e-9)
        np.testing.assert_allclose(session.run(dx, {x: v}), np.tanh(inner) * np.tanh(v), rtol=1e-9)
        values = [None] * 4

        def step(i):
            values[i] = session.run(y, {x: np.full(50000, 0.5 + i)})

        threads = [threading.Thread(target=step, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for i in range(4):
        np.testing.assert_allclose(values[i], np.log(np.cosh(np.log(np.cosh(0.5 + i)))), rtol=1e-7)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        np.testing.assert_allclose(session.run("y:0", {"x:0": v}), np.log(np.cosh(inner)), rtol=1e-9)
