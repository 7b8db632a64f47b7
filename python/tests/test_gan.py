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
