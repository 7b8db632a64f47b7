# SPDX-License-Identifier: Apache-2.0
"""What calls of tf.keras are given and refuse, as in TensorFlow 1.15."""

import numpy as np
import pytest

import millrace as tf

keras = tf.keras
L = keras.layers


def test_layers_within_are_told_to_train_by_one_that_does_not_ask():
    class Inner(L.Layer):
        def call(self, inputs, training=None):
            self.told = training
            return inputs

    class Outer(L.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def call(self, inputs):
            return self.inner(inputs)

    outer = Outer()
    for training in (True, False):
        outer(tf.ones([1, 1]), training=training)
        assert outer.inner.told is training


def test_training_without_a_default():
    class Shifted(L.Layer):
        def call(self, inputs, training):
            return inputs + keras.backend.in_train_phase(100.0, 0.0, training)

    model = keras.Sequential([Shifted(input_shape=(1,))])
    model.compile("sgd", "mse")
    assert model.train_on_batch(np.zeros([1, 1]), np.zeros([1, 1])) == 10000
    assert model.predict(np.zeros([1, 1])).tolist() == [[0.0]]


class TwoInputs(keras.Model):
    def call(self, x, second):
        return x + second


def test_models_that_need_more_than_inputs():
    model, x = TwoInputs(), np.ones([2, 1])
    model.compile("sgd", "mse")
    for name, call in (
        ("fit", lambda: model.fit(x, x)),
        ("evaluate", lambda: model.evaluate(x, x)),
        ("predict", lambda: model.predict(x)),
        ("train_on_batch", lambda: model.train_on_batch(x, x)),
        ("test_on_batch", lambda: model.test_on_batch(x, x)),
        ("predict_on_batch", lambda: model.predict_on_batch(x)),
    ):
        with pytest.raises(ValueError, match="Models passed to `%s` can only have .*'second'" % name):
            call()
    with pytest.raises(ValueError, match="cannot build your model if it has positional"):
        model.build([(2, 3), (2, 3)])


def test_shapes_that_build_nothing():
    class Rows(keras.Model):
        def call(self, x):
            return tf.nn.embedding_lookup(tf.zeros([4, 2]), x)

    with pytest.raises(ValueError, match="input shape is not one of the valid types"):
        Rows().build(tf.Dimension(3))
    with pytest.raises(ValueError, match="do not support float type inputs"):
        Rows().build((2, 3))


def test_inputs_of_each_subclass_have_their_names():
    class Sum(keras.Model):
        def call(self, inputs):
            return inputs[0] + inputs[1]

    x = np.ones([3, 2])
    for _ in range(2):
        model = Sum()
        model.compile("sgd", "mse")
        model.train_on_batch([x, x], x)
        assert model.input_names == ["input_1", "input_2"]
        assert model.predict({"input_1": x, "input_2": 2 * x}).tolist() == (3 * x).tolist()


def test_outputs_that_are_one_number():
    model = keras.Sequential([L.Lambda(lambda x: keras.backend.sum(x), input_shape=(2,))])
    model.compile("sgd", "mae")
    data = tf.data.Dataset.from_tensor_slices((np.ones([4, 2], np.float32), np.zeros([4, 1], np.float32))).batch(2)
    assert model.evaluate(data, steps=2, verbose=0) == 4.0


def test_metrics_that_are_added():
    class Adds(keras.Model):
        def __init__(self, metric, **given):
            super().__init__()
            self.first, self.second, self.given = metric, keras.metrics.Mean(name="m"), given

        def call(self, x):
            self.add_metric(self.first(x) if self.first is not None else tf.reduce_sum(x), **self.given)
            return x

    with pytest.raises(ValueError, match='different names for the metrics you have added. We found 2 metrics with the name: "m"'):
        Adds(keras.metrics.Mean(name="m"))(tf.zeros([1, 1]))
    with pytest.raises(ValueError, match="not the output of a `tf.keras.metrics.Metric` metric instance"):
        Adds(None, name="sum")(tf.zeros([1, 1]))
    x = keras.Input((1,))
    model = keras.Model(x, L.Dense(1)(x))
    with pytest.raises(ValueError, match="Using the result of calling a `Metric` object"):
        model.add_metric(keras.metrics.Mean(name="m")(model.output))


def test_errors_of_generators_arrive():
    class Faulty(keras.utils.Sequence):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise IndexError("no item %d" % index)

    def batches():
        yield 1
        raise KeyError("gone")

    for enqueuer, taken, error in ((keras.utils.OrderedEnqueuer(Faulty()), 0, IndexError), (keras.utils.GeneratorEnqueuer(batches()), 1, KeyError)):
        enqueuer.start()
        found = enqueuer.get()
        assert [next(found) for _ in range(taken)] == [1] * taken
        with pytest.raises(error):
            next(found)
    ended = keras.utils.GeneratorEnqueuer(iter([1, 2]))
    ended.start()
    assert list(ended.get()) == [1, 2]


def test_merges_of_other_than_lists():
    a, b, c = (keras.Input((4, 5)) for _ in range(3))
    subtract, concatenate = L.Subtract(), L.Concatenate(axis=1)
    subtract([a, b]), concatenate([a, b])
    with pytest.raises(ValueError, match="exactly 2 inputs"):
        subtract([a, b, c])
    with pytest.raises(ValueError, match="should be called on a list of inputs"):
        concatenate(a)


def test_small_refusals():
    layer = L.Layer(name="d")
    layer.input_spec = L.InputSpec(shape=(None, 3))
    with pytest.raises(ValueError, match="Invalid values: \\[None\\]"):
        keras.metrics.FalsePositives(thresholds=[None])
    with pytest.raises(ValueError, match="Rank of `condition` should be less than"):
        keras.backend.switch(tf.zeros([2, 3]), tf.zeros([3]), tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="Input 0 is incompatible with layer d: expected shape="):
        layer(tf.zeros([2, 4]))


def test_session_of_a_graph():
    with tf.Graph().as_default():
        x = keras.backend.constant(1)
        session = keras.backend.get_session((x,))
        assert keras.backend.get_session() is session
    with tf.Graph().as_default():
        assert keras.backend.get_session((x,)) is session
        assert keras.backend.get_session() is not session


class TwoRows(L.Layer):
    """A cell of two inputs, two states and two outputs, of other ranks: each state sums up its input times a weight."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.state_size = self.output_size = (2, tf.TensorShape([2, 3]))

    def build(self, shapes):
        assert [s.as_list() for s in shapes] == [[None, 2], [None, 2, 3]]
        self.scale = self.add_weight("scale", (), initializer="ones")

    def call(self, inputs, states):
        made = [s + self.scale * x for x, s in zip(inputs, states)]
        return made, made


def test_cells_of_structures():
    one, two = keras.Input((4, 2)), keras.Input((4, 2, 3))
    a, b, c, d = L.RNN(TwoRows(), return_sequences=True, return_state=True)((one, two))
    assert [t.shape.as_list() for t in (a, b, c, d)] == [[None, 4, 2], [None, 4, 2, 3], [None, 2], [None, 2, 3]]
    last = L.RNN(TwoRows())((one, two), initial_state=[c, d])
    model = keras.Model([one, two], [a, b, *last])
    x, y = np.random.RandomState(0).rand(5, 4, 2).astype(np.float32), np.random.RandomState(1).rand(5, 4, 2, 3).astype(np.float32)
    wanted = [x.cumsum(1), y.cumsum(1), 2 * x.sum(1), 2 * y.sum(1)]
    for got, want in zip(model.predict([x, y]), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    for got, want in zip(keras.models.Model.from_config(model.get_config(), {"TwoRows": TwoRows}).predict([x, y]), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    model.compile("sgd", "mse")
    assert model.train_on_batch([x, y], wanted)[0] < 1e-6


def test_steps_of_structures():
    x, y = np.arange(6.0).reshape(1, 3, 2), np.arange(3.0).reshape(1, 3, 1)
    for unroll in (False, True):
        last, outputs, states = keras.backend.rnn(
            lambda now, before: ({"sum": now[0] + now[1], "y": now[1]}, [before[0] + now[1]]),
            (tf.constant(x), tf.constant(y)),
            [tf.zeros([1, 1], tf.float64)],
            mask=tf.constant([[True, True, False]]),
            unroll=unroll,
        )
        with tf.Session() as sess:
            values, ends, state = sess.run([outputs, last, states])
        np.testing.assert_allclose(values["sum"], [[[0, 1], [3, 4], [3, 4]]])
        np.testing.assert_allclose([ends["y"][0, 0], state[0][0, 0]], [1, 1])
