# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.receptive_field, specs, model_pruning and tensorboard."""

import json
import os

import numpy as np
import pytest

import millrace as tf
from millrace.compat import pywrap
from millrace.contrib import model_pruning, receptive_field, slim, specs


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_receptive_field_is_what_gradients_reach():
    x = tf.placeholder_with_default(tf.zeros([1, 33, 33, 1]), [None, None, None, 1], name="x")
    ones = tf.ones_initializer()
    net = slim.conv2d(x, 1, [3, 5], stride=2, padding="VALID", weights_initializer=ones, activation_fn=None)
    net = slim.avg_pool2d(net, [2, 2], stride=2, padding="VALID")
    y = tf.identity(slim.conv2d(net, 1, [3, 1], padding="SAME", weights_initializer=ones, activation_fn=None), name="y")
    seen = receptive_field.compute_receptive_field_from_graph_def(tf.get_default_graph(), "x", "y")
    (reached,) = tf.gradients(y[0, 3, 3, 0], x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, columns = np.nonzero(session.run(reached)[0, :, :, 0])
    assert list(seen.size) == [columns.max() - columns.min() + 1, rows.max() - rows.min() + 1]
    middle = seen.compute_input_center_coordinates([3, 3])
    assert list(middle) == [(columns.max() + columns.min()) / 2, (rows.max() + rows.min()) / 2]
    assert list(seen.compute_feature_coordinates(middle)) == [3, 3] and list(seen.stride) == [4, 4]


def test_receptive_fields_of_paths_that_do_not_fit():
    x = tf.placeholder(tf.float32, [None, None, None, 1], name="x")
    left = slim.conv2d(x, 1, [1, 1], stride=4, padding="VALID")
    right = slim.conv2d(slim.conv2d(x, 1, [3, 3], stride=2, padding="SAME"), 1, [1, 1], stride=2, padding="VALID")
    tf.nn.relu(left + right, name="y")
    compute = receptive_field.compute_receptive_field_from_graph_def
    assert compute(tf.get_default_graph(), "x", "y").padding[0] is None and list(compute(tf.get_default_graph(), "x", "y", None, [9, 9]).padding) == [1, 1]
    with pytest.raises(ValueError, match="center shift"):
        compute(tf.get_default_graph(), "x", "y", input_resolution=[8, 8])
    with pytest.raises(ValueError, match="Output node"):
        compute(tf.get_default_graph(), "x", "z")
    nodes, _ = receptive_field.get_compute_order(tf.get_default_graph().as_graph_def(), "x", [9, 9])
    assert nodes["y"].output_size == [3, 3] and nodes["Conv/Conv2D"].input_size == [9, 9]


def test_networks_in_a_line():
    x = tf.placeholder_with_default(np.ones([2, 8, 8, 3], np.float32), [2, 8, 8, 3])
    spec = "C3 = Cr(_1=[3, 3]); M2 = Mp([2, 2]); net = (C3(_0=5) | M2)**2 | Flat | (Fs(4) + Fl(4))"
    made = specs.create_net(spec, x)
    assert made.get_shape().as_list() == [2, 4]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.isfinite(session.run(made)).all()
    layer = "variablev2 conv variablev2 biasadd relu maxpool"
    assert specs.summaries.tf_spec_structure("net = Cr(4, [3, 3]) | Mp([2, 2])", x) == "_ placeholderwithdefault " + layer
    lines = []
    specs.tf_parameter_summary(specs.create_net("net = Flat | Fl(4)", x), printer=lines.append)
    assert sum(int(line.split()[0]) for line in lines) == 8 * 8 * 3 * 4 + 4
    with pytest.raises(ValueError, match="import"):
        specs.create_net("import re; net = Id", x)
    with pytest.raises(ValueError, match="create 'net'"):
        specs.create_net("x = Id", x)
    drawn = specs.eval_params("x = 3; y = Ui(-2, 2); z = Li(1, 10); q = Nt(0.0, 1.0, 2.0)")
    assert drawn["x"] == 3 and -2 <= drawn["y"] <= 2 and 1 <= drawn["z"] <= 10 and abs(drawn["q"]) <= 2
    with specs.ops:
        shared = Shared(Fl(3))  # noqa: F821
    assert "Shared" not in globals()
    before = len(tf.global_variables())
    (shared | shared).funcall(tf.ones([2, 3]))
    assert len(tf.global_variables()) == before + 2


def test_smallest_weights_are_masked():
    step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", initializer=np.arange(1, 101, dtype=np.float32).reshape(10, 10))
    masked = model_pruning.apply_mask(weights)
    settings = model_pruning.get_pruning_hparams().parse("begin_pruning_step=1,pruning_frequency=2,sparsity_function_end_step=10,target_sparsity=0.9")
    update = model_pruning.Pruning(settings).conditional_mask_update_op()
    count, sparsity = tf.assign_add(step, 1), model_pruning.get_weight_sparsity()[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        zeros = []
        for _ in range(14):
            session.run(update)
            session.run(count)
            zeros.append(session.run(sparsity))
        progress = np.minimum(np.array([0, 2, 4, 6, 8, 10, 12]) / 10.0, 1)
        np.testing.assert_allclose(zeros[::2], np.round(0.9 - 0.9 * (1 - progress) ** 3, 2), atol=1e-6)
        assert zeros[1] == zeros[0] and (session.run(masked).ravel()[:90] == 0).all()


def test_weights_that_are_not_pruned():
    tf.train.get_or_create_global_step()
    for name in ("one", "two"):
        with tf.variable_scope(name):
            model_pruning.apply_mask(tf.get_variable("w", initializer=np.arange(1, 9, dtype=np.float32)))
    settings = model_pruning.get_pruning_hparams().parse("do_not_prune=[two,three]")
    update = model_pruning.Pruning(settings, sparsity=tf.constant(0.5)).mask_update_op()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(model_pruning.get_weight_sparsity()) == [0.5, 0.0]


def test_lines_of_operations_for_tensorboard(tmp_path):
    trace = tf.contrib.tensorboard.plugins.trace
    assert trace.find_multiline_statements("def f():\n  a(4,\n    3)\n\n  b(3, 4)\n\n  c((4, 3),\n    (),\n  )\n") == {2: 1, 8: 6}
    placed = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.nn.relu(placed, name="y")
    trace.store_trace_info(str(tmp_path / "trace.json"))
    told = json.loads((tmp_path / "trace.json").read_text())
    x, y = told["ops"]
    assert (x["name"], x["opType"], y["name"], y["opType"]) == ("x", "Placeholder", "y", "Relu")
    assert x["outputs"] == [{"shape": [-1, 2], "dtype": "float32", "numBytesPerElem": 4, "consumers": ["y"]}] == y["inputs"]
    assert any(line["filePath"] == os.path.abspath(__file__) for line in x["traceback"])
    (mine,) = [file for file in told["files"] if file["filePath"] == os.path.abspath(__file__)]
    gone = str(tmp_path / "gone.py")
    assert trace._file(gone) == {"filePath": gone}
    assert mine["sourceCode"].startswith("# SPDX") and "multilineStatements" in mine
    assert trace.TraceInfo.FromString(trace.TraceInfo(ops=[{"name": "x", "op_type": "Relu"}]).SerializeToString()).ops[0].op_type == "Relu"


def test_what_nodes_of_traced_steps_took():
    x = tf.placeholder(tf.float32, [1, 2], name="x")
    product = tf.matmul(x, tf.constant([[2.0], [2.0]]), name="product")
    assert tf.contrib.stat_summarizer.NewStatSummarizer is pywrap.NewStatSummarizer
    summed = pywrap.NewStatSummarizer(tf.get_default_graph().as_graph_def().SerializeToString())
    with tf.Session() as session:
        for _ in range(3):
            told = tf.RunMetadata()
            session.run(product, {x: [[1.0, 2.0]]}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=told)
            summed.ProcessStepStatsStr(told.step_stats.SerializeToString())
    text = summed.GetOutputString()
    titles = [line.strip("= ") for line in text.split("\n") if line.startswith("=====")]
    assert titles == ["Run Order", "Top by Computation Time", "Top by Memory Use", "Summary by node type"]
    rows = [line.split() for line in text.split("\n") if line.endswith("product")]
    assert len(rows) == 3 and all(row[0] == "MatMul" and row[-2] == "1" for row in rows)
    assert "Timings (microseconds): count=3 " in text and "Memory (bytes): count=3 " in text


def test_masks_of_blocks_and_of_weights_by_name():
    tf.train.get_or_create_global_step()
    with tf.variable_scope("one"):
        model_pruning.apply_mask(tf.get_variable("w", initializer=np.arange(16, dtype=np.float32).reshape(4, 4)))
    with tf.variable_scope("two"):
        model_pruning.apply_mask(tf.get_variable("w", initializer=np.arange(8, dtype=np.float32)))
    settings = model_pruning.get_pruning_hparams().parse("block_dims_map=[one/w:2x2],weight_sparsity_map=[two/w:0.75]")
    sparsity = tf.constant(0.5)
    update = model_pruning.Pruning(settings, sparsity=sparsity).mask_update_op()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        one, two = session.run(model_pruning.get_masks())
    assert one[2:].all() and not one[:2].any() and list(two) == [0] * 6 + [1, 1]
    with pytest.raises(ValueError, match="target_sparsity"):
        model_pruning.Pruning(model_pruning.get_pruning_hparams().parse("target_sparsity=1.0"))


def test_masked_layers_cells_and_stripped_graphs():
    tf.train.get_or_create_global_step()
    x = tf.constant(np.random.RandomState(3).randn(2, 6, 6, 2).astype(np.float32))
    net = model_pruning.masked_conv2d(x, 4, 3, scope="conv")
    net = model_pruning.masked_fully_connected(slim.flatten(net), 5, activation_fn=None, scope="dense")
    cell = model_pruning.MaskedLSTMCell(3, use_peepholes=True)
    output, _ = tf.nn.dynamic_rnn(cell, net[:, None, :], dtype=tf.float32)
    answer = tf.identity(output, name="answer")
    assert [m.get_shape().as_list() for m in model_pruning.get_masks()] == [[3, 3, 2, 4], [144, 5], [8, 12]]
    assert not [v for v in tf.trainable_variables() if v.op.name.endswith(("/mask", "/threshold"))] and len(model_pruning.get_weights()) == 3
    update = model_pruning.Pruning(sparsity=tf.constant(0.5)).mask_update_op()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        whole = session.run(answer)
        session.run(update)
        pruned = session.run(answer)
        frozen = tf.graph_util.convert_variables_to_constants(session, tf.get_default_graph().as_graph_def(), ["answer"])
    assert abs(whole - pruned).max() > 1e-4
    stripped = model_pruning.strip_pruning_vars_fn(frozen, ["answer"])
    assert any(node.name == "dense/mask" for node in frozen.node) and not any(node.name.endswith(("/mask", "/mask/read")) for node in stripped.node)
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.import_graph_def(stripped, return_elements=["answer:0"], name="")[0]), pruned)


def test_rates():
    values, time = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [1])
    rate = tf.contrib.rate.Rate("a rate")
    change = rate(values, time)
    assert rate.name == "a rate" and len(rate.variables) == 4 and not tf.global_variables()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for given, at, wanted in (([2, 4], 2, [1, 2]), ([3, 4], 4, [0.5, 0]), ([9, 9], 4, [0, 0]), ([9, 10], 5, [0, 1])):
            np.testing.assert_array_equal(session.run(change, {values: given, time: [at]}), wanted)


def test_lines_of_networks_over_images_with_memory():
    with tf.Graph().as_default():
        image = tf.zeros([2, 6, 8, 3])
        for line, shape in [("Lstm2(5)", [2, 6, 8, 5]), ("Clstm2(4, 5)", [2, 6, 8, 5]), ("Lstm2to1(5)", [2, 8, 5]), ("Lstm2to0(5)", [2, 5])]:
            with tf.variable_scope(None, "net"):
                assert tf.contrib.specs.create_net("net = " + line, image).shape.as_list() == shape, line
