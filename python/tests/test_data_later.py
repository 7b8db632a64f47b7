# SPDX-License-Identifier: Apache-2.0
"""What tf.data has of TensorFlow 1.13 to 1.15: sizes, reducers, databases, record files, positions of iterators in checkpoints."""

import sqlite3

import numpy as np
import pytest

import millrace as tf
from millrace.data import structure

Dataset, experimental = tf.data.Dataset, tf.data.experimental


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def elements(session, dataset):
    iterator = dataset.make_initializable_iterator()
    following, found = iterator.get_next(), []
    session.run(iterator.initializer)
    while True:
        try:
            found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


def test_sizes(session):
    ten = Dataset.range(10)
    known = [
        (ten, 10),
        (ten.repeat(3), 30),
        (ten.take(4), 4),
        (ten.take(-1), 10),
        (ten.skip(3), 7),
        (ten.skip(30), 0),
        (ten.batch(3), 4),
        (ten.batch(3, drop_remainder=True), 3),
        (ten.concatenate(ten), 20),
        (ten.shard(3, 0), 4),
        (ten.shard(3, 1), 3),
        (Dataset.range(10, 0, -3), 4),
        (ten.map(lambda x: x + 1).shuffle(3).prefetch(1).cache(), 10),
        (ten.repeat(0), 0),
        (Dataset.from_tensor_slices([1, 2, 3]).padded_batch(2, []), 2),
        (Dataset.zip((ten, ten.repeat())), 10),
        (Dataset.from_tensors(1), 1),
        (ten.apply(experimental.map_and_batch(lambda x: x, 4)), 3),
    ]
    for dataset, count in known:
        assert len(elements(session, dataset)) == count
    others = [
        (ten.repeat(), -1),
        (ten.repeat().repeat(2), -1),
        (ten.repeat().take(4), 4),
        (ten.filter(lambda x: x > 3), -2),
        (ten.concatenate(ten.repeat()), -1),
        (ten.filter(lambda x: x > 3).concatenate(ten.repeat()), -1),
        (ten.window(4), 3),
        (ten.window(4, drop_remainder=True), 2),
        (ten.filter(lambda x: x > 3).repeat(), -2),
        (ten.repeat().batch(2), -1),
        (ten.repeat().repeat(0), 0),
    ]
    asked = [experimental.cardinality(d) for d, _ in known + others]
    assert session.run(asked) == [c for _, c in known + others]
    assert (experimental.INFINITE_CARDINALITY, experimental.UNKNOWN_CARDINALITY) == (-1, -2)


def test_pairs_rows_and_reducers(session):
    assert elements(session, Dataset.range(3).enumerate(5)) == [(5, 0), (6, 1), (7, 2)]
    assert elements(session, Dataset.from_tensors([1, 2, 3]).unbatch()) == [1, 2, 3]
    rows = elements(session, Dataset.from_tensors({"a": [[1, 2], [3, 4]], "b": [5, 6]}).unbatch())
    assert [(r["a"].tolist(), r["b"]) for r in rows] == [([1, 2], 5), ([3, 4], 6)]
    pairs = elements(session, Dataset.from_tensors(([1, 2], [5, 6])).unbatch())
    assert pairs == [(1, 5), (2, 6)]
    count = experimental.Reducer(lambda key: (np.int64(0), key), lambda state, x: (state[0] + x, state[1]), lambda total, key: (key, total))
    assert sorted(elements(session, Dataset.range(10).apply(experimental.group_by_reducer(lambda x: x % 3, count)))) == [(0, 18), (1, 12), (2, 15)]
    again = experimental.from_variant(experimental.to_variant(Dataset.range(2)), experimental.get_structure(Dataset.range(2)))
    assert elements(session, again) == [0, 1]
    with pytest.raises(ValueError, match="instance of Reducer"):
        experimental.group_by_reducer(None, None)


def test_rows_of_a_database(session, tmp_path):
    path = str(tmp_path / "x.db")
    with sqlite3.connect(path) as database:
        database.execute("create table t(a int, b text, c real)")
        database.executemany("insert into t values(?, ?, ?)", [(1, "x", 0.5), (2, None, 1.5)])
    query = tf.placeholder(tf.string, [])
    rows = experimental.SqlDataset("sqlite", path, query, (tf.int32, tf.string, tf.float64))
    iterator = rows.make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer, {query: "select * from t order by a"})
    assert [session.run(following) for _ in range(2)] == [(1, b"x", 0.5), (2, b"", 1.5)]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)
    session.run(iterator.initializer, {query: "select a from t"})
    with pytest.raises(tf.errors.OpError, match="gives 1 columns, output_types has 3"):
        session.run(following)
    session.run(iterator.initializer, {query: "delete from t"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="readonly"):
        session.run(following)
    driver = tf.placeholder(tf.string, [])
    other = experimental.SqlDataset(driver, path, "select a from t", (tf.int32,)).make_initializable_iterator()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not supported by SqlDataset.*sqlite.*fake"):  # before a row is asked for
        session.run(other.initializer, {driver: "fake"})
    session.run(other.initializer, {driver: "sqlite"})


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_data_sets_become_record_files(session, tmp_path, compression):
    path = str(tmp_path / "x")
    write = experimental.TFRecordWriter(path, compression).write(Dataset.from_tensor_slices(["a", "bb", ""]))
    for _ in range(2):
        session.run(write)
        assert elements(session, tf.data.TFRecordDataset(path, compression)) == [b"a", b"bb", b""]
    told = tf.placeholder(tf.string, [])
    session.run(experimental.TFRecordWriter(path, told).write(Dataset.from_tensor_slices(["c"])), {told: compression})
    assert elements(session, tf.data.TFRecordDataset(path, compression)) == [b"c"]
    with pytest.raises(TypeError, match="scalar `DT_STRING`"):
        experimental.TFRecordWriter(path).write(Dataset.range(3))


def test_positions_in_checkpoints(session, tmp_path):
    iterator = Dataset.range(10).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    session.run(iterator.initializer)
    assert [session.run(following) for _ in range(2)] == [0, 1]
    path = saver.save(session, str(tmp_path / "x"), write_meta_graph=False)
    assert [session.run(following) for _ in range(2)] == [2, 3]
    saver.restore(session, path)
    assert session.run(following) == 2
    with tf.Session() as another:  # whose initializer does not run
        saver.restore(another, path)
        assert another.run(following) == 2
    with tf.Session() as other:
        other.run(iterator.initializer)
        saver.restore(other, path)
        assert other.run(following) == 2


ORDERS = {
    "shuffled": lambda: Dataset.range(30).shuffle(10, seed=3),
    "without_seed": lambda: Dataset.range(30).shuffle(10),
    "each_time_anew": lambda: Dataset.range(5).shuffle(5, seed=3).repeat(6),
    "one_op": lambda: Dataset.range(5).apply(experimental.shuffle_and_repeat(5, 6)),
    "function": lambda: Dataset.range(30).map(lambda x: x + tf.random_uniform([], 0, 1000, tf.int64, seed=5)),
    "sampled": lambda: experimental.sample_from_datasets([Dataset.range(15), Dataset.range(100, 115)], [0.5, 0.5], seed=1),
    "numbers": lambda: experimental.RandomDataset(5),
}


def _text(path, index):
    path.write_text("".join("%d%d\n" % (index, k) for k in range(3)))
    return tf.data.TextLineDataset


def _records(path, index):
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for k in range(3):
            writer.write(b"%d%d" % (index, k))
    return tf.data.TFRecordDataset


def _fixed(path, index):
    path.write_bytes(b"".join(b"%d%d" % (index, k) for k in range(3)))
    return lambda paths: tf.data.FixedLengthRecordDataset(paths, 2)


@pytest.mark.parametrize("kind", [_text, _records, _fixed])
def test_positions_in_files(tmp_path, kind):
    """The position in a data set of files itself, with nothing over it, restored in another graph."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for index, path in enumerate(paths):
        made = kind(path, index)
    wanted = [b"%d%d" % (i, k) for i in range(2) for k in range(3)]
    prefix, found = str(tmp_path / "model"), []
    for step in range(len(wanted)):
        with tf.Graph().as_default(), tf.Session() as session:
            iterator = made([str(p) for p in paths]).make_initializable_iterator()
            following, saver = iterator.get_next(), tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
            session.run(iterator.initializer)
            if step:
                saver.restore(session, prefix)
            found.append(session.run(following))
            saver.save(session, prefix)
    assert found == wanted


@pytest.mark.parametrize("order", ORDERS)
def test_positions_in_random_orders(session, tmp_path, order):
    """What comes after the restored position is what came after the saved one, not that many elements of another order."""
    iterator = ORDERS[order]().make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    state = tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource)
    again = tf.raw_ops.DeserializeIterator(resource_handle=iterator._iterator_resource, serialized=state)
    session.run(iterator.initializer)
    for _ in range(3):
        session.run(following)
    path = saver.save(session, str(tmp_path / "x"), write_meta_graph=False)
    rest = [session.run(following) for _ in range(12)]
    for _ in range(2):
        saver.restore(session, path)
        assert [session.run(following) for _ in range(4)] == rest[:4]
        session.run(again)
        assert [session.run(following) for _ in range(8)] == rest[4:]
    with tf.Session() as another:  # whose initializer does not run: it gets the data set that was saved, with its seeds
        saver.restore(another, path)
        assert [another.run(following) for _ in range(12)] == rest
    with tf.Session() as other:
        other.run(iterator.initializer)
        saver.restore(other, path)
        assert [other.run(following) for _ in range(12)] == rest


def test_positions_where_the_program_has_another_seed(tmp_path):
    found = []
    for seed, changed in [(5, 0), (6, 100)]:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(seed)
            iterator = Dataset.range(20).shuffle(10).map(lambda x: x + changed).make_initializable_iterator()
            following, saver = iterator.get_next(), tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
            session.run(iterator.initializer)
            if found:
                saver.restore(session, str(tmp_path / "x"))
            found += [session.run(following) - changed for _ in range(15 if found else 5)]
            saver.save(session, str(tmp_path / "x"))
    assert sorted(found) == [*range(20)]  # none twice, by the functions of the new program


def test_estimators_go_on_where_their_input_was(tmp_path):
    seen = []

    def model_fn(features, labels, mode):
        loss = tf.py_func(lambda x: (seen.append(int(x)), np.float32(0))[1], [features], tf.float32)
        loss.set_shape([])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(loss, tf.train.get_global_step().assign_add(1)))

    for _ in range(2):
        estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
        estimator.train(lambda: Dataset.range(100), hooks=[experimental.CheckpointInputPipelineHook(estimator)], steps=4)
    assert seen == list(range(8))


# What TensorFlow 2.21 gives with a graph's seed of 7.
NUMBERS = {
    "numbers": (lambda: experimental.RandomDataset(seed=4), [3004760025, 2982476881, 1015416266, 3897981549, 1325598047, 808164910]),
    "repeated": (lambda: experimental.RandomDataset(seed=4).take(2).repeat(2), [3004760025, 2982476881] * 2),
    "shuffled": (lambda: Dataset.range(5).shuffle(3, seed=5).repeat(2), [1, 0, 3, 4, 2, 2, 0, 4, 3, 1]),
    "shuffled_in_one": (lambda: Dataset.range(3).apply(experimental.shuffle_and_repeat(8, 4, seed=4)), [1, 0, 2, 2, 0, 1, 0, 1, 2, 1, 2, 0]),
    "sampled": (
        lambda: experimental.sample_from_datasets([Dataset.range(5).repeat(), Dataset.range(10, 15).repeat()], weights=[0.3, 0.7], seed=4),
        [0, 1, 10, 2, 11, 3, 12, 13],
    ),
    "sampled_by_a_data_set": (
        lambda: experimental.sample_from_datasets(
            [Dataset.range(5), Dataset.range(10, 15), Dataset.range(20, 22)],
            weights=Dataset.from_tensor_slices([[0.1, 0.5, 0.4], [0.6, 0.2, 0.2]]).repeat(),
            seed=9,
        ),
        [10, 0, 11, 12, 13, 1, 14, 2, 20, 3, 4, 21],
    ),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_seeds_give_the_elements_of_tensorflow(session, kind):
    tf.set_random_seed(7)
    make, want = NUMBERS[kind]
    iterator = make().make_initializable_iterator()
    following = iterator.get_next()
    for _ in range(2):
        session.run(iterator.initializer)
        assert [int(session.run(following)) for _ in want] == want


def test_random_numbers_have_no_end(session):
    assert session.run(experimental.cardinality(experimental.RandomDataset(5))) == experimental.INFINITE_CARDINALITY


@pytest.mark.parametrize("kind, inputs", [("RangeDataset", (0, 5, 1)), ("RandomDataset", (1, 2)), ("ExperimentalRandomDataset", (1, 2))])
def test_sources_give_int64_scalars(session, kind, inputs):
    names = {"RangeDataset": ("start", "stop", "step")}.get(kind, ("seed", "seed2"))
    for types, shapes in (([tf.int64], [[3]]), ([tf.int64] * 2, [[], []]), ([tf.float32], [[]])):
        made = getattr(tf.raw_ops, kind)(**dict(zip(names, inputs)), output_types=types, output_shapes=shapes)
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
            session.run(made.op)


def test_specs_are_compatible():
    one, two = tf.TensorSpec([None], tf.int32), tf.TensorSpec([3], tf.int32)
    assert structure.are_compatible({"a": one}, {"a": two}) and not structure.are_compatible(one, (two,))
    assert not structure.are_compatible((one, one), (one, tf.TensorSpec([3], tf.float32)))


def test_contrib_has_what_moved_to_tf_data(session):
    contrib = tf.contrib.data
    assert contrib.make_saveable_from_iterator is experimental.make_saveable_from_iterator and contrib.unbatch is experimental.unbatch
    iterator = Dataset.range(5).make_initializable_iterator()
    saver = tf.train.Saver([contrib.make_saveable_from_iterator(iterator)])
    assert saver.saver_def is not None
    sums = contrib.Reducer(lambda key: np.int64(0), lambda state, value: state + value, lambda state: state)
    assert session.run(contrib.reduce_dataset(Dataset.range(5), sums)) == 10
    with pytest.raises(TypeError, match="must be a `tf.data.Dataset`"):
        contrib.get_single_element(5)


def test_dense_rows_of_several_sizes_as_sparse_batches(session):
    rows = Dataset.from_tensor_slices(np.array([2, 0, 3], np.int64)).map(lambda n: tf.fill([n, 1], n - 2))
    first, second = elements(session, rows.apply(experimental.dense_to_sparse_batch(2, [4, None])))
    assert first.indices.tolist() == [[0, 0, 0], [0, 1, 0]] and first.values.tolist() == [0, 0] and first.dense_shape.tolist() == [2, 4, 1]
    assert second.indices.tolist() == [[0, 0, 0], [0, 1, 0], [0, 2, 0]] and second.values.tolist() == [1, 1, 1] and second.dense_shape.tolist() == [1, 4, 1]
    with pytest.raises(TypeError, match="a single component"):
        Dataset.zip((rows, rows)).apply(experimental.dense_to_sparse_batch(2, [4]))
    unknown = tf.placeholder(tf.int32)
    iterator = Dataset.from_tensors(unknown).apply(experimental.dense_to_sparse_batch(1, [4])).make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer, {unknown: [[1]]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible with the row shape"):
        session.run(following)


def test_shapes_of_padded_batches_are_checked_when_they_are_made():
    numbers, rows = Dataset.range(10), Dataset.from_tensors([1, 2, 3])
    sizes = tf.placeholder(tf.int64, [2])
    for data, shape, kind, text in (
        (numbers, [1], ValueError, r"shape \(1,\) is not compatible with the corresponding input component shape \(\)"),
        (numbers, tf.constant([1], tf.int64), ValueError, r"shape \(1,\) is not compatible"),
        (numbers, sizes, ValueError, r"shape \(\?, \?\) is not compatible"),
        (rows, [1], ValueError, r"component shape \(3,\)"),
        (rows, [[1, 1], [1, 1]], ValueError, r"its shape was \(2, 2\)"),
        (rows, tf.constant([1.5]), TypeError, "its element type was float32"),
    ):
        with pytest.raises(kind, match=text):
            data.padded_batch(5, padded_shapes=shape)
    assert rows.padded_batch(2, tf.placeholder(tf.int64, [1])).output_shapes.as_list() == [None, None]
    assert rows.padded_batch(2, [tf.Dimension(None)]).output_shapes.as_list() == rows.padded_batch(2, tf.TensorShape([None])).output_shapes.as_list()


def test_data_sets_as_contrib_of_1_2_makes_them():
    data, base = tf.contrib.data, tf.data.Dataset
    arrays = [np.array([1, 2]), np.array([[1.0, 2], [3, 4]]), np.array(["a", "b"])]
    rows = data.Dataset.from_tensor_slices(arrays)
    assert isinstance(rows, data.Dataset) and isinstance(base.range(3), data.Dataset) and rows.output_types == (tf.int64, tf.float64, tf.string)
    assert data.Dataset.from_tensor_slices([1, 2, 3]).output_shapes.as_list() == []  # as ever from 1.3 on
    assert data.Dataset.from_tensors([np.arange(2), np.arange(2)]).output_shapes.as_list() == [2, 2]
    squares = data.Dataset.range(6).map(lambda x: x * x, num_threads=2, output_buffer_size=3)
    windows = squares.group_by_window(lambda x: x % 2, lambda _, xs: xs.batch(3), 3)
    sparse = data.Dataset.range(3).map(lambda x: tf.fill([x], x)).dense_to_sparse_batch(3, [4])
    whole = data.Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1 / x, "inf")).ignore_errors()
    zipped = data.Dataset.zip([squares, data.Dataset.range(2)])
    nexts = [data.Iterator.from_dataset(d) for d in (rows, windows, sparse, whole, zipped)]
    with tf.Session() as session:
        session.run([i.initializer for i in nexts])
        got = session.run([i.get_next() for i in nexts])
        assert got[0][0] == 1 and got[0][1].tolist() == [1, 2] and got[0][2] == b"a"
        assert (
            got[1].tolist() == [0, 4, 16]
            and [part.tolist() for part in got[2]] == [[[1, 0], [2, 0], [2, 1]], [1, 2, 2], [3, 4]]
            and got[3] == 1.0
            and got[4] == (0, 0)
        )
    switched = data.Iterator.from_structure([tf.int64, tf.int64], [tf.TensorShape([]), tf.TensorShape([])])
    assert switched.output_types == (tf.int64, tf.int64) and switched.make_initializer(zipped).type == "MakeIterator"


def test_resampling_of_a_data_set_that_is_given():
    classes = tf.data.Dataset.from_tensor_slices(np.tile([0, 1], 2000))
    arguments = dict(class_func=lambda c: c, target_dist=[0.9, 0.1], initial_dist=[0.5, 0.5], seed=27)
    for resampled in (tf.contrib.data.rejection_resample(classes, **arguments), classes.apply(tf.contrib.data.rejection_resample(**arguments))):
        drawn = resampled.map(lambda c, _: tf.cast(c, tf.float64)).batch(4000).make_one_shot_iterator().get_next()
        with tf.Session() as session:
            assert abs(session.run(drawn).mean() - 0.1) < 0.03
