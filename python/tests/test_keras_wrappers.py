# SPDX-License-Identifier: Apache-2.0
"""Layers around layers, merges and normalisations: losses, constants, shapes and refusals, with the numbers of TensorFlow 1.15."""

import numpy as np
import pytest

import millrace as tf

L = tf.keras.layers


def losses_of(layer):
    """The losses of a layer with weights of 0.5 for ones of shape [5, 3, 2], from the smallest."""
    x = tf.keras.Input([3, 2])
    model = tf.keras.Model(x, layer(x))
    model.set_weights([np.full(w.shape, 0.5) for w in model.get_weights()])
    return sorted(tf.keras.backend.get_session().run(model.losses, {x: np.ones([5, 3, 2])}))


def test_outputs_of_layers_within_are_regularized_for_each_example():
    dense = L.Dense(4, activity_regularizer="l2", kernel_regularizer="l1")
    np.testing.assert_allclose(losses_of(L.TimeDistributed(dense)), [0.04, 0.09], 1e-5)
    for settings, expected in (({}, 0.029848699), ({"return_sequences": True}, 0.0868061)):
        layer = L.Bidirectional(L.SimpleRNN(3, activity_regularizer="l1", kernel_regularizer="l1", **settings))
        np.testing.assert_allclose(losses_of(layer), sorted([expected, expected, 0.03, 0.03]), 1e-5)


class AddsConstant(L.Layer):
    state_size = output_size = 2

    def call(self, inputs, states, constants):
        made = inputs + states[0] + constants[0]
        return made, [made]

    def get_config(self):
        return {"name": self.name}


def test_both_directions_get_the_constants():
    x, c = tf.keras.Input([3, 2]), tf.keras.Input([2])
    with tf.keras.utils.CustomObjectScope({"AddsConstant": AddsConstant}):
        layer = L.Bidirectional(L.RNN(AddsConstant()))
        made = layer(x, constants=c)
        again = L.Bidirectional.from_config(layer.get_config())
    feed = [np.ones([1, 3, 2]), np.full([1, 2], 10.0)]
    for outputs in (made, again([x, c])):  # one way by name, the other as the last of a list
        np.testing.assert_array_equal(tf.keras.Model([x, c], outputs).predict(feed), [[33.0] * 4])


def test_both_directions_have_their_prefix():
    layer = L.Bidirectional(L.LSTM(2, name="to"), backward_layer=L.LSTM(2, go_backwards=True, name="fro"))
    for made in (layer, L.Bidirectional.from_config(layer.get_config())):
        assert (made.forward_layer.name, made.backward_layer.name) == ("forward_to", "backward_fro")
        assert made.get_config()["backward_layer"]["config"]["name"] == "fro"


class Doubled(L.Layer):
    def call(self, inputs):
        return tf.concat([inputs, inputs], -1)

    def compute_output_shape(self, input_shape):
        return [*input_shape[:-1], input_shape[-1] * 2]


def test_shapes_of_outputs_are_those_of_the_layer_within():
    assert L.TimeDistributed(Doubled()).compute_output_shape([None, 4, 3]).as_list() == [None, 4, 6]
    for merge_mode, width in (("concat", 10), ("sum", 5)):
        assert L.Bidirectional(L.GRU(5), merge_mode).compute_output_shape([None, 4, 3]).as_list() == [None, width]
    both = L.Bidirectional(L.GRU(5, return_sequences=True), None).compute_output_shape([7, 4, 3])
    assert [s.as_list() for s in both] == [[7, 4, 5]] * 2


def test_steps_have_the_shape_that_they_had():
    layer = L.TimeDistributed(L.Dense(5))
    layer(tf.keras.Input([10, 13]))
    with pytest.raises(ValueError, match="is incompatible with layer time_distributed: expected shape"):
        layer(tf.keras.Input([1, 18]))
    with pytest.raises(ValueError, match="should be passed an `input_shape ` with at least 3 dimensions"):
        L.TimeDistributed(L.Dense(5))(tf.keras.Input([10]))


@pytest.mark.parametrize("layer", [L.Add(), L.Concatenate()])
def test_merges_say_what_is_no_list(layer):
    x = tf.keras.Input([4])
    for inputs, mask, what in (([x, x], x, "`mask` should be a list"), (x, [x], "`inputs` should be a list"), ([x, x], [x], "the same length")):
        with pytest.raises(ValueError, match=what):
            layer.compute_mask(inputs, mask)


def test_whether_a_normalisation_is_fused_is_known():
    layer = L.BatchNormalization()
    assert layer.fused is True
    layer(tf.keras.Input([4]))
    assert layer.fused is False
    for axis, what in (((1, 1), "Duplicate axis"), ((5,), "Invalid axis: 5")):
        with pytest.raises(ValueError, match=what):
            L.LayerNormalization(axis=axis)(tf.keras.Input([3, 4]))
    with pytest.raises(ValueError, match="Expected an int or a list/tuple of ints"):
        L.LayerNormalization(axis="x")


def test_a_layer_with_arguments_of_its_own_says_them():
    class Scaled(L.Layer):
        def __init__(self, by=2.0, **kwargs):
            super().__init__(**kwargs)
            self.by = by

    with pytest.raises(NotImplementedError, match="must override `get_config`"):
        Scaled().get_config()


def test_initializers_of_functions_are_these_functions():
    def threes(shape, dtype=None):
        return tf.fill(shape, tf.constant(3.0, dtype))

    with tf.keras.utils.CustomObjectScope({"threes": threes}):
        layer = L.Dense.from_config(L.Dense(1, kernel_initializer=threes).get_config())
    assert layer.kernel_initializer is threes
    assert isinstance(tf.keras.initializers.get("he_normal"), tf.keras.initializers.VarianceScaling)
    from millrace.keras.initializers import RandomUniformV2

    assert RandomUniformV2(-1, 1, 124).get_config() == {"minval": -1, "maxval": 1, "seed": 124}


def test_layers_of_keras_around_a_loop_on_tensors_of_no_model():
    ids = tf.placeholder(tf.int32, [2, 5])
    rows = tf.keras.layers.Embedding(7, 3, mask_zero=True)(ids)
    made, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(4), rows, dtype=tf.float32)
    out = tf.keras.layers.Dense(2)(made)
    assert out.shape.as_list() == [2, 5, 2] and not hasattr(out, "_keras_history") and not hasattr(rows, "_keras_history")
    mean = tf.keras.layers.GlobalAveragePooling1D()(rows)  # the mask is known all the same
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        given, got = sess.run([rows, mean], {ids: [[1, 2, 0, 0, 0], [3, 4, 5, 6, 1]]})
    np.testing.assert_allclose(got, [given[0, :2].mean(0), given[1].mean(0)], rtol=1e-5)
