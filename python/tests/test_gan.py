# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.gan: models of several networks, their losses, pools, and virtual batch normalization."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib.gan.virtual_batchnorm import VBN

G = tf.contrib.gan


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _generator(x, *_):
    return x * tf.get_variable("factor", [], initializer=tf.constant_initializer(2.0))


def _discriminator(x, _):
    return tf.reduce_sum(x, 1, keepdims=True) * tf.get_variable("slope", [], initializer=tf.constant_initializer(3.0))


def _run(*fetches, feed_dict=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches), feed_dict)


def test_a_cycle_of_two_models():
    x, y = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 5.0]])
    model = G.cyclegan_model(_generator, _discriminator, x, y)
    assert [v.op.name for v in tf.trainable_variables()] == [
        "ModelX2Y/Generator/factor",
        "ModelX2Y/Discriminator/slope",
        "ModelY2X/Generator/factor",
        "ModelY2X/Discriminator/slope",
    ]
    loss = G.cyclegan_loss(model, cycle_consistency_loss_weight=0.5)
    # Both ways by 4: |1 - 4|, |2 - 8| and |3 - 12|, |5 - 20|, means 4.5 and 12; least squares of 3 (2 x): (18 - 1)^2 / 2.
    found = _run(loss.loss_x2y, loss.loss_y2x, model.reconstructed_x)
    np.testing.assert_allclose(found[0], [144.5 + 0.5 * 8.25, (18**2 + 23**2) / 2])
    np.testing.assert_allclose(found[1], [(48 - 1) ** 2 / 2 + 0.5 * 8.25, (48**2 + 8**2) / 2])
    np.testing.assert_allclose(found[2], [[4.0, 8.0]])
    ops = G.gan_train_ops(model, loss, tf.train.GradientDescentOptimizer(0.1), tf.train.GradientDescentOptimizer(0.1))
    assert len(ops.generator_train_op) == len(ops.discriminator_train_op) == 2
    with pytest.raises(ValueError, match="must be a `CycleGANModel`"):
        G.cyclegan_loss(model.model_x2y)


def test_a_star_of_domains():
    def judge(x, domains):
        return _discriminator(x, domains), tf.layers.dense(x, domains, kernel_initializer=tf.zeros_initializer(), name="domain")

    data, labels = [tf.ones([2, 3]), tf.ones([1, 3])], tf.one_hot([0, 1, 1], 2)
    model = G.stargan_model(lambda x, domain: _generator(x), judge, data, labels)
    assert model.input_data.shape == [3, 3] and model.generated_data_domain_target.shape == [3, 2]
    loss = G.stargan_loss(model, gradient_penalty_weight=2.0, reconstruction_loss_weight=5.0, classification_loss_weight=7.0)
    generator, discriminator = _run(loss.generator_loss, loss.discriminator_loss)
    domain, slope = 7 * np.log(2.0), 3 * np.sqrt(3.0)
    np.testing.assert_allclose([generator, discriminator], [-18 + 5 * 3 + domain, 18 - 9 + 2 * (slope - 1) ** 2 + domain], rtol=1e-5)


def test_penalties_see_the_pool():
    model = G.gan_model(_generator, _discriminator, tf.ones([1, 2]), tf.constant([[1.0, 1.0]]))
    pool = lambda given: (given[0], given[1] + 10.0)  # (inputs, data)
    plain, pooled = G.gan_loss(model), G.gan_loss(model, tensor_pool_fn=pool, gradient_penalty_weight=1.0, gradient_penalty_target=2.0)
    sided = G.gan_loss(model, gradient_penalty_weight=1.0, gradient_penalty_target=5.0, gradient_penalty_one_sided=True)
    found = _run(plain, pooled, sided)
    slope = 3 * np.sqrt(2.0)
    np.testing.assert_allclose([f.generator_loss for f in found], [-12.0] * 3)
    np.testing.assert_allclose([f.discriminator_loss for f in found], [12 - 6, 72 - 6 + (slope / 2 - 1) ** 2, 6.0], rtol=1e-5)
    assert sorted(tf.contrib.gan.losses.wargs.__dict__) and tf.contrib.gan.losses.wargs.wasserstein_generator_loss(tf.constant([2.0])).shape == []


def test_losses_beside_the_adversarial_one():
    v = tf.Variable(1.0)
    wargs, main, other = G.losses.wargs, 3.0 * v, 1e25 * v
    found = _run(
        wargs.combine_adversarial_loss(main, other, gradient_ratio=0.5),
        wargs.combine_adversarial_loss(main, 4.0 * v, weight_factor=2.0),
        wargs.combine_adversarial_loss(main, 4.0 * v, weight_factor=0.0),
    )
    np.testing.assert_allclose(found, [9.0, 11.0, 3.0], rtol=1e-5)  # gradients of 1e25 have no squares in float32
    with pytest.raises(ValueError, match="cannot both be specified"):
        wargs.combine_adversarial_loss(main, other, 1.0, 1.0)
    with pytest.raises(ValueError, match="present in both"):
        G.losses.wasserstein_generator_loss(G.gan_model(_generator, _discriminator, tf.ones([1, 2]), tf.ones([1, 2])), generator_inputs=1)


def test_every_value_goes_into_a_full_pool():
    x = tf.placeholder(tf.float32, [])
    pooled = G.features.tensor_pool(x, pool_size=1, pooling_probability=1.0)
    fresh = G.features.tensor_pool({"x": x}, pool_size=1, pooling_probability=0.0)["x"]
    with tf.Session() as session:
        assert [session.run(pooled, {x: i}) for i in range(5)] == [0, 0, 1, 2, 3]
        assert [session.run(fresh, {x: i}) for i in range(5)] == [0, 1, 2, 3, 4]
        assert session.run(G.features.tensor_pool(x, 0), {x: 7}) == 7


def test_conditions_and_clipping():
    made = G.features.condition_tensor_from_onehot(tf.ones([2, 3]), tf.one_hot([1, 0], 4), 5)
    assert made.shape == [2, 3] and [v.op.name for v in tf.trainable_variables()] == ["embedding", "fully_connected/weights", "fully_connected/biases"]
    w = tf.Variable([3.0, 4.0])
    train = G.features.clip_variables(tf.train.GradientDescentOptimizer(0.0), [w], 2.5).minimize(tf.reduce_sum(w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), [2.5, 2.5], rtol=1e-6)


def test_an_example_is_normalized_with_the_reference():
    random = np.random.RandomState(1)
    reference, x = random.randn(4, 5, 3).astype(np.float32), random.randn(2, 5, 3).astype(np.float32)
    for axis, batch_axis in ((-1, 0), (1, 0), (0, 2)):
        vbn = VBN(tf.constant(np.moveaxis(reference, 0, batch_axis)), axis, batch_axis=batch_axis, epsilon=0.0)
        whole, each = _run(vbn.reference_batch_normalization(), vbn(np.moveaxis(x, 0, batch_axis)))
        axis = axis % 3
        rest = tuple(i for i in range(3) if i != axis)
        batch = np.moveaxis(reference, 0, batch_axis)
        np.testing.assert_allclose(whole, (batch - batch.mean(rest, keepdims=True)) / batch.std(rest, keepdims=True), rtol=1e-3, atol=1e-4)
        for i in range(2):
            more = np.concatenate([batch, np.moveaxis(x[i : i + 1], 0, batch_axis)], batch_axis)
            wanted = (more - more.mean(rest, keepdims=True)) / more.std(rest, keepdims=True)
            np.testing.assert_allclose(np.take(each, i, batch_axis), np.take(wanted, 4, batch_axis), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="cannot be the same"):
        VBN(tf.ones([2, 3]), 0)


def test_steps_of_slim_take_turns():
    v, slim = tf.Variable(0.0), tf.contrib.slim
    step = tf.train.get_or_create_global_step()
    ops = G.GANTrainOps(v.assign_add(1.0), v.assign_add(10.0), step.assign_add(1))
    told = {}

    def turn(session, train_ops, global_step, kwargs):
        told.update(kwargs)
        return G.get_sequential_train_steps(G.GANTrainSteps(2, 1))(session, train_ops, global_step, kwargs)

    assert slim.learning.train(ops, None, turn, global_step=step, number_of_steps=2) == 13 + 14 + 24
    assert sorted(told) == ["should_log", "should_stop"]


def _images(*shape):
    return np.random.RandomState(sum(shape)).rand(*shape).astype(np.float32)


def test_distances_of_activations():
    a, b = _images(50, 4), 2 * _images(40, 4)
    found = _run(
        G.eval.frechet_classifier_distance_from_activations(a, b),
        G.eval.diagonal_only_frechet_classifier_distance_from_activations(a, b),
        G.eval.mean_only_frechet_classifier_distance_from_activations(a, b),
    )
    mean = np.square(a.mean(0) - b.mean(0)).sum()
    s, t = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = np.sqrt(np.linalg.eigvals(s @ t).real).sum()
    np.testing.assert_allclose(found, [mean + np.trace(s + t) - 2 * root, mean + np.square(a.std(0) - b.std(0)).sum(), mean], rtol=1e-5)


def test_a_graph_in_a_tarball(tmp_path):
    import tarfile

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 299, 299, 3], name="Mul")
        tf.reduce_mean(x, [1, 2], name="logits")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "graph.pb", "graph.pb")
    read = lambda: G.eval.get_graph_def_from_url_tarball((tmp_path / "t.tar.gz").as_uri(), "graph.pb", str(tmp_path / "kept.tar.gz"))
    logits = G.eval.run_inception(tf.ones([2, 299, 299, 3]), default_graph_def_fn=read)
    np.testing.assert_allclose(_run(logits)[0], np.ones([2, 3]), rtol=1e-5)
    assert read() == graph.as_graph_def() and (tmp_path / "kept.tar.gz").exists()


def test_patches_by_size():
    from millrace.contrib.gan import sliced_wasserstein

    image = _images(2, 16, 16, 3)
    pyramid = _run(*sliced_wasserstein._laplacian_pyramid(image, 2))
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256.0

    def blurred(x):
        padded = np.pad(x, [(0, 0), (2, 2), (2, 2), (0, 0)], "reflect")
        return sum(weights[i, j] * padded[:, i : i + x.shape[1], j : j + x.shape[2]] for i in range(5) for j in range(5))

    small = blurred(image)[:, ::2, ::2]
    apart = np.zeros_like(image)
    apart[:, ::2, ::2] = 4 * small
    np.testing.assert_allclose(pyramid[1], small, atol=1e-6)
    np.testing.assert_allclose(pyramid[0], image - blurred(apart), atol=1e-5)
    real, other = tf.constant(_images(32, 32, 32, 3)), tf.constant(_images(32, 1, 32, 3) + np.ones([32, 32, 1, 1], np.float32))  # every column of one colour
    for use_svd in (False, True):
        scores = np.array(_run(*G.eval.sliced_wasserstein_distance(real, other, use_svd=use_svd)))
        assert scores.shape == (2, 2) and (scores[:, 1] > 1.5 * scores[:, 0]).all() and scores[:, 0].max() < 0.1
    with pytest.raises(ValueError):
        G.eval.sliced_wasserstein_distance(real, other[:, :31])


def _summaries():
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = tf.Summary.FromString(session.run(tf.summary.merge_all())).value
    return {v.tag: v.image.height * 1000 + v.image.width for v in found}


def test_images_beside_each_other():
    images = tf.ones([4, 5, 6, 3])
    judge = lambda x, _: (tf.layers.dense(tf.layers.flatten(x), 1), tf.layers.dense(tf.layers.flatten(x), 2))
    G.eval.add_stargan_image_summaries(G.stargan_model(lambda x, d: _generator(x), judge, images, tf.one_hot([0, 1, 0, 1], 2), "g", "d"), display_diffs=True)
    cycle = G.cyclegan_model(_generator, lambda x, _: tf.layers.dense(tf.layers.flatten(x), 1), images, images)
    G.eval.add_cyclegan_image_summaries(cycle)
    G.eval.add_image_comparison_summaries(cycle.model_x2y, 2, display_diffs=True)
    G.eval.add_gan_model_image_summaries(cycle.model_x2y, 2, model_summaries=False)
    found = _summaries()
    assert found.pop("stargan_image_generation/image/0") == 10018 and found.pop("stargan_image_generation/image/1") == 10018
    assert found == {
        "x2y_image_comparison_summaries/image_comparison/image": 5018,
        "y2x_image_comparison_summaries/image_comparison/image": 5018,
        "image_comparison/image": 20012,
        "real_data/image": 10012,
        "generated_data/image": 10012,
    }
    with pytest.raises(ValueError, match="use `add_cyclegan_image_summaries`"):
        G.eval.add_gan_model_image_summaries(cycle)


def test_estimators_of_gans(tmp_path):
    E, sgd = tf.estimator, tf.train.GradientDescentOptimizer

    def generate(x, mode):
        return tf.layers.dense(x["x"], 3, kernel_regularizer=tf.nn.l2_loss, name="g") + float(mode == E.ModeKeys.PREDICT)

    losses = G.losses.least_squares_generator_loss, G.losses.least_squares_discriminator_loss
    made = G.estimator.GANEstimator(str(tmp_path / "gan"), generate, lambda x, _: tf.layers.dense(x, 1), *losses, sgd(0.0), lambda: sgd(0.0))
    x, real = np.ones([4, 2], np.float32), np.zeros([4, 3], np.float32)
    made.train(E.inputs.numpy_input_fn({"x": x}, real, batch_size=4, shuffle=False), steps=1)
    found = made.evaluate(E.inputs.numpy_input_fn({"x": x}, real, batch_size=4, shuffle=False))
    g, d = (made.get_variable_value(name) for name in ("Generator/g/kernel", "Discriminator/dense/kernel"))
    judged = x @ g @ d
    np.testing.assert_allclose(
        [found["generator_loss"], found["discriminator_loss"]], [np.mean((judged - 1) ** 2) / 2, 0.5 + np.mean(judged**2) / 2], rtol=1e-4
    )
    np.testing.assert_allclose(list(made.predict(E.inputs.numpy_input_fn({"x": x}, shuffle=False))), x @ g + 1, rtol=1e-5)
    with pytest.raises(ValueError, match="generator_loss_fn must be callable"):
        G.estimator.GANEstimator()


def test_a_head_of_a_gan():
    model = G.gan_model(_generator, _discriminator, tf.ones([1, 2]), tf.ones([1, 2]))
    optimizers = [tf.train.GradientDescentOptimizer(0.1) for _ in range(2)]
    head = G.estimator.gan_head(G.losses.wasserstein_generator_loss, G.losses.wasserstein_discriminator_loss, *optimizers, name="h")
    spec = head.create_estimator_spec(None, "eval", model)
    assert (
        sorted(spec.eval_metric_ops) == ["discriminator_loss/h", "generator_loss/h"]
        and len(head.create_estimator_spec(None, "train", model).training_hooks) == 2
    )
    assert _run(spec.loss)[0] == -12 + 12 - 6
    assert head.create_estimator_spec(None, "infer", model).predictions is model.generated_data
    with pytest.raises(ValueError, match="must be `None`"):
        head.create_estimator_spec(None, "eval", model, labels=1)


def test_an_estimator_of_stars(tmp_path):
    judge = lambda x, domains: (tf.reduce_mean(x, 1), tf.layers.dense(x, domains))
    sgd, data = tf.train.GradientDescentOptimizer(0.0), lambda: (tf.ones([2, 3]), tf.one_hot([0, 1], 2))
    made = G.estimator.StarGANEstimator(str(tmp_path), lambda x, d: _generator(x) + d[:, :1], judge, G.stargan_loss, sgd, sgd, add_summaries=1)
    made.train(data, steps=1)
    assert "discriminator_loss" in made.evaluate(data, steps=1)
    predictions = made.predict(G.estimator.stargan_prediction_input_fn_wrapper(data), yield_single_examples=False)
    np.testing.assert_allclose(next(predictions), [[3.0] * 3, [2.0] * 3])


@pytest.mark.parametrize("is_chief", [True, False])
def test_hooks_of_synchronous_training_know_the_chief(is_chief):
    model = G.gan_model(_generator, _discriminator, tf.ones([2, 3]), tf.ones([2, 3]))
    optimizers = [tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1) for _ in range(2)]
    ops = G.gan_train_ops(model, G.gan_loss(model), *optimizers, is_chief=is_chief)
    assert [hook._is_chief for hook in ops.train_hooks] == [is_chief, is_chief]
    assert [hook._sync_optimizer for hook in ops.train_hooks] == optimizers
