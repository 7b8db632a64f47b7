# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.distributions beside NumPy in float64: densities by sums and by other distributions, moments by samples."""

import importlib
import math
import statistics

import numpy as np
import pytest

import millrace as tf
from millrace import names

ds = tf.contrib.distributions
RNG = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def run(*tensors):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        made = sess.run(tensors)
    return made[0] if len(made) == 1 else made


def f64(*values):
    return [np.float64(v) for v in values]


LINES = {
    "half normal": (lambda: ds.HalfNormal(np.float64(2)), 0, 40),
    "kumaraswamy": (lambda: ds.Kumaraswamy(*f64(2.5, 3)), 0, 1),
    "sinh arcsinh": (lambda: ds.SinhArcsinh(*f64(1, 2, 0.3, 0.8)), -60, 80),
    "mixture": (lambda: ds.MixtureSameFamily(ds.Categorical(probs=np.array([0.3, 0.7])), ds.Normal(np.array([-1.0, 2]), np.array([0.5, 1.0]))), -20, 20),
}


@pytest.mark.parametrize("name", LINES)
def test_densities_of_numbers(name):
    make, low, high = LINES[name]
    kind, step = make(), (high - low) / 200000
    x = low + (np.arange(200000) + 0.5) * step
    p = run(kind.prob(x)) * step
    exact = {"mean": np.sum(p * x), "variance": np.sum(p * x * x) - np.sum(p * x) ** 2, "entropy": -np.sum(p * np.log(np.maximum(p, 1e-300) / step))}
    assert abs(p.sum() - 1) < 1e-6
    for what, wanted in exact.items():
        try:
            tensor = getattr(kind, what)()
        except NotImplementedError:
            continue
        assert run(tensor) == pytest.approx(wanted, abs=1e-6), what
    drawn = run(kind.sample(40000, seed=2))
    assert drawn.shape == (40000,) and drawn.mean() == pytest.approx(exact["mean"], abs=0.05) and drawn.var() == pytest.approx(exact["variance"], rel=0.05)
    np.testing.assert_allclose(run(kind.cdf(x[:-1:1000] + step / 2)), np.cumsum(p)[:-1:1000], atol=1e-6)
    if name in ("half normal", "kumaraswamy"):
        np.testing.assert_allclose(run(kind.quantile(kind.cdf(np.array([0.1, 0.6])))), [0.1, 0.6], rtol=1e-9)
        assert abs(x[p.argmax()] - run(kind.mode())) < 2 * step
    slopes = tf.gradients(
        kind.log_prob(np.float64(0.4)), [t for t in (getattr(kind, n, None) for n in ("scale", "concentration1", "loc", "tailweight")) if t is not None]
    )
    assert all(s is not None and np.isfinite(run(s)) for s in slopes)


def test_half_normal_and_its_divergence():
    a, b = ds.HalfNormal(np.float64(2)), ds.HalfNormal(np.float64(3))
    x = (np.arange(400000) + 0.5) * 1e-4
    p, q = run(a.log_prob(x), b.log_prob(x))
    assert run(ds.kl_divergence(a, b)) == pytest.approx(np.sum(np.exp(p) * (p - q)) * 1e-4, rel=1e-6)
    assert run(a.log_prob(-1.0)) == -np.inf and run(a.cdf(-1.0)) == 0


def test_negative_binomial():
    kind, k = ds.NegativeBinomial(np.float64(3.5), probs=np.float64(0.4)), np.arange(200.0)
    exact = np.array([math.exp(math.lgamma(3.5 + i) - math.lgamma(3.5) - math.lgamma(1 + i)) * 0.6**3.5 * 0.4**i for i in k])
    np.testing.assert_allclose(run(kind.prob(k)), exact, rtol=1e-9)
    np.testing.assert_allclose(run(kind.cdf(k)), np.cumsum(exact), rtol=1e-9)
    np.testing.assert_allclose(
        run(kind.mean(), kind.variance(), kind.mode()), [np.sum(exact * k), np.sum(exact * k * k) - np.sum(exact * k) ** 2, exact.argmax()]
    )
    drawn = run(kind.sample([2, 20000], seed=1))
    assert drawn.shape == (2, 20000) and drawn.mean() == pytest.approx(np.sum(exact * k), abs=0.05)
    assert run(kind.cdf(-1.0)) == 0 and ds.NegativeBinomial([1.0, 2.0], logits=[[0.0], [1.0]]).batch_shape.as_list() == [2, 2]


def multi_lgamma(a, p):
    return p * (p - 1) / 4 * math.log(math.pi) + sum(math.lgamma(a - i / 2) for i in range(p))


@pytest.mark.parametrize("factors", [False, True])
def test_wishart(factors):
    scale, df, x = np.array([[2.0, 0.3], [0.3, 1.0]]), 5.0, np.array([[3.0, 0.5], [0.5, 4.0]])
    kind = ds.WishartFull(np.float64(df), scale, cholesky_input_output_matrices=factors)
    logs = (df - 3) / 2 * np.linalg.slogdet(x)[1] - np.trace(np.linalg.solve(scale, x)) / 2
    logs -= df * math.log(2) + df / 2 * np.linalg.slogdet(scale)[1] + multi_lgamma(df / 2, 2)
    assert run(kind.log_prob(np.linalg.cholesky(x) if factors else x)) == pytest.approx(logs, rel=1e-12)
    drawn = run(kind.sample(40000, seed=1))
    if factors:
        assert (drawn[:, 0, 1] == 0).all()
        drawn = drawn @ drawn.transpose(0, 2, 1)
    np.testing.assert_allclose(drawn.mean(0), df * scale, atol=0.15)
    spread = df * (scale**2 + np.outer(np.diag(scale), np.diag(scale)))
    np.testing.assert_allclose(drawn.var(0), spread, rtol=0.06)
    assert run(kind.mean_log_det()) == pytest.approx(np.linalg.slogdet(drawn)[1].mean(), abs=0.02)
    samples = run(ds.WishartFull(np.float64(df), scale).log_prob(drawn))
    assert run(kind.entropy()) == pytest.approx(-samples.mean(), abs=0.03)
    if not factors:
        np.testing.assert_allclose(run(kind.mean()), df * scale)
        np.testing.assert_allclose(run(kind.variance()), spread)
        np.testing.assert_allclose(run(kind.mode()), 2 * scale)
        assert np.isnan(run(ds.WishartFull(np.float64(2.5), scale).mode())).all()
    batch = ds.WishartCholesky(np.array([3.0, 4.0]), np.linalg.cholesky(scale))
    assert batch.batch_shape.as_list() == [2] and run(batch.sample(3)).shape == (3, 2, 2, 2) and run(batch.log_prob(x)).shape == (2,)
    with pytest.raises(ValueError, match="Degrees of freedom"):
        ds.WishartFull(np.float64(1), scale)


def test_wishart_of_a_size_that_a_step_tells():
    scale, x = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 0.2], [0.2, 3.0]])
    place, freedom = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    kinds = [ds.WishartFull(freedom, place, validate_args=True), ds.WishartFull(np.float64(4), scale)]
    made = [(k.log_prob(x), k.entropy(), k.mean(), k.event_shape_tensor(), k.dimension, k.mode()) for k in kinds]
    drawn = kinds[0].sample(20000, seed=3)
    assert kinds[0].event_shape.as_list() == [None, None]
    with tf.Session() as session:
        (*told, samples), known = session.run([*made[0], drawn], {place: scale, freedom: 4.0}), session.run(made[1])
        for a, b in zip(told, known):
            np.testing.assert_allclose(a, b)
        np.testing.assert_allclose(samples.mean(0), 4 * scale, atol=0.15)
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be less than"):
            session.run(made[0][0], {place: scale, freedom: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be square"):
        run(ds.WishartCholesky(4.0, np.ones((2, 3), "f"), validate_args=True).scale())


def test_scales_of_wishart():
    eye, bent = np.eye(3, dtype=np.float32), np.array([[2, 1, 0], [0, 2, 0], [0, 0, 1]], np.float32)
    for scale in (-eye, 0 * eye):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive definite"):
            run(ds.WishartCholesky(5.0, scale, validate_args=True).mean())
    for scale in (bent, bent.T):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be symmetric"):
            run(ds.WishartFull(5.0, scale, validate_args=True).mean())
        ds.WishartFull(5.0, scale)
    for kind in (ds.WishartFull, ds.WishartCholesky):
        with pytest.raises(TypeError, match="floating-point"):
            kind(5.0, np.eye(3, dtype=np.int32))
        spread = kind(5.0, eye)
        np.testing.assert_allclose(run(spread.stddev()), np.linalg.cholesky(run(spread.variance())), rtol=1e-6)


def test_normal_vectors_of_operators_and_of_low_rank():
    matrix, factor, x = RNG.randn(2, 2) + 2 * np.eye(2), RNG.randn(2, 1), RNG.randn(3, 2)
    loc = np.array([1.0, 2.0])
    pairs = [
        (ds.MultivariateNormalLinearOperator(loc, tf.linalg.LinearOperatorFullMatrix(matrix, is_non_singular=True)), matrix),
        (ds.MultivariateNormalDiagPlusLowRank(loc, loc, None, factor, np.array([0.5])), np.diag(loc) + 0.5 * factor @ factor.T),
        (ds.MultivariateNormalDiagPlusLowRank(loc, None, np.float64(2), factor), 2 * np.eye(2) + factor @ factor.T),
    ]
    for kind, scale in pairs:
        other = ds.MultivariateNormalFullCovariance(loc, scale @ scale.T)
        for what in ("entropy", "mean", "variance", "covariance", "stddev", "mode"):
            np.testing.assert_allclose(*run(getattr(kind, what)(), getattr(other, what)()), rtol=1e-9)
        np.testing.assert_allclose(*run(kind.log_prob(x), other.log_prob(x)), rtol=1e-9)
        np.testing.assert_allclose(np.cov(run(kind.sample(40000, seed=3)).T), scale @ scale.T, rtol=0.1, atol=0.1)
    with pytest.raises(ValueError, match="scale"):
        ds.MultivariateNormalLinearOperator(loc)


@pytest.mark.parametrize("kind,base", [("VectorLaplace", lambda: ds.Laplace(*f64(0, 1))), ("VectorExponential", lambda: ds.Exponential(np.float64(1)))])
def test_vectors_of_independent_numbers(kind, base):
    loc, diagonal = np.array([[1.0, 2], [0, 0]]), np.array([2.0, 0.5])
    made = getattr(ds, kind + "Diag")(loc, diagonal)
    drawn = run(made.sample(60000, seed=1))
    assert drawn.shape == (60000, 2, 2) and made.batch_shape.as_list() == [2] and made.event_shape.as_list() == [2]
    np.testing.assert_allclose(drawn.mean(0), run(made.mean()), atol=0.06)
    spread = run(made.variance())  # depends on the scale alone, and has its batch
    assert spread.shape == (2,)
    np.testing.assert_allclose(drawn.var(0), [spread, spread], rtol=0.05)
    np.testing.assert_allclose(run(made.covariance()), np.diag(spread))
    np.testing.assert_allclose(run(made.stddev()), np.sqrt(spread))
    np.testing.assert_allclose(run(made.log_prob(drawn[:5])), run(base().log_prob((drawn[:5] - loc) / diagonal)).sum(-1))
    np.testing.assert_allclose(run(made.entropy()), 2 * run(base().entropy()) + np.log(diagonal).sum())
    turned = np.array([[1.0, 0.5], [0.0, 2.0]])
    other = getattr(ds, kind + "LinearOperator")(loc[0], tf.linalg.LinearOperatorFullMatrix(turned, is_non_singular=True))
    np.testing.assert_allclose(run(other.log_prob(loc[0] + turned @ [0.3, 0.7])), run(base().log_prob(np.array([0.3, 0.7]))).sum() - np.log(2))
    with pytest.raises(ValueError):
        getattr(ds, kind + "Diag")()


def test_normal_vectors_share_their_methods():
    loc, matrix = np.array([[1.0, 2], [0, 0]]), np.array([[2.0, 0], [0.5, 1]])
    low_rank = ds.MultivariateNormalDiagPlusLowRank(loc, loc[0], None, np.array([[0.5], [1.0]]))
    kinds = [ds.MultivariateNormalDiag(loc, scale_identity_multiplier=np.float64(2)), ds.MultivariateNormalTriL(loc, matrix), low_rank]
    np.testing.assert_allclose(run(kinds[0].covariance()), 4 * np.eye(2))  # has the batch of the scale
    for a in kinds:
        assert a.scale.to_dense().shape.as_list() == [2, 2]
        for b in kinds:
            drawn = a.sample(40000, seed=1)
            np.testing.assert_allclose(run(ds.kl_divergence(a, b)), run(tf.reduce_mean(a.log_prob(drawn) - b.log_prob(drawn), 0)), rtol=0.1, atol=0.03)
    for match, make in (
        ("Singular", lambda: ds.MultivariateNormalTriL(None, [[1.0, 0.0], [0.0, 0.0]], validate_args=True).sample()),
        ("not symmetric", lambda: ds.MultivariateNormalFullCovariance(None, tf.placeholder_with_default(matrix, [2, 2]), validate_args=True).covariance()),
    ):
        with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=match):
            session.run(make())
    with pytest.raises(ValueError, match="at least 1 dimension"):
        ds.MultivariateNormalDiag(-1.0, -5.0)


def test_skewed_vectors_are_skewed_numbers():
    loc, scale, x = np.array([1.0, 2]), np.array([2.0, 0.5]), np.array([0.3, 1.2])
    vector = ds.VectorSinhArcsinhDiag(loc, scale, skewness=np.float64(0.3), tailweight=np.float64(0.8))
    numbers = ds.SinhArcsinh(loc, scale, np.float64(0.3), np.float64(0.8))
    assert run(vector.log_prob(x)) == pytest.approx(run(numbers.log_prob(x)).sum())
    assert vector.event_shape.as_list() == [2] and vector.batch_shape.ndims == 0 and numbers.batch_shape.as_list() == [2]
    plain = ds.SinhArcsinh(*f64(1, 2))  # without skewness, of tails as they are: normal
    assert run(plain.log_prob(np.float64(0.4))) == pytest.approx(run(ds.Normal(*f64(1, 2)).log_prob(np.float64(0.4))))


def test_mixtures_of_vectors():
    means = RNG.randn(5, 2, 3)
    mixture = ds.MixtureSameFamily(ds.Categorical(probs=np.array([0.3, 0.7])), ds.MultivariateNormalDiag(means, np.ones(3)))
    drawn = mixture.sample(40000, seed=5)
    assert drawn.shape.as_list() == [40000, 5, 3] and mixture.batch_shape.as_list() == [5]
    np.testing.assert_allclose(run(drawn).mean(0), run(mixture.mean()), atol=0.05)
    np.testing.assert_allclose(run(drawn).var(0), run(mixture.variance()), rtol=0.06)
    x = RNG.randn(5, 3)
    parts = [np.exp(-0.5 * ((x - means[:, k]) ** 2).sum(-1) - 1.5 * np.log(2 * np.pi)) for k in (0, 1)]
    np.testing.assert_allclose(run(mixture.prob(x)), 0.3 * parts[0] + 0.7 * parts[1])
    with pytest.raises(ValueError, match="2 classes"):
        ds.MixtureSameFamily(ds.Categorical(probs=[0.5, 0.5]), ds.Normal([0.0, 1.0, 2.0], 1.0))


def test_batches_of_another_shape():
    means = RNG.randn(6, 3)
    base = ds.MultivariateNormalDiag(means, np.ones(3))
    kind = ds.BatchReshape(base, [2, -1])
    drawn = kind.sample([4], seed=1)
    assert drawn.shape.as_list() == [4, 2, 3, 3] and kind.batch_shape.as_list() == [2, 3]
    np.testing.assert_allclose(run(kind.mean()), means.reshape(2, 3, 3))
    x = RNG.randn(4, 2, 3, 3)
    np.testing.assert_allclose(*run(kind.log_prob(x), tf.reshape(base.log_prob(x.reshape(4, 6, 3)), [4, 2, 3])))
    assert run(kind.entropy()).shape == (2, 3) and kind.log_prob(x).shape.as_list() == [4, 2, 3]
    for value, why in ((np.zeros(3), "too few batch and event dims"), (np.zeros((3, 2, 3)), "unexpected batch and event shape")):
        with pytest.raises(NotImplementedError, match=why):
            kind.log_prob(value)
    with pytest.raises(ValueError, match="size"):
        ds.BatchReshape(base, [4])
    with pytest.raises(ValueError, match="must be a vector"):
        ds.BatchReshape(base, 6)


def test_batches_of_another_shape_that_a_step_tells():
    means, shape, x = tf.placeholder(tf.float64), tf.placeholder(tf.int32), tf.placeholder(tf.float64)
    base = ds.MultivariateNormalDiag(means, np.ones(3))
    kind = ds.BatchReshape(base, shape, validate_args=True)
    numbers, values = RNG.randn(6, 3), RNG.randn(4, 2, 3, 3)
    wanted = tf.reshape(base.log_prob(values.reshape(4, 6, 3)), [4, 2, 3])
    with tf.Session() as session:
        fed = {means: numbers, shape: [2, -1], x: values}
        got = session.run([kind.log_prob(x), wanted, kind.mean(), kind.batch_shape_tensor(), kind.sample(5)], fed)
        np.testing.assert_allclose(got[0], got[1])
        np.testing.assert_array_equal(got[2], numbers.reshape(2, 3, 3))
        assert got[3].tolist() == [2, 3] and got[4].shape == (5, 2, 3, 3)
        wrong = {"sizes do not match": [2, 2], "must be >=-1": [-2, -3], "must be a vector": 6, "At most one": [-1, -1]}
        mean = kind.mean()
        for why, sizes in wrong.items():
            with pytest.raises(tf.errors.InvalidArgumentError, match=why):
                session.run(mean, {means: numbers, shape: sizes})
        density = kind.log_prob(x)
        for why, value in (("too few", np.zeros(3)), ("unexpected", np.zeros((3, 2, 3)))):
            with pytest.raises(tf.errors.InvalidArgumentError, match=why):
                session.run(density, {means: numbers, shape: [2, 3], x: value})


def test_quantized_numbers():
    kind, y = ds.QuantizedDistribution(ds.Normal(*f64(1, 2)), low=-2.0, high=5.0), np.arange(-4, 8.0)
    p = run(kind.prob(y))
    below = 0.5 * (1 + np.array([math.erf((v - 1) / 2 / math.sqrt(2)) for v in y]))
    exact = np.diff(np.concatenate([[0], np.where(y < -2, 0, np.where(y >= 5, 1, below))]))
    np.testing.assert_allclose(p, exact, atol=1e-15)
    np.testing.assert_allclose(run(kind.cdf(y + 0.5)), np.cumsum(exact), atol=1e-12)
    np.testing.assert_allclose(run(kind.survival_function(y)), 1 - np.cumsum(exact), atol=1e-12)
    drawn = run(kind.sample(40000, seed=4))
    np.testing.assert_allclose([(drawn == v).mean() for v in y], exact, atol=0.01)
    tail = ds.QuantizedDistribution(ds.Normal(*f64(0, 1)))
    assert run(tail.log_prob(30.0)) == pytest.approx(math.log(0.5 * math.erfc(29 / math.sqrt(2))), rel=1e-6)  # no difference of ones


def test_one_place_after_the_other():
    def places(x=None):
        before = tf.zeros([3]) if x is None else tf.concat([tf.zeros_like(x[..., :1]), 0.5 * x[..., :-1]], -1)
        return ds.Independent(ds.Normal(before, 1.0), 1)

    for seed in (1, None):
        kind = ds.Autoregressive(places)
        drawn = kind.sample(40000, seed=seed)
        assert kind.num_steps == 3 and drawn.shape.as_list() == [40000, 3] and kind.log_prob(drawn).shape.as_list() == [40000]
        np.testing.assert_allclose(np.cov(run(drawn).T), [[1, 0.5, 0.25], [0.5, 1.25, 0.625], [0.25, 0.625, 1.3125]], atol=0.04)


def test_vectors_that_are_known():
    kind = ds.VectorDeterministic(np.array([[1.0, 2], [3, 4]]), atol=np.float64(0.1))
    assert run(kind.prob(np.array([1.05, 2]))).tolist() == [1, 0] and run(kind.log_prob(np.array([9.0, 2]))).tolist() == [-np.inf, -np.inf]
    assert run(kind.sample(3)).shape == (3, 2, 2) and run(kind.entropy()).tolist() == [0, 0]
    with pytest.raises(ValueError):
        ds.VectorDeterministic(1.0)


@pytest.mark.parametrize("interpolation", ["lower", "higher", "nearest"])
def test_percentiles(interpolation):
    x = RNG.randn(4, 5, 6)
    for q in (0, 11, 33, 77, 100):  # none of which is half way between two elements
        for axis in (None, 0, [0, 2], -1):
            axes = tuple(axis) if isinstance(axis, list) else axis
            np.testing.assert_array_equal(run(ds.percentile(x, q, axis, interpolation)), np.percentile(x, q, axis=axes, method=interpolation))
    assert run(ds.percentile(x, 30.0, axis=1, keep_dims=True)).shape == (4, 1, 6)
    with pytest.raises(ValueError):
        ds.percentile(x, [1.0, 2.0])
    with pytest.raises(ValueError):
        ds.percentile(x, 5.0, interpolation="linear")


def test_moving_statistics_and_conjugates():
    mean, variance, log = (tf.Variable(np.float64(v)) for v in (1, 2, 0.5))
    made = ds.assign_moving_mean_variance(mean, variance, np.float64(4), 0.9)
    logs = ds.assign_log_moving_mean_exp(log, np.float64(2), 0.9)
    np.testing.assert_allclose(run(*made), [0.9 + 0.4, 0.9 * (2 + 0.1 * 9)])
    assert run(logs) == pytest.approx(np.log(0.9 * np.exp(0.5) + 0.1 * np.exp(2)))
    np.testing.assert_allclose(run(*ds.moving_mean_variance(tf.constant([3.0, 4.0]), 0.9)), [[0.3, 0.4], [0.81, 1.44]], rtol=1e-5)
    after = ds.normal_conjugates_known_scale_posterior(ds.Normal(*f64(1, 2)), *f64(3, 10), 4)
    next_one = ds.normal_conjugates_known_scale_predictive(ds.Normal(*f64(1, 2)), *f64(3, 10), 4)
    spread = 1 / (1 / 4 + 4 / 9)
    np.testing.assert_allclose(run(after.loc, after.scale), [(1 / 4 + 10 / 9) * spread, math.sqrt(spread)])
    np.testing.assert_allclose(run(next_one.loc, next_one.scale), [(1 / 4 + 10 / 9) * spread, math.sqrt(spread + 9)])
    assert run(ds.Chi2WithAbsDf(-4.5).df) == 4
    assert run(ds.InverseGammaWithSoftplusConcentrationRate(1.0, 2.0).rate) == pytest.approx(math.log1p(math.exp(2)))


def test_bounds_of_means():
    st = importlib.import_module("millrace.distributions.mean_bounds")
    samples = np.random.RandomState(0).uniform(size=(2000, 2)).astype(np.float32)
    low, high = st.true_mean_confidence_interval_by_dkwm(samples, [0.0, 0.0], 1.0, error_rate=1e-6)
    far = st.min_discrepancy_of_true_means_detectable_by_dkwm(2000, 0.0, 1.0, 1e-6, 1e-6)
    enough = st.min_num_samples_for_dkwm_mean_two_sample_test(0.2, 0.0, 1.0, 0.0, 1.0)
    other = st.assert_true_mean_equal_by_dkwm_two_sample(samples[:, 0], 0.0, 1.0, samples[:, 1] ** 4, 0.0, 1.0)
    too_high = st.true_mean_confidence_interval_by_dkwm(samples, 0.0, 0.5)
    with tf.Session() as session:
        low, high, far, enough = session.run([low, high, far, enough])
        with pytest.raises(tf.errors.InvalidArgumentError, match="true mean greater than expected"):
            session.run(other)
        with pytest.raises(tf.errors.InvalidArgumentError, match="maximum value exceeds expectations"):
            session.run(too_high)
    envelope = np.sqrt(np.log(2 / 5e-7) / 4000)  # half of the rate for each of two
    ascending = np.sort(samples, 0).astype(np.float64)
    left = np.clip(np.arange(1, 2001) / 2000 - envelope, 0, 1 / 2000)
    np.testing.assert_allclose(high, left @ ascending + envelope, rtol=1e-5)
    np.testing.assert_allclose(low, left @ ascending[::-1], rtol=1e-5)
    np.testing.assert_allclose([far, *enough], [2 * np.sqrt(np.log(2e6) / 4000), *[np.log(4e6) / (2 * 0.05**2)] * 2], rtol=1e-5)


def test_counts_of_drawn_rates():
    kind = ds.PoissonLogNormalQuadratureCompound
    loc, scale, size = np.array([0.0, -0.5]), 0.8, 9
    edges = [statistics.NormalDist().inv_cdf(p) for p in np.linspace(0, 1, size + 3)[1:-1]]
    quantiles = np.exp(loc[:, None] + scale * np.array(edges))
    points, weights = np.polynomial.hermite.hermgauss(size)
    grids = (quantiles[:, 1:] + quantiles[:, :-1]) / 2, loc[:, None] + np.sqrt(2) * scale * points
    made = [kind(loc, scale, size), kind(loc, scale, size, ds.quadrature_scheme_lognormal_gauss_hermite)]
    for distribution, grid, probs in zip(made, grids, (np.full(size, 1 / size), weights / weights.sum())):
        rates = np.exp(grid)
        wanted = np.log((np.exp(-rates) * rates**3 / 6 * probs).sum(-1))
        mean = (rates * probs).sum(-1)
        with tf.Session() as session:
            got = session.run([distribution.log_prob(3.0), distribution.mean(), distribution.variance()])
        np.testing.assert_allclose(got, [wanted, mean, ((rates + rates**2) * probs).sum(-1) - mean**2], rtol=1e-6)
        assert distribution.batch_shape.as_list() == [2] and distribution.quadrature_size == size


def test_heads_of_distributions():
    head = ds.estimator_head_distribution_regression(lambda logits: ds.Normal(logits[..., 0], tf.exp(logits[..., 1])), logits_dimension=2)
    logits = tf.constant([[0.0, 0.5], [1.0, -1.0]])
    model = head.create_model_fn_ops({}, "train", labels=[[1.0], [3.0]], train_op_fn=lambda loss: tf.no_op(), logits=logits)
    with tf.Session() as session:
        loss, scores = session.run([model.loss, model.predictions["scores"]])
    scale = np.exp([0.5, -1])
    wanted = (0.5 * (np.array([1, 2]) / scale) ** 2 + np.log(scale) + 0.5 * np.log(2 * np.pi)).mean()
    np.testing.assert_allclose(loss, wanted, rtol=1e-6)
    assert scores.tolist() == [0, 1] and len(head.distributions) == 1


def test_masks_of_flows():
    assert names.find("contrib.distributions.python.ops.bijectors").Affine is ds.bijectors.Affine
    flows = importlib.import_module("millrace.distributions.flow_bijectors")
    assert flows._gen_mask(2, 4, 2).tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]]
    assert flows._gen_mask(2, 4, 2, flows.MASK_INCLUSIVE).tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_shapes_of_triangles():
    fill = ds.bijectors.FillTriangular(validate_args=True)
    assert run(fill.forward_event_shape_tensor([4, 6])).tolist() == [4, 3, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a triangular number"):
        run(fill.forward_event_shape_tensor([4, 7]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be square"):
        run(fill.inverse_event_shape_tensor([4, 3, 2]))


def test_names_of_1_0():
    """Kinds of 1.0 are those of later releases, and take the parameters of both by name."""
    D = tf.contrib.distributions
    numbers = np.array([0.5, 2.0], "f")
    soft = np.log1p(np.exp(numbers))
    with tf.Graph().as_default(), tf.Session() as session:
        made = [
            (D.NormalWithSoftplusSigma(mu=0.0, sigma=numbers).stddev(), soft),
            (D.BernoulliWithSigmoidP(p=numbers).mean(), 1 / (1 + np.exp(-numbers))),
            (D.BetaWithSoftplusAB(a=numbers, b=1.0).concentration1, soft),
            (D.ExponentialWithSoftplusLam(lam=numbers).rate, soft),
            (D.GammaWithSoftplusAlphaBeta(alpha=1.0, beta=numbers).rate, soft),
            (D.InverseGammaWithSoftplusAlphaBeta(alpha=numbers, beta=1.0).concentration, soft),
            (D.InverseGamma(alpha=3.0, beta=numbers).mean(), numbers / 2),
            (D.StudentTWithAbsDfSoftplusSigma(df=-3.5, mu=0.0, sigma=numbers).scale, soft),
            (D.MultivariateNormalDiagWithSoftplusStDev(mu=[0.0, 0.0], diag_stdev=numbers).stddev(), soft),
            (D.bijector.Exp().forward(numbers), np.exp(numbers)),
        ]
        for got, wanted in made:
            np.testing.assert_allclose(session.run(got), wanted, rtol=1e-5)
    assert D.NormalWithSoftplusSigma is D.NormalWithSoftplusScale and D.bijector.Exp is D.bijectors.Exp
    with pytest.raises(TypeError, match="both 'p' and 'logits' are given"):
        D.BernoulliWithSigmoidP(1.0, p=1.0)
