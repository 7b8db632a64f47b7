# SPDX-License-Identifier: Apache-2.0
"""Columns beyond those of test_estimator.py, and those of tf.contrib.layers."""

import copy

import numpy as np
import pytest

import millrace as tf

fc, layers = tf.feature_column, tf.contrib.layers


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def run(session, made):
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return session.run(made)


def words(*rows):
    """A SparseTensor of rows of words."""
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    return tf.SparseTensor(places, [w for row in rows for w in row], [len(rows), max(map(len, rows))])


def rows_of(*values):
    return lambda shape, dtype=None, partition_info=None: tf.constant(values, tf.float32)


@pytest.mark.parametrize(
    "combiner, expected",
    [("sum", [[13, 26], [0, 0], [300, 600]]), ("mean", [[13 / 4, 26 / 4], [0, 0], [100, 200]]), ("sqrtn", [[13 / 10**0.5, 26 / 10**0.5], [0, 0], [100, 200]])],
)
def test_weights_of_values(sess, combiner, expected):
    table = rows_of([1, 2], [10, 20], [100, 200])
    column = fc.weighted_categorical_column(fc.categorical_column_with_vocabulary_list("word", ["a", "b", "c"]), "share")
    assert column.name == "word_weighted_by_share"
    features = {"word": words(["a", "b"], [], ["c"]), "share": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [3.0, 1.0, 3.0], [3, 2])}
    made = fc.input_layer(features, [fc.embedding_column(column, 2, combiner, initializer=table)])
    np.testing.assert_allclose(run(sess, made), expected, rtol=1e-6)
    assert run(sess, fc.input_layer(features, [fc.indicator_column(column)])).tolist() == [[3, 1, 0], [0, 0, 0], [0, 0, 3]]


def test_one_table_for_two_columns(sess):
    old, new = (fc.categorical_column_with_vocabulary_list(name, ["a", "b"]) for name in ("old", "new"))
    columns = fc.shared_embedding_columns([old, new], 2, initializer=rows_of([1, 2], [3, 4]))
    made = fc.input_layer({"old": ["a", "b"], "new": ["b", ""]}, columns)
    assert run(sess, made).tolist() == [[3, 4, 1, 2], [0, 0, 3, 4]]  # new before old
    assert [v.op.name for v in tf.trainable_variables()] == ["input_layer/new_old_shared_embedding/embedding_weights"]
    with pytest.raises(ValueError, match="must have the same number of buckets"):
        fc.shared_embedding_columns([old, fc.categorical_column_with_vocabulary_list("n", ["a"])], 2)


def ids_of(column, features):
    """The classes of each example, -1 for none."""
    return tf.sparse_tensor_to_dense(column._get_sparse_tensors(fc._LazyBuilder(features)).id_tensor, -1)


def test_crossed_columns(sess):
    word, number = fc.categorical_column_with_vocabulary_list("word", ["a", "b"]), fc.bucketized_column(fc.numeric_column("n"), [5.0])
    column = fc.crossed_column(["word", number], 1000)
    assert column.name == "n_bucketized_X_word"
    features = {"word": words(["a", "b"], ["b"], [], ["b", "a"]), "n": tf.constant([[1.0], [1.0], [1.0], [9.0]])}
    ids = run(sess, ids_of(column, features))
    assert ids.shape == (4, 2) and ids.max() < 1000
    (a1, b1), (b1_again, nothing), none, (b9, a9) = ids.tolist()
    assert b1_again == b1 and nothing == -1 and none == [-1, -1] and len({a1, b1, a9, b9}) == 4
    # The same words by their numbers are other classes, and another key of the hash gives others again.
    assert run(sess, ids_of(fc.crossed_column([word, number], 1000), features)).tolist()[2] == [-1, -1]
    assert sess.run(ids_of(fc.crossed_column(["word", number], 1000, hash_key=7), features)).tolist() != ids.tolist()
    three = fc.crossed_column([fc.crossed_column(["word", number], 10), "other"], 50)
    assert sess.run(ids_of(three, dict(features, other=words(["x", "y"], [], ["z"], ["x"])))).shape == (4, 4)
    many = ids_of(fc.crossed_column(["w", "v"], 4), {"w": ["%d" % i for i in range(400)], "v": ["x"] * 400})
    assert sorted(np.bincount(sess.run(many).ravel()))[0] > 50
    for keys, message in (
        (["word"], "length > 1"),
        (["word", fc.numeric_column("n")], "Unsupported key type"),
        (["word", fc.categorical_column_with_hash_bucket("h", 5)], "not supported for crossing"),
    ):
        with pytest.raises(ValueError, match=message + ".*test_feature_columns.py"):
            fc.crossed_column(keys, 10)


def test_crossed_columns_hash_as_in_tensorflow(sess):
    """The classes that TensorFlow 1.15 gives these words."""
    column = fc.crossed_column(["a", "b"], 100)
    assert run(sess, ids_of(column, {"a": [["x"], ["y"]], "b": [["1"], ["2"]]})).tolist() == [[45], [14]]


def test_what_is_parsed(sess):
    word = fc.categorical_column_with_hash_bucket("word", 10)
    columns = [
        fc.embedding_column(word, 2),
        fc.bucketized_column(fc.numeric_column("n", [2], default_value=[0.0, 1.0]), [5.0]),
        fc.weighted_categorical_column(fc.categorical_column_with_identity("id", 3), "share"),
        fc.crossed_column(["left", "word"], 5),
    ]
    spec = fc.make_parse_example_spec(columns)
    assert spec == {
        "word": tf.VarLenFeature(tf.string),
        "n": tf.FixedLenFeature((2,), tf.float32, (0.0, 1.0)),
        "id": tf.VarLenFeature(tf.int64),
        "share": tf.VarLenFeature(tf.float32),
        "left": tf.VarLenFeature(tf.string),
    }
    features = {
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])),
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[2])),
        "share": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
    }
    data = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    made = fc.input_layer(tf.parse_example([data], spec), columns[:2] + [fc.indicator_column(columns[2])])
    assert run(sess, made)[0, -3:].tolist() == [0, 0, 0.5] or run(sess, made)[0].tolist().count(0.5) == 1
    by_column = layers.parse_feature_columns_from_examples([data], [layers.sparse_column_with_hash_bucket("word", 10)])
    assert len(by_column) == 2
    with pytest.raises(ValueError, match="different parse_spec for key n"):
        fc.make_parse_example_spec([fc.numeric_column("n"), fc.bucketized_column(fc.numeric_column("n", [3]), [0.0])])


def test_collections_and_variables_of_columns(sess):
    word, n, noted = fc.categorical_column_with_vocabulary_list("word", ["a", "b"]), fc.numeric_column("n"), {}
    made = fc.linear_model({"word": [["a"], ["c"]], "n": [[1.0], [2.0]]}, [word, n], units=3, weight_collections=["kept"], cols_to_vars=noted)
    assert run(sess, made).tolist() == [[0, 0, 0]] * 2
    assert {k if k == "bias" else k.name: [v.op.name for v in vs] for k, vs in noted.items()} == {
        "word": ["linear_model/word/weights"],
        "n": ["linear_model/n/weights"],
        "bias": ["linear_model/bias_weights"],
    }
    assert len(tf.get_collection("kept")) == 3


def test_weights_of_a_linear_model_come_before_those_of_its_columns(sess):
    column, noted = fc.embedding_column(fc.categorical_column_with_identity("i", 4), 2), {}
    fc.linear_model({"i": [[1]]}, [column], cols_to_vars=noted)
    assert [v.op.name.rpartition("/")[2] for v in noted[column]] == ["weights", "embedding_weights"]


def test_columns_of_contrib(sess):
    age, city = layers.real_valued_column("age"), layers.sparse_column_with_keys("city", ["Rome", "Oslo"])
    hashed = layers.sparse_column_with_hash_bucket("job", 100, combiner="mean")
    tensors = {"age": tf.constant([20.0, 50.0]), "city": tf.constant(["Oslo", "Bonn"]), "job": words(["cook", "poet"], ["cook"])}
    columns = [age, layers.bucketized_column(age, [30.0, 40.0]), layers.one_hot_column(city), layers.embedding_column(hashed, 3)]
    made = layers.input_from_feature_columns(tensors, columns, weight_collections=["w"], scope="deep")
    got = run(sess, made)
    assert got.shape == (2, 3 + 3 + 2 + 1) and got[:, [0, 1, 2, 6, 7, 8]].tolist() == [[1, 0, 0, 0, 1, 20], [0, 0, 1, 0, 0, 50]]  # in the order of keys
    assert [v.op.name for v in tf.get_collection("w")] == ["deep/job_embedding/weights"]
    logits, variables, bias = layers.weighted_sum_from_feature_columns(tensors, [age, city, hashed, layers.crossed_column([city, hashed], 50)], 2, scope="wide")
    assert run(sess, logits).tolist() == [[0, 0], [0, 0]] and bias.op.name == "wide/bias_weight"
    assert {c.name: v[0].op.name for c, v in variables.items()} == {
        "age": "wide/age/weight",
        "city": "wide/city/weights",
        "job": "wide/job/weights",
        "city_X_job": "wide/city_X_job/weights",
    }
    tf.assign(variables[hashed][0], tf.ones([100, 2])).eval()
    tf.assign(variables[age][0], [[1.0, 2.0]]).eval()
    assert sess.run(logits).tolist() == [[21, 41], [51, 101]]  # the mean of two jobs is one
    by_columns = {age: tensors["age"]}
    assert sess.run(layers.input_from_feature_columns(by_columns, [age], scope="again")).tolist() == [[20], [50]]


def test_columns_of_contrib_know_their_fields():
    n = layers.real_valued_column("n", 3, default_value=[1, 2, 3], dtype=tf.int32, normalizer=lambda x: x + 1)
    assert copy.deepcopy(n).default_value == (1, 2, 3) and "normalizer" not in n.key and n.normalizer_fn(1) == 2
    assert n.config == {"n": tf.FixedLenFeature([3], tf.int32, [1, 2, 3])}
    with pytest.raises(AttributeError):
        n.column_name = "m"
    word = layers.sparse_column_with_keys("w", ["a", "b"])
    weighted = layers.weighted_sparse_column(word, "share")
    assert (weighted.name, weighted.length, copy.deepcopy(weighted).sparse_id_column) == ("w_weighted_by_share", 2, word)
    assert layers.bucketized_column(n, [1.0, 2.0, 2.0]).boundaries == (1.0, 2.0)
    others = [layers.sparse_column_with_keys(name, ["a", "b"]) for name in "3120"]
    assert {c.shared_embedding_name for c in layers.shared_embedding_columns(others, 2)} == {"0_1_2_plus_1_others_shared_embedding"}
    with pytest.raises(ValueError, match="same kind and number of classes"):
        layers.shared_embedding_columns([word, layers.sparse_column_with_hash_bucket("h", 3)], 2)


def test_crossed_columns_of_contrib_hash_the_features(sess):
    features = {"city": tf.constant([["Rome"], ["Oslo"]]), "job": words(["cook", "poet"], ["cook"])}
    crossed = layers.crossed_column([layers.sparse_column_with_keys("city", ["Rome"]), layers.sparse_column_with_hash_bucket("job", 3)], 1000)
    ours = layers.transform_features(features, [crossed])[crossed]
    core = fc.crossed_column(["city", "job"], 1000)._transform_feature(fc._LazyBuilder(features))
    assert sess.run(ours).values.tolist() == sess.run(core).values.tolist()


def test_numbers_of_classes_of_contrib_begin_again(sess):
    ids = layers.sparse_column_with_integerized_feature("id", 5, dtype=tf.int32)
    made = layers.transform_features({"id": tf.constant([7, 4])}, [ids])[ids]
    assert made.dtype == tf.int32 and sess.run(made).values.tolist() == [2, 4]


def test_joint_sums_of_columns_have_one_variable(sess):
    a, b = layers.sparse_column_with_keys("a", ["x", "y"]), layers.sparse_column_with_keys("b", ["p", "q", "r"])
    features = {"a": tf.constant([["y"], ["x"]]), "b": tf.constant([["r"], ["p"]])}
    total, (weights,), bias = layers.joint_weighted_sum_from_feature_columns(features, [b, a], 1)
    run(sess, total)
    sess.run([weights.assign([[0.1], [0.2], [0.3], [0.4], [0.5]]), bias.assign([0.1])])
    np.testing.assert_allclose(sess.run(total), [[0.8], [0.5]], rtol=1e-6)
    with pytest.raises(AssertionError, match="weighted"):
        layers.joint_weighted_sum_from_feature_columns({**features, "s": tf.ones([2, 1])}, [layers.weighted_sparse_column(a, "s")], 1)


def test_columns_of_contrib_along_sequences(sess):
    numbers = np.arange(24.0).reshape(2, 3, 4)
    ids = tf.SparseTensor([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 2, 0]], ["a", "b", "a", "b"], [2, 3, 2])
    columns = [layers.real_valued_column("n"), layers.one_hot_column(layers.sparse_column_with_keys("w", ["a", "b"]))]
    made = run(sess, layers.sequence_input_from_feature_columns({"n": tf.constant(numbers, tf.float32), "w": ids}, columns))
    assert made.shape == (2, 3, 6) and made[..., 2:].tolist() == numbers.tolist()
    assert made[..., :2].tolist() == [[[1, 0], [1, 1], [0, 0]], [[0, 0], [0, 0], [0, 1]]]
    with pytest.raises(ValueError, match="_BucketizedColumn is not currently supported"):
        layers.sequence_input_from_feature_columns({}, [layers.bucketized_column(layers.real_valued_column("n"), [1.0])])


def test_scattered_and_shared_rows_of_contrib(sess):
    scattered = layers.scattered_embedding_column("w", 1000, 3, layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY, initializer=tf.ones_initializer())
    assert run(sess, layers.input_from_feature_columns({"w": words(["a", "b"], ["a"])}, [scattered])).tolist() == [[1, 1, 1]] * 2
    a, b = layers.shared_embedding_columns([layers.sparse_column_with_keys(name, ["x", "y"]) for name in "ab"], 2)
    first = layers.input_from_feature_columns({"a": tf.constant([["x"], ["y"]])}, [a])
    second = layers.input_from_feature_columns({"b": tf.constant([["x"], ["y"]])}, [b])
    assert run(sess, tf.reduce_all(tf.equal(first, second)))


def test_mistakes_with_columns_of_contrib(sess):
    city = layers.sparse_column_with_keys("city", ["Rome"])
    for call, error, message in (
        (lambda: layers.input_from_feature_columns({"city": ["Rome"]}, [city]), ValueError, "Error creating input layer for column: city"),
        (lambda: layers.weighted_sum_from_feature_columns({"city": ["Rome"]}, [layers.embedding_column(city, 2)], 1), ValueError, "weighted sum"),
        (lambda: layers.input_from_feature_columns({}, [layers.real_valued_column("n")]), KeyError, "Feature n is not in"),
        (lambda: layers.real_valued_column("n", dimension=0), ValueError, "dimension must be greater than 0"),
        (lambda: layers.real_valued_column("n", 2, [1.0, "x"]), TypeError, "default_value must be compatible with dtype"),
        (lambda: layers.real_valued_column("n", 2, [1.0]), ValueError, "The length of default_value must be equal to dimension"),
        (lambda: layers.bucketized_column("n", [1.0]), TypeError, "source_column must be an instance of _RealValuedColumn"),
        (lambda: layers.input_from_feature_columns({"n": [1.0]}, {"n": layers.real_valued_column("n")}), ValueError, "found dict"),
        (lambda: layers.sparse_column_with_keys("n", ["a"], combiner="best"), ValueError, "combiner must be one of"),
        (lambda: layers.check_feature_columns([city, city]), ValueError, "Duplicate feature column"),
        (lambda: layers.crossed_column([city, layers.real_valued_column("n")], 5), TypeError, "columns must be a set"),
        (lambda: layers.embedding_column(city, 2, ckpt_to_load_from="x"), ValueError, "Must specify both"),
    ):
        with pytest.raises(error, match=message + ".*test_feature_columns.py"):
            call()


def test_columns_of_arrays(sess):
    (one,) = layers.infer_real_valued_columns(tf.zeros([5, 3]))
    assert (one.name, one.dimension) == ("", 3)
    assert [c.dimension for c in layers.infer_real_valued_columns({"a": tf.zeros([5]), "b": tf.zeros([5, 2], tf.int32)})] == [1, 2]
    with pytest.raises(ValueError, match="non floating types are not supported.*of type string"):
        layers.infer_real_valued_columns(tf.constant([["a"]]))


def test_columns_say_what_is_wrong():
    word, number = fc.categorical_column_with_vocabulary_list("w", ["a"]), fc.numeric_column("n")
    for call, error, message in (
        (lambda: fc.numeric_column("n", shape=[2], default_value=[1.0]), ValueError, "The shape of default_value"),
        (lambda: fc.numeric_column("n", default_value="x"), TypeError, "default_value must be compatible"),
        (lambda: fc.numeric_column("n", shape=[1.0]), TypeError, "shape dimensions must be integer"),
        (lambda: fc.bucketized_column(number, [2.0, 1.0]), ValueError, "boundaries must be a sorted list"),
        (lambda: fc.categorical_column_with_vocabulary_list("w", ["a", "a"]), ValueError, "Duplicate keys"),
        (lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], tf.int64), ValueError, "do not match"),
        (lambda: fc.categorical_column_with_vocabulary_file("w", "none.txt"), ValueError, "does not exist"),
        (lambda: fc.categorical_column_with_identity("i", 2, default_value=2), ValueError, "not in range"),
        (lambda: fc.embedding_column(word, 2, initializer=0.5), ValueError, "initializer must be callable"),
        (lambda: fc.shared_embedding_columns([word, fc.categorical_column_with_identity("i", 1)], 2), ValueError, "must have the same type"),
        (lambda: fc.input_layer({"w": ["a"]}, [word]), ValueError, "must be a _DenseColumn"),
        (lambda: fc.linear_model({"n": [1.0, 2.0], "m": [1.0]}, [number, fc.numeric_column("m")]), ValueError, "of each feature must be same"),
        (lambda: fc.linear_model({"n": 1.0}, [number]), ValueError, "cannot have rank 0"),
        (lambda: fc.linear_model({"n": words(["1"])}, [number]), ValueError, "SparseTensor is not supported"),
        (lambda: fc.sequence_numeric_column("n", dtype=tf.string), ValueError, "convertible to float"),
    ):
        with tf.Graph().as_default(), pytest.raises(error, match="(?s)" + message + ".*test_feature_columns.py"):
            call()


def test_a_column_of_ones_own(sess):
    """It is asked once for each set of features, however many columns are made of it."""
    asked = []

    class Length(fc._NumericColumn):
        def _transform_feature(self, inputs):
            asked.append(self.name)
            return tf.cast(tf.strings.length(inputs.get(self.key)), tf.float32)

    column = Length("word", (1,), None, tf.float32, None)
    made = fc.input_layer({"word": ["abc", "z"]}, [column, fc.bucketized_column(column, [2.0])])
    assert run(sess, made).tolist() == [[3, 0, 1], [1, 1, 0]] and asked == ["word"]


def test_embeddings_begin_as_those_of_a_checkpoint(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old", initializer=[[1.0, 2.0], [3.0, 4.0]])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        column = fc.embedding_column(fc.categorical_column_with_identity("i", 2), 2, ckpt_to_load_from=path, tensor_name_in_ckpt="old")
        assert run(session, fc.input_layer({"i": [1, 0]}, [column])).tolist() == [[3, 4], [1, 2]]


def test_as_many_weights_as_ids():
    ids = tf.placeholder(tf.int64, [None, 1])
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("i", 9), "share")
    with tf.Session() as session:
        made = fc.linear_model({"i": ids, "share": tf.constant([[1.0], [2.0], [3.0]])}, [column])
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            session.run(made, {ids: [[1], [2]]})


def test_several_classes_of_one_value_by_strong_hashes():
    """Classes as TensorFlow 1.15.5 gives them."""
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as session:
        words = layers.sparse_column_with_hash_bucket("w", 7, hash_keys=[[1, 2], [30, 4]])
        numbers = layers.sparse_column_with_hash_bucket("n", 5, dtype=tf.int64, hash_keys=[[5, 6]])
        features = {
            "w": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["north", "south", "west"], [2, 2]),
            "n": tf.SparseTensor([[0, 0], [1, 0]], tf.constant([12, 7], tf.int64), [2, 1]),
        }
        columns, parts = [layers.one_hot_column(words), layers.one_hot_column(numbers)], {}
        made = layers.input_from_feature_columns(features, columns, cols_to_outs=parts)
        rows, of_words, of_numbers = session.run([made, *(parts[column] for column in columns)])
    assert rows.tolist() == np.concatenate([of_numbers, of_words], 1).tolist()
    assert rows.tolist() == [[0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1]]
    for keys, message in (
        ([], "must be a non-empty list"),
        (1, "must be a non-empty list"),
        ([1, 2], "a pair of integers"),
        ([[1, 2, 3]], "a pair of integers"),
    ):
        with pytest.raises(ValueError, match=message):
            layers.sparse_column_with_hash_bucket("w", 7, hash_keys=keys)
