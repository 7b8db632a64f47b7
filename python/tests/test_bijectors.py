# SPDX-License-Identifier: Apache-2.0
"""Tails of distributions, bijectors, what they make of distributions, and divergences."""

import math

import numpy as np
import pytest

import millrace as tf
from millrace.distributions import special_math, util

ds = tf.contrib.distributions
B = ds.bijectors


@pytest.fixture(autouse=True)
def fresh():
    tf.reset_default_graph()


def values(*tensors):
    with tf.Session() as session:
        made = session.run(tensors)
    return made[0] if len(made) == 1 else made


def test_tails_and_their_gradients_are_finite():
    for dtype in (np.float32, np.float64):
        x = tf.constant(np.array([-50, -12, -3, 0, 3, 12], dtype))
        logs = ds.Normal(dtype(0), dtype(1)).log_cdf(x)
        got, slope = values(logs, tf.gradients(logs, x)[0])
        exact = [
            -1254.8313611394,
            -75.4106730015,
            math.log(0.5 * math.erfc(3 / math.sqrt(2))),
            math.log(0.5),
            math.log1p(-0.5 * math.erfc(3 / math.sqrt(2))),
            0,
        ]
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-6)
        assert np.isfinite(slope).all() and abs(slope[0] - 50) < 0.1
    p = np.array([1e-30, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    np.testing.assert_allclose(values(special_math.erfinv(np.array([0.0, 0.5, 0.99]))), [0.0, 0.4769362762044699, 1.8213863677184496], rtol=1e-12)
    np.testing.assert_allclose(values(special_math.ndtr(special_math.ndtri(tf.constant(p)))), p, rtol=1e-7)
    assert values(ds.Normal(0.0, 1.0).quantile(0.975)) == pytest.approx(1.959964, rel=1e-5)
    x = np.array([-200.0, -1.0, 0.0, 2.0, 60.0])
    np.testing.assert_allclose(values(ds.Laplace(np.float64(0), np.float64(1)).log_cdf(x)), np.where(x < 0, x - np.log(2), np.log1p(-0.5 * np.exp(-abs(x)))))
    assert values(ds.Gamma(2.0, 3.0).cdf(1.0)) == pytest.approx(1 - 4 * math.exp(-3), rel=1e-5)
    assert values(ds.Beta(2.0, 1.0).cdf(0.5)) == pytest.approx(0.25, rel=1e-5)
    assert values(ds.StudentT(1.0, 0.0, 1.0).cdf(1.0)) == pytest.approx(0.75, rel=1e-5)


BIJECTORS = [
    (B.Exp(), [-1.0, 0.5]),
    (B.Sigmoid(), [-2.0, 3.0]),
    (B.Softplus(), [-5.0, 0.1]),
    (B.Softplus(hinge_softness=0.5), [-1.0, 2.0]),
    (B.PowerTransform(power=0.5), [0.3, 2.0]),
    (B.Invert(B.Exp()), [0.5, 2.0]),
]


@pytest.mark.parametrize("kind", range(len(BIJECTORS) + 2))
def test_bijectors_against_differences(kind):
    if kind < len(BIJECTORS):
        b, x = BIJECTORS[kind]
    else:
        b, x = [(B.AffineScalar(shift=1.0, scale=-2.0), [0.5, 3.0]), (B.Chain([B.Exp(), B.AffineScalar(shift=1.0, scale=2.0)]), [-1.0, 0.5])][
            kind - len(BIJECTORS)
        ]
    x = np.array(x, np.float32)
    t = tf.constant(x)
    y = b.forward(t)
    fresh_y = tf.identity(y)  # of which nothing is remembered
    jacobian = tf.gradients(y, t)[0] if y is not t else tf.ones_like(t)
    back, forward, inverse, exact = values(b.inverse(fresh_y), b.forward_log_det_jacobian(t), b.inverse_log_det_jacobian(fresh_y), jacobian)
    np.testing.assert_allclose(back, x, rtol=1e-4)
    np.testing.assert_allclose(np.broadcast_to(forward, x.shape), np.log(abs(exact)), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(inverse, -forward, rtol=1e-3, atol=1e-5)
    assert b.inverse(y) is t


def test_bijectors_of_vectors_and_transformed_distributions():
    x = np.array([[0.3, -1.0]], np.float32)
    tril = np.array([[2.0, 0.0], [1.0, 3.0]], np.float32)
    affine = B.Affine(shift=[1.0, 2.0], scale_tril=tril)
    np.testing.assert_allclose(values(affine.forward(x)), x @ tril.T + [1, 2], rtol=1e-6)
    normal = ds.TransformedDistribution(ds.MultivariateNormalDiag([0.0, 0.0], [1.0, 1.0]), affine)
    wanted = ds.MultivariateNormalTriL([1.0, 2.0], tril)
    np.testing.assert_allclose(*values(normal.log_prob(x), wanted.log_prob(x)), rtol=1e-5)
    simplex = B.SoftmaxCentered()
    y = simplex.forward(x)
    assert simplex.forward_event_shape([2]).as_list() == [3] and simplex.inverse_event_shape([3]).as_list() == [2]
    np.testing.assert_allclose(*values(y, tf.nn.softmax(np.concatenate([x, [[0]]], 1).astype("f"))), rtol=1e-6)
    np.testing.assert_allclose(values(simplex.inverse(tf.identity(y))), x, rtol=1e-5)
    lognormal = ds.TransformedDistribution(ds.Normal(0.0, 1.0), B.Exp())
    assert values(lognormal.log_prob(2.0)) == pytest.approx(-0.5 * math.log(2) ** 2 - math.log(2 * math.sqrt(2 * math.pi)), rel=1e-5)
    assert values(lognormal.cdf(1.0)) == pytest.approx(0.5) and lognormal.sample(5, seed=1).get_shape().as_list() == [5]
    with pytest.raises(NotImplementedError, match="forward not implemented"):
        B.Inline().forward(1.0)


def test_divergences_of_subclasses_and_nan():
    class Mine(ds.Normal):
        pass

    class Other(Mine):
        pass

    @ds.RegisterKL(Mine, Mine)
    def _(a, b):
        return tf.constant(float("nan"))

    assert np.isnan(values(ds.kl_divergence(Other(0.0, 1.0), Mine(0.0, 1.0))))
    with pytest.raises(tf.errors.InvalidArgumentError, match="KL calculation between .* and .* returned NaN values"):
        values(ds.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0), allow_nan_stats=False))


def test_helpers():
    assert values(util.fill_triangular([1, 2, 3, 4, 5, 6])).tolist() == [[4, 0, 0], [6, 5, 0], [3, 2, 1]]
    assert values(util.fill_lower_triangular([[1, 2, 3, 4, 5, 6]])).tolist() == [[[1, 0, 0], [2, 3, 0], [4, 5, 6]]]
    assert values(util.fill_triangular([1, 2, 3, 4, 5, 6], upper=True)).tolist() == [[1, 2, 3], [0, 5, 6], [0, 0, 4]]
    found, sign = values(*util.reduce_weighted_logsumexp([0.0, 1.0], [1.0, -2.0], return_sign=True))
    assert found == pytest.approx(math.log(2 * math.e - 1), rel=1e-6) and sign == -1
    assert values(util.rotate_transpose(np.zeros([1, 2, 3]), 1)).shape == (3, 1, 2)
    y = tf.constant([1e-20, 1e-3, 1.0, 50.0])
    np.testing.assert_allclose(values(tf.nn.softplus(util.softplus_inverse(y))), [1e-20, 1e-3, 1, 50], rtol=1e-4)
    assert np.isfinite(values(tf.gradients(util.softplus_inverse(y), y)[0])).all()


@pytest.mark.parametrize(
    "make,x,want",
    [
        (lambda: B.Square(), [0.5, 2.0], lambda x: x**2),
        (lambda: B.Softsign(), [-2.0, 0.5], lambda x: x / (1 + abs(x))),
        (lambda: B.Gumbel(np.float64(0.5), np.float64(2)), [-1.0, 3.0], lambda x: np.exp(-np.exp(-(x - 0.5) / 2))),
        (lambda: B.Weibull(np.float64(2), np.float64(3)), [0.3, 2.5], lambda x: 1 - np.exp(-((x / 2) ** 3))),
        (lambda: B.Kumaraswamy(np.float64(2), np.float64(3)), [0.2, 0.9], lambda x: (1 - (1 - x) ** (1 / 3)) ** (1 / 2)),
        (lambda: B.SinhArcsinh(np.float64(0.5), np.float64(1.5)), [-2.0, 0.7], lambda x: np.sinh((np.arcsinh(x) + 0.5) * 1.5)),
    ],
)
def test_bijectors_of_numbers(make, x, want):
    x, step = np.array(x), 1e-5
    slope = np.log((want(x + step) - want(x - step)) / (2 * step))
    bijector, y = make(), want(x)
    forward, back, there, here = values(bijector.forward(x), bijector.inverse(y), bijector.forward_log_det_jacobian(x), bijector.inverse_log_det_jacobian(y))
    np.testing.assert_allclose(forward, y, rtol=1e-10)
    np.testing.assert_allclose(back, x, rtol=1e-9)
    np.testing.assert_allclose(there, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(here, -slope, rtol=1e-6, atol=1e-8)


def test_permutations():
    x = np.arange(6.0).reshape(2, 3)
    bijector = B.Permute([2, 0, 1])
    forward, back, change = values(bijector.forward(x), bijector.inverse(x[:, [2, 0, 1]]), bijector.inverse_log_det_jacobian(x))
    np.testing.assert_array_equal(forward, x[:, [2, 0, 1]])
    np.testing.assert_array_equal(back, x)
    assert change == 0
    with pytest.raises(ValueError, match="exactly one of each"):
        B.Permute([0, 0, 1])


def test_bijector_of_your_own_says_how_many_dimensions_it_needs():
    class Scaled(B.Bijector):
        def __init__(self, **kwargs):
            super().__init__(is_constant_jacobian=True, name="scaled", **kwargs)

        def _forward(self, x):
            return 3.0 * x

        def _inverse(self, y):
            return y / 3.0

        def _forward_log_det_jacobian(self, x):
            return tf.log(3.0)

    with tf.Graph().as_default(), tf.Session() as session:
        x, ndims = tf.ones([4, 2]), tf.placeholder(tf.int32)
        one, rows = Scaled(forward_min_event_ndims=0), Scaled(forward_min_event_ndims=1, inverse_min_event_ndims=2)
        assert (one.inverse_min_event_ndims, rows.forward_min_event_ndims, rows.inverse_min_event_ndims) == (0, 1, 2)
        logs = session.run([one.forward_log_det_jacobian(x, n) for n in range(3)])
        np.testing.assert_allclose(logs, np.log(3) * np.array([1, 2, 8]), rtol=1e-6)  # those of the batch are not repeated
        late = one.forward_log_det_jacobian(x, ndims)
        np.testing.assert_allclose([session.run(late, {ndims: n}) for n in range(3)], logs)
        with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
            session.run(late, {ndims: [1, 2]})
        for value, match in ((0, "at least 1"), (1.5, "Expected integer"), ([1], "Expected scalar")):
            with pytest.raises(ValueError, match=match):
                rows.forward_log_det_jacobian(x, value)
