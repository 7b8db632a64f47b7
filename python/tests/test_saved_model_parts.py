# SPDX-License-Identifier: Apache-2.0
"""SavedModels as TensorFlow 1.15's own modules write and read them: operations as signatures, assets of one name, loading by parts."""

import os

import pytest

import millrace as tf
from millrace.saved_model import builder, loader, signature_def_utils, utils


def paths(folder, *texts):
    """A vocabulary of each text, all of one name."""
    made = []
    for i, text in enumerate(texts):
        (folder / str(i)).mkdir()
        (folder / str(i) / "words.txt").write_text(text)
        made.append(tf.constant(str(folder / str(i) / "words.txt"), name="path_%d" % i))
    return made


def table(path):
    return tf.contrib.lookup.index_table_from_file(path)


@pytest.mark.parametrize("kind", [builder._SavedModelBuilder, builder.SavedModelBuilder])
def test_assets_of_one_name_stay_apart(tmp_path, kind):
    assets = paths(tmp_path, "a\nb\n", "c\nd\n", "a\nb\n")
    tables = [table(path) for path in assets]
    found = tf.stack([t.lookup(tf.constant(["a", "b", "c", "d"])) for t in tables], name="found")
    folder = str(tmp_path / "model")
    made = kind(folder)
    with tf.Session() as session:
        names = {"assets_list": assets, "init_op": tf.tables_initializer()}
        if kind is builder.SavedModelBuilder:
            names = {"assets_collection": assets, "main_op": names["init_op"]}
        session.run(tf.tables_initializer())
        expected = session.run(found).tolist()
        made.add_meta_graph_and_variables(session, ["serve"], **names)
    made.save()
    assert sorted(os.listdir(os.path.join(folder, "assets"))) == ["words.txt", "words.txt_1"]
    for asset in assets:
        os.remove(tf.get_static_value(asset).item())
    with tf.Session(graph=tf.Graph()) as session:
        definition = tf.saved_model.loader.load(session, ["serve"], folder)
        assert [a.filename for a in definition.asset_file_def] == ["words.txt", "words.txt_1", "words.txt"]
        assert session.run("found:0").tolist() == expected  # what is run first is found in a signature as well


def test_operations_are_signatures(tmp_path):
    step = tf.get_variable("step", initializer=1)
    made = builder._SavedModelBuilder(str(tmp_path / "model"))
    with tf.Session() as session:
        session.run(step.initializer)
        add = tf.assign_add(step, 10)
        made.add_meta_graph_and_variables(session, ["a"], train_op=add.op)
        made.add_meta_graph(["b"], init_op=tf.group(add))
        for key in ("__saved_model_init_op", "__saved_model_train_op"):
            with pytest.raises(KeyError, match="reserved"):
                made.add_meta_graph(["c"], {key: signature_def_utils.build_signature_def()})
    made.save()
    loaded = loader.SavedModelLoader(str(tmp_path / "model"))
    with tf.Session(graph=tf.Graph()) as session:
        definition = loaded.load(session, ["a"], import_scope="in")
        train = loader.get_train_op(definition, "in")
        assert loader.get_init_op(definition, "in") is None and session.run("in/step:0") == 1
        session.run(train)
        assert session.run("in/step:0") == 11
        loaded.load_graph(session.graph, ["b"], import_scope="other")
        with pytest.raises(tf.errors.NotFoundError, match="not in the graph"):
            loaded.run_init_ops(session, ["b"])
    with tf.Session(graph=tf.Graph()) as session:
        loaded.load(session, "b")
        assert session.run("step:0") == 11
    with pytest.raises(tf.errors.NotFoundError, match="could not be found in SignatureDef"):
        signature_def_utils.load_op_from_signature_def(signature_def_utils.build_signature_def(), "key")


def test_loading_by_parts(tmp_path):
    x = tf.get_variable("x", initializer=5)
    made = tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Session() as session:
        session.run(x.initializer)
        made.add_meta_graph_and_variables(session, ["serve"], {"s": signature_def_utils.predict_signature_def({"x": x}, {"y": x * 2})})
    made.save()
    loaded = loader.SavedModelLoader(tmp_path / "model")
    with pytest.raises(RuntimeError, match="could not be found"):
        loaded.get_meta_graph_def_from_tags([])
    graph = tf.Graph()
    saver, elements = loaded.load_graph(graph, ["serve"], return_elements=["x:0"])
    assert elements == [graph.get_tensor_by_name("x:0")]
    with tf.Session(graph=graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run("x:0")
        loaded.restore_variables(session, saver)
        loaded.run_init_ops(session, ["serve"])
        assert session.run(utils.get_tensor_from_tensor_info(loaded.saved_model.meta_graphs[0].signature_def["s"].outputs["y"], graph)) == 10
    assert loaded.export_dir == str(tmp_path / "model") and os.path.exists(loaded.variables_path + ".index")


def test_a_graph_has_one_operation_that_runs_first(tmp_path):
    tf.add_to_collection("saved_model_main_op", tf.no_op())
    made = builder.SavedModelBuilder(str(tmp_path / "model"))
    with tf.Session() as session:
        for kind in (ValueError, AssertionError):  # of 1.15, and before
            with pytest.raises(kind, match="already contains"):
                made.add_meta_graph_and_variables(session, ["serve"], legacy_init_op=tf.no_op())


def test_files_are_compared(tmp_path):
    from millrace import file_io

    for name, text in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "longer")):
        (tmp_path / name).write_text(text)
    a, b, c, d = (str(tmp_path / name) for name in "abcd")
    assert file_io.filecmp(a, c) and not file_io.filecmp(a, b) and not file_io.filecmp(a, d)
    assert file_io.file_crc32(a) == file_io.file_crc32(c, 2) == file_io.file_crc32(a, -1) == "0x7A6C86F1" != file_io.file_crc32(b)
    writer = tf.python_io.TFRecordWriter(str(tmp_path / "records"))
    writer.close()
    writer.close()
    for late in (writer.flush, lambda: writer.write(b"x")):
        with pytest.raises(tf.errors.FailedPreconditionError, match="closed TFRecordWriter"):
            late()


def test_variables_in_signatures_have_their_own_names(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        plain, held = (tf.get_variable(name, [], initializer=tf.constant_initializer(3.0), use_resource=name == "b") for name in "ab")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "m"), {"x": plain}, {"y": plain, "z": held})
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "m")).signature_def["serving_default"]
        assert signature.inputs["x"].name == signature.outputs["y"].name == "a:0"
        assert session.run([signature.outputs[key].name for key in "yz"]) == [3, 3]
