# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.session_bundle: exports of the form before SavedModels."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace.compat import as_text
from millrace.contrib.session_bundle import bundle_shim, constants, exporter, gc, session_bundle
from millrace.protos import definitions, manifest


def _export(folder, steps, asset, **options):
    """Exports y = w * x and a variable that only an operation sets; the folders."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        w = tf.Variable(3.0, name="w")
        twice = tf.Variable(0.0, name="twice", collections=[])
        path = tf.constant(asset, name="path")
        init_op = tf.group(tf.assign(twice, 2 * w), name="init_op")
        y = tf.multiply(w, x, name="y")
        tf.global_variables_initializer().run()
        made = exporter.Exporter(tf.train.Saver({"w": w}))
        made.init(
            init_op=init_op,
            default_graph_signature=exporter.regression_signature(x, y),
            named_graph_signatures={"inputs": exporter.generic_signature({"x": x}), "outputs": exporter.generic_signature({"y": y})},
            assets_collection=[path],
            **options,
        )
        return [made.export(folder, tf.constant(step), session, gc.largest_export_versions(2)) for step in steps]


@pytest.fixture
def asset(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("one two")
    return str(path)


def test_a_bundle_comes_back_with_variables_assets_and_initialization(tmp_path, asset):
    folder = as_text(_export(str(tmp_path / "out") + "/", [7], asset)[0])
    assert folder == str(tmp_path / "out" / "00000007")
    assert open(os.path.join(folder, "assets", "words.txt")).read() == "one two"
    session, meta = session_bundle.load_session_bundle_from_path(folder)
    np.testing.assert_allclose(session.run("y:0", {"x:0": 2.0}), 6.0)
    np.testing.assert_allclose(session.run("twice:0"), 6.0)
    signatures = manifest.Signatures()
    assert meta.collection_def[constants.SIGNATURES_KEY].any_list.value[0].Unpack(signatures)
    assert signatures.default_signature.regression_signature.output.tensor_name == "y:0"
    assert signatures.named_signatures["inputs"].generic_signature.map["x"].tensor_name == "x:0"


def test_only_the_newest_exports_stay_and_none_is_overwritten(tmp_path, asset):
    base = str(tmp_path / "out")
    _export(base, [1, 2, 10], asset)
    assert sorted(os.listdir(base)) == ["00000002", "00000010"]
    with pytest.raises(RuntimeError, match="Duplicate export dir"):
        _export(base, [10], asset)


def test_the_signatures_of_a_bundle_become_those_of_a_saved_model(tmp_path, asset):
    folder = as_text(_export(str(tmp_path / "out"), [1], asset)[0])
    session, meta = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(folder)
    default, named = meta.signature_def["serving_default"], meta.signature_def["serving_default_from_named"]
    assert (default.method_name, default.inputs["inputs"].name, default.outputs["outputs"].name) == ("tensorflow/serving/regress", "x:0", "y:0")
    assert (named.method_name, named.inputs["x"].name, named.outputs["y"].name) == ("tensorflow/serving/predict", "x:0", "y:0")
    np.testing.assert_allclose(session.run("y:0", {"x:0": 1.0}), 3.0)
    with pytest.raises(RuntimeError, match="not found at specified export location"):
        bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(str(tmp_path))


def test_init_is_called_once_and_before_export(tmp_path, asset):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(1.0)
        tf.global_variables_initializer().run()
        made = exporter.Exporter(tf.train.Saver())
        with pytest.raises(RuntimeError, match="init must be called first"):
            made.export(str(tmp_path), tf.constant(1), session)
        with pytest.raises(TypeError, match="Only constants"):
            made.init(assets_collection=[tf.identity(tf.constant(asset))])
        made.init()
        with pytest.raises(RuntimeError, match="only once"):
            made.init()


def test_messages_of_packages_are_packed_by_their_full_names():
    packed = definitions.Any()
    packed.Pack(manifest.AssetFile(filename="a"))
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.AssetFile"
    assert not packed.Unpack(definitions.AssetFileDef())


def test_filters_of_exports():
    paths = [gc.Path("/a", n) for n in (0, 1, 3, 5, 6, 7, 8, 33)]
    assert [p.export_version for p in gc.one_of_every_n_export_versions(3)(paths)] == [3, 6, 8, 33]
    assert [p.export_version for p in gc.union(gc.largest_export_versions(1), gc.mod_export_version(3))(paths)] == [0, 3, 6, 33]
    assert [p.export_version for p in gc.negation(gc.mod_export_version(3))(paths)] == [1, 5, 7, 8]
