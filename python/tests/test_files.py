# SPDX-License-Identifier: Apache-2.0
"""tf.gfile and file_io: places for reading and writing, what may be overwritten, kinds of errors; nested structures."""

import collections
import os

import pytest

import millrace as tf
from millrace import file_io
from millrace.framework import nest


def test_reading_and_writing_have_places_of_their_own(tmp_path):
    path = str(tmp_path / "file")
    with tf.gfile.GFile(path, "w+") as file:
        file.write("first\nsecond\n")
        assert file.read() == "first\nsecond\n" and file.size() == 13 and file.tell() == 13
        file.write("third\n")
        assert file.read() == "third\n"
        file.seek(0)
        assert file.readline() == "first\n" and file.readlines() == ["second\n", "third\n"] and file.readline() == ""
        file.seek(-6, 2)
        assert list(file) == ["third\n"]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid whence argument: 3"):
            file.seek(0, 3)
    with tf.gfile.GFile(str(tmp_path / "new"), "r+") as file:  # makes the file
        file.write(b"x")
        assert file.read() == "x"
    with tf.gfile.GFile(path, "a+b") as file:
        file.write("more")
        assert file.read(3) == b"fir"
    for mode, use in (("r", lambda f: f.write("x")), ("w", lambda f: f.read())):
        with pytest.raises(tf.errors.PermissionDeniedError):
            use(tf.gfile.GFile(str(tmp_path / "other"), mode))


def test_nothing_is_overwritten_by_accident(tmp_path):
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    file_io.write_string_to_file(a, "a")
    file_io.write_string_to_file(b, "b")
    for function in (tf.gfile.Rename, tf.gfile.Copy):
        with pytest.raises(tf.errors.AlreadyExistsError):
            function(a, b)
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(b, "new", overwrite=False)
    assert file_io.read_file_to_string(b) == "b" and sorted(os.listdir(tmp_path)) == ["a", "b"]
    file_io.atomic_write_string_to_file(b, "new")
    tf.gfile.Rename(a, b, overwrite=True)
    assert file_io.read_file_to_string(b) == "a" and tf.io.gfile.listdir(str(tmp_path)) == ["b"]
    for function, error in (
        (tf.gfile.Remove, tf.errors.NotFoundError),
        (tf.gfile.ListDirectory, tf.errors.NotFoundError),
        (tf.gfile.Stat, tf.errors.NotFoundError),
        (tf.gfile.DeleteRecursively, tf.errors.NotFoundError),
    ):
        with pytest.raises(error):
            function(a)
    tf.gfile.MkDir(str(tmp_path))  # is there: as in TensorFlow, nothing is said
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.MkDir(str(tmp_path / "no" / "sub"))
    assert tf.gfile.Stat(b).length == 1 and not tf.gfile.Stat(b).is_directory


def test_structures():
    pair = collections.namedtuple("pair", "x y")
    assert nest.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3]) == {"a": [1, 2], "b": 3}
    assert nest.flatten_dict_items({("a", "b"): (1, 2), "c": 3}) == {"a": 1, "b": 2, "c": 3}
    assert nest.map_structure(lambda a, b: a + b, pair(1, [2]), pair(3, [4])) == pair(4, [6])
    assert nest.get_traverse_shallow_structure(lambda s: not isinstance(s, list), ((1, [2]), 3)) == ((True, False), True)
    for error, text, call in [
        (TypeError, "same sequence type", lambda: nest.assert_same_structure([1], (1,))),
        (TypeError, "(?s)same nested structure.*type=list.*More spec.*same sequence type", lambda: nest.assert_same_structure([1, [2]], [1, (2,)])),
        (ValueError, "(?s)same number of elements. First structure: type=list str=.1, 2.*Entire", lambda: nest.assert_same_structure([1, 2], [1])),
        (ValueError, "(?s)same nested structure.*same set of keys", lambda: nest.assert_same_structure([{"a": 1}], [{"b": 1}])),
        (ValueError, "same number of elements", lambda: nest.assert_same_structure([1], [1, 2])),
        (ValueError, "same nested structure", lambda: nest.assert_same_structure([1, [2]], [[1], 2])),
        (ValueError, "same set of keys", lambda: nest.assert_same_structure({"a": 1}, {"b": 1})),
        (ValueError, "is not unique", lambda: nest.flatten_dict_items({"a": 1, ("a",): (2,)})),
        (ValueError, "Structure had 1 elements, but flat_sequence had 2", lambda: nest.pack_sequence_as([0], [1, 2])),
        (TypeError, "func must be callable", lambda: nest.map_structure(1, [1])),
        (ValueError, "at least one structure", lambda: nest.map_structure(abs)),
        (TypeError, "must also be a sequence", lambda: nest.flatten_up_to([1], 1)),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_what_a_writer_puts_beside_a_graph(tmp_path):
    from millrace import names

    plugins = names.find("python.summary.plugin_asset")

    class Asset(plugins.PluginAsset):
        plugin_name = "example"

        def assets(self):
            return {"foo.txt": "foo!"}

    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
        assert plugins.get_plugin_asset(Asset) is plugins.get_plugin_asset(Asset)
        with pytest.raises(ValueError, match="must have plugin_name"):
            plugins.get_plugin_asset(plugins.PluginAsset)
    with pytest.raises(ValueError, match="not both"):
        tf.summary.FileWriter(str(tmp_path), graph, graph_def=graph.as_graph_def())
    writer = tf.summary.FileWriter(str(tmp_path / "events"), graph)
    writer.close()
    events = list(tf.train.summary_iterator(str(next((tmp_path / "events").glob("events*")))))
    assert [e.WhichOneof("what") for e in events] == ["file_version", "graph_def", "meta_graph_def"]
    assert tf.GraphDef.FromString(events[1].graph_def).node[0].attr["_output_shapes"].list.shape[0].dim == []
    meta = tf.MetaGraphDef.FromString(events[2].meta_graph_def)
    assert [op.name for op in meta.meta_info_def.stripped_op_list.op] == ["Const"] and meta.meta_info_def.tensorflow_version == tf.VERSION
    assert (tmp_path / "events" / "plugins" / "example" / "foo.txt").read_text() == "foo!"


def test_errors_by_number():
    made = tf.errors._make_specific_exception(None, None, "text", 3)
    assert type(made) is tf.errors.InvalidArgumentError and made.error_code == 3
    with pytest.warns(UserWarning, match="Unknown error code: 37"):
        other = tf.errors._make_specific_exception(None, None, "text", 37)
    assert type(other) is tf.errors.UnknownError and other.error_code == 37


def test_metadata_of_summaries_are_written_once(tmp_path):
    """Each file says once what the values of a tag are for."""
    writer = tf.summary.FileWriter(str(tmp_path))
    for step, tag in enumerate(["a", "a", "b"]):
        made = tf.Summary()
        made.value.add(tag=tag, simple_value=step).metadata.plugin_data.plugin_name = "p"
        writer.add_summary(made, step)
        assert made.value[0].HasField("metadata")
    writer.close()
    (path,) = tmp_path.iterdir()
    values = [v for event in tf.train.summary_iterator(str(path)) for v in event.summary.value]
    assert [(v.tag, v.simple_value, v.HasField("metadata")) for v in values] == [("a", 0, True), ("a", 1, False), ("b", 2, True)]
