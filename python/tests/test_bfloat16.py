# SPDX-License-Identifier: Apache-2.0
"""Numbers to bfloat16 and back, with the package ml_dtypes or without it, where NumPy knows nothing but the bits."""

import sys

import numpy as np
import pytest

import millrace as tf
from millrace.framework import numpy_cast

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
