# SPDX-License-Identifier: Apache-2.0
"""tf.TensorSpec and its kin, and the names of what there is one of: replicas."""

import copy
import pickle

import numpy as np
import pytest

import millrace as tf
from millrace.framework import nest, type_spec
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.type_spec import BoundedTensorSpec


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_tensor_specs():
    spec = tf.TensorSpec([None, 3], tf.float32, "x")
    assert spec.shape.as_list() == [None, 3] and spec.dtype == tf.float32 and spec.name == "x" and spec.value_type is tf.Tensor
    assert spec == tf.TensorSpec([None, 3], tf.float32, "x") and hash(spec) == hash(tf.TensorSpec([None, 3], tf.float32, "x"))
    assert spec != tf.TensorSpec([None, 3], tf.float32) and spec != tf.TensorSpec([2, 3], tf.float32, "x") and spec != tf.TensorSpec(None, tf.float32, "x")
    assert pickle.loads(pickle.dumps(spec)) == spec == copy.copy(spec)
    assert (
        spec.is_compatible_with(tf.zeros([2, 3])) and not spec.is_compatible_with(tf.zeros([3, 2])) and not spec.is_compatible_with(tf.zeros([2, 3], tf.int32))
    )
    assert spec.is_compatible_with(tf.TensorSpec(None)) and spec.is_compatible_with(np.zeros([5, 3], np.float32))
    assert tf.TensorSpec.from_tensor(tf.zeros([2], name="z")) == tf.TensorSpec([2], tf.float32, "z")
    assert tf.TensorSpec([2, 3]).most_specific_compatible_type(tf.TensorSpec([4, 3])) == tf.TensorSpec([None, 3])
    with pytest.raises(ValueError, match="No TypeSpec is compatible"):
        tf.TensorSpec([2]).most_specific_compatible_type(tf.TensorSpec([2], tf.int32))


def test_bounds():
    spec = BoundedTensorSpec([2, 2], tf.int32, 0, [1, 5])
    assert spec == BoundedTensorSpec([2, 2], tf.int32, 0, [1, 5]) != BoundedTensorSpec([2, 2], tf.int32, 0, [1, 6])
    assert BoundedTensorSpec.from_spec(tf.TensorSpec([], tf.uint8)).maximum == 255
    with pytest.raises(ValueError):
        BoundedTensorSpec([2], tf.int32, [0, 0, 0], 1)
    with pytest.raises(ValueError):
        spec.minimum[...] = 3


def test_specs_of_values():
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    assert tf.type_spec_from_value(sparse) == tf.SparseTensorSpec([2, 3], tf.float32)
    slices = tf.IndexedSlices(tf.zeros([2, 4]), tf.constant([0, 1]), tf.constant([5, 4]))
    assert tf.type_spec_from_value(slices) == tf.IndexedSlicesSpec([5, 4], tf.float32, tf.int32, tf.int32, [2])
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert tf.type_spec_from_value(ragged) == tf.RaggedTensorSpec([2, None], tf.int32, 1)
    assert tf.RaggedTensorSpec([2, None], tf.int32).value_type is tf.RaggedTensor
    assert tf.type_spec_from_value([1, 2]) == tf.TensorSpec([2], tf.int32)
    before = len(tf.get_default_graph().get_operations())
    assert tf.type_spec_from_value(np.zeros([3, 1], np.int16)) == tf.TensorSpec([3, 1], tf.int16)
    assert len(tf.get_default_graph().get_operations()) == before
    with pytest.raises(TypeError, match="TypeSpec"):
        tf.type_spec_from_value(object())
    with pytest.raises(ValueError, match="ragged_rank"):
        tf.RaggedTensorSpec([2], tf.int32, 1)


def test_gradients_of_what_is_not_connected():
    x, other = tf.constant([1.0, 2.0]), tf.constant([[1.0], [3.0]])
    assert tf.gradients(x * x, [x, other])[1] is None
    with tf.Session() as session:
        made = session.run(tf.gradients(x * x, [x, other], unconnected_gradients=tf.UnconnectedGradients.ZERO))
        np.testing.assert_array_equal(made[0], [2, 4])
        np.testing.assert_array_equal(made[1], [[0], [0]])
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tf.gradients(x, x, unconnected_gradients="one")


def test_names_of_replicas():
    assert tf.VariableAggregation.ONLY_FIRST_REPLICA.value == 3 and tf.VariableSynchronization.AUTO.value == 0
    v = tf.get_variable("v", [2], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN)
    assert v not in tf.trainable_variables() and v in tf.global_variables()
    assert tf.get_variable("w", [2], trainable=True, synchronization=tf.VariableSynchronization.ON_READ).trainable  # as in 1.15
    with pytest.raises(ValueError, match="aggregation"):
        tf.get_variable("w", [2], aggregation="mean")


def test_components_of_specs():
    sparse, ragged = tf.SparseTensorSpec([4, 3], tf.int32), tf.RaggedTensorSpec([5, None, None], tf.string)
    assert sparse._component_specs == [tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None], tf.int32), tf.TensorSpec([2], tf.int64)]
    assert ragged._component_specs == [tf.TensorSpec([None], tf.string), tf.TensorSpec([6], tf.int64), tf.TensorSpec([None], tf.int64)]
    assert sparse._batch(8) == tf.SparseTensorSpec([8, 4, 3], tf.int32) and ragged._batch(2)._unbatch() == ragged
    value = tf.SparseTensor([[0, 1]], [7], [4, 3])
    assert sparse._from_components(sparse._to_components(value)).values is value.values
    with pytest.raises(ValueError, match="tensor 0 .* is incompatible with TensorSpec.*variant"):
        sparse._from_tensor_list([value.values])
    assert tf.TensorSpec([2], tf.int32, "a").most_specific_compatible_type(tf.TensorSpec([3], tf.int32, "b")) == tf.TensorSpec([None], tf.int32)
    close = [BoundedTensorSpec([2], tf.float32, m, 1) for m in (0, 1e-10, 0.5)]
    assert close[0] == close[1] != close[2] and hash(close[0]) == hash(close[1])


def test_structures_of_a_users_spec():
    class Spec(tf.TypeSpec):
        def __init__(self, parts, tag=None):
            self.parts, self.tag = parts, tag

        value_type = property(lambda self: Pair)
        _component_specs = property(lambda self: self.parts)

        def _serialize(self):
            return self.parts, self.tag

        def _to_components(self, value):
            return value.parts

        def _from_components(self, parts):
            return Pair(parts, self.tag)

    class Pair(CompositeTensor):
        def __init__(self, parts, tag=None):
            self.parts, self.tag = parts, tag

        @property
        def _type_spec(self):
            return Spec(nest.map_structure(type_spec.type_spec_from_value, self.parts), self.tag)

    value = [Pair(1, "a"), {"k": Pair((2, 3))}]
    made = nest.map_structure(lambda x: x + 1, value, expand_composites=True)
    assert (made[0].parts, made[0].tag, made[1]["k"].parts) == (2, "a", (3, 4))
    assert nest.flatten_with_joined_string_paths(value, expand_composites=True) == [("0/Pair", 1), ("1/k/Pair/0", 2), ("1/k/Pair/1", 3)]
    with pytest.raises(ValueError):
        nest.assert_same_structure(Pair(1, "a"), Pair(1, "b"), expand_composites=True)
    nest.assert_same_structure(Pair(1), Pair(1)._type_spec, expand_composites=True)


def test_paths_and_shallow_structures():
    value = {"b": [1, 2], "a": (3, {"c": 4})}
    assert nest.flatten_with_tuple_paths(value) == [(("a", 0), 3), (("a", 1, "c"), 4), (("b", 0), 1), (("b", 1), 2)]
    assert nest.map_structure_with_paths(lambda path, x: "%s=%d" % (path, x), [1, (2,)]) == ["0=1", ("1/0=2",)]
    assert nest.map_structure_up_to([0, 0], lambda x, times: x * times, [[1], 2], [2, 3]) == [[1, 1], 6]
    with pytest.raises(ValueError, match="keys are not a subset"):
        nest.flatten_up_to({"x": 1}, {"y": 1})
    assert nest.flatten({"a": 1}.values()) == [1] and nest.is_nested({}.keys())
    with pytest.raises(ValueError, match="type=list str=.1."):
        nest.assert_same_structure([1], 1)


def test_kinds_of_elements_of_specs():
    whole, real = tf.TensorSpec([2], tf.int32), tf.TensorSpec([2], tf.float32)
    assert (whole.is_discrete, whole.is_continuous, real.is_discrete, real.is_continuous) == (True, False, False, True)
    assert not whole.is_bounded() and BoundedTensorSpec([2], tf.int32, 0, 1).is_bounded()


@pytest.mark.parametrize("name", ["bool", "string", "complex64", "qint8", "quint8", "resource"])
def test_limits_of_what_is_no_number(name):
    with pytest.raises(TypeError, match="Cannot find minimum value of <dtype: '%s'>" % name):
        _ = getattr(tf, name).min
    with pytest.raises(TypeError, match="Cannot find maximum value of <dtype: '%s'>" % name):
        _ = getattr(tf, name).max


def test_limits_of_images():
    assert (tf.int8.limits, tf.uint8.limits, tf.float32.limits) == ((0, 127), (0, 255), (0, 1))
