# SPDX-License-Identifier: Apache-2.0
"""Modules of tf.contrib that only early 1.x has: ndlstm, training's Feeder, FailureTolerator and python_input, signal.frames. Values are NumPy's."""

import socket
import threading

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.contrib import data as contrib_data, framework, ndlstm, signal, training


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


# ---- ndlstm ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, kernel, bias):
    """Outputs of a basic LSTM, forget bias 1, along [length, batch, depth]."""
    size = bias.size // 4
    c = h = np.zeros([x.shape[1], size])
    out = []
    for step in x:
        i, j, f, o = np.split(np.concatenate([step, h], 1) @ kernel + bias, 4, axis=1)
        c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
        h = np.tanh(c) * sigmoid(o)
        out.append(h)
    return np.stack(out)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_sequences_through_an_lstm(dynamic, reverse):
    x = np.random.RandomState(0).rand(5, 2, 3).astype("f")
    out = ndlstm.ndlstm_base(tf.constant(x), 4, reverse=reverse, dynamic=dynamic)
    kernel, bias = tf.trainable_variables()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, *weights = sess.run([out, kernel, bias])
    expected = lstm(x[::-1] if reverse else x, *weights)
    np.testing.assert_allclose(got, expected[::-1] if reverse else expected, rtol=1e-5, atol=1e-6)


def test_last_output_of_a_sequence_and_its_softmax():
    x = np.random.RandomState(1).rand(4, 2, 3).astype("f")
    last = ndlstm.sequence_to_final(tf.constant(x), 5)
    kernel, bias = tf.trainable_variables()
    soft = ndlstm.sequence_softmax(tf.constant(x), 6)
    weights, offsets = tf.trainable_variables()[2:]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got, k, b, p, w, o = sess.run([last, kernel, bias, soft, weights, offsets])
    np.testing.assert_allclose(got, lstm(x, k, b)[-1], rtol=1e-5, atol=1e-6)
    e = np.exp(x @ w + o)
    np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_images_as_sequences():
    x = np.random.RandomState(2).rand(2, 3, 4, 5).astype("f")
    sequence = ndlstm.images_to_sequence(tf.constant(x))
    back = ndlstm.sequence_to_images(sequence, 2)
    made = [ndlstm.separable_lstm(tf.constant(x), 8), ndlstm.reduce_to_sequence(tf.constant(x), 6), ndlstm.reduce_to_final(tf.constant(x), 7, 9)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        s, b, *outs = sess.run([sequence, back, *made])
    np.testing.assert_array_equal(s[3, 4], x[1, 1, 3])
    np.testing.assert_array_equal(b, x)
    assert [o.shape for o in outs] == [(2, 3, 4, 8), (2, 4, 6), (2, 7)]
    assert names.find("contrib.ndlstm.python.lstm2d").separable_lstm is ndlstm.separable_lstm


def test_images_and_labels_without_lstms():
    x = np.random.RandomState(3).rand(2, 3, 4, 5).astype("f")
    with tf.Session() as sess:
        vector, pool, planes, mask = sess.run(
            [
                ndlstm.pixels_as_vector(tf.constant(x)),
                ndlstm.pool_as_vector(tf.constant(x)),
                ndlstm.one_hot_planes(tf.constant([0, 3]), 4),
                ndlstm.one_hot_mask(tf.constant([[[0], [2]]]), 3),
            ]
        )
    np.testing.assert_array_equal(vector, x.reshape(2, -1))
    np.testing.assert_allclose(pool, x.mean((1, 2)), rtol=1e-6)
    np.testing.assert_array_equal(planes[:, 0, 0], np.eye(4)[[0, 3]])
    np.testing.assert_array_equal(mask, np.eye(3)[[[0, 2]]])


# ---- signal ----


@pytest.mark.parametrize("samples, length, step, count", [(10, 4, 3, 3), (11, 4, 3, 4), (4, 4, 3, 1)])
def test_frames_until_all_samples_are_in_one(samples, length, step, count):
    x = np.arange(samples)[None]
    padded = np.concatenate([x[0], np.zeros(length, int)])
    with tf.Session() as sess:
        got = sess.run(signal.frames(tf.constant(x), length, step))
    np.testing.assert_array_equal(got[0], [padded[i * step : i * step + length] for i in range(count)])


# ---- training ----


class Passes(Exception):
    pass


def test_errors_pass_up_to_a_limit(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    tolerator = training.FailureTolerator(limit=4, init_delay=1.0, backoff_factor=1.5, handled_exceptions=[Passes])
    for _ in range(3):
        with tolerator.forgive():
            raise Passes()
    with pytest.raises(Passes), tolerator.forgive():
        raise Passes()
    assert waits == [1.0, 1.5, 2.25]
    with pytest.raises(ValueError), training.FailureTolerator(init_delay=0, handled_exceptions=[Passes]).forgive():
        raise ValueError()


def test_errors_of_long_ago_count_no_longer(monkeypatch):
    now = [10.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    tolerator = training.FailureTolerator(limit=2, init_delay=0.0, forgive_after_seconds=10, handled_exceptions=[Passes])
    for now[0] in (10.0, 20.5):
        with tolerator.forgive():
            raise Passes()
    now[0] = 30.0
    with pytest.raises(Passes), tolerator.forgive():
        raise Passes()


def test_steps_take_what_a_generator_gives():
    def numbers():
        for i in range(2):
            yield {"n": i, "rows": np.ones((i, 1)), "unused": 3}

    features = {
        "n": tf.FixedLenFeature([], tf.int32),
        "rows": tf.FixedLenSequenceFeature([1], tf.float32, allow_missing=True),
        "else": tf.FixedLenFeature([2], tf.int32, default_value=[-1, -2]),
    }
    tensors = training.python_input(numbers, features)
    assert tensors["rows"].get_shape().as_list() == [None, 1] and tensors["n"].dtype == tf.int32
    with tf.Session() as sess:
        got = [sess.run(tensors) for _ in range(2)]
        with pytest.raises(tf.errors.OutOfRangeError, match="Iteration finished"):
            sess.run(tensors)
    assert [int(g["n"]) for g in got] == [0, 1] and [g["rows"].shape for g in got] == [(0, 1), (1, 1)]
    np.testing.assert_array_equal(got[0]["else"], [-1, -2])


@pytest.mark.parametrize("given, message", [({"n": "a"}, "invalid literal"), (None, "generator must return dict"), ({"n": [1, 2]}, "incompatible")])
def test_generators_that_give_something_else(given, message):
    tensors = training.python_input(lambda: iter([given]), {"n": tf.FixedLenFeature([], tf.int32)})
    with tf.Session() as sess, pytest.raises(tf.errors.OpError, match=message):
        sess.run(tensors)
    with pytest.raises(NotImplementedError, match="FixedLenSequenceFeature"):
        training.python_input(lambda: iter([given]), {"n": tf.VarLenFeature(tf.int32)})


def test_feeder_as_a_queue():
    feeder = training.Feeder([tf.string, tf.int32], [[], []])
    feeder.set_many_fed_tensors([tf.constant(["a", "b", "c"]), tf.constant([0, 1, 2])])
    text, number = feeder.get_fed_tensors()
    coord = tf.train.Coordinator()
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess, coord)
        assert [tuple(sess.run([text, number])) for _ in range(4)] == [(b"a", 0), (b"b", 1), (b"c", 2), (b"a", 0)]
        coord.request_stop()
        coord.join()


def test_feeder_of_another_task():
    with socket.socket() as first, socket.socket() as second:
        ports = []
        for s in (first, second):
            s.bind(("localhost", 0))
            ports.append(s.getsockname()[1])
    cluster = {"reader": ["localhost:%d" % ports[0]], "feeder": ["localhost:%d" % ports[1]]}
    servers = {job: tf.train.Server(cluster, job_name=job, task_index=0) for job in cluster}
    coord = tf.train.Coordinator()
    with tf.Graph().as_default() as graph, tf.device("/job:feeder/task:0"):
        feeder = training.Feeder([tf.int32], [[]], capacity=1)
        feeder.set_many_fed_tensors([tf.constant([0, 1, 2])])
        feeder.add_remote_device("/job:reader/task:0")

    def feed():
        with graph.as_default():
            feeder.run_feeding_forever(lambda: tf.Session(servers["feeder"].target), coord)

    thread = threading.Thread(target=feed)
    thread.start()
    assert feeder.wait_until_feeding(60)
    with tf.device("/job:reader/task:0"):
        number = training.Feeder([tf.int32], [[]], capacity=1).get_fed_tensors()
    with tf.Session(servers["reader"].target) as sess:
        assert [sess.run(number) for _ in range(4)] == [0, 1, 2, 0]
    coord.request_stop()
    thread.join(60)
    assert not thread.is_alive()


def test_feeders_of_replicas():
    feeder = training.Feeder([tf.int32], [[]])
    feeder.add_remote_replicas("reader", 3, feeder_task_num=1, replicas_per_feeder=2)
    fills = [op.device for op in tf.get_default_graph().get_operations() if op.type == "QueueEnqueueV2"]
    assert fills == ["/job:reader/replica:2", "/job:reader/replica:0"]
    with pytest.raises(ValueError, match="feeder_task_num"):
        feeder.add_remote_replicas("reader", 3, replicas_per_feeder=2)


# ---- data ----


def test_lines_that_are_comments(tmp_path):
    path = str(tmp_path / "rows.csv")
    with open(path, "w") as file:
        file.write("a,b,c\n# nothing\n1,0.5,x\n#\n2,,y\n# 3,3,3\n")
    for given in ({"column_defaults": [tf.int32, tf.float32, tf.string]}, {}):
        defaults = {"column_defaults": [[0], [-1.0], [""]]} if given else {}
        made = contrib_data.make_csv_dataset(path, 2, num_epochs=1, shuffle=False, label_name="c", comment="#", **defaults)
        values, label = made.make_one_shot_iterator().get_next()
        with tf.Session() as sess:
            v, c = sess.run([values, label])
        assert v["a"].tolist() == [1, 2] and v["b"].tolist() == [0.5, -1.0 if given else 0.0] and c.tolist() == [b"x", b"y"]
        assert v["b"].dtype == np.float32
    with tf.Graph().as_default():
        elsewhere = [tf.constant([7]), tf.constant([], tf.float32), tf.constant([""])]
    moved = contrib_data.make_csv_dataset(path, 2, ["a", "b", "c"], elsewhere, num_epochs=1, shuffle=False, comment="#")
    assert moved.output_types == {"a": tf.int32, "b": tf.float32, "c": tf.string}
    double = contrib_data.make_csv_dataset(path, 1, comment="#", default_float_type=tf.float64, select_columns=["b"])
    assert double.output_types == {"b": tf.float64}
    with open(path, "a") as file:
        file.write("3,4e40,z\n")
    assert contrib_data.make_csv_dataset(path, 1, comment="#").output_types == {"a": tf.int32, "b": tf.float64, "c": tf.string}


def test_aggregators_do_not_follow_iterators():
    iterator = tf.data.Dataset.range(3).apply(contrib_data.latency_stats("t")).make_one_shot_iterator()
    with pytest.raises(NotImplementedError, match="experimental_stats.aggregator"):
        contrib_data.StatsAggregator().subscribe(iterator)
    with tf.Session() as sess:
        assert sess.run(iterator.get_next()) == 0


# ---- framework ----


def test_functions_that_may_change(monkeypatch):
    told = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *args: told.append(text % args))

    @framework.experimental
    def function(a, b):
        """fn doc.

        Args:
          a: x
        """
        return a + b

    assert function(1, 2) == function(2, 1) == 3
    notice = "Warning: THIS FUNCTION IS EXPERIMENTAL. It may change or be removed at any time, and without warning."
    assert function.__doc__ == "fn doc. (experimental)\n\n%s\n\nArgs:\n  a: x" % notice
    assert len(told) == 2 and told[0].endswith("is experimental and may change or be removed at any time, and without warning.")


# ---- factorization ----


def test_equations_of_wals_as_they_were_called():
    op = names.find("contrib.factorization.python.ops.gen_factorization_ops").wals_compute_partial_lhs_and_rhs
    r = np.random.RandomState(0)
    factors, weights, rows = r.rand(3, 2).astype("f"), r.rand(3).astype("f"), r.rand(2).astype("f")
    entries, values = np.array([[0, 0], [0, 2], [1, 1]]), np.array([1.0, 2.0, 3.0], "f")
    old = op(factors, weights, 0.1, rows, entries, values, 2, False)
    new = op(factors, weights, 0.1, rows, entries, values, [], 2, False)
    named = op(factors, weights, 0.1, rows, input_indices=entries, input_values=values, input_block_size=2, input_is_transpose=False)
    with tf.Session() as sess:
        (left, right), (other, _), (third, _) = sess.run([old, new, named])
    np.testing.assert_array_equal(left, other)
    np.testing.assert_array_equal(left, third)
    of = [(row, column, rows[row] * weights[column]) for row, column in entries]
    for row in range(2):
        np.testing.assert_allclose(left[row], sum(w * np.outer(factors[c], factors[c]) for at, c, w in of if at == row), rtol=1e-5)
        wanted = sum((w + 0.1) * v * factors[c] for (at, c, w), v in zip(of, values) if at == row)
        np.testing.assert_allclose(right[row], wanted, rtol=1e-5)
