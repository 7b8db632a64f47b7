# SPDX-License-Identifier: Apache-2.0
"""Ops that graphs of TensorFlow 2.x have, with the values of TensorFlow 2.21."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _run(tensors):
    with tf.Session() as session:
        return session.run(tensors)


def _keyed(seed=(1, 2)):
    return gen_ops.stateless_random_get_key_counter(np.int64(seed))


X = np.array([-2.0, -0.5, 0.0, 0.3, 1.0, 2.5, 100.0])
INF, NAN = np.inf, np.nan
OF_TENSORFLOW = {
    "bessel_i0": [2.279585302336067, 1.0634833707413238, 1.0, 1.0226268793515971, 1.2660658777520082, 3.289839144050123, 1.073751707131074e42],
    "bessel_i1": [-1.5906368546373295, -0.2578943053908962, 0.0, 0.15169384000359282, 0.565159103992485, 2.5167162452886984, 1.0683693903381627e42],
    "bessel_j0": [0.22389077914123562, 0.938469807240813, 1.0, 0.9776262465382962, 0.7651976865579665, -0.04838377646819804, 0.01998585030422333],
    "bessel_j1": [-0.5767248077568734, -0.24226845767487387, 0.0, 0.148318816273104, 0.44005058574493355, 0.497094102464274, -0.07714535201411231],
    "bessel_k0": [INF, INF, INF, 1.3724600605442978, 0.42102443824070823, 0.062347553200366196, 4.6566282291759025e-45],
    "bessel_k0e": [INF, INF, INF, 1.8526273007720149, 1.1444630798068947, 0.7595486903280997, 0.1251756216591266],
    "bessel_k1": [INF, INF, INF, 3.055992033457325, 0.6019072301972348, 0.07389081634774707, 4.679853735636911e-45],
    "bessel_k1e": [INF, INF, INF, 4.12515776224447, 1.6361534862632587, 0.900174423907878, 0.12579995047957857],
    "bessel_y0": [-INF, -INF, -INF, -0.8072735778045196, 0.08825696421567697, 0.498070359615232, -0.0772443133650831],
    "bessel_y1": [-INF, -INF, -INF, -2.2931051383885293, -0.7812128213002888, 0.14591813796678577, -0.020372312002759324],
    "erfinv": [NAN, -0.4769362762044699, 0.0, 0.27246271472675443, INF, NAN, NAN],
    "ndtri": [NAN, NAN, -INF, -0.5244005127080409, INF, NAN, NAN],
}


@pytest.mark.parametrize("name", sorted(OF_TENSORFLOW))
def test_special_functions(name):
    np.testing.assert_allclose(_run(getattr(gen_ops, name)(X)), OF_TENSORFLOW[name], rtol=1e-13)


def test_special_functions_at_their_ends():
    functions = [gen_ops.bessel_i0, gen_ops.bessel_i1, gen_ops.bessel_k0, gen_ops.bessel_k1, gen_ops.bessel_j0, gen_ops.bessel_y0]
    far, nan, ends = _run([[f(np.array([v])) for f in functions] for v in (INF, NAN, 711.0)])
    assert [float(v[0]) for v in far] == [INF, INF, 0, 0, 0, 0] and np.isnan(nan).all()
    assert np.isfinite(ends[0]) and ends[0] > 9e306  # although exp(711) is no number
    tiny = np.array([1e-300, 5e-324, 1 - 2.0**-53])
    np.testing.assert_allclose(_run(gen_ops.ndtri(tiny))[[0, 2]], [-37.0471, 8.2095], rtol=1e-5)
    np.testing.assert_allclose(
        _run(gen_ops.erfinv(np.array([1e-300, -1e-9, 0.5, 1 - 2.0**-53]))),
        [8.862269254527581e-301, -8.862269254527581e-10, 0.4769362762044699, 5.863584748755168],
        rtol=1e-13,
    )
    assert _run(gen_ops.xlog1py([0.0, 1.0, 2.0], [-1.0, -1.0, 3.0])).tolist() == [0, -INF, pytest.approx(2.7725887)]


def test_samples_of_seeds():
    key, counter = _keyed()
    gamma = [[0.0669536143541336, 3.3503754138946533], [0.6282354593276978, 3.403514862060547], [0.18136732280254364, 2.4479711055755615]]
    made = _run(
        [
            gen_ops.stateless_random_gamma_v2([3, 2], np.int64([1, 2]), np.float32([0.5, 3])),
            gen_ops.stateless_random_gamma_v3([3, 2], key, counter, 1, np.float32([0.5, 3])),
            gen_ops.stateless_random_gamma_v2([3, 2], np.int64([1, 2]), [np.float64(0.5), np.float64(3)]),
        ]
    )
    for values in made:
        np.testing.assert_allclose(values, gamma, rtol=1e-6)
    poisson = gen_ops.stateless_random_poisson([4, 2], np.int64([1, 2]), np.float32([0.5, 30]), dtype=tf.int32)
    assert _run(poisson).tolist() == [[3, 25], [2, 35], [1, 30], [3, 29]]
    assert _run(gen_ops.stateless_shuffle(np.arange(1, 6), key, counter, 1)).tolist() == [1, 3, 2, 5, 4]
    assert _run(gen_ops.stateless_shuffle(np.arange(10), *_keyed(), 1)).tolist() == [0, 3, 8, 1, 5, 4, 9, 7, 6, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binomial_samples_of_seeds(dtype):
    counts, probs = dtype([10, 200, 3000]), dtype([0.5, 0.3, 0.9])
    made = gen_ops.stateless_random_binomial([4, 3], np.int64([1, 2]), counts, probs, dtype=tf.int64)
    assert _run(made).tolist() == [[6, 54, 2720], [6, 66, 2692], [7, 60, 2701], [7, 59, 2708]]
    ends = gen_ops.stateless_random_binomial([2, 7], np.int64([1, 2]), dtype([5, 5, 0, -3, INF, NAN, 9]), dtype([0, 1, 0.5, 0.5, 0.5, 0.5, NAN]), dtype=dtype)
    np.testing.assert_array_equal(_run(ends), [[0, 5, 0, 0, NAN, NAN, NAN]] * 2)
    many = gen_ops.stateless_random_binomial([5000, 1, 2], np.int64([3, 4]), dtype([[7], [400]])[:1], dtype([0.2, 0.75]), dtype=tf.int32)
    mean = _run(many).reshape(-1, 2).mean(0)
    np.testing.assert_allclose(mean, [1.4, 5.25], rtol=0.05)


def test_binomial_samples_of_a_generator():
    """Parameters are those of rows, as in TensorFlow 1.15."""
    generator = tf.random.experimental.Generator.from_seed(7)
    rows = generator.binomial([3, 4000], [10.0, 3000.0, 5.0], [0.5, 0.9, 1.0])
    wrong = generator.binomial([2, 3], [1.0, 2.0, 3.0], 0.5)
    with tf.Session() as session:
        session.run(generator.state.initializer)
        first, second = session.run(rows), session.run(rows)
        assert not np.array_equal(first, second) and session.run(generator.state).tolist() == [7 + 2 * 12000 * 256, 0, 0]
        np.testing.assert_allclose(first.mean(1), [5, 2700, 5], rtol=0.02)
        np.testing.assert_allclose(first.var(1), [2.5, 270, 0], rtol=0.1)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"should have length 1 or shape\[0\]"):
            session.run(wrong)


def test_segments_that_are_counted():
    ids = np.int32([0, 0, 2])
    for op, want in ((gen_ops.segment_sum_v2, [3, 0, 3, 0]), (gen_ops.segment_prod_v2, [2, 1, 3, 1])):
        assert _run(op(np.float32([1, 2, 3]), ids, 4)).tolist() == want
    low, high = np.finfo("f").min, np.finfo("f").max
    assert _run(gen_ops.segment_max_v2(np.float32([1, 2, 3]), ids, 4)).tolist() == [2, low, 3, low]
    assert _run(gen_ops.segment_min_v2(np.float32([1, 2, 3]), ids, 4)).tolist() == [1, high, 3, high]


def test_extremes_at_places():
    tensor, places, updates = tf.constant([1.0, 5.0, 3.0, 4.0]), np.int32([[0], [1], [3], [3]]), tf.constant([4.0, 4.0, 4.0, 2.0])
    top = gen_ops.tensor_scatter_max(tensor, places, updates)
    slopes = tf.gradients(top, [tensor, updates], tf.constant([1.0, 2.0, 3.0, 8.0]))
    value, (by_tensor, by_updates) = _run([top, slopes])
    assert value.tolist() == [4, 5, 3, 4] and by_tensor.tolist() == [0, 2, 3, 4] and by_updates.tolist() == [1, 0, 4, 0]
    assert _run(gen_ops.tensor_scatter_min(tensor, places, updates)).tolist() == [1, 4, 3, 2]
    held = tf.Variable([1, 5, 3], use_resource=True)
    with tf.Session() as session:
        session.run(held.initializer)
        session.run(gen_ops.resource_scatter_nd_max(held.handle, [[0], [1]], [4, 4]))
        assert session.run(held).tolist() == [4, 5, 3]
        session.run(gen_ops.resource_scatter_nd_min(held.handle, [[1], [2]], [2, 9]))
        assert session.run(held).tolist() == [4, 2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="9"):
            session.run(gen_ops.resource_scatter_nd_min(held.handle, tf.placeholder_with_default([[9]], None), [2]))


def test_products_of_bytes():
    random = np.random.RandomState(0)
    x, y = random.randint(-128, 128, (2, 1, 3, 40)).astype("i1"), random.randint(0, 256, (5, 6, 40)).astype("u1")
    made = gen_ops.batch_mat_mul_v3(x, y, Tout=tf.int32, adj_y=True)
    np.testing.assert_array_equal(_run(made), x.astype(int) @ np.swapaxes(y.astype(int), -1, -2))
    a, b = tf.constant(random.rand(2, 3, 4)), tf.constant(random.rand(4, 5))
    product = gen_ops.batch_mat_mul_v3(a, b, Tout=tf.float64)
    have, want, slopes, others = _run([product, tf.matmul(a, b), tf.gradients(product, [a, b]), tf.gradients(tf.matmul(a, b), [a, b])])
    np.testing.assert_array_equal(have, want)
    for one, other in zip(slopes, others):
        np.testing.assert_allclose(one, other)
    with pytest.raises(tf.errors.UnimplementedError, match="are bytes with sums of int32"):
        _run(gen_ops.batch_mat_mul_v3(a, np.float32([[1]] * 4), Tout=tf.float64))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda f: gen_ops.stateless_random_gamma_v2(f([2, 3]), np.int64([1, 2]), f(np.float32([1, 2]))), "end with"),
        (lambda f: gen_ops.stateless_random_poisson(f([]), np.int64([1, 2]), f(np.float32([1])), dtype=tf.int32), "end with|vector"),
        (lambda f: gen_ops.stateless_random_binomial(f([2]), np.int64([1, 2]), f(np.float32([1, 2, 3])), f(np.float32([0.5, 0.5]))), "compatible batch"),
        (lambda f: gen_ops.stateless_random_binomial(f([2]), f(np.int64([1])), np.float32(1), np.float32(0.5)), "seed"),
        (lambda f: gen_ops.stateless_shuffle(f([1, 2]), f(np.uint64([1, 2])), np.uint64([1, 2]), 1), "key"),
        (lambda f: gen_ops.tensor_scatter_max(f([1]), f([[3]]), f([1])), "3"),
    ],
)
def test_refusals(make, text):
    """Of values whose shapes only a step tells."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _run(make(lambda value: tf.placeholder_with_default(np.asarray(value, np.int32) if isinstance(value, list) else value, None)))
