# SPDX-License-Identifier: Apache-2.0
"""Distributions against sums and integrals of their own densities; tests/programs/distributions.py has those that TensorFlow 2 still has."""

import numpy as np
import pytest

import millrace as tf

ds = tf.contrib.distributions
REALS = {
    "normal": lambda: ds.Normal(mu=0.5, sigma=1.5),
    "softplus": lambda: ds.NormalWithSoftplusScale(0.5, 1.0),
    "uniform": lambda: ds.Uniform(a=-1.0, b=2.0),
    "gamma": lambda: ds.Gamma(alpha=2.5, beta=1.5),
    "chi2": lambda: ds.Chi2(4.0),
    "exponential": lambda: ds.Exponential(lam=0.7),
    "inverse gamma": lambda: ds.InverseGamma(6.0, 4.0),
    "beta": lambda: ds.Beta(a=2.0, b=3.0),
    "student": lambda: ds.StudentT(df=9.0, mu=0.3, sigma=1.2),
    "laplace": lambda: ds.Laplace(0.3, 0.8),
    "logistic": lambda: ds.Logistic(0.3, 0.8),
    "gumbel": lambda: ds.Gumbel(0.3, 0.8),
    "relaxed": lambda: ds.RelaxedBernoulli(0.7, logits=0.4),
    "mixture": lambda: ds.Mixture(ds.Categorical(probs=[0.3, 0.7]), [ds.Normal(-1.0, 0.5), ds.Normal(2.0, 1.0)]),
}
WHOLE = {
    "bernoulli": (lambda: ds.Bernoulli(p=0.3), [0, 1]),
    "binomial": (lambda: ds.Binomial(7.0, probs=0.3), np.arange(8.0)),
    "poisson": (lambda: ds.Poisson(lam=3.5), np.arange(60.0)),
    "geometric": (lambda: ds.Geometric(probs=0.4), np.arange(80.0)),
    "categorical": (lambda: ds.Categorical(p=[0.2, 0.3, 0.5]), [0, 1, 2]),
}


def statistic(kind, name):
    try:
        return getattr(kind, name)()
    except NotImplementedError:
        return None


def compare(kind, value, weights, sess):
    logs = kind.log_prob(value)
    expected = {
        "mean": lambda p, v: np.sum(p * v),
        "variance": lambda p, v: np.sum(p * v * v) - np.sum(p * v) ** 2,
        "entropy": lambda p, v: -np.sum(p * np.log(np.maximum(p / weights, 1e-300))),
    }
    p = np.exp(sess.run(logs).astype(np.float64)) * weights
    assert abs(p.sum() - 1) < 2e-3
    v = np.asarray(value, np.float64)
    for name, formula in expected.items():
        tensor = statistic(kind, name)
        if tensor is not None:
            assert sess.run(tensor) == pytest.approx(formula(p, v), abs=6e-3, rel=6e-3), name
    drawn = sess.run(kind.sample(20000, seed=3)).astype(np.float64)
    assert drawn.shape == (20000,)
    assert drawn.mean() == pytest.approx(np.sum(p * v), abs=0.1)
    assert drawn.var() == pytest.approx(expected["variance"](p, v), rel=0.15)
    low = statistic_cdf(kind, value)
    if low is not None:
        assert np.abs(sess.run(low) - np.cumsum(p)).max() < 5e-3


def statistic_cdf(kind, value):
    try:
        return kind.cdf(value)
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", REALS)
def test_a_density_agrees_with_its_integrals_and_samples(name):
    with tf.Graph().as_default(), tf.Session() as sess:
        grid = np.linspace(-40, 80, 240001)[1::2].astype(np.float32)
        if name in ("gamma", "chi2", "exponential", "inverse gamma"):
            grid = np.linspace(0, 60, 240001)[1::2].astype(np.float32)
        if name in ("beta", "relaxed"):
            grid = np.linspace(0, 1, 20001)[1::2].astype(np.float32)
        compare(REALS[name](), grid, float(np.median(np.diff(grid.astype(np.float64)))), sess)


@pytest.mark.parametrize("name", WHOLE)
def test_probabilities_agree_with_their_sums_and_samples(name):
    make, values = WHOLE[name]
    with tf.Graph().as_default(), tf.Session() as sess:
        kind = make()
        p = sess.run(kind.prob(values)).astype(np.float64)
        assert p.sum() == pytest.approx(1, abs=1e-4)
        v = np.asarray(values, np.float64)
        for what, expected in (("mean", np.sum(p * v)), ("variance", np.sum(p * v * v) - np.sum(p * v) ** 2), ("entropy", -np.sum(p * np.log(p + 1e-300)))):
            tensor = statistic(kind, what)
            if tensor is not None and not (name == "categorical" and what != "entropy"):
                assert sess.run(tensor) == pytest.approx(expected, rel=2e-3, abs=2e-4), what
        if name != "binomial":
            drawn = sess.run(kind.sample(20000, seed=1))
            assert np.abs(np.bincount(drawn.astype(int), minlength=len(v))[: len(v)] / 20000.0 - p).max() < 0.02


def test_normal_vectors():
    rng = np.random.RandomState(0)
    lower = np.tril(rng.randn(3, 3)).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)
    covariance, loc, x = lower.dot(lower.T), rng.randn(3).astype(np.float32), rng.randn(5, 3).astype(np.float32)
    z = np.linalg.solve(lower, (x - loc).T)
    expected = -0.5 * (z**2).sum(0) - 1.5 * np.log(2 * np.pi) - np.log(np.abs(np.diag(lower))).sum()
    with tf.Graph().as_default(), tf.Session() as sess:
        full, tril = ds.MultivariateNormalFullCovariance(loc, covariance), ds.MultivariateNormalTriL(loc, lower)
        diagonal = ds.MultivariateNormalDiag(loc, np.diag(lower).copy())
        by_hand = ds.Independent(ds.Normal(loc, np.diag(lower).copy()), 1)
        assert tril.batch_shape.as_list() == [] and tril.event_shape.as_list() == [3] and tril.sample(4).get_shape().as_list() == [4, 3]
        np.testing.assert_allclose(sess.run(full.log_prob(x)), expected, rtol=2e-3)
        np.testing.assert_allclose(sess.run(tril.log_prob(x)), expected, rtol=2e-3)
        np.testing.assert_allclose(sess.run(tril.covariance()), covariance, rtol=1e-4)
        np.testing.assert_allclose(sess.run(diagonal.log_prob(x)), sess.run(by_hand.log_prob(x)), rtol=1e-5)
        np.testing.assert_allclose(sess.run(diagonal.entropy()), sess.run(by_hand.entropy()), rtol=1e-5)
        same = ds.MultivariateNormalTriL(loc, np.diag(np.diag(lower)).astype(np.float32))
        assert sess.run(ds.kl(diagonal, same)) == pytest.approx(0, abs=1e-5)
        assert sess.run(ds.kl(tril, diagonal)) == pytest.approx(
            np.mean(sess.run((lambda s: tril.log_prob(s) - diagonal.log_prob(s))(tril.sample(40000, 1)))), rel=0.05
        )
        np.testing.assert_allclose(np.cov(sess.run(tril.sample(40000, 2)).T), covariance, rtol=0.1, atol=0.3)


def test_classes_as_vectors():
    with tf.Graph().as_default(), tf.Session() as sess:
        logits = np.log(np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], np.float32))
        kind = ds.OneHotCategorical(logits)
        drawn = sess.run(kind.sample(8000, seed=4))
        assert drawn.dtype == np.int32 and drawn.shape == (8000, 2, 3) and (drawn.sum(2) == 1).all()
        np.testing.assert_allclose(drawn.mean(0), np.exp(logits), atol=0.02)
        np.testing.assert_allclose(sess.run(kind.log_prob([[0, 0, 1], [1, 0, 0]])), [np.log(0.5), np.log(0.1)], rtol=1e-4)
        soft = ds.RelaxedOneHotCategorical(0.5, logits=logits)
        value = soft.sample(3)
        made = sess.run([value, soft.log_prob(value)])
        np.testing.assert_allclose(made[0].sum(2), np.ones([3, 2]), rtol=1e-5)
        assert np.isfinite(made[1]).all() and tf.gradients(tf.reduce_sum(value), soft.logits)[0] is not None
        many = ds.Multinomial(n=5.0, p=[0.5, 0.5])
        assert (sess.run(many.sample(7)).sum(1) == 5).all()


def test_what_is_wrong_is_said():
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="missing argument: 'scale'"):
            ds.Normal(1.0)
        with pytest.raises(TypeError, match="unexpected keyword argument 'scal'"):
            ds.Normal(1.0, 2.0, scal=3.0)
        with pytest.raises(ValueError, match="Must pass probs or logits"):
            ds.Bernoulli()
        with pytest.raises(NotImplementedError, match="quantile of Gamma is not implemented"):
            ds.Gamma(1.0, 1.0).quantile(0.5)
        with pytest.raises(TypeError, match="one dtype"):
            ds.Normal(tf.constant(1.0), tf.constant(1.0, tf.float64))
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="mode of Beta"):
            sess.run(ds.Beta(0.5, 0.5, allow_nan_stats=False).mode())


def test_parameters_and_copies():
    with tf.Graph().as_default(), tf.Session() as sess:
        kind = ds.Normal(0.0, [1.0, 2.0], name="Weight")
        assert kind.parameters["loc"] == 0.0 and kind.name == "Weight/"
        other = kind.copy(loc=3.0)
        np.testing.assert_allclose(sess.run(other.mean()), [3.0, 3.0])
        unknown = tf.placeholder(tf.float32, [None, 2])
        spread = ds.Normal(unknown, 1.0)
        assert spread.sample(tf.constant([3])).get_shape().as_list() == [3, None, 2] and spread.batch_shape.as_list() == [None, 2]
        assert sess.run(spread.sample(3), {unknown: np.zeros([4, 2])}).shape == (3, 4, 2)
        assert sess.run(spread.batch_shape_tensor(), {unknown: np.zeros([4, 2])}).tolist() == [4, 2]


def test_validated_arguments_are_checked_in_the_step():
    bad = [
        (tf.distributions.Bernoulli(probs=[0.5], validate_args=True), [2], "cannot exceed 1"),
        (tf.distributions.Multinomial(4.0, probs=[0.5, 0.5], validate_args=True), [1.0, 2.0], "must sum to `self.total_count`"),
        (tf.distributions.DirichletMultinomial(4.0, [1.0, 1.0], validate_args=True), [-1.0, 5.0], "must be non-negative"),
        (tf.distributions.Dirichlet([1.0, 1.0], validate_args=True), [0.5, 0.6], "must sum to `1`"),
    ]
    with tf.Session() as session:
        for distribution, value, message in bad:
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(distribution.prob(value))
        with pytest.raises(tf.errors.InvalidArgumentError, match="x < y"):
            session.run(tf.distributions.Dirichlet([0.5, 2.0], allow_nan_stats=False).mode())
        with pytest.raises(tf.errors.InvalidArgumentError, match="greater than 1"):
            session.run(tf.distributions.Bernoulli(probs=tf.placeholder_with_default([1.5], [1]), validate_args=True).mean())


def test_dirichlet_multinomials_moments_are_those_of_their_samples():
    made = tf.distributions.DirichletMultinomial(5.0, [1.0, 2.0, 3.0])
    with tf.Session() as session:
        samples, mean, covariance, variance = session.run([made.sample(20000, seed=3), made.mean(), made.covariance(), made.variance()])
    np.testing.assert_array_equal(samples.sum(-1), 5)
    np.testing.assert_allclose(samples.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(samples.T), covariance, atol=0.1)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-6)


def test_a_categoricals_cdf_leaves_out_the_value_itself():
    made = tf.distributions.Categorical(probs=[[0.2, 0.1, 0.7], [0.3, 0.45, 0.25]])
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(made.cdf([[0, 0], [1, 1], [2, 2]])), [[0, 0], [0.2, 0.3], [0.3, 0.75]], rtol=1e-6)
        assert session.run([made.event_size, tf.distributions.Normal.param_shapes([4, 2])["loc"][0]]) == [3, 4]
    assert tf.distributions.Normal.param_static_shapes([4, 2])["scale"].as_list() == [4, 2]


def test_parameters_are_those_of_the_library_s_constructor():
    """As in Edward, whose random variables are distributions with constructors and attributes of their own."""

    class Variable:
        def __init__(self, *args, **kwargs):
            self._kept = kwargs.pop("value", None)
            super().__init__(*args, **kwargs)
            self._value, self._args = self.sample(3), args

    class Drawn(Variable, tf.distributions.Normal):
        pass

    class Unit(tf.distributions.Normal):
        def __init__(self, loc):
            super().__init__(loc, 2.0, name="Unit")

    with tf.Graph().as_default(), tf.Session() as session:
        drawn, unit = Drawn(1.0, scale=3.0, value=7), Unit(4.0)
        assert sorted(drawn.parameters) == sorted(unit.parameters) == ["allow_nan_stats", "loc", "name", "scale", "validate_args"]
        assert (drawn.parameters["loc"], drawn.parameters["scale"], unit.parameters["scale"]) == (1.0, 3.0, 2.0)
        other = drawn.copy(loc=2.0)
        got = session.run([drawn.log_prob(1.5), drawn.prob(0.0), unit.log_prob(0.0), other.loc, other.scale, drawn.cdf(1.0), drawn.quantile(0.5)])
        np.testing.assert_allclose(got, [-2.0314398, 0.1257944, -3.6120858, 2.0, 3.0, 0.5, 1.0], rtol=1e-6)
