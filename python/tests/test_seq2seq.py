# SPDX-License-Identifier: Apache-2.0
"""Decoders with attention, against plain loops."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import beam_search

seq2seq = tf.contrib.seq2seq
MEMORY = np.sin(np.arange(24.0)).reshape(2, 4, 3)  # [batch, steps, depth]
INPUTS = np.cos(np.arange(12.0)).reshape(2, 3, 2)  # [batch, time, width]
MEMORY_LENGTHS, LENGTHS = [2, 4], [3, 2]


def wrapper(kind, **options):
    memory = tf.constant(MEMORY)
    if kind.startswith("bahdanau"):
        mechanism = seq2seq.BahdanauAttention(6, memory, MEMORY_LENGTHS, normalize="normalized" in kind, dtype=tf.float64)
    else:
        mechanism = seq2seq.LuongAttention(5, memory, MEMORY_LENGTHS, scale="scaled" in kind)
    return seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(5), mechanism, **options)


def initialise(session):
    """Values worth testing, by name."""
    session.run(tf.global_variables_initializer())
    values = {}
    for i, v in enumerate(tf.global_variables()):
        shape = v.get_shape().as_list()
        values[v.op.name.split("attention_wrapper/")[-1]] = np.asarray(np.sin(np.arange(np.prod(shape, dtype=int)) * 1.3 + i)).reshape(shape)
        session.run(v.assign(list(values.values())[-1]))
    return values


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def step(values, x, h, attention):
    """(h, attention, alignments) by the definitions."""
    keys = MEMORY @ values["memory_layer/kernel"]
    h = np.tanh(np.concatenate([x, attention, h], 1) @ values["basic_rnn_cell/kernel"] + values["basic_rnn_cell/bias"])
    if "bahdanau_attention/attention_v" in values:
        v, bias = values["bahdanau_attention/attention_v"], values.get("bahdanau_attention/attention_b", 0)
        if "bahdanau_attention/attention_g" in values:
            v = values["bahdanau_attention/attention_g"] * v / np.sqrt((v * v).sum())
        scores = (v * np.tanh(keys + (h @ values["bahdanau_attention/query_layer/kernel"])[:, None] + bias)).sum(-1)
    else:
        scores = values.get("luong_attention/attention_g", 1) * np.einsum("bsu,bu->bs", keys, h)
    scores = np.where(np.arange(4) < np.array(MEMORY_LENGTHS)[:, None], scores, -np.inf)
    alignments = softmax(scores)
    attention = np.einsum("bs,bsd->bd", alignments, MEMORY)
    if "attention_layer/kernel" in values:
        attention = np.concatenate([h, attention], 1) @ values["attention_layer/kernel"]
    return h, attention, alignments


@pytest.mark.parametrize("kind", ["bahdanau", "bahdanau normalized", "luong", "luong scaled"])
@pytest.mark.parametrize("size", [None, 7])
def test_decoding_what_is_given(kind, size):
    cell = wrapper(kind, attention_layer_size=size, alignment_history=True)
    helper = seq2seq.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float64))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
    history = state.alignment_history.stack()
    assert outputs.rnn_output.get_shape().as_list() == [2, None, size or 3]
    with tf.Session() as session:
        values = initialise(session)
        got, last, sizes, history = session.run([outputs, (state.cell_state, state.attention, state.time), lengths, history])
    h, attention, want, aligned = np.zeros([2, 5]), np.zeros([2, size or 3]), [], []
    for t in range(3):
        new_h, new_attention, alignments = step(values, INPUTS[:, t], h, attention)
        running = (t < np.array(LENGTHS))[:, None]
        want.append(np.where(running, new_attention, 0))
        h, attention = np.where(running, new_h, h), np.where(running, new_attention, attention)
        aligned.append(alignments)
    want = np.stack(want, 1)
    np.testing.assert_allclose(got.rnn_output, want, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(got.sample_id, np.where(np.arange(3) < np.array(LENGTHS)[:, None], want.argmax(-1), 0))
    np.testing.assert_allclose(last[0], h, rtol=1e-10)
    np.testing.assert_allclose(last[1], attention, rtol=1e-10)
    np.testing.assert_allclose(np.stack(aligned)[:, 0], history[:, 0], rtol=1e-10)
    assert last[2] == 3 and sizes.tolist() == LENGTHS


def test_variables_have_tensorflows_names():
    cell = wrapper("bahdanau normalized", attention_layer_size=7)
    helper = seq2seq.TrainingHelper(tf.constant(INPUTS), LENGTHS)
    seq2seq.dynamic_decode(seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float64)))
    inside = "decoder/attention_wrapper/"
    assert [v.op.name for v in tf.trainable_variables()] == [
        "memory_layer/kernel",
        inside + "basic_rnn_cell/kernel",
        inside + "basic_rnn_cell/bias",
        inside + "bahdanau_attention/query_layer/kernel",
        inside + "bahdanau_attention/attention_v",
        inside + "bahdanau_attention/attention_g",
        inside + "bahdanau_attention/attention_b",
        inside + "attention_layer/kernel",
    ]


def test_training_learns_to_copy_the_memory():
    tf.set_random_seed(1)
    symbols = np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1], [1, 3, 2]])
    table = tf.get_variable("table", [4, 8])
    memory, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(16), tf.nn.embedding_lookup(table, symbols), dtype=tf.float32)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(16), seq2seq.LuongAttention(16, memory), 16)
    layer = tf.layers.Dense(4)
    fed = np.concatenate([np.zeros([4, 1], int), symbols[:, :2]], 1)
    trained, _, _ = seq2seq.dynamic_decode(
        seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, fed), [3] * 4), cell.zero_state(4, tf.float32), layer)
    )
    loss = seq2seq.sequence_loss(trained.rnn_output, symbols, tf.ones([4, 3]))
    train = tf.train.AdamOptimizer(0.03).minimize(loss)
    with tf.variable_scope("", reuse=True):
        greedy, _, lengths = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(cell, seq2seq.GreedyEmbeddingHelper(table, [0] * 4, 0), cell.zero_state(4, tf.float32), layer), maximum_iterations=3
        )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(train)
        made, sizes = session.run([greedy.sample_id, lengths])
    assert (made == symbols).mean() > 0.9 and sizes.tolist() == [3] * 4


def test_greedy_decoding_stops_at_the_end_token():
    table = tf.constant(np.eye(4))

    class Next(tf.nn.rnn_cell.RNNCell):
        """From one symbol to the one before: 3, 2, 1, 0."""

        state_size = output_size = 4

        def __call__(self, inputs, state, scope=None):
            return tf.matmul(inputs, tf.constant(np.roll(np.eye(4), -1, 1))), state + 1

    cell = Next()
    for helper in (seq2seq.GreedyEmbeddingHelper(table, [3, 1], 0), seq2seq.SampleEmbeddingHelper(table, [3, 1], 0, softmax_temperature=0.01, seed=1)):
        decoder = seq2seq.BasicDecoder(cell, helper, tf.zeros([2, 4], tf.float64))
        outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
        early, _, cut = seq2seq.dynamic_decode(decoder, output_time_major=True, maximum_iterations=2)
        with tf.Session() as session:
            ids, last, sizes, rows, few = session.run([outputs.sample_id, state, lengths, early.sample_id, cut])
        assert ids.tolist() == [[2, 1, 0], [0, 0, 0]] and sizes.tolist() == [3, 1]
        assert last[:, 0].tolist() == [3, 1]
        assert rows.shape == (2, 2) and rows[:, 0].tolist() == [2, 1] and few.tolist() == [2, 1]


def test_mistakes_are_named():
    with pytest.raises(TypeError, match="AttentionMechanism"):
        seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(3), 5)
    with pytest.raises(TypeError, match="Decoder"):
        seq2seq.dynamic_decode(3)
    with pytest.raises(TypeError, match="Helper"):
        seq2seq.BasicDecoder(tf.nn.rnn_cell.GRUCell(3), 3, None)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), seq2seq.LuongAttention(5, tf.constant(MEMORY)))
    with pytest.raises(ValueError, match="num_units"):
        cell(tf.zeros([2, 2], tf.float64), cell.zero_state(2, tf.float64))
    with pytest.raises(TypeError, match="AttentionWrapperState"):
        cell(tf.zeros([2, 2], tf.float64), tf.zeros([2, 4], tf.float64))
    with pytest.raises(ValueError, match="sampling_probability must be a scalar"):
        seq2seq.ScheduledOutputTrainingHelper(tf.constant(INPUTS), LENGTHS, [0.5, 0.5])
    with pytest.raises(ValueError, match="mode"):
        seq2seq.monotonic_attention(tf.zeros([1, 2]), tf.zeros([1, 2]), "soft")
    state = seq2seq.tile_batch(tf.zeros([2, 4]), 3)
    with pytest.raises(ValueError, match="AttentionWrapper"):
        seq2seq.BeamSearchDecoder(tf.nn.rnn_cell.GRUCell(4), tf.eye(4), [1, 2], 0, state, 3, coverage_penalty_weight=0.1)


def test_tile_batch_repeats_examples():
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(seq2seq.tile_batch(tf.constant([[1, 2], [3, 4]]), 2)), [[1, 2], [1, 2], [3, 4], [3, 4]])


def test_gather_tree_follows_parents():
    ids = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]])
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]])
    with tf.Session() as session:
        made = session.run(seq2seq.gather_tree(ids, parents, [3], 10))
    np.testing.assert_array_equal(made[:, 0].T, [[2, 6, 7, 10], [2, 5, 8, 10], [2, 6, 9, 10]])
    with tf.Session() as session:  # beyond the first end token there are only end tokens
        made = session.run(seq2seq.gather_tree(ids, parents, [3], 6))
    np.testing.assert_array_equal(made[:, 0].T, [[2, 6, 6, 6], [2, 5, 8, 6], [2, 6, 6, 6]])


def hypotheses(logits, start, width, end, steps, weight):
    """The search by its definition: [(score, ids)] of the most likely sequences, the next symbol depending on the last one."""
    log = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    alive = [(0.0, [], False, 0)]
    for _ in range(steps):
        if all(done for _, _, done, _ in alive):
            break
        tried = []
        for p, ids, done, length in alive:
            for k in range(len(log)):
                if done:
                    if k == end:
                        tried.append((p, ids + [end], True, length, length))
                else:
                    q = p + log[ids[-1] if ids else start, k]
                    tried.append((q, ids + [k], k == end, length + 1, length + (k != end)))
        tried.sort(key=lambda h: -h[0] / ((5.0 + h[4]) / 6.0) ** weight)
        alive = [h[:4] for h in tried[:width]]
    return alive


@pytest.mark.parametrize("weight", [0.0, 0.8])
@pytest.mark.parametrize("width", [1, 3])
def test_beam_search(width, weight):
    logits = 2 * np.sin(np.arange(25.0) * 1.7).reshape(5, 5)

    class Last(tf.nn.rnn_cell.RNNCell):
        """Logits that depend on the last symbol; the state counts, and holds the symbol."""

        output_size, state_size = 5, (1, 5)

        def __call__(self, inputs, state, scope=None):
            return tf.matmul(inputs, tf.constant(logits)), (state[0] + 1, inputs)

    state = seq2seq.tile_batch((tf.zeros([2, 1], tf.float64), tf.zeros([2, 5], tf.float64)), width)
    decoder = seq2seq.BeamSearchDecoder(Last(), tf.constant(np.eye(5)), [1, 3], 0, state, width, length_penalty_weight=weight)
    outputs, last, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    assert outputs.predicted_ids.get_shape().as_list() == [2, None, width]
    with tf.Session() as session:
        ids, log_probs, lengths, states = session.run([outputs.predicted_ids, last.log_probs, last.lengths, last.cell_state])
    for example, start in enumerate([1, 3]):
        want = hypotheses(logits, start, width, 0, ids.shape[1], weight)
        for k, (p, symbols, done, length) in enumerate(want):
            assert log_probs[example, k] == pytest.approx(p)
            assert lengths[example, k] == length
            kept = symbols[: max(h[3] for h in want)]
            assert ids[example, : len(kept), k].tolist() == kept, (example, k)
            assert (ids[example, len(kept) :, k] == 0).all()
            if not done:  # the states went the way of the hypotheses
                assert states[1][example, k].argmax() == symbols[-2]


def test_beam_search_with_attention():
    mechanism = seq2seq.BahdanauAttention(6, seq2seq.tile_batch(tf.constant(MEMORY), 3), seq2seq.tile_batch(tf.constant(MEMORY_LENGTHS), 3), dtype=tf.float64)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(5), mechanism, attention_layer_size=4)
    decoder = seq2seq.BeamSearchDecoder(cell, tf.constant(np.eye(4)), [1, 2], 0, cell.zero_state(6, tf.float64), 3)
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ids, scores = session.run([outputs.predicted_ids, outputs.beam_search_decoder_output.scores])
    assert ids.shape[0] == 2 and ids.shape[2] == 3 and (np.diff(scores[:, -1]) <= 0).all()


def monotonic(p, previous):
    """By the definition: the chance of arriving at a step, and of stopping there."""
    made = np.zeros_like(p)
    for b in range(len(p)):
        arrives = 0.0
        for i in range(p.shape[1]):
            arrives = (1 - p[b, i - 1] if i else 1.0) * arrives + previous[b, i]
            made[b, i] = p[b, i] * arrives
    return made


@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_monotonic_attention(mode):
    p = 0.5 + 0.4 * np.sin(np.arange(12.0)).reshape(2, 6)
    previous = softmax(np.cos(np.arange(12.0)).reshape(2, 6))
    if mode == "hard":
        p, previous = np.round(p), np.eye(6)[[0, 2]]
    made = seq2seq.monotonic_attention(tf.constant(p), tf.constant(previous), mode)
    assert made.get_shape().as_list() == [2, 6]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(made), monotonic(p, previous), rtol=1e-9, atol=1e-12)
        x = np.array([[0.5, 0.0, 0.25, 1.0]])
        np.testing.assert_allclose(session.run(seq2seq.safe_cumprod(tf.constant(x), 1, exclusive=True)), [[1, 0.5, 0, 0]], atol=1e-12)


@pytest.mark.parametrize("kind", ["bahdanau", "luong"])
@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_a_cell_that_reads_monotonically(kind, mode):
    memory = tf.constant(MEMORY)
    if kind == "bahdanau":
        mechanism = seq2seq.BahdanauMonotonicAttention(6, memory, MEMORY_LENGTHS, mode=mode, score_bias_init=0.5, dtype=tf.float64)
    else:
        mechanism = seq2seq.LuongMonotonicAttention(5, memory, MEMORY_LENGTHS, mode=mode, score_bias_init=0.5)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(5), mechanism)
    state, steps = cell.zero_state(2, tf.float64), []
    for t in range(3):
        with tf.variable_scope("decoder", reuse=t > 0):
            _, state = cell(tf.constant(INPUTS[:, t]), state)
        steps.append(state.alignments)
    with tf.Session() as session:
        values = initialise(session)
        got = session.run(steps)
    scope = kind + "_monotonic_attention/"
    assert scope + "attention_score_bias" in values
    keys, h = MEMORY @ values["memory_layer/kernel"], np.zeros([2, 5])
    inside = np.arange(4) < np.array(MEMORY_LENGTHS)[:, None]
    keys, attention, alignments = np.where(inside[:, :, None], keys, 0), np.zeros([2, 3]), np.eye(4)[[0, 0]]
    for t in range(3):
        h = np.tanh(np.concatenate([INPUTS[:, t], attention, h], 1) @ values["basic_rnn_cell/kernel"] + values["basic_rnn_cell/bias"])
        if kind == "bahdanau":
            scores = (values[scope + "attention_v"] * np.tanh(keys + (h @ values[scope + "query_layer/kernel"])[:, None])).sum(-1)
        else:
            scores = np.einsum("bsu,bu->bs", keys, h)
        scores = np.where(inside, scores + values[scope + "attention_score_bias"], -np.inf)
        p = (scores > 0).astype(float) if mode == "hard" else 1 / (1 + np.exp(-scores))
        alignments = monotonic(p, alignments)
        np.testing.assert_allclose(got[t], alignments, rtol=1e-6, atol=1e-9)
        attention = np.einsum("bs,bsd->bd", alignments, np.where(inside[:, :, None], MEMORY, 0))


class Doubles(tf.nn.rnn_cell.RNNCell):
    """Outputs twice its inputs."""

    output_size, state_size = 2, 1

    def __call__(self, inputs, state, scope=None):
        return inputs * 2, state


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("extra", [False, True])
def test_scheduled_feeding_of_outputs(probability, extra):
    inputs, lengths = np.arange(1.0, 21.0).reshape(2, 5, 2), [5, 4]
    more = np.full([2, 5, 1], 7.0) * np.arange(5.0)[:, None]
    seen = []

    class Cell(Doubles):
        def __call__(self, inputs, state, scope=None):
            seen.append(int(inputs.get_shape()[-1]))
            return super().__call__(inputs[:, :2], state)

    helper = seq2seq.ScheduledOutputTrainingHelper(
        tf.constant(inputs), lengths, tf.constant(probability), seed=3, next_inputs_fn=lambda x: x + 1, auxiliary_inputs=tf.constant(more) if extra else None
    )
    outputs, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(Cell(), helper, tf.zeros([2, 1], tf.float64)), impute_finished=True)
    with tf.Session() as session:
        got, chosen = session.run([outputs.rnn_output, outputs.sample_id])
    assert seen == [3 if extra else 2]
    mean = chosen[:, :4].mean()
    assert mean == probability if probability != 0.5 else 0 < mean < 1
    for b in range(2):
        fed = inputs[b, 0]
        for t in range(lengths[b]):
            np.testing.assert_array_equal(got[b, t], 2 * fed)
            if t + 1 < lengths[b]:
                fed = 2 * fed + 1 if chosen[b, t] else inputs[b, t + 1]
    assert (got[1, 4] == 0).all()


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0, [1.0, 0.0]])
def test_scheduled_feeding_of_embeddings(probability):
    inputs, table = np.arange(1.0, 13.0).reshape(2, 3, 2), np.arange(100.0, 108.0).reshape(4, 2)
    helper = seq2seq.ScheduledEmbeddingTrainingHelper(tf.constant(inputs), [3, 3], tf.constant(table), probability, seed=5, scheduling_seed=6)
    layer = tf.layers.Dense(4, kernel_initializer=tf.zeros_initializer(), bias_initializer=tf.constant_initializer([0.0, 0.0, 50.0, 0.0]))
    fed = []

    class Cell(Doubles):
        output_size = state_size = 2

        def __call__(self, inputs, state, scope=None):
            return inputs, inputs

    decoder = seq2seq.BasicDecoder(Cell(), helper, tf.zeros([2, 2], tf.float64), output_layer=layer)
    _, x, state = decoder.initialize()
    for t in range(3):
        fed.append(x)
        outputs, state, x, _ = decoder.step(tf.constant(t), x, state)
        fed.append(outputs.sample_id)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(fed)
    np.testing.assert_array_equal(values[0], inputs[:, 0])
    for t in range(2):
        ids, now = values[2 * t + 1], values[2 * t + 2]
        assert set(ids) <= {-1, 2}
        for b in range(2):
            np.testing.assert_array_equal(now[b], table[2] if ids[b] == 2 else inputs[b, t + 1])
        if probability in (0.0, 1.0):
            assert (ids == (2 if probability else -1)).all()
        if isinstance(probability, list):
            assert ids.tolist() == [2, -1]


def test_beam_search_prefers_what_reads_all_of_the_memory():
    def penalty(read, finished):
        with tf.Session() as session:
            return session.run(beam_search._penalty_of_gaps(tf.constant(read), tf.constant(finished)))

    read = np.array([[[0.5, 2.0, 0.25], [0.0, 0.5, 1.0]], [[0.5, 0.5, 0.0], [0.1, 0.2, 0.3]]])
    finished = np.array([[True, True], [False, True]])
    want = np.log(np.minimum(np.where(read == 0, 1, read), 1)).sum(-1) * finished
    np.testing.assert_allclose(penalty(read, finished), want, rtol=1e-12)
    memory, lengths = seq2seq.tile_batch(tf.constant(MEMORY), 3), seq2seq.tile_batch(tf.constant(MEMORY_LENGTHS), 3)
    mechanism = seq2seq.LuongAttention(5, memory, lengths)
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.BasicRNNCell(5), mechanism, attention_layer_size=4)
    decoder = seq2seq.BeamSearchDecoder(cell, tf.constant(np.eye(4)), [1, 2], 0, cell.zero_state(6, tf.float64), 3, coverage_penalty_weight=0.5)
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=8)
    assert state.accumulated_attention_probs.get_shape().as_list() == [2, 3, 4]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        best, final = session.run([outputs.beam_search_decoder_output.scores, state])
    read = final.accumulated_attention_probs
    assert (read[0, :, 2:] == 0).all()
    # Each step of a hypothesis reads as much as one step, and a finished one nothing more.
    np.testing.assert_allclose(read.sum(-1), final.lengths, rtol=1e-9)
    # The penalty counts from the step after that in which a hypothesis ends.
    ended_before = final.finished & (final.lengths < best.shape[1])
    want = final.log_probs + ended_before * 0.5 * np.log(np.minimum(np.where(read == 0, 1, read), 1)).sum(-1)
    np.testing.assert_allclose(best[:, -1], want, rtol=1e-9)


def test_steps_of_beam_search_by_themselves():
    state = beam_search.BeamSearchDecoderState(tf.zeros([1, 2]), tf.constant([[-1.0, -2.0]]), tf.constant([[False, True]]), tf.constant([[2, 1]], tf.int64))
    logits = tf.constant([[[0.0, 1.0, 5.0], [9.0, 9.0, 9.0]]])
    output, following = beam_search._beam_search_step(3, logits, state.cell_state, state, tf.constant(1), 2, 0, 0.0)
    masked = beam_search._mask_probs(logits, 0, tf.constant([[0.0, 1.0]]))
    with tf.Session() as session:
        ids, parents, lengths, finished, kept = session.run([output.predicted_ids, output.parent_ids, following.lengths, following.finished, masked])
    assert ids.tolist() == [[2, 0]] and parents.tolist() == [[0, 1]] and lengths.tolist() == [[3, 1]] and finished.tolist() == [[False, True]]
    assert kept[0, 0].tolist() == [0, 1, 5] and kept[0, 1].tolist() == [0, np.finfo(np.float32).min, np.finfo(np.float32).min]


def test_hypotheses_of_their_own_lengths():
    ids = np.array([[[1, 2]], [[3, 4]], [[5, 6]]], np.int32)
    parents = np.array([[[0, 0]], [[1, 0]], [[1, 0]]], np.int32)
    with tf.Session() as session:
        made = session.run(seq2seq.gather_tree(ids, parents, sequence_length=[[3, 2]]))
        assert made[:, 0].tolist() == [[1, 1], [4, 4], [5, -1]]
        assert session.run(seq2seq.gather_tree(ids, parents, [3], end_token=9))[:, 0].tolist() == [[1, 2], [4, 3], [5, 6]]
    with pytest.raises(TypeError, match="end_token"):
        seq2seq.gather_tree(ids, parents, [3])


def test_parents_that_are_no_beams():
    ids = np.ones([3, 2, 2], np.int32)
    parents = np.zeros([3, 2, 2], np.int32)
    parents[0], parents[1, 1, 0] = 7, -1  # those of the first time lead nowhere
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"parent id -1 at \(batch, time, beam\) == \(1, 0, 0\)"):
            session.run(seq2seq.gather_tree(ids, parents, [3, 3], end_token=9))
        parents[1, 1, 0] = 1
        session.run(seq2seq.gather_tree(ids, parents, [3, 3], end_token=9))


def test_what_was_written_for_the_last_beams():
    # Two examples of two beams; example 0 changes places in step 1, example 1 ends after two steps.
    parents = tf.constant([[[0, 0], [0, 0]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    lengths = tf.constant([[3, 3], [2, 2]], tf.int64)
    written = np.arange(3 * 4 * 2).reshape(3, 4, 2)
    made = tf.contrib.seq2seq.gather_tree_from_array(tf.constant(written), parents, lengths)
    apart = tf.contrib.seq2seq.gather_tree_from_array(tf.constant(written.reshape(3, 2, 2, 2)), parents, lengths)
    with tf.Session() as session:
        got, of_beams = session.run([made, apart])
    np.testing.assert_array_equal(got, of_beams.reshape(got.shape))
    np.testing.assert_array_equal(got[:, :2], written[[[0], [1], [2]], [[1, 0], [0, 1], [0, 1]]])
    np.testing.assert_array_equal(got[:, 2:], written[:, 2:])


def test_histories_of_attention_are_those_of_hypotheses():
    seq2seq, batch, beams = tf.contrib.seq2seq, 2, 3
    memory = seq2seq.tile_batch(tf.constant(np.random.default_rng(1).normal(size=(batch, 5, 4)).astype(np.float32)), beams)

    def decoded(reorder):
        with tf.variable_scope("decode", reuse=tf.AUTO_REUSE, initializer=tf.random_normal_initializer(seed=3)):
            cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), seq2seq.LuongAttention(4, memory), alignment_history=True)
            decoder = seq2seq.BeamSearchDecoder(
                cell,
                tf.get_variable("embedding", [7, 4]),
                tf.zeros([batch], tf.int32),
                1,
                cell.zero_state(batch * beams, tf.float32),
                beams,
                tf.layers.Dense(7, name="out"),
                reorder_tensor_arrays=reorder,
            )
            return seq2seq.dynamic_decode(decoder, maximum_iterations=4)

    (outputs, state, _), (_, plain, _) = decoded(True), decoded(False)
    history, written = state.cell_state.alignment_history, plain.cell_state.alignment_history.stack()
    wanted = seq2seq.gather_tree_from_array(written, tf.transpose(outputs.beam_search_decoder_output.parent_ids, [1, 0, 2]), state.lengths)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got, of_steps, raw = session.run([history, wanted, written])
    assert got.shape == (4, batch * beams, 5) and (got != raw).any()
    np.testing.assert_allclose(got, of_steps, rtol=1e-5)


@pytest.mark.parametrize("kind", ["BahdanauAttention", "LuongAttention", "BahdanauMonotonicAttention", "LuongMonotonicAttention"])
def test_keys_and_values_of_programs(kind):
    mechanism = getattr(seq2seq, kind)(5, tf.constant(MEMORY), dtype=tf.float64, custom_key_value_fn=lambda keys, values: (2 * keys, values + 1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        keys, values, kernel = session.run([mechanism.keys, mechanism.values, mechanism.memory_layer.kernel])
    np.testing.assert_allclose(keys, 2 * MEMORY @ kernel)
    np.testing.assert_array_equal(values, MEMORY + 1)
    assert mechanism.memory_layer.dtype == "float64" or mechanism.memory_layer.dtype == tf.float64


@pytest.mark.parametrize("lengths, total, last", [(None, 3.0402913, 0.0375191), ([4, 2], 2.8046722, 0.0)])
def test_alignments_are_kept_where_dynamic_rnn_runs_the_cell(lengths, total, last):
    """As in Tacotron. The numbers are TensorFlow 1.15's."""
    state = np.random.RandomState(0)
    memory, x = state.randn(2, 5, 3).astype(np.float32), state.randn(2, 4, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("a", initializer=tf.constant_initializer(0.1)):
            attention = tf.contrib.seq2seq.BahdanauAttention(3, tf.constant(memory))
            cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(3), attention, 3, alignment_history=True)
            outputs, ended = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
        session.run(tf.global_variables_initializer())
        made, kept = session.run([outputs, tf.transpose(ended.alignment_history.stack(), [1, 2, 0])])
        np.testing.assert_allclose([made.sum(), made[1, 3, 0]], [total, last], rtol=1e-5)
        assert kept.shape == (2, 5, 4)
        np.testing.assert_allclose((kept * np.arange(20).reshape(5, 4)).sum(), 76.1436, rtol=1e-5)
