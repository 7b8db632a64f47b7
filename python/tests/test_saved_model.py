# SPDX-License-Identifier: Apache-2.0
"""SavedModels: written by one session, read by another."""
import os

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
        builder.add_meta_graph_and_variables(sess, [tf.saved_model.tag_constants.SERVING], signature_def_map={"default": signature},
                                             assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS), main_op=first)
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
        with pytest.raises(ValueError, match="must be strings"):
            utils.regression_signature_def(numbers, numbers)
        with pytest.raises(ValueError, match="inputs cannot be None or empty"):
            utils.predict_signature_def({}, {"a": text})
        built = utils.build_signature_def({"a": tf.saved_model.utils.build_tensor_info(text)}, None, "mine")
        assert not utils.is_valid_signature(built) and built.inputs["a"].dtype == tf.string.as_datatype_enum
