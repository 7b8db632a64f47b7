# SPDX-License-Identifier: Apache-2.0
"""Packages of tf.contrib that programs of 2016 to 2019 use: gan, summary, image, learn's first parts, all_reduce, and names beside them."""

import itertools

import numpy as np
import pytest

import millrace as tf
from millrace import names

contrib, learn = tf.contrib, tf.contrib.learn
gan = contrib.gan


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


# ---- GANs ----


def _model(kind="gan", **more):
    real = tf.random_normal([16, 2], 3.0, seed=1)
    noise = tf.random_normal([16, 4], seed=2)

    def generate(z):
        return tf.layers.dense(tf.concat(z, 1) if isinstance(z, list) else z, 2, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.1))

    def judge(x, z):
        return tf.layers.dense(x, 1, name="judge")

    def judge_classes(x, z):
        return judge(x, z), tf.layers.dense(x, 3, name="classes")

    def judge_noise(x, z):
        return judge(x, z), [tf.distributions.Normal(tf.layers.dense(x, 1, name="mean"), 1.0)]

    if kind == "acgan":
        return gan.acgan_model(generate, judge_classes, real, noise, tf.one_hot(tf.range(16) % 3, 3), **more)
    if kind == "infogan":
        return gan.infogan_model(generate, judge_noise, real, [noise], [tf.random_normal([16, 1], seed=3)])
    return gan.gan_model(generate, judge, real, noise, **more)


def test_losses_of_gans():
    real, made = np.array([[0.5], [-1.0], [2.0]]), np.array([[1.0], [0.0], [-0.5]])
    w = gan.losses.wargs
    cross = lambda x, z: np.mean(np.maximum(x, 0) - x * z + np.log1p(np.exp(-abs(x))))
    wanted = {
        w.wasserstein_generator_loss(made): -made.mean(),
        w.wasserstein_discriminator_loss(real, made): made.mean() - real.mean(),
        w.minimax_discriminator_loss(real, made): cross(real, 1 - 0.125) + cross(made, 0),
        w.minimax_generator_loss(made): -(cross(np.ones(1), 1) + cross(made, 0)),
        w.modified_generator_loss(made): cross(made, 1),
        w.least_squares_generator_loss(made): ((made - 1) ** 2).mean() / 2,
        w.least_squares_discriminator_loss(real, made): (((real - 1) ** 2).mean() + (made**2).mean()) / 2,
        w.cycle_consistency_loss(real, made, real, real + 1): (abs(real - made).mean() + 1) / 2,
    }
    with tf.Session() as session:
        for tensor, value in wanted.items():
            assert session.run(tensor) == pytest.approx(value, rel=1e-5), tensor.name
        slope = w.wasserstein_gradient_penalty(np.zeros((4, 3), "f"), np.ones((4, 3), "f"), None, lambda x, z: tf.reduce_sum(x * [3.0, 0, 4], 1), "d")
        assert session.run(slope) == pytest.approx(16, rel=1e-5)  # (5 - 1)^2
        one_sided = w.wasserstein_gradient_penalty(
            np.zeros((4, 3), "f"), np.ones((4, 3), "f"), None, lambda x, z: tf.reduce_sum(x * 0.1, 1), "d", one_sided=True
        )
        assert session.run(one_sided) == 0


def test_losses_of_models():
    model = _model()
    loss = gan.gan_loss(model, gan.losses.least_squares_generator_loss, gan.losses.least_squares_discriminator_loss, add_summaries=False)
    own = gan.losses.least_squares_generator_loss(model)
    penalty = tf.losses.get_regularization_loss("Generator")
    mixed = gan.losses.combine_adversarial_loss(loss, model, tf.reduce_sum(model.generated_data), gradient_ratio=2.0, gradient_summaries=False)
    parts = [
        tf.global_norm(tf.gradients(t, model.generator_variables))
        for t in (tf.reduce_sum(model.generated_data), mixed.generator_loss - tf.reduce_sum(model.generated_data))
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b, c = session.run([loss.generator_loss, own, penalty])
        assert a == pytest.approx(b + c, rel=1e-5) and c > 0
        main, rest = session.run(parts)
        assert main == pytest.approx(2 * rest, rel=1e-3)
    with pytest.raises(ValueError, match="cannot both be"):
        gan.losses.combine_adversarial_loss(loss, model, 1.0)
    with pytest.raises(ValueError, match="must be an `InfoGANModel`"):
        gan.gan_loss(model, mutual_information_penalty_weight=1.0)
    with pytest.raises(ValueError, match="must be greater than 0"):
        gan.gan_loss(model, gradient_penalty_weight=-1.0)
    with pytest.raises(ValueError, match="same shape as real data"):
        gan.gan_model(lambda z: z, lambda x, z: x, tf.zeros([4, 3]), tf.zeros([4, 2]), "g", "d")


@pytest.mark.parametrize(
    "kind, more",
    [
        ("gan", dict(gradient_penalty_weight=1.0)),
        ("infogan", dict(mutual_information_penalty_weight=1.0)),
        ("acgan", dict(aux_cond_generator_weight=1.0, aux_cond_discriminator_weight=0.5)),
    ],
)
def test_gans_train(kind, more, tmp_path):
    model = _model(kind)
    loss = gan.gan_loss(model, tensor_pool_fn=lambda v: gan.features.tensor_pool(v, pool_size=4), **more)
    ops = gan.gan_train_ops(model, loss, tf.train.AdamOptimizer(0.01), tf.train.AdamOptimizer(0.01))
    counts = []
    hooks = gan.get_joint_train_hooks(gan.GANTrainSteps(2, 1)) if kind == "gan" else gan.get_sequential_train_hooks(gan.GANTrainSteps(1, 2))
    last = gan.gan_train(ops, str(tmp_path), hooks, hooks=[tf.train.StopAtStepHook(num_steps=6), tf.train.FinalOpsHook(model.generator_variables[0])])
    assert last == 6 and not counts and tf.train.latest_checkpoint(str(tmp_path)).endswith("-6")


def test_gans_as_estimators(tmp_path):
    def generate(z, mode):
        return tf.layers.dense(z, 2)

    def judge(x, z, mode):
        return tf.layers.dense(x, 1)

    estimator = gan.estimator.GANEstimator(
        str(tmp_path),
        generate,
        judge,
        gan.losses.wasserstein_generator_loss,
        gan.losses.wasserstein_discriminator_loss,
        tf.train.AdamOptimizer(0.01),
        tf.train.AdamOptimizer(0.01),
        add_summaries=gan.estimator.SummaryType.VARIABLES,
    )
    noise = np.random.RandomState(0).randn(40, 3).astype("f")
    data = lambda: tf.data.Dataset.from_tensor_slices((noise, noise[:, :2])).repeat().batch(8)
    estimator.train(data, steps=5)
    measures = estimator.evaluate(data, steps=2)
    assert measures["global_step"] == 5 and measures["loss"] == pytest.approx(measures["generator_loss"] + measures["discriminator_loss"], rel=1e-4)
    made = estimator.predict(lambda: tf.data.Dataset.from_tensor_slices(noise).batch(8))
    assert len(list(made)) == 40


def test_conditions_and_pools():
    labels = np.eye(3)[[0, 2, 0]]
    made = gan.features.condition_tensor_from_onehot(tf.zeros([3, 2, 2]), labels, 5)
    pooled = gan.features.tensor_pool(tf.placeholder_with_default(0.0, []), pool_size=2, pooling_probability=1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = session.run(made)
        np.testing.assert_array_equal(value[0], value[2])
        assert not np.allclose(value[0], value[1])
        default = pooled.graph.get_operations()
        held = next(op.outputs[0] for op in default if op.type == "PlaceholderWithDefault")
        seen = [session.run(pooled, {held: i}) for i in range(1, 9)]
        assert seen[:2] == [1, 2] and all(v < i for v, i in zip(seen[2:], range(3, 9)))
    assert gan.features.tensor_pool("as it is", pool_size=0) == "as it is"


def test_scores_of_images(tmp_path):
    state = np.random.RandomState(0)
    a, b = state.randn(50, 3), state.randn(60, 3) * 2 + 1
    s, t = np.cov(a.T), np.cov(b.T)
    values, _vectors = np.linalg.eig(s @ t)
    distance = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(s + t) - 2 * np.sqrt(values.real).sum()
    p = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    score = np.exp((p * (np.log(p) - np.log(p.mean(0)))).sum(1).mean())
    with tf.Session() as session:
        assert session.run(gan.eval.frechet_classifier_distance_from_activations(a, b)) == pytest.approx(distance, rel=1e-6)
        assert session.run(gan.eval.frechet_classifier_distance(tf.constant(a, tf.float32), tf.constant(b[:50], tf.float32), lambda x: x, 5)) > 1
        assert session.run(gan.eval.classifier_score(tf.constant(a, tf.float32), lambda x: x, 10)) == pytest.approx(score, rel=1e-5)
        grid = session.run(gan.eval.image_reshaper(tf.reshape(tf.range(5.0), [5, 1, 1, 1]), 2))[0, ..., 0]
        assert grid.tolist() == [[0, 1], [2, 3], [4, 0]]
        other = tf.Graph()
        with other.as_default():
            tf.identity(tf.placeholder(tf.float32, [None, 2], "x") * 2.0, "y")
        path = tmp_path / "graph.pb"
        path.write_bytes(other.as_graph_def().SerializeToString())
        assert session.run(gan.eval.run_image_classifier(tf.ones([1, 2]), gan.eval.get_graph_def_from_disk(str(path)), "x:0", "y:0")).tolist() == [[2, 2]]
        assert gan.eval.preprocess_image(tf.zeros([4, 5, 3], tf.uint8), 8, 9).shape.as_list() == [8, 9, 3]
    model = gan.gan_model(lambda z: z, lambda x, z: x, tf.zeros([4, 6, 6, 1]), tf.ones([4, 6, 6, 1]))
    gan.eval.add_gan_model_image_summaries(model, 2)
    gan.eval.add_image_comparison_summaries(model, display_diffs=True)
    gan.eval.add_regularization_loss_summaries(model)
    with tf.Session() as session:
        found = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    assert {v.image.width for v in found.value if v.image.width} == {12} and {v.image.height for v in found.value if v.image.width} == {12, 24}
    with pytest.raises(ValueError, match="must provide `default_graph_def_fn`"):
        gan.eval.run_inception(tf.zeros([2, 299, 299, 3]), default_graph_def_fn=None)


# ---- others ----


def test_images_turned_and_moved():
    image = np.arange(12.0).reshape(3, 4)
    I = contrib.image
    with tf.Session() as session:
        square = np.arange(9.0).reshape(3, 3)
        for kind in ("NEAREST", "BILINEAR"):
            np.testing.assert_allclose(session.run(I.rotate(square, np.pi / 2, kind)), np.rot90(square), atol=1e-4)
            np.testing.assert_allclose(session.run(I.translate(image, [1, -1], kind)), [[0, 4, 5, 6], [0, 8, 9, 10], [0, 0, 0, 0]], atol=1e-5)
        batch = session.run(I.rotate(np.stack([square, square])[..., None], [0.0, np.pi]))
        np.testing.assert_array_equal(batch[..., 0], [square, square[::-1, ::-1]])
        half = session.run(I.transform(image, [1, 0, 0.5, 0, 1, 0, 0, 0], "BILINEAR"))
        np.testing.assert_allclose(half[:, :3], image[:, :3] + 0.5)
        nearest = session.run(I.transform(image, [1, 0, 0.5, 0, 1, 0, 0, 0]))  # of two pixels as near, the one further from 0
        np.testing.assert_array_equal(nearest[:, :3], image[:, 1:])
        turn, move = I.angles_to_projective_transforms(0.3, 3, 3), I.translations_to_projective_transforms([1.0, 2.0])
        both = session.run(I.flat_transforms_to_matrices(I.compose_transforms(turn, move)))
        np.testing.assert_allclose(both, np.matmul(*session.run([I.flat_transforms_to_matrices(turn), I.flat_transforms_to_matrices(move)])), rtol=1e-5)
        colours = np.random.RandomState(0).rand(4, 5, 3).astype("f")
        np.testing.assert_allclose(session.run(I.adjust_hsv_in_yiq(colours, 0.0, 1.0, 0.5)), colours / 2, atol=1e-3)
        np.testing.assert_allclose(session.run(I.adjust_hsv_in_yiq(colours, 2 * np.pi)), colours, atol=1e-3)
        grey = session.run(I.random_hsv_in_yiq(colours, lower_saturation=0, upper_saturation=0))
        np.testing.assert_allclose(grey, (colours @ [0.299, 0.587, 0.114])[..., None].repeat(3, -1), atol=5e-3)
        assert [m.tolist() for m in session.run(I.bipartite_match([[1.0, 2.0, 9.0], [0.5, 3.0, 9.0]], 2))] == [[1, 0], [1, 0, -1]]
        assert session.run(I.bipartite_match([[1.0], [0.5]], -1.0, 1))[0].tolist() == [-1, 0]
    with pytest.raises(ValueError, match="max_delta must be"):
        I.random_hsv_in_yiq(colours, -1)
    with pytest.raises(ValueError, match="at least rank 3"):
        I.adjust_hsv_in_yiq(np.ones((2, 3), "f"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="instead has 4 channels"):
        I.adjust_hsv_in_yiq(np.ones((2, 3, 4), "f"))


def labelled(batch):
    """Components by a flood from each first pixel."""
    made, count = np.zeros(batch.shape, int), 0
    for start in np.ndindex(*batch.shape):
        if batch[start] and not made[start]:
            count += 1
            waiting = [start]
            while waiting:
                n, y, x = at = waiting.pop()
                made[at] = count
                sides = [(n, y + 1, x), (n, y - 1, x), (n, y, x + 1), (n, y, x - 1)]
                inside = [s for s in sides if 0 <= s[1] < batch.shape[1] and 0 <= s[2] < batch.shape[2]]
                waiting += [s for s in inside if not made[s] and batch[s] == batch[at]]
    return made


def test_connected_pixels():
    batch = np.random.RandomState(0).randint(0, 3, (3, 9, 7))
    fed = tf.placeholder(tf.int32, [None, None, None])
    with tf.Session() as session:
        assert np.array_equal(session.run(contrib.image.connected_components(fed), {fed: batch}), labelled(batch))
        assert np.array_equal(session.run(contrib.image.connected_components(batch[0] > 0)), labelled(batch[:1] > 0)[0])
    with pytest.raises(TypeError, match="rank 2"):
        contrib.image.connected_components([1])


@pytest.mark.parametrize("length", [1, 4])
def test_several_tags_may_be_right(length):
    random, lengths = np.random.RandomState(0), [length, max(1, length - 1)]
    scores, moves, allowed = random.randn(2, length, 3).astype("f"), random.randn(3, 3).astype("f"), random.rand(2, length, 3) < 0.6
    allowed[:, :, 0] = True
    got = tf.contrib.crf.crf_multitag_sequence_score(scores, allowed, lengths, moves)
    wanted = []
    for s, a, n in zip(scores, allowed, lengths):
        paths = [p for p in itertools.product(range(3), repeat=n) if all(a[i, t] for i, t in enumerate(p))]
        of_path = [sum(s[i, t] for i, t in enumerate(p)) + sum(moves[a, b] for a, b in zip(p, p[1:])) for p in paths]
        wanted.append(np.log(np.exp(of_path).sum()))
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(got), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    "cell, both_ways, attention, wanted, variables",
    [  # what TensorFlow 1.15 answers
        ("gru", False, (None, None, None), [0.1197848, 0.1532401, 2.0926504], 10),
        ("lstm", True, (None, None, None), [0.2183569, 0.5324796, 1.3822912], 10),
        ("rnn", True, (2, 3, 2), [0.1394544, 0.2251181, 1.9453722], 42),
    ],
)
def test_recurrent_models_of_the_first_learn(cell, both_ways, attention, wanted, variables):
    x, y = np.arange(24, dtype=np.float32).reshape(2, 4, 3) / 24, np.array([[1.0], [2.0]], np.float32)
    models = learn.models
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("m", initializer=tf.constant_initializer(0.1)):
            make = models.get_rnn_model(3, cell, 2, lambda a: tf.unstack(a, axis=1), both_ways, models.linear_regression, None, None, *attention)
            predictions, loss = make(tf.constant(x), tf.constant(y))
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose([*session.run(predictions).ravel(), session.run(loss)], wanted, rtol=1e-6)
        assert len(tf.trainable_variables()) == variables
    with pytest.raises(ValueError, match="cell_type cnn is not supported"):
        models.get_rnn_model(3, "cnn", 1, None, False, None, None, None)


def test_estimators_of_the_first_learn():
    state = np.random.RandomState(0)
    x = state.rand(120, 2)
    y = (x.sum(1) > 1).astype(int)
    more = {"verbose": 0, "steps": 300, "learning_rate": 0.5}
    linear = learn.TensorFlowLinearClassifier(n_classes=2, **more).fit(x, y)
    assert linear.score(x, y) > 0.9 and linear.weights_.shape == (2, 2) and linear.bias_.shape == (2,)
    assert learn.TensorFlowRegressor(**more).fit(x, x.sum(1)).score(x, x.sum(1)) > 0.9 and learn.TensorFlowClassifier is learn.TensorFlowLinearClassifier
    deep = names.find("contrib.skflow").TensorFlowDNNClassifier([8, 4], n_classes=2, dropout=0.1, verbose=0, steps=300, learning_rate=0.1).fit(x, y)
    assert deep.score(x, y) > 0.9 and [w.shape for w in deep.weights_] == [(2, 8), (8, 4), (4, 2)] and [b.shape for b in deep.bias_] == [(8,), (4,), (2,)]
    np.testing.assert_array_equal(deep.predict_proba(x), deep.predict_proba(x))  # nothing is left out behind the training
    numbers = learn.TensorFlowDNNRegressor([8], verbose=0, steps=300, learning_rate=0.1).fit(x, x.sum(1))
    assert numbers.score(x, x.sum(1)) > 0.8 and numbers.weights_[-1].shape == (8, 1)
    steps = state.rand(120, 3, 1)
    late = (steps[:, 2, 0] > 0.5).astype(int)
    recurrent = {"input_op_fn": lambda a: tf.unstack(a, axis=1), "verbose": 0, "steps": 300, "optimizer": "Adam", "learning_rate": 0.05}
    found = learn.TensorFlowRNNClassifier(6, 2, bidirectional=True, **recurrent).fit(steps, late)
    assert found.score(steps, late) > 0.9 and found.weights_.shape == (12, 2)
    assert learn.TensorFlowRNNRegressor(6, cell_type="lstm", **recurrent).fit(steps, steps[:, 2, 0]).score(steps, steps[:, 2, 0]) > 0.8


def test_parts_of_the_first_learn(tmp_path):
    state = np.random.RandomState(0)
    x = state.rand(120, 2)
    y = (x.sum(1) > 1).astype(int)
    model = learn.TensorFlowEstimator(learn.models.logistic_regression, n_classes=2, verbose=0, steps=300, learning_rate=0.5).fit(x, y)
    assert model.score(x, y) > 0.9 and model.predict_proba(x).shape == (120, 2)
    model.save(str(tmp_path))
    again = learn.TensorFlowEstimator(learn.models.logistic_regression, n_classes=2, verbose=0).load(str(tmp_path))
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    deep = learn.TensorFlowEstimator(
        lambda a, b: learn.models.linear_regression(learn.ops.dnn(a, [8], tf.nn.tanh), b), verbose=0, steps=400, optimizer="Adam", learning_rate=0.02
    ).fit(x, x.sum(1))
    assert deep.score(x, x.sum(1)) > 0.9
    with pytest.raises(NotImplementedError, match="call load"):
        learn.TensorFlowEstimator.restore(str(tmp_path))
    assert next(learn.preprocessing.ByteProcessor(4).transform(["abc"])).tolist() == [97, 98, 99, 0]
    assert list(learn.preprocessing.ByteProcessor(9).reverse([[97, 98, 0]])) == ["ab"]
    assert [r.tolist() for r in learn.preprocessing.CategoricalProcessor().fit_transform([["a", "b"], ["c", "b"]])] == [[1, 1], [2, 1]]
    into, given, wanted = learn.ops.seq2seq_inputs(tf.ones([2, 3, 4]), tf.ones([2, 2, 5]), 3, 2)
    assert (len(into), len(given), len(wanted)) == (3, 3, 3)
    cell = tf.nn.rnn_cell.GRUCell(5)
    outputs, _, sampled, _ = learn.ops.rnn_seq2seq([tf.ones([2, 5])] * 3, given, cell)
    probabilities, loss = learn.ops.sequence_classifier(outputs, wanted, sampled)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made = session.run(probabilities)
        np.testing.assert_allclose(made.sum(-1), np.ones((2, 3)), rtol=1e-5)
        assert session.run(loss) > 0
        assert session.run(learn.ops.one_hot_matrix([1, 0], 3)).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert learn.ops.conv2d(tf.ones([1, 4, 4, 2]), 3, [3, 3], batch_norm=True, activation=tf.nn.relu).shape.as_list() == [1, 4, 4, 3]
    assert learn.ops.categorical_variable([0, 2], 3, 4, "c").shape.as_list() == [2, 4]


def test_batches_of_examples_by_queues(tmp_path):
    path = str(tmp_path / "x.records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(10):
            writer.write(
                tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))})).SerializeToString()
            )
    made = learn.read_batch_features(
        path, 4, {"a": tf.FixedLenFeature([1], tf.int64)}, tf.TFRecordReader, randomize_input=False, num_epochs=1, num_enqueue_threads=1
    )
    with tf.train.MonitoredSession() as session:
        seen = []
        while not session.should_stop():
            seen.extend(session.run(made)["a"].ravel())
    assert seen == list(range(10))
    given = learn.utils.build_parsing_serving_input_fn({"a": tf.FixedLenFeature([1], tf.int64)})()
    assert given.labels is None and set(given.default_inputs) == {"examples"} and given.features["a"].dtype == tf.int64
    with pytest.raises(ValueError, match="positive number"):
        learn.utils.make_export_strategy(None, exports_to_keep=0)


def test_reductions_over_towers():
    towers = [tf.constant([1.0, 4]), tf.constant([2.0, 3]), tf.constant([3.0, 2])]
    R = contrib.all_reduce
    made = [
        R.build_ring_all_reduce(towers, 1, 1, [0, 1, 2], tf.add, lambda t: t / 3),
        R.build_nccl_then_shuffle(towers, ["/cpu:0"], tf.add, tf.add_n),
        R.build_shuffle_all_reduce(towers, ["/cpu:0"], tf.add_n),
        contrib.nccl.all_max(towers),
        contrib.nccl.all_prod(towers),
        contrib.nccl.all_min(towers),
    ]
    with tf.Session() as session:
        for got, wanted in zip(session.run(made), ([2, 3], [6, 9], [6, 9], [3, 4], [6, 24], [1, 2])):
            assert [g.tolist() for g in got] == [wanted] * 3
        assert session.run(contrib.nccl.reduce_sum(towers)).tolist() == [6, 9]
    with pytest.raises(ValueError, match="one shape"):
        contrib.nccl.all_sum([tf.ones([2]), tf.ones([3])])


def test_averages_in_place_of_variables(tmp_path):
    v = tf.Variable(1.0, name="v")
    optimizer = contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), average_decay=0.5)
    with pytest.raises(RuntimeError, match="Must call apply_gradients"):
        optimizer.swapping_saver()
    train = optimizer.minimize(v)
    saver = optimizer.swapping_saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)
        path = saver.save(session, str(tmp_path / "x"), write_meta_graph=False)
        assert session.run(v) == -1
    reader = tf.train.load_checkpoint(path)
    assert reader.get_tensor("v") == 0.5 * (0.5 * 1 + 0.5 * 0) + 0.5 * -1 and reader.get_tensor("v/ExponentialMovingAverage") == -1


def test_small_names():
    assert contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits([[1.0, 2]], [[0.0, 1]]).shape.as_list() == [1]
    strategy = contrib.training.GreedyLoadBalancingStrategy(2, contrib.training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
        devices = [tf.Variable(tf.zeros([n])).device for n in (100, 10, 20, 5)]
    assert devices == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1"]
    local = contrib.framework.local_variable(1.0)
    contrib.framework.add_model_variable(local)
    assert tf.local_variables() == [local] == tf.get_collection(tf.GraphKeys.MODEL_VARIABLES) and local not in tf.global_variables()
    with tf.Session() as session:
        session.run(local.initializer)
        table = contrib.lookup.string_to_index_table_from_tensor(["a", "b"], num_oov_buckets=0)
        session.run(tf.tables_initializer())
        assert session.run(table.lookup(tf.constant(["b", "x"]))).tolist() == [1, -1]
        x = tf.constant(np.random.RandomState(0).randn(20000).astype("f"))
        mean, variance = session.run(tf.nn.moments(contrib.nn.alpha_dropout(tf.nn.selu(x), 0.8), [0]))
        before = session.run(tf.nn.moments(tf.nn.selu(x), [0]))
        np.testing.assert_allclose([mean, variance], before, atol=0.1)
        assert session.run(contrib.nn.scaled_softplus(tf.constant(2.0), 0.5)) == pytest.approx(0.5 * np.log1p(np.exp(4)), rel=1e-5)


def test_modules_take_out_what_is_not_documented():
    import sys
    import types

    from millrace.compat import util

    module = sys.modules["_some_module"] = types.ModuleType("_some_module", "Text.\n\n@@kept\n")
    module.kept, module.listed, module.hidden = 1, 2, 3
    util.remove_undocumented("_some_module", ["listed"])
    assert module.kept == 1 and module.listed == 2 and not hasattr(module, "hidden")
    util.reveal_undocumented("_some_module.hidden")
    assert module.hidden == 3
    with pytest.raises(LookupError):
        util.reveal_undocumented("_some_module.nothing")
