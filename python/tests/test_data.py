# SPDX-License-Identifier: Apache-2.0
"""Data sets and iterators: values, structures, ends and errors."""

import gzip
import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.framework.function import Defun
from millrace.ops import gen_ops


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
    with pytest.raises(ValueError, match=r"make_one_shot_iterator\(\)` does not support .* capture stateful .* `Dataset.make_initializable_iterator"):
        dataset.make_one_shot_iterator()
    assert iterator.string_handle() is iterator.string_handle() and iterator.string_handle("named").op.name == "named"


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


def test_generators_are_let_go_where_no_more_is_taken():
    closed = []

    def numbers():
        try:
            for i in range(10):
                yield i
        finally:
            closed.append(i)

    iterator = tf.data.Dataset.from_generator(numbers, tf.int32).take(3).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        for time in range(2):
            session.run(iterator.initializer)
            assert [session.run(element) for _ in range(3)] == [0, 1, 2] and len(closed) == time
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)
            assert closed == [2] * (time + 1)
        session.run(iterator.initializer)
        session.run(element)
        session.run(iterator.initializer)  # one that is not at its end goes with its iterator
        assert closed == [2, 2, 0]


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
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"body length 6 bytes, which is not an exact multiple of the record length \(4 bytes\)"):
        read(tf.data.FixedLengthRecordDataset(str(fixed), 4, header_bytes=4, footer_bytes=1))
    found = read(tf.data.Dataset.list_files(str(tmp_path / "lines*")))
    assert sorted(found) == sorted(str(tmp_path / n).encode() for n in ("lines.txt", "lines.gz"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"No files matched pattern: .*/\*\.none, b\?"):
        read(tf.data.Dataset.list_files([str(tmp_path / "*.none"), "b?"]))
    with pytest.raises(tf.errors.NotFoundError):
        read(tf.data.TextLineDataset(str(tmp_path / "nothing")))


def test_training_from_a_pipeline():
    features, labels = np.random.RandomState(0).rand(64, 2).astype(np.float32), np.ones([64, 1], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(64).repeat(5).batch(16).prefetch(1)
    x, y = dataset.make_one_shot_iterator().get_next()
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(x, 1, kernel_initializer=tf.zeros_initializer()))
    train, losses = tf.train.GradientDescentOptimizer(0.1).minimize(loss), []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                losses.append(session.run([loss, train])[0])
    assert len(losses) == 20 and losses[-1] < losses[0]


def test_sizes_that_no_machine_has():
    def first(data, milliseconds=60000):
        with tf.Session() as session:
            return session.run(data.make_one_shot_iterator().get_next(), options=tf.RunOptions(timeout_in_ms=milliseconds))

    numbers = tf.data.Dataset.range(3)
    assert first(numbers.batch(2**62)).tolist() == [0, 1, 2]
    assert first(numbers.shuffle(2**62)) in (0, 1, 2)
    for endless in (numbers.repeat().shuffle(2**62), numbers.repeat().skip(2**62), numbers.repeat().filter(lambda n: n > 5)):
        with pytest.raises(tf.errors.DeadlineExceededError):
            first(endless, milliseconds=300)
    tower = numbers
    for _ in range(600):
        tower = tower.skip(0)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="more than 500 data sets"):
        first(tower)


def variant_pipeline(handle, types, shapes):
    """The next element of a data set that an op made, and what begins it."""
    iterator = gen_ops.iterator("", "", types, shapes)
    return gen_ops.make_iterator(handle, iterator), gen_ops.iterator_get_next(iterator, types, shapes), iterator


def drain(session, fetch, limit=100):
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while len(found) < limit:
            found.append(session.run(fetch))
    return found


def test_caches_in_files(tmp_path):
    prefix, count = tf.placeholder_with_default(str(tmp_path / "cache"), []), tf.placeholder_with_default(np.int64(3), [])
    data = tf.data.Dataset.from_tensor_slices((np.arange(4.0), ["a", "b", "c", "d"])).take(count).cache(prefix)
    one, other = data.make_initializable_iterator(), data.make_initializable_iterator()
    first, second = one.get_next(), other.get_next()
    with tf.Session() as session:
        session.run([one.initializer, other.initializer])
        session.run(first)
        with pytest.raises(tf.errors.AlreadyExistsError, match="concurrent"):
            session.run(second)
        assert len(drain(session, first)) == 2
        assert sorted(p.name for p in tmp_path.iterdir()) == ["cache.data-00000-of-00001", "cache.index"]
        session.run([one.initializer, other.initializer], {count: 0})
        for element in (first, second):
            assert [(float(x), y) for x, y in drain(session, element)] == [(0.0, b"a"), (1.0, b"b"), (2.0, b"c")]


def test_a_cache_that_is_not_finished_leaves_nothing(tmp_path):
    data = tf.data.Dataset.range(5).cache(str(tmp_path / "cache"))
    iterator = data.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == 0
        session.run(iterator.initializer)  # the first iterator is gone now
        assert [int(x) for x in drain(session, element)] == list(range(5))


def test_caches_of_a_resource():
    source = tf.data.Dataset.range(3)._as_variant_tensor()
    memory, deleter = gen_ops.anonymous_memory_cache()
    begin, element, _ = variant_pipeline(gen_ops.cache_dataset_v2(source, "", memory, [tf.int64], [[]]), [tf.int64], [[]])
    with tf.Session() as session:
        session.run(begin)
        assert drain(session, element) == [[0], [1], [2]]
        session.run(gen_ops.delete_memory_cache(memory, deleter))


def test_orders_by_a_generator_of_seeds():
    source = tf.data.Dataset.range(20)._as_variant_tensor()
    generator, deleter = gen_ops.anonymous_random_seed_generator(np.int64(3), np.int64(5))
    begin, element, _ = variant_pipeline(gen_ops.shuffle_dataset_v2(source, np.int64(20), generator, [tf.int64], [[]]), [tf.int64], [[]])
    plain = gen_ops.shuffle_dataset(source, np.int64(20), np.int64(3), np.int64(5), [tf.int64], [[]])
    begin_plain, plain_element, _ = variant_pipeline(plain, [tf.int64], [[]])
    with tf.Session() as session:
        session.run([begin, begin_plain])
        order = drain(session, element)
        assert sorted(order) == [[i] for i in range(20)] and order != sorted(order)
        assert order == drain(session, plain_element), "the seeds are the same"
        session.run(gen_ops.delete_random_seed_generator(generator, deleter))


def test_several_devices():
    devices = ["/cpu:0", "/cpu:0"]
    source = tf.data.Dataset.range(5)._as_variant_tensor()
    handle = gen_ops.multi_device_iterator(devices, "shared", "", [tf.int64], [[]])
    begin = gen_ops.multi_device_iterator_init(source, handle, np.int64(2))
    incarnation = tf.placeholder(tf.int64, [])
    again = gen_ops.multi_device_iterator_from_string_handle(gen_ops.multi_device_iterator_to_string_handle(handle), [tf.int64], [[]])
    shards = [gen_ops.multi_device_iterator_get_next_from_shard(h, np.int32(i), incarnation, [tf.int64], [[]])[0] for i, h in enumerate((handle, again))]
    with tf.Session() as session:
        now = {incarnation: session.run(begin)}
        assert [session.run(shards[1], now) for _ in range(2)] == [1, 3]
        assert [session.run(shards[0], now) for _ in range(3)] == [0, 2, 4]
        for shard in shards:
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(shard, now)
        with pytest.raises(tf.errors.InvalidArgumentError, match="incarnation"):
            session.run(shards[0], {incarnation: 77})
        session.run(begin)
        with pytest.raises(tf.errors.InvalidArgumentError, match="incarnation"):
            session.run(shards[0], now)
        anonymous, deleter = gen_ops.anonymous_multi_device_iterator(devices, [tf.int64], [[]])
        session.run(gen_ops.delete_multi_device_iterator(anonymous, [], deleter))


def test_a_device_waits_for_the_others_no_longer_than_its_step():
    source = tf.data.Dataset.range(50)._as_variant_tensor()
    handle = gen_ops.multi_device_iterator(["/cpu:0", "/cpu:0"], "", "", [tf.int64], [[]])
    begin = gen_ops.multi_device_iterator_init(source, handle, np.int64(2))
    incarnation = tf.placeholder(tf.int64, [])
    first = gen_ops.multi_device_iterator_get_next_from_shard(handle, np.int32(0), incarnation, [tf.int64], [[]])[0]
    with tf.Session() as session:
        now = {incarnation: session.run(begin)}
        assert [session.run(first, now) for _ in range(3)] == [0, 2, 4]
        with pytest.raises(tf.errors.DeadlineExceededError):  # two elements wait for the second device, which does not come
            session.run(first, now, options=tf.RunOptions(timeout_in_ms=200))


def test_iterators_go_on_where_others_were():
    begin, element, iterator = variant_pipeline(tf.data.Dataset.range(6)._as_variant_tensor(), [tf.int64], [[]])
    copy = gen_ops.iterator("copy", "", [tf.int64], [[]])
    take_over = gen_ops.deserialize_iterator(copy, gen_ops.serialize_iterator(iterator))
    of_copy = gen_ops.iterator_get_next(copy, [tf.int64], [[]])
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(take_over)
        session.run(begin)
        assert [session.run(element)[0] for _ in range(4)] == [0, 1, 2, 3]
        session.run(take_over)
        assert drain(session, of_copy) == [[4], [5]] and drain(session, element) == [[4], [5]]


def test_elements_that_may_be_missing():
    begin, _, iterator = variant_pipeline(tf.data.Dataset.range(1)._as_variant_tensor(), [tf.int64], [[]])
    following = gen_ops.iterator_get_next_as_optional(iterator, [tf.int64], [[]])
    there, value = gen_ops.optional_has_value(following), gen_ops.optional_get_value(following, [tf.int64], [[]])
    with tf.Session() as session:
        session.run(begin)
        assert session.run([there, value]) == [True, [0]]
        assert not session.run(there)


def test_slices_of_sparse_tensors():
    sparse = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], ["a", "b", "c"], [3, 3])
    slices = read(tf.data.Dataset.from_sparse_tensor_slices(sparse))
    assert [(i.tolist(), v.tolist(), s.tolist()) for i, v, s in slices] == [([[0], [2]], [b"a", b"b"], [3]), ([], [], [3]), ([[1]], [b"c"], [3])]
    with tf.Session() as session:
        mixed = tf.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2])).make_initializable_iterator()
        with pytest.raises(tf.errors.UnimplementedError, match="ordered in the batch dimension"):
            session.run(mixed.initializer)


def test_elements_that_say_whether_they_stay():
    source = tf.data.Dataset.from_tensor_slices((np.arange(4), [True, False, False, True]))._as_variant_tensor()
    begin, element, _ = variant_pipeline(gen_ops.filter_by_last_component_dataset(source, [tf.int64], [[]]), [tf.int64], [[]])
    with tf.Session() as session:
        session.run(begin)
        assert drain(session, element) == [[0], [3]]


def function_of(name, types, body):
    """The name of a function of the graph."""

    @Defun(*types, func_name=name)
    def made(*args):
        return body(*args)

    made.add_to_graph(tf.get_default_graph())
    return made.name


def test_rows_through_a_function():
    f = function_of("plus", [tf.float32, tf.float32, tf.float32], lambda a, b, c: (a + b * c, tf.cast(tf.size(a), tf.int64)))
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    out = {"f": f, "output_types": [tf.float32, tf.int64], "output_shapes": [[2], []]}
    sums, sizes = gen_ops.map_defun([rows, tf.constant([10.0, 20.0, 30.0])], [tf.constant(2.0)], **out)
    assert sums.shape.as_list() == [3, 2] and sizes.shape.as_list() == [3]
    uneven = gen_ops.map_defun([rows, tf.placeholder_with_default(np.ones(2, np.float32), None)], [tf.constant(2.0)], **out)
    empty = gen_ops.map_defun([rows[:0], tf.zeros([0])], [tf.constant(2.0)], **out)
    with tf.Session() as session:
        values, counts = session.run([sums, sizes])
        assert values.tolist() == [[21, 22], [43, 44], [65, 66]] and counts.tolist() == [2, 2, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="dimension 0"):
            session.run(uneven[0])
        assert [v.shape for v in session.run(empty)] == [(0, 2), (0,)]


def test_generators_of_the_graph():
    counter, ended = (tf.get_variable(n, [], tf.int64, tf.zeros_initializer(), use_resource=True) for n in ("counter", "ended"))
    state = function_of("state", [tf.int64], lambda start: start)
    following = function_of("following", [tf.int64, tf.resource], lambda start, handle: start + gen_ops.resource_count_up_to(handle, limit=3, T=tf.int64))

    def end(start, handle):
        with tf.control_dependencies([gen_ops.assign_add_variable_op(handle, tf.constant(1, tf.int64))]):
            return tf.identity(start)

    made = gen_ops.generator_dataset(
        [tf.constant(7, tf.int64)],
        [counter.handle],
        [ended.handle],
        init_func=state,
        next_func=following,
        finalize_func=function_of("end", [tf.int64, tf.resource], end),
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    begin, element, _ = variant_pipeline(made, [tf.int64], [[]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(begin)
        assert session.run(ended) == 0 and drain(session, element) == [[7], [8], [9]]
        assert session.run(ended) == 1


def test_iterators_in_files(tmp_path):
    path = str(tmp_path / "iterator")
    begin, element, iterator = variant_pipeline(tf.data.Dataset.range(6)._as_variant_tensor(), [tf.int64], [[]])
    save, restore = gen_ops.save_iterator(iterator, path), gen_ops.restore_iterator(iterator, path)
    words = gen_ops.iterator("words", "", [tf.string], [[]])
    with tf.Session() as session:
        session.run(begin)
        assert [session.run(element)[0] for _ in range(4)] == [0, 1, 2, 3]
        session.run(save)
        assert drain(session, element) == [[4], [5]]
    with tf.Session() as session:
        session.run(begin)
        session.run(restore)
        assert drain(session, element) == [[4], [5]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="other types"):
            session.run(gen_ops.restore_iterator(words, path))


def double_and_count(n):
    """A pipeline with functions that name functions, data sets within data sets, strings and a captured tensor."""
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "c"])
    numbers = tf.data.Dataset.range(n).map(lambda x: tf.cond(x > 1, lambda: 2 * x, lambda: x)).filter(lambda x: x < 7)
    pairs = tf.data.Dataset.zip((numbers.concatenate(numbers), words.repeat()))
    return pairs.flat_map(lambda x, w: tf.data.Dataset.from_tensors(tf.as_string(x) + w)).batch(2)


def test_iterators_in_files_bring_their_data_set(tmp_path):
    path = str(tmp_path / "iterator")
    with tf.Graph().as_default(), tf.Session() as session:
        begin, element, iterator = variant_pipeline(double_and_count(tf.constant(5, tf.int64))._as_variant_tensor(), [tf.string], [[None]])
        session.run(begin)
        assert session.run(element)[0].tolist() == [b"0a", b"1b"]
        session.run(gen_ops.save_iterator(iterator, path))
        rest = [e[0].tolist() for e in drain(session, element)]
        assert rest == [[b"4c", b"6a"], [b"0b", b"1c"], [b"4a", b"6b"]]
    for other in (False, True):  # in a graph that has nothing of it; again, from what the first one saves
        with tf.Graph().as_default(), tf.Session() as session:
            iterator = gen_ops.iterator("another", "", [tf.string], [[None]])
            element = gen_ops.iterator_get_next(iterator, [tf.string], [[None]])
            session.run(gen_ops.restore_iterator(iterator, path))
            if not other:
                session.run(gen_ops.save_iterator(iterator, path))
            assert [e[0].tolist() for e in drain(session, element)] == rest


def test_iterators_over_resources_keep_their_place_alone(tmp_path):
    path = str(tmp_path / "iterator")
    for kind in ("table", "fed"):
        with tf.Graph().as_default(), tf.Session() as session:
            table = tf.contrib.lookup.index_table_from_tensor(["a", "b"])
            fed = tf.placeholder(tf.string, [None])
            values = ["b", "a"] if kind == "table" else fed
            data = tf.data.Dataset.from_tensor_slices(values).map(table.lookup if kind == "table" else tf.identity)
            kept = tf.int64 if kind == "table" else tf.string
            begin, element, iterator = variant_pipeline(data._as_variant_tensor(), [kept], [[]])
            session.run(tf.tables_initializer())
            feeds = {fed: np.array(["x", "y"] * 5000, object)} if kind == "fed" else {}
            session.run(begin, feeds)
            first = session.run(element)[0]
            session.run(gen_ops.save_iterator(iterator, path))
            copy = gen_ops.iterator("copy", "", [kept], [[]])
            restore = gen_ops.restore_iterator(copy, path)
            if kind == "table":
                with pytest.raises(tf.errors.FailedPreconditionError, match="initializer"):
                    session.run(restore)
            session.run(begin, feeds)
            session.run(gen_ops.restore_iterator(iterator, path))
            assert session.run(element)[0] != first


def test_data_sets_as_graphs():
    with tf.Graph().as_default(), tf.Session() as session:
        written = session.run(gen_ops.dataset_to_graph(double_and_count(5)._as_variant_tensor()))
        table = tf.contrib.lookup.index_table_from_tensor(["a"])
        data = tf.data.Dataset.from_tensors("a").map(table.lookup)
        with pytest.raises(tf.errors.UnimplementedError, match="MapDataset takes a resource"):
            session.run(gen_ops.dataset_to_graph(data._as_variant_tensor()))
    graph = tf.GraphDef.FromString(written)
    assert graph.node[-1].op == "_Retval" and {"ZipDataset", "FlatMapDataset"} <= {n.op for n in graph.node}
    last = graph.node[-1].input[0]
    del graph.node[-1]
    with tf.Graph().as_default(), tf.Session() as session:
        (made,) = tf.import_graph_def(graph, return_elements=[last + ":0"], name="")
        begin, element, _ = variant_pipeline(made, [tf.string], [[None]])
        session.run(begin)
        assert [e[0].tolist() for e in drain(session, element)][0] == [b"0a", b"1b"]


def test_arguments_that_are_tensors():
    data = tf.data.Dataset.from_tensors((tf.placeholder(tf.int32), tf.placeholder(tf.int32)))
    padded = data.padded_batch(32, (tf.constant([-1], tf.int64), tf.constant([37], tf.int64)))
    assert [s.as_list() for s in padded.output_shapes] == [[None, None], [None, 37]]
    seed = tf.placeholder_with_default(np.int64(5), [])
    shuffled = read(tf.data.Dataset.range(30).shuffle(30, seed))
    assert sorted(map(int, shuffled)) == list(range(30)) and list(map(int, shuffled)) == list(map(int, read(tf.data.Dataset.range(30).shuffle(30, 5))))


def test_random_numbers_begin_again_with_the_iterator():
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.data.Dataset.range(4).map(lambda _: tf.random_uniform((), seed=11))
        nested = tf.data.Dataset.range(2).flat_map(lambda _: tf.data.Dataset.range(2).map(lambda _: tf.random_uniform((), seed=11)))
        for data in (numbers, numbers.repeat(2), nested):
            iterator = data.make_initializable_iterator()
            element, found = iterator.get_next(), []
            for _ in range(2):
                session.run(iterator.initializer)
                found.append([])
                with pytest.raises(tf.errors.OutOfRangeError):
                    while True:
                        found[-1].append(session.run(element))
            assert found[0] == found[1] and len(set(found[0])) == len(found[0]), "within one iteration they go on"


@pytest.mark.parametrize("by", ["from_generator", "map"])
def test_the_end_of_one_data_set_ends_no_other_of_the_step(by):
    begun, go_on, is_over = threading.Event(), threading.Event(), threading.Event()

    def slow(x):
        if x == 1:
            begun.set()
            go_on.wait(20)
            is_over.set()
        return x

    def end(x):  # of the short one, when the long one is at work
        if x == 1:
            begun.wait(20)
        return x

    short = tf.data.Dataset.range(2).map(lambda x: tf.py_func(end, [x], tf.int64)).filter(lambda x: x < 1)
    if by == "map":
        long = tf.data.Dataset.range(4).map(lambda x: tf.py_func(slow, [x], tf.int64)).repeat(2)
    else:
        long = tf.data.Dataset.from_generator(lambda: (slow(x) for x in range(4)), tf.int64, [])
    short, long = short.make_initializable_iterator(), long.make_initializable_iterator()
    both = [short.get_next(), long.get_next()]
    session = tf.Session()
    session.run([short.initializer, long.initializer])
    assert session.run(both) == [0, 0]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(both)
    go_on.set()
    assert is_over.wait(20)
    time.sleep(0.1)  # until the generator has given what nobody waits for any more
    rest = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            rest.append(session.run(both[1]))
    # The element under way may be lost, nothing else.
    assert rest in ([[1, 2, 3], [2, 3]] if by == "from_generator" else [[1, 2, 3, 0, 1, 2, 3], [2, 3, 0, 1, 2, 3]])
