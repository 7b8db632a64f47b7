# SPDX-License-Identifier: Apache-2.0
"""What models of tf.keras train: which weights, by which gradients, and what layers make of their inputs."""

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


def test_each_gradient_is_clipped_by_its_own_norm():
    v, w = tf.Variable([3.0, 4.0]), tf.Variable([0.3, 0.4])
    gradients = keras.optimizers.SGD(clipnorm=1.0).get_gradients(tf.reduce_sum(v * v) / 2 + tf.reduce_sum(w * w) / 2, [v, w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(gradients), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def changed(model, before):
    return [not np.allclose(a, b) for a, b in zip(before, model.get_weights())]


def test_what_is_trained_is_chosen_when_a_model_is_compiled():
    judge = keras.Sequential([L.Dense(1, input_dim=2)])
    judge.compile("sgd", "mse")
    judge.trainable = False
    maker = L.Dense(2, input_dim=2)
    both = keras.Sequential([maker, judge])
    both.compile("sgd", "mse")
    x = np.ones((4, 2), "f")
    before, made = judge.get_weights(), maker.get_weights()
    both.train_on_batch(x, np.ones((4, 1)))
    assert changed(judge, before) == [False, False] and changed(maker, made)[1]
    judge.train_on_batch(x, np.full((4, 1), 9.0))
    assert changed(judge, before) == [True, True]


def test_updates_are_those_of_when_a_model_is_compiled():
    norm = L.BatchNormalization(momentum=0.5)
    x = keras.Input((2,))
    frozen = keras.Model(x, norm(x))
    norm.trainable = False
    frozen.compile("sgd", "mse")
    norm.trainable = True
    before = norm.get_weights()
    frozen.train_on_batch(np.ones((4, 2)), np.ones((4, 2)))
    assert changed(norm, before) == [False] * 4


def test_setting_trainable_reaches_all_layers_inside():
    inner = keras.Sequential([L.Dense(3, input_dim=2)])
    inner.trainable = False
    whole = keras.Model(inner.input, L.Dense(1)(inner.output))
    assert [len(whole.trainable_weights), len(whole.non_trainable_weights)] == [2, 2]
    inner.trainable = True
    assert len(whole.trainable_weights) == 4
    around = L.Bidirectional(L.LSTM(2))
    around.trainable = False
    assert not around.forward_layer.cell.trainable


@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("kind, rank", [(L.LocallyConnected1D, 1), (L.LocallyConnected2D, 2)])
def test_implementations_of_local_convolutions_agree(kind, rank, data_format):
    random, size, channels, filters, kernel = np.random.RandomState(0), 5, 2, 3, 2
    first = data_format == "channels_first"
    x = random.randn(2, *((channels,) + (size,) * rank if first else (size,) * rank + (channels,))).astype("f")
    layers = [kind(filters, kernel, data_format=data_format, implementation=i, use_bias=False) for i in (1, 2, 3)]
    outputs = [layer(tf.constant(x)) for layer in layers]
    out = size - kernel + 1
    dense = random.randn(*layers[1].kernel.shape.as_list()).astype("f")
    flat = dense.reshape(channels * size**rank, filters * out**rank)
    places = list(np.ndindex(*(out,) * rank))
    one = []
    for place in places:
        columns = [
            np.ravel_multi_index((f, *place) if first else (*place, f), (filters,) + (out,) * rank if first else (out,) * rank + (filters,))
            for f in range(filters)
        ]
        seen = [[p + k for p, k in zip(place, offset)] for offset in np.ndindex(*(kernel,) * rank)]
        order = [(c, *s) for c in range(channels) for s in seen] if first else [(*s, c) for s in seen for c in range(channels)]
        rows = [np.ravel_multi_index(at, x.shape[1:]) for at in order]
        one.append(flat[np.ix_(rows, columns)])
    layers[0].set_weights([np.array(one)])
    layers[1].set_weights([dense])
    layers[2].set_weights([np.array([flat[source, to] for to, source in layers[2]._places])])
    results = K.batch_get_value(outputs)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-4, atol=1e-5)
    assert kind.from_config(layers[2].get_config()).implementation == 3


def test_local_convolutions_are_padded_unless_by_one_matrix_each():
    layer = L.LocallyConnected1D(3, 3, padding="same", implementation=2)
    assert layer(tf.zeros([2, 7, 2])).shape.as_list() == [2, 7, 3]
    with pytest.raises(ValueError, match="implementation is 1"):
        L.LocallyConnected1D(3, 3, padding="same")
    with pytest.raises(ValueError, match="Unrecognized implementation"):
        L.LocallyConnected1D(3, 3, implementation=4)


def test_what_is_wrong_with_data_is_said():
    x = keras.Input((3,))
    two = keras.Model(x, [L.Dense(1, name="a")(x), L.Dense(1, name="b")(x)])
    two.compile("sgd", "mse")
    data, y = np.ones((8, 3)), np.ones((8, 1))
    batches = tf.data.Dataset.from_tensor_slices((np.ones((8, 3), "f"), np.ones((8, 1), "f"))).batch(4)
    one = keras.Sequential([L.Dense(1, batch_input_shape=(4, 3))])
    one.compile("sgd", "mse")
    for call, message in (
        (lambda: two.fit(data, [y, y], sample_weight={"c": y[:, 0]}, verbose=0), r"Unknown entries in sample_weight dictionary: \['c'\]"),
        (lambda: two.compile("sgd", "mse", metrics=[["mae"], ["mae"], ["mae"]]), "list of lists as `metrics`"),
        (lambda: one.fit(batches, y), "should not specify a target"),
        (lambda: one.fit(batches, sample_weight=y), "`sample_weight` argument is not supported"),
        (lambda: one.fit(batches, validation_split=0.5), "`validation_split` argument is not supported"),
        (lambda: one.predict(batches, batch_size=4), "`batch_size` argument must not be specified"),
        (lambda: one.fit(data, y, batch_size=2), "incompatible with the specified batch size"),
        (lambda: one.fit(tf.constant(data), tf.constant(y)), "specify the `steps_per_epoch` argument"),
        (lambda: one.fit(data, np.ones((8, 2))), "target array with shape"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    rows = keras.Sequential([L.Lambda(lambda x: tf.concat([x, x], 0), input_shape=(3,))])
    with pytest.raises(ValueError, match="Mismatch between expected batch size"):
        rows.predict(data)


def test_metrics_and_batches_as_they_are_asked_for():
    x = keras.Input((3,))
    two = keras.Model(x, [L.Dense(1, name="a")(x), L.Dense(1, name="b")(x)])
    two.compile("sgd", "mse", metrics=[["mae"], ["mse"]])
    assert two.metrics_names[-2:] == ["a_mean_absolute_error", "b_mean_squared_error"]
    one = keras.Sequential([L.Dense(1, batch_input_shape=(4, 3))])
    one.compile("sgd", "mse")
    seen = []
    one.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(batch))])
    assert seen == [0, 1]


def test_tensors_as_data():
    model = keras.Sequential([L.Dense(1, input_dim=3, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    for x, y in ((tf.ones([4, 3]), tf.zeros([4, 1])), (K.ones((4, 3)), K.zeros((4, 1)))):
        assert model.fit(x, y, steps_per_epoch=2, verbose=0, validation_data=(x, y), validation_steps=1).history == {"loss": [9.0], "val_loss": [9.0]}
        assert model.evaluate(x, y, steps=2) == model.train_on_batch(x, y) == 9.0
        assert model.predict(x, steps=2).shape == (8, 1) and model.predict_on_batch(x).tolist() == [[3.0]] * 4


def test_a_data_set_that_ends_stops_the_training():
    model = keras.Sequential([L.Dense(1, input_dim=3)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones((8, 3), "f"), np.ones((8, 1), "f"))).batch(4)
    seen = []
    counting = keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(batch))
    assert len(model.fit(data, steps_per_epoch=3, epochs=2, verbose=0, callbacks=[counting]).epoch) == 1 and seen == [0, 1]


def test_what_a_layer_is_told_reaches_the_layers_inside():
    class Dropping(keras.Model):
        def __init__(self):
            super().__init__()
            self.drop = L.Dropout(0.5)

        def call(self, inputs, training=None):
            return self.drop(inputs)

    model, x = Dropping(), tf.ones([4, 1000])
    lowest = [tf.reduce_min(model(x, training=training)) for training in (True, False)] + [tf.reduce_min(model(x))]
    assert K.get_session().run(lowest[:2]) == [0.0, 1.0]
    assert [K.get_session().run(lowest[2], {K.learning_phase(): phase}) for phase in (0, 1)] == [1.0, 0.0]


def test_rates_can_be_set():
    model = keras.Sequential([L.Dense(1, input_dim=1, use_bias=False, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.optimizer.learning_rate = 0.25
    model.train_on_batch([[1.0]], [[1.0]])
    model.optimizer.lr = 0.0
    model.train_on_batch([[1.0]], [[1.0]])
    assert model.get_weights()[0] == 0.5 and model.optimizer.get_config()["learning_rate"] == 0.0


def test_checkpoints_are_read_on_restart(tmp_path):
    model = keras.Sequential([L.Dense(1, input_dim=1, use_bias=False, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    kept = keras.callbacks.ModelCheckpoint(str(tmp_path / "w.{epoch:02d}"), save_weights_only=True, load_weights_on_restart=True)
    x = np.ones((4, 1))
    model.fit(x, x, epochs=2, verbose=0, callbacks=[kept])
    trained = model.get_weights()[0]
    model.set_weights([[[9.0]]])
    model.fit(x, x, epochs=1, verbose=0, callbacks=[kept])
    assert abs(model.get_weights()[0] - 1) < abs(trained - 1)


def test_weights_in_checkpoints_go_by_the_order_of_layers(tmp_path):
    def made():
        return keras.Sequential([L.Dense(2, input_dim=3, name="first"), L.Activation("relu"), L.Dense(1)])

    model, again = made(), made()
    model.save_weights(str(tmp_path / "weights"))
    newest = tf.train.latest_checkpoint(str(tmp_path))
    assert newest == str(tmp_path / "weights")
    assert "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(newest))
    again.load_weights(newest).assert_consumed()
    for a, b in zip(model.get_weights(), again.get_weights()):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="has no weights yet"):
        keras.Sequential([L.Dense(1)]).save_weights(str(tmp_path / "none"))


def test_outputs_of_one_layer_have_names_of_their_own():
    class Two(L.Layer):
        def call(self, inputs):
            return inputs * 1.0, inputs * 2.0

    x = keras.Input((1,))
    model = keras.Model(x, Two(name="out")(x))
    assert model.output_names == ["out", "out_1"]
    model.compile("sgd", {"out": "mse", "out_1": "mae"})
    assert model.test_on_batch(np.ones((2, 1)), {"out": np.zeros((2, 1)), "out_1": np.zeros((2, 1))}) == [3.0, 1.0, 2.0]


def test_inputs_that_no_model_takes_and_data_without_examples():
    x = keras.Input((2,))
    model = keras.Model(x, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse", ["mae"])
    data, y = np.arange(8.0).reshape(4, 2), np.ones((4, 1))
    np.testing.assert_array_equal(model.predict([data, data * 2]), model.predict(data))  # as in 1.15, which takes what it needs
    with pytest.raises(ValueError, match="to have shape"):
        model.predict(data.tolist())  # a list of lists is one of inputs
    for run in (model.evaluate, model.fit):
        with pytest.raises(ValueError, match="Empty training data"):
            run(data[:0], y[:0], verbose=0)
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        keras.layers.Dense(-1)(x)


def test_losses_are_means_in_double_precision_and_metrics_what_the_graph_gives():
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones", input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.0), "mse", ["mae", keras.metrics.Recall(thresholds=[0.1, 0.9])])
    x, y = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 1.0]]), np.array([[1.0], [1.0], [0.0]])
    history = model.fit(x, y, batch_size=2, verbose=0, validation_data=(x, y)).history
    for loss, mae, recall in ([v[0] for v in list(history.values())[:3]], [v[0] for v in list(history.values())[3:]], model.evaluate(x, y, verbose=0)):
        assert (loss.dtype, mae.dtype) == (np.float64, np.float32)
        assert recall.tolist() == [0.5, 0.5]
    json.dumps(history["loss"])  # floats of Python, too
    assert {v.dtype for v in model.train_on_batch(x, y)} == {np.dtype(np.float32)}


def test_numbers_and_long_tuples_are_no_data():
    model = keras.Sequential([L.Dense(4, input_shape=(2,))])
    model.compile("sgd", "mse")
    x, y = np.ones((3, 2)), np.ones((3, 4))
    for wrong in (lambda: model.fit(x, 0), lambda: model.fit(0, y), lambda: model.train_on_batch(0, y)):
        with pytest.raises(ValueError, match="Expected an array data type but received an integer: 0"):
            wrong()
    with pytest.raises(ValueError, match="should be a tuple of 1 or 2 or 3 elements"):
        model.predict_generator(iter([(x, y, None, 1)] * 2), steps=2)
    for right in ((x, y, None), (x, y), (x,), x, [x]):
        assert model.predict_generator(iter([right] * 2), steps=2).shape == (6, 4)
        assert keras.Sequential(model.layers).predict_generator(iter([right]), steps=1).shape == (3, 4)


def test_compiled_losses_are_objects_of_functions():
    inputs = keras.layers.Input([3])
    model = keras.Model(inputs, [keras.layers.Dense(1, name="a")(inputs), keras.layers.Dense(1, name="b")(inputs)])
    own = keras.losses.MeanSquaredError()
    model.compile("sgd", {"a": "mae", "b": own}, loss_weights={"b": 2})
    first, second = model.loss_functions
    assert first.fn is keras.losses.mean_absolute_error and second is own and model._loss_weights_list == [1.0, 2.0]
    with tf.Session() as session:
        assert session.run(first(tf.constant([[1.0], [2.0]]), tf.constant([[3.0], [2.5]]))) == 1.25


def test_functions_of_a_model_are_made_before_they_are_used():
    x, y = np.ones([3, 2], np.float32), np.ones([3, 1], np.float32)
    model = keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(2,))])
    model._make_predict_function()
    assert model.predict_function([x])[0].tolist() == [[0.0]] * 3 and model.train_function is None
    with pytest.raises(RuntimeError, match="must compile your model"):
        model._make_test_function()
    model.compile(keras.optimizers.SGD(0.25), "mse", metrics=["mae"])
    assert model.predict_function is None and model.run_eagerly is False
    model._make_train_function()
    assert model.train_function.inputs[-1] is K.learning_phase() and len(model.train_function.outputs) == 2
    np.testing.assert_allclose(model.train_function([x, y, True]), [1.0, 1.0])
    model._make_test_function()
    np.testing.assert_allclose(model.test_function([x, y]), [0.25, 0.75])  # metrics count on
    for refused in (lambda: setattr(model, "run_eagerly", True), lambda: model.compile("sgd", "mse", run_eagerly=True)):
        with pytest.raises(ValueError, match="if eager execution is enabled"):
            refused()


def test_what_a_model_is_fed_with_is_known_by_keras_names():
    x, y = np.ones([3, 2], np.float32), np.ones([3, 1], np.float32)
    model = keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(2,), name="d")])
    assert not model._is_compiled
    model.compile(keras.optimizers.SGD(0.25), "mse")
    gradients = K.function(model._feed_inputs + model._feed_targets + model._feed_sample_weights, K.gradients(model.total_loss, model.trainable_weights))
    inputs, targets, weights = model._standardize_user_data(x, y)
    assert [g.tolist() for g in gradients(inputs + targets + weights)] == [[[-2], [-2]], [-2]]
    assert model._is_compiled and model._feed_outputs == model.outputs and model._feed_output_names == ["d"]
