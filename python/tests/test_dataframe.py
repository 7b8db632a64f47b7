# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn's data frames. Values are NumPy's."""

import collections
import copy

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import layers, learn
from millrace.contrib.feature_columns import DataFrameColumn
from millrace.contrib.learn.dataframe import estimator_utils, sources, transforms


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


class Known(learn.Series):
    """A column that is there already."""

    def __init__(self, name, tensor):
        self._name, self._tensor = name, tensor

    def build(self, cache, **kwargs):
        return self._tensor

    def __repr__(self):
        return self._name


class Halves(learn.TensorFlowTransform):
    name, input_valency, _output_names = "Halves", 1, ("low", "high")
    calls = 0

    def __init__(self, at):
        self._at = at

    @learn.parameter
    def at(self):
        return self._at

    def _apply_transform(self, input_tensors, **kwargs):
        Halves.calls += 1
        return self.return_type(input_tensors[0][: self._at], input_tensors[0][self._at :])


def values(*tensors):
    with tf.Session() as sess:
        return sess.run(tensors)


def test_transforms_are_made_once_for_a_cache():
    cut, column = Halves(2), Known("x", tf.constant([1, 2, 3]))
    low, high = cut(column)
    cache, Halves.calls = {}, 0
    assert [list(v) for v in values(low.build(cache), high.build(cache))] == [[1, 2], [3]] and Halves.calls == 1
    assert sorted(cache) == ["Halves({'at': 2})(x)[high]", "Halves({'at': 2})(x)[low]"] and repr(low) == "Halves({'at': 2})(x)[low]"
    assert cut.parameters() == {"at": 2} and cut.return_type._fields == ("low", "high")
    with pytest.raises(ValueError, match="takes 1 series, got 2"):
        cut([column, column])
    with pytest.raises(ValueError, match="not middle"):
        learn.TransformedSeries([column], cut, "middle")


def test_tables_have_columns_by_name():
    a, b, c = (Known(name, tf.constant(number)) for number, name in enumerate("abc"))
    table = learn.DataFrame()
    table["a"] = a
    table["b", "c"] = [b, c]
    assert table.columns() == {"a", "b", "c"} and len(table) == 3 and table["b"] is b
    assert table.select_columns(["a"]).columns() == {"a"} and table.exclude_columns(["a"]).columns() == {"b", "c"}
    del table["c"]
    assert list(values(*table.build().values())) == [0, 1]
    with pytest.raises(TypeError, match="must be a Series"):
        table["d"] = 1


def test_arithmetic_of_columns():
    x = np.array([1.0, 4.0, 9.0], "f")
    a, b = Known("a", tf.constant(x)), Known("b", tf.constant(2 * x))
    made = {
        a + b: 3 * x,
        b - a: x,
        a * 3.0: 3 * x,
        b / a: np.full(3, 2),
        a.sqrt(): np.sqrt(x),
        -a: -x,
        a > 2.0: x > 2,
        a == 4.0: x == 4,
        a.pow(b): x ** (2 * x),
        ~(a < b): np.zeros(3, bool),
        a.select_rows(a > 2.0): x[1:],
    }
    for got, wanted in zip(values(*[series.build({}) for series in made]), made.values()):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="SparseTensors"):
        (a * Known("s", tf.SparseTensor([[0]], [1.0], [3]))).build({})


def test_sparse_columns():
    sparse = tf.SparseTensor([[0, 0], [1, 2], [3, 1]], [5, 6, 7], [4, 3])
    rows = Known("s", sparse).select_rows(Known("m", tf.constant([True, True, False, False]))).build({})
    strip = transforms.Sparsify(np.nan)(Known("d", tf.constant([0.0, np.nan, 2.0])))
    dense = transforms.Densify(-1.0)(strip)
    words = transforms.Sparsify("")(Known("w", tf.constant(["a", "", "b"])))[0]
    got, stripped, filled, text, added = values(
        rows, strip[0].build({}), dense[0].build({}), words.build({}), (Known("s", sparse) + Known("t", sparse)).build({})
    )
    assert got.indices.tolist() == [[0, 0], [1, 2]] and got.values.tolist() == [5, 6] and got.dense_shape.tolist() == [4, 3]
    assert stripped.indices.tolist() == [[0], [2]] and filled.tolist() == [0, -1, 2] and text.values.tolist() == [b"a", b"b"]
    assert added.values.tolist() == [10, 12, 14]


def test_arrays_in_memory():
    x = np.arange(10).reshape(5, 2)
    table = learn.TensorFlowDataFrame.from_numpy(x, batch_size=3, shuffle=False)
    table["sum"] = table["value"] + table["value"]
    batches = list(table.run(num_batches=3))
    rows = [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert np.concatenate([b["index"] for b in batches]).tolist() == rows
    np.testing.assert_array_equal(np.concatenate([b["sum"] for b in batches]), 2 * x[rows])
    again = [b["index"].tolist() for b in table.batch(4).run(num_batches=2)]
    assert again == [[0, 1, 2, 3], [4, 0, 1, 2]]
    mixed = learn.TensorFlowDataFrame.from_ordereddict(collections.OrderedDict(a=np.arange(6), b=np.arange(6) * 2), batch_size=2, seed=1)
    for batch in mixed.run(num_batches=5):
        np.testing.assert_array_equal(batch["b"], 2 * batch["a"])
    assert sorted(mixed.run_one_epoch()["a"]) == [0, 1, 2, 3, 4, 5]


def test_lines_of_files(tmp_path):
    path = str(tmp_path / "rows.csv")
    with open(path, "w") as file:
        file.write("number,word\n" + "".join("%s,word%d\n" % (n if n % 2 else "", n) for n in range(10)))
    table = learn.TensorFlowDataFrame.from_csv([path], [-1, ""], batch_size=5, shuffle=False)
    assert table.columns() == {"index", "number", "word"}
    whole = table.run_one_epoch()
    assert whole["number"].tolist() == [n if n % 2 else -1 for n in range(10)] and whole["word"][9] == b"word9"
    assert len(list(table.run(num_epochs=3))) == 6
    left, right = table.split("word", 0.5)
    some, others = ({word for batch in part.run(num_epochs=2) for word in batch["word"]} for part in (left, right))
    assert some | others == set(whole["word"]) and not some & others
    spec = {"number": tf.VarLenFeature(tf.float32), "word": tf.FixedLenFeature(None, tf.string, "")}
    sparse = learn.TensorFlowDataFrame.from_csv_with_feature_spec(path, spec, batch_size=5, shuffle=False).run_one_batch()
    assert sparse["number"].values.tolist() == [1, 3] and sparse["number"].indices.tolist() == [[1], [3]]


def test_examples_of_files(tmp_path):
    path = str(tmp_path / "rows.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for n in range(4):
            numbers = tf.train.Feature(float_list=tf.train.FloatList(value=[n, 2 * n]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"two": numbers})).SerializeToString())
    table = learn.TensorFlowDataFrame.from_examples(path, {"two": tf.FixedLenFeature([2], tf.float32)}, batch_size=2, shuffle=False)
    assert table.run_one_epoch()["two"].tolist() == [[0, 0], [1, 2], [2, 4], [3, 6]]


def test_sources_shuffle_keys_and_values_together():
    units = [str(n) for n in range(100)]
    index, value = sources.ReaderSource(tf.IdentityReader, units, shuffle=True, num_threads=4, seed=1)()
    table = learn.TensorFlowDataFrame()
    table["i", "v"] = [index, value]
    seen = [(batch["i"][0], batch["v"][0]) for batch in table.run(num_batches=50)]
    assert all(i == v for i, v in seen) and len(set(seen)) == 50


def test_tables_feed_estimators():
    x = np.arange(8, dtype="f")
    table = learn.TensorFlowDataFrame.from_ordereddict(collections.OrderedDict(a=x, b=2 * x), batch_size=8, shuffle=False)
    table["sum"] = table["a"] + table["b"]
    table["label"] = table["sum"] > 9.0
    columns, input_fn = estimator_utils.to_feature_columns_and_input_fn(table, {"a": 0.0, "b": 1.0}, ["a", "sum"], ["label"])
    assert [column.name for column in columns] == ["a", "sum"]
    assert columns[1].config == {"a": tf.FixedLenFeature([], tf.float32, 0.0), "b": tf.FixedLenFeature([], tf.float32, 1.0)}
    features, labels = input_fn()
    inputs = layers.input_from_feature_columns(features, columns)
    with tf.train.MonitoredSession() as sess:
        got, wanted = sess.run([inputs, labels])
    np.testing.assert_array_equal(got, np.stack([x, 3 * x], 1))
    assert wanted.tolist() == (3 * x > 9).tolist()
    with pytest.raises(ValueError, match="labels and features: sum"):
        estimator_utils.to_feature_columns_and_input_fn(table, {"a": 0.0, "b": 1.0}, ["sum"], ["sum"])
    with pytest.raises(ValueError, match="none of the base inputs"):
        estimator_utils.to_feature_columns_and_input_fn(table, {"a": 0.0}, ["sum"])


def test_columns_are_no_copies_of_each_other():
    series = learn.PredefinedSeries("a", tf.FixedLenFeature([], tf.int32, 1))
    column = copy.deepcopy(DataFrameColumn("a", series))
    assert column.series is series and column.column_name == column.name == "a"
    assert series == learn.PredefinedSeries("a", tf.FixedLenFeature([], tf.int32, 1)) and series != learn.PredefinedSeries("b", None)
    with pytest.raises(KeyError, match="no a"):
        series.build({})
