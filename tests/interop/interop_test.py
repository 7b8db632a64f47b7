# SPDX-License-Identifier: Apache-2.0
"""Graphs, checkpoints and event files that TensorFlow wrote are read by this library, and the other way round."""

import ctypes as C
import glob
import os
import sys
import tempfile
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

import client

v1 = tf.compat.v1
LIBRARY = None


def values(seed=0):
    r = np.random.RandomState(seed)
    return {
        "f": r.randn(3, 4).astype(np.float32),
        "d": r.randn(2),
        "h": r.randn(5).astype(np.float16),
        "i": r.randint(-9, 9, (2, 2)).astype(np.int32),
        "l": np.array(2**40, np.int64),
        "u": np.arange(7, dtype=np.uint8),
        "b": np.array([True, False]),
        "c": (r.randn(3) + 1j * r.randn(3)).astype(np.complex64),
        "s": np.array([b"", b"x", b"y" * 300], object),
        "none": np.zeros((0, 2), np.float32),
    }


class InteropTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.graph = tf.Graph()

    def path(self, name):
        return os.path.join(self.dir, name)

    def check_same(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)

    def tf_save(self, prefix, tensors, op, **kwargs):
        with self.graph.as_default(), v1.Session() as session:
            names = list(tensors)
            consts = [tf.constant(tensors[n]) for n in names]
            session.run(op(prefix, names, consts, **kwargs))

    def tf_load(self, prefix):
        reader = tf.train.load_checkpoint(prefix)
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    # Checkpoints.

    def test_reads_their_v2(self):
        want = values()
        self.tf_save(self.path("ck"), want, lambda p, n, c: tf.raw_ops.SaveV2(prefix=p, tensor_names=n, shape_and_slices=[""] * len(n), tensors=c))
        self.check_same(client.Checkpoint(LIBRARY, self.path("ck")), want)

    def test_reads_their_v1(self):
        want = {k: v for k, v in values().items() if k != "none"}
        self.tf_save(self.path("ck"), want, lambda p, n, c: tf.raw_ops.Save(filename=p, tensor_names=n, data=c))
        self.check_same(client.Checkpoint(LIBRARY, self.path("ck")), want)

    def test_reads_their_v1_slices_of_two_files(self):
        whole = np.arange(24, dtype=np.float32).reshape(6, 4)
        for i, (spec, part) in enumerate([("6 4 0,2:-", whole[:2]), ("6 4 2,4:-", whole[2:])]):
            self.tf_save(
                self.path(f"ck-{i:05d}-of-00002"),
                {"v": part},
                lambda p, n, c, s: tf.raw_ops.SaveSlices(filename=p, tensor_names=n, shapes_and_slices=[s], data=c),
                s=spec,
            )
        self.check_same(client.Checkpoint(LIBRARY, self.path("ck-?????-of-00002")), {"v": whole})

    def test_reads_their_merged_slices(self):
        whole = np.arange(24, dtype=np.float32).reshape(6, 4)
        for i, (spec, part) in enumerate([("6 4 0,2:-", whole[:2]), ("6 4 2,4:-", whole[2:])]):
            self.tf_save(
                self.path(f"t/part-{i}"), {"v": part}, lambda p, n, c, s: tf.raw_ops.SaveV2(prefix=p, tensor_names=n, shape_and_slices=[s], tensors=c), s=spec
            )
        with tf.Graph().as_default(), v1.Session() as session:
            session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[self.path("t/part-0"), self.path("t/part-1")], destination_prefix=self.path("ck")))
        self.check_same(client.Checkpoint(LIBRARY, self.path("ck")), {"v": whole})

    def test_reads_their_object_checkpoints(self):
        # Another process, because this one runs graphs.
        script = "import sys, tensorflow as tf; a = tf.Variable([1., 2.]); tf.train.Checkpoint(a=a).write(sys.argv[1])"
        import subprocess

        subprocess.run([sys.executable, "-c", script, self.path("ck")], check=True, stderr=subprocess.DEVNULL)
        got = client.Checkpoint(LIBRARY, self.path("ck"))
        np.testing.assert_array_equal(got["a/.ATTRIBUTES/VARIABLE_VALUE"], [1, 2])
        self.assertIn("_CHECKPOINTABLE_OBJECT_GRAPH", got)

    def test_they_read_ours(self):
        want = values(1)
        with self.graph.as_default():
            names = list(want)
            holders = [v1.placeholder(tf.as_dtype(tf.constant(v).dtype), v.shape) for v in want.values()]
            save = tf.raw_ops.SaveV2(prefix=self.path("ck"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=holders)
        session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        session.run({h.name: v for h, v in zip(holders, want.values())}, targets=[save.name])
        self.check_same(self.tf_load(self.path("ck")), want)
        # Over itself: the data file has another name then.
        session.run({h.name: v for h, v in zip(holders, want.values())}, targets=[save.name])
        self.check_same(self.tf_load(self.path("ck")), want)

    def test_their_saver_graph_runs_here(self):
        with self.graph.as_default():
            v1.get_variable("a", [2], initializer=v1.ones_initializer(), use_resource=False)
            v1.get_variable("b", [6, 2], initializer=v1.random_normal_initializer(seed=1), use_resource=True, partitioner=v1.fixed_size_partitioner(3))
            sharded = v1.train.Saver(sharded=True)
            saver = v1.train.Saver()
            init = v1.global_variables_initializer()
            with v1.Session() as theirs:
                theirs.run(init)
                sharded.save(theirs, self.path("m"), global_step=7)
                want = self.tf_load(self.path("m-7"))
        session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        self.check_same(client.Checkpoint(LIBRARY, self.path("m-7")), want)
        session.run({saver.saver_def.filename_tensor_name: self.path("m-7")}, targets=[saver.saver_def.restore_op_name])
        session.run({saver.saver_def.filename_tensor_name: self.path("n")}, [saver.saver_def.save_tensor_name])
        self.check_same(self.tf_load(self.path("n")), want)

    def test_our_saver(self):
        with self.graph.as_default():
            a = v1.get_variable("a", [2], initializer=v1.ones_initializer(), use_resource=False)
            b = v1.get_variable("b", [3], initializer=v1.constant_initializer(4.0), use_resource=True)
            init = v1.global_variables_initializer().name
        session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        saver = LIBRARY.call("MR_SaverCreate", session.graph, None, None, 0, 2)
        session.run(targets=[init])
        for step in range(4):
            LIBRARY.call("MR_SaverSave", saver, session.session, self.path("m").encode(), C.c_int64(step), C.c_ubyte(1), None)
        self.assertEqual(tf.train.latest_checkpoint(self.dir), self.path("m-3"))
        self.assertEqual(LIBRARY.bytes_from("MR_LatestCheckpoint", self.dir.encode()).decode(), self.path("m-3"))
        self.assertEqual(sorted(os.path.basename(p) for p in glob.glob(self.path("m-*.index"))), ["m-2.index", "m-3.index"])
        self.assertEqual(len(os.listdir(self.dir)), 7)
        self.check_same(self.tf_load(self.path("m-3")), {"a": np.ones(2), "b": np.full(3, 4.0)})
        # Their Saver finds ours in the .meta file.
        with tf.Graph().as_default(), v1.Session() as theirs:
            v1.train.import_meta_graph(self.path("m-3.meta")).restore(theirs, self.path("m-3"))
            np.testing.assert_array_equal(theirs.run("a:0"), np.ones(2))
        # And a fresh session of ours restores.
        again = client.Session(LIBRARY, session.graph_def())
        other = LIBRARY.call("MR_SaverFromDef", again.graph, *self.saver_def(saver), 5)
        LIBRARY.call("MR_SaverRestore", other, again.session, self.path("m-3").encode())
        np.testing.assert_array_equal(again.run(fetches=[b.name.replace("b:0", "b/Read/ReadVariableOp:0")])[0], np.full(3, 4.0))
        np.testing.assert_array_equal(again.run(fetches=["a/read:0"])[0], np.ones(2))
        with self.assertRaises(client.Error) as missing:
            LIBRARY.call("MR_SaverRestore", other, again.session, self.path("m-0").encode())
        self.assertEqual(missing.exception.code, 5)
        LIBRARY.lib.MR_SaverDelete(C.c_void_p(saver))
        LIBRARY.lib.MR_SaverDelete(C.c_void_p(other))
        del a

    def saver_def(self, saver):
        encoded = LIBRARY.bytes_from("MR_SaverToDef", saver)
        return encoded, C.c_size_t(len(encoded))

    # Graphs.

    def test_graphs_cross(self):
        with self.graph.as_default():
            x = v1.placeholder(tf.float32, [None, 3], "x")
            y = tf.nn.softmax(tf.matmul(x, tf.constant(np.eye(3, 4, dtype=np.float32))) + 1.0, name="y")
            session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        back = v1.GraphDef.FromString(session.graph_def())
        feed = np.random.RandomState(0).randn(5, 3).astype(np.float32)
        with tf.Graph().as_default(), v1.Session() as theirs:
            tf.import_graph_def(back, name="")
            want = theirs.run("y:0", {"x:0": feed})
        np.testing.assert_allclose(session.run({"x:0": feed}, ["y:0"])[0], want, rtol=1e-5)
        del y

    # Event files and summaries.

    def summaries(self):
        with self.graph.as_default():
            r = np.random.RandomState(2)
            v1.summary.scalar("loss", tf.constant(0.25))
            v1.summary.histogram("w", tf.constant(r.randn(100).astype(np.float32)))
            signed = r.randn(2, 5, 4, 3).astype(np.float32)
            signed[0, 1, 2, 0] = np.nan
            v1.summary.image("signed", tf.constant(signed))
            v1.summary.image("half", tf.constant(r.rand(1, 5, 4, 4).astype(np.float16)), max_outputs=1)
            v1.summary.image("bytes", tf.constant(r.randint(0, 255, (1, 5, 4, 1)).astype(np.uint8)))
            return v1.summary.merge_all()

    def test_summaries_are_equal(self):
        merged = self.summaries()
        with v1.Session(graph=self.graph) as theirs:
            want = v1.Summary.FromString(theirs.run(merged))
        session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        got = v1.Summary.FromString(session.run(fetches=[merged.name])[0].item())
        self.assertEqual([v.tag for v in got.value], [v.tag for v in want.value])
        with tf.Graph().as_default(), v1.Session() as decoder:
            png = v1.placeholder(tf.string)
            pixels = tf.io.decode_png(png)
            for g, w in zip(got.value, want.value):
                if w.HasField("image"):
                    np.testing.assert_array_equal(
                        decoder.run(pixels, {png: g.image.encoded_image_string}), decoder.run(pixels, {png: w.image.encoded_image_string}), w.tag
                    )
                    g.image.encoded_image_string = w.image.encoded_image_string = b""
                self.assertEqual(g, w)

    def test_they_read_our_events(self):
        merged = self.summaries()
        session = client.Session(LIBRARY, self.graph.as_graph_def().SerializeToString())
        summary = session.run(fetches=[merged.name])[0].item()
        writer = LIBRARY.call("MR_EventWriterOpen", self.path("logs").encode(), None)
        path = LIBRARY.lib.MR_EventWriterPath(C.c_void_p(writer)).decode()
        LIBRARY.call("MR_EventWriterAddGraph", writer, session.graph)
        for step in range(3):
            LIBRARY.call("MR_EventWriterAddSummary", writer, summary, C.c_size_t(len(summary)), C.c_int64(step))
        LIBRARY.call("MR_EventWriterClose", writer)
        events = list(v1.train.summary_iterator(path))
        self.assertEqual(events[0].file_version, "brain.Event:2")
        self.assertEqual(v1.GraphDef.FromString(events[1].graph_def).node[0].op, "Const")
        self.assertEqual([e.step for e in events[2:]], [0, 1, 2])
        self.assertEqual(events[2].summary, v1.Summary.FromString(summary))
        self.read_with_tensorboard(self.path("logs"))

    def read_with_tensorboard(self, folder):
        try:
            from tensorboard.backend.event_processing import event_accumulator
        except ImportError:
            return
        accumulator = event_accumulator.EventAccumulator(folder)
        accumulator.Reload()
        self.assertEqual([e.value for e in accumulator.Scalars("loss")], [0.25] * 3)
        self.assertEqual(len(accumulator.Histograms("w")), 3)
        self.assertEqual(len(accumulator.Images("half/image")), 3)


if __name__ == "__main__":
    v1.disable_eager_execution()
    LIBRARY = client.Library(sys.argv.pop(1))
    unittest.main(verbosity=2)
