# SPDX-License-Identifier: Apache-2.0
"""Savers with max_to_keep, meta graphs, frozen graphs, and event files that are read back."""
import glob
import os
import tempfile
import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
x = tf.placeholder(tf.float32, [None, 2], name="x")
with tf.name_scope("layer"):
    w = tf.Variable(tf.constant([[1.0], [2.0]]), name="w")
    b = tf.Variable([0.5], name="b")
    y = tf.add(tf.matmul(x, w), b, name="y")
counter = tf.Variable(0, name="counter", trainable=False)
bump = tf.assign_add(counter, 1)
tf.summary.scalar("average", tf.reduce_mean(y))
tf.summary.histogram("w", w)
merged = tf.summary.merge_all()
tf.add_to_collection("outputs", y)
saver = tf.train.Saver(max_to_keep=2)
print([v.name for v in tf.global_variables()], w.op.type in ("VariableV2", "Variable"))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    writer = tf.summary.FileWriter(os.path.join(folder, "logs"), sess.graph)
    for step in range(5):
        sess.run(bump)
        writer.add_summary(sess.run(merged, {x: [[1, step]]}), step)
        saver.save(sess, os.path.join(folder, "model"), global_step=step)
    writer.close()
    print([os.path.basename(p) for p in saver.last_checkpoints])
    frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph.as_graph_def(), ["layer/y"])
    with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "wb") as f:
        f.write(frozen.SerializeToString())
    tf.train.write_graph(sess.graph_def, folder, "graph.pbtxt", as_text=True)
print(sorted(os.path.basename(p) for p in glob.glob(os.path.join(folder, "model-*.index"))))
print(open(os.path.join(folder, "checkpoint")).read().count("all_model_checkpoint_paths"))
state = tf.train.get_checkpoint_state(folder)
print(os.path.basename(state.model_checkpoint_path), os.path.basename(tf.train.latest_checkpoint(folder)))
reader = tf.train.NewCheckpointReader(state.model_checkpoint_path)
print(sorted(reader.get_variable_to_shape_map().items()), reader.get_tensor("counter"), reader.has_tensor("nothing"))

tf.reset_default_graph()
loader = tf.train.import_meta_graph(state.model_checkpoint_path + ".meta")
with tf.Session() as sess:
    loader.restore(sess, state.model_checkpoint_path)
    graph = tf.get_default_graph()
    print(sess.run(graph.get_tensor_by_name("layer/y:0"), {"x:0": [[1, 1]]}).tolist(), sess.run("counter:0"))
    print([t.name for t in tf.get_collection("outputs")], [v.name for v in tf.trainable_variables()])

with tf.Graph().as_default() as graph:
    graph_def = tf.GraphDef()
    with tf.gfile.FastGFile(os.path.join(folder, "frozen.pb"), "rb") as f:
        graph_def.ParseFromString(f.read())
    print(sorted(n.name for n in graph_def.node if n.op != "Identity"))
    doubled = tf.constant([[2.0, 2.0]])
    out, = tf.import_graph_def(graph_def, input_map={"x": doubled}, return_elements=["layer/y:0"], name="frozen")
    with tf.Session(graph=graph) as sess:
        print(out.name, sess.run(out).tolist())
        try:
            sess.run("nothing:0")
        except (KeyError, ValueError) as e:
            print(type(e).__name__)
steps = []
for path in glob.glob(os.path.join(folder, "logs", "events*")):
    for event in tf.train.summary_iterator(path):
        for value in event.summary.value:
            if value.tag == "average":
                steps.append((event.step, value.simple_value))
            elif value.HasField("histo") and event.step == 0:
                print(value.tag, value.histo.num, value.histo.max)
print(steps)
