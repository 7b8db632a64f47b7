# SPDX-License-Identifier: Apache-2.0
"""Graphs as programs see them: names, scopes, devices, control dependencies, collections, import and export."""

import numpy as np
import pytest

import millrace as tf
from millrace.framework import function
from millrace import names
from millrace.protos import definitions


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def test_names_are_unique_and_scoped():
    assert [tf.constant(1).name for _ in range(3)] == ["Const:0", "Const_1:0", "Const_2:0"]
    with tf.name_scope("a") as scope:
        assert scope == "a/"
        x = tf.constant(1, name="x")
    with tf.name_scope("a"):
        assert tf.constant(1, name="x").name == "a_1/x:0"
    with tf.name_scope(scope):
        assert tf.constant(1, name="y").name == "a/y:0"
    assert (x + 1).name == "add:0" and (x + 1).op.inputs[1].name == "add_1/y:0"
    assert tf.get_default_graph().get_tensor_by_name("a/x:0") is x
    with pytest.raises(KeyError):
        tf.get_default_graph().get_operation_by_name("nothing")


def test_variable_scopes_reuse_and_share_names_with_name_scopes():
    with tf.variable_scope("net"):
        a = tf.get_variable("w", [2])
        assert tf.identity(a).op.name == "net/Identity"
    with tf.variable_scope("net", reuse=True):
        assert tf.get_variable("w", [2]) is a
    with pytest.raises(ValueError, match="already exists"):
        with tf.variable_scope("net"):
            tf.get_variable("w", [2])
    with pytest.raises(ValueError, match="does not exist"):
        with tf.variable_scope("net", reuse=True):
            tf.get_variable("b", [2])
    with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("w", [1]) is tf.get_variable("w", [1])
    with tf.variable_scope(None, default_name="layer") as one:
        pass
    with tf.variable_scope(None, default_name="layer") as two:
        pass
    assert (one.name, two.name) == ("layer", "layer_1")


def test_devices_are_merged_and_functions_called():
    with tf.device("/job:ps/task:1"):
        with tf.device("/cpu:0"):
            assert tf.constant(1).device == "/job:ps/task:1/device:CPU:0"
    seen = []

    def choose(op):
        seen.append(op.type)
        return "/cpu:0" if op.type == "Const" else None

    with tf.device(choose):
        x = tf.constant(2)
    assert x.device == "/cpu:0" and seen == ["Const"]  # what a function says stands as it is
    with tf.device(lambda op: "/job:overwrite"), tf.device("/job:ps/cpu:0"):
        assert tf.constant(1).device == "/job:overwrite"
    with tf.device("/job:worker"), tf.device(choose):
        assert tf.constant(1).device == "/job:worker/device:CPU:0"
    scope = tf.device("/job:ps")
    scope.__enter__()
    with tf.device("/job:worker"), pytest.raises(RuntimeError, match="Exiting device scope without proper scope nesting."):
        scope.__exit__(None, None, None)
    with tf.colocate_with(x):
        assert tf.constant(1).op.colocation_groups() == [b"loc:@" + x.op.name.encode()]


def test_operations_tell_which_scopes_placed_them():
    before = tf.constant(0)
    with tf.device("/cpu"):
        with tf.device("/cpu:0"):
            two = tf.constant(2)
        with tf.colocate_with(before):
            three = tf.constant(3)
        one = tf.constant(1)
    with tf.device(lambda op: "/cpu:0"):
        chosen = tf.constant(4)
    after = tf.constant(5)
    assert [[entry.obj for entry in t.op._device_assignments] for t in (before, one, two, three, after)] == [[], ["/cpu"], ["/cpu:0", "/cpu"], [], []]
    assert chosen.op._device_assignments[0].obj.startswith("<lambda><") and list(three.op._colocation_dict) == ["Const"]
    assert not one.op._colocation_dict and not after.op._colocation_dict


def test_operations_by_their_node_def():
    graph = tf.Graph()
    with graph.as_default(), tf.name_scope("s"), tf.device("/cpu:0"):
        given = tf.constant(1)
        with tf.control_dependencies([tf.no_op()]):
            made = tf.Operation(tf.NodeDef(name="a", op="Identity", device="/gpu:0"), graph, [given], [tf.int32], control_inputs=[given.op])
        assert (made.name, made.device, made.inputs, made.control_inputs) == ("a", "/gpu:0", [given], [given.op])
        assert str(made) == str(graph.get_operation_by_name("a").node_def) and made.outputs[0].dtype == tf.int32
    with graph.as_default():
        assert tf.constant(1, name="a").op.name == "a_1"
    for arguments, error, text in (
        ((1, graph), TypeError, "node_def needs to be a NodeDef: 1"),
        ((tf.NodeDef(name="_a", op="NoOp"), graph), ValueError, "'_a' is not a valid node name"),
        ((tf.NodeDef(name="b", op="NoOp"), 3), TypeError, "g needs to be a Graph: 3"),
        ((tf.NodeDef(name="b", op="NoOp"), graph, 3), TypeError, "inputs needs to be a list of Tensors: 3"),
        ((tf.NodeDef(name="b", op="NoOp"), graph, [3]), TypeError, "input needs to be a Tensor: 3"),
        ((tf.NodeDef(name="a", op="NoOp"), graph), ValueError, "Duplicate node name in graph: 'a'"),
    ):
        with pytest.raises(error, match=text):
            tf.Operation(*arguments)


def test_scopes_count_for_operations_by_the_name_of_their_type():
    graph = tf.Graph()
    with graph.as_default():
        first = graph.create_op("NoOp", [], [])
        with tf.colocate_with(first), graph.gradient_override_map({"NoOp": "Mine"}), graph._kernel_label_map({"NoOp": "fast"}):
            second = graph.create_op("NoOp", [], [])
    assert second.colocation_groups() == [b"loc:@NoOp"] and second.get_attr("_gradient_op_type") == b"Mine" and second.get_attr("_kernel") == b"fast"


def test_init_scope_leaves_graphs_of_functions():
    outer, body, inner = tf.Graph(), tf.Graph(), tf.Graph()
    body._building_function = inner._building_function = True
    with outer.as_default(), tf.device("/cpu:1"):
        with body.as_default(), tf.device("/cpu:2"), inner.as_default(), tf.init_scope():
            assert tf.get_default_graph() is outer and tf.constant(1).device == "/device:CPU:2"
        assert tf.constant(1).device == "/device:CPU:1"
    assert not body.get_operations() and not inner.get_operations()


def test_name_scopes_take_the_graph_of_their_values():
    graph = tf.Graph()
    with graph.as_default():
        values = [tf.Variable(1.0, use_resource=False), tf.no_op(), tf.SparseTensor([[0]], [1.0], [1])]
    with tf.Graph().as_default():
        for value in values:
            with tf.name_scope("s", values=[value]):
                assert tf.get_default_graph() is graph
        with pytest.raises(ValueError, match="must be from the same graph as"):
            with tf.name_scope("s", values=[values[1], tf.no_op()]):
                pass
        with pytest.raises(TypeError, match="`default_name` type (.*) is not a string type"):
            tf.name_scope("s", values)
        with tf.name_scope("a"), tf.name_scope("/") as root:
            assert root == "/"


def test_control_dependencies():
    a = tf.no_op(name="a")
    with tf.control_dependencies([a]):
        b = tf.constant(1)
        assert [o.name for o in b.op.control_inputs] == ["a"]
        c = b + 1
        assert c.op.control_inputs == []
        with tf.control_dependencies(None):
            assert tf.constant(2).op.control_inputs == []


def test_shapes():
    x = tf.placeholder(tf.float32, [None, 4])
    assert x.get_shape().as_list() == [None, 4] and x.shape[1].value == 4
    assert (x[:, 0]).get_shape().as_list() == [None]
    assert tf.reshape(x, [-1, 2, 2]).get_shape().as_list() == [None, 2, 2]
    assert tf.zeros([tf.shape(x)[0], 7]).get_shape().as_list() == [None, 7]
    x.set_shape([3, None])
    assert x.get_shape().as_list() == [3, 4]
    with pytest.raises(ValueError, match=r"Dimension 0 in both shapes must be equal, but are 3 and 4. Shapes are \[3,4\] and \[4,4\]"):
        x.set_shape([4, 4])
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        x.set_shape([3])
    with pytest.raises(TypeError, match="not iterable"):
        iter(tf.placeholder(tf.float32))
    assert len(list(x)) == 3


def test_tensors_have_numbers_in_the_order_in_which_they_are_made():
    numbers = [t._id for t in (tf.zeros([2]), *tf.split(tf.zeros([4]), 2), tf.ones([2]))]
    assert numbers == sorted(set(numbers))


def test_import_replaces_and_returns():
    x = tf.placeholder(tf.float32, name="x")
    tf.multiply(x, 2.0, name="y")
    definition = tf.get_default_graph().as_graph_def()
    again = tf.GraphDef()
    again.ParseFromString(definition.SerializeToString())
    assert [n.name for n in again.node] == [n.name for n in definition.node]
    with tf.Graph().as_default():
        z = tf.constant(5.0)
        (y,) = tf.import_graph_def(again, input_map={"x:0": z}, return_elements=["y:0"])
        assert y.name == "import/y:0"
        with tf.Session() as session:
            assert session.run(y) == 10


def test_collections():
    v = tf.Variable(1.0, name="scope_a/v")
    w = tf.Variable(1.0, name="b", trainable=False)
    assert tf.global_variables() == [v, w] and tf.trainable_variables() == [v]
    assert tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, "scope_a") == [v]
    tf.add_to_collection("mine", 3)
    assert tf.get_collection("mine") == [3]


def test_operators():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    one = np.ones((2, 2), np.float32)
    with tf.Session() as session:
        for tensor, wanted in [
            (x + 1, [[2, 3], [4, 5]]),
            (1 - x, [[0, -1], [-2, -3]]),
            (one * x, [[1, 2], [3, 4]]),
            (x / 2, [[0.5, 1], [1.5, 2]]),
            (x**2, [[1, 4], [9, 16]]),
            (-x, [[-1, -2], [-3, -4]]),
            (x[1], [3, 4]),
            (x[:, None, ::-1], [[[2, 1]], [[4, 3]]]),
            (x[..., -1], [2, 4]),
            (x // 2, [[0, 1], [1, 2]]),
            (x % 2, [[1, 0], [1, 0]]),
            (abs(-x), [[1, 2], [3, 4]]),
            (x > 2, [[False, False], [True, True]]),
            (tf.constant(7) // 2, 3),
            (tf.constant(7) / 2, 3.5),
            (x @ x, [[7, 10], [15, 22]]),
        ]:
            np.testing.assert_array_equal(session.run(tensor), np.array(wanted))
        i = tf.constant(1)
        np.testing.assert_array_equal(session.run(x[i:, :i]), [[3]])
    assert x == x and x != tf.constant(1) and len({x: 1}) == 1
    with pytest.raises(TypeError, match="not allowed"):
        bool(x > 1)


def test_both_dialects():
    a, b = tf.ones([2, 3]), tf.zeros([2, 3])
    assert tf.concat(1, [a, b]).get_shape() == tf.concat([a, b], 1).get_shape() == (2, 6)
    assert len(tf.split(0, 2, a)) == len(tf.split(a, 2, 0)) == 2
    assert tf.reduce_sum(a, reduction_indices=1, keep_dims=True).get_shape().as_list() == [2, 1]
    assert tf.expand_dims(a, dim=0).get_shape().as_list() == [1, 2, 3]
    assert tf.argmax(a, dimension=1).get_shape().as_list() == [2]
    for name in (
        "mul",
        "sub",
        "neg",
        "pack",
        "unpack",
        "select",
        "initialize_all_variables",
        "scalar_summary",
        "merge_all_summaries",
        "op_scope",
        "all_variables",
    ):
        assert callable(getattr(tf, name))
    assert tf.zeros_initializer([2]).get_shape() == tf.zeros_initializer()([2]).get_shape()
    logits, labels = tf.ones([2, 3]), tf.ones([2, 3]) / 3
    assert (
        tf.nn.softmax_cross_entropy_with_logits(logits, labels).get_shape() == tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits).get_shape()
    )


def test_gradient_override():
    @tf.RegisterGradient("TestDouble")
    def double(op, grad):
        return 2 * grad

    x = tf.constant(3.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestDouble"}):
        y = tf.identity(x)
    with tf.Session() as session:
        assert session.run(tf.gradients(y, x)) == [2.0]
    assert tf.gradients(tf.constant(1.0), x) == [None]


def test_errors_of_gradients_are_those_that_were_raised():
    @tf.custom_gradient
    def broken(x):
        def backward(_):
            raise RuntimeError("no way back")

        return x * 2.0, backward

    x = tf.constant(1.0)
    with pytest.raises(RuntimeError, match="no way back") as told:
        tf.gradients(broken(x), x)
    assert "gradient of node" in str(told.value.__cause__)


def test_custom_gradient():
    @tf.custom_gradient
    def clipped(x):
        return x * x, lambda dy: dy * 100.0

    x = tf.constant(2.0)
    y = clipped(x)
    with tf.Session() as session:
        assert session.run([y] + tf.gradients(y, x)) == [4.0, 100.0]


def test_libraries_ask_for_the_device_and_for_what_is_like_a_tensor():
    """As Keras does, with something that is no operation."""

    class Asks:
        device = None

        def _set_device(self, device):
            self.device = device

    ops = names.find("python.framework.ops")
    with tf.Graph().as_default() as graph:
        told = []
        for device in ("/cpu:0", lambda op: "/device:CPU:0"):
            with tf.device(device):
                asks = Asks()
                graph._apply_device_functions(asks)
                told.append(tf.DeviceSpec.from_string(asks.device).device_type)
        assert told == ["CPU", "CPU"]
        sparse = tf.sparse_placeholder(tf.float32)
        assert all(isinstance(t, ops._TensorLike) for t in (tf.constant(1), sparse, tf.IndexedSlices(sparse.values, sparse.indices)))
        assert not isinstance(1.0, ops._TensorLike)


def test_colocation_takes_operations_alone():
    with pytest.raises(TypeError, match="ndarray"), tf.colocate_with(np.ones(2)):
        pass


def test_names_of_operations_are_checked():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="'a b' is not a valid"):
            tf.placeholder(tf.float32, name="a b")
        assert tf.placeholder(tf.float32, name="a-b.c/d").op.name == "a-b.c/d"


def test_outputs_of_ops_that_are_not_known():
    graph_def = tf.GraphDef()
    graph_def.node.add(name="a", op="NobodyKnowsIt")
    with tf.Graph().as_default():
        for element in ("a:0", "a:1"):
            with pytest.raises(ValueError, match="Invalid return output"):
                tf.import_graph_def(graph_def, return_elements=[element])
        assert tf.import_graph_def(graph_def, return_elements=["a"])[0].type == "NobodyKnowsIt"


def test_an_operation_goes_where_the_one_it_is_placed_with_goes():
    with tf.Graph().as_default():
        a = tf.constant(1.0, name="a")
        with tf.colocate_with(a):
            b = tf.constant(2.0)
        with tf.colocate_with(b):
            c = tf.constant(3.0)
        assert c.op.colocation_groups() == [b"loc:@a"]


def test_noted_shapes_are_taken_over_and_not_kept():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        tf.identity(x, name="y").set_shape([2, 3])
        noted = graph.as_graph_def(add_shapes=True)
    with tf.Graph().as_default() as graph:
        (y,) = tf.import_graph_def(noted, return_elements=["y:0"])
        assert y.shape.as_list() == [2, 3]
        assert not any("_output_shapes" in node.attr for node in graph.as_graph_def().node)


def test_graphs_of_loops_import_with_the_shapes_that_tensorflow_notes():
    """It says [2] of handles of arrays and stacks, and of what hands them on, which are scalars."""
    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0])
        made = tf.while_loop(lambda i, a, _: i < 3, lambda i, a, t: (i + 1, a * x, t.write(i, a)), (0, x, tf.TensorArray(tf.float32, 3)))
        tf.gradients(made[1] + made[2].stack()[2], x, name="gradients")[0]
        tf.identity(tf.gradients(made[1], x)[0], name="slope")
        noted = graph.as_graph_def(add_shapes=True)
    changed = 0
    for node in noted.node:
        for tensor, shape in zip(graph.get_operation_by_name(node.name).outputs, node.attr["_output_shapes"].list.shape):
            assert shape.unknown_rank or tensor.dtype != tf.resource  # which TensorFlow would compare
            if tensor.dtype == tf.resource:
                shape.CopyFrom(tf.TensorShape([2]).as_proto())
                changed += 1
    assert {"TensorArrayV3", "StackV2", "Enter"} <= {node.op for node in noted.node} and changed > 4
    with tf.Graph().as_default():
        (slope,) = tf.import_graph_def(noted, return_elements=["slope:0"])
        with tf.Session() as session:
            assert session.run(slope).tolist() == [4.0, 32.0]


def test_noted_shapes_in_bodies_of_functions_are_hints():
    """TensorFlow 1.15 leaves them as they were when it prunes the outputs of a conditional, and does not read them."""
    with tf.Graph().as_default() as graph:
        double = function.Defun(tf.float32, func_name="double")(lambda x: tf.add(x, x, name="sum"))
        tf.identity(double(tf.constant([1.0, 2.0])), name="made")
        definition = graph.as_graph_def()
    shapes = definition.library.function[0].node_def[0].attr["_output_shapes"].list.shape
    for noted in ([[7]], [[7], []]):
        del shapes[:]
        for shape in noted:
            shapes.add().CopyFrom(tf.TensorShape(shape).as_proto())
        with tf.Graph().as_default(), tf.Session() as session:
            (made,) = tf.import_graph_def(definition, return_elements=["made:0"])
            assert session.run(made).tolist() == [2.0, 4.0]


def test_noted_shapes_that_contradict_are_refused():
    with tf.Graph().as_default() as graph:
        tf.constant([1.0, 2.0], name="x")
        noted = graph.as_graph_def(add_shapes=True)
    noted.node[0].attr["_output_shapes"].list.shape[0].CopyFrom(tf.TensorShape([7]).as_proto())
    with tf.Graph().as_default(), pytest.raises(ValueError, match="incompatible"):
        tf.import_graph_def(noted)


def test_numbers_of_scopes_go_on_after_a_scope_was_opened_again():
    with tf.Graph().as_default():
        names = []
        with tf.variable_scope("outer") as outer:
            for again in (False, True, False):
                if again:
                    with tf.variable_scope(outer):
                        pass
                with tf.variable_scope(None, "layer") as scope:
                    names.append(scope.name)
        assert names == ["outer/layer", "outer/layer_1", "outer/layer_2"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_is_no_function_is_refused(use_resource):
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="constraint"):
            tf.Variable(1.0, constraint=3, use_resource=use_resource)
        with pytest.raises(ValueError, match="custom_getter .* not callable"):
            tf.get_variable("v", [], custom_getter=3)


def test_custom_getters_are_called_by_names():
    asked = []

    def only_names(getter, **kwargs):
        asked.append(kwargs["name"])
        return getter(**kwargs)

    def renamed(getter, name, *args, **kwargs):
        return getter(name=name + "_more", **dict(zip(["shape"], args)), **kwargs)

    def again(getter, name, *args, **kwargs):
        first = getter(name, *args, **kwargs)
        kwargs["reuse"] = None
        assert getter(name, *args, **kwargs) is first
        return first

    with tf.Graph().as_default():
        with tf.variable_scope("a", custom_getter=only_names), tf.variable_scope("b", custom_getter=renamed) as scope:
            x = tf.get_variable("x", [1], regularizer={})
        assert x.op.name == "a/b/x_more" and asked == ["a/b/x_more"] and not tf.losses.get_regularization_losses()
        pure = names.find("python.ops.variable_scope")._pure_variable_scope
        with pure(scope, reuse=True) as inner:
            assert (inner.name, inner.reuse, inner.original_name_scope) == ("a/b", True, "a/b/")
            assert tf.get_variable("x", [1]) is x and tf.constant(1).op.name == "Const"
        with pure("c", old_name_scope="q/") as inner:
            assert (inner.name, inner.original_name_scope) == ("c", "q/")
        with tf.variable_scope("d", custom_getter=again):
            tf.get_variable("y", [1])
            with pytest.raises(ValueError, match="already exists"):
                tf.get_variable("y", [1])
        with tf.variable_scope("e", custom_getter=lambda make, full_name, *args, **kwargs: make(full_name, *args, **kwargs)):
            assert tf.get_variable("z", [1]).op.name == "e/z"


def test_attributes_of_a_scope():
    def marked(text):
        made = tf.AttrValue()
        made.s = text
        return made

    def seen():
        op = tf.no_op()
        return [op.get_attr(n) if n in op.node_def.attr else None for n in ("_A", "_B")]

    graph = tf.get_default_graph()
    with graph._attr_scope({"_A": marked(b"foo")}):
        assert seen() == [b"foo", None]
        with graph._attr_scope({"_A": None, "_B": marked(b"bar")}):
            assert seen() == [None, b"bar"]
        assert seen() == [b"foo", None]
    assert seen() == [None, None]


def test_inputs_are_changed_within_a_graph():
    with tf.Graph().as_default():
        elsewhere = tf.constant(1)
    total = tf.constant(2) + tf.constant(3)
    with pytest.raises(ValueError, match="must be from the same graph"):
        total.op._update_input(0, elsewhere)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"Input index \[2\] is greater than the number of total inputs \[2\]"):
        total.op._update_input(2, total)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Cannot update edge, incompatible shapes: \[2,1\] and \[\]"):
        total.op._update_input(0, tf.constant([[1], [2]]))
    read = total.op.inputs[1]
    total.op._update_input(0, read)
    assert read.consumers() == [total.op, total.op] and total._as_node_def_input() == "add"
    with pytest.raises(ValueError, match="Operation 'add' has no attr named '_class'."):
        total.op.get_attr("_class")


def test_a_cycle_is_refused(sess):
    x, y = tf.constant(1), tf.constant(2)
    y.op._add_control_input(x.op)
    x.op._add_control_input(y.op)
    with pytest.raises(tf.errors.InvalidArgumentError, match="contains a cycle with 2 nodes"):
        sess.run(x)


def test_imported_nodes_whose_names_are_taken_leave_the_shapes_of_others():
    with tf.Graph().as_default() as graph:
        tf.constant([1.0, 2.0], name="c")
        definition = graph.as_graph_def(add_shapes=True)
    with tf.Graph().as_default(), tf.Session() as session:
        first = tf.constant(3.0, name="c")
        (second,) = tf.import_graph_def(definition, return_elements=["c:0"], name="")
        assert second.name == "c_1:0" and first.get_shape() == []
        assert session.run(second).tolist() == [1, 2]


def test_a_tensor_takes_the_place_of_a_control_input():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        with tf.control_dependencies([x]):
            tf.constant(1.0, name="y")
        definition = graph.as_graph_def()
    with tf.Graph().as_default():
        given = tf.constant(2.0, name="given")
        (y,) = tf.import_graph_def(definition, {"x": given, "^x": given}, ["y"], name="")
        assert y.control_inputs == [given.op]


def test_imported_nodes_lie_with_their_mates():
    graph_def = tf.GraphDef()
    for name, device in (("A", "/device:CPU:0"), ("B", "/device:CPU:1")):
        graph_def.node.add(name=name, op="NoOp", device=device).attr["_class"].list.s.append(b"loc:@A")
    with tf.Graph().as_default():
        a, b = tf.import_graph_def(graph_def, return_elements=["A", "B"], name="")
        assert a.device == b.device == "/device:CPU:0" and b.colocation_groups() == [b"loc:@A"]
    graph_def.node[0].device = ""
    with tf.Graph().as_default():
        assert [op.device for op in tf.import_graph_def(graph_def, return_elements=["A", "B"], name="")] == ["", ""]
        with tf.device(lambda op: "/device:CPU:3" if "A" in op.name else "/device:CPU:4"):
            assert [op.device for op in tf.import_graph_def(graph_def, return_elements=["A", "B"])] == ["/device:CPU:3", "/device:CPU:3"]
        with pytest.raises(ValueError, match="Cannot convert 'a:b:c' to a tensor name."):
            tf.import_graph_def(graph_def, return_elements=["a:b:c"])


def test_imported_nodes_lose_defaults_of_later_versions():
    graph_def, producer = tf.GraphDef(), definitions.OpList()
    graph_def.node.add(name="A", op="NoOp").attr["later"].i = 456
    graph_def.node.add(name="B", op="NoOp").attr["later"].i = 457
    made = producer.op.add(name="NoOp").attr.add(name="later", type="int")
    made.default_value.i = 456
    with tf.Graph().as_default():
        a, b = tf.import_graph_def(graph_def, return_elements=["A", "B"], producer_op_list=producer)
    assert "later" not in a.node_def.attr and b.get_attr("later") == 457


def test_imported_queues_may_be_called_scalars():
    graph_def = tf.GraphDef()
    node = graph_def.node.add(name="A", op="FIFOQueue")
    node.attr["component_types"].list.type.append(1)
    node.attr["_output_shapes"].list.shape.add()
    with tf.Graph().as_default():
        (a,) = tf.import_graph_def(graph_def, return_elements=["A:0"])
    assert a.shape.as_list() == [2]


def test_gradient_functions_get_none_for_outputs_of_integers():
    seen = []

    @tf.RegisterGradient("TestUniqueOfFloats")
    def _(op, *grads):
        seen.append(grads)
        return grads[0]

    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0])
        with graph.gradient_override_map({"Unique": "TestUniqueOfFloats"}):
            y = tf.unique(x)[0]
        tf.gradients(y, x, tf.constant([3.0, 4.0]))
    assert len(seen) == 1 and seen[0][0].dtype == tf.float32 and seen[0][1] is None


def test_gradients_of_functions_have_the_shape_of_what_they_are_by():
    x = tf.constant([1.0, 2.0])

    @tf.custom_gradient
    def summed(v):
        return v * v, lambda g: tf.reduce_sum(g)

    @tf.custom_gradient
    def unknown(v):
        return v * v, lambda g: tf.py_func(lambda a: a, [g], tf.float32)

    text = r"Forward operation: IdentityN.  Input index: 1. Original input shape: \(2,\).  Calculated input gradient shape: \(\)"
    with pytest.raises(ValueError, match=text):
        tf.gradients(summed(x), x)
    assert tf.gradients(unknown(x), x)[0].shape == [2]


def test_imported_operations_are_not_called_like_scopes_that_are_there():
    with tf.Graph().as_default(), tf.name_scope("a"):
        tf.constant(1, name="b")
        graph_def = tf.GraphDef(node=[tf.NodeDef(name="a", op="NoOp"), tf.NodeDef(name="c", op="NoOp")])
        for names in ["a_1", "c"], ["a_2", "c_1"]:  # as in 1.15.5, outside of the scope
            made = tf.import_graph_def(graph_def, name="", return_elements=["a", "c"])
            assert [op.name for op in made] == names
