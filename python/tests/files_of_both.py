# SPDX-License-Identifier: Apache-2.0
"""Writes, or reads, one file of every kind, by this package or by TensorFlow: the same calls for both.

  files_of_both.py (millrace|tensorflow) (write|read) FOLDER

Prints an object: what went wrong with each kind, "" where nothing did, "skipped" where the library lacks what it takes.
"""

import json
import os
import sys
import traceback

import numpy as np

W, B, R = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, -1], np.float64), np.array([7, 8, 9], np.int64)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
RECORDS = [b"", b"a", bytes(range(256)) * 300]
EXAMPLE = {"floats": [1.5, -2.0], "ints": [1 << 40, -1], "bytes": [b"", b"\xff\x00"]}
WORDS = ["zero", "one", "two"]


def model(tf):
    """(x, y) of y = x w + b; three variables of three types, one of them a resource."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w, b = tf.get_variable("w", initializer=W), tf.get_variable("scope/b", initializer=B)
    tf.get_variable("r", initializer=R, use_resource=True)
    return x, tf.add(tf.matmul(x, w), tf.cast(b, tf.float32), name="y")


def expect(got, wanted):
    """That they are the same: type, shape and bits."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape and (got == wanted).all(), (got, wanted)


def expect_answers(session, x="x:0", y="y:0"):
    np.testing.assert_allclose(session.run(y, {x: X}), X @ W + B, rtol=1e-6)


def expect_tensors(tf, prefix):
    assert sorted((n, list(s)) for n, s in tf.train.list_variables(prefix)) == [("r", [3]), ("scope/b", [2]), ("w", [3, 2])]
    for name, value in (("w", W), ("scope/b", B), ("r", R)):
        expect(tf.train.load_variable(prefix, name), value)


class Checkpoints:
    """V1 and V2, each in one file and in shards; their .meta file brings the graph and its saver."""

    def __init__(self, version, sharded):
        self.version, self.sharded = version, sharded

    def write(self, tf, path):
        model(tf)
        saver = tf.train.Saver(write_version=self.version, sharded=self.sharded)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            saver.save(session, os.path.join(path, "model"), global_step=7)

    def read(self, tf, path):
        prefix = tf.train.latest_checkpoint(path)
        assert os.path.basename(prefix).startswith("model-7"), prefix
        expect_tensors(tf, prefix)
        saver = tf.train.import_meta_graph(os.path.join(path, "model-7.meta"))
        with tf.Session() as session:
            saver.restore(session, prefix)
            expect_answers(session)
            assert session.run(tf.report_uninitialized_variables()).size == 0


class Records:
    """TFRecord files of Examples and of anything, read by the iterator and by a data set."""

    def __init__(self, compression):
        self.compression = compression

    def write(self, tf, path):
        kind = getattr(tf.python_io.TFRecordCompressionType, self.compression or "NONE")
        with tf.python_io.TFRecordWriter(os.path.join(path, "records"), tf.python_io.TFRecordOptions(kind)) as writer:
            for record in RECORDS:
                writer.write(record)
            t = tf.train
            features = {
                "floats": t.Feature(float_list=t.FloatList(value=EXAMPLE["floats"])),
                "ints": t.Feature(int64_list=t.Int64List(value=EXAMPLE["ints"])),
                "bytes": t.Feature(bytes_list=t.BytesList(value=EXAMPLE["bytes"])),
            }
            writer.write(t.Example(features=t.Features(feature=features)).SerializeToString())

    def read(self, tf, path):
        path = os.path.join(path, "records")
        kind = getattr(tf.python_io.TFRecordCompressionType, self.compression or "NONE")
        found = list(tf.python_io.tf_record_iterator(path, tf.python_io.TFRecordOptions(kind)))
        assert found[:-1] == RECORDS
        feature = tf.train.Example.FromString(found[-1]).features.feature
        assert list(feature["floats"].float_list.value) == EXAMPLE["floats"] and list(feature["ints"].int64_list.value) == EXAMPLE["ints"]
        assert list(feature["bytes"].bytes_list.value) == EXAMPLE["bytes"]
        following = tf.data.make_one_shot_iterator(tf.data.TFRecordDataset(path, self.compression)).get_next()
        parsed = tf.parse_single_example(following, {"ints": tf.FixedLenFeature([2], tf.int64)})
        with tf.Session() as session:
            assert [session.run(following) for _ in RECORDS] == RECORDS
            expect(session.run(parsed)["ints"], np.array(EXAMPLE["ints"], np.int64))


class Events:
    """Event files: scalars, histograms, pictures, texts, the graph, what a step did, the session's beginning."""

    def write(self, tf, path):
        model(tf)
        tf.summary.scalar("loss", tf.constant(0.25))
        tf.summary.histogram("weights", tf.constant(W))
        tf.summary.image("picture", tf.constant(np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)))
        tf.summary.text("note", tf.constant("# a note"))
        merged = tf.summary.merge_all()
        metadata = tf.RunMetadata()
        with tf.Session() as session, tf.summary.FileWriter(path, session.graph, filename_suffix=".end") as writer:
            summary = session.run(merged, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 0)
            for step in range(3):
                writer.add_summary(summary, step)
            writer.add_run_metadata(metadata, "step 2", 2)

    def read(self, tf, path):
        (name,) = os.listdir(path)
        assert name.startswith("events.out.tfevents.") and name.endswith(".end")
        events = list(tf.train.summary_iterator(os.path.join(path, name)))
        assert events[0].file_version == "brain.Event:2"
        (graph,) = [tf.GraphDef.FromString(e.graph_def) for e in events if e.HasField("graph_def")]
        assert {"w", "scope/b", "y", "loss"} <= {n.name for n in graph.node}
        assert sum(e.HasField("meta_graph_def") for e in events) == 1 and sum(e.HasField("session_log") for e in events) == 1
        (tagged,) = [e for e in events if e.HasField("tagged_run_metadata")]
        metadata = tf.RunMetadata.FromString(tagged.tagged_run_metadata.run_metadata)
        assert (tagged.step, tagged.tagged_run_metadata.tag) == (2, "step 2") and metadata.step_stats.dev_stats
        summaries = [e for e in events if e.HasField("summary")]
        assert [e.step for e in summaries] == [0, 1, 2]
        values = {v.tag: v for v in summaries[0].summary.value}
        assert values["loss"].simple_value == 0.25 and values["weights"].histo.num == 6 and values["weights"].histo.sum == W.sum()
        assert (values["picture/image/0"].image.width, values["picture/image/0"].image.colorspace) == (2, 3)
        assert values["picture/image/0"].image.encoded_image_string.startswith(b"\x89PNG")
        (note,) = [v for t, v in values.items() if t.startswith("note")]
        assert note.metadata.plugin_data.plugin_name == "text" and note.tensor.string_val[0] == b"# a note"


class SavedModels:
    """A SavedModel with variables, an asset that its first op reads, and a signature, in binary or text."""

    def __init__(self, as_text):
        self.as_text = as_text

    def write(self, tf, path):
        x, y = model(tf)
        asset = os.path.join(path, "words.txt")
        with open(asset, "w", encoding="utf-8") as file:
            file.write("\n".join(WORDS))
        name = tf.constant(asset, name="file_of_words")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, name)
        words = tf.get_variable("words", initializer=tf.read_file(name), validate_shape=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        builder = tf.saved_model.builder.SavedModelBuilder(os.path.join(path, "model"))
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"rows": x}, {"answers": y})
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            builder.add_meta_graph_and_variables(session, ["serve", "cpu"], {"serving_default": signature}, assets_collection=[name], main_op=words.initializer)
            builder.save(as_text=self.as_text)
        os.remove(asset)

    def read(self, tf, path):
        assert os.listdir(path) == ["model"]
        with tf.Session(graph=tf.Graph()) as session:
            loaded = tf.saved_model.loader.load(session, ["serve", "cpu"], os.path.join(path, "model"))
            signature = loaded.signature_def["serving_default"]
            assert signature.method_name == "tensorflow/serving/predict"
            expect_answers(session, signature.inputs["rows"].name, signature.outputs["answers"].name)
            assert session.run("words:0").decode().split() == WORDS


class Graphs:
    """GraphDef, by write_graph."""

    def __init__(self, as_text):
        self.as_text = as_text

    def write(self, tf, path):
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        strange = tf.constant([float("inf"), -0.0], name="strange")
        with tf.control_dependencies([tf.constant('a "word" \\ \n\xe9', name="word")]), tf.device("/cpu:0"):
            tf.add(tf.matmul(x, tf.constant(W)) + tf.constant(B.astype(np.float32)), 0 * strange[1], name="y")
        tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.constant(0)], name="loop")
        tf.train.write_graph(tf.get_default_graph(), path, "graph", as_text=self.as_text)

    def read(self, tf, path):
        graph, path = tf.GraphDef(), os.path.join(path, "graph")
        with open(path, "rb") as file:
            data = file.read()
        if self.as_text:
            text_format(tf).Parse(data.decode(), graph)
        else:
            graph.ParseFromString(data)
        tf.import_graph_def(graph, name="")
        with tf.Session() as session:
            expect_answers(session)
            expect(session.run("strange:0"), np.array([np.inf, -0.0], np.float32))
            assert session.run("word:0") == 'a "word" \\ \n\xe9'.encode()
            assert session.run("loop/Exit:0") == 5


class MetaGraphs:
    """MetaGraphDef: collections of variables, with contexts of loops, and of plain values."""

    def __init__(self, as_text):
        self.as_text = as_text

    def write(self, tf, path):
        model(tf)
        start = tf.constant([1.0, 2.0], name="start")  # a loop with an array, and its gradient, which has stacks
        _, _, kept = tf.while_loop(lambda i, a, _: i < 3, lambda i, a, t: (i + 1, a * start, t.write(i, a)), (0, start, tf.TensorArray(tf.float32, 3)))
        tf.identity(tf.gradients(kept.stack()[2], start)[0], name="slope")
        tf.add_to_collection("numbers", 3)
        tf.add_to_collection("answers", tf.get_default_graph().get_tensor_by_name("y:0"))
        tf.train.export_meta_graph(os.path.join(path, "m.meta"), as_text=self.as_text)

    def read(self, tf, path):
        tf.train.import_meta_graph(os.path.join(path, "m.meta"))
        assert [v.op.name for v in tf.trainable_variables()] == ["w", "scope/b", "r"]
        assert tf.get_collection("numbers") == [3] and [t.name for t in tf.get_collection("answers")] == ["y:0"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            expect_answers(session)
            expect(session.run(tf.trainable_variables()[2]), R)
            assert session.run("slope:0").tolist() == [3.0, 12.0]


class Safetensors:
    """Of the package `safetensors`, and of train.safetensors."""

    TENSORS = {
        "w": W,
        "b": B,
        "r": R,
        "half": W.astype(np.float16),
        "flag": np.array([True, False]),
        "none": np.zeros([0, 3], np.uint8),
        "one": np.array(5, np.int8),
    }

    def write(self, tf, path):
        functions(tf).save_file(self.TENSORS, os.path.join(path, "t.safetensors"), {"about": "a test"})

    def read(self, tf, path):
        found = functions(tf).load_file(os.path.join(path, "t.safetensors"))
        assert sorted(found) == sorted(self.TENSORS)
        for name, value in self.TENSORS.items():
            expect(found[name], value)


class RunMetadatas:
    """What a step did: StepStats, by Timeline and by the profiler of each library."""

    def write(self, tf, path):
        x, y = model(tf)
        metadata = tf.RunMetadata()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
            session.run(y, {x: X}, options=options, run_metadata=metadata)
        with open(os.path.join(path, "metadata"), "wb") as file:
            file.write(metadata.SerializeToString())

    def read(self, tf, path):
        with open(os.path.join(path, "metadata"), "rb") as file:
            metadata = tf.RunMetadata.FromString(file.read())
        named = {n.node_name: n for d in metadata.step_stats.dev_stats for n in d.node_stats}
        of_y = named["y"]
        assert any(d.device.lower().endswith("cpu:0") for d in metadata.step_stats.dev_stats)
        assert of_y.all_start_micros > 1e15 and of_y.all_end_rel_micros >= 0 and of_y.timeline_label.startswith("y = ")
        assert [d.size for d in of_y.output[0].tensor_description.shape.dim] == [4, 2]
        assert any(n.name == "y" for g in metadata.partition_graphs for n in g.node)
        events = json.loads(timeline(tf).Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))["traceEvents"]
        assert any(e["ph"] == "X" and e["args"]["name"] == "y" for e in events)
        model(tf)
        profiler = tf.profiler.Profiler(tf.get_default_graph())
        profiler.add_step(1, metadata)
        options = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.time_and_memory(min_micros=0, min_bytes=0)).with_empty_output().build()
        report = profiler.profile_name_scope(options)
        assert "y" in {child.name for child in report.children} and report.total_exec_micros > 0


def functions(tf):
    """save_file and load_file for safetensors."""
    if tf.__name__ == "millrace":
        from millrace.train import safetensors

        class Ours:
            @staticmethod
            def save_file(tensors, path, metadata):
                safetensors.save(tensors, path, metadata)

            load_file = staticmethod(safetensors.load)

        return Ours
    import safetensors.numpy

    return safetensors.numpy


def text_format(tf):
    if tf.__name__ == "millrace":
        from millrace.protos import text_format
    else:
        from google.protobuf import text_format
    return text_format


def timeline(tf):
    if tf.__name__ == "millrace":
        from millrace import timeline
    else:
        from tensorflow.python.client import timeline
    return timeline


KINDS = {
    "checkpoint_v1": Checkpoints(1, False),
    "checkpoint_v1_sharded": Checkpoints(1, True),
    "checkpoint_v2": Checkpoints(2, False),
    "checkpoint_v2_sharded": Checkpoints(2, True),
    "records": Records(""),
    "records_gzip": Records("GZIP"),
    "records_zlib": Records("ZLIB"),
    "events": Events(),
    "saved_model": SavedModels(False),
    "saved_model_text": SavedModels(True),
    "graph": Graphs(False),
    "graph_text": Graphs(True),
    "meta_graph": MetaGraphs(False),
    "meta_graph_text": MetaGraphs(True),
    "safetensors": Safetensors(),
    "run_metadata": RunMetadatas(),
}


def main():
    library, does, folder = sys.argv[1:]
    if library == "millrace":
        import millrace as tf
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
    told = {}
    for name, kind in KINDS.items():
        path = os.path.join(folder, name)
        os.makedirs(path, exist_ok=True)
        try:
            with tf.Graph().as_default():
                getattr(kind, does)(tf, path)
            told[name] = ""
        except ModuleNotFoundError as e:
            told[name] = "skipped" if e.name == "safetensors" else traceback.format_exc()
        except Exception:
            told[name] = traceback.format_exc()
    print("TOLD" + json.dumps(told))


if __name__ == "__main__":
    main()
