# SPDX-License-Identifier: Apache-2.0
"""tf.keras. Numbers that are written down are what Keras 3.15 gives for the same weights and data."""

import io
import os
import re
import sys
import time

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


def filled(model, random):
    model.set_weights([(random.randn(*w.shape) * 0.3).astype("f") for w in model.get_weights()])


CASES = {
    "lstm": (lambda: L.LSTM(4, recurrent_activation="sigmoid", return_sequences=True), [70.02041, 0.10964, 1.18782, 1.18641, 1.18503]),
    "gru": (lambda: L.GRU(4, recurrent_activation="sigmoid"), [78.89585, 0.07685, 1.10673, 1.10651, 1.10629]),
    "rnn": (lambda: L.SimpleRNN(4), [72.09041, 0.09006, 1.12176, 1.12103, 1.1203]),
    "bi": (lambda: L.Bidirectional(L.LSTM(4, recurrent_activation="sigmoid")), [87.25398, 0.0865, 1.09615, 1.09607, 1.09599]),
}


def results(model, x, y):
    made = model.predict(x)
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return [float((made * np.arange(1, 4)).sum()), float(np.abs(made).std()), *[model.train_on_batch(x, y)[0] for _ in range(3)]]


def test_layers_along_sequences_and_images():
    random = np.random.RandomState(0)
    x, images, y = random.randn(40, 6, 3).astype("f"), random.randn(40, 8, 8, 2).astype("f"), random.randint(0, 3, 40)
    random.randint(0, 11, (40, 5))
    for name, (make, expected) in CASES.items():
        model = keras.Sequential([L.TimeDistributed(L.Dense(3), input_shape=(6, 3)), make(), L.Flatten(), L.Dense(3, activation="softmax")])
        filled(model, random)
        np.testing.assert_allclose(results(model, x, y), expected, atol=2e-4, err_msg=name)
    model = keras.Sequential(
        [
            L.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 2)),
            L.MaxPooling2D(),
            L.UpSampling2D(),
            L.Conv2DTranspose(3, 3, strides=2, padding="same"),
            L.ZeroPadding2D(1),
            L.AveragePooling2D(2),
            L.GlobalAveragePooling2D(),
            L.Dense(3, activation="softmax", kernel_regularizer="l2"),
        ]
    )
    filled(model, random)
    np.testing.assert_allclose(results(model, images, y), [84.33915, 0.05195, 1.11151, 1.11128, 1.11106], atol=2e-4)


OPTIMIZERS = {
    "SGD": (dict(lr=0.1, momentum=0.9, nesterov=True), [1.30535, 1.27663, 1.23894, 1.19654, 1.15391]),
    "RMSprop": (dict(lr=0.01), [1.30535, 1.26746, 1.24251, 1.223, 1.20668]),
    "Adadelta": (dict(lr=1.0), [1.30535, 1.3036, 1.30183, 1.30006, 1.29828]),
    "Adam": (dict(lr=0.02), [1.30535, 1.28106, 1.25793, 1.236, 1.21527]),
}


@pytest.mark.parametrize(
    "name, arguments, expected",
    [(n, *v) for n, v in OPTIMIZERS.items()]
    + [
        ("SGD", dict(lr=0.1, clipnorm=0.5), [1.30535, 1.29008, 1.27546, 1.26149, 1.24815]),
        ("SGD", dict(lr=0.5, clipvalue=0.01), [1.30535, 1.29918, 1.29307, 1.28703, 1.28106]),
    ],
)
def test_optimizers(name, arguments, expected):
    random = np.random.RandomState(0)
    x = random.randn(40, 6, 3).astype("f")[:, 0]
    random.randn(40, 8, 8, 2)
    y = np.eye(3)[random.randint(0, 3, 40)]
    model = keras.Sequential([L.Dense(3, activation="softmax", input_shape=(3,))])
    filled(model, np.random.RandomState(1))
    model.compile(getattr(keras.optimizers, name)(**arguments), "categorical_crossentropy")
    np.testing.assert_allclose([model.train_on_batch(x, y) for _ in range(5)], expected, atol=2e-5)
    assert K.get_value(model.optimizer.iterations) == 5


def test_losses():
    y, p = np.array([[0.0, 1.0, 0.0]], "f"), np.array([[0.2, 0.7, 0.1]], "f")
    d = p - y
    expected = {
        "mse": np.mean(d**2),
        "mae": np.mean(abs(d)),
        "hinge": np.mean(np.maximum(1 - (2 * y - 1) * p, 0)),
        "categorical_crossentropy": -np.log(0.7),
        "binary_crossentropy": -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)),
        "logcosh": np.mean(np.log(np.cosh(d))),
        "poisson": np.mean(p - y * np.log(p)),
        "cosine_proximity": -0.7 / np.linalg.norm(p),
        "categorical_accuracy": 1,
        "binary_accuracy": 1,
        "msle": np.mean((np.log(y + 1) - np.log(p + 1)) ** 2),
        "squared_hinge": np.mean(np.maximum(1 - (2 * y - 1) * p, 0) ** 2),
    }
    for name, value in expected.items():
        made = K.get_value((keras.metrics if "accuracy" in name else keras.losses).get(name)(tf.constant(y), tf.constant(p)))
        np.testing.assert_allclose(np.ravel(made), [value], rtol=1e-4, err_msg=name)
    with pytest.raises(ValueError, match="Unknown loss"):
        keras.losses.get("none")


def test_models_of_several_inputs_and_shared_layers():
    a, b = keras.Input((3,), name="a"), keras.Input(shape=(3,), name="b")
    shared = L.Dense(4, activation="relu", name="shared")
    both = L.concatenate([shared(a), shared(b)])
    one, two = L.Dense(1, name="one")(both), L.Dense(2, activation="softmax", name="two")(L.Lambda(lambda t: t * 2)(both))
    model = keras.Model(inputs=[a, b], outputs=[one, two])
    assert [w.op.name for w in model.weights][:2] == ["shared/kernel", "shared/bias"] and len(model.weights) == 6 and len(model.layers) == 7
    random = np.random.RandomState(0)
    x, u, y = random.randn(64, 3), random.randn(64, 3), (random.rand(64) > 0.5).astype(int)
    model.compile(keras.optimizers.Adam(0.02), {"one": "mse", "two": "sparse_categorical_crossentropy"}, metrics={"two": "accuracy"}, loss_weights=[1.0, 0.5])
    made = model.fit({"a": x, "b": u}, [x.sum(1), y], epochs=40, verbose=0)
    assert set(made.history) == {"loss", "one_loss", "two_loss", "two_acc"} and made.history["loss"][-1] < made.history["loss"][0] / 2
    loss, first, second, _ = model.evaluate([x, u], [x.sum(1), y], verbose=0)
    assert loss == pytest.approx(first + second / 2, rel=1e-4)
    assert [p.shape for p in model.predict([x, u])] == [(64, 1), (64, 2)]
    outer = keras.Input((3,))  # a model is a layer
    nested = keras.Model(outer, model([outer, outer])[0])
    np.testing.assert_allclose(nested.predict(x), model.predict([x, x])[0], rtol=1e-5)
    middle = keras.Model(a, model.get_layer("shared").get_output_at(0))
    assert middle.predict(x).shape == (64, 4)


def test_sequential_without_a_shape_and_with_normalisation(capsys):
    random = np.random.RandomState(0)
    x = random.randn(300, 5).astype("f")
    y = (x.sum(1) > 0).astype(int)
    model = keras.Sequential([L.Dense(16), L.BatchNormalization(), L.Activation("relu"), L.Dropout(0.1), L.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    history = model.fit(x, y, batch_size=50, epochs=12, validation_split=0.2, class_weight={0: 1.0, 1: 1.0})
    assert "Epoch 12/12" in capsys.readouterr().out and history.epoch == list(range(12))
    assert set(history.history) == {"loss", "acc", "val_loss", "val_acc"} and history.history["val_acc"][-1] > 0.85
    assert model.predict_classes(x).shape == (300, 1) and abs(model.get_weights()[2].mean()) < 5
    averages = model.layers[1].moving_variance
    assert not np.allclose(K.get_value(averages), 1)
    assert np.array_equal(model.predict(x), model.predict(x))  # nothing is dropped
    model.summary()
    assert "Total params: 177" in capsys.readouterr().out


def test_what_is_frozen_stays():
    model = keras.Sequential([L.Dense(3, input_dim=2, name="still"), L.Dense(1)])
    model.get_layer("still").trainable = False
    model.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
    before = model.get_weights()
    model.train_on_batch(np.ones([4, 2]), np.ones([4]), sample_weight=[1, 1, 0, 0])
    after = model.get_weights()
    assert [np.array_equal(p, q) for p, q in zip(before, after)] == [True, True, False, False]


def test_callbacks(tmp_path):
    x, y = np.random.RandomState(0).randn(40, 2), np.zeros(40)
    model = keras.Sequential([L.Dense(1, input_shape=(2,))])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    rates = []
    C = keras.callbacks
    made = model.fit(
        x,
        y,
        epochs=3,
        verbose=0,
        callbacks=[
            C.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1)),
            C.LambdaCallback(on_epoch_end=lambda e, logs: rates.append(K.get_value(model.optimizer.lr))),
            C.CSVLogger(str(tmp_path / "log.csv")),
            C.TensorBoard(str(tmp_path / "board")),
            C.ModelCheckpoint(str(tmp_path / "w-{epoch}"), "loss", save_best_only=True, save_weights_only=True),
        ],
    )
    np.testing.assert_allclose(rates, [0.1, 0.05, 0.1 / 3], rtol=1e-6)
    assert (tmp_path / "log.csv").read_text().startswith("epoch,loss,lr\n0,") and len(made.epoch) == 3
    assert any("tfevents" in n for n in os.listdir(tmp_path / "board")) and (tmp_path / "w-3.index").exists()
    stop = C.EarlyStopping("loss", patience=2, min_delta=10)
    assert len(model.fit(x, y, epochs=50, verbose=0, callbacks=[stop]).epoch) == 3
    K.set_value(model.optimizer.lr, 0.1)
    model.fit(x, y, epochs=4, verbose=0, callbacks=[C.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=10)])
    assert K.get_value(model.optimizer.lr) == pytest.approx(0.1 * 0.5**3)
    assert len(model.fit(x, np.full(40, np.nan), epochs=9, verbose=0, callbacks=[C.TerminateOnNaN()]).epoch) == 1


def test_weights_in_files_and_generators(tmp_path):
    def make():
        K.clear_session()
        model = keras.Sequential([L.Dense(2, input_shape=(3,))])
        model.compile("adam", "mse")
        return model

    model = make()
    batches = ((np.ones([8, 3]) * i, np.ones([8, 2]) * i) for i in range(100))
    history = model.fit_generator(batches, steps_per_epoch=5, epochs=4, verbose=0)
    assert len(history.history["loss"]) == 4 and next(batches)[0][0, 0] == 20
    model.save_weights(str(tmp_path / "weights"))
    kept = model.get_weights()
    again = make()
    assert not np.allclose(again.get_weights()[0], kept[0])
    again.load_weights(str(tmp_path / "weights"))
    assert all(np.array_equal(p, q) for p, q in zip(again.get_weights(), kept))
    try:
        import h5py  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="writes a checkpoint"):
            again.save_weights(str(tmp_path / "w.h5"))
        with pytest.raises(ImportError, match="h5py"):
            keras.models.load_model(str(tmp_path / "w.h5"))
        return
    again.train_on_batch(np.ones([4, 3]), np.ones([4, 2]))
    again.save(str(tmp_path / "whole.h5"))
    kept = again.get_weights(), again.optimizer.get_weights()
    K.clear_session()
    whole = keras.models.load_model(str(tmp_path / "whole.h5"))
    for values, wanted in zip((whole.get_weights(), whole.optimizer.get_weights()), kept):
        assert values and all(np.array_equal(p, q) for p, q in zip(values, wanted))


def test_functions_of_the_backend():
    x = K.placeholder((None, 2))
    twice = K.variable([1.0, 2.0], name="v")
    both = K.function([x, K.learning_phase()], [K.sum(x * twice, axis=-1), K.in_train_phase(x, -x)], updates=[(twice, twice * 2)])
    assert [v.tolist() for v in both([[[1.0, 1.0]], 0])] == [[3.0], [[-1, -1]]] and both([[[1.0, 1.0]], 1])[1].tolist() == [[1, 1]]
    assert K.get_value(twice).tolist() == [4, 8] and K.int_shape(x) == (None, 2) and K.ndim(x) == 2
    K.set_value(twice, [0, 1])
    assert K.eval(K.dot(tf.ones([2, 2]), tf.ones([2, 3]))).tolist() == [[2] * 3] * 2 and K.eval(twice).tolist() == [0, 1]
    assert K.eval(K.mean(tf.constant([True, False]))) == 0.5 and K.eval(K.max(tf.constant([[1.0, 5.0]]), axis=1)).tolist() == [5]
    assert K.eval(K.dot(tf.ones([2, 3, 4]), tf.ones([4, 5]))).shape == (2, 3, 5)


def test_helpers():
    assert keras.utils.to_categorical([0, 2]).tolist() == [[1, 0, 0], [0, 0, 1]]
    pad = keras.preprocessing.sequence.pad_sequences
    assert pad([[1], [1, 2, 3]]).tolist() == [[0, 0, 1], [1, 2, 3]]
    assert pad([[1], [1, 2, 3]], maxlen=2, padding="post", truncating="post", value=9).tolist() == [[1, 9], [1, 2]]
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        keras.utils.get_file("none.csv", "http://example.com/none.csv", cache_dir="/nowhere")


def test_mistakes():
    model = keras.Sequential([L.Dense(2, input_shape=(3,))])
    x = keras.Input((3,))
    for call, error, message in (
        (lambda: model.fit(np.ones([2, 3]), np.ones([2, 2]), verbose=0), RuntimeError, "must compile"),
        (lambda: model.predict(np.ones([2, 4])), ValueError, "expected dense_input to have shape \\(3,\\)"),
        (lambda: L.Dense(2, activation="none"), ValueError, "Unknown activation function: none"),
        (lambda: L.Dense(2, colour=1), TypeError, "Keyword argument not understood: colour"),
        (lambda: keras.Model(x, tf.zeros([2])), ValueError, "must be the output of a Keras layer"),
        (lambda: len(keras.Sequential([L.Dense(1)]).weights), ValueError, "have not yet been created"),
        (lambda: keras.Model(keras.Input((2,)), L.Dense(1)(x)), ValueError, "Graph disconnected"),
        (lambda: model.set_weights([]), ValueError, "weight list of length 0"),
        (lambda: model.compile("none", "mse"), ValueError, "Unknown optimizer"),
        (lambda: keras.Sequential([L.LSTM(2, stateful=True, input_shape=(3, 1))]), ValueError, "needs to know its batch size"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_paths():
    from millrace import names

    for path, real in (
        ("keras.layers", L),
        ("python.keras.layers", L),
        ("contrib.keras.api.keras.models", keras.models),
        ("keras.losses", keras.losses),
        ("python.keras.backend", K),
        ("keras.preprocessing.sequence", keras.preprocessing.sequence),
    ):
        assert names.module(path) is real, path
    assert names.module("python.keras").Model is names.module("python.keras._impl.keras").Model is keras.Model
    assert tf.contrib.keras.Sequential is keras.Sequential


def test_models_of_models_train_and_know_what_is_theirs():
    inner = keras.Sequential([L.Dense(4, input_shape=(3,), activity_regularizer="l2", kernel_regularizer="l1"), L.BatchNormalization()])
    x = keras.Input((3,))
    outer = keras.Model(x, L.Dense(1)(inner(x)))
    of_calls = [model.get_losses_for(model.inputs) for model in (inner, outer)]
    assert len(inner.losses) == 3 == len(outer.losses) and [len(found) for found in of_calls] == [1, 1] and of_calls[0] != of_calls[1]
    outer.compile("sgd", "mse")
    data = np.random.RandomState(0).randn(32, 3)
    before = inner.get_weights()
    first = outer.train_on_batch(data, data.sum(1))  # inner's own input is not fed
    assert [outer.train_on_batch(data, data.sum(1)) for _ in range(30)][-1] < first
    assert all(not np.array_equal(a, b) for a, b in zip(before, inner.get_weights()))
    again = keras.Model.from_config(outer.get_config())
    again.set_weights(outer.get_weights())
    np.testing.assert_allclose(again.predict(data), outer.predict(data), rtol=1e-5)
    copy = keras.models.clone_model(outer)
    assert [w.shape for w in copy.get_weights()] == [w.shape for w in outer.get_weights()]
    assert keras.models.model_from_json(outer.to_json()).count_params() == outer.count_params()


def test_masks_leave_steps_out():
    x = np.random.RandomState(0).randn(2, 5, 3).astype("f")
    x[0, 3:], x[1, 1:] = 0, 0
    for kind in (L.SimpleRNN, L.LSTM, L.GRU):
        cell = kind(4)
        masked = keras.Sequential([L.Masking(input_shape=(5, 3)), cell]).predict(x)
        short = keras.Input((None, 3))
        plain = keras.Model(short, cell(short))
        np.testing.assert_allclose(masked[0], plain.predict(x[:1, :3])[0], rtol=1e-5)
        np.testing.assert_allclose(masked[1], plain.predict(x[1:, :1])[0], rtol=1e-5)
    model = keras.Sequential([L.Embedding(10, 4, mask_zero=True, input_length=6), L.LSTM(3, return_sequences=True), L.TimeDistributed(L.Dense(1))])
    model.compile("sgd", "mse", sample_weight_mode="temporal")
    numbers = np.array([[1, 2, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]])
    wrong = model.predict(numbers)
    wrong[0, 2:] += 100  # where nothing counts
    assert model.test_on_batch(numbers, wrong) < 1e-6


def test_layers_of_tf_layers_and_subclasses_are_layers():
    model = keras.Sequential([L.Dense(4, input_shape=(3,)), tf.layers.Dense(2, activation=tf.nn.relu)])
    model.compile("sgd", "mse")
    data = np.random.RandomState(0).randn(8, 3)
    model.fit(data, np.ones([8, 2]), verbose=0)
    assert len(model.get_weights()) == 4

    class Small(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = L.Dense(4, activation="relu"), L.Dense(1)

        def call(self, inputs, training=None):
            return self.second(self.first(inputs))

    small = Small()
    small.compile("adam", "mse", metrics=["mae"])
    history = small.fit(data, data.sum(1), epochs=20, verbose=0).history
    assert history["loss"][-1] < history["loss"][0] and small.predict(data).shape == (8, 1) and len(small.layers) == 2


def test_data_sets_feed_models():
    data = np.random.RandomState(0).randn(40, 3).astype("f")
    pairs = tf.data.Dataset.from_tensor_slices((data, data.sum(1, keepdims=True))).batch(10)
    model = keras.Sequential([L.Dense(1, input_shape=(3,))])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(pairs, epochs=10, verbose=0, validation_data=pairs).history
    assert history["loss"][-1] < history["loss"][0] / 10 and len(history["val_loss"]) == 10
    assert model.evaluate(pairs) < 0.1 and model.predict(tf.data.Dataset.from_tensor_slices(data).batch(8)).shape == (40, 1)


def test_more_layers_against_numpy():
    x = np.random.RandomState(0).randn(2, 4, 4, 3).astype("f")

    def of(layer, value=x):
        given = keras.Input(value.shape[1:])
        return keras.Model(given, layer(given)).predict(value)

    np.testing.assert_allclose(of(L.LayerNormalization()), (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3), atol=1e-5)
    np.testing.assert_allclose(of(L.PReLU(alpha_initializer=keras.initializers.Constant(0.5))), np.where(x > 0, x, x / 2), atol=1e-6)
    np.testing.assert_allclose(of(L.Cropping2D(((1, 0), (0, 2)))), x[:, 1:, :-2])
    np.testing.assert_allclose(of(L.ThresholdedReLU(0.5)), np.where(x > 0.5, x, 0))
    np.testing.assert_allclose(of(L.Flatten(data_format="channels_first")), x.transpose(0, 2, 3, 1).reshape(2, -1))
    np.testing.assert_allclose(of(L.Permute((3, 1, 2))), x.transpose(0, 3, 1, 2))
    assert of(L.SeparableConv2D(5, 3)).shape == (2, 2, 2, 5) and of(L.DepthwiseConv2D(3, depth_multiplier=2)).shape == (2, 2, 2, 6)
    assert of(L.LocallyConnected2D(5, 2)).shape == (2, 3, 3, 5) and of(L.Conv3DTranspose(2, 2, strides=2), x[..., None]).shape == (2, 8, 8, 6, 2)
    assert of(L.RNN([L.LSTMCell(3), L.GRUCell(5)], return_sequences=True), x[:, 0]).shape == (2, 4, 5)
    with pytest.raises(ValueError, match="Concatenate"):
        L.concatenate([keras.Input((4, 5)), keras.Input((3, 5))])


def test_a_loss_without_metrics_is_a_scalar_of_numpy():
    keras.backend.clear_session()
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    loss = model.evaluate(np.ones((4, 2)), np.zeros((4, 1)), verbose=0)
    assert isinstance(loss, float) and loss.shape == () and loss >= 0
    assert keras.utils.io_utils.HDF5Matrix is keras.utils.HDF5Matrix


def test_a_subclass_is_built_for_a_shape(tmp_path):
    class Two(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = tf.keras.layers.Dense(4, activation="relu")
            self.second = tf.keras.layers.Dense(2)

        def call(self, inputs):
            return self.second(self.first(inputs))

    tf.keras.backend.clear_session()
    model = Two()
    with pytest.raises(ValueError, match="Input shape must be defined"):
        model.build()
    model.build((None, 3))
    assert [w.shape.as_list() for w in model.weights] == [[3, 4], [4], [4, 2], [2]]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    model.compile("sgd", "mse")
    wanted = model.predict(x)
    assert wanted.shape == (2, 2) and len(model.weights) == 4
    model.save_weights(str(tmp_path / "w"))
    tf.keras.backend.clear_session()
    again = Two()
    again.build((None, 3))
    again.load_weights(str(tmp_path / "w"))
    again.compile("sgd", "mse")
    np.testing.assert_array_equal(again.predict(x), wanted)


class _Terminal(io.StringIO):
    def __init__(self, is_one):
        super().__init__()
        self.isatty = lambda: is_one


def test_a_progress_bar_tells_the_time_left(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def drawn(is_terminal, seconds, updates, target=10, **options):
        monkeypatch.setattr(sys, "stdout", terminal := _Terminal(is_terminal))
        bar = keras.utils.Progbar(target, width=10, **options)
        for current in updates:
            now[0] += seconds
            bar.update(current, [("loss", 0.25), ("small", 1e-4)])
        return terminal.getvalue()

    assert drawn(True, 2, [1, 5, 10]).split("\r") == [
        "",
        " 1/10 [>.........] - ETA: 18s - loss: 0.2500 - small: 1.0000e-04",
        " 5/10 [====>.....] - ETA: 4s - loss: 0.2500 - small: 1.0000e-04 ",  # the longer line before is covered
        "10/10 [==========] - 6s 600ms/step - loss: 0.2500 - small: 1.0000e-04\n",
    ]
    assert [re.search("ETA: ([0-9:s]+)", drawn(True, s, [1])).group(1) for s in (6.5, 100, 1000)] == ["58s", "15:00", "2:30:00"]
    assert "      3/Unknown - 2s 667ms/sample - loss" in drawn(True, 2, [3], target=None, unit_name="sample")
    assert drawn(False, 2, [1, 5, 10]).count("\n") == 1  # no terminal: the end alone
    assert drawn(False, 2, [5, 10], verbose=2) == "10/10 - 4s - loss: 0.2500 - small: 1.0000e-04\n"


def test_a_terminal_sees_how_far_a_fit_is(monkeypatch):
    model = keras.Sequential([L.Dense(1, input_shape=(2,), kernel_initializer="zeros")])  # losses of more than the four digits that are shown
    model.compile("sgd", "mse")
    monkeypatch.setattr(sys, "stdout", terminal := _Terminal(True))
    history = model.fit(np.ones([8, 2]), np.ones([8, 1]), batch_size=4, epochs=2, verbose=1, validation_data=(np.ones([8, 2]), np.ones([8, 1]))).history
    lines = [line.split("\r")[-1] for line in terminal.getvalue().strip("\n").split("\n")]
    assert lines[-4] == "Epoch 1/2" and lines[-2] == "Epoch 2/2" and re.search(r"\r4/8 \[=+>\.+\] - ETA: \d+s - loss: ", terminal.getvalue())
    for line, at in ((lines[-3], 0), (lines[-1], 1)):
        shown = re.fullmatch(r"8/8 \[=+\] - \d+s \d+[mu]?s/sample - loss: (\S+) - val_loss: (\S+) *", line)
        np.testing.assert_allclose([float(shown.group(1)), float(shown.group(2))], [history["loss"][at], history["val_loss"][at]], rtol=1e-3)
