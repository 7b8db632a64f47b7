# SPDX-License-Identifier: Apache-2.0
"""Copies of models: with weights of their own or shared ones, compiled as the model is; the metrics of layers in their order."""

import numpy as np
import pytest

import millrace as tf
from millrace.keras import models

K, L = tf.keras.backend, tf.keras.layers
X, Y = np.random.RandomState(0).rand(4, 3), np.random.RandomState(1).rand(4, 2)


@pytest.fixture(autouse=True)
def clean():
    K.clear_session()
    yield
    K.clear_session()


def functional():
    x = tf.keras.Input([3])
    return tf.keras.Model(x, L.Dense(2)(x))


def compiled(optimizer):
    model = functional()
    model.compile(optimizer, "mse", metrics=["mae", tf.keras.metrics.CategoricalAccuracy("hits")])
    return model


@pytest.mark.parametrize("optimizer", ["adam", tf.train.AdamOptimizer(0.01)])
def test_a_copy_is_compiled_as_the_model_is(optimizer):
    model = compiled(optimizer)
    steps = K.variable(123, "int64")
    copy = models.clone_and_build_model(model, optimizer_iterations=steps)
    assert type(copy.optimizer) is type(model.optimizer) and copy.metrics_names == model.metrics_names
    assert not {id(w) for w in copy.weights} & {id(w) for w in model.weights} and copy.metrics[-1] is not model.metrics[-1]
    copy.train_on_batch(X, Y)
    assert K.get_value(steps) == 124
    given, wanted = tf.constant(X, tf.float32), tf.constant(Y, tf.float32)
    fed = models.clone_and_build_model(model, given, [wanted])
    fed.set_weights(model.get_weights())
    assert fed.train_on_batch(None, None)[0] == pytest.approx(model.test_on_batch(X, Y)[0], 1e-5)


def test_what_cannot_be_copied_is_said():
    class Own(tf.keras.Model):
        pass

    with pytest.raises(ValueError, match="has not been compiled"):
        models.clone_and_build_model(functional())
    assert models.clone_and_build_model(functional(), compile_clone=False).optimizer is None
    with pytest.raises(NotImplementedError, match="no config to be copied by"):
        models.clone_and_build_model(Own(), compile_clone=False)


def test_a_copy_may_share_its_weights():
    model = functional()
    assert models._clone_functional_model(model, layer_fn=models.share_weights).weights == model.weights
    row = tf.keras.Sequential([L.Dense(2, input_shape=(3,))])
    assert models._clone_sequential_model(row, layer_fn=models.share_weights).weights == row.weights


class Measured(L.Layer):
    def call(self, x):
        self.add_metric(tf.reduce_sum(x), name="of_" + self.name, aggregation="mean")
        return x


def test_metrics_are_in_the_order_of_layers():
    x = tf.keras.Input([3])
    inner = tf.keras.Model(x, Measured(name="b")(Measured(name="z")(x)))
    inner.add_metric(tf.reduce_sum(inner.output), name="own", aggregation="mean")
    inner.compile("sgd", "mse", metrics=["mae"])
    assert inner.metrics_names == ["loss", "mean_absolute_error", "of_z", "of_b", "own"]
