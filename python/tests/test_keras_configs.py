# SPDX-License-Identifier: Apache-2.0
"""Layers and models that are made again of their configs are the same: all that changes values is in these, where TensorFlow 1.15 has it."""

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
    K.set_image_data_format("channels_last")


def again(model):
    made = keras.models.model_from_json(model.to_json())
    made.set_weights(model.get_weights())
    return made


IMAGES = np.random.RandomState(0).rand(2, 6, 6, 2).astype("f")
LAYERS = [
    lambda: L.UpSampling2D(2, interpolation="bilinear", input_shape=(6, 6, 2)),
    lambda: L.DepthwiseConv2D(2, dilation_rate=2, input_shape=(6, 6, 2)),
    lambda: L.SeparableConv2D(3, 2, dilation_rate=2, input_shape=(6, 6, 2)),
    lambda: L.Flatten("channels_first", input_shape=(6, 6, 2)),
]


@pytest.mark.parametrize("make", LAYERS)
def test_layers_of_images(make):
    model = keras.Sequential([make()])
    np.testing.assert_allclose(again(model).predict(IMAGES), model.predict(IMAGES), rtol=1e-5)


def test_depthwise_kernels_are_spread_by_their_rate():
    near, far = (keras.Sequential([L.DepthwiseConv2D(2, dilation_rate=rate, depthwise_initializer="ones", input_shape=(6, 6, 2))]) for rate in (1, 2))
    np.testing.assert_allclose(near.predict(IMAGES)[:, 0, 0], IMAGES[:, :2, :2].sum((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(far.predict(IMAGES)[:, 0, 0], IMAGES[:, :3:2, :3:2].sum((1, 2)), rtol=1e-5)


def test_keys_of_1_15():
    assert {"kernel_initializer", "kernel_regularizer", "kernel_constraint"} <= set(L.SeparableConv1D(2, 2).get_config())
    assert L.Flatten().get_config()["data_format"] == "channels_last" and L.Dense(2).get_config()["dtype"] is None
    K.set_image_data_format("channels_first")
    flat = keras.Sequential([L.Flatten(input_shape=(6, 6, 2))])
    np.testing.assert_array_equal(flat.predict(IMAGES), IMAGES.transpose(0, 2, 3, 1).reshape(2, -1))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_recurrent_layers_keep_what_they_add_to_the_loss(kind):
    model = keras.Sequential([getattr(L, kind)(2, activity_regularizer="l2", input_shape=(6, 12))])
    x, y = IMAGES.reshape(2, 6, 12), np.zeros((2, 2))
    made = again(model)
    for each in (model, made):
        each.compile("sgd", "mse")
    assert len(made.losses) == 1 and made.evaluate(x, y, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0))
    assert model.layers[0].get_config()["time_major"] is False


def test_calls_of_models_within_models_are_counted_from_one():
    inner, x = keras.Sequential([L.Dense(2, input_shape=(3,))], name="inner"), keras.Input((3,))
    model = keras.Model(x, L.Dense(1, name="last")(inner(x)))
    config = json.loads(model.to_json())["config"]
    last = next(entry for entry in config["layers"] if entry["name"] == "last")
    assert last["inbound_nodes"] == [[["inner", 1, 0, {}]]]  # the first is the model's own
    data = np.ones((2, 3))
    np.testing.assert_allclose(again(model).predict(data), model.predict(data))


def test_a_subclass_that_is_built_has_names_without_a_scope():
    class Small(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(1)

        def call(self, x):
            return self.dense(x)

    built, called = Small(), Small()
    built.build((None, 3))
    called(tf.ones([2, 3]))
    assert built.weights[0].name == "dense/kernel:0" and called.weights[0].name == "small_1/dense_1/kernel:0"


def test_states_stay_from_epoch_to_epoch():
    model = keras.Sequential(
        [L.SimpleRNN(1, activation=None, kernel_initializer="ones", recurrent_initializer="ones", stateful=True, batch_input_shape=(1, 2, 1))]
    )
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.fit(np.ones((1, 2, 1)), np.ones((1, 1)), batch_size=1, epochs=3, verbose=0)
    assert K.get_value(model.layers[0].states[0]) == 6.0
    model.reset_states()
    assert K.get_value(model.layers[0].states[0]) == 0.0
