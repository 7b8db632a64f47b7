# SPDX-License-Identifier: Apache-2.0
"""Layers, constraints, data sets and wrappers that tf.keras got with TensorFlow 1.12 to 1.15; feature columns as layers; scaled losses."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

keras, K, L, columns = tf.keras, tf.keras.backend, tf.keras.layers, tf.feature_column


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_attention(kind, causal):
    state = np.random.RandomState(0)
    q, v, k = (state.randn(2, n, 3).astype("f") for n in (4, 5, 5))
    masks = np.array([[1, 1, 0, 1], [1, 1, 1, 1]], bool), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    layer = getattr(keras.layers, kind)(use_scale=True, causal=causal)
    made = layer([tf.constant(q), tf.constant(v), tf.constant(k)], mask=[tf.constant(m) for m in masks])
    K.get_session()
    weight = np.array(state.rand(*layer.scale.shape.as_list()), "f")
    layer.set_weights([weight])
    scores = (q @ k.transpose(0, 2, 1)) * weight if kind == "Attention" else (np.tanh(q[:, :, None] + k[:, None]) * weight).sum(-1)
    seen = masks[1][:, None] & (np.tril(np.ones((4, 5), bool)) if causal else True)
    wanted = softmax(np.where(seen, scores, -1e9)) @ v * masks[0][..., None]
    np.testing.assert_allclose(K.get_session().run(made), wanted, rtol=1e-5, atol=1e-6)
    assert type(layer).from_config(layer.get_config()).causal == causal
    with pytest.raises(ValueError, match="must be called on a list"):
        layer(tf.constant(q))


def test_attention_in_a_model():
    q, v = keras.layers.Input((4, 8)), keras.layers.Input((6, 8))
    model = keras.Model([q, v], keras.layers.Attention()([q, v]))
    a, b = np.ones((2, 4, 8)), np.arange(96).reshape(2, 6, 8)
    np.testing.assert_allclose(model.predict([a, b]), softmax(a @ b.transpose(0, 2, 1)) @ b, rtol=1e-5)


def test_peepholes_and_cells_of_programs():
    state = np.random.RandomState(1)
    x = state.randn(2, 3, 4).astype("f")
    layer = keras.layers.RNN(keras.experimental.PeepholeLSTMCell(5, recurrent_activation="sigmoid"))
    made = layer(tf.constant(x))
    K.get_session()
    weights = [state.randn(*w.shape).astype("f") for w in layer.get_weights()]
    layer.set_weights(weights)
    w, u, b, into, forget, out = (weights[i] for i in range(6))
    h = c = np.zeros((2, 5))
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    for t in range(3):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, 1)
        cell = sigmoid(f + forget * c) * c + sigmoid(i + into * c) * np.tanh(g)
        h, c = sigmoid(o + out * cell) * np.tanh(cell), cell
    np.testing.assert_allclose(K.get_session().run(made), h, rtol=1e-4, atol=1e-5)

    class Total(keras.layers.AbstractRNNCell):
        state_size = output_size = 4

        def call(self, inputs, states):
            made = states[0] + inputs
            return made, [made]

    np.testing.assert_allclose(K.get_session().run(keras.layers.RNN(Total())(tf.constant(x))), x.sum(1), rtol=1e-5)


def test_rings_linear_models_and_backend():
    session = K.get_session()
    even = session.run(keras.constraints.RadialConstraint()(tf.reshape(tf.range(16.0), [4, 4, 1, 1])))[..., 0, 0]
    assert (even[0] == 15).all() and (even[1:3, 1:3] == 5).all() and (even[:, 3] == 15).all()
    odd = session.run(keras.constraints.radial_constraint()(tf.reshape(tf.range(50.0), [5, 5, 1, 2])))[..., 0]
    assert odd[2, 2, 0] == 12 and (odd[1, 1:4, 0] == 24).all() and (odd[0, :, 0] == 36).all()
    with pytest.raises(ValueError, match="rank 4"):
        keras.constraints.RadialConstraint()(tf.zeros([3, 3]))
    model = keras.experimental.LinearModel(2, activation="relu")
    model.compile("sgd", "mse")
    a, b = np.random.RandomState(0).rand(4, 2), np.random.RandomState(1).rand(4, 3)
    model.fit([a, b], np.ones((4, 2)), verbose=0)
    kernel, bias, other = model.get_weights()
    np.testing.assert_allclose(model.predict([a, b]), np.maximum(a @ kernel + bias + b @ other, 0), rtol=1e-5, atol=1e-6)
    assert session.run(K.arange(2, 8, 3)).tolist() == [2, 5] and session.run(K.arange(3, dtype="float32")).tolist() == [0, 1, 2]
    with K.learning_phase_scope(1):
        assert K.learning_phase() == 1
    assert K.is_placeholder(K.learning_phase()) or K.learning_phase() != 1
    x = keras.layers.Input((2,))
    assert keras.utils.get_source_inputs(keras.layers.Dense(1)(x)) == [x]


def test_separable_convolutions_of_sequences():
    state = np.random.RandomState(2)
    x = state.randn(2, 9, 3)
    layer = tf.layers.SeparableConv1D(5, 3, padding="valid", depth_multiplier=2, dilation_rate=2)
    made = layer(tf.constant(x))
    session = K.get_session()
    depth, point, bias = session.run(layer.weights)
    assert depth.shape == (3, 3, 2) and point.shape == (1, 6, 5)
    middle = np.stack([sum(x[:, t + 2 * s, :, None] * depth[s] for s in range(3)) for t in range(5)], 1).reshape(2, 5, 6)
    np.testing.assert_allclose(session.run(made), middle @ point[0] + bias, rtol=1e-5)
    first = tf.layers.separable_conv1d(tf.transpose(tf.constant(x), [0, 2, 1]), 5, 3, data_format="channels_first")
    assert first.shape.as_list() == [2, 5, 7]


def _features():
    return {
        "ids": tf.SparseTensor([[0, 0], [1, 0], [1, 1], [2, 2]], [2, 0, 1, 1], [3, 3]),
        "words": tf.SparseTensor([[0, 0], [1, 1], [2, 2]], ["a", "b", "x"], [3, 3]),
        "numbers": tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3], [2, 5]], [1.0, 2, 3, 4, 5, 6, 7], [3, 6]),
    }


def test_columns_of_sequences(tmp_path):
    ids = columns.sequence_categorical_column_with_identity("ids", 3)
    table = np.array([[1.0, 2], [3, 4], [5, 6]], "f")
    embedded = columns.embedding_column(ids, 2, initializer=tf.constant_initializer(table))
    numbers = columns.sequence_numeric_column("numbers", shape=(2,), default_value=0.5)
    layer = keras.experimental.SequenceFeatures([numbers, embedded, columns.indicator_column(ids)])
    made = layer(_features())
    session = K.get_session()
    values, lengths = session.run(made)
    assert lengths.tolist() == [1, 2, 3] and len(layer.weights) == 1
    np.testing.assert_array_equal(values[0], [[5, 6, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 0.5, 0.5], [0, 0, 0, 0, 0, 0.5, 0.5]])
    np.testing.assert_array_equal(values[1, :2], [[1, 2, 1, 0, 0, 3, 4], [3, 4, 0, 1, 0, 5, 6]])
    (tmp_path / "words").write_text("a\nb\n")
    for words in (
        columns.sequence_categorical_column_with_vocabulary_list("words", ["a", "b"], num_oov_buckets=1),
        columns.sequence_categorical_column_with_vocabulary_file("words", str(tmp_path / "words"), num_oov_buckets=1),
    ):
        made = tf.contrib.feature_column.sequence_input_layer(_features(), [columns.indicator_column(words)])
        session.run(tf.tables_initializer())
        values, lengths = session.run(made)
        assert lengths.tolist() == [1, 2, 3]
        assert values[0, 0].tolist() == [1, 0, 0] and values[1, 1].tolist() == [0, 1, 0] and values[2, 2].tolist() == [0, 0, 1]
    hashed = columns.indicator_column(columns.sequence_categorical_column_with_hash_bucket("words", 4))
    assert session.run(tf.contrib.feature_column.sequence_input_layer(_features(), [hashed])[0]).sum() == 3
    short = columns.sequence_numeric_column("numbers")
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match="must be equal|did not hold element-wise"):
        session.run(keras.experimental.SequenceFeatures([short, columns.indicator_column(ids)])(_features()))
    with pytest.raises(ValueError, match="must be a SequenceDenseColumn"):
        keras.experimental.SequenceFeatures([columns.numeric_column("a")])({"a": [[1.0]]})


def test_columns_as_layers():
    layer = keras.layers.DenseFeatures([columns.numeric_column("a"), columns.embedding_column(columns.categorical_column_with_identity("b", 4), 3)])
    features = {"a": [[1.0], [2.0]], "b": [[1], [3]]}
    first, second = layer(features), layer(features)
    session = K.get_session()
    session.run(tf.global_variables_initializer())
    rows = session.run(layer.weights[0])
    np.testing.assert_array_equal(session.run(first), np.hstack([[[1], [2]], rows[[1, 3]]]))
    np.testing.assert_array_equal(session.run(second), session.run(first))
    assert len(layer.trainable_weights) == 1 == len(tf.trainable_variables())
    with pytest.raises(ValueError, match="must be a DenseColumn"):
        keras.layers.DenseFeatures([columns.categorical_column_with_identity("b", 4)])


def test_data_sets_of_words(tmp_path, monkeypatch):
    folder = tmp_path / ".keras" / "datasets"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))

    def rows(*lists):
        made = np.empty(len(lists), object)
        made[:] = lists
        return made

    np.savez(folder / "imdb.npz", x_train=rows([1, 2], [3], [4, 5, 6]), y_train=np.array([0, 1, 0]), x_test=rows([7], [8, 9]), y_test=np.array([1, 0]))
    (x, y), (u, v) = keras.datasets.imdb.load_data(num_words=9)
    order = np.arange(3)
    state = np.random.RandomState(113)
    state.shuffle(order)
    wanted = [[[1, 4, 5], [1, 6], [1, 7, 8, 2]][i] for i in order]  # 9 is the first word left out
    assert x.tolist() == wanted and y.tolist() == [[0, 1, 0][i] for i in order] and sorted(len(r) for r in u) == [2, 3]
    np.savez(folder / "reuters.npz", x=rows([1, 2], [3], [4], [5], [6]), y=np.arange(5))
    (x, y), (u, v) = keras.datasets.reuters.load_data(test_split=0.4, start_char=None, index_from=0)
    assert len(x) == 3 and len(u) == 2 and sorted([*y, *v]) == list(range(5))
    (folder / "reuters_word_index.json").write_text('{"oil": 3}')
    assert keras.datasets.reuters.get_word_index() == {"oil": 3}
    with pytest.raises(TypeError, match="Unrecognized"):
        keras.datasets.imdb.load_data(words=3)
    with pytest.raises(ValueError, match="label_mode"):
        keras.datasets.cifar100.load_data("middling")


def test_wrappers_for_scikit_learn():
    def build(units=8, last=1):
        model = keras.Sequential(
            [keras.layers.Dense(units, activation="relu", input_shape=(2,)), keras.layers.Dense(last, activation="softmax" if last > 1 else None)]
        )
        model.compile(keras.optimizers.Adam(0.05), "categorical_crossentropy" if last > 1 else "mse", metrics=["accuracy"] if last > 1 else None)
        return model

    x = np.random.RandomState(0).rand(60, 2)
    labels = np.array(["no", "yes", "more"])[(x.sum(1) > 0.8).astype(int) + (x.sum(1) > 1.2)]
    wrapped = keras.wrappers.scikit_learn
    classifier = wrapped.KerasClassifier(build, units=16, last=3, epochs=80, verbose=0)
    classifier.fit(x, labels)
    assert set(classifier.predict(x)) <= {"no", "yes", "more"} and classifier.predict_proba(x).shape == (60, 3)
    assert classifier.score(x, labels) == pytest.approx((classifier.predict(x) == labels).mean()) and classifier.score(x, labels) > 0.7
    regressor = wrapped.KerasRegressor(build, epochs=40, verbose=0)
    regressor.fit(x, x.sum(1))
    assert regressor.predict(x).shape == (60,) and regressor.score(x, x.sum(1)) == pytest.approx(-((regressor.predict(x) - x.sum(1)) ** 2).mean(), rel=1e-3)
    assert classifier.get_params()["units"] == 16
    with pytest.raises(ValueError, match="not a legal parameter"):
        wrapped.KerasRegressor(build, colour=1)


def test_attention_where_no_value_is_to_be_seen():
    """Masks count once each: a query that sees nothing takes all values alike."""
    query, value = tf.ones([1, 2, 3]), tf.constant([[[1.0] * 3, [2.0] * 3, [6.0] * 3]])
    masks = [None, tf.constant([[False, True, False]])]
    for layer in (keras.layers.Attention(causal=True), keras.layers.AdditiveAttention(use_scale=False, causal=True)):
        made = layer([query, value], mask=masks)
        np.testing.assert_allclose(tf.get_default_session().run(made)[0, :, 0], [3, 2], rtol=1e-6)
        assert type(layer).from_config(layer.get_config()).causal


def test_scaled_losses():
    E = tf.train.experimental
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    factor = tf.placeholder_with_default(1.0, [])
    scale = E.DynamicLossScale(8.0, increment_period=2)
    optimizer = E.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), scale)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.reduce_sum(v) * factor, step)
    now = scale()
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    scales = []
    for f in (1, 1, 1, np.inf, 1, np.inf):
        session.run(train, {factor: f})
        scales.append(session.run(now))
    assert scales == [8, 16, 16, 8, 8, 4] and session.run(step) == 4
    np.testing.assert_allclose(session.run(v), [-1, 0])
    fixed = E.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), 128)
    ((g, _),) = fixed.compute_gradients(tf.reduce_sum(v * v), [v])
    session.run(v.assign([1.0, 2]))
    np.testing.assert_allclose(session.run(g), [2, 4])
    with pytest.raises(ValueError, match="at least 1"):
        E.FixedLossScale(0.5)
    with pytest.raises(ValueError, match="instance of Optimizer"):
        E.MixedPrecisionLossScaleOptimizer("sgd", 2)
    assert repr(scale) == "DynamicLossScale(initial_loss_scale=8.0, increment_period=2, multiplier=2.0)" and repr(E.FixedLossScale(3)) == "FixedLossScale(3.0)"
    assert session.run(scale.update([None])[1])  # there is nothing that is not finite


def test_checkpoints_of_scaled_losses(tmp_path):
    E = tf.train.experimental
    v = tf.Variable([2.0])
    scale = E.DynamicLossScale(1.0, increment_period=2)
    optimizer = E.MixedPrecisionLossScaleOptimizer(tf.train.MomentumOptimizer(1.0, 1.0), scale)
    train = optimizer.minimize(v * 3.0)
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    session.run(train)
    checkpoint = tf.train.Checkpoint(o=optimizer, v=v)
    path = checkpoint.save(str(tmp_path / "at"))
    kept = ["v/.OPTIMIZER_SLOT/o/base_optimizer/momentum", "o/loss_scale/current_loss_scale", "o/loss_scale/good_steps"]  # as 1.15.5 names them
    assert {name + "/.ATTRIBUTES/VARIABLE_VALUE" for name in kept} <= {name for name, _ in tf.train.list_variables(path)}
    session.run(train)
    assert session.run(scale()) == 2
    checkpoint.restore(path).assert_consumed().run_restore_ops()
    assert session.run(scale()) == 1
    update, finite = scale.update([tf.constant([1.0, np.inf])])
    assert not session.run(tf.identity(update)) and not session.run(finite)


def test_mixed_precision_scales_losses():
    E = tf.train.experimental
    made = E.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.5), 128.0)
    v = tf.get_variable("mixed", initializer=[1.0, 2.0])
    train = made.minimize(tf.reduce_sum(v * v))
    session = tf.get_default_session()
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(v).tolist() == [0, 0]
    for wrong, text in ((made, "must not already"), (3, "must be an instance")):
        with pytest.raises(ValueError, match=text):
            E.enable_mixed_precision_graph_rewrite(wrong)
    E.disable_mixed_precision_graph_rewrite()


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_cudnn_layers_against_numpy():
    """Two biases, gates by the sigmoid; the reset gate of the GRU works behind the product with the state."""
    random = np.random.RandomState(3)
    x, units = random.randn(2, 4, 3), 5
    for kind, gates in ((keras.layers.CuDNNLSTM, 4), (keras.layers.CuDNNGRU, 3)):
        given = keras.Input((4, 3))
        layer = kind(units, return_sequences=True)
        model = keras.Model(given, layer(given))
        kernel, recurrent, bias = layer.get_weights()
        assert kernel.shape == (3, gates * units) and recurrent.shape == (units, gates * units) and bias.shape == (2 * gates * units,)
        if gates == 4:
            np.testing.assert_array_equal(bias, np.repeat([0, 1, 0], [5 * units, units, 2 * units]))  # the forget gate's
        bias = random.randn(*bias.shape)
        layer.set_weights([kernel, recurrent, bias])
        kernel, recurrent = (w.astype(float) for w in layer.get_weights()[:2])
        h, c, wanted = np.zeros([2, units]), np.zeros([2, units]), []
        for t in range(4):
            of_x, of_h = x[:, t] @ kernel + bias[: gates * units], h @ recurrent + bias[gates * units :]
            if gates == 4:
                i, f, g, o = np.split(of_x + of_h, 4, 1)
                c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
                h = _sigmoid(o) * np.tanh(c)
            else:
                (xz, xr, xn), (hz, hr, hn) = np.split(of_x, 3, 1), np.split(of_h, 3, 1)
                z, r = _sigmoid(xz + hz), _sigmoid(xr + hr)
                h = z * h + (1 - z) * np.tanh(xn + r * hn)
            wanted.append(h)
        np.testing.assert_allclose(model.predict(x), np.stack(wanted, 1), rtol=1e-5, atol=1e-6)
        twin = kind.from_config(layer.get_config())
        assert twin.units == units and twin.return_sequences


def test_cudnn_layers_train_and_models_with_them_come_back():
    model = keras.Sequential([keras.layers.CuDNNLSTM(4, input_shape=(3, 2)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.RandomState(0).randn(16, 3, 2)
    history = model.fit(x, x.sum((1, 2)), epochs=5, verbose=0).history["loss"]
    assert history[-1] < history[0]
    again = keras.models.model_from_json(model.to_json())
    assert type(again.layers[0]) is keras.layers.CuDNNLSTM and again.count_params() == model.count_params()


def test_activations_of_tensorflow_2_have_their_names_of_1():
    activation = tf.keras.activations.get(tf.compat.v2.nn.softmax)
    assert tf.keras.activations.serialize(activation) == "softmax" == tf.keras.layers.Dense(2, activation=activation).get_config()["activation"]


@pytest.mark.parametrize("implementation", [1, 2, 3])
def test_what_is_connected_locally_takes_arrays_too(implementation):
    layer = tf.keras.layers.LocallyConnected1D(2, 2, implementation=implementation)
    x = np.random.RandomState(0).rand(2, 4, 3).astype(np.float32)
    outputs = [layer(tf.constant(x)), layer.call(x)]
    wanted, found = tf.keras.backend.get_session().run(outputs)
    np.testing.assert_array_equal(wanted, found)


def test_layers_are_activations():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation=tf.keras.layers.LeakyReLU(0.25), input_dim=1, kernel_initializer="ones")])
    with tf.keras.utils.custom_object_scope({"LeakyReLU": tf.keras.layers.LeakyReLU}):
        again = tf.keras.models.model_from_json(model.to_json())
    assert again.predict(np.array([[-4.0]])) == [[-1.0]]


def lines_of_summary(model, **given):
    lines = []
    model.summary(print_fn=lines.append, **given)
    return lines


def test_summaries_are_laid_out_as_in_1_15():
    x = tf.keras.Input((3,))
    a, b = tf.keras.layers.Dense(2, name="a")(x), tf.keras.layers.Dense(3, name="b")(x)
    chain, branched = tf.keras.Model(x, a, name="chain"), tf.keras.Model(x, [a, b])
    assert lines_of_summary(chain) == [
        'Model: "chain"',
        "_" * 65,
        "Layer (type)                 Output Shape              Param #   ",
        "=" * 65,
        "%s (InputLayer)         [(None, 3)]               0         " % chain.layers[0].name,
        "_" * 65,
        "a (Dense)                    (None, 2)                 8         ",
        "=" * 65,
        "Total params: 8",
        "Trainable params: 8",
        "Non-trainable params: 0",
        "_" * 65,
    ]
    lines = lines_of_summary(branched)
    assert lines[2].split()[-2:] == ["Connected", "to"] and lines[8].endswith("%s[0][0]" % chain.layers[0].name + " " * 20) and len(lines[8]) == 98
    assert chain.layers[0].output_shape == [(None, 3)] and chain.input_shape == (None, 3)


def test_a_layers_config_names_glorots_initializers():
    config = tf.keras.layers.Dense(2).get_config()["kernel_initializer"]
    assert config == {"class_name": "GlorotUniform", "config": {"seed": None, "dtype": "float32"}}
    assert isinstance(tf.keras.initializers.get(config), tf.keras.initializers.glorot_uniform)
    assert tf.glorot_normal_initializer(3).get_config() == {"seed": 3, "dtype": "float32"}


def test_programs_print_the_version():
    assert tf.keras.__version__ == "2.2.4-tf"


def recurrent(make):
    """The output and state of a recurrent layer over a cell in a wrapper, the cell, and the names of its weights."""
    x = np.arange(12, dtype="float32").reshape(2, 3, 2) / 10
    inner = L.SimpleRNNCell(2, kernel_initializer=tf.constant_initializer(0.5), recurrent_initializer=tf.constant_initializer(0.25))
    cell = make(inner)
    found = L.RNN(cell, return_state=True)(tf.constant(x))
    return K.get_session().run(found), cell, [v.name.split("/")[1] for v in cell.weights]


def test_layers_around_cells():
    nn = tf.compat.v2.nn
    state = [[0.525658, 0.525658], [0.896971, 0.896971]]  # of TensorFlow 1.15.5, as all here
    for make, output, after in (
        (nn.RNNCellResidualWrapper, [[0.925658, 1.025658], [1.896971, 1.996971]], state),
        (lambda cell: nn.RNNCellResidualWrapper(cell, lambda i, o: 2 * i + o), [[1.325658, 1.525658], [2.896971, 3.096972]], state),
        (lambda cell: nn.RNNCellDeviceWrapper(cell, "/cpu:0"), state, state),
        (lambda cell: nn.RNNCellDropoutWrapper(cell, state_keep_prob=1e-7, seed=3), [[0.421899, 0.421899], [0.781806, 0.781806]], np.zeros([2, 2])),
    ):
        found, cell, weights = recurrent(make)
        np.testing.assert_allclose(found, [output, after], rtol=1e-5, atol=1e-6)
        assert weights == ["kernel:0", "recurrent_kernel:0", "bias:0"] and (cell.state_size, cell.output_size) == (2, 2)
        config = cell.get_config()
        again = L.deserialize(L.serialize(cell))
        assert config["cell"]["class_name"] == "SimpleRNNCell" and type(again) is type(cell) and again.get_config() == config
    assert cell.name.startswith("dropout_wrapper") and type(cell).__name__ == "DropoutWrapper"
    assert cell.get_initial_state(batch_size=3, dtype=tf.float32).shape.as_list() == [3, 2]
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.RNNCellDropoutWrapper(L.GRUCell(2), 2.0)


def test_layers_around_cells_of_tf_nn():
    cell = tf.compat.v2.nn.RNNCellResidualWrapper(tf.nn.rnn_cell.BasicRNNCell(2))
    found = cell(tf.ones([1, 2]), tf.ones([1, 2]))
    output, state = K.get_session().run(found)
    np.testing.assert_allclose(output, state + 1)
    assert [v.name for v in cell.weights] == ["basic_rnn_cell/kernel:0", "basic_rnn_cell/bias:0"] and cell.zero_state(3, tf.float32).shape == (3, 2)


def test_layers_that_only_settings_name():
    attention = names.module("python.keras.layers.dense_attention")
    for layer in (keras.experimental.PeepholeLSTMCell(2), attention.BaseDenseAttention(causal=True)):
        again = L.deserialize(L.serialize(layer))
        assert type(again) is type(layer) and again.get_config() == layer.get_config()
