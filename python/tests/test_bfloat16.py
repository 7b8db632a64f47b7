# SPDX-License-Identifier: Apache-2.0
"""Numbers to bfloat16 and back, with the package ml_dtypes or without it, where NumPy knows nothing but the bits."""

import sys

import numpy as np
import pytest

import millrace as tf
from millrace.compat import pywrap
from millrace.contrib.layers_sparse import dense_to_sparse_tensor
from millrace.framework import numpy_cast
from millrace.framework.type_spec import BoundedTensorSpec

# To the nearest of 8 bits, ties to even.
ROUNDED = [
    (1, 1.0),
    (-2.5, -2.5),
    (1 + 1 / 256, 1.0),
    (1 + 3 / 256, 1 + 1 / 64),
    (3.3895313892515355e38, 3.3895313892515355e38),
    (3.4e38, np.inf),
    (-np.inf, -np.inf),
    (0.1, 0.10009765625),
]


@pytest.fixture(params=["as_installed", "without_the_package"], autouse=True)
def session(request, monkeypatch):
    if request.param == "without_the_package":
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def wide(x):
    return tf.cast(x, tf.float32)


def test_constants_are_rounded(session):
    given, want = zip(*ROUNDED)
    assert session.run(wide(tf.constant(given, tf.bfloat16))).tolist() == list(want)
    for value in (np.array(given), np.array(given, np.float32)):
        assert session.run(wide(tf.constant(value, tf.bfloat16))).tolist() == list(want)
    assert session.run(wide(tf.constant(3, tf.bfloat16))) == 3
    assert np.isnan(session.run(wide(tf.constant([np.nan], tf.bfloat16))))
    assert session.run(wide(tf.constant(np.arange(6).reshape(2, 3), tf.bfloat16))).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_feeds_are_rounded(session):
    x = tf.placeholder(tf.bfloat16, [None])
    for value in ([1.5, 2], np.array([1.5, 2]), np.array([1.5, 2], np.float16)):
        assert session.run(wide(x), {x: value}).tolist() == [1.5, 2]
    assert session.run(wide(x), {x: np.zeros([0])}).shape == (0,)


def test_what_was_fetched_can_be_given_again(session):
    x = tf.placeholder(tf.bfloat16, [2])
    fetched = session.run(tf.cast([1.5, -2.0], tf.bfloat16))
    assert session.run(wide(x), {x: fetched}).tolist() == [1.5, -2]
    assert session.run(wide(tf.constant(fetched))).tolist() == [1.5, -2]
    assert session.run(tf.constant(fetched, tf.float64)).tolist() == [1.5, -2]
    assert numpy_cast.cast(session.run(x, {x: [0.5, 4]}), tf.float32).tolist() == [0.5, 4]


def test_ones_variables_and_numbers_beside_tensors(session):
    v = tf.get_variable("v", [2], tf.bfloat16, tf.constant_initializer(0.5))
    session.run(tf.global_variables_initializer())
    assert session.run(wide(v * 2 + tf.ones([2], tf.bfloat16) + tf.ones_like(v))).tolist() == [3, 3]
    images = tf.cast([[0.5, 0.25, 0.125]], tf.bfloat16)
    hsv = tf.image.rgb_to_hsv(images)
    narrow = session.run(wide(tf.gradients(hsv, images, tf.ones_like(hsv))[0]))
    single = tf.constant([[0.5, 0.25, 0.125]])
    hsv = tf.image.rgb_to_hsv(single)
    np.testing.assert_allclose(narrow, session.run(tf.gradients(hsv, single, tf.ones_like(hsv))[0]), rtol=0.02)


def test_protos_hold_the_bits():
    made = tf.make_tensor_proto([1.5, -2.0], tf.bfloat16)
    assert numpy_cast.cast(tf.make_ndarray(made), tf.float32).tolist() == [1.5, -2]


def test_elements_of_generators_are_rounded(session):
    given = [1.5, np.float32(2.5), 3]
    x = tf.data.Dataset.from_generator(lambda: iter(given), tf.bfloat16, []).make_one_shot_iterator().get_next()
    assert [session.run(wide(x)) for _ in given] == given


def test_values_that_are_known_while_the_graph_is_built():
    x = tf.constant([1.5, -0.0], tf.bfloat16)
    assert tf.get_static_value(tf.equal(x, tf.constant([1.5, 0], tf.bfloat16))).tolist() == [True, True]
    assert tf.get_static_value(wide(x)).tolist() == tf.get_static_value(wide(tf.cast([1.5, -0.0], tf.bfloat16))).tolist() == [1.5, 0]


def test_limits(session):
    assert (tf.bfloat16.min, tf.bfloat16.max, tf.bfloat16.limits) == (-ROUNDED[4][0], ROUNDED[4][0], (0, 1))
    x = tf.constant([3e38, -np.inf, 2.5], tf.bfloat16)
    assert session.run(tf.saturate_cast(x, tf.uint8)).tolist() == [255, 0, 2]
    assert session.run(tf.saturate_cast(x, tf.int32)).tolist() == [2**31 - 2**23, -(2**31), 2]
    assert session.run(wide(tf.saturate_cast([1e39, -1e300, 2.5], tf.bfloat16))).tolist() == [tf.bfloat16.max, tf.bfloat16.min, 2.5]


def test_bounds_and_ragged_numbers(session):
    bounded = BoundedTensorSpec([], tf.bfloat16, 0.5, 2)
    assert [numpy_cast.cast(v, tf.float32).tolist() for v in (bounded.minimum, bounded.maximum)] == [0.5, 2]
    assert session.run(wide(tf.ragged.constant([[1.5], [2, 3.0]], tf.bfloat16).values)).tolist() == [1.5, 2, 3]
    assert session.run(wide(dense_to_sparse_tensor(tf.constant([[0, 1.5]], tf.bfloat16)).values)).tolist() == [1.5]


def test_comparisons_of_test_cases_are_of_the_numbers(session):
    case, found = tf.test.TestCase(), session.run(tf.constant([1.5, 2], tf.bfloat16))
    case.assertAllClose(found, [1.5, 2])
    case.assertAllEqual(found, [1.5, 2])
    for check in (case.assertAllClose, case.assertAllEqual):
        with pytest.raises(AssertionError):
            check(found, [1.5, 3])


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError):
        numpy_cast.cast([300], tf.int8)
    for make in (tf.constant, tf.convert_to_tensor):
        with pytest.raises(OverflowError, match="does not fit into int64"):
            make(2**63, tf.int64)
    assert tf.Session().run(tf.constant(2**63, tf.uint64)) == 2**63


def test_the_extension_module_has_the_type():
    assert pywrap.TF_bfloat16_type() == tf.bfloat16.as_numpy_dtype


def test_a_sparse_product_of_both_kinds_is_as_narrow_as_they_are(session):
    a, b = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.bfloat16), tf.constant([[1.0], [0.5]], tf.bfloat16)
    for first, second, dtype in ((a, b, tf.bfloat16), (a, wide(b), tf.float32), (wide(a), b, tf.float32)):
        product = tf.matmul(first, second, a_is_sparse=True)
        assert product.dtype == dtype and session.run(wide(product)).tolist() == [[2], [5]]
