# SPDX-License-Identifier: Apache-2.0
"""Distributions and bijectors that take conditions, and what a bijector remembers of samples."""

import math

import numpy as np
import pytest

import millrace as tf
from millrace.distributions.flow_bijectors import MASK_INCLUSIVE, _gen_mask

ds = tf.contrib.distributions


class Shifted(ds.bijectors.ConditionalBijector):
    def __init__(self, places):
        self._graph_parents, self._name = [], "shifted"
        with self._name_scope("init", values=[places]) as scope:
            assert scope.startswith("shifted") and scope.endswith("/init/")
            self._places = tf.constant(places)
            super().__init__(graph_parents=[self._places], is_constant_jacobian=True, forward_min_event_ndims=0, name="shifted")

    def _forward(self, x, place):
        return x + tf.gather(self._places, place)

    def _inverse(self, y, place):
        return y - tf.gather(self._places, place)

    def _inverse_log_det_jacobian(self, y, place):
        return tf.zeros([])


class Noise(ds.ConditionalDistribution):
    def __init__(self):
        super().__init__(tf.float32, ds.NOT_REPARAMETERIZED, False, True, name="Noise")

    def _sample_n(self, n, seed, scale):
        return scale * tf.ones([n])

    def _prob(self, x, scale):
        return x * scale

    def _cdf(self, x, scale):
        return x / scale


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def test_conditions_reach_the_bijector():
    kind = ds.ConditionalTransformedDistribution(distribution=ds.Normal(0.0, 1.0), bijector=Shifted([-100.0, 100.0]))
    place = {"place": [0, 1, 0, 1]}
    drawn, density, below = kind.sample(4, bijector_kwargs=place), kind.prob([-100.0, 100.0, 100.0, 101.0], bijector_kwargs=place), None
    below = kind.cdf([-100.0, 100.0, 100.0, 100.0], bijector_kwargs=place)
    with tf.Session() as session:
        assert np.sign(session.run(drawn)).tolist() == [-1, 1, -1, 1]
        top = 1 / math.sqrt(2 * math.pi)
        np.testing.assert_allclose(session.run(density), [top, top, 0, top * math.exp(-0.5)], rtol=1e-5)
        np.testing.assert_allclose(session.run(below), [0.5, 0.5, 1, 0.5])
    with pytest.raises(TypeError):
        ds.TransformedDistribution(ds.Normal(0.0, 1.0), Shifted([0.0])).sample(4, bijector_kwargs=place)


def test_conditions_reach_a_subclass():
    kind = Noise()
    made = [kind.sample([2, 1], scale=3.0), kind.log_prob(0.5, scale=2.0), kind.survival_function(1.0, scale=4.0), kind.log_cdf(2.0, scale=2.0)]
    with tf.Session() as session:
        drawn, *others = session.run(made)
    assert drawn.tolist() == [[3], [3]] and others == [0, 0.75, 0]


def test_a_bijector_without_an_inverse_knows_its_samples():
    way = ds.bijectors.Inline(forward_fn=tf.exp, inverse_log_det_jacobian_fn=lambda y: -tf.log(y), forward_min_event_ndims=0)
    kind = ds.TransformedDistribution(ds.Normal(0.0, 1.0), way)
    drawn = kind.sample([3, 2])
    with tf.Session() as session:
        y, logs = session.run([drawn, kind.log_prob(drawn)])
    x = np.log(y)
    np.testing.assert_allclose(logs, -(x**2) / 2 - math.log(2 * math.pi) / 2 - x, rtol=1e-4, atol=1e-5)


def test_masks_of_few_units():
    assert _gen_mask(4, 4, 2).tolist() == [[1] * 4] * 2  # blocks of no unit: TensorFlow shows these all
    assert not _gen_mask(4, 2, 8, MASK_INCLUSIVE).any()
    assert _gen_mask(2, 5, 3).T.tolist() == [[0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_covariance_of_one_of_some_classes():
    probs = np.array([[0.2, 0.8], [0.5, 0.5]])
    with tf.Session() as session:
        made = session.run(ds.OneHotCategorical(probs=probs).covariance())
    np.testing.assert_allclose(made, [[[0.16, -0.16], [-0.16, 0.16]], [[0.25, -0.25], [-0.25, 0.25]]], rtol=1e-6)


def test_shapes_that_do_not_merge_are_named():
    with pytest.raises(ValueError, match=r"Shapes \(\) and \(2,\) are not compatible"):
        ds.Mixture(ds.Categorical([-0.5, 0.5]), [ds.Normal(1.0, 2.0), ds.Normal([1.0, 1.0], 2.0)])
