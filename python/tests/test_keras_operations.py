# SPDX-License-Identifier: Apache-2.0
"""Operations of the graph between the layers of models, losses and metrics of tensors outside of layers, and names of weights."""

import json

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
K, L = keras.backend, keras.layers


@pytest.fixture(autouse=True)
def session():
    K.clear_session()
    yield
    K.clear_session()


X = np.random.RandomState(0).randn(6, 4).astype("f")


def test_operations_are_part_of_a_model():
    x = keras.Input((4,))
    h = tf.nn.relu(x * 2.0 - 1.0)
    y = tf.concat([L.Dense(3)(h), h], axis=1) + tf.reduce_mean(x, axis=1, keepdims=True)
    model = keras.Model(x, y)
    kernel, bias = model.get_weights()
    relu = np.maximum(X * 2 - 1, 0)
    expected = np.concatenate([relu @ kernel + bias, relu], 1) + X.mean(1, keepdims=True)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5, atol=1e-6)
    again = keras.models.model_from_json(json.dumps(json.loads(model.to_json())))
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict(X), expected, rtol=1e-5, atol=1e-6)
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]
    np.testing.assert_allclose(K.get_value(model(tf.constant(X))), expected, rtol=1e-5, atol=1e-6)
    assert model.compute_output_shape((5, 4)).as_list() == [5, 7]
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.train_on_batch(X, np.zeros((6, 7)))
    assert not np.allclose(before[0], model.get_weights()[0])


def test_operations_inside_of_layers_make_none():
    class Twice(L.Layer):
        def call(self, inputs):
            return L.Dense(2, name="inner")(inputs * 2.0)

    x = keras.Input((4,))
    model = keras.Model(x, Twice()(x))
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Twice"]


def test_losses_and_metrics_of_tensors_outside_of_layers():
    def make():
        x = keras.Input((4,))
        y = L.Dense(1, kernel_initializer="ones")(x)
        model = keras.Model(x, y)
        side = L.Dense(1, kernel_initializer="ones", name="side")(x)
        model.add_loss(tf.reduce_mean(tf.abs(side)))
        model.add_metric(tf.reduce_mean(side), aggregation="mean", name="mean_of_side")
        return model

    model = make()
    again = keras.Model.from_config(model.get_config())
    side = X.sum(1)
    for m in (model, again):
        m.compile("sgd", "mse")
        assert m.metrics_names == ["loss", "mean_of_side"]
        expected = np.mean(side**2) + np.mean(abs(side))
        np.testing.assert_allclose(m.test_on_batch(X, np.zeros((6, 1))), [expected, side.mean()], rtol=1e-5)
        before = m.get_layer("side").get_weights()[0]
        m.train_on_batch(X, np.zeros((6, 1)))
        assert not np.allclose(m.get_layer("side").get_weights()[0], before)


def test_weights_are_named_by_the_scopes_around_their_layers():
    class Block(L.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.first = L.Dense(2, name="first")

        def build(self, shape):
            self.scale = self.add_weight("scale", [1])
            super().build(shape)

        def call(self, inputs):
            return self.first(inputs) * self.scale

    block = Block(name="block")
    block(tf.zeros([2, 3]))
    assert [w.op.name for w in block.weights] == ["block/scale", "block/first/kernel", "block/first/bias"]
    both = L.Bidirectional(L.LSTM(2), name="both")
    both(tf.zeros([2, 3, 4]))
    assert both.weights[0].op.name == "both/forward_lstm/kernel"
    late = keras.Sequential([L.Dense(1, name="d")], name="late")
    late.compile("sgd", "mse")
    late.train_on_batch(X, np.zeros((6, 1)))
    assert late.weights[0].op.name == "late/d/kernel"
    assert [w.op.name for w in keras.metrics.Mean(name="m").weights] == ["total", "count"]


def test_configs_of_sequential_models():
    model = keras.Sequential(name="whole")
    model.add(keras.Input((4,)))
    model.add(L.Dense(2))
    assert model.output_shape == (None, 2)
    late = keras.Sequential([L.Dense(3), L.Dense(2)], name="late")
    assert late.compute_output_shape((None, 4)).as_list() == [None, 2]
    late.build((None, 4))
    config = late.get_config()
    assert config["name"] == "late" and config["build_input_shape"] == (None, 4)
    assert [w.shape for w in keras.Sequential.from_config(config).get_weights()] == [(4, 3), (3,), (3, 2), (2,)]


def test_dense_layers_take_inputs_of_other_types_and_sparse_ones():
    kernel = np.arange(8.0).reshape(4, 2)
    layer = L.Dense(2, dtype="float64", use_bias=False, weights=[kernel])
    np.testing.assert_allclose(K.get_value(layer(tf.constant(X))), X.astype("d") @ kernel)
    sparse = tf.SparseTensor([[0, 1], [1, 3]], [1.0, 2.0], [2, 4])
    np.testing.assert_allclose(K.get_value(L.Dense(2, use_bias=False, weights=[kernel])(sparse)), [kernel[1], 2 * kernel[3]])
