# SPDX-License-Identifier: Apache-2.0
"""tf.graph_util: graphs whose variables, of both kinds, are constants."""

import numpy as np
import pytest

import millrace as tf

rows = np.arange(12, dtype=np.float32).reshape(4, 3)


def frozen(session, *outputs):
    made = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), [t.op.name for t in outputs])
    assert not {"VariableV2", "VarHandleOp", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"} & {n.op for n in made.node}
    with tf.Graph().as_default() as graph, tf.Session() as other:
        tf.import_graph_def(made, name="")
        return other.run([graph.get_tensor_by_name(t.name) for t in outputs])


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_in_branches_and_loops(use_resource):
    with tf.variable_scope("", use_resource=use_resource):
        x, y, step = (tf.get_variable(name, initializer=value) for name, value in (("x", 1.0), ("y", 2.0), ("step", 3.0)))
        chosen = tf.case([(x < y, lambda: tf.get_variable("f", initializer=17.0) + 0.0)], default=lambda: tf.get_variable("g", initializer=23.0) + 0.0)
        counted = tf.while_loop(lambda n: n < 10.0, lambda n: n + step, [x + 0.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert frozen(session, chosen * 2, tf.identity(counted)) == [34, 10]


def test_rows_and_shapes_of_resource_variables():
    table = tf.get_variable("table", initializer=rows, use_resource=True)
    some = tf.nn.embedding_lookup(table, [[3, 0], [1, 1]])
    batched = tf.raw_ops.ResourceGather(resource=table.handle, indices=[[0], [2], [1], [0]], dtype=tf.float32, batch_dims=1)
    places = tf.raw_ops.ResourceGatherNd(resource=table.handle, indices=[[1, 2]], dtype=tf.float32)
    shape = tf.raw_ops.VariableShape(input=table.handle, out_type=tf.int64)
    with tf.Session() as session:
        session.run(table.initializer)
        expected = session.run([some, batched, places, shape])
        for found, wanted in zip(frozen(session, some, batched, places, shape), expected):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype


def test_what_writes_variables_is_no_constant():
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=variable.handle, value=1.0)]):
        later = tf.constant(1.0, name="later") + 1
    with tf.Session() as session:
        session.run(variable.initializer)
        with pytest.raises(ValueError, match="AssignAddVariableOp.* is not known to only read it"):
            frozen(session, later)


def test_identities_that_order_something_stay():
    base = tf.constant(1.0, name="base")
    kept = tf.identity(base, name="kept")
    with tf.control_dependencies([kept]):
        last = tf.identity(tf.identity(base, name="gone"), name="last")
    made = tf.graph_util.remove_training_nodes(tf.get_default_graph().as_graph_def(), ["last"])
    inputs = {n.name: list(n.input) for n in made.node}
    assert inputs["last"] == ["gone"] and inputs["gone"] == ["base", "^kept"] and inputs["kept"] == ["base"]
    assert last.op.name == "last"
