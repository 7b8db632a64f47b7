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
