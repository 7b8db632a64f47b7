# SPDX-License-Identifier: Apache-2.0
"""Files of file systems that a library adds: tf.gfile, savers, SavedModels, events and data sets at "mem://..."."""

import os
import subprocess
import sys

import numpy as np
import pytest

import millrace as tf
from millrace import file_io
from millrace.estimator.experimental import read_eval_metrics

PLUGINS = os.path.join(os.path.dirname(os.path.abspath(tf.__file__)), "..", "..", "plugins")


@pytest.fixture(autouse=True)
def library():
    path = os.path.join(PLUGINS, "plugin_memory_files.so")
    if not os.path.exists(path):
        pytest.skip("the build has no plugins")
    tf.load_file_system_library(path)  # again: nothing more


def write(path, text, mode="w"):
    with tf.gfile.GFile(path, mode) as file:
        file.write(text)


def test_files_and_folders():
    tf.gfile.MakeDirs("mem://files/a/b")
    write("mem://files/a/x", "first\nsecond\n")
    write("mem://files/a/x", "third", "a")
    with tf.gfile.GFile("mem://files/a/x") as file:
        assert file.size() == 18 and file.read(3) == "fir" and file.readline() == "st\n" and file.tell() == 6
        file.seek(-5, 2)
        assert file.read() == "third" and file.read() == ""
    assert tf.gfile.Exists("mem://files/a/x") and not tf.gfile.Exists("mem://files/a/y")
    assert tf.gfile.IsDirectory("mem://files/a") and not tf.gfile.IsDirectory("mem://files/a/x")
    assert tf.gfile.ListDirectory("mem://files/a") == ["b", "x"] and tf.gfile.Stat("mem://files/a/x").length == 18
    assert tf.gfile.Glob("mem://files/*/x") == ["mem://files/a/x"]
    tf.gfile.Copy("mem://files/a/x", "mem://files/copy")
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.gfile.Copy("mem://files/a/x", "mem://files/copy")
    tf.gfile.Rename("mem://files/copy", "mem://files/a/b/moved")
    assert list(tf.gfile.Walk("mem://files")) == [("mem://files", ["a"], []), ("mem://files/a", ["b"], ["x"]), ("mem://files/a/b", [], ["moved"])]
    file_io.atomic_write_string_to_file("mem://files/whole", "x")
    assert file_io.read_file_to_string("mem://files/whole") == "x"
    tf.gfile.DeleteRecursively("mem://files")
    assert not tf.gfile.Exists("mem://files")


def test_tables_vocabularies_and_reports_are_files_too():
    folder = "mem://tables"
    tf.gfile.MakeDirs(folder)
    write(folder + "/x.csv", "2,2,a\n1,2,0\n3,4,1\n")
    base = tf.contrib.learn.datasets.base
    data, target = base.load_csv_with_header(folder + "/x.csv", np.int32, np.float32)
    assert data.tolist() == [[1, 2], [3, 4]] and target.tolist() == [0, 1]
    base.shrink_csv(folder + "/x.csv", 2)
    assert tf.gfile.Exists(folder + "/x_small.csv")
    words = tf.contrib.learn.preprocessing.VocabularyProcessor(3)
    words.fit(["a b c"])
    words.save(folder + "/words")
    again = tf.contrib.learn.preprocessing.VocabularyProcessor.restore(folder + "/words")
    assert list(map(list, again.transform(["c a"]))) == [[3, 1, 0]]
    tf.profiler.write_op_log(tf.Graph(), folder, add_trace=False)
    assert tf.gfile.Exists(folder + "/tfprof_log")


def test_errors_are_those_of_the_file_system(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="in memory"):
        tf.gfile.GFile("mem://nothing").read()
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.ListDirectory("mem://nothing")
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.gfile.MakeDirs("mem://folder")
        write("mem://folder", "x")
    with pytest.raises(tf.errors.ResourceExhaustedError, match="mem://full: memory is full"):
        write("mem://full", "no room")
    with pytest.raises(tf.errors.UnimplementedError, match="two file systems"):
        tf.gfile.Rename("mem://full", str(tmp_path / "full"))
    for call in (tf.gfile.Exists, tf.gfile.MakeDirs, lambda path: tf.gfile.GFile(path).read()):
        with pytest.raises(tf.errors.UnimplementedError, match="scheme 'nobodys' not implemented"):
            call("nobodys://file")
    with pytest.raises(tf.errors.NotFoundError, match="/no/such.so"):
        tf.load_file_system_library("/no/such.so")
    tf.gfile.Copy("mem://full", str(tmp_path / "here"))
    assert os.path.exists(tmp_path / "here")


def test_training_is_written_and_read():
    v = tf.Variable([1.0, 2.0])
    saver = tf.train.Saver(max_to_keep=1)
    with tf.Session() as session:
        session.run(v.initializer)
        tf.gfile.MakeDirs("mem://train")
        for step in (1, 2):
            assert saver.save(session, "mem://train/model", global_step=step) == "mem://train/model-%d" % step
        assert tf.train.latest_checkpoint("mem://train") == "mem://train/model-2"
        assert sorted(tf.gfile.ListDirectory("mem://train")) == ["checkpoint", "model-2.data-00000-of-00001", "model-2.index", "model-2.meta"]
        session.run(v.assign([0.0, 0.0]))
        saver.restore(session, "mem://train/model-2")
        np.testing.assert_array_equal(session.run(v), [1, 2])
        np.testing.assert_array_equal(tf.train.load_checkpoint("mem://train").get_tensor("Variable"), [1, 2])
        saver.save(session, "mem://model")  # in no folder
        assert tf.train.checkpoint_exists("mem://model")
        tf.train.write_graph(session.graph, "mem://graphs/deep", "graph.pbtxt")
        tf.saved_model.simple_save(session, "mem://export", {"x": v}, {"y": v * 2.0})
    writer = tf.summary.FileWriter("mem://events")
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.5)]), 3)
    writer.close()
    (events,) = tf.gfile.Glob("mem://events/*")
    assert [e.summary.value[0].simple_value for e in tf.train.summary_iterator(events) if e.summary.value] == [2.5]
    with tf.Session(graph=tf.Graph()) as session:
        tf.saved_model.load(session, ["serve"], "mem://export")
        np.testing.assert_array_equal(session.run("mul:0"), [2, 4])


def test_data_sets_and_ops():
    tf.gfile.MakeDirs("mem://data")
    write("mem://data/lines", "a\nb\n")
    with tf.python_io.TFRecordWriter("mem://data/records") as writer:
        writer.write(b"record")
    lines = tf.data.TextLineDataset("mem://data/lines").make_one_shot_iterator().get_next()
    record = tf.data.TFRecordDataset(tf.matching_files("mem://data/rec*")).make_initializable_iterator()
    with tf.Session() as session:
        assert [session.run(lines) for _ in range(2)] == [b"a", b"b"]
        session.run(record.initializer)
        assert session.run(record.get_next()) == b"record"
        assert session.run(tf.read_file("mem://data/lines")) == b"a\nb\n"
        session.run(tf.write_file("mem://data/of/op", "x"))
        assert tf.gfile.Exists("mem://data/of/op")


def test_what_servers_allow():
    """The ':' of a scheme does not end a folder."""
    program = (
        "import sys, millrace as tf\n"
        "tf.load_file_system_library(sys.argv[1])\n"
        "tf.gfile.MakeDirs('mem://in')\n"
        "for name in ('in/x', 'out'):\n"
        "    with tf.gfile.GFile('mem://' + name, 'w') as file:\n"
        "        file.write(name)\n"
        "with tf.Session(tf.train.Server.create_local_server().target) as session:\n"
        "    for path in ('mem://in/x', 'mem://out', '/in/x'):\n"
        "        try:\n"
        "            print(session.run(tf.read_file(path)))\n"
        "        except tf.errors.OpError as error:\n"
        "            print(type(error).__name__)\n"
    )
    variables = dict(os.environ, MILLRACE_ALLOW_FILES="/nowhere:mem://in", PYTHONPATH=os.pathsep.join(sys.path))
    made = subprocess.run(
        [sys.executable, "-c", program, os.path.join(PLUGINS, "plugin_memory_files.so")], env=variables, capture_output=True, text=True, timeout=60
    )
    assert made.stdout.split() == ["b'in/x'", "PermissionDeniedError", "PermissionDeniedError"], made.stderr


def test_what_stands_on_files():
    """What is flushed is there; trees are walked under each name; metrics of evaluations are found."""
    tf.gfile.MakeDirs("mem://stands/eval")
    with tf.gfile.GFile("mem://stands/log", "w") as file:
        file.write("so far")
        file.flush()
        with tf.gfile.GFile("mem://stands/log") as reader:
            assert reader.read() == "so far"
    assert list(tf.io.gfile.walk("mem://stands")) == list(tf.gfile.Walk("mem://stands"))
    writer = tf.summary.FileWriter("mem://stands/eval")
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=2.5)]), 3)
    writer.close()
    assert read_eval_metrics("mem://stands/eval") == {3: {"loss": 2.5}}
    for path in ("mem://stands/log\0x", "mem://st\0ands"):
        for call in (tf.gfile.Exists, tf.gfile.Remove, lambda name: write(name, "x")):
            with pytest.raises(tf.errors.InvalidArgumentError, match="NUL"):
                call(path)
    with pytest.raises(tf.errors.UnimplementedError, match="get_children"):
        tf.gfile.Glob("few://h/*")
