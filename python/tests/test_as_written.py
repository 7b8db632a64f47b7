# SPDX-License-Identifier: Apache-2.0
"""What programs of 2015 to 2018 do, as they wrote it, where a stricter system stops them."""

import gzip
import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest

import millrace as tf


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def run_program(folder, text, *arguments):
    (folder / "program.py").write_text(text)
    path = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
    return subprocess.run(
        [sys.executable, "-m", "millrace.compat", *arguments, "program.py"],
        cwd=folder,
        text=True,
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_names_that_python_has_dropped(tmp_path):
    text = """import base64, collections, inspect, os, threading, time
print(isinstance({}, collections.Mapping), inspect.getargspec(lambda a, b=1: 0).args, threading.Thread().isAlive())
print(time.clock() >= 0, base64.decodestring(base64.encodestring(b'x')), os.errno.EEXIST)
import urllib
print(urllib.request.pathname2url("a b"))
"""
    made = run_program(tmp_path, text)
    assert (made.returncode, made.stdout) == (0, "True ['a', 'b'] False\nTrue b'x' 17\na%20b\n"), made.stderr
    assert run_program(tmp_path, text, "--numpy-as-is").returncode != 0


def test_numbers_print_as_they_did(tmp_path):
    made = run_program(tmp_path, "import numpy as np\nimport tensorflow as tf\nprint(tf.Session().run([tf.constant(0.5), tf.constant(2)]))\n")
    assert made.stdout == "[0.5, 2]\n", made.stderr


def test_rows_of_different_lengths_are_saved(tmp_path):
    made = run_program(tmp_path, "import numpy as np\nimport tensorflow as tf\nnp.save('a.npy', [np.ones(2), [1.0, 2.0, 3.0]])\n")
    assert made.returncode == 0, made.stderr
    assert [len(row) for row in np.load(tmp_path / "a.npy", allow_pickle=True)] == [2, 3]


def test_grids_are_lists_and_numpy_has_math(tmp_path):
    made = run_program(tmp_path, "import numpy as np\nprint(type(np.meshgrid([1], [2])), np.math.gamma(4.0))\n")
    assert made.stdout.split("\n")[0] == "<class 'list'> 6.0", made.stderr


def test_numpy_lib_has_functions(tmp_path):
    made = run_program(tmp_path, "import numpy as np\nprint(np.lib.pad([3], [1, 2], 'constant'), np.lib.median([1, 2, 6]), hasattr(np.lib, 'add'))\n")
    assert (made.returncode, made.stdout) == (0, "[0 3 0 0] 2.0 False\n"), made.stderr


def test_kinds_of_numbers_by_the_types_of_python(tmp_path):
    text = """import numpy as np
print([bool(np.issubdtype(a, b)) for a, b in [(np.float32, float), (np.dtype('int32'), np.int), ('complex64', complex), (np.float64, np.float)]])
print([np.issubdtype(a, b) for a, b in [(np.uint8, int), (np.int32, float), (np.float32, np.float64), (np.float32, np.dtype(float))]])
"""
    made = run_program(tmp_path, text)
    assert (made.returncode, made.stdout) == (0, "[True, True, True, True]\n[False, False, False, False]\n"), made.stderr


def test_meta_graph_of_the_same_graph(sess, tmp_path):
    total = tf.Variable([1.0], name="a") + tf.Variable([2.0], name="b")
    sess.run(tf.global_variables_initializer())
    tf.train.Saver().save(sess, str(tmp_path / "model"))
    before = [op.name for op in sess.graph.get_operations()]
    saver = tf.train.import_meta_graph(str(tmp_path / "model.meta"))
    after = [op.name for op in sess.graph.get_operations()]
    assert after[: len(before)] == before and {"a_1", "a/Assign_1", "add_1"} <= set(after)
    with tf.Session() as other:
        saver.restore(other, str(tmp_path / "model"))
        assert other.run(total).tolist() == [3] and other.run("add:0").tolist() == [3]


def test_import_twice_without_a_scope(sess):
    with tf.Graph().as_default() as graph:
        tf.add(tf.constant(1, name="one"), 2, name="sum")
    for _ in range(2):
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert sess.graph.get_operation_by_name("sum_1").inputs[0].name == "one_1:0"
    assert sess.run("sum_1:0") == 3


def test_labels_of_more_dimensions_than_logits(sess):
    logits = tf.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    labels = np.eye(3, dtype=np.float32)[[1, 2]]
    expected = sess.run(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    got = tf.nn.softmax_cross_entropy_with_logits(labels=labels[:, np.newaxis], logits=logits)
    assert got.shape.as_list() == [2] and sess.run(got).tolist() == expected.tolist()


def test_weighted_moments_take_counts(sess):
    mean, variance = sess.run(tf.nn.weighted_moments(tf.constant([1.0, 2.0, 4.0]), [0], tf.constant([1, 1, 2])))
    assert (mean, variance) == (2.75, 1.6875)


def test_placement_names_the_nodes_of_the_program(tmp_path):
    made = run_program(
        tmp_path,
        "import tensorflow as tf\nwith tf.Session(config=tf.ConfigProto(log_device_placement=True)) as s:\n"
        "    s.run(tf.negative(tf.constant([1.0], name='start'), name='turned'))\n",
    )
    assert "turned: (Neg): /job:localhost/replica:0/task:0/device:CPU:0" in made.stderr and "start: (Const): " in made.stderr


def test_saving_makes_the_last_folder(sess, tmp_path):
    variable = tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    assert saver._var_list == [variable]
    sess.run(tf.global_variables_initializer())
    assert os.path.exists(saver.save(sess, str(tmp_path / "made" / "model")) + ".index")
    (tmp_path / "file").write_text("")
    for folder in ("not/made", "file"):
        with pytest.raises(ValueError, match="Parent directory"):
            saver.save(sess, str(tmp_path / folder / "model"))


def test_queue_runners_of_a_program_without_queues(sess):
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    assert threads == [] and not coord.should_stop()
    coord.request_stop()
    coord.join(threads)
    with tf.Graph().as_default():
        tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, Runner())
        assert tf.train.start_queue_runners(tf.Session(), coord, daemon=False) == [(coord, False, True)]


class Runner:
    """Answers with what it was asked."""

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        return [(coord, daemon, start)]


def test_a_saver_in_a_session_on_another_graph(sess, tmp_path):
    tf.Variable([3, 3], name="A")
    saver = tf.train.Saver()
    sess.run(tf.global_variables_initializer())
    first = saver.save(sess, str(tmp_path / "first"))
    with tf.Graph().as_default(), tf.Session() as other:
        tf.constant(1)
        with pytest.raises(TypeError, match="'save/Const:0'.*test_as_written"):
            saver.restore(other, first)
        tf.train.import_meta_graph(first + ".meta")
        saver.restore(other, first)
        assert other.run("A:0").tolist() == [3, 3]
        second = saver.save(other, str(tmp_path / "second"))
        assert saver.last_checkpoints == [first, second] and tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths == [first, second]
        assert [n.name for n in tf.train.import_meta_graph(second + ".meta") and other.graph.as_graph_def().node if n.name.startswith("A")]


def test_statistics_in_two_steps(sess):
    x = tf.placeholder(tf.float32, [None, 2])
    for shift in (None, tf.constant([1.0, 2.0])):
        moments = tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x, [0], shift=shift))
        mean, variance = sess.run(moments, {x: [[1, 2], [3, 6], [5, 10]]})
        assert mean.tolist() == [3, 6] and np.allclose(variance, [8 / 3, 32 / 3])
    count = tf.nn.sufficient_statistics(tf.zeros([4, 5]), [0, 1], keep_dims=True)[0]
    assert sess.run(count) == 20


def test_arguments_of_layers():
    from millrace.layers import utils

    assert utils.normalize_tuple(3, 2, "size") == (3, 3) and utils.normalize_tuple([1, 2], 2, "size") == (1, 2)
    with pytest.raises(ValueError, match="`size` argument must be a tuple of 2 integers"):
        utils.normalize_tuple([1, 2, 3], 2, "size")
    assert [utils.conv_output_length(7, 3, p, 2) for p in ("same", "valid", "full")] == [4, 3, 5]
    assert [utils.deconv_output_length(4, 3, p, 2) for p in ("same", "valid", "full")] == [8, 9, 5]
    assert utils.conv_input_length(3, 3, "valid", 2) == 7 and utils.convert_data_format("channels_first", 4) == "NCHW"


def test_measures_with_predictions_first(sess):
    value, update = tf.contrib.metrics.streaming_accuracy(tf.constant([1, 2, 3, 4]), tf.constant([1, 2, 0, 4]))
    sess.run(tf.local_variables_initializer())
    assert sess.run(update) == 0.75 and sess.run(value) == 0.75
    assert sess.run(tf.contrib.metrics.accuracy(tf.constant([1, 2]), tf.constant([1, 0]))) == 0.5
    assert sess.run(tf.contrib.metrics.confusion_matrix([0, 1, 1], [0, 1, 0])).tolist() == [[1, 0], [1, 1]]
    values, updates = tf.contrib.metrics.aggregate_metric_map({"recall": tf.contrib.metrics.streaming_recall(tf.constant([1.0, 0.0]), tf.constant([1.0, 1.0]))})
    sess.run(tf.local_variables_initializer())
    assert sess.run(updates["recall"]) == 0.5 == sess.run(values["recall"])


def test_the_size_of_a_model(sess, capsys):
    tf.Variable(tf.zeros([2, 3]), name="w")
    assert tf.contrib.slim.model_analyzer.analyze_vars(tf.global_variables(), print_info=True) == (6, 24)
    assert "w:0 (float32_ref 2x3) [6, bytes: 24]" in capsys.readouterr().out


def test_tables_from_files(tmp_path):
    base = tf.contrib.learn.datasets.base
    (tmp_path / "head.csv").write_text("2,2,setosa,other\n1.5,2,0\n3,4,1\n")
    made = base.load_csv_with_header(str(tmp_path / "head.csv"), np.int32, np.float32)
    assert made.data.tolist() == [[1.5, 2], [3, 4]] and made.target.tolist() == [0, 1] and made.data.dtype == np.float32
    (tmp_path / "plain.csv").write_text("0,1.5,2\n1,3,4\n")
    assert base.load_csv_without_header(str(tmp_path / "plain.csv"), np.int32, np.float32, target_column=0).target.tolist() == [0, 1]
    assert base.maybe_download("plain.csv", str(tmp_path), "file:///nowhere") == str(tmp_path / "plain.csv")
    assert base.maybe_download("copy.csv", str(tmp_path / "made"), "file://%s/plain.csv" % tmp_path).endswith("made/copy.csv")


def test_arrays_of_one_element_as_counts(tmp_path):
    made = run_program(
        tmp_path,
        "import numpy as np\nn = np.frombuffer(b'\\0\\0\\0\\3', '>u4')\nprint(list(range(n)), [5, 6, 7, 8][n], b'abcdef'[:n])\n"
        "print(np.arange(4)[n], np.zeros(n))\ntry:\n    [1][np.array([1, 2])]\nexcept TypeError as e:\n    print(e)\n",
    )
    assert made.stdout == ("[0, 1, 2] 8 b'abc'\n[3] [0. 0. 0.]\nonly integer scalar arrays can be converted to a scalar index\n"), made.stderr


def test_first_names_of_arguments_of_layers(sess):
    image = tf.ones([1, 2, 2, 3])
    conv = tf.contrib.layers.convolution2d(image, num_output_channels=4, kernel_size=(1, 1), weight_init=tf.constant_initializer(-1.0), stride=(1, 1))
    dense = tf.contrib.layers.fully_connected(
        tf.ones([1, 2]), num_output_units=2, weight_init=tf.constant_initializer(-1.0), bias_init=tf.constant_initializer(0.5), name="first"
    )
    sess.run(tf.global_variables_initializer())
    assert sess.run(conv)[0, 0, 0].tolist() == [-3] * 4 and sess.run(dense).tolist() == [[-1.5, -1.5]] and dense.op.name.startswith("first")


def test_what_cannot_be_placed_is_named_as_in_the_program(tmp_path):
    made = run_program(
        tmp_path, "import tensorflow as tf\nwith tf.device('/gpu:1'):\n    total = tf.constant([1.0], name='one') + 1.0\ntf.Session().run(total)\n"
    )
    assert "Cannot assign a device for node 'add' (folded) at " in made.stderr and "program.py:3: no device matches '/device:GPU:1'" in made.stderr
    assert "allow_soft_placement" in made.stderr


def test_data_sets_of_keras(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".keras" / "datasets"
    (folder / "fashion-mnist").mkdir(parents=True)
    np.savez(folder / "mnist.npz", x_train=np.zeros([3, 28, 28], np.uint8), y_train=[1, 2, 3], x_test=np.ones([2, 28, 28], np.uint8), y_test=[4, 5])
    (x, y), (u, v) = tf.keras.datasets.mnist.load_data()
    assert x.shape == (3, 28, 28) and y.tolist() == [1, 2, 3] and u.sum() == 2 * 28 * 28 and v.tolist() == [4, 5]
    for part, n in (("train", 3), ("t10k", 2)):
        with gzip.open(folder / "fashion-mnist" / (part + "-images-idx3-ubyte.gz"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, n, 2, 2) + bytes(range(4 * n)))
        with gzip.open(folder / "fashion-mnist" / (part + "-labels-idx1-ubyte.gz"), "wb") as file:
            file.write(struct.pack(">II", 2049, n) + bytes(range(n)))
    (x, y), (u, v) = tf.keras.datasets.fashion_mnist.load_data()
    assert x[2].tolist() == [[8, 9], [10, 11]] and y.tolist() == [0, 1, 2] and u.shape == (2, 2, 2) and v.tolist() == [0, 1]
    with tarfile.open(folder / "cifar-10-batches-py.tar.gz", "w:gz") as tar:
        for name, label in (("data_batch_2", 2), ("data_batch_1", 1), ("test_batch", 0)):
            data = pickle.dumps({b"data": np.full([1, 3072], label, np.uint8), b"labels": [label]})
            info = tarfile.TarInfo("cifar-10-batches-py/" + name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    (x, y), (u, v) = tf.keras.datasets.cifar10.load_data()
    assert x.shape == (2, 32, 32, 3) and y.tolist() == [[1], [2]] and u.shape == (1, 32, 32, 3) and v.tolist() == [[0]]
    np.savez(folder / "boston_housing.npz", x=np.arange(20.0).reshape(10, 2), y=np.arange(10.0))
    (x, y), (u, v) = tf.keras.datasets.boston_housing.load_data()
    assert x.shape == (8, 2) and len(v) == 2 and (x[:, 0] == 2 * y).all()


def test_tensors_print_as_they_did(sess):
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, name="X")
    assert str(x) == 'Tensor("X:0", dtype=float32, device=/device:CPU:0)' and repr(x) == "<tf.Tensor 'X:0' shape=<unknown> dtype=float32>"
    assert str(tf.placeholder(tf.int32, [None, 2], name="Y")) == 'Tensor("Y:0", shape=(?, 2), dtype=int32)'


def test_folders_of_contrib_as_attributes():
    assert tf.contrib.learn.python.learn.datasets.base.maybe_download is tf.contrib.learn.datasets.base.maybe_download
    with pytest.raises(AttributeError, match="tf.contrib.learn.nothing is not provided"):
        tf.contrib.learn.nothing


@pytest.mark.parametrize("metric", ["cosine", "squared_euclidean"])
@pytest.mark.parametrize("mini_batch", [False, True])
def test_clusters(metric, mini_batch):
    from millrace.contrib.factorization import KMeans

    centres = np.array([[0, 5], [5, 0], [5, 5]], np.float32)
    data = np.repeat(centres, 40, 0) + np.random.RandomState(0).randn(120, 2).astype(np.float32) * 0.1
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        _, nearest, scores, ready, init, train = KMeans(x, 3, "kmeans_plus_plus", metric, mini_batch, random_seed=1).training_graph()
        session.run(tf.global_variables_initializer())
        assert not session.run(ready)
        session.run(init, {x: data})
        for _ in range(20):
            session.run(train, {x: data})
        ids, distances, done = session.run([nearest[0], scores[0], ready], {x: data})
    assert done and sorted(np.bincount(ids)) == [40, 40, 40] and all(len(set(ids[i : i + 40])) == 1 for i in (0, 40, 80)) and distances.max() < 0.2


def test_an_optimizer_outside_the_graph(sess):
    pytest.importorskip("scipy")
    a, b = tf.Variable([7.0, 7.0], use_resource=True), tf.Variable(3.0)
    loss = tf.reduce_sum(tf.square(a - [1.0, 2.0])) + tf.square(b + 1.0)
    seen = []
    sess.run(tf.global_variables_initializer())
    tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100}).minimize(sess, fetches=[loss], loss_callback=seen.append)
    assert np.allclose(sess.run(a), [1, 2], atol=1e-4) and np.allclose(sess.run(b), -1, atol=1e-4) and seen[0] == 77 and seen[-1] < 1e-6
    tf.contrib.opt.ScipyOptimizerInterface(loss, var_list=[a], inequalities=[a[0] - 1.5]).minimize(sess)
    assert np.allclose(sess.run(a), [1.5, 2], atol=1e-4)
    tf.contrib.opt.ScipyOptimizerInterface(loss, var_list=[a], var_to_bounds={a: (-np.inf, 1.25)}).minimize(sess)
    assert np.allclose(sess.run(a), [1, 1.25], atol=1e-4)


def test_tools(sess, tmp_path, capsys):
    from millrace.tools import freeze_graph, inspect_checkpoint

    x = tf.placeholder(tf.float32, [2], name="x")
    tf.multiply(x, tf.Variable([2.0, 3.0], name="w"), name="y")
    saver = tf.train.Saver()
    sess.run(tf.global_variables_initializer())
    path = saver.save(sess, str(tmp_path / "model"))
    inspect_checkpoint.print_tensors_in_checkpoint_file(path, "", all_tensors=True)
    inspect_checkpoint.print_tensors_in_checkpoint_file(path, "")
    out = capsys.readouterr().out
    assert "tensor_name:  w\n[2. 3.]\n" in out and "w (DT_FLOAT) [2]" in out
    tf.train.write_graph(sess.graph, str(tmp_path), "graph.pbtxt")
    freeze_graph.freeze_graph(str(tmp_path / "graph.pbtxt"), "", False, path, "y", "save/restore_all", "save/Const:0", str(tmp_path / "frozen.pb"), True, "")
    frozen = tf.GraphDef.FromString((tmp_path / "frozen.pb").read_bytes())
    with tf.Graph().as_default(), tf.Session() as other:
        (y,) = tf.import_graph_def(frozen, return_elements=["y:0"])
        assert other.run(y, {"import/x:0": [1, 1]}).tolist() == [2, 3] and not any(n.op.startswith("Variable") for n in frozen.node)
    frozen = freeze_graph.freeze_graph("", "", True, path, "y", input_meta_graph=path + ".meta")
    assert frozen.SerializeToString() == (tmp_path / "frozen.pb").read_bytes()
    bare = tf.GraphDef()  # without the saver's nodes
    bare.node.extend([n for n in sess.graph.as_graph_def().node if not n.name.startswith("save")])
    assert freeze_graph.freeze_graph_with_def_protos(bare, None, path, "y", "save/restore_all", "save/Const:0", "", True, "").node == frozen.node
    with pytest.raises(ValueError, match="doesn't exist.*test_as_written"):
        freeze_graph.freeze_graph(str(tmp_path / "graph.pbtxt"), "", False, path + "x", "y")


def test_benchmarks(sess, capsys):
    class Adding(tf.test.Benchmark):
        def benchmark_add(self):
            return self.run_op_benchmark(sess, tf.constant(1) + 1, min_iters=4, burn_iters=1, name="add", extras={"kind": "int"}, mbs=2.0)

    made = Adding().benchmark_add()
    assert made["iters"] == 4 and 0 < made["wall_time"] < 60 and made["extras"]["wall_time_max"] >= made["wall_time"] and made["throughput"] > 0
    assert 'entry {\n  name: "Adding.add"\n  iters: 4\n  wall_time: ' in capsys.readouterr().out
    assert tf.test.Benchmark.is_abstract() and not Adding.is_abstract()
    Adding().report_benchmark(name="n", metrics=[{"name": "a", "value": 0, "min_value": 1}, {"name": "b", "value": 90, "min_value": 0, "max_value": 95}])
    assert capsys.readouterr().out == (
        'entry {\n  name: "Adding.n"\n  metrics {\n    name: "a"\n    min_value {\n      value: 1.0\n    }\n  }\n  metrics {\n    name: "b"\n    value: 90.0\n'
        "    min_value {\n    }\n    max_value {\n      value: 95.0\n    }\n  }\n}\n\n"
    )
    for wrong in ({"value": 1}, {"name": "a"}, {"name": "a", "value": 1, "most": 2}):
        with pytest.raises(TypeError, match="a metric"):
            Adding().report_benchmark(metrics=[wrong])
    assert tf.test.benchmark_config().graph_options.rewrite_options.dependency_optimization == 2


def test_benchmarks_of_a_program(tmp_path):
    made = run_program(
        tmp_path,
        """
import tensorflow as tf
class Some(tf.test.Benchmark):
    def benchmarkOne(self):
        self.report_benchmark(iters=1, wall_time=0.5)
    def benchmarkTwo(self):
        raise SystemExit("not asked for")
tf.test.main(["program", "--benchmarks=Some.*One"])
""",
    )
    assert (made.returncode, made.stdout) == (0, 'entry {\n  name: "Some.benchmarkOne"\n  iters: 1\n  wall_time: 0.5\n}\n\n'), made.stderr


def test_the_debugger_says_what_to_use():
    from millrace import names

    debug = names.module("python.debug")
    with pytest.raises(NotImplementedError, match="LocalCLIDebugWrapperSession is not provided yet: use millrace.debug.find_bad_value"):
        debug.LocalCLIDebugWrapperSession(None)
    assert names.module("python.debug.wrappers.hooks").has_inf_or_nan is debug.hooks.has_inf_or_nan is debug.has_inf_or_nan
    values = {"inf": np.array([1.0, np.inf]), "nan": np.float32("nan"), "good": np.ones(3), "int": np.array([1]), "text": np.array(["nan"]), "none": None}
    assert [k for k, v in values.items() if debug.has_inf_or_nan(None, v)] == ["inf", "nan"]


def test_a_number_as_the_default_of_a_boolean_flag():
    tf.app.flags.DEFINE_boolean("batch_size_as_a_boolean", 128, "as programs have it")
    assert tf.app.flags.FLAGS.batch_size_as_a_boolean == 128


def test_a_flag_that_only_the_program_sets():
    tf.app.flags.FLAGS.words_in_the_data = 7
    assert tf.app.flags.FLAGS.words_in_the_data == 7 == tf.app.flags.FLAGS.__flags["words_in_the_data"]
    with pytest.raises(AttributeError, match="Unknown command line flag 'words_in_the_date'"):
        tf.app.flags.FLAGS.words_in_the_date
    del tf.app.flags.FLAGS.words_in_the_data


def test_a_large_constant_as_text_is_made_quickly():
    raw = bytes(range(256)) * 65536  # 16 MB
    began = time.process_time()
    text = str(tf.AttrValue(s=raw))
    assert time.process_time() - began < 1.5  # a loop over the bytes takes 3 seconds or more
    assert text.startswith('s: "\\000\\001\\002\\003\\004\\005\\006\\007\\010\\t\\n\\013\\014\\r\\016') and len(text) == 65536 * 736 + 6
    for byte, escaped in ((34, '\\"'), (39, "\\'"), (92, "\\\\"), (65, "A"), (127, "\\177"), (255, "\\377")):
        assert str(tf.AttrValue(s=bytes([byte]))) == 's: "%s"\n' % escaped


def test_types_of_lists_of_numpys_scalars(sess):
    """They count as Python's numbers, while arrays keep theirs."""
    for value, expected in (
        ([np.int64(1)], tf.int32),
        ([np.float64(1.5), 2], tf.float32),
        ([[np.int32(1), np.int64(2)]], tf.int32),
        ([np.int64(2**40)], tf.int64),
        (np.int64(1), tf.int64),
        (np.arange(3), tf.int64),
        ([np.uint8(3)], tf.uint8),
        ([np.float16(1)], tf.float16),
    ):
        assert tf.convert_to_tensor(value).dtype == expected, value
    labels = tf.gather(tf.convert_to_tensor([np.argmax(row) for row in np.eye(3)]), [2, 0])
    assert sess.run(tf.equal(labels, tf.cast(tf.argmax([[0, 0, 1], [0, 1, 0]], 1), tf.int32))).tolist() == [True, False]


def test_safe_look_ups(sess):
    table = tf.constant([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    ids = tf.SparseTensor([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 0]], np.array([0, 1, -1, 2]), [2, 2, 2])
    shares = tf.SparseTensor(ids.indices, [3.0, 1.0, 1.0, -1.0], ids.dense_shape)
    look = tf.contrib.layers.safe_embedding_lookup_sparse
    assert sess.run(look(table, ids)).tolist() == [[[5.5, 11], [0, 0]], [[0, 0], [100, 200]]]
    assert sess.run(look([table], ids, combiner="sum", default_id=1)).tolist() == [[[11, 22], [10, 20]], [[10, 20], [100, 200]]]
    assert sess.run(look(table, ids, shares)).tolist() == [[[13 / 4, 26 / 4], [0, 0]], [[0, 0], [0, 0]]]
    np.testing.assert_allclose(sess.run(look(table, ids, shares, "sqrtn"))[0, 0], np.array([13, 26]) / 10**0.5, rtol=1e-6)
    assert sess.run(look(table, ids, shares, "sum"))[1, 1].tolist() == [-100, -200]
    assert look(table, ids).get_shape().as_list() == [2, 2, 2]
    halves = tf.cast(table, tf.float16)
    flat = tf.SparseTensor([[0, 0], [0, 1]], np.array([0, 1]), [1, 2])
    for made in (look(halves, flat), tf.nn.embedding_lookup_sparse(halves, flat, None), tf.nn.embedding_lookup_sparse(halves, flat, flat)):
        assert made.dtype == tf.float32  # in which they are summed
    with pytest.raises(ValueError, match="one type"):
        look([table, tf.cast(table, tf.float64)], flat)


def test_matrices_of_a_form(sess):
    full = np.array([[2.0, 7.0], [1.0, 4.0]], np.float32)
    lower, x = np.tril(full), np.array([[1.0], [3.0]], np.float32)
    for made, dense in (
        (tf.linalg.LinearOperatorLowerTriangular(full), lower),
        (tf.contrib.linalg.LinearOperatorTriL(full), lower),
        (tf.linalg.LinearOperatorDiag([2.0, 4.0]), np.diag([2, 4])),
        (tf.linalg.LinearOperatorFullMatrix(full), full),
        (tf.linalg.LinearOperatorIdentity(2), np.eye(2)),
    ):
        got = sess.run(
            [
                made.to_dense(),
                made.matmul(x),
                made.matvec(x[:, 0]),
                made.solve(x),
                made.determinant(),
                made.log_abs_determinant(),
                made.trace(),
                made.add_to_tensor(full),
                made.matmul(x, adjoint=True),
            ]
        )
        expected = [
            dense,
            dense @ x,
            dense @ x[:, 0],
            np.linalg.solve(dense, x),
            np.linalg.det(dense),
            np.log(np.linalg.det(dense)),
            np.trace(dense),
            dense + full,
            dense.T @ x,
        ]
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_articles_of_dbpedia(tmp_path, monkeypatch):
    """Numbers of 1.15.5 with the same files."""
    load = tf.contrib.learn.datasets.load_dataset
    few = load("dbpedia", test_with_fake_data=True)
    assert few.train.data.shape == (3, 2) and few.train.target.tolist() == [1, 2, 3] and few.test.data.shape == (1, 2) and few.validation is None
    monkeypatch.setenv("TF_EXP_BASE_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        load("dbpedia")
    tables = tmp_path / "dbpedia_data" / "dbpedia_csv"
    tables.mkdir(parents=True)
    for name, count in (("train", 2500), ("test", 1500)):
        (tables / (name + ".csv")).write_text("".join('%d,"Title %d","Text, of %d"\n' % (i % 14 + 1, i, i) for i in range(count)))
    small = load("dbpedia", size="small")
    assert small.train.data.tolist() == [["Title %d" % i, "Text, of %d" % i] for i in (0, 1000, 2000)]
    assert small.train.target.tolist() == [1, 7, 13] and small.train.target.dtype == np.int32 and small.test.target.tolist() == [1, 7]
    assert load("dbpedia", size="").train.data.shape == (2500, 2)


def test_data_sets_by_name(tmp_path):
    (tmp_path / "iris.csv").write_text("2,2,a,b\n1.5,2.5,0\n3,4,1\n")
    made = tf.contrib.learn.datasets.load_iris(str(tmp_path / "iris.csv"))
    assert made.data.tolist() == [[1.5, 2.5], [3, 4]] and made.target.tolist() == [0, 1]
    with pytest.raises(ValueError, match="Name of dataset is not found: none"):
        tf.contrib.learn.datasets.load_dataset("none")
    irises, houses = tf.contrib.learn.datasets.load_iris(), tf.contrib.learn.datasets.load_dataset("boston")
    assert irises.data[[0, 149]].tolist() == [[5.1, 3.5, 1.4, 0.2], [5.9, 3, 5.1, 1.8]] and np.bincount(irises.target).tolist() == [50, 50, 50]
    assert houses.data.shape == (506, 13) and houses.data[0, :3].tolist() == [0.00632, 18, 2.31] and houses.target[[0, -1]].tolist() == [24, 11.9]


def test_summaries_of_collections(sess):
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, tf.constant([1.0, 2.0], name="a/act"))
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, tf.constant(3.0, name="b/act"))
    layers = tf.contrib.layers
    assert [s.op.type for s in layers.summarize_activations()] == ["HistogramSummary", "HistogramSummary"] and len(layers.summarize_activations("b")) == 1
    assert len(layers.summarize_tensors([tf.constant(1.0)])) == 1 and layers.summarize_weights() == []


def test_columns_of_words_that_are_no_arrays(sess):
    class Column:  # as pandas has them
        def __array__(self, dtype=None, copy=None):
            return np.array(["a", "bc"], object)

    assert sess.run(tf.convert_to_tensor(Column())).tolist() == [b"a", b"bc"]
    assert sess.run(tf.SparseTensor([[0, 0], [1, 0]], Column(), [2, 1]).values).tolist() == [b"a", b"bc"]


def test_an_evaluation_in_a_session(sess):
    count = tf.Variable(0.0)
    got = tf.contrib.slim.evaluation.evaluation(sess, num_evals=3, initial_op=count.initializer, eval_op=tf.assign_add(count, 2.0), final_op=[count * 10])
    assert got == [60]


def test_indices_and_truth_of_old_numpy(tmp_path):
    made = run_program(
        tmp_path,
        "import numpy as np\na = np.arange(6).reshape(2, 3)\nprint(a[[slice(0, 1), slice(1, 3)]], a[[Ellipsis, 0]], a[[1, 0]][:, 0])\n"
        "a[[slice(None), 2]] = 9\nprint(a.tolist(), bool(np.zeros(0)), not a[a > 9], np.max([[1, 2], [3]]), np.testing.utils is not None)\n"
        "b, c = np.nan_to_num((a, a[0]))\nprint(b is a, c is not a)\n"
        "try:\n    bool(a)\nexcept ValueError as e:\n    print('ambiguous' in str(e))\n",
    )
    assert made.stdout == "[[1 2]] [0 3] [3 0]\n[[0, 1, 9], [3, 4, 9]] False True [3] True\nTrue True\nTrue\n", made.stderr


def test_programs_of_standard_input(tmp_path):
    path = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
    program = "import sys\nimport tensorflow as tf\nprint(sys.argv, sys.path[0] == '', __name__, tf.Session().run(tf.constant(3)))\n"
    made = subprocess.run(
        [sys.executable, "-m", "millrace.compat", "-", "a"],
        input=program,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        check=False,
        capture_output=True,
    )
    assert made.stdout == "['-', 'a'] True __main__ 3\n", made.stderr
