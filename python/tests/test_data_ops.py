# SPDX-License-Identifier: Apache-2.0
"""Ops of data sets as graphs of TensorFlow 1.x have them, with what TensorFlow 1.15.5 gives for them."""

import threading

import numpy as np
import pytest

import millrace as tf
from millrace.framework import dtypes
from millrace.ops import gen_ops

Dataset = tf.data.Dataset
WRONG = "InvalidArgumentError"
NUMBERS = ([tf.int64], [tf.TensorShape(None)])


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def found(session, dataset, most=60):
    """The elements, and the errors in their places."""
    if not isinstance(dataset, Dataset):
        dataset = Dataset(dataset, tf.TensorSpec(None, tf.int64))
    iterator = dataset.make_initializable_iterator()
    following, values = iterator.get_next(), []
    session.run(iterator.initializer)
    while len(values) < most:
        try:
            values.append(tf.nest.map_structure(lambda a: np.asarray(a).tolist(), session.run(following)))
        except tf.errors.OutOfRangeError:
            return values
        except tf.errors.OpError as error:
            values.append(type(error).__name__)
    return values


def failing(*at):
    def check(x):
        bad = tf.reduce_any(tf.equal(tf.constant(at, tf.int64), x))
        with tf.control_dependencies([tf.debugging.Assert(tf.logical_not(bad), [x])]):
            return tf.identity(x)

    return check


def both(name):
    """An op by either of its names."""
    return [getattr(gen_ops, name), getattr(gen_ops, "experimental_" + name)]


def test_rows(session):
    for unbatch in both("unbatch_dataset"):
        assert found(session, unbatch(Dataset.from_tensor_slices(np.arange(6).reshape(2, 3))._variant, *NUMBERS)) == list(range(6))
        assert found(session, unbatch(Dataset.range(2)._variant, *NUMBERS)) == ["InvalidArgumentError"] * 2
    uneven = Dataset.from_tensors((np.arange(3), np.arange(2)))
    with pytest.raises(ValueError):
        uneven.unbatch()
    two = Dataset(gen_ops.unbatch_dataset(uneven._variant, [tf.int64] * 2, [tf.TensorShape(None)] * 2), (tf.TensorSpec(None, tf.int64),) * 2)
    assert found(session, two) == ["InvalidArgumentError"]


@pytest.mark.parametrize("size,shift,stride,wanted", [(3, 2, 2, [[0, 2, 4], [2, 4, 6]]), (2, 3, 1, [[0, 1], [3, 4], [6, 7]]), (20, 1, 1, [])])
def test_sliding_windows(session, size, shift, stride, wanted):
    for sliding in both("sliding_window_dataset"):
        assert found(session, sliding(Dataset.range(8)._variant, size, shift, stride, *NUMBERS)) == wanted


def test_windows_that_fail_are_followed_by_the_next(session):
    uneven = Dataset.range(4).map(lambda x: tf.fill([tf.maximum(x, 1)], x))
    assert found(session, gen_ops.sliding_window_dataset(uneven._variant, 2, 1, 1, *NUMBERS)) == [[[0], [1]], "InvalidArgumentError", "InvalidArgumentError"]
    for sizes in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (2**62, 1, 4)]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(gen_ops.sliding_window_dataset(Dataset.range(2)._variant, *sizes, *NUMBERS))


@pytest.mark.parametrize(
    "bad,size,shift,stride,drop,wanted",
    [
        ([2], 2, 1, 1, True, [[0, 1], WRONG, WRONG, [3, 4], [4, 5], [5, 6], [6, 7]]),
        ([2], 2, 2, 1, False, [[0, 1], WRONG, [4, 5], [6, 7]]),
        ([1], 2, 2, 2, True, [[0, 2], [2, 4], [4, 6]]),
        ([7], 3, 3, 1, False, [[0, 1, 2], [3, 4, 5], WRONG]),
        ([6, 7], 3, 3, 1, False, [[0, 1, 2], [3, 4, 5], WRONG]),
        ([2, 7], 2, 3, 1, False, [[0, 1], [3, 4], WRONG]),
    ],
)
def test_an_error_is_one_of_the_windows_that_hold_it(session, bad, size, shift, stride, drop, wanted):
    windows = Dataset.range(8).map(failing(*bad)).window(size, shift, stride, drop)
    assert found(session, windows.flat_map(lambda window: window.batch(size))) == wanted


def test_dense_rows_as_sparse_batches(session):
    uneven = Dataset.range(4).map(lambda x: tf.fill([x], x))

    def batches(size, row):
        variant = gen_ops.dense_to_sparse_batch_dataset(uneven._variant, size, np.array(row, np.int64), [dtypes.variant], [tf.TensorShape([3])])
        made = Dataset(variant, tf.SparseTensorSpec([None, None], tf.int64))
        return made.map(lambda s: (s.indices, s.values, s.dense_shape))

    assert found(session, batches(2, [-1])) == [([[1, 0]], [1], [2, 1]), ([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], [2, 2, 3, 3, 3], [2, 3])]
    assert found(session, batches(3, [5]))[0] == ([[1, 0], [2, 0], [2, 1]], [1, 2, 2], [3, 5])
    assert found(session, batches(2, [2]))[1:] == ["DataLossError"]
    assert found(session, batches(2, [5, 5])) == ["InvalidArgumentError"] * 4
    for size, row in [(0, [5]), (2, [-2])]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            found(session, batches(size, row))


def test_samples_are_those_of_tensorflow(session):
    def sample(rate):
        return gen_ops.sampling_dataset(Dataset.range(40)._variant, rate, 3, 4, *NUMBERS)

    assert found(session, sample(0.5)) == [1, 6, 8, 9, 10, 13, 15, 16, 17, 20, 25, 27, 28, 29, 30, 32, 34, 35]
    assert found(session, sample(0.0)) == [] and found(session, sample(2.0)) == list(range(40))


@pytest.mark.parametrize("calls", [1, 3, -1])
def test_batches_of_mapped_elements(session, calls):
    def mapped(function, size=3, drop=False, over=None, keep=True):
        f = Dataset.range(8)._function(function, "f", tf.convert_to_tensor)
        over = Dataset.range(8) if over is None else over
        for op in both("map_and_batch_dataset"):
            yield op(over._variant, f.captured, size, calls, drop, f.name, *NUMBERS, preserve_cardinality=keep)

    for made in mapped(lambda x: x + 1):
        assert found(session, made) == [[1, 2, 3], [4, 5, 6], [7, 8]]
    for made in mapped(lambda x: x, drop=True):
        assert found(session, made) == [[0, 1, 2], [3, 4, 5]]
    for made in mapped(failing(1)):  # the batches behind a failed one are as they would have been
        assert found(session, made) == ["InvalidArgumentError", [3, 4, 5], [6, 7]]
    for made in mapped(lambda x: x, over=Dataset.range(8).map(failing(4))):
        assert found(session, made) == [[0, 1, 2], "InvalidArgumentError", [6, 7]]
    for made in mapped(lambda x: tf.fill([x], x), size=2):
        assert found(session, made) == ["InvalidArgumentError"] * 4
    for size, drop in [(0, False), (-1, True)]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(next(mapped(lambda x: x, size, drop)))

    def ends(x):
        def of(n):
            if n == 4:
                raise StopIteration
            return n

        made = tf.py_func(of, [x], tf.int64)
        made.set_shape([])
        return made

    for made in mapped(ends):
        assert found(session, made) == [[0, 1, 2], "InvalidArgumentError", [6, 7]]
    for made in mapped(ends, keep=False):
        assert found(session, made) == [[0, 1, 2], [3]]


def interleaved(function, count, cycle, block, sloppy=False, over=None, ahead=2):
    over = Dataset.range(count) if over is None else over
    f = over._function(function, "f", lambda made: made)
    return gen_ops.parallel_interleave_dataset(over._variant, f.captured, cycle, block, sloppy, 2, ahead, f.name, *NUMBERS)


def repeated(x):
    return Dataset.from_tensors(x).repeat(x)


@pytest.mark.parametrize("ahead", [0, 1, 9])
def test_interleaving_in_parallel(session, ahead):
    assert found(session, interleaved(repeated, 6, 2, 1, ahead=ahead)) == [1, 2, 2, 3, 3, 4, 3, 4, 4, 5, 4, 5, 5, 5, 5]
    assert found(session, interleaved(repeated, 6, 2, 2, ahead=ahead)) == [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 4, 4, 5, 5, 5]
    # TensorFlow counts the one 3 there to the block behind it, unless it has to wait for that one.
    assert found(session, interleaved(repeated, 6, 3, 2, ahead=ahead)) == [1, 2, 2, 3, 3, 4, 4, 3, 4, 4, 5, 5, 5, 5, 5]
    fewer = interleaved(lambda x: Dataset.from_tensors(x).repeat(5 - x), 6, 3, 2, ahead=ahead)
    assert found(session, fewer) == [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 0, 3, 3, 4]
    assert sorted(found(session, interleaved(repeated, 6, 3, 2, sloppy=True, ahead=ahead))) == sorted(x for x in range(6) for _ in range(x))


def test_errors_of_what_is_interleaved_stand_in_their_places(session):
    bad = "InvalidArgumentError"
    assert found(session, interleaved(lambda x: Dataset.from_tensors(failing(2)(x)).repeat(3), 6, 2, 1)) == [0, 1, 0, 1, 0, 1, bad, 3, 3, 4, 3, 4, 4, 5, 5, 5]
    inner = interleaved(lambda x: Dataset.range(3).map(failing(1)).map(lambda y: x * 10 + y), 4, 2, 1)
    assert found(session, inner) == [0, 10, bad, bad, 2, 12, 20, 30, bad, bad, 22, 32]
    over = Dataset.range(5).map(failing(2))
    assert found(session, interleaved(lambda x: Dataset.from_tensors(x).repeat(2), 5, 2, 1, over=over)) == [0, 1, 0, 1, bad, 3, 3, 4, 4]
    for cycle, block, ahead in [(0, 1, 1), (1, 0, 1), (-1, 1, 1), (1, 1, -1)]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(interleaved(repeated, 6, cycle, block, ahead=ahead))
    assert found(session, interleaved(repeated, 3, 2**63 - 1, 2**63 - 1, ahead=2**63 - 1)) == [1, 2, 2]


def test_an_iterator_ends_while_its_readers_wait(session):
    endless = interleaved(lambda x: Dataset.from_tensors(x).repeat(), 6, 3, 1)
    assert found(session, Dataset(endless, tf.TensorSpec([], tf.int64)).take(7)) == [0, 1, 2, 0, 1, 2, 0]


def test_hints_pass_elements_on(session):
    three = Dataset.range(3)._variant
    calls = [(name, args) for name, args in [("latency_stats", ["tag"]), ("bytes_produced_stats", ["tag"]), ("max_intra_op_parallelism", [1])]]
    calls += [("private_thread_pool", [2]), ("assert_next", [[]]), ("non_serializable", []), ("sleep", [1])]
    for name, args in calls:
        for op in both(name + "_dataset"):
            assert found(session, op(three, *args, *NUMBERS)) == [0, 1, 2]
    for name in ("experimental_", ""):
        pool = getattr(gen_ops, name + "thread_pool_handle")(2, display_name="pool")
        assert found(session, getattr(gen_ops, name + "thread_pool_dataset")(three, pool, *NUMBERS)) == [0, 1, 2]
    assert found(session, gen_ops.choose_fastest_dataset([three, three], 2, *NUMBERS)) == [0, 1, 2]
    for name, args in [("max_intra_op_parallelism", [-1]), ("private_thread_pool", [0]), ("sleep", [-1])]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be >= "):
            session.run(getattr(gen_ops, name + "_dataset")(three, *args, *NUMBERS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="same output types"):
        session.run(gen_ops.choose_fastest_dataset([three, Dataset.from_tensors(1.0)._variant], 2, *NUMBERS))
    with pytest.raises(tf.errors.UnimplementedError, match="LMDB"):
        session.run(gen_ops.lmdb_dataset("a", *NUMBERS))
    with pytest.raises(tf.errors.UnimplementedError, match="SQLite"):
        session.run(gen_ops.sql_dataset("sqlite", "a", "b", *NUMBERS))


def test_sleeping_ends_with_the_step(session):
    slow = Dataset(gen_ops.sleep_dataset(Dataset.range(3)._variant, 3600 * 10**6, *NUMBERS), tf.TensorSpec([], tf.int64))
    following = slow.make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=200))


def test_matching_files(session, tmp_path):
    for name in ("b.txt", "a.txt", "c.py"):
        (tmp_path / name).write_text("")

    def names(*patterns):
        variant = gen_ops.matching_files_dataset([str(tmp_path / p) for p in patterns])
        return [n if isinstance(n, str) else n.decode().rsplit("/")[-1] for n in found(session, Dataset(variant, tf.TensorSpec([], tf.string)), 3)]

    assert names("*.py", "*.txt") == ["c.py", "a.txt", "b.txt"]
    assert names("*.zip") == ["NotFoundError"] * 3


@pytest.mark.parametrize("cycle,block", [(1, 1), (2, 1), (3, 2), (4, 3), (9, 2)])
def test_interleaving_with_calls_in_parallel_keeps_the_order(session, cycle, block):
    lengths = tf.constant(np.random.RandomState(cycle).randint(0, 5, 12), tf.int64)

    def inner(x):
        return Dataset.from_tensors(x).repeat(lengths[x])

    plain = found(session, Dataset.range(12).interleave(inner, cycle, block))
    assert found(session, Dataset.range(12).interleave(inner, cycle, block, num_parallel_calls=cycle)) == plain
    over = Dataset.range(12)
    f = over._function(inner, "f", lambda made: made)
    settings = (over._variant, f.captured, cycle, block)
    sloppy = gen_ops.parallel_interleave_dataset_v2(*settings, -1, f.name, *NUMBERS, sloppy=True)
    assert sorted(found(session, sloppy)) == sorted(plain)
    for calls in (0, -2, cycle + 1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_parallel_calls"):
            session.run(gen_ops.parallel_interleave_dataset_v2(*settings, calls, f.name, *NUMBERS))


def test_data_sets_are_read_at_once(session):
    meeting = threading.Barrier(3)

    def meet(x):
        meeting.wait(30)  # nobody gets on who reads one after the other
        return x

    def inner(x):
        made = tf.py_func(meet, [x], tf.int64)
        made.set_shape([])
        return Dataset.from_tensors(made)

    assert found(session, Dataset.range(3).interleave(inner, 3, num_parallel_calls=3)) == [0, 1, 2]
    assert found(session, Dataset.range(3).apply(tf.data.experimental.parallel_interleave(inner, 3))) == [0, 1, 2]


# The ops that graphs of TensorFlow 2.21 have for pipelines; what it gives for them.


@pytest.mark.parametrize("order", ["default", "true", "false"])
def test_mapped_and_filtered_in_parallel(session, order):
    over = Dataset.range(9).map(failing(2))
    f = over._function(lambda x: x * 10, "f", lambda made: made)
    large = over._function(lambda x: x > 3, "large", lambda made: made)
    for calls in (-1, 1, 3):
        made = gen_ops.parallel_map_dataset_v2(over._variant, f.captured, calls, f.name, *NUMBERS, deterministic=order)
        values = found(session, made)
        assert (
            values == [0, 10, WRONG, *range(30, 90, 10)] or order == "false" and sorted(values, key=str) == sorted([0, 10, WRONG, *range(30, 90, 10)], key=str)
        )
        made = gen_ops.parallel_filter_dataset(over._variant, large.captured, calls, large.name, *NUMBERS, deterministic=order)
        assert found(session, made) == [WRONG, 4, 5, 6, 7, 8]
    for wrong in (
        gen_ops.parallel_map_dataset_v2(over._variant, f.captured, 0, f.name, *NUMBERS, deterministic=order),
        gen_ops.parallel_filter_dataset(over._variant, large.captured, -2, large.name, *NUMBERS, deterministic=order),
        gen_ops.parallel_batch_dataset(over._variant, 2, 0, False, *NUMBERS, deterministic=order),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_parallel_calls must be greater than zero"):
            session.run(wrong)


def test_words_for_orders(session):
    three = Dataset.range(3)
    f = three._function(lambda x: x > 0, "f", lambda made: made)
    g = three._function(repeated, "g", lambda made: made)
    for wrong in (
        gen_ops.parallel_map_dataset_v2(three._variant, f.captured, 2, f.name, [tf.bool], [[]], deterministic="maybe"),
        gen_ops.parallel_filter_dataset(three._variant, f.captured, 2, f.name, *NUMBERS, deterministic=""),
        gen_ops.parallel_batch_dataset(three._variant, 2, 2, False, *NUMBERS, deterministic="True"),
        gen_ops.parallel_interleave_dataset_v3(three._variant, g.captured, 1, 1, 1, g.name, *NUMBERS, deterministic="x"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unrecognized determinism policy"):
            session.run(wrong)


def test_batches_in_parallel(session):
    for calls in (-1, 2):
        for drop, want in ((False, [[0, 1, 2], [3]]), (True, [[0, 1, 2]])):
            made = gen_ops.parallel_batch_dataset(Dataset.range(4)._variant, 3, calls, drop, *NUMBERS)
            assert found(session, made) == want and session.run(gen_ops.dataset_cardinality(made)) == len(want)


@pytest.mark.parametrize("buffered, ahead", [(None, None), (-1, -1), (1, 0), (5, 3)])
def test_interleaving_of_later_releases(session, buffered, ahead):
    over = Dataset.range(6)
    f = over._function(repeated, "f", lambda made: made)

    def made(cycle=2, block=1, calls=2, **order):
        settings = [cycle, block] if buffered is None else [cycle, block, buffered, ahead]
        op = gen_ops.parallel_interleave_dataset_v3 if buffered is None else gen_ops.parallel_interleave_dataset_v4
        return op(over._variant, f.captured, *settings, calls, f.name, *NUMBERS, **order)

    for block in (1, 2):
        plain = found(session, over.interleave(repeated, 2, block))
        assert found(session, made(block=block)) == found(session, made(block=block, calls=-1, deterministic="true")) == plain
        assert sorted(found(session, made(block=block, deterministic="false"))) == sorted(plain)
    for wrong in (dict(cycle=0), dict(block=0), dict(calls=0), dict(calls=3)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(made(**wrong))


def test_buffers_of_later_releases(session):
    over = Dataset.range(6)
    f = over._function(repeated, "f", lambda made: made)
    for buffered, ahead, words in [(0, 0, "`buffer_output_elements` must be `tf.data.AUTOTUNE` or > 0 but is 0"), (1, -2, "`prefetch_input_elements` must be")]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(gen_ops.parallel_interleave_dataset_v4(over._variant, f.captured, 2, 1, buffered, ahead, 2, f.name, *NUMBERS))


def test_a_number_of_elements_is_asserted(session):
    def counted(n):
        return gen_ops.assert_cardinality_dataset(Dataset.range(5)._variant, n, *NUMBERS)

    assert found(session, counted(5)) == [0, 1, 2, 3, 4]
    for n, given, words in [
        (6, 5, "expected to contain 6 elements but contained only 5 elements."),
        (1, 1, "expected to contain 1 element but contained at least 2 elements."),
        (-1, 5, "expected to contain an infinite number of elements but contained only 5 elements."),
        (-2, 0, "expected to contain -2 elements but contained at least 1 element."),
    ]:
        assert session.run(gen_ops.dataset_cardinality(counted(n))) == n
        iterator = Dataset(counted(n), tf.TensorSpec([], tf.int64)).make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        assert [session.run(following) for _ in range(given)] == list(range(given))
        with pytest.raises(tf.errors.FailedPreconditionError, match=words):
            session.run(following)


def test_what_later_releases_put_around_pipelines_passes_elements_on(session):
    three = Dataset.range(3)._variant
    passed = [gen_ops.options_dataset(three, b"", *NUMBERS), gen_ops.finalize_dataset(three, *NUMBERS), gen_ops.rewrite_dataset(three, "any", *NUMBERS)]
    assert [found(session, made) for made in passed] == [[0, 1, 2]] * 3
