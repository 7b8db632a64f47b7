# SPDX-License-Identifier: Apache-2.0
"""SavedModels: written by one session, read by another."""

import os

import numpy as np
import pytest

import millrace as tf


@pytest.fixture
def written(tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")
    folder = str(tmp_path / "made" / "1")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.matmul(x, tf.Variable([[1.0], [2.0]], name="w"), name="y")
        local = tf.Variable(0, name="ready", collections=[tf.GraphKeys.LOCAL_VARIABLES])
        words = tf.Variable("", name="words", collections=[tf.GraphKeys.LOCAL_VARIABLES])
        path = tf.constant(str(tmp_path / "words.txt"), name="path")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
        first = tf.group(tf.assign(local, 7), tf.assign(words, path))
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        with pytest.raises(AssertionError, match="must be added first"):
            builder.add_meta_graph(["train"])
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"numbers": x}, {"sums": y})
        builder.add_meta_graph_and_variables(
            sess,
            [tf.saved_model.tag_constants.SERVING],
            signature_def_map={"default": signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=first,
        )
        builder.add_meta_graph(["train", "gpu"], signature_def_map={"default": signature})
        assert builder.save().decode() == os.path.join(folder, "saved_model.pb")
    return folder


def test_files(written):
    assert sorted(os.listdir(written)) == ["assets", "saved_model.pb", "variables"]
    assert sorted(os.listdir(os.path.join(written, "variables"))) == ["variables.data-00000-of-00001", "variables.index"]
    assert tf.saved_model.loader.maybe_saved_model_directory(written) and not tf.saved_model.loader.maybe_saved_model_directory(os.path.dirname(written))
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.saved_model.builder.SavedModelBuilder(written)


def test_reading(written):
    with tf.Graph().as_default(), tf.Session() as sess:
        model = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], written)
        signature = model.signature_def["default"]
        assert signature.method_name == tf.saved_model.signature_constants.PREDICT_METHOD_NAME
        assert tf.saved_model.signature_def_utils.is_valid_signature(signature)
        x = tf.saved_model.utils.get_tensor_from_tensor_info(signature.inputs["numbers"])
        assert sess.run(signature.outputs["sums"].name, {x: [[1, 1]]}).tolist() == [[3]]
        assert sess.run("ready:0") == 7 and sess.run("words:0").decode() == os.path.join(written, "assets", "words.txt")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.loader.load(sess, {"gpu", "train"}, written, import_scope="in")
        assert sess.run("in/y:0", {"in/x:0": [[1, 1]]}).tolist() == [[3]]
        with pytest.raises(RuntimeError, match=r"tags \['none'\].*\[\['serve'\], \['gpu', 'train'\]\].*test_saved_model.py"):
            tf.saved_model.loader.load(sess, ["none"], written)
        with pytest.raises(IOError, match="SavedModel file does not exist"):
            tf.saved_model.loader.load(sess, ["none"], written + "x")


def test_the_simple_way(tmp_path):
    folder = str(tmp_path / "simple")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.device("/device:CPU:0"):
            y = tf.square(x, name="y")
        tf.saved_model.simple_save(sess, folder, {"x": x}, {"y": y})
    with tf.Graph().as_default(), tf.Session() as sess:
        model = tf.saved_model.load(sess, ["serve"], folder)
        assert sess.run(model.signature_def["serving_default"].outputs["y"].name, {"x:0": [2, 3]}).tolist() == [4, 9]
        assert sess.graph.get_operation_by_name("y").device == ""


def test_signatures():
    utils, constants = tf.saved_model.signature_def_utils, tf.saved_model.signature_constants
    with tf.Graph().as_default():
        text, numbers = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, [None])
        assert utils.classification_signature_def(text, None, numbers).outputs[constants.CLASSIFY_OUTPUT_SCORES].name == numbers.name
        assert utils.regression_signature_def(text, numbers).method_name == constants.REGRESS_METHOD_NAME
        with pytest.raises(ValueError, match="must be a string Tensor"):
            utils.regression_signature_def(numbers, numbers)
        with pytest.raises(ValueError, match="inputs cannot be None or empty"):
            utils.predict_signature_def({}, {"a": text})
        built = utils.build_signature_def({"a": tf.saved_model.utils.build_tensor_info(text)}, None, "mine")
        assert not utils.is_valid_signature(built) and built.inputs["a"].dtype == tf.string.as_datatype_enum


def test_sparse_tensors_in_signatures(tmp_path):
    utils, signatures = tf.saved_model.utils, tf.saved_model.signature_def_utils
    with tf.Graph().as_default():
        sparse = tf.sparse_placeholder(tf.float32, name="s")
        info = utils.build_tensor_info(sparse)
        assert info.WhichOneof("encoding") == "coo_sparse" and info.coo_sparse.values_tensor_name == sparse.values.name
        assert utils.get_tensor_from_tensor_info(type(info).FromString(info.SerializeToString())).indices is sparse.indices
        made = signatures.predict_signature_def({"s": sparse}, {"x": tf.constant([[1.0]])})
        assert signatures.get_signature_def_output_shapes(made)["x"].as_list() == [1, 1]
        assert signatures.get_signature_def_input_types(made) == {"s": tf.float32}
        with pytest.raises(ValueError, match="must be a string Tensor"):
            signatures.regression_signature_def(tf.constant(1.0), tf.constant(1.0))
        wrong = signatures.build_signature_def({"other": utils.build_tensor_info(tf.constant("e"))}, made.outputs, "tensorflow/serving/regress")
        assert not signatures.is_valid_signature(wrong) and signatures.is_valid_signature(made)


def test_what_is_wrong_with_a_model(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "saved_model.pb").write_text("invalid content")
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(IOError, match="Cannot parse file .*saved_model.pb"):
            tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "bad"))
        builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "made"))
        signature = tf.saved_model.signature_def_utils.build_signature_def({"x": tf.saved_model.utils.build_tensor_info(tf.constant(1.0))}, {}, "m")
        kinds = [tf.saved_model.utils.build_tensor_info(tf.Variable(1, use_resource=r)).dtype for r in (False, True)]
        assert kinds == [103, 3]  # as 1.15.5 says it
        signature.inputs["x"].name = ""
        with pytest.raises(AssertionError, match="must have the name field set"):
            builder.add_meta_graph_and_variables(session, ["serve"], {"key": signature})
        tf.add_to_collection("legacy_init_op", tf.no_op())
        with pytest.raises(AssertionError, match="already contains one or more"):
            builder.add_meta_graph_and_variables(session, ["serve"], legacy_init_op=tf.no_op())


def write_model(folder):
    """y = 2x + 1, whose weights are variables."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.add(x * tf.Variable(2.0, name="w"), 1.0, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})


def test_the_command_line(tmp_path, capsys):
    from millrace.tools import saved_model_cli as cli

    folder = str(tmp_path / "model")
    write_model(folder)
    parser = cli.create_parser()
    cli.show(parser.parse_args(["show", "--dir", folder, "--all"]))
    shown = capsys.readouterr().out
    assert (
        "MetaGraphDef with tag-set: 'serve'" in shown
        and "    inputs['x'] tensor_info:\n        dtype: DT_FLOAT\n        shape: (-1)\n        name: x:0" in shown
    )
    cli.show(parser.parse_args(["show", "--dir", folder, "--tag_set", "serve", "--signature_def", "serving_default"]))
    assert "  inputs['x'] tensor_info:\n      dtype: DT_FLOAT\n" in capsys.readouterr().out
    np.savez(str(tmp_path / "in.npz"), a=np.float32([1.0, 2.0]))
    common = ["run", "--dir", folder, "--tag_set", "serve", "--signature_def", "serving_default"]
    cli.run(parser.parse_args(common + ["--inputs", "x=%s[a]" % (tmp_path / "in.npz"), "--outdir", str(tmp_path / "out")]))
    assert np.load(str(tmp_path / "out" / "y.npy")).tolist() == [3.0, 5.0]
    with pytest.raises(RuntimeError, match="already exists"):
        cli.run(parser.parse_args(common + ["--input_exprs", "x=np.ones(3)", "--outdir", str(tmp_path / "out")]))
    with pytest.raises(ValueError, match='"z" is not a valid input key'):
        cli.run(parser.parse_args(common + ["--input_exprs", "z=1"]))


def test_the_command_line_takes_examples_and_scans(tmp_path, capsys):
    from millrace.tools import saved_model_cli as cli

    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        examples = tf.placeholder(tf.string, [None], name="examples")
        parsed = tf.parse_example(
            examples, {"x": tf.FixedLenFeature([2], tf.float32), "n": tf.FixedLenFeature([], tf.int64), "s": tf.FixedLenFeature([], tf.string)}
        )
        y = tf.reduce_sum(parsed["x"], 1) * tf.cast(parsed["n"], tf.float32) + tf.cast(tf.string_length(parsed["s"]), tf.float32)
        tf.read_file("none", name="reader")
        tf.saved_model.simple_save(session, folder, {"examples": examples}, {"y": y})
    parser = cli.create_parser()
    common = ["run", "--dir", folder, "--tag_set", "serve", "--signature_def", "serving_default", "--outdir", str(tmp_path), "--input_examples"]
    cli.run(parser.parse_args([*common, 'examples=[{"x": [1.0, 2.0], "n": [2], "s": ["abc"]}, {"x": [0.0, 1.0], "n": [1], "s": [""]}]']))
    assert np.load(str(tmp_path / "y.npy")).tolist() == [9, 1]
    for text, kind, message in (
        ('examples={"x": [1.0]}', ValueError, "must be a list of"),
        ('examples=[{"x": 1.0}]', ValueError, "feature value must be a list"),
        ('examples=[{"x": [[1]]}]', ValueError, "is not supported"),
        ("examples=open('f')", RuntimeError, "not a valid python literal"),
    ):
        with pytest.raises(kind, match=message):
            cli.run(parser.parse_args([*common, text]))
    with pytest.raises(RuntimeError, match="not a valid python literal"):
        cli.preprocess_input_exprs_arg_string("x=np.ones(2)", safe=True)
    capsys.readouterr()
    cli.scan(parser.parse_args(["scan", "--dir", folder]))
    assert "blacklisted ops: {'ReadFile'}" in capsys.readouterr().out
    write_model(str(tmp_path / "other"))
    cli.scan(parser.parse_args(["scan", "--dir", str(tmp_path / "other"), "--tag_set", "serve"]))
    assert "does not contain blacklisted ops" in capsys.readouterr().out


def test_frozen_out_of_a_model(tmp_path):
    from millrace.tools import freeze_graph

    write_model(str(tmp_path / "model"))
    frozen = freeze_graph.freeze_graph("", "", True, "", "y", None, None, "", input_saved_model_dir=str(tmp_path / "model"))
    assert not {"Variable", "VariableV2"} & {node.op for node in frozen.node}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("y:0", {"x:0": [4.0]}).tolist() == [9.0]


@pytest.mark.parametrize("depthwise", [False, True])
def test_a_graph_made_quicker(depthwise):
    """Normalization goes into the filters, and mirrored padding into the convolution; the answers stay."""
    from millrace.tools import optimize_for_inference as lib

    rng = np.random.RandomState(1)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        image = tf.placeholder(tf.float32, [1, 6, 6, 3], name="image")
        padded = tf.pad(tf.image.resize_bilinear(image, [8, 8], align_corners=True), [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
        filters = tf.constant(rng.randn(3, 3, 3, 2), tf.float32)
        made = tf.nn.depthwise_conv2d_native(padded, filters, [1, 1, 1, 1], "VALID") if depthwise else tf.nn.conv2d(padded, filters, [1, 1, 1, 1], "VALID")
        n = 6 if depthwise else 2
        statistics = [tf.constant(rng.rand(n) + 0.5, tf.float32) for _ in range(4)]
        tf.identity(tf.nn.fused_batch_norm(made, *statistics, is_training=False)[0], name="out")
        value = rng.rand(1, 6, 6, 3)
        expected = session.run("out:0", {image: value})
        quick = lib.optimize_for_inference(graph.as_graph_def(), ["image"], ["out"], tf.float32.as_datatype_enum)
    kinds = {node.op for node in quick.node}
    assert "BiasAdd" in kinds and not any(kind.startswith("FusedBatchNorm") for kind in kinds)
    assert depthwise or "FusedResizeAndPadConv2D" in kinds and "MirrorPad" not in kinds and "ResizeBilinear" not in kinds
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(quick, name="")
        np.testing.assert_allclose(session.run("out:0", {"image:0": value}), expected, rtol=1e-4, atol=1e-5)
