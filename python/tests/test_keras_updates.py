# SPDX-License-Identifier: Apache-2.0
"""What layers and models add to a training step: losses and updates of calls, of other models' calls, and of none; the values are TensorFlow 1.15's."""

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
K, L = keras.backend, keras.layers
X = np.arange(12, dtype="float32").reshape(4, 3) / 10.0
Y = X.sum(1, keepdims=True)


@pytest.fixture(autouse=True)
def session():
    K.clear_session()
    yield
    K.clear_session()


class Counting(L.Layer):
    """Counts its steps; `add` gives the operation, or a function that makes it, of the counter and the inputs."""

    def __init__(self, add):
        super().__init__()
        self.add = add

    def build(self, shape):
        self.count = self.add_weight("count", (), initializer="zeros", trainable=False)
        super().build(shape)

    def call(self, x):
        self.add_update(self.add(self.count, x), inputs=x)
        return x * 1.0


def steps_of(model, counter, steps=2):
    model.compile("sgd", "mse")
    model.fit([X] * len(model.inputs), Y, batch_size=4, epochs=steps, verbose=0)
    return K.get_value(counter)


FREE = lambda count, x: count.assign_add(1.0)
OF_INPUTS = lambda count, x: count.assign_add(K.sum(x) * 0.0 + 1.0).op
MADE_LATE = lambda count, x: lambda: count.assign_add(1.0)


def test_an_update_of_a_model_runs_whatever_it_depends_on():
    x = L.Input((3,))
    model = keras.Model(x, L.Dense(1)(x))
    first, second = K.variable(0.0), K.variable(0.0)
    model.add_update(first.assign_add(1.0), inputs=x)
    model.add_update([second.assign_add(K.sum(x) * 0.0 + 1.0)])
    assert len(model.get_updates_for(None)) == 1 == len(model.get_updates_for(x)) and len(model.updates) == 2
    assert steps_of(model, first) == 2.0 and K.get_value(second) == 2.0


@pytest.mark.parametrize("add, free", [(FREE, 1), (OF_INPUTS, 0), (MADE_LATE, 1)])
def test_updates_of_a_nested_model_run_for_each_call_that_they_depend_on(add, free):
    layer, x = Counting(add), L.Input((3,))
    inner = keras.Model(x, L.Dense(2)(layer(x)))
    a, b = L.Input((3,)), L.Input((3,))
    model = keras.Model([a, b], L.Dense(1)(L.add([inner(a), inner(b)])))
    assert len(layer.updates) == 3 == len(model.updates)
    assert [len(model.get_updates_for(None)), len(model.get_updates_for([a, b])), len(inner.get_updates_for(x))] == ([3, 0, 0] if free else [0, 2, 1])
    assert steps_of(model, layer.count) == (6.0 if free else 4.0)  # what depends on nothing runs for the call within `inner` as well


@pytest.mark.parametrize("freeze", ["layer", "inner", None])
def test_a_frozen_layer_updates_nothing(freeze):
    layer = L.BatchNormalization(momentum=0.5)
    inner = keras.Sequential([L.Dense(2, input_shape=(3,)), layer])
    model = keras.Sequential([inner, L.Dense(1)])
    model.build((None, 3))
    {"layer": layer, "inner": inner, None: keras.layers.Dropout(0.5)}[freeze].trainable = False
    moved = steps_of(model, layer.moving_mean)
    assert (np.abs(moved) > 0).any() == (freeze is None) and len(model.updates) == (0 if freeze else 4)
    inner.trainable = True  # compiled is compiled
    model.fit(X, Y, verbose=0)
    assert (np.abs(K.get_value(layer.moving_mean)) > 0).any() == (freeze is None)


@pytest.mark.parametrize("trainable", [True, False])
def test_the_collection_has_updates_of_layers_that_are_trained(trainable):
    tf.layers.batch_normalization(tf.placeholder(tf.float32, [None, 3]), training=True, trainable=trainable, name="norm")
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == (2 if trainable else 0)


def test_a_loss_given_with_inputs_counts_where_it_depends_on_them():
    x = L.Input((3,))
    dense = L.Dense(1, kernel_initializer="ones")
    model = keras.Model(x, dense(x))
    dense.add_loss(K.sum(dense.kernel), inputs=x)
    dense.add_loss(K.sum(dense.kernel) * 0.5)
    model.compile("sgd", "mse")
    assert len(model.losses) == 2 and len(model.get_losses_for(None)) == 1 and model.get_losses_for(x) == []
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(1.5)


def test_a_layer_in_a_model_and_in_another_inside_of_it_counts_twice():
    dense = L.Dense(3, kernel_initializer="ones", kernel_regularizer=keras.regularizers.l2(1.0))
    inner, x = keras.Sequential([dense]), L.Input((3,))
    inner.build((None, 3))
    model = keras.Model(x, inner(dense(x)))
    model.compile("sgd", "mse")
    assert len(model.losses) == 2 and model.evaluate(X, np.tile(3.0 * Y, 3), verbose=0) == pytest.approx(18.0)
    assert [w.name for w in model.weights] == ["dense/kernel:0", "dense/bias:0"] * 2 and model.count_params() == 24
    model.set_weights([np.zeros_like(w) for w in model.get_weights()[:2]] + [np.ones((3, 3)), np.ones(3)])
    assert np.allclose(model.predict(X[:1]), 1.0 + 3 * (X[:1].sum() + 1.0))


def test_weights_of_a_model_come_after_those_of_its_layers():
    class Scaled(keras.Model):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(2.0, name="scale", use_resource=True)
            self.fixed = tf.Variable(3.0, name="fixed", trainable=False, use_resource=True)
            self.dense = L.Dense(1)

        def call(self, x):
            return self.dense(x) * self.scale + self.fixed

    model = Scaled()
    model(tf.constant(X))
    names = [w.name.split("/", 1)[-1] for w in model.weights]
    assert names == ["dense/kernel:0", "dense/bias:0", "scale:0", "fixed:0"] == [w.name.split("/", 1)[-1] for w in model.trainable_weights] + ["fixed:0"]
    model.trainable = False
    assert [w.name.split("/", 1)[-1] for w in model.non_trainable_weights] == ["scale:0", "dense/kernel:0", "dense/bias:0", "fixed:0"]


def test_weights_are_resources():
    """As 1.15 makes them: what reads a weight before an update keeps what it read, and `handle` is there."""
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    layer(tf.zeros([1, 2]))
    referred = tf.keras.layers.Layer().add_weight("w", [2], use_resource=False)
    for v in (layer.kernel, layer.bias, tf.keras.backend.variable([1.0]), tf.keras.backend.random_uniform_variable([2], 0.0, 1.0)):
        assert v.op.type == "VarHandleOp" and v.handle.dtype == tf.resource and v.dtype == tf.float32
    assert referred.op.type == "VariableV2" and referred.dtype != tf.float32


def test_functions_tell_what_they_fetch():
    x, seen = tf.placeholder(tf.float32, []), []
    double = x * 2.0
    function = tf.keras.backend.function([x], [x + 1.0])
    function.fetches.append(double)
    function.fetch_callbacks[double] = seen.append
    assert function([10.0]) == [11.0] and seen == [20.0]


def test_what_waits_for_an_operation_depends_on_it():
    from millrace.keras.utils.tf_utils import get_reachable_from_inputs

    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([x + 1.0]):
        after = tf.constant(2.0)
    assert after.op in get_reachable_from_inputs([x]) and tf.constant(1.0).op not in get_reachable_from_inputs([x])
