# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard's own readers find in our files, and what its pages show in Chromium where that is installed.
MILLRACE_TENSORBOARD_PYTHON names a Python that has TensorBoard."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import browser
import millrace as tf

_PYTHON = os.environ.get("MILLRACE_TENSORBOARD_PYTHON") or (sys.executable if importlib.util.find_spec("tensorboard") else None)
pytestmark = pytest.mark.skipif(_PYTHON is None, reason="skipped: no tensorboard (MILLRACE_TENSORBOARD_PYTHON)")

_READ = """
import json, os, sys
import numpy as np
from google.protobuf import text_format
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, event_accumulator, plugin_event_multiplexer
from tensorboard.compat.proto import config_pb2, graph_pb2
from tensorboard.plugins import base_plugin
from tensorboard.plugins.graph import graphs_plugin
from tensorboard.plugins.projector import projector_plugin
from tensorboard.plugins.text import text_plugin

folder, told = sys.argv[1], {}
all_sizes = {name: 0 for name in ("compressedHistograms", "images", "audio", "scalars", "histograms", "tensors")}
a = event_accumulator.EventAccumulator(folder, size_guidance=all_sizes)
a.Reload()
told["tags"] = {k: sorted(v) if isinstance(v, list) else v for k, v in a.Tags().items()}
told["loss"] = [[e.step, e.value] for e in a.Scalars("loss")]
h = a.Histograms("weights")[-1].histogram_value
told["weights"] = [h.min, h.max, h.num, h.sum, h.sum_squares, sum(h.bucket), len(h.bucket) == len(h.bucket_limit)]
image = a.Images("picture/image/0")[0]
told["picture"] = [image.width, image.height, image.encoded_image_string[:8].hex()]
sound = a.Audio("sound/audio/0")[0]
told["sound"] = [sound.sample_rate, sound.length_frames, sound.content_type, sound.encoded_audio_string[:4].decode()]
told["text"] = [s.decode() for s in a.Tensors("note/text_summary")[0].tensor_proto.string_val] if "note/text_summary" in a.Tags()["tensors"] else None
told["graph"] = sorted(n.op for n in a.Graph().node)
meta = a.RunMetadata("step1")
told["devices"] = [d.device for d in meta.step_stats.dev_stats]
told["nodes"] = {n.node_name: [n.all_end_rel_micros >= 0, sum(m.total_bytes for m in n.memory), [list(d.size for d in o.tensor_description.shape.dim) for o in n.output]]
                 for d in meta.step_stats.dev_stats for n in d.node_stats}

# The plugins themselves, as the server asks them.
m = plugin_event_multiplexer.EventMultiplexer()
m.AddRunsFromDirectory(folder)
m.Reload()
provider = data_provider.MultiplexerDataProvider(m, folder)
c = base_plugin.TBContext(logdir=folder, multiplexer=m, data_provider=provider, window_title="t")
graphs = graphs_plugin.GraphsPlugin(c)
told["info"] = graphs.info_impl(context.RequestContext(), "e")
raw = graphs.graph_impl(context.RequestContext(), ".", None, False, "e")
told["served"] = sorted(n.op for n in text_format.Parse(raw[0], graph_pb2.GraphDef()).node)
stats = graphs.run_metadata_impl(context.RequestContext(), "e", ".", "step1")
told["served_devices"] = [d.device for d in text_format.Parse(stats[0], config_pb2.RunMetadata()).step_stats.dev_stats]
projector = projector_plugin.ProjectorPlugin(c)
projector._update_configs()
told["projector"] = {run: [[e.tensor_name, list(e.tensor_shape), e.metadata_path, e.sprite.image_path, list(e.sprite.single_image_dim)] for e in config.embeddings]
                     for run, config in projector._configs.items()}
print("TOLD" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A folder of event files with something for each tab."""
    folder = str(tmp_path_factory.mktemp("logs"))
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        y = tf.nn.relu(tf.matmul(x, w), name="y")
        tf.summary.scalar("loss", tf.reduce_sum(y))
        tf.summary.histogram("weights", w)
        tf.summary.image("picture", tf.reshape(tf.linspace(0.0, 1.0, 48), [1, 4, 12, 1]))
        tf.summary.audio("sound", tf.sin(tf.linspace(0.0, 99.0, 800))[tf.newaxis, :, tf.newaxis], 8000)
        tf.summary.text("note", tf.constant("# a note"))
        merged = tf.summary.merge_all()
        session.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(folder, graph)
        for step in range(3):
            metadata = tf.RunMetadata()
            summary, _ = session.run(
                [merged, y], {x: np.full([4, 3], step, np.float32)}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata
            )
            writer.add_summary(summary, step)
            writer.add_run_metadata(metadata, "step%d" % step, step)
        from millrace.contrib.tensorboard.plugins import projector

        config = projector.ProjectorConfig()
        embedding = config.embeddings.add()
        points = tf.get_variable("points", initializer=np.random.RandomState(0).rand(4, 5).astype(np.float32))
        embedding.tensor_name, embedding.metadata_path = points.name, "labels.tsv"
        embedding.tensor_path = "points.tsv"  # a TensorBoard without TensorFlow reads no checkpoints
        session.run(points.initializer)
        np.savetxt(os.path.join(folder, "points.tsv"), session.run(points), delimiter="\t")
        with open(os.path.join(folder, "sprite.png"), "wb") as sprite:  # two rows of two pictures
            sprite.write(session.run(tf.image.encode_png(tf.zeros([56, 56, 3], tf.uint8))))
        embedding.sprite.image_path = "sprite.png"
        embedding.sprite.single_image_dim.extend([28, 28])
        projector.visualize_embeddings(writer, config)
        with open(os.path.join(folder, "labels.tsv"), "w") as labels:
            labels.write("a\nb\nc\nd\n")
        writer.close()
    return folder


@pytest.fixture(scope="module")
def told(logs):
    ran = subprocess.run([_PYTHON, "-c", _READ, logs], capture_output=True, text=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    assert "TOLD" in ran.stdout, ran.stderr[-3000:]
    return json.loads(ran.stdout.split("TOLD")[1])


def test_numbers_over_time(told):
    assert told["loss"] == [[0, 0.0], [1, 60.0], [2, 120.0]]
    least, greatest, count, total, squares, in_buckets, as_many = told["weights"]
    assert (least, greatest, count, total, squares, in_buckets, as_many) == (0.0, 5.0, 6.0, 15.0, 55.0, 6.0, True)


def test_pictures_sounds_and_texts(told):
    assert told["picture"] == [12, 4, b"\x89PNG\r\n\x1a\n".hex()]
    assert told["sound"] == [8000, 800, "audio/wav", "RIFF"]
    assert any(t.startswith("note") for t in told["tags"]["tensors"]) and told["text"] in (None, ["# a note"])


def test_the_graph_with_times_memory_and_shapes(told):
    assert told["graph"] == told["served"] and {"MatMul", "Relu", "VariableV2"} <= set(told["graph"])
    assert told["tags"]["run_metadata"] == ["step0", "step1", "step2"] and told["devices"] == told["served_devices"]
    assert told["devices"][0] == "/job:localhost/replica:0/task:0/device:CPU:0"  # behind it: its threads, which are no nodes
    assert told["nodes"]["y"] == [True, 4 * 2 * 4, [[4, 2]]]  # the product is part of it
    run = told["info"]["."]
    assert run["run_graph"] and run["tags"]["step1"]["profile"]


def test_the_projector_finds_its_configuration(told):
    assert list(told["projector"].values()) == [[["points", [4, 5], "labels.tsv", "sprite.png", [28, 28]]]]


@pytest.fixture(scope="module")
def served(logs):
    """The address of a TensorBoard."""
    program = "import sys; from tensorboard.main import run_main; sys.exit(run_main())"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with subprocess.Popen([_PYTHON, "-c", program, "--logdir", logs, "--port", "0"], stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            yield next(line for line in server.stderr if " at http://" in line).split(" at ")[1].split()[0]
        finally:
            server.kill()


@pytest.mark.skipif(not browser.CHROMIUM, reason="skipped: no chromium")
def test_its_pages_show_all_of_it(served, tmp_path):
    with browser.Browser(tmp_path / "profile") as page:
        for tab, texts in (
            ("scalars", ["tag: loss"]),
            ("images", ["picture/image/0", "step"]),
            ("audio", ["sound/audio/0"]),
            ("text", ["a note"]),
            ("histograms", ["tag: weights"]),
            ("distributions", ["weights"]),
            ("graphs", ["Main Graph", "MergeSummary"]),
            ("projector", ["1 tensor found", "Points: 4", "Dimension: 5"]),
        ):
            page.go("%s#%s" % (served, tab))
            page.wait_for(*texts)
            if "MILLRACE_PICTURES" in os.environ:  # a folder: to look at them
                page.picture(os.path.join(os.environ["MILLRACE_PICTURES"], tab + ".png"))
