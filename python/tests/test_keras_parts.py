# SPDX-License-Identifier: Apache-2.0
"""Layers that hold layers, in attributes, lists and dictionaries: their variables, losses, updates and metrics are the holder's too."""

import numpy as np
import pytest

import millrace as tf
from millrace.layers.normalization import BatchNormalizationV2

L = tf.keras.layers


class Block(L.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first = L.Dense(2, kernel_regularizer="l2")
        self.others = [L.Dense(3), {"norm": L.BatchNormalization()}]
        self.scale = tf.Variable(2.0)

    def call(self, x):
        return self.others[1]["norm"](self.others[0](self.first(x))) * self.scale


def test_a_layer_has_the_variables_of_its_parts():
    block = Block()
    block(tf.zeros([2, 4]))
    assert len(block.weights) == 9 and len(block.trainable_weights) == 7 and block.trainable_weights[0] is block.scale
    assert len(block.losses) == 1 == len(block.get_losses_for(None)) and len(block.updates) == 2
    block.first.trainable = False
    assert len(block.trainable_weights) == 5 and len(block.non_trainable_weights) == 4
    block.trainable = False
    assert not block.trainable_weights and len(block.non_trainable_weights) == 9 and not block.updates


def test_parts_of_parts_are_trained():
    given = tf.keras.Input([4])
    model = tf.keras.Model(given, Block()(Block()(given)))
    model.compile("sgd", "mse")
    assert len(model.trainable_weights) == 14 and len(model.losses) == 2 and len(model.updates) == 4
    before = model.get_weights()
    model.train_on_batch(np.ones((8, 4)), np.random.RandomState(0).rand(8, 3))
    assert sum(not np.array_equal(a, b) for a, b in zip(before, model.get_weights())) > 8


def test_a_subclassed_model_finds_layers_in_lists():
    class Tower(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = []
            for _ in range(3):
                self.blocks.append(L.Dense(2))
            self.head = L.Dense(1)

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    model = Tower()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert len(model.layers) == 4 and len(model.trainable_weights) == 8


def test_inputs_may_be_ragged_and_layers_not_dynamic():
    ragged = tf.keras.Input([None, 2], ragged=True)
    assert isinstance(ragged, tf.RaggedTensor)
    with pytest.raises(ValueError, match="sparse and ragged"):
        tf.keras.Input([None], sparse=True, ragged=True)
    with pytest.raises(NotImplementedError, match="eager execution"):
        L.Dense(1, dynamic=True)
    assert L.Layer().add_weight().shape == ()


class Sum(L.Layer):
    def call(self, x, y, scale=None):
        return x + y if scale is None else x + y * scale


def test_tensors_among_further_arguments_of_a_layer_are_its_inputs():
    a, b, c = (tf.keras.Input(3) for _ in range(3))
    model = tf.keras.Model([a, b, c], Sum()(a, b, scale=c))
    x, y, z = (np.full((2, 3), v, "f") for v in (1, 10, 3))
    np.testing.assert_array_equal(model.predict([x, y, z]), x + y * z)
    for again in (
        tf.keras.Model.from_config(model.get_config(), custom_objects={"Sum": Sum}),
        tf.keras.models.clone_model(model),
        tf.keras.Model([a, b, c], model([a, b, c])),
    ):
        np.testing.assert_array_equal(again.predict([x, 2 * y, z]), x + 2 * y * z)


def test_models_are_told_whether_they_train():
    x, given = np.ones((100, 2)), tf.keras.Input(2)
    base = tf.keras.Model(given, L.Dropout(0.5)(given))
    for training, low in ((False, 1), (True, 0)):
        for model in (base, tf.keras.Sequential([base])):
            made = tf.keras.Model(given, model(given, training=training))
            assert made.predict(x).min() == low
            assert tf.keras.Model.from_config(made.get_config()).predict(x).min() == low


def test_lambda_layers_keep_their_variables_masks_and_shapes():
    layer = L.Lambda(lambda x: x * tf.Variable(2.0), output_shape=(None, 3), mask=lambda x, m: m)
    made = [layer(tf.ones([2, 3])) for _ in range(2)]
    assert len(layer.trainable_weights) == 1  # one, however often it is called
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(made[1]).sum() == 12
    assert layer.compute_output_shape((5, 4, 4)).as_list() == [5, None, 3]
    again = L.Lambda.from_config(layer.get_config())
    assert again.compute_output_shape((5, 4, 4)).as_list() == [5, None, 3] and again.compute_mask(0, "m") == "m"
    by_function = L.Lambda(lambda x: x, output_shape=lambda shapes: shapes[::-1])
    assert [s.as_list() for s in by_function.compute_output_shape([(1, 2), (3, 4)])] == [[3, 4], [1, 2]]


def test_shapes_of_examples():
    assert L.Flatten()(tf.zeros([4])).shape.as_list() == [4, 1]
    for dims in ((0, 1), (1, 3)):
        with pytest.raises(ValueError, match="Invalid permutation `dims`"):
            L.Permute(dims)


def test_steps_that_a_mask_leaves_out_put_out_zeros_in_both_directions():
    x = np.random.RandomState(0).rand(2, 3, 4)
    x[0, 2] = 0
    for layer, zero in ((L.Bidirectional(L.LSTM(2, return_sequences=True)), True), (L.GRU(2, return_sequences=True), False)):
        made = tf.keras.Sequential([L.Masking(input_shape=(3, 4)), layer]).predict(x)
        assert (made[0, 2] == 0).all() == zero
    zeros = L.GRU.from_config(L.GRU(2, return_sequences=True, zero_output_for_mask=True).get_config())
    made = tf.keras.Sequential([L.Masking(input_shape=(3, 4)), zeros]).predict(x)
    assert (made[0, 2] == 0).all() and (made[1] != 0).any()


def test_each_output_has_a_metric_of_its_own():
    given = tf.keras.Input(1)
    outputs = [L.Dense(1, use_bias=False, kernel_initializer="ones", name=name)(given) for name in "ab"]
    model = tf.keras.Model(given, outputs)
    metric = tf.keras.metrics.MeanSquaredError
    model.compile("sgd", "mse", metrics=[metric(name="e")], weighted_metrics=[metric(name="f")])
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "a_e", "a_weighted_f", "b_e", "b_weighted_f"]
    x = np.array([[1.0], [2.0]])
    got = model.test_on_batch(x, [x + 1, x + np.array([[2.0], [4.0]])], sample_weight={"b": np.array([3.0, 1.0])})
    np.testing.assert_allclose(got, [1 + 14, 1, 14, 1, 1, 10, 7], rtol=1e-5)


def test_a_normalization_of_the_second_kind_that_is_not_trained_goes_by_its_averages():
    from millrace.layers.normalization import BatchNormalizationV2

    x = np.random.RandomState(0).rand(8, 3)
    for kind, frozen in ((BatchNormalizationV2, True), (L.BatchNormalization, False)):
        made = tf.keras.Sequential([kind(trainable=False, input_shape=(3,), epsilon=0.0)])
        with tf.keras.backend.learning_phase_scope(1):
            y = tf.keras.backend.eval(kind(trainable=False, epsilon=1e-12)(tf.constant(x), training=True))
        assert np.allclose(y, x, atol=1e-6) == frozen and made.built


def test_recurrent_layers_of_the_second_kind():
    from millrace.layers import recurrent_v2

    x = np.random.RandomState(0).rand(2, 3, 4)
    for kind, first, own in ((recurrent_v2.GRU, L.GRU, {"reset_after": True}), (recurrent_v2.LSTM, L.LSTM, {})):
        model = tf.keras.Sequential([kind(2, input_shape=(3, 4))])
        plain = tf.keras.Sequential([first(2, recurrent_activation="sigmoid", input_shape=(3, 4), **own)])
        plain.set_weights(model.get_weights())
        np.testing.assert_allclose(model.predict(x), plain.predict(x), rtol=1e-6)
        again = kind.from_config(model.layers[0].get_config())
        assert again.get_config()["recurrent_activation"] == "sigmoid"


class Scaled(L.Layer):
    """A cell whose state is the sum of what it was given, times a constant."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = self.state_size = units

    def build(self, step):
        assert step[-1].value == self.units
        self.built = True

    def call(self, x, states, constants):
        made = states[0] + x * constants[0]
        return made, [made]


def test_cells_are_given_constants():
    x, c = tf.keras.Input((None, 2)), tf.keras.Input(1)
    steps, factor = np.random.RandomState(0).rand(3, 4, 2), np.array([[1.0], [2.0], [3.0]])
    made = tf.keras.Model([x, c], L.RNN(Scaled(2))(x, constants=c)).predict([steps, factor])
    np.testing.assert_allclose(made, steps.sum(1) * factor, rtol=1e-5)
    twice = tf.keras.Model([x, c], L.RNN([Scaled(2), Scaled(2)])(x, constants=c)).predict([steps, factor])
    np.testing.assert_allclose(twice, np.cumsum(steps, 1).sum(1) * factor**2, rtol=1e-5)
    with pytest.raises(ValueError, match="does not support constants"):
        L.RNN(Plain(2))(x, constants=c)


class Plain(L.AbstractRNNCell):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    state_size = output_size = property(lambda self: self.units)

    def call(self, x, states):
        return x, [x]


@pytest.mark.parametrize("kind", [L.GRU, L.SimpleRNN])
def test_sequences_with_the_steps_first(kind):
    x = np.random.RandomState(0).rand(2, 3, 4)
    plain, swapped = (
        tf.keras.Sequential([kind(2, return_sequences=True, time_major=t, batch_input_shape=s)]) for t, s in ((False, x.shape), (True, (3, 2, 4)))
    )
    swapped.set_weights(plain.get_weights())
    np.testing.assert_allclose(swapped.predict(x.transpose(1, 0, 2), batch_size=3), plain.predict(x, batch_size=2).transpose(1, 0, 2), rtol=1e-5)
    assert kind.from_config(swapped.layers[0].get_config()).time_major


def test_what_layers_say_of_their_inputs():
    from millrace.layers.nodes import to_tensor_shape

    spec = L.InputSpec(ndim=3, axes={1: 3, "-1": 2})
    assert to_tensor_shape(spec).as_list() == [None, 3, 2] and to_tensor_shape(L.InputSpec(max_ndim=2)).ndims is None
    with pytest.raises(ValueError, match="Axis 4 is greater than"):
        L.InputSpec(shape=[1, None, 2, 3], axes={4: 5})
    with pytest.raises(TypeError, match="must be integers"):
        L.InputSpec(ndim=2, axes={"last": 5})
    x, mask = np.ones((1, 1, 1), "f"), np.ones((1, 1), bool)
    for given, masks, message in (([x], None, "length 2 or 3"), ([x, x], mask, "mask must be a list"), ([x, x], [mask] * 3, "list of length 2")):
        with pytest.raises(ValueError, match=message):
            L.Attention()(given, mask=masks)


def test_states_of_stacked_cells_are_in_the_order_of_the_cells():
    cells = [tf.keras.layers.LSTMCell(3), tf.keras.layers.LSTMCell(6)]
    layer = tf.keras.layers.RNN(cells, return_state=True)
    assert layer.cell.state_size == ([3, 3], [6, 6])
    assert [x.shape[-1].value for x in layer(tf.zeros([2, 4, 5]))] == [6, 3, 3, 6, 6]
    assert [x.shape.as_list() for x in layer.get_initial_state(tf.zeros([2, 4, 5]))] == [[2, 3], [2, 3], [2, 6], [2, 6]]
    again = [type(cell).from_config(cell.get_config()) for cell in cells]
    back = tf.keras.layers.RNN(tf.keras.layers.StackedRNNCells(again, reverse_state_order=True), return_state=True)
    assert [x.shape[-1].value for x in back(tf.zeros([2, 4, 6]))[1:]] == [6, 6, 3, 3]


def test_recurrent_layers_take_images_and_single_states():
    class Sum(tf.keras.layers.AbstractRNNCell):
        state_size = output_size = tf.TensorShape([2, 3])

        def call(self, inputs, states):
            made = inputs + states[0]
            return made, made

    x = np.random.RandomState(0).randn(2, 4, 2, 3).astype("f")
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.keras.layers.RNN(Sum())(tf.constant(x))), x.sum(1), rtol=1e-5)


def test_layers_of_both_directions_may_be_given():
    forward, backward = tf.keras.layers.LSTM(2, return_sequences=True), tf.keras.layers.GRU(3, return_sequences=True, go_backwards=True)
    layer = tf.keras.layers.Bidirectional(forward, backward_layer=backward)
    x = tf.constant(np.random.RandomState(0).randn(2, 4, 5).astype("f"))
    made = layer(x)
    assert made.shape.as_list() == [2, 4, 5] and layer.backward_layer is backward
    again = tf.keras.layers.Bidirectional.from_config(layer.get_config())
    assert isinstance(again.backward_layer, tf.keras.layers.GRU) and not forward.built
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*session.run([made[:, :, 2:], backward(x)[:, ::-1]]), rtol=1e-5)
    with pytest.raises(ValueError, match="different `go_backwards`"):
        tf.keras.layers.Bidirectional(forward, backward_layer=tf.keras.layers.LSTM(2, return_sequences=True))


def test_masks_of_steps_go_through_layers_at_each_step():
    model = tf.keras.Sequential(
        [
            L.TimeDistributed(L.Embedding(5, 2, mask_zero=True), input_shape=(None, None)),
            L.TimeDistributed(L.Dense(3)),
            L.TimeDistributed(L.LSTM(2, return_sequences=True)),
            L.TimeDistributed(L.LSTM(2)),
        ]
    )
    words = np.array([[[1, 2], [3, 0], [0, 0]]])
    masks = [layer.output_mask for layer in model.layers]
    assert all(mask.get_shape().ndims == rank for mask, rank in zip(masks, (3, 3, 3, 2)))
    found = tf.keras.backend.function([model.input], masks)([words])
    assert [m.tolist() for m in found] == [(words > 0).tolist()] * 3 + [[[True, True, False]]]
    steps = tf.keras.Sequential([L.TimeDistributed(L.Masking(), input_shape=(None, 2))])
    assert tf.keras.backend.function([steps.input], [steps.output_mask])([np.array([[[1.0, 0.0], [0.0, 0.0]]])])[0].tolist() == [[True, False]]


def test_sizes_of_inputs_as_recurrent_layers_are_told_them():
    for given, shape in (({"input_length": 10, "input_dim": 8}, (None, 10, 8)), ({"input_dim": 8}, (None, None, 8)), ({"input_length": 10}, (None, 10, None))):
        assert L.SimpleRNN(5, **given)._batch_input_shape == shape
    model = tf.keras.Sequential([L.LSTM(3, input_dim=4)])
    assert model.output_shape == (None, 3)
    model.layers[0]._batch_input_shape = (2, 6, 5)
    assert tf.keras.models.model_from_json(model.to_json()).input_shape == (2, 6, 5)


def test_first_states_of_cells():
    inputs = tf.keras.Input((None, 10))
    for cell in (L.SimpleRNNCell(5), L.GRUCell(5)):
        state = cell.get_initial_state(inputs, None, None)
        assert state.shape.as_list() == [None, 5] and state.dtype == inputs.dtype
    cells = L.StackedRNNCells([L.SimpleRNNCell(5), L.LSTMCell(3)])
    first, (h, c) = cells.get_initial_state(inputs)
    assert [x.shape.as_list() for x in (first, h, c)] == [[None, 5], [None, 3], [None, 3]]
    outputs, state = tf.nn.dynamic_rnn(L.GRUCell(4), tf.ones([2, 3, 4]), dtype=tf.float32)
    assert outputs.shape.as_list() == [2, 3, 4] and state.shape.as_list() == [2, 4]


def test_normalization_of_the_second_kind_is_named_as_the_first():
    layer = BatchNormalizationV2()
    assert L.serialize(layer)["class_name"] == "BatchNormalization"
    for name in ("BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2"):
        assert isinstance(L.deserialize({**L.serialize(layer), "class_name": name}), L.BatchNormalization)


def test_what_programs_take_from_modules_of_layers():
    from millrace.layers import local, recurrent_v2

    with tf.Graph().as_default(), tf.Session() as session:
        for rows, shape in ((1, (2, 12)), (2, (6, 4)), (3, (24, 1))):
            made = session.run(local.make_2d(tf.constant(np.arange(24).reshape(2, 3, 4)), rows))
            assert made.shape == shape and made.ravel().tolist() == list(range(24))
    assert not recurrent_v2.LSTM(2).could_use_cudnn and not recurrent_v2.GRU(2).could_use_cudnn  # as in graphs of 1.15.5


def test_the_mask_of_a_dense_local_kernel():
    layer = L.LocallyConnected1D(2, 2, implementation=2)
    layer(tf.zeros([1, 3, 1]))
    assert layer.kernel_mask[:, 0, :, 0].tolist() == [[1, 0], [1, 1], [0, 1]]


def test_shapes_of_arrays():
    assert tf.keras.backend.int_shape(np.ones([2, 3])) == (2, 3) and tf.keras.backend.int_shape(tf.placeholder(tf.float32, [None, 3])) == (None, 3)


def test_what_a_lambda_layer_is_made_of():
    with pytest.raises(TypeError, match="must be callable, got 3"):
        tf.keras.layers.Lambda(3)
    config = tf.keras.layers.Lambda(len, output_shape=(3,)).get_config()
    assert "mask" not in config and "mask_type" not in config and config["output_shape_module"] is None
    assert tf.keras.layers.Lambda.from_config(config).mask is None
