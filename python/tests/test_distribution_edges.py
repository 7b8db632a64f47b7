# SPDX-License-Identifier: Apache-2.0
"""Distributions and bijectors at the ends of their ranges, and beyond what they were made for first."""

import math

import numpy as np
import pytest

import millrace as tf
from millrace.distributions import util
from millrace.distributions.util import fill_triangular_inverse

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
    assert run(reshaped.log_prob(np.zeros((3, 2), np.float32))).shape == (3, 2)
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


def test_covariances_of_batches_in_another_shape_and_of_mixtures():
    rng = np.random.RandomState(0)
    scale = np.tril(rng.rand(6, 2, 2) + 0.5)
    base = ds.MultivariateNormalTriL(loc=rng.rand(6, 2), scale_tril=scale)
    of_batch, whole = run(ds.BatchReshape(base, [2, 3]).covariance(), base.covariance())
    np.testing.assert_allclose(of_batch, whole.reshape(2, 3, 2, 2))
    np.testing.assert_allclose(whole, scale @ scale.transpose(0, 2, 1))
    loc, weights = rng.rand(3, 2), np.array([0.2, 0.3, 0.5])
    mixture = ds.MixtureSameFamily(ds.Categorical(probs=weights), ds.MultivariateNormalTriL(loc=loc, scale_tril=scale[:3]))
    away = loc - weights @ loc
    wanted = np.einsum("k,kij->ij", weights, scale[:3] @ scale[:3].transpose(0, 2, 1) + away[:, :, None] * away[:, None, :])
    covariance, variance = run(mixture.covariance(), mixture.variance())
    np.testing.assert_allclose(covariance, wanted)
    np.testing.assert_allclose(variance, np.diag(wanted))
    with pytest.raises(NotImplementedError):
        ds.MixtureSameFamily(ds.Categorical(probs=weights), tf.distributions.Normal(loc[:, 0], 1.0 + loc[:, 1])).covariance()


@np.vectorize
def _log_below(x):
    """log P[X <= x] of a normal number, far out by the asymptotic series."""
    if x > -20:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    series = 1 - 1 / x**2 + 3 / x**4 - 15 / x**6 + 105 / x**8
    return -x * x / 2 - math.log(-x * math.sqrt(2 * math.pi)) + math.log(series)


def test_the_far_tails_of_quantized_numbers_have_logarithms():
    """P[j - 1 < X <= j] of a normal number, whose probability is no number of float64 from about 38 on."""
    quantized = ds.QuantizedDistribution(tf.distributions.Normal(np.float64(0), np.float64(1)), low=-60.0, high=60.0)
    at = np.array([-70.0, -60.0, -45.0, -3.0, 0.0, 1.0, 2.0, 30.0, 50.0, 59.0, 60.0, 61.0])
    small, large = _log_below(-np.abs(at)), _log_below(-np.abs(at) + 1)
    wanted = np.where(at > 0, large + np.log1p(-np.exp(small - large)), 0)
    below = _log_below(at), _log_below(at - 1)
    wanted = np.where(at > 0, wanted, below[0] + np.log1p(-np.exp(below[1] - below[0])))
    wanted[at == -60] = _log_below(-60.0)
    wanted[at == 60] = _log_below(-59.0)
    wanted[(at < -60) | (at > 60)] = -np.inf
    found, probability = run(quantized.log_prob(at), quantized.prob(at))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(probability, np.exp(wanted), rtol=1e-9, atol=1e-300)


def test_bends_of_numbers_whose_square_is_not_finite():
    bijector = b.SinhArcsinh(skewness=np.float32(0.1), tailweight=np.float32(0.5))
    x = np.array([-1e20, -1e9, -2.0, 0.0, 3.0, 1e12, 1e20], np.float32)
    wide = x.astype(np.float64)
    angle = (np.arcsinh(wide) + 0.1) * 0.5
    forward, slope, inverse = run(bijector.forward(x), bijector.forward_log_det_jacobian(x, 0), bijector.inverse(bijector.forward(x)))
    np.testing.assert_allclose(forward, np.sinh(angle), rtol=1e-4)
    np.testing.assert_allclose(slope, np.log(np.cosh(angle)) + np.log(0.5) - 0.5 * np.log1p(wide**2), rtol=1e-4)
    np.testing.assert_allclose(inverse, x, rtol=1e-3, atol=1e-5)


def test_what_is_checked_where_that_is_asked():
    refused = (
        lambda: b.Square(validate_args=True).forward(tf.constant([-1.0])),
        lambda: b.Square(validate_args=True).inverse(tf.constant([-1.0])),
        lambda: ds.QuantizedDistribution(tf.distributions.Normal(0.0, 1.0), low=0.5, validate_args=True).prob(1.0),
        lambda: ds.QuantizedDistribution(tf.distributions.Normal(0.0, 1.0), low=2.0, high=2.0, validate_args=True).prob(1.0),
        lambda: ds.QuantizedDistribution(tf.distributions.Normal(0.0, 1.0), validate_args=True).log_prob(0.5),
        lambda: ds.Deterministic(0.0, atol=-1.0, validate_args=True).prob(0.0),
        lambda: ds.VectorDeterministic([0.0, 1.0], validate_args=True).prob([[0.0], [1.0]]),
        lambda: fill_triangular_inverse(tf.zeros([2, 3])),
        lambda: ds.percentile(tf.zeros([0, 2]), 50.0),
    )
    for make in refused:
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            run(make())
    assert run(b.Square(validate_args=True).forward(tf.constant([2.0]))) == [4]


def test_one_value_alone_keeps_its_type():
    number, vector = ds.Deterministic(tf.constant([1, 2]), rtol=1), ds.VectorDeterministic([3, 4])
    assert (number.dtype, vector.dtype) == (tf.int32, tf.int32)
    values = run(number.sample(3), number.prob([3, 3]), number.mean(), vector.prob([[3, 4], [3, 5]]), vector.sample())
    assert [v.dtype for v in values] == [np.int32] * 5
    assert [v.tolist() for v in values] == [[[1, 2]] * 3, [0, 1], [1, 2], [1, 0], [3, 4]]


def test_a_factor_tells_the_length_of_vectors():
    factor = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    made = ds.MultivariateNormalDiagPlusLowRank(scale_identity_multiplier=np.float64(2.0), scale_perturb_factor=factor)
    scale = 2 * np.eye(3) + factor @ factor.T
    np.testing.assert_allclose(run(made.covariance()), scale @ scale.T)


@pytest.mark.parametrize("base", ["nothing", "multiple", "diagonal", "triangle"])
@pytest.mark.parametrize("weights", [None, [0.5, 2.0]])
def test_a_scale_with_a_product_of_few_columns(base, weights):
    factor, shift, x = np.array([[1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([1.0, 2.0, 3.0]), np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 4.0]])
    triangle = np.tril(np.arange(1.0, 10.0).reshape(3, 3))
    given, matrix = {
        "nothing": ({}, np.eye(3)),
        "multiple": ({"scale_identity_multiplier": np.float64(2.0)}, 2 * np.eye(3)),
        "diagonal": ({"scale_diag": np.array([1.0, 2.0, 3.0])}, np.diag([1.0, 2.0, 3.0])),
        "triangle": ({"scale_tril": triangle, "scale_diag": np.array([1.0, 2.0, 3.0])}, triangle + np.diag([1.0, 2.0, 3.0])),
    }[base]
    if weights is not None:
        given["scale_perturb_diag"] = np.array(weights)
    affine = b.Affine(shift=shift, scale_perturb_factor=factor, **given)
    matrix = matrix + factor @ np.diag(weights or [1.0, 1.0]) @ factor.T
    forward, inverse, slope = run(affine.forward(x), affine.inverse(x @ matrix.T + shift), affine.forward_log_det_jacobian(x, 1))
    np.testing.assert_allclose(forward, x @ matrix.T + shift, rtol=1e-10)
    np.testing.assert_allclose(inverse, x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slope, np.linalg.slogdet(matrix)[1], rtol=1e-10)


def test_distribution_functions_of_whole_numbers_and_others():
    k = np.array([-1.0, 0.0, 2.0, 5.0, 7.0], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        ways = [math.comb(5, i) * 0.3**i * 0.7 ** (5 - i) for i in range(6)]
        rates = [math.exp(-2) * 2**i / math.factorial(i) for i in range(8)]
        half = [0.5 * (1 + math.erf(x / 2**0.5)) for x in k]
        mixture = ds.Mixture(ds.Categorical(probs=[0.25, 0.75]), [ds.Normal(0.0, 1.0), ds.Normal(2.0, 1.0)])
        there = [0.25 * a + 0.75 * 0.5 * (1 + math.erf((x - 2) / 2**0.5)) for a, x in zip(half, k)]
        for found, want in (
            (ds.Binomial(5.0, probs=0.3).cdf(k), [0, ways[0], sum(ways[:3]), 1, 1]),
            (ds.Poisson(2.0).cdf(k), [0, rates[0], sum(rates[:3]), sum(rates[:6]), sum(rates)]),
            (ds.Geometric(probs=0.3).cdf(k + 0.5), [0, *(1 - 0.7 ** (i + 1) for i in (0, 2, 5, 7))]),
            (ds.Deterministic(2.0).cdf(k), [0, 0, 1, 1, 1]),
            (mixture.cdf(k), there),
            (ds.Exponential(2.0).log_survival_function([0.5, 50.0]), [-1, -100]),
            (ds.Exponential(2.0).survival_function([-1.0, 0.5]), [1, math.exp(-1)]),
            (ds.Cauchy([1.0, 2.0], 1.0).mean(), [np.nan, np.nan]),
            (ds.Cauchy([1.0, 2.0], 1.0).stddev(), [np.nan, np.nan]),
            (ds.MultivariateNormalDiag([0.0, 0.0], [1.0, -2.0], validate_args=True).stddev(), [1, 2]),
        ):
            np.testing.assert_allclose(session.run(found), want, rtol=1e-5, atol=1e-6)
        with pytest.raises(ValueError, match="no moments"):
            ds.Cauchy(0.0, 1.0, allow_nan_stats=False).mean()


def test_what_validate_args_refuses():
    v, B = {"validate_args": True}, ds.bijectors
    for match, make in (
        ("fractional", lambda: ds.Geometric(probs=0.5, **v).log_prob(1.5)),
        ("non-negative", lambda: ds.Poisson(2.0, **v).cdf(-1.0)),
        ("no larger than total_count", lambda: ds.Binomial(3.0, probs=0.5, **v).log_prob(4.0)),
        ("non-negative", lambda: ds.NegativeBinomial(3.0, probs=0.5, **v).log_cdf(-1.0)),
        ("less than `1`", lambda: ds.Beta(1.0, 2.0, **v).prob(1.5)),
        ("no larger than `1`", lambda: ds.Kumaraswamy(1.0, 2.0, **v).prob(1.5)),
        ("x > 0", lambda: ds.RelaxedBernoulli(0.0, probs=0.5, **v).sample()),
        ("Singular", lambda: ds.MultivariateNormalDiag([0.0, 0.0], [1.0, 0.0], **v).sample()),
        ("y was negative", lambda: B.AbsoluteValue(**v).inverse_log_det_jacobian(-1.0, event_ndims=0)[0]),
        ("less than 1", lambda: B.Softsign(**v).inverse(3.0)),
        ("greater than -1", lambda: B.Softsign(**v).inverse_log_det_jacobian(-3.0, event_ndims=0)),
        ("must be non-zero", lambda: B.Softplus(hinge_softness=0.0, **v).forward(1.0)),
        ("not positive", lambda: B.SinhArcsinh(tailweight=0.0, **v).forward(1.0)),
    ):
        with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=match):
            session.run(make())
    cat = lambda: ds.Categorical(probs=[0.5, 0.5])
    for error, match, make in (
        (TypeError, "must be Distribution", lambda: ds.Mixture(cat(), [None, None])),
        (TypeError, "same dtype", lambda: ds.Mixture(cat(), [ds.Normal(0.0, 1.0), ds.Normal(np.float64(0), np.float64(1))])),
        (ValueError, "num_classes != len", lambda: ds.Mixture(cat(), [ds.Normal(0.0, 1.0)])),
        (ValueError, "not compatible", lambda: ds.Mixture(cat(), [ds.Normal(0.0, 1.0), ds.Normal([0.0, 1.0], 1.0)])),
    ):
        with tf.Graph().as_default(), pytest.raises(error, match=match):
            make()


@pytest.mark.parametrize("shape", [[2, 5, 3], None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_auto_correlation(shape, dtype):
    x = np.random.RandomState(0).randn(2, 5, 3).astype(dtype)
    if dtype is np.complex64:
        x = x + 1j * x[::-1] ** 2
    with tf.Graph().as_default(), tf.Session() as session:
        held = tf.placeholder(dtype, shape)
        for axis, lags, center, normalize in ((1, None, True, True), (-1, 1, False, False), (0, 9, False, True)):
            found = ds.auto_correlation(held, axis, lags, center, normalize)
            rows = np.moveaxis(x - x.mean(axis, keepdims=True) if center else x, axis, 0)
            length = len(rows)
            want = [(rows[m:] * rows[: length - m].conj()).mean(0) for m in range(min(length, length if lags is None else lags + 1))]
            want = np.moveaxis(np.stack(want) / (want[0] if normalize else 1), 0, axis)
            assert shape is None or found.shape.as_list() == list(want.shape)
            np.testing.assert_allclose(session.run(found, {held: x}), want, rtol=1e-4, atol=1e-5)


def test_streams_of_seeds():
    stream, same = ds.SeedStream(5, "salt"), ds.SeedStream(5, "salt")
    first = [stream() for _ in range(3)]
    assert first[0] % 10**9 == 118406530  # the number that TensorFlow 1.15 gives
    assert first == [same() for _ in range(3)] and len(set(first)) == 3
    assert ds.SeedStream(stream, "salt")() == first[0] != ds.SeedStream(stream, "another")()
    assert ds.SeedStream(None, "salt")() is None and (stream.original_seed, stream.salt) == (5, "salt")
    with tf.Graph().as_default(), tf.Session() as session:
        one, two = (ds.Normal(0.0, 1.0).sample(4, seed=first[0]) for _ in range(2))
        np.testing.assert_array_equal(*session.run([one, two]))


def test_what_is_known_before_a_step():
    held = tf.placeholder(tf.float32)
    assert util.maybe_get_static_value(held) is None and util.maybe_get_static_value(None) is None
    assert util.maybe_get_static_value(tf.constant(2), np.float64).dtype == np.float64
    known = tf.zeros([2, 3])
    for found, want in ((util.prefer_static_rank(known), 2), (util.prefer_static_shape(known), [2, 3]), (util.prefer_static_value(known), np.zeros([2, 3]))):
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, want)
    with tf.Session() as session:
        found = session.run([util.prefer_static_rank(held), util.prefer_static_shape(held), util.prefer_static_value(held)], {held: [1.0, 2.0]})
    assert found[0] == 1 and found[1].tolist() == [2] and found[2].tolist() == [1, 2]

    def of(a, b, *more, c=3, **named):
        b = a + b  # names count as they are now
        return util.parent_frame_arguments()

    assert of(1, 2, 9, d=4) == {"a": 1, "b": 3, "c": 3, "d": 4}


def test_functions_of_nan_are_nan():
    for one in (ds.Binomial(5.0, probs=0.3), ds.Poisson(3.0), ds.Geometric(probs=0.3), ds.Exponential(2.0)):
        found = run(one.cdf([math.nan, 2.0]))
        assert math.isnan(found[0]) and 0 < found[1] < 1, one.name
    np.testing.assert_array_equal(run(ds.Binomial(5.0, probs=0.3).cdf([-1.0, 5.0, 9.0])), [0, 1, 1])


def test_events_of_more_dimensions_than_the_value_are_refused_at_once():
    for many in (2, 10**9, 1e300):
        with pytest.raises(ValueError, match="event_ndims must be at most 1"):
            b.Exp().forward_log_det_jacobian(tf.ones([3]), event_ndims=many)
    held = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="event_ndims must be at most 254"):
        b.Exp().inverse_log_det_jacobian(held, event_ndims=10**9)
    many = tf.placeholder(tf.int32, [])
    found = b.Exp().forward_log_det_jacobian(held, event_ndims=many)
    with tf.Session() as session:
        assert session.run(found, {held: [1.0, 2.0], many: 1}) == 3
        with pytest.raises(tf.errors.InvalidArgumentError, match="at most the rank"):
            session.run(found, {held: [1.0, 2.0], many: 10**9})


@pytest.mark.parametrize(
    "make, wanted",
    [
        (lambda: ds.Beta(1.0, 2.0), [0.47246, 0.63533, 0.3828]),
        (lambda: ds.StudentT(3.0, 1.0, 2.0), [3.66462, -2.39123, 1.13055]),
        (lambda: ds.Geometric(probs=0.3), [2, 2, 0]),
        (lambda: ds.Mixture(ds.Categorical(probs=[0.3, 0.7]), [ds.Normal(0.0, 1.0), ds.Normal(5.0, 1.0)]), [-1.29782, 3.43129, -0.07331]),
        (lambda: ds.NegativeBinomial(4.0, probs=0.3), [3, 0, 2]),
        (lambda: ds.PoissonLogNormalQuadratureCompound([0.0, 1.0], [1.0, 0.5], quadrature_size=3), [[3, 16], [2, 47], [10, 40]]),
        (lambda: ds.Autoregressive(lambda x: ds.Independent(ds.Normal(x * 0.5, 1.0), 1), tf.zeros([1]), num_steps=2), [[1.85791], [-1.53751], [0.19578]]),
    ],
)
def test_samples_of_a_seed_are_those_of_1_15(make, wanted):
    np.testing.assert_allclose(run(make().sample(3, seed=3)), wanted, rtol=2e-5, atol=1e-5)


def test_parts_of_a_mixture_are_sampled_at_their_places_in_the_batch():
    parts = [ds.MultivariateNormalDiag(np.full([3, 2], [[0.0], [10.0], [20.0]], np.float32) + shift, np.full([3, 2], 1e-3, np.float32)) for shift in (0, 5)]
    drawn = run(ds.Mixture(ds.Categorical(probs=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), parts).sample([2, 20], seed=1))
    assert drawn.shape == (2, 20, 3, 2)
    np.testing.assert_allclose(drawn[:, :, 0], 0, atol=0.1)
    np.testing.assert_allclose(drawn[:, :, 2], 25, atol=0.1)
    assert set(np.round(drawn[:, :, 1]).ravel()) == {10, 15}


def test_certain_success():
    found = [ds.Geometric(probs=[1.0, 0.5]).log_prob([k, k]) for k in (0.0, 2.0)]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), [[0.0, np.log(0.5)], [-np.inf, 3 * np.log(0.5)]], rtol=1e-6)


def test_scalar_base_of_many_parameters():
    laplace = ds.Laplace(np.float64(0.0), np.float64(1.0))
    made = ds.SinhArcsinh(np.arange(4.0), np.ones(4), distribution=laplace)
    assert made.batch_shape == [4] and ds.SinhArcsinh(0.0, [1.0, 2.0], skewness=[[0.0], [1.0]]).batch_shape == [2, 2]
    with tf.Session() as session:
        drawn, log_prob = session.run([made.sample(3000, seed=1), made.log_prob(np.ones(4))])
    np.testing.assert_allclose(drawn.mean(0), np.arange(4.0), atol=0.2)
    np.testing.assert_allclose(log_prob, -np.abs(1.0 - np.arange(4.0)) - np.log(2.0))


def test_independent_batches_of_unknown_rank():
    loc = tf.placeholder(tf.float32)
    made = ds.Independent(ds.Normal(loc, 1.0))
    with tf.Session() as session:
        for shape in ((3,), (2, 3), (2, 3, 4)):
            parts = session.run([made.batch_shape_tensor(), made.event_shape_tensor(), made.log_prob(loc)], {loc: np.zeros(shape)})
            assert tuple(parts[0]) == shape[:1] and tuple(parts[1]) == shape[1:]
            np.testing.assert_allclose(parts[2], np.full(shape[:1], -0.5 * np.log(2 * np.pi) * np.prod(shape[1:])), rtol=1e-6)


def test_vectors_of_students_numbers():
    from millrace.distributions.vector_student_t import VectorStudentT

    one, x = ds.StudentT(3.0, 0.0, 1.0), np.array([[0.5, -1.0], [2.0, 0.0]], np.float32)
    tril = np.array([[2.0, 0.0], [1.0, 3.0]], np.float32)
    made = VectorStudentT(3.0, loc=[1.0, -1.0], scale_tril=tril)
    many = VectorStudentT([3.0, 3.0], scale_diag=[[1.0, 2.0], [1.0, 1.0]], validate_args=True)
    assert made.batch_shape == [] and made.event_shape == [2] and many.batch_shape == [2] and VectorStudentT(3.0, loc=np.zeros([4, 2])).batch_shape == [4]
    z = np.linalg.solve(tril, (x - [1.0, -1.0]).T).T.astype(np.float32)
    logs = [
        made.log_prob(x),
        tf.reduce_sum(one.log_prob(z), 1) - np.log(6.0),
        many.log_prob(x),
        tf.reduce_sum(one.log_prob(x / [[1, 2], [1, 1]]), 1) - np.log([2.0, 1.0]),
    ]
    found = run(*logs)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-5)
    with pytest.raises(ValueError, match="length of the vectors"):
        VectorStudentT(3.0, scale_identity_multiplier=None)
