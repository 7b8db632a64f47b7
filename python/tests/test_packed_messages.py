# SPDX-License-Identifier: Apache-2.0
"""Messages within google.protobuf.Any: as text, and in collections of a graph."""

import pytest
import millrace as tf
from millrace.protos import definitions, text_format


def outer():
    inner = definitions.MetaGraphDef()
    inner.meta_info_def.meta_graph_version = "inner"
    made = definitions.MetaGraphDef()
    made.meta_info_def.meta_graph_version = "outer"
    made.meta_info_def.any_info.Pack(inner)
    return made


TEXT = """meta_info_def {
  meta_graph_version: "outer"
  any_info {
    [type.googleapis.com/tensorflow.MetaGraphDef] {
      meta_info_def {
        meta_graph_version: "inner"
      }
    }
  }
}
"""


def test_the_text_shows_what_is_packed():
    assert str(outer()) == TEXT
    assert text_format.Parse(TEXT, definitions.MetaGraphDef()) == outer()


def test_what_is_no_message_of_ours_stays_bytes():
    unknown = definitions.Any(type_url="type.googleapis.com/other.Thing", value=b"\x08\x01")
    assert str(unknown) == 'type_url: "type.googleapis.com/other.Thing"\nvalue: "\\010\\001"\n'
    broken = definitions.Any(type_url="type.googleapis.com/tensorflow.MetaGraphDef", value=b"\x0a")
    assert text_format.Parse(str(broken), definitions.Any()) == broken
    assert text_format.Parse(str(definitions.Any()), definitions.Any()) == definitions.Any()


@pytest.mark.parametrize("text", ["[type.googleapis.com/other.Thing] {}", "[a/tensorflow.GraphDef {}", "[a/tensorflow.GraphDef] 1", "["])
def test_text_that_packs_nothing_is_refused(text):
    with pytest.raises(text_format.ParseError, match="line 1"):
        text_format.Parse(text, definitions.Any())


class OfProtobuf:
    """What google.protobuf's own Any has."""

    type_url, value = "type.googleapis.com/tensorflow.QueueRunnerDef", b"\x0a\x01q"


def test_a_collection_of_packed_messages_is_kept():
    tf.add_to_collection("packed", OfProtobuf())
    packed = definitions.Any()
    packed.Pack(outer())
    tf.add_to_collection("packed", packed)
    written = tf.train.export_meta_graph().collection_def["packed"].any_list.value
    assert [w.type_url.rpartition(".")[2] for w in written] == ["QueueRunnerDef", "MetaGraphDef"]
    again = definitions.MetaGraphDef()
    assert written[1].Unpack(again) and again == outer()


@pytest.mark.parametrize(
    "message, field, least, most", [(tf.ConfigProto, "inter_op_parallelism_threads", -(2**31), 2**31 - 1), (tf.AttrValue, "i", -(2**63), 2**63 - 1)]
)
def test_integers_that_a_field_does_not_hold_are_refused(message, field, least, most):
    made = message()
    for value in (least, most):
        setattr(made, field, value)
        assert getattr(message.FromString(made.SerializeToString()), field) == value
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match="out of range"):
            setattr(made, field, value)
    assert getattr(made, field) == most


def test_longer_integers_on_the_wire_are_cut_as_protobuf_cuts_them():
    encoded = tf.AttrValue(i=2**40 + 5).SerializeToString()
    field = tf.ConfigProto(inter_op_parallelism_threads=1).SerializeToString()[:1]
    assert tf.ConfigProto.FromString(field + encoded[1:]).inter_op_parallelism_threads == 5


def test_a_collection_of_integers_beyond_64_bits_is_left_out():
    tf.add_to_collection("long", 2**64)
    assert "long" not in tf.train.export_meta_graph().collection_def
