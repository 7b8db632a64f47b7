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
    with pytest.raises(ValueError, match="no config to be copied by: set in_place_reset"):
        models.clone_and_build_model(Own(), compile_clone=False)


def test_a_subclass_is_copied_by_its_attributes():
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(2)

        def call(self, inputs):
            return self.dense(inputs)

    model = Own()
    model.compile("adam", "mse", metrics=["mae"])
    model.train_on_batch(X, Y)
    copy = models.clone_and_build_model(model, in_place_reset=True)
    assert copy is not model and type(copy) is Own and copy.optimizer is not model.optimizer
    copy.train_on_batch(X, Y)
    assert copy.metrics_names == model.metrics_names and not {id(w) for w in copy.weights} & {id(w) for w in model.weights}
    given = models.clone_and_build_model(model, tf.keras.Input([3], name="given"), compile_clone=False, in_place_reset=True)
    assert given.inputs[0].op.name == "given" and given.optimizer is None


def test_settings_that_lie_in_another_graph_are_refused():
    with tf.Graph().as_default(), tf.Session():
        model = compiled(tf.keras.optimizers.Adam())
        model.train_on_batch(X, Y)
        config = model.optimizer.get_config()
    with tf.Graph().as_default(), tf.Session():
        with pytest.raises(ValueError, match="Cannot use the given session"):
            models.clone_and_build_model(model)
        assert models.clone_and_build_model(model, optimizer_config=config).metrics_names == model.metrics_names
    assert K.get_value(3) == 3


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


def test_structures_of_models_go_by_their_places():
    inputs = {"x1": tf.keras.Input([1]), "x2": tf.keras.Input([1])}
    made = {"sum": L.Add()([inputs["x1"], inputs["x2"]]), "product": L.Multiply()([inputs["x1"], inputs["x2"]])}
    model = tf.keras.Model(inputs, made)
    shapes = model.compute_output_shape({"x1": (None, 1), "x2": (None, 1)})
    assert {name: shape.as_list() for name, shape in shapes.items()} == {"sum": [None, 1], "product": [None, 1]}
    outputs = model({"a": tf.constant([[2.0]]), "b": tf.constant([[3.0]])})  # other names: in their order
    assert K.get_session().run(outputs) == {"sum": [[5.0]], "product": [[6.0]]}


def test_configs_have_the_values_of_tensors_that_calls_took():
    class Plus(L.Layer):
        def call(self, inputs, more=None):
            return inputs + more["b"] + more["a"]

    x, z = tf.keras.Input([2]), tf.keras.Input([2])
    model = tf.keras.Model([x, z], Plus()(x, more={"a": z, "b": tf.constant([[4.0, 5.0]])}))
    again = tf.keras.Model.from_config(model.get_config(), {"Plus": Plus})
    np.testing.assert_array_equal(again.predict([np.ones([1, 2]), np.full([1, 2], 10.0)]), [[15.0, 16.0]])


def test_models_whose_base_was_not_made_say_so():
    class Forgetful(tf.keras.Model):
        def __init__(self):
            self.parts = [L.Dense(1)]

    with pytest.raises(RuntimeError, match="forgot to call"):
        Forgetful()


def test_states_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="however `cell.state_size` is 3"):
        L.GRU(3)(tf.keras.Input([4, 2]), initial_state=tf.keras.Input([5]))
    with pytest.raises(ValueError, match="batch_size and dtype cannot be None"):
        L.LSTMCell(3).get_initial_state()


@pytest.mark.parametrize("metric", ["top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy"])
def test_each_example_is_looked_for_among_the_best(metric):
    y, p = np.array([2, 0, 1]), np.array([[0.1, 0.5, 0.4], [0.1, 0.5, 0.4], [0.1, 0.5, 0.4]], "float32")
    truth = np.eye(3)[y] if metric.startswith("top") else y
    function = getattr(tf.keras.metrics, metric)
    assert K.eval(function(truth, p, k=2)).tolist() == [1.0, 0.0, 1.0]
    if truth is y:
        assert K.eval(function(y.reshape(1, 3, 1), p[None], k=2)).tolist() == [1.0, 0.0, 1.0]
    model = tf.keras.Sequential([L.Activation("linear", input_shape=(3,))])
    model.compile("sgd", "mse" if truth is not y else "sparse_categorical_crossentropy", weighted_metrics=[lambda a, b: function(a, b, k=2)])
    assert model.evaluate(p, truth, sample_weight=np.array([1.0, 3.0, 1.0]), verbose=0)[1] == pytest.approx(0.4)


def test_a_row_of_layers_is_compiled_before_its_input_is_known():
    row = tf.keras.Sequential([L.Dense(2)])
    row.compile("sgd", "mse", ["mae"], [0.5])
    K.set_value(row.optimizer.lr, 0.0)  # of the optimizer that trains later
    copy = models.clone_and_build_model(row)
    row.fit(X, Y, verbose=0)
    before = row.get_weights()
    loss, error = row.train_on_batch(X, Y)
    assert K.get_value(row.optimizer.lr) == 0.0 and loss == pytest.approx(0.5 * np.mean((row.predict(X) - Y) ** 2), 1e-5)
    np.testing.assert_array_equal(row.get_weights()[0], before[0])
    copy.fit(X, Y, verbose=0)
    assert copy.metrics_names == row.metrics_names == ["loss", "mean_absolute_error"] and error > 0


def test_a_row_of_layers_is_a_graph_once_its_input_is_known():
    row, known = tf.keras.Sequential([L.Dense(2)]), tf.keras.Sequential([L.Dense(2, input_shape=(3,))])
    assert not row._is_graph_network and known._is_graph_network
    assert not models.clone_model(row)._is_graph_network and models.clone_model(known)._is_graph_network
    assert [type(layer) for layer in known._layers] == [L.InputLayer, L.Dense] and row._layers == row.layers


def test_the_input_of_a_row_is_copied():
    row = tf.keras.Sequential([L.InputLayer((3,)), L.Dense(2), L.BatchNormalization()])
    copy = models.clone_model(row)
    assert [type(layer) for layer in copy._layers] == [L.InputLayer, L.Dense, L.BatchNormalization]
    assert copy.input_shape == (None, 3) and copy.output_shape == (None, 2) and len(copy.get_updates_for(copy.inputs)) == 2
    assert [w.shape.as_list() for w in copy.weights] == [w.shape.as_list() for w in row.weights]


def test_a_row_without_input_has_no_weights_yet():
    row = tf.keras.Sequential([L.Dense(2)])
    for name in ("weights", "trainable_weights", "non_trainable_weights", "trainable_variables", "variables"):
        with pytest.raises(ValueError, match="Weights for model .* have not yet been created"):
            getattr(row, name)
    with pytest.raises(ValueError, match="has not yet been built"):
        row.summary()
    row.build((None, 3))
    assert len(row.trainable_weights) == 2 and row.non_trainable_weights == []


@pytest.mark.parametrize("relocated", [False, True])
def test_a_model_on_several_devices(monkeypatch, relocated):
    from millrace.keras.utils import multi_gpu_utils

    K.set_session(tf.Session(config=tf.ConfigProto(allow_soft_placement=True)))
    a, b = tf.keras.Input((3,)), tf.keras.Input((2,))
    joined = tf.keras.layers.concatenate([a, b])
    model = tf.keras.Model([a, b], [tf.keras.layers.Dense(4, name="of_all")(joined), tf.keras.layers.Dense(1, name="of_one")(b)])
    names = ["/job:localhost/replica:0/task:0/device:%s:0" % kind for kind in ("CPU", "GPU")] + ["/job:localhost/replica:0/task:0/device:GPU:2"]
    monkeypatch.setattr(multi_gpu_utils, "_get_available_devices", lambda: names)
    parted = tf.keras.utils.multi_gpu_model(model, [0, 2], cpu_relocation=relocated)
    assert parted.count_params() == model.count_params() and [t.shape.as_list() for t in parted.outputs] == [[None, 4], [None, 1]]
    assert {op.device for op in tf.get_default_graph().get_operations() if op.name.startswith("replica_2/") and op.type == "MatMul"} == {"/device:GPU:2"}
    if not relocated:
        data = [np.arange(15.0).reshape(5, 3), np.arange(10.0).reshape(5, 2)]
        for one, other in zip(model.predict(data), parted.predict(data)):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        parted.compile(loss="mse", optimizer="sgd")
        assert parted.evaluate(data, [np.zeros((5, 4)), np.zeros((5, 1))], verbose=0)[0] > 0


def test_devices_that_are_not_there():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    with pytest.raises(ValueError, match="call `multi_gpu_model` with `gpus >= 2`. Received: `gpus=1`"):
        tf.keras.utils.multi_gpu_model(model, 1)
    with pytest.raises(
        ValueError, match=r"the following devices to be available: \['/cpu:0', '/gpu:0', '/gpu:1'\]. However this machine only has: \['/cpu:0'\]"
    ):
        tf.keras.utils.multi_gpu_model(model, gpus=2)


def test_what_is_fed_has_its_name_of_1_15():
    model = compiled("sgd")
    assert [t.op.name for t in model.targets] == ["dense_target"]
    row = tf.keras.Sequential([L.Dense(2)])
    row.compile("sgd", "mse")
    with pytest.raises(ValueError, match="dictionary input to a Sequential Model which doesn't have FeatureLayer as the first layer"):
        row.fit({"dense_input": X}, Y)
