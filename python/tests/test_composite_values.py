# SPDX-License-Identifier: Apache-2.0
"""Values that are several tensors, of classes that users write; and what tensors refuse to be asked for."""

import numpy as np
import pytest

import millrace as tf
from millrace.framework import autograph_status, nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.type_spec import TypeSpec


class Pair(CompositeTensor):
    def __init__(self, first, second):
        self.first, self.second = first, second

    _type_spec = property(lambda self: PairSpec())


class PairSpec(TypeSpec):
    value_type = property(lambda self: Pair)

    def _to_components(self, value):
        return value.first, value.second

    def _from_components(self, parts):
        return Pair(*parts)


def test_structures_open_classes_of_users():
    pair = Pair(1, [2, 3])
    assert nest.flatten({"a": pair}) == [pair]
    assert nest.flatten({"a": pair}, expand_composites=True) == [1, 2, 3]
    packed = nest.pack_sequence_as({"a": pair}, [4, 5, 6], expand_composites=True)["a"]
    assert isinstance(packed, Pair) and (packed.first, packed.second) == (4, [5, 6])
    with pytest.raises(NotImplementedError, match="_type_spec"):
        CompositeTensor()._components()


def test_the_library_has_such_classes():
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    slices = tf.IndexedSlices(tf.zeros([1]), tf.zeros([1], tf.int32))
    assert all(isinstance(v, CompositeTensor) for v in (sparse, slices, tf.ragged.constant([[1], [2, 3]])))
    assert not isinstance(tf.zeros([1]), CompositeTensor)


@pytest.mark.parametrize(
    "index", [0.5, np.float32(1), "a", True, np.array([0, 1]), np.bool_(True), slice(0.5, 2), slice(0, "b"), slice(None, None, 1.0), slice(0, [1]), (0, 1.5)]
)
def test_an_index_is_an_integer_or_nothing(index):
    with pytest.raises(TypeError, match="Only integers, slices .* got"):
        tf.zeros([3, 3])[index]


def test_an_index_that_is_a_tensor_is_an_integer_scalar():
    for index in (tf.constant(1.0), tf.constant([0, 1]), slice(tf.constant(0.0), None)):
        with pytest.raises(TypeError, match="Only integers, slices"):
            tf.zeros([3, 3])[index]
    x = tf.constant(np.arange(9).reshape(3, 3))
    with tf.Session() as session:
        for index in (np.int64(1), np.array(1), tf.Dimension(1), tf.constant(1), tf.constant(1, tf.int64), tf.placeholder_with_default(1, None)):
            np.testing.assert_array_equal(session.run(x[index]), [3, 4, 5])
            np.testing.assert_array_equal(session.run(x[index:, 0]), [3, 6])


def test_tensors_have_no_truth_and_say_so_of_autograph():
    x = tf.placeholder(tf.bool, [None])
    for status, text in [("UNSPECIFIED", "in Graph execution"), ("ENABLED", "AutoGraph did not convert"), ("DISABLED", "AutoGraph is disabled")]:
        with autograph_status.ControlStatusCtx(autograph_status.Status[status]):
            with pytest.raises(TypeError, match="using a .* as a Python .bool. is not allowed.* " + text):
                bool(x)
            with pytest.raises(TypeError, match="iterating over .* is not allowed.* " + text):
                iter(x)
    assert autograph_status.control_status_ctx().status is autograph_status.Status.UNSPECIFIED
    assert autograph_status.do_not_convert(lambda: autograph_status.control_status_ctx().status)() is autograph_status.Status.DISABLED


# ---- in branches and loops ----


class Scaled(CompositeTensor):
    def __init__(self, value, scale):
        self.value, self.scale = value, scale

    _type_spec = property(lambda self: ScaledSpec(self.value.shape))


class ScaledSpec(TypeSpec):
    _fields = ("shape",)
    value_type = property(lambda self: Scaled)

    def __init__(self, shape):
        self._shape = tf.TensorShape(shape)

    _component_specs = property(lambda self: (tf.TensorSpec(self._shape), tf.TensorSpec([])))

    def _to_components(self, value):
        return value.value, value.scale

    def _from_components(self, parts):
        return Scaled(*parts)


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def fewer(i, _):
    return i < 3


def test_ragged_tensors_in_branches_and_loops():
    ragged = tf.ragged.constant([[1, 2], [3], [4, 5, 6]])
    yes = tf.placeholder(tf.bool, [])
    chosen = tf.cond(yes, lambda: tf.concat([ragged + 2, [[100]]], axis=0), lambda: ragged[:2] - 2)
    assert run(chosen, {yes: True}).to_list() == [[3, 4], [5], [6, 7, 8], [100]] and run(chosen, {yes: False}).to_list() == [[-1, 0], [1]]
    _, wide = tf.while_loop(fewer, lambda i, x: [i + 1, tf.concat([x, [[i], [i], [i]]], axis=1)], [0, ragged])
    assert run(wide).to_list() == [[1, 2, 0, 1, 2], [3, 0, 1, 2], [4, 5, 6, 0, 1, 2]] and wide.row_splits.shape == [4] and wide.values.shape.as_list() == [None]

    def longer(i, x):
        return [i + 1, tf.concat([x, x], axis=0)]

    with pytest.raises(ValueError, match="row_splits|after one iteration"):
        tf.while_loop(fewer, longer, [0, ragged])
    for shape in (tf.TensorShape([None, None]), tf.RaggedTensorSpec([None, None], tf.int32)):
        _, long = tf.while_loop(fewer, longer, [0, ragged], [tf.TensorShape([]), shape])
        assert run(long).to_list() == [[1, 2], [3], [4, 5, 6]] * 8
    with pytest.raises(ValueError, match="a size for a ragged dimension"):
        tf.while_loop(fewer, longer, [0, ragged], [tf.TensorShape([]), tf.TensorShape([None, 2])])


def test_sparse_tensors_grow_in_loops():
    sparse = tf.SparseTensor([[0], [3]], [2.0, 4.0], [10])

    def add(i, x):
        return [i + 1, tf.sparse.add(x, tf.SparseTensor(tf.cast(tf.fill([1, 1], i), tf.int64), [1.0], x.dense_shape))]

    _, grown = tf.while_loop(fewer, add, [0, sparse])
    assert run(tf.sparse.to_dense(grown)).tolist() == [3, 1, 1, 4] + [0] * 6 and grown.dense_shape.shape == [1]

    def deepen(i, x):
        return [i + 1, tf.SparseTensor(tf.concat([x.indices, [[i], [i]]], axis=1), x.values, tf.concat([x.dense_shape, [10]], axis=0))]

    for shape in (tf.TensorShape([None]), tf.TensorShape(None)):
        _, deep = tf.while_loop(fewer, deepen, [0, sparse], [tf.TensorShape([]), shape])
        assert run(deep).indices.tolist() == [[0, 0, 1, 2], [3, 0, 1, 2]]  # the numbers are cast to those of the rows
    with pytest.raises(ValueError):
        tf.while_loop(fewer, deepen, [0, sparse])


def test_specs_as_invariants():
    specs = [tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)]
    assert run(tf.while_loop(fewer, lambda i, x: [i + 1, tf.concat([x, x], 0)], [0, tf.constant([7])], specs))[1].tolist() == [7] * 8
    for start in ([0.0, tf.constant([7])], [0, tf.SparseTensor([[0]], [1], [10])]):
        with pytest.raises(TypeError, match="not compatible with the loop variable"):
            tf.while_loop(fewer, lambda i, x: [i + 1, x], start, specs)


def test_values_of_programs_in_branches_and_loops():
    start = Scaled(tf.ones([2]), tf.constant(1.0))
    _, last = tf.while_loop(fewer, lambda i, x: [i + 1, Scaled(x.value * 2, x.scale + 1)], [0, start])
    assert isinstance(last, Scaled) and last.value.shape == [2] and run([last.value, last.scale])[0].tolist() == [8, 8] and run(last.scale) == 4
    chosen = tf.cond(tf.constant(False), lambda: start, lambda: Scaled(start.value * 3, start.scale))
    assert isinstance(chosen, Scaled) and run(chosen.value).tolist() == [3, 3]
    with pytest.raises(TypeError, match="same kinds of values"):
        tf.cond(tf.constant(False), lambda: start, lambda: start.value)


def test_lists_of_tensors_of_another_type_are_cast():
    assert run(tf.concat([tf.constant([[5]], tf.int64), [[tf.constant(1)], [tf.constant(2)]]], 0)).tolist() == [[5], [1], [2]]


def test_values_of_sparse_tensors_are_named_tuples():
    value = tf.SparseTensorValue([[0]], [1.0], [1])
    assert tf.nest.flatten(value) == [0, 1.0, 1] and tf.nest.is_nested(value)
    assert tf.nest.map_structure(lambda x: 2 * x, value) == tf.SparseTensorValue([[0]], [2.0], [2])
