# SPDX-License-Identifier: Apache-2.0
"""Case, templates and white space of strings; special functions and places under their public names; the clock."""

import time

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_case_and_space(session):
    words = [" Straße ", "ΑΣ"]
    assert [w.decode() for w in session.run(tf.strings.upper(words, encoding="utf-8"))] == [" STRASSE ", "ΑΣ"]
    assert [w.decode() for w in session.run(tf.strings.lower(words, encoding="utf-8"))] == [" straße ", "ας"]
    assert session.run(tf.strings.lower("ÄB")).decode() == "Äb"
    assert session.run(tf.strings.strip(" a b\n")) == session.run(tf.string_strip(" a b\n")) == b"a b"
    with pytest.raises(tf.errors.InvalidArgumentError, match="only utf-8 or"):
        session.run(tf.strings.upper("a", encoding="latin1"))
    assert session.run(tf.strings.unicode_script([ord("a"), ord("я"), 2**31 - 1])).tolist() == [25, 8, -1]


# As TensorFlow prints them.
@pytest.mark.parametrize(
    "value, text",
    [
        (np.float32([0.1, 1 / 3, 1e10, 1e-7]), "[0.1 0.333333343 1e+10 1e-07]"),
        (np.float64([1 / 3, 1e10, 123456.789]), "[0.33333333333333331 10000000000 123456.789]"),
        (np.float16([0.1]), "[0.0999755859]"),
        (np.float32([np.nan, -np.inf]), "[nan -inf]"),
        (np.array([True, False]), "[1 0]"),
        (np.array([b'a"b', b"\xff\n"]), '["a\\"b" "\udcff\\n"]'),
        (np.arange(10), "[0 1 2 ... 7 8 9]"),
        (np.arange(12).reshape(2, 2, 3), "[[[0 1 2]\n  [3 4 5]]\n\n [[6 7 8]\n  [9 10 11]]]"),
        (np.zeros((3, 0)), "[\n ...]"),
        (5, "5"),
    ],
)
def test_templates(session, value, text):
    assert session.run(tf.strings.format("<{}>", value)).decode("utf-8", "surrogateescape") == "<%s>" % text


def test_templates_have_a_place_for_each_tensor(session):
    assert session.run(tf.strings.format("{} and {}", (1, [2.5]))) == b"1 and [2.5]"
    assert session.run(tf.strings.format("%: ...", tf.range(9), placeholder="%", summarize=1)) == b"[0 ... 8]: ..."
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="num placeholders"):
        session.run(tf.strings.format("{}", (1, 2)))


def test_clock(session):
    assert abs(session.run(tf.timestamp()) - time.time()) < 60


def test_special_functions_far_out(session):
    """Where a sum of logarithms would have lost its digits; the values are sums of the series with 60 digits."""
    x = tf.constant([1e6, 1e6, 200.0, 1e-3], tf.float64)
    a = tf.constant([1e6, 1e6 + 2000, 150.0, 1e-8], tf.float64)
    np.testing.assert_allclose(session.run(tf.igamma(a, x)), [0.5001329807608725, 0.022804131903695755, 0.9999032137800506, 0.9999999366846083], rtol=1e-12)
    total = session.run(tf.igamma(a, x) + tf.igammac(a, x))
    np.testing.assert_allclose(total, 1, rtol=1e-14)
    np.testing.assert_allclose(
        session.run(tf.betainc(tf.constant(5e5, tf.float64), tf.constant(5e5, tf.float64), tf.constant(0.5, tf.float64))), 0.5, rtol=1e-9
    )
    assert np.isnan(session.run(tf.igamma([-1.0, 1.0, 0.0], [1.0, -1.0, 1.0]))).all()
    np.testing.assert_allclose(session.run(tf.math.bessel_i0([0.0, 1.0])), [1, 1.2660659], rtol=1e-6)


def test_places(session):
    assert session.run(tf.searchsorted([[1, 3, 5], [0, 0, 9]], [[3, 6], [0, 1]])).tolist() == [[1, 3], [0, 2]]
    assert session.run(tf.searchsorted([1, 3, 5], [3], side="right")).tolist() == [2]
    assert session.run(tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)).tolist() == [2, 1, 1, 0, 2]
    assert session.run(tf.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)).tolist() == [0, 0, 1, 2, 4, 4]
    assert session.run(tf.unravel_index([5, 7], [3, 3])).tolist() == [[1, 2], [2, 1]]


def test_what_no_place_can_hold(session):
    """Sizes and numbers that do not fit are refused before anything is allocated."""
    raw = tf.raw_ops
    number = tf.placeholder(tf.int32)

    def refused(make, text):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=text):
            session.run(make(), {number: 2**31 - 1})

    refused(lambda: raw.MatrixDiagV2(diagonal=[[1.0], [2.0]], k=[0, 1], num_rows=number, num_cols=number, padding_value=0.0), "number of rows or columns")
    refused(lambda: raw.MatrixDiagPartV2(input=[[1.0]], k=number, padding_value=0.0), "out of bound")
    refused(lambda: raw.MatrixSetDiagV2(input=[[1.0]], diagonal=[1.0], k=tf.negative(number) - 1), "out of bound")
    refused(lambda: tf.unravel_index([1], [number, number]), "overflow")
    refused(lambda: raw.HistogramFixedWidth(values=[np.nan], value_range=[0.0, 1.0], nbins=3), "NaN")
    refused(lambda: raw.InplaceAdd(x=tf.zeros([0, 2]), i=[number], v=tf.ones([1, 2])), "no rows")
