# SPDX-License-Identifier: Apache-2.0
"""Functions that TensorFlow 1.15 has within its modules with the arguments of TensorFlow 2, and ops of mixed types."""

import inspect

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.ops import arguments_of_2

nn_ops, array_ops, check_ops = (names.find("python.ops." + name) for name in ("nn_ops", "array_ops", "check_ops"))
x = np.random.RandomState(0).rand(2, 3, 4).astype(np.float32)


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def test_each_row_is_a_function():
    for name in arguments_of_2._ROWS:
        function = getattr(arguments_of_2, name)
        assert function.__name__ == name
        assert "name" in inspect.signature(function).parameters or name in ("sparse_add_v2", "assert_equal_graph_def_v2"), name


def test_places_of_arguments():
    np.testing.assert_allclose(*run([nn_ops.softmax_v2(x, 1), tf.nn.softmax(x, axis=1)]))
    np.testing.assert_allclose(run(nn_ops.l2_normalize_v2(x, 1))[0, :, 0], x[0, :, 0] / np.linalg.norm(x[0, :, 0]), rtol=1e-6)
    mean, variance = run(nn_ops.moments_v2(x, [0], None, True))
    assert mean.shape == variance.shape == (1, 3, 4)
    dropped = run(nn_ops.dropout_v2(np.ones([100, 100], np.float32), 0.75, seed=1))
    assert set(np.unique(dropped)) == {0, 4} and 0.2 < (dropped > 0).mean() < 0.3
    for rate in (-1.0, 1.1, [0.0, 1.0]):
        with pytest.raises(ValueError):
            nn_ops.dropout_v2(x, rate)
    assert array_ops.expand_dims_v2(x, -1).shape == [2, 3, 4, 1] and array_ops.squeeze_v2(x[:1], [0]).shape == [3, 4]
    assert run(array_ops.gather_v2(x, [1], axis=2)).shape == (2, 3, 1)
    assert run(array_ops.pad_v2([1], [[1, 1]], "CONSTANT", 7)).tolist() == [7, 1, 7]
    with pytest.raises(tf.errors.InvalidArgumentError, match="far apart"):
        check_ops.assert_equal_v2([1], [2], "far apart")
    with pytest.raises(TypeError, match="missing a required argument: 'rate'"):
        nn_ops.dropout_v2(x)
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert run(array_ops.expand_dims_v2(ragged, -1)).to_list() == [[[1], [2]], [[3]]]


def test_ops_by_their_names():
    assert run(tf.raw_ops.Sum(input=[[1, 2]], axis=1)).tolist() == run(tf.raw_ops.Sum(input=[[1, 2]], reduction_indices=1)).tolist() == [3]
    assert run(tf.raw_ops.Select(condition=[True, False], x=[1, 2], y=[3, 4])).tolist() == [1, 4]
    assert run(tf.raw_ops.Where(condition=[False, True])).tolist() == [[1]] and tf.raw_ops.Squeeze(input=[[1]], axis=[0]).shape == [1]
    assert run(tf.raw_ops.Any(input=[True, False], axis=0)) and run(names.find("python.ops.gen_math_ops").Add(x=1, y=2)) == 3
    with pytest.raises(TypeError, match=r"only takes keyword args \(possible keys: \['x', 'y', 'name'\]\)"):
        tf.raw_ops.Add(1, 2)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_normalization_of_narrow_images(kind):
    images, scale, offset = np.random.RandomState(0).rand(4, 2, 3, 5).astype(kind), np.full(5, 2, np.float32), np.full(5, 1, np.float32)
    wide = images.astype(np.float64)
    expected = (wide - wide.mean((0, 1, 2))) / np.sqrt(wide.var((0, 1, 2)) + 1e-3) * 2 + 1
    made, mean, _ = tf.nn.fused_batch_norm(tf.constant(images), scale, offset, epsilon=1e-3)
    by_hand = tf.nn.batch_normalization(tf.constant(images), *tf.nn.moments(tf.constant(wide, tf.float32), [0, 1, 2]), offset, scale, 1e-3)
    assert made.dtype == by_hand.dtype == kind and mean.dtype == tf.float32
    for found in run([made, by_hand]):
        np.testing.assert_allclose(found, expected, atol=1e-2 if kind is np.float16 else 1e-5)
    with pytest.raises(ValueError, match="must be None if is_training"):
        tf.nn.fused_batch_norm(images, scale, offset, mean=scale, variance=scale)


def test_windows_of_volumes_of_one_number():
    volume = np.random.RandomState(0).rand(1, 4, 4, 4, 2).astype(np.float32)
    for pool in (tf.nn.max_pool3d, tf.nn.avg_pool3d):
        np.testing.assert_array_equal(*run([pool(volume, 2, 2, "SAME"), pool(volume, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME")]))
    with pytest.raises(ValueError, match="output_shape must be of length 3, 4 or 5 but was 2"):
        tf.nn.conv_transpose(None, 2, [2, 3], "SAME")


def test_sparse_dimensions_that_a_step_tells():
    sparse = tf.sparse.from_dense([[0, 1], [2, 0]])
    for axis in (-3, -1, 0, 1, 2):
        for given in (axis, tf.constant(axis), tf.placeholder_with_default(axis, [])):
            assert run(tf.sparse.expand_dims(sparse, given)).dense_shape.tolist() == list(np.zeros([2, 2])[(slice(None),) * (axis % 3) + (None,)].shape)
