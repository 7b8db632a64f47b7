# SPDX-License-Identifier: Apache-2.0
"""How pipelines of tf.data are run, what is counted of them, and functions of a state."""

import threading

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.ops import gen_ops

Dataset, experimental = tf.data.Dataset, tf.data.experimental


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def found(session, dataset):
    iterator = dataset.make_initializable_iterator()
    following, values = iterator.get_next(), []
    session.run(iterator.initializer)
    while len(values) < 20:
        try:
            values.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return values
        except tf.errors.OpError as error:
            values.append(type(error).__name__)
    return values


def counted(session, summary):
    return {v.tag: (v.histo.num, v.histo.sum) for v in tf.Summary.FromString(session.run(summary)).value}


def test_statistics(session):
    aggregator, options = experimental.StatsAggregator(), tf.data.Options()
    summary = aggregator.get_summary()
    options.experimental_stats.aggregator, options.experimental_stats.prefix = aggregator, "p"
    grown = Dataset.range(10).map(lambda x: tf.fill([x], x)).apply(experimental.bytes_produced_stats("bytes"))
    whole = grown.prefetch(3).apply(experimental.latency_stats("time")).with_options(options)
    assert counted(session, summary) == {}
    assert len(found(session, whole)) == 10
    numbers = counted(session, summary)
    assert numbers["p::bytes"] == (10, 8 * 45) and numbers["p::time"][0] == 10 and numbers["p::time"][1] >= 0
    # In what a function reads on threads of its own, too; without an aggregator nothing is counted.
    inner = Dataset.range(3).apply(experimental.parallel_interleave(lambda x: Dataset.range(4).apply(experimental.bytes_produced_stats("inner")), 2))
    assert len(found(session, inner)) == 12 and set(counted(session, summary)) == {"p::bytes", "p::time"}
    other = names.find("python.data.experimental.ops.stats_ops").set_stats_aggregator(aggregator)
    assert len(found(session, inner.apply(other))) == 12
    assert counted(session, summary)["inner"] == (12, 96)


def test_statistics_by_their_other_names(session):
    handle = gen_ops.experimental_stats_aggregator_handle()
    spec = ([tf.int64], [tf.TensorShape([])])
    bytes_of = gen_ops.experimental_bytes_produced_stats_dataset(Dataset.range(3)._variant, "b", *spec)
    timed = gen_ops.experimental_latency_stats_dataset(bytes_of, "t", *spec)
    made = gen_ops.experimental_set_stats_aggregator_dataset(timed, handle, "", "", *spec)
    assert found(session, Dataset(made, tf.TensorSpec([], tf.int64))) == [0, 1, 2]
    assert {tag: n for tag, (n, _) in counted(session, gen_ops.experimental_stats_aggregator_summary(handle)).items()} == {"b": 3, "t": 3}
    with pytest.raises(tf.errors.OpError):
        session.run(gen_ops.set_stats_aggregator_dataset(timed, gen_ops.thread_pool_handle(1, display_name=""), "", "", *spec))


def test_what_changes_no_element(session):
    ops = "python.data.experimental.ops."
    rewriting, threads = names.find(ops + "optimization"), names.find(ops + "threadpool")
    three = Dataset.range(3).apply(rewriting.assert_next(["Map"])).apply(rewriting.model()).apply(rewriting.non_serializable())
    three = three.apply(rewriting.optimize(["map_fusion"])).apply(names.find(ops + "sleep").sleep(1))
    assert found(session, threads.override_threadpool(three, threads.PrivateThreadPool(2, display_name="pool"))) == [0, 1, 2]


@pytest.mark.parametrize("option", ["experimental_deterministic", "deterministic"])
@pytest.mark.parametrize("by_reading_ahead", [False, True])
def test_elements_come_as_they_are_ready_where_that_is_allowed(session, option, by_reading_ahead):
    first_may_end = threading.Event()

    def wait(x):
        assert x != 0 or first_may_end.wait(30)
        return x

    options = tf.data.Options()
    setattr(options, option, False)
    dataset = Dataset.range(3).map(lambda x: tf.py_func(wait, [x], tf.int64), 3).with_options(options)
    iterator = (dataset.prefetch(1) if by_reading_ahead else dataset).make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer)
    early = [session.run(following) for _ in range(2)]
    first_may_end.set()
    assert (sorted(early), session.run(following)) == ([1, 2], 0)


def test_states_keep_of_their_shapes_what_no_call_changes(session):
    def grow(state, x):
        return tf.concat([state[:, :1], state], 1), x

    scanned = Dataset.range(3).apply(experimental.scan(tf.zeros([2, 1], tf.int64), lambda state, x: (grow(state, x)[0], state)))
    assert scanned.output_shapes.as_list() == [2, None]
    assert [s.shape for s in found(session, scanned)] == [(2, 1), (2, 2), (2, 3)]
    assert Dataset.range(3).apply(experimental.scan(tf.zeros([2], tf.int64), lambda s, x: (s + x, s))).output_shapes.as_list() == [2]
    step = tf.constant([1, 10], tf.int64)  # a function may capture tensors beside states of any shape
    assert [v.tolist() for v in found(session, Dataset.range(3).apply(experimental.scan(step, lambda s, x: (s + step, s))))] == [[1, 10], [2, 20], [3, 30]]
    sparse = tf.SparseTensor([[0, 1]], step[:1], [1, 2])
    counted = Dataset.range(2).apply(experimental.scan(sparse, lambda s, x: (tf.SparseTensor(s.indices, s.values + step[1], s.dense_shape), s.values)))
    assert [v.tolist() for v in found(session, counted)] == [[1], [11]]
    reduced = Dataset.range(3).reduce(tf.zeros([2, 1], tf.int64), lambda state, x: grow(state, x)[0])
    assert reduced.shape.as_list() == [2, None] and session.run(reduced).shape == (2, 4)
    assert Dataset.range(3).reduce(tf.zeros([2], tf.int64), lambda s, x: s + x).shape.as_list() == [2]
    grouped = experimental.Reducer(lambda key: tf.zeros([0], tf.int64), lambda s, x: tf.concat([s, [x]], 0), lambda s: s)
    lists = Dataset.range(7).apply(experimental.group_by_reducer(lambda x: 3 - x % 3, grouped))
    assert lists.output_shapes.as_list() == [None] and [v.tolist() for v in found(session, lists)] == [[2, 5], [1, 4], [0, 3, 6]]
    with pytest.raises(TypeError, match="must match the initial state"):
        Dataset.range(3).apply(experimental.scan(0.0, lambda s, x: (x, x)))
    for key in (lambda x: [x, x], lambda x: tf.cast(x, tf.float32)):
        with pytest.raises(ValueError, match="`key_func` must return a single tf.int64 tensor"):
            Dataset.range(3).apply(experimental.group_by_reducer(key, grouped))


def test_a_scan_does_not_end_where_its_function_does(session):
    def stop(x):
        if x == 2:
            raise StopIteration
        return x

    def following(state, x):
        made = tf.py_func(stop, [x], tf.int64)
        made.set_shape([])
        return state + made, state

    assert found(session, Dataset.range(4).apply(experimental.scan(np.int64(0), following))) == [0, 0, "InvalidArgumentError", 1]


def test_records_by_a_parser(session, tmp_path):
    for name in "ab":
        with tf.python_io.TFRecordWriter(str(tmp_path / name)) as writer:
            for i in range(3):
                writer.write(b"%s%d" % (name.encode(), i))
    make = names.find("python.data.experimental.ops.readers").make_tf_record_dataset
    batches = make(str(tmp_path / "*"), 4, num_epochs=1, shuffle=False, num_parallel_reads=1)
    assert [b.tolist() for b in found(session, batches)] == [[b"a0", b"a1", b"a2", b"b0"], [b"b1", b"b2"]]
    parsed = make(str(tmp_path / "*"), 4, tf.strings.length, shuffle_seed=1)
    assert parsed.output_shapes.as_list() == [4] and found(session, parsed)[0].tolist() == [2] * 4


def test_mixtures_are_of_one_type():
    two = [Dataset.range(3), Dataset.range(3)]
    with pytest.raises(TypeError, match="`tf.float32` or `tf.float64`"):
        experimental.sample_from_datasets(two, weights=[1, 1])
    with pytest.raises(TypeError, match="must have the same type"):
        experimental.sample_from_datasets([Dataset.from_tensors(0), Dataset.from_tensors(0.0)])
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        experimental.make_batched_features_dataset("a", 2, {"x": tf.FixedLenFeature([], tf.int64)}, reader=lambda name: name)


def test_records_are_written(session, tmp_path):
    path = str(tmp_path / "a")
    texts = Dataset.from_tensor_slices(["a", "", "ccc"])
    for write, kind in [(gen_ops.dataset_to_tf_record, "GZIP"), (gen_ops.experimental_dataset_to_tf_record, "")]:
        session.run(write(texts._variant, path, kind))
        assert found(session, tf.data.TFRecordDataset(path, kind)) == [b"a", b"", b"ccc"]
    for dataset, file, kind in [(Dataset.range(2), path, ""), (texts.batch(2), path, ""), (texts, path, "BZ"), (texts, "/no/such/folder/a", "")]:
        with pytest.raises(tf.errors.OpError):
            session.run(gen_ops.dataset_to_tf_record(dataset._variant, file, kind))


def test_data_sets_of_graphs(session):
    graph = session.run(gen_ops.dataset_to_graph(Dataset.range(4).map(lambda x: x * x)._variant))
    fed = tf.placeholder(tf.string, [])
    iterator = Dataset(gen_ops.dataset_from_graph(fed), tf.TensorSpec([], tf.int64)).make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer, {fed: graph})
    assert [session.run(following) for _ in range(4)] == [0, 1, 4, 9]
    for broken in (b"", b"nonsense", graph[:-20]):
        with pytest.raises(tf.errors.OpError):
            session.run(iterator.initializer, {fed: broken})
    for name in (gen_ops.iterator_get_device, gen_ops.experimental_iterator_get_device):
        assert session.run(name(iterator._iterator_resource)).endswith(b"CPU:0")
