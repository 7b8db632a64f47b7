# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow of 1.0 to 1.3: stochastic tensors, variational inference, entropies by samples."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import distributions, entropy, variational
from millrace.contrib import stochastic_tensors as st


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def test_losses_of_what_is_no_function_of_its_parameters():
    p = tf.constant([0.3, 0.6])
    coin = st.StochasticTensor(distributions.Bernoulli(probs=p), loss_fn=st.get_score_function_with_constant_baseline(0.5))
    normal = st.StochasticTensor(distributions.Normal(tf.constant([1.0, 2.0]), 1.0))
    loss = tf.to_float(coin.value()) * 3.0 + normal
    surrogate = st.surrogate_loss([loss])
    with tf.Session() as s:
        value, of_loss, whole, slope = s.run([coin.value(), loss, surrogate, tf.gradients(surrogate, p)[0]])
    log_p = np.log(np.where(value == 1, [0.3, 0.6], [0.7, 0.4]))
    np.testing.assert_allclose(whole, of_loss + log_p * (of_loss - 0.5), rtol=1e-5)
    np.testing.assert_allclose(slope, np.where(value == 1, 1 / np.array([0.3, 0.6]), -1 / np.array([0.7, 0.4])) * (of_loss - 0.5), rtol=1e-5)
    assert normal.loss(loss) is None
    with pytest.raises(ValueError, match="dimensionality 1 or greater"):
        st.surrogate_loss([tf.constant(1.0)])


def test_values():
    dist = distributions.Normal([0.0, -1.0], [1.0, 2.0])
    with st.value_type(st.MeanValue()):
        assert isinstance(st.get_current_value_type(), st.MeanValue)
        mean = st.StochasticTensor(dist)
    with st.value_type(st.SampleValue(3)):
        many = st.StochasticTensor(dist)
    seen = st.ObservedStochasticTensor(dist, tf.zeros([4, 2]))
    assert many.value().shape == [3, 2] and tf.get_collection(st.STOCHASTIC_TENSOR_COLLECTION) == [mean, many, seen]
    with tf.Session() as s:
        assert s.run(tf.identity(mean)).tolist() == [0.0, -1.0]
    with pytest.raises(ValueError, match=r"Shape of observed value \(3,\) is incompatible"):
        st.ObservedStochasticTensor(dist, tf.zeros([3]))
    with pytest.raises(ValueError, match="No value type currently set"):
        st.get_current_value_type()


def test_advantages_over_what_others_would_have():
    loss = np.array([[1.0, 1.5], [1e-6, 1e4], [2.0, 3.0]])
    made = st.get_vimco_advantage_fn()(None, tf.constant(loss))
    geometric = np.array([np.exp(np.log(np.delete(loss, i, 0)).mean(0)) for i in range(3)])
    others = np.array([np.delete(loss, i, 0).sum(0) for i in range(3)])
    with tf.Session() as s:
        np.testing.assert_allclose(s.run(made), np.log(loss.mean(0)) - np.log((others + geometric) / 3), rtol=1e-5)


def test_lower_bounds_by_every_form():
    prior, x = distributions.Normal(0.0, 1.0), np.array([[-6.0, 3.0, 6.0], [-8.0, 4.0, 8.0]], "f")
    z = st.StochasticTensor(distributions.Normal(tf.constant([[0.5], [1.0]]), 0.7))
    variational.register_prior(z, prior)
    likelihood = tf.reduce_sum(distributions.Normal(z.value() * tf.ones([1, 3]), 1.0).log_prob(x), 1, keepdims=True)
    forms = variational.ELBOForms
    made = [variational.elbo(likelihood, form=form) for form in (None, forms.analytic_kl, forms.analytic_entropy, forms.sample)]
    joint = variational.elbo_with_log_joint(likelihood + prior.log_prob(z))
    q = z.distribution
    with tf.Session() as s:
        known, by_kl, by_entropy, by_sample, of_joint, of_x, of_z, of_q, kl, h = s.run(
            [*made, joint, likelihood, prior.log_prob(z), q.log_prob(z), distributions.kl_divergence(q, prior), q.entropy()]
        )
    np.testing.assert_allclose(known, of_x - kl, rtol=1e-6)
    np.testing.assert_allclose(by_kl, known)
    np.testing.assert_allclose(by_entropy, of_x + of_z + h, rtol=1e-6)
    np.testing.assert_allclose(by_sample, of_x + of_z - of_q, rtol=1e-6)
    np.testing.assert_allclose(of_joint, by_entropy, rtol=1e-6)
    with pytest.raises(ValueError, match="No prior specified"):
        variational.elbo(tf.identity(st.StochasticTensor(q)))
    with pytest.raises(TypeError, match="form must be an ELBOForms constant, not 'best'"):
        variational.elbo(likelihood, form="best")


def test_variables_that_are_distributions():
    getter = variational.make_stochastic_variable_getter(
        distributions.NormalWithSoftplusScale, prior=distributions.Normal(0.0, 1.0), param_initializers={"scale": tf.ones_initializer()}
    )
    with tf.variable_scope("scope", custom_getter=getter):
        w = tf.get_variable("w", [3, 2], initializer=tf.zeros_initializer())
    y = tf.matmul(tf.ones([4, 3]), w)
    assert sorted(v.op.name for v in tf.global_variables()) == ["scope/w_loc", "scope/w_scale"]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(variational.elbo(y, keep_batch_dim=False)).shape == (4, 2)
        assert s.run(tf.global_variables()[1]).tolist() == [[1, 1]] * 3


def test_entropies_and_ratios():
    q = distributions.Normal([0.0, 1.0], [1.0, 2.0])
    p = distributions.Normal([0.5, 1.0], [1.0, 2.0])
    made = [
        entropy.entropy_shannon(q),
        entropy.entropy_shannon(q, n=20000, seed=1, form=variational.ELBOForms.sample),
        entropy.elbo_ratio(p.log_prob, q, n=20000, seed=2),
        entropy.renyi_ratio(p.log_prob, q, 0.5, n=20000, seed=3),
        entropy.renyi_alpha(0, 3, 0.0, 0.5),
        entropy.renyi_alpha(3, 3, 0.0, 0.5),
    ]
    with tf.Session() as s:
        known, by_samples, ratio, renyi, first, last = s.run(made)
    np.testing.assert_allclose(known, 0.5 * np.log(2 * np.pi * np.e * np.array([1.0, 4.0])), rtol=1e-6)
    np.testing.assert_allclose(by_samples, known, rtol=0.02)
    np.testing.assert_allclose(ratio, [-0.125, 0.0], atol=0.03)
    np.testing.assert_allclose(renyi, [-0.0625, 0.0], atol=0.03)
    assert abs(first - 0.5) < 1e-5 and abs(last) < 1e-5
    with pytest.raises(ValueError, match="step must be scalar"):
        entropy.renyi_alpha([0], 3, 0.0)
