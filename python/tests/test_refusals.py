# SPDX-License-Identifier: Apache-2.0
"""What is refused, when, and in which words: those that programs of TensorFlow 1.x look for in an error."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops, sparse_ops


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def fed(value):
    """A placeholder without a shape, so that only the step can look at it."""
    FEEDS.append((tf.placeholder(np.asarray(value).dtype), value))
    return FEEDS[-1][0]


def _labels(*indices):
    """A sparse tensor of two rows with two elements, at these indices."""
    return tf.SparseTensor(np.reshape(np.array(indices, np.int64), [2, 2]), [1, 2], [2, 2])


FEEDS = []
STEPS = [
    ("StringToNumberOp could not correctly convert string: 10foobar", lambda: tf.string_to_number(fed(b"10foobar"))),
    ("axis tensor should be a scalar integer", lambda: tf.concat([fed([2]), fed([3])], fed([0]))),
    ("Ranks of all input tensors should match", lambda: tf.concat([fed([2]), fed(3)], fed(0))),
    ("sizes input must be 1-D", lambda: tf.reshape(fed(7), fed(1))),
    ("must be a scalar", lambda: gen_ops.sharded_filename("foo", fed(np.int32(4)), fed(np.int32([100])))),
    ("num_segments should be a scalar", lambda: tf.unsorted_segment_sum(fed(7), fed(1), fed([4]))),
    ("Expected begin and size arguments to be 1-D tensors", lambda: tf.slice(fed(np.arange(10)), fed(2), fed([3]))),
    ("output_shape should be a vector", lambda: tf.sparse_to_dense(fed(1), fed(4), fed(7))),
    (r"sparse_values has incorrect shape \[3\], should be \[\] or \[2\]", lambda: tf.sparse_to_dense([1, 3], [5], [1, 2, 3], 0)),
    ("default_value should be a scalar", lambda: tf.sparse_to_dense([1, 3], [5], [1, 2], [0])),
    (r"indices\[1\] = \[10\] is out of bounds: need 0 <= index < \[5\]", lambda: tf.sparse_to_dense([[1], [10]], [5], [1, 2], 0)),
    (r"indices\[1\] = \[1\] is repeated", lambda: tf.sparse_to_dense([[1], [1]], [5], [1, 2], 0)),
    (r"indices\[1\] = \[1,0\] is out of order", lambda: tf.sparse_to_dense([[2, 0], [1, 0]], [5, 5], [1, 2], 0)),
    (r"label SparseTensor is not valid: indices\[1\] = \[0,0\] is out of order", lambda: tf.nn.ctc_loss(_labels(0, 1, 0, 0), tf.zeros([4, 2, 5]), [4, 4])),
    (r"label SparseTensor is not valid: indices\[1\] = \[0,1\] is repeated", lambda: tf.nn.ctc_loss(_labels(0, 1, 0, 1), tf.zeros([4, 2, 5]), [4, 4])),
    (r"indices\[1\] = \[0,0\] is out of order", lambda: tf.serialize_many_sparse(_labels(0, 1, 0, 0))),
    (r"indices\[1\] = \[0,1\] is repeated", lambda: gen_ops.add_many_sparse_to_tensors_map([[0, 1], [0, 1]], [1, 2], [2, 2])),
    ("Expected multiples to be 1-D", lambda: tf.tile(fed([7]), fed(2))),
    (r"Expected scan axis in the range \[-2, 2\)", lambda: tf.cumsum(np.zeros([2, 5], np.float32), -3)),
    ("axis must be a scalar", lambda: tf.cumprod(np.zeros([2, 5], np.float32), [0])),
    ("2 is missing from", lambda: tf.transpose(np.zeros([2, 3, 5]), [0, 1, 1])),
    ("Operands do not have the same ranks", lambda: tf.sparse_maximum(tf.SparseTensor([[0, 0]], [0], [1, 1]), tf.SparseTensor([[0]], [1], [2]))),
    (r"k \(10\) from index\[0,1\] out of bounds \(>=2\)", lambda: tf.sparse_tensor_dense_matmul(tf.SparseTensor([[1, 10]], [1.0], [3, 2]), tf.ones([2, 5]))),
    (
        r"m \(10\) from index\[0,1\] out of bounds \(>=2\)",
        lambda: tf.sparse_tensor_dense_matmul(tf.SparseTensor([[1, 10]], [1.0], [3, 2]), tf.ones([3, 5]), adjoint_a=True),
    ),
    ("invalid index", lambda: tf.sparse_add(tf.SparseTensor(fed(np.int64([[-1, 10]])), [1], [2, 2]), np.zeros([2, 2], np.int32))),
    (
        "Indices and updates specified for empty output",
        lambda: tf.scatter_nd(fed(np.zeros([2, 2, 2], np.int32)), fed(np.zeros([2, 2, 2], np.int32)), [0, 3, 2]),
    ),
    ("batch_dim == seq_dim", lambda: tf.reverse_sequence(fed(np.zeros([3, 2])), fed(np.arange(3)), seq_axis=0)),
    ("requested shape requires a multiple of 4", lambda: tf.sparse_reshape(tf.SparseTensor([[0, 1]], [1], fed(np.int64([5, 6]))), [4, -1])),
    ("Requires delta != 0: 0", lambda: tf.range(fed(np.int32(1)), 5, fed(np.int32(0)))),
    ("Requires start <= limit when delta > 0: 5/1", lambda: tf.range(fed(np.int32(5)), 1, 1)),
    ("Requires start >= limit when delta < 0: 1/5", lambda: tf.range(fed(np.float32(1)), 5.0, -1.0)),
    ("Requires num > 0: 0", lambda: tf.linspace(1.0, 2.0, fed(np.int32(0)))),
    ("split_dim must have exactly one element", lambda: tf.split(np.zeros([4, 2]), 2, fed(np.zeros([0], np.int32)))),
    ("There can only be one -1 in the input", lambda: tf.split(np.zeros([4, 2]), fed(np.int32([-1, -1])), num=2)),
    (
        "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the size of the input along split_dim "
        "if not fully specified.  Got: 5",
        lambda: tf.split(np.zeros([4, 2]), fed(np.int32([-1, 5])), num=2),
    ),
    (
        "size of the split_tensor must be 1-D and have the same elements as outputs got 1 -D and 3",
        lambda: tf.split(np.ones([4]), fed(np.int32([1, 3, 0])), num=2),
    ),
    ("segment_ids should be a vector", lambda: tf.segment_sum(np.ones([3, 2]), fed(np.int32([[1], [2], [2]])))),
    ("segment_ids should be the same size as dimension 0 of input.", lambda: tf.segment_max(np.ones([3, 2]), fed(np.int32([0, 0])))),
    (
        r"data.shape = \[3,2\] does not start with segment_ids.shape = \[2,2\]",
        lambda: tf.unsorted_segment_sum(fed(np.ones([3, 2])), fed(np.int32([[0, 1], [0, 2]])), 3),
    ),
    ("Input num_segments == -3 must not be negative.", lambda: tf.unsorted_segment_sum(np.ones([3]), [0, 1, 0], fed(np.int32(-3)))),
    (r"segment_ids\[1\] = 7 is out of range \[0, 3\)", lambda: tf.unsorted_segment_sum(np.ones([3]), fed(np.int32([0, 7, 0])), 3)),
    (r"Bad: indices\[2\] == 3 out of range \[0, 3\)", lambda: tf.sparse_segment_sum(np.ones([3, 2]), fed(np.int32([0, 1, 3])), [0, 0, 1])),
    ("segment_ids and indices should have same size.", lambda: tf.sparse_segment_mean(np.ones([3, 2]), [0, 1, 2], fed(np.int32([0, 0])))),
    ("segment ids must be < num_segments", lambda: tf.sparse_segment_sum(np.ones([3, 2]), [0, 1, 2], fed(np.int32([0, 0, 3])), num_segments=3)),
    (r"Input must have at least n\+1 columns", lambda: tf.contrib.nn.nth_element(np.ones([3, 2]), fed(np.int32(2)))),
    (r"N must be scalar, got shape \[1\]", lambda: tf.contrib.nn.nth_element(np.ones([3, 2]), fed(np.int32([1])))),
    ("Input must be >= 1-D", lambda: tf.contrib.nn.nth_element(fed(np.ones([])), 0)),
]


@pytest.mark.parametrize("words, make", STEPS, ids=[words for words, _ in STEPS])
def test_a_step_says(words, make):
    FEEDS.clear()
    made = make()
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(made, dict(FEEDS))


BUILDS = [
    (r"The outer 2 dimensions of indices\.shape=", lambda: tf.scatter_nd(tf.zeros([3, 2, 2], tf.int32), tf.zeros([2, 2, 2]), [2, 2, 2])),
    (r"The inner \d dimensions of input\.shape=", lambda: tf.scatter_nd(tf.zeros([2, 2, 1], tf.int32), tf.zeros([2, 2]), [2, 2, 2])),
    ("Indices and updates specified for empty output shape", lambda: tf.scatter_nd(tf.zeros([2, 2, 2], tf.int32), tf.zeros([2, 2, 2]), [0, 3, 2])),
    ("input must have last dimension >= k = 4", lambda: tf.nn.top_k(tf.zeros([2, 2]), 4)),
    ("should evenly divide", lambda: tf.split(tf.zeros([4]), 3)),
    ("Can't split scalars", lambda: gen_ops.split_v(tf.zeros([]), tf.constant([1, 3]), 0, 2)),
    ("Cannot specify a negative value for num_segments", lambda: tf.sparse_segment_mean(np.ones([3, 2]), [0, 1], [0, 1], num_segments=-2)),
    ("must be rank 2", lambda: gen_ops.softmax_cross_entropy_with_logits(tf.zeros([2, 1, 4]), tf.zeros([2, 1, 4]))),
    ("Shape must be rank 4 but is rank 3", lambda: tf.pad(tf.zeros([2, 3, 4]), [[0, 0]] * 4)),
    ("Shape must be rank 4 but is rank 3", lambda: tf.pad(tf.zeros([2, 3, 4]), [[0, 0]] * 4, "REFLECT")),
    ("offset_height must be >= 0", lambda: tf.image.crop_to_bounding_box(tf.zeros([4, 4, 1]), -1, 0, 3, 3)),
    ("width must be >= target . offset", lambda: tf.image.crop_to_bounding_box(tf.zeros([4, 4, 1]), 0, 2, 3, 3)),
    ("height must be <= target - offset", lambda: tf.image.pad_to_bounding_box(tf.zeros([4, 4, 1]), 0, 0, 3, 5)),
    ("all dims of 'image.shape' must be > 0", lambda: tf.image.resize_image_with_crop_or_pad(tf.zeros([0, 4, 1]), 3, 5)),
    ("must have either 3 or 4 dimensions", lambda: tf.image.pad_to_bounding_box(tf.zeros([3, 5]), 0, 0, 3, 5)),
    ("2 elements", lambda: tf.image.resize_images(tf.zeros([3, 5, 1]), tf.constant([1, 2, 3]))),
    ("must be integers", lambda: tf.image.resize_images(tf.zeros([3, 5, 1]), tf.constant([6.0, 4.0]))),
]


@pytest.mark.parametrize("words, make", BUILDS, ids=[words for words, _ in BUILDS])
def test_building_says(words, make):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "words, offsets", [("offset_width must be >= 0", [0, -1, 3, 3]), ("target_height must be > 0", [0, 0, 0, 3]), ("height must be >= target", [2, 0, 3, 3])]
)
def test_fed_offsets_of_a_crop_are_checked(words, offsets):
    places = tf.placeholder(tf.int32, [4])
    made = tf.image.crop_to_bounding_box(tf.placeholder_with_default(np.zeros([4, 4, 1], np.float32), [None, None, None]), *tf.unstack(places))
    with tf.Session() as session:
        assert session.run(made, {places: [1, 1, 2, 3]}).shape == (2, 3, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(made, {places: offsets})


def test_static_shapes_of_restored_slices():
    assert gen_ops.restore_slice("model", "var", "3 4 0,1:-", tf.float32).get_shape() == [1, 4]
    whole, part = gen_ops.restore_v2("model", ["a", "b"], ["", "3 4 0,1:-"], [tf.float32, tf.float32])
    assert whole.get_shape().ndims is None and part.get_shape() == [1, 4]


def test_sparse_tensors_in_a_map():
    one = tf.SparseTensorValue(np.int64([[0, 1], [2, 0]]), np.float32([3, 4]), np.int64([3, 2]))
    two = tf.SparseTensorValue(np.int64([[1, 1]]), np.float32([5]), np.int64([2, 4]))
    x = tf.sparse_placeholder(tf.float32)
    handle = sparse_ops.add_sparse_to_tensors_map(x)
    numbers = tf.placeholder(tf.int64, [None])
    taken = sparse_ops.take_many_sparse_from_tensors_map(handle.op, numbers, rank=3)
    with tf.Session() as session:
        kept = [session.run(handle, {x: value}) for value in (one, two)]
        made = session.run(taken, {numbers: kept})
        np.testing.assert_array_equal(made.indices, [[0, 0, 1], [0, 2, 0], [1, 1, 1]])
        np.testing.assert_array_equal(made.values, [3, 4, 5])
        np.testing.assert_array_equal(made.dense_shape, [2, 3, 4])
        rows = sparse_ops.add_many_sparse_to_tensors_map(x)
        back = sparse_ops.take_many_sparse_from_tensors_map(rows.op, rows)
        np.testing.assert_array_equal(session.run(back, {x: one}).indices, one.indices)
    with pytest.raises(TypeError, match="Operation"):
        sparse_ops.take_many_sparse_from_tensors_map(handle, numbers)


def test_fused_batch_normalization_can_keep_the_variance_of_the_batch():
    x = np.random.RandomState(0).rand(2, 4, 5, 3).astype(np.float32)
    averages = {}
    for fused in (False, True):
        layer = tf.layers.BatchNormalization(fused=fused, momentum=0.5, name="norm_%s" % fused)
        layer._bessels_correction_test_only = False
        layer.apply(tf.constant(x), training=True)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(layer.updates)
            averages[fused] = session.run(layer.moving_variance)
    np.testing.assert_allclose(averages[True], averages[False], rtol=1e-5)
    np.testing.assert_allclose(averages[True], 0.5 + 0.5 * x.var((0, 1, 2)), rtol=1e-5)
