# SPDX-License-Identifier: Apache-2.0
"""Weights and models of tf.keras in files: what is restored later, what is refused, which parts are named how."""

import builtins

import numpy as np
import pytest

import millrace as tf

K, L = tf.keras.backend, tf.keras.layers
X = np.random.RandomState(0).rand(3, 2)
Y = np.random.RandomState(1).rand(3, 1)


@pytest.fixture(autouse=True)
def clean():
    K.clear_session()
    yield
    K.clear_session()


class Two(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.x_layer, self.b_layer = L.Dense(3), L.Dense(1)

    def call(self, inputs):
        return self.b_layer(self.x_layer(inputs))


def functional():
    x = tf.keras.Input([2])
    return tf.keras.Model(x, L.Dense(1)(L.Dense(3)(x)))


def late_sequential():
    return tf.keras.Sequential([L.Dense(3), L.Dense(1)])


@pytest.mark.parametrize("make", [Two, functional, late_sequential])
def test_variables_that_are_made_later_are_restored(make, tmp_path):
    path, model = str(tmp_path / "c"), make()
    model.compile(tf.train.RMSPropOptimizer(0.1), "mse")
    model.train_on_batch(X, Y)
    model.save_weights(path)
    before = model.predict(X)
    model.train_on_batch(X, Y)
    again = make()
    again.load_weights(path)  # a model that was not called yet
    np.testing.assert_allclose(again.predict(X), before, 1e-6)
    again.compile(tf.train.RMSPropOptimizer(0.1), "mse")  # whose slots are made with the first step
    again.train_on_batch(X, Y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), 1e-5)
    trained = again.get_weights()
    again(tf.zeros([1, 2]))  # a further call restores nothing again
    for a, b in zip(again.get_weights(), trained):
        np.testing.assert_array_equal(a, b)


def test_layers_that_came_between_are_not_given_what_is_anothers(tmp_path):
    class Three(Two):
        def __init__(self):
            tf.keras.Model.__init__(self)
            self.x_layer, self.y_layer, self.b_layer = L.Dense(3), L.Dense(3), L.Dense(1)

        def call(self, inputs):
            return self.b_layer(self.y_layer(self.x_layer(inputs)))

    model, path = Two(), str(tmp_path / "c")
    model(tf.zeros([1, 2]))
    model.save_weights(path)
    more = Three()
    more.load_weights(path)
    more(tf.zeros([1, 2]))
    for a, b in zip([*more.x_layer.get_weights(), *more.b_layer.get_weights()], model.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_weights_are_known_by_the_names_that_they_were_added_by(tmp_path):
    model, path = tf.keras.Model(), str(tmp_path / "c")
    held = model.add_weight("v", shape=[])
    session = K.get_session()
    session.run(held.assign(42.0))
    model.save_weights(path)
    assert "v/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(path))
    session.run(held.assign(1.0))
    model.load_weights(path)
    assert session.run(held) == 42.0


def test_what_fits_nothing_is_refused(tmp_path):
    path = tf.train.Checkpoint().save(str(tmp_path / "c"), session=K.get_session())
    model = tf.keras.Model()
    with pytest.raises(AssertionError, match="Nothing to load"):
        model.load_weights(path)
    model.dense = L.Dense(2)
    model.dense(tf.zeros([1, 1]))
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        model.load_weights(path)


@pytest.mark.parametrize("use_resource", [False, True])
def test_values_of_another_shape_are_refused(use_resource, tmp_path):
    path = {}
    for width in (3, 1):
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.Variable(np.ones([2, width]), name="v", use_resource=use_resource)
            saver = tf.train.Saver([v])
            if not path:
                session.run(v.initializer)
                path["first"] = saver.save(session, str(tmp_path / "c"))
                continue
            with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
                saver.restore(session, path["first"])


def test_files_are_replaced_when_the_user_says_so(tmp_path, monkeypatch):
    model, asked = functional(), []
    answers = ["what", "n", "y"]
    monkeypatch.setattr(builtins, "input", lambda text: asked.append(text) or answers.pop(0))
    path, key = str(tmp_path / "c"), "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    model.save_weights(path)
    model.set_weights([w * 0 + 1 for w in model.get_weights()])
    model.save_weights(path, overwrite=False)
    assert len(asked) == 2 and path + ".index" in asked[0]
    assert not (tf.train.load_checkpoint(path).get_tensor(key) == 1).all()
    model.save_weights(path, overwrite=False)
    assert (tf.train.load_checkpoint(path).get_tensor(key) == 1).all() and not answers


class Mixed:
    """A loss that is no tf.keras.losses.Loss."""

    def __init__(self, share):
        self.share = share

    def __call__(self, y_true, y_pred, sample_weight=None):
        return self.share * tf.keras.losses.mse(y_true, y_pred)

    def get_config(self):
        return {"share": self.share}


def test_models_in_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    model = tf.keras.Sequential([L.InputLayer([2]), L.Dense(3), L.Dense(1)])
    smoothed = tf.keras.metrics.CategoricalCrossentropy("cce", label_smoothing=tf.constant(0.2))
    model.compile("sgd", Mixed(0.3), metrics=["mae"], weighted_metrics=[smoothed])
    model.train_on_batch(X, Y)
    with h5py.File(str(tmp_path / "m.h5"), "w") as file:
        tf.keras.models.save_model(model, file)
        assert file.attrs["model_config"]  # which is still open
        again = tf.keras.models.load_model(file, {"Mixed": Mixed})
    assert again.metrics_names == model.metrics_names == ["loss", "mean_absolute_error", "weighted_cce"]
    np.testing.assert_allclose(again.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0), 1e-5)
    with pytest.raises(ValueError, match="has not created its variables yet"):
        model.save_weights(str(tmp_path / "w.h5"))
        Two().load_weights(str(tmp_path / "w.h5"))


def test_names_of_layers_and_shapes_that_do_not_fit_are_said(tmp_path):
    pytest.importorskip("h5py")
    path = str(tmp_path / "w.h5")
    tf.keras.Sequential([L.Dense(3, name="d", input_shape=(2,))]).save_weights(path)
    for layer, what in (
        (L.Dense(3, name="d", use_bias=False, input_shape=(2,)), r'Layer #0 \(named "d"\) expects 1 weight\(s\), but the saved weights have 2 element'),
        (L.Dense(4, name="d", input_shape=(2,)), r"Layer #0 \(named \"d\"\), weight <tf.Variable 'd_\d/kernel:0' shape=\(2, 4\) dtype=float32> has shape"),
    ):
        with pytest.raises(ValueError, match=what):
            tf.keras.Sequential([layer]).load_weights(path, by_name=True)


@pytest.mark.parametrize("inner", [Two, late_sequential, lambda: tf.keras.Sequential([L.InputLayer([2]), L.Dense(1)])])
def test_models_within_models_are_read_back(inner):
    a, b = tf.keras.Input([2]), tf.keras.Input([2])
    shared = inner()
    model = tf.keras.Model([a, b], L.add([shared(a), shared(b)]))
    if inner is Two:
        Two.get_config, Two.from_config = (lambda self: {}), classmethod(lambda cls, config: cls())
    again = tf.keras.Model.from_config(model.get_config(), {"Two": Two})
    again.set_weights(model.get_weights())
    np.testing.assert_allclose(again.predict([X, X + 1]), model.predict([X, X + 1]), 1e-6)


def test_a_model_that_is_a_subclass_is_the_first_of_others():
    model = tf.keras.Sequential([Two(), L.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(X, np.zeros([3, 2]), verbose=0)
    assert model.predict(X).shape == (3, 2) and len(model.weights) == 6


def test_weights_below_a_prefix_that_is_a_folder(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    before, prefix = model.get_weights(), str(tmp_path / "new" / "ckpt") + "/"
    model.save_weights(prefix)
    model.set_weights([w + 1 for w in before])
    model.load_weights(prefix)
    assert (tmp_path / "new" / "ckpt" / ".index").exists() and all((a == b).all() for a, b in zip(before, model.get_weights()))
