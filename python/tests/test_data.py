# SPDX-License-Identifier: Apache-2.0
"""Data sets and iterators: values, structures, ends and errors."""
import gzip

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()


def read(dataset, limit=100):
    """The elements, by an iterator that is initialized."""
    iterator = dataset.make_initializable_iterator()
    element, found = iterator.get_next(), []
    with tf.Session() as session:
        session.run(iterator.initializer)
        try:
            while len(found) < limit:
                found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            pass
    return found


def lists(elements):
    return [np.asarray(e).tolist() for e in elements]


def test_sources():
    assert lists(read(tf.data.Dataset.range(2, 9, 3))) == [2, 5, 8]
    assert lists(read(tf.data.Dataset.from_tensors([1, 2]))) == [[1, 2]]
    rows = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": ([[3.0], [4.0]], ["x", "y"])})
    assert rows.output_types == {"a": tf.int32, "b": (tf.float32, tf.string)}
    assert rows.output_shapes["b"][0].as_list() == [1]
    first, second = read(rows)
    assert first["a"] == 1 and first["b"][1] == b"x" and second["b"][0].tolist() == [4.0]


def test_sequences():
    numbers = tf.data.Dataset.range(5)
    assert lists(read(numbers.take(2))) == [0, 1]
    assert lists(read(numbers.skip(3))) == [3, 4]
    assert lists(read(numbers.take(2).repeat(2))) == [0, 1, 0, 1]
    assert len(read(numbers.repeat(), limit=12)) == 12
    assert lists(read(numbers.shard(2, 1))) == [1, 3]
    assert lists(read(numbers.take(1).concatenate(numbers.skip(4)))) == [0, 4]
    assert lists(read(numbers.take(3).cache().repeat(2))) == [0, 1, 2, 0, 1, 2]
    zipped = tf.data.Dataset.zip((numbers, {"x": numbers.skip(2)}))
    assert [(int(a), int(b["x"])) for a, b in read(zipped)] == [(0, 2), (1, 3), (2, 4)]


def test_batches():
    numbers = tf.data.Dataset.range(5)
    assert lists(read(numbers.batch(2))) == [[0, 1], [2, 3], [4]]
    assert numbers.batch(2).output_shapes.as_list() == [None]
    assert numbers.batch(2, drop_remainder=True).output_shapes.as_list() == [2]
    assert lists(read(numbers.batch(2, drop_remainder=True))) == [[0, 1], [2, 3]]
    assert lists(read(numbers.apply(tf.contrib.data.batch_and_drop_remainder(2)))) == [[0, 1], [2, 3]]
    ragged = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    assert lists(read(ragged.padded_batch(2, [None]))) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    assert lists(read(ragged.padded_batch(3, [4], padding_values=np.int64(9)))) == [[[1, 9, 9, 9], [2, 2, 9, 9], [3, 3, 3, 9]]]
    assert lists(read(numbers.batch(3).apply(tf.contrib.data.unbatch()))) == [0, 1, 2, 3, 4]
    assert lists(read(numbers.window(2, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(2)))) == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_functions():
    numbers = tf.data.Dataset.range(4)
    outside = tf.constant(10, tf.int64)
    assert lists(read(numbers.map(lambda n: n * outside))) == [0, 10, 20, 30]
    assert lists(read(numbers.map(lambda n: n * 2, num_parallel_calls=3))) == [0, 2, 4, 6]
    pairs = numbers.map(lambda n: (n, {"half": tf.to_float(n) / 2}))
    assert pairs.output_types == (tf.int64, {"half": tf.float32})
    assert lists(read(pairs.map(lambda n, d: tf.to_float(n) + d["half"]))) == [0.0, 1.5, 3.0, 4.5]
    assert lists(read(numbers.filter(lambda n: tf.equal(n % 2, 1)))) == [1, 3]
    assert lists(read(numbers.flat_map(lambda n: tf.data.Dataset.range(n)))) == [0, 0, 1, 0, 1, 2]
    nested = numbers.flat_map(lambda n: tf.data.Dataset.range(2).map(lambda m: n * 10 + m))
    assert lists(read(nested)) == [0, 1, 10, 11, 20, 21, 30, 31]
    inter = tf.data.Dataset.range(1, 4).interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2), cycle_length=2, block_length=1)
    assert lists(read(inter)) == [1, 2, 1, 2, 3, 3]
    branched = numbers.map(lambda n: tf.cond(n < 2, lambda: n, lambda: -n))
    assert lists(read(branched)) == [0, 1, -2, -3]
    looped = numbers.map(lambda n: tf.while_loop(lambda i: i < 10, lambda i: i + 4, [n]))
    assert lists(read(looped)) == [12, 13, 10, 11]
    with tf.Session() as session:
        assert session.run(numbers.reduce(np.int64(1), lambda s, n: s + n)) == 7


def test_function_of_variables_and_tables():
    weight = tf.Variable(3.0)
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * weight)
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer)
        assert [session.run(element), session.run(element)] == [3.0, 6.0]
    with pytest.raises(ValueError, match="make_initializable_iterator"):
        dataset.make_one_shot_iterator()


def test_errors_in_functions_go_by():
    dataset = tf.data.Dataset.range(3).map(lambda n: tf.check_numerics(1.0 / tf.to_float(n - 1), "one"))
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == -1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="one"):
            session.run(element)
        assert session.run(element) == 1.0


def test_shuffle():
    numbers = tf.data.Dataset.range(20)
    once = lists(read(numbers.shuffle(20, seed=7)))
    assert sorted(once) == list(range(20)) and once != list(range(20))
    assert lists(read(numbers.shuffle(20, seed=7))) == once
    twice = lists(read(numbers.shuffle(20, seed=7).repeat(2)))
    assert twice[:20] != twice[20:] and sorted(twice[20:]) == list(range(20))
    same = lists(read(numbers.shuffle(20, seed=7, reshuffle_each_iteration=False).repeat(2)))
    assert same[:20] == same[20:]
    mixed = lists(read(numbers.apply(tf.contrib.data.shuffle_and_repeat(5, 2, seed=3))))
    assert sorted(mixed[:20]) == list(range(20)) and sorted(mixed[20:]) == list(range(20))


def test_prefetch_and_errors_behind_it():
    numbers = tf.data.Dataset.range(6).map(lambda n: n + 1).prefetch(2)
    assert lists(read(numbers.batch(4))) == [[1, 2, 3, 4], [5, 6]]
    with tf.Session() as session:  # leaves a full buffer behind
        iterator = tf.data.Dataset.range(1000).prefetch(3).make_one_shot_iterator()
        assert session.run(iterator.get_next()) == 0


def test_iterators():
    one_shot = tf.data.Dataset.from_tensor_slices([[1], [2]]).map(lambda x: x * 3).make_one_shot_iterator().get_next()
    assert one_shot.shape.as_list() == [1]
    with tf.Session() as session:
        assert session.run(one_shot).tolist() == [3] and session.run(one_shot).tolist() == [6]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(one_shot)
    either = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    first, second = either.make_initializer(tf.data.Dataset.range(2)), either.make_initializer(tf.data.Dataset.range(7, 9))
    element = either.get_next()
    with pytest.raises(TypeError, match="output types"):
        either.make_initializer(tf.data.Dataset.from_tensors(1.0))
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="initialized"):
            session.run(element)
        session.run(first)
        assert session.run(element) == 0
        session.run(second)
        assert session.run(element) == 7


def test_handles_and_fed_data_sets():
    count = tf.placeholder(tf.int64, [])
    fed = tf.data.Dataset.range(count).make_initializable_iterator()
    other = tf.data.Dataset.range(50, 60).make_one_shot_iterator()
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    with tf.Session() as session:
        session.run(fed.initializer, {count: 2})
        a, b = session.run(fed.string_handle()), session.run(other.string_handle())
        assert [int(session.run(element, {handle: h})) for h in (a, b, a, b)] == [0, 50, 1, 51]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element, {handle: a})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element, {handle: "nonsense"})


def test_generators():
    def pairs():
        for i in range(3):
            yield i, [float(i)] * i

    dataset = tf.data.Dataset.from_generator(pairs, (tf.int32, tf.float32), ([], [None]))
    assert dataset.output_shapes[1].as_list() == [None]
    assert [(int(a), b.tolist()) for a, b in read(dataset.repeat(2))] == [(0, []), (1, [1.0]), (2, [2.0, 2.0])] * 2
    names = tf.data.Dataset.from_generator(lambda: iter(["a", "bc"]), tf.string)
    assert read(names) == [b"a", b"bc"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected type"):
        read(tf.data.Dataset.from_generator(lambda: iter(["a"]), tf.int32))


def test_generators_ahead_of_time():
    def endless():
        i = 0
        while True:
            yield i
            i += 1

    for _ in range(5):  # sessions end while the generator is being asked
        tf.reset_default_graph()
        element = tf.data.Dataset.from_generator(endless, tf.int64, []).map(lambda n: n * 2, 4).prefetch(50).make_one_shot_iterator().get_next()
        with tf.Session() as session:
            assert [int(session.run(element)) for _ in range(3)] == [0, 2, 4]


def test_files(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"one\r\ntwo\nthree")
    (tmp_path / "lines.gz").write_bytes(gzip.compress(b"four\n"))
    assert read(tf.data.TextLineDataset(str(lines))) == [b"one", b"two", b"three"]
    assert read(tf.data.TextLineDataset([str(lines)] * 2).skip(4)) == [b"two", b"three"]
    assert read(tf.data.TextLineDataset(str(tmp_path / "lines.gz"), compression_type="GZIP")) == [b"four"]
    records = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(records) as writer:
        writer.write(b"a")
        writer.write(b"bb")
    assert read(tf.data.TFRecordDataset([records])) == [b"a", b"bb"]
    fixed = tmp_path / "fixed"
    fixed.write_bytes(b"HEADaabbccF")
    assert read(tf.data.FixedLengthRecordDataset(str(fixed), 2, header_bytes=4, footer_bytes=1)) == [b"aa", b"bb", b"cc"]
    found = read(tf.data.Dataset.list_files(str(tmp_path / "lines*")))
    assert sorted(found) == sorted(str(tmp_path / n).encode() for n in ("lines.txt", "lines.gz"))
    with pytest.raises(tf.errors.NotFoundError):
        read(tf.data.TextLineDataset(str(tmp_path / "nothing")))


def test_training_from_a_pipeline():
    features, labels = np.random.RandomState(0).rand(64, 2).astype(np.float32), np.ones([64, 1], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(64).repeat(5).batch(16).prefetch(1)
    x, y = dataset.make_one_shot_iterator().get_next()
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1))
    train, losses = tf.train.GradientDescentOptimizer(0.1).minimize(loss), []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                losses.append(session.run([loss, train])[0])
    assert len(losses) == 20 and losses[-1] < losses[0]


def test_sizes_that_no_machine_has():
    def first(data):
        with tf.Session() as session:
            return session.run(data.make_one_shot_iterator().get_next(), options=tf.RunOptions(timeout_in_ms=300))

    numbers = tf.data.Dataset.range(3)
    assert first(numbers.batch(2 ** 62)).tolist() == [0, 1, 2]
    assert first(numbers.shuffle(2 ** 62)) in (0, 1, 2)
    for endless in (numbers.repeat().shuffle(2 ** 62), numbers.repeat().skip(2 ** 62), numbers.repeat().filter(lambda n: n > 5)):
        with pytest.raises(tf.errors.DeadlineExceededError):
            first(endless)
    tower = numbers
    for _ in range(600):
        tower = tower.skip(0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="more than 500 data sets"):
        first(tower)
