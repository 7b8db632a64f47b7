# SPDX-License-Identifier: Apache-2.0
"""Losses of Keras: their values, weights and settings; the utilities that layers and losses stand on."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

K, losses = tf.keras.backend, tf.keras.losses


def test_cross_entropies_of_logits_and_of_probabilities():
    x, y = np.array([[8.0, 1.0, 30.0], [0.0, 200.0, 1.0]], "f"), np.array([[0, 0, 1], [1, 0, 0]], "f")
    with tf.Session():
        soft = tf.nn.softmax(tf.constant(x))
        assert losses.categorical_crossentropy(y, soft).eval()[1] == 200  # of the logits: as a probability it is 0
        assert losses.sparse_categorical_crossentropy(np.array([2, 0]), soft).eval()[1] == 200
        np.testing.assert_allclose(losses.binary_crossentropy(y, tf.sigmoid(tf.constant(x))).eval(), (np.logaddexp(0, x) - x * y).mean(-1), rtol=1e-5)
        assert losses.categorical_crossentropy(y, tf.identity(soft)).eval()[1] == pytest.approx(-np.log(1e-7), rel=1e-4)
        # of probabilities, epsilon is added where the logarithm is taken, as 1.15 does
        wrong = losses.binary_crossentropy(np.array([[1.0, 0.0]], "f"), np.array([[0.0, 0.0]], "f")).eval()
        np.testing.assert_allclose(wrong, [-np.log(2e-7) / 2], rtol=1e-4)
        p = K.placeholder()
        each = K.function([p], losses.sparse_categorical_crossentropy(tf.constant([0, 1]), p, from_logits=True))
        assert each([tf.constant(x)]).shape == (2,)  # a rank that the graph does not say, fed by a tensor's value
        with pytest.raises(ValueError, match="unknown rank"):
            losses.sparse_categorical_crossentropy(tf.constant([0]), K.placeholder(), axis=1)


def test_losses_as_objects_weigh_sum_and_say_their_settings():
    y, p = np.array([[1.0, 9.0], [2.0, 5.0]], "f"), np.array([[4.0, 8.0], [12.0, 3.0]], "f")
    with tf.Session():
        assert losses.MeanSquaredError()(y, p).eval() == 28.5
        assert losses.MeanSquaredError(reduction="sum")(y, p, sample_weight=[2.0, 0.0]).eval() == 10
        assert losses.MeanSquaredError()(np.array([[1, 2]]), np.array([[1, 2]])).eval() == 0  # integers
        assert losses.MeanAbsoluteError()(np.zeros((0, 2), "f"), np.zeros((0, 2), "f")).eval() == 0
        near, far = losses.CosineSimilarity(axis=1), losses.cosine_proximity
        assert near(y, y).eval() == pytest.approx(1) and far(y, y).eval() == pytest.approx([-1, -1])
        smooth = losses.BinaryCrossentropy(True, 0.5)
        assert smooth.get_config() == {"from_logits": True, "label_smoothing": 0.5, "reduction": "auto", "name": "binary_crossentropy"}
        own = losses.LossFunctionWrapper(losses.mae, name="own", reduction=losses.Reduction.NONE)
        np.testing.assert_array_equal(own(y, p).eval(), [2, 6])
    with pytest.raises(ValueError, match="Invalid Reduction Key mean"):
        losses.Huber(reduction="mean")
    with pytest.raises(TypeError, match="axis"):
        losses.SparseCategoricalCrossentropy(axis=1)


def test_models_are_read_with_losses_that_have_settings(tmp_path):
    pytest.importorskip("h5py")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", losses.Huber(0.25))
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    model.save(str(tmp_path / "m.h5"))
    again = tf.keras.models.load_model(str(tmp_path / "m.h5"))
    assert again.loss.get_config()["delta"] == 0.25
    assert again.evaluate(np.ones((4, 2)), np.ones((4, 1))) == pytest.approx(model.evaluate(np.ones((4, 2)), np.ones((4, 1))))


def test_transposed_convolutions_are_dilated_and_padded():
    x = np.arange(48).reshape((1, 4, 4, 3)).astype("f")
    layers = tf.keras.layers
    dilated = layers.Conv2DTranspose(1, 3, padding="same", dilation_rate=2, kernel_initializer="ones")
    longer = layers.Conv2DTranspose(1, 3, 2, "same", output_padding=0, kernel_initializer="ones")
    with tf.Session() as sess:
        made, long = dilated(tf.constant(x)), longer(tf.constant(x))
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(made.eval()[0, :, :, 0], [[192, 228, 192, 228], [336, 372, 336, 372]] * 2)
        assert long.shape.as_list() == [1, 7, 7, 1] == list(long.eval().shape)
    assert longer.get_config()["output_padding"] == (0, 0)
    assert layers.Conv3DTranspose(1, 3, 2, "valid", 1)(tf.zeros([1, 2, 2, 2, 1])).shape.as_list() == [1, 6, 6, 6, 1]
    with pytest.raises(ValueError, match="must be greater than output padding"):
        layers.Conv2DTranspose(1, 3, 2, output_padding=2)


def test_which_inputs_a_convolution_sees():
    utils = names.module("keras.utils.conv_utils")
    np.testing.assert_array_equal(utils.conv_kernel_mask((4,), 2, 1, "valid"), [[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    assert list(utils.conv_kernel_idxs((2, 2), (2, 1), (1, 1), "valid", 1, 1, "channels_last")) == [(0, 0), (0, 2), (1, 1), (1, 3)]
    assert utils.deconv_output_length(4, 3, "same", None, 2) == 8 and utils.deconv_output_length(4, 3, "same", 0, 2) == 7
    assert utils.conv_output_length(5, 3, "causal", 2) == 3 and utils.normalize_data_format(None) == "channels_last"
    with pytest.raises(NotImplementedError, match="Padding type full"):
        utils.conv_kernel_mask((4,), 2, 1, "full")


def test_layers_cast_inputs_once_they_are_asked_to(caplog):
    types = names.module("keras.engine.base_layer_utils")
    x = tf.constant([[1.0]], tf.float64)
    assert tf.keras.layers.Dense(1)(x).dtype == tf.float64
    types.enable_v2_dtype_behavior()
    try:
        layer = tf.keras.layers.Dense(1)
        assert layer.dtype == "float32" and layer(x).dtype == tf.float32
        assert tf.keras.layers.Activation("relu", autocast=False)(x).dtype == tf.float64
        assert tf.keras.layers.Activation("relu", dtype="float64")(tf.constant([1])).dtype == tf.int32  # no floating type
    finally:
        types.disable_v2_dtype_behavior()


def test_modules_that_are_absent_say_so_when_they_are_used():
    absent = names.module("python.distribute.mirrored_strategy")
    with pytest.raises(NotImplementedError, match="one process with several CPU devices"):
        absent.MirroredStrategy()
    assert not hasattr(absent, "MirroredStrategy")
