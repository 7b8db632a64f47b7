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
    absent = names.module("python.distribute.collective_all_reduce_strategy")
    with pytest.raises(NotImplementedError, match="the strategies of tf.distribute, which have one replica"):
        absent.CollectiveAllReduceExtended()
    assert not hasattr(absent, "CollectiveAllReduceExtended")


def test_the_classes_of_logits_of_unknown_rank_are_along_the_axis():
    x, y = np.random.RandomState(0).rand(2, 3, 4), np.full((2, 3, 4), 0.25)
    logits, labels = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    with tf.Session() as sess:
        for axis in (0, 1, 2, -1, -2):
            made = tf.nn.softmax_cross_entropy_with_logits_v2(labels, logits, axis=axis)
            exact = -(y * (x - np.log(np.exp(x).sum(axis, keepdims=True)))).sum(axis)
            np.testing.assert_allclose(sess.run(made, {logits: x, labels: y}), exact)


def test_weights_and_masks_of_losses_and_metrics():
    """As TensorFlow 1.15.5 has them: losses are divided by how many there are, metrics by the sum of the weights, over all batches."""
    L, optimizer = tf.keras.layers, tf.train.GradientDescentOptimizer(1e-9)
    masked = tf.keras.Sequential([L.Masking(input_shape=(2, 1)), L.TimeDistributed(L.Dense(1, kernel_initializer="ones"))])
    masked.compile(optimizer, "mse", weighted_metrics=["accuracy"], metrics=["mae"])
    x, y = np.array([[[1], [1]], [[1], [1]], [[0], [0]]]), np.array([[[1], [1]], [[0], [1]], [[1], [1]]])
    assert masked.metrics_names == ["loss", "mean_absolute_error", "weighted_acc"]
    np.testing.assert_allclose(masked.train_on_batch(x, y), [1 / 6, 0.25, 0.75], rtol=1e-5)
    np.testing.assert_allclose(masked.train_on_batch(x, y, sample_weight=np.array([3, 2, 4])), [1 / 3, 0.25, 0.8], rtol=1e-5)
    plain = tf.keras.Sequential([L.Dense(1, kernel_initializer="ones", input_shape=(1,))])
    plain.compile(optimizer, "mse", weighted_metrics=["mae", "accuracy"])
    x, y, w = np.array([[1.0], [2.0], [3.0]]), np.array([[0.0], [2.0], [1.0]]), np.array([3, 2, 0])
    np.testing.assert_allclose(plain.evaluate(x, y, sample_weight=w, batch_size=2, verbose=0), [1, 0.6, 0], rtol=1e-5)

    class Masked(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.mask, self.head = L.Masking(), L.TimeDistributed(L.Dense(1, kernel_initializer="ones"))

        def call(self, x):
            return self.head(self.mask(x))

    model = Masked()
    model.compile("sgd", "mse")
    assert model.train_on_batch(np.array([[[1], [1]], [[0], [0]]]), np.ones((2, 2, 1))) == 0


def test_masks_of_several_dimensions():
    model = tf.keras.Sequential([tf.keras.layers.Embedding(3, 2, mask_zero=True, input_shape=(2, 2))])
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    x = np.array([[[0, 1], [2, 0]], [[0, 0], [0, 0]]])
    y = model.predict(x) + 1.0
    np.testing.assert_allclose(model.test_on_batch(x, y), [0.25, 1], rtol=1e-5)  # two of eight count


def test_activity_counts_for_each_example():
    given = tf.keras.Input(2)
    layer = tf.keras.layers.ActivityRegularization(l2=0.5)
    model = tf.keras.Model(given, layer(given))
    model.compile("sgd", "mse")
    for n in (1, 4):
        assert model.test_on_batch(np.ones((n, 2)), np.ones((n, 2))) == pytest.approx(1)


def test_steps_that_a_mask_leaves_out_are_not_in_a_mean():
    L = tf.keras.layers
    model = tf.keras.Sequential([L.Masking(input_shape=(3, 2)), L.GlobalAveragePooling1D()])
    np.testing.assert_allclose(model.predict(np.array([[[1, 2], [3, 4], [0, 0]]])), [[2, 3]])
    assert L.MaxPooling1D(2, data_format="channels_first").get_config()["data_format"] == "channels_first"
    with pytest.raises(ValueError, match="cannot be negative"):
        L.ReLU(-1)


def test_models_are_validated_now_and_then():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("sgd", "mse")
    x = np.ones((4, 1))
    for frequency, count in ((2, 2), ([1, 4], 2), (1, 5)):
        assert len(model.fit(x, x, epochs=5, verbose=0, validation_data=(x, x), validation_freq=frequency).history["val_loss"]) == count
    with pytest.raises(ValueError, match="less than 1"):
        model.fit(x, x, verbose=0, validation_data=(x, x), validation_freq=0)
    with pytest.raises(ValueError, match=r"Unknown entries in loss dictionary: \['b'\]"):
        model.compile("sgd", {"b": "mse"})


def test_functions_of_the_backend_take_any_structure():
    x, y, v = K.placeholder(shape=()), K.placeholder(shape=()), K.variable(1.0)
    assert K.function(x, {"square": x * x})(3.0)["square"] == 9
    assert K.function({"a": x, "b": y}, [x + y], fetches=[v.assign(7.0)])({"a": 1.0, "b": 2.0}) == [3]
    assert K.get_value(v) == 7
    default = tf.placeholder_with_default(np.float32(2), [])
    assert K.function([x], [x * default], feed_dict={default: 5.0})([2.0]) == [10]
    assert K.function([x, default], [x * default])([2.0, None]) == [4]
