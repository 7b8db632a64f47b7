# SPDX-License-Identifier: Apache-2.0
"""Data sets that are dealt to workers and replicas, kept in files, chosen among several, or of which something is asserted."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.ops import gen_ops
from millrace.protos import definitions

Dataset, experimental = tf.data.Dataset, tf.data.experimental
EXPERIMENTS = "python.data.experimental.ops."
distribute, optimization = names.find(EXPERIMENTS + "distribute"), names.find(EXPERIMENTS + "optimization")
snapshot = names.find(EXPERIMENTS + "snapshot")
Invalid = tf.errors.InvalidArgumentError


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def found(session, dataset, most=2000):
    iterator = dataset.make_initializable_iterator()
    following, values = iterator.get_next(), []
    session.run(iterator.initializer)
    while len(values) < most:
        try:
            values.append(tf.nest.map_structure(lambda a: np.asarray(a).tolist(), session.run(following)))
        except tf.errors.OutOfRangeError:
            break
    return values


# ---- replicas and workers ----


def test_batches_are_dealt_to_replicas(session):
    # TensorFlow 1.15.5.
    assert found(session, distribute._RebatchDataset(Dataset.range(8).batch(4), 3)) == [[0, 1], [2, 3], [], [4, 5], [6, 7], []]
    assert found(session, distribute._RebatchDataset(Dataset.range(9).batch(8), 3)) == [[0, 1, 2], [3, 4, 5], [6, 7], [8], [], []]
    whole = distribute._RebatchDataset(Dataset.range(8).batch(4, drop_remainder=True), 2)
    assert whole.output_shapes.as_list() == [2] and found(session, whole) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="at least one dimension"):
        distribute._RebatchDataset(Dataset.range(8), 2)
    spec = ([tf.int64], [tf.TensorShape(None)])
    for op in (gen_ops.rebatch_dataset, gen_ops.experimental_rebatch_dataset):
        with pytest.raises(Invalid, match="num_replicas must be greater than zero."):
            session.run(op(Dataset.range(8).batch(4)._variant, 0, *spec))
        with pytest.raises(Invalid, match="All components must have at least one dimension.*Component 0 is scalar"):
            found(session, Dataset(op(Dataset.range(8)._variant, 2, *spec), tf.TensorSpec(None, tf.int64)))


@pytest.fixture()
def files(tmp_path):
    paths = [str(tmp_path / ("%d.records" % f)) for f in range(4)]
    for f, path in enumerate(paths):
        with tf.io.TFRecordWriter(path) as writer:
            for r in range(4):
                writer.write(b"%d%d" % (f, r))
    return paths


def _records(paths):
    return [b"%d%d" % (f, r) for f in paths for r in range(4)]


def test_workers_read_files_of_their_own(session, files):
    listed = Dataset.list_files(files, shuffle=False)
    read = listed.flat_map(tf.data.TFRecordDataset)
    mine = distribute._AutoShardDataset
    assert found(session, mine(read, 2, 0)) == _records([0, 2])
    assert found(session, mine(read.map(lambda x: x).batch(2).prefetch(1), 2, 1)) == [_records([1, 3])[i : i + 2] for i in range(0, 8, 2)]
    assert found(session, mine(read.take(6), 2, 0)) == _records([0, 2])[:6]
    assert found(session, mine(read.concatenate(read), 2, 0)) == _records([0, 2]) * 2
    assert found(session, mine(listed.interleave(tf.data.TFRecordDataset, 2), 2, 1)) == [b"10", b"30", b"11", b"31", b"12", b"32", b"13", b"33"]
    repeated = Dataset.from_tensor_slices(files[:3]).repeat(2).flat_map(tf.data.TFRecordDataset)
    assert found(session, mine(repeated, 2, 0)) == _records([0, 2, 1])
    shuffled = Dataset.list_files(files, shuffle=True).flat_map(tf.data.TFRecordDataset)
    assert sorted(found(session, mine(shuffled, 2, 1))) == _records([1, 3])
    assert found(session, mine(read, 8, 7)) == []


def test_workers_share_elements_where_no_function_reads_files(session, files):
    mine = distribute._AutoShardDataset
    read = Dataset.list_files(files, shuffle=False).flat_map(tf.data.TFRecordDataset)
    assert found(session, mine(read.apply(experimental.unique()), 2, 0)) == [b"%d%d" % (f, r) for f in range(4) for r in (0, 2)]
    assert found(session, mine(Dataset.range(8).batch(2).map(lambda x: x), 3, 1)) == [[2, 3]]
    table = tf.Variable(10, dtype=tf.int64, use_resource=True)
    session.run(table.initializer)
    assert found(session, mine(Dataset.range(4).map(lambda x: x + table), 2, 1)) == [11, 13]
    with pytest.raises(Invalid, match=r"There aren't enough elements .*\(# elems = 5, # shards = 10\)"):
        found(session, mine(Dataset.range(5), 10, 0))
    assert found(session, mine(Dataset.range(5), 10, 7)) == []
    with pytest.raises(tf.errors.UnimplementedError, match="resource"):
        found(session, mine(read.map(lambda x: tf.as_string(table)), 2, 0))
    for workers, index, what in [(0, 0, "num_workers must be greater than zero."), (2, 2, "index must be between 0 and 1"), (2, -1, "index must be")]:
        for op in (gen_ops.auto_shard_dataset, gen_ops.experimental_auto_shard_dataset):
            with pytest.raises(Invalid, match=what):
                session.run(op(Dataset.range(4)._variant, workers, index, [tf.int64], [tf.TensorShape([])]))


@pytest.mark.parametrize("shards, index, elements", [(3, 0, [0, 3]), (3, 2, [2]), (6, 5, []), (5, 0, [0]), (5, 4, [4]), (6, 0, None), (6, 4, None)])
def test_shards_that_must_not_be_empty(session, shards, index, elements):
    # TensorFlow 1.15.5.
    variant = gen_ops.shard_dataset(Dataset.range(5)._variant, shards, index, [tf.int64], [tf.TensorShape([])], require_non_empty=True)
    dataset = Dataset(variant, tf.TensorSpec([], tf.int64))
    if elements is not None:
        assert found(session, dataset) == elements
        return
    with pytest.raises(Invalid, match=r"\(# elems = 5, # shards = 6\)"):
        found(session, dataset)


# ---- one of several ----


def test_data_sets_to_choose_from_are_alike(session):
    choose, slices = optimization._ChooseFastestDataset, Dataset.from_tensor_slices
    assert found(session, choose([slices([1, 2, 3]), slices([1, 2, 3]).filter(lambda x: x > 0)])) == [1, 2, 3]
    for other, what in [
        ([[1, 2, 3]], "must have compatible output shapes. Component 0 of input 1 has shape"),
        ([0.0], "must have the same output types. Input 1 has output types: float"),
        ([1, 1], "must have compatible cardinalities. Input 1 has cardinality: 2, while all prior inputs have cardinality: 1."),
    ]:
        with pytest.raises(Invalid, match=what):
            found(session, choose([slices([0]), slices(other)]))


def test_the_fastest_branch(session):
    choose = optimization._ChooseFastestBranchDataset
    one, thousand = tf.constant(1, tf.int64), tf.constant(1000, tf.int64)
    added = choose(Dataset.range(30), [lambda d: d.map(lambda x: x + one), lambda d: d.map(lambda x: x + thousand)], num_elements_per_branch=3)
    elements = found(session, added)
    # As TensorFlow's first six; then one of the two.
    assert elements[:6] == [1, 2, 3, 1003, 1004, 1005] and elements[6:] in ([*range(7, 31)], [*range(1006, 1030)])
    batched = choose(Dataset.range(35), [lambda d: d.batch(5), lambda d: d.map(lambda x: x).batch(5)], ratio_numerator=5, num_elements_per_branch=2)
    assert found(session, batched) == [[*range(i, i + 5)] for i in range(0, 35, 5)]
    unbatched = choose(Dataset.range(40).batch(10), [lambda d: d.unbatch(), lambda d: d.prefetch(1).unbatch()], 1, 10, 10)
    assert found(session, unbatched) == [*range(40)]
    ends = choose(Dataset.range(20), [lambda d: d.filter(lambda x: x % 2 > 0)] * 2, num_elements_per_branch=3)
    assert found(session, ends) == [1]
    with pytest.raises(Invalid, match="`num_elements_per_branch` must be divisible by `ratio_denominator`"):
        found(session, choose(Dataset.range(10), [lambda d: d] * 2, ratio_denominator=10, num_elements_per_branch=3))
    with pytest.raises(ValueError, match="ratio must be positive."):
        choose(Dataset.range(10), [lambda d: d] * 2, ratio_denominator=0)
    with pytest.raises(Invalid, match="Cannot create more than one WrapperIterator per WrapperDataset."):
        found(session, choose(Dataset.from_tensors(0), [lambda d: d.repeat(10)] * 2, ratio_denominator=10, num_elements_per_branch=10))


@pytest.mark.parametrize(
    "dataset, count",
    [
        (lambda: Dataset.range(2, 11, 3), 3),
        (lambda: Dataset.range(5, 0, -2), 3),
        (lambda: Dataset.range(5).repeat(2).batch(3), 4),
        (lambda: Dataset.range(5).repeat().take(7).skip(3), 4),
        (lambda: Dataset.range(7).shard(3, 0).concatenate(Dataset.range(2)), 5),
        (lambda: Dataset.zip((Dataset.range(3), Dataset.range(2).repeat())).shuffle(4).prefetch(1), 3),
        (lambda: Dataset.range(3).repeat(), experimental.INFINITE_CARDINALITY),
        (lambda: Dataset.range(3).filter(lambda x: x > 1), experimental.UNKNOWN_CARDINALITY),
    ],
)
def test_how_many_elements_an_op_says(session, dataset, count):
    variant = dataset()._variant
    assert session.run([gen_ops.dataset_cardinality(variant), gen_ops.experimental_dataset_cardinality(variant)]) == [count, count]


def test_tensors_that_have_not_been(session):
    texts = Dataset.from_tensor_slices([[b"a", b"b"], [b"a", b"b"], [b"ab", b""]]).apply(experimental.unique())
    assert found(session, texts) == [[b"a", b"b"], [b"ab", b""]]
    lists = Dataset.range(1, 4).concatenate(Dataset.range(1, 4)).map(lambda x: tf.fill([x], 1)).apply(experimental.unique())
    assert found(session, lists) == [[1], [1, 1], [1, 1, 1]]


# ---- what is asserted ----


@pytest.mark.parametrize(
    "wanted, message",
    [
        (["Map"], None),
        (["Map", "BatchV2"], None),
        (["Batch"], "Asserted Batch transformation at offset 0 but encountered Map transformation instead."),
        (["Map", "Batch"], "Asserted Batch transformation at offset 1 but encountered BatchV2 transformation instead."),
        (["Map", "Batch", "x", "y"], "Asserted next 4 transformations but encountered only 2."),
    ],
)
def test_what_comes_next(session, wanted, message):
    # TensorFlow 1.15.5.
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.autotune = False
    dataset = Dataset.from_tensors(0).apply(optimization.assert_next(wanted)).map(lambda x: x).batch(1)
    assert found(session, dataset) == [[0]]  # it would be rewritten
    dataset = dataset.with_options(options)
    if message is None:
        assert found(session, dataset) == [[0]]
        return
    with pytest.raises(Invalid, match=message):
        found(session, dataset)


# ---- snapshots ----


def _contents(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder).split(os.sep)[-1] for at, _, names_of in os.walk(folder) for name in names_of)


@pytest.mark.parametrize("compression", [snapshot.COMPRESSION_NONE, snapshot.COMPRESSION_GZIP])
def test_a_snapshot_is_read_in_place_of_what_it_was_made_of(session, tmp_path, files, compression):
    def kept():
        read = Dataset.from_tensor_slices(files).flat_map(lambda f: tf.data.TFRecordDataset(f).map(lambda x: x))
        return read.apply(snapshot.snapshot(str(tmp_path / "kept"), compression=compression))

    assert found(session, kept().repeat(2)) == _records(range(4)) * 2
    for path in files:
        os.remove(path)
    assert _contents(tmp_path / "kept") == ["00000000.snapshot", "snapshot.metadata"]
    with tf.Graph().as_default(), tf.Session() as other:
        Dataset.range(3).map(lambda x: x)  # functions have other names than before
        assert found(other, kept().map(lambda x: tf.strings.substr(x, 1, 1))) == [b"%d" % r for _ in range(4) for r in range(4)]
    with pytest.raises(tf.errors.NotFoundError):
        found(session, Dataset.from_tensor_slices(files).flat_map(tf.data.TFRecordDataset).apply(snapshot.snapshot(str(tmp_path / "kept"))))


def test_snapshots_of_several_data_sets(session, tmp_path):
    kept = snapshot.snapshot(str(tmp_path))
    shuffled = Dataset.range(20).shuffle(20).apply(kept)
    assert found(session, shuffled) == found(session, Dataset.range(20).shuffle(20).apply(kept)) != [*range(20)]
    assert found(session, Dataset.range(3).apply(kept)) == [0, 1, 2] and found(session, Dataset.range(4).apply(kept)) == [0, 1, 2, 3]
    assert len(os.listdir(tmp_path)) == 3
    state = tf.Variable(1, dtype=tf.int64, use_resource=True)
    with pytest.raises(tf.errors.UnimplementedError, match="cannot tell its input from others"):
        found(session, Dataset.range(3).map(lambda x: x + state).apply(kept))


def test_a_snapshot_that_is_not_complete(session, tmp_path):
    def begin(count, **settings):
        dataset = Dataset.range(6).map(lambda x: tf.fill([1 << 16], tf.cast(x, tf.float32)) + tf.cast(tf.range(1 << 16), tf.float32))
        iterator = dataset.apply(snapshot.snapshot(str(tmp_path), shard_size_bytes=400000, **settings)).make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        for i in range(count):
            assert session.run(following)[0] == i
        return following

    first = begin(3)
    runs = [name for name in os.listdir(tmp_path / os.listdir(tmp_path)[0]) if name != "snapshot.metadata"]
    assert len(runs) == 1 and _contents(tmp_path) == ["00000000.snapshot", "00000001.snapshot", "snapshot.metadata"]
    begin(6)  # while another writes, elements pass
    assert len(_contents(tmp_path)) == 3
    with pytest.raises(tf.errors.OutOfRangeError):
        for _ in range(4):
            session.run(first)
    assert len(_contents(tmp_path)) == 4
    begin(6)
    assert len(_contents(tmp_path)) == 4


@pytest.mark.parametrize("metadata", [b"\x12\x02..\xc0\x3e\x01", b"\x12\x04/etc\xc0\x3e\x01", b"\xc0\x3e\x01", b"\x12\xff"])
def test_snapshots_whose_metadata_are_not_ours(session, tmp_path, metadata):
    def kept():
        return Dataset.range(3).apply(snapshot.snapshot(str(tmp_path)))

    assert found(session, kept()) == [0, 1, 2]
    (tmp_path / os.listdir(tmp_path)[0] / "snapshot.metadata").write_bytes(metadata)
    with pytest.raises(tf.errors.DataLossError, match="snapshot.metadata (names no folder of a run|does not describe a snapshot)"):
        found(session, kept())


def test_settings_of_snapshots(session, tmp_path):
    for settings in [{"compression": "LZ"}, {"shard_size_bytes": 0}, {"pending_snapshot_expiry_seconds": -2}]:
        with pytest.raises(Invalid):
            found(session, Dataset.range(3).apply(snapshot.snapshot(str(tmp_path), **settings)))


# ---- states in bytes ----


def test_states_of_iterators_as_strings(session):
    iterator = Dataset.range(2, 10).map(lambda x: x * x).make_initializable_iterator()
    following, state = iterator.get_next(), tf.serialize_tensor(gen_ops.serialize_iterator(iterator._iterator_resource))
    session.run(iterator.initializer)
    assert [session.run(following) for _ in range(3)] == [4, 9, 16]
    kept = session.run(state)
    with tf.Graph().as_default(), tf.Session() as other:
        fresh = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
        parsed = tf.parse_tensor(kept, tf.variant)
        other.run(gen_ops.deserialize_iterator(fresh._iterator_resource, parsed))
        assert [other.run(fresh.get_next()) for _ in range(2)] == [25, 36]
        assert other.run(tf.serialize_tensor(parsed)) == kept
        with pytest.raises(tf.errors.UnimplementedError, match="a variant has no form in bytes"):
            other.run(tf.serialize_tensor(Dataset.range(3)._variant))


def test_graphs_of_data_sets_with_ops_that_nobody_knows(session):
    made = session.run(gen_ops.dataset_to_graph(Dataset.range(3).map(lambda x: x)._variant_tensor))
    graph = definitions.GraphDef.FromString(made)
    next(node for node in graph.node if node.op == "Const").op = "Unknown"
    dataset = gen_ops.dataset_from_graph(graph.SerializeToString())
    with pytest.raises(tf.errors.OpError, match="is not known in the process that is to run it"):
        session.run(gen_ops.dataset_to_graph(dataset))
