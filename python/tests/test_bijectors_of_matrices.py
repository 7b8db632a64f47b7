# SPDX-License-Identifier: Apache-2.0
"""Bijectors of matrices, shapes and networks: inverses, and determinants of the Jacobians that tf.gradients builds."""

import numpy as np
import pytest

import millrace as tf

ds = tf.contrib.distributions
B = ds.bijectors
RNG = np.random.RandomState(5)
VECTOR = RNG.randn(6)
LOWER = np.tril(RNG.rand(3, 3)) + np.eye(3)
BELOW = [3 * i + j for i, j in zip(*np.tril_indices(3))]
ABOVE = [3 * i + j for i, j in zip(*np.triu_indices(3))]
MATRIX = RNG.randn(3, 3) + 3 * np.eye(3)


@pytest.fixture(autouse=True)
def fresh():
    tf.reset_default_graph()
    with tf.Graph().as_default():
        yield


# A bijector, an event, and which places of it and of its image vary.
CASES = {
    "exp of vectors": (lambda: B.Exp(), VECTOR, None, None),
    "exp of affine": (lambda: B.Chain([B.Exp(), B.Affine(scale_diag=np.array([1.0, 2, 3]))]), VECTOR[:3], None, None),
    "lower triangle": (lambda: B.FillTriangular(), VECTOR, None, BELOW),
    "upper triangle": (lambda: B.FillTriangular(upper=True), VECTOR, None, ABOVE),
    "scale": (lambda: B.ScaleTriL(), VECTOR, None, BELOW),
    "scale by exp": (lambda: B.ScaleTriL(B.Exp(), None), VECTOR, None, BELOW),
    "inverted scale": (lambda: B.Invert(B.ScaleTriL()), LOWER, BELOW, None),
    "outer product": (lambda: B.CholeskyOuterProduct(), LOWER, BELOW, BELOW),
    "inverse": (lambda: B.MatrixInverseTriL(), LOWER, BELOW, BELOW),
    "diagonal": (lambda: B.TransformDiagonal(B.Exp()), LOWER, BELOW, BELOW),
    "wishart": (lambda: B.Chain([B.CholeskyOuterProduct(), B.ScaleTriL()]), VECTOR, None, BELOW),
    "ordered": (lambda: B.Ordered(), np.cumsum(RNG.rand(4) + 0.1), None, None),
    "reshape": (lambda: B.Reshape([2, -1], [6]), VECTOR, None, None),
    "operator": (lambda: B.AffineLinearOperator(np.ones(3), tf.linalg.LinearOperatorFullMatrix(MATRIX, is_non_singular=True)), VECTOR[:3], None, None),
    "real nvp": (lambda: B.RealNVP(2, B.real_nvp_default_template([5])), VECTOR, None, None),
    "flow": (lambda: B.MaskedAutoregressiveFlow(B.masked_autoregressive_default_template([13, 8])), VECTOR, None, None),
    "unrolled flow": (lambda: B.MaskedAutoregressiveFlow(B.masked_autoregressive_default_template([9]), unroll_loop=True), VECTOR, None, None),
    "shifts": (lambda: B.MaskedAutoregressiveFlow(B.masked_autoregressive_default_template([], shift_only=True)), VECTOR, None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_inverses_and_jacobians(name):
    make, event, places, images = CASES[name]
    b, x = make(), tf.constant(event)
    y = b.forward(x)
    flat = tf.reshape(y, [-1]) if images is None else tf.gather(tf.reshape(y, [-1]), images)
    rows = [tf.gradients(flat[i], x)[0] for i in range(flat.shape[0].value)]
    jacobian = tf.stack([tf.zeros([event.size], tf.float64) if row is None else tf.reshape(row, [-1]) for row in rows])
    forgotten = tf.identity(y)  # of which nothing is remembered
    wanted = [jacobian, b.forward_log_det_jacobian(x, event.ndim), b.inverse(forgotten), b.inverse_log_det_jacobian(tf.identity(y), event_ndims=y.shape.ndims)]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        jacobian, forward, back, inverse = sess.run(wanted)
    exact = np.linalg.slogdet(jacobian if places is None else jacobian[:, places])[1]
    np.testing.assert_allclose(back, event, atol=1e-9)
    assert abs(forward - exact) < 1e-9 and abs(inverse + exact) < 1e-9
    assert b.forward_event_shape(event.shape) == y.shape and b.inverse_event_shape(y.shape).as_list() == list(event.shape)
    with tf.Session() as sess:
        assert sess.run(b.forward_event_shape_tensor(event.shape)).tolist() == y.shape.as_list()
        assert sess.run(b.inverse_event_shape_tensor(y.shape.as_list())).tolist() == list(event.shape)


def test_batches_and_dimensions_of_events():
    x = np.stack([VECTOR, 2 * VECTOR])
    with tf.Session() as sess:
        assert sess.run(B.ScaleTriL().forward_log_det_jacobian(tf.constant(x))).shape == (2,)
        one, per_row, whole = (sess.run(B.Exp().forward_log_det_jacobian(x, n)) for n in (0, 1, 2))
        np.testing.assert_allclose(one, x)
        np.testing.assert_allclose(per_row, x.sum(1))
        np.testing.assert_allclose(whole, x.sum())
        assert sess.run(B.Identity().inverse_log_det_jacobian(x, event_ndims=1)) == 0  # of each vector
        pair = sess.run(B.SigmoidCentered().forward(np.array([0.3, -2.0])))
        np.testing.assert_allclose(pair.sum(-1), 1)
        np.testing.assert_allclose(sess.run(B.SigmoidCentered().inverse(pair)), [0.3, -2.0])
    with pytest.raises(ValueError, match="at least 2"):
        B.CholeskyOuterProduct().forward_log_det_jacobian(LOWER, 1)
    assert B.FillTriangular().forward_min_event_ndims == 1 and B.FillTriangular().inverse_min_event_ndims == 2


@pytest.mark.parametrize("known", [True, False])
def test_shapes_of_events_may_be_known_in_the_step_only(known):
    before, after = (tf.placeholder(tf.int32, [n] if known else None) for n in (2, 3))
    changed = B.Reshape(after, before, validate_args=True)
    x = RNG.randn(4, 2, 6)
    fetches = [changed.forward(x), changed.inverse(x.reshape(4, 3, 1, 4)), changed.forward_event_shape_tensor([7, 2, 6])]
    fetches += [changed.inverse_event_shape_tensor([3, 1, 4]), changed.forward_log_det_jacobian(x, event_ndims=2)]
    with tf.Session() as session:
        found = session.run(fetches, {before: [2, -1], after: [3, 1, 4]})
        np.testing.assert_array_equal(found[0], x.reshape(4, 3, 1, 4))
        np.testing.assert_array_equal(found[1], x)
        assert [f.tolist() for f in found[2:]] == [[7, 3, 1, 4], [2, 6], 0]
        for sizes, match in (([2, 5], "does not match"), ([-1, -1], "at most one"), ([-2, 6], "positive integers")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                session.run(fetches[0], {before: sizes, after: [3, 1, 4]})


def test_inverses_of_triangles_are_checked():
    kind = B.MatrixInverseTriL(validate_args=True)
    for match, bad in (("rank at least 2", [1.0]), ("square", [[1.0, 2, 3]]), ("lower triangular", [[1.0, 2], [3, 4]]), ("nonzero", [[1.0, 0], [2, 0]])):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32)
            for made in (kind.forward(x), kind.forward_log_det_jacobian(x, event_ndims=2)):
                with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                    session.run(made, {x: bad})


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("loc, batch, event", [(1.0, [2], [3]), ([1.0, -1.0], [], [3]), (1.0, [], [2, 3]), (1.0, [4], [])])
def test_shapes_in_place_of_scalars(told, loc, batch, event):
    """Of independent numbers, whose logarithms of density add up within an event."""
    given = {"batch_shape": batch, "event_shape": event}
    places = {key: tf.placeholder(tf.int32) for key in given} if told else given
    base = ds.Normal(np.float64(loc), np.float64(2))
    kind = ds.TransformedDistribution(base, B.AffineScalar(np.float64(3), np.float64(0.5)), **places)
    whole = batch + list(np.shape(loc)) + event
    x = np.random.RandomState(0).randn(5, *whole)
    inner = (x - 3) / 0.5
    wide = np.reshape(loc, np.shape(loc) + (1,) * len(event))
    wanted = -0.5 * ((inner - wide) / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi) + np.log(2)
    for _ in event:
        wanted = wanted.sum(-1)
    fetches = [kind.log_prob(x), kind.mean(), kind.batch_shape_tensor(), kind.event_shape_tensor(), kind.sample(4000, seed=1)]
    with tf.Session() as session:
        density, mean, of_batch, of_event, drawn = session.run(fetches, {places[key]: given[key] for key in given} if told else None)
    np.testing.assert_allclose(density, wanted)
    np.testing.assert_allclose(mean, 3 + 0.5 * wide + np.zeros(whole))
    assert list(of_batch) + list(of_event) == whole and list(of_event) == event and list(drawn.shape) == [4000, *whole]
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.1)
    if not told:
        assert kind.batch_shape.as_list() + kind.event_shape.as_list() == whole


def test_what_is_refused():
    for bad in ([2, -1, -1], [[2]], [-3]):
        with pytest.raises(ValueError):
            B.Reshape(bad)
    with pytest.raises(ValueError, match="Cannot reshape"):
        B.Reshape([2, 2], [5]).forward(tf.zeros([5]))
    with pytest.raises(ValueError, match="does not match"):
        B.Reshape([2, 2], [4]).forward(tf.zeros([5]))
    with pytest.raises(ValueError, match="triangular"):
        B.FillTriangular().forward_event_shape([5])
    with pytest.raises(ValueError):
        B.RealNVP(0, lambda x, n: (x, None))
    with pytest.raises(ValueError, match="smaller than the event"):
        B.RealNVP(3, lambda x, n: (x, None)).forward(tf.zeros([2, 3]))
    with pytest.raises(ValueError):
        B.masked_dense(tf.zeros([2, 3]), 4, num_blocks=0)
    with pytest.raises(ValueError, match="is_non_singular"):
        B.AffineLinearOperator(scale=tf.linalg.LinearOperatorFullMatrix(MATRIX))
    with pytest.raises(ValueError, match="base distribution not scalar"):
        ds.TransformedDistribution(ds.Normal([0.0, 1.0], 1.0), B.Exp(), batch_shape=[3])
    with pytest.raises(NotImplementedError, match="when overriding event_shape"):
        ds.TransformedDistribution(ds.Normal(0.0, 1.0), B.Exp(), event_shape=[3]).cdf(np.ones(3, "f"))
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(B.MatrixInverseTriL(validate_args=True).forward(np.ones((2, 2))))


def test_masked_layers_see_what_is_before():
    x = tf.constant(RNG.randn(1, 4))
    y = B.masked_dense(B.masked_dense(x, 9, 4, exclusive=True, activation=tf.nn.tanh), 8, 4)
    with tf.Session() as sess:
        slopes = [tf.gradients(y[0, i], x)[0] for i in range(8)]
        sess.run(tf.global_variables_initializer())
        seen = np.array(sess.run(slopes))[:, 0] != 0
    assert [row.tolist() for row in seen] == [[j < i // 2 for j in range(4)] for i in range(8)]


def test_distributions_made_of_them():
    value = np.array([0.5, 1.0])
    folded = ds.TransformedDistribution(ds.Normal(np.float64(0), np.float64(1)), B.AbsoluteValue())
    flow = B.MaskedAutoregressiveFlow(B.masked_autoregressive_default_template([8]))
    many = ds.TransformedDistribution(ds.Normal(0.0, 1.0), flow, event_shape=[3])
    drawn = many.sample(5, seed=1)
    assert drawn.shape.as_list() == [5, 3] and many.event_shape.as_list() == [3] and many.batch_shape.ndims == 0
    logs, again = many.log_prob(drawn), many.log_prob(tf.identity(drawn))
    loss = -tf.reduce_mean(many.log_prob(RNG.randn(20, 3).astype(np.float32)))
    assert all(g is not None for g in tf.gradients(loss, tf.trainable_variables())) and tf.trainable_variables()
    batch = ds.TransformedDistribution(ds.Normal(0.0, 1.0), B.Exp(), batch_shape=[2])
    lognormal = ds.TransformedDistribution(ds.MultivariateNormalDiag(np.zeros(2), np.ones(2)), B.Exp())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(folded.prob(value)), 2 * np.exp(-0.5 * value**2) / np.sqrt(2 * np.pi))
        first, second = sess.run([logs, again])
        np.testing.assert_allclose(first, second, rtol=1e-5)
        assert sess.run(batch.sample(7)).shape == (7, 2) and sess.run(batch.log_prob(1.0)).shape == ()
        exact = np.sum(-0.5 * np.log(value) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(value))
        np.testing.assert_allclose(sess.run(lognormal.log_prob(value)), exact)


def test_batch_normalization_is_of_the_batch():
    b, x = B.BatchNormalization(), tf.constant(RNG.randn(50, 2) * [2.0, 3.0] + 1.0)
    y, logs = b.inverse(x), b.inverse_log_det_jacobian(x, 1)
    settled = B.BatchNormalization(training=False)
    there = settled.inverse(x)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        given, made, log, still, back = sess.run([x, y, logs, there, settled.forward(tf.identity(there))])
    np.testing.assert_allclose(made, (given - given.mean(0)) / np.sqrt(given.var(0) + 1e-3), rtol=1e-6)
    np.testing.assert_allclose(log, -0.5 * np.log(given.var(0) + 1e-3).sum(), rtol=1e-6)
    np.testing.assert_allclose(still, given / np.sqrt(1 + 1e-3), rtol=1e-6)
    np.testing.assert_allclose(back, given, rtol=1e-6)


def test_batch_normalization_of_events_of_two_axes_averages_what_it_normalizes():
    b, x = B.BatchNormalization(tf.layers.BatchNormalization(axis=[1, 2], momentum=0.5, epsilon=0.0)), tf.constant((RNG.randn(6, 2, 3) + 4.0).astype("f"))
    b.forward(x)  # no batch: it leaves the averages alone
    log = b.inverse_log_det_jacobian(x, 2)
    b.inverse(x)
    assert len(b.batchnorm.updates) == 2
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(b.batchnorm.updates)
        given, made, mean = sess.run([x, log, b.batchnorm.moving_mean])
    np.testing.assert_allclose(made, -0.5 * np.log(given.var(0)).sum(), rtol=1e-4)
    np.testing.assert_allclose(np.reshape(mean, [2, 3]), given.mean(0) / 2, rtol=1e-5)
