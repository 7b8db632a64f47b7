# SPDX-License-Identifier: Apache-2.0
"""Graphs as ONNX models. Values are compared where onnxruntime can be had: importable here, or by the Python that MILLRACE_ONNX_PYTHON names."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import millrace as tf
from millrace import onnx
from millrace.cli import main
from millrace.onnx import messages
from millrace.ops import gen_ops

_PYTHON = os.environ.get("MILLRACE_ONNX_PYTHON") or (sys.executable if importlib.util.find_spec("onnxruntime") else None)
_CASES = {}


def case(*shapes, dtype=np.float32, low=-2.0, high=2.0, batch=True, close=1e-5):
    """A graph of placeholders with these shapes (the first dimension unknown unless batch=False)."""

    def register(function):
        _CASES[function.__name__] = (function, shapes, dtype, low, high, batch, close)
        return function

    return register


def _weights(*shape):
    return ((np.random.RandomState(sum(shape)).rand(*shape) - 0.5) / np.sqrt(shape[-1])).astype(np.float32)


def _build(name):
    function, shapes, dtype, low, high, batch, _ = _CASES[name]
    random = np.random.RandomState(len(name))
    with tf.Graph().as_default() as graph, tf.Session() as session:
        feeds = {}
        for i, shape in enumerate(shapes):
            holder = tf.placeholder(tf.as_dtype(dtype), [None, *shape[1:]] if batch else shape, name="x%d" % i)
            feeds[holder] = (random.uniform(low, high, shape)).astype(dtype)
        made = function(*feeds)
        outputs = [tf.identity(t, "out%d" % i) for i, t in enumerate(made if isinstance(made, (list, tuple)) else [made])]
        values = session.run(outputs, feeds)
        model = onnx.convert(graph.as_graph_def(), [t.name for t in outputs], [t.name for t in feeds], name)
    return model, {t.op.name: v for t, v in feeds.items()}, {t.op.name: v for t, v in zip(outputs, values)}


@case([2, 9, 11, 3])
def convolutions(x):
    same = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, _weights(3, 3, 3, 4), [1, 2, 2, 1], "SAME"), _weights(4)))
    valid = tf.nn.conv2d(same, _weights(2, 2, 4, 5), [1, 1, 1, 1], "VALID")
    dilated = tf.nn.conv2d(x, _weights(3, 3, 3, 2), [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1])
    strided = tf.nn.conv2d(tf.slice(x, [0, 0, 0, 0], [2, 9, 11, 3]), _weights(2, 3, 3, 2), [1, 2, 3, 1], "SAME", dilations=[1, 2, 2, 1])
    both = tf.concat([same, tf.nn.relu(same)], 3)
    return [
        valid,
        both,
        tf.concat([dilated, tf.tanh(dilated)], 1),
        dilated,
        strided + same[:, :5, :4, :2],
        (dilated + _weights(2)) * dilated - 0.5,
        tf.nn.depthwise_conv2d(x, _weights(3, 3, 3, 2), [1, 2, 2, 1], "SAME"),
    ]


@case([2, 6, 7, 3], batch=False)
def transposed_convolutions(x):
    same = tf.nn.conv2d_transpose(x, _weights(3, 3, 4, 3), [2, 12, 13, 4], [1, 2, 2, 1], "SAME")
    return [same, tf.nn.conv2d_transpose(x, _weights(3, 2, 4, 3), [2, 14, 14, 4], [1, 2, 2, 1], "VALID")]


@case([1, 4, 5, 6, 2])
def volumes(x):
    return tf.nn.max_pool3d(tf.nn.conv3d(x, _weights(2, 3, 2, 2, 3), [1, 1, 2, 1, 1], "SAME"), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")


@case([2, 9, 8, 3])
def pools(x):
    return [
        tf.nn.max_pool(x, [1, 3, 2, 1], [1, 2, 2, 1], "SAME"),
        tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
        tf.nn.avg_pool(tf.nn.relu6(x * 4.0), [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    ]


@case([2, 5, 4, 6])
def norms_of_images(x):
    fused = tf.nn.fused_batch_norm(x, _weights(6), _weights(6), mean=_weights(6), variance=np.abs(_weights(6)), is_training=False)[0]
    return [fused, tf.nn.lrn(x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.6), tf.nn.l2_normalize(x, 3)]


@case([3, 4, 8], batch=False)
def images(x):
    four = tf.expand_dims(x, 0)
    resized = (
        tf.image.resize_bilinear(four, [7, 9]),
        tf.image.resize_bilinear(four, [7, 9], align_corners=True),
        tf.image.resize_nearest_neighbor(four, [6, 12]),
    )
    deep = tf.space_to_depth(tf.image.resize_nearest_neighbor(four, [6, 8]), 2)
    return [*resized, deep, tf.depth_to_space(deep, 2), tf.depth_to_space(four, 2)]


@case([4, 10])
def dense_layers(x):
    h = tf.nn.elu(tf.matmul(x, _weights(10, 7)) + _weights(7))
    return [tf.nn.softmax(tf.matmul(h, _weights(5, 7), transpose_b=True)), tf.nn.log_softmax(h), tf.matmul(h, h, transpose_a=True)]


@case([2, 3, 4], [2, 4, 5])
def batches_of_products(a, b):
    return [tf.matmul(a, b), tf.matmul(b, a, transpose_a=True, transpose_b=True)]


@case([5, 6])
def activations(x):
    return [f(x) for f in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.sigmoid, tf.tanh, tf.nn.leaky_relu, tf.erf)]


@case([5, 6], low=0.1, high=0.9)
def functions(x):
    names = (
        "abs negative exp log log1p expm1 sqrt rsqrt square reciprocal floor ceil round sign sin cos tan asin acos atan sinh cosh asinh atanh "
        "zeros_like ones_like identity stop_gradient is_nan"
    ).split()
    return [getattr(tf, n)(x * (3.0 if n in ("floor", "ceil", "round") else 1.0)) for n in names] + [tf.acosh(x + 1.5)]


@case([4, 6], [4, 6])
def pairs(a, b):
    names = "add subtract multiply divide maximum minimum squared_difference floordiv floormod greater greater_equal less less_equal equal not_equal".split()
    return [getattr(tf, n)(a, b) for n in names] + [
        tf.pow(tf.abs(a) + 0.5, b),
        tf.where(a > b, a, b),
        tf.where(a[:, 0] > 0, a, b),
        tf.add_n([a, b, a]),
        tf.logical_and(a > 0, tf.logical_or(b > 0, tf.logical_not(a > 1))),
    ]


@case([4, 6], [4, 6], dtype=np.int32, low=1, high=9)
def integers(a, b):
    return [a + b, (a - 5) // b, (a - 5) % b, gen_ops.div(a - 5, b), tf.cast(a, tf.float32) / 2.0, tf.cast(a - b, tf.int64), tf.maximum(a, b), -a]


@case([4, 6, 5])
def shapes(x):
    flat = tf.reshape(x, [-1, 30])
    return [
        flat,
        tf.reshape(x, tf.stack([tf.shape(x)[0], 5, 6])),
        tf.transpose(x, [2, 0, 1]),
        tf.expand_dims(x, 1),
        tf.squeeze(tf.expand_dims(x, -1), [-1]),
        tf.concat([x, x * 2.0], 1),
        tf.stack([x, x], axis=1),
        *tf.unstack(x, axis=2)[:2],
        *tf.split(x, 3, axis=1),
        *tf.split(x, [1, 4], axis=2),
        tf.shape(x),
        tf.size(x),
        tf.rank(x),
        tf.tile(x, [1, 2, 1]),
        tf.pad(x, [[0, 0], [1, 2], [0, 3]]),
        tf.pad(x, [[0, 0], [1, 2], [0, 3]], constant_values=7.0),
        tf.pad(x, [[0, 0], [1, 2], [0, 3]], mode="REFLECT"),
        tf.fill([2, 3], 1.5) + x[0, 0, 0],
        tf.range(tf.shape(x)[0]),
        tf.broadcast_to(x[:1, :, :1], [3, 6, 4]),
    ]


@case([5, 6, 7])
def slices(x):
    return [
        x[1:3],
        x[:, -2:],
        x[..., 2],
        x[0],
        x[-1],
        x[:, 1:5:2],
        x[:, ::-1],
        x[:, tf.newaxis, 2:, ...],
        x[..., tf.newaxis],
        x[:, -1, tf.newaxis, 3],
        tf.slice(x, [1, 0, 2], [-1, 3, 4]),
        x[1:, 2:-1, -3],
    ]


@case([4, 5, 6])
def reductions(x):
    kinds = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
    return [f(x, *a, **k) for f in kinds for a, k in (((), {}), (([1],), {}), (([0, 2],), {"keepdims": True}), ((-1,), {}))] + [
        tf.argmax(x, 1),
        tf.argmin(x, -1, output_type=tf.int32),
        tf.reduce_all(x > -1.9, 1),
        tf.reduce_any(x > 1.5),
        tf.nn.l2_loss(x),
        tf.cumsum(x, 1),
        tf.cumsum(x, 2, exclusive=True, reverse=True),
        *tf.nn.top_k(x, 3),
    ]


@case([4, 3], dtype=np.int32, low=0, high=9)
def lookups(ids):
    table = _weights(9, 5)
    return [
        tf.nn.embedding_lookup(table, ids),
        tf.gather(table, ids[0] % 5, axis=1),
        tf.one_hot(ids, 9),
        tf.one_hot(ids, 9, on_value=2.0, off_value=-1.0, axis=1),
        tf.gather_nd(table, tf.stack([ids, ids % 5], axis=-1)),
    ]


@case([3, 12, 12, 1])
def small_net(x):
    h = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, _weights(5, 5, 1, 8), [1, 1, 1, 1], "SAME") + _weights(8)), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.reshape(h, [-1, 6 * 6 * 8])
    return tf.nn.softmax(tf.matmul(h, _weights(288, 10)) + _weights(10))


@pytest.mark.parametrize("name", sorted(_CASES))
def test_a_model_hangs_together(name):
    model, feeds, values = _build(name)
    read = messages.ModelProto.FromString(model.SerializeToString())
    known = {i.name for i in read.graph.input} | {t.name for t in read.graph.initializer}
    assert {i.name for i in read.graph.input} == set(feeds) and [o.name for o in read.graph.output] == list(values)
    for node in read.graph.node:
        assert {i for i in node.input if i} <= known, node
        assert not known & set(node.output), node
        known |= set(node.output)
    assert set(values) <= known and read.opset_import[0].version == 17


_RUN = """
import sys, numpy, onnx, onnxruntime
for name in sys.argv[2:]:
    path = "%s/%s" % (sys.argv[1], name)
    onnx.checker.check_model(onnx.load(path + ".onnx"), full_check=True)
    session = onnxruntime.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"])
    feeds = dict(numpy.load(path + ".in.npz"))
    numpy.savez(path + ".out.npz", **dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds))))
"""


@pytest.mark.skipif(_PYTHON is None, reason="skipped: no onnxruntime (MILLRACE_ONNX_PYTHON)")
@pytest.mark.parametrize("name", sorted(_CASES))
def test_onnxruntime_gives_the_same(name, tmp_path):
    model, feeds, values = _build(name)
    (tmp_path / (name + ".onnx")).write_bytes(model.SerializeToString())
    np.savez(tmp_path / (name + ".in.npz"), **feeds)
    ran = subprocess.run(
        [_PYTHON, "-c", _RUN, str(tmp_path), name], capture_output=True, text=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    got = np.load(tmp_path / (name + ".out.npz"))
    for key, want in values.items():
        assert got[key].dtype == want.dtype and got[key].shape == want.shape, (key, got[key].dtype, want.dtype, got[key].shape, want.shape)
        np.testing.assert_allclose(got[key], want, rtol=_CASES[name][6], atol=_CASES[name][6], err_msg=key)


def test_images_are_not_turned_between_layers():
    model, _, _ = _build("small_net")
    kinds = [n.op_type for n in model.graph.node]
    assert kinds.count("Transpose") == 2  # into the net, and out before the dense layer


def test_what_has_no_counterpart_is_named():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        tf.identity(tf.digamma(x, name="special") + gen_ops.betainc(x, x, x, name="beta"), name="y")
    with pytest.raises(NotImplementedError, match=r"no counterpart in ONNX for Betainc \('beta'\); Digamma \('special'\)"):
        onnx.convert(graph.as_graph_def(), ["y"])
    with tf.Graph().as_default() as graph:
        tf.identity(tf.get_variable("w", [3]), name="y")
    with pytest.raises(ValueError, match="reads the variables 'w': freeze it first"):
        onnx.convert(graph.as_graph_def(), ["y"])
    with tf.Graph().as_default() as graph:
        a, b = tf.placeholder(tf.float32, [2], name="a"), tf.placeholder(tf.float32, [2], name="b")
        tf.add(a, b, name="y")
    with pytest.raises(ValueError, match="need 'b', which are not among the inputs"):
        onnx.convert(graph.as_graph_def(), ["y"], ["a"])
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        tf.transpose(x, tf.placeholder(tf.int32, [2], name="order"), name="y")
    with pytest.raises(NotImplementedError, match="the order of 'y' \\(Transpose\\) is computed by 'order:0'"):
        onnx.convert(graph.as_graph_def(), ["y"])


def test_the_program_writes_models(tmp_path, capsys):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="in")
        y = tf.nn.relu(tf.matmul(x, tf.get_variable("w", [3, 2])), name="out")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"features": x}, {"scores": y})
    assert main(["convert", str(tmp_path / "model"), str(tmp_path / "m.onnx"), "--json"]) == 0
    graph = messages.ModelProto.FromString((tmp_path / "m.onnx").read_bytes()).graph
    assert [i.name for i in graph.input] == ["features"] and [o.name for o in graph.output] == ["scores"] and graph.name == "m"
    assert [n.op_type for n in graph.node] == ["MatMul", "Relu", "Identity"]
    assert main(["convert", str(tmp_path / "model"), str(tmp_path / "n.onnx"), "--output", "out", "--input", "in"]) == 0
    assert main(["convert", str(tmp_path / "model"), str(tmp_path / "m.onnx")]) == 2
    assert "--overwrite" in capsys.readouterr().err
