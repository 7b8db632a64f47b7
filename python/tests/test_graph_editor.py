# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.graph_editor, metric_learning, and OpDefLibrary."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import graph_editor as ge
from millrace.contrib import metric_learning
from millrace.framework.op_def_library import OpDefLibrary


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _chain():
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.multiply(x, 2.0, name="a")
    b = tf.add(a, 1.0, name="b")
    return x, a, b, tf.exp(b, name="c")


def names(ops):
    return [o.name for o in ops]


def test_selections_and_walks():
    x, a, b, _ = _chain()
    graph = tf.get_default_graph()
    assert names(ge.select_ops("^[abc]$", graph=graph)) == ["a", "b", "c"] and names(ge.filter_ts_from_regex(graph, "^b:")) == ["b:0"]
    assert names(ge.select_ops_and_ts("^b$", "(?#ts)^[ab]:", graph=graph)[1]) == ["a:0", "b:0"] and names(ge.filter_ts(b.op, True)) == ["a:0", "b/y:0", "b:0"]
    assert names(ge.get_backward_walk_ops(b.op, inclusive=False)) == ["a", "b/y", "x", "a/y"]
    assert names(ge.get_backward_walk_ops(b, stop_at_ts=[a])) == ["b", "b/y"]
    assert names(ge.get_forward_walk_ops(a.op)) == ["a", "b", "c"] and names(ge.get_walks_intersection_ops(a.op, b.op)) == ["a", "b"]
    view = ge.sgv([a.op, b.op])
    assert x in view.inputs and names(view.outputs) == ["b:0"] and len(view) == 2
    assert names(view.remap_outputs([0, 0]).remap_outputs_to_consumers().outputs) == ["b:0"] and view.remap([]).remap_default().inputs[0] is x
    assert ge.compute_boundary_ts([a.op, b.op])[2] == [a] and names(ge.get_within_boundary_ops(graph, b.op, a.op)) == ["a", "b/y", "b", "c"]
    with pytest.raises(ValueError, match="Out of"):
        view.remap_inputs([9])
    with pytest.raises(ValueError, match="graph"):
        ge.select_ops("a")
    with pytest.raises(TypeError):
        ge.make_list_of_op([a])


def test_patterns():
    x, a, b, c = _chain()
    with tf.control_dependencies([a]):
        d = tf.add(b, x, name="d")
    P = ge.match.OpMatcher
    fits = P("^b$").input_ops(ge.match.op_type(["Mul"]), True).output_ops([c.op, d.op])
    assert fits(b.op) and not fits(a.op) and not P("^b$").input_ops("^a$")(b.op) and not P(True).output_ops([c.op])(b.op)
    assert P(d.op).input_ops(fits, None).control_input_ops("^a$").output_ops([])(d.op) and not P("d").control_input_ops()(d.op)
    assert P("x").output_ops(None)(x.op) and ge.match.op_type("Exp", c.op)
    with pytest.raises(ValueError, match="already set"):
        fits.input_ops("a")
    with pytest.raises(TypeError, match="tf.Operation"):
        fits(b)


def test_changes_and_copies():
    x, a, b, c = _chain()
    five = tf.constant([5.0, 5.0])
    replaced = ge.graph_replace(c, {a: five})
    assert replaced.op.name == "c_1" and ge.graph_replace({"here": c, "elsewhere": x}, {a: five})["elsewhere"] is x
    view, info = ge.copy_with_input_replacements([a.op, b.op], {x: five}, dst_scope="again")
    assert info.transformed(b).op.name == "again/b" and info.original(info.transformed(a.op)) is a.op and len(view) == 2
    waiting = tf.no_op("waiting")
    ge.add_control_inputs(c.op, waiting)
    assert waiting in c.op.control_inputs
    with pytest.raises(ValueError, match="already"):
        ge.add_control_inputs(c.op, waiting)
    assert ge.reroute_ts([five], [b]) == 1
    with tf.Session() as session:
        np.testing.assert_allclose(session.run([replaced, info.transformed(b), c], {x: [1, 2]}), [np.exp([6, 6]), [11, 11], np.exp([5, 5])], rtol=1e-6)
    with pytest.raises(ValueError, match="not connected"):
        ge.graph_replace(a, {c: five})


def test_subgraphs_taken_out_and_put_together():
    _, a, b, c = _chain()
    other = tf.constant([3.0, 4.0])
    with pytest.raises(ValueError, match="Shapes"):
        ge.reroute_ts([tf.zeros([3])], [b])
    ge.connect(ge.sgv(other.op), ge.sgv(b.op).remap_inputs([0]))
    _, stand_ins = ge.bypass(ge.sgv(c.op))
    assert b.op.inputs[0] is other and names(stand_ins) == ["geph__b_0:0"] and c.op.inputs[0] is stand_ins[0]
    d, e = tf.exp(b), tf.log(a)
    ge.swap_ios(ge.sgv(d.op), ge.sgv(e.op))
    assert d.op.inputs[0] is a and e.op.inputs[0] is b
    waiting = tf.no_op("waiting")
    ge.add_control_inputs(c.op, waiting)
    assert ge.ControlOutputs(tf.get_default_graph()).get(waiting) == [c.op]
    more = tf.no_op("more")
    ge.add_control_inputs(c.op, more)
    ge.detach(ge.sgv(waiting), control_ios=ge.ControlOutputs(tf.get_default_graph()))
    assert c.op.control_inputs == [more] and c.op.inputs[0] is stand_ins[0]
    with pytest.raises(ValueError, match="is not a control_input"):
        ge.remove_control_inputs(c.op, waiting)


def test_copies_of_loops_and_by_handlers():
    n = tf.placeholder(tf.int32, [])
    total = tf.while_loop(lambda i, s: i <= n, lambda i, s: (i + 1, s + i), [tf.constant(1), tf.constant(0)])[1]
    total.op._set_attr("_mark", tf.AttrValue(i=7))
    elsewhere = tf.Graph()
    _, info = ge.copy(tf.get_default_graph(), elsewhere, dst_scope="imported")
    assert info.transformed(total).name == "imported/" + total.name and info.original(info.transformed(n)) is n
    assert info.transformed(total.op).get_attr("_mark") == 7
    with tf.Session(graph=elsewhere) as session:
        assert session.run(info.transformed(total), {info.transformed(n): 10}) == 55

    def renamed(node):
        node.attr["_seen"].b = True
        return node

    copier = ge.Transformer()
    copier.transform_op_handler = lambda info, op, new_inputs: ge.copy_op_handler(info, op, new_inputs, nodedef_fn=renamed)
    view, _ = copier(ge.sgv(total.op), tf.get_default_graph(), "again")
    assert view.op(0).get_attr("_seen") and view.op(0).inputs[0].op.type == "Placeholder"
    copier.transform_op_handler = lambda info, op: ge.copy_op_handler(info, op)  # as 1.2 calls it
    view, _ = copier(ge.sgv(total.op), tf.get_default_graph(), "third")
    assert view.op(0).type == total.op.type and view.op(0).inputs[0].op.type == "Placeholder"


def test_operations_by_type_names():
    made = OpDefLibrary().apply_op("MatMul", a=[[1.0, 2.0]], b=[[3.0], [4.0]], transpose_a=False, name="product")
    with tf.Session() as session:
        assert session.run(made) == [[11]] and made.op.name == "product"


def test_losses_of_embeddings():
    labels, e = np.array([0, 1, 0, 2, 1, 0]), np.random.RandomState(1).rand(6, 4).astype(np.float32)
    square = ((e[:, None] - e[None]).astype(np.float64) ** 2).sum(2)
    total = pairs = 0
    for i in range(6):
        for j in range(6):
            if i != j and labels[i] == labels[j]:
                others = [square[i, k] for k in range(6) if labels[k] != labels[i]]
                farther = [d for d in others if d > square[i, j]]
                total += max(square[i, j] - (min(farther) if farther else max(others)) + 0.5, 0)
                pairs += 1
    p = np.random.RandomState(2).rand(6, 4).astype(np.float32)
    logits = e @ p.T
    same = (labels[:, None] == labels).astype(np.float64)
    same /= same.sum(1, keepdims=True)
    cross = -(same * (logits - np.log(np.exp(logits).sum(1, keepdims=True)))).sum(1).mean()
    near = np.array([1, 0, 1, 0, 0, 1])
    distance = np.sqrt(((e - p) ** 2).sum(1))
    contrast = (near * distance**2 + (1 - near) * np.maximum(1 - distance, 0) ** 2).mean()
    with tf.Session() as session:
        made = session.run(
            [
                metric_learning.triplet_semihard_loss(labels, e, 0.5),
                metric_learning.npairs_loss(labels, e, p, 0.01),
                metric_learning.contrastive_loss(near, e, p),
                metric_learning.pairwise_distance(e),
            ]
        )
    np.testing.assert_allclose(made[:3], [total / pairs, cross + 0.0025 * ((e**2).sum(1).mean() + (p**2).sum(1).mean()), contrast], rtol=1e-5)
    np.testing.assert_allclose(made[3], np.sqrt(square), atol=1e-4)
