# SPDX-License-Identifier: Apache-2.0
"""What is known while the graph is built: shapes, types, devices, seeds, values; products whose ranks are not known."""

import numpy as np
import pytest

import millrace as tf
from millrace.framework import device, static_values, tensor_util


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def test_shapes_with_unknown_sizes_equal_nothing_else():
    known, unknown = tf.TensorShape([3, 4]), tf.TensorShape([None, 3])
    assert known == [3, 4] and known != [4, 3] and known != "34" and not known == "34" and known == ["3", "4"]
    assert unknown != tf.TensorShape([None, 3]) and not unknown == tf.TensorShape([None, 3]) and tf.TensorShape(None) == tf.TensorShape(None)
    with pytest.raises(ValueError, match="undefined"):
        tf.TensorShape(None) != known
    with pytest.raises(TypeError, match="ambiguous"):
        tf.TensorShape("347")
    assert tf.TensorShape([1, 2, 3]).most_specific_compatible_shape([1, 4, 3]).as_list() == [1, None, 3]
    assert tf.TensorShape([1]).concatenate(tf.Dimension(3)).as_list() == [1, 3]


def test_types():
    assert tf.int32 != int and tf.float32 == float and tf.bool == bool and tf.dtypes.as_dtype("float32_ref").base_dtype == tf.float32
    with pytest.raises(TypeError):
        tf.DType(0)


def test_devices():
    spec = tf.DeviceSpec.from_string("/job:foo/replica:0")
    assert spec.parse_from_string("/task:1/gpu:2").to_string() == "/task:1/device:GPU:2"
    assert tf.DeviceSpec.from_string("/device:MyDevice:1").to_string() == "/device:MyDevice:1" and device.canonical_name("/cpu:0") == "/device:CPU:0"
    with pytest.raises(ValueError, match="Cannot specify multiple device types"):
        device.check_valid("/device:GPU:2/cpu:0")
    with pytest.raises(ValueError, match="Unknown attribute: 'job' in"):
        device.check_valid("/job:a:b")


def test_seeds():
    with tf.Graph().as_default():
        assert tf.get_seed(None) == (None, None) and tf.get_seed(2**63 + 1) == (87654321, (2**63 + 1) % (2**31 - 1))
        tf.set_random_seed(0)
        assert tf.get_seed(0) == (0, 2**31 - 1)
        with tf.Session() as session:
            assert session.run(tf.random_uniform([2], seed=2**63)).shape == (2,)


def test_static_values():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.int32, [])
        value = tf.get_static_value
        assert value(tf.cast(tf.constant([1.5]), tf.int32)).tolist() == [1] and value(tf.equal([[0, 1]], [[0], [1]])).tolist() == [[True, False], [False, True]]
        assert value(tf.concat([[1], [2, 3]], 0)).tolist() == [1, 2, 3] and value(tf.fill([2], 7)).tolist() == [7, 7] and value(x) is None
        assert tensor_util.constant_value(tf.stack([5, x]), partial=True)[1] is None and value(tf.stack([5, x])) is None
        assert isinstance(value(tf.rank(tf.zeros([2, 3]))), np.ndarray)
        sizes = tf.concat([[1, 2, 16], tf.placeholder(tf.int32, [1]), [48]], 0)
        assert static_values.constant_value_as_shape(sizes[2:]).as_list() == [16, None, 48]
        assert static_values.constant_value_as_shape(sizes[:0:-2]).as_list() == [48, 16]
        assert static_values.constant_value_as_shape(tf.stack([3, x])).as_list() == [3, None]
        assert tf.constant(1.0, shape=[0, 2]).get_shape().as_list() == [0, 2]


def test_tensor_protos():
    one, many = tf.make_tensor_proto(10.0), tf.make_tensor_proto([10.0, 20.0])
    assert list(one.float_val) == [10.0] and many.tensor_content == np.array([10, 20], np.float32).tobytes()
    assert tf.make_ndarray(tf.make_tensor_proto([7], shape=[2, 2])).tolist() == [[7, 7], [7, 7]]
    assert list(tf.make_tensor_proto([1 + 2j], tf.complex64).scomplex_val) == [1, 2] and tf.make_tensor_proto(one) is one
    assert tf.make_ndarray(tf.make_tensor_proto(np.array([1.5, 2], np.float16))).tolist() == [1.5, 2]
    for values, kwargs, error in [
        ([1, 2, 3], {"shape": [2]}, ValueError),
        ([[1], [2]], {"shape": [1, 2], "verify_shape": True}, TypeError),
        (None, {}, ValueError),
    ]:
        with pytest.raises(error):
            tf.make_tensor_proto(values, **kwargs)


def test_products_of_unknown_rank():
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(40.0).reshape(2, 4, 5)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
        feed = {x: a, y: b}
        np.testing.assert_allclose(session.run(tf.matmul(x, y), feed), a @ b)
        np.testing.assert_allclose(session.run(tf.matmul(a, b[0])), a @ b[0])  # the others broadcast
        np.testing.assert_allclose(session.run(tf.matmul(x, y, transpose_a=True), {x: a[0].T, y: b[0]}), a[0] @ b[0])
        for axes in ([[2], [1]], [[-1], [1]], [[0, 2], [0, 1]]):
            np.testing.assert_allclose(session.run(tf.tensordot(x, y, axes), feed), np.tensordot(a, b, axes))
        np.testing.assert_allclose(session.run(tf.tensordot(x, y, 1), {x: a, y: b[0]}), np.tensordot(a, b[0], 1))
        for order in ("fro", 1, 2, np.inf):
            np.testing.assert_allclose(session.run(tf.norm(x, order, [-2, -1]), feed), np.linalg.norm(a, order, (-2, -1)))
        np.testing.assert_allclose(session.run(tf.norm(x, 3, 1, keepdims=True), feed), np.linalg.norm(a, 3, 1, keepdims=True))
        np.testing.assert_allclose(session.run(tf.einsum("ijk,ikl,l->ij", x, y, np.ones(5)), feed), (a @ b).sum(-1))
        np.testing.assert_allclose(session.run(tf.einsum("...k,k", a, np.ones(4))), a.sum(-1))
        rows, columns = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
        for shape in ((2, 3), (3, 2), (0, 2), (2, 0)):
            assert session.run(tf.eye(rows, columns), {rows: shape[0], columns: shape[1]}).tolist() == np.eye(*shape).tolist()
            assert session.run(tf.eye(*shape, batch_shape=[2])).tolist() == [np.eye(*shape).tolist()] * 2
        for error, text, make in [
            (ValueError, "'axes' must be at least 0", lambda: tf.tensordot(a, b, -1)),
            (ValueError, "Different number of contraction axes", lambda: tf.tensordot(a, b, [[0, 1], [0]])),
            (ValueError, "'axis' must be None, an integer, or a tuple of 2 unique integers", lambda: tf.norm(a, axis=[0, 0])),
            (ValueError, "supported matrix norm", lambda: tf.norm(a, 3, [0, 1])),
            (ValueError, "supported vector norm", lambda: tf.norm(a, "fro")),
            (ValueError, "Got 1 arguments for equation", lambda: tf.einsum("ij,jk->ik", a)),
        ]:
            with pytest.raises(error, match=text):
                make()


def test_gradients_of_integers_and_complex_numbers():
    with tf.Graph().as_default():
        x = tf.constant([1, 2])
        assert tf.gradients(tf.reduce_sum(tf.constant(1.0)), x) == [None]
        z = tf.constant(1 + 2j)
        with pytest.raises(TypeError, match="must set grad_ys"):
            tf.gradients(z * z, z)
        assert tf.gradients(z * z, z, grad_ys=tf.constant(1 + 0j))[0] is not None


def test_small_functions():
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.bincount([], maxlength=3)).tolist() == [] and session.run(tf.bincount([1, 1, 2], minlength=5)).tolist() == [0, 2, 1, 0, 0]
        assert session.run([tf.reduce_all([]), tf.reduce_any([])]) == [True, False]
        assert session.run(tf.angle(tf.constant(1j, tf.complex128))) == pytest.approx(np.pi / 2) and session.run(tf.angle(-1.0)) == pytest.approx(np.pi)
        clipped, _ = tf.clip_by_global_norm([[1.0, np.inf], [2.0]], 1.0)
        assert all(np.isnan(part).all() for part in session.run(clipped))


def test_ranks_that_are_not_known_are_asserted_in_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        with tf.control_dependencies([tf.assert_rank(x, 1, message="fail"), tf.assert_rank_at_least(x, 1), tf.assert_rank_in(x, (1, 2))]):
            y = tf.identity(x)
        assert session.run(y, {x: [1.0]}).tolist() == [1.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
            session.run(y, {x: 1.0})
        with pytest.raises(ValueError, match="must have rank in"):
            tf.assert_rank_in(tf.constant(1.0), (1, 2))
        with pytest.raises(TypeError, match="must be of type"):
            tf.assert_rank(tf.constant(1.0), 0.5)
        with pytest.raises(TypeError, match="proper"):
            tf.debugging.assert_proper_iterable(tf.constant([1]))
        with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
            tf.assert_equal([1, 1, 1], [1, 1])


def test_messages_and_the_protobuf_package():
    text_format = pytest.importorskip("google.protobuf.text_format")
    from google.protobuf import json_format

    text = "node { name: 'a' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'n' value { i: 3 } } input: 'x' } versions { producer: 5 }"
    graph = text_format.Merge(text, tf.GraphDef())
    assert graph.node[0].attr["dtype"].type == 1 and graph.node[0].attr["n"].i == 3 and list(graph.node[0].input) == ["x"]
    assert text_format.Parse(text_format.MessageToString(graph), tf.GraphDef()) == graph
    assert '"floatList"' in json_format.MessageToJson(tf.train.Feature(float_list=tf.train.FloatList(value=[1.0])))
    assert tf.GraphDef.DESCRIPTOR.full_name == "tensorflow.GraphDef"
    with pytest.raises(text_format.ParseError):
        text_format.Merge("no_such_field: 1", tf.GraphDef())


@pytest.mark.parametrize(
    "make", [tf.constant, tf.convert_to_tensor, tf.Variable, tf.identity, lambda a: tf.get_variable("x", [len(a)], initializer=tf.constant_initializer(a))]
)
def test_a_constant_is_not_the_array_of_the_program(make):
    array = np.arange(10000, dtype=np.float32)  # large enough to be taken without a copy
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tensor = make(array)
        before = graph.as_graph_def().SerializeToString()
        array[:] = -1
        assert graph.as_graph_def().SerializeToString() == before
        session.run(tf.global_variables_initializer())
        assert session.run(tensor)[:3].tolist() == [0, 1, 2]


def test_shapes_beyond_32_bits():
    with tf.Graph().as_default():
        for tensor in (tf.zeros([2**33, 1]), tf.ones([2**33, 1]), tf.random_normal([2**33, 1]), tf.fill(tf.TensorShape([2**33, 1]), 1.0)):
            assert tensor.get_shape().as_list() == [2**33, 1]
        with pytest.raises(ValueError, match="a dimension is too large .8589934592."):
            tf.convert_to_tensor(tf.TensorShape([2**33]), tf.int32)


def test_sparse_tensors_element_by_element():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.SparseTensor([[0, 0], [1, 1]], [-4.0, 9.0], [2, 2])
        for function, values in ((tf.abs, [4, 9]), (tf.negative, [4, -9]), (tf.sign, [-1, 1]), (tf.square, [16, 81]), (tf.tanh, np.tanh([-4, 9]))):
            made = session.run(function(x))
            np.testing.assert_allclose(made.values, values, rtol=1e-6)
            assert made.indices.tolist() == [[0, 0], [1, 1]]
        crossed = session.run(tf.sparse.cross([tf.SparseTensor([[0, 0], [0, 1]], ["a", "b"], [1, 2]), tf.constant([["c"]])]))
        assert crossed.values.tolist() == [b"a_X_c", b"b_X_c"]
        with pytest.raises(ValueError):
            tf.sparse_retain(x, [True, False, True])


def test_graphs_for_inference():
    with tf.Graph().as_default() as graph:
        a = tf.constant(1.0, name="a")
        check = tf.check_numerics(a, "bad", name="check")
        with tf.control_dependencies([check]):
            kept = tf.identity(a, name="gone")
        tf.square(tf.identity(kept, name="passes"), name="end")
        later = graph.version
        tf.negative(a, name="later")
    assert [n.name for n in graph.as_graph_def(from_version=later).node] == ["later"]
    made = tf.graph_util.remove_training_nodes(graph.as_graph_def())
    assert {n.name: list(n.input) for n in made.node} == {"a": [], "end": ["a"], "later": ["a"]}
    assert "passes" in {n.name for n in tf.graph_util.remove_training_nodes(graph.as_graph_def(), ["passes"]).node}


def test_what_summaries_say():
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.Summary.FromString(session.run(tf.summary.tensor_summary("t", [1.0], display_name="shown", summary_description="what", family="f")))
        assert made.value[0].tag == "f/f/t" and made.value[0].metadata.display_name == "shown" and made.value[0].metadata.summary_description == "what"
        sound = tf.Summary.FromString(session.run(tf.summary.audio("s", np.zeros([1, 4, 1], np.float32), 8000, family="f")))
        assert sound.value[0].tag == "f/f/s/audio/0"


def test_graphs_cut_down_to_what_is_needed():
    from millrace.tools import strip_unused

    with tf.Graph().as_default() as graph:
        a = tf.constant(2.0, name="a")
        b = tf.square(a, name="b")
        tf.add(b, 1.0, name="out")
        tf.negative(a, name="unused")
    made = strip_unused.strip_unused(graph.as_graph_def(), ["b"], ["out"], tf.float32.as_datatype_enum)
    assert {n.name: n.op for n in made.node if n.name != "out/y"} == {"b": "Placeholder", "out": "Add"}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(made, name="")
        assert session.run("out:0", {"b:0": 5.0}) == 6.0
    for names, error in ((["b:0"], ValueError), (["no"], KeyError)):
        with pytest.raises(error):
            strip_unused.strip_unused(graph.as_graph_def(), names, ["out"], 1)


def test_shapes_that_numbers_tell():
    assert tf.range(1.0, 2.0, 0.25).shape == [4] and tf.range(5, 0, -1).shape == [5] and tf.range(5.0, 0.0, -2.0).shape == [3]
    assert tf.range(0.0, 0.0, 1.0).shape == [0] and tf.range(tf.placeholder(tf.float32, [])).shape.as_list() == [None]
    assert tf.tile(tf.ones([1, 2]), [tf.placeholder(tf.int32, []), 7]).shape.as_list() == [None, 14]
    with pytest.raises(ValueError, match="at most rank 1"):
        tf.reduce_sum(tf.placeholder(tf.float32), [[1], [2]])
    with pytest.raises(ValueError, match="evenly divisible by 7"):
        tf.reshape(tf.ones([2, 3]), [7, -1])


def test_dimensions_are_not_divided_into_fractions():
    assert (tf.Dimension(8) / 2).value == 4 and tf.Dimension(9) / 2.0 == 4.5
    with pytest.raises(TypeError, match="//"):
        tf.Dimension(None) / 2


def test_arrays_by_protocol_keep_their_type():
    class Column:
        def __init__(self, values):
            self.values = np.array(values)

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype)

    assert tf.constant(Column([1, 2])).dtype == tf.int64 and tf.constant(Column([1.5])).dtype == tf.float64
    assert tf.constant([1, 2]).dtype == tf.int32 and tf.constant([1.5]).dtype == tf.float32


def test_an_axis_may_be_named_twice(sess):
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    assert sess.run(tf.reduce_sum(x, (0, -2))).tolist() == [5, 7, 9] and sess.run(tf.reduce_sum(x, [1, 1, 0])) == 21


def test_the_norm_over_all_of_a_tensor_is_a_scalar():
    assert tf.math.reduce_euclidean_norm(tf.placeholder(tf.float32)).shape.ndims == 0


def test_shapes_inside_loops_and_branches_follow_values_outside():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 5])
        rows, shape = tf.shape(x)[0], tf.stack([tf.shape(x)[0], tf.shape(tf.placeholder(tf.float32, [None]))[0]])
        seen = []

        def body(value):
            made = (tf.zeros([rows, 2]), tf.reshape(x, tf.shape(x)), tf.tile(value, [rows, 1]), tf.fill(shape, 1.0))
            seen.append([m.shape.as_list() for m in made])
            return value + 1.0

        start = tf.ones([1, 2])
        body(start)
        tf.while_loop(lambda v: tf.reduce_sum(v) < 9.0, body, [start])
        tf.cond(tf.reduce_sum(x) > 0.0, lambda: body(start), lambda: start)
        tf.map_fn(body, tf.ones([4, 1, 2]))
        assert seen == [[[3, 2], [3, 5], [3, 2], [3, None]]] * 4


def test_checks_of_what_only_this_library_knows_come_in_the_step():
    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.reshape(tf.constant([[2, 1], [0, 1]]), [-1])
        with tf.control_dependencies([tf.assert_less_equal(values, tf.ones_like(values), message="at most 1")]):
            made = tf.identity(values)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at most 1"):
            session.run(made)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at most 1: Condition x <= y did not hold"):
            tf.assert_less_equal(tf.constant([2]), 1, message="at most 1")


def test_what_is_no_tensor_comes_back_as_it_is():
    array = np.arange(2)
    for given in (5, False, "a", array, [1, 2], tf.Dimension(3)):
        assert tf.get_static_value(given) is given and tf.contrib.util.constant_value(given) is given
    for given in (tf.Variable(1.0), tf.SparseTensor([[0]], [1], [1]), tf.placeholder(tf.int32), None):
        assert tf.get_static_value(given) is None
    assert tf.get_static_value(tf.constant(3)) == 3


def test_shapes_as_tensors_and_types_as_names():
    with tf.Session() as session:
        assert session.run(tensor_util.shape_tensor([tf.Dimension(1), 2])).tolist() == [1, 2]
        assert tensor_util.shape_tensor(()).dtype == tf.int32 and session.run(tensor_util.shape_tensor(tf.TensorShape([1, 2]))).tolist() == [1, 2]
    assert tf.float32.__reduce__() == (tf.as_dtype, ("float32",))
    with pytest.raises(TypeError, match="Cannot convert <dtype: 'string'> to Dimension"):
        tf.Dimension(tf.string)
