# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, layout, serialization and sets of sparse tensors."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def sparse():
    return tf.SparseTensor([[0, 1], [2, 0], [2, 1]], [1.0, -2.0, 3.0], [3, 2])


def lists(value):
    return value.indices.tolist(), value.values.tolist(), value.dense_shape.tolist()


def test_sums_and_their_gradients(sess):
    a, b = sparse(), tf.SparseTensor([[0, 1], [1, 0]], [-1.0, 5.0], [3, 2])
    whole = tf.sparse_add(a, b)
    assert lists(sess.run(whole)) == ([[0, 1], [1, 0], [2, 0], [2, 1]], [0, 5, -2, 3], [3, 2])
    assert lists(sess.run(tf.sparse_add(a, b, 0.5)))[0] == [[1, 0], [2, 0], [2, 1]]
    grads = sess.run(tf.gradients(tf.reduce_sum(whole.values * [1.0, 2.0, 3.0, 4.0]), [a.values, b.values]))
    assert [g.tolist() for g in grads] == [[1, 3, 4], [1, 2]]
    dense = tf.ones([3, 2])
    total = tf.sparse_add(dense, a)
    assert sess.run(total).tolist() == [[1, 2], [1, 1], [-1, 4]]
    assert [g.tolist() for g in sess.run(tf.gradients(total, [a.values, dense]))] == [[1, 1, 1], [[1, 1]] * 3]
    with pytest.raises(TypeError):
        tf.sparse_add(dense, dense)


def test_extremes(sess):
    a, b = sparse(), tf.SparseTensor([[0, 1], [1, 0]], [2.0, -5.0], [3, 2])
    assert lists(sess.run(tf.sparse_maximum(a, b)))[1] == [2, 0, 0, 3]
    assert lists(sess.run(tf.sparse_minimum(a, b)))[1] == [1, -5, -2, 0]


def test_reductions(sess):
    a = sparse()
    assert sess.run(tf.sparse_reduce_sum(a)) == 2 and sess.run(tf.sparse_reduce_sum(a, 1)).tolist() == [1, 0, 1]
    assert sess.run(tf.sparse_reduce_max(a, [0], True)).tolist() == [[-2, 3]]
    assert tf.sparse_reduce_sum(a, -1, keep_dims=True).shape.as_list() == [3, 1]
    assert lists(sess.run(tf.sparse_reduce_sum_sparse(a, 1))) == ([[0], [2]], [1, 1], [3])
    assert lists(sess.run(tf.sparse_reduce_max_sparse(a, 0))) == ([[0], [1]], [-2, 3], [2])
    assert sess.run(tf.gradients(tf.sparse_reduce_sum(a, 1) * [1.0, 2.0, 3.0], a.values)[0]).tolist() == [1, 3, 3]


def test_layout(sess):
    a = sparse()
    assert lists(sess.run(tf.sparse_reshape(a, [2, -1]))) == ([[0, 1], [1, 1], [1, 2]], [1, -2, 3], [2, 3])
    outside = tf.SparseTensor([[0, 2], [1, 0], [2, 5]], [1.0, 2.0, 3.0], [3, 2])  # another index in row-major order
    assert lists(sess.run(tf.sparse_reshape(outside, [2, -1]))) == ([[0, 2], [0, 2], [3, 0]], [1, 2, 3], [2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no elements, got 1"):
        sess.run(tf.sparse_reshape(tf.SparseTensor([[0, 2]], [1.0], tf.placeholder_with_default(np.int64([3, 0]), [2])), [0, 4]))
    assert lists(sess.run(tf.sparse_slice(a, [1, 0], [9, 1]))) == ([[1, 0]], [-2], [2, 1])
    assert [lists(s) for s in sess.run(tf.sparse_split(sp_input=a, num_split=2, axis=0))] == [([[0, 1]], [1], [2, 2]), ([[0, 0], [0, 1]], [-2, 3], [1, 2])]
    wide = tf.SparseTensor([[0, 2]], [9.0], [1, 3])
    assert lists(sess.run(tf.sparse_concat(1, [a, wide], expand_nonconcat_dim=True))) == ([[0, 1], [0, 4], [2, 0], [2, 1]], [1, 9, -2, 3], [3, 5])
    made, empty = sess.run(tf.sparse_fill_empty_rows(a, 7.0))
    assert lists(made) == ([[0, 1], [1, 0], [2, 0], [2, 1]], [1, 7, -2, 3], [3, 2]) and empty.tolist() == [False, True, False]
    assert lists(sess.run(tf.sparse_reset_shape(a, [4, 2])))[2] == [4, 2]
    assert lists(sess.run(tf.sparse_reset_shape(tf.SparseTensor([[1, 0]], [1.0], [9, 9]))))[2] == [2, 1]
    with pytest.raises(ValueError, match="should have dimension sizes"):
        tf.sparse_reset_shape(a, [1, 2])


def test_hostile_indices(sess):
    place, shape = tf.placeholder(tf.int64), tf.placeholder(tf.int64)
    there = tf.SparseTensor(place, [1.0], shape)
    ops = [
        tf.sparse_reduce_sum(there, [0]),
        tf.sparse_softmax(there).values,
        tf.sparse_split(sp_input=there, num_split=2, axis=0)[0].indices,
        tf.sparse_maximum(there, there).values,
    ]
    for at in ([[-1, 0]], [[9, 0]], [[0, 2**62]]):
        for op in ops:
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(op, {place: at, shape: [3, 2]})
    for op in ops[:3]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(op, {place: [[0, 0]], shape: [2**40, 2**40]})
    huge = {place: [[2**39, 1]], shape: [2**40, 2]}
    assert sess.run(tf.sparse_reduce_sum_sparse(there, [1]), huge).indices.tolist() == [[2**39]]
    assert sess.run(tf.sparse_softmax(there).values, huge).tolist() == [1]
    assert sess.run(tf.sets.set_union(tf.SparseTensor(place, [1], shape), tf.SparseTensor(place, [2], shape)), huge).values.tolist() == [1, 2]


@pytest.mark.parametrize("out_type", [tf.string, tf.variant])
def test_serialization(sess, out_type):
    words = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], ["a", "b", "c"], [3, 4])
    one, many = tf.serialize_sparse(words, out_type=out_type), tf.serialize_many_sparse(words, out_type=out_type)
    assert [t.tolist() for t in sess.run(gen_ops.deserialize_sparse(one, dtype=tf.string))] == list(lists(sess.run(words)))
    again = tf.SparseTensor(*gen_ops.deserialize_sparse(tf.stack([many, many]), dtype=tf.string))
    assert lists(sess.run(again))[2] == [2, 3, 4] and len(lists(sess.run(again))[1]) == 6
    if out_type == tf.string:
        assert lists(sess.run(tf.deserialize_many_sparse(many, tf.string))) == lists(sess.run(words))
        given = tf.placeholder(tf.string)
        back = gen_ops.deserialize_many_sparse(given, dtype=tf.string)
        for wrong in ([["a", "b", "c"]], sess.run(many)[:0], sess.run(many)[:, :2]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(back, {given: wrong})


def test_sets(sess):
    a, b = tf.constant([[3, 1, 1], [2, 2, 2]]), tf.constant([[1, 9], [2, 2]])
    assert lists(sess.run(tf.sets.set_union(a, b))) == ([[0, 0], [0, 1], [0, 2], [1, 0]], [1, 3, 9, 2], [2, 3])
    assert lists(sess.run(tf.sets.set_difference(a, b))) == ([[0, 0]], [3], [2, 1])
    s = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [3, 8, 4], [2, 2])
    assert lists(sess.run(tf.sets.set_intersection(s, a)))[1] == [3]
    assert lists(sess.run(tf.sets.set_difference(s, a)))[1] == [8, 4]
    assert lists(sess.run(tf.sets.set_difference(s, a, aminusb=False)))[1] == [1, 2]
    assert sess.run(tf.sets.set_size(s)).tolist() == [2, 1]
    with pytest.raises(TypeError):
        tf.sets.set_union([[1.0]], [[2.0]])


def cross(sess, hashed, buckets=0):
    columns = [tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "c"], [2, 2]), tf.SparseTensor([[0, 0], [1, 0]], np.int64([7, 8]), [2, 1])]
    kind = tf.int64 if hashed else tf.string
    made = gen_ops.sparse_cross(
        [c.indices for c in columns],
        [c.values for c in columns],
        [c.dense_shape for c in columns],
        [tf.constant([[1, 2], [3, 4]], tf.int64)],
        hashed_output=hashed,
        num_buckets=buckets,
        hash_key=956888297470,
        out_type=kind,
        internal_type=kind,
    )
    return sess.run(made)


def test_crosses(sess):
    indices, values, shape = cross(sess, False)
    assert indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3]] and shape.tolist() == [2, 4]
    assert values.tolist() == [b"a_X_7_X_1", b"a_X_7_X_2", b"b_X_8_X_3", b"b_X_8_X_4", b"c_X_8_X_3", b"c_X_8_X_4"]
    assert cross(sess, True)[1].tolist() == [
        7396822908972873503,
        2537939148748978020,
        3248668351502657753,
        3473357846889177329,
        5191662671732153421,
        6002692673006318242,
    ]
    assert cross(sess, True, 10)[1].tolist() == [0, 0, 0, 9, 8, 9]


def test_what_is_known_of_shapes():
    s = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    assert tf.sparse_add(s, s).get_shape() == [3, 4]
    assert tf.sparse_reshape(s, [2, -1]).get_shape() == [2, 6] and tf.sparse_reshape(s, [2, 3, 2]).get_shape() == [2, 3, 2]
    for shape in ([5, 2], [5, -1], [-1, -1]):
        with pytest.raises(ValueError, match="Cannot reshape|At most one"):
            tf.sparse_reshape(s, shape)


def test_arguments_of_sparse_split_must_be_there():
    s = tf.SparseTensor([[0, 1]], [1.0], [2, 4])
    for given, missing in (({}, "sp_input"), ({"sp_input": s}, "num_split"), ({"sp_input": s, "num_split": 2}, "axis")):
        with pytest.raises(ValueError, match=missing + " is required"):
            tf.sparse_split(**given)


def test_integers_divided_by_a_dense_tensor(sess):
    s = tf.SparseTensor([[0, 1], [1, 0]], [3, 8], [2, 2])
    made = sess.run(s / tf.constant([[2, 2], [3, 3]]))
    assert made.values.dtype == np.float64 and made.values.tolist() == [1.5, 8 / 3]


def test_sparse_merge_of_values(sess):
    ids = tf.SparseTensorValue([[0, 0], [1, 0]], [2, 1], [2, 1])
    merged = sess.run(tf.sparse_merge(ids, tf.SparseTensorValue([[0, 0], [1, 0]], [0.5, 1.5], [2, 1]), 4))
    assert lists(merged) == ([[0, 2], [1, 1]], [0.5, 1.5], [2, 4])


def test_a_new_shape_is_checked_in_the_step(sess):
    s = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    new = tf.placeholder(tf.int64)
    made = tf.sparse_reset_shape(s, new)
    assert sess.run(made, {new: [2, 5]}).dense_shape.tolist() == [2, 5]
    for shape in ([2, 2], [2], [2, 3, 1]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(made, {new: shape})


def test_gradients_of_dense_factors_are_dense():
    """A sparse one would leave out rows in optimizers with momentum."""
    dense, values = tf.constant([1.0, 2.0]), tf.constant([5.0, 6.0])
    sparse = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
    product, quotient = (tf.gradients(x.values, [dense, values]) for x in (sparse * dense, sparse / dense))
    assert all(isinstance(g, tf.Tensor) for g in product + quotient)
    whole = tf.SparseTensor([[0, 1]], [7], [1, 2]) / [[2, 2]]
    with tf.Session() as session:
        assert [g.tolist() for g in session.run(product)] == [[6, 5], [2, 1]]
        assert [g.tolist() for g in session.run(quotient)] == [[-6, -1.25], [0.5, 1]]
        assert session.run(whole.values) == [3.5] and whole.dtype == tf.float64


def test_one_size_of_a_new_shape_may_be_left_open():
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [1, 2], [2, 3])
    assert tf.sparse_reshape(sparse, [-1, 3, 1]).get_shape() == [2, 3, 1]
    with pytest.raises(ValueError, match=r"At most one dimension can be inferred \(-1\). Found: \[-1, 2, -1\]"):
        tf.sparse_reshape(sparse, [-1, 2, -1])


@pytest.mark.parametrize(
    "new_shape, message",  # of 1.15.5
    [
        ([-1, -1], r"only one output dimension may be -1, not both 0 and 1"),
        ([-1, 3], r"is a SparseTensor with 4 dense values, but the requested shape requires a multiple of 3. input_shape=\[2,2\] output_shape=\[1,3\]"),
        ([5], r"is a tensor with 4 dense values, but the requested shape has 5. input_shape=\[2,2\] output_shape=\[5\]"),
    ],
)
def test_reshaping_says_from_which_shape_to_which(new_shape, message):
    wanted = tf.placeholder(tf.int64)
    reshaped = tf.sparse_reshape(tf.SparseTensor([[0, 0]], [1.0], [2, 2]), wanted)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(reshaped, {wanted: new_shape})


def test_axes_that_are_not_there_are_refused_in_the_step():
    total = tf.sparse_reduce_sum(tf.SparseTensor([[0, 0]], [1.0], [2, 2]), [5])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension 5, for input with 2 dimensions."):
        session.run(total)


@pytest.mark.parametrize("sparse, dense", [([2, 1, 3], [3, 4, 1]), ([2, 3], [3, 3, 3])])
def test_dense_operands_that_do_not_broadcast_to_sparse_ones(sparse, dense):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as error:
        sess.run((tf.SparseTensor([[0] * len(sparse)], [1.0], sparse) * tf.ones(dense)).values)
    told = "broadcasts dense to sparse only; got incompatible shapes: [%s] vs. [%s]" % (",".join(map(str, sparse)), ",".join(map(str, dense)))
    assert told in str(error.value)
