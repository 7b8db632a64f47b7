# SPDX-License-Identifier: Apache-2.0
"""Parts of tf.contrib that came late in 1.x: sparsemax, scaled losses, windows of data sets, clusters of tf.contrib.learn."""

import json

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def nearest(row):
    """The point of the simplex nearest to a row, by bisection of the threshold."""
    low, high = row.min() - 1, row.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(row - low, 0)


def test_sparsemax_and_its_loss():
    rows = np.random.RandomState(0).randn(6, 5) * 2
    wanted = np.stack([nearest(row) for row in rows])
    logits, labels = tf.constant(rows), np.eye(5)[[0, 1, 2, 3, 4, 0]]
    made = tf.contrib.sparsemax.sparsemax(logits)
    loss = tf.contrib.sparsemax.sparsemax_loss(logits, made, tf.constant(labels))
    edges = tf.contrib.sparsemax.sparsemax([[0.0, -np.inf, 0.0], [-np.inf] * 3, [np.nan, 0, 0]])
    with tf.Session() as session:
        p, gradient, edge = session.run([made, tf.gradients(loss, logits)[0], edges])
    np.testing.assert_allclose(p, wanted, atol=1e-9)
    np.testing.assert_allclose(gradient, wanted - labels, atol=1e-9)
    assert edge[0].tolist() == [0.5, 0, 0.5] and np.isnan(edge[1:]).all()


def test_scaled_losses():
    mixed = tf.contrib.mixed_precision
    manager = mixed.ExponentialUpdateLossScaleManager(8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=1)
    optimizer = mixed.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager)
    x, factor = tf.Variable(1.0), tf.placeholder(tf.float32, [])
    gradients = optimizer.compute_gradients(x * factor, [x])
    train = optimizer.apply_gradients(gradients)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(gradients[0][0], {factor: 3.0}) == 3
        seen = []
        for value in (1.0, np.inf, 1.0, 1.0, 1.0):
            session.run(train, {factor: value})
            seen.append(session.run([x, manager.get_loss_scale()]))
    np.testing.assert_allclose(seen, [[0.5, 8], [0.5, 6.4], [0, 6.4], [-0.5, 12.8], [-1, 12.8]], rtol=1e-6)
    with pytest.raises(ValueError, match="at least 1"):
        mixed.FixedLossScaleManager(0.5)


def read(dataset):
    element, found = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return found


def test_windows_and_shapes_of_elements():
    data = tf.contrib.data
    numbers = tf.data.Dataset.range(7)
    assert [w.tolist() for w in read(numbers.apply(data.sliding_window_batch(3, window_shift=2)))] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    pairs = read(numbers.map(lambda i: {"a": i, "b": -i}).apply(data.sliding_window_batch(2, stride=3, window_stride=2)))
    assert [w["b"].tolist() for w in pairs] == [[0, -2], [-3, -5]]
    with pytest.raises(ValueError, match="both `stride` and `window_shift`"):
        data.sliding_window_batch(2, 1, 1)
    unknown = tf.data.Dataset.range(2).map(lambda i: tf.py_func(lambda n: np.zeros(n + 1, np.float32), [i], tf.float32))
    checked = unknown.apply(data.assert_element_shape(tf.TensorShape([1])))
    assert checked.output_shapes.as_list() == [1]
    with pytest.raises(tf.errors.InvalidArgumentError):
        read(checked)
    with pytest.raises(ValueError, match="not compatible"):
        checked.apply(data.assert_element_shape(tf.TensorShape([2])))
    assert data.Reducer is tf.data.experimental.Reducer and data.group_by_reducer is tf.data.experimental.group_by_reducer


def test_older_paths_of_optimizers_and_numbers():
    assert tf.contrib.optimizer_v2.AdamOptimizer is tf.train.AdamOptimizer
    draws = tf.contrib.stateless.stateless_random_uniform([3], [1, 2])
    with tf.Session() as session:
        assert np.array_equal(*session.run([draws, tf.random.stateless_uniform([3], [1, 2])]))


def test_clusters_of_learn(monkeypatch):
    cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}, "model_dir": "/tmp/m"}))
    config = tf.contrib.learn.RunConfig()
    assert config.master == "grpc://c:1" and not config.is_chief and config.num_worker_replicas == 2 and config.num_ps_replicas == 1
    assert config.model_dir == "/tmp/m" and config.task_id == 1 == tf.contrib.learn.RunConfig.get_task_id() and config.environment == "local"
    with pytest.raises(ValueError, match="must have the same value"):
        tf.contrib.learn.RunConfig(model_dir="/tmp/n")
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {**cluster, "master": ["d:1"]}, "task": {"type": "master"}, "environment": "cloud"}))
    assert tf.contrib.learn.RunConfig().is_chief and tf.contrib.learn.RunConfig(master="e:1").master == "e:1"
    monkeypatch.delenv("TF_CONFIG")
    assert tf.contrib.learn.RunConfig(save_checkpoints_secs=0).save_checkpoints_secs == 600 and tf.contrib.learn.RunConfig().is_chief


def test_matrices_whose_words_have_moved(tmp_path):
    for name, words in (("old", "a b c"), ("new", "c a d")):
        (tmp_path / name).write_text("\n".join(words.split()) + "\n")
    with tf.Session() as session:
        tf.Variable([[0.0], [1], [2]], name="bias")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    files = {"new": str(tmp_path / "new"), "old": str(tmp_path / "old")}
    first = lambda shape, dtype=None: tf.fill(shape, 7.0)
    framework = tf.contrib.framework
    whole = framework.load_linear_multiclass_bias_initializer(path, "bias", 3, files["old"], files["new"], num_class_oov_buckets=1, initializer=first)

    class SecondHalf:
        def single_offset(self, shape):
            return 2

    slot = framework.load_variable_slot_initializer(path, "bias", SecondHalf(), 3, 1, files["old"], files["new"], num_row_oov_buckets=1, initializer=first)
    with tf.Session() as session:
        assert session.run(whole([4, 1])).tolist() == [[2], [0], [7], [7]] and session.run(slot([2, 1])).tolist() == [[7], [7]]


def test_parts_of_variables_from_a_checkpoint(tmp_path):
    value = np.arange(8, dtype=np.float32).reshape(4, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(value, name="w")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    parts = tf.get_variable("w", [4, 2], partitioner=tf.fixed_size_partitioner(3))
    other = tf.get_variable("other", [4, 2], collections=[tf.GraphKeys.LOCAL_VARIABLES])
    framework = tf.contrib.framework
    by_names, by_lists = framework.assign_from_checkpoint(path, list(parts)), framework.assign_from_checkpoint(path, {"w": [*parts, other]})
    with tf.Session() as session:
        session.run(by_names[0], by_names[1])
        assert np.array_equal(session.run(tf.identity(parts)), value)
        session.run(by_lists[0], by_lists[1])
        assert np.array_equal(session.run(other), value)
    with pytest.raises(ValueError, match="missing variable \\[v\\]"):
        framework.assign_from_checkpoint(path, {"v": other})
    with pytest.raises(ValueError, match="cannot have w of shape"):
        framework.assign_from_checkpoint(path, {"w": tf.get_variable("small", [2, 2])})


def test_what_is_printed(capfd):
    sparse = tf.SparseTensor([[0, 1]], [6], [1, 2])
    array = tf.TensorArray(tf.int32, 2, clear_after_read=False).unstack([3, 4])
    printed = [tf.contrib.framework.print_op(t, [tf.constant([False, True])], "look ") for t in (tf.constant([5], name="five"), sparse, array)]
    with tf.Session() as session:
        five, same, stacked = session.run([printed[0], printed[1], printed[2].stack()])
    assert five.tolist() == [5] and same.values.tolist() == [6] and stacked.tolist() == [3, 4]
    said = capfd.readouterr().err
    assert "look [Name: five:0][Type: Tensor (int32)][Shape: [Dimension(1)]][Value:][5]" in said
    assert "[First True in Boolean tensor at:][1][Value:][0 1]" in said
    assert "look [Type: TensorArray (int32)][Size:][2][Value:][3 4]" in said and "[Sparse indices:][[0 1]]" in said
    with pytest.raises(ValueError, match="print_op takes"):
        tf.contrib.framework.print_op(3)


def test_arguments_that_scopes_can_set():
    @tf.contrib.framework.add_arg_scope
    def f(x, a=1, b=2):
        return x, a, b

    assert tf.contrib.framework.arg_scoped_arguments(f) == ("a", "b")
    with tf.contrib.framework.arg_scope([f], a=1) as scope:
        assert scope[tf.contrib.slim.arg_scope_func_key(f)] == {"a": 1}


@pytest.mark.parametrize("centered", [False, True])
def test_mean_squares_that_begin_at_epsilon(centered):
    x = tf.Variable([1.0, 2.0])
    optimizer = tf.contrib.optimizer_v2.RMSPropOptimizer(0.5, 0.8, 0.9, epsilon=0.25, centered=centered)
    g = np.array([0.1, -0.4])
    train = optimizer.apply_gradients([(tf.constant(g, tf.float32), x)])
    value, square, mean, momentum = np.array([1.0, 2.0]), np.full(2, 0.25), np.zeros(2), np.zeros(2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
            square, mean = 0.8 * square + 0.2 * g * g, 0.8 * mean + 0.2 * g * centered
            momentum = 0.9 * momentum + 0.5 * g / np.sqrt(square - mean**2)  # epsilon is not added again
            value = value - momentum
        np.testing.assert_allclose(session.run([x, optimizer.get_slot(x, "rms")]), [value, square], rtol=1e-5)


def test_part_of_a_graph_as_one_operation():
    with tf.Graph().as_default() as graph:
        a, b = tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.float32, name="b")
        tf.negative(tf.identity(tf.add(tf.exp(a, name="exp"), b, name="add"), name="out"), name="after")
    made = tf.contrib.framework.fuse_op(graph.as_graph_def(), ["a", "b"], ["out"], [1], False, "fused", "Mine")
    assert [(n.name, n.op, list(n.input)) for n in made.node] == [
        ("a", "Placeholder", []),
        ("b", "Placeholder", []),
        ("fused", "Mine", ["a", "b"]),
        ("out", "Identity", ["fused"]),
        ("after", "Neg", ["out"]),
    ]
    assert list(made.node[2].attr["_output_types"].list.type) == [1] and not made.node[2].attr["_output_quantized"].b
    with tf.Graph().as_default() as both:
        a = tf.placeholder(tf.float32, name="a")
        tf.identity(tf.add(tf.negative(a, name="x"), tf.exp(a, name="exp")), name="out")
    with pytest.raises(TypeError, match="Node exp uses input a not in input_nodes"):
        tf.contrib.framework.fuse_op(both.as_graph_def(), ["x"], ["out"], [1], False, "fused", "Mine")


def test_servers_of_variables_go_by_their_names():
    servers = {}
    for names in ("xyzw", "wzyx"):
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(3, ps_strategy=tf.contrib.training.RandomStrategy(3, seed=1))):
            for name in names:
                device = tf.get_variable(name, [1]).device
                assert servers.setdefault(name, device) == device
    assert len(set(servers.values())) > 1


def test_graphs_are_written_where_there_are_no_summaries(tmp_path):
    hook = tf.contrib.training.SummaryAtEndHook(str(tmp_path))
    hook.begin()
    with tf.Session() as session:
        hook.after_create_session(session, None)
        hook.end(session)
    (file,) = tmp_path.iterdir()
    assert any(event.graph_def for event in tf.train.summary_iterator(str(file)))


def test_images_between_their_pixels():
    data = np.random.RandomState(0).rand(2, 4, 5, 3)
    places = np.array([[[0.0, 0.0], [1.25, 2.5], [4.0, 3.0], [-0.5, 1.0]], [[4.5, 3.5], [5.0, 0.0], [2.0, -1.0], [3.75, 0.25]]])
    padded = np.pad(data, [(0, 0), (1, 2), (1, 2), (0, 0)])

    def value(image, x, y):
        if not (-1 < x < 5 and -1 < y < 4):
            return np.zeros(3)
        left, top = int(np.floor(x)), int(np.floor(y))
        parts = [((1 - abs(x - i)) * (1 - abs(y - j)), padded[image, j + 1, i + 1]) for i in (left, left + 1) for j in (top, top + 1)]
        return sum(weight * pixel for weight, pixel in parts)

    wanted = [[value(image, *place) for place in row] for image, row in enumerate(places)]
    with tf.Graph().as_default(), tf.Session() as session:
        given, warp = tf.placeholder(tf.float64, [None, 4, 5, 3]), tf.constant(places)
        made = tf.contrib.resampler.resampler(given, warp)
        assert made.shape.as_list() == [2, 4, 3]
        np.testing.assert_allclose(session.run(made, {given: data}), wanted)
        inside = tf.constant(places[:1, 1:2])
        image = tf.constant(data[:1])
        moved = tf.contrib.resampler.resampler(image, inside)
        assert tf.test.compute_gradient_error(inside, [1, 1, 2], moved, [1, 1, 3]) < 1e-6
        assert tf.test.compute_gradient_error(image, [1, 4, 5, 3], moved, [1, 1, 3]) < 1e-6
        with pytest.raises(tf.errors.UnimplementedError, match="warp shape last entry should be 2"):
            session.run(tf.contrib.resampler.resampler(image, tf.zeros([1, 3], tf.float64)))


def test_slices_that_overlap():
    x = np.array([[1.0, 2.0, 3.0], [40.0, 50.0, 60.0], [700.0, 800.0, 900.0]])
    slices = tf.contrib.reduce_slice_ops
    pairs = [[0, 2], [1, 3], [2, 2], [1, 9]]
    with tf.Graph().as_default(), tf.Session() as session:
        rows, columns = session.run([slices.reduce_slice_sum(x, pairs, 0), slices.reduce_slice_prod(x, [0, 1, 3], 1)])
        most, least = session.run([slices.reduce_slice_max(x, pairs[:3], 0), slices.reduce_slice_min(x, pairs[:3], 0)])
    np.testing.assert_array_equal(rows, [x[:2].sum(0), x[1:].sum(0), [0, 0, 0], x[1:].sum(0)])
    np.testing.assert_array_equal(columns, np.stack([x[:, 0], x[:, 1] * x[:, 2]], 1))
    np.testing.assert_array_equal(most, [x[1], x[2], [np.finfo(float).min] * 3])
    np.testing.assert_array_equal(least, [x[0], x[1], [np.finfo(float).max] * 3])


def test_pairs_of_words_that_are_near(tmp_path):
    text = tf.contrib.text
    words = ["the", "quick", "brown", "fox"]
    (tmp_path / "counts").write_text("the,3\nquick,1\nfox,0\n")
    with tf.Graph().as_default(), tf.Session() as session:
        pairs = session.run(text.skip_gram_sample(words, 1, 1))
        assert [w.decode() for w in pairs[0]] == ["the", "quick", "quick", "brown", "brown", "fox"]
        assert [w.decode() for w in pairs[1]] == ["quick", "the", "brown", "quick", "fox", "brown"]
        own = session.run(text.skip_gram_sample([7, 8, 9], 0, 0, start=1, limit=1, emit_self_as_target=True))
        assert [o.tolist() for o in own] == [[8], [8]]
        windows = session.run(text.skip_gram_sample(tf.range(50), 1, 4, seed=3))
        assert set(np.abs(windows[0] - windows[1])) == {1, 2, 3, 4} and 100 < len(windows[0]) < 392
        counted = text.skip_gram_sample_with_text_vocab(words, str(tmp_path / "counts"), vocab_min_count=1, min_skips=5, max_skips=5)
        session.run(tf.tables_initializer())
        assert [part.tolist() for part in session.run(counted)] == [[b"the", b"quick"], [b"quick", b"the"]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="min_skips must be <= max_skips"):
            session.run(text.skip_gram_sample(words, 2, 1))
        with pytest.raises(ValueError, match="must both be provided"):
            text.skip_gram_sample(words, vocab_freq_table=object(), corpus_size=3)


def test_seeds_draw_the_windows_of_tensorflow():
    """Numbers of TensorFlow 1.15.5."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(5)
        pairs = tf.contrib.text.skip_gram_sample(tf.range(100, 112), 1, 4, seed=3)
        drawn = [session.run(pairs) for _ in range(2)]
    assert [(len(tokens), int((1000 * tokens + labels).sum())) for tokens, labels in drawn] == [(53, 5587583), (51, 5381378)]
    assert (drawn[0][0] - drawn[0][1]).tolist()[:12] == [-1, -2, -3, 1, -1, -2, -3, -4, 2, 1, -1, -2]


def test_zeros_in_place_of_initial_values():
    framework = tf.contrib.framework
    with tf.Graph().as_default(), tf.Session() as session:
        for resource in (False, True):
            variable = tf.get_variable("v%d" % resource, initializer=np.ones(2, np.float32), use_resource=resource)
            zero = framework.zero_initializer(variable)
            assert session.run(zero).tolist() == [0, 0] and session.run(variable).tolist() == [0, 0]
            session.run(variable.initializer)
            with pytest.raises(tf.errors.InvalidArgumentError, match="input is already initialized"):
                session.run(zero)
        assert framework.assert_or_get_global_step() is None
        step = tf.train.get_or_create_global_step()
        assert framework.assert_or_get_global_step() is step and framework.assert_or_get_global_step(global_step_tensor=step) is step
        with pytest.raises(TypeError):
            framework.assert_or_get_global_step(global_step_tensor=tf.constant(1.5))


def test_batches_and_times_exchanged():
    rnn = tf.contrib.rnn
    with tf.Graph().as_default(), tf.Session() as session:
        x = np.arange(24.0).reshape(2, 3, 4)
        unknown = tf.placeholder(tf.float64)
        for given in (tf.constant(x), unknown):
            np.testing.assert_array_equal(session.run(rnn.transpose_batch_time(given), {unknown: x}), np.swapaxes(x, 0, 1))
        with pytest.raises(ValueError, match="rank at least 2"):
            rnn.transpose_batch_time(tf.zeros([3]))
        assert rnn.best_effort_input_batch_size([unknown, tf.constant(x)]) == 3
        assert session.run(rnn.best_effort_input_batch_size([unknown]), {unknown: x}) == 3


def test_several_decoders_of_one_encoder():
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.constant([1, 2])] * 2
        cells = {name: tf.nn.rnn_cell.BasicRNNCell(3) for name in "ab"}
        previous = tf.placeholder(tf.bool, [])
        for fed in (False, previous):
            outputs, states = tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(
                inputs,
                {"a": inputs, "b": inputs[:1]},
                tf.nn.rnn_cell.BasicRNNCell(3),
                cells,
                4,
                {"a": 5, "b": 6},
                2,
                fed,
                scope="net%d" % isinstance(fed, bool),
            )
            session.run(tf.global_variables_initializer())
            a, b, last = session.run([outputs["a"], outputs["b"], states["a"]], {previous: True})
            assert [part.shape for part in (*a, *b, last)] == [(2, 5), (2, 5), (2, 6), (2, 3)]
        with pytest.raises(ValueError, match="different keys"):
            tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(inputs, {"a": inputs}, cells["a"], cells, 4, {}, 2)
