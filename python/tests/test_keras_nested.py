# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of tf.keras that lie in dictionaries and in each other."""

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


def values(structure):
    return K.get_session().run(structure)


def test_a_model_of_dictionaries():
    a, b = keras.Input((1,), name="first"), keras.Input((1,), name="second")
    model = keras.Model({"b": b, "a": a}, {"sum": L.add([a, b]), "more": [L.subtract([a, b])]})
    one, two = tf.constant([[5.0]]), tf.constant([[2.0]])
    for each in (model, keras.Model.from_config(json.loads(json.dumps(model.get_config()))), keras.models.clone_model(model)):
        made = values(each({"a": one, "b": two}))
        assert made["sum"] == [[7.0]] and made["more"][0] == [[3.0]]
        assert values(each({"first": one, "second": two}))["more"][0] == [[3.0]]  # by the names of layers
        made = each.predict({"first": np.array([[5.0]]), "second": np.array([[2.0]])})
        assert [m.tolist() for m in made] == [[[3.0]], [[7.0]]]  # in the order of sorted keys
    x = keras.Input((1,))
    outer = keras.Model(x, model({"a": x, "b": x})["sum"])
    assert outer.predict(np.array([[4.0]])) == [[8.0]]
    outer.compile("sgd", "mse")
    assert outer.train_on_batch(np.array([[4.0]]), np.array([[8.0]])) == 0.0


class Deep(L.Layer):
    def call(self, inputs):
        pair, further = inputs
        return {"all": pair[0] + pair[1] + further["x"], "two": (pair[0], pair[1] * 2.0)}


def test_a_layer_of_values_in_each_other():
    a, b, c = (keras.Input((1,)) for _ in range(3))
    made = Deep()([(a, b), {"x": c}])
    assert set(made) == {"all", "two"} and isinstance(made["two"], tuple)
    model = keras.Model([a, b, c], [made["all"], made["two"][1]])
    with keras.utils.custom_object_scope({"Deep": Deep}):
        again = keras.Model.from_config(json.loads(json.dumps(model.get_config())))
    for each in (model, again):
        assert [m.tolist() for m in each.predict([np.full((1, 1), v) for v in (1.0, 2.0, 4.0)])] == [[[7.0]], [[4.0]]]

    class Whole(keras.Model):
        def call(self, inputs):
            return {"twice": inputs * 2.0, "same": inputs}

    whole = Whole()
    assert sorted(whole(tf.ones([1, 1]))) == ["same", "twice"]
    assert [m.tolist() for m in whole.predict(np.ones((1, 1)))] == [[[1.0]], [[2.0]]]


class WithConstants(L.Layer):
    state_size = 1

    def call(self, inputs, states, constants):
        made = inputs + states[0] * constants[0]
        return made, [made]


def test_constants_of_cells_are_the_last_inputs():
    x, c = keras.Input((3, 1)), keras.Input((1,))
    layer = L.RNN(WithConstants())
    layer(x, constants=c)
    with keras.utils.custom_object_scope({"WithConstants": WithConstants}):
        again = L.RNN.from_config(layer.get_config())
    model = keras.Model([x, c], again([x, c]))
    assert model.predict([np.ones((1, 3, 1)), np.full((1, 1), 2.0)]) == [[7.0]]


def test_shapes_of_weights_are_sizes_or_one_size():
    class Scaled(L.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight("scale", input_shape[-1], initializer="ones")

        def call(self, inputs):
            return inputs * self.scale

    assert keras.Sequential([Scaled(input_shape=(3,))]).get_weights()[0].shape == (3,)


def test_a_mean_of_tensors_has_values_from_the_start():
    mean = keras.metrics.MeanTensor()
    with tf.Session() as session, session.as_default():
        result = mean([1.0, 3.0])
        assert session.run(result).tolist() == [1.0, 3.0]


def test_shapes_of_nested_outputs():
    def shapes(given):
        made = L.Lambda(lambda x: x, output_shape=given).compute_output_shape((3, 1))
        return tf.nest.map_structure(lambda shape: shape.as_list(), made)

    assert shapes({"a": (1,), "b": [(2,), (4, 5)]}) == {"a": [3, 1], "b": [[3, 2], [3, 4, 5]]} and shapes([(1,), (2,)]) == [[3, 1], [3, 2]]
    assert shapes((1, 1)) == [3, 1, 1] and shapes(lambda shape: {"a": shape, "b": (None, 7)}) == {"a": [3, 1], "b": [None, 7]}


def test_networks_that_are_subclasses_are_called():
    class Twice(tf.python.keras.engine.network.Network):
        def call(self, inputs):
            return inputs * 2

    assert K.get_value(Twice()(tf.ones([2]))).tolist() == [2, 2]


def test_layers_may_put_out_a_variable():
    class Gives(L.Layer):
        def build(self, input_shape):
            self.v = self.add_weight("v", shape=(2, 5), initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            return self.v

    start = keras.Input((10,))
    model = keras.Model(start, L.Dense(1, kernel_initializer="ones")(Gives()(start)))
    assert model.predict(np.ones((2, 10))).tolist() == [[5], [5]] and len(model.weights) == 3


def test_batch_sizes_of_inputs_have_to_be_one():
    inputs = [keras.Input((10,), batch_size=size) for size in (2, 3, 2)]
    with pytest.raises(ValueError, match="specified batch sizes of the Input Layers are incompatible. Found batch sizes: .2, 3"):
        keras.Model(inputs[:2], L.Lambda(lambda parts: tf.concat(parts, 0))(inputs[:2]))
    assert keras.Model([inputs[0], inputs[2]], L.add([inputs[0], inputs[2]])).input_shape == [(2, 10), (2, 10)]


def test_transposed_convolutions_of_any_number_of_images():
    x, kernel = tf.ones([2, 4, 4, 3]), tf.ones([2, 2, 5, 3])
    made = [K.conv2d_transpose(x, kernel, (size, 8, 8, 5), strides=(2, 2), padding="same") for size in (2, None)]
    np.testing.assert_array_equal(*values(made))


class BuiltAtOnce(keras.Model):
    def __init__(self, sizes):
        super().__init__()
        self.sizes, self.hidden, self.last = sizes, L.Dense(sizes[1]), L.Dense(sizes[2])
        self.build((None, sizes[0]))

    def call(self, inputs):
        return self.last(self.hidden(inputs))

    def get_config(self):
        return {"sizes": self.sizes}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def test_models_within_models_that_were_built_before(tmp_path):
    starts = [keras.Input((4,), name=name) for name in ("one", "two")]
    shared = BuiltAtOnce([4, 3, 2])
    model = keras.Model(starts, L.add([shared(x) for x in starts]))
    data = [np.random.RandomState(i).rand(5, 4) for i in range(2)]
    wanted = model.predict(data)
    pytest.importorskip("h5py")
    model.save(str(tmp_path / "m.h5"))
    again = keras.models.load_model(str(tmp_path / "m.h5"), custom_objects={"BuiltAtOnce": BuiltAtOnce}, compile=False)
    np.testing.assert_allclose(again.predict(data), wanted, rtol=1e-6)


def test_calls_say_their_inputs_as_they_were_given():
    x = L.Input((2,))
    dense, add = L.Dense(3), L.Add()
    y = dense(x)
    z = add([y, y])
    first, second = dense._inbound_nodes[0], add._inbound_nodes[0]
    assert (first.inbound_layers, first.node_indices, first.tensor_indices) == (x._keras_history[0], 0, 0)
    assert first.input_tensors is x and first.output_tensors is y and (first.input_shapes, first.output_shapes) == ((None, 2), (None, 3))
    assert (second.inbound_layers, second.node_indices, second.tensor_indices) == ([dense, dense], [0, 0], [0, 0])
    assert second.output_tensors is z and second.input_shapes == [(None, 3), (None, 3)]
    own = x._keras_history[0]._inbound_nodes[0]
    assert (own.inbound_layers, own.input_tensors, own.output_tensors, own.input_shapes) == ([], [x], [x], [(None, 2)])
    model = keras.Model(x, z)
    assert len(model.get_config()["layers"]) == 3
    with pytest.raises(TypeError, match="unexpected argument: dtype"):
        keras.Model(x, z, dtype="int64")


def test_shapes_in_each_other():
    swap = L.Lambda(lambda inputs: (inputs[1]["a"], {"b": inputs[0]}))
    first, second = swap.compute_output_shape(((10, 20), {"a": (10, 5)}))
    assert (first.as_list(), second["b"].as_list()) == ([10, 5], [10, 20])
