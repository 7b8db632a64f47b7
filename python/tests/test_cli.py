# SPDX-License-Identifier: Apache-2.0
"""The program `millrace`."""

import json
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import millrace as tf
from millrace import cli
from millrace.cli import machine, sources
from millrace.train import safetensors


def _run(capsys, *arguments):
    status = cli.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def _facts(capsys, *arguments):
    status, out, err = _run(capsys, *arguments, "--json")
    assert status in (0, 1), err
    return json.loads(out)


@pytest.fixture
def model(tmp_path):
    """A SavedModel of y = x w + b, its checkpoint and its graph."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        b = tf.get_variable("b", initializer=np.array([1, -1], np.float32))
        y = tf.add(tf.matmul(x, w), b, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
        tf.train.Saver().save(session, str(tmp_path / "train" / "a.ckpt"), global_step=7)
        tf.train.write_graph(graph, str(tmp_path), "graph.pb", as_text=False)
        tf.train.write_graph(graph, str(tmp_path), "graph.pbtxt")
    np.save(tmp_path / "x.npy", np.ones([2, 3], np.float32))
    return tmp_path


def test_a_model_is_known_by_what_is_in_it(capsys, model):
    facts = _facts(capsys, "inspect", model / "model")
    assert facts["kind"] == "saved_model" and facts["tags"] == ["serve"] and facts["unknown_ops"] == []
    assert facts["signatures"]["serving_default"]["inputs"]["x"] == {"tensor": "x:0", "dtype": "float32", "shape": [None, 3]}
    assert [(v["name"], v["bytes"]) for v in facts["variables"]] == [("w", 24), ("b", 8)]
    for name in ("graph.pb", "graph.pbtxt"):
        assert _facts(capsys, "inspect", model / name)["kind"] == "graph"
    status, out, _ = _run(capsys, "inspect", model / "model", "--all")
    assert status == 0 and "[?, 3]" in out and "MatMul" in out


def test_a_checkpoint_by_folder_prefix_or_file(capsys, model):
    for path in ("train", "train/a.ckpt-7", "train/a.ckpt-7.index", "train/a.ckpt-7.data-00000-of-00001"):
        facts = _facts(capsys, "inspect", model / path)
        assert facts["kind"] == "checkpoint" and [t["name"] for t in facts["tensors"]] == ["b", "w"]
    assert _facts(capsys, "inspect", model / "train", "--values", "b")["value"] == [1.0, -1.0]
    status, _, err = _run(capsys, "inspect", model / "train", "--values", "bb")
    assert status == 2 and "has no tensor 'bb'; did you mean b?" in err


def test_a_model_runs_on_arrays(capsys, model):
    facts = _facts(capsys, "run", model / "model", "--feed", "x=%s" % (model / "x.npy"), "--out", model / "out", "--repeat", 3)
    assert facts["outputs"]["y"]["value"] == [[7.0, 8.0]] * 2 and facts["seconds"]["runs"] == 3
    assert np.load(model / "out" / "y.npy").tolist() == [[7.0, 8.0]] * 2
    status, _, err = _run(capsys, "run", model / "model")
    assert status == 2 and "wants a --feed for: x (x:0)" in err
    status, _, err = _run(capsys, "run", model / "model", "--feed", "z=%s" % (model / "x.npy"))
    assert status == 2 and "no input 'z'; it has x" in err


def test_what_the_stages_of_the_compiler_did():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.add(tf.matmul(x, tf.constant([[1.0], [2.0]])), tf.constant(1.0) + tf.constant(2.0), name="y")
    with tf.Session() as session:
        text, told = session.explain(y), session.explain(y, as_text=False)
    did = {s["name"]: (s["gone"], s["added"]) for s in told["stages"]}
    assert did["prune"] == did["place"] == ([], [])
    assert did["fold_constants"] == (["Const_1", "Const_2", "add"], ["add/_folded_0"]) and did["fuse"] == (["MatMul"], [])
    assert "3 gone: Const_1, Const_2, add; 1 new: add/_folded_0" in text


def test_a_step_is_traced_and_explained(capsys, model):
    feed = "x=%s" % (model / "x.npy")
    facts = _facts(capsys, "trace", model / "model", "--feed", feed, "--out", model / "trace.json")
    assert any(o["op"].endswith("MatMul") for o in facts["steps"][0]["ops"])
    assert any(e["name"].endswith("MatMul") for e in json.loads((model / "trace.json").read_text())["traceEvents"])
    status, out, _ = _run(capsys, "explain", model / "model")
    assert status == 0 and "prune" in out
    told = _facts(capsys, "explain", model / "model")
    stages = {s["name"]: s for s in told["stages"]}
    assert stages["prune"]["ran"] and stages["prune"]["microseconds"] > 0 and stages["cut"]["nodes_after"] == told["partitions"][0]["nodes"]
    places = {p["op"]: p for p in told["placement"]}
    assert places["MatMul"]["device"].endswith("CPU:0") and places["MatMul"]["reason"] == "the only device"
    (memory,) = told["memory"]
    assert memory["variable_bytes"] > 0 and memory["peak_bytes"] >= sum(h["bytes"] for h in memory["holders"][:1])
    assert told["plans"][0]["segments"] + told["plans"][0]["single_nodes"] > 0 and told["refusal"] is None


def test_what_was_made_for_other_devices_runs_here(capsys, tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.device("/gpu:1"):
            tf.reduce_sum(x * 2.0, name="y")
        tf.train.write_graph(graph, str(tmp_path), "graph.pb", as_text=False)
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    step = (tmp_path / "graph.pb", "--feed", "x=%s" % (tmp_path / "x.npy"), "--fetch", "y")
    assert _facts(capsys, "run", *step)["outputs"]["y"]["value"] == 4.0
    assert _facts(capsys, "trace", *step)["steps"]
    placed = {p["node"]: p["reason"] for p in _facts(capsys, "explain", *step)["placement"]}
    assert placed["y"] == "by soft placement: no device is as asked for"
    _facts(capsys, "convert", tmp_path / "graph.pb", tmp_path / "model", "--to", "saved_model", "--input", "x", "--output", "y")
    assert _facts(capsys, "run", tmp_path / "model", *step[1:3])["outputs"]["y"]["value"] == 4.0
    _facts(capsys, "convert", tmp_path / "model", tmp_path / "frozen.pb", "--freeze")


def test_checkpoints_become_safetensors_and_come_back(capsys, model):
    assert _facts(capsys, "convert", model / "train", model / "a.safetensors")["tensors"] == 2
    for form, target in (("checkpoint", "back"), ("checkpoint-v1", "old")):
        assert _facts(capsys, "convert", model / "a.safetensors", model / target, "--to", form)["tensors"] == 2
        assert _facts(capsys, "diff", model / "train", model / target)["same"] == 2
    status, _, err = _run(capsys, "convert", model / "train", model / "a.safetensors")
    assert status == 2 and "--overwrite" in err
    status, _, err = _run(capsys, "convert", model / "graph.pb", model / "a.onnx")
    assert status == 2 and "freeze it first" in err


def test_types_and_shapes_come_from_tables(capsys, model, monkeypatch):
    read, seen = sources.Values.__getitem__, []
    monkeypatch.setattr(sources.Values, "__getitem__", lambda values, name: seen.append(name) or read(values, name))
    rows = _facts(capsys, "inspect", model / "train")["tensors"]
    assert rows == [{"name": "b", "dtype": "float32", "shape": [2], "bytes": 8}, {"name": "w", "dtype": "float32", "shape": [3, 2], "bytes": 24}]
    assert seen == []
    _facts(capsys, "convert", model / "train", model / "once.safetensors")
    assert seen == ["b", "w"]
    assert _facts(capsys, "inspect", model / "once.safetensors")["tensors"] == rows and seen == ["b", "w"]
    with pytest.raises(ValueError, match=r"'a' is float32 \(2,\), was said to be F32 \[3\]"):
        safetensors.save({"a": np.ones(2, np.float32)}, model / "wrong.safetensors", described=lambda name: (np.float32, [3]))
    assert not (model / "wrong.safetensors").exists()


def test_a_model_is_frozen(capsys, model):
    _facts(capsys, "convert", model / "model", model / "frozen.pbtxt", "--freeze")
    facts = _facts(capsys, "run", model / "frozen.pbtxt", "--feed", "x=%s" % (model / "x.npy"), "--fetch", "y:0")
    assert facts["outputs"]["y:0"]["value"] == [[7.0, 8.0]] * 2
    assert _facts(capsys, "inspect", model / "frozen.pbtxt")["variables"] == []


def test_a_meta_graph_is_frozen_with_its_checkpoint(capsys, model):
    meta, feed = model / "train" / "a.ckpt-7.meta", ("--feed", "x=%s" % (model / "x.npy"))
    _facts(capsys, "convert", meta, model / "frozen.pb", "--freeze", "--output", "y")
    assert _facts(capsys, "run", model / "frozen.pb", *feed, "--fetch", "y:0")["outputs"]["y:0"]["value"] == [[7.0, 8.0]] * 2
    facts = _facts(capsys, "inspect", model / "frozen.pb")
    assert facts["variables"] == [] and "SaveV2" not in facts["ops"]
    # A graph alone says nothing of values.
    status, _, err = _run(capsys, "convert", model / "graph.pb", model / "other.pb", "--freeze", "--output", "y")
    assert status == 2 and "--checkpoint PREFIX says where" in err
    _facts(capsys, "convert", model / "graph.pb", model / "other.pb", "--freeze", "--output", "y", "--checkpoint", model / "train" / "a.ckpt-7")
    assert _facts(capsys, "run", model / "other.pb", *feed, "--fetch", "y:0")["outputs"]["y:0"]["value"] == [[7.0, 8.0]] * 2
    status, _, err = _run(capsys, "convert", meta, model / "third.pb", "--freeze")
    assert status == 2 and "--output NAME" in err


def test_a_graph_becomes_a_saved_model(capsys, model):
    meta, target = model / "train" / "a.ckpt-7.meta", model / "made"
    _facts(capsys, "convert", meta, target, "--to", "saved_model", "--input", "given=x", "--output", "answer=y:0")
    facts = _facts(capsys, "inspect", target)
    signature = facts["signatures"]["serving_default"]
    assert [v["name"] for v in facts["variables"]] == ["w", "b"]
    assert signature["inputs"]["given"]["tensor"] == "x:0" and list(signature["outputs"]) == ["answer"]
    feed = ("--feed", "given=%s" % (model / "x.npy"))
    assert _facts(capsys, "run", target, *feed)["outputs"]["answer"]["value"] == [[7.0, 8.0]] * 2
    options = ("--to", "saved_model", "--output", "y")
    assert "does not list its variables" in _run(capsys, "convert", model / "graph.pb", model / "no", *options, "--checkpoint", model / "train" / "a.ckpt-7")[2]
    assert "--overwrite" in _run(capsys, "convert", meta, target, "--to", "saved_model", "--output", "y")[2]
    _facts(capsys, "convert", target, target, "--to", "saved_model", "--output", "w/read", "--overwrite")  # a model into itself
    assert _facts(capsys, "run", target, "--feed", "x=%s" % (model / "x.npy"))["outputs"]["w/read"]["value"][0] == [0.0, 1.0]


def test_differences_are_an_exit_status(capsys, model):
    first = {"same": np.ones(3), "near": np.array([1.0, np.nan]), "shape": np.ones(2), "type": np.ones(2), "gone": np.ones(1)}
    second = {"same": np.ones(3), "near": np.array([1.001, np.nan]), "shape": np.ones(3), "type": np.ones(2, np.float32), "new": np.ones(1)}
    for name, arrays in (("a", first), ("b", second)):
        safetensors.save(arrays, model / (name + ".safetensors"))
    paths = (model / "a.safetensors", model / "b.safetensors")
    assert _run(capsys, "diff", *paths)[0] == 1
    facts = _facts(capsys, "diff", *paths)
    assert facts["only_first"] == ["gone"] and facts["only_second"] == ["new"] and facts["same"] == 1
    assert {d["name"]: d.get("greatest") for d in facts["differing"]} == {"near": pytest.approx(0.001), "shape": None, "type": None}
    assert "near" not in [d["name"] for d in _facts(capsys, "diff", *paths, "--tolerance", 0.01)["differing"]]
    assert _run(capsys, "diff", model / "train", model / "train")[0] == 0
    assert _run(capsys, "diff", model / "graph.pb", model / "graph.pbtxt")[0] == 0
    status, _, err = _run(capsys, "diff", model / "graph.pb", model / "train")
    assert status == 2 and "both must hold tensors, or both a graph" in err


def test_records_and_events(capsys, tmp_path):
    with tf.python_io.TFRecordWriter(str(tmp_path / "r")) as writer:
        for i in range(3):
            writer.write(
                tf.train.Example(
                    features=tf.train.Features(
                        feature={
                            "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i] * i)),
                            "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])),
                        }
                    )
                ).SerializeToString()
            )
    facts = _facts(capsys, "inspect", tmp_path / "r")
    assert facts["records"] == 3 and facts["features"]["n"] == {"type": ["int64"], "values": [0, 1, 2], "examples": 3}
    writer = tf.summary.FileWriter(str(tmp_path / "logs"))
    for step in range(4):
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0 / (step + 1))]), step)
    writer.close()
    facts = _facts(capsys, "inspect", tmp_path / "logs")
    assert facts["tags"] == [{"tag": "loss", "kind": "simple_value", "count": 4, "first_step": 0, "last_step": 3, "last": 0.25}]
    data = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(data[:-3])
    status, _, err = _run(capsys, "inspect", tmp_path / "r")
    assert status == 2 and "truncated record" in err


def test_what_is_no_model_is_refused_in_one_line(capsys, tmp_path):
    (tmp_path / "noise").write_bytes(random.Random(0).randbytes(1000))
    (tmp_path / "text").write_text("hello { world")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for name in ("noise", "text", "empty", "folder", "absent"):
        status, out, err = _run(capsys, "inspect", tmp_path / name)
        assert status == 2 and not out and err.count("\n") == 1 and str(tmp_path / name) in err, (name, err)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"a": 1}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}}',
        b'{"a": {"dtype": "F8", "shape": [4], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [25], "data_offsets": [0, 100]}}',
        b'{"a": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}',
        b'{"a": {"shape": [1], "data_offsets": [0, 4]}}',
    ],
)
def test_damaged_safetensors_are_refused(tmp_path, header):
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match="safetensors"):
        safetensors.load(path)


def test_safetensors_of_every_type(tmp_path):
    arrays = {t: np.arange(6).astype(t).reshape(2, 3) for t in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", ">f4")}
    arrays.update(none=np.zeros([0, 4]), scalar=np.float32(3))
    safetensors.save(arrays, tmp_path / "a", {"made": "here"})
    assert safetensors.SafetensorsFile(tmp_path / "a").metadata == {"made": "here"}
    for name, value in safetensors.load(tmp_path / "a").items():
        assert value.shape == np.shape(arrays[name]) and np.array_equal(value, arrays[name])
    with pytest.raises(TypeError, match="'s' has type"):
        safetensors.save({"s": np.array(["x"])}, tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def test_the_doctor_knows_the_settings():
    environment = {**os.environ, "MILLRACE_NUM_THREAD": "2", "MILLRACE_MIN_LOG_LEVEL": "loud", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "millrace", "doctor"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "MILLRACE_NUM_THREAD is no setting; did you mean MILLRACE_NUM_THREADS?" in done.stdout
    assert "MILLRACE_MIN_LOG_LEVEL is 'loud'" in done.stdout and "GFLOP/s" in done.stdout
    assert re.search(r"^library +/.*libmillrace\.so[.0-9]*, version \d", done.stdout, re.M) and re.search(r"^(grpc|control group|system) ", done.stdout, re.M)


def test_the_doctor_reads_limits_of_control_groups(tmp_path):
    (tmp_path / "own").write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert machine.cgroup_limits(tmp_path, tmp_path / "own") == {}
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "a" / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "a" / "memory.max").write_text("1000000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    assert machine.cgroup_limits(tmp_path, tmp_path / "own") == {"cores": 1.5, "memory": 1000000}
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert machine.cgroup_limits(tmp_path, tmp_path / "own") == {"cores": 1, "memory": 1000000}


# A command line, in which a word that names a file of _input stands for it, and what its message says.
_MISTAKES = [
    ("inspect empty", "empty is empty"),
    ("inspect text", "text is a text, but no graph: line 1: message GraphDef has no field 'hello'"),
    ("inspect cut.npy", "cut.npy is no .npy or .npz file of numbers or strings, or it is damaged"),
    ("inspect cut.index", "the checkpoint cut cannot be read: broken table: file too short"),
    ("inspect x.npy --values y", "x.npy is an array file, and has no tensor 'y'; it has array"),
    ("inspect graph.pb --tags serve", "graph.pb is a graph, which has no tags"),
    ("explain x.npy", "x.npy is an array file; a graph or a SavedModel is wanted"),
    ("run model --feed x=text", "text is no .npy or .npz file"),
    ("run model --feed x=words.npy", "words.npy has elements of type <U1; x:0 wants float32"),
    ("run model --feed x=x.npy --repeat 99999999999999999999", "want 1 to 1000000000"),
    ("run model --feed x=x.npy --tags no", "no graph with the tags no; it has graphs with the tags serve"),
    ("run graph.pb --feed x=x.npy --fetch y", "--freeze --checkpoint PREFIX --output NAME"),
    ("trace traces --fetch y", "traces holds traces; --feed, --fetch and --tags are for a model"),
    ("convert graph.pb no/a.pbtxt", "no: there is no such folder, in which a.pbtxt could be written"),
    ("convert graph.pb a.pb --freeze --output y --checkpoint text", "text is a text, but no graph"),
    ("convert model a.pb --freeze --output yy", "the graph has no tensor 'yy'; did you mean y?"),
    ("convert model a.onnx --output yy", "the graph has no tensor 'yy'; did you mean y?"),
    ("diff x.npy x.npy --tolerance nan", "--tolerance is nan, want a number from 0 on"),
    ("diff x.npy graph.pb", "x.npy is an array file, "),
    ("launch -n 1 model", "model is a folder, want a Python file or another command"),
    ("top http://localhost:1", "the address is 'http://localhost:1', want grpc://host:port"),
    ("top localhost:99999", "the address is 'localhost:99999', want grpc://host:port"),
]


@pytest.mark.parametrize(("line", "message"), [pytest.param(*m, id=m[0]) for m in _MISTAKES])
def test_a_mistake_says_what_where_got_and_wanted(capsys, model, monkeypatch, line, message):
    monkeypatch.chdir(model)
    (model / "empty").write_bytes(b"")
    (model / "text").write_text("hello\n")
    (model / "cut.npy").write_bytes((model / "x.npy").read_bytes()[:60])
    (model / "cut.index").write_bytes((model / "train" / "a.ckpt-7.index").read_bytes()[:40])
    np.save(model / "words.npy", np.array(["a"]))
    (model / "traces").mkdir()
    for extra in ((), ("--json",)):
        status, out, err = _run(capsys, *line.split(), *extra)
        assert (status, out) == (2, "") and message in err and err.startswith("millrace: ") and err.count("\n") == 1, err


def test_an_operation_that_is_fetched_stands_for_its_first_output(capsys, model):
    status, _, err = _run(capsys, "convert", model / "model", model / "frozen.pb", "--freeze")
    assert status == 0, err
    status, out, _ = _run(capsys, "run", model / "frozen.pb", "--feed", "x=%s" % (model / "x.npy"), "--fetch", "y")
    assert status == 0 and out.startswith("y  float32 [2, 2]\n[[7. 8.]")
    status, out, _ = _run(capsys, "run", model / "graph.pb", "--fetch", "init")
    assert status == 0 and out.startswith("init  has run\n")
    status, _, err = _run(capsys, "run", model / "graph.pb", "--fetch", "ini")
    assert status == 2 and "the graph has no 'ini'; did you mean init?" in err


def test_what_may_not_be_looked_at_is_not_said_to_be_missing(model, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(sources.os, "stat", refuse)
    with pytest.raises(PermissionError):
        sources.open_source("locked/graph.pb")


def test_without_a_command_there_is_help(capsys):
    status, out, err = _run(capsys)
    assert (status, out) == (2, "") and "inspect" in err
    status, out, _ = _run(capsys, "--version")
    assert status == 0 and re.match(r"millrace \d", out)


def test_the_usage_of_launch_names_the_program(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["launch", "program.py"])
    err = capsys.readouterr().err
    assert end.value.code == 2 and "--json] PROGRAM ..." in err, err
    with pytest.raises(SystemExit):
        cli.main(["launch", "--help"])
    usage, _, rest = capsys.readouterr().out.partition("Starts the program")
    assert set(re.findall(r"--[a-z-]+|-[a-z]\b", usage)) <= set(re.findall(r"--[a-z-]+|-[a-z]\b", rest)), "it has these options"
    assert all(option in usage for option in re.findall(r"^  (-[a-z]\b|--[a-z-]+)", rest, re.M)), "and no others"


def test_numbers_that_json_has_not_are_strings(capsys, tmp_path):
    np.save(tmp_path / "a.npy", np.array([[np.nan, 1.0], [np.inf, -np.inf]], np.float32))
    status, out, _ = _run(capsys, "inspect", tmp_path / "a.npy", "--values", "array", "--json")

    def refuse(constant):
        raise AssertionError(constant)

    facts = json.loads(out, parse_constant=refuse)
    assert status == 0 and facts["value"] == [["NaN", 1.0], ["Infinity", "-Infinity"]] and facts["greatest"] == "NaN" and facts["not_finite"] == 3


def _graph(path, count):
    with tf.Graph().as_default() as graph:
        for i in range(count):
            tf.constant(i, name="c%d" % i)
        tf.add(tf.placeholder(tf.int32, [], name="x"), 1, name="y%d" % count)
        tf.train.write_graph(graph, os.path.dirname(path), os.path.basename(path), as_text=False)
    return path


def test_long_differences_are_cut(capsys, tmp_path):
    few, many = _graph(str(tmp_path / "few.pb"), 1), _graph(str(tmp_path / "many.pb"), 100)
    status, out, _ = _run(capsys, "diff", few, many)
    assert status == 1 and len(out.splitlines()) < 35 and "... and 81 more: --all lists them" in out, out
    assert out.endswith("2 nodes are the same, 0 differ, 2 are only in the first, 101 only in the second\n"), out
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.GraphDef.FromString((tmp_path / "few.pb").read_bytes()), name="")
        told = graph.as_graph_def(add_shapes=True)
    (tmp_path / "shapes.pb").write_bytes(told.SerializeToString())
    assert _run(capsys, "diff", few, tmp_path / "shapes.pb")[0] == 0, "shapes that are written down are no difference"
    status, out, _ = _run(capsys, "diff", few, many, "--all")
    assert status == 1 and "more" not in out and all("c%d\n" % i in out for i in range(1, 100))
    assert len(_facts(capsys, "diff", few, many)["only_second"]) == 101


def test_a_graph_without_a_signature_names_what_could_be_meant(capsys, tmp_path):
    path = _graph(str(tmp_path / "graph.pb"), 1)
    status, _, err = _run(capsys, "run", path, "--fetch", "y1")
    assert status == 2 and err == "millrace: x wants a value: --feed x=FILE.npy, dtype int32 and shape []\n"
    status, _, err = _run(capsys, "run", path)
    assert status == 2 and err.endswith("graph.pb has no signature 'serving_default': say with --fetch what to compute, such as y1, which no node reads\n")


def test_a_meta_graph_runs_with_its_checkpoint(capsys, model):
    prefix = model / "train" / "a.ckpt-7"
    step = ("--feed", "x=%s" % (model / "x.npy"), "--fetch", "y")
    assert _facts(capsys, "run", "%s.meta" % prefix, *step)["outputs"]["y"]["value"] == [[7.0, 8.0]] * 2
    assert _facts(capsys, "run", model / "graph.pb", *step, "--checkpoint", prefix)["outputs"]["y"]["value"] == [[7.0, 8.0]] * 2
    status, _, err = _run(capsys, "run", "%s.meta" % prefix)
    assert status == 2 and err.endswith("say with --fetch what to compute, such as y, which no node reads\n")
    assert _facts(capsys, "trace", model / "graph.pb", *step, "--checkpoint", prefix)["steps"]
    status, _, err = _run(capsys, "run", model / "graph.pb", *step)
    assert status == 2 and "has no values for its variables" in err and "--checkpoint PREFIX says where they are" in err
    status, _, err = _run(capsys, "run", model / "graph.pb", *step, "--checkpoint", model / "none")
    assert status == 2 and err == "millrace: %s: no such file, folder or checkpoint\n" % (model / "none")


def test_what_is_no_trace_is_left_out_in_a_line(capsys, model):
    with tf.Graph().as_default(), tf.Session() as session, tf.profiler.record(folder=str(model / "traces")):
        for i in range(3):
            session.run(tf.constant(i))
    junk = model / "traces" / "trace-1-0-000009.pb"
    junk.write_bytes(b"no message")
    status, out, err = _run(capsys, "trace", model / "traces")
    assert status == 0 and out.startswith("3 steps") and " more: --rows" not in out, err
    with tf.Graph().as_default(), tf.Session() as session, tf.profiler.record(folder=str(model / "one")):
        session.run(tf.sqrt(tf.abs(tf.random_uniform([3]))))
    assert " ops more: --rows N shows so many\n" in _run(capsys, "trace", model / "one", "--rows", 1)[1]
    assert err.startswith("millrace: %s is no trace: " % junk) and err.endswith("; it is left out\n") and err.count("\n") == 1
