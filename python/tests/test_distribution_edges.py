# SPDX-License-Identifier: Apache-2.0
"""Distributions and bijectors at the ends of their ranges, and beyond what they were made for first."""

import math

import numpy as np
import pytest

import millrace as tf

ds = tf.contrib.distributions
b = ds.bijectors


def run(*tensors):
    with tf.Session() as sess:
        found = sess.run(list(tensors))
    return found[0] if len(tensors) == 1 else found


def test_answers_under_conditions_that_are_gone_are_not_given_again():
    inline = b.Inline(forward_fn=lambda x, c: x * c, inverse_fn=lambda y, c: y / c)
    x = tf.constant(1.0)
    assert run(*[inline.forward(x, c=float(i) + 0.5) for i in range(5)]) == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_a_constant_jacobian_is_that_of_the_events_asked_for():
    affine = b.Affine(scale_identity_multiplier=2.0)
    two, three = affine.forward_log_det_jacobian(tf.zeros([2])), affine.forward_log_det_jacobian(tf.zeros([3]))
    np.testing.assert_allclose(run(two, three), [2 * math.log(2.0), 3 * math.log(2.0)], rtol=1e-6)
    scalar = b.AffineScalar(scale=2.0)
    sizes = [scalar.forward_log_det_jacobian(tf.zeros([n]), 1) for n in (2, 3)]
    np.testing.assert_allclose(run(*sizes), [2 * math.log(2.0), 3 * math.log(2.0)], rtol=1e-6)
    permute = b.Permute([1, 0])
    assert [permute.forward_log_det_jacobian(tf.zeros([2], t)).dtype for t in (tf.float32, tf.float64)] == [tf.float32, tf.float64]


def test_statistics_of_two_values_with_one_image_are_refused():
    folded = ds.TransformedDistribution(ds.Normal(0.0, 1.0), b.Chain([b.AbsoluteValue()]))
    for what in (folded.mean, lambda: folded.cdf([1.0]), lambda: folded.quantile(0.5), folded.entropy):
        with pytest.raises(NotImplementedError):
            what()
    assert not b.Invert(b.AbsoluteValue()).is_injective


def test_quantized_tails_agree():
    q = ds.QuantizedDistribution(ds.Normal(0.0, 1.0))
    x = np.array([-1.5, -1.0, 0.3, 1.5, 2.0], np.float32)
    np.testing.assert_allclose(run(q.cdf(x) + q.survival_function(x)), np.ones(5), rtol=1e-6)
    np.testing.assert_allclose(run(q.survival_function(1.5)), 0.1586553, rtol=1e-5)
    for base in (ds.Exponential(1.0), ds.Kumaraswamy(2.0, 3.0)):
        found = run(ds.QuantizedDistribution(base).prob([-1.0, 0.0, 1.0, 2.0]))
        assert np.all((found >= 0) & (found <= 1)), found
    np.testing.assert_allclose(run(ds.Exponential(1.0).cdf([-1.0, 0.0])), [0.0, 0.0])
    np.testing.assert_allclose(run(ds.Kumaraswamy(2.0, 3.0).cdf([-1.0, 2.0])), [0.0, 1.0])


def test_kumaraswamy_of_ones_is_uniform_up_to_its_ends():
    np.testing.assert_allclose(run(ds.Kumaraswamy(1.0, 1.0).log_prob([0.0, 0.5, 1.0])), [0.0, 0.0, 0.0], atol=1e-7)


def test_vectors_skewed_from_numbers_keep_their_batch():
    loc, diagonal = [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]
    own = ds.VectorSinhArcsinhDiag(loc=loc, scale_diag=diagonal)
    given = ds.VectorSinhArcsinhDiag(loc=loc, scale_diag=diagonal, distribution=ds.Normal(0.0, 1.0))
    assert given.batch_shape.as_list() == own.batch_shape.as_list() == [2]
    assert given.event_shape.as_list() == own.event_shape.as_list() == [2]
    np.testing.assert_allclose(run(given.log_prob([0.5, 1.5])), run(own.log_prob([0.5, 1.5])), rtol=1e-5)


def test_reshaped_batches():
    reshaped = ds.BatchReshape(ds.Normal(np.zeros(6, np.float32), 1.0), tf.constant([-1, 2]))
    assert run(reshaped.log_prob(0.0)).shape == (3, 2)
    for sizes in ([0, -1], [-1, 4]):
        with pytest.raises(ValueError, match="batch_shape"):
            ds.BatchReshape(ds.Normal(np.zeros(6, np.float32), 1.0), sizes)


def test_mixtures():
    with pytest.raises(ValueError, match="batch"):
        ds.MixtureSameFamily(ds.Categorical(probs=[[0.3, 0.7], [0.5, 0.5]]), ds.Normal([[-1.0, 1.0]] * 3, [0.1, 0.5]))
    whole = ds.MixtureSameFamily(ds.Categorical(probs=[1.0, 0.0]), ds.Normal([0.0, np.inf], 1.0))
    assert np.all(np.isfinite(run(whole.sample(5, seed=1))))


def test_reshaped_events():
    with pytest.raises(ValueError, match="have no shape"):
        b.Reshape([2, -1]).forward_event_shape([5])
    with pytest.raises(ValueError, match="beside none"):
        b.Reshape([0, -1])


def test_wisharts_scale_is_checked_when_asked():
    assert not callable(ds.WishartCholesky(3.0, np.eye(2, dtype=np.float32)).scale_operator)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(ds.WishartCholesky(3.0, -np.eye(2, dtype=np.float32), validate_args=True).log_prob(np.eye(2, dtype=np.float32)))
