# SPDX-License-Identifier: Apache-2.0
"""What contrib has beyond tf.nn: conditional random fields, cells; and the namespaces and modules of other versions."""

import itertools
import sys

import numpy as np
import pytest

import millrace as tf

CELLS = {
    "nas": lambda r: r.NASCell(6),
    "nas projected": lambda r: r.NASCell(6, 3, use_biases=True),
    "normalised": lambda r: r.LayerNormBasicLSTMCell(6, dropout_keep_prob=0.9),
    "not normalised": lambda r: r.LayerNormBasicLSTMCell(6, layer_norm=False),
    "update gate": lambda r: r.UGRNNCell(6),
    "highway": lambda r: r.HighwayWrapper(r.GRUCell(4)),
    "attention": lambda r: r.AttentionCellWrapper(r.BasicLSTMCell(6), 3),
    "attention, flat": lambda r: r.AttentionCellWrapper(r.GRUCell(6), 3, state_is_tuple=False),
    "coupled": lambda r: r.CoupledInputForgetGateLSTMCell(6, use_peepholes=True, num_proj=5, proj_clip=0.9),
    "coupled, flat": lambda r: r.CoupledInputForgetGateLSTMCell(6, state_is_tuple=False, layer_norm=True),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells(name):
    x = np.random.RandomState(0).randn(3, 5, 4).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        outputs, state = tf.nn.dynamic_rnn(CELLS[name](tf.contrib.rnn), x, dtype=tf.float32, sequence_length=[5, 3, 1])
        grads = tf.gradients(tf.reduce_sum(outputs), tf.trainable_variables())
        sess.run(tf.global_variables_initializer())
        made, slopes, _ = sess.run([outputs, grads, state])
        assert list(made.shape) == outputs.get_shape().as_list() and (made[1, 3:] == 0).all() and np.abs(made[0]).max() > 0
        assert all(np.abs(slope).sum() > 0 for slope in slopes)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_nas_cell_by_hand():
    rng = np.random.RandomState(1)
    w, r, x, c, h = (rng.randn(*s).astype(np.float32) for s in ((2, 24), (3, 24), (4, 2), (4, 3), (4, 3)))
    with tf.Graph().as_default(), tf.Session() as sess:
        output, state = tf.contrib.rnn.NASCell(3)(tf.constant(x), tf.contrib.rnn.LSTMStateTuple(tf.constant(c), tf.constant(h)))
        values = {v.op.name: v for v in tf.global_variables()}
        sess.run([values["nas_cell/kernel"].assign(w), values["nas_cell/recurrent_kernel"].assign(r)])
        made, new = sess.run([output, state])
    a, b = np.split(x.dot(w), 8, 1), np.split(h.dot(r), 8, 1)
    first = np.tanh(sigmoid(a[0] + b[0]) * np.maximum(a[1] + b[1], 0) + 0)
    rest = np.tanh(np.tanh(np.tanh(a[4] + b[4]) * sigmoid(a[5] + b[5])) + sigmoid(np.tanh(a[6] + b[6]) + sigmoid(a[7] + b[7])))
    expected = np.tanh(first + c) * np.tanh(sigmoid(a[2] + b[2]) + np.maximum(a[3] * b[3], 0))
    np.testing.assert_allclose(new.c, expected, rtol=1e-4)
    np.testing.assert_allclose(made, np.tanh(expected * rest), rtol=1e-4)


def test_images_and_whole_sequences():
    rnn = tf.contrib.rnn
    with tf.Graph().as_default(), tf.Session() as sess:
        images = tf.constant(np.random.RandomState(0).randn(2, 3, 8, 8, 2).astype(np.float32))
        outputs, state = tf.nn.dynamic_rnn(rnn.ConvLSTMCell(2, [8, 8, 2], 4, [3, 3]), images, dtype=tf.float32)
        x = tf.constant(np.random.RandomState(1).randn(5, 3, 4).astype(np.float32))
        with tf.variable_scope("a"):
            forwards, _ = rnn.LSTMBlockFusedCell(6)(x, dtype=tf.float32)
        with tf.variable_scope("a", reuse=True):
            backwards, _ = rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(6, reuse=True))(x[::-1], dtype=tf.float32)
        sess.run(tf.global_variables_initializer())
        assert sess.run(outputs).shape == (2, 3, 8, 8, 4) and sess.run(state).c.shape == (2, 8, 8, 4)
        np.testing.assert_allclose(sess.run(forwards), sess.run(backwards)[::-1], rtol=1e-5)


def test_conditional_random_fields():
    crf, rng = tf.contrib.crf, np.random.RandomState(0)
    x, transitions, lengths = rng.randn(3, 4, 3).astype(np.float32), rng.randn(3, 3).astype(np.float32), [4, 2, 1]
    tags = rng.randint(0, 3, (3, 4))
    with tf.Graph().as_default(), tf.Session() as sess:
        unary = tf.placeholder(tf.float32, [None, None, 3])
        made, own = crf.crf_log_likelihood(unary, tags, lengths)
        assert own.op.name == "transitions" and own.get_shape().as_list() == [3, 3]
        logs, _ = crf.crf_log_likelihood(unary, tags, lengths, transitions)
        slope = tf.gradients(logs, unary)[0]
        best = crf.crf_decode(unary, transitions, lengths)
        sess.run(tf.global_variables_initializer())
        assert np.isfinite(sess.run(made, {unary: x})).all()
        logs, slope, (paths, scores) = sess.run([logs, slope, best], {unary: x})
    for b, length in enumerate(lengths):

        def score(path):
            return sum(x[b, t, path[t]] for t in range(length)) + sum(transitions[path[t], path[t + 1]] for t in range(length - 1))

        every = list(itertools.product(range(3), repeat=length))
        sums = np.array([score(path) for path in every])
        assert logs[b] == pytest.approx(score(tags[b]) - np.log(np.exp(sums).sum()), abs=1e-4)
        assert paths[b].tolist() == list(every[sums.argmax()]) + [0] * (4 - length) and scores[b] == pytest.approx(sums.max(), abs=1e-4)
        assert crf.viterbi_decode(x[b, :length], transitions)[0] == list(every[sums.argmax()])
    assert np.abs(slope.sum(2)).max() < 1e-5


def test_errors_in_a_template_say_where_it_was_made():
    def fails(missing):
        raise KeyError(missing, 2)

    with tf.Graph().as_default():
        made = tf.make_template("", fails)
        with pytest.raises(KeyError) as caught:
            made("this")
        first, second = caught.value.args
        assert first.startswith("this\n\noriginally defined at:\n") and second == 2
        assert 'made = tf.make_template("", fails)' in first and "template.py" not in first
        with pytest.raises(ValueError, match="name cannot be None"):
            tf.make_template(None, fails)


def test_templates():
    with tf.Graph().as_default(), tf.Session() as sess:

        def line(x, start):
            return x * tf.get_variable("w", [], initializer=tf.constant_initializer(start))

        twice = tf.make_template("line", line, start=2.0)
        a, b, other = twice(1.0), twice(10.0), tf.make_template("line", line)(1.0, start=3.0)
        assert [v.name for v in tf.global_variables()] == ["line/w:0", "line_1/w:0"] and twice.variable_scope.name == "line"
        assert [v.name for v in twice.trainable_variables] == ["line/w:0"]
        sess.run(tf.global_variables_initializer())
        assert sess.run([a, b, other]) == [2.0, 20.0, 3.0]


def test_namespaces():
    with tf.Graph().as_default(), tf.Session() as sess:
        assert tf.math.reduce_sum is tf.reduce_sum and tf.random.uniform is tf.random_uniform and tf.io.gfile.GFile is tf.gfile.GFile
        assert sess.run([tf.math.log(1.0), tf.math.reduce_std([1.0, 3.0]), tf.linalg.trace(tf.eye(3)), tf.math.divide_no_nan(1.0, 0.0)]) == [0, 1, 3, 0]
        assert sess.run(tf.math.unsorted_segment_mean([[2.0], [4.0], [1.0]], [0, 0, 2], 3)).tolist() == [[3.0], [0.0], [1.0]]
        assert sess.run(tf.math.polyval([2.0, 0.0, 1.0], 3.0)) == 19 and sess.run(tf.linalg.logdet(4.0 * tf.eye(2))) == pytest.approx(np.log(16))
        assert sess.run(tf.math.lbeta([1.0, 2.0])) == pytest.approx(-np.log(2)) and sess.run(tf.math.log_sigmoid(0.0)) == pytest.approx(-np.log(2))
        assert sess.run(tf.scalar_mul(2.0, tf.constant([1.0, 2.0]))).tolist() == [2, 4]
        assert abs(sess.run(tf.random.poisson([4.0], [2000])).mean() - 4) < 0.3
        with pytest.raises(AttributeError, match="tf.math.no_such_name is not provided"):
            tf.math.no_such_name
        assert "reduce_sum" in dir(tf.math) and not hasattr(tf, "functools")


def test_lists_that_python_3_makes_lazily():
    with tf.Graph().as_default(), tf.Session() as sess:
        weights = {"a": tf.Variable(1.0), "b": tf.Variable(2.0)}
        decay = tf.add_n(map(tf.square, weights.values()))
        for variables in (weights.values(), weights, filter(None, list(weights.values())), (v for v in weights.values())):
            step = tf.train.GradientDescentOptimizer(0.25).minimize(decay, var_list=variables)
            sess.run(tf.global_variables_initializer())
            sess.run(step)
            assert sess.run([weights["a"], weights["b"]]) == [0.5, 1.0]
        assert sess.run(tf.gradients(decay, weights.values())) == [1.0, 2.0]
        assert sess.run(tf.concat([tf.fill([1], i) for i in range(3)], 0)).tolist() == [0, 1, 2]
        assert sess.run(tf.add_n(weights.values())) == 1.5


def test_texts_of_the_tutorials(tmp_path, monkeypatch):
    from millrace.compat import imports

    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    imports.install()
    from tensorflow.models.rnn.ptb import reader
    from tensorflow.models.rnn.translate import data_utils

    for part, text in (("train", " the cat sat \n the mat \n"), ("valid", " the dog sat \n"), ("test", " cat \n")):
        (tmp_path / ("ptb.%s.txt" % part)).write_text(text)
    train, valid, test, count = reader.ptb_raw_data(str(tmp_path))
    assert (train, valid, test, count) == ([1, 2, 4, 0, 1, 3, 0], [1, 4, 0], [2, 0], 5)
    x, y = next(reader.ptb_iterator(range(20), 2, 3))
    assert x.tolist() == [[0, 1, 2], [10, 11, 12]] and y.tolist() == [[1, 2, 3], [11, 12, 13]]
    vocabulary = str(tmp_path / "vocabulary")
    data_utils.create_vocabulary(vocabulary, str(tmp_path / "ptb.train.txt"), 7)
    numbers, words = data_utils.initialize_vocabulary(vocabulary)
    assert words[:5] == [b"_PAD", b"_GO", b"_EOS", b"_UNK", b"the"]
    assert data_utils.sentence_to_token_ids("The, the 12 cat", numbers) == [3, 3, 4, 3, numbers[b"cat"]]
    for name in [n for n in sys.modules if n == "tensorflow" or n.startswith("tensorflow.")]:
        monkeypatch.delitem(sys.modules, name)


def test_an_activation_that_the_library_does_not_know():
    x = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    made = []
    for activation in (tf.tanh, lambda v: tf.tanh(v)):
        with tf.Graph().as_default(), tf.Session() as sess:
            cell = tf.nn.rnn_cell.LSTMCell(5, use_peepholes=True, cell_clip=0.4, num_proj=3, proj_clip=0.2, activation=activation)
            outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
            for v in tf.global_variables():
                shape = v.get_shape().as_list()
                sess.run(v.assign(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)))
            made.append(sess.run(outputs))
    np.testing.assert_allclose(made[0], made[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "make, size",
    [
        (lambda c, **k: c.BasicLSTMCell(6, **k), 12),
        (lambda c, **k: c.LSTMCell(6, num_proj=4, **k), 10),
        (lambda c, **k: c.MultiRNNCell([c.BasicLSTMCell(5, **k), c.GRUCell(4)], **k), 14),
    ],
)
def test_states_in_one_tensor_as_in_0_x(make, size):
    x, start = np.random.RandomState(0).randn(3, 4, 5).astype(np.float32), np.full([3, size], 0.1, np.float32)
    made = []
    for keywords in ({}, {"state_is_tuple": False}):
        with tf.Graph().as_default(), tf.Session() as sess:
            outputs, state = tf.nn.dynamic_rnn(make(tf.nn.rnn_cell, **keywords), x, initial_state=start)
            listed, _ = tf.nn.rnn(make(tf.nn.rnn_cell, **keywords), tf.unstack(tf.constant(x), axis=1), initial_state=tf.constant(start), scope="again")
            for v in tf.global_variables():
                shape = v.get_shape().as_list()
                sess.run(v.assign(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)))
            made.append(sess.run([outputs, state, listed[-1]]))
            assert made[-1][1].shape == (3, size)
            np.testing.assert_allclose(made[-1][0][:, -1], made[-1][2], rtol=1e-6)
    np.testing.assert_array_equal(made[0][0], made[1][0])


def test_a_gradient_that_calls_a_function_without_a_public_name():
    from millrace.ops import gen_ops

    with tf.Graph().as_default() as graph, tf.Session() as sess:

        @tf.RegisterGradient("Guided")
        def _guided(op, grad):
            return tf.where(grad > 0, gen_ops._relu_grad(grad, op.outputs[0]), tf.zeros_like(grad))

        x = tf.constant([1.0, -2.0, 3.0])
        with graph.gradient_override_map({"Relu": "Guided"}):
            y = tf.nn.relu(x)
        assert sess.run(tf.gradients(y, x, tf.constant([2.0, 5.0, -1.0]))[0]).tolist() == [2, 0, 0]
        with pytest.raises(AttributeError, match="no function '_no_such_op'"):
            gen_ops._no_such_op


def test_what_libraries_take_from_python_util():
    from millrace import names

    deprecation, inspect, context = (names.module("python.util." + m) for m in ("deprecation", "tf_inspect", "tf_contextlib"))

    @context.contextmanager
    def doubled(x):
        yield 2 * x

    @tf.contrib.framework.deprecated("2017-01-01", "no longer")
    def old(x=1, *, y=2):
        return x + y

    with doubled(2) as four:
        assert four == 4
    assert old() == 3 and inspect.getfullargspec(old).args == ["x"] and deprecation.deprecated_argument_lookup("axis", None, "dim", 1) == 1


def test_losses_by_all_their_names():
    old, x, y, k = tf.contrib.losses, [[1.0, 2.0], [3.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [1, 0]
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.constant(x), tf.constant(y)
        for made in (
            old.softmax_cross_entropy(x, y),
            old.softmax_cross_entropy(logits=x, onehot_labels=y),
            old.sparse_softmax_cross_entropy(x, k),
            tf.contrib.slim.losses.softmax_cross_entropy(x, labels=y, weight=2.0) / 2.0,
        ):
            assert sess.run(made) == pytest.approx((np.log(1 + np.exp(-1)) + np.log(1 + np.exp(-3))) / 2, rel=1e-5)
        assert sess.run([old.sum_of_squares(x, y), old.sum_of_squares(predictions=x, targets=y, weight=0.5), old.absolute_difference(x, y)]) == [1.5, 0.75, 1]
        assert sess.run([old.mean_pairwise_squared_error(x, y), tf.losses.mean_pairwise_squared_error(y, x)]) == [2, 4]
        assert sess.run(old.cosine_distance(x, y, dim=1)) == -1.5
        assert tf.contrib.slim.metrics is tf.contrib.metrics
        with pytest.raises(TypeError, match="takes at most"):
            old.sum_of_squares(x, y, 1.0, None, 5, 6, 7)


@pytest.mark.parametrize(
    "function",
    [
        lambda inputs, labels: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=inputs),
        lambda labels, inputs: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=inputs),
        lambda labels, logits: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        lambda y, z: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z),
    ],
)
def test_loss_functions_of_each_version(function):
    with tf.Graph().as_default(), tf.Session() as sess:
        logits, target, weight = tf.constant([[1.0, 2.0, 0.0]]), tf.constant([1]), tf.constant([1.0])
        plain = tf.contrib.legacy_seq2seq.sequence_loss([logits], [target], [weight])
        own = tf.contrib.legacy_seq2seq.sequence_loss([logits], [target], [weight], softmax_loss_function=function)
        third = tf.contrib.seq2seq.sequence_loss(logits[:, None], target[:, None], weight[:, None], softmax_loss_function=function)
        made = sess.run([plain, own, third])
        np.testing.assert_allclose(made, [made[0]] * 3, rtol=1e-5)


def test_evaluations_of_checkpoints(tmp_path):
    slim = tf.contrib.slim
    with tf.Graph().as_default():
        w, step = tf.get_variable("w", [], initializer=tf.zeros_initializer()), tf.train.get_or_create_global_step()
        saver = tf.train.Saver()
        with tf.Session() as sess:
            sess.run([w.assign(3.0), step.assign(7)])
            path = saver.save(sess, str(tmp_path / "model.ckpt"), step)
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        mean, update = tf.contrib.metrics.streaming_mean(w)
        tf.summary.scalar("mean", mean)
        logs = str(tmp_path / "logs")
        value = slim.evaluation.evaluate_once("", slim.evaluation.wait_for_new_checkpoint(str(tmp_path)), logs, num_evals=3, eval_op=[update], final_op=mean)
        assert value == 3.0
        events = [e for f in (tmp_path / "logs").iterdir() for e in tf.train.summary_iterator(str(f))]
        assert [(e.step, v.simple_value) for e in events for v in e.summary.value] == [(7, 3.0)]
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        assert slim.evaluation.evaluation_loop("", str(tmp_path), None, final_op=w + 1, eval_interval_secs=0, max_number_of_evaluations=1) == 4.0
        assert slim.evaluation.wait_for_new_checkpoint(str(tmp_path), path, timeout=0.1, seconds_to_sleep=0.05) is None


def test_convolutions_of_each_rank():
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as sess:
        row = layers.convolution(tf.ones([2, 9, 3]), 4, 5, 2, padding="VALID")
        block = layers.conv3d(tf.ones([2, 4, 4, 4, 1]), 5, [2, 2, 2], scope="block")
        image = layers.conv2d(tf.ones([1, 4, 4, 2]), 3, [3, 3], rate=2)
        sess.run(tf.global_variables_initializer())
        assert [v.shape for v in sess.run([row, block, image])] == [(2, 3, 4), (2, 4, 4, 4, 5), (1, 4, 4, 3)]
        assert [v.op.name for v in tf.trainable_variables()] == [
            "Conv/weights",
            "Conv/biases",
            "block/weights",
            "block/biases",
            "Conv_1/weights",
            "Conv_1/biases",
        ]


def test_the_name_in_the_third_place_as_in_0_x():
    with tf.Graph().as_default(), tf.Session() as sess:
        logits, classes, dense = tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([[0.0, 1.0]])
        made = [
            tf.nn.sparse_softmax_cross_entropy_with_logits(logits, classes, "a"),
            tf.nn.softmax_cross_entropy_with_logits(logits, dense, "b"),
            tf.nn.softmax_cross_entropy_with_logits(logits, dense, -1, "c"),
        ]
        np.testing.assert_allclose(sess.run(made), [[np.log(1 + np.exp(-1))]] * 3, rtol=1e-5)
        assert [m.op.name.split("/")[0] for m in made] == ["a", "b", "c"]
        assert tf.nn.sigmoid_cross_entropy_with_logits(logits, dense, "d").op.name == "d"


def test_nodes_of_contrib_layers_lie_in_one_scope():
    with tf.Graph().as_default():
        with tf.variable_scope("net"):
            made = tf.contrib.layers.fully_connected(tf.ones([2, 3]), 4, activation_fn=None, scope="fc8")
        image = tf.contrib.layers.conv2d(tf.ones([1, 4, 4, 3]), 2, [3, 3], scope="net/conv")
        assert [made.op.name, image.op.name] == ["net/fc8/BiasAdd", "net/conv/Relu"]
        with tf.variable_scope("a") as a:
            pass
        with tf.variable_scope("b"), tf.variable_scope(a) as again:
            assert again.original_name_scope == "a/" and tf.identity(1.0).op.name == "b/a/Identity"


def test_losses_of_sequences_are_summed_over_what_is_asked():
    logits, targets, weights = np.sin(np.arange(24.0)).reshape(2, 3, 4), np.array([[1, 2, 0], [3, 0, 0]]), np.array([[1.0, 1.0, 0.5], [1.0, 0.0, 0.0]])
    losses = (np.log(np.exp(logits).sum(2)) - np.take_along_axis(logits, targets[..., None], 2)[..., 0]) * weights
    loss = lambda **asked: tf.contrib.seq2seq.sequence_loss(tf.constant(logits), targets, weights, **asked)
    neither = {"average_across_timesteps": False, "average_across_batch": False}
    with tf.Session() as session:
        made = session.run(
            [loss(sum_over_timesteps=True, **neither), loss(sum_over_batch=True, **neither), loss(sum_over_timesteps=True, sum_over_batch=True, **neither)]
        )
    counts = (weights != 0).astype(float)
    for got, axis in zip(made, (1, 0, None)):
        np.testing.assert_allclose(got, losses.sum(axis) / counts.sum(axis), rtol=1e-6)
    with pytest.raises(ValueError, match="average_across_batch and sum_over_batch"):
        loss(sum_over_batch=True, average_across_timesteps=False)


def test_encoders_and_decoders_share_what_they_should():
    legacy, cells = tf.contrib.legacy_seq2seq, tf.nn.rnn_cell
    encoded, decoded = [np.array([1, 2]), np.array([3, 0])], [np.array([1, 1]), np.array([2, 3])]
    for make in (lambda: cells.GRUCell(3), lambda: cells.DropoutWrapper(cells.GRUCell(3), 0.5), lambda: cells.MultiRNNCell([cells.GRUCell(3)] * 2)):
        with tf.Graph().as_default():
            legacy.embedding_rnn_seq2seq([tf.constant(i) for i in encoded], [tf.constant(i) for i in decoded], make(), 4, 4, 3)
            kernels = [v for v in tf.trainable_variables() if v.op.name.endswith("gates/kernel")]
            assert len(kernels) == 2 and "decoder" not in kernels[0].name and "decoder" in kernels[1].name
    for previous in (False, True, tf.placeholder_with_default(True, [])):
        with tf.variable_scope("tied", reuse=tf.AUTO_REUSE):
            outputs, state = legacy.embedding_tied_rnn_seq2seq(encoded, decoded, cells.GRUCell(3), 4, 3, feed_previous=previous)
        assert [o.shape.as_list() for o in outputs] == [[2, 4]] * 2 and state.shape.as_list() == [2, 3]
    assert sum("embedding" in v.op.name.split("/")[-1] for v in tf.trainable_variables("tied")) == 1 and len(tf.trainable_variables("tied")) == 7
