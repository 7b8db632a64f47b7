# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v2: the names of TensorFlow 2 that 1.15 has, with their arguments and what they mean, in graphs."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import millrace as tf
from millrace import names

v2 = names.find("compat.v2")
LISTED = os.path.join(os.path.dirname(__file__), "arguments_of_2.txt")  # of 1.15.5: a name and its parameters, `...` where a default is no literal


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def of(path):
    value = v2
    for part in path.split("."):
        value = getattr(value, part)
    return value


def parameters(path):
    value = of(path)
    shown = []
    for p in inspect.signature(value).parameters.values():
        if p.name == "self":
            continue
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.default is not p.empty:
            plain = isinstance(p.default, (int, float, str, bool, type(None))) and type(p.default) in (int, float, str, bool, type(None))
            text += "=" + (repr(p.default) if plain else "...")
        shown.append(text)
    return shown


def test_arguments_are_those_of_2():
    wrong = []
    with open(LISTED, encoding="utf-8") as file:
        for line in file.read().splitlines():
            path, *wanted = line.split(" ")
            got = parameters(path)
            known = [(g, w) if "..." not in g + w else (g.partition("=")[0], w.partition("=")[0]) for g, w in zip(got, wanted)]
            if len(got) != len(wanted) or any(g != w for g, w in known):
                wrong.append("%s: got %s, wanted %s" % (path, got, wanted))
    assert wrong == []


def test_names_are_those_of_2():
    assert v2 is tf.compat.v2 and v2.compat.v1 is tf and v2.compat.v2 is v2 and v2.__version__ == tf.__version__ and v2.newaxis is None
    assert v2.add is tf.add and v2.math.log is tf.math.log and v2.keras.layers.Dense is tf.keras.layers.Dense and v2.errors is tf.errors
    assert [name for name in "placeholder Session get_variable contrib layers global_variables_initializer flags logging".split() if hasattr(v2, name)] == []
    assert v2.train.Checkpoint and not hasattr(v2.train, "AdamOptimizer") and not hasattr(v2.losses, "softmax_cross_entropy")
    assert {"Variable", "reduce_sum", "keras", "nn", "math"} <= set(dir(v2)) and "placeholder" not in dir(v2)
    with pytest.raises(AttributeError, match=r"tf.compat.v2.placeholder is not provided by Millrace: look for tf.compat.v1.placeholder"):
        v2.placeholder
    with pytest.raises(NotImplementedError, match=r"tf.compat.v2.saved_model.save is not provided: use tf.saved_model.Builder"):
        v2.saved_model.save
    with pytest.raises(NotImplementedError, match=r"tf.compat.v2.estimator.DNNClassifier is not provided yet: use tf.compat.v1.estimator.DNNClassifier"):
        v2.estimator.DNNClassifier([1], [])
    with pytest.raises(NotImplementedError, match="graphs and sessions"):
        v2.enable_v2_behavior()


def test_imports():
    program = """
from millrace.compat import imports
imports.install()
import tensorflow as tf
import tensorflow.compat.v2 as tf2
import tensorflow.compat.v2.compat.v1 as tf1
from tensorflow.compat import v2
from tensorflow.compat.v2 import keras
from tensorflow.compat.v2.keras.layers import LSTM
import tensorflow.compat.v2.keras.applications.resnet
import tensorflow.compat.v1.compat.v2.nn as nn
from tensorflow.python.ops import math_ops, control_flow_ops
assert tf2.reduce_sum is v2.reduce_sum is tf.compat.v2.reduce_sum is not tf.reduce_sum and tf1.placeholder is tf.placeholder
assert LSTM is keras.layers.LSTM is not tf.keras.layers.LSTM and nn.softmax is tf2.nn.softmax and tf1.compat.v2.nn.softmax is nn.softmax
assert control_flow_ops.while_loop_v2 is tf2.while_loop and math_ops.argmax_v2 is tf2.argmax
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_reductions_take_an_axis_and_keepdims():
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert run(v2.reduce_sum(x, 1, True)).tolist() == [[3], [7]] and run(v2.math.reduce_max(x, keepdims=True)).tolist() == [[4]]
    assert run(v2.argmax(x, 0, tf.int32)).tolist() == [1, 1] and run(v2.math.confusion_matrix([0, 1], [1, 1], 2, [2, 3])).tolist() == [[0, 2], [0, 3]]
    np.testing.assert_allclose(run(v2.norm(x, axis=1, keepdims=True)), [[np.sqrt(5)], [5]], rtol=1e-6)
    with pytest.raises(TypeError, match="reduction_indices"):
        v2.reduce_sum(x, reduction_indices=1)
    with pytest.raises(TypeError, match="missing a required argument: 'axis'"):
        v2.expand_dims(x)
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert run(v2.reduce_sum(ragged, axis=1)).tolist() == [3, 3]


def test_variables_are_handles():
    variable, older = v2.Variable(1.0, name="v"), tf.Variable(1.0)
    assert variable.op.type == "VarHandleOp" and variable.name == "v:0" and older.op.type == "VariableV2"
    assert isinstance(older, v2.Variable) and isinstance(variable, tf.Variable) and issubclass(tf.Variable, v2.Variable) and not isinstance(1, v2.Variable)
    assert [v is variable for v in tf.trainable_variables()] == [True, False]
    with pytest.raises(TypeError, match="use_resource"):
        v2.Variable(1.0, use_resource=False)

    class Mine(v2.Variable):
        pass

    assert isinstance(Mine(2.0), Mine) and not isinstance(variable, Mine)
    assert run([variable, variable + older]) == [1, 2]


def test_scopes():
    again = v2.name_scope("a")
    with again as outer:
        first = tf.constant(1).name
        with again as inner:
            second = tf.constant(1).name
    with again as other:
        pass
    assert (outer, first, inner, second, other, again.name) == ("a/", "a/Const:0", "a/a/", "a/a/Const:0", "a_1/", "a")
    with pytest.raises(ValueError, match="name for name_scope must be a string, got None"):
        v2.name_scope(None)
    with pytest.raises(RuntimeError, match="tf.device does not support functions"):
        v2.device(lambda op: "/cpu:0")
    with v2.device("/cpu:0"):
        assert tf.constant(1).device == "/device:CPU:0"


def test_results_keep_their_structure():
    yes = tf.constant(True)
    assert isinstance(v2.cond(yes, lambda: [tf.constant(1)], lambda: [tf.constant(2)]), list)
    assert isinstance(v2.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)]), list)
    assert not isinstance(tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)]), list)
    assert run(v2.where([[True], [False]], 1, [5, 6])).tolist() == [[1, 1], [5, 6]]
    made = v2.while_loop(lambda i: i < 9, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=4)
    assert run(made) == [4]


def test_sparse_tensors_and_strings():
    sparse = tf.SparseTensor([[0, 0], [1, 1]], [3, 4], [2, 2])
    largest = run(v2.sparse.reduce_max(sparse, 1, output_is_sparse=True))
    assert largest.values.tolist() == [3, 4] and largest.indices.tolist() == [[0], [1]]
    assert run(v2.sparse.reduce_sum(sparse, 1, True)).tolist() == [[3], [4]]
    assert run(v2.sparse.add(sparse, sparse)).values.tolist() == [6, 8] and run(v2.sparse.concat(0, [sparse, sparse])).dense_shape.tolist() == [4, 2]
    assert run(v2.strings.split(["a b", "c"])).to_list() == [[b"a", b"b"], [b"c"]]
    assert run(v2.strings.length(["\u00e9"], "UTF8_CHAR")).tolist() == [1] and run(v2.strings.substr("abc", 1, 1, "BYTE")) == b"b"
    assert run(v2.strings.to_number(["1"], tf.int32)).tolist() == [1] and run(v2.strings.reduce_join([["a", "b"]], 1, True, "-")).tolist() == [[b"a-b"]]
    assert run(v2.io.decode_raw(["abcd"], tf.uint8, True, 4)).tolist() == [[97, 98, 99, 100]]
    assert [int(v[0]) for v in run(v2.io.decode_csv(["1,NA"], [[0], [0]], ",", True, "NA"))] == [1, 0]
    made = v2.io.parse_example([b""], {"a": tf.FixedLenFeature([], tf.int64, 3)}, ["n"])
    assert run(made)["a"].tolist() == [3]


def test_networks():
    image = np.ones([1, 4, 4, 1], np.float32)
    filters = np.ones([2, 2, 1, 1], np.float32)
    assert run(v2.nn.conv2d(image, filters, 1, "VALID", dilations=3)).reshape(-1).tolist() == [4]
    assert run(v2.nn.conv2d(image, filters, 1, "VALID", dilations=None)).shape == run(v2.nn.convolution(image, filters)).shape == (1, 3, 3, 1)
    assert run(v2.nn.conv1d(image[:, 0], filters[0], 1, "VALID", dilations=2)).reshape(-1).tolist() == [2, 2]
    assert run(v2.nn.conv3d(np.ones([1, 2, 2, 2, 1], np.float32), np.ones([2, 2, 2, 1, 1], np.float32), [1] * 5, "VALID")).reshape(-1).tolist() == [8]
    assert v2.nn.depthwise_conv2d(image, filters, [1] * 4, "VALID", dilations=[2, 2]).shape == [1, 2, 2, 1]
    assert v2.nn.pool(image, [2, 2], "MAX", [2, 2]).shape == v2.nn.avg_pool2d(image, 2, 2, "VALID").shape == [1, 2, 2, 1]
    assert [t.dtype for t in v2.nn.max_pool_with_argmax(image, 2, 2, "VALID")] == [tf.float32, tf.int64]
    nine = np.arange(9.0).reshape(1, 3, 3, 1)
    assert run(v2.nn.erosion2d(nine, np.zeros([2, 2, 1]), [1] * 4, "VALID", "NHWC", [1] * 4)).reshape(-1).tolist() == [0, 1, 3, 4]
    with pytest.raises(ValueError, match="Data formats other than NHWC are not yet supported, got 'NCHW'"):
        v2.nn.dilation2d(nine, np.zeros([2, 2, 1]), [1] * 4, "VALID", "NCHW", [1] * 4)
    assert run(v2.math.in_top_k([1], [[0.0, 1.0]], 1)).tolist() == [True]
    labels = tf.constant([[0.0, 1.0]])
    loss = v2.nn.softmax_cross_entropy_with_logits(labels, [[1.0, 2.0]])
    np.testing.assert_allclose(run(loss), [0.3132617], rtol=1e-5)
    assert tf.gradients(loss, labels)[0] is not None  # which those of 1.x stop
    blocks = v2.batch_to_space(np.arange(4).reshape(4, 1, 1, 1), 2, [[0, 0], [0, 0]])
    assert run(blocks).reshape(-1).tolist() == [0, 1, 2, 3]
    assert run(v2.space_to_batch(np.arange(4).reshape(1, 2, 2, 1), [2, 1], [[0, 0], [0, 0]])).tolist() == [[[[0], [1]]], [[[2], [3]]]]
    begin, size, boxes = v2.image.sample_distorted_bounding_box([4, 4, 1], [[[0.0, 0.0, 1.0, 1.0]]], 3)
    assert begin.op.get_attr("seed") == 87654321 and begin.op.get_attr("seed2") == 3 and boxes.shape == [1, 1, 4] and size.shape == [3]
    assert run(v2.image.resize(image, [8, 8])).shape == (1, 8, 8, 1) and v2.image.ResizeMethod.BILINEAR == "bilinear"


def test_numbers_and_names():
    assert v2.math.bincount([1, 1], name="n").name == "n/Bincount:0" and tf.math.bincount([1]).name == "bincount/Bincount:0"
    assert run(v2.random.poisson([3], [0.0, 0.0])).shape == (3, 2)
    assert v2.convert_to_tensor(1, None, tf.float64).dtype == tf.float64
    zero = v2.gradients(tf.constant(1.0), [tf.constant(1.0)], unconnected_gradients="zero")
    assert run(zero) == [0]
    v2.random.set_seed(3)
    assert tf.get_default_graph().seed == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="^msg"):
        v2.debugging.assert_none_equal([1], [1], 5, "msg")
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had NaN values"):
        run(v2.debugging.assert_all_finite([float("nan")], "bad"))


def test_layers_and_initializers():
    assert v2.initializers.GlorotUniform(seed=1)([2, 2], tf.float64).dtype == tf.float64 and v2.ones_initializer()([2]).dtype == tf.float32
    assert v2.random_normal_initializer().stddev == 0.05 and v2.keras.initializers.zeros is v2.initializers.Zeros is v2.zeros_initializer
    assert v2.losses.Reduction is v2.keras.losses.Reduction and v2.losses.Reduction.all() == ("auto", "none", "sum", "sum_over_batch_size")
    assert v2.keras.layers.LSTM(2).recurrent_activation.__name__ == "sigmoid" and v2.keras.layers.GRU(2).reset_after
    assert v2.keras.layers.BatchNormalization is not tf.keras.layers.BatchNormalization
    assert issubclass(v2.keras.layers.BatchNormalization, tf.keras.layers.BatchNormalization)
