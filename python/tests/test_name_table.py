# SPDX-License-Identifier: Apache-2.0
"""The table of names and module paths: every row means something, and tells the truth about what is there."""

import inspect
import subprocess
import sys
import types
from unittest import mock

import pytest

import millrace as tf
from millrace import names
from millrace.ops import gen_ops


def test_every_row_resolves():
    for path, target in names.TABLE.items():
        found = names.find(path)
        assert target == "@" or found is not None or path == "compat.v2.newaxis", path
        if ":" not in target:
            assert isinstance(found, types.ModuleType), path
    for name in names.generated():  # no function of the package hides behind a row
        assert inspect.unwrap(getattr(tf, name)) is getattr(gen_ops, name), name


def test_listed_names_are_there():
    for listing, owner in [(dir(tf), tf), (dir(tf.math), tf.math), (dir(tf.io), tf.io), (dir(tf.contrib), tf.contrib), (dir(tf.python), tf.python)]:
        for name in listing:
            assert hasattr(owner, name), (owner, name)
    assert {"layers", "nn", "train", "keras", "data", "matmul", "acosh"} <= set(dir(tf))
    assert tf.version.VERSION == tf.__version__ == "1.15.0"
    with pytest.raises(AttributeError, match="tf.math.no_such_name is not provided"):
        tf.math.no_such_name


def test_paths_mean_what_they_did():
    """Imports of TensorFlow's module paths in a process of its own, patches among them."""
    program = """
import sys
sys.argv = ["x"]
from millrace.compat import imports
imports.install()
import tensorflow as tf
from tensorflow.python.framework import constant_op, dtypes, ops, test_util
from tensorflow.python.ops import array_ops, gen_array_ops, math_ops, nn_grad, resource_variable_ops
from tensorflow.python.ops import variables as variables_lib
import tensorflow.python.ops.sparse_grad
from tensorflow.python.platform import googletest, test, tf_logging
from tensorflow.python.keras._impl import keras
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf.config_pb2 import ConfigProto
from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState
import tensorflow.compat.v1 as v1
assert math_ops.reduce_sum is tf.reduce_sum and ops.Graph is tf.Graph and v1.Session is tf.Session
assert test.TestCase is test_util.TensorFlowTestCase and googletest.TestLoader and keras.layers.Dense is tf.keras.layers.Dense
assert gen_array_ops._concat_v2 is gen_array_ops.concat_v2 and types_pb2.DT_FLOAT == 1 and dtypes.float32 is tf.float32
assert isinstance(tf.Variable(1.0, use_resource=True), resource_variable_ops.ResourceVariable)
assert not isinstance(tf.Variable(1.0), resource_variable_ops.ResourceVariable)
with test.mock.patch.object(tf_logging, "warn") as warn:
    tf.logging.warn("x")
    assert warn.called
from tensorflow.python.training import server_lib
with test.mock.patch.object(server_lib, "Server"):
    pass
assert server_lib.Server is tf.train.Server
import time
from tensorflow.python.training import checkpoint_management  # several modules of ours, two of which have it
with test.mock.patch.object(checkpoint_management, "time") as clock:
    assert checkpoint_management.time is clock
assert checkpoint_management.time is time and tf.train.Saver.__init__.__globals__["time"] is time
try:
    import tensorflow.python.ops.no_such_module
    raise SystemExit("imported")
except ImportError:
    pass
import tensorflow_estimator
import tensorflow_estimator._api.v1.estimator as api
from tensorflow_estimator.contrib.estimator.python.estimator import multi_head
from tensorflow_estimator.python.estimator import model_fn
from tensorflow_estimator.python.estimator.inputs import numpy_io
assert tensorflow_estimator.estimator.Estimator is api.Estimator is tf.estimator.Estimator and model_fn.EstimatorSpec is tf.estimator.EstimatorSpec
assert numpy_io.numpy_input_fn is tf.estimator.inputs.numpy_input_fn and multi_head.multi_head is tf.contrib.estimator.multi_head
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_raw_ops_take_names():
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.raw_ops.AddV2(x=1.0, y=2.0)) == 3.0
        with pytest.raises(TypeError):
            tf.raw_ops.AddV2(1.0, 2.0)
        with pytest.raises(AttributeError, match="tf.raw_ops.NoSuchOp"):
            tf.raw_ops.NoSuchOp


def test_packages_of_contrib_gather_the_names_of_their_modules():
    from millrace.contrib import framework

    assert names.find("contrib.framework.python.ops").arg_scope is framework.arg_scope


def test_what_is_absent_says_what_to_use():
    from millrace.framework import not_provided

    rows = [path for path in not_provided.TABLE if path not in names._PACKAGES and path not in names.TABLE]  # of some packages a part is there
    for path in [
        *rows,
        "contrib.tpu.rewrite",
        "contrib.layers.no_such_layer",
        "contrib.no_such_package",
        "raw_ops.TPUReplicatedInput",
        "keras.experimental.WideDeepModel",
    ]:
        owner = tf
        with pytest.raises(NotImplementedError, match="is not provided"):
            for part in path.split("."):
                there, missing = dir(owner), part
                owner = getattr(owner, part)
        assert missing not in there and not hasattr(owner, missing), path


@pytest.mark.parametrize(
    "space",
    [
        "",
        "nn",
        "train",
        "data",
        "data.experimental",
        "keras",
        "keras.layers",
        "keras.metrics",
        "keras.optimizers",
        "keras.experimental",
        "keras.utils",
        "estimator",
        "estimator.experimental",
        "feature_column",
        "image",
        "linalg",
        "random",
        "strings",
        "sparse",
        "summary",
        "saved_model",
        "profiler",
        "config",
        "contrib.learn",
        "contrib.gan",
        "contrib.layers",
        "contrib.training",
    ],
)
def test_lists_tell_the_truth(space):
    owner = tf
    for part in filter(None, space.split(".")):
        owner = getattr(owner, part)
    for name in dir(owner):
        assert name.startswith("_") or hasattr(owner, name), "%s.%s" % (space, name)


def test_paths_of_1_15_that_tests_import():
    assert names.find("python.tf2").enabled() is False
    assert names.find("python.ops.control_flow_v2_toggles").control_flow_v2_enabled() is False
    assert names.find("python.compat.compat").forward_compatible(2018, 1, 1)
    assert names.find("python.ops.variables").VariableV1 is tf.Variable
    assert names.find("python.data.experimental.ops.grouping").group_by_window is tf.data.experimental.group_by_window
    assert names.find("python.ops.linalg.linear_operator_adjoint").LinearOperatorAdjoint is tf.linalg.LinearOperatorAdjoint
    assert names.find("python.eager.backprop").GradientTape is tf.GradientTape
    assert names.find("python.eager.wrap_function").wrap_function is tf.wrap_function
    assert names.find("python.eager.def_function").function is tf.function
    assert names.find("python.eager.function").defun is tf.contrib.eager.defun


def test_modules_inside_contrib_are_no_classes():
    inside = names.module("contrib.distributions.python.ops.bijectors.absolute_value")
    assert inside.AbsoluteValue is tf.contrib.distributions.bijectors.AbsoluteValue
    assert names.module("contrib.distributions.python.ops.bijectors.absolute_value.AbsoluteValue") is None
    draws = names.find("python.ops.stateless_random_ops").stateless_random_uniform([4], [1, 2], minval=0, maxval=10, dtype=tf.int32)
    with tf.Session() as session:
        assert all(0 <= value < 10 for value in session.run(draws))


def test_no_row_hides_a_module_that_an_alias_means():
    """A row `python.keras.layers.x` would make an empty package of `python.keras.layers`: rows of Keras stand below `keras`."""
    empty = names._PACKAGES - set(names.TABLE)
    for alias in names._KERAS:
        hidden = [p for p in empty if p.startswith(alias) and names.module("keras." + p[len(alias) :]) is not None]
        assert not hidden, hidden
    layers, training = names.module("python.keras.layers"), names.module("python.keras.engine.training")
    assert (
        training is tf.keras.engine.training
        and layers.Dense is tf.keras.layers.Dense
        and names.module("python.keras.layers.dense_attention").Attention is tf.keras.layers.Attention
    )
    assert names.module("python.keras.optimizer_v2.adam").Adam is tf.keras.optimizers.Adam
    assert names.module("python.keras.engine.input_spec").InputSpec is tf.keras.layers.InputSpec


def test_dictionaries_of_modules_hold_their_names():
    """As in programs that look for classes in a module, or for a function by a name of their settings."""
    joined = names.Joined("contrib.rnn", [names.find("contrib.rnn")])
    cells = {c.__name__ for c in joined.__dict__.values() if isinstance(c, type) and issubclass(c, tf.nn.rnn_cell.RNNCell)}
    assert {"BasicLSTMCell", "GRUCell", "NASCell", "DropoutWrapper"} <= cells
    assert all(hasattr(joined, name) for name in dir(joined))
    top = names.Joined("", [tf])
    assert vars(top)["float32"] is tf.float32 and "nn" in top.__dict__ and top.__dict__.get("nothing", 1) == 1
    with pytest.raises(KeyError, match="nothing"):
        top.__dict__["nothing"]
    with mock.patch.dict(vars(joined), {"GRUCell": 5}):
        assert tf.contrib.rnn.GRUCell == 5
    assert tf.contrib.rnn.GRUCell is tf.nn.rnn_cell.GRUCell


def test_packages_without_a_row_hold_what_the_module_of_their_path_has():
    """A row `learn.preprocessing.text` makes a package of `learn.preprocessing`: `import tensorflow.contrib.learn as learn` finds its classes."""
    learn = names.Joined("contrib.learn", [names.find("contrib.learn")])
    assert learn.preprocessing.VocabularyProcessor is tf.contrib.learn.preprocessing.VocabularyProcessor
    gan = names.Joined("contrib.gan", [names.find("contrib.gan")])
    assert gan.losses.wasserstein_generator_loss is tf.contrib.gan.losses.wasserstein_generator_loss
    assert names.find("contrib.gan.python.losses").wasserstein_generator_loss is tf.contrib.gan.losses.wasserstein_generator_loss
    assert names.find("contrib.learn.python").DNNClassifier is tf.contrib.learn.DNNClassifier


def test_paths_below_contrib_are_attributes():
    """What programs import is found without an import too, as tf.contrib.bayesflow.stochastic_graph."""
    for path in names.TABLE:
        if path.startswith("contrib.") and not path.startswith("contrib.tensor_forest.hybrid.") and "._" not in path:
            found = tf
            for part in path.split("."):
                found = getattr(found, part, None)
            assert found is not None, path
    learn = tf.contrib.learn
    assert learn.estimators.RunConfig is learn.RunConfig and learn.head.multi_class_head is learn.multi_class_head
    assert learn.preprocessing.text.VocabularyProcessor is learn.preprocessing.VocabularyProcessor
    with pytest.raises(AttributeError, match="tf.contrib.bayesflow.no_such_name is not provided"):
        tf.contrib.bayesflow.no_such_name
