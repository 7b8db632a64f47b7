# SPDX-License-Identifier: Apache-2.0
"""Branches and loops as objects, what they keep from being fetched and fed, and values that are no plain tensors in them."""

import numpy as np
import pytest

import millrace as tf
from millrace.ops import control_flow_contexts as contexts
from millrace.ops import control_flow_ops


def both():
    x, y = tf.constant(2, name="x"), tf.constant(5, name="y")
    branch = tf.cond(x < y, lambda: tf.multiply(x, 17, name="m"), lambda: tf.add(y, 23))
    loop = tf.while_loop(lambda i: i < 10, lambda i: tf.cond(i < 5, lambda: i + 2, lambda: i + 1), [tf.constant(0, name="start")], name="loop")
    return branch, loop


def test_operations_tell_where_they_lie_and_contexts_survive_as_messages():
    with tf.Graph().as_default() as graph:
        branch, loop = both()
        inside = graph.get_operation_by_name("cond/m")._get_control_flow_context()
        assert inside.IsCondContext() and (inside.branch, inside.pred.name) == (1, "cond/pred_id:0")
        assert branch.op._get_control_flow_context() is None and graph._get_control_flow_context() is None
        nested = [c for op in graph.get_operations() for c in [op._get_control_flow_context()] if c is not None and c.IsCondContext() and c.outer_context]
        assert nested and all(c.outer_context.IsWhileContext() and c.GetWhileContext() is c.outer_context for c in nested)
        assert len(tf.get_collection("cond_context")) == 2 and len(tf.get_collection("while_context")) == 1
        message = inside.to_proto()
        assert dict(message.values_def.external_values) == {"x:0": "cond/m/Switch:1"} and "cond/m:0" in list(message.values_def.values)
        assert contexts.CondContext.from_proto(message).to_proto() == message
        around = tf.get_collection("while_context")[0].to_proto()
        assert around.loop_exit_names == [loop.name] and dict(around.values_def.external_values)["start:0"] == "loop/Enter:0"
        assert [c.cond_ctxt.branch for c in around.nested_contexts] == [1, 0]
        assert contexts.WhileContext.from_proto(around).to_proto() == around
    with tf.Graph().as_default():
        tf.import_graph_def(graph.as_graph_def(), name="in")
        again = contexts.CondContext.from_proto(message, import_scope="in")
        assert again.pivot.name == "in/cond/switch_t:0" and again.to_proto(export_scope="in") == message


def test_a_construction_that_fails_leaves_no_context():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [])
        with pytest.raises(ZeroDivisionError):
            tf.cond(x > 0, lambda: x / (1 // 0), lambda: x)
        after = tf.cond(x > 0, lambda: x * 2, lambda: x)
        assert graph._get_control_flow_context() is None and after.op._get_control_flow_context() is None
        assert len(tf.get_collection("cond_context")) == 2
        with tf.Session() as session:
            assert session.run(after, {x: 2.0}) == 4.0


def test_what_lies_inside_is_neither_fetched_nor_fed():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        _, loop = both()
        for name in ("cond/m:0", "cond/Switch:0", "cond/m/Switch:1", "loop/Merge:0"):
            with pytest.raises(ValueError, match="not fetchable"):
                session.run(name)
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(loop, {graph.get_tensor_by_name("loop/Identity:0"): 1})
        with tf.control_dependencies(None):
            pass
        assert session.run(loop) == 10


def test_map_fn_has_a_context_while_its_function_runs():
    seen = []
    tf.map_fn(lambda v: seen.append(tf.get_default_graph()._get_control_flow_context()) or v, tf.constant([1.0]))
    assert seen[0].IsWhileContext() and tf.get_default_graph()._get_control_flow_context() is None


def test_branches_must_agree_and_return_something():
    true, one = tf.constant(True), tf.constant(1)
    with pytest.raises(ValueError, match="must have a return value"):
        tf.cond(true, lambda: None, lambda: one)
    with pytest.raises(ValueError, match="Incompatible return values"):
        tf.cond(true, lambda: one, lambda: [one, one])
    with pytest.raises(TypeError, match="Incompatible return types"):
        tf.cond(true, lambda: [one], lambda: (one,), strict=True)
    with pytest.raises(TypeError, match="fn1 may not be set"):
        tf.cond(true, lambda: one, lambda: one, fn1=lambda: one)
    assert isinstance(tf.cond(true, lambda: [one], lambda: (one,)), tf.Tensor)


def test_rows_of_two_index_types_meet_in_one():
    with tf.Graph().as_default(), tf.Session() as session:
        which = tf.placeholder(tf.bool, [])
        rows = tf.constant([[7.0]])
        made = tf.cond(which, lambda: tf.IndexedSlices(rows, tf.constant([1], tf.int32)), lambda: tf.IndexedSlices(rows + 1, tf.constant([2], tf.int64)))
        assert isinstance(made, tf.IndexedSlices) and made.indices.dtype == tf.int64
        assert session.run([made.values, made.indices], {which: True}) == [[[7]], [1]]
        assert session.run([made.values, made.indices], {which: False}) == [[[8]], [2]]
        off, on = control_flow_ops.switch(tf.IndexedSlices(rows, tf.constant([3])), which)
        joined, number = control_flow_ops.merge([off, on])
        assert session.run([joined.indices, number], {which: True}) == [[3], 1]


def test_invariants_of_sparse_tensors_in_loops():
    sparse = tf.SparseTensor(tf.constant([[0]], tf.int64), tf.constant([1.0]), tf.constant([4], tf.int64))

    def twice(i, x):
        return i + 1, tf.SparseTensor(tf.concat([x.indices, x.indices], 0), tf.concat([x.values, x.values], 0), x.dense_shape)

    _, grown = tf.while_loop(lambda i, x: i < 3, twice, [tf.constant(0), sparse], [tf.TensorShape([]), tf.TensorShape([1])])
    with tf.Session() as session:
        assert session.run(grown).values.tolist() == [1.0] * 8
    with pytest.raises(ValueError, match="is not compatible with"):
        tf.while_loop(lambda i, x: i < 3, twice, [tf.constant(0), sparse], [tf.TensorShape([]), tf.TensorShape([2])])


def test_groups_have_one_gate_a_device():
    with tf.Graph().as_default() as graph:
        with tf.device("/task:0"):
            a, b = tf.constant(0, name="a"), tf.constant(0, name="b")
        with tf.device("/task:1"):
            c = tf.constant(0, name="c")
        tf.group(a, b, name="one")
        tf.group(a, b, c, name="two")
        nodes = {n.name: n for n in graph.as_graph_def().node}
        assert (list(nodes["one"].input), nodes["one"].device) == (["^a", "^b"], "/task:0")
        assert list(nodes["two"].input) == ["^two/NoOp", "^two/NoOp_1"] and list(nodes["two/NoOp"].input) == ["^a", "^b"]
        assert (nodes["two/NoOp_1"].device, list(nodes["two/NoOp_1"].input)) == ("/task:1", ["^c"])


@pytest.mark.parametrize("resource", [False, True])
def test_parts_of_variables_are_assigned(resource):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.arange(6.0).reshape(2, 3), use_resource=resource)
        session.run(v.initializer)
        assert session.run(v[0, 1:].assign([7, 8])).tolist() == [[0, 7, 8], [3, 4, 5]]
        assert session.run(tf.assign(v[:, ::-2], [[1, 2], [3, 4]])).tolist() == [[2, 7, 1], [4, 4, 3]]
        with pytest.raises(ValueError, match="only supported for variables"):
            (v + 1.0)[0].assign([1, 2, 3])


def test_numbers_are_not_checked_inside_of_branches():
    with tf.Graph().as_default():
        both()
        with pytest.raises(ValueError, match="not compatible with TensorFlow control flow"):
            tf.add_check_numerics_ops()


def test_what_a_loop_begins_with_is_named_in_its_scope():
    with tf.Graph().as_default() as graph:
        tf.while_loop(lambda i, x: i < 10, lambda i, x: [i + tf.constant(1), x * 2.0], [0, 1.0], maximum_iterations=5)
        tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0], name="other")
        names = [op.name for op in graph.get_operations() if op.type == "Const"]
    assert set(names) == {
        *("while/" + n for n in ("maximum_iterations", "iteration_counter", "Const", "Const_1", "Const_2", "Less_1/y", "add/y", "mul/y")),
        *("other/" + n for n in ("Const", "Less/y", "add/y")),
    }
