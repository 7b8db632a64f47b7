# SPDX-License-Identifier: Apache-2.0
"""Segments of long sequences, and the states that go from one to the next."""

import numpy as np
import pytest

import millrace as tf

training = tf.contrib.training


def test_states_go_from_segment_to_segment():
    with tf.Graph().as_default(), tf.Session() as session:
        key, length = tf.placeholder(tf.string, []), tf.placeholder(tf.int32, [])
        numbers = np.arange(4.0)[:, np.newaxis]
        saver = training.SequenceQueueingStateSaver(
            batch_size=2, num_unroll=2, input_length=length, input_key=key, input_sequences={"x": numbers}, input_context={"c": 7}, initial_states={"s": [1.0]}
        )
        for given, steps in (("a", 3), ("b", 2)):
            session.run(saver.prefetch_op, {key: given, length: steps})
        batch = saver.next_batch
        assert saver.next_batch is batch and batch.sequences["x"].shape.as_list() == [2, 2, 1]
        save = batch.save_state("s", batch.state("s") + 1)
        wanted = [batch.key, batch.next_key, batch.length, batch.total_length, batch.sequences["x"], batch.context["c"], batch.state("s"), save]
        keys, following, lengths, totals, x, c, state, _ = session.run(wanted)
        assert keys.tolist() == [b"00000_of_00002:a", b"00000_of_00002:b"] and following.tolist() == [b"00001_of_00002:a", b"00001_of_00002:b"]
        assert lengths.tolist() == [2, 2] and totals.tolist() == [3, 2] and c.tolist() == [7, 7] and state.tolist() == [[1], [1]]
        assert x.tolist() == [[[0], [1]]] * 2
        keys, following, lengths, totals, x, c, state, _ = session.run(wanted)
        assert keys.tolist() == [b"00001_of_00002:a", b"00001_of_00002:b"] and following.tolist() == [b"STOP:a", b"STOP:b"]
        assert lengths.tolist() == [1, 0] and x.tolist() == [[[2], [3]]] * 2 and state.tolist() == [[2], [2]]
        assert session.run([saver.barrier.ready_size(), saver.barrier.incomplete_size()]) == [0, 0]


def test_what_a_saver_of_states_refuses():
    with tf.Graph().as_default(), tf.Session() as session:
        steps = tf.placeholder(tf.float32, [None, 1])
        given = dict(batch_size=1, num_unroll=3, input_length=1, input_key="k", input_sequences={"x": steps}, input_context={}, initial_states={"s": 0.0})
        saver = training.SequenceQueueingStateSaver(**given)
        with pytest.raises(tf.errors.InvalidArgumentError, match="should be a multiple of: 3, but saw value: 4"):
            session.run(saver.prefetch_op, {steps: np.zeros((4, 1))})
        with pytest.raises(KeyError, match="state was not declared: other"):
            saver.next_batch.save_state("other", 1.0)
        with pytest.raises(ValueError, match="Rank check failed for.*s"):
            saver.next_batch.save_state("s", [[1.0]])
        with pytest.raises(ValueError, match="capacity 2 needs to be >= batch_size 3"):
            training.SequenceQueueingStateSaver(**dict(given, batch_size=3, capacity=2))
        with pytest.raises(ValueError, match="not fully defined"):
            training.SequenceQueueingStateSaver(**dict(given, input_context={"c": tf.placeholder(tf.float32, [None])}))


def test_batches_of_padded_and_sparse_sequences():
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.SparseTensor([[0, 1], [2, 0]], ["p", "q"], [3, 2])
        batch = training.batch_sequences_with_states(
            input_key="k",
            input_sequences={"x": [1, 2, 3], "y": sparse},
            input_context={"c": tf.SparseTensorValue([[1]], [5.0], [4])},
            input_length=None,
            initial_states={"s": 0},
            num_unroll=2,
            batch_size=1,
            num_threads=1,
            make_keys_unique=True,
            make_keys_unique_seed=3,
        )
        save = batch.save_state("s", batch.state("s") + 1)
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        x, y, c, length, key, _ = session.run([batch.sequences["x"], batch.sequences["y"], batch.context["c"], batch.length, batch.key, save])
        assert x.tolist() == [[1, 2]] and length.tolist() == [2] and key[0].startswith(b"00000_of_00002:k") and len(key[0]) > 16
        assert y.indices.tolist() == [[0, 0, 1]] and y.values.tolist() == [b"p"] and y.dense_shape.tolist() == [1, 2, 2]
        assert c.indices.tolist() == [[0, 1]] and c.values.tolist() == [5.0] and c.dense_shape.tolist() == [1, 4]
        coordinator.request_stop()
        coordinator.join(threads)
