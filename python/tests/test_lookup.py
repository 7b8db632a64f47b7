# SPDX-License-Identifier: Apache-2.0
"""Tables from keys to values, as programs use them."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops

lookup = tf.contrib.lookup


def run(*fetches, feed_dict=None):
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        return session.run(list(fetches), feed_dict)


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("emerson\nlake\npalmer\n")
    return str(path)


def test_a_table_of_given_pairs():
    table = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([10, 20], tf.int64)), -1)
    words = tf.placeholder(tf.string, [None, 2])
    found = table.lookup(words)
    assert found.get_shape().as_list() == [None, 2] and found.dtype == tf.int64
    assert (table.key_dtype, table.value_dtype, table.name) == (tf.string, tf.int64, "hash_table")
    assert table.init.type == "InitializeTableV2" and tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [table.init]
    got, size = run(found, table.size(), feed_dict={words: [["b", "x"], ["a", "a"]]})
    assert got.tolist() == [[20, -1], [10, 10]] and size == 2
    with pytest.raises(TypeError, match="Signature mismatch. Keys must be dtype"):
        table.lookup(tf.constant([1]))


def test_sparse_keys():
    table = lookup.index_table_from_tensor(["x", "y"])
    keys = tf.SparseTensor([[0, 1], [2, 0]], ["y", "?"], [3, 2])
    (got,) = run(table.lookup(keys))
    assert got.values.tolist() == [1, -1] and got.indices.tolist() == [[0, 1], [2, 0]] and got.dense_shape.tolist() == [3, 2]


def test_lookup_before_the_tables_are_filled():
    table = lookup.index_table_from_tensor(["x", "y"])
    ids = table.lookup(tf.constant(["x"]))
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
        session.run(ids)


def test_tables_made_in_branches_and_loops(vocabulary):
    def number(word):
        return lookup.index_table_from_file(vocabulary, num_oov_buckets=1).lookup(word)

    def tenfold(x):
        return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [10, 20]), -1).lookup(x)

    each = tf.map_fn(number, tf.constant(["palmer", "x"]), dtype=tf.int64)
    chosen = tf.cond(tf.placeholder_with_default(True, []), lambda: tenfold(tf.constant(2)), lambda: 0)
    assert [v.tolist() for v in run(each, tf.map_fn(tenfold, tf.constant([1, 3])), chosen)] == [[2, 3], [10, -1], 20]


def test_numbers_of_a_files_lines(vocabulary):
    ids = lookup.index_table_from_file(vocabulary_file=vocabulary).lookup(tf.constant(["palmer", "king", "emerson"]))
    words = lookup.index_to_string_table_from_file(vocabulary, default_value="?").lookup(tf.constant([1, 7], tf.int64))
    got, back = run(ids, words)
    assert got.tolist() == [2, -1, 0] and back.tolist() == [b"lake", b"?"]


def test_a_file_that_is_not_as_wanted(tmp_path, vocabulary):
    for build, error, message in (
        (lambda: lookup.index_table_from_file(str(tmp_path / "none.txt")), tf.errors.NotFoundError, "none.txt"),
        (lambda: lookup.index_table_from_file(vocabulary, vocab_size=9), tf.errors.InvalidArgumentError, "expected 9 but got 3"),
        (
            lambda: lookup.HashTable(lookup.TextFileInitializer(vocabulary, tf.string, 0, tf.int64, 1), -1),
            tf.errors.InvalidArgumentError,
            "vocabulary.txt, line 1: Invalid number of columns: has 1",
        ),
    ):
        with tf.Graph().as_default():
            build()
            with tf.Session() as session, pytest.raises(error, match=message):
                session.run(tf.tables_initializer())
    for arguments, message in (
        (dict(key_index=-3), "Invalid key index -3"),
        (dict(vocab_size=0), "Invalid vocab_size 0"),
        (dict(value_index=-1, value_dtype=tf.string), "Signature mismatch"),
    ):
        options = dict(dict(key_dtype=tf.string, key_index=-2, value_dtype=tf.int64, value_index=-1), **arguments)
        with pytest.raises(ValueError, match=message):
            lookup.TextFileInitializer(vocabulary, **options)


def test_columns_of_a_file(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("bread,1.5,x\nmilk,0.75,y\n")
    table = lookup.HashTable(lookup.TextFileInitializer(str(path), tf.string, 0, tf.float32, 1, delimiter=","), -1.0)
    assert run(table.lookup(tf.constant(["milk", "tea"])))[0].tolist() == [0.75, -1.0]


def test_of_lists():
    ids = lookup.string_to_index(tf.constant(["b", "z"]), ["a", "b"], default_value=9)
    words = lookup.index_to_string(tf.constant([0, 5], tf.int64), mapping=tf.constant(["a", "b"]))
    numbers = lookup.index_table_from_tensor(np.array([10, 20, 30]), dtype=tf.int64).lookup(tf.constant([30, 1], tf.int64))
    got, back, of_numbers = run(ids, words, numbers)
    assert got.tolist() == [1, 9] and back.tolist() == [b"a", b"UNK"] and of_numbers.tolist() == [2, -1]
    with pytest.raises(ValueError, match="vocabulary_list must be specified"):
        lookup.index_table_from_tensor(None)


def test_a_table_that_changes():
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
    insert, found, exported = table.insert(keys, values), table.lookup(tf.constant(["a", "b"])), table.export()
    remove = table.remove(tf.constant(["a"]))
    with tf.Session() as session:
        assert session.run(found).tolist() == [-1, -1]
        session.run(insert, {keys: ["c", "a"], values: [3, 1]})
        assert session.run(found).tolist() == [1, -1] and session.run(table.size()) == 2
        assert [a.tolist() for a in session.run(exported)] == [[b"c", b"a"], [3, 1]]
        session.run(remove)
        assert session.run(found).tolist() == [-1, -1]


def test_tables_of_vectors():
    table = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    dense = lookup.MutableDenseHashTable(tf.int64, tf.float32, default_value=[9.0, 9.0], empty_key=0, deleted_key=-1, initial_num_buckets=8)
    old = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0)
    keys = tf.constant([5, 7], tf.int64)
    pairs = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    found = [t.lookup(tf.constant([7, 8], tf.int64)) for t in (table, dense)]
    assert [f.get_shape().as_list() for f in found] == [[2, 2], [2, 2]]
    with tf.Session() as session:
        session.run([table.insert(keys, pairs), dense.insert(keys, pairs), old.insert(keys, keys)])
        assert [f.tolist() for f in session.run(found)] == [[[3, 4], [0, 0]], [[3, 4], [9, 9]]]
        assert session.run(old.lookup(keys)).tolist() == [5, 7]
        session.run(dense.remove(tf.constant([5], tf.int64)))
        assert session.run([dense.size(), old.size()]) == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty_key"):
            session.run(dense.lookup(tf.constant([0], tf.int64)))


def test_tables_in_checkpoints(tmp_path):
    counts = lookup.MutableHashTable(tf.string, tf.int64, 0, name="counts")
    dense = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-2, name="dense")
    lookup.MutableHashTable(tf.string, tf.int64, 0, name="not_kept", checkpoint=False)
    tf.Variable(1.0, name="v")
    saver, key = tf.train.Saver(), tf.constant([4], tf.int64)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), counts.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)), dense.insert(key, key)])
        path = saver.save(session, str(tmp_path / "model"))
    assert sorted(name for name, _ in tf.train.list_variables(path)) == ["counts-keys", "counts-values", "dense-keys", "dense-values", "v"]
    with tf.Session() as session:
        session.run([counts.insert(tf.constant(["c"]), tf.constant([3], tf.int64)), dense.insert(key + 1, key)])
        saver.restore(session, path)
        assert session.run([counts.size(), dense.size()]) == [2, 1]
        assert session.run(counts.lookup(tf.constant(["a", "b", "c"]))).tolist() == [1, 2, 0]
        assert session.run(dense.lookup(tf.constant([4, 5], tf.int64))).tolist() == [4, -1]


def test_names_of_1_13():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.5]), 0.0)
    dense = tf.lookup.experimental.DenseHashTable(tf.string, tf.int32, -1, "", "deleted")
    found = table.lookup(tf.constant("a"))
    with tf.Session() as session:
        session.run(table.initializer)
        assert session.run(found) == 1.5
        session.run(dense.insert(tf.constant(["k"]), tf.constant([3])))
        assert session.run(dense.lookup(tf.constant(["k", "l"]))).tolist() == [3, -1]


def test_shared_between_sessions_of_one_name_only():
    first = lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [1]), -1, shared_name="t")
    second = lookup.HashTable(lookup.KeyValueTensorInitializer(["b"], [2]), -1)
    same = tf.get_default_graph().get_operation_by_name("hash_table").outputs[0]
    assert same is first.table_ref
    assert run(first.lookup(tf.constant("a")), second.lookup(tf.constant("a"))) == [1, -1]


@pytest.mark.parametrize("spec", [lookup.FastHashSpec, lookup.StrongHashSpec([3, 9])])
def test_buckets_for_what_is_not_in_the_vocabulary(vocabulary, spec):
    words = ["lake", "king", "crimson", "king"]
    table = lookup.index_table_from_file(vocabulary, num_oov_buckets=4, hasher_spec=spec)
    only = lookup.IdTableWithHashBuckets(None, 7, spec)
    numbers = lookup.index_table_from_tensor(tf.constant([5, 6], tf.int32), num_oov_buckets=2, hasher_spec=spec, dtype=tf.int32)
    got, buckets, size, of_numbers = run(table.lookup(tf.constant(words)), only.lookup(tf.constant(words)), table.size(), numbers.lookup(tf.constant([6, 7])))
    assert got[0] == 1 and got[1] == got[3] and all(3 <= i < 7 for i in got[1:]) and size == 7
    assert all(0 <= i < 7 for i in buckets) and buckets[1] == buckets[3] and of_numbers[0] == 1 and of_numbers[1] in (2, 3)
    with pytest.raises(TypeError, match="HasherSpec"):
        lookup.IdTableWithHashBuckets(None, 7, "fasthash")


def test_a_vocabulary_of_1_13(vocabulary):
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1
    )
    assert run(table.lookup(tf.constant(["palmer", "x"])))[0].tolist() == [2, 3]
    exported = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), 0).export()
    assert dict(zip(*run(*exported))) == {b"a": 1, b"b": 2}


def test_tables_of_one_file_are_one(vocabulary):
    tables = [lookup.index_table_from_file(vocabulary) for _ in range(2)]
    assert len({table.table_ref.op.get_attr("shared_name") for table in tables}) == 1
    assert os.path.basename(vocabulary).encode() in tables[0].table_ref.op.get_attr("shared_name")
    assert run(*(table.lookup(tf.constant(["palmer"])) for table in tables)) == [[2], [2]]


def test_shapes_of_what_is_exported():
    L = tf.contrib.lookup
    keys, values = L.MutableHashTable(tf.string, tf.int64, [-1, -1]).export()
    assert keys.shape.as_list() == [None] and values.shape.as_list() == [None, 2]
    keys, values = L.MutableDenseHashTable(tf.int64, tf.float32, -1.0, empty_key=[0, 0, 0], deleted_key=[1, 1, 1]).export()
    assert keys.shape.as_list() == [None, 3] and values.shape.as_list() == [None]


@pytest.mark.parametrize("key", [7, [7, 8]])
@pytest.mark.parametrize("value", [1, [1, 2]])
def test_dense_tables_import_what_they_export(key, value):
    empty, deleted = np.zeros_like(key), np.full_like(key, -1)
    old, new = (lookup.MutableDenseHashTable(tf.int64, tf.int64, np.zeros_like(value), empty, deleted_key=deleted) for _ in range(2))
    keys, values = tf.constant([key], tf.int64), tf.constant([value], tf.int64)
    exported = [tf.placeholder_with_default(t, None) for t in old.export()]
    with tf.Session() as session:
        session.run(old.insert(keys, values))
        session.run(gen_ops.lookup_table_import_v2(new._table_ref, *exported))
        assert session.run(new.lookup(keys)).tolist() == [value] and session.run(new.size()) == 1
