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
