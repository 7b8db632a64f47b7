# SPDX-License-Identifier: Apache-2.0
"""Accumulators of gradients."""

import threading

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("reduction, want", [("MEAN", [2.0, 3.0]), ("SUM", [4.0, 6.0])])
def test_dense(reduction, want):
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2], reduction_type=reduction, name="a")
    add = [accumulator.apply_grad([1.0, 2.0]), accumulator.apply_grad([3.0, 4.0])]
    late = accumulator.apply_grad([100.0, 100.0], local_step=0)
    take, count = accumulator.take_grad(2), accumulator.num_accumulated()
    assert accumulator.name == "a" and accumulator.dtype == tf.float32 and take.get_shape().as_list() == [2]
    with tf.Session() as sess:
        sess.run(add)
        assert sess.run(count) == 2
        np.testing.assert_equal(sess.run(take), want)
        sess.run(late)
        assert sess.run(count) == 0, "its step is over"
        sess.run(accumulator.set_global_step(7))
        sess.run(accumulator.apply_grad([1.0, 1.0], local_step=6))
        sess.run(accumulator.apply_grad([1.0, 1.0], local_step=7))
        assert sess.run(count) == 1


def test_half_gradients_are_summed_in_float():
    small, rows = np.float16(0.001), 3000
    dense = tf.ConditionalAccumulator(tf.float16, shape=[1], reduction_type="SUM")
    add = dense.apply_grad(np.array([small]))
    sparse = tf.SparseConditionalAccumulator(tf.float16, shape=[2, 1], reduction_type="SUM")
    add_row = sparse.apply_grad(np.array([1]), np.array([[small]]))
    with tf.Session() as sess:
        for _ in range(rows):
            sess.run([add, add_row])
        want = np.float16(float(small) * rows)
        np.testing.assert_equal(sess.run(dense.take_grad(1)), [want])
        np.testing.assert_equal(sess.run(sparse.take_grad(1)).values, [[want]])


def test_a_chief_waits_for_its_workers():
    accumulator = tf.ConditionalAccumulator(tf.float32)
    add, take = accumulator.apply_grad(2.0, local_step=100), accumulator.take_grad(3)
    with tf.Session() as sess:
        for _ in range(10):
            workers = [threading.Thread(target=lambda: sess.run(add)) for _ in range(3)]
            for worker in workers:
                worker.start()
            assert sess.run(take) == 2.0
            for worker in workers:
                worker.join()


def test_sparse():
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[6, 1])
    first = accumulator.apply_grad([1, 4], [[2.0], [4.0]], grad_shape=[6, 1])
    second = accumulator.apply_indexed_slices_grad(tf.IndexedSlices(tf.constant([[6.0]]), tf.constant([4], tf.int64)))
    taken = accumulator.take_indexed_slices_grad(2)
    with tf.Session() as sess:
        sess.run([first, second])
        assert sess.run(accumulator.num_accumulated()) == 2
        values, indices, shape = sess.run([taken.values, taken.indices, taken.dense_shape])
        np.testing.assert_equal(values, [[2.0], [5.0]])
        np.testing.assert_equal(indices, [1, 4])
        np.testing.assert_equal(shape, [6, 1])
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(accumulator.apply_grad([9], [[1.0]], local_step=1))


def test_sparse_slices_in_any_order_and_more_than_once():
    """Slices come out by their index, each with the mean of the gradients that had it."""
    rng = np.random.default_rng(3)
    gradients = []
    for n, in_order in ((40, True), (60, False), (60, True), (5, False)):
        indices = rng.integers(0, 50, n)
        gradients.append((np.sort(indices) if in_order else indices, rng.integers(-9, 9, (n, 3)).astype(np.float32)))
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[50, 3])
    applied = [accumulator.apply_grad(i, v, grad_shape=[50, 3]) for i, v in gradients]
    taken = accumulator.take_indexed_slices_grad(len(gradients))
    sums, counts = np.zeros((50, 3)), np.zeros(50)
    for indices, values in gradients:
        np.add.at(sums, indices, values)
        counts[np.unique(indices)] += 1
    with tf.Session() as sess:
        for _ in range(2):  # an accumulator that has been emptied begins again
            for apply in applied:
                sess.run(apply)
            values, indices = sess.run([taken.values, taken.indices])
            np.testing.assert_equal(indices, np.flatnonzero(counts))
            np.testing.assert_allclose(values, (sums / np.maximum(counts, 1)[:, None])[indices], rtol=1e-6)
            applied = [accumulator.apply_grad(i, v, local_step=1, grad_shape=[50, 3]) for i, v in gradients]


def test_what_makes_no_sense():
    with pytest.raises(ValueError):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")
    with pytest.raises(ValueError):
        tf.ConditionalAccumulator(tf.float32, shape=[2]).apply_grad([1.0, 2.0, 3.0])
