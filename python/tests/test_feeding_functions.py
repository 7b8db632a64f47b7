# SPDX-License-Identifier: Apache-2.0
"""Queues that are filled with rows of arrays, tables and generators."""

import collections

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.contrib.learn import data_feeder
from millrace.estimator import feeding_functions

X = np.arange(14.0).reshape(7, 2)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def rows_of(queue, size=1, most=100):
    taken = queue.dequeue_many(size) if size > 1 else queue.dequeue()
    found = []
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            while len(found) < most:
                found.append(sess.run(taken))
        except tf.errors.OutOfRangeError:
            pass
        coord.request_stop()
        sess.run(queue.close(cancel_pending_enqueues=True))
        coord.join(threads)
    return found


@pytest.mark.parametrize("size", [1, 3, 20])
def test_rows_in_order(size):
    found = rows_of(feeding_functions.enqueue_data(X, 50, num_epochs=2, enqueue_size=size))
    assert [int(i) for i, _ in found] == 2 * list(range(7))
    np.testing.assert_array_equal([row for _, row in found], np.concatenate([X, X]))


def test_columns_with_names_and_tables():
    data = collections.OrderedDict(a=np.arange(5), b=np.array(["x", "y", "z", "u", "v"]))
    found = rows_of(feeding_functions.enqueue_data(data, 10, num_epochs=1))
    assert [(int(a), b) for _, a, b in found] == list(zip(range(5), (b"x", b"y", b"z", b"u", b"v")))
    pandas = pytest.importorskip("pandas")
    found = rows_of(feeding_functions.enqueue_data(pandas.DataFrame({"c": [3, 4]}, index=[7, 9]), 10, num_epochs=1))
    assert [(int(i), int(c)) for i, c in found] == [(7, 3), (9, 4)]


def test_shuffled_rows_come_each_as_often():
    found = rows_of(feeding_functions.enqueue_data(X, 20, shuffle=True, min_after_dequeue=5, seed=3, num_epochs=4, enqueue_size=3, num_threads=3))
    numbers = [int(i) for i, _ in found]
    assert sorted(numbers) == sorted(4 * list(range(7))) and numbers != 4 * list(range(7))
    assert len(rows_of(feeding_functions.enqueue_data(X, 20, shuffle=True, name="more"), 5, most=12)) == 12


def test_generators():
    def words():
        for i in range(5):
            yield {"n": i, "letters": np.arange(i + 1)}

    found = rows_of(feeding_functions.enqueue_data(words, 10, num_epochs=2, pad_value=-1, enqueue_size=2), 5)
    assert [batch[1].tolist() for batch in found] == 2 * [[0, 1, 2, 3, 4]]  # the columns are in the order of their names
    assert found[0][0].shape == (5, 5) and found[0][0].tolist()[:2] == [[0, -1, 0, 0, 0], [0, 1, 0, 0, 0]]  # the queue fills up with zeros


def test_rows_are_padded_along_all_axes():
    def images():
        for height, width in ((1, 3), (2, 1), (2, 2)):
            yield {"x": np.ones([height, width], np.int32)}

    found = rows_of(feeding_functions.enqueue_data(images, 10, num_epochs=1, pad_value=7, enqueue_size=3))
    rows = [[[1, 1, 1], [7, 7, 7]], [[1, 7, 7], [1, 7, 7]], [[1, 1, 7], [1, 1, 7]]]
    assert [row.tolist() for row in found] == 2 * rows  # as in 1.15.5: that three rows are an epoch shows when a fourth is asked for


def test_batches_as_feeds():
    feed = feeding_functions._ArrayFeedFn(["i", "x"], np.arange(3) + 10, 2, num_epochs=1)
    assert [{k: v.tolist() for k, v in feed().items()} for _ in range(2)] == [{"i": [0, 1], "x": [10, 11]}, {"i": [2], "x": [12]}]
    with pytest.raises(tf.errors.OutOfRangeError):
        feed()
    with pytest.raises(ValueError, match="Expected 2 placeholders; got 1"):
        feeding_functions._ArrayFeedFn(["x"], X, 1)


def test_what_is_refused():
    with pytest.raises(TypeError, match="data must be"):
        feeding_functions.enqueue_data([1, 2], 5)
    with pytest.raises(ValueError, match="different lengths"):
        feeding_functions.enqueue_data(collections.OrderedDict(a=np.arange(2), b=np.arange(3)), 5)
    with pytest.raises(NotImplementedError):
        feeding_functions.enqueue_data(X, 5, pad_value=0)
    for path in ("contrib.learn.python.learn.dataframe.queues.feeding_functions", "python.estimator.inputs.queues.feeding_functions"):
        assert names.module(path).enqueue_data is feeding_functions.enqueue_data


def test_feeders_of_arrays():
    x = {"a": np.arange(5, dtype=np.int32), "b": np.arange(10.0, dtype=np.float32).reshape(5, 2)}
    feeder = data_feeder.DataFeeder(x, [0, 2, 1, 0, 1], 3, batch_size=2, shuffle=False, epochs=1)
    inputs, outputs = feeder.input_builder()
    assert inputs["a"].shape.as_list() == [None, 1] and outputs.shape.as_list() == [None, 3] and outputs.dtype == tf.int64
    feed = feeder.get_feed_dict_fn()
    first = feed()
    assert first["input_a:0"].tolist() == [[0], [1]] and first["input_b:0"].tolist() == [[0, 1], [2, 3]]
    assert first["output:0"].tolist() == [[1, 0, 0], [0, 0, 1]] and feeder.get_feed_params() == {"epoch": 0, "offset": 2, "batch_size": 2}
    feed()
    assert feed()["output:0"].tolist() == [[0, 1, 0]] and feeder.epoch == 1
    with pytest.raises(StopIteration):
        feed()
    shuffled = data_feeder.setup_train_data_feeder(np.arange(8), None, None, batch_size=8)
    shuffled.input_builder()
    assert shuffled.get_feed_dict_fn()()["input:0"].ravel().tolist() == np.random.RandomState(42).permutation(8).tolist()
    with pytest.raises(ValueError, match="Invalid batch_size 0"):
        data_feeder.DataFeeder(np.arange(8), None, None, 0)


def test_feeders_of_tables_mark_the_classes_of_each_label():
    labels = {"kind": np.array([0, 2, 1]), "size": np.array([1.5, 2.5, 3.5])}
    feeder = data_feeder.DataFeeder({"x": np.arange(6.0).reshape(3, 2)}, labels, {"kind": 3, "size": 1}, batch_size=2, shuffle=False, epochs=1)
    feeder.input_builder()
    feed = feeder.get_feed_dict_fn()
    first, last = feed(), feed()
    assert first["input_x:0"].tolist() == [[0, 1], [2, 3]] and first["output_kind:0"].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert last["output_kind:0"].tolist() == [[0, 1, 0]] and last["output_size:0"].tolist() == [3.5]
    assert feeder.output_dtype == {"kind": np.float32, "size": np.float32} and feeder.output_shape == {"kind": [2, 3], "size": [2]}


def test_feeders_of_iterators():
    feeder = data_feeder.setup_train_data_feeder(iter(np.arange(6.0).reshape(3, 2)), iter([np.int64(1), np.int64(0), np.int64(1)]), 2, batch_size=2)
    feeder.set_placeholders(tf.placeholder(tf.float64, name="x"), tf.placeholder(tf.float32, name="y"))
    feed = feeder.get_feed_dict_fn()
    first, second = feed(), feed()
    assert first["x:0"].tolist() == [[0, 1], [2, 3]] and first["y:0"].tolist() == [[0, 1], [1, 0]]
    assert second["x:0"].tolist() == [[4, 5]] and second["y:0"].tolist() == [[0, 1]]
    with pytest.raises(StopIteration):
        feed()
    with pytest.raises(ValueError, match="Both x and y should be iterators"):
        data_feeder.setup_train_data_feeder(iter([np.ones(2)]), np.ones(1), None, 1)
    batches = data_feeder.setup_predict_data_feeder(iter(np.arange(6).reshape(3, 2)), 2)
    assert [batch.tolist() for batch in batches] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [batch.tolist() for batch in data_feeder.setup_predict_data_feeder(np.arange(3), 2)] == [[[0], [1]], [[2]]]
