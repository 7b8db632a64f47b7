# SPDX-License-Identifier: Apache-2.0
"""The accelerator's kernels against the CPU's: the same bits where both do the same arithmetic in the same order, and close
where sums or functions are computed otherwise. Each case runs with streams that dawdle in several ways."""

import numpy as np
import pytest

import millrace as tf
from accelerator import ACC, delays, run_on, seeds

R = np.random.RandomState(0)
F = R.randn(4, 5).astype(np.float32)
G = R.randn(4, 5).astype(np.float32)
P = np.abs(F) + np.float32(0.1)
ROW = R.randn(5).astype(np.float32)
I = R.randint(-9, 9, [4, 5]).astype(np.int32)
J = R.randint(1, 9, [4, 1]).astype(np.int32)
B = F > 0
IMAGE = R.randn(2, 7, 6, 3).astype(np.float32)
FILTER = R.randn(3, 2, 3, 4).astype(np.float32)

EXACT = {
    "add": lambda: tf.constant(F) + ROW,
    "sub": lambda: tf.constant(ROW) - F,
    "mul": lambda: tf.constant(F) * G,
    "div": lambda: tf.constant(F) / P,
    "maximum": lambda: tf.maximum(F, ROW),
    "minimum": lambda: tf.minimum(F, 0.5),
    "squared_difference": lambda: tf.squared_difference(F, G),
    "add_ints": lambda: tf.constant(I) + J,
    "mul_ints": lambda: tf.constant(I.astype(np.int64)) * J.astype(np.int64),
    "sub_doubles": lambda: tf.constant(F.astype(np.float64)) - 3.0,
    "less": lambda: tf.less(F, G),
    "less_equal": lambda: tf.less_equal(I, J),
    "greater": lambda: tf.greater(F, ROW),
    "greater_equal": lambda: tf.greater_equal(I, I),
    "equal": lambda: tf.equal(I, J),
    "not_equal": lambda: tf.not_equal(F, F),
    "and": lambda: tf.logical_and(B, F > 0.5),
    "or": lambda: tf.logical_or(B, G > 0),
    "not": lambda: tf.logical_not(B),
    "neg": lambda: -tf.constant(F),
    "abs": lambda: tf.abs(F),
    "square": lambda: tf.square(F),
    "sign": lambda: tf.sign(F),
    "floor": lambda: tf.floor(F),
    "relu": lambda: tf.nn.relu(F),
    "sqrt": lambda: tf.sqrt(P),
    "reciprocal": lambda: tf.reciprocal(P),
    "zeros_like": lambda: tf.zeros_like(tf.constant(F) + 1.0),
    "ones_like": lambda: tf.ones_like(tf.constant(I) + 1),
    "add_n": lambda: tf.add_n([tf.constant(F), tf.constant(G), tf.constant(F)]),
    "cast": lambda: tf.cast(I, tf.float32),
    "cast_bool": lambda: tf.cast(tf.constant(B), tf.float32),
    "cast_double": lambda: tf.cast(tf.constant(F), tf.float64),
    "where": lambda: tf.where(tf.constant(B), F, G),
    "where_rows": lambda: tf.where([True, False, True, False], F, G),
    "fill": lambda: tf.fill([2, 3], 7.0),
    "transpose": lambda: tf.transpose(F),
    "transpose_4": lambda: tf.transpose(IMAGE, [3, 0, 2, 1]),
    "slice": lambda: tf.slice(F, [1, 0], [2, -1]),
    "strided": lambda: tf.constant(IMAGE)[:, ::-2, 1, 0:5:2],
    "concat": lambda: tf.concat([tf.constant(F), tf.constant(G)], 1),
    "split": lambda: tf.split(tf.constant(F), 2, 0),
    "stack": lambda: tf.stack([tf.constant(F), tf.constant(G)], 1),
    "unstack": lambda: tf.unstack(tf.constant(F), axis=1),
    "tile": lambda: tf.tile(tf.constant(F), [2, 3]),
    "pad": lambda: tf.pad(tf.constant(F), [[1, 0], [2, 3]]),
    "gather": lambda: tf.gather(F, [3, 0, 0]),
    "gather_columns": lambda: tf.gather(tf.constant(I), [4, 1], axis=1),
    "one_hot": lambda: tf.one_hot([0, 3, 9, -1], 4),
    "reshape": lambda: tf.reshape(tf.constant(F) + 1.0, [5, -1]),
    "expand_squeeze": lambda: tf.squeeze(tf.expand_dims(tf.constant(F), 1)),
    "max": lambda: tf.reduce_max(F, 0),
    "min": lambda: tf.reduce_min(F, [0, 1]),
    "sum_ints": lambda: tf.reduce_sum(I, 1),
    "prod_ints": lambda: tf.reduce_prod(J, 0),
    "all": lambda: tf.reduce_all(B, 1),
    "any": lambda: tf.reduce_any(B),
    "argmax": lambda: tf.argmax(F, 1),
    "argmin": lambda: tf.argmin(F, 0),
    "bias_add": lambda: tf.nn.bias_add(F, ROW),
    "max_pool": lambda: tf.nn.max_pool(IMAGE, [1, 3, 2, 1], [1, 2, 2, 1], "SAME"),
    "switch": lambda: tf.cond(tf.reduce_any(B), lambda: tf.constant(F) + 1.0, lambda: tf.constant(G) - 1.0),
    "empty": lambda: tf.zeros([0, 3]) + 1.0,
}


def gradient(f, *xs):
    constants = [tf.identity(tf.constant(x)) for x in xs]
    return tf.gradients(f(*constants), constants)


CLOSE = {
    "matmul": lambda: tf.matmul(F, G, transpose_b=True),
    "matmul_turned": lambda: tf.matmul(F, G, transpose_a=True),
    "matmul_doubles": lambda: tf.matmul(F.astype(np.float64), G.T.astype(np.float64)),
    "exp": lambda: tf.exp(F),
    "log": lambda: tf.log(P),
    "log1p": lambda: tf.log1p(P),
    "tanh": lambda: tf.tanh(F),
    "sigmoid": lambda: tf.sigmoid(F),
    "rsqrt": lambda: tf.rsqrt(P),
    "sum": lambda: tf.reduce_sum(F, 0),
    "mean": lambda: tf.reduce_mean(F, 1, keep_dims=True),
    "prod": lambda: tf.reduce_prod(F),
    "softmax": lambda: tf.nn.softmax(F),
    "log_softmax": lambda: tf.nn.log_softmax(F),
    "l2_loss": lambda: tf.nn.l2_loss(tf.constant(F)),
    "conv": lambda: tf.nn.conv2d(IMAGE, FILTER, [1, 2, 1, 1], "SAME"),
    "conv_valid": lambda: tf.nn.conv2d(IMAGE, FILTER, [1, 1, 2, 1], "VALID"),
    "conv_gradients": lambda: gradient(lambda x, w: tf.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), IMAGE, FILTER),
    "cross_entropy": lambda: tf.nn.softmax_cross_entropy_with_logits(labels=np.eye(5, dtype=np.float32)[:4], logits=F),
    "sparse_cross_entropy": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0, 4, 2], logits=F),
    "activation_gradients": lambda: gradient(lambda x: tf.tanh(tf.sigmoid(tf.nn.relu(x))) + tf.sqrt(tf.square(x) + 1.0), F),
    "bias_gradient": lambda: gradient(lambda x, b: tf.nn.bias_add(x, b), F, ROW),
    "broadcast_gradient": lambda: gradient(lambda x, b: x * b + b, F, ROW),
    "pool_gradient": lambda: gradient(lambda x: tf.square(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")), IMAGE),
    "loss_gradient": lambda: gradient(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0, 4, 2], logits=x), F),
}


def both(build):
    wants = run_on("/cpu:0", build)
    for seed in seeds(3):
        delays(seed, 50)
        gots = run_on(ACC, build)
        for got, want in zip(gots if isinstance(gots, list) else [gots], wants if isinstance(wants, list) else [wants]):
            assert got.dtype == want.dtype and got.shape == want.shape
            yield got, want


@pytest.mark.parametrize("name", sorted(EXACT))
def test_the_same_bits(name):
    for got, want in both(EXACT[name]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", sorted(CLOSE))
def test_close(name):
    for got, want in both(CLOSE[name]):
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: tf.nn.bias_add(np.ones([2, 3], np.float32), tf.placeholder_with_default(np.ones([2], np.float32), None)), "one value a channel"),
        (lambda: tf.matmul(tf.placeholder_with_default(F, [None, None]), F), r"In\[0\]: \[4,5\], In\[1\]: \[4,5\]"),
        (lambda: tf.placeholder_with_default(F, None) + tf.constant(P[:, :3]), r"Incompatible shapes: \[4,5\] vs. \[4,3\]"),
        (lambda: tf.slice(tf.placeholder_with_default(F, None), [1, 0], [9, 1]), "not within"),
    ],
)
def test_what_does_not_fit(build, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run_on(ACC, build)
