# SPDX-License-Identifier: Apache-2.0
"""Structures as messages, and what SavedModels say of ragged tensors."""

import collections

import pytest

import millrace as tf
from millrace.framework import nest
from millrace.protos import definitions
from millrace.saved_model import structures

Pair = collections.namedtuple("Pair", ["x", "y"])


@pytest.mark.parametrize(
    "structure",
    [
        [1.5, None, True, -3, 2**62, "text"],
        ("a", [3, (2, 1)], {}, [], ()),
        {"shape": tf.TensorShape([1, 2]), "type": tf.int64},
        [tf.TensorSpec([2], tf.string, "s"), tf.TensorSpec([], tf.int32), tf.SparseTensorSpec([3, 4]), tf.RaggedTensorSpec([2, None], tf.int32)],
    ],
)
def test_structures_come_back(structure):
    encoded = definitions.StructuredValue.FromString(structures.encode(structure).SerializeToString())
    assert structures.decode(encoded) == structure
    assert structures.decode(structures.encode(tf.TensorShape(None))).ndims is None


def test_what_programs_take_from_nest():
    class Below(Pair):
        pass

    class Numbered(tuple):
        _fields = (1,)

    assert [nest._is_namedtuple(v) for v in (Pair(1, 2), Below(1, 2), Numbered([1]), (1,))] == [True, True, False, False]
    assert [nest._is_namedtuple(v, True) for v in (Pair(1, 2), Below(1, 2))] == [True, False]
    assert nest._sequence_like(Pair(1, 2), [3, 4]) == Pair(3, 4) and nest._sequence_like({"b": 1, "a": 2}, [5, 6]) == {"a": 5, "b": 6}
    assert nest._is_mapping({}) and not nest._is_mapping([])


def test_named_tuples_and_what_has_no_place():
    found = structures.decode(structures.encode(Pair([1, 2], "b")))
    assert type(found).__name__ == "Pair" and found._asdict() == {"x": [1, 2], "y": "b"}
    coder = structures.StructureCoder()
    assert coder.can_encode({"a": 1}) and not coder.can_encode([object()]) and not coder.can_encode({1: 2})
    later = definitions.StructuredValue()
    later.type_spec_value.type_spec_class_name = "LaterSpec"
    with pytest.raises(ValueError, match="The type 'LaterSpec' is not supported"):
        coder.decode_proto(later)


def test_ragged_tensors_of_signatures(tmp_path):
    x = tf.ragged.placeholder(tf.int32, 1)
    total = tf.reduce_sum(x, axis=1)
    info = tf.saved_model.build_tensor_info(x)
    assert [c.name for c in info.composite_tensor.components] == [x.values.name, x.row_splits.name]
    assert info.composite_tensor.type_spec.type_spec_class == definitions.TypeSpecProto.RAGGED_TENSOR_SPEC
    with tf.Session() as sess:
        tf.saved_model.simple_save(sess, str(tmp_path / "m"), {"x": x}, {"total": total})
    with tf.Graph().as_default(), tf.Session() as sess:
        signature = tf.saved_model.load(sess, ["serve"], str(tmp_path / "m")).signature_def["serving_default"]
        again = tf.saved_model.utils.get_tensor_from_tensor_info(signature.inputs["x"])
        fed = {again: tf.ragged.constant_value([[1, 2], [], [3]], dtype="int32", ragged_rank=1)}
        assert sess.run(signature.outputs["total"].name, fed).tolist() == [3, 0, 3]
