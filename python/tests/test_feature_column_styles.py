# SPDX-License-Identifier: Apache-2.0
"""Columns in today's style: classes to derive from, layers, settings as JSON; and that the style before means the same."""

import copy
import json

import numpy as np
import pytest

import millrace as tf
from millrace import names

fc, layers = names.module("python.feature_column.feature_column_v2"), tf.keras.layers
serialization = names.module("python.feature_column.serialization")


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def run(session, made):
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return session.run(made)


def rows_of(*values):
    return lambda shape, dtype=None, partition_info=None: tf.constant(values, tf.float32)


class Doubled(fc.DenseColumn):
    """Twice a feature, and a variable."""

    def __init__(self, key):
        self.key, self.asked = key, 0

    name = property(lambda self: self.key + "_doubled")
    parents = property(lambda self: [self.key])
    variable_shape = property(lambda self: tf.TensorShape([1]))
    parse_example_spec = property(lambda self: {self.key: tf.FixedLenFeature([1], tf.float32)})

    def create_state(self, state_manager):
        state_manager.create_variable(self, "shift", (1,), tf.float32, initializer=tf.ones_initializer())

    def transform_feature(self, transformation_cache, state_manager):
        self.asked += 1
        return transformation_cache.get(self.key, state_manager) * 2.0

    def get_dense_tensor(self, transformation_cache, state_manager):
        return transformation_cache.get(self, state_manager) + state_manager.get_variable(self, "shift")


def test_a_column_of_ones_own_in_layers(sess):
    column = Doubled("n")
    layer = layers.DenseFeatures([fc.numeric_column("m"), column])
    first, second = layer({"n": [[1.0], [4.0]], "m": [[7.0], [8.0]]}), layer({"n": [[5.0]], "m": [[6.0]]})
    assert run(sess, first).tolist() == [[7, 3], [8, 9]] and sess.run(second).tolist() == [[6, 11]] and column.asked == 2
    assert [v.op.name for v in layer.trainable_weights] == ["dense_features/n_doubled/shift"]
    assert fc.make_parse_example_spec_v2([column]) == {"n": tf.FixedLenFeature([1], tf.float32)}
    assert fc.is_feature_column_v2([column, fc.numeric_column("m")])
    with pytest.raises(ValueError, match="must be a _FeatureColumn"):
        tf.feature_column.input_layer({"n": [[1.0]]}, [column])


def test_columns_of_a_column_in_the_style_before(sess):
    class Parity(fc._CategoricalColumn):
        name, _num_buckets, _parse_example_spec = "parity", 2, {}

        def _transform_feature(self, inputs):
            return fc._LazyBuilder({"p": tf.floormod(inputs.get("n"), 2)}).get(tf.feature_column.categorical_column_with_identity("p", 2))

    old = fc.embedding_column(Parity(), 2, initializer=rows_of([1, 2], [3, 4]))
    assert not fc.is_feature_column_v2([old]) and not fc.is_feature_column_v2([fc.indicator_column(Parity())])
    features = {"n": tf.constant([[3], [4]])}
    assert run(sess, fc.input_layer(features, [old, fc.indicator_column(Parity())])).tolist() == [[3, 4, 0, 1], [1, 2, 1, 0]]
    crossed = fc.crossed_column([Parity(), "w"], 10)
    assert not crossed._is_v2_column and crossed.parents == [crossed.keys[0], "w"]
    assert run(sess, fc.linear_model({**features, "w": tf.constant([["a"], ["b"]])}, [crossed])).tolist() == [[0], [0]]


def test_columns_are_equal_by_class_and_settings():
    made = fc.categorical_column_with_identity("a", 3)
    assert made == copy.deepcopy(made) and hash(made) == hash(copy.deepcopy(made))
    assert fc.indicator_column(made) != fc.SequenceCategoricalColumn(made) and made != ("a", 3, None)
    assert fc.numeric_column("b") > fc.numeric_column("a") and made._replace(number_buckets=4).num_buckets == 4
    with pytest.raises(ValueError, match="key must be a string"):
        fc.numeric_column(["a"])


def columns_of_all_kinds(path):
    number = fc.numeric_column("n", shape=2, default_value=[1.0, 2.0], dtype=tf.float64)
    word = fc.categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=2)
    listed = fc.categorical_column_with_vocabulary_file("f", path, vocabulary_size=1)
    steps = fc.SequenceCategoricalColumn(word)
    return [
        number,
        fc.bucketized_column(number, [0.5, 1.5]),
        fc.embedding_column(word, 3, initializer=tf.truncated_normal_initializer(0.0, 0.5)),
        fc.indicator_column(fc.crossed_column(["left", word], 10, hash_key=5)),
        fc.indicator_column(fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("h", 7, tf.int32), "share")),
        fc.indicator_column(listed),
        fc.embedding_column(steps, 2),
        names.module("python.feature_column.sequence_feature_column").sequence_numeric_column("s", normalizer_fn=halved),
        fc.categorical_column_with_identity("i", 4, default_value=0),
    ]


def halved(x):
    return x / 2


def test_columns_as_settings(tmp_path):
    made = columns_of_all_kinds(str(tmp_path / "words"))
    kept = json.loads(json.dumps(serialization.serialize_feature_columns(made)))
    again = serialization.deserialize_feature_columns(kept, custom_objects={"halved": halved})
    assert [type(c) for c in again] == [type(c) for c in made]
    assert again[2].initializer.stddev == 0.5
    same = [(a, b) for a, b in zip(again, made) if not isinstance(a, fc.EmbeddingColumn)]  # initializers are objects
    assert all(a == b for a, b in same) and len(same) == 7
    assert again[1].source_column is again[0]
    for config, message in (
        ({"class_name": "None", "config": {}}, "Unknown feature_column_v2: None"),
        ({"class_name": "NumericColumn", "config": {"key": "a"}}, "Invalid config"),
        ({"class_name": "int", "config": {}}, "Expected FeatureColumn class"),
    ):
        with pytest.raises(ValueError, match=message):
            serialization.deserialize_feature_column(config, custom_objects={"int": int})
    with pytest.raises(ValueError, match="is not a FeatureColumn"):
        serialization.serialize_feature_column(3)


def test_layers_as_settings(sess):
    made = [fc.numeric_column("n", 2), fc.embedding_column(fc.categorical_column_with_identity("i", 4), 3)]
    config = json.loads(json.dumps(layers.DenseFeatures(made, trainable=False, name="d").get_config()))
    again = layers.DenseFeatures.from_config(config)
    assert (again.name, again.trainable) == ("d", False) and again.compute_output_shape((7, 1)) == (7, 5)
    assert again({"n": [[1.0, 2.0]], "i": [[0]]}).shape.as_list() == [1, 5] and not again.trainable_weights


def test_linear_models_of_columns(sess):
    word, n = fc.categorical_column_with_vocabulary_list("w", ["a", "b"]), fc.numeric_column("n")
    model = fc.LinearModel([n, word], units=2, sparse_combiner="mean")
    total = model({"w": tf.constant([["a", "b"], ["b", ""]]), "n": [[1.0], [2.0]]})
    n_rows, w_rows, bias = model.variables
    assert [v.op.name for v in model.variables] == ["linear_model/n/weights", "linear_model/w/weights", "linear_model/bias_weights"]
    run(sess, total)
    sess.run([n_rows.assign([[1.0, 10.0]]), w_rows.assign([[2.0, 0.0], [4.0, 6.0]]), bias.assign([100.0, 200.0])])
    assert sess.run(total).tolist() == [[104, 213], [106, 226]] and model.bias is bias
    with pytest.raises(ValueError, match="We expected a dictionary here"):
        model([[1.0]])
    again = fc._LinearModelLayer.from_config(fc._LinearModelLayer([n], units=3, name="one").get_config())
    assert again({"n": [[1.0]]}).shape.as_list() == [1, 3] and again.name == "one"


def test_a_table_for_several_columns_of_layers(sess):
    old, new = (fc.categorical_column_with_identity(key, 2) for key in ("old", "new"))
    made = fc.shared_embedding_columns_v2([old, new], 2, initializer=rows_of([1, 2], [3, 4]))
    assert run(sess, layers.DenseFeatures(made)({"old": [[1]], "new": [[0]]})).tolist() == [[1, 2, 3, 4]]
    assert [v.op.name for v in tf.trainable_variables()] == ["new_old_shared_embedding"]
    with pytest.raises(ValueError, match="not supported in `linear_model` or `input_layer`"):
        fc.input_layer({"old": [[1]], "new": [[0]]}, made)
    with tf.Graph().as_default(), tf.Session() as other:  # a table in each graph
        assert run(other, layers.DenseFeatures(made[0])({"old": [[1]]})).tolist() == [[3, 4]]


def test_layers_have_the_tables_and_variables_of_columns(sess):
    word, manager = fc.categorical_column_with_vocabulary_list("w", ["a"]), fc._StateManagerImpl(layers.Layer(), True)
    fc.FeatureTransformationCache({"w": [["a"]]}).get(word, manager)
    assert manager.get_resource(word, "w_lookup") is not None
    manager.create_variable(word, "v", (2,), tf.float32)
    assert manager.get_variable(word, "v") is manager._layer.trainable_weights[0]
    for call in (lambda: manager.create_variable(word, "v", (2,)), lambda: manager.get_variable(word, "u"), lambda: manager.get_resource(word, "u")):
        with pytest.raises(ValueError, match="already exists|does not exist"):
            call()


def test_what_is_made_once(sess):
    word = fc.embedding_column(fc.categorical_column_with_identity("i", 2), 2, initializer=rows_of([1, 2], [3, 4]))
    layer, model = fc.InputLayer([word]), fc._LinearModel([fc.numeric_column("n")])
    made = [layer({"i": [[0]]}), layer({"i": [[1]]}), model({"n": [[0.0]]}), model({"n": [[1.0]]})]
    assert [x.tolist() for x in run(sess, made)] == [[[1, 2]], [[3, 4]], [[0]], [[0]]]
    assert [v.op.name for v in layer.trainable_weights] == ["feature_column_input_layer/i_embedding/embedding_weights"] and len(tf.global_variables()) == 3


def test_weights_of_one_class_add_up(sess):
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("i", 3), "share")
    made = fc.input_layer({"i": [[1, 1, 0]], "share": [[2.0, 3.0, 4.0]]}, [fc.indicator_column(column)])
    assert run(sess, made).tolist() == [[4, 5, 0]]


def test_sequences_know_their_kind(sess):
    steps = fc.SequenceCategoricalColumn(fc.categorical_column_with_identity("i", 3))
    with pytest.raises(ValueError, match="must not be of type SequenceCategoricalColumn"):
        layers.DenseFeatures(fc.embedding_column(steps, 2))({"i": [[1]]})
    with pytest.raises(ValueError, match="must be of type _SequenceCategoricalColumn to use sequence_input_layer"):
        tf.contrib.feature_column.sequence_input_layer({"i": [[1]]}, [fc.indicator_column(steps.categorical_column)])
    sequences = names.module("python.feature_column.sequence_feature_column")
    both = sequences.concatenate_context_input(tf.constant([[9.0]]), tf.constant([[[1.0], [2.0]]]))
    assert sess.run(both).tolist() == [[[1, 9], [2, 9]]]
    with pytest.raises(TypeError, match="context_input must have dtype float32"):
        sequences.concatenate_context_input(tf.constant([[9]]), tf.constant([[[1.0]]]))
    numbers = tf.SparseTensor([[0, 0, 0], [0, 1, 1]], [1.0, 2.0], [2, 2, 2])  # steps of their own dimension
    value, lengths = sess.run(sequences.SequenceFeatures([sequences.sequence_numeric_column("n", 2)])({"n": numbers}))
    assert value.tolist() == [[[1, 0], [0, 2]], [[0, 0], [0, 0]]] and lengths.tolist() == [2, 0]


def words_and_numbers(n):
    features = {"n": np.arange(n, dtype=np.float32)[:, None] / n, "w": np.array(["x", "y"] * (n // 2))}
    return features, (features["n"][:, 0] + (features["w"] == "y")).astype(np.float32)


def columns_of_features():
    return [fc.numeric_column("n"), fc.indicator_column(fc.categorical_column_with_vocabulary_list("w", ["x", "y"]))]


@pytest.mark.parametrize("kind", ["sequential", "subclass", "functional"])
def test_models_of_keras_take_features(kind):
    tf.keras.backend.clear_session()
    features, y = words_and_numbers(40)
    layer, dense = layers.DenseFeatures(columns_of_features()), layers.Dense(1)

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = layer, dense

        def call(self, inputs):
            return self.second(self.first(inputs))

    if kind == "functional":
        inputs = {"w": tf.keras.Input((1,), name="w", dtype="string"), "n": tf.keras.Input((1,), name="n")}
        model = tf.keras.Model(list(inputs.values()), dense(layer(inputs)))
    else:
        model = tf.keras.Sequential([layer, dense]) if kind == "sequential" else Model()
    model.compile(tf.train.AdamOptimizer(0.1), "mse")
    data = tf.data.Dataset.from_tensor_slices((features, y)).batch(10)
    losses = model.fit(features, y, epochs=5, batch_size=10, verbose=0).history["loss"] + model.fit(data, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 10 and model.evaluate(data) < losses[0] / 10
    assert model.predict(features).shape == (40, 1)
    if kind == "functional":
        config, weights, made = json.loads(json.dumps(model.get_config())), model.get_weights(), model.predict(features)
        tf.keras.backend.clear_session()
        again = tf.keras.Model.from_config(config)
        again.set_weights(weights)
        np.testing.assert_array_equal(again.predict(features), made)


def test_linear_models_are_models_of_keras():
    tf.keras.backend.clear_session()
    features, y = words_and_numbers(40)
    model = fc.LinearModel([fc.numeric_column("n"), fc.categorical_column_with_vocabulary_list("w", ["x", "y"])])
    model.compile("adam", "mse")
    losses = model.fit(features, y, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0] and len(model.trainable_weights) == 3


def test_estimators_take_columns_of_ones_own():
    def data():
        features, y = words_and_numbers(40)
        return tf.data.Dataset.from_tensor_slices((features, y[:, None])).repeat(20).batch(20)

    columns = [Doubled("n"), fc.embedding_column(fc.categorical_column_with_vocabulary_list("w", ["x", "y"]), 2)]
    seeded = tf.estimator.RunConfig(tf_random_seed=2)  # a start from which few units are 0 for every example
    deep = tf.estimator.DNNRegressor([16], columns, optimizer=tf.train.AdamOptimizer(0.1), input_layer_partitioner=tf.fixed_size_partitioner(2), config=seeded)
    deep.train(data)
    made = ["dnn/input_from_feature_columns/input_layer/" + name for name in ("n_doubled/shift", "w_embedding/embedding_weights")]
    assert set(made) <= set(deep.get_variable_names()) and deep.evaluate(data)["average_loss"] < 0.1
    wide = tf.estimator.LinearRegressor([Doubled("n"), columns[1].categorical_column], optimizer=tf.train.AdamOptimizer(0.5), config=seeded)
    wide.train(data)
    assert {"linear/linear_model/n_doubled/weights", "linear/linear_model/w/weights"} <= set(wide.get_variable_names())
    assert wide.evaluate(data)["average_loss"] < 0.1
