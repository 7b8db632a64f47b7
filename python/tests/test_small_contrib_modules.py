# SPDX-License-Identifier: Apache-2.0
"""Small modules of tf.contrib: meta_graph_transform, cudnn_rnn, periodic_resample, libsvm, input_pipeline, memory_stats. Values are TensorFlow 1.15's."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import cudnn_rnn, input_pipeline, libsvm, memory_stats, meta_graph_transform
from millrace.contrib.periodic_resample import periodic_resample
from millrace.ops import gen_ops
from millrace.protos import definitions, text_format
from millrace.tools.graph_transforms import TransformGraph


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def graph_def():
    with tf.Graph().as_default() as graph:
        a, b = (tf.placeholder(tf.float32, [2], name=name) for name in "ab")
        i = tf.identity(a, name="i")
        with tf.device("/cpu:0"):
            m = tf.multiply(i, b, name="m")
        with tf.control_dependencies([i]):
            c = tf.constant(1.0, name="c")
        e = tf.add(m, c, name="e")
        tf.identity(tf.check_numerics(e, "x", name="chk"), name="out")
        tf.identity(b, name="un")
    return graph.as_graph_def()


def nodes(made):
    return {n.name: (n.op, list(n.input)) for n in made.node}


def test_transforms_of_graphs():
    def of(*transforms):
        return TransformGraph(graph_def(), ["i", "b"], ["out"], transforms)

    stripped = of("strip_unused_nodes")
    assert [n.name for n in stripped.node] == ["b", "i", "m", "c", "e", "chk", "out"]
    assert nodes(stripped)["i"] == ("Placeholder", [])
    shaped = next(n for n in of('strip_unused_nodes(type=int32, shape="1,2")').node if n.name == "i")
    assert shaped.attr["dtype"].type == 3 and [d.size for d in shaped.attr["shape"].shape.dim] == [1, 2]
    assert nodes(of("remove_nodes(op=Identity, op=CheckNumerics)"))["out"] == ("Identity", ["e"])
    assert {n.device for n in of("remove_device").node} == {""}
    assert {n.device for n in of('set_device(device="/gpu:0",if_default=true)').node} == {"/gpu:0", "/device:CPU:0"}
    assert "T" not in next(n for n in of("remove_attribute(attribute_name=T,op_name=Mul)").node if n.name == "m").attr
    renamed = next(
        n for n in of('rename_attribute(old_attribute_name="T",new_attribute_name="Q")', "rename_op(old_op_name=Mul, new_op_name=Sub)").node if n.name == "m"
    )
    assert renamed.op == "Sub" and sorted(renamed.attr) == ["Q"]
    order = [n.name for n in of("sort_by_execution_order").node]
    assert all(order.index(name.lstrip("^")) < order.index(n) for n, (_, names) in nodes(graph_def()).items() for name in names)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Transform 'nonsense' not recognized"):
        of("nonsense")
    with pytest.raises(tf.errors.InvalidArgumentError, match="remove_attribute expects exactly one 'attribute_name' argument, got 0"):
        of("remove_attribute")
    with pytest.raises(NotImplementedError, match="The transform fold_constants is not provided; those that are: strip_unused_nodes"):
        of("fold_constants")


def test_meta_graphs_without_what_is_gone(tmp_path):
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.get_variable("v", initializer=[2.0, 3.0])
    y = tf.multiply(x, v, name="y")
    z = tf.add(x, v, name="z")
    tf.add_to_collection("kept", y)
    tf.add_to_collection("kept", z)
    saver = tf.train.Saver()
    base = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        path = saver.save(s, str(tmp_path / "model"))
    transform = meta_graph_transform.meta_graph_transform.meta_graph_transform
    made = transform(base, ["x"], ["y:0"], ["strip_unused_nodes"], ["tag"])
    assert "z" not in nodes(made.graph_def) and "save/restore_all" in nodes(made.graph_def)
    assert list(made.meta_info_def.tags) == ["tag"] and list(made.collection_def["kept"].node_list.value) == ["y:0"]
    assert made.saver_def == base.saver_def
    frozen = transform(base, ["x"], ["y"], ["freeze_graph"], ["tag"], checkpoint_path=path)
    assert nodes(frozen.graph_def)["v"][0] == "Const" and not frozen.HasField("saver_def")
    with tf.Graph().as_default(), tf.Session() as s:
        (again,) = tf.import_graph_def(frozen.graph_def, return_elements=["y:0"])
        assert s.run(again, {"import/x:0": [1.0, 2.0]}).tolist() == [2.0, 6.0]


def test_parts_of_repeated_fields_are_set():
    node = definitions.NodeDef()
    node.attr["types"].list.type[:] = [3, 1]
    node.input[:] = ["a", "b"]
    node.input.insert(0, "c")
    node.input[1] = "d"
    assert definitions.NodeDef.FromString(node.SerializeToString()) == node
    assert list(node.input) == ["c", "d", "b"] and list(node.attr["types"].list.type) == [3, 1]
    with pytest.raises(TypeError, match="has type int"):
        node.input[0] = 3
    with pytest.raises(TypeError, match="item assignment"):
        definitions.GraphDef(node=[node]).node[0] = node


@pytest.mark.parametrize(
    "cell, wanted",
    [
        (cudnn_rnn.CudnnCompatibleLSTMCell, [[-0.27285144, -0.05147486], [-0.8265909, -0.29138464]]),
        (cudnn_rnn.CudnnCompatibleGRUCell, [[-0.10199863, 0.8305789], [-0.5986256, 0.82102275]]),
    ],
)
def test_cells_of_cudnn(cell, wanted):
    x = tf.constant(np.linspace(-1, 1, 12).reshape(2, 3, 2).astype("f"))
    out, _ = tf.nn.dynamic_rnn(cell(2), x, dtype=tf.float32)
    values = [np.cos(np.arange(v.shape.num_elements()) + i).reshape(v.shape.as_list()) for i, v in enumerate(tf.global_variables())]
    given = [v.assign(value) for v, value in zip(tf.global_variables(), values)]
    with tf.Session() as s:
        s.run(given)
        np.testing.assert_allclose(s.run(out)[:, -1], wanted, rtol=1e-5)
    assert tf.global_variables()[0].op.name in ("rnn/cudnn_compatible_lstm_cell/kernel", "rnn/cudnn_compatible_gru_cell/gates/kernel")


def test_what_needs_a_gpu_says_so():
    with pytest.raises(NotImplementedError, match="CudnnLSTM is not provided yet: use tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell"):
        cudnn_rnn.CudnnLSTM(1, 2)
    with pytest.raises(NotImplementedError, match="measure the memory of GPUs"):
        memory_stats.BytesInUse()


def test_periodic_resample():
    x = tf.placeholder(tf.float32, [2, 2, None])
    finer = periodic_resample(x, [4, 4, None])
    assert finer.shape.as_list() == [4, 4, None]
    assert periodic_resample(np.arange(12).reshape(3, 4), [5, None]).shape == [5, 2]
    with tf.Session() as s:
        rows, slope = s.run([finer[:, :, 0], tf.gradients(finer * finer, x)[0]], {x: np.arange(16).reshape(2, 2, 4)})
    assert rows.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]
    assert slope.ravel().tolist() == [2 * i for i in range(16)]
    for shape, wanted, message in (
        ([1, 2, 2, 4], [None, 4, 4, 1], "Dimension 3 input tensor has size 4, desired shape has size 1"),
        ([2, 2], [4, 4], "at least one index to be marked as adjustable"),
        ([2, 2], [None, None], "only one index to be marked as adjustable"),
    ):
        with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match=message):
            s.run(periodic_resample(np.zeros(shape), wanted))


def test_lines_of_libsvm():
    lines = [["1 1:3.4 2:0.5", "2 2:2.5 3:inf"], ["3 5:2.5 2:nan", "-4"]]
    features, labels = libsvm.decode_libsvm(lines, 6)
    assert labels.shape == [2, 2] and labels.dtype == tf.int64 and features.values.dtype == tf.float32
    with tf.Session() as s:
        made, numbers = s.run([features, labels])
    assert numbers.tolist() == [[1, 2], [3, -4]]
    assert made.indices.tolist() == [[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, 1, 3], [1, 0, 5], [1, 0, 2]]
    np.testing.assert_array_equal(made.values, np.array([3.4, 0.5, 2.5, np.inf, 2.5, np.nan], "f"))
    assert made.dense_shape.tolist() == [2, 2, 6]


def test_strings_in_turn():
    with tf.variable_scope("all"):
        looping = input_pipeline.seek_next(["a", "b"])
    with tf.variable_scope("twice"):
        twice = input_pipeline.seek_next(["a", "b", "c"], shuffle=True, seed=3, num_epochs=2)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert [s.run(looping) for _ in range(3)] == [b"a", b"b", b"a"]
        taken = [s.run(twice) for _ in range(6)]
        assert sorted(taken[:3]) == sorted(taken[3:]) == [b"a", b"b", b"c"]
        with pytest.raises(tf.errors.OutOfRangeError):
            s.run(twice)


def test_lists_of_tensors_are_compared_as_they_are():
    one, other = tf.constant([1.0]), tf.constant([1.0])
    case = tf.test.TestCase()
    case.assertAllEqual([one, other], (one, other))
    with pytest.raises(AssertionError):
        case.assertAllEqual([one], [other])


def test_older_names_of_linear_operators_and_embeddings():
    from millrace import names
    from millrace.contrib import layers, linalg

    util = names.find("contrib.linalg.python.ops.linear_operator_util")
    with tf.Session() as s:
        assert s.run(util.matrix_adjoint(tf.constant([[1 + 2j, 3j]]))).tolist() == [[1 - 2j], [-3j]]
        update = linalg.LinearOperatorUDVHUpdate(linalg.LinearOperatorScaledIdentity(2, 3.0), tf.constant([[1.0], [2.0]]))
        assert s.run(update.to_dense()).tolist() == [[4.0, 2.0], [2.0, 7.0]]
    assert names.find("contrib.linalg.python.ops.linear_operator_addition")._Adder is not None
    ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
    parts = [np.ones([2, 3], "f"), np.ones([2, 3])]
    with pytest.raises(ValueError, match="of one type"):
        layers.safe_embedding_lookup_sparse(parts, ids)
    with pytest.raises(TypeError, match="of one type"):
        tf.nn.safe_embedding_lookup_sparse(parts, ids)


@pytest.mark.parametrize("use_resource", [False, True])
def test_zeros_as_first_values(use_resource):
    variable = tf.get_variable("v", initializer=np.ones([2, 3], np.float32), use_resource=use_resource)
    if use_resource:
        zeros = gen_ops.zero_var_initializer(variable.handle, dtype=tf.float32, shape=[2, 3])
        other = gen_ops.zero_var_initializer(variable.handle, dtype=tf.float64, shape=[2, 3])
    else:
        zeros = other = gen_ops.zero_initializer(variable._ref())
    with tf.Session() as s:
        s.run(zeros.op)
        assert s.run(variable).tolist() == [[0, 0, 0], [0, 0, 0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="input is already initialized"):
            s.run(zeros.op)
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(other.op)


def test_graphs_of_1_15_with_ops_of_contrib():
    """Nodes as TensorFlow 1.15's functions make them, by their names alone."""
    graph = tf.GraphDef()
    text_format.Parse(
        """
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "i" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor {
          dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: 0 int_val: 2 int_val: 3 } } } }
        node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "value" value { tensor {
          dtype: DT_INT64 tensor_shape { } int64_val: 0 } } } }
        node { name: "sum" op: "ReduceSliceSum" input: "x" input: "i" input: "a" attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "Tindices" value { type: DT_INT32 } } }
        node { name: "finer" op: "PeriodicResample" input: "x" attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "shape" value { shape { dim { size: 6 } dim { size: -1 } } } } }
        """,
        graph,
    )
    total, finer = tf.import_graph_def(graph, return_elements=["sum:0", "finer:0"], name="")
    with tf.Session() as s:
        total, finer = s.run([total, finer], {"x:0": np.arange(12).reshape(3, 4)})
    assert total.tolist() == [[4, 6, 8, 10], [8, 9, 10, 11]]
    assert finer.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]


def test_stereograms():
    """What is far is seen twice at the distance of half the eyes, whatever dots are drawn."""
    deep = tf.contrib.image.single_image_random_dot_stereograms(
        np.zeros([3, 4]), normalize=False, dots_per_inch=8, convergence_dots_size=0, output_image_shape=[90, 30, 1], output_data_window=[90, 30]
    )
    coloured = tf.contrib.image.single_image_random_dot_stereograms(tf.constant([[1, 2], [3, 4]]), number_colors=300)
    assert deep.shape.as_list() == [30, 90, 1] and coloured.shape.as_list() == [768, 1024, 3]
    with tf.Session() as s:
        image = s.run(deep)
    assert np.array_equal(image[:, 10:], image[:, :-10]) and len(set(image.ravel().tolist())) > 100
