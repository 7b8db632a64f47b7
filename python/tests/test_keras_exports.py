# SPDX-License-Identifier: Apache-2.0
"""Models of tf.keras as SavedModels that train, evaluate and predict."""

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


X, Y = np.random.RandomState(0).randn(6, 3).astype("f"), np.random.RandomState(1).randn(6, 2).astype("f")


def built(optimizer=None):
    model = keras.Sequential([L.Dense(4, activation="relu", input_shape=(3,), name="first"), L.Dropout(0.5), L.Dense(2, name="last")])
    if optimizer is not None:
        model.compile(optimizer, "mse", ["mae"])
        model.train_on_batch(X, Y)
    return model


class Loaded:
    """A graph of a SavedModel in a session of its own."""

    def __init__(self, path, tag, key):
        self.session = tf.Session(graph=tf.Graph())
        with self.session.graph.as_default():
            self.graph = tf.saved_model.loader.load(self.session, [tag], path)
        signature = self.graph.signature_def[key]
        self.inputs, self.outputs = ({k: v.name for k, v in infos.items()} for infos in (signature.inputs, signature.outputs))

    def run(self, name, x, y=None):
        """An output for inputs, and targets."""
        feeds = {self.inputs["first_input"]: x, **({} if y is None else {self.inputs["last_target"]: y})}
        return self.session.run(self.outputs[name], feeds)


@pytest.mark.parametrize("optimizer", [lambda: keras.optimizers.Adam(0.01), lambda: tf.train.AdamOptimizer(0.01)])
def test_a_compiled_model_has_three_graphs(tmp_path, optimizer):
    model, path = built(optimizer()), str(tmp_path / "model")
    keras.experimental.export_saved_model(model, path)
    loss, error = model.evaluate(X, Y, verbose=0)
    np.testing.assert_allclose(Loaded(path, "serve", "serving_default").run("last", X), model.predict(X), rtol=1e-5)
    judge = Loaded(path, "eval", "eval")
    assert judge.run("loss", X, Y) == pytest.approx(loss, rel=1e-5)
    judge.run("metrics/mean_absolute_error/update_op", X, Y)
    assert judge.session.run(judge.outputs["metrics/mean_absolute_error/value"]) == pytest.approx(error, rel=1e-5)
    np.testing.assert_allclose(judge.run("predictions/last", X), model.predict(X), rtol=1e-5)
    trainer = Loaded(path, "train", "train")
    step = trainer.session.graph.get_operation_by_name(trainer.graph.signature_def["__saved_model_train_op"].outputs["__saved_model_train_op"].name)
    feeds = {trainer.inputs["first_input"]: X, trainer.inputs["last_target"]: Y}
    for _ in range(50):
        trainer.session.run(step, feeds)
    assert np.mean([trainer.run("loss", X, Y) for _ in range(20)]) < loss
    again = keras.experimental.load_from_saved_model(path)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-5)


def test_what_is_not_compiled_only_predicts(tmp_path):
    model = built()
    keras.experimental.export_saved_model(model, str(tmp_path / "model"), input_signature=[tf.TensorSpec([2, 3], tf.float32)])
    served = Loaded(str(tmp_path / "model"), "serve", "serving_default")
    np.testing.assert_allclose(served.run("last", X[:2]), model.predict(X[:2]), rtol=1e-5)
    assert served.session.graph.get_tensor_by_name(served.inputs["first_input"]).shape == [2, 3]
    with pytest.raises(RuntimeError):
        Loaded(str(tmp_path / "model"), "train", "train")


def test_what_cannot_be_exported(tmp_path):
    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(NotImplementedError, match="Subclassed models"):
        keras.experimental.export_saved_model(Own(), str(tmp_path / "own"))
    with pytest.raises(ValueError, match="have not yet been created"):
        keras.experimental.export_saved_model(keras.Sequential([L.Dense(1)]), str(tmp_path / "late"))


@pytest.mark.parametrize("metrics, keys", [(["mae"], ["mean_absolute_error"]), (["accuracy", "mse"], ["acc", "mean_squared_error"]), (None, [])])
def test_an_estimator_of_a_model_has_its_variables_and_metrics_once(tmp_path, metrics, keys):
    model = keras.Sequential([keras.layers.Dense(2, "tanh", input_shape=(3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=metrics)
    made = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    x = {model.input_names[0]: np.ones((4, 3), "float32")}
    given = tf.estimator.inputs.numpy_input_fn(x, np.ones((4, 1), "float32"), batch_size=4, shuffle=False, num_epochs=None)
    made.train(given, steps=2)
    assert sorted(made.evaluate(given, steps=1)) == sorted(["global_step", "loss", *keys])
    layers = ["dense%s/%s" % (i, w) for i in ("", "_1") for w in ("bias", "kernel")]
    settings = ["training/Adam/" + name for name in ("beta_1", "beta_2", "decay", "learning_rate")]
    slots = ["training/Adam/%s/%s" % (w, slot) for w in layers for slot in "mv"]
    assert sorted(made.get_variable_names()) == sorted(["global_step", *layers, *settings, *slots])


def test_an_estimator_of_a_model_with_two_outputs_counts_what_it_was_told(tmp_path):
    x = keras.Input((3,), name="x")
    model = keras.Model(x, [keras.layers.Dense(1, name="a")(x), keras.layers.Dense(1, name="b")(x)])
    model.compile(tf.train.GradientDescentOptimizer(0.1), "mse", metrics={"a": ["mae"], "b": "mse"})
    made = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    y = np.ones((4, 1), "float32")
    given = tf.estimator.inputs.numpy_input_fn({"x": np.ones((4, 3), "float32")}, {"a": y, "b": y}, batch_size=4, shuffle=False, num_epochs=None)
    made.train(given, steps=2)
    told = made.evaluate(given, steps=1)
    assert sorted(told) == ["a_mean_absolute_error", "b_mean_squared_error", "global_step", "loss"] and told["global_step"] == 2


class Net(keras.Model):
    def __init__(self, width, together=False):
        super().__init__()
        self.width = width
        self.hidden = [L.Dense(width, activation="relu")] if together else L.Dense(width, activation="relu")
        self.last = L.Dense(2)

    def call(self, x, training=False):
        assert self.width == 4
        return self.last(self.hidden(x))


def test_a_subclass_becomes_an_estimator_built_or_not(tmp_path):
    def read():
        return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(6)

    for way in ("new", "built"):
        model = Net(4)
        model.compile(tf.train.RMSPropOptimizer(0.05), "mse", ["mae"])
        if way == "built":
            model.fit(X, Y, epochs=1, verbose=0)
            before = model.evaluate(X, Y, verbose=0)[0]
        made = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path / way))
        if way == "built":  # begins with the weights of the model
            np.testing.assert_allclose(made.evaluate(read, steps=1)["loss"], before, rtol=1e-5)
        made.train(read, steps=2)
        first = made.evaluate(read, steps=1)["loss"]
        made.train(read, steps=50)
        after = made.evaluate(read, steps=1)
        assert after["loss"] < first and set(after) == {"loss", "mean_absolute_error", "global_step"}
        assert next(made.predict(read))["output_1"].shape == (2,)
    model = Net(4, together=True)
    model.compile("sgd", "mse")
    with pytest.raises(NotImplementedError, match="make each an attribute"):
        keras.estimator.model_to_estimator(model, model_dir=str(tmp_path / "list")).train(read, steps=1)


def test_a_model_that_has_not_run_takes_the_session_settings_of_its_estimator(tmp_path):
    settings = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.25))
    model = keras.Sequential([L.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse")
    keras.estimator.model_to_estimator(model, model_dir=str(tmp_path), config=tf.estimator.RunConfig(session_config=settings))
    assert K.get_session()._config.gpu_options.per_process_gpu_memory_fraction == 0.25
