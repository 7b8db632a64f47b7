#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs see of a file system that a library adds: one line of JSON. files_program.py tensorflow|millrace LIBRARY"""

import json
import sys

SYSTEM, LIBRARY = sys.argv[1:3]
if SYSTEM == "tensorflow":
    import tensorflow

    tensorflow.experimental.register_filesystem_plugin(LIBRARY)
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
else:
    import millrace as tf

    tf.load_file_system_library(LIBRARY)

RESULTS = {}


def note(name, function):
    try:
        RESULTS[name] = function()
    except (tf.errors.OpError, ValueError) as error:
        RESULTS[name] = type(error).__name__


def write(path, text, mode="w"):
    with tf.gfile.GFile(path, mode) as file:
        file.write(text)


def read(path, size=-1):
    with tf.gfile.GFile(path) as file:
        return [file.size(), file.read(size), file.tell(), file.readline(), file.read()]


def files():
    note("make", lambda: tf.gfile.MakeDirs("mem://d/e/f"))
    note("write", lambda: write("mem://d/e/text", "first\nsecond\nthird"))
    note("append", lambda: write("mem://d/e/text", "\nfourth", "a"))
    note("read", lambda: read("mem://d/e/text", 4))
    note("untidy path", lambda: read("mem://d//e/./f/../text"))
    note("read missing", lambda: read("mem://d/e/missing"))
    note("write into missing", lambda: write("mem://x/y", "z"))
    note("write folder", lambda: write("mem://d/e", "z"))
    note("exists", lambda: [tf.gfile.Exists(p) for p in ("mem://d/e/text", "mem://d/e", "mem://d/q")])
    note("folders", lambda: [tf.gfile.IsDirectory(p) for p in ("mem://d/e/text", "mem://d/e", "mem://d/q")])
    note("list", lambda: sorted(tf.gfile.ListDirectory("mem://d/e")))
    note("list missing", lambda: tf.gfile.ListDirectory("mem://q"))
    note("stat", lambda: [tf.gfile.Stat("mem://d/e/text").length, tf.gfile.Stat("mem://d/e").is_directory])
    note("glob", lambda: sorted(tf.gfile.Glob("mem://d/*/t*")))
    note("copy", lambda: tf.gfile.Copy("mem://d/e/text", "mem://d/copy"))
    note("copy again", lambda: tf.gfile.Copy("mem://d/e/text", "mem://d/copy"))
    note("rename", lambda: tf.gfile.Rename("mem://d/copy", "mem://d/e/f/moved"))
    note("rename across", lambda: tf.gfile.Rename("mem://d/e/f/moved", "/tmp/nowhere/moved"))
    note("walk", lambda: [[a, sorted(b), sorted(c)] for a, b, c in tf.gfile.Walk("mem://d")])
    note("remove missing", lambda: tf.gfile.Remove("mem://d/q"))
    note("full", lambda: write("mem://d/full", "no room"))
    note("nobody's read", lambda: read("nobodys://d/x"))
    note("nobody's exists", lambda: tf.gfile.Exists("nobodys://d/x"))
    note("few", lambda: [tf.gfile.MkDir("few://h/a"), tf.gfile.MkDir("few://h/a/b")])
    note("few write", lambda: write("few://h/a/b/x", "y"))
    note("few rename", lambda: tf.gfile.Rename("few://h/a/b/x", "few://h/a/z"))
    note("few read", lambda: read("few://h/a/z"))
    note("few append", lambda: write("few://h/a/z", "y", "a"))


def graphs():
    tf.gfile.MakeDirs("mem://train")
    v = tf.Variable([1.0, 2.0], name="v")
    saver = tf.train.Saver()
    with tf.python_io.TFRecordWriter("mem://train/records") as writer:
        for record in (b"a", b"bcd"):
            writer.write(record)
    records = tf.data.make_one_shot_iterator(tf.data.TFRecordDataset("mem://train/records")).get_next()
    lines = tf.data.make_one_shot_iterator(tf.data.TextLineDataset("mem://d/e/text")).get_next()
    with tf.Session() as session:
        session.run(v.initializer)
        note("save", lambda: saver.save(session, "mem://train/model.ckpt", global_step=7))
        session.run(v.assign([5.0, 5.0]))
        note("latest", lambda: tf.train.latest_checkpoint("mem://train"))
        note("restore", lambda: saver.restore(session, "mem://train/model.ckpt-7"))
        note("restored", lambda: session.run(v).tolist())
        note("records", lambda: [session.run(records).decode() for _ in range(2)])
        note("lines", lambda: [session.run(lines).decode() for _ in range(3)])
        note("read op", lambda: session.run(tf.io.read_file("mem://d/e/text")).decode())
        note("write op", lambda: session.run(tf.io.write_file("mem://train/by/op", "x")))
        note("matching op", lambda: sorted(p.decode() for p in session.run(tf.io.matching_files("mem://train/*.index"))))
        note("export", lambda: tf.saved_model.simple_save(session, "mem://export", {"x": v}, {"y": v + 1.0}))
    with tf.Session(graph=tf.Graph()) as session:
        tf.saved_model.load(session, ["serve"], "mem://export")
        note("served", lambda: session.run("add:0").tolist())
    writer = tf.summary.FileWriter("mem://events")
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.5)]), 3)
    writer.close()
    events = ["mem://events/" + name for name in tf.gfile.ListDirectory("mem://events")]
    note("events", lambda: [[e.step, e.summary.value[0].simple_value] for e in tf.train.summary_iterator(events[0]) if e.summary.value])
    note("delete", lambda: tf.gfile.DeleteRecursively("mem://train"))
    note("deleted", lambda: [tf.gfile.Exists("mem://train/records"), tf.gfile.Exists("mem://train")])


files()
with tf.Graph().as_default():
    graphs()
print(json.dumps(RESULTS))
