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


def test_images_grow_by_the_middles_of_their_pixels():
    row = np.array([[[[0.0], [1.0]]]], "f")
    model = keras.Sequential([L.UpSampling2D((1, 2), interpolation="bilinear", input_shape=(1, 2, 1))])
    assert model.predict(row).ravel().tolist() == [0.0, 0.25, 0.75, 1.0] and model.output_shape == (None, 1, 4, 1)


def test_an_average_is_one_of_the_values_alone():
    average = K.variable([1.0, 2.0])
    moved = K.moving_average_update(average, K.constant([3.0, 4.0]), 0.9)
    for _ in range(2):
        K.get_session().run(moved)
        np.testing.assert_allclose(K.get_value(average), [3.0, 4.0], rtol=1e-6)


def test_losses_say_their_settings():
    for kind, own in (("BinaryCrossentropy", {"from_logits": False, "label_smoothing": 0}), ("CosineSimilarity", {"axis": -1}), ("Huber", {"delta": 1.0})):
        loss = getattr(keras.losses, kind)
        assert {"reduction", "name"} < set(loss().get_config()) and own.items() <= loss().get_config().items()
        assert loss.from_config(loss().get_config()).get_config() == loss().get_config()


def test_a_metric_takes_the_place_of_one_of_its_name():
    model = keras.Sequential([L.Dense(3, "softmax", input_shape=(2,))])
    best = keras.metrics.SparseTopKCategoricalAccuracy(3)
    model.compile("sgd", "sparse_categorical_crossentropy", ["acc", "sparse_top_k_categorical_accuracy", "accuracy", best, "MSE"])
    assert model.metrics_names == ["loss", "acc", "sparse_top_k_categorical_accuracy", "mean_squared_error"]
    assert model.evaluate(np.ones((4, 2)), np.zeros((4, 1)), verbose=0)[2] == 1.0 and best in model.metrics


def test_callbacks_of_arrays_know_of_samples():
    told = []

    class Noting(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            told.append(dict(self.params))

    model = keras.Sequential([L.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    model.fit(np.ones((5, 2)), np.ones((5, 1)), batch_size=2, verbose=0, callbacks=[Noting()])
    assert told[0]["steps"] is None and told[0]["samples"] == 5 and told[0]["batch_size"] == 2


def test_texts_and_series():
    words = keras.preprocessing.text.Tokenizer(num_words=4, oov_token="?")
    words.fit_on_texts(["the cat sat", "the cat", "the"])
    assert words.sequences_to_texts([[2, 3, 4, 9], [1]]) == ["the cat ? ?", "?"]
    config = json.loads(words.to_json())["config"]
    assert config["num_words"] == 4 and json.loads(config["word_index"]) == {"?": 1, "the": 2, "cat": 3, "sat": 4}
    series = keras.preprocessing.sequence.TimeseriesGenerator(np.arange(10), np.arange(10) * 2, length=4, sampling_rate=2, stride=2, batch_size=2)
    assert len(series) == 2 and [part.tolist() for part in series[0]] == [[[0, 2], [2, 4]], [8, 12]]
    assert [part.tolist() for part in series[1]] == [[[4, 6]], [16]]
    with pytest.raises(ValueError, match="is disallowed"):
        keras.preprocessing.sequence.TimeseriesGenerator(np.arange(4), np.arange(4), length=4)


def test_images_are_divided_by_the_deviation_of_what_is_centred():
    images = np.random.RandomState(0).rand(20, 2, 2, 3).astype("f")
    made = keras.preprocessing.image.ImageDataGenerator(rescale=4.0, featurewise_std_normalization=True)
    made.fit(images)
    batch = next(made.flow(images, batch_size=20, shuffle=False))
    np.testing.assert_allclose(batch, (images - images.mean((0, 1, 2))) / images.std((0, 1, 2)), rtol=1e-4, atol=1e-4)


def test_a_layer_that_was_not_told_whether_it_is_trained_says_so():
    layer = keras.layers.Dense(1, trainable=None)
    assert layer.get_config()["trainable"] is None and layer.trainable is None
    layer(tf.ones([1, 1]))
    assert layer.trainable_weights == [] and len(layer.non_trainable_weights) == 2
