# SPDX-License-Identifier: Apache-2.0
"""The decoders, samplers, losses and mechanisms of attention of tf.contrib.seq2seq that are layers and functions of their inputs, beside those that they do the same as."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

seq2seq = tf.contrib.seq2seq
ops = "contrib.seq2seq.python.ops."
sampler, decoders, beam = names.module(ops + "sampler"), names.module(ops + "basic_decoder"), names.module(ops + "beam_search_decoder")
steps = np.random.RandomState(0).randn(3, 4, 2).astype(np.float32)
lengths = [2, 4, 0]


def run(*values):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(values)


@pytest.mark.parametrize("time_major", [False, True])
def test_a_sampler_that_trains_does_what_its_helper_does(time_major):
    inputs = np.swapaxes(steps, 0, 1) if time_major else steps
    cell = tf.nn.rnn_cell.GRUCell(5)
    state, project = cell.zero_state(3, tf.float32), tf.layers.Dense(4)
    made = decoders.BasicDecoderV2(cell, sampler.TrainingSampler(time_major), project, output_time_major=time_major)
    outputs, last, counts = made(inputs, initial_state=state, sequence_length=lengths)
    assert made.output_size == seq2seq.BasicDecoderOutput(tf.TensorShape([4]), tf.TensorShape([])) and made.output_dtype.sample_id == tf.int32
    helper = seq2seq.TrainingHelper(inputs, lengths, time_major)
    wanted = seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, state, project), output_time_major=time_major)
    made, wanted = run(tf.nest.flatten((outputs, last, counts)), tf.nest.flatten(wanted))
    for one, other in zip(made, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_lengths_that_nobody_says_are_all_steps():
    cell = tf.nn.rnn_cell.GRUCell(5)
    _, _, counts = decoders.BasicDecoderV2(cell, sampler.TrainingSampler())(steps, initial_state=cell.zero_state(3, tf.float32))
    _, _, few = decoders.BasicDecoderV2(cell, sampler.TrainingSampler(), maximum_iterations=2)(steps, initial_state=cell.zero_state(3, tf.float32))
    assert [list(v) for v in run(counts, few)] == [[4] * 3, [2] * 3]


def test_greedy_samples_are_embedded_until_the_end():
    table = np.eye(4, dtype=np.float32)
    greedy = sampler.GreedyEmbeddingSampler()
    with pytest.raises(ValueError, match="before initialize was called"):
        _ = greedy.batch_size
    finished, first = greedy.initialize(table, start_tokens=[1, 2], end_token=3)
    outputs = tf.constant([[0.0, 0, 0, 1], [0, 1, 0, 0]])
    ids = greedy.sample(0, outputs, ())
    done, following, _ = greedy.next_inputs(0, outputs, (), ids)
    values = run(finished, first, ids, done, following, greedy.batch_size)
    assert [np.asarray(v).tolist() for v in values[:4]] == [[False] * 2, table[[1, 2]].tolist(), [3, 1], [True, False]]
    assert values[4].tolist() == table[[3, 1]].tolist() and values[5] == 2
    by_function = sampler.GreedyEmbeddingSampler(lambda ids: tf.one_hot(ids, 4) * 2)
    assert run(by_function.initialize(None, [1], 3)[1])[0].tolist() == [[0, 2, 0, 0]]
    with pytest.raises(ValueError, match="embedding"):
        greedy.initialize(None, [1], 3)


def test_samplers_of_functions():
    custom = sampler.CustomSampler(
        lambda start: ([False], start), lambda time, outputs, state: outputs, lambda time, outputs, state, sample_ids: ([True], outputs, state)
    )
    finished, first = custom.initialize(tf.constant([7.0]))
    inference = sampler.InferenceSampler(lambda outputs: outputs > 0, [2], tf.bool, lambda ids: ids[:, 0], tf.to_float)
    begun = inference.initialize(tf.zeros([1, 2]))
    ids = inference.sample(0, tf.constant([[1.0, -1.0]]), ())
    done, following, _ = inference.next_inputs(0, None, (), ids)
    values = run(first, begun[1], ids, done, following)
    assert [v.tolist() for v in values] == [[7.0], [[0.0, 0.0]], [[True, False]], [True], [[1.0, 0.0]]]
    assert inference.sample_ids_shape == [2] and inference.sample_ids_dtype == tf.bool and custom.sample_ids_dtype == tf.int32
    assert custom.sample(0, 5, ()) == 5 and finished == [False]


def test_draws_by_logits():
    sure = tf.constant([[0.0, 100.0, 0.0], [100.0, 0.0, 0.0]])
    classes, several, ones = (
        sampler.categorical_sample(sure, seed=1),
        sampler.categorical_sample(sure, tf.int64, [4]),
        sampler.bernoulli_sample(logits=sure - 50),
    )
    values = run(classes, several, ones, sampler.bernoulli_sample(probs=[0.0, 1.0], dtype=tf.bool))
    assert [v.tolist() for v in values] == [[1, 0], [[1, 0]] * 4, [[0, 1, 0], [1, 0, 0]], [False, True]]


def test_scheduled_samplers_feed_what_was_drawn():
    embedded = sampler.ScheduledEmbeddingTrainingSampler(1.0)
    embedded.initialize(steps, lengths, embedding=np.full([3, 2], 9, np.float32))
    ids = embedded.sample(0, tf.constant([[0.0, 50, 0]] * 3), ())
    fed = sampler.ScheduledOutputTrainingSampler(1.0, next_inputs_fn=lambda outputs: outputs + 1)
    fed.initialize(steps, lengths)
    outputs = tf.zeros([3, 2])
    following = embedded.next_inputs(0, None, (), ids)[1], fed.next_inputs(0, outputs, (), fed.sample(0, outputs, ()))[1]
    assert [v.tolist() for v in run(ids, *following)] == [[1] * 3, [[9.0] * 2] * 3, [[1.0] * 2] * 3]
    with pytest.raises(ValueError, match="embedding is required"):
        embedded.initialize(steps, lengths)
    with pytest.raises(ValueError, match="callable"):
        sampler.ScheduledEmbeddingTrainingSampler(0.5, embedding_fn=3)


def test_a_beam_search_that_is_a_layer():
    cell, project = tf.nn.rnn_cell.GRUCell(5), tf.layers.Dense(4)
    state = seq2seq.tile_batch(cell.zero_state(2, tf.float32), 3)
    table = np.random.RandomState(1).randn(4, 2).astype(np.float32)
    made = beam.BeamSearchDecoderV2(cell, 3, output_layer=project, maximum_iterations=4)
    with pytest.raises(ValueError, match="initialize has not been called"):
        _ = made.batch_size
    found, _, counts = made(table, start_tokens=[0, 1], end_token=3, initial_state=state)
    other = seq2seq.dynamic_decode(seq2seq.BeamSearchDecoder(cell, table, [0, 1], 3, state, 3, project), maximum_iterations=4)
    values = run(found.predicted_ids, other[0].predicted_ids, counts, other[2])
    assert values[0].shape[::2] == (2, 3) and (values[0] == values[1]).all() and (values[2] == values[3]).all()


def test_the_loss_of_sequences_as_an_object():
    logits, targets, weights = steps[:, :3], np.array([[0, 1, 0]] * 3), np.array([[1, 1, 0]] * 3, np.float32)
    summed = seq2seq.SequenceLoss()(targets, logits, weights)
    averaged = seq2seq.SequenceLoss(True, True, False, False)(targets, logits, weights)
    entropy = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(run(summed, averaged), [(entropy * weights).sum() / 6] * 2, rtol=1e-5)


def test_what_is_no_sampler_is_refused():
    with pytest.raises(ValueError, match="sampler must be a Sampler"):
        decoders.BasicDecoderV2(tf.nn.rnn_cell.GRUCell(5), seq2seq.TrainingHelper(steps, lengths))


wrapper = names.module(ops + "attention_wrapper")
memory = np.random.RandomState(2).randn(3, 4, 5).astype(np.float32)
query, last = np.random.RandomState(3).randn(3, 6).astype(np.float32), np.eye(4, dtype=np.float32)[[0, 1, 2]]
KINDS = {
    "Bahdanau": {"normalize": True},
    "Luong": {"scale": True},
    "BahdanauMonotonic": {"normalize": True, "score_bias_init": 0.5, "mode": "recursive"},
    "LuongMonotonic": {"scale": True, "score_bias_init": -0.5},
}


@pytest.mark.parametrize("kind", KINDS)
def test_mechanisms_that_are_layers_align_as_the_others_do(kind):
    with tf.variable_scope("one", initializer=tf.ones_initializer()):
        alignments, _ = getattr(seq2seq, kind + "Attention")(6, memory, **KINDS[kind])(tf.constant(query), tf.constant(last))
    more = {"kernel_initializer": "ones"} if "Bahdanau" in kind else {}
    layers = {what: tf.keras.layers.Dense(6, kernel_initializer="ones", use_bias=False) for what in ("memory_layer", "query_layer")[: 2 if more else 1]}
    layer = getattr(wrapper, kind + "AttentionV2")(6, memory, **KINDS[kind], **more, **layers)
    found, state = layer([query, last])
    assert found.shape == (3, 4) and layer.alignments_size == layer.state_size == 4 and layer.batch_size == 3
    assert len(layer.weights) == {"Bahdanau": 5, "Luong": 2, "BahdanauMonotonic": 6, "LuongMonotonic": 3}[kind]
    values = run(alignments, found, state)
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5)
    np.testing.assert_array_equal(values[1], values[2])
    first = run(layer.initial_alignments(3, tf.float32))[0]
    assert first.tolist() == ([[1.0, 0, 0, 0]] * 3 if "Monotonic" in kind else [[0.0] * 4] * 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_of_settings_is_given_its_memory_later(kind):
    layer = getattr(wrapper, kind + "AttentionV2")(6, memory, **KINDS[kind])
    with tf.Session() as session:
        tf.keras.backend.set_session(session)
        at_first = layer.get_weights()
        wanted, _ = layer([query, last])
        again = type(layer).from_config(layer.get_config())
        assert again.get_config() == layer.get_config() and again.get_config()["memory"] is None
        with pytest.raises(ValueError, match="before the setup of memory"):
            type(layer).from_config(layer.get_config()).call([query, last])
        again.build(memory.shape)
        again.set_weights(at_first)
        again(memory, setup_memory=True)
        found, _ = again([query, last])
        again.set_weights(layer.get_weights())
        np.testing.assert_array_equal(*session.run([wanted, found]))
        with pytest.raises(ValueError, match="already been setup"):
            again.call(memory, setup_memory=True)
    tf.keras.backend.clear_session()


def test_a_memory_of_lengths_and_one_of_a_mask():
    short = wrapper.LuongAttentionV2(6, memory, [4, 2, 1])
    inside = np.arange(4) < np.array([[4], [2], [1]])
    np.testing.assert_array_equal(run(short.values)[0], memory * inside[..., None])
    masked = wrapper.LuongAttentionV2(6, None)
    masked(memory, mask=tf.constant(inside), setup_memory=True)
    alignments = run(masked([query, last])[0])[0]
    assert (alignments[~inside] == 0).all()
    np.testing.assert_allclose(alignments.sum(1), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="cannot be used at same time"):
        wrapper.LuongAttentionV2(6, None).call([memory, [4, 2, 1]], mask=tf.constant(inside), setup_memory=True)


def test_a_cell_of_keras_reads_by_a_layer():
    mechanism = wrapper.BahdanauAttentionV2(6, memory.astype(np.float64), dtype=tf.float64)
    cell = seq2seq.AttentionWrapper(tf.keras.layers.LSTMCell(6, dtype=tf.float64), mechanism, alignment_history=True, dtype=tf.float64)
    made = decoders.BasicDecoderV2(cell, sampler.TrainingSampler(), dtype=tf.float64)
    outputs, state, _ = made(steps.astype(np.float64), initial_state=cell.zero_state(3, tf.float64))
    values = run(outputs.rnn_output, state.alignment_history.stack(), state.alignments, *state.cell_state)
    assert values[0].shape == (3, 4, 5) and values[0].dtype == np.float64 and [v.shape for v in values[3:]] == [(3, 6)] * 2
    np.testing.assert_array_equal(values[1][-1], values[2])


def test_what_a_mechanism_refuses():
    with pytest.raises(ValueError, match="Invalid probability function: mean"):
        wrapper.LuongAttentionV2(6, memory, probability_fn="mean")
    with pytest.raises(TypeError, match="memory_layer is not a Layer: int"):
        wrapper.LuongAttentionV2(6, memory, memory_layer=3)
    with pytest.raises(ValueError, match="2 or 3 tensors, got 1"):
        wrapper.LuongAttentionV2(6, memory)([query])
    with pytest.raises(ValueError, match="inner dimensions between query and keys"):
        wrapper.LuongAttentionV2(5, memory)([query, last])
