# SPDX-License-Identifier: Apache-2.0
"""Ops that TensorFlow 2 added and that its SavedModels hold. Expected values are those of TensorFlow 2.21."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops


def values(fetches):
    with tf.Session() as session:
        return session.run(fetches)


X = [[0.1, 0.7, 0.3], [2.0, 5.0, -9.0]]


def test_ranges_of_channels():
    def made(**attrs):
        return values(gen_ops.quantize_and_dequantize_v4(X, 0.0, 1.0, num_bits=4, **attrs))

    np.testing.assert_allclose(made(range_given=True), [[1 / 7, 5 / 7, 2 / 7], [1, 1, -8 / 7]], rtol=1e-6)
    np.testing.assert_allclose(made(), [[0, 1.125, 0], [2.25, 4.5, -9]], rtol=1e-6)
    np.testing.assert_allclose(made(axis=1), [[0, 5 / 7, 0], [2, 5, -9]], rtol=1e-6)
    np.testing.assert_allclose(made(axis=0), [[0.1, 0.7, 0.3], [2.25, 4.5, -9]], rtol=1e-6)


def test_gradient_within_the_range():
    x = tf.constant(X)
    for attrs, wanted in (({"range_given": True}, [[1, 1, 1], [0, 0, 0]]), ({}, np.ones([2, 3]))):
        made = gen_ops.quantize_and_dequantize_v4(x, 0.0, 1.0, **attrs)
        assert values(tf.gradients(made, x)[0]).tolist() == np.array(wanted, np.float32).tolist()


def test_ranges_that_do_not_fit():
    x = tf.placeholder_with_default(np.array(X, np.float32), None)
    for low, axis in (([0.0, 0.0], 1), ([0.0, 0.0], 7), ([5.0, 0.0], 0)):
        made = gen_ops.quantize_and_dequantize_v4(x, tf.placeholder_with_default(low, None), 1.0, range_given=True, axis=axis)
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(made)
    with pytest.raises(ValueError, match="an end for each channel"):
        gen_ops.quantize_and_dequantize_v4(X, 0.0, [1.0, 2.0], axis=1)


@pytest.mark.parametrize("op", ["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"])
def test_older_versions_take_the_axis_of_newer_graphs(op):
    with tf.Graph().as_default() as graph:
        more = [tf.constant(4)] if op.endswith("3") else []
        attrs = {} if more else {"num_bits": 4}
        make = getattr(gen_ops, "quantize_and_dequantize_v" + op[-1])
        make(tf.constant(X), 0.0, 1.0, *more, range_given=False, name="made", **attrs)
    graph_def = graph.as_graph_def()
    next(node for node in graph_def.node if node.name == "made").attr["axis"].i = 1
    made, *_ = tf.import_graph_def(graph_def, return_elements=["made:0"])
    np.testing.assert_allclose(values(made), [[0, 5 / 7, 0], [2, 5, -9]], rtol=1e-6)


def test_attributes_that_would_change_the_result_are_refused():
    with tf.Graph().as_default() as graph:
        tf.scatter_nd([[0]], [1.0], [3], name="made")
    graph_def = graph.as_graph_def()
    policy = next(node for node in graph_def.node if node.name == "made").attr["bad_indices_policy"]
    policy.s = b"ERROR"
    tf.import_graph_def(graph_def)
    policy.s = b"IGNORE"
    with pytest.raises(NotImplementedError, match="ScatterNd with the newer attribute bad_indices_policy"):
        tf.import_graph_def(graph_def)


def test_glimpses_from_corners():
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)

    def made(centered, normalized):
        glimpse = gen_ops.extract_glimpse_v2(image, [2, 2], [[0.5, 1.0]], centered=centered, normalized=normalized, uniform_noise=False, noise="zero")
        return values(glimpse).reshape(2, 2).tolist()

    assert made(False, False) == [[1, 2], [5, 6]] and made(False, True) == [[0, 0], [0, 0]]
    assert made(True, False) == [[11, 0], [15, 0]] and made(True, True) == [[11, 0], [15, 0]]


def test_isotonic_regression():
    made, runs = values(gen_ops.isotonic_regression([[3.0, 1, 2, 2, 5], [1, 2, 3, 4, 5]]))
    assert made.tolist() == [[3, 2.5, 2.5, 2.5, 2.5], [3] * 5] and runs.tolist() == [[0, 1, 1, 1, 1], [0] * 5]
    made, _ = values(gen_ops.isotonic_regression([[3, 1, 2]], output_dtype=tf.float64))
    assert made.dtype == np.float64 and made.tolist() == [[3, 1.5, 1.5]]


def test_approximate_top_k_is_exact():
    made, places = values(gen_ops.approx_top_k(X, 2))
    assert np.array_equal(made, np.array([[0.7, 0.3], [5, 2]], np.float32)) and places.tolist() == [[1, 2], [1, 0]]
    for attrs in ({"is_max_k": False}, {"reduction_dimension": 0}):
        with pytest.raises(NotImplementedError, match="the largest elements of the last axis"):
            gen_ops.approx_top_k(X, 2, **attrs)


def test_a_stream_is_read_and_skipped():
    state = tf.Variable(np.array([1, 2, 3]), use_resource=True)
    before = gen_ops.rng_read_and_skip(state.handle, 1, tf.constant(5, tf.uint64))
    with tf.Session() as session:
        session.run(state.initializer)
        assert session.run(before).tolist() == [1, 2, 3] and session.run(state).tolist() == [1281, 2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="algorithm"):
            session.run(gen_ops.rng_read_and_skip(state.handle, 2, tf.constant(5, tf.uint64)))


@pytest.mark.parametrize(
    "numbers, said",
    [
        ([np.nan, 1], "NaN"),
        ([np.inf], "[+]Inf"),
        ([-np.inf, np.inf], "-Inf and [+]Inf"),
        ([np.nan, -np.inf], "-Inf and NaN"),
        ([np.nan, np.inf, -np.inf], "-Inf, [+]Inf, and NaN"),
    ],
)
def test_signs_of_infinities_are_told(numbers, said):
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="here : Tensor had %s values" % said):
        session.run(gen_ops.check_numerics_v2(numbers, "here"))


def test_types_of_devices_have_numbers():
    assert values([gen_ops.device_index(["GPU", "CPU", "TPU"]), gen_ops.device_index(["GPU"])]) == [1, 1]
