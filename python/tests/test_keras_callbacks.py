# SPDX-License-Identifier: Apache-2.0
"""What trainings, evaluations and predictions of tf.keras tell: to callbacks, on the terminal, in files for TensorBoard."""

import glob
import os

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
K, L, C = keras.backend, keras.layers, keras.callbacks


@pytest.fixture(autouse=True)
def session():
    K.clear_session()
    yield
    K.clear_session()


def doubling():
    """A model that gives twice its input, and does not learn."""
    model = keras.Sequential([L.Dense(1, input_dim=1, use_bias=False, kernel_initializer=tf.constant_initializer(2.0))])
    model.compile(keras.optimizers.SGD(0.0), "mse", ["mae"])
    return model


X, Y = np.array([[1.0], [1.0], [3.0]]), np.zeros((3, 1))  # losses 4, 4, 36


def batches():
    return tf.data.Dataset.from_tensor_slices((X.astype("f"), Y.astype("f"))).batch(2)


def test_the_loss_of_steps_is_their_mean_and_that_of_arrays_the_examples():
    model = doubling()
    by_examples, by_steps = 44.0 / 3, (4.0 + 36.0) / 2
    fits = model.fit(X, Y, batch_size=2, shuffle=False, verbose=0), model.fit(batches(), verbose=0)
    assert [h.history["loss"] for h in fits] == [[pytest.approx(by_examples)], [by_steps]]
    assert model.evaluate(X, Y, batch_size=2, verbose=0)[0] == pytest.approx(by_examples)
    assert model.evaluate(batches(), verbose=0)[0] == by_steps
    in_turns = lambda: iter([(X[:2], Y[:2]), (X[2:], Y[2:])] * 2)
    made = model.fit_generator(in_turns(), 2, verbose=0, validation_data=in_turns(), validation_steps=2).history
    assert made["loss"] == [pytest.approx(by_examples)] and made["val_loss"] == [by_steps]
    made = model.fit_generator(iter([(X[:2], Y[:2])]), 1, verbose=0, validation_data=(X, Y)).history
    assert made["val_loss"] == [by_steps]  # in batches of two, as those of the training
    assert model.test_on_batch(batches())[0] == 4.0


@pytest.mark.parametrize("call, what", [("fit", "steps_per_epoch"), ("evaluate", "steps"), ("predict", "steps")])
def test_a_data_set_without_end_needs_a_number_of_steps(call, what):
    model = doubling()
    with pytest.raises(ValueError, match="infinitely repeating dataset, you must specify the `%s` argument" % what):
        getattr(model, call)(batches().repeat(), verbose=0)
    with pytest.raises(ValueError, match="specify the `validation_steps` argument"):
        model.fit(batches(), verbose=0, validation_data=batches().repeat())
    with pytest.raises(ValueError, match="specify the number of steps via the `%s` argument" % what):
        getattr(model, call + "_generator")(iter([]))
    getattr(model, call)(batches().repeat(), verbose=0, **{what: 3})


def test_metrics_count_over_the_batches_of_an_epoch():
    seen = []
    model = doubling()
    model.compile(keras.optimizers.SGD(0.0), "mse", ["mae", lambda truth, made: K.mean(made)])
    by_batches = C.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(logs["mean_absolute_error"]))
    made = model.fit(X, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[by_batches]).history
    assert seen == [2.0, pytest.approx(10 / 3)] and made["mean_absolute_error"] == [pytest.approx(10 / 3)] and made["<lambda>"] == [4.0]
    assert model.fit(batches(), verbose=0).history["mean_absolute_error"] == [pytest.approx(10 / 3)]
    assert model.train_on_batch(X[2:], Y[2:])[1] == 6.0 and all(isinstance(m, keras.metrics.Metric) for m in model.metrics)
    x = keras.Input((1,))
    both = keras.Model(x, [L.Lambda(lambda x: x * 2.0, name="a")(x), L.Lambda(lambda x: x, name="b")(x)])
    both.compile("sgd", "mse")
    made = both.fit(X, [Y, Y], batch_size=2, shuffle=False, verbose=0).history
    assert made["a_loss"] == [20.0] and made["b_loss"] == [5.0] and made["loss"] == [pytest.approx(55 / 3)]


def test_what_is_printed(capsys):
    model = doubling()
    model.fit(X, Y, epochs=2, verbose=2, validation_data=(X[:2], Y[:2]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Train on 3 samples, validate on 2 samples" and lines[1] == "Epoch 1/2" and lines[2].startswith("3/3 - 0s - loss: 14.6667 - ")
    model.fit(batches(), verbose=2, validation_data=batches())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Train on 2 steps, validate on 2 steps" and lines[1].startswith("2/2 - 0s - loss: 20.0000 - ") and len(lines) == 2
    model.evaluate(X, Y, verbose=2)
    model.predict(X, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3/3 - 0s - loss: 14.6667 - mean_absolute_error: 3.3333") and lines[1] == "3/3 - 0s"


def test_callbacks_are_told_of_each_batch():
    told = []

    class Listener(C.Callback):
        def on_test_batch_end(self, batch, logs=None):
            told.append(("test", batch, logs["size"], logs["loss"]))

        def on_predict_batch_end(self, batch, logs=None):
            told.append(("predict", batch, logs["size"], logs["outputs"][0].tolist()))

    model, listener = doubling(), Listener()
    model.evaluate(X, Y, 2, verbose=0, callbacks=[listener])
    model.predict(X, 2, callbacks=[listener])
    assert told == [("test", 0, 2, 4.0), ("test", 1, 1, 36.0), ("predict", 0, 2, [[2.0], [2.0]]), ("predict", 1, 1, [[6.0]])]
    together = C.CallbackList([listener])
    together.set_model(model)
    del told[:]
    model.evaluate(X, Y, verbose=0, callbacks=together)
    assert len(told) == 1 and together.model is model


def test_rates_are_logged_and_lowered(capsys):
    model = doubling()
    slower = C.ReduceLROnPlateau("loss", factor=0.5, patience=1, cooldown=1, min_lr=0.3, verbose=1)
    model.optimizer.lr = 1e-30
    assert model.fit(X, Y, epochs=1, verbose=0, callbacks=[C.LearningRateScheduler(lambda epoch: 0.25)]).history["lr"] == [0.25]
    model = doubling()
    model.optimizer.lr = 0.0
    K.set_value(model.optimizer.lr, 0.0)
    made = model.fit(X, Y, epochs=4, verbose=0, callbacks=[slower])
    assert made.history["lr"] == [0.0] * 4 and "reducing" not in capsys.readouterr().out  # it is below min_lr
    slower.set_model(model)
    slower.on_train_begin()
    K.set_value(model.optimizer.lr, 1.0)
    rates = []
    for epoch in range(5):
        slower.on_epoch_end(epoch, {"loss": 1.0})
        rates.append(float(K.get_value(model.optimizer.lr)))
    assert rates == [1.0, 0.5] + [pytest.approx(0.3)] * 3
    assert "\nEpoch 00002: ReduceLROnPlateau reducing learning rate to 0.5.\n" in capsys.readouterr().out


def test_checkpoints_say_what_they_do(tmp_path, capsys):
    kept = C.ModelCheckpoint(str(tmp_path / "w{epoch}"), "loss", verbose=1, save_best_only=True, save_weights_only=True)
    model = doubling()
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[kept])
    out = capsys.readouterr().out
    assert "\nEpoch 00001: loss improved from inf to 14.66667, saving model to %s" % (tmp_path / "w1") in out
    assert "\nEpoch 00002: loss did not improve from 14.66667" in out and not (tmp_path / "w2.index").exists()
    newest = C.ModelCheckpoint._get_most_recently_modified_file_matching_pattern
    for name, at in (("f.b2", 5), ("f.b10", 5), ("f.b3", 4)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (at, at))
    assert newest(str(tmp_path / "f.b{batch}")) == str(tmp_path / "f.b2") and newest(str(tmp_path / "w{epoch}")) == str(tmp_path / "w1")
    assert newest(str(tmp_path / "none")) is None


def test_a_measure_that_is_missing_stops_nothing(monkeypatch):
    warned = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *args: warned.append(text % args))
    model = doubling()
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[C.EarlyStopping(), C.ReduceLROnPlateau(), C.ModelCheckpoint("none", save_best_only=True)])
    told = "\n".join(warned)
    assert "Early stopping conditioned on metric `val_loss` which is not available. Available metrics are: loss,mean_absolute_error" in told
    assert "Reduce LR on plateau conditioned on metric `val_loss`" in told and "Can save best model only with val_loss available, skipping." in told


def summaries(folder):
    """(step, tag, value or kind) of the event file in a folder."""
    found = []
    for path in sorted(glob.glob(os.path.join(str(folder), "*tfevents*"))):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                found.append((event.step, value.tag, value.simple_value if kind == "simple_value" else kind))
    return found


def test_tensorboard_has_epochs_batches_and_histograms(tmp_path):
    model = keras.Sequential([L.Dense(3, input_dim=1, name="a"), L.Dense(1, name="b")])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    board = C.TensorBoard(str(tmp_path), histogram_freq=2, write_images=True, write_grads=True, update_freq="batch")
    model.fit(X, Y, batch_size=2, epochs=3, verbose=0, validation_data=(X, Y), callbacks=[board])
    found = summaries(tmp_path)
    assert [step for step, tag, _ in found if tag == "batch_loss"] == list(range(6))
    assert [(step, tag) for step, tag, _ in found if tag.startswith("epoch_")] == [(s, t) for s in (3, 6, 9) for t in ("epoch_loss", "epoch_val_loss")]
    per_batch = [(tag, kind) for step, tag, kind in found if isinstance(kind, str) and step == 0]
    assert {step for step, _, kind in found if isinstance(kind, str)} == {0, 1, 2, 3}  # two epochs of two batches
    assert ("a/kernel_0", "histo") in per_batch and ("a/kernel_0_1/image/0", "image") in per_batch
    assert ("a/kernel_0_grad", "histo") in per_batch and ("b_out", "histo") in per_batch


def test_tensorboard_has_embeddings(tmp_path):
    model = keras.Sequential([L.Embedding(5, 2, input_length=3, name="words"), L.Flatten(), L.Dense(1)])
    model.compile("sgd", "mse")
    data = np.array([[0, 1, 2], [3, 4, 0], [1, 1, 1]])
    board = C.TensorBoard(str(tmp_path), batch_size=2, embeddings_freq=1, embeddings_data=data, embeddings_metadata="words.tsv")
    model.fit(data, np.zeros((3, 1)), verbose=0, callbacks=[board])
    saved = tf.train.load_checkpoint(str(tmp_path / "keras_embedding.ckpt-0")).get_tensor("words_embedding")
    np.testing.assert_allclose(saved, model.get_weights()[0][data].reshape(3, 6), rtol=1e-6)
    assert "words.tsv" in (tmp_path / "projector_config.pbtxt").read_text()
    with pytest.raises(ValueError, match="embeddings_data must be provided"):
        model.fit(data, np.zeros((3, 1)), verbose=0, callbacks=[C.TensorBoard(str(tmp_path), embeddings_freq=1)])
