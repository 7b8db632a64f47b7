# SPDX-License-Identifier: Apache-2.0
"""tf.train's queues of input: what they give, how long, and what their nodes are called."""

import contextlib

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops


@contextlib.contextmanager
def running():
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            yield session
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=10)


def until_the_end(fetches):
    """What steps give until the input ends."""
    values = []
    with running() as session:
        with pytest.raises(tf.errors.OutOfRangeError):
            for _ in range(1000):
                values.append(session.run(fetches))
    return values


def node_names():
    return [op.name for op in tf.get_default_graph().get_operations()]


def test_strings_in_their_order():
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert until_the_end(queue.dequeue()) == [b"a", b"b", b"c"] * 2
    assert [v.name for v in tf.local_variables()] == ["input_producer/limit_epochs/epochs:0"]


def test_epochs_need_their_variable():
    queue = tf.train.string_input_producer(["a"], num_epochs=1)
    element = queue.dequeue()
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
        with pytest.raises(tf.errors.FailedPreconditionError, match="epochs"):
            coordinator.join()


def test_strings_shuffled_and_for_ever():
    queue = tf.train.string_input_producer([str(i) for i in range(20)], seed=3)
    element = queue.dequeue()
    with running() as session:
        epochs = [[session.run(element) for _ in range(20)] for _ in range(3)]
    assert all(sorted(e) == sorted(str(i).encode() for i in range(20)) for e in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_no_strings():
    with pytest.raises(ValueError, match="non-null input tensor"):
        tf.train.string_input_producer([])
    queue = tf.train.string_input_producer(tf.placeholder_with_default(np.array([], object), [None]))
    element = queue.dequeue()
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        tf.train.start_queue_runners(session, coordinator)
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
            session.run(element)
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-null input tensor"):
            coordinator.join()


def test_ranges_slices_and_rows():
    assert until_the_end(tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()) == [0, 1, 2, 3]
    tf.reset_default_graph()
    rows = tf.train.input_producer([[1.0, 2.0], [3.0, 4.0]], num_epochs=1, shuffle=False).dequeue()
    assert [r.tolist() for r in until_the_end(rows)] == [[1, 2], [3, 4]]
    tf.reset_default_graph()
    pair = tf.train.slice_input_producer([tf.constant(["a", "b", "c"]), tf.constant([[1], [2], [3]])], num_epochs=1, seed=4)
    assert sorted((a, b.tolist()) for a, b in until_the_end(pair)) == [(b"a", [1]), (b"b", [2]), (b"c", [3])]


def test_rows_of_unknown_shape():
    with pytest.raises(ValueError, match="element_shape"):
        tf.train.input_producer(tf.placeholder(tf.float32, [None, None]))
    tf.train.input_producer(tf.placeholder(tf.float32, [None, None]), element_shape=[2])
    with pytest.raises(ValueError, match="num_epochs must be > 0"):
        tf.train.string_input_producer(["a"], num_epochs=0)
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.train.slice_input_producer([])


def numbers(count, epochs=1):
    return tf.train.range_input_producer(count, num_epochs=epochs, shuffle=False).dequeue()


def test_batches():
    n = numbers(7)
    batch = tf.train.batch([n, tf.stack([n, n * n])], batch_size=3)
    found = until_the_end(batch)
    assert [a.tolist() for a, _ in found] == [[0, 1, 2], [3, 4, 5]]
    assert found[1][1].tolist() == [[3, 9], [4, 16], [5, 25]]


def test_the_last_batch_may_be_smaller():
    batch = tf.train.batch([numbers(7)], batch_size=3, allow_smaller_final_batch=True)
    assert batch.get_shape().as_list() == [None]
    assert [b.tolist() for b in until_the_end(batch)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_batches_of_many_and_of_dicts():
    n = numbers(4)
    batch = tf.train.batch({"b": tf.stack([n, -n]), "a": tf.as_string(tf.stack([n, n]))}, 4, enqueue_many=True)
    found = until_the_end(batch)
    assert [f["b"].tolist() for f in found] == [[0, 0, 1, -1], [2, -2, 3, -3]]
    assert found[1]["a"].tolist() == [b"2", b"2", b"3", b"3"]
    assert list(tf.train.batch({"x": tf.constant(1.0)}, 2)) == ["x"]


def test_batches_that_are_padded():
    n = numbers(4)
    batch = tf.train.batch([tf.fill([n + 1], n + 1)], 2, dynamic_pad=True)
    assert batch.get_shape().as_list() == [2, None]
    assert [b.tolist() for b in until_the_end(batch)] == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    with pytest.raises(ValueError, match="fully defined"):
        tf.train.batch([tf.placeholder(tf.float32, [None])], 2)
    with pytest.raises(ValueError, match="rank"):
        tf.train.batch([tf.placeholder(tf.float32)], 2)


def test_several_threads_and_several_lists():
    n = numbers(40)
    found = until_the_end(tf.train.batch([n], 4, num_threads=3))
    assert sorted(i for b in found for i in b) == list(range(40))
    tf.reset_default_graph()
    found = until_the_end(tf.train.batch_join([[numbers(10), "x"], [numbers(10) + 100, "y"]], 5))
    assert sorted((int(a), b) for batch in found for a, b in zip(*batch)) == [(i, b"x") for i in range(10)] + [(i + 100, b"y") for i in range(10)]


def test_shuffled_batches():
    batch = tf.train.shuffle_batch([numbers(60)], 6, capacity=50, min_after_dequeue=20, seed=2)
    found = [i for b in until_the_end(batch) for i in b]
    assert sorted(found) == list(range(60)) and found != sorted(found)
    with pytest.raises(ValueError, match="must be bigger than min_after_dequeue"):
        tf.train.shuffle_batch([tf.constant(1)], 6, 20, 20)


def test_shuffled_batches_of_several_lists():
    batch = tf.train.shuffle_batch_join([[numbers(20)], [numbers(20) + 100]], 5, 30, 10, allow_smaller_final_batch=True)
    assert sorted(i for b in until_the_end(batch) for i in b) == [*range(20), *range(100, 120)]


def test_only_what_is_to_be_kept():
    n = numbers(10)
    batch = tf.train.maybe_batch([n], tf.equal(n % 2, 0), 2)
    assert [b.tolist() for b in until_the_end(batch)] == [[0, 2], [4, 6]]
    tf.reset_default_graph()
    n = numbers(4)
    batch = tf.train.maybe_batch([tf.stack([n, n + 10, n + 20])], [True, False, True], 4, enqueue_many=True)
    assert [b.tolist() for b in until_the_end(batch)] == [[0, 20, 1, 21], [2, 22, 3, 23]]
    with pytest.raises(ValueError, match="cannot be a vector"):
        tf.train.maybe_batch([n], [True], 2)
    tf.reset_default_graph()
    n = numbers(30)
    batch = tf.train.maybe_shuffle_batch([n], 2, 10, 3, n > 21)
    assert sorted(i for b in until_the_end(batch) for i in b) == list(range(22, 30))


def test_arguments_of_old_programs():
    assert tf.train.batch(tensor_list=[tf.constant(1.0)], batch_size=2).get_shape().as_list() == [2]
    assert tf.train.shuffle_batch(tensor_list=[tf.constant(1.0)], batch_size=2, capacity=5, min_after_dequeue=1).get_shape().as_list() == [2]
    assert tf.train.batch_join(tensor_list_list=[[tf.constant(1.0)]], batch_size=2).get_shape().as_list() == [2]


def test_what_does_not_fit():
    with pytest.raises(TypeError, match="types to be consistent"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)
    with pytest.raises(ValueError):
        tf.train.batch_join([[tf.constant([1])], [tf.constant([1, 2])]], 2)
    with pytest.raises(ValueError, match="at least one"):
        tf.train.batch([], 2)
    with pytest.raises(ValueError, match="same keys"):
        tf.train.batch_join([{"a": 1}, {"b": 1}], 2)


def test_names_of_nodes():
    tf.train.batch([tf.train.string_input_producer(["a"]).dequeue()], 2)
    names = node_names()
    for name in (
        "input_producer",
        "input_producer/input_producer_EnqueueMany",
        "input_producer/input_producer_Close",
        "input_producer/input_producer_Close_1",
        "input_producer/input_producer_Size",
        "input_producer/fraction_of_32_full",
        "input_producer/RandomShuffle",
        "input_producer_Dequeue",
        "batch/fifo_queue",
        "batch/fifo_queue_enqueue",
        "batch/fifo_queue_Close",
        "batch/fifo_queue_Size",
        "batch/Cast",
        "batch/mul/y",
        "batch/mul",
        "batch/fraction_of_32_full/tags",
        "batch/n",
        "batch",
    ):
        assert name in names, name
    assert [r.name for r in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)] == ["input_producer", "batch/fifo_queue"]


def test_summaries_of_how_full_they_are():
    tf.train.shuffle_batch([numbers(100, None)], 5, capacity=30, min_after_dequeue=10)
    merged = tf.summary.merge_all()
    with running() as session:
        found = tf.Summary.FromString(session.run(merged))
    assert [v.tag for v in found.value] == ["input_producer/fraction_of_32_full", "shuffle_batch/fraction_over_10_of_20_full"]
    assert all(0 <= v.simple_value <= 1 for v in found.value)


def test_sparse_tensors():
    n = numbers(5)
    sparse = tf.SparseTensor(tf.cast(tf.stack([[n, 1]]), tf.int64), tf.stack([n * 10]), [5, 3])
    batch, again = tf.train.batch([sparse, n], 2)
    assert batch.get_shape().ndims == 3
    found = until_the_end([batch, again])
    assert found[1][0].indices.tolist() == [[0, 2, 1], [1, 3, 1]]
    assert found[1][0].values.tolist() == [20, 30] and found[1][0].dense_shape.tolist() == [2, 5, 3]
    assert found[1][1].tolist() == [2, 3]


def test_rows_of_sparse_tensors():
    n = numbers(3)
    sparse = tf.SparseTensor([[0, 1], [1, 0]], tf.stack([n, -n]), [2, 2])
    batch = tf.train.batch([sparse], 4, enqueue_many=True, allow_smaller_final_batch=True)
    first, second = until_the_end(batch)
    assert first.values.tolist() == [0, 0, 1, -1] and first.dense_shape.tolist() == [4, 2]
    assert second.values.tolist() == [2, -2] and second.indices.tolist() == [[0, 1], [1, 0]]


@pytest.mark.skipif(hasattr(gen_ops, "add_sparse_to_tensors_map"), reason="sparse tensors can be batched")
def test_sparse_tensors_are_refused():
    with pytest.raises(NotImplementedError, match="Sparse tensors in batches"):
        tf.train.batch([tf.SparseTensor([[0]], [1.0], [1])], 2)


def test_buckets():
    n = numbers(12)
    which, batch = tf.contrib.training.bucket([n, tf.fill([n % 3 + 1], n)], n % 3, 2, 3, dynamic_pad=True)
    found = until_the_end([which, batch])
    assert sorted(i for _, (numbers_, _) in found for i in numbers_) == list(range(12))
    assert all(set(a % 3) == {w} and b.shape == (2, w + 1) for w, (a, b) in found)


def test_buckets_by_length():
    n = numbers(20)
    lengths, (batch,) = tf.contrib.training.bucket_by_sequence_length(
        n % 10 + 1, [tf.fill([n % 10 + 1], n)], 2, [4, 7], dynamic_pad=True, allow_smaller_final_batch=True
    )
    found = until_the_end([lengths, batch])
    assert sorted(i for a, _ in found for i in a) == sorted(list(range(1, 11)) * 2)
    assert all(b.shape == (len(a), max(a)) and len({(i >= 4) + (i >= 7) for i in a}) == 1 for a, b in found)
    with pytest.raises(ValueError, match="increasing"):
        tf.contrib.training.bucket_by_sequence_length(n, [n], 2, [4, 4])


def test_a_queue_that_looks_ahead():
    n = numbers(5)
    queue = tf.contrib.slim.prefetch_queue.prefetch_queue({"b": n, "a": n * 2})
    assert until_the_end(queue.dequeue()) == [{"a": 2 * i, "b": i} for i in range(5)]


def test_queue_runners_of_slim():
    batch = tf.train.batch([numbers(4, None)], 4)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with tf.contrib.slim.queues.QueueRunners(session):
            assert session.run(batch).tolist() == [0, 1, 2, 3]


def test_graphs_with_queues_can_be_saved_and_read(tmp_path):
    batch = tf.train.batch([numbers(4)], 2, name="pairs")
    path = str(tmp_path / "graph.meta")
    tf.train.export_meta_graph(path)
    tf.reset_default_graph()
    tf.train.import_meta_graph(path)
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    assert [r.name for r in runners] == ["input_producer", "pairs/fifo_queue"]
    assert [b.tolist() for b in until_the_end(batch.name)] == [[0, 1], [2, 3]]


def test_elements_taken_by_chance():
    n = numbers(2000)
    batch = tf.contrib.training.rejection_sample([n], lambda t: tf.where(t[0] < 1000, 0.2, 0.8), 100)
    found = np.concatenate(until_the_end(batch))
    assert 0.1 < np.mean(found < 1000) < 0.3


@pytest.mark.parametrize("initial", [[0.75, 0.25], None])
def test_classes_as_often_as_wanted(initial):
    n = numbers(4000)
    data, labels = tf.contrib.training.stratified_sample([n], tf.cast(tf.equal(n % 4, 0), tf.int32), [0.5, 0.5], 100, init_probs=initial)
    found = until_the_end([data[0], labels])
    assert all(((a % 4 == 0) == b).all() for a, b in found)
    assert 0.4 < np.mean([b for _, b in found]) < 0.6


def test_what_is_sampled_is_checked():
    sample, three = tf.contrib.training.stratified_sample, tf.zeros([3, 1])
    labels, target = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.float32, [2])
    made = sample([three], labels, target, 1, [0.5, 0.5], enqueue_many=True)
    queued = [op for op in tf.get_default_graph().get_operations() if op.type.startswith("QueueEnqueueMany")]
    with tf.Session() as session:
        session.run(queued[0], {labels: [0, 1, 0], target: [0.4, 0.6]})
        for wrong in ({labels: [0, 2, 0], target: [0.4, 0.6]}, {labels: [0, -1, 0], target: [0.4, 0.6]}, {labels: [0, 1, 0], target: [0.4, 0.7]}):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(queued[0], wrong)
    assert len(made) == 2
    for arguments in (([three], [[1]], [0.5, 0.5]), ([three], [1, 0], [0.5, 0.5]), ([three], [0, 1, 0], [0.5, 0.3, 0.2])):
        with pytest.raises(ValueError):
            sample(*arguments, 1, [0.5, 0.5], enqueue_many=True)
    with pytest.raises(TypeError, match="list"):
        sample(three, labels, [0.5, 0.5], 1, enqueue_many=True)


def test_all_variables_of_old_programs_have_the_counters_of_epochs():
    batch = tf.train.batch([numbers(4)], 2)
    with tf.Session() as session:
        session.run(tf.initialize_all_variables())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert session.run(batch).tolist() == [0, 1]
        coordinator.request_stop()
        coordinator.join(threads)
