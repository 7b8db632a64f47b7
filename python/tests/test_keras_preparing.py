# SPDX-License-Identifier: Apache-2.0
"""Layers that adapt to data, layers that come near kernels, calls of models as functions, and pictures of models."""

import numpy as np
import pytest

import millrace as tf
from millrace.keras.engine import saving, saving_utils
from millrace.keras.utils import kernelized_utils, vis_utils
from millrace.layers import preprocessing
from millrace.layers.kernelized import RandomFourierFeatures

keras, K = tf.keras, tf.keras.backend


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield


def applied(layer, x):
    inputs = keras.Input(x.shape[1:])
    return keras.Model(inputs, layer(inputs)).predict(x)


@pytest.mark.parametrize("axis", [-1, 1, (1, 2)])
def test_normalization_by_data(axis):
    data = np.random.RandomState(0).randn(6, 3, 2)
    layer = preprocessing.Normalization(axis)
    layer.adapt(data[:4])
    layer.adapt(data[4:], reset_state=False)
    along = {-1: (0, 1), 1: (0, 2), (1, 2): 0}[axis]
    mean, variance = data.mean(along, keepdims=True), data.var(along, keepdims=True)
    np.testing.assert_allclose(applied(layer, data), (data - mean) / variance, rtol=1e-4, atol=1e-5)
    assert K.get_value(layer.count) == data.size // variance.size
    other = preprocessing.Normalization.from_config(layer.get_config())
    other.adapt(tf.data.Dataset.from_tensor_slices(data).batch(4))
    for a, b in zip(layer.get_weights(), other.get_weights()):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    combiner = layer._combiner
    kept = combiner.compute(data)
    again = combiner.deserialize(combiner.serialize(kept))
    assert all(np.array_equal(a, b) for a, b in zip(kept, again)) and combiner.extract(kept)["count"] == kept.count


def test_data_that_no_layer_adapts_to():
    layer = preprocessing.Normalization()
    with pytest.raises(ValueError, match="a Dataset or a Numpy array"):
        layer.adapt([1, 2])
    with pytest.raises(ValueError, match="infinite number of elements"):
        layer.adapt(tf.data.Dataset.range(3).repeat())
    with pytest.raises(RuntimeError, match="must be called after build"):
        layer._set_state_variables({"mean": 0})
    layer.build((2,))
    layer.set_weights([np.array([1.5, 2.0]), np.zeros(2)])
    with pytest.raises(RuntimeError, match="without also setting 'count'"):
        layer.adapt(np.array([[1, 2]]), reset_state=False)
    with pytest.raises(ValueError, match="'axis' may not be 0"):
        preprocessing.Normalization(0)


@pytest.mark.parametrize("kernel, exact", [("gaussian", kernelized_utils.exact_gaussian_kernel), ("Laplacian", kernelized_utils.exact_laplacian_kernel)])
def test_features_come_near_kernels(kernel, exact):
    np.random.seed(3)
    tf.set_random_seed(3)
    x, y = (tf.constant(np.random.RandomState(i).rand(n, 3), tf.float32) for i, n in ((1, 2), (2, 3)))
    layer = RandomFourierFeatures(20000, kernel, scale=2.0, trainable=True, name="rff")
    near = kernelized_utils.inner_product(layer(x), layer(y)) * (2.0 / 20000)
    K.get_session()
    session = tf.get_default_session()
    np.testing.assert_allclose(*session.run([near, exact(x, y, 2.0)]), atol=0.04)
    u, v = session.run([x, y])
    apart = u[:, None] - v[None]
    wanted = np.exp(-(apart**2).sum(2) / 8) if kernel == "gaussian" else np.exp(-np.abs(apart).sum(2) / 2)
    np.testing.assert_allclose(session.run(exact(x, y, 2.0)), wanted, rtol=1e-5)
    assert [w.name for w in layer.trainable_weights] == ["rff/random_features_scale:0"] and len(layer.non_trainable_weights) == 2
    assert RandomFourierFeatures.from_config(layer.get_config()).kernel_initializer == kernel
    assert layer.compute_output_shape((None, 3)).as_list() == [None, 20000]


def test_features_that_cannot_be():
    for wrong, text in (
        ((-3,), "`output_dim` should be a positive integer"),
        ((3, "x"), "Unsupported kernel type: 'x'"),
        ((3, "gaussian", 0.0), "positive float"),
    ):
        with pytest.raises(ValueError, match=text):
            RandomFourierFeatures(*wrong)
    with pytest.raises(ValueError, match="The rank of the input tensor should be 2. Got 3 instead"):
        RandomFourierFeatures(3)(tf.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="should be defined. Found `None`"):
        RandomFourierFeatures(3)(tf.placeholder(tf.float32, [None, None]))
    default = RandomFourierFeatures(3)
    default(tf.zeros((1, 8)))
    assert default.scale == 2.0
    with pytest.raises(ValueError, match="Given: 2 vs 3"):
        kernelized_utils.exact_gaussian_kernel(tf.zeros((1, 3)), tf.zeros((1, 2)), 1.0)


def test_calls_of_models_as_functions():
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    dense = keras.layers.Dense(2, name="d")
    model = keras.Model([a, b], [dense(a), keras.layers.Dropout(0.5, name="e")(dense(b))])
    assert saving_utils.extract_model_metrics(model) is None and saving.load_model is keras.models.load_model and saving.save_model is keras.models.save_model
    model.compile("sgd", "mse", metrics=["mae"])
    assert sorted(saving_utils.extract_model_metrics(model)) == ["d_mean_absolute_error", "e_mean_absolute_error"]
    (specs,) = saving_utils.model_input_signature(model)
    assert [(s.name, s.shape.as_list()) for s in specs] == [("a", [None, 3]), ("b", [None, 3])]
    values = [np.ones((4, 3), "f"), np.full((4, 3), 2, "f")]
    made = saving_utils.trace_model_call(model)([tf.constant(v) for v in values])
    wanted = model.predict(values)
    np.testing.assert_allclose(tf.get_default_session().run([made["d"], made["e"]]), wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="the input shapes have not been set"):
        saving_utils.trace_model_call(keras.Sequential([keras.layers.Dense(1)]))


def test_pictures_of_models(tmp_path, monkeypatch):
    inner = keras.Sequential([keras.layers.Dense(4, name="inside", input_shape=(3,))], name="inner")
    x = keras.Input((3,), name="x")
    model = keras.Model(x, keras.layers.Dense(1, name="last")(inner(x)))
    text = vis_utils.model_to_dot(model, show_shapes=True).to_string()
    assert '[label="last: Dense\\n|{input:|output:}|{{(?, 4)}|{(?, 1)}}"]' in text and text.count(" -> ") == 2 and "subgraph" not in text
    text = vis_utils.model_to_dot(model, expand_nested=True, show_layer_names=False, rankdir="LR").to_string()
    assert 'subgraph "cluster_inner" {' in text and '[label="Dense"]' in text and "rankdir=LR;" in text
    numbers = {name: str(id(layer)) for name, layer in (("x", model.layers[0]), ("inside", inner.layers[0]), ("last", model.layers[-1]))}
    assert "%(x)s -> %(inside)s;" % numbers in text and "%(inside)s -> %(last)s;" % numbers in text
    keras.utils.plot_model(model, str(tmp_path / "model.dot"))
    assert (tmp_path / "model.dot").read_text().startswith("digraph G {")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ImportError, match="needs Graphviz: the program dot is not on the path"):
        keras.utils.plot_model(model, str(tmp_path / "model.png"))
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nprintf %s drawn$1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    keras.utils.plot_model(model, str(tmp_path / "model.png"))
    assert (tmp_path / "model.png").read_bytes() == b"drawn-Tpng"


def test_the_learning_phase_is_that_of_the_graph_around_a_function():
    class Told(keras.layers.Layer):
        @tf.function
        def call(self, x, training=None):
            return tf.cond(K.learning_phase() if training is None else training, lambda: tf.ones_like(x), lambda: tf.zeros_like(x))

    layer = Told()
    assert layer._call_fn_args == ["x", "training"]
    model = keras.Sequential([layer])
    model.compile("sgd", "mae")
    x = np.zeros((1, 1))
    assert model.fit(x, x, verbose=0).history["loss"] == [1] and model.evaluate(x, x, verbose=0) == 0


def test_when_batch_normalization_is_fused():
    v2 = __import__("millrace.layers.normalization", fromlist=["BatchNormalizationV2"]).BatchNormalizationV2
    norms = [keras.layers.BatchNormalization(), keras.layers.BatchNormalization(virtual_batch_size=2), v2(), v2(axis=2)]
    assert [norm.fused for norm in norms] == [True, True, None, False]
    for norm in norms:
        norm(tf.zeros((2, 4, 4, 4)))
    assert [norm.fused for norm in norms] == [True, False, True, False]
    flat = v2()
    flat(tf.zeros((2, 4)))
    assert flat.fused is False
    with pytest.raises(ValueError, match="only support 4D input"):
        v2(fused=True)(tf.zeros((2, 4)))
    with pytest.raises(ValueError, match="axis is 1 or 3"):
        v2(axis=2, fused=True)


def test_weights_without_names_and_inputs_that_are_no_tensors():
    class Own(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.plain, self.shaped = self.add_weight(), self.add_weight(shape=(3, 4), regularizer="l2")

        def call(self, x):
            return x

    layer, thing = Own(), object()
    assert layer.plain.name == "Variable:0" and layer.losses[0].op.name.startswith("Variable_1/Regularizer") and layer(thing) is thing
    assert [name for name, _ in layer._checkpoint_dependencies] == ["Variable", "Variable_1", "plain", "shaped"]

    class Decides(keras.layers.Layer):  # by what no conversion reaches
        def call(self, x):
            return [i * x for i in range(3) if tf.reduce_sum(x) > i][0]

    with pytest.raises(TypeError, match="attempting to use Python control flow in a layer"):
        Decides()(tf.ones((1,)))


def test_variables_that_are_brought_together_when_they_are_read():
    on_read = tf.VariableSynchronization.ON_READ
    for layer in (keras.layers.Layer(), tf.layers.Layer()):
        made = layer.add_weight("v", [2], initializer=tf.zeros_initializer(), synchronization=on_read)
        assert layer.non_trainable_weights == [made] and layer.trainable_weights == []
        with pytest.raises(ValueError, match="ON_READ only for non-trainable variables"):
            layer.add_weight("w", [2], initializer=tf.zeros_initializer(), synchronization=on_read, trainable=True)


def test_tapes_see_the_variables_of_functions():
    dense = keras.layers.Dense(2, use_bias=False, kernel_initializer="ones")

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            made = dense(x) ** 2
        assert tape.watched_variables() == tuple(dense.trainable_weights)
        return tape.gradient(made, dense.trainable_weights)

    (made,) = gradient(tf.constant([[1.0, 2.0]]))
    assert K.get_session().run(made).tolist() == [[6, 6], [12, 12]]


def test_random_numbers_of_the_backend_are_those_of_1_15():
    tf.set_random_seed(5)
    np.random.seed(3)
    ones = tf.ones((6, 4))
    K.dropout(ones, 0.4)
    rows = K.eval(K.dropout(ones, 0.4, noise_shape=(6, 1)))
    assert (rows != 0).tolist() == [[kept] * 4 for kept in (False, False, False, True, False, True)]
    np.testing.assert_allclose(K.eval(K.random_uniform((3,))), [0.6628916, 0.98934984, 0.44615972])
    np.testing.assert_allclose(K.eval(K.random_normal((2,))), [-2.1924496, -0.16147506])
    np.testing.assert_allclose(K.eval(K.truncated_normal((2,))), [-0.20234308, 0.50512], rtol=1e-6)
    np.random.seed(3)
    with tf.Graph().as_default(), tf.Session():
        tf.set_random_seed(5)
        np.testing.assert_allclose(K.eval(K.random_uniform_variable((3,), 0, 1)), [0.68354213, 0.02724743, 0.6086987], rtol=1e-6)


def test_gradients_of_an_optimizer_by_variable():
    v = tf.Variable([3.0, 4.0], use_resource=True)
    ((gradient, of),) = keras.optimizers.SGD(1.0, clipnorm=1.0)._compute_gradients(lambda: v * tf.constant([3.0, 4.0]), lambda: [v])
    K.get_session()
    np.testing.assert_allclose(tf.get_default_session().run(gradient), [0.6, 0.8], rtol=1e-6)
    assert of is v


def test_scopes_of_values_that_are_in_no_graph():
    value = tf.SparseTensorValue(np.zeros((1, 2), np.int64), np.ones(1), np.array([1, 1]))
    with tf.name_scope(None, "at", [value]) as scope:
        assert scope == "at/"
