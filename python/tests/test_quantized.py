# SPDX-License-Identifier: Apache-2.0
"""Quantized numbers: what they stand for is what the ops on floats say, up to the steps of their ranges."""

import numpy as np
import pytest

import millrace as tf

RANDOM = np.random.RandomState(3)


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def quantized(x, low=-2.0, high=3.0, dtype=tf.quint8):
    return tf.quantize_v2(np.float32(x), low, high, dtype, mode="MIN_FIRST")


def floats(q, low, high):
    return tf.dequantize(q, low, high, mode="MIN_FIRST")


STEP = 5.0 / 255


@pytest.mark.parametrize("dtype, steps", [(tf.quint8, 256), (tf.qint8, 256), (tf.quint16, 65536), (tf.qint16, 65536), (tf.qint32, 2.0**23)])
@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
def test_there_and_back(session, dtype, steps, mode):
    x = RANDOM.uniform(-2, 3, (4, 5)).astype(np.float32)
    q, low, high = tf.quantize(x, -2.0, 3.0, dtype, mode=mode)
    back, low, high = session.run([tf.dequantize(q, low, high, mode=mode), low, high])
    inside = np.clip(x, low, high)
    np.testing.assert_allclose(back, inside, atol=1.01 * (high - low) / steps + 1e-6)
    if mode != "SCALED":
        assert (low, high) == (-2, 3)


def test_known_integers(session):
    """As TensorFlow has them."""
    q = tf.quantize([1.0, 1.25, 1.75, 127.0, 255.0, 500.0], 0.0, 255.0, tf.quint8)[0]
    assert session.run(tf.bitcast(q, tf.uint8)).tolist() == [1, 1, 2, 127, 255, 255]
    q = tf.quantize([-128.0, -127.5, 0.5, 127.0], -128.0, 127.0, tf.qint8, mode="SCALED", round_mode="HALF_TO_EVEN")[0]
    assert session.run(tf.bitcast(q, tf.int8)).tolist() == [-128, -128, 0, 127]
    with pytest.raises(tf.errors.InvalidArgumentError, match="input_max_range must be larger"):
        session.run(tf.quantize([1.0], 1.0, -1.0, tf.quint8)[0])


@pytest.mark.parametrize("op, by", [("QuantizedAdd", np.add), ("QuantizedMul", np.multiply)])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((), (5,)), ((2, 1, 3), (4, 1)), ((0, 4), (4,))])
def test_arithmetic(session, op, by, shapes):
    x, y = (RANDOM.uniform(-2, 3, s).astype(np.float32) for s in shapes)
    a, b = quantized(x), quantized(y, -3.0, 3.0)
    z = getattr(tf.raw_ops, op)(x=a[0], y=b[0], min_x=a[1], max_x=a[2], min_y=b[1], max_y=b[2])
    np.testing.assert_allclose(session.run(floats(*z)), by(x, y), atol=0.12)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_matrix_products(session, ta, tb):
    x, y = RANDOM.uniform(-2, 3, (5, 7) if ta else (7, 5)).astype(np.float32), RANDOM.uniform(-2, 3, (3, 5) if tb else (5, 3)).astype(np.float32)
    a, b = quantized(x), quantized(y)
    z = tf.raw_ops.QuantizedMatMul(a=a[0], b=b[0], min_a=a[1], max_a=a[2], min_b=b[1], max_b=b[2], transpose_a=ta, transpose_b=tb)
    np.testing.assert_allclose(session.run(floats(*z)), (x.T if ta else x) @ (y.T if tb else y), atol=5 * 3 * STEP)
    # Down to eight bits in two ways.
    low, high = session.run(tf.raw_ops.RequantizationRange(input=z[0], input_min=z[1], input_max=z[2]))
    narrow = tf.raw_ops.Requantize(input=z[0], input_min=z[1], input_max=z[2], requested_output_min=low, requested_output_max=high, out_type=tf.quint8)
    shrunk = tf.raw_ops.QuantizeDownAndShrinkRange(input=z[0], input_min=z[1], input_max=z[2], out_type=tf.quint8)
    one, other = session.run([tf.bitcast(narrow[0], tf.uint8), tf.bitcast(shrunk[0], tf.uint8)])
    assert one.tolist() == other.tolist()
    np.testing.assert_allclose(session.run(floats(*narrow)), session.run(floats(*z)), atol=1.5 * (high - low) / 255)


def test_bias_and_activations(session):
    x, bias = RANDOM.uniform(-2, 3, (4, 3)).astype(np.float32), np.float32([1, -1, 0.5])
    for dtype in (tf.quint8, tf.qint8):
        a, b = quantized(x, dtype=dtype), quantized(bias, dtype=dtype)
        z = tf.raw_ops.QuantizedBiasAdd(input=a[0], bias=b[0], min_input=a[1], max_input=a[2], min_bias=b[1], max_bias=b[2], out_type=tf.qint32)
        np.testing.assert_allclose(session.run(floats(*z)), x + bias, atol=3 * STEP)
    a = quantized(x * 3, -6.0, 9.0)
    relu = tf.raw_ops.QuantizedRelu(features=a[0], min_features=a[1], max_features=a[2])
    relu6 = tf.raw_ops.QuantizedRelu6(features=a[0], min_features=a[1], max_features=a[2])
    relux = tf.raw_ops.QuantizedReluX(features=a[0], max_value=2.5, min_features=a[1], max_features=a[2])
    for z, want in ((relu, np.maximum(x * 3, 0)), (relu6, np.clip(x * 3, 0, 6)), (relux, np.clip(x * 3, 0, 2.5))):
        np.testing.assert_allclose(session.run(floats(*z)), want, atol=3 * STEP)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_images(session, padding):
    x, f = RANDOM.uniform(-2, 3, (2, 6, 5, 3)).astype(np.float32), RANDOM.uniform(-2, 3, (3, 2, 3, 4)).astype(np.float32)
    for dtype in (tf.quint8, tf.qint8):
        a, b = quantized(x), quantized(f, dtype=dtype)
        z = tf.raw_ops.QuantizedConv2D(
            input=a[0], filter=b[0], min_input=a[1], max_input=a[2], min_filter=b[1], max_filter=b[2], strides=[1, 2, 2, 1], padding=padding
        )
        got, want = session.run([floats(*z), tf.nn.conv2d(x, f, [1, 2, 2, 1], padding)])
        np.testing.assert_allclose(got, want, atol=18 * 3 * STEP)
    for dtype in (tf.quint8, tf.qint8):
        a = quantized(x, dtype=dtype)
        whole = floats(*a)
        for op, same in ((tf.raw_ops.QuantizedAvgPool, tf.nn.avg_pool), (tf.raw_ops.QuantizedMaxPool, tf.nn.max_pool)):
            z = op(input=a[0], min_input=a[1], max_input=a[2], ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding=padding)
            got, want = session.run([floats(*z), same(whole, [1, 3, 2, 1], [1, 2, 1, 1], padding)])
            np.testing.assert_allclose(got, want, atol=1.01 * STEP)
    a = quantized(x)
    z = tf.raw_ops.QuantizedResizeBilinear(images=a[0], size=[9, 4], min=a[1], max=a[2])
    np.testing.assert_allclose(session.run(floats(*z)), session.run(tf.image.resize_bilinear(floats(*a), [9, 4])), atol=3 * STEP)


def test_normalised(session):
    x = RANDOM.uniform(-2, 3, (2, 4, 4, 3)).astype(np.float32)
    a = quantized(x)
    y = session.run(floats(*tf.raw_ops.QuantizedInstanceNorm(x=a[0], x_min=a[1], x_max=a[2])))
    np.testing.assert_allclose(y, (x - x.mean((1, 2), keepdims=True)) / x.std((1, 2), keepdims=True), atol=0.05)
    parts = [quantized(v) for v in ([0.5, 1, -1], [1, 2, 0.5], [0, 1, -1], [1, 2, 0.5])]
    names = dict(zip("m v beta gamma".split(), parts))
    args = {k + s: p[i] for k, p in names.items() for i, s in enumerate(("", "_min", "_max"))}
    z = tf.raw_ops.QuantizedBatchNormWithGlobalNormalization(
        t=a[0], t_min=a[1], t_max=a[2], variance_epsilon=0.01, scale_after_normalization=True, out_type=tf.qint32, **args
    )
    m, v, beta, gamma = (np.float32(p) for p in ([0.5, 1, -1], [1, 2, 0.5], [0, 1, -1], [1, 2, 0.5]))
    np.testing.assert_allclose(session.run(floats(*z)), (x - m) / np.sqrt(v + 0.01) * gamma + beta, atol=0.15)


def test_together_and_in_other_shapes(session):
    x, y = RANDOM.uniform(-2, 3, (2, 3)).astype(np.float32), RANDOM.uniform(0, 1, (2, 2)).astype(np.float32)
    a, b = quantized(x), quantized(y, 0.0, 1.0)
    z = tf.quantized_concat(1, [a[0], b[0]], [a[1], b[1]], [a[2], b[2]])
    np.testing.assert_allclose(session.run(floats(*z)), np.concatenate([x, y], 1), atol=STEP)
    z = tf.raw_ops.QuantizedReshape(tensor=a[0], shape=[-1], input_min=a[1], input_max=a[2])
    np.testing.assert_allclose(session.run(floats(*z)), x.ravel(), atol=STEP)
    wide = quantized(x, dtype=tf.qint32)
    low, high = session.run(tf.raw_ops.RequantizationRangePerChannel(input=wide[0], input_min=[-3.0] * 3, input_max=[3.0] * 3, clip_value_max=100.0))
    assert low == -high and 0 < high < 3.1
    narrow = tf.raw_ops.RequantizePerChannel(
        input=wide[0], input_min=[-3.0] * 3, input_max=[3.0] * 3, requested_output_min=-3.0, requested_output_max=3.0, out_type=tf.qint8
    )
    values = session.run([tf.bitcast(narrow[0], tf.int8), tf.bitcast(wide[0], tf.int32)])
    np.testing.assert_allclose(values[0], values[1] / 2.0**31 * 127, atol=0.51)


def test_what_does_not_fit(session):
    raw, size = tf.raw_ops, tf.placeholder(tf.int32)
    a = quantized(np.zeros((1, 2, 2, 1)))

    def refused(make, text):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError), match=text):
            session.run(make()[0], {size: [2**31 - 1, 2**31 - 1]})

    refused(lambda: raw.QuantizedResizeBilinear(images=a[0], size=size, min=a[1], max=a[2]), "")
    refused(lambda: raw.QuantizedReshape(tensor=a[0], shape=size, input_min=a[1], input_max=a[2]), "values")
    refused(lambda: raw.QuantizedRelu(features=a[0], min_features=[0.0, 1.0], max_features=a[2]), "")
    refused(lambda: [tf.fake_quant_with_min_max_args([1.0], min=1.0, max=0.0)], "min has to be smaller")
    refused(lambda: [tf.fake_quant_with_min_max_vars([1.0], 0.0, 1.0, num_bits=17)], "num_bits")
    refused(lambda: [tf.quantization.quantize_and_dequantize([1.0], 0.0, 1.0, num_bits=64)], "num_bits is out of range")
    refused(lambda: raw.QuantizedMatMul(a=a[0], b=a[0], min_a=a[1], max_a=a[2], min_b=a[1], max_b=a[2]), "")
