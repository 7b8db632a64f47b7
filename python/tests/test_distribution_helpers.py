# SPDX-License-Identifier: Apache-2.0
"""Helpers of tf.contrib.distributions: scales, shapes that parameters have together, dimensions filled up or moved; how distributions are shown."""

import numpy as np
import pytest

import millrace as tf
from millrace import names

ds = tf.contrib.distributions
RNG = np.random.RandomState(3)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


@pytest.fixture(name="helpers")
def _helpers():
    return names.find("contrib.distributions.python.ops.distribution_util")


def run(*tensors, feed_dict=None):
    with tf.Session() as session:
        got = session.run(tensors, feed_dict)
    return got[0] if len(tensors) == 1 else got


def test_scales(helpers):
    tril, diag = np.array([[1.0, 9.0], [2.0, 3.0]]), np.array([5.0, 7.0])
    made = helpers.make_tril_scale(scale_tril=tril, scale_diag=diag, scale_identity_multiplier=np.float64(2))
    assert run(made.to_dense()).tolist() == [[8, 0], [2, 12]] and not helpers.is_diagonal_scale(made)
    assert run(helpers.make_tril_scale(scale_diag=diag).to_dense()).tolist() == [[5, 0], [0, 7]]
    made = helpers.make_diag_scale(loc=np.zeros(3), scale_identity_multiplier=np.array([2.0, 3.0]))
    assert helpers.is_diagonal_scale(made) and run(made.to_dense()).shape == (2, 3, 3) and made.shape.as_list() == [2, 3, 3]
    with pytest.raises(ValueError, match="is specified"):
        helpers.make_diag_scale(scale_identity_multiplier=2.0)
    with pytest.raises(TypeError):
        helpers.is_diagonal_scale(tril)
    for value, positive, match in ((0.0, False, "non-zero"), (-1.0, True, "positive")):
        for make in (
            lambda d, **k: helpers.make_diag_scale(scale_diag=[d, 1.0], **k),
            lambda d, **k: helpers.make_tril_scale(scale_tril=[[d, 0.0], [1, 1]], **k),
        ):
            with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="diagonal part must be %s" % match):
                run(make(value, validate_args=True, assert_positive=positive).to_dense())


def test_checks_that_are_built_in_are_named():
    util = names.find("python.ops.distributions.util")
    assert util.pad is names.find("contrib.distributions.python.ops.distribution_util").pad
    for check in (util.embed_check_nonnegative_integer_form, lambda x, name: util.embed_check_integer_casting_closed(x, tf.int32, name=name)):
        assert run(check(tf.constant([1.0, 2.0]), name="checked")).tolist() == [1, 2]
        with pytest.raises(ValueError, match="At least one of name"):
            check(tf.constant([1.0]), name=None)


def test_shapes(helpers):
    loc, diag = np.zeros((2, 3)), np.ones((5, 1, 3))
    assert helpers.shapes_from_loc_and_scale(tf.constant(loc), tf.linalg.LinearOperatorDiag(diag)) == (tf.TensorShape([5, 2]), tf.TensorShape([3]))
    assert helpers.shapes_from_loc_and_scale(None, tf.linalg.LinearOperatorDiag(diag))[0].as_list() == [5, 1]
    hidden = tf.placeholder(tf.float64)
    batch, event = helpers.shapes_from_loc_and_scale(tf.constant(loc), tf.linalg.LinearOperatorDiag(hidden))
    assert [x.tolist() for x in run(batch, event, feed_dict={hidden: diag})] == [[5, 2], [3]]
    with pytest.raises(ValueError, match="could not be broadcast"):
        helpers.shapes_from_loc_and_scale(tf.zeros([2, 4], tf.float64), tf.linalg.LinearOperatorDiag(diag))
    assert helpers.get_broadcast_shape(tf.ones([2, 1]), tf.ones([3])) == [2, 3]
    assert run(helpers.get_broadcast_shape(tf.ones([2, 1], tf.float64), hidden), feed_dict={hidden: np.ones(3)}).tolist() == [2, 3]


@pytest.mark.parametrize("known", [True, False])
def test_dimensions(helpers, known):
    x = RNG.randn(2, 3, 4)
    given = tf.placeholder_with_default(x, x.shape if known else None)
    for source, target in ((0, 2), (2, 0), (-1, -2), (1, 1)):
        np.testing.assert_array_equal(run(helpers.move_dimension(given, source, target)), np.moveaxis(x, source, target))
    padded = helpers.pad(given, -2, front=True, back=True, value=9.0, count=2)
    np.testing.assert_array_equal(run(padded), np.pad(x, [(0, 0), (2, 2), (0, 0)], constant_values=9))
    assert padded.shape.as_list() == [2, 7, 4] if known else padded.shape.ndims is None
    with pytest.raises(ValueError, match="At least one"):
        helpers.pad(given, 0)


def test_mixtures(helpers):
    weights, means, stddevs = np.array([[0.3, 0.7]]), np.array([[-1.0, 1.0]]), np.array([[1.0, 0.5]])
    mixture = ds.Mixture(ds.Categorical(probs=weights), [ds.Normal(means[:, i], stddevs[:, i]) for i in range(2)])
    np.testing.assert_allclose(run(helpers.mixture_stddev(weights, means, stddevs)), run(mixture.stddev()))
    one = ds.MixtureSameFamily(ds.Categorical(probs=[0.3, 0.7]), ds.MultivariateNormalDiag([[-1.0, 1], [1, -1]], [1.0, 1.0]))
    assert run(helpers.pad_mixture_dimensions(np.ones((2, 2)), one, one.mixture_distribution, 1)).shape == (2, 2, 1)
    several = ds.MixtureSameFamily(ds.Categorical(probs=[0.3, 0.7]), ds.Normal(np.zeros((3, 2)), 1.0))
    assert run(helpers.pad_mixture_dimensions(np.ones(2), several, several.mixture_distribution, 0)).shape == (1, 2)


def test_what_is_shown():
    kind = ds.Normal(np.float16(0), tf.placeholder(tf.float16), name="N")
    assert repr(kind) == "<tfp.distributions.Normal 'N/' batch_shape=<unknown> event_shape=() dtype=float16>"
    assert str(kind) == 'tfp.distributions.Normal("N/", event_shape=(), dtype=float16)'


def test_parameters_for_samples_of_a_shape():
    one = {
        "Bernoulli": 1,
        "Exponential": 1,
        "Chi2": 1,
        "Normal": 2,
        "Beta": 2,
        "Gamma": 2,
        "InverseGamma": 2,
        "Laplace": 2,
        "Cauchy": 2,
        "Uniform": 2,
        "StudentT": 3,
    }
    for kind, count in one.items():
        shapes = getattr(ds, kind).param_static_shapes([10, 2])
        assert len(shapes) == count and set(shapes.values()) == {tf.TensorShape([10, 2])}
        parameters = {name: tf.random_uniform(shape, 1.0 + ("high" in name), 2.0 + ("high" in name)) for name, shape in shapes.items()}
        assert getattr(ds, kind)(**parameters).sample().shape.as_list() == [10, 2]


def test_quantiles_of_cauchy():
    kind, p = ds.Cauchy(np.float64(2), np.float64(3)), np.array([0.01, 0.5, 0.9])
    np.testing.assert_allclose(run(kind.cdf(kind.quantile(p))), p)


def test_divergences_that_are_no_numbers():
    a = ds.Normal(np.nan, 1.0, allow_nan_stats=False)
    for make in (lambda: a.kl_divergence(a), lambda: a.cross_entropy(a)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="KL calculation between .* returned NaN"):
            run(make())
    b = ds.Normal(0.0, [1.0, 2.0])
    got, wanted = run(names.find("python.ops.distributions.kullback_leibler").cross_entropy(b, b), b.entropy())
    np.testing.assert_allclose(got, wanted)


def test_multinomials_of_different_counts():
    totals, theta = np.array([[10.0, 9.0], [0.0, 7.0], [6.0, 5.0]]), np.array([[0.2, 0.3, 0.5], [0.4, 0.6, 0.0]])
    kind = ds.Multinomial(totals, probs=theta)
    drawn = run(kind.sample(4000, seed=1))
    assert kind.batch_shape.as_list() == [3, 2] and drawn.shape == (4000, 3, 2, 3)
    np.testing.assert_array_equal(drawn.sum(-1), np.broadcast_to(totals, (4000, 3, 2)))
    np.testing.assert_allclose(drawn.mean(0), totals[..., None] * theta, atol=0.15)
    assert run(ds.Multinomial([4.0, 5.0], probs=[0.5, 0.5]).sample(3)).sum(-1).tolist() == [[4, 5]] * 3


def test_functions_say_the_shapes_of_inline():
    kind = ds.bijectors.Inline(
        forward_event_shape_tensor_fn=lambda x: tf.concat((x, [1]), 0),
        forward_event_shape_fn=lambda x: x.as_list() + [1],
        inverse_event_shape_tensor_fn=lambda x: x[:-1],
        inverse_event_shape_fn=lambda x: x[:-1],
        forward_min_event_ndims=2,
        inverse_min_event_ndims=3,
    )
    assert kind.forward_event_shape([2, 3]).as_list() == [2, 3, 1] and kind.inverse_event_shape([2, 3, 1]).as_list() == [2, 3]
    assert [x.tolist() for x in run(kind.forward_event_shape_tensor([2, 3]), kind.inverse_event_shape_tensor([2, 3, 1]))] == [[2, 3, 1], [2, 3]]
    assert kind.forward_min_event_ndims == 2 and kind.inverse_min_event_ndims == 3
    with pytest.raises(TypeError):
        ds.bijectors.Inline(forward_shape_fn=None)


def test_what_bijectors_and_divergences_refuse():
    b = ds.bijectors
    for match, make in (
        ("must be non-zero", lambda: b.Affine(scale_diag=[0.0, 1.0], validate_args=True).forward([1.0, 2.0])),
        ("must be non-zero", lambda: b.Affine(scale_tril=[[1.0, 0.0], [1.0, 0.0]], validate_args=True).inverse([1.0, 2.0])),
        ("must contain exactly one", lambda: b.Permute(tf.placeholder_with_default([1, 2], None), validate_args=True).inverse([1.0, 2.0])),
    ):
        with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match=match):
            run(make())
    assert run(b.Permute(tf.placeholder_with_default([1, 0], None), validate_args=True).forward([1.0, 2.0])).tolist() == [2, 1]
    with pytest.raises(ValueError, match="must be specified"):
        b.Affine(scale_perturb_diag=[1.0])
    vector = ds.Independent(ds.Normal([-1.0, 1.0], 1.0), 1)
    with pytest.raises(ValueError, match="Event shapes do not match"):
        ds.kl_divergence(vector, ds.Independent(ds.Normal(0.0, 1.0), 0))
    with pytest.raises(NotImplementedError, match="different event shapes"):
        ds.kl_divergence(vector, ds.Independent(ds.MultivariateNormalDiag([-1.0, 1.0]), 0))


def test_what_distributions_say_of_shapes():
    normal, x = tf.distributions.Normal([0.0], [1.0]), tf.placeholder(tf.int32)
    assert normal._is_scalar_helper(tf.TensorShape([]), lambda: None) and not normal._is_scalar_helper(tf.TensorShape([1]), lambda: None)
    known = tf.placeholder(tf.int32, [1])
    assert normal._is_scalar_helper(tf.TensorShape(None), lambda: tf.shape(known)) is False
    told = normal._is_scalar_helper(tf.TensorShape(None), lambda: tf.shape(x))
    with tf.Session() as session:
        assert session.run([normal.is_scalar_event(), normal.is_scalar_batch()]) == [True, False]
        assert session.run(told, {x: 1}) and not session.run(told, {x: [1]})
    drawn = normal._set_sample_static_shape(tf.placeholder(tf.float32), tf.constant([6, 7]))
    assert drawn.shape.as_list() == [6, 7, 1]
